//! The conversation with one agent: the events of a window of the log, as the blocks that are shown. Pure.

mod block;

use super::window::{Ancestor, Window, WindowPart};
use hatchery_core::event::{AgentEvent, MessageEvent};
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, Timestamp};

pub use block::{Asked, Block, BlockKind, blocks};

/// The most events of one conversation in memory. The others are read again when the user scrolls to them.
const MAX_EVENTS: usize = 4_000;
/// How many events are removed from memory at once.
const LEFT_OUT: usize = 1_000;
/// This many events before the place where the user reads stay in memory, so that the lines on the screen do not change.
const MARGIN: usize = 100;

/// The conversation with one agent: a window of the log, and the blocks that are made of it.
#[derive(Clone, Debug)]
pub struct ConversationView {
    pub agent: AgentId,
    /// Whether the agent is in a seat. The markers in its texts are not shown then.
    has_seat: bool,
    events: Vec<Record>,
    blocks: Vec<Block>,
    /// The last event that was applied. No event is applied twice.
    upto: EventId,
    /// Whether the first part was read.
    pub is_read: bool,
    /// The window begins after this event.
    pub from: EventId,
    /// Whether the conversation has events before the window.
    pub more: bool,
    /// Whether the conversation has events after the window. New events are not added then, because there would be a gap before them.
    pub later: bool,
    /// The last event of the window, while there are events after it.
    pub to: EventId,
    /// Blocks that are known to come after the window.
    beyond: Vec<EventId>,
    /// A part of the log was requested and has not arrived.
    pub loading: bool,
    /// The events that arrived while a part was requested.
    early: Vec<Record>,
    /// The inherited part was requested.
    pub inheriting: bool,
    pub inherited: Option<Inherited>,
}

/// The inherited part of a history: from the agent that was forked, and from its ancestors.
#[derive(Clone, Debug)]
pub struct Inherited {
    pub from: AgentId,
    /// The number of messages. None if it is not known yet.
    pub count: Option<usize>,
    pub upto: EventId,
    /// When the agent was forked.
    pub forked: Timestamp,
    pub blocks: Vec<Block>,
    /// The agents whose messages these are, the oldest first, each with its last inherited event.
    speakers: Vec<(AgentId, EventId)>,
}

impl Inherited {
    /// None if nothing is inherited.
    pub fn of(
        from: AgentId,
        forked: Timestamp,
        count: Option<usize>,
        ancestors: &[Ancestor],
        has_seat: impl Fn(AgentId) -> bool,
    ) -> Option<Self> {
        let (last, before) = ancestors.split_last()?;
        let mut all = Vec::new();
        for (ancestor, next) in before.iter().zip(&ancestors[1..]) {
            all.extend(blocks(ancestor.agent, has_seat(ancestor.agent), &ancestor.records));
            let text = format!("{{agent:{}}} was forked from {{agent:{}}} at {{time}}", next.agent, ancestor.agent);
            all.push(Block { id: ancestor.upto.next(), at: ancestor.forked, kind: BlockKind::Across { text } });
        }
        all.extend(blocks(last.agent, has_seat(last.agent), &last.records));
        let speakers = ancestors.iter().map(|ancestor| (ancestor.agent, ancestor.upto)).collect();
        Some(Self { from, count, upto: last.upto, forked, blocks: all, speakers })
    }

    /// The agent that said an inherited message. None for an event after the inherited part.
    pub fn speaker(&self, event: EventId) -> Option<AgentId> {
        self.speakers.iter().find(|(_, upto)| event <= *upto).map(|(agent, _)| *agent)
    }
}

impl ConversationView {
    pub fn new(agent: AgentId, has_seat: bool) -> Self {
        Self {
            agent,
            has_seat,
            events: Vec::new(),
            blocks: Vec::new(),
            upto: EventId::START,
            is_read: false,
            from: EventId::START,
            more: true,
            later: false,
            to: EventId::START,
            beyond: Vec::new(),
            loading: false,
            early: Vec::new(),
            inheriting: false,
            inherited: None,
        }
    }

    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The last event that was applied.
    pub fn upto(&self) -> EventId {
        self.upto
    }

