//! The daemon is found by the lock that it holds, whatever stands in `daemon.json`, and nobody else is ever signalled.

use crate::support::daemon::{Grounds, wait_until};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a command may take to find the daemon, or to say that it cannot. With room for a busy machine.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_missing_or_wrong_daemon_json_hinders_nobody() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let file = grounds.data().join("daemon.json");
    let wrong = [
        None,
        Some(String::new()),
        Some("{".to_owned()),
        Some(json!({ "pid": std::process::id(), "url": "http://127.0.0.1:9", "version": "0" }).to_string()),
    ];
    for content in wrong {
        match &content {
            None => fs::remove_file(&file).unwrap(),
            Some(text) => fs::write(&file, text).unwrap(),
        }
        let started = Instant::now();
        let status = grounds.run(&["status"]).good();
        assert!(status.contains(&format!("pid {}", daemon.pid())), "{content:?}: {status}");
        assert!(started.elapsed() < SOON, "{content:?}: {:?}", started.elapsed());
    }
}

#[test]
fn down_ends_the_daemon_and_nobody_who_is_named_in_its_place() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let mut bystander = Command::new("sleep").arg("1000").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let named = json!({ "pid": bystander.id(), "url": "http://127.0.0.1:9", "version": "0" });
    fs::write(grounds.data().join("daemon.json"), named.to_string()).unwrap();
    // Even the lock's own file is not believed.
    let note = json!({ "pid": bystander.id(), "daemon": named });
    fs::write(grounds.data().join("daemon.lock"), note.to_string()).unwrap();
    grounds.run(&["down"]).good();
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(bystander.try_wait().unwrap().is_none(), "the bystander was ended");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    // The ending daemon has left what is not its own.
    let left = fs::read_to_string(grounds.data().join("daemon.json")).unwrap();
    assert_eq!(left, named.to_string());
}

#[test]
fn a_lock_that_does_not_say_whose_it_is_is_told_soon() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    fs::write(grounds.data().join("daemon.lock"), "?").unwrap();
    let started = Instant::now();
    let ran = grounds.run(&["ps"]);
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains(&format!("process {} holds the project's lock", daemon.pid())), "{ran:?}");
    grounds.run(&["down"]).good();
    assert_eq!(daemon.wait().code(), Some(0));
    grounds.run(&["ps"]).good();
}

#[test]
fn a_lock_with_a_wrong_address_is_told_soon() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let (lock, token) = (grounds.data().join("daemon.lock"), grounds.data().join("token"));
    let right = fs::read(&lock).unwrap();
    let told = |words: &str| {
        let started = Instant::now();
        let ran = grounds.run(&["ps"]);
        assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stderr.contains(&format!("process {} holds the project's lock", daemon.pid())), "{ran:?}");
        assert!(ran.stderr.contains(words) && ran.stderr.contains("hatchery down"), "{ran:?}");
    };
    let wrong = json!({ "pid": daemon.pid(), "url": "http://127.0.0.1:9", "version": "0" });
    fs::write(&lock, json!({ "pid": daemon.pid(), "daemon": wrong }).to_string()).unwrap();
    told("no daemon of this project answers at http://127.0.0.1:9");
    fs::write(&lock, right).unwrap();
    fs::rename(&token, grounds.path().join("away")).unwrap();
    told("token is missing");
    fs::rename(grounds.path().join("away"), &token).unwrap();
    grounds.run(&["ps"]).good();
}

/// A stopped daemon is not a dead one: the lock stays, and so does the refusal of a second one.
#[test]
fn a_suspended_daemon_keeps_its_place() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    daemon.signal(Signal::STOP);
    let refused = grounds.refused(crate::support::daemon::Scene::Plain);
    assert!(refused.stderr.contains("a daemon runs already"), "{refused:?}");
    daemon.signal(Signal::CONT);
    wait_until("the daemon answers again", || daemon.door.get("/api/health").status == 200);
}
