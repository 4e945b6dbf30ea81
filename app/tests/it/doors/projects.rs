//! All projects of one user: each daemon lists the others, with who waits there and the way in.

use crate::support::daemon::{Daemon, Grounds};
use crate::support::http::Door;
use std::process::Stdio;

fn listed(daemon: &Daemon) -> Vec<serde_json::Value> {
    let answer = daemon.door.get("/api/projects");
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["projects"].as_array().unwrap().clone()
}

/// The way into the project of a daemon, as the daemon itself lists it.
fn here_link(daemon: &Daemon) -> String {
    let here = daemon.door.get("/api/status").json()["project"].clone();
    let line = listed(daemon).into_iter().find(|line| line["root"] == here).expect("this project");
    line["link"].as_str().unwrap().to_owned()
}

#[test]
fn a_daemon_lists_the_other_projects_and_the_way_into_each() {
    let (here, there) = (Grounds::new(), Grounds::new());
    let daemon = here.up();
    let mut other = there.command(&["up", "--json", "--no-open"]);
    other.env("HOME", here.path().join("home")).stdout(Stdio::piped());
    let other = Daemon::ready(other.spawn().unwrap()).unwrap();
    assert_eq!(other.door.post("/api/agents", &serde_json::json!({ "name": "weaver" })).status, 201);

    let root = there.path().canonicalize().unwrap().display().to_string();
    let lines = listed(&daemon);
    assert_eq!(lines.len(), 2, "{lines:?}");
    let line = lines.iter().find(|line| line["root"] == root.as_str()).expect("the other project");
    assert_eq!((&line["running"], &line["working"], &line["questions"]), (&true.into(), &0.into(), &0.into()));
    let (url, token) = line["link"].as_str().unwrap().split_once("/?token=").expect("a link with a token");
    assert_eq!(Door::new(url, token.to_owned()).get("/api/status").json()["project"], root.as_str());

    // The command shows the same, without the tokens.
    let printed = here.run(&["projects", "--json"]).good();
    assert!(printed.contains(&root) && !printed.contains(token), "{printed}");

    let everywhere = here.run(&["ps", "--everywhere"]).good();
    assert!(everywhere.contains(&root) && everywhere.contains("weaver"), "{everywhere}");
    assert_eq!(here.run(&["open", "--print"]).good().trim(), here_link(&daemon));

    other.kill();
    let lines = listed(&daemon);
    let line = lines.iter().find(|line| line["root"] == root.as_str()).expect("a project without a daemon is listed");
    assert_eq!((&line["running"], line.get("link")), (&false.into(), None));
}
