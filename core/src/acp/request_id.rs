//! The ids of Hatchery's requests to an agent that speaks ACP. An id says what was requested. So a daemon that did not send the request
//! understands the answer.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcpRequestId {
    Initialize,
    NewSession,
    /// The id contains the session, because the answer does not.
    LoadSession(String),
    /// A session is resumed without its history. The id contains the session, because the answer does not.
    ResumeSession(String),
    /// Sent after `session/load`, because some agents answer `session/load` before they have repeated the whole history. The answer to this
    /// request comes after the history.
    HistoryRepeated(String),
    /// Contains the session that is copied.
    ForkSession(String),
    /// The model that the session is to use.
    ChooseModel(String),
    /// Contains the id of the message. The answer is the end of the message's turn.
    Say(String),
}

const LOAD: &str = "session/load:";
const RESUME: &str = "session/resume:";
const REPEATED: &str = "history:";
const FORK: &str = "session/fork:";
const MODEL: &str = "model:";
const SAY: &str = "say:";

impl AcpRequestId {
    pub fn read(id: &str) -> Option<Self> {
        let after = |prefix: &str| id.strip_prefix(prefix).map(str::to_owned);
        match id {
            "initialize" => Some(Self::Initialize),
            "session/new" => Some(Self::NewSession),
            _ => after(LOAD)
                .map(Self::LoadSession)
                .or_else(|| after(RESUME).map(Self::ResumeSession))
                .or_else(|| after(REPEATED).map(Self::HistoryRepeated))
                .or_else(|| after(FORK).map(Self::ForkSession))
                .or_else(|| after(MODEL).map(Self::ChooseModel))
                .or_else(|| after(SAY).map(Self::Say)),
        }
    }
}

impl fmt::Display for AcpRequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initialize => f.write_str("initialize"),
            Self::NewSession => f.write_str("session/new"),
            Self::LoadSession(session) => write!(f, "{LOAD}{session}"),
            Self::ResumeSession(session) => write!(f, "{RESUME}{session}"),
            Self::HistoryRepeated(session) => write!(f, "{REPEATED}{session}"),
            Self::ForkSession(session) => write!(f, "{FORK}{session}"),
            Self::ChooseModel(model) => write!(f, "{MODEL}{model}"),
            Self::Say(message) => write!(f, "{SAY}{message}"),
        }
    }
}
