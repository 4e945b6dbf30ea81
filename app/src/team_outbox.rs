//! Messages that are on their way into the inbox file of an agent of a team. The log comes first, then the file, and a daemon may be killed
//! between the two. So each message is written down here before, and the next daemon brings what the log has and the file has not.
//!
//! `.hatchery/team-outbox/NUMBER.json` is one message. It is removed when the inbox file has it, or when it was refused.

use crate::blocking::blocking;
use crate::engine::Handle;
use crate::project::{Project, write_whole};
use crate::team_inbox;
use crate::{clock, config};
use hatchery_core::event::MessageEvent;
use hatchery_core::seat::Mode;
use hatchery_core::{AgentId, Event, EventId, MessageKind};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// How many messages may be left of daemons that were killed. Each has at most one for every request that was open.
const MAX_LEFT: usize = 1_000;
/// How many of an agent's newest messages are looked through for one that was left.
const MAX_LOOKED_AT: usize = 200;

/// A message for an agent of the team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    pub agent: AgentId,
    /// The name that the inbox file has.
    pub name: String,
    pub from: String,
    pub text: String,
    /// When it was said. It tells the entry of this message from others with the same words.
    pub timestamp: String,
    /// The last event before the message.
    pub after: EventId,
}

/// A message that is written down here.
#[derive(Debug)]
pub struct Pending {
    path: PathBuf,
}

/// Writes a message down, before it is said.
pub async fn write_down(project: &Project, posted: &Posted) -> io::Result<Pending> {
    let folder = folder(project);
    let path = folder.join(format!("{}.json", clock::new_uuid()));
    let (content, written) = (serde_json::to_vec(posted)?, path.clone());
    blocking(move || {
        std::fs::create_dir_all(&folder)?;
        write_whole(&written, &content, 0o600)
    })
    .await?;
    Ok(Pending { path })
}

impl Pending {
    /// The inbox file has it, or nobody is to get it.
    pub async fn done(self) {
        let path = self.path.clone();
        if let Err(error) = blocking(move || std::fs::remove_file(path)).await {
            tracing::warn!(%error, file = %self.path.display(), "a message that was delivered cannot be removed");
        }
    }
}

/// Brings the messages that a daemon before this one has said, and not brought.
pub async fn bring_left(project: &Project, settings: &config::Seats, handle: &Handle) {
    if settings.mode == Mode::Direct {
        return;
    }
    let folder = folder(project);
    let left = match blocking(move || read_all(&folder)).await {
        Ok(left) => left,
        Err(error) => return tracing::warn!(%error, "messages that were left for agents of the team cannot be read"),
    };
    for (path, posted) in left {
        let name = posted.name.clone();
        match bring(settings, handle, posted).await {
            Ok(()) => Pending { path }.done().await,
            Err(error) => {
                tracing::warn!(name, %error, "a message that was left cannot be brought; the next start tries again")
            }
        }
    }
}

async fn bring(settings: &config::Seats, handle: &Handle, posted: Posted) -> io::Result<()> {
    let of_person = |kind| kind == MessageKind::User;
    let newest = handle.own_messages(posted.agent, MAX_LOOKED_AT, of_person).await.map_err(io::Error::other)?;
    let is_it =
        |event: &Event| matches!(event, Event::Message(MessageEvent::Added { content, .. }) if *content == posted.text);
    // What is not in the log was never said, and its sender got no answer.
    match newest.iter().any(|record| record.id > posted.after && is_it(&record.event)) {
        true => team_inbox::send_once(settings, &posted).await,
        false => Ok(()),
    }
}

fn read_all(folder: &Path) -> io::Result<Vec<(PathBuf, Posted)>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut left = Vec::new();
    for entry in entries.take(MAX_LEFT) {
        let path = entry?.path();
        match serde_json::from_slice(&std::fs::read(&path)?) {
            Ok(posted) => left.push((path, posted)),
            Err(error) => tracing::warn!(%error, file = %path.display(), "a message that was left cannot be read"),
        }
    }
    left.sort_by_key(|(_, posted): &(PathBuf, Posted)| posted.after);
    Ok(left)
}

fn folder(project: &Project) -> PathBuf {
    project.data().join("team-outbox")
}
