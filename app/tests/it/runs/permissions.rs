//! Agents that ask for permission, and the user who answers: scripted ones in every case, and the real CLI.

use crate::support::claude_cli::{ClaudeCli, Home, cli_or_skip};
use crate::support::daemon::Grounds;
use crate::support::model::{Model, Step};
use crate::support::workshop::Workshop;
use hatchery_core::{Command, EventId};
use serde_json::{Value, json};
use std::fs;

/// A step that asks to run a command.
fn bash(command: &str) -> Value {
    json!({ "ask": { "name": "Bash", "input": { "command": command }, "result": format!("{command} is done") } })
}

/// A step that asks to write a file.
fn write(path: &str) -> Value {
    json!({ "ask": { "name": "Write", "input": { "file_path": path, "content": "written" } } })
}

/// Waits for the nth question of an agent about a permission, and gives it as it is listed.
fn question(shop: &Workshop, agent: &str, nth: usize) -> Value {
    let mut met = 0;
    let asked = shop.wait("a question", |event| {
        let is_it = event["agent"] == agent && event["about"]["permission"].is_object();
        met += usize::from(event["type"] == "question_asked" && is_it);
        met == nth
    });
    let list = shop.door().get("/api/questions").json();
    let questions = list["questions"].as_array().unwrap();
    questions
        .iter()
        .find(|open| open["id"] == asked["id"])
        .unwrap_or_else(|| panic!("{asked} is not in {list}"))
        .clone()
}

