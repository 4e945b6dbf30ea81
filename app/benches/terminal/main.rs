//! How fast the terminal is: the real `hatchery tui` in a pseudo-terminal. Never a test: a figure depends on the machine.
//!
//! `cargo bench --bench terminal [-- FILTER…] [--quick]` prints one table. A filter is the beginning of a group's name.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has nothing better to do than stop")]

#[path = "../foundation/daemon.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod daemon;
#[path = "../foundation/effort.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod effort;
mod pty;
#[path = "../foundation/raw.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod raw;
#[path = "../foundation/table.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod table;
#[path = "../processes/tree.rs"]
#[allow(dead_code, reason = "the benchmarks of processes use the rest")]
mod tree;
#[path = "../foundation/wire.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod wire;

use daemon::Daemon;
use effort::{Effort, Group};
use hatchery::store::StoreUrl;
use pty::Screen;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use table::{Goal, Pairs, Table, Unit, in_turns};
use tokio::runtime::Runtime;

/// A frame at 60 Hz, in milliseconds.
const FRAME_MS: f64 = 16.0;
/// Of a core, for ten agents that stream.
const STREAM_PERCENT: f64 = 15.0;
const STREAMING: usize = 10;
const LINES_PER_SECOND: u64 = 50;
/// How many processes one turn starts.
const STARTS: usize = 20;
/// What may wake an idle terminal in the time that is watched: the clock once a minute, and the heartbeats of its two streams, each a read
/// and what follows from it.
const IDLE_WAKE_UPS: f64 = 20.0;

const GROUPS: [(&str, Group); 5] =
    [("ps", listing), ("key", keys), ("open", opening), ("idle", idle), ("stream", streaming)];

fn main() {
    effort::measure(&GROUPS);
}

fn runtime() -> &'static Runtime {
    static RUNTIME: std::sync::LazyLock<Runtime> = std::sync::LazyLock::new(raw::runtime);
    &RUNTIME
}

/// A project with agents in it.
struct Grounds {
    folder: tempfile::TempDir,
}

impl Grounds {
    /// Makes the log without a daemon, which is quicker.
    fn new(fill: impl FnOnce(&hatchery::engine::Handle)) -> Self {
        let grounds = Self { folder: raw::folder() };
        let data = grounds.path().join(".hatchery");
        std::fs::create_dir(&data).unwrap();
        let engine = tree::start(&StoreUrl::Sqlite(data.join("hatchery.db")));
        fill(&engine.handle);
        tree::stop(engine);
        // No daemon has made the folder, so somebody has to say that it is ours.
        let mut trust = Command::new(env!("CARGO_BIN_EXE_hatchery"));
        let trusted =
            trust.args(["trust", "--yes", "--project"]).arg(grounds.path()).stdout(Stdio::null()).status().unwrap();
        assert!(trusted.success(), "the log is not trusted");
        grounds
    }

    /// With so many agents below agent 0, all at rest.
    fn with_agents(count: usize) -> Self {
        Self::new(|handle| {
            let root = tree::found(handle);
            for _ in 0..count {
                tree::fork(handle, root);
            }
        })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

/// From a key to the end of its frame, over a long history.
fn keys(effort: Effort, table: &mut Table) {
    let messages = effort.pick(20_000, 1_000_000);
    let pressed = effort.pick(100, 1_000);
    let grounds = Grounds::new(|handle| {
        let root = tree::found(handle);
        let agent = tree::fork(handle, root);
        tree::say(handle, agent, messages);
    });
    let daemon = Daemon::start(&grounds.path());
    let mut screen = Screen::open(&grounds.path(), (120, 40));
    screen.wait_for("xxxx");
    screen.settle();
    let slow = (0..effort.rounds()).map(|_| {
        let mut took: Vec<f64> = (0..pressed).map(|at| screen.press(key(at)).as_secs_f64() * 1_000.0).collect();
        took.sort_by(f64::total_cmp);
        took[took.len() * 99 / 100]
    });
    let what = format!("key to frame, 99th percentile, {messages} messages in the history");
    table.add(what, Unit::Millis, Pairs::against(FRAME_MS, slow.collect::<Vec<_>>()), Goal::AtMost(1.0));
    drop(screen);
    // Agents outlive their daemon.
    let mut stop = Command::new(env!("CARGO_BIN_EXE_hatchery"));
    assert!(stop.args(["stop", "--all", "--project"]).arg(grounds.path()).status().unwrap().success());
    daemon.kill();
}

/// Mostly letters; some scroll a page up and down again.
fn key(at: usize) -> &'static [u8] {
    match at % 20 {
        18 => b"\x1b[5~",
        19 => b"\x1b[6~",
        _ => b"a",
    }
}

/// Until the agents are on the screen, beside `hatchery ps`.
fn opening(effort: Effort, table: &mut Table) {
    let agents = effort.pick(500, 10_000);
    let grounds = Grounds::with_agents(agents);
    let daemon = Daemon::start(&grounds.path());
    let path = grounds.path();
    let open = || {
        let start = Instant::now();
        let mut screen = Screen::open(&path, (120, 40));
        screen.wait_for(" Agents");
        start.elapsed().as_secs_f64() * 1_000.0
    };
    let pairs = in_turns(effort.rounds(), open, || ps(&path));
    table.add(format!("opening on {agents} agents, against `hatchery ps`"), Unit::Millis, pairs, Goal::AtMost(3.0));
    daemon.kill();
}

/// A command that asks the daemon, against a program that does nothing.
fn listing(effort: Effort, table: &mut Table) {
    for agents in [10, effort.pick(500, 10_000)] {
        let grounds = Grounds::with_agents(agents);
        let daemon = Daemon::start(&grounds.path());
        let path = grounds.path();
        let nothing = || took(Command::new("/bin/true"));
        let pairs = in_turns(
            effort.rounds(),
            || median((0..STARTS).map(|_| ps(&path))),
            || median((0..STARTS).map(|_| nothing())),
        );
        table.add(
            format!("`hatchery ps` with {agents} agents, against /bin/true"),
            Unit::Millis,
            pairs,
            Goal::AtMost(3.0),
        );
        daemon.kill();
    }
}

fn median(times: impl Iterator<Item = f64>) -> f64 {
    table::median(times.collect())
}

fn ps(project: &Path) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatchery"));
    command.args(["ps", "--project"]).arg(project);
    took(command)
}

