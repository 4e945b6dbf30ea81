//! The daemon of a project: how it starts, which tasks it has, and how it ends.

use crate::clock::{self, SystemClock};
use crate::config::{Auth, Config, Flags};
use crate::data_guard::DataGuard;
use crate::engine::{self, Engine, EngineError, SubmitError};
use crate::git_shield;
use crate::glance;
use crate::http::{self, ApiContext, Guard, Limits, Trials};
use crate::human_inbox;
use crate::live_settings::LiveSettings;
use crate::log_head::LogHead;
use crate::notifications;
use crate::project::{DaemonFile, Lock, Project};
use crate::projects;
use crate::quest_file;
use crate::report::{Code, Context as _, Report};
use crate::run_folder;
use crate::runner::{self, RunnerContext};
use crate::status_files::{FilesShown, StatusFiles};
use crate::store::{self, Store, StoreError};
use crate::team_outbox::{self, OutboxKeeper};
use crate::trust;
use crate::version;
use hatchery_core::{Command, Refusal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};

/// A daemon that is ready to serve.
#[derive(Debug)]
pub struct Daemon {
    pub url: String,
    /// Where it listens, if other machines may reach it there.
    pub exposed: Option<SocketAddr>,
    pub token: String,
    project: Project,
    engine: Engine,
    listener: TcpListener,
    api: Arc<ApiContext>,
    closing: watch::Sender<bool>,
    limits: Limits,
    context: Arc<RunnerContext>,
    guard: DataGuard,
    keeper: OutboxKeeper,
    lock: Arc<Lock>,
}

