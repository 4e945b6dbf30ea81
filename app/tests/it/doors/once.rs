//! Requests with an id of the caller: a repeat is carried out once, whatever broke in between.

use super::raw::{Line, Parts, request};
use crate::support::daemon::{Grounds, PATIENCE};
use crate::support::http::{Door, Lost};
use crate::support::postgres::Server;
use crate::support::random::Random;
use crate::support::runtime;
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;

/// The mail in the log, by body.
fn mail(door: &Door) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for event in door.log() {
        let event: Value = serde_json::from_str(&event).unwrap();
        if event["type"] == "mail_sent" {
            *counted.entry(event["body"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    counted
}

/// Sends a request, and cuts the connection before the answer is read.
fn cut(door: &Door, path: &str, body: &Value) {
    let mut line = Line::to(door.authority.parse().unwrap());
    let authorization = format!("Bearer {}", door.token);
    let headers = [
        ("Host", door.authority.as_str()),
        ("Authorization", authorization.as_str()),
        ("Content-Type", "application/json"),
    ];
    line.send(&request("POST", path, Parts { headers: &headers, body: body.to_string().as_bytes() }));
}

#[test]
fn a_repeat_after_a_cut_connection_is_one() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let agent = door.child(&door.root());
    for number in 0..30 {
        let body = json!({ "id": format!("job-{number}"), "to": agent, "body": format!("mail {number}") });
        for _ in 0..number % 3 {
            cut(door, "/api/mail", &body);
        }
        let first = door.post("/api/mail", &body);
        assert_eq!((first.status, first.types(), first.id()), (201, vec!["mail_sent".to_owned()], agent.clone()));
        let again = door.post("/api/mail", &body);
        assert_eq!((again.status, again.body), (201, first.body));
    }
    let expected = (0..30).map(|number| (format!("mail {number}"), 1)).collect::<BTreeMap<_, _>>();
    assert_eq!(mail(door), expected);
}

#[test]
fn an_id_is_remembered_over_kill_9_and_is_for_one_content() {
    // A start from a snapshot, and one from the log alone.
    for events in [1, 200] {
        let grounds = Grounds::with("snapshot_every = 100");
        let daemon = grounds.up();
        let agent = daemon.door.child(&daemon.door.root());
        let message = json!({ "id": "m", "kind": "user", "content": "x" });
        let path = format!("/api/agents/{agent}/messages");
        let first = daemon.door.post(&path, &message);
        assert_eq!(first.status, 201, "{first:?}");
        for _ in 0..events {
            daemon.door.say(&agent, "more");
        }
        daemon.kill();
        let daemon = grounds.up();
        assert_eq!(daemon.door.post(&path, &message).body, first.body);
        daemon.door.kill(&agent, json!({}));
        assert_eq!(daemon.door.post(&path, &message).body, first.body, "what became of the agent does not matter");
        let other = json!({ "id": "m", "kind": "user", "content": "y" });
        daemon.door.post(&path, &other).refused(409, "request_id_used");
        daemon
            .door
            .post("/api/mail", &json!({ "id": "m", "to": "human", "body": "x" }))
            .refused(409, "request_id_used");
    }
}

#[test]
fn a_request_that_was_refused_may_be_repeated_and_a_wrong_id_is_told() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let body = json!({ "id": "later", "to": "ann", "body": "hello" });
    daemon.door.post("/api/mail", &body).refused(404, "nobody_called");
    assert_eq!(daemon.door.fork(json!({ "name": "ann" })).status, 201);
    assert_eq!(daemon.door.post("/api/mail", &body).status, 201);
    for id in ["", "a b", "ä", &"x".repeat(129)] {
        daemon.door.post("/api/mail", &json!({ "id": id, "to": "ann", "body": "" })).refused(400, "bad_json");
    }
    let ran = grounds.run(&["send", "ann", "x", "--id", "a b"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

/// Clients that repeat until they are answered, and a daemon that is killed at random moments.
#[test]
fn what_is_repeated_until_it_is_answered_is_there_once_on_sqlite() {
    repeat_until_answered(&Grounds::with("snapshot_every = 100"));
}

#[test]
fn what_is_repeated_until_it_is_answered_is_there_once_on_postgres() {
    let database = Server::shared().database();
    repeat_until_answered(&Grounds::with(&format!("store = '{}'\nsnapshot_every = 100", database.url())));
}

fn repeat_until_answered(grounds: &Grounds) {
    const CLIENTS: usize = 4;
    const KILLS: usize = 5;
    let mut random = Random::new(7);
    let mut daemon = grounds.up();
    let agent = daemon.door.child(&daemon.door.root());
    let (doors, shown) = watch::channel(Some(daemon.door.clone()));
    let (told, mut count) = watch::channel(0_usize);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (mut shown, told, agent) = (shown.clone(), told.clone(), agent.clone());
            runtime().spawn(async move {
                let mut sent = Vec::new();
                for number in 0.. {
                    let text = format!("{client}/{number}");
                    let body = json!({ "id": text, "to": agent, "body": text });
                    // However often it takes.
                    loop {
                        let Some(door) = shown.borrow_and_update().clone() else { return sent };
                        match door.http().post("/api/mail", &body).await {
                            Ok(answer) => break assert_eq!(answer.status, 201, "{answer:?}"),
                            Err(Lost) if shown.changed().await.is_ok() => {}
                            Err(Lost) => return sent,
                        }
                    }
                    sent.push(text);
                    told.send_modify(|count| *count += 1);
                }
                sent
            })
        })
        .collect();
    for _ in 0..KILLS {
        let enough = *count.borrow() + 1 + random.below(40);
        runtime()
            .block_on(async { tokio::time::timeout(PATIENCE, count.wait_for(|count| *count >= enough)).await })
            .unwrap()
            .unwrap();
        // This waits for nothing: it is the random moment.
        std::thread::sleep(Duration::from_micros(random.next() % 5_000));
        daemon.kill();
        daemon = grounds.up();
        doors.send_replace(Some(daemon.door.clone()));
    }
    doors.send_replace(None);
    drop(doors);
    let sent: Vec<String> = clients.into_iter().flat_map(|client| runtime().block_on(client).unwrap()).collect();
    let found = mail(&daemon.door);
    for text in &sent {
        assert_eq!(found.get(text), Some(&1), "{text} was answered");
    }
    assert!(found.values().all(|times| *times == 1), "{found:?}");
}

#[test]
fn say_and_answers_by_the_command_line_are_one() {
    let mut shop = Workshop::with("harness = 'scripted'\nstall_ms = 1000\nstop_grace_ms = 50", Vec::new());
    let agent = shop.run(&[json!({ "hang": {} })]);
    let say = ["say", &agent, "hello", "--id", "s-1", "--json"];
    let first = shop.grounds.run(&say).good();
    let asked = shop.wait_for(&agent, "question_asked")["id"].to_string();
    let answer = ["ask", "answer", &asked, "wait", "--id", "a-1", "--json"];
    let answered = shop.grounds.run(&answer).good();
    shop.kill_daemon();
    shop.restart();
    assert_eq!(shop.grounds.run(&say).good(), first);
    assert_eq!(shop.grounds.run(&answer).good(), answered);
    let said = |event: &Value| event["type"] == "message_added" && event["content"] == "hello";
    shop.stop(&agent);
    shop.end(&agent);
    let log: Vec<Value> = shop.door().log().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    assert_eq!(log.iter().filter(|event| said(event)).count(), 1);
    assert_eq!(log.iter().filter(|event| event["type"] == "question_answered").count(), 1);
    let other = shop.grounds.run(&["say", &agent, "other", "--id", "s-1"]);
    assert!(other.code == Some(1) && other.stderr.contains("belongs to another request"), "{other:?}");
}
