//! Histories: the messages of agents. A history is inherited by reference.
//!
//! A child stores only the messages after its fork. To get the whole history, walk from the child up to the nearest clear or to the root,
//! note which ranges of each agent's own messages count ([`ranges`]), and read those ranges forwards ([`HistoryMessage`]). The order is by
//! id ([`put_in_order`] has the one exception), because clocks may stand still or run backwards.

use crate::agent::{Birth, Origin, created, living};
use crate::event::MessageEvent;
use crate::{AgentId, Event, EventId, Refusal, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest message, in bytes of UTF-8. The limit on HTTP bodies is higher, so that there is room for JSON's escapes.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The message that marks an interrupted turn in a history. Agent programs keep the messages of an interrupted turn, and tell the model
/// with these words that the turn was interrupted.
pub const TURN_INTERRUPTED: &str = "[Request interrupted by user]";
/// How many messages are remembered that the agent received only after an interrupt. Only the newest are kept, so that the world does not
/// grow with every interrupt. An older message appears in its history at the place where it was sent.
pub const MAX_LATE_MESSAGES: usize = 10_000;
/// The longest label of a mark, in bytes.
pub const MAX_MARK_BYTES: usize = 256;

/// The author or the type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Everything before it no longer counts.
    Clear,
    System,
    User,
    Assistant,
    ToolCall,
    ToolResult,
    /// A named place to which a rewind can go back.
    Mark,
    /// Takes back everything after a message.
    Rewind,
    AgentKilled,
    Command,
    Fork,
    Usage,
    /// The turn before it was interrupted and does not reach a model.
    Interrupted,
}

impl MessageKind {
    /// Whether a model sees messages of this kind.
    pub fn reaches_model(self) -> bool {
        match self {
            Self::System | Self::User | Self::Assistant | Self::ToolCall | Self::ToolResult => true,
            Self::Clear
            | Self::Mark
            | Self::Rewind
            | Self::AgentKilled
            | Self::Command
            | Self::Fork
            | Self::Usage
            | Self::Interrupted => false,
        }
    }

    /// Whether the agent itself is the author.
    pub fn is_spoken(self) -> bool {
        match self {
            Self::Assistant | Self::ToolCall => true,
            Self::Clear
            | Self::System
            | Self::User
            | Self::ToolResult
            | Self::Mark
            | Self::Rewind
            | Self::AgentKilled
            | Self::Command
            | Self::Fork
            | Self::Usage
            | Self::Interrupted => false,
        }
    }
}

/// The id of an imported message in its source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum SourceId {
    Number(i64),
    Text(String),
}

/// A clear or a rewind in an agent's own history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    pub at: EventId,
    pub how: CutHow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CutHow {
    Clear,
    /// A rewind to this message: the messages after it, up to the cut, are taken back.
    Rewind {
        to: EventId,
    },
}

/// A range of one agent's own messages: those after one id, up to and including another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRange {
    pub agent: AgentId,
    pub after: EventId,
    pub upto: EventId,
}

/// The target of a rewind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewindTo {
    LastMark,
    Mark(String),
    Message(EventId),
}

/// The ranges that make up an agent's history, in order. Walks backwards to the nearest clear or to the root. Reads only the world, and has
/// no limit of depth.
pub fn ranges(world: &World, leaf: AgentId) -> Vec<HistoryRange> {
    let mut found = Vec::new();
    let mut ceiling = EventId(u64::MAX);
    let mut current = world.agent(leaf).map(|it| (leaf, it.last_message));
    while let Some((agent, end)) = current {
        let Some(it) = world.agent(agent) else { break };
        let (kept, inherits) = own_parts(it.born, it.cuts.iter().take_while(|cut| Some(cut.at) <= end), end);
        for (after, upto) in kept.into_iter().rev() {
            let upto = upto.min(ceiling);
            if after < upto {
                found.push(HistoryRange { agent, after, upto });
            }
        }
        match inherits {
            None => break,
            Some(limit) => ceiling = ceiling.min(limit),
        }
        current = it.origin.map(|origin| (origin.agent, origin.upto));
    }
    found.reverse();
    found
}

/// Which of an agent's own messages counted when `end` was its last message: pairs of (after, up to), in order. The second result is how
/// far the inherited messages count, or None if they do not.
fn own_parts<'a>(
    born: EventId,
    cuts: impl Iterator<Item = &'a Cut>,
    end: Option<EventId>,
) -> (Vec<(EventId, EventId)>, Option<EventId>) {
    let mut kept: Vec<(EventId, EventId)> = Vec::new();
    let mut open = born;
    let mut inherits = Some(EventId(u64::MAX));
    for cut in cuts {
        match cut.how {
            CutHow::Clear => {
                kept.clear();
                open = cut.at;
                inherits = None;
            }
            CutHow::Rewind { to } => {
                kept.push((open, cut.at.before()));
                // Starting at the end, so that many rewinds cost no more than the ranges that they take back.
                while kept.pop_if(|(after, _)| *after >= to).is_some() {}
                if let Some((_, upto)) = kept.last_mut() {
                    *upto = (*upto).min(to);
                }
                inherits = inherits.map(|limit| limit.min(to));
                // The message of the rewind itself stays.
                open = cut.at.before();
            }
        }
    }
    kept.extend(end.map(|end| (open, end)));
    (kept, inherits)
}

