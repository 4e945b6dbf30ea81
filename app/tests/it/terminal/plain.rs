//! `hatchery tui --plain` with a pipe: every line is carried out in its turn, and the end waits for all of them.

use super::named;
use crate::support::daemon::{Grounds, Ran};
use crate::support::workshop::Workshop;
use serde_json::json;
use std::io::Write as _;
use std::process::Stdio;

/// Gives these lines at once, and then the end of the input.
fn piped(grounds: &Grounds, agent: &[&str], lines: &str) -> Ran {
    let mut command = grounds.command(&[&["tui", "--plain"], agent].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

fn has(ran: &Ran, line: &str) -> bool {
    ran.stdout.lines().any(|it| it == line)
}

#[test]
fn what_is_piped_is_said_before_the_end() {
    let workshop = Workshop::open();
    let weaver = named(&workshop, "weaver", &[]);
    let ran = piped(&workshop.grounds, &[], "one\n//two\nthree");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = |event: &&serde_json::Value| event["type"] == "message_added" && event["kind"] == "user";
    let log = workshop.door().get(&format!("/api/events.json?limit=100&after=0&agent={weaver}")).json();
    let words: Vec<_> = log["events"].as_array().unwrap().iter().filter(said).map(|it| it["content"].clone()).collect();
    assert_eq!(words, ["play", "one", "/two", "three"]);
    let kept = std::fs::read_to_string(workshop.grounds.data().join("tui/desks.json")).unwrap();
    assert!(!kept.contains("three"), "nothing waits for the next terminal: {kept}");
}

#[test]
fn lines_for_an_unknown_agent_go_to_no_other() {
    let workshop = Workshop::open();
    named(&workshop, "weaver", &[]);
    let ran = piped(&workshop.grounds, &["nobody"], "a secret\n");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("No living agent is called nobody") && ran.stderr.contains("hatchery ps"), "{ran:?}");
    let log = workshop.grounds.run(&["events"]).good();
    assert!(!log.contains("a secret"), "{log}");
}

#[test]
fn the_first_line_starts_an_agent() {
    let workshop = Workshop::open();
    let ran = piped(&workshop.grounds, &[], "try 1\nand then 2\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(". 0 agents. Nobody needs you."), "{ran:?}");
    let started = workshop.wait("the first words", |event| event["content"] == "try 1");
    let second = workshop.wait("the next words", |event| event["content"] == "and then 2");
    assert_eq!(started["agent"], second["agent"]);
}

#[test]
fn commands_are_answered_in_their_order() {
    let workshop = Workshop::open();
    named(&workshop, "weaver", &[json!({ "text": "Ready." })]);
    workshop.wait("the end of its turn", |event| event["type"] == "turn_ended");
    let ran = piped(&workshop.grounds, &[], "/agents\n/why\n/cost\n/diff\n/seats\n/budget 5\n/budget\n/budget\n");
    assert_eq!(ran.code, Some(1), "the last lines are mistakes: {ran:?}");
    assert!(!ran.stdout.contains("cannot be read") && !ran.stdout.contains("no agent yet"), "{ran:?}");
    let places = [
        "weaver: listening",
        "weaver is listening.",
        "$0 in all, $0 today.",
        "the project is not in a git repository (changes are",
        "Nobody is in a seat.",
        "/summon: SUMMON, fills the seats",
        "weaver may spend $5 in all.",
    ];
    let found: Vec<_> = places.iter().map(|words| ran.stdout.find(words)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?} {ran:?}");
    let mistake = "/budget needs an amount in dollars, or none: /budget 5";
    assert_eq!(ran.stdout.matches(mistake).count(), 2, "{ran:?}");
    assert!(has(&ran, "4, lead, not started"), "{ran:?}");
    let evidence =
        |line: &str| line.starts_with("run 1, attempt 1 is process") && line.contains("which last said something");
    assert!(ran.stdout.lines().any(evidence), "a fact is one line: {ran:?}");
}

#[test]
fn a_kill_is_asked_about_once_and_decided_by_the_next_line() {
    let workshop = Workshop::open();
    let weaver = named(&workshop, "weaver", &[]);
    let door = workshop.door();
    assert_eq!(door.fork(json!({ "parent": weaver, "name": "child" })).status, 201);
    // Nobody decides, and another line is a line like every other.
    for (lines, code, told) in [
        ("/kill weaver\n", 1, "weaver is kept."),
        ("/kill weaver\n/agents\n", 0, "child: "),
        ("/kill child\n2\n", 0, "child is dead. Its history stays and can be forked."),
    ] {
        let ran = piped(&workshop.grounds, &["weaver"], lines);
        assert_eq!(ran.code, Some(code), "{lines}: {ran:?}");
        assert_eq!(ran.stdout.matches("Kill ").count(), 1, "{lines}: {ran:?}");
        assert!(ran.stdout.contains(told), "{lines}: {ran:?}");
        assert_eq!(door.one(&weaver)["state"], "alive");
    }
}

/// What the screen shows in a pager, by scrolling or with the mouse is printed, or refused with a reason.
#[test]
fn a_conversation_is_printed_and_searched() {
    let workshop = Workshop::open();
    named(&workshop, "weaver", &[json!({ "text": "One **needle** here.\n\n- and a list" })]);
    let said = workshop.wait("its words", |event| event["type"] == "message_added" && event["kind"] == "assistant");
    let id = said["id"].as_u64().unwrap();
    let ran = piped(&workshop.grounds, &["weaver"], &format!("/history\n/find needle\n/log #{id}\n"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, history) = ran.stdout.split_once("The conversation with weaver:\n").expect("a history");
    assert!(history.starts_with("You: play\nweaver: One needle here.\nweaver: - and a list\n"), "{ran:?}");
    assert!(has(&ran, "The last event of weaver."), "{ran:?}");
    assert!(ran.stdout.contains(&format!("#{id} message added, One **needle** here.")), "{ran:?}");
    assert!(has(&ran, &format!("Event #{id}:")), "{ran:?}");
    for (line, told) in [
        ("/find", "/find needs the words to look for."),
        ("/log #999999", &format!("There is no event #999,999. The last one is #{}.", workshop.door().head())),
        ("/mouse", "/mouse needs the whole screen."),
        ("/attach a.txt", "/attach needs the whole screen. @PATH in a message names a file."),
        ("/copy", "There is no clipboard. /history prints the conversation."),
    ] {
        let ran = piped(&workshop.grounds, &["weaver"], &format!("{line}\n"));
        assert_eq!((ran.code, has(&ran, told)), (Some(1), true), "{line}: {ran:?}");
    }
}

#[test]
fn a_daemon_that_cannot_be_reached_is_told() {
    let grounds = Grounds::with("harness = \n");
    let ran = piped(&grounds, &[], "try 1\n");
    assert!(ran.code.is_some_and(|code| code != 0), "{ran:?}");
    assert!(ran.stderr.contains("hatchery.toml"), "{ran:?}");
}
