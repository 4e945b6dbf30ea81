//! The conversation with one agent: the events of a window of the log, as the blocks that are shown. Pure.

use super::tool::{DeniedCall, SubagentLine, Tool, ToolOutcome};
use super::window::{Ancestor, Window, WindowPart};
use hatchery_core::ask::About;
use hatchery_core::event::{AgentEvent, MailEvent, MessageEvent, QuestionEvent, RunEvent};
use hatchery_core::history::TURN_INTERRUPTED;
use hatchery_core::outcome::{Cause, Exit};
use hatchery_core::output::Output;
use hatchery_core::permission::DecidedBy;
use hatchery_core::seat::shown;
use hatchery_core::{Address, AgentId, Event, EventId, MessageKind, Record, Timestamp};

/// The most events of one conversation in memory. The others are read again when one scrolls there.
const MAX_EVENTS: usize = 4_000;
/// How many are left out at once.
const LEFT_OUT: usize = 1_000;
/// So many events before the place where one reads are never left out, so that nothing in sight is laid out anew.
const MARGIN: usize = 100;
/// The most words of a sub-agent that are kept of one call.
const MAX_SUBAGENT_LINES: usize = 200;

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

/// The blocks of some events of one agent.
pub fn blocks(agent: AgentId, has_seat: bool, events: &[Record]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for event in events {
        add(&mut blocks, agent, has_seat, event);
    }
    blocks
}

fn add(blocks: &mut Vec<Block>, agent: AgentId, has_seat: bool, record: &Record) {
    let mut push = |kind| blocks.push(Block { id: record.id, at: record.ts, kind });
    let note = |text: String| BlockKind::Note { text, bad: false };
    let bad = |text: String| BlockKind::Note { text, bad: true };
    match &record.event {
        Event::Message(MessageEvent::Added { kind, content, .. }) => message(blocks, has_seat, record, *kind, content),
        Event::Run { of, what } => match what {
            RunEvent::MessageHeard { message } => {
                let heard_upto = *message;
                for block in blocks.iter_mut().rev() {
                    if block.id <= heard_upto
                        && let BlockKind::ToAgent { heard, .. } = &mut block.kind
                    {
                        *heard = true;
                        break;
                    }
                }
            }
            RunEvent::OutputNoted { output } => noted(blocks, record, output),
            RunEvent::Crashed { detail, exit, forgotten, .. } => {
                let how = match exit {
                    Exit::Signal(9) => " (SIGKILL)".to_owned(),
                    Exit::Signal(signal) => format!(" (signal {signal})"),
                    Exit::Code(code) => format!(" (exit code {code})"),
                    Exit::NotStarted | Exit::LostWithMachine | Exit::Unknown => String::new(),
                };
                push(BlockKind::Crashed {
                    what: detail.clone(),
                    how,
                    attempt: of.attempt + 1,
                    forgotten: *forgotten,
                    resumed_ms: None,
                });
            }
            RunEvent::Spawned { .. } => {
                if let Some(block) =
                    blocks.iter_mut().rev().find(|block| matches!(block.kind, BlockKind::Crashed { .. }))
                    && let BlockKind::Crashed { resumed_ms, .. } = &mut block.kind
                {
                    resumed_ms.get_or_insert(record.ts.0 - block.at.0);
                }
            }
            RunEvent::PermissionDecided { request, decision, by } => {
                let mut tools = blocks.iter_mut().rev().filter_map(|block| match &mut block.kind {
                    BlockKind::Tool(tool) => Some(tool),
                    _ => None,
                });
                if let Some(tool) = tools.find(|tool| tool.asked.as_ref() == Some(request)) {
                    tool.asked = None;
                    if let Some(reason) = decision.words_of_user().filter(|_| *by == DecidedBy::Human) {
                        tool.denied = Some(DeniedCall { by_you: true, reason: reason.to_owned() });
                    }
                }
            }
            RunEvent::Parked { cause, detail, .. } => push(note(format!("It is parked, {cause}: {detail}"))),
            RunEvent::Silent { .. } => push(bad("Nothing was heard of it for longer than its run allows.".to_owned())),
            RunEvent::BudgetReached => push(bad("Its budget is used up.".to_owned())),
            RunEvent::Ended { cause: Cause::Completed | Cause::UserEnded | Cause::Killed, .. } => {}
            RunEvent::Ended { cause, detail, .. } => push(bad(format!("Its run ended, {cause}: {detail}"))),
            // The rest is about processes: the separator and the log show it.
            _ => {}
        },
        Event::Question { what, .. } => match what {
            QuestionEvent::Asked { about, text } => {
                let about = match about {
                    About::Permission(_) => Asked::Permission,
                    _ => Asked::Other,
                };
                push(BlockKind::Ask { about, text: text.clone(), answer: None, open: true });
            }
            QuestionEvent::Answered { question, answer } => close(blocks, *question, Some(answer.clone())),
            QuestionEvent::Withdrawn { question } => close(blocks, *question, None),
        },
        Event::Agent { agent: whose, what } if *whose == agent => match what {
            AgentEvent::Killed { by, remark } => {
                let by = by.map_or_else(|| "you".to_owned(), |by| format!("{{agent:{by}}}"));
                let why = remark.as_deref().map(|remark| format!(": {remark}")).unwrap_or_default();
                let text = format!("killed by {by} at {{time}}{why} · its history stays and can be forked");
                push(BlockKind::Across { text });
            }
            AgentEvent::Renamed { name: Some(name) } => push(note(format!("It is called {name} now."))),
            AgentEvent::Slept => push(note("It is asleep. /wake wakes it.".to_owned())),
            AgentEvent::Woken { .. } => push(note("It was woken.".to_owned())),
            _ => {}
        },
        Event::Mail(MailEvent::Sent { from, to, body }) => {
            let line = body.lines().next().unwrap_or_default();
            let who = |address: &Address| match address {
                Address::Human => "you".to_owned(),
                Address::Agent(other) => format!("{{agent:{other}}}"),
            };
            let text = match *from == Address::Agent(agent) {
                // A mail to you is read by Enter, never by looking.
                true if *to == Address::Human => "It wrote to you. ^X m has it.".to_owned(),
                true => format!("It wrote to {}: {line}", who(to)),
                false => format!("Mail from {}: {line}", who(from)),
            };
            push(note(text));
        }
        _ => {}
    }
}

