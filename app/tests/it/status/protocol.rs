//! The protocol as its readers know it: every field that Hatchery writes has the type, the range and the company that the protocol gives it.
//! A field that is not described here is a mistake, too. The readers are programs in other languages, which take what is there as it is.

use crate::support::daemon::{Grounds, wait_until};
use crate::support::quest::{WARDED, done, signal, step, write};
use crate::support::workshop::Workshop;
use hatchery::state_file::StatusFolder;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

const STEPS: [&str; 8] = [
    "state-owner-scan",
    "interviewer",
    "researcher",
    "visual-translator",
    "scenario-crafter",
    "spec-writer",
    "executor-plan",
    "executor-build",
];
const CHUNK_STATUSES: [&str; 5] = ["planned", "active", "retrying", "completed", "failed"];

type Fits = fn(&Value) -> bool;

fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok())
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

fn is_line(value: &Value) -> bool {
    is_text(value) && !value.as_str().unwrap().contains('\n')
}

fn is_alias(value: &Value) -> bool {
    is_line(value) && value.as_str().unwrap().starts_with('#')
}

fn is_count(value: &Value) -> bool {
    value.is_u64()
}

fn all(value: &Value, fits: Fits) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(fits))
}

fn is_texts(value: &Value) -> bool {
    all(value, is_text)
}

/// `current` of `total`, or `satisfied` of `total`.
fn is_share(value: &Value, part: &str) -> bool {
    let (part, total) = (value[part].as_u64(), value["total"].as_u64());
    part.zip(total).is_some_and(|(part, total)| part <= total)
}

/// Each field of an object is described and fits. `null` equals absent.
fn described(object: &Value, needs: &[&str], fields: &[(&str, Fits)]) -> Result<(), String> {
    let Some(object) = object.as_object() else { return Err(format!("{object} is not an object")) };
    for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let Some((_, fits)) = fields.iter().find(|(known, _)| known == name) else {
            return Err(format!("`{name}` is not described: {value}"));
        };
        if !fits(value) {
            return Err(format!("`{name}` cannot be {value}"));
        }
    }
    match needs.iter().find(|name| object.get(**name).is_none_or(Value::is_null)) {
        Some(name) => Err(format!("`{name}` is missing in {object:?}")),
        None => Ok(()),
    }
}

fn check(state: &Value) -> Result<(), String> {
    let fields: [(&str, Fits); 20] = [
        ("activeSection", is_alias),
        ("activeSectionNumber", is_line),
        ("currentCommand", |it| ["init", "evolve", "ref", "review", "execute"].iter().any(|known| it == known)),
        ("workflowStep", |it| STEPS.iter().any(|known| it == known)),
        ("completedSteps", |it| all(it, |step| STEPS.iter().any(|known| step == known))),
        ("skippedSteps", |it| all(it, |skip| is_text(&skip["step"]) && is_time(&skip["timestamp"]))),
        ("nextStep", is_line),
        ("scenarioScore", |it| is_share(it, "satisfied")),
        ("chunkProgress", |it| is_share(it, "current")),
        ("readinessSummary", |it| it.as_object().is_some_and(|counts| counts.values().all(is_count))),
        ("untrackedChanges", |it| all(it, |change| untracked(change).is_ok())),
        ("specVersion", is_line),
        ("agentOutputs", |it| it.as_object().is_some_and(|by| by.values().all(|output| is_text(&output["summary"])))),
        ("lastUpdated", is_time),
        ("buildRun", |it| run(it).map_err(|why| println!("buildRun: {why}")).is_ok()),
        ("buildEvents", |it| all(it, |event| build_event(event).map_err(|why| println!("{event}: {why}")).is_ok())),
        ("experienceQuestion", is_line),
        ("contextState", |it| context(it).map_err(|why| println!("contextState: {why}")).is_ok()),
        ("counters", Value::is_object),
        ("notes", Value::is_array),
    ];
    described(state, &["lastUpdated"], &fields)?;
    if state["activeSection"].is_null() && !state["activeSectionNumber"].is_null() {
        return Err("a number of a section without the section".into());
    }
    // The progress follows from the chunks.
    let statuses =
        |of: &Value| -> Vec<Value> { of.as_array().into_iter().flatten().map(|it| it["status"].clone()).collect() };
    let (chunks, progress) = (statuses(&state["buildRun"]["chunks"]), &state["chunkProgress"]);
    match progress.is_null() || (progress["total"] == chunks.len() && statuses(&progress["chunks"]) == chunks) {
        true => Ok(()),
        false => Err(format!("{progress} does not follow from {chunks:?}")),
    }
}

