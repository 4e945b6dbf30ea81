//! What a command tells about the daemon that it meets: it hangs, it has read other settings, or it is another version.

use crate::support::daemon::Grounds;
use crate::support::workshop::Workshop;
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_daemon_that_hangs_is_told_within_three_seconds() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    daemon.signal(Signal::STOP);
    let begun = Instant::now();
    let mut command = grounds.command(&["ps"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut words = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = words.next().unwrap().unwrap();
    assert!(told.contains(&format!("process {}", daemon.pid())) && told.contains("has not answered"), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    // It was only slow: the command goes on.
    daemon.signal(Signal::CONT);
    assert!(child.wait().unwrap().success());
}

#[test]
fn changed_settings_are_told_until_they_count() {
    let grounds = Grounds::with("harness = 'scripted'\n");
    grounds.run(&["run", "hello"]).good();
    assert_eq!(grounds.run(&["ask", "list"]).stderr, "nobody asks anything\n");
    std::fs::write(grounds.path().join("hatchery.toml"), "harness = 'scripted'\nretries = 1\n").unwrap();
    let told = grounds.run(&["ask", "list"]);
    assert!(told.code == Some(0) && told.stderr.contains("hatchery.toml has changed"), "{told:?}");
    grounds.run(&["down"]).good();
    grounds.run(&["ps"]).good();
    assert_eq!(grounds.run(&["ask", "list"]).stderr, "nobody asks anything\n");
    grounds.run(&["down"]).good();
}

#[test]
fn up_replace_takes_the_place_of_a_daemon_and_agents_work_on() {
    let mut shop = Workshop::open();
    let agent = shop.run_with(&[json!({ "text": "here" }), json!({ "sleep_ms": 600_000 })], json!({}));
    shop.wait_said(&agent, "here");
    let before = shop.door().get("/api/status").json()["pid"].clone();
    let mut command = shop.grounds.command(&["up", "--replace", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_ne!(ready["pid"], before);
    let status = shop.grounds.run(&["status"]).good();
    assert!(status.contains(&format!("pid {}", ready["pid"])), "{status}");
    assert!(status.contains("`hatchery open` opens it"), "{status}");
    assert!(!status.contains(ready["token"].as_str().unwrap()), "{status}");
    let runs: serde_json::Value = serde_json::from_str(&shop.grounds.run(&["runs", "--json"]).good()).unwrap();
    let run = &runs["runs"][0];
    assert_eq!(
        (&run["agent"], &run["phase"], &run["attempts"]),
        (&json!(agent), &json!("running"), &json!(1)),
        "{runs:#}"
    );
    shop.grounds.run(&["stop", "--all"]).good();
    shop.grounds.run(&["down"]).good();
    child.wait().unwrap();
    shop.restart();
}
