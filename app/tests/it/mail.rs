//! Mail as it looks from outside: first in first out, taken by exactly one, never lost, and waited for no longer than sense.

use crate::support::daemon::{Daemon, Grounds, PATIENCE};
use crate::support::http::{Answer, Door};
use crate::support::place::Place;
use crate::support::postgres::Server;
use crate::support::runtime;
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::engine::{Engine, EngineOptions, SubmitError};
use hatchery_core::event::MailEvent;
use hatchery_core::{Address, Command, Event, Record, Refusal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The longest that one request may wait.
const LONG_MS: u64 = 25_000;

fn pair(daemon: &Daemon) -> (String, String) {
    let root = daemon.door.root();
    (daemon.door.child(&root), daemon.door.child(&root))
}

/// Somebody who waits, meanwhile.
fn waiter(door: &Door, of: &str, from: &[&str]) -> JoinHandle<Answer> {
    let (mut http, path) = (door.http(), format!("/api/mail/{of}/wait"));
    let body = json!({ "from": from, "timeout_ms": LONG_MS });
    runtime().spawn(async move { http.post(&path, &body).await.expect("the daemon answers") })
}

fn joined(waiter: JoinHandle<Answer>) -> Answer {
    runtime().block_on(async { tokio::time::timeout(PATIENCE, waiter).await.unwrap().unwrap() })
}

#[test]
fn it_comes_out_in_the_order_in_which_it_went_in_also_after_a_crash() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let (ann, ben) = pair(&daemon);
    let sent: Vec<u64> = (0..10).map(|number| daemon.door.mail(&ann, &ben, &number.to_string())).collect();
    let unread: Vec<(u64, String)> = sent.iter().map(|id| (*id, "queued".to_owned())).collect();
    assert_eq!(daemon.door.unread(&ben), unread);
    // Looking changes nothing.
    assert_eq!(daemon.door.unread(&ben), unread);
    assert_eq!(daemon.door.read_mail(&ben).json()["body"], "0");
    assert_eq!(daemon.door.wait(&ben, &[], 0).json()["mail"]["body"], "1");
    daemon.kill();
    let daemon = grounds.up();
    let states: Vec<String> = daemon.door.unread(&ben).into_iter().map(|(_, state)| state).collect();
    assert_eq!(states[..2], ["delivered", "queued"]);
    for number in 2..5 {
        assert_eq!(daemon.door.wait(&ben, &[&ann], 0).json()["agents"][0]["mail"]["body"], number.to_string());
    }
    let certain = daemon.door.post(&format!("/api/mail/{ben}/read"), &json!({ "mail": sent[7] }));
    assert_eq!(certain.json()["body"], "7");
    for number in [1, 2, 3, 4, 5, 6, 8, 9] {
        let mail = daemon.door.read_mail(&ben).json();
        assert_eq!((&mail["body"], &mail["from"], &mail["to"]), (&json!(number.to_string()), &json!(ann), &json!(ben)));
    }
    daemon.door.read_mail(&ben).refused(404, "no_mail");
    daemon.door.post(&format!("/api/mail/{ben}/read"), &json!({ "mail": sent[7] })).refused(404, "not_unread");
}

#[test]
fn a_wait_of_no_time_looks_once() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let (ann, ben) = pair(&daemon);
    assert_eq!(daemon.door.wait(&ben, &[], 0).json()["mail"], json!(null));
    assert_eq!(daemon.door.wait(&ben, &[&ann], 0).json()["agents"][0]["state"], "waiting");
    daemon.door.mail(&ann, &ben, "there");
    daemon.door.mail(&ann, &ben, "again");
    assert_eq!(daemon.door.wait(&ben, &[], 0).json()["mail"]["body"], "there");
    let waited = daemon.door.wait(&ben, &[&ann], 0).json();
    assert_eq!((&waited["mail"], &waited["agents"][0]["mail"]["body"]), (&json!(null), &json!("again")));
    daemon.door.wait(&ben, &[], LONG_MS + 1).refused(400, "wait_too_much");
    daemon.door.wait(&ben, &["x"; 101], 0).refused(400, "wait_too_much");
}

/// The requests' own time limit ends the waits of those who wait for nothing, and not with an error.
#[test]
fn a_wait_ends_before_the_request_does() {
    let grounds = Grounds::with("request_timeout_ms = 1000");
    let daemon = grounds.up();
    let (ann, ben) = pair(&daemon);
    let nothing = daemon.door.wait(&ben, &[], LONG_MS);
    assert_eq!((nothing.status, &nothing.json()["mail"]), (200, &json!(null)));
    let nothing = daemon.door.wait(&ben, &[&ann], LONG_MS);
    assert_eq!((nothing.status, &nothing.json()["agents"][0]["state"]), (200, &json!("waiting")));
}

