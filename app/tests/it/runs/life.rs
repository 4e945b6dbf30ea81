//! From the request to the end, and every way in which a run can end.

use crate::support::daemon::{Grounds, wait_until};
use crate::support::program::write_program;
use crate::support::workshop::Workshop;
use hatchery::clock::new_agent_id;
use serde_json::{Value, json};

#[test]
fn an_agent_is_run_and_all_it_said_is_in_its_history() {
    let shop = Workshop::open();
    let tool = json!({ "tool": { "name": "Bash", "input": { "command": "ls" }, "result": "a b" } });
    let agent = shop.run(&[json!({ "think": "hm" }), json!({ "text": "one" }), tool, json!({ "text": "two" })]);
    assert_eq!(shop.end(&agent), "completed");
    let history = shop.door().history(&agent);
    let kinds: Vec<_> = history.iter().map(|message| message["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "tool_call", "tool_result", "assistant"]);
    assert_eq!(shop.said(&agent), ["one", "two"]);
    let call: serde_json::Value = serde_json::from_str(history[2]["content"].as_str().unwrap()).unwrap();
    assert_eq!((&call["name"], &call["input"]), (&json!("Bash"), &json!({ "command": "ls" })));
    let thought = shop.wait_for(&agent, "output_noted");
    assert_eq!((&thought["output"]["type"], &thought["output"]["text"]), (&json!("thinking"), &json!("hm")));
    let expected = ["agent_created", "message_added", "run_requested", "run_spawned", "run_started", "message_heard"];
    // How much is taken in at once depends on the moment.
    let kinds: Vec<String> = shop.kinds(&agent).into_iter().filter(|kind| kind != "output_taken").collect();
    assert_eq!(kinds[..6].to_vec(), expected[..].to_vec());
}

#[test]
fn each_failure_has_its_cause() {
    let shop = Workshop::open();
    let once = json!({ "retries": 0, "park": false });
    let cases = [
        (json!({ "exit": 0 }), "crashed"),
        (json!({ "exit": 3 }), "crashed"),
        (json!({ "crash": "KILL" }), "crashed"),
        (json!({ "last_words": "bye" }), "crashed"),
        (json!({ "error": { "api": 429 } }), "rate_limited"),
        (json!({ "error": { "api": 529 } }), "overloaded"),
        (json!({ "error": { "api": 401 } }), "unauthorised"),
        (json!({ "error": { "api": "credit" } }), "out_of_credit"),
        (json!({ "error": { "api": "too_long" } }), "prompt_too_long"),
    ];
    let runs: Vec<_> = cases.iter().map(|(step, _)| shop.run_with(std::slice::from_ref(step), once.clone())).collect();
    for (agent, (step, cause)) in runs.iter().zip(&cases) {
        let ended = shop.wait_for(agent, "run_ended");
        assert_eq!(ended["cause"], *cause, "{step}: {ended}\n{}", shop.grounds.said());
    }
    assert_eq!(shop.said(&runs[3]), ["bye"], "{:#?}", shop.of(&runs[3]));
}

#[test]
fn a_program_that_is_not_there_is_a_clear_failure() {
    let shop = Workshop::with("claude_path = '/nowhere/claude'", Vec::new());
    let answer = shop.door().post("/api/runs", &json!({ "prompt": "x" }));
    answer.refused(409, "unusable");
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("/nowhere/claude"), "{answer:?}");
    let root = shop.door().root();
    shop.door().post(&format!("/api/agents/{root}/say"), &json!({ "text": "x" })).refused(409, "unusable");
    let fork = json!({ "parent": root, "prompt": "x", "run": true });
    shop.door().post("/api/agents", &fork).refused(409, "unusable");
    assert_eq!(shop.door().get("/api/agents").json()["agents"].as_array().unwrap().len(), 1, "nothing was made");
    assert!(shop.said(&root).is_empty(), "and nothing was said");
}

#[test]
fn a_program_that_is_too_old_is_refused_before_anything_is_made() {
    let old = tempfile::tempdir().unwrap();
    let program = old.path().join("claude");
    write_program(&program, "#!/bin/sh\necho '1.0.77 (Claude Code)'\n");
    let shop = Workshop::with(&format!("claude_path = '{}'\n", program.display()), Vec::new());
    let ran = shop.grounds.run(&["run", "hello"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("version 1.0.77, and 2.1.112 or later is needed"), "{ran:?}");
    assert_eq!(shop.door().get("/api/agents").json()["agents"].as_array().unwrap().len(), 1, "nothing was made");
}

#[test]
fn a_fork_works_on_its_prompt_as_its_parent_did() {
    let shop = Workshop::open();
    let with = json!({ "model": "small", "permissions": "ask" });
    let parent = shop.run_with(&[json!({ "text": "one" })], with);
    assert_eq!(shop.end(&parent), "completed");
    let child = shop.door().post("/api/agents", &json!({ "parent": parent, "prompt": "and you?" })).id();
    assert_eq!(shop.end(&child), "completed");
    let spec = |agent: &str| shop.wait_for(agent, "run_requested")["spec"].clone();
    for name in ["harness", "model", "permissions", "script"] {
        assert_eq!(spec(&child)[name], spec(&parent)[name], "{name}");
    }
    let silent = shop.grounds.run(&["fork", &parent, "later", "--no-run"]).good();
    let silent = silent.trim();
    assert_eq!(shop.door().get("/api/runs").json()["runs"].as_array().unwrap().len(), 2);
    // What it inherits counts when it is spoken to, as well.
    shop.say(silent, "now");
    assert_eq!(shop.end(silent), "completed");
    assert_eq!(spec(silent)["model"], "small");
}

/// The model of the parent means nothing to the child's harness.
#[test]
fn a_fork_with_another_harness_is_recorded_with_it_and_starts_in_the_same_request() {
    let programs = tempfile::tempdir().unwrap();
    let script = programs.path().join("agent.sh");
    std::fs::write(&script, super::acp_broken::ANSWERS).unwrap();
    let settings = format!(
        "[harness]\ndefault = 'scripted'\n[harness.own]\nacp = ['sh', '{}']\n[harness.gone]\nacp = ['./gone']\n",
        script.display()
    );
    let path = ("PATH".to_owned(), std::env::var_os("PATH").unwrap());
    let shop = Workshop::with(&settings, vec![path]);
    let parent = shop.run_with(&[json!({ "text": "one" })], json!({ "model": "small" }));
    assert_eq!(shop.end(&parent), "completed");

    let refused = shop.grounds.run(&["fork", &parent, "and you?", "--harness", "gone"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("./gone"), "{refused:?}");
    let agents = shop.door().get("/api/agents").json()["agents"].as_array().unwrap().len();
    assert_eq!(agents, 2, "a fork that cannot start is not made");

    let child = shop.grounds.run(&["fork", &parent, "and you?", "--harness", "own"]).good();
    let child = child.trim();
    assert_eq!(shop.end(child), "completed");
    let created = shop.wait_for(child, "agent_created");
    let requested = shop.wait_for(child, "run_requested");
    let recorded =
        (&created["provider"], &created["model"], &requested["spec"]["harness"], &requested["spec"]["model"]);
    assert_eq!(recorded, (&json!("own"), &Value::Null, &json!("own"), &Value::Null), "{created} {requested}");
    let ids = [&created, &requested].map(|event| event["id"].as_u64().unwrap());
    assert_eq!(ids[1], ids[0] + 2, "between them is the prompt, and all three are of one request");

    let named = shop.grounds.run(&["fork", &parent, "and you?", "--harness", "own", "--model", "large"]).good();
    assert_eq!(shop.wait_for(named.trim(), "agent_created")["model"], "large");
    assert_eq!(shop.wait_for(named.trim(), "run_requested")["spec"]["model"], "large");
    shop.end(named.trim());
    let idle = json!({ "parent": parent, "with": { "harness": "own" } });
    shop.door().post("/api/agents", &idle).refused(422, "nothing_to_do");
    let silent = json!({ "parent": parent, "prompt": "later", "run": false, "with": { "harness": "own" } });
    shop.door().post("/api/agents", &silent).refused(422, "nothing_to_do");
    shop.expect_nothing_left();
}

#[test]
fn without_our_tools_it_does_not_count_as_started() {
    let shop = Workshop::open();
    let agent = shop.run_with(&[json!({ "sleep_ms": 600_000 })], json!({ "folder": "." }));
    assert_eq!(shop.wait_for(&agent, "run_started")["attempt"], 1);
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    // A program that ends with its tools unheard of.
    let lonely = shop.grounds.path().join("lonely.sh");
    let init = json!({ "type": "system", "subtype": "init", "session_id": "x", "mcp_servers": [{ "name": "hatchery", "status": "failed" }] });
    write_program(&lonely, &format!("#!/bin/sh\ntest \"$1\" = --version && exit\necho '{init}'\nexec sleep 600\n"));
    let shop = Workshop::with(&format!("claude_path = '{}'\nstop_grace_ms = 50", lonely.display()), Vec::new());
    let agent = shop.door().post("/api/runs", &json!({ "prompt": "x" })).id();
    let ended = shop.wait_for(&agent, "run_ended");
    assert_eq!(ended["cause"], "crashed");
    assert!(ended["detail"].as_str().unwrap().contains("tools are failed"), "{ended}");
    assert_eq!(shop.kinds(&agent).iter().filter(|kind| *kind == "run_started").count(), 0);
}

/// A caller who draws the id can repeat a request whose answer was lost.
#[test]
fn a_run_that_is_asked_for_twice_is_started_once() {
    let shop = Workshop::open();
    let agent = new_agent_id().to_string();
    let wish = json!({ "id": agent, "prompt": "Hello.", "with": { "harness": "scripted" } });
    assert_eq!(shop.door().post("/api/runs", &wish).id(), agent);
    assert_eq!(shop.end(&agent), "completed");
    let again = shop.door().post("/api/runs", &wish);
    assert_eq!(again.status, 409, "{again:?}");
    assert!(format!("{again:?}").contains("agent_exists"), "{again:?}");
    assert_eq!(shop.kinds(&agent).iter().filter(|kind| *kind == "run_requested").count(), 1);
}

/// Whoever looks later than the message came, or after a restart, sees it as well.
#[test]
fn a_history_says_which_messages_were_not_heard_yet() {
    let mut shop = Workshop::with("harness = 'scripted'\nmax_runs = 1\nstop_grace_ms = 50", Vec::new());
    let unheard = |shop: &Workshop, agent: &str| -> Vec<String> {
        let history = shop.door().history(agent);
        let unheard = history.iter().filter(|message| message["unheard"] == true);
        unheard.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    let busy = shop.run(&[json!({ "text": "one" }), json!({ "hang": {} })]);
    shop.wait("its words", |event| event["content"] == "one");
    assert_eq!(unheard(&shop, &busy), Vec::<String>::new(), "it has heard its prompt");
    shop.say(&busy, "Are you there?");
    assert_eq!(unheard(&shop, &busy), ["Are you there?"]);
    // There is no place for it yet, so nobody has heard even its prompt.
    let queued = shop.run(&[json!({ "text": "two" })]);
    shop.say(&queued, "And another thing.");
    assert_eq!(unheard(&shop, &queued), ["play", "And another thing."]);
    shop.kill_daemon();
    shop.restart();
    assert_eq!(unheard(&shop, &busy), ["Are you there?"]);
    shop.stop(&busy);
    assert_eq!(shop.end(&queued), "completed");
    assert_eq!(unheard(&shop, &queued), Vec::<String>::new());
    // It was stopped before it heard it, and hears it first when it is started again.
    assert_eq!(unheard(&shop, &busy), ["Are you there?"]);
}

#[test]
fn a_crashed_process_is_resumed_where_it_was() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "one" }), json!({ "crash": "KILL" }), json!({ "text": "two" })]);
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), ["one", "two"]);
    let crashed = shop.wait_for(&agent, "run_crashed");
    assert_eq!(crashed["exit"], json!({ "signal": 9 }));
    let heard = shop.events().iter().filter(|event| event["type"] == "message_heard").count();
    assert_eq!(heard, 2, "the prompt and the nudge");
}

