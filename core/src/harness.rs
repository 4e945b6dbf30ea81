//! What the core knows of harnesses, the adapters for agent programs: what they can do, how a session is opened, and how the output
//! is read. The core decides by [`Capabilities`] and never by a harness's name.

use crate::output::Output;
use crate::partial::Partial;
use serde::{Deserialize, Serialize};

/// What a harness can do. Recorded when a process is spawned, because another version of the harness may differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Capabilities {
    /// It takes a session id of ours, and messages can be written at once. Otherwise the id is known when the process is ready,
    /// and messages wait until then: a resumed session first says which of them it holds.
    pub chooses_session_id: bool,
    /// It repeats the id of a message of ours as soon as the message is in its records. Otherwise the beginning of a turn
    /// confirms the oldest message that waits.
    pub echoes_messages: bool,
    /// It can begin a session as a copy of another. Otherwise a forked agent is told its history.
    pub forks: bool,
    /// A turn can be interrupted, and the process lives on.
    pub interrupts: bool,
    /// The process can wait for the next message after a turn. Otherwise each turn has a process of its own.
    pub stays_open: bool,
    /// It asks for permission to use tools, and waits for the answer.
    pub asks_permission: bool,
    /// It says what a turn cost. Otherwise the cost is computed from tokens, by the price table.
    pub reports_cost: bool,
    /// It takes one message for each turn. Further messages wait for the end of the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_at_a_time: bool,
    /// Another process can go on with its session. Otherwise the next process is told the history.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub resumes: bool,
    /// The answer to a request for permission can say why it is denied. Otherwise a message says so.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub explains_denials: bool,
    /// How it is told the model that a run asks for.
    #[serde(default, skip_serializing_if = "ModelChoice::is_at_start")]
    pub model_choice: ModelChoice,
    /// Whether a process that goes on with a session repeats its history.
    #[serde(default, skip_serializing_if = "RepeatsHistory::is_always")]
    pub repeats_history: RepeatsHistory,
}

/// Whether a process that goes on with a session repeats the history of the session. Without
/// [echoes](Capabilities::echoes_messages), only that shows whether the process before has heard the message that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RepeatsHistory {
    #[default]
    Always,
    OnRequest,
    Never,
}

impl RepeatsHistory {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_always(&self) -> bool {
        *self == Self::Always
    }
}

/// How a harness is told the model that a run asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModelChoice {
    /// When its process is started.
    #[default]
    AtStart,
    /// When its session is open, as one of the options of the session.
    SessionOption,
    /// When its session is open, by a request that is only about the model.
    SessionModel,
    /// It cannot be told. It uses the model of its own settings.
    Never,
}

impl ModelChoice {
    fn is_at_start(&self) -> bool {
        *self == Self::AtStart
    }

    /// Whether an open session is told the model, before it is told anything else.
    pub fn needs_session(self) -> bool {
        matches!(self, Self::SessionOption | Self::SessionModel)
    }
}

/// What a process says itself that it can do. For a harness that serves many programs, nothing of this is known before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Declared {
    pub resumes: bool,
    pub forks: bool,
    pub model_choice: ModelChoice,
    #[serde(default, skip_serializing_if = "RepeatsHistory::is_always")]
    pub repeats_history: RepeatsHistory,
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_yes(it: &bool) -> bool {
    *it
}

impl Capabilities {
    /// All of them, and no restriction.
    pub const ALL: Self = Self {
        one_at_a_time: false,
        chooses_session_id: true,
        echoes_messages: true,
        forks: true,
        interrupts: true,
        stays_open: true,
        asks_permission: true,
        reports_cost: true,
        resumes: true,
        explains_denials: true,
        model_choice: ModelChoice::AtStart,
        repeats_history: RepeatsHistory::Always,
    };

    /// All of them, as a function for serde.
    pub fn all() -> Self {
        Self::ALL
    }

    /// The same, with what a process declares.
    #[must_use]
    pub fn with(self, declared: Declared) -> Self {
        let Declared { resumes, forks, model_choice, repeats_history } = declared;
        Self { resumes, forks, model_choice, repeats_history, ..self }
    }
}

/// How the session of an attempt is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    New,
    /// The agent's own session goes on.
    Resume {
        session: String,
        /// The process is to repeat the history of the session, if it can choose.
        repeats_history: bool,
    },
    /// A new session that begins as a copy of another agent's.
    Fork {
        from: String,
        /// The last turn that is copied; without, everything is.
        upto: Option<String>,
    },
}

/// A message that waits for a process, when its output begins to be read. A harness that repeats its history and no ids shows by the words
/// whether the message is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessage {
    pub id: String,
    pub text: String,
}

/// Reads the output of one process, line by line.
///
/// A reader may keep state: what it remembers of one line, it needs for another. After a restart of the daemon the state is
/// rebuilt by reading the lines again that were taken in, without taking them in a second time. Of a very long output only the
/// last part is still there, so a reader must not depend on a line from long ago.
pub trait Reader: Send + Sync {
    /// What a line says: often one thing, sometimes several, and nothing when it is of no interest. An error says why the line
    /// cannot be read.
    fn read(&mut self, line: &str) -> Result<Vec<Output>, String>;

    /// The words in a line that are a piece of a text or a thought which is still being written. They are shown and never
    /// recorded: the whole follows in another line, or with it. A line with a partial has no outputs and is not read again. After a
    /// restart it may be read instead, so a reader that joins pieces takes them in both ways. A harness that only says whole texts has
    /// no partials.
    fn partial(&mut self, _line: &str) -> Option<Partial> {
        None
    }
}
