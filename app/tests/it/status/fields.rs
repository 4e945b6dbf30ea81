//! The fields that real programs use and the protocol does not describe. Each one is set, changed by another program, and known again after
//! a restart, with everything in it that Hatchery does not know.

use crate::support::daemon::{Grounds, wait_until};
use crate::support::mcp::Tools;
use hatchery::state_file::StatusFolder;
use serde_json::{Value, json};
use std::fs;

/// A field, what it is set to, and what another program writes there later.
fn fields() -> Vec<(&'static str, Value, Value)> {
    let event = |id: &str| json!({ "id": id, "kind": "chunk-verified", "timestamp": "2026-02-17T14:30:00Z", "x": [1] });
    let run = |status: &str| {
        json!({
            "runId": "run-1", "status": status, "chunks": [{ "id": 1, "name": "one", "status": "active", "attempt": 1, "mood": "calm" }],
            "pendingQuestion": { "text": "How wide?", "timestamp": "2026-02-20T10:00:00Z", "blockedChunks": [1], "sectionContext": "#a (1)" },
        })
    };
    let progress = |current: u64| json!({ "current": current, "total": 2, "chunks": [{ "id": 1, "name": "one", "status": "active", "eta": 1e3 }] });
    vec![
        ("sectionReadiness", json!({ "core-flow": "aligned" }), json!({ "core-flow": "spec-ahead", "rules": "draft" })),
        ("buildEvents", json!([event("e1")]), json!([event("e1"), event("e2")])),
        (
            "verificationSummary",
            json!({ "total": 3, "passed": 2 }),
            json!({ "total": 3, "passed": 3, "by": { "a": 1 } }),
        ),
        ("scanProgress", json!({ "scanned": 3, "total": 9 }), json!({ "scanned": 9, "total": 9 })),
        ("contextHealth", json!({ "level": "healthy" }), json!({ "level": "warning", "why": null })),
        (
            "contextState",
            json!({ "usage": 3, "isolationMode": "subagent", "attribution": { "code": 5 } }),
            json!({ "usage": 4, "isolationMode": "standard", "attribution": { "code": 6, "spec": 1 } }),
        ),
        ("experienceQuestion", json!("How wide?"), json!("How long?")),
        (
            "escalation",
            json!({ "severity": "low", "cause": "c" }),
            json!({ "severity": "high", "cause": "c", "evidence": [] }),
        ),
        ("upgradeApplied", json!({ "from": "1.0", "to": "2.0" }), json!({ "from": "1.0", "to": "2.1" })),
        ("execution", json!({ "priorities": ["speed"] }), json!({ "priorities": ["speed", "cost"], "mode": "auto" })),
        ("chunkProgress", progress(1), progress(2)),
        ("buildRun", run("paused"), run("partial")),
        (
            "unheardOf",
            json!({ "deep": { "er": 123_456_789_012_345_678_u64 } }),
            json!({ "deep": { "er": [null, 1.5] } }),
        ),
    ]
}

fn state(folder: &StatusFolder) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.state_file()).unwrap()).unwrap()
}

#[test]
fn every_field_of_real_programs_is_set_changed_and_kept() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let daemon = grounds.up();
    for (field, first, _) in fields() {
        grounds.run(&["state", "set", field, &first.to_string()]).good();
        assert_eq!(state(&folder)[field], first, "{field} is in the file");
    }
    // One by one, as a program does that writes back the whole file.
    for (field, first, then) in fields() {
        let mut theirs = state(&folder);
        assert_eq!(theirs[field], first, "{field} is untouched by the others");
        theirs[field] = then.clone();
        fs::write(folder.state_file(), serde_json::to_string_pretty(&theirs).unwrap()).unwrap();
        let known = || daemon.door.get(&format!("/api/state?path={field}")).json()["value"].clone();
        wait_until(&format!("{field} is taken in"), || same(&known(), &then));
    }
    daemon.kill();
    let daemon = grounds.up();
    let shown = daemon.door.get("/api/state").json()["value"].clone();
    for (field, _, then) in fields() {
        assert!(same(&shown[field], &then), "{field} is {} after a restart", shown[field]);
        assert!(same(&state(&folder)[field], &then), "{field} is {} in the file", state(&folder)[field]);
    }
}

