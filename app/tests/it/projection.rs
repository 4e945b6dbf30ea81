//! The loop that keeps files true, with a projection that shows the name of each agent and keeps the fields of other programs.

use crate::support::place::Place;
use crate::support::runtime;
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::engine::{Engine, EngineOptions, Handle};
use hatchery::projection::{self, Projection, Projector, Rendered};
use hatchery::shared_file::{Durability, FolderLock};
use hatchery_core::agent::Birth;
use hatchery_core::{AgentId, Command, Event, EventId, Record, World};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, io};
use tempfile::TempDir;

/// Longer than any write takes, shorter than the patience of the test runner.
const PATIENCE: Duration = Duration::from_secs(20);

struct Names {
    folder: PathBuf,
    /// How often another program still counts up in a file that is about to be written.
    edits: AtomicU32,
}

impl Names {
    fn new(folder: &Path, edits: u32) -> Self {
        Self { folder: folder.to_owned(), edits: AtomicU32::new(edits) }
    }

    fn edit(&self, agent: AgentId, mut fields: Map<String, Value>) {
        if self.edits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |edits| edits.checked_sub(1)).is_ok() {
            fields.insert("count".into(), json!(fields["count"].as_u64().unwrap() + 1));
            fs::write(self.path(&agent), Value::Object(fields).to_string()).unwrap();
        }
    }
}

impl Projection for Names {
    type Key = AgentId;

    const NAME: &'static str = "name.json";
    const DURABILITY: Durability = Durability::Synced;

    fn keys(&self, world: &World) -> Vec<AgentId> {
        world.agents().map(|(id, _)| id).collect()
    }

    fn changed_by(&self, _: &World, record: &Record) -> Option<AgentId> {
        match record.event {
            Event::Agent { agent, .. } => Some(agent),
            _ => None,
        }
    }

    fn path(&self, agent: &AgentId) -> PathBuf {
        self.folder.join(agent.to_string()).join("name.json")
    }

    fn render(&self, world: &World, agent: &AgentId, found: Option<&[u8]>) -> io::Result<Rendered> {
        let name = world.agent(*agent).and_then(|agent| agent.name.clone());
        let mut fields: Map<String, Value> = match found.map(serde_json::from_slice).transpose() {
            Ok(fields) => fields.unwrap_or_default(),
            Err(error) => {
                let content = json!({ "name": name }).to_string().into_bytes();
                return Ok(Rendered::SetAside { why: error.to_string(), content });
            }
        };
        self.edit(*agent, fields.clone());
        match fields.insert("name".into(), json!(name)) {
            Some(before) if before == json!(name) => Ok(Rendered::Unchanged),
            _ => Ok(Rendered::Write(Value::Object(fields).to_string().into_bytes())),
        }
    }
}

struct Scene {
    _place: Place,
    folder: TempDir,
    engine: Engine,
    root: AgentId,
}

impl Scene {
    fn new() -> Self {
        let place = Place::sqlite();
        let engine =
            Engine::start(place.open(), Arc::new(SystemClock), EngineOptions::default(), runtime().clone()).unwrap();
        let root = new_agent_id();
        let scene = Self { _place: place, folder: TempDir::new().unwrap(), engine, root };
        scene.submit(Command::FoundRegistry { agent: root, name: Some("root".into()) });
        scene
    }

    fn handle(&self) -> &Handle {
        &self.engine.handle
    }

    fn submit(&self, command: Command) {
        runtime().block_on(self.handle().submit(command)).unwrap();
    }

    fn rename(&self, name: &str) {
        self.submit(Command::RenameAgent { agent: self.root, name: Some(name.into()) });
    }

    fn start(&self) -> Projector<AgentId> {
        let _inside = runtime().enter();
        Projector::start(Names::new(self.folder.path(), 0), self.handle().clone())
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(self.root.to_string()).join("name.json")
    }
}

/// Waits until the files show an event.
fn shows(projector: &Projector<AgentId>, event: EventId) {
    let mut progress = projector.progress();
    let shown = async { progress.wait_for(|progress| progress.all_show(event)).await.map(drop) };
    runtime().block_on(async { tokio::time::timeout(PATIENCE, shown).await }).unwrap().unwrap();
}

/// Waits until a file holds something. For what no event announces.
fn holds(path: &Path, expected: &Value) {
    let held = async {
        while json_in(path).as_ref() != Some(expected) {
            tokio::task::yield_now().await;
        }
    };
    let waited = runtime().block_on(async { tokio::time::timeout(PATIENCE, held).await });
    assert!(waited.is_ok(), "{} holds {:?}", path.display(), json_in(path));
}

