//! The status through a daemon: requests, commands and other programs at once, and nothing is lost.

use crate::support::daemon::{Grounds, wait_until};
use crate::support::runtime;
use hatchery::state_file::StatusFolder;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

fn file(grounds: &Grounds) -> Value {
    let text = fs::read_to_string(StatusFolder::of(grounds.path()).state_file()).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn eighty_build_events_and_thirty_ideas_at_once_are_all_stored_once() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let answers = runtime().block_on(async {
        let posts = (0..110).map(|number| {
            let mut http = daemon.door.http();
            runtime().spawn(async move {
                match number {
                    0..80 => http.post("/api/build-events", &json!({ "kind": "chunk-started", "chunk": number })).await,
                    _ => {
                        http.post("/api/inbox", &json!({ "type": "evolve", "content": format!("idea {number}") })).await
                    }
                }
            })
        });
        futures_util::future::join_all(posts).await
    });
    let mut known = BTreeSet::new();
    for answer in answers {
        let answer = answer.unwrap().unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        known.insert(answer.json()["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(known.len(), 110);
    let status = daemon.door.get("/api/build-status").json();
    let inbox = daemon.door.get("/api/inbox").json();
    let stored: Vec<String> = ids(&status["buildEvents"]).into_iter().chain(ids(&inbox["items"])).collect();
    assert_eq!(stored.len(), 110, "each is there once");
    assert_eq!(stored.into_iter().collect::<BTreeSet<_>>(), known);
    // The files say the same when the answers are there.
    let inbox = fs::read_to_string(StatusFolder::of(grounds.path()).inbox_file()).unwrap();
    let in_files: BTreeSet<String> =
        ids(&file(&grounds)["buildEvents"]).into_iter().chain(ids(&serde_json::from_str(&inbox).unwrap())).collect();
    assert_eq!(in_files, known);
}

#[test]
fn an_event_that_is_posted_again_counts_once() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let event = json!({ "kind": "context-boundary", "id": "mine-1", "isolationMode": "subagent", "more": 1 });
    assert_eq!(daemon.door.post("/api/build-events", &event).json()["changed"], true);
    assert_eq!(daemon.door.post("/api/build-events", &event).json()["changed"], false);
    let status = daemon.door.get("/api/build-status").json();
    assert_eq!(status["buildEvents"].as_array().unwrap().len(), 1);
    assert_eq!(status["buildEvents"][0]["more"], 1);
    assert_eq!(status["contextHealth"]["isolationMode"], "subagent");
}

/// A viewer of builds that runs beside the writer of the file stores what it is told, too.
#[test]
fn events_are_stored_once_by_their_own_project_and_none_is_dropped() {
    const EVENTS: usize = 150;
    let shops = [Grounds::new(), Grounds::new()];
    let daemons = [shops[0].up(), shops[1].up()];
    let id = |shop: usize, number: usize| format!("event-{shop}-{number}");
    for number in 0..EVENTS {
        for (shop, daemon) in daemons.iter().enumerate() {
            let event = json!({ "kind": "chunk-started", "id": id(shop, number), "chunk": number });
            assert_eq!(daemon.door.post("/api/build-events", &event).json()["changed"], true);
        }
    }
    for (shop, daemon) in daemons.iter().enumerate() {
        // The same in the file, and three that are new: an unknown kind, a time that is a number, and one id twice.
        let mut state = file(&shops[shop]);
        let events = state["buildEvents"].as_array_mut().unwrap();
        events.push(json!({ "kind": "chunk-started", "id": id(shop, 3), "chunk": 3 }));
        events.push(json!({ "kind": "Unheard of!", "id": "odd" }));
        events.push(json!({ "kind": "chunk-started", "id": "numbered", "timestamp": 1_708_012_345_678_u64 }));
        events.push(json!({ "kind": "chunk-started", "id": "numbered", "timestamp": 1_708_012_345_678_u64 }));
        fs::write(StatusFolder::of(shops[shop].path()).state_file(), state.to_string()).unwrap();
        let expected: Vec<String> =
            (0..EVENTS).map(|number| id(shop, number)).chain(["odd".to_owned(), "numbered".to_owned()]).collect();
        wait_until("all are there, each once, in order", || ids(&file(&shops[shop])["buildEvents"]) == expected);
        let again = json!({ "kind": "chunk-started", "id": "numbered" });
        assert_eq!(daemon.door.post("/api/build-events", &again).json()["changed"], false);
        let log = daemon.door.log();
        let recorded = |id: &str| log.iter().filter(|line| line.contains(&format!("\"build_event\":\"{id}\""))).count();
        assert!(expected.iter().all(|id| recorded(id) == 1), "each is in the log once");
        assert_eq!(recorded(&id(1 - shop, 0)), 0, "and none of the other project");
    }
}

#[test]
fn requests_and_commands_count_up_together() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let count = || grounds.command(&["state", "incr", "n"]).stdout(Stdio::null()).spawn().unwrap();
    let calls: Vec<_> = (0..20).map(|_| count()).collect();
    runtime().block_on(async {
        let edit = json!({ "increment": { "path": "n" } });
        let posts = (0..60).map(|_| {
            let (mut http, edit) = (daemon.door.http(), edit.clone());
            runtime().spawn(async move { http.post("/api/state", &edit).await.unwrap() })
        });
        let mut sums = BTreeSet::new();
        for answer in futures_util::future::join_all(posts).await {
            let answer = answer.unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            assert!(sums.insert(answer.json()["value"].as_u64().unwrap()), "two were told the same sum");
        }
    });
    for mut call in calls {
        assert!(call.wait().unwrap().success());
    }
    assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 80);
    assert_eq!(file(&grounds)["n"], 80);
    // Reading changes nothing.
    let path = StatusFolder::of(grounds.path()).state_file();
    let before = fs::read(&path).unwrap();
    let head = daemon.door.head();
    for read in ["/api/state", "/api/build-status", "/api/inbox"] {
        assert_eq!(daemon.door.get(read).status, 200);
    }
    assert_eq!((fs::read(&path).unwrap(), daemon.door.head()), (before, head));
}