/// None of these waits lasts: what will not come is told at once, each for its own reason.
#[test]
fn the_dead_the_unknown_and_the_finished_are_told_apart_at_once() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let (me, dead) = pair(&daemon);
    let session = door.post("/api/sessions", &json!({})).id();
    let asleep = door.agent(Some(&session));
    door.post(&format!("/api/sessions/{session}/end"), &json!({}));
    let (follower, _doors) = crate::support::follower::Follower::of(door);
    // The head is looked at first: whatever the state is still to become, comes after it.
    let mut head = door.head();
    while door.one(&asleep)["state"] != "sleeping" {
        follower.wait_for(head + 1);
        head = door.head();
    }
    door.mail(&dead, &me, "last words");
    door.kill(&dead, json!({}));
    let named = [dead.as_str(), "nobody", "AAAAAAAAAAAAAAAAAAAAAA", &asleep];
    let states = |answer: Answer| -> Vec<String> {
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["state"].as_str().unwrap().to_owned())
            .collect()
    };
    // What somebody wrote before it died still counts.
    assert_eq!(states(door.wait(&me, &named, LONG_MS)), ["mail", "unknown", "unknown", "finished"]);
    assert_eq!(states(door.wait(&me, &named, LONG_MS)), ["dead", "unknown", "unknown", "finished"]);
    for _ in 0..2 {
        door.fork(json!({ "name": "twin", "any_name": true }));
    }
    assert_eq!(states(door.wait(&me, &["twin"], LONG_MS)), ["ambiguous"]);
    door.wait("nobody", &[], LONG_MS).refused(404, "nobody_called");
    door.wait(&dead, &[], LONG_MS).refused(409, "agent_dead");
    door.wait(&dead, &[&me], LONG_MS).refused(409, "agent_dead");
}

#[test]
fn whoever_dies_ends_the_waits_for_it() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let (me, other) = pair(&daemon);
    // Nothing shows that a wait has begun: whichever comes first, it must end.
    for _ in 0..5 {
        let victim = door.child(&other);
        let waits = [waiter(door, &me, &[&victim]), waiter(door, &victim, &[]), waiter(door, &victim, &[&me])];
        door.head();
        assert_eq!(door.kill(&victim, json!({})).status, 200);
        let [dead, own, named] = waits.map(joined);
        assert_eq!(dead.json()["agents"][0]["state"], "dead", "{dead:?}");
        own.refused(409, "agent_dead");
        named.refused(409, "agent_dead");
    }
}

#[test]
fn mail_to_nobody_is_an_error_and_leaves_no_trace() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let (ann, dead) = pair(&daemon);
    door.kill(&dead, json!({}));
    let head = door.head();
    door.send(&ann, "nobody", "x").refused(404, "nobody_called");
    door.send(&ann, "AAAAAAAAAAAAAAAAAAAAAA", "x").refused(404, "unknown_agent");
    door.send(&ann, &dead, "x").refused(409, "agent_dead");
    door.send(&dead, &ann, "x").refused(409, "agent_dead");
    door.send("nobody", &ann, "x").refused(404, "nobody_called");
    door.send(&ann, "", "x").refused(404, "nobody_called");
    door.send(&ann, "human", &"x".repeat((1 << 20) + 1)).refused(422, "mail_too_long");
    door.post("/api/mail", &json!({ "to": ann })).refused(400, "bad_json");
    assert_eq!(door.head(), head);
}

#[test]
fn the_human_has_a_mailbox_too() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let (ann, _) = pair(&daemon);
    let waiting = waiter(&daemon.door, "human", &[&ann]);
    daemon.door.mail(&ann, "human", "help");
    let mail = joined(waiting).json()["agents"][0]["mail"].clone();
    assert_eq!((&mail["from"], &mail["to"], &mail["body"]), (&json!(ann), &json!("human"), &json!("help")));
    daemon.door.mail("human", &ann, "yes?");
    assert_eq!(daemon.door.read_mail(&ann).json()["from"], "human");
}

#[test]
fn any_text_comes_back_as_it_was_sqlite() {
    any_text(&Grounds::new());
}

#[test]
fn any_text_comes_back_as_it_was_postgres() {
    let database = Server::shared().database();
    any_text(&Grounds::with(&format!("store = '{}'", database.url())));
}

