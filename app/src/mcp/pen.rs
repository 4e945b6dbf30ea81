//! How the tools of a run ask for something: first it is written down, durably, and then the daemon is asked to take it in. A
//! daemon that is away is waited for, because what is written counts as soon as there is one.

use super::Trouble;
use crate::calls::{self, Call};
use crate::client::paths::agent_path;
use crate::client::{Client, Failure};
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use crate::run_folder::{self, RunFolder};
use hatchery_core::AgentId;
use hatchery_core::run::AttemptId;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long a daemon that is away is waited for before the agent is told that it is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub struct Pen {
    project: Project,
    folder: RunFolder,
    of: AttemptId,
    token: String,
}

impl Pen {
    pub fn new(project: &Project, folder: RunFolder) -> Result<Self, Report> {
        let unusable = || Report::failed(format_args!("{} is no folder of a run", folder.path().display()));
        let token = folder.token().context("the run's token cannot be read")?.ok_or_else(unusable)?;
        let of = run_folder::token_of(&token).ok_or_else(unusable)?;
        Ok(Self { project: project.clone(), folder, of, token })
    }

    pub fn agent(&self) -> AgentId {
        self.of.agent
    }

    /// The daemon, once there is one. It is not for an agent's tools to start it.
    pub async fn client(&self) -> Result<Client, Report> {
        let started = Instant::now();
        loop {
            if let Some(client) = Client::announced(&self.project, self.token.clone())
                && client.get::<Value>("/api/health").await.is_ok()
            {
                return Ok(client);
            }
            if started.elapsed() > PATIENCE {
                return Err(Report::new(Code::Unreachable, "Hatchery does not run at the moment"));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Asks for something: what is written down happens exactly once, whoever dies in between.
    pub async fn call(&self, call: &Call) -> Result<Value, Trouble> {
        let number = calls::write(&self.folder, call)
            .map_err(|error| Trouble(format!("this could not be written down and was not done: {error}; try again")))?;
        let started = Instant::now();
        let path = agent_path(&self.of.agent.to_string(), "/calls");
        let body = json!({ "run": self.of.run, "attempt": self.of.attempt, "number": number });
        loop {
            let asked = match self.client().await {
                Ok(client) => client.ask(&path, &body).await,
                Err(report) => Err(Failure::Away(report)),
            };
            match asked {
                Ok(answer) => return Ok(answer),
                Err(Failure::Refused { code: Code::Unreachable, .. } | Failure::Away(_))
                    if started.elapsed() < PATIENCE =>
                {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                Err(Failure::Refused { code: Code::Unreachable, .. } | Failure::Away(_)) => {
                    return Err(Trouble(
                        "Hatchery does not run at the moment. Your request is written down and will be carried out once, \
                         as soon as it is back; do not repeat it."
                            .into(),
                    ));
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