fn message(blocks: &mut Vec<Block>, has_seat: bool, record: &Record, kind: MessageKind, content: &str) {
    let kind = match kind {
        MessageKind::User => BlockKind::ToAgent { text: content.to_owned(), heard: false },
        MessageKind::Assistant if has_seat => match shown(content) {
            text if text.trim().is_empty() => return hear_all(blocks),
            text => BlockKind::Spoken { text: text.into_owned(), reaches_model: true },
        },
        MessageKind::Assistant => BlockKind::Spoken { text: content.to_owned(), reaches_model: true },
        MessageKind::ToolCall => BlockKind::Tool(Tool::read(content)),
        MessageKind::ToolResult => {
            return answer_tool(blocks, record, content);
        }
        MessageKind::Clear => {
            BlockKind::Across { text: "its history was cleared at {time} · all of it stays here".to_owned() }
        }
        MessageKind::Mark if content.is_empty() => BlockKind::Across { text: "marked at {time}".to_owned() },
        MessageKind::Mark => BlockKind::Across { text: format!("marked “{content}” at {{time}}") },
        MessageKind::Rewind => BlockKind::Across { text: "rewound at {time} · what came after stays here".to_owned() },
        MessageKind::Interrupted => {
            for block in blocks.iter_mut().rev() {
                match &mut block.kind {
                    BlockKind::Spoken { reaches_model, .. } => *reaches_model = false,
                    BlockKind::ToAgent { .. } | BlockKind::Interrupted => break,
                    _ => {}
                }
            }
            BlockKind::Interrupted
        }
        MessageKind::System if content == TURN_INTERRUPTED => {
            BlockKind::Note { text: "You interrupted it. It knows what it said in this turn.".to_owned(), bad: false }
        }
        MessageKind::System => {
            BlockKind::Note { text: content.lines().next().unwrap_or_default().to_owned(), bad: false }
        }
        // Its parent was killed, and it has another one.
        MessageKind::AgentKilled if !content.is_empty() => BlockKind::Note { text: content.to_owned(), bad: false },
        MessageKind::AgentKilled | MessageKind::Command | MessageKind::Fork | MessageKind::Usage => return,
    };
    // A process that answers has heard what was said before.
    if matches!(kind, BlockKind::Spoken { .. } | BlockKind::Tool(_)) {
        hear_all(blocks);
    }
    blocks.push(Block { id: record.id, at: record.ts, kind });
}

fn hear_all(blocks: &mut [Block]) {
    if let Some(BlockKind::ToAgent { heard, .. }) = blocks.last_mut().map(|block| &mut block.kind) {
        *heard = true;
    }
}

