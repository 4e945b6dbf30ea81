//! The parts of a selftest: a daemon that is killed, clients and agents that keep working, and random numbers.

use crate::cli::{private_daemon, stop};
use crate::client::{Client, Failure};
use crate::processes;
use crate::project::Project;
use crate::projects;
use crate::report::{Context as _, Report};
use crate::run_folder;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Clients that record messages all the time.
const CLIENTS: usize = 4;
/// Agents that work at the same time.
const AGENTS: usize = 3;
/// How long a client waits before it repeats a request that the daemon did not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// The size of the small disk: the files of a store fit, with little free space.
const SMALL_DISK_BYTES: u64 = 3 << 20;
/// How long the agents of an interrupted selftest may take to end.
const CLEAR_PATIENCE: Duration = Duration::from_secs(20);
/// The longest time until the small disk must be full.
const FULL_DISK_PATIENCE: Duration = Duration::from_secs(60);

/// A small random number generator (splitmix64). The same start value gives the same numbers.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    pub fn pause(&mut self, longest: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(longest.as_millis()).unwrap_or(1)))
    }
}

/// The daemon of the selftest. The address of each restarted daemon is sent through a channel.
pub struct TestDaemon {
    project: Project,
    child: Child,
    address: watch::Sender<Client>,
    client: Client,
}

impl TestDaemon {
    pub async fn start(project: &Project, store: Option<&str>) -> Result<Self, Report> {
        let (child, client) = private_daemon::start(daemon_command(project, store)?).await?;
        let address = watch::Sender::new(client.clone());
        Ok(Self { project: project.clone(), child, address, client })
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn addresses(&self) -> watch::Receiver<Client> {
        self.address.subscribe()
    }

    /// Kills the daemon with SIGKILL, whatever it is doing, and starts another one.
    pub async fn kill_and_restart(&mut self, store: Option<&str>) -> Result<(), Report> {
        self.child.kill().await.context("the daemon cannot be killed")?;
        (self.child, self.client) = private_daemon::start(daemon_command(&self.project, store)?).await?;
        self.address.send_replace(self.client.clone());
        Ok(())
    }

    /// Stops the agents and the daemon of a selftest that was interrupted or has failed.
    pub async fn clear(mut self, store: Option<&str>) -> Result<(), Report> {
        // The first attempt fails if the selftest was interrupted between a kill and the start of the next daemon.
        if stop::all(&self.client, CLEAR_PATIENCE).await.is_err() {
            self.kill_and_restart(store).await?;
            stop::all(&self.client, CLEAR_PATIENCE).await?;
        }
        self.stop().await
    }

    pub async fn stop(&mut self) -> Result<(), Report> {
        if let Some(pid) = self.child.id() {
            processes::signal(pid, Signal::TERM);
        }
        self.child.wait().await.context("the daemon did not end").map(drop)
    }
}

fn daemon_command(project: &Project, store: Option<&str>) -> Result<Command, Report> {
    let program = std::env::current_exe().context("this program cannot be found again")?;
    let mut command = Command::new(program);
    add_arguments(&mut command, project);
    if let Some(store) = store {
        command.args(["--store", store]);
    }
    Ok(command)
}

fn add_arguments(command: &mut Command, project: &Project) {
    command.args(["up", "--json", "--no-open", "--project"]).arg(project.root());
}

/// What the clients have sent.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    pub acknowledged: Vec<String>,
    /// Messages without an acknowledgement: they may be recorded or not.
    pub unknown: Vec<String>,
    pub runs: u64,
}

