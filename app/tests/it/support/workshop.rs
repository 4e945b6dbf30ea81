//! A project whose agents really run, and its daemon, which may be killed at any moment and come back. All that happens is
//! followed as a browser would follow it. Every process of a run is gone when this goes.

use super::daemon::{Daemon, Grounds, LOOK_AGAIN, PATIENCE, wait_for_end};
use super::follower::Follower;
use super::http::{Answer, Door};
use super::runtime;
use hatchery::clock::{Clock, SystemClock};
use hatchery::engine::{Engine, EngineOptions};
use hatchery::store::{self, StoreUrl};
use hatchery_core::{Command, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

pub struct Workshop {
    daemon: Option<Daemon>,
    doors: watch::Sender<Door>,
    follower: Follower,
    environment: Vec<(String, OsString)>,
    pub grounds: Grounds,
}

/// A clock that is ahead.
#[derive(Debug)]
struct Later {
    ms: u64,
}

impl Clock for Later {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_ms(self.ms)
    }
}

impl Workshop {
    /// Where agents are scripted.
    pub fn open() -> Self {
        Self::with("harness = 'scripted'\nstop_grace_ms = 300\n", Vec::new())
    }

    /// With these settings, and a daemon that has this besides its usual environment.
    pub fn with(settings: &str, environment: Vec<(String, OsString)>) -> Self {
        let grounds = Grounds::with(settings);
        let daemon = start(&grounds, &environment);
        let (doors, shown) = watch::channel(daemon.door.clone());
        Self { daemon: Some(daemon), doors, follower: Follower::start(shown), environment, grounds }
    }

    pub fn door(&self) -> Door {
        self.daemon.as_ref().unwrap().door.clone()
    }

    /// `kill -9` of the daemon.
    pub fn kill_daemon(&mut self) {
        self.daemon.take().unwrap().kill();
    }

    /// Asks the daemon to leave, and waits until it has.
    pub fn stop_daemon(&mut self) {
        let daemon = self.daemon.take().unwrap();
        daemon.signal(Signal::TERM);
        daemon.wait();
    }

    pub fn restart(&mut self) {
        let daemon = start(&self.grounds, &self.environment);
        self.doors.send_replace(daemon.door.clone());
        self.daemon = Some(daemon);
    }

    pub fn daemon_pid(&self) -> u32 {
        self.daemon.as_ref().unwrap().pid()
    }

    /// Writes down what follows from a command, as a daemon does that is killed before it can act on it. None may be there.
    pub fn decided(&self, command: Command) {
        self.decided_at(Arc::new(SystemClock), command);
    }

    /// Time passes, and what is due then is written down. No test has to wait for it. There may be no daemon.
    pub fn time_passes(&self, ms: u64) {
        self.decided_at(Arc::new(Later { ms }), Command::Tick);
    }

    fn decided_at(&self, clock: Arc<dyn Clock>, command: Command) {
        assert!(self.daemon.is_none(), "there is a daemon");
        let store = store::open(&StoreUrl::Sqlite(self.grounds.database()), runtime()).unwrap();
        let engine = Engine::start(store, clock, EngineOptions::default(), runtime().clone()).unwrap();
        runtime().block_on(engine.handle.submit(command)).unwrap();
        engine.handle.stop();
        engine.join().unwrap();
    }

    /// Starts an agent that plays these steps, and gives its id.
    pub fn run(&self, steps: &[Value]) -> String {
        self.run_with(steps, json!({}))
    }

    pub fn run_with(&self, steps: &[Value], mut with: Value) -> String {
        with["script"] = json!(self.script(steps));
        let answer = self.door().post("/api/runs", &json!({ "prompt": "play", "with": with }));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.id()
    }

    /// Starts an agent with the usual harness of the project, and gives its id.
    #[track_caller]
    pub fn prompt(&self, prompt: &str, with: Value) -> String {
        let answer = self.door().post("/api/runs", &json!({ "prompt": prompt, "with": with }));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.id()
    }