/// Hears the signals that ask for the end, from the moment it is made: one that comes before the daemon serves counts.
#[derive(Debug)]
pub struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl EndSignals {
    pub fn listen() -> Result<Self, Report> {
        let hear = |kind| signal(kind).context("signals cannot be received");
        Ok(Self { interrupt: hear(SignalKind::interrupt())?, terminate: hear(SignalKind::terminate())? })
    }

    /// Returns when the end is asked for.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

impl Daemon {
    /// Binds the port, opens the store and restores the world. A log that has become shorter is refused, unless the loss is accepted.
    /// The caller keeps the lock, too, as long as anything of the daemon runs.
    pub async fn prepare(
        project: Project,
        lock: Arc<Lock>,
        flags: Flags,
        config: Config,
        accept_loss: bool,
    ) -> Result<Self, Report> {
        let started = Instant::now();
        // A killed daemon left its announcement behind, and its process id may belong to another process by now.
        project.retract();
        git_shield::refuse_tracked(&project)?;
        trust::check(&project, &config.file)?;
        project.begin_database(&config.store)?;
        refuse_newer_runs(&project)?;
        git_shield::raise(&project);
        let token = project.token()?;
        let listener = TcpListener::bind(config.listen)
            .await
            .context(format_args!("the daemon cannot listen on {}", config.listen))
            .map_err(|report| {
                report.hint("another program may have this port: choose one with --port, or leave it out")
            })?;
        let address = listener.local_addr().context("the port is not known")?;
        let head = LogHead::new(&project, &config.store);
        let engine = start_engine(&config, head.clone(), accept_loss).await?;
        // Before anything is acknowledged: now the files of a new database are there, too.
        project.begin_database(&config.store)?;
        found_registry(&engine).await?;
        if let Err(error) = projects::record(&project) {
            tracing::warn!(%error, "the project cannot be listed for `hatchery projects`");
        }
        let program = std::env::current_exe().context("this program does not know where it is")?;
        let context = Arc::new(RunnerContext::new(&project, &config, engine.handle.clone(), &program)?);
        let settings = Arc::new(LiveSettings::new(&project, flags, Arc::clone(&context), config.clone())?);
        let (closing, on_closing) = watch::channel(false);
        let (outbox, keeper) = team_outbox::open(&project);
        let api = Arc::new(ApiContext {
            handle: engine.handle.clone(),
            guard: Guard::new(config.auth, token.clone(), address, config.allowed_hosts.clone()),
            settings,
            calls: Arc::clone(&context.calls),
            live: Arc::clone(&context.live),
            trials: Trials::default(),
            status_files: FilesShown::new(&project),
            outbox,
            project: project.root().display().to_string(),
            store: config.store.to_string(),
            log_head: Some(head.clone()),
            started,
            heartbeat: config.heartbeat,
            request_timeout: config.request_timeout,
            max_body_bytes: config.max_body_bytes,
            imports: Arc::new(Semaphore::new(1)),
            closing: on_closing,
        });
        // Nothing can be reached by the address that means all addresses.
        let reached = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())),
            IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::from((Ipv6Addr::LOCALHOST, address.port())),
            IpAddr::V4(_) | IpAddr::V6(_) => address,
        };
        let url = format!("http://{reached}");
        let exposed = Some(address).filter(|address| !address.ip().is_loopback());
        if let Some(address) = exposed {
            tracing::warn!(%address, "other machines may reach this daemon, and its token goes over the network without encryption");
        }
        let version = version::version().into();
        project.announce(&lock, &DaemonFile { pid: std::process::id(), url: url.clone(), version })?;
        tracing::info!(%url, store = %config.store, head = engine.handle.head().0, ready_ms = started.elapsed().as_millis(), "ready");
        let limits = Limits { connections: config.max_connections, ..Limits::default() };
        let guard = DataGuard::new(&project, engine.handle.clone(), &lock, head);
        Ok(Self { url, exposed, token, project, engine, listener, api, closing, limits, context, guard, keeper, lock })
    }

    /// What to open in a browser.
    pub fn link(&self, auth: Auth) -> String {
        match auth {
            Auth::Token => format!("{}/?token={}", self.url, self.token),
            Auth::None => format!("{}/", self.url),
        }
    }

    /// Serves until a signal asks for the end, then ends in order: no new requests, the open ones finished, the log closed.
    pub async fn serve(self, mut farewell: EndSignals) -> Result<(), Report> {
        let handle = self.engine.handle.clone();
        let runner = tokio::spawn(runner::run(self.context, handle.plan()));
        let files = quest_file::keep(self.project.clone(), handle.clone());
        let glances = glance::keep(self.project.clone(), handle.clone());
        // What was written while no daemon ran is taken in before a request can change it.
        let status_files =
            StatusFiles::keep(&self.project, &self.api.store, handle.clone(), &self.api.status_files).await;
        let notices =
            tokio::spawn(notifications::run(self.api.settings.notify(), self.project.clone(), handle.clone()));
        // Before there are new ones.
        let mut keeper = self.keeper;
        let seats = self.api.settings.defaults().seats.clone();
        keeper.take_left(&seats, &handle).await;
        let outbox = tokio::spawn(keeper.keep(seats.clone(), handle.clone(), self.closing.subscribe()));
        let closing = self.closing.subscribe();
        let inboxes = tokio::spawn(human_inbox::keep_reading(seats, handle.clone(), self.closing.subscribe()));
        let settings = tokio::spawn(Arc::clone(&self.api.settings).keep(self.closing.subscribe()));
        let server = tokio::spawn(http::serve(self.listener, http::router(&self.api), self.limits, closing));
        let mut engine = tokio::task::spawn_blocking(|| self.engine.join());
        let mut guard = tokio::spawn(self.guard.clone().watch());
        let ended = tokio::select! {
            () = farewell.asked() => None,
            ended = &mut engine => Some(ended),
            // Nothing can be recorded, so nothing may be supervised. What was recorded can still be read.
            _ = &mut guard => {
                runner.abort();
                tokio::select! {
                    () = farewell.asked() => None,
                    ended = &mut engine => Some(ended),
                }
            }
        };
        guard.abort();
        tracing::info!("shutting down");
        self.lock.note_end();
        self.closing.send_replace(true);
        server.await.context("the server did not end well")?;
        runner.abort();
        outbox.await.context("the keeper of messages to the team did not end well")?;
        inboxes.await.context("the reader of team inboxes did not end well")?;
        settings.await.context("the reader of the settings did not end well")?;
        notices.abort();
        handle.stop();
        let ended = match ended {
            Some(ended) => ended,
            None => engine.await,
        };
        files.finish().await;
        status_files.finish().await;
        glances.finish().await;
        if self.lock.lost().is_none() {
            self.guard.remember_at_end().await;
        }
        self.project.retract_own();
        ended.context("the engine did not end well")?.context("the engine stopped")
    }
}

