//! What the core knows of harnesses, the adapters for agent programs: what they can do, how a session is opened, and how their output is
//! read. The core decides by [`Capabilities`] and never by the name of a harness.

use crate::output::Output;
use crate::partial::Partial;
use serde::{Deserialize, Serialize};

/// What a harness can do. This is recorded when a process is spawned, because another version of the harness may differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Capabilities {
    /// Hatchery chooses the session id, and messages can be written at once. Otherwise the id is known when the process is ready, and
    /// messages wait until then, because a resumed session first says which messages it contains.
    pub chooses_session_id: bool,
    /// The harness repeats the id of a message as soon as the message is in the harness session. Otherwise the beginning of a turn confirms
    /// the oldest message that waits.
    pub echoes_messages: bool,
    /// The harness can start a session as a copy of another. Otherwise a forked agent receives its history as text.
    pub forks: bool,
    /// A turn can be interrupted while the process keeps running.
    pub interrupts: bool,
    /// The process can wait for the next message after a turn. Otherwise each turn has a process of its own.
    pub stays_open: bool,
    /// The harness asks for permission to use tools, and waits for the answer.
    pub asks_permission: bool,
    /// The harness reports the cost of a turn. Otherwise the cost is computed from tokens, with the price table.
    pub reports_cost: bool,
    /// The harness accepts one message per turn. Further messages wait for the end of the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_at_a_time: bool,
    /// Another process can continue the harness session. Otherwise the next process receives the history as text.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub resumes: bool,
    /// The answer to a request for permission can contain the reason of a denial. Otherwise a message contains the reason.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub explains_denials: bool,
    /// How the model of a run is chosen.
    #[serde(default, skip_serializing_if = "ModelChoice::is_at_start")]
    pub model_choice: ModelChoice,
    /// Whether a process that continues a session repeats the history of the session.
    #[serde(default, skip_serializing_if = "RepeatsHistory::is_always")]
    pub repeats_history: RepeatsHistory,
}

/// Whether a process that continues a session repeats the history of the session. Without [echoes](Capabilities::echoes_messages), only the
/// repeated history shows whether the previous process has received the message that waits.
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

/// How the model of a run is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModelChoice {
    /// By an argument when the process starts.
    #[default]
    AtStart,
    /// By an option of the open session.
    SessionOption,
    /// By a request of its own when the session is open.
    SessionModel,
    /// It cannot be chosen. The agent program uses the model of its own settings.
    Never,
}

impl ModelChoice {
    fn is_at_start(&self) -> bool {
        *self == Self::AtStart
    }

    /// Whether the model is chosen in the open session, before the first message.
    pub fn needs_session(self) -> bool {
        matches!(self, Self::SessionOption | Self::SessionModel)
    }
}

/// What a process reports about its own capabilities. A harness for many agent programs does not know them before.
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
    /// All capabilities, and no restriction.
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

    /// [`Capabilities::ALL`] as a function, for serde.
    pub fn all() -> Self {
        Self::ALL
    }

    /// These capabilities, with those that a process declares.
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
    /// The agent's own session continues.
    Resume {
        session: String,
        /// The process is to repeat the history of the session, if this can be chosen.
        repeats_history: bool,
    },
    /// A new session that starts as a copy of another agent's.
    Fork {
        from: String,
        /// The last turn that is copied. None: all turns.
        upto: Option<String>,
    },
}

/// The message that waits for a process when its output begins to be read. Some harnesses repeat the history without our ids; then the text
/// shows whether the message is in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessage {
    pub id: String,
    pub text: String,
}

/// Reads the output of one process, line by line.
///
/// A reader may keep state from one line to a later one. After a restart of the daemon the state is rebuilt: the lines that were taken in
/// are read again, and their outputs are dropped. Of a very long output only the last part still exists, so a reader must not depend on a
/// line from long ago.
pub trait Reader: Send + Sync {
    /// The outputs of a line: often one, sometimes several, none if the line does not matter. An error says why the line cannot be read.
    fn read(&mut self, line: &str) -> Result<Vec<Output>, String>;

    /// The partial in a line: a piece of a text or a thought that is still being written. Partials are shown and never recorded, because
    /// the whole text follows in another line. A line with a partial has no outputs and is not given to `read`. After a restart, the same
    /// line may be given to `read` instead, so a reader that joins pieces must accept them in both functions. A harness that only writes
    /// whole texts has no partials.
    fn partial(&mut self, _line: &str) -> Option<Partial> {
        None
    }
}
