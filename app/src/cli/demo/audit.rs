//! Compares the agents' spools with the log. The spools contain everything that the agents said, word for word, and the log must contain
//! each message and each call exactly once.

use crate::project::Project;
use crate::report::{Context as _, Report};
use hatchery_core::event::{MessageEvent, RunEvent};
use hatchery_core::harness::Reader as _;
use hatchery_core::output::Output;
use hatchery_core::stream_json::StreamJsonReader;
use hatchery_core::{Event, MessageKind, Record};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub struct Audit {
    /// Messages of agents: texts, tool calls and tool results.
    pub messages: Ledger,
    /// Calls of Hatchery's tools, which agents wrote to `calls.jsonl`.
    pub calls: Ledger,
    pub events: u64,
}

/// The difference between the spools and the log, by the name of each message or call.
#[derive(Debug, Default)]
pub struct Ledger {
    pub spooled: u64,
    pub logged: u64,
    /// How many more times a name occurs in the spools than in the log.
    open: BTreeMap<String, i64>,
}

impl Ledger {
    fn spool(&mut self, what: String) {
        self.spooled += 1;
        *self.open.entry(what).or_default() += 1;
    }

    fn log(&mut self, what: String) {
        self.logged += 1;
        *self.open.entry(what).or_default() -= 1;
    }

    fn lost(&self) -> u64 {
        self.open.values().filter(|count| **count > 0).map(|count| count.unsigned_abs()).sum()
    }

    /// The names that the log lacks or has too often.
    fn wrong(&self) -> impl Iterator<Item = String> + '_ {
        let wrong = self.open.iter().filter(|(_, count)| **count != 0);
        wrong.map(|(what, count)| format!("{} ×{}: {what}", if *count > 0 { "lost" } else { "doubled" }, count.abs()))
    }

    fn doubled(&self) -> u64 {
        self.open.values().filter(|count| **count < 0).map(|count| count.unsigned_abs()).sum()
    }
}

impl Audit {
    /// Takes the next event of the log. Its id must be one more than the id of the previous event.
    pub fn take(&mut self, record: &Record) -> Result<(), Report> {
        self.events += 1;
        if record.id.0 != self.events {
            return Err(Report::failed(format_args!("event {} came where {} should be", record.id, self.events)));
        }
        match &record.event {
            Event::Message(MessageEvent::Added { agent, kind: MessageKind::Assistant, content, .. }) => {
                self.messages.log(format!("{agent} says {content}"));
            }
            Event::Message(MessageEvent::Added { agent, kind: MessageKind::ToolCall, content, .. }) => {
                self.messages.log(format!("{agent} calls {}", tool_id(content)));
            }
            Event::Message(MessageEvent::Added { agent, kind: MessageKind::ToolResult, content, .. }) => {
                self.messages.log(format!("{agent} hears of {}", tool_id(content)));
            }
            Event::Run { of, what: RunEvent::CallTaken { number, .. } } => {
                self.calls.log(format!("{} {}-{} {number}", of.agent, of.run, of.attempt));
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the spools of all processes of the project.
    pub fn read_spools(&mut self, project: &Project) -> Result<(), Report> {
        for AuditedAttempt { agent, name, folder } in attempts(&project.data().join("runs")) {
            let read = |file| std::fs::read_to_string(folder.join(file)).context("a spool cannot be read");
            // All agents of the demo are scripted.
            let mut reader = StreamJsonReader::default();
            for output in read("stdout.jsonl")?.lines().filter_map(|line| reader.read(line).ok()).flatten() {
                match output {
                    Output::Text { text } => self.messages.spool(format!("{agent} says {text}")),
                    Output::ToolUse { id, .. } => self.messages.spool(format!("{agent} calls {id}")),
                    Output::ToolResult { id, .. } => self.messages.spool(format!("{agent} hears of {id}")),
                    _ => {}
                }
            }
            for number in 1..=read("calls.jsonl")?.lines().count() {
                self.calls.spool(format!("{agent} {name} {number}"));
            }
        }
        Ok(())
    }

    pub fn lost(&self) -> u64 {
        self.messages.lost() + self.calls.lost()
    }

    /// The names of messages and calls that are missing from the log or are there twice.
    pub fn wrong(&self) -> impl Iterator<Item = String> + '_ {
        self.messages.wrong().chain(self.calls.wrong())
    }

    pub fn doubled(&self) -> u64 {
        self.messages.doubled() + self.calls.doubled()
    }
}

/// The harness's own id of a call, from the content of the message in the history.
fn tool_id(content: &str) -> String {
    let content: Value = serde_json::from_str(content).unwrap_or_default();
    content["id"].as_str().unwrap_or_default().to_owned()
}

struct AuditedAttempt {
    agent: String,
    /// The number of the run and of the attempt.
    name: String,
    folder: PathBuf,
}

fn attempts(runs: &Path) -> Vec<AuditedAttempt> {
    let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().collect::<Vec<_>>();
    let name = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut attempts = Vec::new();
    for agent in below(runs) {
        for attempt in below(&agent.path()).iter().filter(|attempt| attempt.path().join("stdout.jsonl").exists()) {
            attempts.push(AuditedAttempt { agent: name(&agent), name: name(attempt), folder: attempt.path() });
        }
    }
    attempts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_and_what_is_doubled_do_not_make_up_for_each_other() {
        let mut ledger = Ledger::default();
        ledger.spool("one".into());
        ledger.spool("two".into());
        ledger.log("two".into());
        ledger.log("two".into());
        assert_eq!((ledger.spooled, ledger.logged, ledger.lost(), ledger.doubled()), (2, 2, 1, 1));
    }
}