fn json_in(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[test]
fn a_start_makes_files_true_that_were_left_behind() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path().parent().unwrap()).unwrap();
    fs::write(scene.path(), r#"{"name":"old","theirs":[1]}"#).unwrap();
    let projector = scene.start();
    shows(&projector, scene.handle().head());
    assert_eq!(json_in(&scene.path()), Some(json!({ "name": "root", "theirs": [1] })));
}

#[test]
fn the_last_state_of_a_burst_is_written() {
    let scene = Scene::new();
    let projector = scene.start();
    for number in 0..200 {
        scene.rename(&number.to_string());
    }
    let child = new_agent_id();
    scene.submit(Command::Fork { parent: scene.root, at: None, birth: Birth::of(child) });
    shows(&projector, scene.handle().head());
    assert_eq!(json_in(&scene.path()), Some(json!({ "name": "199" })));
    assert!(scene.folder.path().join(child.to_string()).join("name.json").exists());
}

#[test]
fn what_another_program_erased_is_put_back_and_what_it_added_is_kept() {
    let scene = Scene::new();
    let projector = scene.start();
    shows(&projector, scene.handle().head());
    fs::write(scene.path(), r#"{"theirs":true}"#).unwrap();
    runtime().block_on(projector.recheck(scene.root));
    holds(&scene.path(), &json!({ "name": "root", "theirs": true }));
}

#[test]
fn a_file_that_cannot_be_understood_is_kept_beside_the_new_one() {
    let scene = Scene::new();
    let projector = scene.start();
    shows(&projector, scene.handle().head());
    fs::write(scene.path(), "{half").unwrap();
    scene.rename("new");
    shows(&projector, scene.handle().head());
    assert_eq!(json_in(&scene.path()), Some(json!({ "name": "new" })));
    let aside = scene.path().with_file_name("name.json.bad-1");
    assert_eq!(fs::read(aside).unwrap(), b"{half");
}

#[test]
fn what_another_program_writes_during_a_write_is_kept() {
    let scene = Scene::new();
    let write = |edits| {
        fs::create_dir_all(scene.path().parent().unwrap()).unwrap();
        fs::write(scene.path(), r#"{"count":0}"#).unwrap();
        let names = Names::new(scene.folder.path(), edits);
        projection::write(&names, &scene.handle().view(), &scene.root, &scene.path()).unwrap();
        json_in(&scene.path()).unwrap()
    };
    assert_eq!(write(3), json!({ "count": 3, "name": "root" }));
    assert_eq!(write(u32::MAX)["name"], "root", "a program that never pauses does not stop the file");
}

#[test]
fn a_write_that_failed_is_tried_again_without_another_event() {
    let scene = Scene::new();
    let folder = scene.path().parent().unwrap().to_owned();
    fs::write(&folder, "a file where the folder should be").unwrap();
    let projector = scene.start();
    scene.rename("later");
    fs::remove_file(&folder).unwrap();
    shows(&projector, scene.handle().head());
    assert_eq!(json_in(&scene.path()), Some(json!({ "name": "later" })));
}

#[test]
fn a_writer_with_the_lock_is_waited_for() {
    let scene = Scene::new();
    let projector = scene.start();
    shows(&projector, scene.handle().head());
    let lock = FolderLock::acquire(scene.path().parent().unwrap()).unwrap();
    scene.rename("after");
    let found = json_in(&scene.path()).unwrap();
    assert_eq!(found, json!({ "name": "root" }), "the lock is held");
    fs::write(scene.path(), r#"{"name":"root","theirs":1}"#).unwrap();
    drop(lock);
    shows(&projector, scene.handle().head());
    assert_eq!(json_in(&scene.path()), Some(json!({ "name": "after", "theirs": 1 })), "the other's write is kept");
}

#[test]
fn the_last_state_is_written_before_the_end() {
    let scene = Scene::new();
    let projector = scene.start();
    for number in 0..50 {
        scene.rename(&number.to_string());
    }
    let path = scene.path();
    let Scene { engine, folder, .. } = scene;
    engine.handle.stop();
    engine.join().unwrap();
    runtime().block_on(projector.finish());
    assert_eq!(json_in(&path), Some(json!({ "name": "49" })));
    drop(folder);
}