/// The clients and agents that are at work.
pub struct Load {
    sent: Arc<Mutex<Sent>>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Load {
    pub async fn start(project: &Project, address: watch::Receiver<Client>) -> Result<Self, Report> {
        let script = project.root().join("work.jsonl");
        let steps = [
            json!({ "text": "I begin." }),
            json!({ "mcp": { "tool": "send", "arguments": { "to": "human", "body": "a word" } } }),
            json!({ "sleep_ms": 150 }),
            json!({ "tool": { "name": "Bash", "input": { "command": "make" }, "result": "made" } }),
            json!({ "sleep_ms": 150 }),
            json!({ "text": "I am done." }),
        ];
        let text: String = steps.iter().map(|step| format!("{step}\n")).collect();
        std::fs::write(&script, text).context("the script cannot be written")?;
        let (sent, stop, mut tasks) = (Arc::<Mutex<Sent>>::default(), watch::Sender::new(false), JoinSet::new());
        for number in 0..CLIENTS {
            tasks.spawn(record_messages(number, address.clone(), Arc::clone(&sent), stop.subscribe()));
        }
        let script = script.display().to_string();
        for _ in 0..AGENTS {
            tasks.spawn(run_agents(script.clone(), address.clone(), Arc::clone(&sent), stop.subscribe()));
        }
        Ok(Self { sent, stop, tasks })
    }

    /// Waits until all clients and agents have finished what they are doing. Returns what was sent.
    pub async fn finish(self) -> Sent {
        self.stop.send_replace(true);
        self.tasks.join_all().await;
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Records messages for an agent that only this client uses. Each message has a unique text.
async fn record_messages(
    number: usize,
    address: watch::Receiver<Client>,
    sent: Arc<Mutex<Sent>>,
    stop: watch::Receiver<bool>,
) {
    let mut agent = None;
    let mut count = 0_u64;
    while !*stop.borrow() {
        let client = address.borrow().clone();
        let Some(id) = agent.clone() else {
            let made = client.ask::<Value>("/api/agents", &json!({ "parent": "root" })).await;
            agent = made.ok().and_then(|made| made["id"].as_str().map(str::to_owned));
            tokio::time::sleep(RETRY_PAUSE).await;
            continue;
        };
        count += 1;
        let words = format!("client {number} says {count}");
        let body = json!({ "kind": "user", "content": words });
        let answer = client.ask::<Value>(&format!("/api/agents/{id}/messages"), &body).await;
        let paused = {
            let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
            match answer {
                Ok(_) => {
                    sent.acknowledged.push(words);
                    false
                }
                Err(Failure::Away(_) | Failure::Unasked(_)) => {
                    sent.unknown.push(words);
                    true
                }
                // The daemon has refused the message, or its answer cannot be understood.
                Err(Failure::Refused { .. } | Failure::Broken(_)) => {
                    sent.unknown.push(words);
                    true
                }
            }
        };
        if paused {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

/// Runs one scripted agent after the other.
async fn run_agents(
    script: String,
    address: watch::Receiver<Client>,
    sent: Arc<Mutex<Sent>>,
    stop: watch::Receiver<bool>,
) {
    while !*stop.borrow() {
        let client = address.borrow().clone();
        let wish = json!({ "prompt": "Work.", "with": { "harness": "scripted", "script": script, "retries": 50 } });
        let Ok(made) = client.ask::<Value>("/api/runs", &wish).await else {
            tokio::time::sleep(RETRY_PAUSE).await;
            continue;
        };
        sent.lock().unwrap_or_else(PoisonError::into_inner).runs += 1;
        let path = format!("/api/agents/{}/why", made["id"].as_str().unwrap_or_default());
        while !*stop.borrow() {
            tokio::time::sleep(RETRY_PAUSE * 5).await;
            let client = address.borrow().clone();
            if client.get::<Value>(&path).await.is_ok_and(|why| why["state"] == "resting") {
                break;
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Launcher,
    Agent,
}

/// Kills a launcher or an agent of the project, and says how many it hit.
pub fn kill_one(project: &Project, chance: &mut Chance, victim: Victim) -> u64 {
    let folders = run_folder::all(project).unwrap_or_default();
    let started = folders.iter().filter_map(|(_, folder)| folder.read_started().ok().flatten());
    let alive: Vec<u32> = started
        .map(|started| if victim == Victim::Launcher { started.launcher } else { started.process })
        .filter(processes::is_alive)
        .map(|process| process.pid)
        .collect();
    let at = usize::try_from(chance.below(alive.len() as u64)).unwrap_or_default();
    alive.get(at).map_or(0, |pid| {
        processes::signal(*pid, Signal::KILL);
        1
    })
}

/// Fills the small file system of a daemon. `None` if no small file system can be created; `false` if the daemon did not report a full
/// disk.
pub async fn full_disk(project: &Project, problems: &mut Vec<String>) -> Result<Option<bool>, Report> {
    let small = project.root().join("small");
    std::fs::create_dir_all(small.join(".hatchery")).context("the project cannot be made")?;
    let small = Project::find(&small)?;
    let program = std::env::current_exe().context("this program cannot be found again")?;
    let mut command = Command::new("unshare");
    let mount = format!("mount -t tmpfs -o size={SMALL_DISK_BYTES},mode=700 tmpfs \"$0\" && exec \"$@\"");
    let own: &[&str] = match rustix::process::geteuid().is_root() {
        true => &["--mount"],
        false => &["--user", "--map-root-user", "--mount"],
    };
    command.args(own).args(["--", "sh", "-c", &mount]).arg(small.data()).arg(program).stderr(Stdio::null());
    add_arguments(&mut command, &small);
    let Ok((mut daemon, client)) = private_daemon::start(command).await else { return Ok(None) };
    let agent: Value = client.post("/api/agents", &json!({ "parent": "root" })).await?;
    let path = format!("/api/agents/{}/messages", agent["id"].as_str().unwrap_or_default());
    let body = json!({ "kind": "user", "content": "x".repeat(20_000) });
    let (mut recorded, deadline) = (0_u64, Instant::now() + FULL_DISK_PATIENCE);
    let told = loop {
        match client.ask::<Value>(&path, &body).await {
            Ok(_) => recorded += 1,
            Err(Failure::Refused { detail, .. }) => break detail.code == "store_full",
            Err(_) => break false,
        }
        if Instant::now() > deadline {
            break false;
        }
    };
    let log: Value = client.get("/api/status").await?;
    // The log begins with two events, for agent 0 and the other agent. All others are messages.
    if log["head"].as_u64() != Some(recorded + 2) {
        problems.push(format!(
            "a full disk: {recorded} messages were acknowledged, but the log ends at event {}",
            log["head"]
        ));
    }
    if !told {
        problems.push("a full disk was not answered with `store_full`".into());
    }
    daemon.kill().await.context("the daemon cannot be ended")?;
    projects::forget(&small);
    Ok(Some(told))
}
