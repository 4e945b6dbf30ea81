//! A lead manages the seats and reports by markers.

use super::scene::{Scene, soul, types};
use serde_json::{Value, json};

fn registered(position: u64, name: &str) -> String {
    let identity = json!({ "name": name, "gridPosition": position, "individuationArtifact": soul(name) });
    format!("[AGENT_REGISTERED] {identity}")
}

fn status(agents: &[(u64, &str)]) -> String {
    let listed: Vec<Value> =
        agents.iter().map(|(at, status)| json!({ "gridPosition": at, "status": status })).collect();
    format!("[AGENT_STATUS] {}", json!({ "agents": listed }))
}

#[test]
fn the_lead_registers_reports_and_passes_on() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'");
    let summoned = format!(
        "As you wish.\n{}\n{}\n{}",
        registered(0, "Lyra"),
        registered(1, "Kael"),
        status(&[(0, "alive"), (1, "idle")])
    );
    scene.script(
        "lead",
        &[
            json!({ "text": format!("Good morning.\n{}", status(&[])) }),
            json!("turn"),
            json!({ "text": summoned }),
            json!("turn"),
            json!({ "text": "Lyra says hello back." }),
            json!("turn"),
            json!({ "text": format!("I have lost them.\n{}\nIn prose, [AGENT_STATUS] {{}} means nothing.", status(&[])) }),
            json!({ "text": "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":77}]}" }),
            json!("turn"),
            json!({ "text": status(&[(0, "alive")]) }),
        ],
    );
    let started = scene.door().post(
        "/api/session/start",
        &json!({
            "with": scene.with_scripts(),
            "previousTranscript": [{ "role": "user", "speakerType": "human", "speakerName": "Ada", "text": "a <b>" }],
            "artifactCatalog": [{ "filename": "c", "category": "memory", "description": "& d" }],
        }),
    );
    assert_eq!(started.status, 200, "{started:?}");
    scene.shop.wait("the greeting", |event| event["type"] == "seats_reported");
    scene.summon(&[0, 1]);
    scene.wait_seat(0, "alive");
    scene.wait_seat(1, "alive");
    // Without an inbox the lead is asked to pass a message on.
    let said =
        scene.door().post("/api/send", &json!({ "message": "hello", "targetAgent": "Lyra", "speakerName": "Ada" }));
    assert_eq!(said.status, 202, "{said:?}");
    scene.shop.wait("the answer", |event| event["content"] == "Lyra says hello back.");
    let said = scene.door().post("/api/send", &json!({ "message": "and now?" }));
    assert_eq!(said.status, 202, "{said:?}");
    // The lead is the authority, also with an empty list.
    scene.wait_seat(0, "sleeping");
    scene.shop.wait("the bad marker", |event| event["type"] == "marker_rejected");
    assert_eq!(scene.seats()["button"], "wake");
    scene.wake(None);
    scene.wait_seat(0, "alive");
    assert_eq!(scene.seat(1)["waking"], true);
    let lead = scene.seats()["lead"].as_str().unwrap().to_owned();
    let told: Vec<String> = scene
        .door()
        .history(&lead)
        .iter()
        .filter(|it| it["kind"] == "user")
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(told[0].contains("<previous-transcript>\n[Ada]: a &lt;b&gt;\n"), "{}", told[0]);
    assert!(told[0].contains("<artifact-catalog>\n- c (memory): &amp; d\n"), "{}", told[0]);
    assert!(told[1].starts_with("[SUMMON AGENTS]") && told[1].contains("seat 1"), "{}", told[1]);
    assert_eq!(told[2], "[ROUTE TO AGENT: Lyra]\n\nhello");
    assert!(told[4].starts_with("[WAKE AGENTS]") && told[4].contains("I chose the name Kael &amp;"), "{}", told[4]);
    // What clients of the other dialect see of it.
    let last = |event: &Value| {
        event["type"] == "agent_status"
            && event["agents"][0]["gridPosition"] == 0
            && event["agents"].as_array().is_some_and(|it| it.len() == 1)
    };
    let events = scene.dialect("?dialect=julian&after=-1", None, last);
    let kinds = types(&events);
    for kind in [
        "user_session_start",
        "session_start",
        "claude_system",
        "claude_text",
        "claude_result",
        "user_summon",
        "agent_registered",
        "agent_status",
        "user_message",
        "agent_message",
        "user_wake",
        "server_error",
    ] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let find = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    let start = find("user_session_start");
    assert_eq!((&start["hasPreviousTranscript"], &start["hasArtifactCatalog"]), (&json!(true), &json!(true)));
    assert_eq!(find("agent_registered")["agent"]["individuationArtifact"], soul("Lyra"));
    let message = find("user_message");
    assert_eq!(
        (&message["text"], &message["speakerName"], &message["targetAgent"]),
        (&json!("hello"), &json!("Ada"), &json!("Lyra"))
    );
    let answer = find("agent_message");
    assert_eq!(
        (&answer["agentName"], &answer["content"][0]["text"]),
        (&json!("Lyra"), &json!("Lyra says hello back."))
    );
    let shown = events
        .iter()
        .any(|event| event["type"] == "claude_text" && event.to_string().contains("[AGENT_STATUS] {\\\"agents"));
    assert!(!shown, "a status is no part of the conversation");
}

