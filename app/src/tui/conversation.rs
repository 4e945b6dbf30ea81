//! The conversation with one agent: the events of a window of the log, as the blocks that are shown. Pure.

mod events;

pub use events::blocks;

use super::tool::Tool;
use super::window::{Ancestor, Window, WindowPart};
use events::add;
use hatchery_core::event::{AgentEvent, MessageEvent};
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, Timestamp};

/// The most events of one conversation in memory. The others are read again when one scrolls there.
const MAX_EVENTS: usize = 4_000;
/// How many are left out at once.
const LEFT_OUT: usize = 1_000;
/// So many events before the place where one reads are never left out, so that nothing in sight is laid out anew.
const MARGIN: usize = 100;

/// What was said and done, from a place in the log on.
#[derive(Clone, Debug)]
pub struct ConversationView {
    pub agent: AgentId,
    /// Whether it is an agent of the seats: reports in its words are not shown.
    has_seat: bool,
    events: Vec<Record>,
    blocks: Vec<Block>,
    /// The last event that was applied. None of them is applied twice.
    upto: EventId,
    /// The first part was read.
    pub is_read: bool,
    /// The window begins after this event.
    pub from: EventId,
    /// There is something before the window.
    pub more: bool,
    /// There is something after the window. What arrives is not added, because there would be a gap before it.
    pub later: bool,
    /// Where the window ends while there is something after it.
    pub to: EventId,
    /// Blocks that are known to come after the window.
    beyond: Vec<EventId>,
    /// A part was asked for.
    pub loading: bool,
    /// What came while a part was on its way.
    early: Vec<Record>,
    /// The inherited part was asked for.
    pub inheriting: bool,
    pub inherited: Option<Inherited>,
}

/// The part of a history that an agent has from the one that it was forked from, and from those before it.
#[derive(Clone, Debug)]
pub struct Inherited {
    pub from: AgentId,
    /// How many messages, once that is known.
    pub count: Option<usize>,
    pub upto: EventId,
    /// When the agent was forked.
    pub forked: Timestamp,
    pub blocks: Vec<Block>,
    /// Who said it, the oldest first, and up to which event.
    speakers: Vec<(AgentId, EventId)>,
}

impl Inherited {
    /// None if there is nothing.
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

/// One thing in a conversation, named by its first event.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub id: EventId,
    pub at: Timestamp,
    pub kind: BlockKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BlockKind {
    /// A message to the agent, and whether a process has taken it in.
    ToAgent {
        text: String,
        heard: bool,
    },
    /// The agent's own words. Those of an interrupted turn do not reach the model.
    Spoken {
        text: String,
        reaches_model: bool,
    },
    Thought {
        text: String,
        lasted_ms: i64,
    },
    Tool(Tool),
    /// Something that happened to the agent.
    Note {
        text: String,
        bad: bool,
    },
    /// Its process ended in the middle of its work. How long it took until the next one was there, once it is.
    Crashed {
        what: String,
        how: String,
        attempt: u32,
        forgotten: bool,
        resumed_ms: Option<i64>,
    },
    /// A line across the conversation.
    Across {
        text: String,
    },
    /// You broke the turn off. What it had said stays where it is, dim.
    Interrupted,
    /// It asked you something.
    Ask {
        about: Asked,
        text: String,
        answer: Option<String>,
        open: bool,
    },
    /// An answer of a command, only here.
    Here {
        text: String,
    },
}

/// What a question is about, as far as a conversation shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A tool: its own line says that it waits, and what was answered.
    Permission,
    Other,
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

    /// The last event that is in it.
    pub fn upto(&self) -> EventId {
        self.upto
    }

    /// A part of the log that was asked for. One that does not belong to the window any more is left out.
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
            // What came while this part was read is applied below.
            let is_behind = part.replaces() || matches!(part, WindowPart::After(_));
            self.upto = if is_behind { last.max(to) } else { self.upto.max(last) };
            self.beyond.clear();
        }
        self.beyond.retain(|id| *id > self.to);
        self.is_read = true;
        self.rebuild();
        if early.len() >= MAX_EVENTS && !self.later {
            // Some may have been left out: the rest is read like any other part.
            (self.later, self.to) = (true, self.upto);
        }
        for record in early {
            self.append(&record);
        }
    }

    /// A part could not be read. It is asked for again by scrolling, and when the daemon is back.
    pub fn not_read(&mut self) {
        self.loading = false;
        self.early.clear();
    }

    /// Whether an event is in the window, if it is one of this conversation.
    pub fn covers(&self, id: EventId) -> bool {
        self.is_read && (id > self.from || !self.more) && (id <= self.to || !self.later)
    }

    /// Whether an event of this conversation is here.
    pub fn has(&self, id: EventId) -> bool {
        self.events.binary_search_by_key(&id, |event| event.id).is_ok()
    }

    /// What was said later, each event once, whatever comes twice.
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
            add(&mut blocks, self.agent, self.has_seat, record);
            if self.beyond.len() < MAX_EVENTS {
                self.beyond.extend(blocks.iter().map(|block| block.id));
            }
            return;
        }
        self.events.push(record.clone());
        add(&mut self.blocks, self.agent, self.has_seat, record);
    }

    /// Leaves out what is far from the place where one reads: the end if none is given.
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

    /// An answer that is only shown here.
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

    /// The labels of its marks, the last one first.
    pub fn marks(&self) -> Vec<&str> {
        let labels = self.events.iter().rev().filter_map(|record| match &record.event {
            Event::Message(MessageEvent::Added { kind: MessageKind::Mark, content, .. }) => Some(content.as_str()),
            _ => None,
        });
        labels.filter(|label| !label.is_empty()).collect()
    }

    /// Who killed it: nothing if that is not in the window, none for a person.
    pub fn killed_by(&self) -> Option<Option<AgentId>> {
        self.events.iter().rev().find_map(|record| match &record.event {
            Event::Agent { agent, what: AgentEvent::Killed { by, .. } } if *agent == self.agent => Some(*by),
            _ => None,
        })
    }

    /// How many blocks came after this event, as far as they are known.
    pub fn count_after(&self, seen: EventId) -> usize {
        let here = self.blocks.iter().rev().take_while(|block| block.id > seen).count();
        here + self.beyond.iter().filter(|id| **id > seen).count()
    }
}
