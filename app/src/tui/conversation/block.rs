//! One thing in a conversation as the terminal shows it, and how events become such blocks. Pure.

use crate::tui::tool::{DeniedCall, SubagentLine, Tool, ToolOutcome};
use hatchery_core::ask::About;
use hatchery_core::event::{AgentEvent, MailEvent, MessageEvent, QuestionEvent, RunEvent};
use hatchery_core::history::TURN_INTERRUPTED;
use hatchery_core::outcome::{Cause, Exit};
use hatchery_core::output::Output;
use hatchery_core::permission::DecidedBy;
use hatchery_core::seat::shown;
use hatchery_core::{Address, AgentId, Event, EventId, MessageKind, Record, Timestamp};

/// The most lines of a subagent that are kept for one tool call.
const MAX_SUBAGENT_LINES: usize = 200;

/// One thing in a conversation. Its id is its first event.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub id: EventId,
    pub at: Timestamp,
    pub kind: BlockKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BlockKind {
    /// A message to the agent. `heard`: a process has confirmed it.
    ToAgent {
        text: String,
        heard: bool,
    },
    /// A text of the agent. The texts of an interrupted turn do not reach the model.
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
    /// The process ended in the middle of its work. `resumed_ms`: the time until the next process started, as soon as there is one.
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
    /// The user interrupted the turn. What the agent had said stays, in a dim colour.
    Interrupted,
    /// The agent asked the user something.
    Ask {
        about: Asked,
        text: String,
        answer: Option<String>,
        open: bool,
    },
    /// The answer of a command. It is not in the log.
    Here {
        text: String,
    },
}

/// What a question is about, as far as a conversation shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The use of a tool. The line of the tool shows that it waits, and the answer.
    Permission,
    Other,
}

/// The blocks of some events of one agent.
pub fn blocks(agent: AgentId, has_seat: bool, events: &[Record]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for event in events {
        add(&mut blocks, agent, has_seat, event);
    }
    blocks
}

pub(super) fn add(blocks: &mut Vec<Block>, agent: AgentId, has_seat: bool, record: &Record) {
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
            // The other events are about processes. The separator and the log show them.
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
                // A mail to the user is marked as read by Enter, not by being shown.
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
        // The parent was killed, so the agent has another parent.
        MessageKind::AgentKilled if !content.is_empty() => BlockKind::Note { text: content.to_owned(), bad: false },
        MessageKind::AgentKilled | MessageKind::Command | MessageKind::Fork | MessageKind::Usage => return,
    };
    // A process that answers has received the messages before the answer.
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
            // A signal is shown as a sentence and not as a tool use.
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
                    format!("{name} {}", crate::tui::tool::target(&serde_json::from_str(input).unwrap_or_default())),
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
                                    (false, lines) => crate::tui::words::counted(lines, "line"),
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
                    // The user's own words say more than the program's version of them.
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
            BlockKind::Note {
                text: format!("The service failed ({why}). It tries again: retry {attempt}."),
                bad: false,
            }
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
