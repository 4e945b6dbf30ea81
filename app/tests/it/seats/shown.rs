//! What a person reads of the seats: no reports in the words of the lead, and one form of a session's id.

use super::scene::{Scene, registered};
use serde_json::{Value, json};

const REPORT: &str = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0,\"status\":\"alive\"}]}";

#[track_caller]
fn must(scene: &Scene, arguments: &[&str]) -> String {
    let done = scene.shop.grounds.command(arguments).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A lead with Lyra in seat 0, who answers what it is asked.
fn led(answers: &[Value]) -> Scene {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'\nhuman = 'ada'");
    let greeting = format!("Good morning.\n{}\n{REPORT}\nAll is well.", registered(0, "Lyra"));
    let greeting = json!({ "text": greeting });
    scene.start_lead(&[greeting].into_iter().chain(answers.iter().cloned()).collect::<Vec<_>>());
    scene.wait_seat(0, "alive");
    scene
}

#[test]
fn reports_of_the_lead_are_in_the_log_and_not_in_what_people_read() {
    let scene = led(&[
        json!({ "text": REPORT }),
        json!("turn"),
        json!({ "text": format!("{REPORT}\nStill well. In prose, [AGENT_STATUS] stays.") }),
    ]);
    let followed = must(&scene, &["say", "--follow", "and now?"]);
    assert_eq!(followed.trim_end(), "Still well. In prose, [AGENT_STATUS] stays.");
    for command in ["history", "thread"] {
        let read = must(&scene, &[command, "lead"]);
        assert!(read.contains("Good morning.") && read.contains("All is well."), "{command}: {read}");
        assert!(!read.contains("[AGENT_STATUS] {"), "{command}: {read}");
        assert!(read.contains("[AGENT_REGISTERED]"), "only a status is taken out: {command}: {read}");
    }
    assert_eq!(must(&scene, &["history", "lead"]).matches("assistant").count(), 2, "nothing is left of the second one");
    let lead = scene.seats()["lead"].as_str().unwrap().to_owned();
    let history = scene.door().get(&format!("/api/agents/{lead}/history?full=true")).json();
    let messages = history["messages"].as_array().unwrap();
    let words: Vec<&str> =
        messages.iter().filter(|it| it["kind"] == "assistant").map(|it| it["content"].as_str().unwrap()).collect();
    assert_eq!(words[1..], ["", "Still well. In prose, [AGENT_STATUS] stays."]);
    assert!(
        words[0].starts_with("Good morning.\n[AGENT_REGISTERED]") && words[0].ends_with("}\nAll is well."),
        "{words:?}"
    );
    let view = scene.door().get(&format!("/api/agents/{lead}")).json();
    assert_eq!(
        (&view["seat"], &view["doing"]["line"]),
        (&json!(4), &json!("Still well. In prose, [AGENT_STATUS] stays."))
    );
    // The log has everything, and the lead itself is told its own words.
    let whole = scene
        .shop
        .events()
        .iter()
        .filter(|event| {
            event["kind"] == "assistant" && event["content"].as_str().is_some_and(|content| content.contains(REPORT))
        })
        .count();
    assert_eq!(whole, 3);
}

/// The words of an agent that has no seat are nobody's report.
#[test]
fn other_agents_may_write_what_looks_like_a_report() {
    let scene = Scene::with("");
    let agent = scene.shop.run(&[json!({ "text": REPORT })]);
    scene.shop.wait("its words", |event| event["agent"] == *agent && event["kind"] == "assistant");
    assert!(must(&scene, &["history", &agent]).contains(REPORT));
}

#[test]
fn the_lead_is_told_that_an_agent_of_its_team_was_killed() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'");
    scene.start_lead_with_lyra(&[json!("turn"), json!({ "text": "I see." })]);
    let agent = scene.seat(0)["agent"].as_str().unwrap().to_owned();
    must(&scene, &["kill", &agent]);
    let lead = scene.seats()["lead"].clone();
    let told = scene.shop.wait("the message", |event| {
        event["content"].as_str().is_some_and(|content| content.starts_with("[KILL AGENT: Lyra, seat 0]"))
    });
    assert_eq!((&told["agent"], &told["kind"]), (&lead, &json!("user")), "{told}");
    scene.shop.wait("the answer", |event| event["content"] == "I see.");
    assert!(!must(&scene, &["thread"]).contains("[KILL AGENT"), "no person said that");
}

#[test]
fn a_session_is_known_by_both_forms_of_its_id_and_printed_in_one() {
    let scene = Scene::with("");
    let printed = must(&scene, &["session", "start", "--lead"]).trim().to_owned();
    assert!(must(&scene, &["session", "list"]).starts_with(&printed), "{printed}");
    let refused = scene.shop.grounds.command(&["session", "start", "--lead"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains(&printed), "{refused:?}");
    let uuid = scene.seats()["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(uuid.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    let forked = must(&scene, &["fork", "root", "--name", "ann", "--session", &uuid]);
    let view = scene.door().get(&format!("/api/agents/{}", forked.trim())).json();
    assert_eq!(view["sessionId"], printed);
    assert_eq!(must(&scene, &["session", "end", &uuid]).trim(), format!("session {printed} is ending"));
    scene.shop.wait("the end", |event| event["type"] == "session_ended");
    // Without an id it is the session of the seats.
    let printed = must(&scene, &["session", "start", "--lead"]).trim().to_owned();
    assert_eq!(must(&scene, &["session", "end"]).trim(), format!("session {printed} of the seats is ending"));
}
