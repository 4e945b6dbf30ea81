//! The status document as readers see it: what the log says, and two facts that are only in files. The number of the section that a quest
//! works on is in the spec, and the use of the context window is what the status line was told. Readers of the file also find the state of
//! the context there, which follows from the build events.

use crate::context_use;
use crate::file_identity::FileVersion;
use crate::project::Project;
use crate::spec_sections::{self, Numbers};
use crate::state_file::StatusFolder;
use hatchery_core::World;
use hatchery_core::build_event::ContextHealth;
use hatchery_core::status::quest_view::{self, QuestView};
use hatchery_core::status::{Edit, Json, Path as StatusPath, StatusDocument};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

const SECTION: &str = "activeSection";
const NUMBER: &str = "activeSectionNumber";
const CONTEXT: &str = "contextState";
const USAGE: &str = "usage";
const ISOLATION: &str = "isolationMode";
const CHECKPOINT: &str = "lastCheckpoint";
const RUN: &str = "buildRun";

/// The numbers of a file, and the version of the file that they were read from.
type ReadNumbers = (FileVersion, Arc<Numbers>);

/// Computes the document. Copies share what they know.
#[derive(Clone, Debug)]
pub struct StatusView {
    project: Project,
    folder: StatusFolder,
    /// The numbers of the spec's sections, and the version of the file that they were read from.
    numbers: Arc<Mutex<Option<ReadNumbers>>>,
    /// Percent of the context window, with the version of its file.
    usage: Arc<watch::Sender<(Option<FileVersion>, Option<u8>)>>,
}

impl StatusView {
    pub fn new(project: &Project) -> Self {
        let view = Self {
            project: project.clone(),
            folder: StatusFolder::of_project(project),
            numbers: Arc::default(),
            usage: Arc::new(watch::channel((None, None)).0),
        };
        view.look_at_usage();
        view
    }

    /// The document.
    pub fn shown(&self, world: &World) -> StatusDocument {
        let mut shown = quest_view::shown(world);
        if let Some(section) = shown.words(SECTION)
            && shown.words(NUMBER).is_none()
            && QuestView::owner(world, &StatusPath::field(SECTION)).is_some()
            && let Some(number) = self.number(&section)
        {
            shown.set(NUMBER, number.as_str());
        }
        if QuestView::owner(world, &StatusPath::field(RUN)).is_some() {
            self.number_question(&mut shown);
        }
        let (_, usage) = *self.usage.borrow();
        show_context(&mut shown, usage);
        shown
    }

    /// Writes the number of the section behind the alias in a question of a quest: `#core-flow (2.2)`.
    fn number_question(&self, shown: &mut StatusDocument) {
        let at = StatusPath::field(RUN).below("pendingQuestion").below("sectionContext");
        let alias = shown.get(&at).and_then(|alias| alias.words());
        if let Some(alias) = alias
            && let Some(number) = self.number(&alias)
        {
            let value = format!("{alias} ({number})");
            // It fails only if the path is gone.
            shown.apply(&Edit::Set { path: at, value: value.as_str().into() }).unwrap_or_default();
        }
    }

    /// Changes when the document shows another use of the context window.
    pub fn usage(&self) -> watch::Receiver<(Option<FileVersion>, Option<u8>)> {
        self.usage.subscribe()
    }

    /// Looks whether a status line was told something new. True if so.
    pub fn look_at_usage(&self) -> bool {
        let version = FileVersion::at(&context_use::file(&self.project));
        if self.usage.borrow().0 == version {
            return false;
        }
        let usage = context_use::read(&self.project);
        self.usage.send_if_modified(|known| {
            let is_new = known.1 != usage;
            *known = (version, usage);
            is_new
        })
    }

    /// The number of a section, from the spec as it is now.
    fn number(&self, alias: &str) -> Option<String> {
        let now = FileVersion::at(&spec_sections::file(&self.folder))?;
        let mut known = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(version, _)| *version != now) {
            *known = Some((now, Arc::new(spec_sections::numbers(&self.folder).unwrap_or_default())));
        }
        known.as_ref().and_then(|(_, numbers)| numbers.get(alias).cloned())
    }
}

/// Shows the state of the context during a build, for readers of the file that do not derive it from the events. What another program says
/// about the context stays if the events say nothing.
fn show_context(shown: &mut StatusDocument, usage: Option<u8>) {
    let is_build = shown.field(RUN).is_some() || shown.field("buildEvents").is_some();
    if usage.is_none() && !is_build {
        return;
    }
    let mut context = shown.field(CONTEXT).and_then(Json::object).unwrap_or_default();
    if let Some(usage) = usage {
        context.set(USAGE, serde_json::Value::from(usage).into());
    }
    if is_build {
        let health = ContextHealth::of(shown, usage);
        context.set(ISOLATION, health.isolation_mode.as_str().into());
        if let Some(at) = health.last_checkpoint {
            context.set(CHECKPOINT, at.as_str().into());
        }
    }
    shown.set(CONTEXT, context.to_json());
}
