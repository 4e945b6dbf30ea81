//! A client of the original program, which knows no token, no parameter and no settings of ours: every request that it makes, and every
//! field that it reads.

use super::scene::{Scene, types};
use crate::support::daemon::PATIENCE;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What its documentation asks for.
const SETTINGS: &str = "harness = 'scripted'\nauth = 'none'\nstop_grace_ms = 300\n[seats]\ndialect = 'julian'\n";
/// The largest number that a browser can count with. As a cursor it means that only what is new is wanted.
const FROM_NOW: u64 = 9_007_199_254_740_991;

struct Client<'s>(&'s Scene);

struct Answer {
    status: u16,
    head: String,
    body: Value,
}

impl Client<'_> {
    /// Such a client has a token of another service, and sends it along.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let authority = self.0.door().authority;
        let mut stream = TcpStream::connect(&authority).unwrap();
        let body = body.map(Value::to_string);
        let length = body.as_ref().map(|body| format!("Content-Length: {}\r\n", body.len())).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nAuthorization: Bearer elsewhere\r\n\
             X-Authorization: Bearer elsewhere\r\nContent-Type: application/json\r\n{length}\r\n{}",
            body.unwrap_or_default()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.to_lowercase().contains("content-type: application/json"), "{answer}");
        assert!(!head.to_lowercase().contains("access-control"), "{answer}");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        Answer { status, head: head.to_lowercase(), body }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None)
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, Some(body))
    }
}

