//! The order in which the lines of a file can be imported, or what is wrong with them. Pure.

use super::{AgentLine, MessageLine, written};
use hatchery_core::MessageKind;
use hatchery_core::history::SourceId;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(super) enum ImportStep {
    Agent(AgentLine),
    /// For a rewind, also the message that it goes back to.
    Message(MessageLine, Option<SourceId>),
}

/// Puts every line after those that it refers to.
pub(super) fn in_order(agents: Vec<AgentLine>, messages: Vec<MessageLine>) -> Result<Vec<ImportStep>, String> {
    let lines = Lines::new(&agents, &messages)?;
    lines.check()?;
    let order = lines.order();
    let mut ranks = vec![0; messages.len()];
    for (rank, place) in order.iter().enumerate() {
        if let LineIndex::Message(at) = place {
            ranks[*at] = rank;
        }
    }
    let rewinds = (0..messages.len()).filter(|at| messages[*at].kind == MessageKind::Rewind);
    let targets = rewinds.map(|at| Ok((at, lines.rewind_target(&ranks, at)?.clone())));
    let targets: BTreeMap<usize, SourceId> = targets.collect::<Result<_, String>>()?;
    let mut agents: Vec<Option<AgentLine>> = agents.into_iter().map(Some).collect();
    let mut messages: Vec<Option<MessageLine>> = messages.into_iter().map(Some).collect();
    let step = |place| match place {
        LineIndex::Agent(at) => agents[at].take().map(ImportStep::Agent),
        LineIndex::Message(at) => messages[at].take().map(|line| ImportStep::Message(line, targets.get(&at).cloned())),
    };
    Ok(order.into_iter().filter_map(step).collect())
}

/// The index of a line among the agents or among the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineIndex {
    Agent(usize),
    Message(usize),
}

struct Lines<'a> {
    agents: &'a [AgentLine],
    messages: &'a [MessageLine],
    agent_at: BTreeMap<&'a SourceId, usize>,
    message_at: BTreeMap<&'a SourceId, usize>,
    /// The messages in the order in which they were said.
    said: Vec<usize>,
    /// The same of each agent.
    said_by: BTreeMap<&'a SourceId, Vec<usize>>,
}

impl<'a> Lines<'a> {
    fn new(agents: &'a [AgentLine], messages: &'a [MessageLine]) -> Result<Self, String> {
        let mut said: Vec<usize> = (0..messages.len()).collect();
        if messages.iter().all(|message| matches!(message.id, SourceId::Number(_))) {
            said.sort_by_key(|at| &messages[*at].id);
        }
        let mut said_by: BTreeMap<&SourceId, Vec<usize>> = BTreeMap::new();
        for at in &said {
            said_by.entry(&messages[*at].agent).or_default().push(*at);
        }
        let agent_at = by_id("agent", agents.iter().map(|agent| &agent.id))?;
        let message_at = by_id("message", messages.iter().map(|message| &message.id))?;
        Ok(Self { agents, messages, agent_at, message_at, said, said_by })
    }

    fn check(&self) -> Result<(), String> {
        if let Some(message) = self.messages.iter().find(|message| !self.agent_at.contains_key(&message.agent)) {
            let (id, agent) = (written(&message.id), written(&message.agent));
            return Err(format!("message {id} is of agent {agent}, which is not in the file"));
        }
        for agent in self.agents {
            let id = written(&agent.id);
            if let Some(parent) = agent.parent.as_ref().filter(|parent| !self.agent_at.contains_key(parent)) {
                return Err(format!("agent {id} has the parent {}, which is not in the file", written(parent)));
            }
            let Some(at) = &agent.fork_message_id else { continue };
            let Some(parent) = &agent.parent else {
                return Err(format!("agent {id} is forked at {}, but has no parent", written(at)));
            };
            if self.message(at).is_none_or(|message| message.agent != *parent) {
                return Err(format!("agent {id} is forked at {}, which is not a message of its parent", written(at)));
            }
        }
        self.check_for_cycles()
    }

    fn check_for_cycles(&self) -> Result<(), String> {
        let mut rooted = BTreeSet::new();
        for agent in self.agents {
            let mut path = BTreeSet::new();
            let mut next = Some(&agent.id);
            while let Some(id) = next.filter(|id| !rooted.contains(id)) {
                if !path.insert(id) {
                    return Err(format!("agent {} descends from itself", written(id)));
                }
                next = self.parent(id);
            }
            rooted.extend(path);
        }
        Ok(())
    }

