//! Runs, as the witness tells them: who is at which attempt, and that nothing is heard, taken in or ended twice.

use hatchery_core::event::RunEvent;
use hatchery_core::run::{AttemptId, RunState};
use hatchery_core::{AgentId, EventId, World, plan};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Default)]
pub struct Jobs {
    last: BTreeMap<AgentId, Job>,
    heard: BTreeSet<EventId>,
}

#[derive(Clone)]
struct Job {
    number: u32,
    attempt: u32,
    stage: Stage,
    spooled: u64,
    calls: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    DesiredRun,
    Present,
    Stopping,
    Parked { until: i64 },
    Over,
}

impl Jobs {
    pub fn request(&mut self, agent: AgentId, run: u32) {
        let before = self.last.get(&agent).map_or(0, |job| job.number);
        assert!(!self.is_open(agent), "{agent} has one run at a time");
        assert_eq!(run, before + 1, "the runs of {agent} are numbered");
        let job = Job { number: run, attempt: 1, stage: Stage::DesiredRun, spooled: 0, calls: 0 };
        self.last.insert(agent, job);
    }

    /// Takes in an event of an attempt. True when everything that its process had open is closed with it.
    pub fn fold(&mut self, of: AttemptId, what: &RunEvent) -> bool {
        match what {
            RunEvent::Spawned { .. } => {
                let job = self.at(of);
                match job.stage {
                    Stage::DesiredRun => job.stage = Stage::Present,
                    Stage::Stopping => {}
                    Stage::Present | Stage::Parked { .. } | Stage::Over => panic!("{of:?} had a process"),
                }
            }
            RunEvent::OutputTaken { upto } => {
                let before = std::mem::replace(&mut self.at(of).spooled, *upto);
                assert!(before < *upto, "what {of:?} said is taken in once");
            }
            RunEvent::CallTaken { number, .. } => {
                let before = std::mem::replace(&mut self.at(of).calls, *number);
                assert_eq!(before + 1, *number, "what {of:?} asked for is taken in once");
            }
            RunEvent::MessageHeard { message } => {
                self.at(of);
                assert!(self.heard.insert(*message), "{message} is heard once");
            }
            RunEvent::Started { .. }
            | RunEvent::Waiting
            | RunEvent::OutputNoted { .. }
            | RunEvent::PermissionDecided { .. }
            | RunEvent::TurnStarted
            | RunEvent::TurnEnded { .. }
            | RunEvent::BudgetReached
            | RunEvent::Metered { .. }
            | RunEvent::Silent { .. }
            | RunEvent::Interrupted => {
                self.at(of);
            }
            RunEvent::Stopping { .. } => {
                let before = std::mem::replace(&mut self.at(of).stage, Stage::Stopping);
                assert!(matches!(before, Stage::DesiredRun | Stage::Present), "{of:?} is stopped once");
            }
            RunEvent::Parked { until, .. } => {
                self.at(of).stage = Stage::Parked { until: until.expect("nobody has a budget").0 };
            }
            RunEvent::Crashed { .. } => {
                let stage = self.at(of).stage;
                assert!(matches!(stage, Stage::DesiredRun | Stage::Present), "{of:?} was not being stopped");
            }
            RunEvent::Resumed => {
                let before = AttemptId { attempt: of.attempt - 1, ..of };
                let stage = self.at(before).stage;
                assert!(stage != Stage::Stopping, "{of:?} was to be stopped");
                let job = self.at(before);
                *job = Job { attempt: of.attempt, stage: Stage::DesiredRun, spooled: 0, calls: 0, ..*job };
            }
            RunEvent::Ended { .. } => self.at(of).stage = Stage::Over,
        }
        matches!(
            what,
            RunEvent::TurnEnded { .. }
                | RunEvent::Parked { .. }
                | RunEvent::Crashed { .. }
                | RunEvent::Resumed
                | RunEvent::Ended { .. }
        )
    }

    pub fn is_open(&self, agent: AgentId) -> bool {
        self.last.get(&agent).is_some_and(|job| job.stage != Stage::Over)
    }

    /// Whether somebody sees to it that its process ends, if it has one.
    pub fn is_settled(&self, agent: AgentId) -> bool {
        self.last.get(&agent).is_none_or(|job| matches!(job.stage, Stage::Stopping | Stage::Over))
    }

    /// When the first of those that are parked goes on.
    pub fn next_deadline(&self) -> Option<i64> {
        let waits = self.last.values().filter_map(|job| match job.stage {
            Stage::Parked { until } => Some(until),
            Stage::DesiredRun | Stage::Present | Stage::Stopping | Stage::Over => None,
        });
        waits.min()
    }

    /// Whether there is a run whose silence may mean something: when, is not told a second time here.
    pub fn some_at_work(&self) -> bool {
        self.last.values().any(|job| matches!(job.stage, Stage::DesiredRun | Stage::Present))
    }

    pub fn agrees_with(&self, world: &World) {
        let plan = plan(world);
        assert_eq!(world.runs().count(), self.last.len());
        for (agent, run) in world.runs() {
            let job = &self.last[&agent];
            let stage = match run.state {
                RunState::Starting => Stage::DesiredRun,
                RunState::Spawned { .. } | RunState::Running { .. } => Stage::Present,
                RunState::Stopping { .. } => Stage::Stopping,
                RunState::Parked { until, .. } => Stage::Parked { until: until.expect("nobody has a budget").0 },
                RunState::Ended { .. } => Stage::Over,
            };
            assert_eq!((run.number, run.attempt.number, stage), (job.number, job.attempt, job.stage), "{agent}");
            assert_eq!((run.attempt.spooled, run.attempt.calls), (job.spooled, job.calls), "{agent}");
            let seen_to = matches!(job.stage, Stage::DesiredRun | Stage::Present | Stage::Stopping);
            assert_eq!(plan.runs.contains_key(&agent), seen_to, "{agent}");
        }
    }

    fn at(&mut self, of: AttemptId) -> &mut Job {
        let job = self.last.get_mut(&of.agent).unwrap_or_else(|| panic!("{of:?} was never asked for"));
        assert_eq!((of.run, of.attempt), (job.number, job.attempt), "{of:?} is the latest");
        assert!(job.stage != Stage::Over, "{of:?} is over");
        job
    }
}