/// Opens the stream with a cursor, and waits until it is open.
fn stream(scene: &Scene, after: u64) -> TcpStream {
    let authority = scene.door().authority;
    let mut stream = TcpStream::connect(&authority).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let request = format!(
        "GET /api/events?after={after} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer elsewhere\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let (mut text, mut buffer) = (Vec::new(), [0; 1 << 10]);
    let deadline = Instant::now() + PATIENCE;
    // It begins with how soon a browser comes back.
    while !String::from_utf8_lossy(&text).contains("retry: ") {
        assert!(Instant::now() < deadline, "the stream is not open: {}", String::from_utf8_lossy(&text));
        if let Ok(count) = stream.read(&mut buffer) {
            text.extend_from_slice(&buffer[..count]);
        }
    }
    stream
}

fn events_until(mut stream: TcpStream, kind: &str) -> Vec<Value> {
    let (mut text, mut buffer) = (Vec::new(), [0; 1 << 16]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Ok(count) = stream.read(&mut buffer) {
            text.extend_from_slice(&buffer[..count]);
        }
        let shown = String::from_utf8_lossy(&text);
        let complete = shown.rfind("\n\n").map_or("", |end| &shown[..end]);
        let data = complete.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
        if events.iter().any(|event| event["type"] == kind) {
            return events;
        }
        assert!(Instant::now() < deadline, "{kind} did not come: {shown}");
    }
}

#[test]
fn its_requests_without_a_session() {
    let scene = Scene::of(SETTINGS);
    let client = Client(&scene);
    let health = client.get("/api/health");
    assert_eq!(health.status, 200);
    assert_eq!((&health.body["status"], &health.body["sessionActive"]), (&json!("ok"), &json!(false)));
    assert_eq!((&health.body["sessionId"], &health.body["needsSetup"]), (&Value::Null, &json!(false)));
    assert!(health.body["version"].is_string());
    for path in ["/api/send", "/api/chat"] {
        for body in [json!({ "message": "hello" }), json!({})] {
            let refused = client.post(path, &body);
            assert_eq!((refused.status, &refused.body["error"]), (409, &json!("No active session")), "{path}");
            assert_eq!(refused.body["code"], "no_seat_session");
        }
    }
    let reset = client.ask("POST", "/api/ledger-reset", None);
    assert_eq!((reset.status, reset.body), (200, json!({ "ok": true, "note": "No active session" })));
    let ended = client.ask("POST", "/api/session/end", None);
    assert_eq!((ended.status, &ended.body["ok"]), (200, &json!(true)));
    for (path, status) in [("/api/events?after=NaN", 400), ("/api/events?after=", 400), ("/api/nowhere", 404)] {
        let refused = client.get(path);
        assert!(refused.status == status && refused.body["error"].is_string(), "{path}: {}", refused.body);
    }
    // Our own commands know the token, and get errors in our form.
    let own = scene.door().post("/api/send", &json!({ "message": "hello" }));
    assert_eq!((own.status, own.error().0.as_str()), (409, "no_seat_session"));
    // A page of somebody else is not let in, whatever is asked.
    let authority = scene.door().authority;
    let mut stream = TcpStream::connect(&authority).unwrap();
    let preflight = format!(
        "OPTIONS /api/send HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nOrigin: http://evil.example\r\n\
         Access-Control-Request-Method: POST\r\n\r\n"
    );
    stream.write_all(preflight.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403") && !answer.to_lowercase().contains("access-control"), "{answer}");
}

#[test]
fn a_session_as_it_is_lived_by_such_a_client() {
    let scene = Scene::of(SETTINGS);
    let client = Client(&scene);
    // It connects before anything has happened, and wants only what is new.
    let connected = stream(&scene, FROM_NOW);
    let start = json!({
        "previousTranscript": [{ "role": "user", "speakerType": "human", "speakerName": "Marcus", "text": "hi" }],
        "artifactCatalog": [{ "filename": "a.html", "dir": null, "title": null, "category": "letters", "chapter": null, "description": "x" }],
        "demoMode": false,
    });
    let started = client.post("/api/session/start", &start);
    assert_eq!(started.status, 200, "{}", started.body);
    let session = started.body["sessionId"].as_str().unwrap().to_owned();
    assert!(started.head.contains(&format!("x-session-id: {session}")), "{}", started.head);
    assert!(started.body["eventId"].is_u64());
    let again = client.post("/api/session/start", &json!({}));
    assert_eq!((again.status, &again.body["error"]), (409, &json!("Session already active")));
    scene.registers(0, "Lyra");
    let summoned = client.post("/api/agents/summon", &json!({ "seats": [0], "with": scene.with_scripts() }));
    assert!(summoned.status == 202 && summoned.body["eventId"].is_u64(), "{}", summoned.body);
    scene.wait_seat(0, "alive");
    let said = client.post(
        "/api/send",
        &json!({ "message": "hello you", "targetAgent": "Lyra", "targetGridPosition": 0, "speakerName": "Marcus" }),
    );
    assert!(said.status == 202 && said.body["eventId"].is_u64(), "{}", said.body);
    // What it hears by itself has no events of ours.
    let heard = |seat: u64, text: &str| {
        scene.wait_until(text, || {
            let thread = scene.door().get(&format!("/api/seats/{seat}/thread")).json();
            thread["messages"].as_array()?.iter().any(|line| line["text"] == text).then_some(())
        });
    };
    heard(0, "You said: hello you");
    assert_eq!(client.post("/api/chat", &json!({ "message": "to the lead" })).status, 202);
    heard(4, "You said: to the lead");
    for message in [json!(""), json!("x".repeat(100_001)), json!(7)] {
        let refused = client.post("/api/send", &json!({ "message": message }));
        assert!(refused.status == 400 && refused.body["error"].is_string(), "{}", refused.body);
    }
    assert_eq!(client.ask("POST", "/api/ledger-reset", None).body, json!({ "ok": true }));
    let docs = client.get("/api/docs?type=agent-identity");
    assert_eq!(docs.body["docs"][0]["_id"], "agent-identity:0");
    assert!(client.get("/api/agents").body["agents"].is_array());
    let health = client.get("/api/health");
    assert_eq!((&health.body["sessionActive"], &health.body["sessionId"]), (&json!(true), &json!(session)));
    assert_eq!(client.ask("POST", "/api/session/end", None).status, 200);
    let events = events_until(connected, "session_end");
    let kinds = types(&events);
    assert_eq!(kinds[..2], ["user_session_start", "session_start"], "from the beginning of what is new: {kinds:?}");
    let find =
        |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind}: {kinds:?}"));
    // The fields that it reads, each with its type.
    assert!(events.iter().all(|event| event["id"].is_u64() && event["ts"].is_u64() && event["sessionId"] == session));
    assert!(find("session_start")["pid"].is_u64() && find("session_start")["demoMode"].is_boolean());
    let system = find("claude_system");
    assert!(system["claudeSessionId"].is_string() && system["availableTools"].is_array(), "{system}");
    let text = find("claude_text");
    assert!(text["messageId"].is_string() && text["content"][0]["text"].is_string(), "{text}");
    let result = find("claude_result");
    assert_eq!((&result["subtype"], result["resultText"].is_string()), (&json!("success"), true), "{result}");
    assert!(result["numTurns"].is_u64() && result["costUsd"].is_number() && result["usage"]["inputTokens"].is_u64());
    let agent = &find("agent_registered")["agent"];
    assert_eq!((&agent["name"], &agent["gridPosition"]), (&json!("Lyra"), &json!(0)));
    assert!(agent["color"].is_string() && agent["gender"].is_string() && agent["createdAt"].is_string(), "{agent}");
    let alive = events.iter().rfind(|event| event["type"] == "agent_status").unwrap();
    assert_eq!(
        alive["agents"],
        json!([{ "name": "Lyra", "status": "alive", "gridPosition": 0 }]),
        "said again when asked"
    );
    let message = find("agent_message");
    assert!(message["agentName"].is_string() && message["content"][0]["type"] == "text", "{message}");
    let said = find("user_message");
    assert_eq!((&said["text"], &said["speakerName"]), (&json!("hello you"), &json!("Marcus")));
    let end = find("session_end");
    assert!(end.as_object().unwrap().contains_key("exitCode") && end["reason"] == "user_ended", "{end}");
}

/// Its wake has what it knows about an agent in elements, unescaped, and offers empty seats as well.
#[test]
fn its_wake_brings_souls_in_elements() {
    let scene = Scene::of(SETTINGS);
    let client = Client(&scene);
    assert_eq!(client.ask("POST", "/api/session/start", None).status, 200, "without a body");
    let wake = "[WAKE AGENTS]\n<agent-payloads>\n  <agent position=\"3\" type=\"wake\">\n    <name>Lyra</name>\n    \
                <color>#007e98</color>\n    <colorName>Pacific</colorName>\n    <soul>I am <em>here</em> & now.</soul>\n    \
                <transcript>[Marcus]: hi</transcript>\n  </agent>\n  <agent position=\"5\" type=\"birth\">\n    \
                <color>#c85cb4</color>\n  </agent>\n</agent-payloads>";
    let woken = client.post("/api/send", &json!({ "message": wake }));
    assert_eq!(woken.status, 202, "{}", woken.body);
    let seat = scene.wait_seat(3, "alive");
    assert_eq!((&seat["name"], &seat["colorName"]), (&json!("Lyra"), &json!("Pacific")));
    assert!(scene.prompt(3).contains("I am &lt;em&gt;here&lt;/em&gt; &amp; now."), "{}", scene.prompt(3));
    assert_eq!(scene.seat(5), Value::Null, "nobody was summoned");
}
