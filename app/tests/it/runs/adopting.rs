//! Conversations that were begun in the Claude CLI or in codex become agents, and go on.

use crate::support::claude_cli::{Home, cli_or_skip, uuid};
use crate::support::daemon::Grounds;
use crate::support::model::{Block, Model, Step};
use crate::support::program::write_program;
use crate::support::transcripts::{write, write_thread};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::time::{Duration, SystemTime};

/// The first line of `ps` names its columns.
const HEADING: usize = 1;

#[test]
fn a_conversation_with_the_real_cli_is_adopted_and_goes_on() {
    let cli = cli_or_skip!();
    let model = Model::playing([
        Step::blocks([
            Block::text("I look."),
            Block::ToolUse { name: "Read".into(), input: json!({ "file_path": "hatchery.toml" }) },
        ]),
        Step::text("one"),
        Step::text("two"),
        Step::text("three"),
        Step::text("four"),
    ]);
    let mut home = Home::new(cli, &model);
    // Another harness is usual here: the conversation knows its own.
    let settings = format!("harness = 'scripted'\nclaude_path = '{}'\n", cli.program().display());
    let environment: Vec<(String, OsString)> =
        home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let shop = Workshop::with(&settings, environment);
    home.work_in(shop.grounds.path());

    let session = uuid();
    let mut run = home.begin(&session);
    let first = run.say("first");
    run.result(1);
    let at_it = list(&shop.grounds);
    assert!(at_it["sessions"][0]["pid"].is_u64(), "{at_it}");
    let second = run.say("second");
    run.result(2);
    run.end();

    let listed = list(&shop.grounds);
    let it = &listed["sessions"][0];
    assert_eq!((&it["session"], &it["messages"], &it["firstPrompt"]), (&json!(session), &json!(7), &json!("first")));
    assert_eq!([&it["agent"], &it["pid"], &it["folder"]], [&Value::Null; 3], "{listed}");
    let shown = shop.grounds.run(&["adopt"]).good();
    assert!(shown.starts_with(&session[..8]) && shown.contains("7 messages  first"), "{shown}");

    let adopted = shop.grounds.run(&["adopt", &session[..8], "--name", "old"]).good();
    let agent = adopted.split_whitespace().next().unwrap();
    let history = shop.door().history(agent);
    let kinds: Vec<&str> = history.iter().map(|message| message["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "tool_call", "tool_result", "assistant", "user", "assistant"]);
    assert_eq!([&history[0]["source_id"], &history[5]["source_id"]], [&json!(first), &json!(second)]);
    let content = |at: usize| serde_json::from_str::<Value>(history[at]["content"].as_str().unwrap()).unwrap();
    assert_eq!((&content(2)["name"], &content(2)["id"]), (&json!("Read"), &content(3)["id"]));
    assert!(content(3)["content"].as_str().unwrap().contains("harness = 'scripted'"), "{history:#?}");

    shop.grounds.run(&["say", "old", "third"]).good();
    assert_eq!(shop.end(agent), "completed");
    let spawned = shop.wait_for(agent, "run_spawned");
    assert_eq!((&spawned["session"], &spawned["copy_of"]), (&json!(session), &Value::Null));
    let dialogue = model.asked(4).dialogue();
    let words: Vec<&String> = dialogue.iter().filter(|line| !line.contains('(')).collect();
    assert_eq!(
        words,
        ["user: first", "assistant: I look.", "assistant: one", "user: second", "assistant: two", "user: third"]
    );
    assert_eq!(shop.said(agent).last().unwrap(), "three");
    // The CLI counts on; what it counted before is not ours.
    let ended = shop.wait_for(agent, "turn_ended");
    let cost = |of: &Value| of["cost"]["nanodollars"].as_u64().unwrap();
    assert!(0 < cost(&ended["spent"]) && cost(&ended["spent"]) < cost(&ended["end"]["total"]), "{ended}");

    let again = shop.grounds.run(&["adopt", &session]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains(&format!("is the conversation of agent {agent} (old) already")), "{again:?}");
    // One of our own has an agent, too.
    shop.grounds.run(&["run", "--harness", "claude", "fourth"]).good();
    let listed = list(&shop.grounds);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
    assert!(listed["sessions"].as_array().unwrap().iter().all(|it| it["agent"].is_string()), "{listed}");
    assert_eq!(shop.grounds.run(&["adopt", "--all"]).good(), "");
}

#[test]
fn what_stands_in_a_transcript_is_taken_in_whatever_is_wrong_with_it() {
    const MANY: usize = 1_200;
    let grounds = Grounds::new();
    let folder = grounds.path().join("home/.claude/projects");
    let root = grounds.path().canonicalize().unwrap();
    let long = write(&folder, &root, "11111111-1111-4111-8111-111111111111", MANY);
    // Cut off by a crash, glued by another, and one that is being written.
    let mut text = fs::read_to_string(&long).unwrap();
    text.insert_str(0, "{\"parentUuid\":null,\"isSide\nnonsense\n[]\n\n");
    text.push_str("{\"parentUuid\":\"m1199\",\"type\":\"us");
    fs::write(&long, text).unwrap();
    // In a folder of the project, and in one beside it whose name begins alike.
    write(&folder, &root.join("sub"), "11111111-2222-4222-8222-222222222222", 2);
    let beside = root.with_file_name(format!("{}-x", root.file_name().unwrap().to_str().unwrap()));
    write(&folder, &beside, "33333333-3333-4333-8333-333333333333", 2);
    // Nothing was said in this one, and this is no transcript.
    write(&folder, &root, "44444444-4444-4444-8444-444444444444", 0);
    fs::write(long.with_file_name("agent-1.jsonl"), "{}").unwrap();
    let _daemon = grounds.up();

    let listed = list(&grounds);
    let sessions = listed["sessions"].as_array().unwrap();
    let mut told: Vec<_> = sessions
        .iter()
        .map(|it| (it["session"].as_str().unwrap(), &it["folder"], it["messages"].as_u64().unwrap()))
        .collect();
    told.sort_unstable_by_key(|it| it.0);
    let (one, two) = ("11111111-1111-4111-8111-111111111111", "11111111-2222-4222-8222-222222222222");
    assert_eq!(told, [(one, &Value::Null, MANY as u64), (two, &json!("sub"), 2)], "{listed}");
    // As short as it can be.
    assert!(grounds.run(&["adopt"]).good().lines().any(|line| line.starts_with("11111111-1  ")));

    for (arguments, words) in [
        (vec!["adopt", "1111"], "may mean any of"),
        (vec!["adopt", "3333"], "there is no conversation `3333` of this project"),
        (vec!["adopt", "../../etc/passwd"], "there is no conversation"),
        (vec!["adopt", "11111111-1", "--name", "human"], "cannot be a name"),
    ] {
        let refused = grounds.run(&arguments);
        assert!(refused.code == Some(1) && refused.stderr.contains(words), "{refused:?}");
    }
    assert_eq!(grounds.run(&["adopt", "a", "b", "--name", "c"]).code, Some(2));
    let agents = |all: &str| grounds.run(&["ps", all]).good().lines().skip(HEADING).count();
    assert_eq!(agents("--all"), 1, "what is refused leaves nothing behind");

    let adopted = grounds.run(&["adopt", "--all"]);
    assert!(adopted.stderr.contains("warning: 3 lines of the transcript cannot be read"), "{adopted:?}");
    assert_eq!(adopted.good().lines().count(), 2);
    assert_eq!(agents("--all"), 3);
    let listed = list(&grounds);
    let agent = &listed["sessions"].as_array().unwrap().iter().find(|it| it["session"] == one).unwrap()["agent"];
    let history = grounds.run(&["history", agent.as_str().unwrap(), "--json"]).good();
    let history: Value = serde_json::from_str(&history).unwrap();
    let contents: Vec<&str> =
        history["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(contents, (0..MANY).map(|number| format!("word {number}")).collect::<Vec<_>>());
    grounds.run(&["fsck"]).good();
}

/// Of two processes in one conversation, one would lose what it says.
#[test]
fn a_conversation_that_somebody_is_at_is_left_alone() {
    let bin = tempfile::tempdir().unwrap();
    let program = bin.path().join("claude");
    write_program(&program, "#!/bin/sh\nexit 1\n");
    let shop = Workshop::with(&format!("claude_path = '{}'", program.display()), Vec::new());
    let root = shop.grounds.path().canonicalize().unwrap();
    let home = shop.grounds.path().join("home/.claude");
    let session = "11111111-1111-4111-8111-111111111111";
    write(&home.join("projects"), &root, session, 2);
    let note = home.join("sessions/1.json");
    fs::create_dir_all(note.parent().unwrap()).unwrap();
    let pid = std::process::id();
    fs::write(&note, json!({ "pid": pid, "sessionId": session }).to_string()).unwrap();
    let adopted = shop.grounds.run(&["adopt", "1111", "--name", "old"]);
    assert!(adopted.stderr.contains(&format!("process {pid} still has {session} open")), "{adopted:?}");
    let detail = |run: u64| {
        shop.grounds.run(&["say", "old", "hello"]).good();
        let ended = shop.wait("the end", |event| event["type"] == "run_ended" && event["run"] == run);
        assert_eq!(ended["exit"], "not_started", "{ended}");
        ended["detail"].as_str().unwrap().to_owned()
    };
    assert!(detail(1).contains(&format!("process {pid} has the session {session} open")));
    fs::remove_file(note).unwrap();
    fs::remove_file(program).unwrap();
    let refused = shop.grounds.run(&["say", "old", "hello"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("which is not there"), "{refused:?}");
}

#[test]
fn of_two_who_adopt_at_once_one_is_refused_and_leaves_nothing_alive() {
    let grounds = Grounds::new();
    let root = grounds.path().canonicalize().unwrap();
    write(&grounds.path().join("home/.claude/projects"), &root, "11111111-1111-4111-8111-111111111111", 3_000);
    let _daemon = grounds.up();
    let both = std::thread::scope(|scope| {
        let adopt = || grounds.run(&["adopt", "1111"]);
        let both = [scope.spawn(adopt), scope.spawn(adopt)];
        both.map(|one| one.join().unwrap())
    });
    let refused: Vec<_> = both.iter().filter(|ran| ran.code != Some(0)).collect();
    assert!(refused.len() == 1 && refused[0].stderr.contains("is the conversation of agent"), "{both:?}");
    assert_eq!(grounds.run(&["ps"]).good().lines().skip(HEADING).count(), 2, "the root, and one");
}

#[test]
fn the_folder_of_the_cli_may_be_elsewhere_and_may_be_missing() {
    let grounds = Grounds::new();
    let shown = grounds.run(&["adopt"]);
    assert!(shown.stderr.contains("there are no conversations of this project in"), "{shown:?}");
    assert_eq!(shown.good(), "");
    grounds.run(&["down"]).good();
    let root = grounds.path().canonicalize().unwrap();
    write(&root.join("elsewhere/projects"), &root, "11111111-1111-4111-8111-111111111111", 2);
    let mut command = grounds.command(&["adopt"]);
    let shown = command.env("CLAUDE_CONFIG_DIR", root.join("elsewhere")).output().unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains("2 messages  word 0"));
}

#[test]
fn the_conversations_of_both_vendors_are_listed_together_with_the_latest_first() {
    let grounds = Grounds::new();
    let root = grounds.path().canonicalize().unwrap();
    let home = grounds.path().join("home");
    let (of_claude, of_codex) = ("11111111-1111-4111-8111-111111111111", "11111111-2222-7222-8222-222222222222");
    let transcript = write(&home.join(".claude/projects"), &root, of_claude, 2);
    let thread = write_thread(&home.join(".codex"), &root.join("sub"), of_codex, 4);
    for (file, minutes) in [(&thread, 5), (&transcript, 10)] {
        let at = SystemTime::now() - Duration::from_secs(60 * minutes);
        fs::File::options().write(true).open(file).unwrap().set_modified(at).unwrap();
    }
    let _daemon = grounds.up();
    let listed = list(&grounds);
    let told: Vec<_> =
        listed["sessions"].as_array().unwrap().iter().map(|it| (&it["harness"], &it["session"])).collect();
    assert_eq!(told, [(&json!("codex"), &json!(of_codex)), (&json!("claude"), &json!(of_claude))], "{listed}");
    let shown = grounds.run(&["adopt"]).good();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].contains("codex ") && lines[0].contains("4 messages  word 0  in sub"), "{shown}");
    assert!(lines[1].contains("claude ") && lines[1].contains("2 messages  word 0"), "{shown}");
    assert!(lines[0].contains("5 min ago") && lines[1].contains("10 min ago"), "{shown}");
    // The beginning of an id may be that of both.
    let refused = grounds.run(&["adopt", "1111"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("may mean any of"), "{refused:?}");
    assert!(refused.stderr.contains(of_claude) && refused.stderr.contains(of_codex), "{refused:?}");
    assert_eq!(grounds.run(&["adopt", "--all"]).good().lines().count(), 2);
}

/// Codex may be told where its home is by a daemon that knows no other home.
#[test]
fn the_threads_of_codex_are_listed_where_claude_has_no_home() {
    let grounds = Grounds::new();
    let root = grounds.path().canonicalize().unwrap();
    write_thread(&root.join("elsewhere"), &root, "11111111-2222-7222-8222-222222222222", 2);
    let mut command = grounds.command(&["adopt", "--json"]);
    let shown = command.env_remove("HOME").env("CODEX_HOME", root.join("elsewhere")).output().unwrap();
    let listed: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(listed["sessions"][0]["harness"], "codex", "{listed}");
}

fn list(grounds: &Grounds) -> Value {
    serde_json::from_str(&grounds.run(&["adopt", "--json"]).good()).unwrap()
}
