//! A daemon's lifecycle: one for each project, however the last one ended; and what it must finish after it died in between.

use crate::support::daemon::{Daemon, Grounds, PATIENCE, ended_within, wait_for_end};
use crate::support::follower::Follower;
use crate::support::runtime;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::Instant;

#[test]
fn a_second_daemon_is_refused_and_told_of_the_first() {
    let grounds = Grounds::new();
    let first = grounds.up();
    let ran = grounds.run(&["up", "--json", "--no-open"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&format!("pid {}", first.pid())), "{ran:?}");
    assert!(ran.stderr.contains(&first.door.authority), "{ran:?}");
    assert_eq!(first.door.get("/api/health").status, 200);
    first.kill();
    let second = grounds.up();
    assert_eq!(second.door.get("/api/health").status, 200);
}

#[test]
fn signals_end_it_in_order() {
    for signal in [Signal::INT, Signal::TERM] {
        let grounds = Grounds::new();
        // At once after the line that says it is ready, and with streams and connections open.
        for open_streams in [0, 2] {
            let daemon = grounds.up();
            let streams: Vec<_> = (0..open_streams).map(|_| Follower::of(&daemon.door)).collect();
            if open_streams > 0 {
                let agent = daemon.door.agent(None);
                assert_eq!(daemon.door.say(&agent, "hello").status, 201);
                let head = daemon.door.head();
                streams.iter().for_each(|(follower, _)| follower.wait_for(head));
            }
            daemon.signal(signal);
            let status = daemon.wait();
            assert_eq!(status.code(), Some(0), "{signal:?} with {open_streams} streams: {status}: {}", grounds.said());
            assert!(!grounds.data().join("daemon.json").exists(), "daemon.json stays behind");
            assert!(!grounds.project().is_served());
        }
    }
}

/// The terminal or the program that has started it is gone.
#[test]
fn a_daemon_whose_standard_error_is_closed_ends_in_order() {
    let grounds = Grounds::new();
    let mut command = grounds.command(&["up", "--json", "--no-open"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    let daemon = Daemon::ready(child).unwrap();
    assert_eq!(daemon.door.get("/api/health").status, 200);
    daemon.signal(Signal::TERM);
    assert!(ended_within(daemon.pid(), PATIENCE), "it lives on");
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!grounds.data().join("daemon.json").exists() && !grounds.project().is_served());
}

#[test]
fn a_start_can_be_broken_off() {
    let (grounds, _silence) = starts_for_long();
    let mut child = starting(&grounds);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status}: {}", grounds.said());
    assert!(!grounds.data().join("daemon.json").exists());
}

