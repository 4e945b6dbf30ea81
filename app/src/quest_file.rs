//! `quest.json`: each quest as a file under `.hatchery/quests/ID/`, for people and programs that prefer a file to the API. It is a
//! projection of the log: nothing is read from it.

use crate::engine::Handle;
use crate::no_links;
use crate::project::Project;
use crate::projection::{Projection, Projector, Rendered};
use crate::quest_document::QuestDocument;
use crate::shared_file::Durability;
use hatchery_core::event::{AgentEvent, RunEvent};
use hatchery_core::{Event, QuestId, Record, World};
use serde::de::IgnoredAny;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The name of the file, in the folder of its quest.
pub const NAME: &str = "quest.json";

/// The folder of a quest.
pub fn folder(project: &Project, quest: QuestId) -> PathBuf {
    project.data().join("quests").join(quest.to_string())
}

/// Keeps the files of all quests true.
pub fn keep(project: Project, handle: Handle) -> Projector<QuestId> {
    Projector::start(QuestFiles { project, settled: Mutex::default() }, handle)
}

struct QuestFiles {
    project: Project,
    /// Quests that were over at the start and had a file, without those to which something has happened since. If such a file is missing, it
    /// was cleared.
    settled: Mutex<BTreeSet<QuestId>>,
}

impl QuestFiles {
    fn settled(&self) -> MutexGuard<'_, BTreeSet<QuestId>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Projection for QuestFiles {
    type Key = QuestId;

    const NAME: &'static str = NAME;
    const DURABILITY: Durability = Durability::Rebuilt;

    /// The file of a quest that is over is not made again, because it was cleared: see [`crate::gc`].
    fn keys(&self, world: &World) -> Vec<QuestId> {
        let over = world.quests().filter(|(_, quest)| quest.is_over()).map(|(id, _)| id);
        let settled: BTreeSet<QuestId> = over.filter(|id| self.path(id).exists()).collect();
        let open = world.quests().filter(|(_, quest)| !quest.is_over()).map(|(id, _)| id);
        let all = open.chain(settled.iter().copied()).collect();
        *self.settled() = settled;
        all
    }

    /// Agents can write in `.hatchery`. A link in the place of a folder would lead the file elsewhere.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        for folder in [folder.parent(), Some(folder)].into_iter().flatten() {
            match no_links::check_folder(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::create_dir(folder)?,
                checked => checked?,
            }
        }
        Ok(())
    }

    fn changed_by(&self, world: &World, record: &Record) -> Option<QuestId> {
        let agent = match &record.event {
            Event::Quest { quest, .. } | Event::Step { quest, .. } => {
                self.settled().remove(quest);
                return Some(*quest);
            }
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
        let quest = world.assignment(agent).map(|assignment| assignment.quest)?;
        self.settled().remove(&quest);
        Some(quest)
    }

    fn path(&self, quest: &QuestId) -> PathBuf {
        folder(&self.project, *quest).join(NAME)
    }

    fn render(&self, world: &World, quest: &QuestId, found: Option<&[u8]>) -> io::Result<Rendered> {
        if found.is_none() && self.settled().contains(quest) {
            return Ok(Rendered::Unchanged);
        }
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
