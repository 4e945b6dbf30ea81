//! What the model plays: steps, one a question.

use super::Gate;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};

/// What it does when it is asked once.
#[derive(Clone, Debug)]
pub struct Step {
    /// Stands still here before the first byte.
    pub(super) before: Option<Gate>,
    pub(super) deed: Deed,
    /// Is played again for every later question.
    stays: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Deed {
    Answer { blocks: Vec<Block>, fault: Option<(Place, Fault)> },
    Refuse { status: u16, kind: &'static str, message: String, headers: Vec<(&'static str, String)> },
}

#[derive(Clone, Debug)]
pub enum Block {
    Text(String),
    Thinking(String),
    ToolUse { name: String, input: Value },
}

/// Where in an answer something goes wrong. Blocks count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Part of the block was sent, and its end was not.
    Within(usize),
    /// The block was sent whole.
    Behind(usize),
}

#[derive(Clone, Debug)]
pub enum Fault {
    /// Silence until the gate is opened, then the rest.
    Hold(Gate),
    /// The connection breaks.
    Cut,
    /// The stream says that it failed, with this type of error, and ends.
    Fail(&'static str),
}

impl Step {
    pub fn text(text: &str) -> Self {
        Self::blocks([Block::text(text)])
    }

    pub fn tool_use(name: &str, input: Value) -> Self {
        Self::blocks([Block::ToolUse { name: name.into(), input }])
    }

    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        let deed = Deed::Answer { blocks: blocks.into_iter().collect(), fault: None };
        Self { before: None, deed, stays: false }
    }

    /// No answer, but an error with this status.
    pub fn refuse(status: u16, message: &str) -> Self {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        let deed = Deed::Refuse { status, kind, message: message.into(), headers: Vec::new() };
        Self { before: None, deed, stays: false }
    }

    /// The same, with the vendor's own word for the kind of error.
    pub fn refuse_as(status: u16, kind: &'static str, message: &str) -> Self {
        let deed = Deed::Refuse { status, kind, message: message.into(), headers: Vec::new() };
        Self { before: None, deed, stays: false }
    }

    /// A header beside an error.
    pub fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        match &mut self.deed {
            Deed::Refuse { headers, .. } => headers.push((name, value.to_string())),
            Deed::Answer { .. } => panic!("only errors have headers of their own"),
        }
        self
    }

    pub fn fault(mut self, place: Place, what: Fault) -> Self {
        match &mut self.deed {
            Deed::Answer { fault, .. } => *fault = Some((place, what)),
            Deed::Refuse { .. } => panic!("an error is sent whole"),
        }
        self
    }

    /// Not a byte before the gate is opened.
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.before = Some(gate.clone());
        self
    }

    pub fn for_ever(mut self) -> Self {
        self.stays = true;
        self
    }
}

impl Block {
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }
}

#[derive(Default)]
pub(super) struct Scripts {
    anybody: VecDeque<Step>,
    keys: HashMap<String, VecDeque<Step>>,
}

impl Scripts {
    pub fn for_anybody(&mut self, steps: impl IntoIterator<Item = Step>) {
        self.anybody.extend(steps);
    }

    pub fn for_key(&mut self, key: &str, steps: impl IntoIterator<Item = Step>) {
        self.keys.entry(key.into()).or_default().extend(steps);
    }

    pub fn next(&mut self, key: &str) -> Step {
        let steps = self.keys.get_mut(key).unwrap_or(&mut self.anybody);
        match steps.front() {
            Some(step) if step.stays => step.clone(),
            _ => steps.pop_front().unwrap_or_else(|| Step::text("ok")),
        }
    }
}
