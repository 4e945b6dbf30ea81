//! How fast the status protocol is. Each figure stands beside its limit, measured in the same run. Never a test: a figure depends on
//! the machine.
//!
//! `cargo bench --bench status [-- FILTER…] [--quick]` prints one table. A filter is the beginning of a group's name.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has nothing better to do than stop")]

#[path = "../foundation/daemon.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod daemon;
#[path = "../foundation/effort.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod effort;
#[path = "../foundation/raw.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod raw;
#[path = "../foundation/table.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod table;
#[path = "../foundation/wire.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod wire;

use daemon::Daemon;
use effort::{Effort, Group};
use hatchery::project::Project;
use hatchery::status_door::StatusDoor;
use hatchery_core::status::{Path as StatusPath, StatusChange};
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use table::{Goal, Pairs, Table, Unit, in_turns};

const GROUPS: [(&str, Group); 4] = [("line", line), ("files", files), ("daemon", through_daemon), ("live", live)];
const WRITERS: usize = 8;
/// The changes of a burst, and the time between two of them: less than the pace of the stream.
const BURST: usize = 10;
const BURST_GAP: Duration = Duration::from_millis(7);
/// How many processes one turn starts.
const STARTS: usize = 20;
/// What a project's state looks like in the middle of a build.
const STATE: &str = include_str!("../../../core/tests/status/example.json");

fn main() {
    effort::measure(&GROUPS);
}

