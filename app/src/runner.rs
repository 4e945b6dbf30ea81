//! The runner carries out the plan and reports back with commands. It compares the plan with reality, so it needs no memory: after a
//! restart the plan still says what is missing.

pub mod agent_worktrees;
mod chores;
mod delivery_text;
mod foreign;
mod launch;
mod retention;
mod run_settings;
mod spool_reader;
mod supervisor;

use crate::calls::Calls;
use crate::codex_threads::CodexThreads;
use crate::config::Config;
use crate::engine::{Handle, SubmitError};
use crate::folder_watch::FolderWatcher;
use crate::harness::{Claude, Codex};
use crate::live_text::LiveTexts;
use crate::own_environment;
use crate::project::Project;
use crate::report::Report;
use crate::run_folder::RunFolder;
use crate::store::StoreUrl;
use crate::transcripts::Transcripts;
use crate::worktree::Repository;
use chores::Chores;
use foreign::ForeignWork;
use hatchery_core::run::{AttemptId, DesiredRun, DesiredState, Places};
use hatchery_core::{AgentId, Command, Plan};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

pub use run_settings::RunSettings;

/// How long to wait after the store could not record a report.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Everything that is needed to run agents.
#[derive(Debug)]
pub struct RunnerContext {
    pub handle: Handle,
    pub project: Project,
    /// The path of this program.
    pub program: PathBuf,
    /// The name of this machine in runs.
    pub host: Arc<str>,
    /// The store is in the project's own folder. So everything in its log happened here, or in a folder of which this one is a copy.
    pub store_is_private: bool,
    /// Takes the tool calls of agents. The HTTP side shares it.
    pub calls: Arc<Calls>,
    /// What agents are writing at the moment. The HTTP side shares it.
    pub live: Arc<LiveTexts>,
    /// The transcripts of the Claude CLI, also of conversations outside of Hatchery.
    pub transcripts: Transcripts,
    /// The threads of codex in this project.
    pub codex_threads: CodexThreads,
    /// Replaced when `hatchery.toml` changes.
    settings: channel::Sender<Arc<RunSettings>>,
    /// The repository of the project, after it was needed and found for the first time.
    repository: OnceLock<Repository>,
}

impl RunnerContext {
    /// `program` is this program, with which launchers, tools and scripted agents are started.
    pub fn new(project: &Project, config: &Config, handle: Handle, program: &Path) -> Result<Self, Report> {
        let codex_threads = CodexThreads::new(project.root(), &Codex::of(config).environment);
        let settings = Arc::new(RunSettings::of(project, config, program));
        Ok(Self {
            calls: Arc::new(Calls::new(handle.clone())),
            live: Arc::default(),
            handle,
            project: project.clone(),
            program: program.to_owned(),
            host: project.host()?.into(),
            store_is_private: matches!(&config.store, StoreUrl::Sqlite(path) if path.starts_with(project.data())),
            transcripts: Claude::of(project, config).transcripts,
            codex_threads,
            settings: channel::Sender::new(settings),
            repository: OnceLock::new(),
        })
    }

    /// The current settings.
    pub fn settings(&self) -> Arc<RunSettings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Uses other settings from now on, for everything that starts later.
    pub fn use_settings(&self, settings: RunSettings) {
        self.settings.send_replace(Arc::new(settings));
    }

    /// The repository that contains the project, or why there is none. Runs git, so it may take a moment.
    fn repository(&self) -> Result<Repository, String> {
        let settings = self.settings();
        let known = match self.repository.get() {
            Some(known) => known.clone(),
            None => {
                let found =
                    Repository::find(&self.project, own_environment::entries()).map_err(|error| error.to_string())?;
                let found = found.map_err(|why| why.to_string())?;
                self.repository.get_or_init(|| found).clone()
            }
        };
        Ok(known.with_by_products(&settings.worktrees.by_products))
    }
}

/// Carries out each new plan, until the engine stops.
pub async fn run(context: Arc<RunnerContext>, mut plan: channel::Receiver<Plan>) {
    let watcher = match FolderWatcher::start() {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, "run folders cannot be watched; they are looked at every second instead");
            None
        }
    };
    let mut chores = Chores::new(Arc::clone(&context), watcher.clone());
    let mut supervisors =
        Supervisors { context: Arc::clone(&context), watcher, supervised: BTreeMap::new(), tasks: JoinSet::new() };
    let mut retention = std::pin::pin!(retention::clear_leftovers(Arc::clone(&context)));
    let mut foreign = ForeignWork::new(&context);
    let mut settings = context.settings.subscribe();
    loop {
        let wanted = plan.borrow_and_update().clone();
        let again = foreign.end(&wanted).await;
        let again = close_sessions(&context.handle, &wanted).await || again;
        let waiting = supervisors.arrange(&wanted);
        let again = report_waiting(&context.handle, waiting).await || again;
        chores.arrange(&wanted);
        // If a quest is abandoned while no agent works for it, the plan does not change.
        let pause = if again { RETRY_PAUSE } else { chores.look_again() };
        tokio::select! {
            changed = plan.changed() => if changed.is_err() { return },
            // More agents may be allowed to run now. The sender lives as long as the context.
            _ = settings.changed() => {}
            Some(ended) = supervisors.tasks.join_next(), if !supervisors.tasks.is_empty() => supervisors.left(ended),
            Some(ended) = chores.tasks.join_next(), if !chores.tasks.is_empty() => chores.left(ended),
            () = tokio::time::sleep(pause) => {}
            never = &mut retention => match never {},
        }
    }
}

