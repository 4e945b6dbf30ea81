//! What was typed before: for ↑ and ↓, and for the search by `^R`. Text that was sent, set aside, or left in a killed agent.

use super::field::{Field, LONG_BYTES};
use hatchery_core::AgentId;
use serde::{Deserialize, Serialize};

/// How many entries are kept in a project.
pub const MAX_ENTRIES: usize = 10_000;
/// How many of them may be long. A message has at most 1 MiB, so that the history stays below some megabytes.
pub const MAX_LONG: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recall {
    /// The latest last.
    pub entries: Vec<SentText>,
    /// How many were ever added here: the last ones may not be on disk yet.
    pub added: usize,
    walk: Option<Walk>,
}

/// Where ↑ has gone to, and the text that was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Walk {
    at: usize,
    draft: Field,
    agent: Option<AgentId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentText {
    pub agent: Option<AgentId>,
    pub text: String,
}

impl SentText {
    pub fn is_long(&self) -> bool {
        self.text.len() > LONG_BYTES
    }
}

impl Recall {
    /// Keeps a text that was sent. A long one is not kept: the log has it.
    pub fn keep(&mut self, agent: Option<AgentId>, text: &str) {
        self.settle();
        if text.len() <= LONG_BYTES {
            self.add(agent, text);
        }
    }

    /// Keeps a text that is nowhere else, however long it is.
    pub fn set_aside(&mut self, agent: Option<AgentId>, text: &str) {
        self.settle();
        self.add(agent, text);
    }

    /// The entry that is shown is a text like any other from here on. The draft that was there before it is kept.
    pub fn settle(&mut self) {
        if let Some(Walk { draft, agent, .. }) = self.walk.take() {
            self.add(agent, &draft.whole());
        }
    }

    fn add(&mut self, agent: Option<AgentId>, text: &str) {
        let text = text.trim_end();
        let repeated = self.entries.last().is_some_and(|last| last.text == text && last.agent == agent);
        if text.is_empty() || repeated {
            return;
        }
        self.entries.push(SentText { agent, text: text.to_owned() });
        self.added += 1;
        shorten(&mut self.entries);
    }

    /// The entry before the one that is shown: first this agent's, then all.
    pub fn older(&mut self, agent: Option<AgentId>, shown: &Field) -> Option<Field> {
        let order = self.order(agent);
        let at = self.walk.as_ref().map_or(0, |walk| walk.at + 1);
        let entry = &self.entries[*order.get(at)?];
        let draft = self.walk.take().map_or_else(|| shown.clone(), |walk| walk.draft);
        self.walk = Some(Walk { at, draft, agent });
        Some(Field::of_any(&entry.text))
    }

    /// The entry after it, or the draft that was begun.
    pub fn newer(&mut self, agent: Option<AgentId>) -> Option<Field> {
        let walk = self.walk.take()?;
        let Some(at) = walk.at.checked_sub(1) else { return Some(walk.draft) };
        let order = self.order(agent);
        let entry = &self.entries[*order.get(at)?];
        self.walk = Some(Walk { at, ..walk });
        Some(Field::of_any(&entry.text))
    }

    /// The agent in whose field a text was typed last, if that is known.
    pub fn typed_to(&self, text: &str) -> Option<Option<AgentId>> {
        self.entries.iter().rev().find(|entry| entry.text == text.trim_end()).map(|entry| entry.agent)
    }

    /// The entries with these words, the latest first.
    pub fn search(&self, words: &str, most: usize) -> Vec<&str> {
        let words = words.to_lowercase();
        let mut found: Vec<&str> = Vec::new();
        for entry in self.entries.iter().rev() {
            if found.len() == most {
                break;
            }
            if entry.text.to_lowercase().contains(&words) && !found.contains(&entry.text.as_str()) {
                found.push(&entry.text);
            }
        }
        found
    }

    fn order(&self, agent: Option<AgentId>) -> Vec<usize> {
        let own = |at: &usize| agent.is_some() && self.entries[*at].agent == agent;
        let latest_first = || (0..self.entries.len()).rev();
        latest_first().filter(own).chain(latest_first().filter(|at| !own(at))).collect()
    }
}

/// Leaves out the oldest entries where there are too many, or too many long ones.
pub fn shorten(entries: &mut Vec<SentText>) {
    entries.drain(..entries.len().saturating_sub(MAX_ENTRIES));
    let mut too_many = entries.iter().filter(|entry| entry.is_long()).count().saturating_sub(MAX_LONG);
    if too_many > 0 {
        entries.retain(|entry| {
            let is_left_out = too_many > 0 && entry.is_long();
            too_many -= usize::from(is_left_out);
            !is_left_out
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_agents_come_first_and_the_draft_is_at_the_bottom() {
        let (one, other) = (crate::clock::new_agent_id(), crate::clock::new_agent_id());
        let mut recall = Recall::default();
        recall.keep(Some(one), "first");
        recall.keep(Some(other), "elsewhere");
        recall.keep(Some(one), "second");
        let draft = Field::of("dra");
        let up = |recall: &mut Recall| recall.older(Some(one), &draft).map(|field| field.whole());
        assert_eq!(up(&mut recall).as_deref(), Some("second"));
        assert_eq!(up(&mut recall).as_deref(), Some("first"));
        assert_eq!(up(&mut recall).as_deref(), Some("elsewhere"));
        assert_eq!(up(&mut recall), None);
        assert_eq!(recall.newer(Some(one)).unwrap().whole(), "first");
        assert_eq!(recall.newer(Some(one)).unwrap().whole(), "second");
        assert_eq!(recall.newer(Some(one)).unwrap().whole(), "dra");
        assert_eq!(recall.newer(Some(one)), None);
    }
}
