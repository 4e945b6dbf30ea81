//! What the program prints: help that helps, JSON that parses, no colour where none is wanted, and exit codes as promised.

use crate::support::daemon::{Grounds, Ran};
use crate::support::quest::text;
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hatchery");

/// The program with nothing around it: no project, no settings.
fn bare(arguments: &[&str]) -> Ran {
    let mut command = Command::new(PROGRAM);
    let command = command.args(arguments).env_clear().current_dir("/").stdin(Stdio::null());
    Ran::from(command.output().unwrap())
}

fn json(ran: Ran) -> Value {
    let text = ran.good();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// One document a line.
fn json_lines(ran: Ran) -> Vec<Value> {
    ran.good().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A log long enough to fill any pipe.
fn long_log(grounds: &Grounds, events: usize) {
    let lines: String = (1..=events)
        .map(|id| {
            let agent = |id: usize| hatchery_core::AgentId::from_bytes((id as u128).to_be_bytes());
            // All but the first descend from the first.
            let descent = serde_json::json!({ "parent": agent(1), "origin": { "agent": agent(1) } });
            let mut event = if id == 1 { serde_json::json!({}) } else { descent };
            event["type"] = "agent_created".into();
            event["agent"] = agent(id).to_string().into();
            let rest = event.to_string();
            format!("{{\"id\":{id},\"ts\":{id},\"sessionId\":null,{}\n", &rest[1..])
        })
        .collect();
    let file = grounds.path().join("log.jsonl");
    std::fs::write(&file, lines).unwrap();
    grounds.run(&["import", file.to_str().unwrap()]).good();
}

/// The names of the commands in a help text: they are listed between the usage and the options, in groups or under `Commands:`.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| !line.starts_with("Usage:"));
    let listed = listed.take_while(|line| !["Arguments:", "Options:"].contains(line));
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn every_command_has_help_that_reads_well() {
    let mut to_read: Vec<Vec<String>> = vec![Vec::new()];
    let mut read = 0;
    while let Some(path) = to_read.pop() {
        for flag in ["--help", "-h"] {
            let mut arguments: Vec<&str> = path.iter().map(String::as_str).collect();
            arguments.push(flag);
            let ran = bare(&arguments);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
            let help = ran.stdout;
            let usage = format!("Usage: hatchery{}", path.iter().map(|name| format!(" {name}")).collect::<String>());
            assert!(help.contains(&usage), "{arguments:?}: {help}");
            assert!(help.starts_with(char::is_uppercase), "{arguments:?} says first what it does: {help}");
            assert!(!help.contains('\u{1b}'), "{arguments:?}");
            let longest = help.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= 100, "{arguments:?} has a line of {longest} characters: {help}");
            // An option without a word of explanation is a line that ends with its name.
            let unexplained = flag == "-h"
                && help.lines().any(|line| {
                    line.starts_with("  ") && line.trim_end().ends_with('>') && line.trim().starts_with('-')
                });
            assert!(!unexplained, "{arguments:?}: {help}");
            if flag == "-h" {
                let inner = commands(&help).into_iter().filter(|name| name != "help");
                to_read.extend(inner.map(|name| [path.clone(), vec![name]].concat()));
                read += 1;
            }
        }
    }
    assert!(read >= 31, "only {read} help texts were found");
    let help = bare(&["--help"]).stdout;
    for code in ["0 success", "1 failure", "2 wrong command line", "3 the daemon", "4 a check"] {
        assert!(help.contains(code), "{help}");
    }
}

#[test]
fn without_arguments_it_prints_its_help() {
    let ran = bare(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("Usage: hatchery") && ran.stderr.contains("hatchery demo"), "{}", ran.stderr);
    assert!(bare(&["session"]).stderr.contains("Usage: hatchery session"));
    let typo = bare(&["evnets"]);
    assert_eq!(typo.code, Some(2));
    assert!(typo.stderr.contains("'events'"), "{}", typo.stderr);
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bare(&["completions", shell]).good();
        for word in ["hatchery", "completions", "fsck", "--follow"]
            .map(|word| if shell == "fish" { word.trim_start_matches('-') } else { word })
        {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let script = bare(&["completions", "bash"]).good();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, script).unwrap();
    if let Ok(read) = Command::new("bash").arg("-n").arg(file.path()).output() {
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    }
}

#[test]
fn data_comes_as_json_when_asked_for() {
    let grounds = Grounds::new();
    let started = json(grounds.run(&["session", "start", "a \"title\"", "--json"]));
    let session = started["id"].as_str().unwrap();
    assert_eq!(started["events"][0]["label"], "a \"title\"");
    assert_eq!(json(grounds.run(&["--json", "session", "list"]))["sessions"][0]["id"], session);
    let agents = json(grounds.run(&["ps", "--json"]))["agents"].as_array().unwrap().clone();
    assert_eq!(agents.len(), 1, "agent 0: {agents:?}");
    assert_eq!((&agents[0]["name"], &agents[0]["state"]), (&"root".into(), &"alive".into()));
    let status = json(grounds.run(&["status", "--json"]));
    assert_eq!((&status["running"], &status["daemon"]["head"]), (&Value::Bool(true), &serde_json::json!(2)));
    assert_eq!(json(grounds.run(&["fsck", "--json"]))["problems"], serde_json::json!([]));
    let doctor = json(grounds.run(&["doctor", "--json"]));
    assert!(doctor["findings"].as_array().unwrap().iter().all(|finding| finding["verdict"] != "bad"), "{doctor}");
    let ended = json(grounds.run(&["session", "end", session, "--reason", "completed", "--json"]));
    assert_eq!(ended["events"][0]["reason"], "completed");
    let events = json_lines(grounds.run(&["events", "--json"]));
    assert_eq!(events[0]["agent"], agents[0]["id"]);
    assert_eq!(events[1], started["events"][0]);
    assert!(events.len() >= 3);
    assert_eq!(json_lines(grounds.run(&["export"]))[0], events[0]);
    assert_eq!(
        json(grounds.run(&["down", "--json"])),
        serde_json::json!({ "stopped": true, "forced": false, "agents": 0 })
    );
    assert_eq!(
        json(grounds.run(&["down", "--json"])),
        serde_json::json!({ "stopped": false, "forced": false, "agents": 0 })
    );
    let away = grounds.run(&["status", "--json"]);
    assert_eq!(away.code, Some(3));
    assert_eq!(serde_json::from_str::<Value>(&away.stdout).unwrap()["running"], false);
    let file = grounds.path().join("empty");
    std::fs::write(&file, "").unwrap();
    let imported = json(Grounds::new().run(&["import", "--json", file.to_str().unwrap()]));
    assert_eq!(imported, serde_json::json!({ "known": 0, "added": 0 }));
}

#[test]
fn the_demo_speaks_json_too_and_loses_nothing() {
    let ran = Grounds::new().run(&["demo", "--json"]);
    let lines = json_lines(ran);
    let (verdict, events) = lines.split_last().unwrap();
    assert_eq!(verdict["whole"], true, "{verdict}");
    assert_eq!((&verdict["lost"], &verdict["doubled"]), (&0.into(), &0.into()), "{verdict}");
    assert_eq!((&verdict["steps"], &verdict["complete"]), (&5.into(), &5.into()), "{verdict}");
    let ids: Vec<u64> = events.iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<u64>>());
    for signal in ["complete", "partially-complete", "needs-user-input", "needs-role-followup"] {
        assert!(events.iter().any(|event| event["signal"].get(signal).is_some()), "{signal}");
    }
    for role in ["chaoswhisperer", "pathseeker", "codeweaver", "siegemaster", "lawbringer", "spiritmender"] {
        assert!(events.iter().any(|event| event["type"] == "step_begun" && event["role"] == role), "{role}");
    }
    let red = |event: &&Value| event["type"] == "ward_ended" && event["verdict"].get("red").is_some();
    assert_eq!(events.iter().filter(red).count(), 1, "one ward is red, and mended");
    assert!(events.iter().any(|event| event["type"] == "run_crashed"));
}

