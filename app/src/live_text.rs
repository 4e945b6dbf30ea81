//! What agents are writing at the moment, for clients that watch them. It is in memory only: the log has a text as soon as it is
//! whole. There is no queue, so a slow client costs nothing: it gets what has been added since it last looked.

use hatchery_core::partial::{Partial, PartialKind};
use hatchery_core::seat::shown_so_far;
use hatchery_core::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The most of one text that is kept while it is written. What is longer is shown when it is whole.
const MAX_WRITING_BYTES: usize = 1 << 20;

/// The texts that are being written, by agent.
#[derive(Debug, Default)]
pub struct LiveTexts {
    agents: Mutex<HashMap<AgentId, LiveAgent>>,
}

#[derive(Debug)]
struct LiveAgent {
    writing: Option<Writing>,
    /// The number of the last text that was begun.
    number: u64,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Writing {
    kind: PartialKind,
    text: String,
    since: Timestamp,
}

/// What a client is told about the text that an agent writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LivePiece {
    /// Some more of a text or a thought.
    Writing {
        kind: PartialKind,
        /// These are the first words; what was shown before is over.
        begins: bool,
        text: String,
        /// When the first words were written.
        since: Timestamp,
    },
    /// What was being written is over. If it was said, it is in the log.
    Ended,
}

/// Watches one agent.
#[derive(Debug)]
pub struct Watcher {
    texts: Arc<LiveTexts>,
    agent: AgentId,
    changed: watch::Receiver<()>,
    /// The number of the text that was shown last, and how many bytes of it.
    shown: Option<(u64, usize)>,
    /// Whether the words of the agent may have markers, which are not shown.
    has_markers: bool,
}

impl LiveTexts {
    /// An agent writes some more words.
    pub fn write(&self, agent: AgentId, partial: &Partial, now: Timestamp) {
        let mut agents = self.lock();
        let entry = agents.entry(agent).or_insert_with(LiveAgent::new);
        let goes_on = !partial.begins && entry.writing.as_ref().is_some_and(|writing| writing.kind == partial.kind);
        if !goes_on {
            entry.number += 1;
            entry.writing = Some(Writing { kind: partial.kind, text: String::new(), since: now });
        }
        if let Some(writing) = &mut entry.writing
            && writing.text.len() + partial.text.len() <= MAX_WRITING_BYTES
        {
            writing.text.push_str(&partial.text);
        }
        entry.changed.send_replace(());
    }

    /// What an agent was writing is over: it was said, or its process has ended.
    pub fn end(&self, agent: AgentId) {
        let mut agents = self.lock();
        let Some(entry) = agents.get_mut(&agent) else { return };
        if entry.writing.take().is_some() {
            entry.changed.send_replace(());
        }
        if entry.changed.receiver_count() == 0 {
            agents.remove(&agent);
        }
    }

