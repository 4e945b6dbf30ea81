//! Ends the work of a log that was imported or copied from another project folder. The processes and worktrees of that work cannot be
//! reached from here. So the runs end, and the quests are paused. Does nothing with a shared store, because other folders may be in use.

use super::RunnerContext;
use crate::engine::{Handle, SubmitError};
use hatchery_core::quest::QuestState;
use hatchery_core::{Command, Plan, World};
use std::sync::Arc;

pub struct ForeignWork {
    handle: Handle,
    host: Arc<str>,
    /// Whether all runs and quests must be looked at, and not only those in the plan.
    look_at_all: bool,
    applies: bool,
}

impl ForeignWork {
    pub fn new(context: &RunnerContext) -> Self {
        let (handle, host) = (context.handle.clone(), Arc::clone(&context.host));
        Self { handle, host, look_at_all: true, applies: context.store_is_private }
    }

    /// Ends the work of other folders. True if something has to be tried again.
    pub async fn end(&mut self, plan: &Plan) -> bool {
        let wanted = plan.runs.iter().any(|(_, run)| run.host != self.host);
        if !self.applies || !(self.look_at_all || wanted) {
            return false;
        }
        // Quests first, so that the end of a run pauses its step and does not fail it.
        let mut again = self.submit(quests_to_pause(&self.handle.view(), &self.host)).await;
        again |= self.submit(runs_to_end(&self.handle.view(), &self.host)).await;
        self.look_at_all = again;
        again
    }

    async fn submit(&self, commands: Vec<Command>) -> bool {
        let mut again = false;
        for command in commands {
            match self.handle.submit(command).await {
                // A refusal means that the quest or the run has ended already.
                Ok(_) | Err(SubmitError::Refused(_)) => {}
                Err(error) => {
                    tracing::warn!(%error, "work of another project folder could not be ended; trying again");
                    again = true;
                }
            }
        }
        again
    }
}

fn quests_to_pause(world: &World, host: &Arc<str>) -> Vec<Command> {
    let foreign = world.quests().filter(|(id, quest)| {
        quest.state == QuestState::Open && world.quest_spec(*id).is_some_and(|quest_spec| quest_spec.spec.host != *host)
    });
    foreign.map(|(quest, _)| Command::PauseQuest { quest }).collect()
}

fn runs_to_end(world: &World, host: &Arc<str>) -> Vec<Command> {
    let foreign = world.runs().filter(|(_, run)| run.is_open() && run.spec.host != *host);
    foreign.map(|(agent, run)| Command::ReportUnreachable { of: run.attempt_id(agent) }).collect()
}