/// The supervisors of all open attempts on this machine.
struct Supervisors {
    context: Arc<RunnerContext>,
    watcher: Option<FolderWatcher>,
    supervised: BTreeMap<AgentId, Supervised>,
    tasks: JoinSet<AttemptId>,
}

struct Supervised {
    of: AttemptId,
    wanted: channel::Sender<DesiredRun>,
}

impl Supervisors {
    /// Makes sure that every desired attempt has a supervisor that knows the desired state, as long as there are places. Returns the
    /// attempts that have to wait.
    fn arrange(&mut self, plan: &Plan) -> Vec<AttemptId> {
        let mut new = Vec::new();
        for (agent, wanted) in plan.runs.iter().filter(|(_, wanted)| wanted.host == self.context.host) {
            let of = AttemptId { agent: *agent, run: wanted.run, attempt: wanted.attempt };
            match self.supervised.get(agent) {
                Some(known) if known.of == of => {
                    known.wanted.send_if_modified(|shown| {
                        let changes = shown != wanted;
                        shown.clone_from(wanted);
                        changes
                    });
                }
                // The supervisor of the previous attempt is ending. Its end leads back to this function.
                Some(_) => {}
                None => new.push((of, wanted.clone())),
            }
        }
        self.admit(new)
    }

    /// Gives supervisors to attempts: to running or stopping attempts first, then to the others in the order of their requests, as long as
    /// there are places. An attempt that an earlier daemon began counts as running.
    fn admit(&mut self, new: Vec<(AttemptId, DesiredRun)>) -> Vec<AttemptId> {
        let world = self.context.handle.view();
        let has_process = |of: &AttemptId, wanted: &DesiredRun| {
            let stops = wanted.state == DesiredState::Stopped;
            let spawned = world.run(of.agent).is_some_and(|run| run.process().is_some());
            stops || spawned || RunFolder::of(&self.context.project, *of).path().exists()
        };
        let (present, mut others): (Vec<_>, Vec<_>) = new.into_iter().partition(|(of, wanted)| has_process(of, wanted));
        others.sort_by_key(|(of, _)| (world.run(of.agent).map(|run| run.requested), of.agent));
        present.into_iter().for_each(|(of, wanted)| self.supervise(of, wanted));
        if others.is_empty() {
            return Vec::new();
        }
        let mut places = Places::new(&world, self.context.settings().max_runs, self.supervised.keys().copied());
        let mut later = Vec::new();
        for (of, wanted) in others {
            match !places.are_taken() && places.take(of.agent) {
                true => self.supervise(of, wanted),
                false => later.push(of),
            }
        }
        // Reported once, not after every change of the plan.
        let untold = |of: &AttemptId| world.run(of.agent).is_some_and(|run| !run.attempt.waits);
        later.into_iter().filter(untold).collect()
    }

    fn supervise(&mut self, of: AttemptId, wanted: DesiredRun) {
        let (sender, receiver) = channel::channel(wanted);
        let work = supervisor::supervise(Arc::clone(&self.context), self.watcher.clone(), of, receiver);
        self.tasks.spawn(async move {
            work.await;
            of
        });
        self.supervised.insert(of.agent, Supervised { of, wanted: sender });
    }

    fn left(&mut self, ended: Result<AttemptId, tokio::task::JoinError>) {
        match ended {
            Ok(of) => {
                self.supervised.remove(&of.agent);
            }
            Err(error) => {
                tracing::error!(%error, "a supervisor failed");
                // It is not known which one failed. The supervisors that still run are kept.
                self.supervised.retain(|_, supervised| !supervised.wanted.is_closed());
            }
        }
    }
}

/// Records that attempts wait for a place. True if something has to be tried again.
async fn report_waiting(handle: &Handle, waiting: Vec<AttemptId>) -> bool {
    let mut again = false;
    for of in waiting {
        match handle.submit(Command::ReportWaiting { of }).await {
            // The state has changed in the meantime. The plan has the new desired state.
            Ok(_) | Err(SubmitError::Refused(_)) => {}
            Err(error) => {
                tracing::warn!(agent = %of.agent, %error, "a wait could not be recorded; trying again");
                again = true;
            }
        }
    }
    again
}

/// Closes the sessions that the plan names. True if something has to be tried again.
async fn close_sessions(handle: &Handle, plan: &Plan) -> bool {
    let mut again = false;
    for session in &plan.close {
        match handle.submit(Command::CloseSession { session: *session }).await {
            Ok(_) => {}
            // Another daemon on the same store has closed the session.
            Err(SubmitError::Refused(refusal)) => tracing::debug!(%session, %refusal, "nothing left to close"),
            Err(error) => {
                tracing::warn!(%session, %error, "a session could not be closed; trying again");
                again = true;
            }
        }
    }
    again
}
