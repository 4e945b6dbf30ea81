//! `.hatchery/glance.json`: what the status line shows of the agents, in a file that is read in microseconds. A projection of the log;
//! nothing is read from it but by the status line.

use crate::clock;
use crate::engine::Handle;
use crate::project::Project;
use crate::projection::{Projection, Projector, Rendered};
use crate::shared_file::Durability;
use crate::state_file::read_bounded;
use hatchery_core::budget::day;
use hatchery_core::event::RunEvent;
use hatchery_core::{Event, Record, World};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

const FILE: &str = "glance.json";
const MAX_BYTES: usize = 4_096;

/// The agents at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glance {
    /// Agents whose run is not over.
    pub running: usize,
    /// Questions that wait for the user.
    pub questions: usize,
    /// The day that the cost is of, counted from 1970 in UTC.
    pub day: i64,
    /// In billionths of a dollar.
    pub nanodollars: u64,
}

impl Glance {
    fn of(world: &World) -> Self {
        let today = day(clock::now());
        Self {
            running: world.runs().filter(|(_, run)| run.is_open()).count(),
            questions: world.questions_to_answer().count(),
            day: today,
            nanodollars: world.spent_on(today).cost.nanodollars,
        }
    }

    /// What the daemon of a project says, if one runs. Says nothing of yesterday's cost.
    pub fn read(project: &Project) -> Option<Self> {
        let text = read_bounded(&project.data().join(FILE), MAX_BYTES).ok().flatten()?;
        let mut glance: Self = serde_json::from_slice(&text).ok()?;
        if !project.is_served() {
            return None;
        }
        if glance.day != day(clock::now()) {
            glance.nanodollars = 0;
        }
        Some(glance)
    }
}

/// Keeps the file true.
pub fn keep(project: Project, handle: Handle) -> Projector<OneFile> {
    Projector::start(Glances { path: project.data().join(FILE) }, handle)
}

/// There is only one such file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OneFile;

impl fmt::Display for OneFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FILE)
    }
}

struct Glances {
    path: PathBuf,
}

impl Projection for Glances {
    type Key = OneFile;

    const NAME: &'static str = FILE;
    const DURABILITY: Durability = Durability::Rebuilt;
    // A status line is drawn a few times a minute.
    const PACE: Duration = Duration::from_millis(250);

    fn keys(&self, _: &World) -> Vec<OneFile> {
        vec![OneFile]
    }

    fn changed_by(&self, _: &World, record: &Record) -> Option<OneFile> {
        match &record.event {
            Event::Run { what: RunEvent::OutputTaken { .. } | RunEvent::OutputNoted { .. }, .. } => None,
            Event::Run { .. } | Event::Question { .. } | Event::Agent { .. } => Some(OneFile),
            Event::Session { .. }
            | Event::Message(_)
            | Event::Mail(_)
            | Event::Permission(_)
            | Event::Budget(_)
            | Event::Seat(_)
            | Event::Quest { .. }
            | Event::Step { .. }
            | Event::Status(_)
            | Event::Request(_) => None,
        }
    }

    fn path(&self, _: &OneFile) -> PathBuf {
        self.path.clone()
    }

    fn render(&self, world: &World, _: &OneFile, found: Option<&[u8]>) -> io::Result<Rendered> {
        let content = serde_json::to_vec(&Glance::of(world))?;
        Ok(if found == Some(content.as_slice()) { Rendered::Unchanged } else { Rendered::Write(content) })
    }
}