/// An id may begin with a dash, and is an id all the same.
#[test]
fn an_id_that_looks_like_a_flag_is_an_id() {
    let grounds = Grounds::new();
    for id in ["-hAAAAAAAAAAAAAAAAAAAA", "--jsonAAAAAAAAAAAAAAAA", "-fAAAAAAAAAAAAAAAAAAAA"] {
        let ran = grounds.run(&["session", "end", id, "--json"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(&format!("there is no session {id}")), "{ran:?}");
    }
    for id in ["-hAAAAAAAAAAAAAAAAAAAA", "--jsonAAAAAAAAAAAAAAAA", "-fAAAAAAAAAAAAAAAAAAAA"] {
        for arguments in [
            &["kill", id, "--json"][..],
            &["fork", id, "--json"],
            &["fork", id, "a prompt"],
            &["rename", id, "Ann"],
            &["history", id, "--full"],
            &["clear", id],
            &["mark", id, "here"],
            &["rewind", id, "--to", "1"],
            &["send", id, "a text", "--json"],
            &["send", "human", "a text", "--from", id],
            &["mail", "check", "--of", id],
            &["mail", "wait", "--timeout", "0", "--of", id],
            &["mcp", "--agent", id],
        ] {
            let ran = grounds.run(arguments);
            assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
            assert!(ran.stderr.contains(&format!("there is no agent {id}")), "{arguments:?}: {ran:?}");
        }
        let waited = json(grounds.run(&["mail", "wait", "--timeout", "0", "--json", "--", id, id]));
        assert_eq!((&waited["agents"][1]["agent"], &waited["agents"][1]["state"]), (&id.into(), &"unknown".into()));
    }
    // What is too short for that is an option that was mistyped, and does nothing.
    for arguments in [
        &["kill", "--casade", "root"][..],
        &["fork", "--nmae", "Ann"],
        &["mail", "wait", "--timout"],
        &["session", "end", "--raeson"],
    ] {
        let ran = grounds.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
    }
    let ran = grounds.run(&["session", "end", "me"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("there is no session me"), "{ran:?}");
}

/// A script that asks for JSON gets JSON, also when its own command line is wrong.
#[test]
fn errors_are_json_with_a_code_when_json_was_asked_for() {
    let grounds = Grounds::new();
    grounds.run(&["session", "start"]).good();
    for (arguments, code, exit) in [
        (["--json", "ps", "--frobnicate"].as_slice(), "usage", 2),
        (&["--json", "quest", "new"], "usage", 2),
        (&["why", "nobody", "--json"], "nobody_called", 1),
    ] {
        let ran = grounds.run(arguments);
        let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
        assert_eq!((ran.code, error["error"]["code"].as_str()), (Some(exit), Some(code)), "{arguments:?}: {ran:?}");
        assert!(error["error"]["message"].as_str().is_some_and(|words| !words.is_empty()), "{ran:?}");
    }
    let help = grounds.run(&["--json", "ps", "--help"]);
    assert!(help.code == Some(0) && help.stdout.contains("Usage"), "{help:?}");
}

#[test]
fn exit_codes_are_as_promised() {
    let grounds = Grounds::new();
    for (arguments, code) in [
        (["status"].as_slice(), 3),
        (&["down"], 0),
        (&["doctor"], 0),
        (&["fsck"], 0),
        (&["import", "nowhere.jsonl"], 2),
        (&["quest", "import", "nowhere.json"], 2),
        (&["history", "import", "nowhere.jsonl"], 2),
        (&["frobnicate"], 2),
        (&["events", "--after", "soon"], 2),
        (&["up", "--port", "70000"], 2),
        (&["up", "--listen", "nowhere"], 2),
        (&["up", "--store", "mysql://x"], 2),
        (&["up", "--store", "sqlite:/proc/nowhere/log.db"], 3),
        (&["session", "end", "AAAAAAAAAAAAAAAAAAAAAA"], 1),
        (&["events", "--after", "99"], 1),
        (&["session", "start", "--idle", "0"], 2),
        (&["session", "start"], 0),
        (&["run", " \n"], 2),
        (&["run", "--harness", "nonsense", "x"], 2),
        (&["run", "--harness", "scripted", "--folder", "nowhere", "x"], 2),
        (&["run", "--harness", "scripted", "--script", "nowhere.jsonl", "x"], 2),
        (&["run", "--stall", "0", "x"], 2),
        (&["run", "--retries", "101", "x"], 2),
        (&["say", "root", ""], 2),
        (&["say", "nobody", "x"], 1),
        (&["attach", "nobody"], 1),
        (&["why", "nobody"], 1),
        (&["stop", "root"], 1),
        (&["interrupt", "root"], 1),
        (&["budget", "abc"], 2),
        (&["budget", "-5"], 2),
        (&["ask", "answer", "999", "wait"], 1),
    ] {
        let ran = grounds.run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
        if code != 0 {
            assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{arguments:?}: {ran:?}");
        }
    }
    grounds.run(&["down"]).good();
    let tampered = "UPDATE snapshots SET body = zeroblob(9)";
    let changed = rusqlite::Connection::open(grounds.database()).unwrap().execute(tampered, []).unwrap();
    assert_eq!(changed, 1, "the last daemon kept a snapshot");
    for (arguments, code) in [(["fsck"].as_slice(), 4), (&["fsck", "--repair"], 0), (&["fsck"], 0)] {
        let ran = grounds.run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
    }
    std::fs::write(grounds.path().join("hatchery.toml"), "port = 'none'").unwrap();
    let ran = grounds.run(&["doctor"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
}

#[test]
fn colours_are_for_those_who_want_them() {
    let grounds = Grounds::new();
    grounds.run(&["session", "start"]).good();
    let escapes = |settings: &[(&str, &str)]| {
        let all = [["events"].as_slice(), &["doctor"], &["session", "list"], &["up"], &["--help"]];
        all.map(|arguments| {
            let ran = Ran::from(grounds.command(arguments).envs(settings.iter().copied()).output().unwrap());
            ran.stdout.contains('\u{1b}') || ran.stderr.contains('\u{1b}')
        })
    };
    assert_eq!(escapes(&[("TERM", "xterm-256color")]), [false; 5], "into a pipe");
    assert_eq!(escapes(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]), [false; 5], "against the person's will");
    assert!(escapes(&[("CLICOLOR_FORCE", "1")]).contains(&true), "there are colours at all");
}

/// `hatchery events | head -1`
#[test]
fn a_reader_that_goes_away_is_no_news() {
    let grounds = Grounds::new();
    long_log(&grounds, 2_500);
    grounds.run(&["status"]);
    for arguments in
        [["events"].as_slice(), &["events", "--json"], &["export"], &["ps", "--all"], &["completions", "zsh"]]
    {
        let mut child = grounds.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::with_capacity(64, child.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        assert!(!first.is_empty(), "{arguments:?}");
        drop(output);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{arguments:?}: {said}");
        assert_eq!(said, "", "{arguments:?}");
    }
    let none = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        let mut child = command
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        Ran::from(child.wait_with_output().unwrap())
    };
    for arguments in [["completions", "bash"].as_slice(), &["--help"]] {
        let ran = none(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_run_is_followed_to_its_end_and_says_who_it_is() {
    let grounds = Grounds::with("harness = 'scripted'");
    let ran = grounds.run(&["run", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "You said: hello\n"), "{ran:?}");
    let id = ran.stderr.lines().next().unwrap().strip_prefix("agent ").unwrap();
    let why = json(grounds.run(&["why", id, "--json"]));
    assert_eq!(why["state"], "resting");
    assert!(!grounds.run(&["usage"]).good().contains(id), "who used nothing is not listed");
    grounds.run(&["down"]).good();
}

#[test]
fn a_program_that_is_not_there_is_told_with_where_to_look() {
    let grounds = Grounds::with("claude_path = '/nowhere/claude'");
    let ran = grounds.run(&["run", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("needs the program /nowhere/claude, which is not there"), "{ran:?}");
    assert!(ran.stderr.contains("`hatchery doctor`"), "{ran:?}");
    // Agents of seats are agents.
    for arguments in [["summon"].as_slice(), &["session", "start", "--lead"]] {
        let ran = grounds.run(arguments);
        assert!(ran.code == Some(1) && ran.stderr.contains("needs the program /nowhere/claude"), "{ran:?}");
    }
    assert!(!grounds.run(&["events"]).good().contains("agent_forked"), "nothing was made");
    let found = grounds.run(&["doctor"]).good();
    assert!(found.contains("/nowhere/claude is not there"), "{found}");
    grounds.run(&["down"]).good();
}

/// A folder without a project stays as it is, whatever is missing.
#[test]
fn what_cannot_begin_makes_no_project() {
    // Not in another project.
    let folder = tempfile::tempdir().unwrap();
    let (home, new) = (folder.path().join("home"), folder.path().join("new"));
    std::fs::create_dir(&new).unwrap();
    let bare = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hatchery"));
        command.args(arguments).env_clear().env("HOME", &home).env("PATH", "/nowhere");
        let ran = Ran::from(command.current_dir(&new).arg("--project").arg(&new).output().unwrap());
        assert_eq!(std::fs::read_dir(&new).unwrap().count(), 0, "{arguments:?} has made something: {ran:?}");
        ran
    };
    for arguments in [["run", "hello"].as_slice(), &["quest", "new", "build it"], &["summon"]] {
        let ran = bare(arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("needs the program claude, which is not on PATH"), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("--harness scripted") && !ran.stderr.contains("hatchery down"), "{ran:?}");
    }
    assert_eq!(bare(&["import", "nothing.jsonl"]).code, Some(2));
    let list = bare(&["adopt"]);
    assert!(list.code == Some(0) && list.stderr.contains("there are no conversations of this project in"), "{list:?}");
    let unknown = bare(&["adopt", "b2087215"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("there is no conversation b2087215"), "{unknown:?}");
    let ran = bare(&["run", "--harness", "nobody", "hello"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("nobody"), "{ran:?}");
    for arguments in [
        ["run", "--agent", "ann", "hello"].as_slice(),
        &["fork", "ann", "hello"],
        &["gc"],
        &["mail", "wait"],
        &["wake"],
        &["fsck"],
        &["ps"],
        &["tree"],
        &["history", "ann"],
        &["events"],
        &["quest", "list"],
        &["ask", "list"],
        &["open"],
        &["why", "ann"],
        &["say", "ann", "hello"],
        &["runs"],
        &["usage"],
        &["session", "list"],
    ] {
        let ran = bare(arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("there is no Hatchery project"), "{arguments:?}: {ran:?}");
    }
}

/// The agent was run by another program before, so it is there.
#[test]
fn nothing_is_said_to_an_agent_whose_program_is_missing() {
    let shop =
        Workshop::with("harness = 'scripted'\nclaude_path = '/nowhere/claude'\nstop_grace_ms = 300\n", Vec::new());
    let agent = shop.run(&[serde_json::json!({ "text": "done" })]);
    shop.end(&agent);
    let before = shop.door().history(&agent).len();
    for arguments in [
        ["say", &agent, "hello", "--harness", "claude"].as_slice(),
        &["run", "--agent", &agent, "--harness", "claude", "hello"],
    ] {
        let ran = shop.grounds.run(arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("needs the program /nowhere/claude"), "{arguments:?}: {ran:?}");
    }
    assert_eq!(shop.door().history(&agent).len(), before);
}

#[test]
fn an_interrupted_run_is_left_to_work() {
    let shop = Workshop::open();
    let script = shop.script(&[serde_json::json!({ "text": "here" }), serde_json::json!({ "hang": {} })]);
    let mut command = shop.grounds.command(&["run", "--name", "busy", "--script", script.to_str().unwrap(), "x"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.stderr.contains("it works on: `hatchery attach"), "{ran:?}");
    assert_eq!(json(shop.grounds.run(&["why", "busy", "--json"]))["state"], "working");
    shop.grounds.run(&["stop", "busy"]).good();
    let ended = shop.wait("the end", |event| event["type"] == "run_ended");
    assert_eq!(ended["cause"], "user_ended");
}

/// A person is told what came of a command. Events are for programs.
#[test]
fn what_a_command_did_is_told_in_a_sentence() {
    let shop = Workshop::open();
    let busy = shop.run_with(&[text("at work"), json!({ "sleep_ms": 600_000 })], json!({ "stays": true }));
    shop.wait_said(&busy, "at work");
    let told = |arguments: &[&str], words: &str| {
        let ran = shop.grounds.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{arguments:?}: {ran:?}");
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(words), "{arguments:?}: {ran:?}");
    };
    told(&["rename", &busy, "ann"], "is called ann now");
    told(&["mark", "ann", "here"], "marked as `here`");
    told(&["say", "ann", "hello"], "ann has your message");
    told(&["interrupt", "ann"], "ann is told to end its turn");
    told(&["stop", "ann"], "ann is being stopped");
    shop.end(&busy);
    told(&["rewind", "ann", "here"], "back at the mark `here`");
    told(&["clear", "ann"], "starts again from nothing");
    told(&["send", "ann", "a letter"], "is in the mailbox of ann");
    told(&["budget", "2.50", "--agent", "ann"], "ann may spend $2.50");
    told(&["budget", "none"], "no daily budget");
    let events = shop.grounds.run(&["rename", "ann", "--json"]).good();
    let events: Value = serde_json::from_str(&events).unwrap();
    assert_eq!(events["events"][0]["type"], "agent_renamed", "{events:#}");
}

#[test]
fn a_demo_that_is_interrupted_leaves_nothing_behind() {
    let grounds = Grounds::new();
    let temporary = grounds.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = grounds.command(&["demo"]);
    let mut child = command.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Agents are at work then.
    assert!(lines.by_ref().any(|line| line.unwrap().contains("pathseeker")));
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "the project is gone");
    let registry = grounds.path().join("home/.local/state/hatchery/projects");
    assert_eq!(std::fs::read_dir(registry).map_or(0, Iterator::count), 0, "nothing remembers it");
    let inside = temporary.display().to_string();
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&inside))
    });
    assert_eq!(left.count(), 0, "its processes are gone");
}