/// A project with a state.
fn project() -> tempfile::TempDir {
    let folder = raw::folder();
    fs::create_dir_all(folder.path().join(".fctry")).unwrap();
    fs::create_dir_all(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(folder.path().join(".fctry/state.json"), STATE).unwrap();
    folder
}

/// The whole process of the status line, against one that does nothing.
fn line(effort: Effort, table: &mut Table) {
    let folder = project();
    let session = serde_json::json!({ "cwd": folder.path(), "context_window": { "used_percentage": 40 } }).to_string();
    let ours = || spawned(env!("CARGO_BIN_EXE_hatchery"), &["statusline"], &session, folder.path());
    let raw = || spawned("/bin/true", &[], "", folder.path());
    let pairs = in_turns(effort.rounds(), ours, raw);
    table.add("status line, whole process, against /bin/true", Unit::Micros, pairs, Goal::AtMost(2.0));
}

/// The median of some starts, in microseconds.
fn spawned(program: &str, arguments: &[&str], input: &str, folder: &Path) -> f64 {
    let mut times: Vec<f64> = (0..STARTS)
        .map(|_| {
            let start = Instant::now();
            let mut command = Command::new(program);
            command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null());
            let mut child = command.spawn().unwrap();
            // A program that reads nothing may be gone already.
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap_or_default();
            assert!(child.wait().unwrap().success());
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[STARTS / 2]
}

/// Increments without a daemon, as `hatchery state incr` makes them, against the bare loop.
fn files(effort: Effort, table: &mut Table) {
    let folder = project();
    let project = Project::find(folder.path()).unwrap();
    // A project in which Hatchery is used: a command also looks for a daemon, for a log that the files must follow, and notes what it wrote.
    project.prepare().unwrap();
    let status = StatusDoor::of(&project);
    let bare = Bare::new(folder.path());
    let pairs = in_turns(
        effort.rounds(),
        || rate(effort.turn(), || increment(&status)),
        || rate(effort.turn(), || bare.increment()),
    );
    let what = format!("locked durable increments, {WRITERS} writers, no daemon, against the bare loop");
    table.add(what, Unit::PerSecond, pairs, Goal::AtLeast(0.8));
}

/// Increments through a daemon, against the bare loop: answered when they are durable, and answered when the file shows them, too.
fn through_daemon(effort: Effort, table: &mut Table) {
    let folder = project();
    let runtime = raw::runtime();
    let daemon = Daemon::start(folder.path());
    let bare = Bare::new(folder.path());
    let turn = effort.turn();
    for (path, until, goal) in [
        ("/api/state?wait=log", "durable in the log", Goal::AtLeast(3.0)),
        ("/api/state", "and shown in the file", Goal::Open),
    ] {
        let request = daemon.post(path, r#"{"increment":{"path":"counter.n"}}"#);
        let client =
            || Poster { client: runtime.block_on(wire::Client::connect(daemon.address)), request: request.clone() };
        let mut ours: Vec<Poster> = (0..WRITERS).map(|_| client()).collect();
        let pairs =
            in_turns(effort.rounds(), || raw::rate(&runtime, &mut ours, turn), || rate(turn, || bare.increment()));
        let what = format!("the same through the daemon, {WRITERS} clients, {until}, against the bare loop");
        table.add(what, Unit::PerSecond, pairs, goal);
    }
}

struct Poster {
    client: wire::Client,
    request: Vec<u8>,
}

impl raw::Producer for Poster {
    async fn append(&mut self) {
        self.client.ask(&self.request).await;
    }
}

/// A change of the file by another program, until its event is on the stream: one after a silence, and the last one of a burst, which waits
/// for the pace of the stream.
fn live(effort: Effort, table: &mut Table) {
    let folder = project();
    let daemon = Daemon::start(folder.path());
    let mut stream = TcpStream::connect(daemon.address).unwrap();
    let head = daemon.head("GET", "/api/status/live");
    stream.write_all(format!("{head}accept: text/event-stream\r\n\r\n").as_bytes()).unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 16 * 1024];
    let mut until = |mark: &str| {
        seen.clear();
        while !seen.contains(mark) {
            let count = stream.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "the stream ended");
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    until("event:inbox");
    let file = folder.path().join(".fctry/state.json");
    for (changes, what) in [
        (1, "a change in the file to its SSE event, against 20 ms"),
        (BURST, "the same, the last of ten changes that come 7 ms apart, against 20 ms"),
    ] {
        let rounds = effort.pick(10, 100);
        let times: Vec<f64> = (0..rounds)
            .map(|round| {
                // Longer than the pace of the stream, so that each round begins with a change after a silence.
                std::thread::sleep(Duration::from_millis(120));
                let mut start = Instant::now();
                for change in 1..=changes {
                    if change > 1 {
                        std::thread::sleep(BURST_GAP);
                    }
                    start = Instant::now();
                    let section = format!("#round-{changes}-{round}-{change}");
                    fs::write(&file, format!("{{\"activeSection\":\"{section}\"}}")).unwrap();
                }
                until(&format!("#round-{changes}-{round}-{changes}\""));
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        table.add(what, Unit::Millis, Pairs::against(20.0, times), Goal::AtMost(1.0));
    }
}

/// Changes a second that the writers reach together.
fn rate(turn: Duration, change: impl Fn() + Sync) -> f64 {
    let start = Instant::now();
    let count = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                while start.elapsed() < turn {
                    change();
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    f64::from(count.into_inner()) / start.elapsed().as_secs_f64()
}

fn increment(status: &StatusDoor) {
    let change = StatusChange::Increment { path: StatusPath::field("counter").below("n"), by: 1 };
    assert!(status.change(&change).unwrap().in_file);
}

/// The least that a durable increment can be: lock, read, write, sync, rename.
struct Bare {
    folder: PathBuf,
    number: AtomicU32,
}

impl Bare {
    fn new(project: &Path) -> Self {
        let folder = project.join("bare");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("state.json"), STATE).unwrap();
        Self { folder, number: AtomicU32::new(0) }
    }

    fn increment(&self) {
        let lock = File::open(&self.folder).unwrap();
        rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
        let path = self.folder.join("state.json");
        let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        state["n"] = (state["n"].as_u64().unwrap_or(0) + 1).into();
        let new = self.folder.join(format!("new-{}", self.number.fetch_add(1, Ordering::Relaxed)));
        let mut file = File::create(&new).unwrap();
        file.write_all(state.to_string().as_bytes()).unwrap();
        file.sync_all().unwrap();
        fs::rename(&new, &path).unwrap();
    }
}
