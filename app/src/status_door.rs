//! How commands read and change the status of a project: through the daemon if one runs, otherwise in the files themselves, under the
//! same lock. A change is made exactly once and is durable when the call returns.
//!
//! Whether a daemon runs is asked again under the lock of the files. A daemon that starts in between takes in the files under that
//! lock before it serves clients, so no change falls between the two ways. If the last daemon was killed, the files follow its log
//! before they are changed ([`status_log`](crate::status_log)).

use crate::client::{Client, Failure};
use crate::clock;
use crate::http::{Changed as ChangedView, ChangedIdea, IdeaList, StatusValue};
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use crate::shared_file::Update;
use crate::spec_sections;
use crate::state_file::{ChangeError, FileChange, HeldFolder, StatusFolder};
use crate::status_log::Followed;
use hatchery_core::build_event;
use hatchery_core::idea_inbox::{Idea, IdeaInbox};
use hatchery_core::refusal::RefusalKind;
use hatchery_core::status::{IdeaChange, Json, Path as StatusPath, StatusChange, StatusDocument, StatusRefusal};
use hyper::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a daemon that starts or stops is waited for.
const DAEMON_PATIENCE: Duration = Duration::from_secs(60);
const DAEMON_PAUSE: Duration = Duration::from_millis(10);

/// The status of one project.
#[derive(Clone, Debug)]
pub struct StatusDoor {
    project: Project,
    folder: StatusFolder,
}

/// Why the status was not changed.
#[derive(Debug)]
pub enum NotChanged {
    /// The change is not possible. `code` says why.
    Refused {
        code: String,
        report: Report,
    },
    Failed(Report),
}

impl From<Report> for NotChanged {
    fn from(report: Report) -> Self {
        Self::Failed(report)
    }
}

impl From<StatusRefusal> for NotChanged {
    fn from(refusal: StatusRefusal) -> Self {
        let code = match refusal.kind() {
            RefusalKind::Invalid => Code::Usage,
            RefusalKind::Missing | RefusalKind::Untimely => Code::Failed,
        };
        Self::Refused { code: refusal.code().into(), report: Report::new(code, &refusal).hint(refusal.hint()) }
    }
}

impl ChangeError for NotChanged {
    fn beside(self, trouble: &str) -> Self {
        match self {
            Self::Refused { code, report } => Self::Refused { code, report: report.beside(trouble) },
            Self::Failed(report) => Self::Failed(report.beside(trouble)),
        }
    }
}

impl From<NotChanged> for Report {
    fn from(denied: NotChanged) -> Self {
        match denied {
            NotChanged::Refused { code, report } => report.named(code),
            NotChanged::Failed(report) => report,
        }
    }
}

/// A change that is durable.
#[derive(Debug)]
pub struct Done<T> {
    pub value: T,
    /// Where a file is kept that could not be read.
    pub set_aside: Option<PathBuf>,
    /// False if a daemon has the change in its log but cannot write the file.
    pub in_file: bool,
}

/// A change of a file that a daemon has taken over in the meantime.
enum Direct<E> {
    Daemon,
    Other(E),
}

impl<E> From<Report> for Direct<E>
where
    E: From<Report>,
{
    fn from(report: Report) -> Self {
        Self::Other(report.into())
    }
}

impl<E: ChangeError> ChangeError for Direct<E> {
    fn beside(self, trouble: &str) -> Self {
        match self {
            Self::Daemon => Self::Daemon,
            Self::Other(error) => Self::Other(error.beside(trouble)),
        }
    }
}

impl StatusDoor {
    pub fn of(project: &Project) -> Self {
        Self { project: project.clone(), folder: StatusFolder::of_project(project) }
    }

    pub fn folder(&self) -> &StatusFolder {
        &self.folder
    }

    /// The document. Where the file is missing or cannot be read, a daemon may know it.
    pub fn state(&self) -> Result<StatusDocument, Report> {
        if let Some(followed) = self.followed()? {
            return Ok(followed.state?.content);
        }
        let found = self.folder.state();
        if !self.is_for_daemon(found.is_ok()) {
            return found;
        }
        let known: Option<StatusValue> = self.ask_running(|client| async move { client.get("/api/state").await })?;
        match known.and_then(|known| known.value.object()) {
            Some(fields) => Ok(StatusDocument::of(fields)),
            None => found,
        }
    }