    /// Takes a part of the log that was requested. A part that no longer belongs to the window is ignored.
    pub fn take(&mut self, part: WindowPart, window: Window) {
        let fits = match part {
            WindowPart::End { .. } | WindowPart::Around(_) => true,
            WindowPart::Before(before) => !self.is_read || before == self.from.next(),
            WindowPart::After(after) => self.later && after == self.to,
        };
        let early = std::mem::take(&mut self.early);
        self.loading = false;
        if !fits {
            return;
        }
        let Window { records, from, more, to, later } = window;
        match part {
            WindowPart::Before(_) => {
                let first = self.events.first().map_or(EventId(u64::MAX), |event| event.id);
                let mut earlier: Vec<Record> = records.into_iter().filter(|record| record.id < first).collect();
                earlier.append(&mut self.events);
                (self.events, self.from, self.more) = (earlier, from, more);
            }
            WindowPart::After(_) => {
                self.events.extend(records);
                (self.to, self.later) = (to, later);
            }
            WindowPart::End { .. } | WindowPart::Around(_) => {
                (self.events, self.from, self.more, self.to, self.later) = (records, from, more, to, later);
            }
        }
        let last = self.events.last().map_or(EventId::START, |event| event.id);
        if !self.later {
            // The events that arrived while this part was read are applied below.
            let is_behind = part.replaces() || matches!(part, WindowPart::After(_));
            self.upto = if is_behind { last.max(to) } else { self.upto.max(last) };
            self.beyond.clear();
        }
        self.beyond.retain(|id| *id > self.to);
        self.is_read = true;
        self.rebuild();
        if early.len() >= MAX_EVENTS && !self.later {
            // There was no room for more early events. The others are read like any other part.
            (self.later, self.to) = (true, self.upto);
        }
        for record in early {
            self.append(&record);
        }
    }

    /// A part could not be read. It is requested again when the user scrolls, and when the daemon is back.
    pub fn not_read(&mut self) {
        self.loading = false;
        self.early.clear();
    }

    /// Whether the window covers the position of an event.
    pub fn covers(&self, id: EventId) -> bool {
        self.is_read && (id > self.from || !self.more) && (id <= self.to || !self.later)
    }

    /// Whether an event is in the window.
    pub fn has(&self, id: EventId) -> bool {
        self.events.binary_search_by_key(&id, |event| event.id).is_ok()
    }

    /// Adds an event of the log. An event that arrives twice is added once.
    pub fn append(&mut self, record: &Record) {
        if record.id <= self.upto {
            return;
        }
        if self.loading && self.early.len() < MAX_EVENTS {
            self.early.push(record.clone());
        }
        if !self.is_read {
            return;
        }
        self.upto = record.id;
        if self.later {
            let mut blocks = Vec::new();
            block::add(&mut blocks, self.agent, self.has_seat, record);
            if self.beyond.len() < MAX_EVENTS {
                self.beyond.extend(blocks.iter().map(|block| block.id));
            }
            return;
        }
        self.events.push(record.clone());
        block::add(&mut self.blocks, self.agent, self.has_seat, record);
    }

    /// Removes events that are far from the place where the user reads. None means that the user reads at the end.
    pub fn leave_out(&mut self, reads: Option<EventId>) {
        if self.events.len() <= MAX_EVENTS {
            return;
        }
        match reads.filter(|at| *at <= self.events[LEFT_OUT + MARGIN].id) {
            Some(_) => {
                let to = self.events[self.events.len() - LEFT_OUT - 1].id;
                let left_out = self.blocks.iter().map(|block| block.id).filter(|id| *id > to);
                let beyond: Vec<EventId> = left_out.chain(self.beyond.drain(..)).collect();
                (self.beyond, self.later, self.to) = (beyond, true, to);
                self.events.truncate(self.events.len() - LEFT_OUT);
            }
            None => {
                self.events.drain(..LEFT_OUT);
                self.more = true;
                self.from = self.events.first().map_or(self.from, |event| event.id.before());
            }
        }
        self.rebuild();
    }

    /// Adds the answer of a command. It is shown here and is not in the log.
    pub fn add_here(&mut self, text: String, at: Timestamp) {
        let id = self.blocks.last().map_or(self.upto, |block| block.id);
        self.blocks.push(Block { id, at, kind: BlockKind::Here { text } });
    }

    fn rebuild(&mut self) {
        let here: Vec<Block> =
            self.blocks.drain(..).filter(|block| matches!(block.kind, BlockKind::Here { .. })).collect();
        self.blocks = blocks(self.agent, self.has_seat, &self.events);
        self.blocks.extend(here);
        self.blocks.sort_by_key(|block| block.id);
    }

    /// The labels of the marks in the history, the last one first.
    pub fn marks(&self) -> Vec<&str> {
        let labels = self.events.iter().rev().filter_map(|record| match &record.event {
            Event::Message(MessageEvent::Added { kind: MessageKind::Mark, content, .. }) => Some(content.as_str()),
            _ => None,
        });
        labels.filter(|label| !label.is_empty()).collect()
    }

    /// Who killed the agent: another agent, or the user (`Some(None)`). None if the kill is not in the window.
    pub fn killed_by(&self) -> Option<Option<AgentId>> {
        self.events.iter().rev().find_map(|record| match &record.event {
            Event::Agent { agent, what: AgentEvent::Killed { by, .. } } if *agent == self.agent => Some(*by),
            _ => None,
        })
    }

    /// The number of known blocks after an event.
    pub fn count_after(&self, seen: EventId) -> usize {
        let here = self.blocks.iter().rev().take_while(|block| block.id > seen).count();
        here + self.beyond.iter().filter(|id| **id > seen).count()
    }
}