#[test]
fn commands_that_race_to_start_a_daemon_end_up_with_one() {
    let grounds = Grounds::new();
    for _ in 0..3 {
        let racers: Vec<_> = (0..6)
            .map(|_| {
                let mut command = grounds.command(&["ps", "--json"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for racer in racers {
            let output = racer.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let status: Value = serde_json::from_str(&grounds.run(&["status", "--json"]).good()).unwrap();
        let pid = u32::try_from(status["daemon"]["pid"].as_u64().unwrap()).unwrap();
        grounds.run(&["down"]).good();
        wait_for_end(pid);
    }
}

/// Whoever only looks must not be taken for a daemon.
#[test]
fn looking_for_a_daemon_does_not_hinder_one() {
    let grounds = Grounds::new();
    let project = grounds.project();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let looking = std::thread::spawn(move || {
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            project.is_served();
        }
    });
    for _ in 0..10 {
        Daemon::ready(grounds.start()).unwrap_or_else(|ended| panic!("{ended}: {}", grounds.said())).kill();
    }
    drop(stop);
    looking.join().unwrap();
}

/// A daemon that was killed leaves its announcement behind. While the next one starts, the lock is held and the file
/// would speak of a process that may be anybody's by now: `down` would end it.
#[test]
fn a_stale_announcement_is_gone_before_the_next_daemon_is_ready() {
    let (grounds, _silence) = starts_for_long();
    let path = grounds.data().join("daemon.json");
    let stale = json!({ "pid": std::process::id(), "url": "http://127.0.0.1:9", "version": "0" });
    std::fs::write(&path, stale.to_string()).unwrap();
    let mut child = starting(&grounds);
    let deadline = Instant::now() + PATIENCE;
    while path.exists() {
        assert!(
            child.try_wait().unwrap().is_none() && Instant::now() < deadline,
            "the file stayed: {}",
            grounds.said()
        );
        std::thread::yield_now();
    }
    assert!(grounds.project().is_served());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_ending_session_ends_exactly_once_whenever_the_daemon_dies() {
    let grounds = Grounds::new();
    let mut ending = Vec::new();
    for round in 0..10 {
        let daemon = grounds.up();
        let session = daemon.door.post("/api/sessions", &json!({})).id();
        let agents: Vec<String> = (0..5).map(|_| daemon.door.agent(Some(&session))).collect();
        let path = format!("/api/sessions/{session}/end");
        let mut http = daemon.door.http();
        let asked = runtime().spawn(async move { http.post(&path, &json!({ "reason": "completed" })).await.is_ok() });
        // The answer comes when the intent is recorded; half of the time not even that is waited for.
        let answered = if round % 2 == 0 {
            let answered = runtime().block_on(asked).unwrap();
            daemon.kill();
            assert!(answered);
            answered
        } else {
            daemon.kill();
            runtime().block_on(asked).unwrap()
        };
        if answered {
            ending.push((session, agents));
        }
    }
    let daemon = grounds.up();
    wait_until_nothing_ends(&daemon);
    let log: Vec<Value> = daemon.door.log().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    for (session, agents) in ending {
        let reasons = |kind: &str| {
            let of_kind = log.iter().filter(|event| event["type"] == kind && event["session"] == *session);
            of_kind.map(|event| event["reason"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(reasons("session_ending"), ["completed"]);
        assert_eq!(reasons("session_ended"), ["completed"], "session {session}");
        for agent in agents {
            let slept = log.iter().filter(|event| event["type"] == "agent_slept" && event["agent"] == *agent).count();
            assert_eq!(slept, 1, "agent {agent}");
        }
    }
}

#[test]
fn silence_ends_a_session_as_inactive_and_a_person_as_user() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let start = |daemon: &Daemon, idle_ms: u64| daemon.door.post("/api/sessions", &json!({ "idle_ms": idle_ms })).id();
    let live = start(&daemon, 1_000);
    let by_hand = start(&daemon, 1_000);
    assert_eq!(daemon.door.post(&format!("/api/sessions/{by_hand}/end"), &json!({})).status, 202);
    assert_eq!(ending(&daemon, &live), json!(["inactive", "inactive"]));
    assert_eq!(ending(&daemon, &by_hand), json!(["user", "user"]));
    // Its time runs out while nobody is there to see it.
    let (across, ended_before) = (start(&daemon, 1_000), start(&daemon, 1_000));
    assert_eq!(daemon.door.post(&format!("/api/sessions/{ended_before}/end"), &json!({})).status, 202);
    daemon.kill();
    let daemon = grounds.up();
    assert_eq!(ending(&daemon, &across), json!(["inactive", "inactive"]));
    assert_eq!(ending(&daemon, &ended_before), json!(["user", "user"]));
    drop(daemon);
    let daemon = grounds.up();
    assert_eq!(ending(&daemon, &across), json!(["inactive", "inactive"]));
}

/// A project whose store takes connections and never answers: a start waits for it, for some seconds.
fn starts_for_long() -> (Grounds, TcpListener) {
    let silence = TcpListener::bind("127.0.0.1:0").unwrap();
    let grounds = Grounds::with(&format!("store = 'postgres://nobody@{}/nothing'", silence.local_addr().unwrap()));
    (grounds, silence)
}

/// A daemon that has the lock and is not ready.
fn starting(grounds: &Grounds) -> Child {
    let mut child = grounds.start();
    let project = grounds.project();
    let deadline = Instant::now() + PATIENCE;
    while !project.is_served() {
        assert!(child.try_wait().unwrap().is_none() && Instant::now() < deadline, "{}", grounds.said());
        std::thread::yield_now();
    }
    child
}

/// The reasons in the two events of a session's end, when they have come.
fn ending(daemon: &Daemon, session: &str) -> Value {
    let (follower, _doors) = Follower::of(&daemon.door);
    loop {
        let log = follower.log();
        let reasons: Vec<Value> = log
            .iter()
            .map(|event| serde_json::from_str::<Value>(event).unwrap())
            .filter(|event| event["session"] == *session && event["reason"].is_string())
            .map(|event| event["reason"].clone())
            .collect();
        if reasons.len() >= 2 {
            return Value::Array(reasons);
        }
        follower.wait_for(log.len() as u64 + 1);
    }
}

/// Waits until no session is ending any more.
fn wait_until_nothing_ends(daemon: &Daemon) {
    let (follower, _doors) = Follower::of(&daemon.door);
    loop {
        let head = daemon.door.head();
        let sessions = daemon.door.get("/api/sessions").json();
        if sessions["sessions"].as_array().unwrap().iter().all(|session| session["state"] != "ending") {
            return;
        }
        follower.wait_for(head + 1);
    }
}
