//! What the operations are tried on: agents, quests and files in the states that their answers describe.

use crate::doors::house::House;
use crate::support::runtime;
use hatchery::calls::{Call, CallWriter};
use hatchery::run_folder::RunFolder;
use hatchery_core::Command;
use hatchery_core::harness::Capabilities;
use hatchery_core::outcome::Exit;
use hatchery_core::output::Output;
use hatchery_core::permission::{Access, PermissionRequest};
use hatchery_core::run::{AttemptId, Process};
use serde_json::json;
use std::fs;

/// Makes the project a repository with something rescued in it, and gives the name of that.
pub fn repository(house: &House, quest: &str) -> String {
    let name = format!("{quest}/arch/1");
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        let identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@localhost"];
        command.args(identity).args(words).current_dir(house.settings.defaults().project.root());
        assert!(command.output().unwrap().status.success(), "git {words:?}");
    };
    fs::write(house.settings.defaults().project.root().join(".gitignore"), ".hatchery/\n").unwrap();
    git(&["init", "--quiet"]);
    git(&["add", ".gitignore"]);
    git(&["commit", "--quiet", "--message=begin"]);
    git(&["update-ref", &format!("refs/hatchery/rescue/{name}"), "HEAD"]);
    name
}

/// An agent falls asleep when its session has ended, and nobody else brings that about here.
pub fn sleeper(house: &House) -> String {
    let session = house.make("/api/sessions", &json!({}));
    let agent = house.make("/api/agents", &json!({ "session": session }));
    house.make(&format!("/api/sessions/{session}/end"), &json!({}));
    let close = house.handle.submit(Command::CloseSession { session: session.parse().unwrap() });
    runtime().block_on(close).unwrap();
    agent
}

/// An agent in the middle of a turn, as far as the log knows, whose tools have asked for two things.
pub fn at_work(house: &House) -> String {
    let ask = json!({ "prompt": "x", "with": { "harness": "scripted" } });
    let agent = house.make("/api/runs", &ask);
    let of = AttemptId { agent: agent.parse().unwrap(), run: 1, attempt: 1 };
    let folder = RunFolder::of(&house.settings.defaults().project, of);
    folder.create_for_agent().unwrap();
    let mut calls = CallWriter::new(folder);
    calls.write(&Call::Send { to: "human".into(), body: "hello".into() }).unwrap();
    calls.write(&Call::Send { to: "no one".into(), body: "hello".into() }).unwrap();
    let init = Output::Ready { session: "s".into(), model: None, version: None, tools: Vec::new() };
    let process = Process { pid: 1, began: 1 };
    let spawned =
        Command::ReportSpawn { of, process, session: Some("s".into()), copy_of: None, capabilities: Capabilities::ALL };
    let said = Command::TakeOutput { of, from: 0, upto: 1, outputs: vec![init] };
    for command in [spawned, said] {
        runtime().block_on(house.handle.submit(command)).unwrap();
    }
    agent
}

/// An agent that has asked for two permissions: one is given for good, the other is an open question. Gives the id of the rule.
pub fn permitted(house: &House) -> u64 {
    let agent = at_work(house);
    let of = AttemptId { agent: agent.parse().unwrap(), run: 1, attempt: 1 };
    let asked = |id: &str, command: &str| {
        Output::Asked(PermissionRequest {
            request: id.into(),
            tool: "Bash".into(),
            tool_use: None,
            input: json!({ "command": command }).to_string(),
            access: Access::Execute { command: command.into() },
            folder: Some("/mill".into()),
        })
    };
    let outputs = vec![asked("one", "make"), asked("two", "make test")];
    let said = Command::TakeOutput { of, from: 1, upto: 2, outputs };
    runtime().block_on(house.handle.submit(said)).unwrap();
    let list = house.get("/api/questions").json();
    let questions = list["questions"].as_array().unwrap();
    let question = questions.iter().find(|open| open["permission"]["input"] == r#"{"command":"make"}"#).unwrap();
    house.make(&format!("/api/questions/{}/answer", question["id"]), &json!({ "answer": "always-project" }));
    house.get("/api/permissions").json()["rules"][0]["id"].as_u64().unwrap()
}

/// A quest whose only step has failed, as far as the log knows: its agent was never started, however often it was tried.
pub fn failed_quest(house: &House) -> String {
    let steps = json!([{ "id": "arch", "name": "Arch" }]);
    let quest = house.make(
        "/api/quests",
        &json!({ "request": "x", "ward": "", "isolation": "none", "steps": steps, "with": { "harness": "scripted" } }),
    );
    let shown = house.get(&format!("/api/quests/{quest}")).json();
    let agent = shown["steps"].as_array().unwrap().iter().find_map(|step| step["agent"].as_str()).unwrap();
    let of = AttemptId { agent: agent.parse().unwrap(), run: 1, attempt: 1 };
    let gone = Command::ReportExit { of, exit: Exit::NotStarted, evidence: None };
    runtime().block_on(house.handle.submit(gone)).unwrap();
    quest
}
