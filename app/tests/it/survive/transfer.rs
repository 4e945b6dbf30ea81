//! The whole log out and in again.

use crate::support::daemon::{Daemon, Grounds, Ran};
use crate::support::follower::Follower;
use crate::support::postgres::Server;
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

#[test]
fn what_was_exported_comes_in_the_same() {
    let (from, export) = exported(2_100);
    let to = Grounds::new();
    assert_eq!(imported(&to, &export), (0, 2_100));
    assert_eq!(imported(&to, &export), (2_100, 0), "a second time there is nothing to do");
    let again = to.path().join("again.jsonl");
    to.run(&["export", again.to_str().unwrap()]).good();
    assert_eq!(fs::read_to_string(&again).unwrap(), fs::read_to_string(&export).unwrap());
    to.run(&["down"]).good();
    to.run(&["fsck"]).good();
    let (here, there) = (from.up(), to.up());
    for path in ["/api/agents", "/api/sessions"] {
        assert_eq!(here.door.get(path).body, there.door.get(path).body, "{path}");
    }
    assert_eq!(there.door.log().len(), 2_100);
}

#[test]
fn a_log_moves_to_the_shared_store_and_back() {
    let (_from, export) = exported(2_500);
    let text = fs::read_to_string(&export).unwrap();
    let database = Server::shared().database();
    let shared = Grounds::with(&format!("store = '{}'", database.url()));
    assert_eq!(imported(&shared, &export), (0, 2_500));
    assert_eq!(imported(&shared, &export), (2_500, 0));
    assert_eq!(export_of(&shared), text);
    shared.run(&["fsck"]).good();
}

