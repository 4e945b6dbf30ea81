//! `quest.json`: each quest as a file under `.hatchery/quests/ID/`, for people and programs that prefer a file to the API. It is a
//! projection of the log: nothing is read from it.

use crate::engine::Handle;
use crate::project::Project;
use crate::projection::{Projection, Projector, Rendered};
use crate::quest_document::QuestDocument;
use crate::shared_file::Durability;
use hatchery_core::event::{AgentEvent, RunEvent};
use hatchery_core::{Event, QuestId, Record, World};
use serde::de::IgnoredAny;
use std::io;
use std::path::PathBuf;

/// The folder of a quest.
pub fn folder(project: &Project, quest: QuestId) -> PathBuf {
    project.data().join("quests").join(quest.to_string())
}

/// Keeps the files of all quests true.
pub fn keep(project: Project, handle: Handle) -> Projector<QuestId> {
    Projector::start(QuestFiles { project }, handle)
}

struct QuestFiles {
    project: Project,
}

impl Projection for QuestFiles {
    type Key = QuestId;

    const NAME: &'static str = "quest.json";
    const DURABILITY: Durability = Durability::Rebuilt;

    fn keys(&self, world: &World) -> Vec<QuestId> {
        world.quests().map(|(id, _)| id).collect()
    }

    fn changed_by(&self, world: &World, record: &Record) -> Option<QuestId> {
        let agent = match &record.event {
            Event::Quest { quest, .. } | Event::Step { quest, .. } => return Some(*quest),
            // A step shows the run and the questions of its agent.
            Event::Question { agent, .. } | Event::Agent { agent, what: AgentEvent::RunRequested { .. } } => *agent,
            Event::Run { of, what } if shows_in_step(what) => of.agent,
            Event::Run { .. }
            | Event::Agent { .. }
            | Event::Session { .. }
            | Event::Message(_)
            | Event::Mail(_)
            | Event::Permission(_)
            | Event::Budget(_)
            | Event::Status(_)
            | Event::Request(_)
            | Event::Seat(_) => return None,
        };
        world.assignment(agent).map(|assignment| assignment.quest)
    }

    fn path(&self, quest: &QuestId) -> PathBuf {
        folder(&self.project, *quest).join("quest.json")
    }

    fn render(&self, world: &World, quest: &QuestId, found: Option<&[u8]>) -> io::Result<Rendered> {
        let Some(document) = QuestDocument::of(world, *quest) else { return Ok(Rendered::Unchanged) };
        let mut content = serde_json::to_vec_pretty(&document)?;
        content.push(b'\n');
        let Some(found) = found else { return Ok(Rendered::Write(content)) };
        if found == content {
            return Ok(Rendered::Unchanged);
        }
        Ok(match serde_json::from_slice::<IgnoredAny>(found) {
            Ok(_) => Rendered::Write(content),
            Err(error) => Rendered::SetAside { why: error.to_string(), content },
        })
    }
}

/// What an agent says and calls is frequent, and a step does not show it, except for a signal that was refused.
fn shows_in_step(what: &RunEvent) -> bool {
    match what {
        RunEvent::CallTaken { refused: Some(_), signal: true, .. } => true,
        RunEvent::MessageHeard { .. }
        | RunEvent::OutputNoted { .. }
        | RunEvent::OutputTaken { .. }
        | RunEvent::CallTaken { .. }
        | RunEvent::PermissionDecided { .. }
        | RunEvent::TurnStarted => false,
        RunEvent::Spawned { .. }
        | RunEvent::Waiting
        | RunEvent::Started { .. }
        | RunEvent::TurnEnded { .. }
        | RunEvent::Silent { .. }
        | RunEvent::Interrupted
        | RunEvent::Stopping { .. }
        | RunEvent::Parked { .. }
        | RunEvent::Crashed { .. }
        | RunEvent::BudgetReached
        | RunEvent::Metered { .. }
        | RunEvent::Resumed
        | RunEvent::Ended { .. } => true,
    }
}