    /// The ideas. Where the file is missing or cannot be read, a daemon may know them.
    pub fn inbox(&self) -> Result<IdeaInbox, Report> {
        if let Some(followed) = self.followed()? {
            return Ok(followed.inbox?.content);
        }
        let found = self.folder.inbox();
        if !self.is_for_daemon(found.is_ok()) {
            return found;
        }
        let known: Option<IdeaList> = self.ask_running(|client| async move { client.get("/api/inbox").await })?;
        match known {
            Some(known) => Ok(IdeaInbox::of(known.items.into_iter().map(|idea| idea.item).collect())),
            None => found,
        }
    }

    /// Whether a daemon may know more than a file.
    fn is_for_daemon(&self, is_readable: bool) -> bool {
        !(is_readable && self.folder.path().is_dir()) && self.project.is_served()
    }

    /// What the files should hold, if the last daemon was killed and none runs.
    fn followed(&self) -> Result<Option<Followed>, Report> {
        if self.project.is_served() { Ok(None) } else { Followed::read(&self.project, &self.folder) }
    }

    /// Changes a file under the lock, unless a daemon runs. Before that the files are brought up to the log.
    fn in_file<T: Send + 'static>(
        &self,
        change: impl FnOnce(HeldFolder) -> Result<FileChange<T>, Direct<NotChanged>> + Send + 'static,
    ) -> Result<FileChange<T>, Direct<NotChanged>> {
        let Self { project, folder } = self.clone();
        self.folder.hold(move |held| {
            if project.is_served() {
                return Err(Direct::Daemon);
            }
            let (mut update, mut aside) = (Update::default(), Vec::new());
            while let Some(followed) = Followed::read(&project, &folder)? {
                if followed.write(&folder, &held, &mut update, &mut aside)? {
                    break;
                }
            }
            let aside = aside.into_iter().next();
            let changed = change(held).map_err(|denied| with_aside(denied, aside.as_deref()))?;
            Ok(FileChange { set_aside: changed.set_aside.or(aside), ..changed })
        })?
    }

    /// Changes the document. A project takes part from the first change on, so one that is refused must not make the folder. Gives the new value of the field that was changed, or `null` if there were several. For a build event it gives
    /// the id under which the event is known.
    pub fn change(&self, change: &StatusChange) -> Result<Done<Json>, NotChanged> {
        let change = Arc::new(spec_sections::filled(&self.folder, change));
        let in_file = || {
            if !self.folder.path().is_dir() {
                let mut tried = self.state()?;
                change.apply(&mut tried, &clock::written(clock::now())).map_err(|it| Direct::Other(it.into()))?;
            }
            let change = Arc::clone(&change);
            self.in_file(move |held| {
                held.change_state(|document| {
                    let known = event_id(&change, document);
                    let changed = change.apply(document, &clock::written(clock::now()));
                    changed.map_err(|refusal| Direct::Other(NotChanged::from(refusal)))?;
                    let value = changed_path(&change).and_then(|path| document.get(path));
                    Ok(value.or(known).unwrap_or_else(Json::null))
                })
            })
        };
        self.either(in_file, "/api/state", change.as_ref(), |changed: ChangedView| {
            let id = changed.id.as_deref().map(Json::from);
            Ok((id.unwrap_or(changed.value), changed.in_file))
        })
    }

    /// Changes the inbox. Gives the item as it is now, or as it was when it was dismissed.
    pub fn change_ideas(&self, change: &IdeaChange) -> Result<Done<Idea>, NotChanged> {
        let in_file = || {
            if !self.folder.path().is_dir() {
                let mut tried = self.inbox()?;
                change.apply(&mut tried, &clock::written(clock::now())).map_err(|it| Direct::Other(it.into()))?;
            }
            let change = change.clone();
            self.in_file(move |held| {
                held.change_inbox(|inbox| {
                    let changed = change.apply(inbox, &clock::written(clock::now()));
                    changed.map_err(|refusal| Direct::Other(NotChanged::from(refusal)))
                })
            })
        };
        self.either(in_file, "/api/inbox/changes", change, |idea: ChangedIdea| {
            let item = Idea::read(&idea.item).ok_or_else(|| Report::failed("the daemon's answer has no item"))?;
            Ok((item, idea.in_file))
        })
    }

    fn either<T, A: DeserializeOwned>(
        &self,
        in_file: impl Fn() -> Result<FileChange<T>, Direct<NotChanged>>,
        path: &str,
        change: &impl Serialize,
        answer: impl Fn(A) -> Result<(T, bool), Report>,
    ) -> Result<Done<T>, NotChanged> {
        let deadline = Instant::now() + DAEMON_PATIENCE;
        while Instant::now() < deadline {
            if !self.project.is_served() {
                match in_file() {
                    Ok(FileChange { value, set_aside }) => return Ok(Done { value, set_aside, in_file: true }),
                    Err(Direct::Other(denied)) => return Err(denied),
                    Err(Direct::Daemon) => {}
                }
            }
            match self.post(path, change)? {
                Some(answered) => {
                    let (value, in_file) = answer(answered)?;
                    return Ok(Done { value, set_aside: None, in_file });
                }
                // It starts, or it has just ended.
                None => std::thread::sleep(DAEMON_PAUSE),
            }
        }
        Err(Report::new(Code::Unreachable, "a daemon holds the project's lock but does not answer")
            .hint("`hatchery down` stops it; without one the files are changed directly")
            .into())
    }

    /// Asks the daemon. None if it could not be asked, and so has done nothing.
    fn post<A: DeserializeOwned>(&self, path: &str, change: &impl Serialize) -> Result<Option<A>, NotChanged> {
        let (Some(daemon), Some(token)) = (self.project.daemon(), self.project.existing_token()?) else {
            return Ok(None);
        };
        let client = Client::new(&daemon.url, token);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
        match runtime.block_on(client.ask(path, change)) {
            Ok(answered) => Ok(Some(answered)),
            Err(Failure::Unasked(_)) => Ok(None),
            Err(Failure::Refused { detail, .. }) if detail.code == "stopping" => Ok(None),
            Err(Failure::Refused { status, code, detail }) => {
                // As without a daemon: the change itself cannot be.
                let code = if status == StatusCode::UNPROCESSABLE_ENTITY { Code::Usage } else { code };
                let report = Report::new(code, &detail.message).hint(&detail.hint);
                Err(NotChanged::Refused { code: detail.code, report })
            }
            Err(failure @ (Failure::Away(_) | Failure::Broken(_))) => Err(Report::from(failure).into()),
        }
    }

    fn ask_running<T, F: Future<Output = Result<T, Report>>>(
        &self,
        ask: impl FnOnce(Client) -> F,
    ) -> Result<Option<T>, Report> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
        runtime.block_on(async {
            match Client::running(&self.project).await? {
                Some(client) => ask(client).await.map(Some),
                None => Ok(None),
            }
        })
    }
}

/// The path of a change that concerns one value.
fn changed_path(change: &StatusChange) -> Option<&StatusPath> {
    match change {
        StatusChange::Set { path, .. }
        | StatusChange::Increment { path, .. }
        | StatusChange::Append { path, .. }
        | StatusChange::Clear { path } => Some(path),
        _ => None,
    }
}

/// The id that a build event has in a document, or will have there.
fn event_id(change: &StatusChange, document: &StatusDocument) -> Option<Json> {
    let StatusChange::RecordEvent { event, id } = change else { return None };
    let own = build_event::id_of(&event.object()?);
    let known = || build_event::id_of(&build_event::repeated_event(document, event)?);
    Some(own.or_else(known).as_deref().unwrap_or(id).into())
}

/// A refusal, together with where a damaged file is kept.
fn with_aside(denied: Direct<NotChanged>, aside: Option<&Path>) -> Direct<NotChanged> {
    match aside {
        Some(aside) => denied.beside(&format!("a file could not be read; it is kept as {}", aside.display())),
        None => denied,
    }
}