#[test]
fn retries_come_to_an_end() {
    let shop = Workshop::open();
    let crash = || json!({ "crash": "SEGV" });
    let agent = shop.run_with(&[crash(), crash(), crash(), crash()], json!({ "retries": 2 }));
    assert_eq!(shop.end(&agent), "crashed");
    let crashes = shop.kinds(&agent).iter().filter(|kind| *kind == "run_crashed").count();
    assert_eq!(crashes, 2);
}

#[test]
fn what_ends_before_it_begins_is_given_a_moment() {
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("claude");
    write_program(&program, "#!/bin/sh\n[ \"$1\" = --version ] && exec echo '99.0.0 (Claude Code)'\nexit 1\n");
    let environment = vec![("CLAUDE_CLI_PATH".to_owned(), program.into_os_string())];
    let shop = Workshop::with("harness = 'claude'\n", environment);
    let agent = shop.prompt("play", json!({ "retries": 1 }));
    let parked = shop.wait_for(&agent, "run_parked");
    assert_eq!((&parked["cause"], &parked["attempt"]), (&json!("crashed"), &json!(1)));
    let ended = shop.wait_for(&agent, "run_ended");
    assert_eq!((&ended["cause"], &ended["attempt"]), (&json!("crashed"), &json!(2)));
    let waited = clock_of(&shop.wait_for(&agent, "run_resumed")) - clock_of(&parked);
    assert!(waited >= 1_000, "{waited} ms");
}