fn any_text(grounds: &Grounds) {
    let largest: String = "🥚\"\\\0\u{7f}é\n"
        .chars()
        .cycle()
        .scan(0, |bytes, letter| {
            *bytes += letter.len_utf8();
            (*bytes <= 1 << 20).then_some(letter)
        })
        .collect();
    let texts = [
        "",
        " ",
        "\0",
        "\u{1}\u{1f}",
        "it's \"quoted\" and \\\\ {} [] '; DROP TABLE events; --",
        "\r\n\t\u{2028}\u{feff}",
        "🥚👩‍👩‍👧\u{10ffff}\u{fffe}",
        "\\u0000 \\ud800",
        &largest,
    ];
    let daemon = grounds.up();
    let (ann, ben) = pair(&daemon);
    for text in texts {
        daemon.door.mail(&ann, &ben, text);
        daemon.door.add(&ann, "user", text);
    }
    daemon.kill();
    let daemon = grounds.up();
    let said = daemon.door.context(&ann);
    assert!(said == texts, "a message came back changed");
    for text in texts {
        assert!(daemon.door.read_mail(&ben).json()["body"] == text, "{text:.20} came back changed");
    }
    // As others may write it: pairs of surrogates are one letter, and half a pair is no text.
    let door = daemon.door.clone();
    let raw = |body: &'static str| {
        let answer = runtime().block_on(async {
            let sent = door.http().send(hyper::Method::POST, "/api/mail", &[], body.into()).await;
            sent.map(|response| response.status().as_u16())
        });
        answer.expect("the daemon answers")
    };
    assert_eq!(raw(r#"{"to":"human","body":"\ud83e\udd5a \u0000 \/"}"#), 201);
    assert_eq!(daemon.door.read_mail("human").json()["body"], "🥚 \0 /");
    assert_eq!(raw(r#"{"to":"human","body":"\ud83e"}"#), 400);
    assert_eq!(raw(r#"{"to":"human","body":"\udd5a\ud83e"}"#), 400);
}

#[test]
fn each_mail_goes_to_exactly_one_of_those_who_wait_sqlite() {
    race(&Grounds::new());
}

#[test]
fn each_mail_goes_to_exactly_one_of_those_who_wait_postgres() {
    let database = Server::shared().database();
    race(&Grounds::with(&format!("store = '{}'", database.url())));
}

fn race(grounds: &Grounds) {
    let daemon = grounds.up();
    let (ann, ben) = pair(&daemon);
    for waiters in [2, 50] {
        // Half of them wait for anybody, half for Ann by name.
        let waiting: Vec<JoinHandle<Answer>> =
            (0..waiters)
                .map(|number| {
                    if number % 2 == 0 { waiter(&daemon.door, &ben, &[]) } else { waiter(&daemon.door, &ben, &[&ann]) }
                })
                .collect();
        let sent: BTreeSet<u64> =
            (0..waiters).map(|number| daemon.door.mail(&ann, &ben, &number.to_string())).collect();
        let taken: Vec<u64> = waiting
            .into_iter()
            .map(|waiter| {
                let waited = joined(waiter).json();
                let mail = if waited["mail"].is_null() { &waited["agents"][0]["mail"] } else { &waited["mail"] };
                mail["id"].as_u64().unwrap_or_else(|| panic!("nothing came: {waited}"))
            })
            .collect();
        assert_eq!(taken.len(), taken.iter().collect::<BTreeSet<_>>().len(), "a mail was given out twice");
        assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), sent);
        assert_eq!(daemon.door.wait(&ben, &[], 0).json()["mail"], json!(null));
    }
}

/// Whenever a client leaves, its mail is still there: for the next who waits, or on the list of what was given out.
#[test]
fn a_client_that_leaves_takes_no_mail_along() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let (ann, ben) = pair(&daemon);
    for _ in 0..20 {
        let waiters: Vec<_> = (0..3).map(|_| waiter(&daemon.door, &ben, &[])).collect();
        // A round trip, so that they may have begun to wait.
        daemon.door.head();
        waiters.iter().for_each(JoinHandle::abort);
        let mail = daemon.door.mail(&ann, &ben, "for whoever stays");
        let waited = daemon.door.wait(&ben, &[], 0).json();
        if waited["mail"].is_null() {
            assert_eq!(daemon.door.unread(&ben), [(mail, "delivered".to_owned())], "the mail is gone");
        }
        assert_eq!(daemon.door.read_mail(&ben).json()["id"], mail);
    }
}

#[test]
fn a_daemon_that_stops_tells_those_who_wait() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let (ann, ben) = pair(&daemon);
    let waits = [waiter(&daemon.door, &ben, &[]), waiter(&daemon.door, &ben, &[&ann])];
    // A round trip, so that they may have begun to wait.
    daemon.door.head();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", grounds.said());
    assert!(!grounds.said().contains("did not finish in time"), "{}", grounds.said());
    for wait in waits {
        // One that had not arrived finds nobody; one that had is told.
        if let Ok(answer) = runtime().block_on(wait) {
            answer.refused(503, "stopping");
        }
    }
}

/// The engine itself, without a network in between: so the moment at which somebody leaves is certain.
mod engine {
    use super::*;
    use hatchery::mail_reader::{self, AwaitedState};
    use hatchery_core::agent::Birth;

    /// More than the engine takes at once and keeps in its inbox together: it never finds it empty.
    const CROWD: usize = 2_000;

    struct House {
        engine: Option<Engine>,
        _place: Place,
        ann: Address,
    }

    impl House {
        fn new() -> Self {
            let place = Place::sqlite();
            let store = place.open();
            let engine =
                Engine::start(store, Arc::new(SystemClock), EngineOptions::default(), runtime().clone()).unwrap();
            let ann = new_agent_id();
            let found = Command::FoundRegistry { agent: ann, name: None };
            runtime().block_on(engine.handle.submit(found)).unwrap();
            Self { engine: Some(engine), _place: place, ann: Address::Agent(ann) }
        }

        fn handle(&self) -> &hatchery::engine::Handle {
            &self.engine.as_ref().unwrap().handle
        }

        fn send(&self, body: &str) -> Command {
            Command::SendMail { from: Address::Human, to: self.ann, body: body.to_owned() }
        }

        fn send_human(&self) -> Command {
            Command::SendMail { from: self.ann, to: Address::Human, body: "x".to_owned() }
        }

        async fn take(&self) -> Result<Vec<Record>, SubmitError> {
            self.handle().submit_within(Command::TakeMail { to: self.ann, from: None }, PATIENCE).await
        }
    }

    impl Drop for House {
        fn drop(&mut self) {
            self.handle().stop();
            self.engine.take().unwrap().join().unwrap();
        }
    }

    #[test]
    fn a_wait_that_was_given_up_takes_nothing() {
        let house = House::new();
        runtime().block_on(async {
            for _ in 0..50 {
                let mut given_up = Box::pin(house.take());
                // It has asked, and an answer to somebody who asked later means that it waits.
                assert!(futures_util::poll!(&mut given_up).is_pending());
                let nothing = house.handle().submit(Command::ReadMail { to: house.ann, mail: None }).await;
                assert!(matches!(nothing, Err(SubmitError::Refused(Refusal::NoMail(_)))));
                drop(given_up);
                house.handle().submit(house.send("x")).await.unwrap();
                let taken = house.take().await.unwrap();
                assert!(matches!(taken[..], [Record { event: Event::Mail(MailEvent::Delivered { .. }), .. }]));
                house.handle().submit(Command::ReadMail { to: house.ann, mail: None }).await.unwrap();
            }
        });
    }

    /// A wait and the mail for it may be decided in one batch, in either order.
    #[test]
    fn a_wait_and_its_mail_meet_whenever_they_come() {
        let house = House::new();
        runtime().block_on(async {
            for round in 0..200 {
                let (taken, sent) = match round % 2 {
                    0 => futures_util::future::join(house.take(), house.handle().submit(house.send("x"))).await,
                    _ => {
                        let both = futures_util::future::join(house.handle().submit(house.send("x")), house.take());
                        let (sent, taken) = both.await;
                        (taken, sent)
                    }
                };
                let sent = sent.unwrap()[0].id;
                assert!(
                    matches!(taken.unwrap()[0].event, Event::Mail(MailEvent::Delivered { mail, .. }) if mail == sent)
                );
                let read = Command::ReadMail { to: house.ann, mail: Some(sent) };
                house.handle().submit(read).await.unwrap();
            }
        });
    }

    /// A name means the one who had it when the wait began, and what they wrote last still counts.
    #[test]
    fn a_name_means_somebody_to_the_end() {
        let house = House::new();
        let Address::Agent(root) = house.ann else { unreachable!() };
        runtime().block_on(async {
            for last_words in [false, true] {
                let mortal = new_agent_id();
                let birth = Birth { name: Some("mortal".into()), ..Birth::of(mortal) };
                house.handle().submit(Command::Fork { parent: root, at: None, birth }).await.unwrap();
                let named = vec!["mortal".to_owned()];
                let mut waiting = Box::pin(mail_reader::wait_for(house.handle(), house.ann, named, PATIENCE));
                assert!(futures_util::poll!(&mut waiting).is_pending());
                if last_words {
                    let body = "farewell".to_owned();
                    let send = Command::SendMail { from: Address::Agent(mortal), to: house.ann, body };
                    house.handle().submit(send).await.unwrap();
                }
                let kill = Command::Kill { agent: mortal, cascade: false, by: None, remark: None };
                house.handle().submit(kill).await.unwrap();
                let waited = waiting.await.unwrap();
                let expected = if last_words { AwaitedState::Mail } else { AwaitedState::Dead };
                assert_eq!((waited[0].state, waited[0].mail.is_some()), (expected, last_words));
            }
        });
    }

    /// Those who wait are served in the order in which they came.
    #[test]
    fn the_first_who_waits_is_the_first_who_gets() {
        let house = House::new();
        runtime().block_on(async {
            let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(house.take())).collect();
            for one in &mut waiting {
                assert!(futures_util::poll!(one).is_pending());
            }
            let mut sent = Vec::new();
            for _ in 0..10 {
                sent.push(house.handle().submit(house.send("x")).await.unwrap()[0].id);
            }
            for (one, expected) in waiting.into_iter().zip(sent) {
                assert!(matches!(one.await.unwrap()[0].event, Event::Mail(MailEvent::Delivered { mail, .. }) if mail == expected));
            }
        });
    }

    /// Somebody whose time is up is told so also while others keep the engine busy.
    #[test]
    fn a_busy_engine_keeps_nobody_waiting() {
        let house = House::new();
        runtime().block_on(async {
            // Long enough that it is parked before the others come.
            let patience = Duration::from_millis(500);
            let take = Command::TakeMail { to: house.ann, from: None };
            let mut waiting = Box::pin(house.handle().submit_within(take, patience));
            assert!(futures_util::poll!(&mut waiting).is_pending());
            house.handle().submit(house.send_human()).await.unwrap();
            let (answered, enough) = (Cell::new(0), Cell::new(usize::MAX));
            let mut busy = Box::pin(futures_util::future::join_all((0..CROWD).map(async |_| {
                while answered.get() < enough.get() {
                    house.handle().submit(house.send_human()).await.unwrap();
                    answered.set(answered.get() + 1);
                }
            })));
            tokio::select! {
                _ = &mut busy => unreachable!("it is busy for ever"),
                () = tokio::time::sleep(patience) => {}
            }
            enough.set(answered.get() + 4 * CROWD);
            let told = tokio::select! {
                told = &mut waiting => told,
                _ = &mut busy => panic!("{} others were served first", 4 * CROWD),
            };
            assert!(matches!(told, Err(SubmitError::Refused(Refusal::NoMail(_)))), "{told:?}");
        });
    }
}