/// One message of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryMessage {
    pub id: EventId,
    pub agent: AgentId,
    pub kind: MessageKind,
    pub content: String,
    pub source_id: Option<SourceId>,
    /// Taken back by an interruption: the message is part of the history, but a model does not see it.
    pub interrupted: bool,
}

impl HistoryMessage {
    pub fn reaches_model(&self) -> bool {
        self.kind.reaches_model() && !self.interrupted
    }
}

/// Sorts messages in the order in which the agent received them. This is the order of the ids, except for messages that waited when a turn
/// was interrupted: they follow the mark of the interrupt, if that mark is part of the history.
pub fn put_in_order<T>(world: &World, messages: &mut [T], id: impl Fn(&T) -> EventId) {
    messages.sort_by_key(&id);
    let marks: Vec<Option<EventId>> = messages.iter().map(|it| world.heard_after(id(it))).collect();
    if marks.iter().all(Option::is_none) {
        return;
    }
    let is_there = |mark: &EventId| messages.binary_search_by_key(mark, &id).is_ok();
    let moved: BTreeMap<EventId, EventId> =
        messages.iter().zip(&marks).filter_map(|(it, mark)| Some((id(it), (*mark).filter(is_there)?))).collect();
    messages.sort_by_key(|it| (moved.get(&id(it)).copied().unwrap_or(id(it)), moved.contains_key(&id(it)), id(it)));
}

/// Marks the messages that interruptions took back.
pub fn mark_interrupted(said: &mut [HistoryMessage]) {
    let kinds: Vec<MessageKind> = said.iter().map(|it| it.kind).collect();
    for turn in interrupted(kinds) {
        said[turn].iter_mut().for_each(|it| it.interrupted = true);
    }
}

/// The indexes that interruptions took back, from the kinds of the messages: for each interruption, from the last user message before it,
/// or from the start, to the interruption itself.
pub fn interrupted(kinds: impl IntoIterator<Item = MessageKind>) -> Vec<std::ops::Range<usize>> {
    let mut turns = Vec::new();
    let mut turn = 0;
    for (at, kind) in kinds.into_iter().enumerate() {
        if kind == MessageKind::User {
            turn = at;
        }
        if kind == MessageKind::Interrupted {
            turns.push(turn..at + 1);
            // Messages that are marked already need not be marked again.
            turn = at + 1;
        }
    }
    turns
}

/// The origin of a fork at an earlier message: the agent whose own message it is.
pub(crate) fn origin_at(world: &World, agent: AgentId, at: EventId) -> Result<Origin, Refusal> {
    let parts = ranges(world, agent);
    let part = parts.iter().rev().find(|part| part.after < at && at <= part.upto);
    part.map(|part| Origin { agent: part.agent, upto: Some(at) }).ok_or(Refusal::NotInHistory { agent, message: at })
}

pub(crate) fn add(world: &World, agent: AgentId, kind: MessageKind, content: &str) -> Result<Vec<Event>, Refusal> {
    living(world, agent)?;
    check_content(kind, content)?;
    if kind == MessageKind::Clear {
        crate::run::at_rest(world, agent)?;
    }
    if kind == MessageKind::Rewind {
        return rewind(world, agent, &target(content));
    }
    Ok(vec![said(agent, kind, content.to_owned())])
}

pub(crate) fn rewind(world: &World, agent: AgentId, to: &RewindTo) -> Result<Vec<Event>, Refusal> {
    living(world, agent)?;
    crate::run::at_rest(world, agent)?;
    let to = Some(place(world, agent, to)?);
    let kind = MessageKind::Rewind;
    Ok(vec![Event::Message(MessageEvent::Added { agent, kind, content: String::new(), to, source_id: None })])
}

/// The message to which a rewind goes back.
fn place(world: &World, agent: AgentId, to: &RewindTo) -> Result<EventId, Refusal> {
    match to {
        RewindTo::Message(id) => origin_at(world, agent, *id).map(|_| *id),
        RewindTo::LastMark => find_mark(world, agent, None),
        RewindTo::Mark(label) => find_mark(world, agent, Some(label)),
    }
}