/// When an event happened, in milliseconds.
fn clock_of(event: &serde_json::Value) -> i64 {
    event["ts"].as_i64().unwrap()
}

#[test]
fn who_reaches_its_budget_finishes_its_turn_and_asks() {
    let shop = Workshop::open();
    assert_eq!(shop.door().post("/api/budgets", &json!({ "limit": "0.02" })).status, 200);
    let steps = [
        json!({ "text": "one" }),
        json!({ "cost": { "usd": 0.03, "input_tokens": 10, "output_tokens": 1 } }),
        json!("turn"),
        json!({ "text": "two" }),
    ];
    let agent = shop.run_with(&steps, json!({ "stays": true }));
    let parked = shop.wait_for(&agent, "run_parked");
    assert_eq!((&parked["cause"], &parked["run"]), (&json!("over_budget"), &json!(1)));
    assert_eq!(shop.said(&agent), ["one"], "its turn is over, and none was begun");
    shop.expect_nothing_left();
    let question = shop.wait_for(&agent, "question_asked");
    let said = shop.grounds.run(&["say", &agent, "and then?"]);
    let when = format!("after your answer: `hatchery ask answer {} …`", question["id"]);
    assert!(said.code == Some(0) && said.stderr.contains(&when), "{said:?}");
    let answer = format!("/api/questions/{}/answer", question["id"]);
    shop.door().post(&answer, &json!({ "answer": "much" })).refused(422, "bad_answer");
    assert_eq!(shop.door().post(&answer, &json!({ "answer": "1" })).status, 200);
    shop.wait("two", |event| event["content"] == "two");
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    let kinds = shop.kinds(&agent);
    let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    assert_eq!((count("run_crashed"), count("run_requested")), (0, 1), "{kinds:?}");
    let questions = shop.door().get("/api/questions").json();
    assert_eq!(questions["questions"], json!([]));
}