fn answer(shop: &Workshop, question: &Value, words: &str) {
    let path = format!("/api/questions/{}/answer", question["id"]);
    let answer = shop.door().post(&path, &json!({ "answer": words }));
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// The results of an agent's tools: the text, and whether it is an error.
fn results(shop: &Workshop, agent: &str) -> Vec<(String, bool)> {
    let history = shop.door().history(agent);
    let results = history.iter().filter(|message| message["kind"] == "tool_result");
    results
        .map(|message| serde_json::from_str::<Value>(message["content"].as_str().unwrap()).unwrap())
        .map(|result| (result["content"].as_str().unwrap().to_owned(), result["is_error"] == true))
        .collect()
}

fn decisions(shop: &Workshop, agent: &str) -> Vec<Value> {
    shop.of(agent).into_iter().filter(|event| event["type"] == "permission_decided").collect()
}

#[test]
fn the_user_allows_denies_with_a_reason_and_allows_for_good() {
    let shop = Workshop::open();
    let steps = [bash("make"), bash("rm x"), bash("make test"), bash("make test"), json!({ "text": "all done" })];
    let agent = shop.run(&steps);
    let first = question(&shop, &agent, 1);
    let permission = &first["permission"];
    assert_eq!((&permission["tool"], &permission["input"]), (&json!("Bash"), &json!(r#"{"command":"make"}"#)));
    assert_eq!(permission["folder"], json!(shop.grounds.path().canonicalize().unwrap()), "{first}");
    assert_eq!(first["takes"]["words"], json!(["allow", "deny", "always-agent", "always-project"]));
    answer(&shop, &first, "allow");
    answer(&shop, &question(&shop, &agent, 2), "deny: it is still needed");
    answer(&shop, &question(&shop, &agent, 3), "always-agent");
    assert_eq!(shop.end(&agent), "completed");
    let told = "The user did not allow it: it is still needed".to_owned();
    let ran = |command: &str| (format!("{command} is done"), false);
    assert_eq!(results(&shop, &agent), [ran("make"), (told, true), ran("make test"), ran("make test")]);
    let by: Vec<_> = decisions(&shop, &agent).iter().map(|decided| decided["by"].clone()).collect();
    assert_eq!(by, ["human", "human", "human", "rule"], "the fourth request was not asked");
    assert_eq!(shop.door().get("/api/questions").json()["questions"], json!([]));
}

#[test]
fn a_rule_of_the_project_is_for_all_agents_until_it_is_removed() {
    let shop = Workshop::open();
    let agent = shop.run(&[bash("make")]);
    answer(&shop, &question(&shop, &agent, 1), "always-project");
    assert_eq!(shop.end(&agent), "completed");
    let other = shop.run(&[bash("make")]);
    assert_eq!(shop.end(&other), "completed", "nobody was asked");
    let rules = shop.door().get("/api/permissions").json();
    let rule = &rules["rules"][0];
    assert_eq!((&rule["agent"], &rule["text"]), (&Value::Null, &json!("the command `make`")), "{rules}");
    let listed = shop.grounds.run(&["permissions", "list"]).good();
    assert!(listed.contains("all agents: the command `make`"), "{listed}");
    let number = rule["id"].to_string();
    shop.grounds.run(&["permissions", "remove", &number]).good();
    let third = shop.run(&[bash("make")]);
    let asked = question(&shop, &third, 1);
    shop.grounds.run(&["ask", "answer", &asked["id"].to_string(), "deny"]).good();
    assert_eq!(shop.end(&third), "completed");
    assert_eq!(results(&shop, &third), [("The user did not allow it.".to_owned(), true)]);
}

#[test]
fn each_policy_does_what_it_says() {
    let sandbox = vec![("IS_SANDBOX".to_owned(), "1".into())];
    let shop = Workshop::with("harness = 'scripted'\nstop_grace_ms = 300\n", sandbox);
    let with = |policy: &str| json!({ "permissions": policy });
    let all = shop.run_with(&[write("a.txt"), bash("anything")], with("all"));
    assert_eq!(shop.end(&all), "completed");
    assert_eq!(fs::read_to_string(shop.grounds.path().join("a.txt")).unwrap(), "written");
    let none = shop.run_with(&[write("b.txt")], with("none"));
    assert_eq!(shop.end(&none), "completed");
    assert!(!shop.grounds.path().join("b.txt").exists());
    assert!(results(&shop, &none)[0].0.contains("`none`"), "{:?}", results(&shop, &none));
    let edits = shop.run_with(&[write("c.txt"), bash("git status"), write("/nowhere/d")], with("edits"));
    let asked = question(&shop, &edits, 1);
    assert_eq!(asked["permission"]["access"], json!({ "edit": { "path": "/nowhere/d" } }), "the others were allowed");
    answer(&shop, &asked, "deny");
    assert_eq!(shop.end(&edits), "completed");
    assert_eq!(fs::read_to_string(shop.grounds.path().join("c.txt")).unwrap(), "written");
}

/// The Claude CLI refuses the same. Other users of this machine may not be root.
#[test]
fn root_may_not_allow_everything_outside_of_a_sandbox() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let shop = Workshop::open();
    let body = json!({ "prompt": "x", "with": { "permissions": "all" } });
    let answer = shop.door().post("/api/runs", &body);
    answer.refused(400, "root_without_sandbox");
    let settings = "harness = 'scripted'\nstop_grace_ms = 300\n[quests.roles.codeweaver]\npermissions = 'all'\n";
    let shop = Workshop::with(settings, Vec::new());
    let body = json!({ "request": "a bridge", "isolation": "none", "ward": "" });
    shop.door().post("/api/quests", &body).refused(400, "root_without_sandbox");
    assert_eq!(shop.door().get("/api/quests").json()["quests"], json!([]));
}

/// A message may start a run with other permissions than the run before it had.
#[test]
fn a_message_that_starts_a_run_without_questions_warns() {
    let sandbox = vec![("IS_SANDBOX".to_owned(), "1".into())];
    let shop = Workshop::with("harness = 'scripted'\nstop_grace_ms = 300\n", sandbox);
    let agent = shop.run(&[json!({ "text": "one" })]);
    assert_eq!(shop.end(&agent), "completed");
    let said = shop.grounds.run(&["say", &agent, "go on", "--permissions", "all", "--follow"]);
    let warning = "warning: with the permissions `all`, the agent may run any command";
    assert!(said.code == Some(0) && said.stderr.contains(warning), "{said:?}");
    let said = shop.grounds.run(&["run", "--agent", &agent, "go on", "--permissions", "edits"]);
    assert!(said.code == Some(0) && !said.stderr.contains("warning"), "{said:?}");
}

/// Between the request and the answer, and between the answer and its delivery.
#[test]
fn a_killed_daemon_loses_neither_the_request_nor_the_answer() {
    let mut shop = Workshop::open();
    let agent = shop.run(&[write("a.txt"), json!({ "text": "goes on" })]);
    let asked = question(&shop, &agent, 1);
    shop.kill_daemon();
    let question = EventId(asked["id"].as_u64().unwrap());
    shop.decided(Command::AnswerQuestion { question, answer: "allow".into() });
    assert!(!shop.grounds.path().join("a.txt").exists(), "nobody could tell the process");
    shop.restart();
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), ["goes on"]);
    assert_eq!(fs::read_to_string(shop.grounds.path().join("a.txt")).unwrap(), "written");
    assert_eq!(shop.kinds(&agent).iter().filter(|kind| *kind == "run_crashed").count(), 0);
}

#[test]
fn a_process_that_dies_takes_its_request_along_and_the_next_one_asks_again() {
    let shop = Workshop::open();
    let agent = shop.run(&[bash("make"), json!({ "text": "goes on" })]);
    let asked = question(&shop, &agent, 1);
    let pid = shop.wait_for(&agent, "run_spawned")["process"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    shop.wait("the withdrawal", |event| event["type"] == "question_withdrawn" && event["question"] == asked["id"]);
    let late = shop.door().post(&format!("/api/questions/{}/answer", asked["id"]), &json!({ "answer": "allow" }));
    late.refused(404, "no_question");
    answer(&shop, &question(&shop, &agent, 2), "allow");
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(results(&shop, &agent).last().unwrap().0, "make is done");
}

#[test]
fn who_waits_for_an_answer_is_not_stuck() {
    let shop = Workshop::open();
    let agent = shop.run_with(&[bash("make")], json!({ "stall_ms": 1_000, "kill_stuck": true }));
    let asked = question(&shop, &agent, 1);
    // Longer than it may be silent: another agent's whole silence passes meanwhile.
    let silent = shop.run_with(&[json!({ "hang": {} })], json!({ "stall_ms": 2_000 }));
    shop.wait_for(&silent, "run_silent");
    assert!(!shop.kinds(&agent).contains(&"run_silent".to_owned()));
    answer(&shop, &asked, "allow");
    assert_eq!(shop.end(&agent), "completed");
    shop.stop(&silent);
    shop.end(&silent);
}

#[test]
fn an_interrupt_withdraws_the_question() {
    let shop = Workshop::open();
    let agent = shop.run_with(&[bash("make"), json!("turn"), json!({ "text": "next" })], json!({ "stays": true }));
    let asked = question(&shop, &agent, 1);
    assert_eq!(shop.door().post(&format!("/api/agents/{agent}/interrupt"), &json!({})).status, 200);
    shop.wait("the withdrawal", |event| event["type"] == "question_withdrawn" && event["question"] == asked["id"]);
    shop.say(&agent, "go on");
    shop.wait("the answer", |event| event["content"] == "next");
    shop.stop(&agent);
    shop.end(&agent);
}

#[test]
fn a_quest_that_could_not_work_is_refused_before_it_starts() {
    let shop = Workshop::open();
    let quest = |permissions: &str| json!({ "request": "x", "isolation": "none", "hold": true, "with": { "permissions": permissions } });
    let refused = shop.door().post("/api/quests", &quest("none"));
    refused.refused(409, "cannot_work");
    let begun = shop.door().post("/api/quests", &quest("ask")).json();
    assert!(begun["warning"].as_str().unwrap().contains("ask you before each change"), "{begun}");
    assert_eq!(shop.door().post("/api/quests", &quest("edits")).json()["warning"], Value::Null);
}

/// The arguments of one program do not let another program work.
#[test]
fn arguments_of_the_claude_cli_count_for_its_own_roles_only() {
    let shop = Workshop::with("harness = 'scripted'\nclaude_args = ['--permission-mode=acceptEdits']\n", Vec::new());
    let quest = json!({ "request": "x", "isolation": "none", "hold": true, "with": { "permissions": "none" } });
    shop.door().post("/api/quests", &quest).refused(409, "cannot_work");
}

#[test]
fn doctor_says_what_an_agent_may_do() {
    let grounds = Grounds::with("permissions = 'edits'\n");
    fs::write(grounds.path().join(".mcp.json"), r#"{"mcpServers":{"weather":{"command":"x"}}}"#).unwrap();
    let said = grounds.run(&["doctor"]);
    assert!(said.stdout.contains("all agents: `edits`") && said.stdout.contains("weather"), "{said:?}");
    let grounds = Grounds::with("claude_strict = true\n");
    let said = grounds.run(&["doctor"]);
    assert!(said.stdout.contains("hatchery only") && said.stdout.contains("Elsewhere `ask`"), "{said:?}");
}

fn with_the_cli(cli: &ClaudeCli, model: &Model) -> (Workshop, Home) {
    let home = Home::new(cli, model);
    let environment = home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let settings = format!("claude_path = '{}'\nstop_grace_ms = 3000\n", cli.program().display());
    (Workshop::with(&settings, environment), home)
}

fn run(shop: &Workshop, with: Value) -> String {
    let answer = shop.door().post("/api/runs", &json!({ "prompt": "work", "with": with }));
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.id()
}

#[test]
fn the_real_cli_asks_and_obeys() {
    let cli = cli_or_skip!();
    let touch = |name: &str| Step::tool_use("Bash", json!({ "command": format!("touch {name}"), "description": "d" }));
    let model = Model::playing([touch("one"), touch("two"), Step::text("done")]);
    let (shop, _home) = with_the_cli(cli, &model);
    let agent = run(&shop, json!({}));
    let asked = question(&shop, &agent, 1);
    assert_eq!(asked["permission"]["access"], json!({ "execute": { "command": "touch one" } }), "{asked}");
    answer(&shop, &asked, "allow");
    answer(&shop, &question(&shop, &agent, 2), "deny: one is enough");
    assert_eq!(shop.end(&agent), "completed");
    assert!(shop.grounds.path().join("one").exists() && !shop.grounds.path().join("two").exists());
    let denied = results(&shop, &agent).pop().unwrap();
    assert!(denied.1 && denied.0.contains("one is enough"), "{denied:?}");
    let told = model.asked(3).dialogue();
    assert!(told.iter().any(|line| line.contains("one is enough")), "the model is told why: {told:?}");
}

#[test]
fn the_real_cli_edits_its_folder_unasked() {
    let cli = cli_or_skip!();
    let write = |path: &str| Step::tool_use("Write", json!({ "file_path": path, "content": "by the agent" }));
    let model = Model::playing([write("made.txt"), write("/nowhere/made.txt"), Step::text("done")]);
    let (shop, _home) = with_the_cli(cli, &model);
    let agent = run(&shop, json!({ "permissions": "edits" }));
    let asked = question(&shop, &agent, 1);
    assert_eq!(asked["permission"]["access"], json!({ "edit": { "path": "/nowhere/made.txt" } }), "{asked}");
    assert_eq!(fs::read_to_string(shop.grounds.path().join("made.txt")).unwrap(), "by the agent");
    answer(&shop, &asked, "deny");
    assert_eq!(shop.end(&agent), "completed");
}

/// The names of the MCP servers that the CLI says it has.
fn servers(shop: &Workshop, agent: &str) -> Vec<String> {
    let said = fs::read_to_string(shop.folder(agent, 1, 1).join("stdout.jsonl")).unwrap();
    let mut lines = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let init = lines.find(|line| line["subtype"] == "init").unwrap();
    let names = init["mcp_servers"].as_array().unwrap().iter();
    names.map(|server| server["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_users_own_servers_stay_unless_it_is_strict() {
    let cli = cli_or_skip!();
    let model = Model::playing([Step::text("one"), Step::text("two")]);
    for (strict, own) in [(false, true), (true, false)] {
        let home = Home::new(cli, &model);
        let settings = json!({ "mcpServers": { "own": { "type": "stdio", "command": "false", "args": [] } } });
        fs::write(home.path().join("home/.claude.json"), settings.to_string()).unwrap();
        let environment = home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let settings =
            format!("claude_path = '{}'\nstop_grace_ms = 3000\nclaude_strict = {strict}\n", cli.program().display());
        let shop = Workshop::with(&settings, environment);
        let agent = run(&shop, json!({}));
        assert_eq!(shop.end(&agent), "completed");
        let servers = servers(&shop, &agent);
        assert!(servers.contains(&"hatchery".to_owned()), "{servers:?}");
        assert_eq!(servers.contains(&"own".to_owned()), own, "strict = {strict}: {servers:?}");
    }
}

#[test]
fn the_real_cli_waits_while_the_daemon_is_killed() {
    let cli = cli_or_skip!();
    let model = Model::playing([
        Step::tool_use("Bash", json!({ "command": "touch made", "description": "d" })),
        Step::text("done"),
    ]);
    let (mut shop, _home) = with_the_cli(cli, &model);
    let agent = run(&shop, json!({}));
    let asked = question(&shop, &agent, 1);
    shop.kill_daemon();
    let question = EventId(asked["id"].as_u64().unwrap());
    shop.decided(Command::AnswerQuestion { question, answer: "allow".into() });
    shop.restart();
    assert_eq!(shop.end(&agent), "completed");
    assert!(shop.grounds.path().join("made").exists());
    assert_eq!(model.count(), 2, "the turn was not begun again");
}

#[test]
fn the_real_cli_asks_again_when_it_is_resumed() {
    let cli = cli_or_skip!();
    let touch = || Step::tool_use("Bash", json!({ "command": "touch made", "description": "d" }));
    let model = Model::playing([touch(), touch(), Step::text("done")]);
    let (shop, _home) = with_the_cli(cli, &model);
    let agent = run(&shop, json!({}));
    question(&shop, &agent, 1);
    let pid = shop.wait_for(&agent, "run_spawned")["process"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    answer(&shop, &question(&shop, &agent, 2), "allow");
    assert_eq!(shop.end(&agent), "completed");
    assert!(shop.grounds.path().join("made").exists());
}