fn untracked(change: &Value) -> Result<(), String> {
    let fields: [(&str, Fits); 4] =
        [("file", is_line), ("section", is_line), ("sectionNumber", is_line), ("timestamp", is_time)];
    described(change, &["file", "section", "timestamp"], &fields)
}

fn run(run: &Value) -> Result<(), String> {
    let fields: [(&str, Fits); 9] = [
        ("runId", |it| it.as_str().and_then(|id| id.strip_prefix("run-")?.parse::<u64>().ok()).is_some()),
        ("status", |it| ["running", "paused", "partial", "completed"].iter().any(|known| it == known)),
        ("startedAt", is_time),
        ("plan", Value::is_object),
        ("chunks", Value::is_array),
        ("convergencePhase", is_line),
        ("lastCheckpoint", is_time),
        ("questId", is_line),
        ("pendingQuestion", Value::is_object),
    ];
    described(run, &["runId", "status", "startedAt", "plan", "chunks"], &fields)?;
    let terms: [(&str, Fits); 4] = [
        ("totalChunks", is_count),
        ("priorities", is_texts),
        ("prioritySource", |it| ["global", "project", "user-prompt"].iter().any(|known| it == known)),
        ("specVersion", is_line),
    ];
    described(&run["plan"], &["totalChunks", "priorities"], &terms)?;
    let chunks = run["chunks"].as_array().unwrap();
    if run["plan"]["totalChunks"] != chunks.len() {
        return Err(format!("{} chunks, and the plan has {}", chunks.len(), run["plan"]["totalChunks"]));
    }
    chunks.iter().zip(1..).try_for_each(|(it, number)| chunk(it, number, chunks.len() as u64))?;
    pending_question(run)?;
    // A run is partial when it ended with failed chunks.
    let stands = |chunk: &Value| ["completed", "failed", "planned"].iter().any(|known| chunk["status"] == *known);
    let has_failed = chunks.iter().any(|chunk| chunk["status"] == "failed");
    if run["status"] == "partial" && !(has_failed && chunks.iter().all(stands)) {
        return Err(format!("it is not partial: {chunks:?}"));
    }
    // The last checkpoint is the last completion.
    let last = chunks.iter().filter_map(|chunk| chunk["completedAt"].as_str()).max();
    match run["lastCheckpoint"].as_str() == last {
        true => Ok(()),
        false => Err(format!("lastCheckpoint is {}, and the last completion {last:?}", run["lastCheckpoint"])),
    }
}

/// A run with a question is paused.
fn pending_question(run: &Value) -> Result<(), String> {
    let question = &run["pendingQuestion"];
    if question.is_null() {
        return Ok(());
    }
    let fields: [(&str, Fits); 4] = [
        ("text", is_line),
        ("timestamp", is_time),
        ("blockedChunks", |it| all(it, is_count)),
        ("sectionContext", is_alias),
    ];
    described(question, &["text", "timestamp", "blockedChunks"], &fields)?;
    let total = run["chunks"].as_array().unwrap().len() as u64;
    let known = |id: &Value| (1..=total).contains(&id.as_u64().unwrap());
    let fits = run["status"] == "paused" && question["blockedChunks"].as_array().unwrap().iter().all(known);
    if fits { Ok(()) } else { Err(format!("the question does not fit the run: {run}")) }
}

