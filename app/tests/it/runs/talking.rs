//! What is said to agents arrives, in order, once, whoever dies in between.

use crate::support::workshop::Workshop;
use hatchery_core::history::TURN_INTERRUPTED;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

#[test]
fn an_agent_that_has_ended_is_resumed_by_a_word() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "one" })]);
    assert_eq!(shop.end(&agent), "completed");
    shop.say(&agent, "hello");
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["run"] == 2);
    assert_eq!(shop.said(&agent), ["one", "You said: hello"]);
}

#[test]
fn what_is_said_while_the_daemon_and_the_child_are_down_arrives_in_order_and_once() {
    let mut shop = Workshop::open();
    let agent = shop.run_with(&[json!({ "text": "one" })], json!({ "stays": true }));
    shop.wait_for(&agent, "turn_ended");
    for text in ["a", "b", "c"] {
        shop.say(&agent, text);
    }
    shop.kill_daemon();
    for pid in shop.processes() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap_or_default();
    }
    shop.restart();
    shop.wait("the last answer", |event| event["content"] == "You said: c");
    let said: Vec<String> = shop.said(&agent).into_iter().filter(|said| !said.contains("interrupted")).collect();
    assert_eq!(said, ["one", "You said: a", "You said: b", "You said: c"]);
    // One that had answered everything before it was killed is not started again for nothing.
    let stopped = shop.door().post(&format!("/api/agents/{agent}/stop"), &json!({}));
    assert!([200, 404].contains(&stopped.status), "{stopped:?}");
    shop.end(&agent);
}

#[test]
fn an_agent_at_work_is_not_moved_to_another_program() {
    let shop = Workshop::open();
    let agent = shop.run_with(&[json!({ "text": "one" })], json!({ "stays": true }));
    shop.wait_for(&agent, "turn_ended");
    for with in [json!({ "harness": "claude" }), json!({ "model": "another" })] {
        let refused = shop.door().post(&format!("/api/agents/{agent}/say"), &json!({ "text": "x", "with": with }));
        refused.refused(409, "run_open");
    }
    let same = json!({ "text": "hello", "with": { "harness": "scripted" } });
    assert_eq!(shop.door().post(&format!("/api/agents/{agent}/say"), &same).status, 200);
    shop.wait("the answer", |event| event["content"] == "You said: hello");
    shop.stop(&agent);
    shop.end(&agent);
}

#[test]
fn an_interrupt_breaks_off_the_turn_and_the_next_message_is_answered() {
    let shop = Workshop::open();
    let steps = [json!({ "text": "begin" }), json!({ "sleep_ms": 600_000 })];
    let agent = shop.run_with(&steps, json!({ "stays": true }));
    shop.wait("begin", |event| event["content"] == "begin");
    let interrupted = shop.door().post(&format!("/api/agents/{agent}/interrupt"), &json!({}));
    assert_eq!(interrupted.status, 200, "{interrupted:?}");
    shop.wait_for(&agent, "turn_ended");
    shop.say(&agent, "and now");
    shop.wait("the answer", |event| event["content"] == "You said: and now");
    // The agent program keeps the turn that was broken off, and so does the history.
    let context = ["play", "begin", TURN_INTERRUPTED, "and now", "You said: and now"];
    assert_eq!(shop.door().context(&agent), context);
    shop.stop(&agent);
    shop.end(&agent);
}

#[test]
fn a_message_that_waits_while_a_turn_is_interrupted_stands_after_it() {
    let mut shop = Workshop::open();
    let steps = [json!({ "text": "begin" }), json!({ "sleep_ms": 600_000 })];
    let agent = shop.run_with(&steps, json!({ "stays": true }));
    shop.wait("begin", |event| event["content"] == "begin");
    shop.say(&agent, "rather this");
    let interrupted = shop.door().post(&format!("/api/agents/{agent}/interrupt"), &json!({}));
    assert_eq!(interrupted.status, 200, "{interrupted:?}");
    shop.wait("the answer", |event| event["content"] == "You said: rather this");
    let context = ["play", "begin", TURN_INTERRUPTED, "rather this", "You said: rather this"];
    assert_eq!(shop.door().context(&agent), context);
    // The next daemon says the same.
    shop.kill_daemon();
    shop.restart();
    assert_eq!(shop.door().context(&agent), context);
    shop.stop(&agent);
    shop.end(&agent);
}

