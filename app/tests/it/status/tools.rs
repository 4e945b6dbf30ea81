//! The status as tools of an agent.

use crate::support::daemon::{Grounds, wait_until};
use crate::support::mcp::Tools;
use crate::support::quest::{SHORT, done, mcp, step};
use crate::support::workshop::Workshop;
use hatchery::state_file::StatusFolder;
use serde_json::{Value, json};
use std::fs;

#[test]
fn each_tool_changes_what_it_says() {
    let grounds = Grounds::new();
    fs::create_dir_all(StatusFolder::of(grounds.path()).path()).unwrap();
    let daemon = grounds.up();
    let mut tools = Tools::start(&grounds, &daemon.door.root());
    grounds
        .run(&["state", "merge", r#"{"completedSteps":["interviewer"],"agentOutputs":{"a":{"summary":"s"}}}"#])
        .good();
    tools.call("workflow-command", json!({ "action": "start", "name": "evolve" })).good();
    let begun = tools.call("get-state", json!({})).good()["value"].clone();
    assert_eq!((&begun["currentCommand"], &begun["completedSteps"]), (&json!("evolve"), &json!([])));
    assert_eq!(begun["agentOutputs"], Value::Null, "what the last command left is cleared");
    let nameless = tools.call("workflow-command", json!({ "action": "start" })).bad();
    assert!(nameless.contains("`start` needs `name`"), "{nameless}");
    tools.call("change-state", json!({ "action": "increment", "path": "n", "by": 3 })).good();
    let missing = tools.call("workflow-step", json!({ "action": "start", "step": "interviewer" })).bad();
    assert!(missing.contains("State Owner must run before Interviewer"), "{missing}");
    tools.call("workflow-step", json!({ "action": "start", "step": "interviewer", "choose": "skip" })).good();
    tools.call("change-build", json!({ "action": "plan", "plan": r#"{"chunks":[{"name":"one"}]}"# })).good();
    tools.call("change-build", json!({ "action": "start", "chunk": 1 })).good();
    tools.call("build-event", json!({ "kind": "chunk-verified", "fields": r#"{"summary":"4/4"}"# })).good();
    tools.call("inbox", json!({ "action": "add", "content": "faster" })).good();
    let taken = tools.call("inbox", json!({ "action": "take" })).good();
    assert_eq!(taken["item"]["status"], "processing");
    let state = tools.call("get-state", json!({})).good()["value"].clone();
    assert_eq!((&state["n"], &state["workflowStep"]), (&json!(3), &json!("interviewer")));
    assert_eq!(state["skippedSteps"][0]["step"], "interviewer");
    assert_eq!(state["buildRun"]["chunks"][0]["status"], "active");
    assert_eq!(state["buildEvents"][0]["kind"], "chunk-verified");
    assert_eq!(tools.call("get-state", json!({ "path": "n" })).good()["value"], 3);
    let wrong = tools.call("change-state", json!({ "action": "wish", "path": "n" })).bad();
    assert!(wrong.contains("choose set, merge, increment, append or clear"), "{wrong}");
    tools.call("workflow-command", json!({ "action": "done" })).good();
    assert_eq!(tools.call("get-state", json!({ "path": "currentCommand" })).good()["value"], Value::Null);
}

#[test]
fn an_agent_of_a_quest_writes_its_change_down_first() {
    let shop = Workshop::with(SHORT, Vec::new());
    let folder = StatusFolder::of(shop.grounds.path());
    fs::create_dir_all(folder.path()).unwrap();
    let change = mcp("change-state", json!({ "action": "increment", "path": "counts.builds" }));
    let book = shop.playbook().play("a.codeweaver", &[change.clone(), change, done("a")]);
    shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    shop.wait("the end", |event| event["type"] == "quest_completed");
    let counted = || {
        let text = fs::read_to_string(folder.state_file()).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["counts"]["builds"] == 2
    };
    wait_until("both are counted, once", counted);
    assert_eq!(shop.events().iter().filter(|event| event["type"] == "call_taken").count(), 3);
}