fn context(context: &Value) -> Result<(), String> {
    let fields: [(&str, Fits); 3] = [
        ("usage", |it| it.as_f64().is_some_and(|it| (0.0..=100.0).contains(&it))),
        ("isolationMode", is_line),
        ("lastCheckpoint", is_time),
    ];
    described(context, &[], &fields)
}

fn chunk(chunk: &Value, number: u64, total: u64) -> Result<(), String> {
    let fields: [(&str, Fits); 17] = [
        ("id", is_count),
        ("name", is_line),
        ("status", |it| CHUNK_STATUSES.iter().any(|known| it == known)),
        ("sections", |it| all(it, is_alias)),
        ("scenarios", is_texts),
        ("dependsOn", |it| all(it, is_count)),
        ("specVersionAtBuild", is_line),
        ("attempt", is_count),
        ("startedAt", is_time),
        ("completedAt", is_time),
        ("failedAt", is_time),
        // More than the protocol knows.
        ("attempts", is_count),
        ("stepId", is_line),
        ("error", is_line),
        ("sectionFingerprints", Value::is_object),
        ("creates", is_texts),
        ("modifies", is_texts),
    ];
    described(chunk, &["id", "name", "status", "sections", "scenarios", "dependsOn"], &fields)?;
    let status = chunk["status"].as_str().unwrap();
    let needs = chunk["dependsOn"].as_array().unwrap();
    let known = needs.iter().all(|id| (1..=total).contains(&id.as_u64().unwrap()) && *id != number);
    let fits = chunk["id"] == number
        && known
        && chunk["attempt"].is_u64() == ["active", "retrying"].contains(&status)
        && (status != "retrying" || chunk["attempt"].as_u64() > Some(1))
        && chunk["completedAt"].is_null() == (status != "completed")
        && chunk["failedAt"].is_null() == (status != "failed");
    if fits { Ok(()) } else { Err(format!("what belongs together does not fit: {chunk}")) }
}

fn build_event(event: &Value) -> Result<(), String> {
    let fields: [(&str, Fits); 14] = [
        ("id", is_line),
        ("kind", is_line),
        ("timestamp", is_time),
        ("chunk", is_line),
        ("summary", is_line),
        ("mode", |it| ["full", "reduced", "minimal"].iter().any(|known| it == known)),
        ("screenshot", is_line),
        ("checks", |it| {
            all(it, |check| {
                let result = ["pass", "fail"].iter().any(|known| check["result"] == *known);
                is_text(&check["name"]) && result && (check["retried"].is_null() || check["retried"].is_boolean())
            })
        }),
        // More than the protocol knows.
        ("isolationMode", is_line),
        ("attempt", is_count),
        ("reason", is_line),
        ("failed", is_texts),
        ("questId", is_line),
        ("stepId", is_line),
    ];
    described(event, &["id", "kind", "timestamp", "chunk", "summary"], &fields)?;
    let checked = ["chunk-verified", "verification-failed"].contains(&event["kind"].as_str().unwrap());
    if checked && event["mode"].is_null() { Err("a verification without its mode".into()) } else { Ok(()) }
}

fn idea(idea: &Value) -> Result<(), String> {
    let fields: [(&str, Fits); 10] = [
        ("id", |it| it.as_str().is_some_and(is_idea_id)),
        ("type", |it| ["evolve", "reference", "feature"].iter().any(|known| it == known)),
        ("content", is_text),
        ("timestamp", is_time),
        ("status", |it| {
            ["pending", "processing", "processed", "incorporated", "error"].iter().any(|known| it == known)
        }),
        // More than the protocol knows.
        ("note", is_text),
        ("consumedBy", is_text),
        ("processingAt", is_time),
        ("processedAt", is_time),
        ("incorporated", Value::is_boolean),
    ];
    described(idea, &["id", "type", "content", "timestamp", "status"], &fields)
}

/// `inbox-{timestamp}-{random}`
fn is_idea_id(id: &str) -> bool {
    let parts = id.strip_prefix("inbox-").and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(time, random)| time.parse::<u64>().is_ok() && !random.is_empty() && !random.contains('-'))
}

