//! Messages from the command line: to an agent, to a seat, to the lead.

use super::scene::Scene;
use serde_json::{Value, json};
use std::process::Output;

fn hatchery(scene: &Scene, arguments: &[&str]) -> Output {
    scene.shop.grounds.command(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn must(scene: &Scene, arguments: &[&str]) -> String {
    let done = hatchery(scene, arguments);
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    text(&done.stdout)
}

/// The requests for processes of an agent.
fn requested(scene: &Scene, agent: &Value) -> usize {
    let events = scene.shop.events();
    events.iter().filter(|event| event["type"] == "run_requested" && event["agent"] == *agent).count()
}

#[test]
fn a_message_is_for_an_agent_a_seat_or_the_lead() {
    let scene = Scene::with("");
    scene.registers(0, "Cael");
    scene.registers(3, "Cael");
    scene.summon(&[0, 3]);
    for seat in [0, 3] {
        scene.wait_seat(seat, "alive");
    }
    // Two agents of one name: the seat tells them apart.
    let ambiguous = hatchery(&scene, &["say", "Cael", "hello you"]);
    assert!(!ambiguous.status.success() && text(&ambiguous.stderr).contains("may mean 2 agents"), "{ambiguous:?}");
    must(&scene, &["say", "--seat", "3", "hello you"]);
    let answer = scene.shop.wait("the answer", |event| event["content"] == "You said: hello you");
    assert_eq!(answer["agent"], scene.seat(3)["agent"]);
    let thread = must(&scene, &["thread", "--seat", "3"]);
    assert!(thread.contains("human: hello you") && thread.contains("Cael: You said: hello you"), "{thread}");
    assert!(!must(&scene, &["thread", "--seat", "0"]).contains("hello you"));
    // Without a target it is for the lead, which is started for it.
    must(&scene, &["say", "good morning to you"]);
    let lead = scene.seats()["lead"].clone();
    scene.shop.wait("the lead's answer", |event| event["agent"] == lead && event["kind"] == "assistant");
    assert!(must(&scene, &["thread"]).contains("human: good morning to you"));
    assert!(must(&scene, &["thread", "--seat", "4"]).contains("human: good morning to you"));
    // A forgotten message is no message to the lead, and an empty seat has nobody.
    let forgotten = hatchery(&scene, &["say", "lead"]);
    assert_eq!(forgotten.status.code(), Some(2), "{forgotten:?}");
    assert!(text(&forgotten.stderr).contains("there is no message for lead"), "{forgotten:?}");
    let nobody = hatchery(&scene, &["say", "--seat", "8", "hello"]);
    assert!(!nobody.status.success() && text(&nobody.stderr).contains("no agent is in seat 8"), "{nobody:?}");
    // The number of a seat is no name, and the error says how a seat is named.
    let numbers: [(&[&str], &str); 3] = [
        (&["say", "3", "hello"], "`hatchery say --seat 3 \"…\"`"),
        (&["say", "--follow", "3", "hello"], "`hatchery say --seat 3 \"…\"`"),
        (&["thread", "3"], "`hatchery thread --seat 3`"),
    ];
    for (arguments, hint) in numbers {
        let refused = hatchery(&scene, arguments);
        assert!(!refused.status.success() && text(&refused.stderr).contains(hint), "{refused:?}");
    }
    let told = text(&hatchery(&scene, &["say", "--seat", "3", "and again"]).stderr);
    assert!(told.contains("the agent in seat 3 has your message"), "{told}");
}

/// The lead is started with a program of its own. Flags for a lead are of no use to another session.
#[test]
fn a_session_of_the_seats_is_started_with_the_leads_own_program() {
    let scene = Scene::of("stop_grace_ms = 300\n");
    scene.script("lead", &[json!({ "text": "Good morning from the script." })]);
    let script = scene.with_scripts()["script"].as_str().unwrap().to_owned();
    let flags = ["--harness", "scripted", "--script", &script];
    let start = [&["session", "start", "--lead", "--id", "monday"][..], &flags].concat();
    let first = must(&scene, &start);
    assert_eq!(must(&scene, &start), first, "a repeat starts nothing");
    scene.shop.wait("the greeting", |event| event["content"] == "Good morning from the script.");
    let refused = hatchery(&scene, &[&["session", "start", "work"][..], &flags].concat());
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("--lead"), "{refused:?}");
}

#[test]
fn after_the_end_of_the_session_nobody_is_started() {
    let scene = Scene::with("");
    scene.registers(0, "Lyra");
    scene.summon(&[0]);
    scene.wait_seat(0, "alive");
    scene.end_session();
    scene.shop.wait("the end", |event| event["type"] == "session_ended");
    let agent = scene.seat(0)["agent"].clone();
    let id = agent.as_str().unwrap();
    for arguments in [&["say", "Lyra", "hello"][..], &["say", id, "hello"], &["run", "--agent", id, "hello"]] {
        let refused = hatchery(&scene, arguments);
        let words = text(&refused.stderr);
        assert!(!refused.status.success() && words.contains("the seats have no session"), "{refused:?}");
        assert!(words.contains("hatchery session start") && words.contains("hatchery wake"), "{words}");
    }
    assert_eq!(requested(&scene, &agent), 1, "only the summon");
    assert_eq!(scene.seat(0)["status"], "sleeping");
    scene.wake(None);
    scene.wait_seat(0, "alive");
    must(&scene, &["say", "Lyra", "hello again"]);
    scene.shop.wait("the answer", |event| event["content"] == "You said: hello again");
}

/// An agent of the lead's team has its process there. A message goes to its inbox or through the lead, and starts nothing here.
#[test]
fn an_agent_of_the_leads_team_gets_no_process_of_ours() {
    let scene = Scene::with("mode = 'lead'\nteams = 'no-teams'\nhuman = 'ada'");
    scene.start_lead_with_lyra(&[
        json!("turn"),
        json!({ "text": "Lyra says hello back." }),
        json!("turn"),
        json!({ "text": "Lyra is well." }),
    ]);
    let agent = scene.seat(0)["agent"].clone();
    for (arguments, answer) in [
        (["say", agent.as_str().unwrap(), "hello"], "Lyra says hello back."),
        (["say", "--seat=0", "how are you?"], "Lyra is well."),
    ] {
        must(&scene, &arguments);
        scene.shop.wait(answer, |event| event["content"] == answer);
    }
    assert_eq!(requested(&scene, &agent), 0, "no process of ours");
    let lead = scene.seats()["lead"].as_str().unwrap().to_owned();
    let history = scene.door().history(&lead);
    let told: Vec<&str> =
        history.iter().filter(|it| it["kind"] == "user").map(|it| it["content"].as_str().unwrap()).collect();
    assert!(told[0].contains("Create your team with the name `hatchery-"), "{}", told[0]);
    assert!(told[0].contains("member `ada`, and the user"), "{}", told[0]);
    assert_eq!(told[2..], ["[ROUTE TO AGENT: Lyra]\n\nhello", "[ROUTE TO AGENT: Lyra]\n\nhow are you?"]);
    // The thread of the agent has both, although the words went through the lead.
    let thread = must(&scene, &["thread", "Lyra"]);
    for line in ["ada: hello", "Lyra: Lyra says hello back.", "ada: how are you?", "Lyra: Lyra is well."] {
        assert!(thread.contains(line), "{line}: {thread}");
    }
    // What was passed on is part of the memory of the next one.
    let told = scene.told_at_the_next_wake();
    assert!(told.contains("[ada]: hello\n[Lyra]: Lyra says hello back."), "{told}");
}
