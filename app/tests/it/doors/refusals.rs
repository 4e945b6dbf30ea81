//! Every "no" over HTTP: the right number, a stable code, and words that name what is wrong.

use super::house::{House, Rules};
use super::raw::{Parts, Reply};
use crate::support::runtime;
use hatchery_core::agent::MAX_PENDING_FORKS;
use serde_json::json;

const NOBODY: &str = "AAAAAAAAAAAAAAAAAAAAAA";

fn assert_refused(reply: &Reply, status: u16, code: &str, about: &str) {
    assert_eq!((reply.status, reply.code().as_str()), (status, code), "{about}: {reply:?}");
}

/// A caller who draws the id can repeat a request whose answer was lost.
#[test]
fn what_was_made_is_not_made_twice() {
    let house = House::open();
    let parent = house.agent();
    let id = |first: &str| format!("{first}{}", &NOBODY[1..]);
    let quest = json!({ "id": id("D"), "request": "Tidy up.", "hold": true, "isolation": "none", "ward": "true", "with": { "harness": "scripted" } });
    let requests = [
        ("/api/sessions", json!({ "id": id("A") }), "session_exists"),
        ("/api/agents", json!({ "id": id("B"), "parent": parent }), "agent_exists"),
        ("/api/quests", quest, "quest_exists"),
    ];
    for (path, body, _) in &requests {
        assert_eq!(house.make(path, body), body["id"].as_str().unwrap());
    }
    // What has changed meanwhile does not hide that it was done.
    house.make(&format!("/api/agents/{parent}/kill"), &json!({}));
    let head = house.head();
    for (path, body, code) in &requests {
        let reply = house.post(path, body);
        assert_refused(&reply, 409, code, path);
        assert!(reply.text().contains("the first request was carried out"), "{reply:?}");
    }
    assert_eq!(house.head(), head);
    assert_refused(&house.post("/api/agents", &json!({ "id": "mine" })), 400, "bad_json", "an id that is none");
}

#[test]
fn what_does_not_exist_is_not_found() {
    let house = House::open();
    let head = house.head();
    for path in
        ["/api", "/api/", "/api/nothing", "/nothing", "//api/status", "/api/status/", "/api/../api/status", "/%2e%2e/"]
    {
        assert_refused(&house.get(path), 404, "no_such_path", path);
    }
    assert_refused(&house.get(&format!("/{}", "x".repeat(9_000))), 404, "no_such_path", "a long path");
    let message = json!({ "kind": "user", "content": "" });
    // A whole id that nobody has, and what can neither be the beginning of an id nor is a name.
    for (reference, code) in [(NOBODY, "unknown_agent"), ("no one", "nobody_called")] {
        let written = reference.replace(' ', "%20");
        for call in ["rename", "wake", "kill", "clear", "mark", "rewind", "messages"] {
            let body = if call == "messages" { message.clone() } else { json!({}) };
            let reply = house.post(&format!("/api/agents/{written}/{call}"), &body);
            assert_refused(&reply, 404, code, call);
            assert!(reply.message().contains(reference), "{reply:?}");
        }
        for path in [format!("/api/agents/{written}"), format!("/api/agents/{written}/history")] {
            assert_refused(&house.get(&path), 404, code, &path);
        }
        assert_refused(&house.get(&format!("/api/mail/{written}")), 404, code, "check mail");
        for call in ["read", "wait"] {
            assert_refused(&house.post(&format!("/api/mail/{written}/{call}"), &json!({})), 404, code, call);
        }
        for body in [json!({ "to": reference, "body": "" }), json!({ "from": reference, "to": "human", "body": "" })] {
            assert_refused(&house.post("/api/mail", &body), 404, code, "send");
        }
        assert_refused(&house.post("/api/agents", &json!({ "parent": reference })), 404, code, "parent");
    }
    let one = house.agent();
    let mine = |call: &str| format!("/api/agents/{one}/{call}");
    assert_refused(&house.post("/api/agents", &json!({ "parent": one, "at": u64::MAX })), 404, "not_in_history", "at");
    assert_refused(&house.post(&mine("rewind"), &json!({})), 404, "no_such_mark", "rewind");
    assert_refused(&house.post(&mine("rewind"), &json!({ "mark": "x" })), 404, "no_such_mark", "rewind");
    assert_refused(&house.post(&mine("rewind"), &json!({ "message": u64::MAX })), 404, "not_in_history", "rewind");
    assert_refused(&house.post(&mine("kill"), &json!({ "by": "no one" })), 404, "nobody_called", "kill by");
    assert_refused(&house.post("/api/mail/human/read", &json!({})), 404, "no_mail", "read");
    assert_refused(&house.post("/api/mail/human/read", &json!({ "mail": u64::MAX })), 404, "not_unread", "read");
    assert_refused(&house.post(&format!("/api/sessions/{NOBODY}/end"), &json!({})), 404, "unknown_session", "end");
    assert_refused(&house.post("/api/agents", &json!({ "session": NOBODY })), 404, "unknown_session", "session");
    assert_eq!(house.head(), head + 1, "only the one agent is on the log");
}

