//! Follows what the agent in front is writing. Lost without harm: the log brings the text when it is whole.

use super::feed::Feed;
use super::model::{Model, TextUnderWay};
use super::update::Msg;
use crate::cli::EventStream;
use crate::client::paths::agent_path;
use crate::live_text::LivePiece;
use hatchery_core::AgentId;
use http_body_util::BodyExt as _;
use std::time::Duration;
use tokio::task::AbortHandle;

/// How long after the end of a stream it is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// The most of one text that is kept while it is written.
const MAX_BYTES: usize = 1 << 20;

/// The task that follows one agent.
#[derive(Debug, Default)]
pub struct LiveFollower {
    agent: Option<AgentId>,
    task: Option<AbortHandle>,
}

impl LiveFollower {
    /// Follows this agent and no other.
    pub fn follow(&mut self, agent: Option<AgentId>, feed: &Feed) {
        if self.agent == agent {
            return;
        }
        if let Some(task) = self.task.take() {
            task.abort();
        }
        self.agent = agent;
        self.task = agent.map(|agent| tokio::spawn(follow(agent, feed.clone())).abort_handle());
    }
}

impl Drop for LiveFollower {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

async fn follow(agent: AgentId, feed: Feed) {
    let path = agent_path(&agent.to_string(), "/live");
    loop {
        if let Some(client) = feed.client()
            && let Ok(mut stream) = client.stream(&path).await
        {
            let mut frames = EventStream::default();
            while let Some(Ok(frame)) = stream.frame().await {
                let bytes = frame.into_data().unwrap_or_default();
                for line in frames.take(&bytes) {
                    if let Ok(piece) = serde_json::from_str(&line) {
                        feed.tell(Msg::Live { agent, piece }).await;
                    }
                }
            }
            feed.tell(Msg::Live { agent, piece: LivePiece::Ended }).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Takes in some more of what an agent writes. It is evidence as well: its ring turns.
pub fn take(model: &mut Model, agent: AgentId, piece: LivePiece) {
    match piece {
        LivePiece::Ended => {
            model.partial.remove(&agent);
        }
        LivePiece::Writing { kind, begins, text, since } => {
            let now = model.now;
            model.roster.hear(agent, now, Some(agent) == model.current, false);
            // Only the one in front is followed, so no other can be out of date.
            model.partial.retain(|other, _| *other == agent);
            match model.partial.get_mut(&agent).filter(|_| !begins) {
                Some(partial) if partial.text.len() + text.len() <= MAX_BYTES => partial.text.push_str(&text),
                Some(_) => {}
                None => {
                    model.partial.insert(agent, TextUnderWay { kind, text, since });
                }
            }
        }
    }
}
