//! A lead manages the seats and reports by markers.

use super::scene::{LONG_GRACE_MS, Scene, registered, soul, status, types};
use serde_json::{Value, json};

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
            json!("compact"),
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
    scene.send(&json!({ "message": "hello", "targetAgent": "Lyra", "speakerName": "Ada" }));
    scene.shop.wait("the answer", |event| event["content"] == "Lyra says hello back.");
    scene.send(&json!({ "message": "and now?" }));
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
        "claude_compact",
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
    scene.start_lead(&[json!({ "text": registered(0, "Lyra") }), json!({ "text": status(&[]) })]);
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
    let report = status(&[(0, "shutdown"), (1, "dancing"), (2, "idle")]);
    scene.start_lead(&[json!({ "text": words }), json!({ "text": report })]);
    let rejected = scene.shop.wait("the bad entry", |event| event["type"] == "marker_rejected");
    let reason = rejected["reason"].as_str().unwrap();
    assert!(reason.contains("entry 2") && reason.contains("dancing"), "{reason}");
    scene.wait_seat(0, "sleeping");
    assert_eq!((&scene.seat(1)["status"], &scene.seat(2)["status"]), (&json!("alive"), &json!("alive")));
}

fn thread(scene: &Scene, agent: &str) -> Vec<String> {
    let thread = scene.door().get(&format!("/api/agents/{agent}/thread")).json();
    thread["messages"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

/// The second message comes while the lead is busy, before it has heard the first one.
#[test]
fn answers_to_two_messages_in_a_row_are_booked_for_each() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'");
    scene.start_lead(&[
        json!({ "text": format!("{}\n{}", registered(0, "Lyra"), registered(1, "Kael")) }),
        json!({ "sleep_ms": 2000 }),
        json!({ "text": "I was busy." }),
        json!("turn"),
        json!({ "text": "Lyra is well." }),
        json!("turn"),
        json!({ "text": "Kael is tired." }),
        json!("turn"),
        json!({ "text": "And so am I." }),
    ]);
    scene.wait_seat(1, "alive");
    scene.send(&json!({ "message": "how are you?", "targetAgent": "Lyra" }));
    scene.send(&json!({ "message": "and you?", "targetAgent": "Kael" }));
    scene.send(&json!({ "message": "and the lead?" }));
    scene.shop.wait("the last answer", |event| event["content"] == "And so am I.");
    assert_eq!(thread(&scene, "Lyra"), ["how are you?", "Lyra is well."]);
    assert_eq!(thread(&scene, "Kael"), ["and you?", "Kael is tired."]);
    let of_lead = |event: &Value| event["content"][0]["text"] == "And so am I.";
    let events = scene.dialect("?dialect=julian&after=-1", None, of_lead);
    let by = |text: &str| {
        let event = events.iter().find(|event| event["content"][0]["text"] == text).unwrap();
        (event["type"].clone(), event["agentName"].clone())
    };
    assert_eq!(by("I was busy."), (json!("claude_text"), Value::Null));
    assert_eq!(by("Lyra is well."), (json!("agent_message"), json!("Lyra")));
    assert_eq!(by("Kael is tired."), (json!("agent_message"), json!("Kael")));
    assert_eq!(by("And so am I."), (json!("claude_text"), Value::Null));
}

/// Nobody was summoned here. The agent has a history all the same, and the next one is told what was said.
#[test]
fn an_agent_that_the_lead_brings_unsummoned_is_remembered() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'\nhuman = 'ada'");
    scene.start_lead(&[
        json!({ "text": registered(3, "Lyra") }),
        json!("turn"),
        json!({ "text": "Lyra likes the sea." }),
        json!("turn"),
        json!({ "text": "She wakes." }),
    ]);
    let seat = scene.wait_seat(3, "alive");
    let view = scene.door().get(&format!("/api/agents/{}", seat["agent"].as_str().unwrap())).json();
    assert_eq!((&view["name"], &view["seat"]), (&json!("Lyra"), &json!(3)), "{view}");
    scene.send(&json!({ "message": "what do you like?", "targetAgent": "Lyra" }));
    scene.shop.wait("the answer", |event| event["content"] == "Lyra likes the sea.");
    assert_eq!(thread(&scene, "Lyra"), ["what do you like?", "Lyra likes the sea."]);
    let told = scene.told_at_the_next_wake();
    assert!(told.contains("[ada]: what do you like?\n[Lyra]: Lyra likes the sea."), "{told}");
    assert_eq!(scene.seat(3)["agent"], seat["agent"], "the same one");
}

/// The team has ended with its lead, so the session is over, and it is told why.
#[test]
fn the_session_of_a_team_ends_when_its_lead_crashes() {
    let settings =
        "harness = 'scripted'\nretries = 0\nstop_grace_ms = 300\n[seats]\nmode = 'lead'\nteams = 'no-teams'\n";
    let scene = Scene::of(settings);
    scene.start_lead(&[json!({ "text": registered(0, "Lyra") }), json!("turn"), json!({ "exit": 3 })]);
    scene.wait_seat(0, "alive");
    scene.send(&json!({ "message": "are you well?" }));
    scene.wait_seat(0, "sleeping");
    let events = scene.dialect("?dialect=julian&after=-1", None, |event| event["type"] == "session_end");
    let end = events.last().unwrap();
    assert_eq!((&end["exitCode"], &end["reason"]), (&json!(3), &json!("process_crash")), "{end}");
    let error = events.iter().find(|event| event["type"] == "server_error").unwrap();
    assert_eq!(error["code"], "process_exited", "{error}");
    assert!(!types(&events).contains(&"user_session_end"), "nobody asked for it");
    assert_eq!(scene.door().get("/api/health").json()["sessionActive"], false);
    assert_eq!(scene.seats()["button"], "wake");
}