async fn start_engine(config: &Config, head: LogHead, accept_loss: bool) -> Result<Engine, Report> {
    let runtime = tokio::runtime::Handle::current();
    let url = config.store.clone();
    let options = engine::EngineOptions { snapshot_every: config.snapshot_every, ..engine::EngineOptions::default() };
    let start = tokio::task::spawn_blocking(move || {
        let store = store::open(&url, &runtime).map_err(|error| explain(error.into()))?;
        refuse_loss(&head, store.as_ref(), accept_loss)?;
        Engine::start(store, Arc::new(SystemClock), options, runtime).map_err(explain)
    });
    start.await.context("the engine did not start")?
}

/// Refuses a log that has become shorter or was replaced, unless the user accepts the loss: the daemon would give out ids a second time.
fn refuse_loss(head: &LogHead, store: &dyn Store, accept_loss: bool) -> Result<(), Report> {
    match head.compare(store).map_err(|error| explain(error.into()))? {
        None => Ok(()),
        Some(loss) if accept_loss => {
            tracing::warn!(%loss, "the loss is accepted");
            head.forget().context("what is remembered of the log cannot be written")
        }
        Some(loss) => Err(Report::new(Code::Unreachable, loss).hint(
            "put the missing files back, or import an export; `hatchery up --accept-loss` continues with the events that are left, \
             and uses the lost ids again",
        )),
    }
}

/// A daemon that cannot talk to running agents must not begin: it would take them for dead and start others.
fn refuse_newer_runs(project: &Project) -> Result<(), Report> {
    match run_folder::newer(project).context("the folders of the runs cannot be looked at")? {
        None => Ok(()),
        Some((of, format)) => {
            let message = format!(
                "run {} of agent {} was started by a newer Hatchery (format {format} of the run folder; this one knows {})",
                of.run,
                of.agent,
                run_folder::FORMAT
            );
            Err(Report::new(Code::Unreachable, message)
                .hint("start the newer Hatchery, which continues the run; this version has changed nothing"))
        }
    }
}

/// Creates agent 0 at the first start.
async fn found_registry(engine: &Engine) -> Result<(), Report> {
    if engine.handle.view().root().is_some() {
        return Ok(());
    }
    let root = Command::FoundRegistry { agent: clock::new_agent_id(), name: Some("root".into()) };
    match engine.handle.submit(root).await {
        Ok(_) | Err(SubmitError::Refused(Refusal::RootExists(_))) => Ok(()),
        Err(error) => Err(Report::new(Code::Unreachable, error)),
    }
}

/// What to do about a store that does not open.
pub fn explain(error: EngineError) -> Report {
    let hint = match &error {
        EngineError::Store(StoreError::Unavailable(_)) => "is the database running, and may it be reached from here?",
        EngineError::Store(StoreError::Untrusted(_)) => {
            "name the file with its authority's certificate in the store's URL: sslrootcert=/PATH/TO/CA.pem"
        }
        EngineError::Store(StoreError::Full(_)) => "free some space and start again; nothing is lost",
        EngineError::Store(StoreError::Gone(_)) => "put the files back and start again",
        EngineError::Store(StoreError::ReadOnly(_)) => "make the folder and the files in it writable",
        EngineError::Store(StoreError::NewerSchema { .. }) => {
            "install the newer Hatchery; this one has changed nothing"
        }
        // Its checksum is right, so it is as it was written.
        EngineError::Unreadable(_) => {
            "a newer Hatchery has probably written it: install that one; this one has changed nothing"
        }
        EngineError::Store(StoreError::Damaged(_)) | EngineError::Impossible(_) => {
            "`hatchery fsck` says more; keep a copy of the files, then import an export or restore a backup"
        }
        EngineError::Store(_) | EngineError::Encode(_) | EngineError::Thread(_) => {
            "`hatchery doctor` looks at what is needed"
        }
    };
    Report::new(Code::Unreachable, error).hint(hint)
}
