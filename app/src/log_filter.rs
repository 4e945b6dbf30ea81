//! Which events of the log are wanted: those of some agents, of some quests or a step, of some types, with some words. It reads events as they
//! are stored, so that a long log can be searched without decoding every event.

use hatchery_core::quest::StepId;
use hatchery_core::{AgentId, QuestId, World};
use serde::Deserialize;
use std::borrow::Cow;

/// An empty filter matches every event. Otherwise every part that is set must match, with one of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Events about one of these agents, and mail that it sent or gets.
    pub agents: Vec<AgentId>,
    /// Events of one of these quests and of the agents that work for it.
    pub quests: Vec<QuestId>,
    /// The same, of one step of the quests.
    pub step: Option<StepId>,
    /// Events of one of these types.
    pub types: Vec<String>,
    /// No events of these types.
    pub without: Vec<String>,
    /// As [`LogFilter::words`] makes it.
    pub words: Option<String>,
}

/// The fields of an event that say what it is about.
#[derive(Deserialize)]
struct Probe<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    quest: Option<Cow<'a, str>>,
    #[serde(borrow)]
    step: Option<Cow<'a, str>>,
    /// Of mail an address; a rewind has a number here.
    #[serde(borrow)]
    from: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow)]
    to: Option<&'a serde_json::value::RawValue>,
}

impl LogFilter {
    /// Words as they stand in JSON, in small letters.
    pub fn words(text: &str) -> Option<String> {
        let json = serde_json::Value::from(text).to_string().to_lowercase();
        let inner = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default();
        Some(inner.to_owned()).filter(|inner| !inner.is_empty())
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an event is meant. The world says which agents work for a quest.
    pub fn matches(&self, world: &World, body: &str) -> bool {
        let Ok(probe) = serde_json::from_str::<Probe<'_>>(body) else { return false };
        let of_type = self.types.is_empty() || self.types.iter().any(|kind| *kind == probe.kind);
        of_type
            && !self.without.iter().any(|kind| *kind == probe.kind)
            && (self.agents.is_empty() || self.agents.iter().any(|agent| probe.is_about(*agent)))
            && (self.quests.is_empty()
                || self.quests.iter().any(|quest| probe.is_of(world, *quest, self.step.as_ref())))
            && self.words.as_ref().is_none_or(|words| body.to_lowercase().contains(words))
    }
}

impl Probe<'_> {
    fn is_about(&self, agent: AgentId) -> bool {
        let id = agent.to_string();
        let quoted = |raw: Option<&serde_json::value::RawValue>| {
            raw.is_some_and(|raw| raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"')) == Some(&id))
        };
        self.agent.as_deref() == Some(&id) || quoted(self.from) || quoted(self.to)
    }

    fn is_of(&self, world: &World, quest: QuestId, step: Option<&StepId>) -> bool {
        let own = self.quest.as_deref() == Some(&quest.to_string());
        let own_step = step.is_none_or(|step| self.step.as_deref() == Some(step.as_str()));
        let agent = self.agent.as_deref().and_then(|agent| agent.parse().ok());
        let by_agent = || {
            let assignment = world.assignment(agent?)?;
            Some(assignment.quest == quest && step.is_none_or(|step| assignment.step == *step))
        };
        (own && own_step) || by_agent().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(last: u8) -> AgentId {
        AgentId::from_bytes([last; 16])
    }

    fn matches(filter: &LogFilter, body: &str) -> bool {
        filter.matches(&World::default(), body)
    }

    #[test]
    fn everything_that_is_set_has_to_hold() {
        let (ann, ben) = (agent(1), agent(2));
        let said = format!(
            r#"{{"ts":1,"type":"message_added","agent":"{ann}","kind":"rewind","content":"Say \"Hi\"\n","to":7}}"#
        );
        let mail = format!(r#"{{"ts":1,"type":"mail_sent","from":"{ben}","to":"human","body":"x"}}"#);
        assert!(matches(&LogFilter::default(), &said));
        assert!(matches(&LogFilter { agents: vec![ann], ..LogFilter::default() }, &said));
        assert!(!matches(&LogFilter { agents: vec![ben], ..LogFilter::default() }, &said));
        assert!(matches(&LogFilter { agents: vec![ben], ..LogFilter::default() }, &mail));
        assert!(
            [&said, &mail]
                .iter()
                .all(|body| matches(&LogFilter { agents: vec![ann, ben], ..LogFilter::default() }, body))
        );
        let types = vec!["mail_sent".to_owned(), "mail_read".to_owned()];
        assert!(matches(&LogFilter { types: types.clone(), ..LogFilter::default() }, &mail));
        assert!(!matches(&LogFilter { types, agents: vec![ann], ..LogFilter::default() }, &mail));
        let without = LogFilter { without: vec!["mail_sent".to_owned()], ..LogFilter::default() };
        assert!(matches(&without, &said) && !matches(&without, &mail));
        for (words, found) in [("say \"hi\"", true), ("SAY", true), ("\"hi\"\n", true), ("hello", false)] {
            assert_eq!(
                matches(&LogFilter { words: LogFilter::words(words), ..LogFilter::default() }, &said),
                found,
                "{words}"
            );
        }
    }

    #[test]
    fn a_step_is_meant_by_its_own_events() {
        let quest = QuestId::from_bytes([3; 16]);
        let body = format!(r#"{{"ts":1,"type":"ward_begun","quest":"{quest}","step":"a","number":1}}"#);
        let of =
            |step: &str| LogFilter { quests: vec![quest], step: Some(step.parse().unwrap()), ..LogFilter::default() };
        assert!(matches(&of("a"), &body) && !matches(&of("b"), &body));
        assert!(!matches(&LogFilter { quests: vec![QuestId::from_bytes([4; 16])], ..LogFilter::default() }, &body));
    }
}
