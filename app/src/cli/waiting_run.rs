//! A run that waits, as the commands that wait for the run show it: why, when it goes on, and how to leave it alone.

use super::paint::printable;
use crate::client::Client;
use crate::clock;
use crate::http::{AgentView, RunList, RunPhase};
use crate::report::Report;
use hatchery_core::event::RunEvent;
use hatchery_core::outcome::Cause;
use hatchery_core::why::Activity;
use hatchery_core::{Event, Timestamp};
use std::fmt;

/// Why a run has no process, for the user who waits for the run.
#[derive(Debug)]
pub enum WaitingRun {
    /// As many agents run as `max_runs` allows.
    NoPlace,
    /// `until` is when it goes on by itself.
    Parked { cause: Cause, detail: Option<String>, until: Option<Timestamp> },
}

impl WaitingRun {
    /// The open run of an agent, if it waits.
    pub async fn of(client: &Client, agent: &AgentView) -> Result<Option<Self>, Report> {
        if !matches!(agent.activity, Activity::Parked | Activity::Starting) {
            return Ok(None);
        }
        let list: RunList = client.get("/api/runs").await?;
        let mut waiting = list.runs.into_iter().filter(|run| run.agent == agent.id).filter_map(|run| match run.phase {
            RunPhase::Waiting => Some(Self::NoPlace),
            RunPhase::Parked => Some(Self::Parked { cause: run.cause?, detail: run.detail, until: run.until }),
            RunPhase::Starting | RunPhase::Running | RunPhase::Stopping | RunPhase::Ended => None,
        });
        Ok(waiting.next())
    }

    /// The wait that begins with an event.
    pub fn begun_by(event: &Event) -> Option<Self> {
        match event {
            Event::Run { what: RunEvent::Waiting, .. } => Some(Self::NoPlace),
            Event::Run { what: RunEvent::Parked { cause, until, detail }, .. } => {
                Some(Self::Parked { cause: *cause, detail: Some(detail.clone()), until: *until })
            }
            _ => None,
        }
    }

    /// Whether two descriptions are of one wait, as far as can be seen.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::NoPlace, Self::NoPlace) => true,
            (Self::Parked { until, .. }, Self::Parked { until: other, .. }) => until == other,
            (Self::NoPlace, Self::Parked { .. }) | (Self::Parked { .. }, Self::NoPlace) => false,
        }
    }
}

/// Why it waits, when it goes on, and how to leave it alone meanwhile.
impl fmt::Display for WaitingRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let then = match self {
            Self::NoPlace => {
                f.write_str("waiting for its turn: as many agents run as `max_runs` allows")?;
                "it begins by itself; Ctrl-C leaves it, and it begins without this command".to_owned()
            }
            Self::Parked { cause, detail, until } => {
                write!(f, "parked ({cause})")?;
                if let Some(detail) = detail {
                    write!(f, ": {}", printable(detail))?;
                }
                match *until {
                    Some(at) => format!(
                        "it goes on by itself {} ({}); Ctrl-C leaves it, and it goes on without this command",
                        clock::age(at, clock::now()),
                        clock::told(at)
                    ),
                    None => "it waits for you: `hatchery ask list`; Ctrl-C leaves it".to_owned(),
                }
            }
        };
        write!(f, "\n  {then}")
    }
}