    /// Every line once, after the lines that it needs. There are no cycles, and this does not recurse, because a tree may be deep.
    fn order(&self) -> Vec<LineIndex> {
        let mut order = Vec::with_capacity(self.agents.len() + self.messages.len());
        let mut born = vec![false; self.agents.len()];
        let mut spoken: BTreeMap<&SourceId, usize> = BTreeMap::new();
        let mut is_said = vec![false; self.messages.len()];
        let wanted =
            self.said.iter().map(|at| LineIndex::Message(*at)).chain((0..self.agents.len()).map(LineIndex::Agent));
        for place in wanted {
            let mut open = vec![place];
            while let Some(place) = open.pop() {
                match place {
                    LineIndex::Agent(at) if born[at] => {}
                    LineIndex::Message(at) if is_said[at] => {}
                    LineIndex::Agent(at) => {
                        let parent = self.agents[at].parent.as_ref().and_then(|parent| self.agent_at.get(parent));
                        let fork = self.agents[at].fork_message_id.as_ref().and_then(|id| self.message_at.get(id));
                        let parent = parent.filter(|parent| !born[**parent]).map(|parent| LineIndex::Agent(*parent));
                        let fork = fork.filter(|fork| !is_said[**fork]).map(|fork| LineIndex::Message(*fork));
                        if let Some(first) = parent.or(fork) {
                            open.extend([place, first]);
                            continue;
                        }
                        born[at] = true;
                        order.push(place);
                    }
                    LineIndex::Message(at) => {
                        let agent = &self.messages[at].agent;
                        let speaker = self.agent_at.get(agent).copied().filter(|speaker| !born[*speaker]);
                        let before = spoken.entry(agent).or_default();
                        let earlier = self.said_by.get(agent).and_then(|said| said.get(*before)).copied();
                        if let Some(first) =
                            speaker.map(LineIndex::Agent).or(earlier.filter(|it| *it != at).map(LineIndex::Message))
                        {
                            open.extend([place, first]);
                            continue;
                        }
                        *before += 1;
                        is_said[at] = true;
                        order.push(place);
                    }
                }
            }
        }
        order
    }

    /// A rewind names an earlier message of its history, or the label of a mark in it, or nothing: the last mark. `ranks`
    /// says where each message comes in the order.
    fn rewind_target(&self, ranks: &[usize], at: usize) -> Result<&'a SourceId, String> {
        let rewind = &self.messages[at];
        let text = rewind.content.as_str();
        let numbered = text.parse().map(SourceId::Number);
        let named = numbered.ok().into_iter().chain([SourceId::Text(text.into())]);
        let named = named.filter_map(|id| self.message_at.get(&id).copied()).next();
        let is_mark =
            |message: &MessageLine| message.kind == MessageKind::Mark && (text.is_empty() || message.content == text);
        let mut found = None;
        let mut next = Some((&rewind.agent, ranks[at]));
        while let (Some((agent, end)), None) = (next, found) {
            let own = self.said_by.get(agent).map(Vec::as_slice).unwrap_or_default();
            let own = &own[..own.partition_point(|it| ranks[*it] < end)];
            let by_id = named.filter(|it| self.messages[*it].agent == *agent && ranks[*it] < end);
            found = by_id.or_else(|| own.iter().rev().copied().find(|it| is_mark(&self.messages[*it])));
            let line = self.agent_at.get(agent).map(|at| &self.agents[*at]);
            next = line.and_then(|line| {
                let fork = line.fork_message_id.as_ref().and_then(|id| self.message_at.get(id));
                Some((line.parent.as_ref()?, fork.map_or(0, |fork| ranks[*fork] + 1)))
            });
        }
        found.map(|it| &self.messages[it].id).ok_or_else(|| {
            let id = written(&rewind.id);
            format!("rewind {id} goes back to `{text}`, which is neither a message nor a mark before it")
        })
    }

    fn parent(&self, agent: &SourceId) -> Option<&'a SourceId> {
        self.agent_at.get(agent).and_then(|at| self.agents[*at].parent.as_ref())
    }

    fn message(&self, id: &SourceId) -> Option<&'a MessageLine> {
        self.message_at.get(id).map(|at| &self.messages[*at])
    }
}