fn took(mut command: Command) -> f64 {
    let start = Instant::now();
    assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
    start.elapsed().as_secs_f64() * 1_000.0
}

/// Nothing happens: no frame, and no wake-up but the clock's and the heartbeats'.
fn idle(effort: Effort, table: &mut Table) {
    let time = Duration::from_secs(effort.pick(10, 30));
    let grounds = Grounds::new(|handle| {
        let root = tree::found(handle);
        let agent = tree::fork(handle, root);
        tree::say(handle, agent, 100);
    });
    let daemon = Daemon::start(&grounds.path());
    let mut screen = Screen::open(&grounds.path(), (120, 40));
    screen.wait_for("xxxx");
    screen.settle();
    let (before, bytes) = (screen.wake_ups(), screen.bytes());
    screen.read_for(time);
    let (woken, written) = (screen.wake_ups() - before, screen.bytes() - bytes);
    println!("idle for {} s: {woken} wake-ups, {written} bytes drawn", time.as_secs());
    let what = format!("wake-ups in {} idle seconds", time.as_secs());
    table.add(what, Unit::Count, Pairs::against(IDLE_WAKE_UPS, [woken as f64]), Goal::AtMost(1.0));
    table.add(
        "bytes drawn meanwhile, against one frame",
        Unit::Count,
        Pairs::against(1.0, [written as f64]),
        Goal::AtMost(0.0),
    );
    drop(screen);
    daemon.kill();
}

/// Ten agents that say 50 lines a second each, with the tree and one of them on the screen.
fn streaming(effort: Effort, table: &mut Table) {
    let seconds = effort.pick(5, 30);
    let grounds = Grounds::new(|handle| {
        tree::found(handle);
    });
    let pause = 1_000 / LINES_PER_SECOND;
    let script: String = (0..LINES_PER_SECOND * (seconds + 20))
        .map(|number| format!("{{\"text\":\"line {number} of a long stream of words\"}}\n{{\"sleep_ms\":{pause}}}\n"))
        .collect();
    let file = grounds.path().join("stream.jsonl");
    std::fs::write(&file, script).unwrap();
    let daemon = Daemon::start(&grounds.path());
    for number in 0..STREAMING {
        let body = serde_json::json!({
            "prompt": "go", "name": format!("agent-{number}"), "with": { "harness": "scripted", "script": file },
        });
        let request = daemon.post("/api/runs", &body.to_string());
        runtime().block_on(async { wire::Client::connect(daemon.address).await.ask(&request).await });
    }
    let mut screen = Screen::open(&grounds.path(), (120, 40));
    screen.wait_for("of a long stream");
    let (before, start) = (screen.cpu(), Instant::now());
    screen.read_for(Duration::from_secs(seconds));
    let percent = (screen.cpu() - before).as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
    let what = format!("one core, {STREAMING} agents with {LINES_PER_SECOND} lines a second each");
    table.add(what, Unit::Percent, Pairs::against(STREAM_PERCENT, [percent]), Goal::AtMost(1.0));
    drop(screen);
    daemon.kill();
}