#[test]
fn an_overload_is_waited_out_and_costs_no_retry() {
    let shop = Workshop::open();
    let limit = json!({ "error": { "api": 429, "resets_in_s": 1 } });
    let agent = shop.run_with(&[json!({ "text": "one" }), limit, json!({ "text": "two" })], json!({ "retries": 0 }));
    let parked = shop.wait_for(&agent, "run_parked");
    assert_eq!(parked["cause"], "rate_limited");
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), ["one", "two"]);
}

#[test]
fn silence_is_reported_and_stops_nothing_by_itself() {
    let shop = Workshop::open();
    let agent = shop.run_with(&[json!({ "hang": {} })], json!({ "stall_ms": 1000 }));
    shop.wait_for(&agent, "run_silent");
    let why = shop.door().get(&format!("/api/agents/{agent}/why")).json();
    assert_eq!(why["state"], "silent", "{why}");
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    let agent = shop.run_with(&[json!({ "hang": {} })], json!({ "stall_ms": 1000, "kill_stuck": true }));
    assert_eq!(shop.end(&agent), "stuck");
}

#[test]
fn a_line_that_is_too_long_is_told_and_the_rest_goes_on() {
    let shop = Workshop::open();
    let steps = [json!({ "text": "before" }), json!({ "long_line": 17 << 20 }), json!({ "text": "after" })];
    let agent = shop.run(&steps);
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), ["before", "after"]);
    let noted = shop.wait("the long line", |event| event["output"]["type"] == "unread");
    assert!(noted["output"]["bytes"].as_u64().unwrap() > 17 << 20, "{noted}");
}

