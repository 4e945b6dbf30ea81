//! An engine with a context in this process, whose agents are real processes.

use crate::raw;
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::config::Config;
use hatchery::engine::{Engine, EngineOptions, Handle};
use hatchery::project::Project;
use hatchery::runner::{self, RunnerContext};
use hatchery::store::{self, StoreUrl};
use hatchery_core::agent::Birth;
use hatchery_core::run::{Run, RunSpec};
use hatchery_core::{AgentId, Command, World};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_hatchery");

pub struct Shop {
    pub runtime: Runtime,
    pub handle: Handle,
    pub root: AgentId,
    context: Arc<RunnerContext>,
    engine: Option<Engine>,
    pub folder: TempDir,
}

impl Shop {
    pub fn open() -> Self {
        let folder = raw::folder();
        std::fs::create_dir(folder.path().join(".hatchery")).unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let runtime = raw::runtime();
        let url = StoreUrl::Sqlite(folder.path().join(".hatchery/hatchery.db"));
        let store = store::open(&url, runtime.handle()).unwrap();
        let engine =
            Engine::start(store, Arc::new(SystemClock), EngineOptions::default(), runtime.handle().clone()).unwrap();
        let handle = engine.handle.clone();
        let root = new_agent_id();
        runtime.block_on(handle.submit(Command::FoundRegistry { agent: root, name: None })).unwrap();
        let settings = Config::defaults(&project).unwrap();
        let context = RunnerContext::new(&project, &settings, handle.clone(), Path::new(PROGRAM)).unwrap();
        Self { runtime, handle, root, context: Arc::new(context), engine: Some(engine), folder }
    }

    /// A supervisor of all, until it is aborted.
    pub fn supervise(&self) -> JoinHandle<()> {
        self.runtime.spawn(runner::run(Arc::clone(&self.context), self.handle.plan()))
    }

    pub fn script(&self, steps: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{}.jsonl", new_agent_id()));
        std::fs::write(&path, steps).unwrap();
        path
    }

    /// Asks for an agent that plays a script.
    pub fn ask(&self, script: &Path) -> AgentId {
        let agent = new_agent_id();
        let spec = self.spec(script);
        let birth = Birth { prompt: Some("play".into()), run: Some(Box::new(spec)), ..Birth::of(agent) };
        self.runtime.block_on(self.handle.submit(Command::Fork { parent: self.root, at: None, birth })).unwrap();
        agent
    }

    /// How an agent that plays a script is run.
    pub fn spec(&self, script: &Path) -> RunSpec {
        RunSpec {
            harness: "scripted".into(),
            host: self.context.host.clone(),
            folder: None,
            model: None,
            script: Some(script.display().to_string()),
            stays: false,
            stall_ms: 600_000,
            kill_stuck: false,
            retries: 0,
            parks: false,
            signals: false,
            permissions: None,
        }
    }

    /// Waits until something is so.
    pub fn wait(&self, is_so: impl Fn(&World) -> bool) {
        let mut heads = self.handle.heads();
        self.runtime.block_on(async {
            loop {
                heads.borrow_and_update();
                if is_so(&self.handle.view()) {
                    return;
                }
                heads.changed().await.unwrap();
            }
        });
    }

    pub fn wait_for_end(&self, agents: &[AgentId]) {
        self.wait(|world| agents.iter().all(|agent| world.run(*agent).is_some_and(|run: &Run| !run.is_open())));
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(engine) = self.engine.take() {
            engine.join().unwrap();
        }
    }
}
