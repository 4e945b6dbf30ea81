//! The live stream of the status.

use crate::support::daemon::{Daemon, Grounds, PATIENCE};
use crate::support::runtime;
use bytes::Bytes;
use hatchery::state_file::StatusFolder;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::fs;

/// A client of the stream.
struct Live {
    body: Incoming,
    text: String,
}

impl Live {
    fn of(daemon: &Daemon) -> Self {
        let mut http = daemon.door.http();
        let response = runtime().block_on(http.send(Method::GET, "/api/status/live", &[], Bytes::new())).unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event: its name and its data.
    fn next(&mut self) -> (String, Value) {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let (Some(event), Some(data)) = (field("event:"), field("data:")) {
                    return (event, serde_json::from_str(&data).unwrap());
                }
                continue;
            }
            let more = async { tokio::time::timeout(PATIENCE, self.body.frame()).await };
            let frame = runtime().block_on(more).expect("nothing comes").expect("it ended").expect("it broke off");
            self.text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
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