/// `null` equals absent.
fn same(one: &Value, other: &Value) -> bool {
    fn bare(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().filter(|(_, value)| !value.is_null());
                fields.map(|(name, value)| (name.clone(), bare(value))).collect::<serde_json::Map<_, _>>().into()
            }
            Value::Array(items) => items.iter().map(bare).collect(),
            other => other.clone(),
        }
    }
    bare(one) == bare(other)
}

#[test]
fn what_real_programs_write_into_an_idea_is_kept() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let daemon = grounds.up();
    let id = grounds.run(&["inbox", "add", "Make it faster"]).good().trim().to_owned();
    let mut theirs: Value = serde_json::from_str(&fs::read_to_string(folder.inbox_file()).unwrap()).unwrap();
    let more = json!({
        "note": "in 2.1", "incorporated": true, "consumedBy": "evolve", "mood": [1],
        "analysis": { "affectedSections": [{ "alias": "core-flow", "number": "2.2" }], "summary": "small" },
    });
    theirs[0].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fs::write(folder.inbox_file(), theirs.to_string()).unwrap();
    let idea = |item: &Value| more.as_object().unwrap().iter().all(|(name, value)| item[name] == *value);
    let known = |path: &str| daemon.door.get(path).json()["items"][0]["item"].clone();
    wait_until("it is taken in", || idea(&known("/api/inbox")));
    daemon.kill();
    // A change of the idea leaves the rest of it alone, without a daemon and with one.
    let taken: Value = serde_json::from_str(&grounds.run(&["inbox", "process", &id, "--json"]).good()).unwrap();
    assert!(taken["status"] == "processing" && taken["mood"] == json!([1]), "{taken}");
    let daemon = grounds.up();
    let item = daemon.door.get("/api/inbox").json()["items"][0]["item"].clone();
    let rest = ["note", "incorporated", "analysis", "mood"].iter().all(|name| item[name] == more[name]);
    assert!(rest && item["status"] == "processing", "{item}");
    let file: Value = serde_json::from_str(&fs::read_to_string(folder.inbox_file()).unwrap()).unwrap();
    assert_eq!(file[0], item);
}

#[test]
fn a_value_of_the_wrong_shape_is_refused_by_every_way_to_change_the_status() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    fs::create_dir_all(folder.path()).unwrap();
    // Another program is not told, so what it has written is taken as it is.
    fs::write(folder.state_file(), r#"{"scenarioScore":"good"}"#).unwrap();
    let words = "`buildRun` cannot be \"x\": the protocol says that it is an object";
    for with_daemon in [false, true] {
        let daemon = with_daemon.then(|| grounds.up());
        for arguments in
            [&["state", "set", "buildRun", "\"x\""][..], &["state", "merge", r#"{"nextStep":"y","buildRun":"x"}"#]]
        {
            let refused = grounds.run(arguments);
            assert_eq!(refused.code, Some(2), "{with_daemon}, {arguments:?}: {refused:?}");
            assert!(refused.stderr.contains(words) && refused.stderr.contains("hint:"), "{refused:?}");
        }
        if let Some(daemon) = daemon {
            let answer = daemon.door.post("/api/state", &json!({ "set": { "path": "buildRun", "value": "x" } }));
            assert_eq!((answer.status, answer.error().0.as_str()), (422, "wrong_shape"), "{answer:?}");
            let mut tools = Tools::start(&grounds, &daemon.door.root());
            let change = json!({ "action": "set", "path": "buildRun", "value": "\"x\"" });
            let said = tools.call("change-state", change).bad();
            assert!(said.contains(words), "{said}");
        }
        assert_eq!(state(&folder)["buildRun"], Value::Null);
        assert_eq!(state(&folder)["scenarioScore"], "good");
        grounds.run(&["state", "set", "nextStep", "\"y\""]).good();
        assert_eq!(state(&folder)["scenarioScore"], "good", "it is beside the change");
    }
}
