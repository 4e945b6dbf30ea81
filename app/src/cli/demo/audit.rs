//! Counts what was said against what is known: the spools of the agents hold everything that they ever said, and the log must have each of
//! it once.

use crate::project::Project;
use crate::report::{Context as _, Report};
use hatchery_core::output::Output;
use hatchery_core::{Event, MessageKind, Record, stream_json};
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub struct Audit {
    /// Messages that agents said, by their spools.
    pub said: u64,
    /// The same, by the log.
    pub kept: u64,
    /// Calls of tools that were written down.
    pub calls: u64,
    /// Those that were taken in.
    pub taken: u64,
    pub events: u64,
}

impl Audit {
    /// An event of the log. Each must follow the one before.
    pub fn take(&mut self, record: &Record) -> Result<(), Report> {
        self.events += 1;
        if record.id.0 != self.events {
            return Err(Report::failed(format_args!("event {} came where {} should be", record.id, self.events)));
        }
        match &record.event {
            Event::MessageAdded {
                kind: MessageKind::Assistant | MessageKind::ToolCall | MessageKind::ToolResult,
                ..
            } => {
                self.kept += 1;
            }
            Event::CallTaken { .. } => self.taken += 1,
            _ => {}
        }
        Ok(())
    }

    /// Reads what every process of the project has written.
    pub fn count_spools(&mut self, project: &Project) -> Result<(), Report> {
        let unreadable = |error| Err(error).context("a spool cannot be read");
        for folder in attempts(&project.data().join("runs")) {
            match std::fs::read_to_string(folder.join("stdout.jsonl")) {
                Ok(text) => self.said += text.lines().map(messages).sum::<u64>(),
                Err(error) => return unreadable(error),
            }
            match std::fs::read_to_string(folder.join("calls.jsonl")) {
                Ok(text) => self.calls += text.lines().count() as u64,
                Err(error) => return unreadable(error),
            }
        }
        Ok(())
    }

    pub fn lost(&self) -> u64 {
        self.said.saturating_sub(self.kept) + self.calls.saturating_sub(self.taken)
    }

    pub fn doubled(&self) -> u64 {
        self.kept.saturating_sub(self.said) + self.taken.saturating_sub(self.calls)
    }
}

/// The folders of all attempts.
fn attempts(runs: &Path) -> Vec<PathBuf> {
    let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let agents = below(runs).filter(|path| path.is_dir());
    agents
        .flat_map(|agent| below(&agent).collect::<Vec<_>>())
        .filter(|path| path.join("stdout.jsonl").exists())
        .collect()
}

/// How many messages a line of a spool has.
fn messages(line: &str) -> u64 {
    let is_message =
        |output: &Output| matches!(output, Output::Text { .. } | Output::ToolUse { .. } | Output::ToolResult { .. });
    stream_json::parse(line).map_or(0, |outputs| outputs.iter().filter(|output| is_message(output)).count() as u64)
}