#[test]
fn an_import_that_was_interrupted_goes_on() {
    let (_from, export) = exported(5_000);
    let text = fs::read_to_string(&export).unwrap();
    for place in [text.len() / 100, text.len() / 2, text.len() - 10] {
        // Not within a character: what is cut is a text.
        let cut = (0..=place).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let to = Grounds::new();
        let part = to.path().join("part.jsonl");
        fs::write(&part, &text[..cut]).unwrap();
        let ran = to.run(&["import", part.to_str().unwrap()]);
        let line = text[..cut].lines().count();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(&format!("line {line}: ")), "line {line}: {ran:?}");
        let (known, added) = imported(&to, &export);
        assert_eq!(known + added, 5_000);
        assert_eq!(known, (line as u64 - 1) / 2_000 * 2_000, "whole transactions of the first import are kept");
        assert_eq!(export_of(&to), text);
    }
    let to = Grounds::new();
    let mut child = to.command(&["import", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // When this returns, it has taken in all but what a pipe holds; and it waits for the rest.
    input.write_all(&text.as_bytes()[..text.len() - 100_000]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(input);
    let (known, added) = imported(&to, &export);
    assert_eq!(known + added, 5_000);
    assert!(known >= 2_000, "{known}");
    assert_eq!(export_of(&to), text);
}

#[test]
fn a_bad_line_is_named() {
    let (_from, export) = exported(50);
    let lines: Vec<String> = fs::read_to_string(&export).unwrap().lines().map(str::to_owned).collect();
    let swapped = lines[19].replace("\"id\":20,", "\"id\":21,");
    for bad in ["{\"id\":20,", "not json", "[]", "{\"id\":20,\"ts\":1,\"type\":\"no_such_thing\"}", swapped.as_str()] {
        let to = Grounds::new();
        let mut mended = lines.clone();
        mended[19] = bad.to_owned();
        let path = to.path().join("bad.jsonl");
        fs::write(&path, mended.join("\n")).unwrap();
        fs::remove_dir_all(to.data()).unwrap();
        let ran = to.run(&["import", path.to_str().unwrap()]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("line 20: ") && ran.stderr.contains("hint: nothing is imported;"), "{ran:?}");
        assert!(!to.data().exists(), "a command would begin a project here");
        assert_eq!(imported(&to, &export), (0, 50));
    }
}

#[test]
fn a_foreign_log_is_refused_and_left_alone() {
    let (_from, export) = exported(50);
    let (to, _) = exported(30);
    let before = export_of(&to);
    let ran = to.run(&["import", export.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("event 1 of this store differs from the one in the file"), "{ran:?}");
    assert_eq!(export_of(&to), before);
    // Nor does a beginning of the same log undo what came after it.
    let (longer, whole) = exported(60);
    let part = longer.path().join("part.jsonl");
    let text: String = fs::read_to_string(&whole).unwrap().lines().take(40).map(|line| format!("{line}\n")).collect();
    fs::write(&part, text).unwrap();
    let ran = longer.run(&["import", part.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("60 events, the file only 40"), "{ran:?}");
}

#[test]
fn a_running_daemon_is_in_the_way() {
    let (from, export) = exported(20);
    let daemon = from.up();
    let ran = from.run(&["import", export.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&format!("pid {}", daemon.pid())) && ran.stderr.contains("hatchery down"), "{ran:?}");
}

/// The processes and worktrees of an exported log are in the other folder. In the new one nothing is open that cannot be ended, whenever
/// the first daemon is killed.
#[test]
fn what_was_open_in_the_other_folder_is_over_here() {
    let shop = Workshop::open();
    let ask = json!({ "ask": { "name": "Bash", "input": { "command": "make" }, "result": "made" } });
    let asks = shop.run(&[ask]);
    shop.wait_for(&asks, "question_asked");
    let slow = || json!({ "sleep_ms": 600_000 });
    let works = shop.run(&[slow()]);
    shop.wait_for(&works, "run_started");
    let book = shop.playbook().play("codeweaver", &[slow()]);
    let quest = shop.new_quest(&book, json!({ "preset": "quick" }));
    shop.wait("the quest's agent", |event| event["type"] == "step_begun" && event["quest"] == quest);
    let file = shop.grounds.path().join("open.jsonl");
    shop.grounds.run(&["export", file.to_str().unwrap()]).good();

    let to = Grounds::with("harness = 'scripted'\n");
    to.run(&["import", file.to_str().unwrap()]).good();
    to.up().kill();
    let daemon = to.up();
    let (follower, _doors) = Follower::of(&daemon.door);
    for agent in [&asks, &works] {
        let is_end = |event: &Value| event["type"] == "run_ended" && event["agent"] == **agent;
        let ended = follower.wait_until(|seen| is_end(&serde_json::from_str(&seen.data).unwrap()));
        let ended: Value = serde_json::from_str(&ended.unwrap().data).unwrap();
        assert_eq!(ended["cause"], "lost_with_machine", "{ended}");
        assert!(ended["detail"].as_str().unwrap().contains("another project folder"), "{ended}");
        let stop = daemon.door.post(&format!("/api/agents/{agent}/stop"), &json!({}));
        assert_eq!((stop.status, stop.json()["error"]["code"].as_str()), (404, Some("no_run")), "{stop:?}");
    }
    assert_eq!(daemon.door.get("/api/questions").json()["questions"], json!([]));
    let paused = follower.wait_until(|seen| seen.data.contains("quest_paused"));
    assert!(paused.is_some());
    let resumed = daemon.door.post(&format!("/api/quests/{quest}/resume"), &json!({}));
    assert_eq!(resumed.json()["error"]["code"], "quest_of_another_folder", "{resumed:?}");
    // The other project goes on as if nothing had happened.
    assert_eq!(shop.count_of(&works, "run_ended"), 0);
}

/// A project with so many events of every kind, and its export. Nothing serves it.
fn exported(events: u64) -> (Grounds, PathBuf) {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let session = daemon.door.post("/api/sessions", &json!({ "label": "ü\u{2028}\"" })).id();
    let over = daemon.door.post("/api/sessions", &json!({})).id();
    let agent = daemon.door.agent(Some(&session));
    let asleep = daemon.door.agent(Some(&over));
    let dead = daemon.door.agent(None);
    assert_eq!(daemon.door.post(&format!("/api/agents/{dead}/kill"), &json!({ "remark": "done" })).status, 200);
    assert_eq!(daemon.door.post(&format!("/api/agents/{asleep}/rename"), &json!({ "name": "Cael" })).status, 200);
    assert_eq!(daemon.door.post(&format!("/api/sessions/{over}/end"), &json!({})).status, 202);
    wait_for_the_end(&daemon);
    fill(&daemon, &agent, events);
    drop(daemon);
    let path = grounds.path().join("export.jsonl");
    grounds.run(&["export", path.to_str().unwrap()]).good();
    grounds.run(&["down"]).good();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count() as u64, events);
    (grounds, path)
}

/// Messages up to this event.
fn fill(daemon: &Daemon, agent: &str, events: u64) {
    let path = format!("/api/agents/{agent}/messages");
    let head = daemon.door.head();
    crate::support::runtime().block_on(async {
        let mut clients: Vec<_> = (0..64).map(|_| daemon.door.http()).collect();
        let count = clients.len() as u64;
        futures_util::future::join_all(clients.iter_mut().zip(0u64..).map(|(http, number)| {
            let path = &path;
            async move {
                for event in (head + 1..=events).filter(|event| event % count == number) {
                    let body = json!({ "kind": "assistant", "content": format!("{event} \\u0000 \u{1f600}\n") });
                    assert_eq!(http.post(path, &body).await.unwrap().status, 201);
                }
            }
        }))
        .await;
    });
}

fn wait_for_the_end(daemon: &Daemon) {
    let (follower, _doors) = crate::support::follower::Follower::of(&daemon.door);
    // Agent 0, two sessions, three agents, one end, one name, an intent, a sleeper and an end: eleven events in all.
    follower.wait_for(11);
}

fn imported(to: &Grounds, file: &Path) -> (u64, u64) {
    let ran: Ran = to.run(&["import", "--json", file.to_str().unwrap()]);
    let counts: Value = serde_json::from_str(&ran.good()).unwrap();
    (counts["known"].as_u64().unwrap(), counts["added"].as_u64().unwrap())
}

fn export_of(grounds: &Grounds) -> String {
    let text = grounds.run(&["export"]).good();
    grounds.run(&["down"]).good();
    text
}
