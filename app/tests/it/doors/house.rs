//! A server in this process, with its engine and its own store: everything between the socket and the file, without a
//! second program. As in the daemon, agent 0 is there from the start: it is event 1.

use super::raw::{Line, Parts, Reply};
use crate::support::daemon::{PATIENCE, PROGRAM};
use crate::support::{runtime, transcripts};
use hatchery::clock::SystemClock;
use hatchery::config::{Auth, Config, Flags};
use hatchery::engine::{Engine, EngineOptions, Handle};
use hatchery::http::{ApiContext, Guard, Limits, Trials, router, serve};
use hatchery::live_settings::LiveSettings;
use hatchery::project::Project;
use hatchery::runner::{self, RunnerContext};
use hatchery::status_files::FilesShown;
use hatchery::store::{self, StoreUrl};
use hatchery::transcripts::Transcripts;
use hatchery::{clock, fsck, team_outbox};
use hatchery_core::Command;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

pub const TOKEN: &str = "a-token-that-nobody-guesses";

pub struct House {
    pub address: SocketAddr,
    pub handle: Handle,
    pub settings: Arc<LiveSettings>,
    /// What a client that may come in sends along.
    pub host: String,
    pub bearer: String,
    closing: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
    runner: Option<JoinHandle<()>>,
    engine: Option<Engine>,
    folder: TempDir,
}

/// How a house is kept. The defaults are those of the daemon.
pub struct Rules {
    pub auth: Auth,
    pub limits: Limits,
    pub heartbeat: Duration,
    pub request_timeout: Duration,
    pub max_body_bytes: usize,
    /// Without it what is planned stays undone.
    pub runner: bool,
    /// Written into `hatchery.toml` while the daemon starts, after it has read the file.
    pub edited: &'static str,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            auth: Auth::Token,
            limits: Limits::default(),
            heartbeat: Duration::from_secs(15),
            request_timeout: Duration::from_secs(30),
            max_body_bytes: 8 << 20,
            runner: true,
            edited: "",
        }
    }
}

impl House {
    pub fn open() -> Self {
        Self::with(Rules::default())
    }

    pub fn with(rules: Rules) -> Self {
        let folder = TempDir::with_prefix("hatchery").unwrap();
        let url = StoreUrl::Sqlite(folder.path().join("log.db"));
        let store = store::open(&url, runtime()).unwrap();
        let engine = Engine::start(store, Arc::new(SystemClock), EngineOptions::default(), runtime().clone()).unwrap();
        let handle = engine.handle.clone();
        let root = Command::FoundRegistry { agent: clock::new_agent_id(), name: Some("root".into()) };
        runtime().block_on(handle.submit(root)).unwrap();
        let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (closing, on_closing) = watch::channel(false);
        std::fs::create_dir(folder.path().join(".hatchery")).unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let config = Config::defaults(&project).unwrap();
        if !rules.edited.is_empty() {
            std::fs::write(project.config_file(), rules.edited).unwrap();
        }
        let mut workshop = RunnerContext::new(&project, &config, handle.clone(), Path::new(PROGRAM)).unwrap();
        // Nobody's home is looked into, except one that is here.
        let home = [("HOME".to_owned(), folder.path().display().to_string())];
        workshop.transcripts = Transcripts::new(project.root(), &home.into());
        let workshop = Arc::new(workshop);
        let settings = LiveSettings::new(&project, Flags::default(), Arc::clone(&workshop), config).unwrap();
        let settings = Arc::new(settings);
        let api = Arc::new(ApiContext {
            handle: handle.clone(),
            settings: Arc::clone(&settings),
            calls: Arc::clone(&workshop.calls),
            live: std::sync::Arc::default(),
            trials: Trials::default(),
            status_files: FilesShown::new(&project),
            outbox: team_outbox::open(&project).0,
            guard: Guard::new(rules.auth, TOKEN.into(), address, Vec::new()),
            project: "/project".into(),
            store: url.to_string(),
            log_head: None,
            started: Instant::now(),
            heartbeat: rules.heartbeat,
            request_timeout: rules.request_timeout,
            max_body_bytes: rules.max_body_bytes,
            imports: Arc::new(Semaphore::new(1)),
            closing: on_closing.clone(),
        });
        let runner = rules.runner.then(|| runtime().spawn(runner::run(workshop, handle.plan())));
        let server = runtime().spawn(serve(listener, router(&api), rules.limits, on_closing));
        Self {
            address,
            handle,
            settings,
            host: address.to_string(),
            bearer: format!("Bearer {TOKEN}"),
            closing,
            server: Some(server),
            runner,
            engine: Some(engine),
            folder,
        }
    }

    /// As if somebody had held a conversation here in the Claude CLI.
    pub fn converse(&self, session: &str) {
        let projects = self.folder.path().join(".claude/projects");
        transcripts::write(&projects, &self.folder.path().canonicalize().unwrap(), session, 2);
    }

    pub fn line(&self) -> Line {
        Line::to(self.address)
    }

    /// The headers of somebody who may come in and sends JSON.
    pub fn welcome(&self) -> [(&str, &str); 3] {
        [("host", &self.host), ("authorization", &self.bearer), ("content-type", "application/json")]
    }

    /// Asks on a connection of its own.
    pub fn ask(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        self.line().ask(method, path, Parts { headers: &self.welcome(), body })
    }

    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, body.to_string().as_bytes())
    }

    /// Does it, or fails the test. Gives the id of whom it was about.
    pub fn make(&self, path: &str, body: &Value) -> String {
        let reply = self.post(path, body);
        assert!((200..300).contains(&reply.status), "{path} {body}: {reply:?}");
        reply.id()
    }

    pub fn agent(&self) -> String {
        self.make("/api/agents", &json!({}))
    }

    /// The last event.
    pub fn head(&self) -> u64 {
        self.get("/api/status").json()["head"].as_u64().unwrap()
    }

    /// New agents until the log is so long: event 1 is agent 0, and each of them is one event more.
    pub fn fill(&self, length: u64) {
        while self.head() < length {
            self.agent();
        }
    }

    /// Tells everybody to go. Gives when the last connection has ended.
    pub fn close(&mut self) {
        self.closing.send_replace(true);
        if let Some(server) = self.server.take() {
            runtime().block_on(async { tokio::time::timeout(PATIENCE, server).await }).unwrap().unwrap();
        }
    }

    /// Everything on the log can have happened, and what was derived from it agrees.
    pub fn assert_sound(&self) {
        let findings = fsck::check(self.handle.store().as_ref(), false, &mut |_| {}).unwrap();
        assert!(findings.problems.is_empty(), "{findings:?}");
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.closing.send_replace(true);
        for task in self.server.take().into_iter().chain(self.runner.take()) {
            task.abort();
        }
        self.handle.stop();
        let ended = self.engine.take().map(Engine::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}
