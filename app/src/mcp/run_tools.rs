//! The calls of the tools of a run. A call is first written durably to the file of calls. Then the daemon is asked to carry it out. If no
//! daemon runs, the tools wait for one. The next daemon carries out the written calls.

use super::{ToolError, words};
use crate::blocking::blocking;
use crate::calls::{Call, CallWriter};
use crate::client::paths::agent_path;
use crate::client::{Client, Failure};
use crate::http::ANSWER_FORGOTTEN;
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use crate::run_folder::{self, RunFolder};
use hatchery_core::AgentId;
use hatchery_core::run::AttemptId;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long to wait for a daemon before the agent is told that none runs.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between two attempts to find a daemon.
const DAEMON_PAUSE: Duration = Duration::from_millis(100);

/// The tools of one attempt.
pub struct RunTools {
    project: Project,
    calls: Arc<Mutex<CallWriter>>,
    of: AttemptId,
    token: String,
}

impl RunTools {
    pub fn new(project: &Project, folder: RunFolder) -> Result<Self, Report> {
        let unusable = || Report::failed(format_args!("{} is not the folder of a run", folder.path().display()));
        let token = folder.token().context("the run's token cannot be read")?.ok_or_else(unusable)?;
        let of = run_folder::attempt_of_token(&token).ok_or_else(unusable)?;
        let calls = Arc::new(Mutex::new(CallWriter::new(folder)));
        Ok(Self { project: project.clone(), calls, of, token })
    }

    pub fn agent(&self) -> AgentId {
        self.of.agent
    }

    /// Waits for a daemon. The tools of an agent never start one.
    pub async fn client(&self) -> Result<Client, Report> {
        let started = Instant::now();
        loop {
            if let Some(client) = self.announced()
                && client.get::<Value>("/api/health").await.is_ok()
            {
                return Ok(client);
            }
            if started.elapsed() > DAEMON_TIMEOUT {
                return Err(no_daemon());
            }
            tokio::time::sleep(DAEMON_PAUSE).await;
        }
    }

    fn announced(&self) -> Option<Client> {
        Client::announced(&self.project, self.token.clone())
    }

    /// Makes a call. A call that is in the file is carried out exactly once, also if processes are killed meanwhile.
    pub async fn call(&self, call: Call) -> Result<Value, ToolError> {
        let is_signal = matches!(call, Call::Signal(_));
        let calls = Arc::clone(&self.calls);
        let written = blocking(move || calls.lock().unwrap_or_else(PoisonError::into_inner).write(&call)).await;
        let failed = |error| ToolError(format!("your request was not saved and not carried out: {error}; try again"));
        let number = written.map_err(failed)?;
        let started = Instant::now();
        let path = agent_path(&self.of.agent.to_string(), "/calls");
        let body = json!({ "run": self.of.run, "attempt": self.of.attempt, "number": number });
        loop {
            // The health of the daemon is not checked first, because the call itself shows whether the daemon answers, and the agent waits for
            // each round trip.
            let asked = match self.announced() {
                Some(client) => client.ask(&path, &body).await,
                None => Err(Failure::Away(no_daemon())),
            };
            match asked {
                Ok(answer) => return Ok(answer),
                Err(Failure::Refused { code: Code::Unreachable, .. } | Failure::Away(_) | Failure::Unasked(_))
                    if started.elapsed() < DAEMON_TIMEOUT =>
                {
                    tokio::time::sleep(DAEMON_PAUSE).await;
                }
                Err(Failure::Refused { code: Code::Unreachable, .. } | Failure::Away(_) | Failure::Unasked(_)) => {
                    return Err(ToolError(
                        "Hatchery is not running at the moment. Your request is saved and will be carried out once, \
                         as soon as Hatchery runs again. Do not repeat it."
                            .into(),
                    ));
                }
                Err(Failure::Refused { detail, .. }) if is_signal && detail.code == ANSWER_FORGOTTEN => {
                    return Err(ToolError("this was carried out already; do not repeat it.".into()));
                }
                Err(failure @ Failure::Refused { .. }) if is_signal => {
                    let why = words::of_failure(failure);
                    return Err(ToolError(format!("your signal was refused and does not count: {why}")));
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}

fn no_daemon() -> Report {
    Report::new(Code::Unreachable, "no Hatchery daemon runs at the moment")
}