#[test]
fn a_client_may_wait_for_the_log_alone() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let change = json!({ "increment": { "path": "n" } });
    for expected in 1..=20 {
        let answer = daemon.door.post("/api/state?wait=log", &change);
        assert_eq!((answer.status, &answer.json()["value"]), (200, &json!(expected)));
        assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], expected);
    }
    wait_until("the file follows", || file(&grounds)["n"] == 20);
    // Who waits for the file sees it there, also behind changes that nobody waits for.
    let answer = daemon.door.post("/api/state?wait=file", &change);
    assert_eq!((&answer.json()["inFile"], &file(&grounds)["n"]), (&json!(true), &json!(21)));
    assert_eq!(daemon.door.post("/api/state?wait=never", &change).status, 400);
    // An answer is durable, whatever the file shows.
    daemon.door.post("/api/state?wait=log", &change);
    daemon.kill();
    let daemon = grounds.up();
    assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 22);
}

#[test]
fn what_is_counted_without_and_with_a_daemon_adds_up() {
    let grounds = Grounds::new();
    for expected in 1..=3 {
        assert_eq!(grounds.run(&["state", "incr", "n"]).good().trim(), expected.to_string());
    }
    let daemon = grounds.up();
    assert_eq!(grounds.run(&["state", "incr", "n"]).good().trim(), "4");
    // A daemon that is killed has written what it answered.
    daemon.kill();
    assert_eq!(grounds.run(&["state", "incr", "n"]).good().trim(), "5");
    let daemon = grounds.up();
    assert_eq!(grounds.run(&["state", "incr", "n"]).good().trim(), "6");
    assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 6);
}