fn state(folder: &StatusFolder) -> Value {
    let text =
        fs::read_to_string(folder.state_file()).unwrap_or_else(|_| r#"{"lastUpdated":"2026-01-01T00:00:00Z"}"#.into());
    serde_json::from_str(&text).unwrap()
}

/// Every command that changes the files, with and without a daemon.
#[test]
fn every_field_that_commands_write_is_as_the_protocol_says() {
    for with_daemon in [false, true] {
        let grounds = Grounds::new();
        let folder = StatusFolder::of(grounds.path());
        fs::create_dir_all(folder.path()).unwrap();
        fs::write(folder.path().join("spec.md"), "### 2.2 Core flow {#core-flow}\nsee `src/flow.rs`\n").unwrap();
        fs::write(folder.path().join("config.json"), r#"{"versions":{"spec":{"current":"1.2"}}}"#).unwrap();
        let _daemon = with_daemon.then(|| grounds.up());
        let run = |arguments: &[&str]| {
            let said = grounds.run(arguments).good();
            check(&state(&folder)).unwrap_or_else(|why| panic!("after {arguments:?}: {why}"));
            said
        };
        let mut hook = grounds.command(&["state", "untracked"]).stdin(Stdio::piped()).spawn().unwrap();
        let wrote = json!({ "tool_name": "Write", "tool_input": { "file_path": grounds.path().join("src/flow.rs") } });
        hook.stdin.take().unwrap().write_all(wrote.to_string().as_bytes()).unwrap();
        assert!(hook.wait().unwrap().success());
        check(&state(&folder)).unwrap();
        assert!(!state(&folder)["untrackedChanges"].is_null());
        run(&["state", "command", "start", "evolve"]);
        run(&["state", "step", "start", "interviewer", "--choose", "skip"]);
        run(&["state", "step", "done", "interviewer", "--summary", "five decisions"]);
        run(&["state", "set", "scenarioScore", r#"{"satisfied":5,"total":8}"#]);
        run(&[
            "state",
            "merge",
            r##"{"activeSection":"#core-flow","activeSectionNumber":"2.2","readinessSummary":{"draft":7}}"##,
        ]);
        run(&["state", "incr", "counters.builds"]);
        run(&["state", "append", "notes", r#"{"text":"one"}"#]);
        run(&["state", "clear", "activeSectionNumber"]);
        run(&["state", "set", "nextStep", "\"Build it\""]);
        let plan = r##"{"priorities":["speed"],"prioritySource":"project","convergencePhase":"first",
            "chunks":[{"name":"one","sections":["#core-flow"]},{"name":"two","dependsOn":[1],"scenarios":["It works"]}]}"##;
        assert!(run(&["build", "plan", plan]).starts_with("run-"));
        for (chunk, action) in
            [("1", "start"), ("1", "retry"), ("1", "fail"), ("1", "retry"), ("1", "done"), ("2", "start")]
        {
            run(&["build", "chunk", chunk, action]);
        }
        run(&["build", "pause"]);
        run(&["build", "resume", "--choose", "resume", "--changed", "keep"]);
        let event = r#"{"chunk":"two","summary":"1/1 checks passed","mode":"full","checks":[{"name":"it","result":"pass","retried":true}]}"#;
        run(&["state", "event", "chunk-verified", event]);
        for action in ["start", "fail", "retry", "done"] {
            run(&["build", "chunk", "2", action]);
        }
        assert!(state(&folder)["buildRun"].is_null(), "a completed build run is cleared");
        run(&["state", "command", "done"]);
        let first = run(&["inbox", "add", "Make it faster"]);
        run(&["inbox", "add", "https://example.org", "--type", "reference"]);
        run(&["inbox", "process", first.trim()]);
        run(&["inbox", "process", first.trim(), "--done", "incorporated", "--note", "in 2.1"]);
        let inbox: Vec<Value> = serde_json::from_slice(&fs::read(folder.inbox_file()).unwrap()).unwrap();
        assert_eq!(inbox.len(), 2);
        inbox.iter().try_for_each(idea).unwrap();
    }
}

/// A quest that asks, is paused, has a red ward, and in the end a step that fails.
#[test]
fn every_field_that_a_quest_shows_is_as_the_protocol_says() {
    let shop = Workshop::with(WARDED, Vec::new());
    let folder = StatusFolder::of(shop.grounds.path());
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("spec.md"), "### 2.2 Core flow {#core-flow}\nIt flows.\n").unwrap();
    shop.grounds.run(&["state", "set", "specVersion", "\"1.2\""]).good();
    let gate = shop.gate();
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop
        .playbook()
        .play("a.codeweaver", &[ask, json!("turn"), done("wide")])
        .play("a.spiritmender", &[write("verdict", "green"), done("mended")])
        .play("b.codeweaver", &[gate.pass(), done("b")])
        .play("c.codeweaver", &[write("verdict", "red"), done("c")])
        .play("c.spiritmender", &[done("found nothing")]);
    let mut first = step("a", &[]);
    first["description"] = json!("Builds what #core-flow says.");
    let steps = [first, step("b", &["a"]), step("c", &["b"])];
    let ward = "test \"$(cat verdict)\" = green";
    let quest = shop.new_quest(&book, json!({ "steps": steps, "ward": ward }));
    let mut seen = Map::new();
    let mut until = |what: &str, is_so: &dyn Fn(&Value) -> bool| {
        wait_until(what, || {
            let state = state(&folder);
            check(&state).unwrap_or_else(|why| panic!("{what}: {why}: {state:#}"));
            seen.extend(state.as_object().unwrap().clone().into_iter().filter(|(_, value)| !value.is_null()));
            is_so(&state)
        });
    };
    until("the question is shown", &|it| it["buildRun"]["pendingQuestion"]["text"] == "How wide?");
    let question = state(&folder)["buildRun"]["pendingQuestion"].clone();
    assert_eq!(
        (&question["blockedChunks"], &question["sectionContext"]),
        (&json!([1, 2, 3]), &json!("#core-flow (2.2)"))
    );
    shop.grounds.run(&["quest", "answer", &quest, "three lanes"]).good();
    until("the second step is worked on", &|it| it["buildRun"]["chunks"][1]["status"] == "active");
    shop.grounds.run(&["quest", "pause", &quest]).good();
    until("the quest is paused", &|it| it["buildRun"]["status"] == "paused");
    shop.grounds.run(&["quest", "resume", &quest]).good();
    until("the quest goes on", &|it| it["buildRun"]["status"] == "running");
    gate.open();
    until("the last step has failed, and nothing can go on", &|it| it["buildRun"]["status"] == "partial");
    assert_eq!(state(&folder)["buildRun"]["chunks"][2]["status"], "failed");
    assert_eq!(state(&folder)["nextStep"], format!("Retry a failed step: hatchery quest retry {quest} c"));
    fs::write(shop.grounds.path().join("verdict"), "green").unwrap();
    shop.grounds.run(&["quest", "retry", &quest, "c"]).good();
    until("the run is over", &|it| it["buildRun"].is_null());
    for field in [
        "buildRun",
        "chunkProgress",
        "workflowStep",
        "activeSection",
        "agentOutputs",
        "buildEvents",
        "nextStep",
        "experienceQuestion",
        "contextState",
    ] {
        assert!(seen.contains_key(field), "`{field}` was never shown");
    }
    let events = seen["buildEvents"].as_array().unwrap();
    let told = |kind: &str, name: &str| events.iter().any(|it| it["kind"] == kind && it["chunk"] == name);
    assert!(told("verification-failed", "Do a") && told("chunk-verified", "Do a"), "{events:#?}");
    assert!(told("chunk-failed", "Do c") && told("chunk-completed", "Do c"), "{events:#?}");
    assert_eq!(seen["contextState"]["isolationMode"], "fresh session");
}