/// Eight souls of the greatest length do not fit into one message. The lead gets them in several, each soul whole.
#[test]
fn eight_large_souls_reach_the_lead() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'");
    scene.script("lead", &[json!({ "text": status(&[]) })]);
    let documents: Vec<Value> = [0, 1, 2, 3, 5, 6, 7, 8]
        .into_iter()
        .map(|at| {
            let soul = format!("{at}{}", "x".repeat(250_000));
            json!({ "type": "agent-identity", "gridPosition": at, "name": format!("N{at}"), "individuationArtifact": soul })
        })
        .collect();
    let imported = scene.door().post("/api/docs/import", &json!({ "text": json!(documents).to_string() }));
    assert_eq!(imported.status, 200, "{imported:?}");
    scene.wake(None);
    assert_eq!(scene.seats()["button"], "waking");
    scene.shop.wait("the last part", |event| {
        event["content"].as_str().is_some_and(|content| content.starts_with("[WAKE AGENTS] (part 4 of 4)"))
    });
    let events = scene.shop.events();
    let told: Vec<&str> = events
        .iter()
        .filter_map(|event| event["content"].as_str())
        .filter(|content| content.starts_with("[WAKE AGENTS]"))
        .collect();
    assert!(told.len() == 4 && told.iter().all(|message| message.len() <= 1 << 20), "{} messages", told.len());
    for at in [0, 1, 2, 3, 5, 6, 7, 8] {
        let soul = format!("<soul>\n{at}{}\n</soul>", "x".repeat(250_000));
        assert_eq!(told.iter().filter(|message| message.contains(&soul)).count(), 1, "seat {at}");
    }
}

/// A client of the original program sends the payloads itself, and they may be long. It is a wake in every mode.
#[test]
fn a_client_wakes_the_team_with_a_payload_of_any_length() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'");
    scene.script("lead", &[json!({ "text": registered(0, "Lyra") }), json!({ "text": status(&[]) })]);
    let started = scene.door().post("/api/session/start", &json!({ "with": scene.with_scripts() }));
    assert_eq!(started.status, 200, "{started:?}");
    scene.wait_seat(0, "sleeping");
    let long = format!("[WAKE AGENTS]\n{}", "x".repeat(300_000));
    let woken = scene.door().post("/api/send", &json!({ "message": long }));
    assert_eq!(woken.status, 202, "{woken:?}");
    let told = scene.shop.wait("the wake", |event| {
        event["content"].as_str().is_some_and(|content| content.starts_with("[WAKE AGENTS]"))
    });
    let told = told["content"].as_str().unwrap();
    assert!(told.contains("I chose the name Lyra &amp;") && !told.contains("xxxx"), "{told}");
    assert_eq!(scene.seats()["button"], "waking");
    let again = scene.door().post("/api/send", &json!({ "message": "[WAKE AGENTS]" }));
    assert_eq!((again.status, again.error().0.as_str()), (409, "nothing_to_wake"), "{again:?}");
}

/// What cannot be read of a report is rejected alone.
#[test]
fn an_unknown_status_does_not_spoil_a_report() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'");
    let words = format!("{}\n{}\n{}", registered(0, "Lyra"), registered(1, "Kael"), registered(2, "Vael"));
    scene.script(
        "lead",
        &[json!({ "text": words }), json!({ "text": status(&[(0, "shutdown"), (1, "dancing"), (2, "idle")]) })],
    );
    let started = scene.door().post("/api/session/start", &json!({ "with": scene.with_scripts() }));
    assert_eq!(started.status, 200, "{started:?}");
    let rejected = scene.shop.wait("the bad entry", |event| event["type"] == "marker_rejected");
    let reason = rejected["reason"].as_str().unwrap();
    assert!(reason.contains("entry 2") && reason.contains("dancing"), "{reason}");
    scene.wait_seat(0, "sleeping");
    assert_eq!((&scene.seat(1)["status"], &scene.seat(2)["status"]), (&json!("alive"), &json!("alive")));
}