fn by_id<'a>(what: &str, ids: impl Iterator<Item = &'a SourceId>) -> Result<BTreeMap<&'a SourceId, usize>, String> {
    let mut places = BTreeMap::new();
    for (at, id) in ids.enumerate() {
        if places.insert(id, at).is_some() {
            return Err(format!("{what} {} is in the file twice", written(id)));
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` or `a<b` or `a<b@1` are agents, `a:1` is a user's message, `a:1=mark:x` one of another kind.
    fn lines(text: &str) -> Result<String, String> {
        let id = |text: &str| text.parse().map_or_else(|_| SourceId::Text(text.into()), SourceId::Number);
        let (mut agents, mut messages) = (Vec::new(), Vec::new());
        for word in text.split_whitespace() {
            if let Some((agent, rest)) = word.split_once(':') {
                let (number, kind) = rest.split_once('=').unwrap_or((rest, "user"));
                let (kind, content) = kind.split_once(':').unwrap_or((kind, ""));
                let kind = serde_json::from_value(kind.into()).unwrap();
                messages.push(MessageLine { id: id(number), agent: id(agent), kind, content: content.into() });
            } else {
                let (name, above) = word.split_once('<').map_or((word, None), |(name, above)| (name, Some(above)));
                let (parent, fork) = match above.map(|above| above.split_once('@').ok_or(above)) {
                    None => (None, None),
                    Some(Err(parent)) => (Some(id(parent)), None),
                    Some(Ok((parent, fork))) => (Some(id(parent)), Some(id(fork))),
                };
                agents.push(AgentLine { id: id(name), parent, fork_message_id: fork });
            }
        }
        let steps = in_order(agents, messages)?;
        let shown = steps.iter().map(|step| match step {
            ImportStep::Agent(agent) => written(&agent.id),
            ImportStep::Message(message, None) => format!("{}:{}", written(&message.agent), written(&message.id)),
            ImportStep::Message(message, Some(to)) => {
                format!("{}:{}>{}", written(&message.agent), written(&message.id), written(to))
            }
        });
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[track_caller]
    fn check(given: &str, expected: &str) {
        assert_eq!(lines(given).unwrap(), expected);
    }

    #[track_caller]
    fn refused(given: &str, expected: &str) {
        assert_eq!(lines(given).unwrap_err(), expected);
    }

    #[test]
    fn numbers_order_messages_and_other_ids_leave_them_as_they_are() {
        check("a:10 a:9 a", "a a:9 a:10");
        check("a:m10 a:m9 a", "a a:m10 a:m9");
        check("a a:2 a:x a:1", "a a:2 a:x a:1");
    }

    #[test]
    fn an_agent_comes_when_its_fork_point_is_there() {
        check("b<a@2 a b:3 a:1 a:2 a:4", "a a:1 a:2 b b:3 a:4");
        check("c<b b<a@1 a a:1 c:2 b:3", "a a:1 b c c:2 b:3");
    }

    #[test]
    fn a_fork_point_that_is_later_than_the_first_message_is_brought_forward() {
        check("a b<a@5 a:1 b:2 a:3 a:5 a:6", "a a:1 a:3 a:5 b b:2 a:6");
    }

    #[test]
    fn agents_without_messages_come_last() {
        check("z<a a a:1", "a a:1 z");
    }

    #[test]
    fn a_rewind_finds_its_place() {
        check("a a:1=mark:x a:2 a:3=mark a:4=rewind:x a:5=rewind a:6=rewind:2", "a a:1 a:2 a:3 a:4>1 a:5>3 a:6>2");
        check("a a:1=mark b<a@1 b:2=rewind", "a a:1 b b:2>1");
        // A mark of another agent, and a mark that comes later.
        let nowhere = "rewind 3 goes back to ``, which is neither a message nor a mark before it";
        refused("a b a:1=mark b:2 b:3=rewind b:4=mark", nowhere);
        refused("a b<a a:1=mark b:2 b:3=rewind", nowhere);
    }

    #[test]
    fn what_does_not_fit_together_is_named() {
        refused("a a", "agent a is in the file twice");
        refused("a a:1 a:1", "message 1 is in the file twice");
        refused("a b:1", "message 1 is of agent b, which is not in the file");
        refused("a<b", "agent a has the parent b, which is not in the file");
        refused("a b<a@1", "agent b is forked at 1, which is not a message of its parent");
        refused("a b c<a@1 b:1", "agent c is forked at 1, which is not a message of its parent");
        refused("a<b b<c c<a", "agent a descends from itself");
    }
}