#[test]
fn a_method_that_is_not_there_says_which_are() {
    let house = House::open();
    for (method, path, allowed) in [
        ("OPTIONS", "/api/agents", "GET,HEAD,POST"),
        ("DELETE", "/api/agents", "GET,HEAD,POST"),
        ("POST", "/api/health", "GET,HEAD"),
        ("GET", "/api/fsck", "POST"),
        ("BREW", "/api/status", "GET,HEAD"),
        ("PATCH", "/", "GET,HEAD"),
    ] {
        let reply = house.ask(method, path, b"");
        assert_refused(&reply, 405, "wrong_method", path);
        assert_eq!(reply.header("allow"), Some(allowed), "{method} {path}");
        assert!(reply.message().contains(method), "{reply:?}");
    }
    let head = house.ask("HEAD", "/api/fsck", b"");
    assert_eq!((head.status, head.body.len()), (405, 0));
    let head = house.ask("HEAD", "/api/status", b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn a_body_of_another_kind_is_refused() {
    let house = House::open();
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", "", "json"]
    {
        let headers = [("host", house.host.as_str()), ("authorization", &house.bearer), ("content-type", kind)];
        let reply = house.line().ask("POST", "/api/sessions", Parts { headers: &headers, body: b"{}" });
        assert_refused(&reply, 415, "not_json", kind);
    }
    for kind in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
        let headers = [("host", house.host.as_str()), ("authorization", &house.bearer), ("content-type", kind)];
        let reply = house.line().ask("POST", "/api/sessions", Parts { headers: &headers, body: b"{}" });
        assert_eq!(reply.status, 201, "{kind}: {reply:?}");
    }
}

#[test]
fn a_body_that_is_wrong_is_refused_by_the_name_of_what_is_wrong() {
    let house = House::open();
    let agent = house.agent();
    let (sessions, agents) = ("/api/sessions".to_owned(), "/api/agents".to_owned());
    let messages = format!("/api/agents/{agent}/messages");
    let head = house.get("/api/status").json()["head"].clone();
    let deep = format!("{{\"label\":{}", "[".repeat(5_000));
    for (path, body, named) in [
        (&sessions, "", "EOF"),
        (&sessions, "{", "EOF"),
        (&sessions, "nonsense", "not a JSON object"),
        (&sessions, "null", "not a JSON object"),
        (&sessions, "[null,null]", "not a JSON object"),
        (&sessions, "\"text\"", "not a JSON object"),
        (&sessions, "{} {}", "trailing"),
        (&sessions, r#"{"label":1}"#, "`label`"),
        (&sessions, r#"{"labell":"x"}"#, "`labell`"),
        (&sessions, r#"{"label":"a","label":"b"}"#, "`label`"),
        (&sessions, r#"{"idle_ms":"soon"}"#, "`idle_ms`"),
        (&sessions, r#"{"idle_ms":-1}"#, "`idle_ms`"),
        (&sessions, r#"{"idle_ms":1500.5}"#, "`idle_ms`"),
        (&sessions, r#"{"idle_ms":1e400}"#, "`idle_ms`"),
        (&sessions, r#"{"idle_ms":99999999999999999999}"#, "`idle_ms`"),
        (&sessions, &deep, "`label`"),
        (&agents, r#"{"parent":7}"#, "`parent`"),
        (&agents, r#"{"at":-1}"#, "`at`"),
        (&agents, r#"{"session":"me"}"#, "`session`"),
        (&agents, r#"{"session":7}"#, "`session`"),
        (&agents, r#"{"name":{}}"#, "`name`"),
        (&messages, r#"{"kind":"user"}"#, "`content`"),
        (&messages, r#"{"content":"x"}"#, "`kind`"),
        (&messages, r#"{"kind":"shout","content":"x"}"#, "`kind`"),
        (&messages, r#"{"kind":"user","content":"\ud800"}"#, "`content`"),
    ] {
        let reply = house.ask("POST", path, body.as_bytes());
        let about: String = body.chars().take(50).collect();
        assert_refused(&reply, 400, "bad_json", &about);
        assert!(reply.message().contains(named), "{about}: {}", reply.message());
    }
    assert_refused(&house.ask("POST", &sessions, b"{\"label\":\"\xff\"}"), 400, "bad_json", "not UTF-8");
    assert_eq!(house.get("/api/status").json()["head"], head, "nothing of it is on the log");
}

#[test]
fn an_id_that_is_none_is_unknown() {
    let house = House::open();
    for id in ["x", "%20", "..%2f..", "AAAAAAAAAAAAAAAAAAAAAB", "AAAAAAAAAAAAAAAAAAAAAAA", "%zz", "%00"] {
        let path = format!("/api/sessions/{id}/end");
        assert_refused(&house.post(&path, &json!({})), 404, "unknown_session", &path);
    }
    assert_refused(&house.post("/api/sessions/%ff/end", &json!({})), 400, "bad_id", "no text");
}

/// An agent may be meant by a name, so that any text could be right: it is not there, unless it is no text.
#[test]
fn whatever_nobody_is_called_is_not_found() {
    let house = House::open();
    for name in
        ["%20", "..%2f..", "AAAAAAAAAAAAAAAAAAAAAB", "AAAAAAAAAAAAAAAAAAAAAAA", "%zz", "%00", "Root", "ro%C3%B6t"]
    {
        let path = format!("/api/agents/{name}/kill");
        assert_refused(&house.post(&path, &json!({})), 404, "nobody_called", &path);
    }
    assert_refused(&house.post("/api/agents/%ff/kill", &json!({})), 400, "bad_id", "no text");
}

#[test]
fn a_whole_number_may_be_written_as_a_float() {
    let house = House::open();
    let reply = house.ask("POST", "/api/sessions", br#"{"idle_ms":5000.0}"#);
    assert_eq!((reply.status, &reply.json()["events"][0]["idle_ms"]), (201, &json!(5_000)), "{reply:?}");
}

#[test]
fn what_could_never_be_right_is_unprocessable() {
    let house = House::open();
    let agent = house.agent();
    let mine = |call: &str| format!("/api/agents/{agent}/{call}");
    for (path, body, code) in [
        ("/api/sessions".into(), json!({ "label": "x".repeat(257) }), "label_too_long"),
        ("/api/sessions".into(), json!({ "idle_ms": 999 }), "idle_out_of_range"),
        ("/api/sessions".into(), json!({ "idle_ms": u64::MAX }), "idle_out_of_range"),
        ("/api/agents".into(), json!({ "name": "" }), "bad_name"),
        ("/api/agents".into(), json!({ "name": " x" }), "bad_name"),
        ("/api/agents".into(), json!({ "name": "x".repeat(65) }), "bad_name"),
        (mine("rename"), json!({ "name": "a\nb" }), "bad_name"),
        ("/api/agents".into(), json!({ "provider": "x ".repeat(3) }), "bad_name"),
        ("/api/agents".into(), json!({ "model": "" }), "bad_name"),
        ("/api/agents".into(), json!({ "hatch_ms": 0 }), "hatch_out_of_range"),
        ("/api/agents".into(), json!({ "hatch_ms": u64::MAX }), "hatch_out_of_range"),
        ("/api/agents".into(), json!({ "prompt": "x".repeat((1 << 20) + 1) }), "message_too_long"),
        ("/api/mail".into(), json!({ "to": "human", "body": "x".repeat((1 << 20) + 1) }), "mail_too_long"),
        (mine("mark"), json!({ "label": "x".repeat(257) }), "mark_too_long"),
        (mine("kill"), json!({ "remark": "x".repeat(1_025) }), "remark_too_long"),
        (mine("messages"), json!({ "kind": "user", "content": "x".repeat((1 << 20) + 1) }), "message_too_long"),
    ] {
        assert_refused(&house.post(&path, &body), 422, code, &path);
    }
    let largest = json!({ "kind": "user", "content": "\u{1}".repeat(1 << 20) });
    assert_eq!(house.post(&mine("messages"), &largest).status, 201, "the largest message passes the body's limit");
}

#[test]
fn what_comes_at_the_wrong_time_is_a_conflict() {
    let house = House::with(Rules { runner: false, ..Rules::default() });
    let session = house.make("/api/sessions", &json!({}));
    let agent = house.make("/api/agents", &json!({ "session": session }));
    let mine = |call: &str| format!("/api/agents/{agent}/{call}");
    assert_refused(&house.post(&mine("wake"), &json!({})), 409, "agent_awake", "wake");
    let end = format!("/api/sessions/{session}/end");
    assert_eq!(house.post(&end, &json!({ "reason": "completed" })).status, 202);
    // Nobody brings the end about here, so it stays an intent.
    assert_refused(&house.post(&end, &json!({})), 409, "session_ending", "end");
    assert_refused(&house.post("/api/agents", &json!({ "session": session })), 409, "session_ending", "join");
    let child = house.make("/api/agents", &json!({ "parent": agent, "name": "twin" }));
    house.make("/api/agents", &json!({ "name": "twin", "any_name": true }));
    assert_refused(&house.get("/api/agents/twin"), 409, "ambiguous", "twin");
    assert_refused(&house.post("/api/agents/root/kill", &json!({})), 409, "root_is_immortal", "kill");
    assert_refused(&house.post(&mine("kill"), &json!({ "by": child })), 409, "kills_ancestor", "kill");
    house.make(&mine("messages"), &json!({ "kind": "tool_call", "content": "ls" }));
    for _ in 0..MAX_PENDING_FORKS {
        assert_eq!(house.post("/api/agents", &json!({ "parent": agent })).status, 202);
    }
    assert_refused(&house.post("/api/agents", &json!({ "parent": agent })), 409, "fork_pending", "fork");
    house.make(&mine("kill"), &json!({ "remark": "done" }));
    for call in ["rename", "wake", "kill", "clear", "mark", "rewind"] {
        assert_refused(&house.post(&mine(call), &json!({})), 409, "agent_dead", call);
    }
    assert_refused(&house.post("/api/mail", &json!({ "to": agent, "body": "" })), 409, "agent_dead", "send");
}

#[test]
fn a_session_that_is_over_stays_over() {
    let house = House::open();
    let session = house.make("/api/sessions", &json!({}));
    let mut plan = house.handle.plan();
    let end = format!("/api/sessions/{session}/end");
    assert_eq!(house.post(&end, &json!({})).status, 202);
    // The world is shown before the plan, so a plan that is still to change cannot be missed.
    while house.get("/api/sessions").json()["sessions"][0]["state"] != "ended" {
        runtime().block_on(plan.changed()).unwrap();
    }
    let reply = house.post(&end, &json!({}));
    assert_refused(&reply, 409, "session_over", "end");
    assert_refused(&house.post("/api/agents", &json!({ "session": session })), 409, "session_over", "join");
    assert_refused(&house.ask("POST", &end, br#"{"reason":"inactive"}"#), 400, "bad_json", "only the daemon says so");
}