/// The last mark in the ranges that count.
fn find_mark(world: &World, agent: AgentId, label: Option<&str>) -> Result<EventId, Refusal> {
    let parts = ranges(world, agent);
    let found = parts.iter().rev().find_map(|part| {
        let marks = &world.agent(part.agent)?.marks;
        let mut inside = marks.iter().rev().filter(|(id, _)| part.after < *id && *id <= part.upto);
        inside.find(|(_, name)| label.is_none_or(|label| label == name)).map(|(id, _)| *id)
    });
    found.ok_or_else(|| Refusal::NoSuchMark {
        agent,
        label: label.map(|label| label.chars().take(MAX_MARK_BYTES).collect()),
    })
}

/// The target of a rewind that comes as a plain message: a label, a message's id, or the last mark.
fn target(content: &str) -> RewindTo {
    match (content, content.parse()) {
        ("", _) => RewindTo::LastMark,
        (_, Ok(id)) => RewindTo::Message(EventId(id)),
        (label, Err(_)) => RewindTo::Mark(label.to_owned()),
    }
}

pub(crate) fn said(agent: AgentId, kind: MessageKind, content: String) -> Event {
    Event::Message(MessageEvent::Added { agent, kind, content, to: None, source_id: None })
}

pub(crate) fn check_content(kind: MessageKind, content: &str) -> Result<(), Refusal> {
    match content.len() {
        bytes if bytes > MAX_MESSAGE_BYTES => Err(Refusal::MessageTooLong { bytes }),
        // The labels of marks are kept in memory, unlike other messages.
        bytes if bytes > MAX_MARK_BYTES && kind == MessageKind::Mark => Err(Refusal::MarkTooLong { bytes }),
        _ => Ok(()),
    }
}

/// One item of an imported history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportedItem {
    /// An agent below `parent`. It inherits the history up to `upto`, which was the parent's last message then and is imported already.
    Agent { agent: AgentId, parent: AgentId, upto: Option<EventId> },
    Message {
        agent: AgentId,
        kind: MessageKind,
        content: String,
        /// For a rewind: the message to which it goes back. If not given, the content is the label of a mark, or empty for the last mark.
        to: Option<EventId>,
        source_id: SourceId,
    },
}

/// Imports a history: all items or none.
pub(crate) fn import(world: &World, items: &[ImportedItem], now: Timestamp) -> Result<Vec<Event>, Refusal> {
    // Each item may refer to earlier ones.
    let mut so_far = world.clone();
    let taken_in = items.iter().map(|item| {
        let event = imported(&so_far, item)?;
        Ok(so_far.record(event, now).event)
    });
    taken_in.collect()
}

fn imported(world: &World, item: &ImportedItem) -> Result<Event, Refusal> {
    match item {
        ImportedItem::Agent { agent, parent, upto } => {
            living(world, *parent)?;
            if world.is_taken(*agent) {
                return Err(Refusal::AgentExists(*agent));
            }
            let origin = match *upto {
                Some(upto) => owner(world, *parent, upto)?,
                None => Origin { agent: *parent, upto: None },
            };
            Ok(created(*parent, origin, &Birth::of(*agent), Timestamp::default()))
        }
        ImportedItem::Message { agent, kind, content, to, source_id } => {
            living(world, *agent)?;
            // A running process would not know the imported message.
            crate::run::at_rest(world, *agent)?;
            check_content(*kind, content)?;
            let to = match (kind, to) {
                (MessageKind::Rewind, Some(to)) => Some(place(world, *agent, &RewindTo::Message(*to))?),
                (MessageKind::Rewind, None) if content.is_empty() => Some(place(world, *agent, &RewindTo::LastMark)?),
                (MessageKind::Rewind, None) => Some(place(world, *agent, &RewindTo::Mark(content.clone()))?),
                _ => None,
            };
            let source_id = Some(source_id.clone());
            Ok(Event::Message(MessageEvent::Added {
                agent: *agent,
                kind: *kind,
                content: content.clone(),
                to,
                source_id,
            }))
        }
    }
}

/// The agent that owns a message which is or was in the history of `agent`. Unlike [`origin_at`], this also finds messages that were
/// cleared or taken back: a child may have forked before that, long before the import.
fn owner(world: &World, agent: AgentId, message: EventId) -> Result<Origin, Refusal> {
    let own_last = world.agent(agent).and_then(|it| it.last_message);
    let mut current = Some(Origin { agent, upto: own_last });
    while let Some(Origin { agent: holder, upto }) = current {
        match world.agent(holder) {
            Some(it) if message <= it.born => current = it.origin,
            Some(_) if Some(message) <= upto => return Ok(Origin { agent: holder, upto: Some(message) }),
            _ => break,
        }
    }
    Err(Refusal::NotInHistory { agent, message })
}