    /// Watches an agent. With `has_markers` what may become a marker of status is left out.
    pub fn watch(self: &Arc<Self>, agent: AgentId, has_markers: bool) -> Watcher {
        let changed = self.lock().entry(agent).or_insert_with(LiveAgent::new).changed.subscribe();
        Watcher { texts: Arc::clone(self), agent, changed, shown: None, has_markers }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, LiveAgent>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveAgent {
    fn new() -> Self {
        Self { writing: None, number: 0, changed: watch::Sender::new(()) }
    }
}

impl Watcher {
    /// Waits until there is something new.
    pub async fn next(&mut self) -> LivePiece {
        loop {
            self.changed.mark_unchanged();
            if let Some(piece) = self.take() {
                return piece;
            }
            // The sender lives as long as there is a watcher.
            if self.changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn take(&mut self) -> Option<LivePiece> {
        let agents = self.texts.lock();
        let entry = agents.get(&self.agent);
        let writing = entry.and_then(|entry| entry.writing.as_ref().map(|writing| (entry.number, writing)));
        let (piece, shown) = match (writing, self.shown) {
            (Some((number, writing)), shown) => {
                let from = shown.filter(|(of, _)| *of == number).map(|(_, bytes)| bytes);
                let whole = match (writing.kind, self.has_markers) {
                    (PartialKind::Text, true) => shown_so_far(&writing.text),
                    (PartialKind::Text, false) | (PartialKind::Thinking, _) => Cow::Borrowed(writing.text.as_str()),
                };
                let text = whole.get(from.unwrap_or(0)..).unwrap_or_default();
                if text.is_empty() {
                    return None;
                }
                let (kind, since, begins) = (writing.kind, writing.since, from.is_none());
                let piece = LivePiece::Writing { kind, begins, text: text.to_owned(), since };
                (piece, Some((number, whole.len())))
            }
            (None, Some(_)) => (LivePiece::Ended, None),
            (None, None) => return None,
        };
        self.shown = shown;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> AgentId {
        format!("{:A<22}", "aaaa").parse().unwrap()
    }

    fn piece(kind: PartialKind, begins: bool, text: &str) -> Partial {
        Partial { kind, begins, text: text.into() }
    }

    fn told(begins: bool, text: &str) -> LivePiece {
        LivePiece::Writing { kind: PartialKind::Text, begins, text: text.into(), since: Timestamp(1) }
    }

    #[tokio::test]
    async fn a_client_gets_what_was_added_since_it_last_looked() {
        let texts = Arc::new(LiveTexts::default());
        texts.write(agent(), &piece(PartialKind::Text, true, "one "), Timestamp(1));
        let mut early = texts.watch(agent(), false);
        assert_eq!(early.next().await, told(true, "one "));
        texts.write(agent(), &piece(PartialKind::Text, false, "two "), Timestamp(2));
        texts.write(agent(), &piece(PartialKind::Text, false, "three"), Timestamp(3));
        let mut late = texts.watch(agent(), false);
        assert_eq!(early.next().await, told(false, "two three"));
        assert_eq!(late.next().await, told(true, "one two three"));
        texts.end(agent());
        assert_eq!((early.next().await, late.next().await), (LivePiece::Ended, LivePiece::Ended));
        texts.write(agent(), &piece(PartialKind::Text, true, "next"), Timestamp(1));
        assert_eq!(early.next().await, told(true, "next"));
    }

    /// A watcher that was away while one text ended and another began is told of the new text alone.
    #[tokio::test]
    async fn what_is_over_is_lost_without_harm() {
        let texts = Arc::new(LiveTexts::default());
        let mut watcher = texts.watch(agent(), false);
        texts.write(agent(), &piece(PartialKind::Thinking, true, "hm"), Timestamp(1));
        texts.end(agent());
        texts.write(agent(), &piece(PartialKind::Text, true, "so"), Timestamp(1));
        assert_eq!(watcher.next().await, told(true, "so"));
    }

    #[tokio::test]
    async fn a_marker_of_status_is_never_shown_not_even_its_beginning() {
        let texts = Arc::new(LiveTexts::default());
        let (mut of_seats, mut other) = (texts.watch(agent(), true), texts.watch(agent(), false));
        texts.write(agent(), &piece(PartialKind::Text, true, "Hello.\n[AGENT_"), Timestamp(1));
        assert_eq!(of_seats.next().await, told(true, "Hello.\n"));
        assert_eq!(other.next().await, told(true, "Hello.\n[AGENT_"));
        texts.write(agent(), &piece(PartialKind::Text, false, "STATUS] {\"agents\":"), Timestamp(2));
        assert_eq!(of_seats.take(), None);
        texts.write(agent(), &piece(PartialKind::Text, false, "[]}\nBye"), Timestamp(3));
        assert_eq!(of_seats.next().await, told(false, "Bye"));
        assert_eq!(other.next().await, told(false, "STATUS] {\"agents\":[]}\nBye"));
    }

    #[test]
    fn a_text_is_bounded_and_nothing_stays_of_agents_that_nobody_watches() {
        let texts = Arc::new(LiveTexts::default());
        let long = piece(PartialKind::Text, false, &"x".repeat(MAX_WRITING_BYTES / 2 + 1));
        for _ in 0..5 {
            texts.write(agent(), &long, Timestamp(1));
        }
        assert_eq!(texts.lock()[&agent()].writing.as_ref().unwrap().text.len(), long.text.len());
        texts.end(agent());
        assert!(texts.lock().is_empty());
    }
}