/// The old process does not want to leave. There is one lead all the same, and it hears what is said meanwhile.
#[test]
fn a_quick_restart_has_one_lead() {
    let scene = Scene::of(&format!("harness = 'scripted'\nstop_grace_ms = {LONG_GRACE_MS}\n[seats]\n"));
    scene.start_lead(&[json!({ "hang": { "ignore_sigterm": true } })]);
    let lead = scene.seats()["lead"].clone();
    scene.wait_hanging(lead.as_str().unwrap());
    scene.end_session();
    scene.start_lead(&[json!({ "text": "Good morning again." })]);
    scene.send(&json!({ "message": "are you there?" }));
    scene.shop.kill_process(lead.as_str().unwrap());
    scene.shop.wait("the answer", |event| event["content"] == "You said: are you there?");
    assert_eq!(scene.seats()["lead"], lead);
    let agents = scene.door().get("/api/agents").json();
    let leads = agents["agents"].as_array().unwrap().iter().filter(|agent| agent["name"] == "lead").count();
    assert_eq!(leads, 1, "{agents}");
}

/// The request that starts the session of a lead says how the lead is run, here in a program that is not the project's usual one.
#[test]
fn a_summon_that_starts_the_lead_starts_it_as_asked() {
    let scene = Scene::of("stop_grace_ms = 300\n[seats]\nmode = 'lead'\nteams = 'no-teams'\n");
    scene.script("lead", &[json!({ "text": registered(0, "Lyra") })]);
    let mut with = scene.with_scripts();
    with["harness"] = json!("scripted");
    let summoned = scene.door().post("/api/agents/summon", &json!({ "seats": [0], "with": with }));
    assert_eq!(summoned.status, 202, "{summoned:?}");
    scene.wait_seat(0, "alive");
    // The lead is stopped, and the wake starts it again in the same program.
    let lead = scene.seats()["lead"].as_str().unwrap().to_owned();
    scene.end_session();
    scene.shop.wait("the end", |event| event["type"] == "session_ended");
    let woken = scene.door().post("/api/agents/wake", &json!({}));
    assert_eq!(woken.status, 202, "{woken:?}");
    scene.shop.wait("the wake is heard", |event| {
        event["agent"] == lead.as_str()
            && event["content"].as_str().is_some_and(|it| it.starts_with("You said: [WAKE AGENTS]"))
    });
}

/// The thread of an agent ends with the agent. What is passed on later is for its successor.
#[test]
fn the_words_of_a_successor_are_not_in_the_thread_of_a_killed_agent() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'\nhuman = 'ada'");
    scene.start_lead_with_lyra(&[
        json!("turn"),
        json!({ "text": "The first says hello." }),
        json!("turn"),
        json!({ "text": status(&[]) }),
        json!("turn"),
        json!({ "text": status(&[(0, "alive")]) }),
        json!("turn"),
        json!({ "text": "The second says hello." }),
    ]);
    let occupant = || scene.seat(0)["agent"].as_str().unwrap().to_owned();
    let first = occupant();
    scene.send(&json!({ "message": "are you the first?", "targetAgent": "Lyra" }));
    scene.shop.wait("the answer", |event| event["content"] == "The first says hello.");
    let killed = scene.door().post(&format!("/api/agents/{first}/kill"), &json!({}));
    assert_eq!(killed.status, 200, "{killed:?}");
    scene.wait_seat(0, "sleeping");
    let is_empty = |event: &Value| event["type"] == "message_added" && event["content"] == status(&[]);
    let reports = || scene.shop.events().iter().filter(|event| is_empty(event)).count();
    scene.wait_until("the lead knows", || (reports() == 2).then_some(()));
    scene.wake(Some(&[0]));
    scene.wait_seat(0, "alive");
    let second = occupant();
    assert_ne!(first, second);
    scene.send(&json!({ "message": "are you the second?", "targetAgent": "Lyra" }));
    scene.shop.wait("the answer", |event| event["content"] == "The second says hello.");
    let lines = |agent: &str| -> Vec<String> {
        let thread = scene.door().get(&format!("/api/agents/{agent}/thread")).json();
        thread["messages"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(lines(&first), ["are you the first?", "The first says hello."]);
    assert_eq!(lines(&second), ["are you the second?", "The second says hello."]);
}

/// A message with the name of the lead is for the lead, as one without a name.
#[test]
fn the_lead_can_be_addressed_by_its_name() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'");
    let script = [json!({ "text": status(&[]) }), json!("turn"), json!({ "text": "one" }), json!("turn")];
    scene.start_lead(&script.into_iter().chain([json!({ "text": "two" })]).collect::<Vec<_>>());
    scene.shop.wait("the greeting", |event| event["type"] == "seats_reported");
    let lead = scene.seats()["lead"].as_str().unwrap().to_owned();
    let send = |scene: &Scene, name: &str| {
        scene.door().post("/api/send", &json!({ "message": "hello", "targetAgent": name })).status
    };
    assert_eq!(send(&scene, "Lead"), 202);
    scene.shop.wait("the answer", |event| event["content"] == "one");
    let renamed = scene.door().post(&format!("/api/agents/{lead}/rename"), &json!({ "name": "Mira" }));
    assert_eq!(renamed.status, 200, "{renamed:?}");
    assert_eq!(send(&scene, "mira"), 202);
    scene.shop.wait("the answer", |event| event["content"] == "two");
    assert_eq!((send(&scene, "nobody"), send(&scene, "Julian")), (404, 404));
    // In the original program the lead has a name that every client knows.
    let original = Scene::with("mode = 'lead'\nteams = 'no-teams'\ndialect = 'julian'");
    original.start_lead(&[]);
    assert_eq!(send(&original, "Julian"), 202);
}