#[test]
fn the_commands_say_the_same_through_a_daemon() {
    let grounds = Grounds::new();
    let _daemon = grounds.up();
    let run = |arguments: &[&str]| grounds.run(arguments);
    run(&["state", "command", "start", "evolve"]).good();
    let refused = run(&["state", "step", "start", "interviewer"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(
        refused.stderr.contains("Workflow error: State Owner must run before Interviewer can proceed."),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("(1) Run State Owner scan now (recommended)"), "{refused:?}");
    assert_eq!(run(&["state", "step", "start", "interviewer", "--choose", "run"]).good().trim(), "state-owner-scan");
    run(&["state", "step", "done", "state-owner-scan", "--summary", "three sections"]).good();
    assert_eq!(run(&["state", "step", "start", "interviewer"]).good().trim(), "interviewer");
    let idea = run(&["inbox", "add", "Make onboarding faster"]).good();
    assert!(run(&["inbox", "process"]).good().contains(idea.trim()));
    assert_eq!(run(&["inbox", "process"]).code, Some(1), "it is taken by one");
    run(&["inbox", "process", idea.trim(), "--done", "incorporated"]).good();
    run(&["build", "plan", r#"{"chunks":[{"name":"one"},{"name":"two","dependsOn":[1]}]}"#]).good();
    let early = run(&["build", "chunk", "2", "start"]);
    assert!(early.code == Some(1) && early.stderr.contains("depends on chunks that are not completed"), "{early:?}");
    assert_eq!(run(&["build", "chunk", "1", "start"]).good().trim(), "active");
    assert_eq!(run(&["build", "chunk", "1", "done"]).good().trim(), "completed");
    let state = file(&grounds);
    assert_eq!(state["completedSteps"], json!(["state-owner-scan"]));
    assert_eq!(state["agentOutputs"]["state-owner-scan"]["summary"], "three sections");
    assert_eq!((&state["chunkProgress"]["current"], &state["chunkProgress"]["total"]), (&json!(1), &json!(2)));
    let inbox = fs::read_to_string(StatusFolder::of(grounds.path()).inbox_file()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&inbox).unwrap()[0]["status"], "incorporated");
}

#[test]
fn refusals_over_http_have_their_codes() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let edit = |body: Value| daemon.door.post("/api/state", &body);
    assert_eq!(edit(json!({ "set": { "path": "a", "value": "x" } })).json()["value"], "x");
    for (body, status, code) in [
        (json!({ "set": { "path": "a.b", "value": 1 } }), 409, "nothing_below"),
        (json!({ "set": { "path": "a" } }), 400, "bad_json"),
        (json!({ "set": { "path": "a..b", "value": 1 } }), 400, "bad_json"),
        (json!({ "set": { "path": "b[99999999]", "value": 1 } }), 409, "no_such_item"),
        (json!({ "increment": { "path": "a" } }), 409, "not_a_number"),
        (json!({ "merge": { "patch": [] } }), 422, "patch_not_an_object"),
        (json!({ "move_chunk": { "chunk": 1, "action": "start" } }), 404, "no_build_run"),
        (json!({ "start_step": { "step": "interviewer" } }), 409, "steps_missing"),
    ] {
        let answer = edit(body.clone());
        assert_eq!((answer.status, answer.error().0.as_str()), (status, code), "{body}");
    }
    let idea = daemon.door.post("/api/inbox", &json!({ "type": "odd", "content": "x" }));
    assert_eq!((idea.status, idea.error().0.as_str()), (422, "bad_idea_type"));
    let event = daemon.door.post("/api/build-events", &json!({ "chunk": 1 }));
    assert_eq!((event.status, event.error().0.as_str()), (422, "build_event_without_kind"));
}

#[test]
fn a_damaged_file_is_set_aside_and_made_again_from_the_log() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    grounds.run(&["state", "set", "scenarioScore", r#"{"satisfied":5,"total":8}"#]).good();
    grounds.run(&["inbox", "add", "an idea"]).good();
    let folder = StatusFolder::of(grounds.path());
    fs::write(folder.state_file(), "{\"scenarioScore\": {\"sat").unwrap();
    fs::write(folder.inbox_file(), "").unwrap();
    let whole = || folder.state().is_ok_and(|state| state.scenario_score().is_some_and(|score| score.done == 5));
    wait_until("the state is made again", whole);
    wait_until("the inbox is made again", || folder.inbox().is_ok_and(|inbox| inbox.items().len() == 1));
    let names: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    for kept in ["state.json.corrupt-", "inbox.json.corrupt-"] {
        assert!(names.iter().any(|name| name.starts_with(kept)), "{names:?}");
    }
    assert_eq!(daemon.door.get("/api/inbox").json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_folder_in_the_place_of_the_file_is_told_and_nothing_is_lost() {
    let grounds = Grounds::new();
    let _daemon = grounds.up();
    grounds.run(&["state", "set", "n", "1"]).good();
    let path = StatusFolder::of(grounds.path()).state_file();
    let other = grounds.path().join("other");
    fs::create_dir(&other).unwrap();
    // In one go: the daemon makes a file again that is missing.
    let swap = rustix::fs::RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(rustix::fs::CWD, &other, rustix::fs::CWD, &path, swap).unwrap();
    let ran = grounds.run(&["state", "incr", "n"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "2"), "the log has it: {ran:?}");
    assert!(ran.stderr.contains("cannot write it into .fctry/state.json"), "{ran:?}");
    assert_eq!(grounds.run(&["state", "get", "n"]).good().trim(), "2");
    fs::remove_dir(&path).unwrap();
    wait_until("the file is there again", || path.is_file() && file(&grounds)["n"] == 2);
}

#[test]
fn a_folder_in_the_place_of_the_inbox_is_told_and_no_idea_is_lost() {
    let grounds = Grounds::new();
    let _daemon = grounds.up();
    grounds.run(&["inbox", "add", "first"]).good();
    let path = StatusFolder::of(grounds.path()).inbox_file();
    let other = grounds.path().join("other");
    fs::create_dir(&other).unwrap();
    let swap = rustix::fs::RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(rustix::fs::CWD, &other, rustix::fs::CWD, &path, swap).unwrap();
    let ran = grounds.run(&["inbox", "add", "second"]);
    assert!(ran.code == Some(0) && ran.stdout.starts_with("inbox-"), "the log has it: {ran:?}");
    assert!(ran.stderr.contains("cannot write it into .fctry/inbox.json"), "{ran:?}");
    let list: Value = serde_json::from_str(&grounds.run(&["inbox", "list", "--json"]).good()).unwrap();
    let ideas: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|idea| &idea["content"]).collect();
    assert_eq!(ideas, ["second", "first"], "the daemon knows them");
    fs::remove_dir(&path).unwrap();
    wait_until("the file is there again", || path.is_file());
    let ran = grounds.run(&["inbox", "add", "third"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "all is well again");
}

#[test]
fn what_the_status_line_is_told_is_the_use_of_the_context() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    grounds.run(&["state", "set", "contextState", r#"{"usage":3,"attribution":{"code":5}}"#]).good();
    let head = daemon.door.head();
    for (told, shown) in [(71.6, 72), (12.0, 12)] {
        let session = json!({ "cwd": grounds.path(), "context_window": { "used_percentage": told } }).to_string();
        let mut line = grounds.command(&["statusline"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        line.stdin.take().unwrap().write_all(session.as_bytes()).unwrap();
        assert!(line.wait().unwrap().success());
        let health = || daemon.door.get("/api/build-status").json()["contextHealth"]["usage"].clone();
        wait_until("the daemon knows it", || health() == shown);
        wait_until("the file shows it", || file(&grounds)["contextState"]["usage"] == shown);
        assert_eq!(file(&grounds)["contextState"]["attribution"], json!({ "code": 5 }), "the rest is kept");
    }
    assert_eq!(daemon.door.head(), head, "the log does not grow with each prompt");
    // It is known again after a restart.
    daemon.kill();
    let daemon = grounds.up();
    assert_eq!(daemon.door.get("/api/build-status").json()["contextHealth"]["usage"], 12);
}

#[test]
fn too_many_fields_are_counted_as_fields() {
    let grounds = Grounds::new();
    let _daemon = grounds.up();
    let many: serde_json::Map<String, Value> = (0..1_000).map(|number| (format!("f{number}"), json!(number))).collect();
    grounds.run(&["state", "merge", &Value::from(many).to_string()]).good();
    let refused = grounds.run(&["state", "set", "one.more", "1"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("has 1000 fields already, and 1000 is the most"), "{refused:?}");
    grounds.run(&["state", "set", "f7", "70"]).good();
}

/// A run whose first chunk was built from a section that has changed since.
fn outdated(grounds: &Grounds) {
    fs::create_dir_all(grounds.path().join(".fctry")).unwrap();
    let write =
        |text: &str| fs::write(grounds.path().join(".fctry/spec.md"), format!("# A\n## 1 A {{#a}}\n{text}\n")).unwrap();
    write("old");
    grounds.run(&["build", "plan", r##"{"chunks":[{"name":"one","sections":["#a"]},{"name":"two"}]}"##]).good();
    grounds.run(&["build", "chunk", "1", "start"]).good();
    grounds.run(&["build", "chunk", "1", "done"]).good();
    write("new");
}

#[test]
fn a_build_is_resumed_over_http_by_the_same_rules() {
    let grounds = Grounds::new();
    outdated(&grounds);
    let daemon = grounds.up();
    let shown = daemon.door.get("/api/build-resume").json();
    assert_eq!((&shown["completed"], &shown["outdated"], &shown["remaining"]), (&json!([1]), &json!([1]), &json!([2])));
    let resume = |given: Value| daemon.door.post("/api/state", &json!({ "resume_build": given }));
    let refused = resume(json!({}));
    assert_eq!((refused.status, refused.error().0.as_str()), (409, "chunks_outdated"));
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with(": 1"), "{message}");
    let status = || daemon.door.get("/api/state?path=buildRun.chunks[0].status").json()["value"].clone();
    assert_eq!(resume(json!({ "changed": "keep" })).status, 200);
    assert_eq!(status(), "completed");
    assert_eq!(resume(json!({ "changed": "rebuild" })).status, 200);
    assert_eq!(status(), "planned");
    // What is built now is compared with the spec of now.
    for action in ["start", "complete"] {
        let moved = json!({ "move_chunk": { "chunk": 1, "action": action } });
        assert_eq!(daemon.door.post("/api/state", &moved).status, 200);
    }
    assert_eq!(daemon.door.get("/api/build-resume").json()["outdated"], json!([]));
    grounds.run(&["down"]).good();
    let cli = grounds.run(&["build", "resume", "--json", "--choose", "cancel"]).good();
    assert_eq!(serde_json::from_str::<Value>(&cli).unwrap()["outdated"], json!([]), "{cli}");
}

#[test]
fn a_build_is_resumed_with_tools_by_the_same_rules() {
    let grounds = Grounds::new();
    outdated(&grounds);
    let daemon = grounds.up();
    let mut tools = crate::support::mcp::Tools::start(&grounds, &daemon.door.root());
    let shown = tools.call("change-build", json!({ "action": "show" })).good();
    assert_eq!((&shown["completed"], &shown["outdated"]), (&json!([1]), &json!([1])), "{shown}");
    let refused = tools.call("change-build", json!({ "action": "resume" })).bad();
    assert!(refused.contains("chunk") && refused.contains("changed"), "{refused}");
    tools.call("change-build", json!({ "action": "resume", "rebuild": [1] })).good();
    let status = tools.call("get-state", json!({ "path": "buildRun.chunks[0].status" })).good();
    assert_eq!(status["value"], "planned");
}