    /// `kill -9` of the process that plays an agent, which was spawned last.
    #[track_caller]
    pub fn kill_process(&self, agent: &str) {
        self.wait_for(agent, "run_spawned");
        let spawned = self.of(agent).into_iter().rfind(|event| event["type"] == "run_spawned").unwrap();
        let pid = i32::try_from(spawned["process"]["pid"].as_i64().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }

    /// Writes a script and gives its path.
    pub fn script(&self, steps: &[Value]) -> PathBuf {
        let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
        let count = fs::read_dir(self.grounds.path()).unwrap().count();
        let path = self.grounds.path().join(format!("script-{count}.jsonl"));
        fs::write(&path, lines).unwrap();
        path
    }

    pub fn say(&self, agent: &str, text: &str) -> Answer {
        let answer = self.door().post(&format!("/api/agents/{agent}/say"), &json!({ "text": text }));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer
    }

    pub fn stop(&self, agent: &str) {
        let answer = self.door().post(&format!("/api/agents/{agent}/stop"), &json!({}));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Breaks off the turn of an agent.
    #[track_caller]
    pub fn interrupt(&self, agent: &str) {
        let answer = self.door().post(&format!("/api/agents/{agent}/interrupt"), &json!({}));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Waits for the nth question of an agent, answers it, and gives it.
    #[track_caller]
    pub fn answer_nth(&self, agent: &str, nth: usize, words: &str) -> Value {
        let asked = self.wait_nth_of(agent, "question_asked", nth);
        let answer = self.door().post(&format!("/api/questions/{}/answer", asked["id"]), &json!({ "answer": words }));
        assert_eq!(answer.status, 200, "{answer:?}");
        asked
    }

    /// Waits for the nth event of a type about an agent.
    #[track_caller]
    pub fn wait_nth_of(&self, agent: &str, kind: &str, nth: usize) -> Value {
        let mut met = 0;
        self.wait(&format!("{kind} number {nth}"), |event| {
            met += usize::from(event["agent"] == agent && event["type"] == kind);
            met == nth
        })
    }

    /// The user has this mail from the agent.
    #[track_caller]
    pub fn expect_mail(&self, agent: &str, body: &str) {
        let sent = self.wait("the mail", |event| event["type"] == "mail_sent");
        assert_eq!((&sent["from"], &sent["body"]), (&json!(agent), &json!(body)));
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Value> {
        self.follower.seen().iter().map(|seen| serde_json::from_str(&seen.data).unwrap()).collect()
    }

    /// Waits for an event, and gives the first.
    #[track_caller]
    pub fn wait(&self, what: &str, mut is_it: impl FnMut(&Value) -> bool) -> Value {
        match self.follower.wait_until(|seen| is_it(&serde_json::from_str(&seen.data).unwrap())) {
            Some(seen) => serde_json::from_str(&seen.data).unwrap(),
            None => panic!("{what} did not come; the daemon said {}\n{:#?}", self.grounds.said(), self.last_events()),
        }
    }

    /// Waits for an event of a type about an agent.
    #[track_caller]
    pub fn wait_for(&self, agent: &str, kind: &str) -> Value {
        let (id, word) = (format!("\"{agent}\""), format!("\"{kind}\""));
        // Reading every event of a flood takes its time.
        let seen = self.follower.wait_until(|seen| {
            let is_it = |event: Value| event["agent"] == agent && event["type"] == kind;
            seen.data.contains(&word) && seen.data.contains(&id) && is_it(serde_json::from_str(&seen.data).unwrap())
        });
        match seen {
            Some(seen) => serde_json::from_str(&seen.data).unwrap(),
            None => panic!("{kind} did not come: {}\n{:#?}", self.grounds.said(), self.last_events()),
        }
    }

    /// Waits for the end of an agent's run, and gives its cause.
    #[track_caller]
    pub fn end(&self, agent: &str) -> String {
        self.wait_for(agent, "run_ended")["cause"].as_str().unwrap().to_owned()
    }

    /// What the agent said, in order.
    pub fn said(&self, agent: &str) -> Vec<String> {
        let history = self.door().history(agent);
        let own = history.iter().filter(|message| message["kind"] == "assistant");
        own.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }

    /// The kinds of an agent's events, in order.
    pub fn kinds(&self, agent: &str) -> Vec<String> {
        let of_agent = |event: &&Value| event["agent"] == agent;
        self.events().iter().filter(of_agent).map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// How many events of this kind an agent has.
    pub fn count_of(&self, agent: &str, kind: &str) -> usize {
        self.kinds(agent).iter().filter(|it| *it == kind).count()
    }

    /// All events about an agent, for a test that fails.
    pub fn of(&self, agent: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["agent"] == agent).collect()
    }

    /// The folder of an attempt.
    pub fn folder(&self, agent: &str, run: u32, attempt: u32) -> PathBuf {
        self.grounds.data().join("runs").join(agent).join(format!("{run}-{attempt}"))
    }

    /// The request with which an attempt opened its session, of an agent that speaks JSON-RPC.
    pub fn opened_by(&self, agent: &str, run: u32, attempt: u32) -> String {
        let launch = fs::read(self.folder(agent, run, attempt).join("launch.json")).unwrap();
        let launch: Value = serde_json::from_slice(&launch).unwrap();
        let second: Value = serde_json::from_str(launch["first_lines"][1].as_str().unwrap()).unwrap();
        second["method"].as_str().unwrap().to_owned()
    }

    /// The processes that belong to runs of this project, launchers included.
    pub fn processes(&self) -> Vec<u32> {
        let marks = [&b"HATCHERY_ATTEMPT="[..], b"HATCHERY_LAUNCHER="]
            .map(|name| [name, self.grounds.path().as_os_str().as_bytes()].concat());
        let all = fs::read_dir("/proc").unwrap().flatten();
        let carries = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|entry| marks.iter().any(|mark| entry.starts_with(mark)))
        };
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(carries).collect()
    }

    /// Whatever ran is gone. A launcher says that all is over as its last deed, so it may itself be about to leave.
    #[track_caller]
    pub fn expect_nothing_left(&self) {
        for pid in self.processes() {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let shown = String::from_utf8_lossy(&command).replace('\0', " ");
            // One that is about to end has no words any more.
            let leaves = command.is_empty() || command.split(|byte| *byte == 0).any(|word| word == b"launch");
            assert!(leaves, "process {pid} is left behind: {shown}");
            wait_for_end(pid);
        }
    }

    fn last_events(&self) -> Vec<Value> {
        let events = self.events();
        events[events.len().saturating_sub(12)..].to_vec()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        drop(self.daemon.take());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() > deadline {
                break;
            }
            for pid in left.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
                kill_process(pid, Signal::KILL).unwrap_or_default();
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

fn start(grounds: &Grounds, environment: &[(String, OsString)]) -> Daemon {
    let said = fs::File::options().create(true).append(true).open(grounds.path().join("said")).unwrap();
    let mut command = grounds.command(&["up", "--json", "--no-open"]);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let child = command.stdout(Stdio::piped()).stderr(said).spawn().unwrap();
    Daemon::ready(child).unwrap_or_else(|ended| panic!("the daemon ended ({ended}): {}", grounds.said()))
}
