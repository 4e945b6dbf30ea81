//! Clients that know another dialect: what they ask, and what they get.

use super::scene::{Scene, soul, types};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

#[test]
fn a_session_is_started_used_and_ended() {
    let scene = Scene::with("");
    let door = scene.door();
    let health = door.get("/api/health").json();
    assert_eq!((&health["sessionActive"], &health["sessionId"]), (&json!(false), &Value::Null));
    let unheard = door.post("/api/send", &json!({ "message": "hello" }));
    assert_eq!((unheard.status, unheard.error().0.as_str()), (409, "no_seat_session"), "{unheard:?}");
    // Without a session it does not matter what is said.
    let empty = door.post("/api/send", &json!({}));
    assert_eq!((empty.status, empty.error().0.as_str()), (409, "no_seat_session"), "{empty:?}");
    let nothing = door.post("/api/session/end", &json!({}));
    assert_eq!((nothing.status, &nothing.json()["ok"]), (200, &json!(true)), "{nothing:?}");
    assert_eq!(nothing.json()["sessionId"], Value::Null);
    let started = door.post(
        "/api/session/start",
        &json!({ "demoMode": true, "artifactCatalog": [], "previousTranscript": " ", "someOtherField": 1 }),
    );
    assert_eq!(started.status, 200, "{started:?}");
    let session = started.json()["sessionId"].clone();
    assert_eq!(session.as_str().unwrap().split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    let again = door.post("/api/session/start", &json!({}));
    assert_eq!((again.status, again.error().0.as_str()), (409, "seats_active"), "{again:?}");
    for (message, code) in
        [(String::new(), "nothing_said"), (" \n".into(), "nothing_said"), ("x".repeat(100_001), "said_too_much")]
    {
        let answer = door.post("/api/send", &json!({ "message": message }));
        assert_eq!((answer.status, answer.error().0.as_str()), (400, code), "{answer:?}");
    }
    let unknown = door.post("/api/send", &json!({ "message": "hi", "targetAgent": "nobody" }));
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let said = door.post("/api/send", &json!({ "message": "hello" }));
    assert_eq!(said.status, 202, "{said:?}");
    let id = said.json()["eventId"].as_u64().unwrap();
    let event = &door.get(&format!("/api/events.json?after={}&limit=1", id - 1)).json()["events"][0];
    assert_eq!((&event["type"], &event["content"]), (&json!("message_added"), &json!("hello")));
    scene.shop.wait("the answer", |event| event["content"] == "You said: hello");
    let health = door.get("/api/health").json();
    assert_eq!(
        (&health["status"], &health["sessionActive"], &health["sessionId"]),
        (&json!("ok"), &json!(true), &session)
    );
    scene.end_session();
    let events = scene.dialect("?dialect=julian&after=-1", None, |event| event["type"] == "session_end");
    let start = events.iter().find(|event| event["type"] == "user_session_start").unwrap();
    let told = (&start["demoMode"], &start["hasPreviousTranscript"], &start["hasArtifactCatalog"]);
    assert_eq!(told, (&json!(true), &json!(false), &json!(false)), "an empty catalogue is none");
    // The original program calls a speaker so who gives no name.
    let said = events.iter().find(|event| event["type"] == "user_message").unwrap();
    assert_eq!((&said["speakerName"], &said["targetAgent"]), (&json!("Marcus"), &Value::Null), "{said}");
    let kinds = types(&events);
    assert_eq!(kinds[..2], ["user_session_start", "session_start"], "{kinds:?}");
    assert_eq!(kinds[kinds.len() - 2..], ["user_session_end", "session_end"], "{kinds:?}");
    assert_eq!(events.last().unwrap()["reason"], "user_ended");
    assert!(events.iter().all(|event| event["sessionId"] == session), "{events:?}");
    let ids: Vec<u64> = events.iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert!(ids.is_sorted_by(|one, two| one < two), "{ids:?}");
    // A browser that comes back gets what it has not seen, although its address still says -1.
    let rest = scene.dialect("?dialect=julian&after=-1", Some(ids[1]), |event| event["type"] == "session_end");
    assert_eq!(rest, events[2..], "each once");
}

#[test]
fn a_daemon_for_such_clients_needs_no_token_and_no_parameter() {
    let scene = Scene::of("harness = 'scripted'\nauth = 'none'\n[seats]\ndialect = 'julian'\n");
    scene.registers(3, "Lyra");
    scene.summon(&[3]);
    scene.wait_seat(3, "alive");
    let raw = |request: &str| {
        let mut stream = TcpStream::connect(&scene.door().authority).unwrap();
        let host = &scene.door().authority;
        stream.write_all(request.replace("HOST", host).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let docs = raw("GET /api/docs?type=agent-identity HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n");
    assert!(docs.contains("\"_id\":\"agent-identity:3\"") && docs.contains("\"status\":\"alive\""), "{docs}");
    for path in ["/api/events?after=NaN", "/api/events?after=", "/api/events?after=-2", "/api/events?dialect=latin"] {
        let answer = raw(&format!("GET {path} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("application/json"), "{path}: {answer}");
    }
    let bad = raw(
        "POST /api/send HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{",
    );
    assert!(bad.starts_with("HTTP/1.1 400") && bad.contains("\"code\":\"bad_json\""), "{bad}");
    let foreign = raw(
        "POST /api/session/end HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(
        foreign.starts_with("HTTP/1.1 403") && !foreign.to_lowercase().contains("access-control-allow"),
        "{foreign}"
    );
    let events = scene.dialect("", None, |event| event["type"] == "agent_registered");
    let agent = &events.iter().find(|event| event["type"] == "agent_registered").unwrap()["agent"];
    assert_eq!((&agent["name"], &agent["gridPosition"]), (&json!("Lyra"), &json!(3)));
    assert!(agent["createdAt"].as_str().unwrap().ends_with('Z'), "{agent}");
    let ended = raw("POST /api/session/end HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert!(ended.starts_with("HTTP/1.1 200"), "{ended}");
}

#[test]
fn identities_travel_between_machines() {
    let here = Scene::with("");
    here.registers(0, "Lyra");
    here.summon(&[0]);
    here.wait_seat(0, "alive");
    let file = here.shop.grounds.path().join("identities.json");
    let exported = here.shop.grounds.command(&["export", "--identities"]).arg(&file).status().unwrap();
    assert!(exported.success());
    let there = Scene::with("");
    // Legacy forms beside it: without a status, with the old flag, and a message that is none of ours.
    let old = json!([
        { "type": "agent-identity", "gridPosition": 1, "name": "Old", "individuationArtifact": soul("Old") },
        { "_id": "agent-identity:2", "type": "agent-identity", "hatching": false, "name": "Older" },
        { "type": "message", "text": "x" },
    ]);
    let legacy = there.shop.grounds.path().join("old.json");
    std::fs::write(&legacy, old.to_string()).unwrap();
    for (file, changed) in [(&file, "1 seat changed"), (&legacy, "2 seats changed"), (&file, "0 seats changed")] {
        let imported = there.shop.grounds.command(&["import", "identities"]).arg(file).output().unwrap();
        assert!(imported.status.success(), "{imported:?}");
        let told = String::from_utf8_lossy(&imported.stderr);
        assert!(told.contains(changed), "{told}");
    }
    // It lives elsewhere: here it sleeps and can be woken.
    assert_eq!(there.seat(0)["status"], "sleeping");
    let docs = |scene: &Scene| scene.door().get("/api/docs").json()["docs"].as_array().unwrap().clone();
    assert_eq!(docs(&there)[0]["individuationArtifact"], docs(&here)[0]["individuationArtifact"]);
    // And back: what came from here changes nothing here, and the others arrive.
    let own = docs(&here)[0].clone();
    let back = there.shop.grounds.path().join("back.json");
    let exported = there.shop.grounds.command(&["export", "--identities"]).arg(&back).status().unwrap();
    assert!(exported.success());
    for _ in 0..2 {
        let imported = here.shop.grounds.command(&["import", "identities"]).arg(&back).output().unwrap();
        assert!(imported.status.success(), "{imported:?}");
        assert_eq!(docs(&here)[0], own);
        assert_eq!(docs(&here)[1..], docs(&there)[1..], "the same on both machines");
    }
    there.wake(Some(&[0, 1]));
    there.wait_seat(0, "alive");
    there.wait_seat(1, "alive");
    assert!(there.prompt(1).contains("I chose the name Old &amp;"));
    assert_eq!(there.seat(2)["hasSoul"], false);
}

/// Two machines gave birth in the same seat. Each shows its own soul, and both export the same.
#[test]
fn machines_that_have_merged_export_the_same() {
    let (here, there) = (Scene::with(""), Scene::with(""));
    let export = |scene: &Scene| {
        let exported = scene.shop.grounds.command(&["export", "--identities"]).output().unwrap();
        assert!(exported.status.success(), "{exported:?}");
        serde_json::from_slice::<Value>(&exported.stdout).unwrap()
    };
    for (scene, name) in [(&here, "Lyra"), (&there, "Kael")] {
        scene.registers(0, name);
        scene.summon(&[0]);
        scene.wait_seat(0, "alive");
        scene.end_session();
        scene.wait_seat(0, "sleeping");
    }
    let (from_here, from_there) = (export(&here), export(&there));
    for (scene, documents) in [(&here, from_there), (&there, from_here)] {
        let answer = scene.door().post("/api/docs/import", &json!({ "text": documents.to_string() }));
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!((&here.seat(0)["name"], &there.seat(0)["name"]), (&json!("Lyra"), &json!("Kael")));
    assert_eq!(export(&here), export(&there));
}

/// Such a client keeps the identities itself. A daemon that does not know them takes them from its wake.
#[test]
fn a_wake_of_agents_that_the_daemon_does_not_know_brings_their_souls() {
    let scene = Scene::with("");
    let started = scene.door().post("/api/session/start", &json!({}));
    assert_eq!(started.status, 200, "{started:?}");
    let agent = |name: &str, at: u64, soul: &str| {
        format!(
            "<agent name=\"{name}\" color=\"#fff\" position=\"{at}\" type=\"wake\">\n<soul>\n{soul}\n</soul>\n</agent>"
        )
    };
    let wake = |agents: &str| scene.door().post("/api/send", &json!({ "message": format!("[WAKE AGENTS]\n{agents}") }));
    let nobody = wake("");
    assert_eq!((nobody.status, nobody.error().0.as_str()), (409, "nothing_to_wake"), "{nobody:?}");
    let woken = wake(&agent("Lyra", 0, "I am &lt;here&gt;."));
    assert_eq!(woken.status, 202, "{woken:?}");
    scene.wait_seat(0, "alive");
    assert!(scene.prompt(0).contains("I am &lt;here&gt;."), "{}", scene.prompt(0));
    scene.end_session();
    scene.wait_seat(0, "sleeping");
    // A soul that the daemon has is never replaced.
    let started = scene.door().post("/api/session/start", &json!({}));
    assert_eq!(started.status, 200, "{started:?}");
    let woken = wake(&agent("Lyra", 0, "I am somebody else."));
    assert_eq!(woken.status, 202, "{woken:?}");
    scene.wait_seat(0, "alive");
    let docs = scene.door().get("/api/docs").json();
    assert_eq!(docs["docs"][0]["individuationArtifact"], "I am <here>.");
}

/// Its wake names the seats that it means, and may be repeated after a broken connection.
#[test]
fn a_wake_of_one_seat_wakes_that_seat_once() {
    let scene = Scene::with("");
    scene.summon_named(&["Lyra", "Kael"]);
    scene.end_session();
    scene.wait_seat(0, "sleeping");
    let started = scene.door().post("/api/session/start", &json!({}));
    assert_eq!(started.status, 200, "{started:?}");
    let agent = "<agent name=\"Kael\" position=\"1\" type=\"wake\"><soul>x</soul></agent>";
    let wake = json!({ "id": "wake-1", "message": format!("[WAKE AGENTS]\n{agent}") });
    let woken = scene.door().post("/api/send", &wake);
    assert_eq!(woken.status, 202, "{woken:?}");
    scene.wait_seat(1, "alive");
    assert_eq!(scene.seat(0)["status"], "sleeping");
    let again = scene.door().post("/api/send", &wake);
    assert_eq!((again.status, &again.body), (202, &woken.body), "{again:?}");
    let waking = scene.shop.events().iter().filter(|event| event["type"] == "seats_waking").count();
    assert_eq!(waking, 1);
    let event_id = woken.json()["eventId"].as_u64().unwrap();
    let event = &scene.door().get(&format!("/api/events.json?after={}&limit=1", event_id - 1)).json()["events"][0];
    assert_eq!(event["type"], "seats_waking");
    // A name that cannot be one does not stand in the way of the others.
    let bad = format!(
        "<agent name=\"{}\" position=\"7\"><soul>x</soul></agent><agent position=\"0\"></agent>",
        "x".repeat(2_000)
    );
    scene.send(&json!({ "message": format!("[WAKE AGENTS]\n{bad}") }));
    scene.wait_seat(0, "alive");
}

/// A client whose connection broke does not know whether the session was started.
#[test]
fn a_start_that_is_repeated_is_one_session() {
    let scene = Scene::with("");
    let start = json!({ "id": "start-1", "previousTranscript": [{ "role": "user", "text": "hi" }], "demoMode": true });
    let first = scene.door().post("/api/session/start", &start);
    assert_eq!(first.status, 200, "{first:?}");
    let again = scene.door().post("/api/session/start", &start);
    assert_eq!((again.status, &again.body), (200, &first.body), "{again:?}");
    scene.end_session();
    assert_eq!(scene.door().post("/api/session/start", &start).body, first.body, "no second session");
    assert_eq!(scene.door().get("/api/health").json()["sessionActive"], false);
    scene.door().post("/api/session/start", &json!({ "id": "start-1" })).refused(409, "request_id_used");
}
