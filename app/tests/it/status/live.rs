//! The live stream of the status.

use crate::support::daemon::{Daemon, Grounds};
use crate::support::sse::EventSource;
use hatchery::state_file::StatusFolder;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// A client of the stream.
struct Live(EventSource);

impl Live {
    fn of(daemon: &Daemon) -> Self {
        Self(EventSource::open(&daemon.door, "/api/status/live"))
    }

    /// The next event: its name and its data.
    fn next(&mut self) -> (String, Value) {
        self.0.next()
    }

    fn until(&mut self, event: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (name, data) = self.next();
            if name == event && is_it(&data) {
                return data;
            }
        }
    }
}

#[test]
fn the_whole_comes_first_and_then_each_change() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    grounds.run(&["state", "set", "currentCommand", "\"evolve\""]).good();
    let mut live = Live::of(&daemon);
    let (name, first) = live.next();
    assert_eq!((name.as_str(), &first["currentCommand"]), ("status", &json!("evolve")));
    assert_eq!(first["contextHealth"]["isolationMode"], "standard");
    assert!(first["lastUpdated"].is_string(), "{first}");
    assert_eq!(live.next(), ("inbox".into(), json!([])));
    grounds.run(&["state", "set", "nextStep", "\"rest\""]).good();
    let mut change = || {
        let (name, mut change) = live.next();
        assert_eq!(name, "change");
        let at = change.as_object_mut().unwrap().remove("lastUpdated");
        assert!(at.is_some_and(|at| at.is_string()), "it says when: {change}");
        change
    };
    assert_eq!(change(), json!({ "nextStep": "rest" }), "only what has changed");
    grounds.run(&["state", "clear", "nextStep"]).good();
    assert_eq!(change(), json!({ "nextStep": null }));
    let id = grounds.run(&["inbox", "add", "an idea"]).good();
    let ideas = live.until("inbox", |_| true);
    assert_eq!(ideas[0]["id"], id.trim());
    let event = json!({ "kind": "context-boundary", "isolationMode": "subagent" });
    daemon.door.post("/api/build-events", &event);
    let change = live.until("change", |change| change["buildEvents"].is_array());
    assert_eq!(change["contextHealth"]["isolationMode"], "subagent");
    // The log does not know it, and the stream tells it all the same.
    fs::write(grounds.data().join("context.json"), r#"{"usage":40}"#).unwrap();
    let change = live.until("change", |change| change["contextState"].is_object());
    assert_eq!((&change["contextState"]["usage"], &change["contextHealth"]["usage"]), (&json!(40), &json!(40)));
}

/// Others show the first states of a burst and never the last one.
#[test]
fn the_last_of_a_burst_reaches_the_stream() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let folder = StatusFolder::of(grounds.path());
    fs::create_dir_all(folder.path()).unwrap();
    let mut live = Live::of(&daemon);
    live.until("inbox", |_| true);
    for (burst, gap_ms) in [20, 5, 0].into_iter().enumerate() {
        let (first, last) = (burst * 100, burst * 100 + 29);
        let write = |number: usize| fs::write(folder.state_file(), json!({ "number": number }).to_string()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in first..=last {
                    write(number);
                    // What others are told at this pace, they lose. Nothing waits for it here.
                    std::thread::sleep(Duration::from_millis(gap_ms));
                }
            });
            // In order, without a further change after the last one.
            let mut seen = Vec::new();
            while seen.last() != Some(&last) {
                let change = live.until("change", |change| change["number"].is_u64());
                seen.push(usize::try_from(change["number"].as_u64().unwrap()).unwrap());
            }
            assert!(seen.is_sorted() && seen[0] >= first, "{gap_ms} ms apart: {seen:?}");
        });
        assert_eq!(daemon.door.get("/api/state?path=number").json()["value"], last);
        let file: Value = serde_json::from_str(&fs::read_to_string(folder.state_file()).unwrap()).unwrap();
        assert_eq!(file["number"], last, "and it stays in the file");
    }
}

#[test]
fn a_change_of_the_file_reaches_the_stream() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let folder = StatusFolder::of(grounds.path());
    fs::create_dir_all(folder.path()).unwrap();
    let mut live = Live::of(&daemon);
    for number in 0..20 {
        fs::write(
            folder.state_file(),
            json!({ "activeSection": format!("#s{number}"), "broken\nname": 1 }).to_string(),
        )
        .unwrap();
        live.until("change", |change| change["activeSection"] == format!("#s{number}"));
    }
}