fn answer_tool(blocks: &mut [Block], record: &Record, content: &str) {
    let outcome = ToolOutcome::read(content, record.ts);
    for block in blocks.iter_mut().rev() {
        let BlockKind::Tool(tool) = &mut block.kind else { continue };
        if tool.call == outcome.call && tool.outcome.is_none() {
            // What a step has come to is a sentence, not a tool among others.
            match tool.signal().filter(|_| !outcome.failed) {
                Some(text) => block.kind = BlockKind::Note { text, bad: false },
                None => tool.outcome = Some(outcome),
            }
            return;
        }
    }
}

fn noted(blocks: &mut Vec<Block>, record: &Record, output: &Output) {
    let kind = match output {
        Output::Thinking { text } if text.trim().is_empty() => return,
        Output::Thinking { text } => {
            let before = blocks.last().map_or(record.ts, |block| block.at);
            BlockKind::Thought { text: text.clone(), lasted_ms: record.ts.0 - before.0 }
        }
        Output::Subagent { tool_use, output } => {
            let line = |call: Option<&String>, text: String| {
                Some(SubagentLine { call: call.cloned(), text, outcome: String::new() })
            };
            let line = match output.as_ref() {
                Output::Text { text } => line(None, text.clone()),
                Output::ToolUse { id, name, input } => line(
                    Some(id),
                    format!("{name} {}", super::tool::target(&serde_json::from_str(input).unwrap_or_default())),
                ),
                Output::ToolResult { .. } => None,
                _ => return,
            };
            for block in blocks.iter_mut().rev() {
                if let BlockKind::Tool(tool) = &mut block.kind
                    && tool.call == *tool_use
                {
                    match (line, output.as_ref()) {
                        (Some(line), _) if tool.subagent.len() < MAX_SUBAGENT_LINES => tool.subagent.push(line),
                        (None, Output::ToolResult { id, content, is_error }) => {
                            let found = tool.subagent.iter_mut().rev().find(|said| said.call.as_ref() == Some(id));
                            if let Some(said) = found {
                                said.outcome = match (is_error, content.lines().count()) {
                                    (true, _) => "failed".to_owned(),
                                    (false, lines) => super::words::counted(lines, "line"),
                                };
                            }
                        }
                        _ => {}
                    }
                    return;
                }
            }
            return;
        }
        Output::Denied { tool_use, reason, .. } => {
            for block in blocks.iter_mut().rev() {
                if let BlockKind::Tool(tool) = &mut block.kind
                    && tool_use.as_deref().is_none_or(|call| call == tool.call)
                {
                    // The user's own words say more than what the program made of them.
                    tool.denied.get_or_insert_with(|| DeniedCall { by_you: false, reason: reason.clone() });
                    return;
                }
            }
            return;
        }
        Output::Asked(request) => {
            for block in blocks.iter_mut().rev() {
                if let BlockKind::Tool(tool) = &mut block.kind
                    && Some(&tool.call) == request.tool_use.as_ref()
                {
                    tool.asked = Some(request.request.clone());
                    return;
                }
            }
            return;
        }
        Output::AskCancelled { request } => {
            for block in blocks.iter_mut().rev() {
                if let BlockKind::Tool(tool) = &mut block.kind
                    && tool.asked.as_ref() == Some(request)
                {
                    tool.asked = None;
                }
            }
            return;
        }
        Output::Compacted { trigger, tokens_before } => {
            let by = if trigger.as_deref() == Some("manual") { "" } else { " by itself" };
            let from = tokens_before.map(|tokens| format!(", from {}k tokens", tokens / 1_000)).unwrap_or_default();
            BlockKind::Across {
                text: format!("its context was compacted{by} at {{time}}{from} · all of it stays here"),
            }
        }
        Output::Retrying { attempt, reason, .. } => {
            let why = reason.as_deref().unwrap_or("the request failed");
            BlockKind::Note { text: format!("The service failed it ({why}). It tries again, {attempt}."), bad: false }
        }
        Output::ApiError(error) => {
            BlockKind::Note { text: error.text.lines().next().unwrap_or_default().to_owned(), bad: true }
        }
        _ => return,
    };
    blocks.push(Block { id: record.id, at: record.ts, kind });
}

fn close(blocks: &mut [Block], question: EventId, said: Option<String>) {
    if let Some(BlockKind::Ask { answer, open, .. }) =
        blocks.iter_mut().find(|block| block.id == question).map(|block| &mut block.kind)
    {
        (*answer, *open) = (said, false);
    }
}