#[test]
fn a_fork_goes_on_with_a_copy_of_the_conversation() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "one" }), json!("turn"), json!({ "text": "two" })]);
    assert_eq!(shop.end(&agent), "completed");
    let child = shop.door().child(&agent);
    shop.say(&child, "go on");
    shop.end(&child);
    let spawned = shop.wait_for(&child, "run_spawned");
    let parent = shop.wait_for(&agent, "run_spawned");
    assert_eq!(spawned["copy_of"], parent["session"]);
    assert_eq!(shop.said(&child), ["one", "two"]);
    assert_eq!(shop.said(&agent), ["one"]);
}

#[test]
fn after_a_rewind_a_new_conversation_is_begun_with_what_counts() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "one" })]);
    assert_eq!(shop.end(&agent), "completed");
    let first = shop.door().history(&agent)[0]["id"].clone();
    let rewound = shop.door().post(&format!("/api/agents/{agent}/rewind"), &json!({ "message": first }));
    assert!(rewound.status < 300, "{rewound:?}");
    shop.door()
        .post(&format!("/api/agents/{agent}/say"), &json!({ "text": "again", "with": { "harness": "scripted" } }));
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["run"] == 2);
    let sessions: Vec<_> = shop
        .events()
        .iter()
        .filter(|event| event["type"] == "run_spawned")
        .map(|event| event["session"].clone())
        .collect();
    assert_ne!(sessions[0], sessions[1]);
    assert_eq!(shop.said(&agent).last().unwrap(), "one", "the script is played from its beginning");
}

/// What is typed into the view answers the open question, or is a message.
#[test]
fn a_view_takes_answers_and_messages() {
    let shop = Workshop::open();
    let bash = json!({ "ask": { "name": "Bash", "input": { "command": "make" }, "result": "made" } });
    let agent = shop
        .run_with(&[bash, json!("turn"), json!({ "text": "heard" })], json!({ "stays": true, "permissions": "ask" }));
    shop.wait_for(&agent, "question_asked");
    let mut command = shop.grounds.command(&["attach", &agent, "--input"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(told.any(|line| line.contains("make")), "the question that was open before is shown");
    assert!(told.next().unwrap().contains("hatchery ask answer"), "and how to answer it");
    let rest = std::thread::spawn(move || told.count());
    writeln!(typed, "deny: not now").unwrap();
    let answered = shop.wait_for(&agent, "question_answered");
    assert_eq!(answered["answer"], "deny: not now", "{answered}");
    shop.wait_for(&agent, "turn_ended");
    writeln!(typed, "\ngo on").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "heard"), "the message was heard, and the answer was shown");
    child.kill().unwrap();
    child.wait().unwrap();
    rest.join().unwrap();
    shop.stop(&agent);
    shop.end(&agent);
}

/// Prompts are left out for the agents of seats and quests only: an ordinary agent is told nothing but what people and agents say to it.
#[test]
fn a_thread_has_both_sides_of_a_conversation() {
    let shop = Workshop::open();
    let agent = shop.prompt("first words", json!({}));
    shop.end(&agent);
    shop.say(&agent, "second words");
    shop.wait("its second end", |event| event["type"] == "run_ended" && event["agent"] == *agent && event["run"] == 2);
    let thread = shop.door().get(&format!("/api/agents/{agent}/thread")).json();
    let lines = thread["messages"].as_array().unwrap().iter();
    let said: Vec<_> =
        lines.map(|line| (line["speakerType"].as_str().unwrap(), line["text"].as_str().unwrap())).collect();
    let expected = [
        ("human", "first words"),
        ("agent", "You said: first words"),
        ("human", "second words"),
        ("agent", "You said: second words"),
    ];
    assert_eq!(said, expected);
}
