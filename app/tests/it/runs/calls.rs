//! What agents ask of us by their tools counts, also while the daemon is away, and counts once.

use crate::support::daemon::wait_until;
use crate::support::http::Door;
use crate::support::workshop::Workshop;
use hatchery::calls::{Call, CallWriter};
use hatchery::run_folder::RunFolder;
use serde_json::{Value, json};

fn mcp(tool: &str, arguments: Value) -> Value {
    json!({ "mcp": { "tool": tool, "arguments": arguments } })
}

#[test]
fn a_mail_that_is_sent_while_the_daemon_is_away_arrives_once() {
    let mut shop = Workshop::open();
    let steps =
        [json!({ "text": "ready" }), json!({ "sleep_ms": 400 }), mcp("send", json!({ "to": "human", "body": "hi" }))];
    let agent = shop.run(&steps);
    shop.wait("ready", |event| event["content"] == "ready");
    shop.kill_daemon();
    // It is written down before anybody is asked.
    let calls = shop.folder(&agent, 1, 1).join("calls.jsonl");
    wait_until("the call", || std::fs::metadata(&calls).unwrap().len() > 0);
    shop.restart();
    assert_eq!(shop.end(&agent), "completed");
    let sent: Vec<Value> = shop.events().into_iter().filter(|event| event["type"] == "mail_sent").collect();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!((&sent[0]["from"], &sent[0]["body"]), (&json!(agent), &json!("hi")));
    let history = shop.door().history(&agent);
    let result = history.iter().find(|message| message["kind"] == "tool_result").unwrap();
    assert!(result["content"].as_str().unwrap().contains("\"is_error\":false"), "{result}");
}

#[test]
fn a_refusal_is_an_answer_too() {
    let shop = Workshop::open();
    let agent = shop.run(&[mcp("send", json!({ "to": "nobody-here", "body": "hi" }))]);
    assert_eq!(shop.end(&agent), "completed");
    let taken = shop.wait("the call", |event| event["type"] == "call_taken");
    assert_eq!(taken["refused"]["code"], "nobody_called");
    let history = shop.door().history(&agent);
    assert!(history.iter().any(|message| message["content"].as_str().unwrap().contains("nobody-here")), "{history:?}");
}

#[test]
fn a_child_that_is_forked_with_a_task_is_run() {
    let shop = Workshop::open();
    let agent =
        shop.run(&[mcp("fork", json!({ "prompt": "child's task", "name": "junior" })), json!({ "text": "forked" })]);
    assert_eq!(shop.end(&agent), "completed");
    let born = shop.wait("the child", |event| event["name"] == "junior");
    let child = born["agent"].as_str().unwrap();
    assert_eq!(born["parent"], json!(agent));
    assert_eq!(shop.end(child), "completed");
}

#[test]
fn a_run_speaks_for_itself_and_for_nobody_else() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "hang": {} })]);
    let other = shop.door().child(&shop.door().root());
    shop.wait_for(&agent, "run_started");
    let token = std::fs::read_to_string(shop.folder(&agent, 1, 1).join("token")).unwrap();
    let door = Door { token, ..shop.door() };
    assert_eq!(door.get("/api/agents").status, 200);
    assert_eq!(door.get(&format!("/api/mail/{agent}")).status, 200);
    for path in
        [format!("/api/mail/{other}"), "/api/mail/human".into(), "/api/events.json".into(), "/api/status".into()]
    {
        assert_eq!(door.get(&path).status, 401, "{path}");
    }
    for path in [format!("/api/agents/{other}/kill"), format!("/api/agents/{agent}/kill"), "/api/mail".into()] {
        assert_eq!(door.post(&path, &json!({})).status, 401, "{path}");
    }
    shop.stop(&agent);
    shop.end(&agent);
    assert_eq!(door.get("/api/agents").status, 401, "the run is over, and so is its token");
}

/// A model may ask for several forks in one message, and for a wait beside them.
#[test]
fn forks_of_one_message_are_all_born_and_can_be_waited_for() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "hang": {} })]);
    shop.wait_for(&agent, "run_started");
    // As its tools write them down, while the calls have no result yet.
    let (one, two) = (hatchery::clock::new_agent_id(), hatchery::clock::new_agent_id());
    shop.door().add(&agent, "tool_call", "{\"id\":\"a\",\"name\":\"fork\",\"input\":{}}");
    shop.door().add(&agent, "tool_call", "{\"id\":\"b\",\"name\":\"fork\",\"input\":{}}");
    for child in [one, two] {
        let forked = shop.door().fork(json!({ "parent": agent, "id": child }));
        assert_eq!((forked.status, forked.types()), (202, vec!["fork_requested".to_owned()]));
        let waited = shop.door().wait(&agent, &[&child.to_string()], 0).json();
        assert_eq!(waited["agents"][0]["state"], "waiting", "it is promised: {waited}");
    }
    // The result of the second comes first, and the first tool still runs.
    shop.door().add(&agent, "tool_result", &json!({ "id": "b", "content": format!("agent {two}") }).to_string());
    shop.wait_for(&two.to_string(), "agent_created");
    assert!(!shop.events().iter().any(|event| event["type"] == "agent_created" && event["agent"] == json!(one)));
    shop.door().add(&agent, "tool_result", &json!({ "id": "a", "content": format!("agent {one}") }).to_string());
    shop.wait_for(&one.to_string(), "agent_created");
    shop.stop(&agent);
    shop.end(&agent);
}

/// Counted in bytes that are read, not in time: whatever grows with the number of calls is read again and again.
#[cfg(target_os = "linux")]
#[test]
fn the_thousandth_call_costs_the_same_as_the_first() {
    const CALLS: u64 = 1_000;
    const WATCHED: u64 = 20;
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "hang": {} })]);
    shop.wait_for(&agent, "run_started");
    let folder = RunFolder::at(shop.folder(&agent, 1, 1));
    let door = Door { token: folder.token().unwrap().unwrap(), ..shop.door() };
    let mut writer = CallWriter::new(folder);
    let daemon = format!("/proc/{}/io", shop.daemon_pid());
    // The least of several, because the daemon also does other things.
    let mut least = |calls: std::ops::Range<u64>| {
        let costs = calls.map(|number| {
            let before = [bytes_read("/proc/thread-self/io"), bytes_read(&daemon)];
            let call = Call::Send { to: "human".into(), body: format!("{number:04}") };
            assert_eq!(writer.write(&call).unwrap(), number);
            let written = bytes_read("/proc/thread-self/io") - before[0];
            let answer =
                door.post(&format!("/api/agents/{agent}/calls"), &json!({ "run": 1, "attempt": 1, "number": number }));
            assert!(answer.status < 300, "{answer:?}");
            (written, bytes_read(&daemon) - before[1])
        });
        costs.reduce(|one, other| (one.0.min(other.0), one.1.min(other.1))).unwrap()
    };
    let first = least(1..WATCHED);
    least(WATCHED..CALLS - WATCHED);
    let last = least(CALLS - WATCHED..CALLS);
    assert!(
        last.0 <= first.0 + 64,
        "the writer has read {} bytes for the first call, {} for the last",
        first.0,
        last.0
    );
    assert!(last.1 <= 2 * first.1, "the daemon has read {} bytes for the first call, {} for the last", first.1, last.1);
    shop.stop(&agent);
    shop.end(&agent);
}

/// How much a process or thread has read by now, from files and sockets.
#[cfg(target_os = "linux")]
fn bytes_read(io: &str) -> u64 {
    let counters = std::fs::read_to_string(io).unwrap();
    counters.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}
