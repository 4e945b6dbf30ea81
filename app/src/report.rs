//! How a failure reaches a person: what happened, what to do next, and the exit code for scripts.

use std::fmt;

/// Exit codes, also listed in `hatchery --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// It did not work.
    Failed = 1,
    /// The command line or the configuration is wrong. Clap uses the same number.
    Usage = 2,
    /// The daemon, or its store, cannot be reached.
    Unreachable = 3,
    /// A check ran and found something wrong.
    Found = 4,
    /// Something waits for a command of its user, and for nothing else.
    Waits = 5,
}

impl Code {
    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Unreachable => "unreachable",
            Self::Found => "found",
            Self::Waits => "waits",
        }
    }
}

#[derive(Debug)]
pub struct Report {
    pub message: String,
    pub hint: Option<String>,
    pub code: Code,
    /// The cause for scripts, as in the API: the daemon's own word, or one for the exit code.
    pub name: String,
}

impl Report {
    pub fn new(code: Code, message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), hint: None, code, name: code.name().to_owned() }
    }

    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    pub fn failed(message: impl fmt::Display) -> Self {
        Self::new(Code::Failed, message)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// For callers that can tell what failed, and nothing else.
    pub fn into_io(self) -> std::io::Error {
        std::io::Error::other(self.message)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Report {}

/// Puts what was being done in front of an error of the system.
pub trait Context<T> {
    fn context(self, doing: impl fmt::Display) -> Result<T, Report>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, doing: impl fmt::Display) -> Result<T, Report> {
        self.map_err(|error| Report::failed(format!("{doing}: {error}")))
    }
}