#[test]
fn the_commands_speak_json_and_say_when_it_did_not_work() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let (ann, _) = pair(&daemon);
    let json = |arguments: &[&str]| -> Value {
        let arguments: Vec<&str> = ["--json"].into_iter().chain(arguments.iter().copied()).collect();
        serde_json::from_str(&grounds.run(&arguments).good()).unwrap()
    };
    assert_eq!(json(&["send", &ann, "hello"])["events"][0]["body"], "hello");
    assert_eq!(json(&["send", "human", "\"hi\"", "--from", &ann])["events"][0]["from"], json!(ann));
    assert_eq!(json(&["mail", "check", "--of", &ann])["mail"].as_array().unwrap().len(), 1);
    assert_eq!(json(&["mail", "wait", "--of", &ann, "--timeout", "0"])["mail"]["body"], "hello");
    assert_eq!(json(&["mail", "read", "--of", &ann])["body"], "hello");
    assert_eq!(grounds.run(&["mail", "read"]).good(), "\"hi\"\n");
    let late = grounds.run(&["--json", "mail", "wait", "--timeout", "0", "--", &ann, "nobody"]);
    assert_eq!(late.code, Some(1), "as for any mail that did not come in time: {late:?}");
    let named: Value = serde_json::from_str(&late.stdout).unwrap();
    assert_eq!((&named["agents"][0]["state"], &named["agents"][1]["state"]), (&json!("waiting"), &json!("unknown")));
    for (arguments, code, words) in [
        (&["mail", "read"][..], 1, "there is no mail for human"),
        (&["mail", "wait", "--timeout", "0"], 1, "no mail came in time"),
        (&["mail", "wait", "--timeout", "18446744073709551615"], 2, "is not in"),
        (&["mail", "check", "--of", "nobody"], 1, "no agent is named `nobody`"),
        (&["send", "nobody", "x"], 1, "no agent is named `nobody`"),
        (&["send", &ann], 2, "<BODY>"),
    ] {
        let ran = grounds.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
}