#[test]
fn a_very_long_word_can_be_taken_to_another_project() {
    let shop = Workshop::open();
    let long = "x".repeat(9 << 20);
    let agent = shop.run(&[json!({ "text": long })]);
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), [long]);
    let export = shop.grounds.path().join("log.jsonl");
    shop.grounds.run(&["export", export.to_str().unwrap()]).good();
    let elsewhere = Grounds::new();
    elsewhere.run(&["import", export.to_str().unwrap()]).good();
}

#[test]
fn the_folders_of_attempts_that_are_long_over_are_cleared_away() {
    let mut shop = Workshop::with("harness = 'scripted'\nkeep_runs_days = 2\n", Vec::new());
    let (old, new) = (shop.run(&[json!({ "text": "one" })]), shop.run(&[json!({ "text": "two" })]));
    let open = shop.run(&[json!({ "crash": "KILL" }), json!({ "text": "three" }), json!({ "hang": {} })]);
    assert_eq!([shop.end(&old), shop.end(&new)], ["completed", "completed"]);
    shop.wait("three", |event| event["content"] == "three");
    let strange = shop.grounds.data().join("runs/AAAAAAAAAAAAAAAAAAAAAA/1-1");
    std::fs::create_dir_all(&strange).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 24 * 3_600);
    let [old, crashed, open] =
        [(&old, 1), (&open, 1), (&open, 2)].map(|(agent, attempt)| shop.folder(agent, 1, attempt));
    shop.kill_daemon();
    for folder in [&old, &crashed, &open, &strange] {
        std::fs::File::open(folder).unwrap().set_modified(long_ago).unwrap();
    }
    shop.restart();
    wait_until("the broom", || !old.exists() && !crashed.exists());
    for kept in [&shop.folder(&new, 1, 1), &open, &strange] {
        assert!(kept.exists(), "{}", kept.display());
    }
}

#[test]
fn what_was_used_adds_up_over_attempts_and_runs() {
    let shop = Workshop::open();
    let cost = |usd: f64| json!({ "cost": { "usd": usd, "input_tokens": 10, "output_tokens": 1 } });
    let agent = shop.run(&[cost(0.25), json!("turn"), cost(0.5), json!({ "crash": "KILL" }), json!({ "text": "x" })]);
    assert_eq!(shop.end(&agent), "completed");
    shop.say(&agent, "more");
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["run"] == 2);
    let usage = shop.door().get("/api/usage").json();
    assert_eq!(usage["agents"][0]["spent"]["cost"]["nanodollars"], 750_000_000, "{usage}");
    assert_eq!(usage["total"], usage["agents"][0]["spent"]);
    assert_eq!(usage["total"]["inputTokens"], 20);
}

#[test]
fn children_get_a_clean_environment() {
    let settings = "harness = 'scripted'\npass_env = ['PASSED']";
    let environment = [("SECRET", "s"), ("PASSED", "p")].map(|(name, value)| (name.to_owned(), value.into()));
    let shop = Workshop::with(settings, environment.into());
    let agent = shop.run(&[json!({ "sleep_ms": 600_000 })]);
    let pid = shop.wait_for(&agent, "run_spawned")["process"]["pid"].as_u64().unwrap();
    let environ = std::fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    assert!(!environ.contains("SECRET=") && environ.contains("PASSED=p"), "{environ}");
    shop.stop(&agent);
    shop.end(&agent);
}
