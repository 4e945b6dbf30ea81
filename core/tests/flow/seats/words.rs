//! What is said to seats and to their lead, and how it reaches them.

use super::*;
use hatchery_core::EventId;
use hatchery_core::history::MAX_MESSAGE_BYTES;
use hatchery_core::run::wire_name;
use hatchery_core::seat::{ArtifactMeta, Reach, inbox_name, reach};

fn say(to: Option<Position>, no_inbox: bool) -> Command {
    let lead = Box::new(lead());
    Command::AddressSeat { to, text: "hello".into(), speaker: "Ada".into(), lead, no_inbox }
}

fn general(agent: AgentId) -> Command {
    Command::Say { agent, text: "hello".into(), spec: Some(spec()) }
}

/// What the agents were told, each with the message.
fn told(events: &[Record]) -> Vec<(AgentId, String)> {
    let told = events.iter().filter_map(|record| match &record.event {
        Event::Message(MessageEvent::Added { agent, kind: MessageKind::User, content, .. }) => {
            Some((*agent, content.clone()))
        }
        _ => None,
    });
    told.collect()
}

/// A lead with a team: Lyra in seat 0, and a second agent of this name in seat 1.
fn team(second: &str) -> Play {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    play.must(summon(&[0, 1], 0));
    for (position, name) in [(0, "Lyra"), (1, second)] {
        let identity =
            format!("{{\"name\":\"{name}\",\"gridPosition\":{position},\"individuationArtifact\":\"I am\"}}");
        play.says_text(LEAD, &format!("[AGENT_REGISTERED] {identity}"));
    }
    play
}

#[test]
fn a_message_goes_to_the_agent_and_not_through_the_lead() {
    let mut play = alive(&[0]);
    let to_agent = play.must(say(Some(at(0)), false));
    assert!(
        matches!(&to_agent[0].event, Event::Seat(SeatEvent::Addressed { agent: a, speaker, .. }) if *a == agent(0) && speaker == "Ada")
    );
    assert_eq!(told(&to_agent), [(agent(0), "hello".to_owned())]);
    assert_eq!(play.world.seats().lead(), None);
    // Without a target: the lead, which is started for it.
    play.must(say(None, false));
    assert_eq!(play.world.seats().lead(), Some(LEAD));
    play.runs(LEAD);
    play.must(say(None, false));
    assert_eq!(play.refused(say(Some(at(5)), false)), SeatRefusal::Empty(at(5)));
    let empty = Command::AddressSeat {
        to: None,
        text: " ".into(),
        speaker: String::new(),
        lead: Box::new(lead()),
        no_inbox: false,
    };
    assert_eq!(play.refused(empty), SeatRefusal::NothingSaid);
}

/// The process of such an agent is in the lead's team. None is ever started here, whichever way somebody talks to it.
#[test]
fn an_agent_of_the_leads_team_is_reached_by_its_inbox_or_the_lead() {
    let mut play = team("Kael");
    assert_eq!(reach(&play.world, at(0)), Ok(Reach::Inbox { agent: agent(0), name: "Lyra".into() }));
    let by_inbox = play.must(say(Some(at(0)), false));
    assert_eq!(told(&by_inbox), [(agent(0), "hello".to_owned())]);
    let by_lead = play.must(say(Some(at(0)), true));
    assert_eq!(told(&by_lead), [(LEAD, "[ROUTE TO AGENT: Lyra]\n\nhello".to_owned())]);
    assert_eq!(play.refused(general(agent(0))), SeatRefusal::TeamManaged(at(0)));
    let start = Command::StartRun { agent: agent(0), spec: spec() };
    assert_eq!(play.refused(start), SeatRefusal::TeamManaged(at(0)));
    assert!(play.world.run(agent(0)).is_none(), "no process of our own");
    // The lead says that it sleeps: there is nobody to read an inbox.
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":1}]}");
    assert_eq!(play.refused(say(Some(at(0)), false)), SeatRefusal::Asleep(at(0)));
}

#[test]
fn two_agents_of_one_name_in_a_team_are_told_apart_by_the_lead() {
    let mut play = team("lyra");
    assert_eq!(reach(&play.world, at(1)), Ok(Reach::Lead), "one inbox file would be for both");
    let by_lead = play.must(say(Some(at(1)), false));
    assert_eq!(told(&by_lead), [(LEAD, "[ROUTE TO AGENT: lyra]\n\nhello".to_owned())]);
    assert_eq!(
        (inbox_name("Lyra_2-x"), inbox_name("Zoë"), inbox_name("a 🐣.b")),
        ("Lyra_2-x".into(), "Zo-".into(), "a----b".into())
    );
    let mut play = team("Lyr\u{e9}");
    let other = "[AGENT_REGISTERED] {\"name\":\"Lyr\u{eb}\",\"gridPosition\":2,\"individuationArtifact\":\"I am\"}";
    play.says_text(LEAD, other);
    assert_eq!(reach(&play.world, at(1)), Ok(Reach::Lead), "the CLI has one file for both names");
    let mut play = team("Lyra");
    let by_lead = play.must(say(Some(at(1)), false));
    assert_eq!(told(&by_lead), [(LEAD, "[ROUTE TO AGENT: Lyra, seat 1]\n\nhello".to_owned())]);
}

/// The process of such an agent is the lead's, so only the lead can end it.
#[test]
fn the_lead_is_told_of_kills_in_its_team() {
    let kill = |agent, by, remark: Option<&str>| Command::Kill {
        agent,
        cascade: false,
        by,
        remark: remark.map(str::to_owned),
    };
    let mut play = team("Kael");
    heard(&mut play, say(Some(at(1)), true));
    let killed = play.must(kill(agent(0), None, Some("it repeats itself")));
    let told_of = told(&killed);
    hears(&mut play, &killed);
    assert_eq!(play.world.seats().route(), None, "its answer is not for Kael");
    assert_eq!(told_of, [(LEAD, "[KILL AGENT: Lyra, seat 0]\n\nit repeats itself".to_owned())]);
    assert_eq!(told(&play.must(kill(agent(1), Some(LEAD), None))), [], "it knows");
    // Killed together with its team, the lead is told nothing; nor is it told of agents that the daemon runs.
    let mut play = team("Kael");
    let all = Command::Kill { agent: LEAD, cascade: true, by: None, remark: None };
    assert_eq!(told(&play.must(all)), []);
    assert_eq!(told(&alive(&[0]).must(kill(agent(0), None, None))), []);
}

/// The events of a message to the lead, which its process hears at once.
fn heard(play: &mut Play, command: Command) {
    let told = play.must(command);
    hears(play, &told);
}

fn hears(play: &mut Play, told: &[Record]) {
    let of_lead = |record: &&Record| matches!(&record.event, Event::Message(MessageEvent::Added { agent, kind: MessageKind::User, .. }) if *agent == LEAD);
    let ids: Vec<Output> =
        told.iter().filter(of_lead).map(|record| Output::Heard { id: wire_name(record.id) }).collect();
    assert!(!ids.is_empty(), "{told:?}");
    play.says(LEAD, ids);
}

/// For whom the lead speaks in what it has said: the event before each message tells.
fn spoken_for(events: &[Record]) -> Vec<(String, Option<u8>)> {
    let words = events.iter().enumerate().filter_map(|(at, record)| match &record.event {
        Event::Message(MessageEvent::Added { kind: MessageKind::Assistant, content, .. }) => {
            let before = at.checked_sub(1).map(|before| &events[before].event);
            let seat = match before {
                Some(Event::Seat(SeatEvent::SpokenFor { agent: LEAD, position })) => Some(position.number()),
                _ => None,
            };
            Some((content.clone(), seat))
        }
        _ => None,
    });
    words.collect()
}

/// After a message was passed on, the lead speaks for that seat, until it hears something else.
#[test]
fn the_lead_speaks_for_a_seat_until_it_is_asked_something_else() {
    let mut play = team("Kael");
    heard(&mut play, say(Some(at(0)), true));
    assert_eq!(spoken_for(&play.says_text(LEAD, "Lyra is well.")), [("Lyra is well.".to_owned(), Some(0))]);
    // A report is nobody's answer.
    let report = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0},{\"gridPosition\":1}]}";
    assert_eq!(spoken_for(&play.says_text(LEAD, report)), [(report.to_owned(), None)]);
    heard(&mut play, say(None, false));
    assert_eq!(play.world.seats().route(), None);
    heard(&mut play, say(Some(at(0)), true));
    heard(&mut play, summon(&[2], 10));
    assert_eq!(play.world.seats().route(), None, "what it says now is about the summon");
}

/// Two messages in a row: the lead has not answered the first one when the second one comes.
#[test]
fn answers_to_two_messages_in_a_row_are_those_of_two_agents() {
    let mut play = team("Kael");
    let first = play.must(say(Some(at(0)), true));
    let second = play.must(say(Some(at(1)), true));
    assert_eq!(spoken_for(&play.says_text(LEAD, "One moment.")), [("One moment.".to_owned(), None)]);
    hears(&mut play, &first);
    assert_eq!(spoken_for(&play.says_text(LEAD, "Lyra is well.")), [("Lyra is well.".to_owned(), Some(0))]);
    // Both in one read of its output.
    let id = told_at(&second);
    let both = vec![
        Output::Text { text: "She says no more.".into() },
        Output::Heard { id: wire_name(id) },
        Output::Text { text: "Kael is tired.".into() },
    ];
    let said = spoken_for(&play.says(LEAD, both));
    assert_eq!(said, [("She says no more.".to_owned(), Some(0)), ("Kael is tired.".to_owned(), Some(1))]);
}

/// A process that starts without a conversation is told all at once. It answers what was said last.
#[test]
fn a_briefing_is_answered_for_the_last_message_in_it() {
    let mut play = team("Kael");
    play.must(say(Some(at(1)), true));
    let last = play.must(say(Some(at(0)), true));
    let briefing = EventId(told_at(&last).0 + 1);
    play.says(LEAD, vec![Output::Heard { id: wire_name(briefing) }]);
    // The briefing of this run is another one: nothing was heard.
    assert_eq!(play.world.seats().route(), None);
    play.says(LEAD, vec![Output::Heard { id: wire_name(told_at(&last)) }]);
    assert_eq!(play.world.seats().route(), Some(at(0)));
}

fn told_at(events: &[Record]) -> EventId {
    let told =
        |record: &&Record| matches!(record.event, Event::Message(MessageEvent::Added { kind: MessageKind::User, .. }));
    events.iter().find(told).unwrap().id
}

/// A seat that the lead fills by itself has an agent, so what is said there has a place and is remembered.
#[test]
fn an_agent_that_the_lead_brings_unsummoned_is_in_the_registry() {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    let registered =
        "[AGENT_REGISTERED] {\"name\":\"Lyra\",\"gridPosition\":3,\"individuationArtifact\":\"I am Lyra\"}";
    let status = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":3},{\"gridPosition\":8,\"name\":\"Vael\"},{\"gridPosition\":7,\"status\":\"shutdown\"}]}";
    play.says_text(LEAD, &format!("{registered}\n{status}"));
    let (lyra, vael) = (play.occupant(3), play.occupant(8));
    assert_ne!(lyra, vael);
    for (agent, name) in [(lyra, "Lyra"), (vael, "Vael")] {
        let it = play.world.agent(agent).unwrap();
        assert_eq!((it.name.as_deref(), it.lifecycle), (Some(name), Lifecycle::Alive { session: Some(S) }));
    }
    assert_eq!(play.world.seats().seat(at(7)), None, "nobody is there");
    // Nobody comes twice, whatever is reported.
    play.says_text(LEAD, status);
    assert_eq!((play.occupant(3), play.occupant(8)), (lyra, vael));
    assert_eq!(reach(&play.world, at(3)), Ok(Reach::Inbox { agent: lyra, name: "Lyra".into() }));
    let told = told(&play.must(say(Some(at(3)), false)));
    assert_eq!(told, [(lyra, "hello".to_owned())], "its own history has it");
    let reply = play.must(Command::TakeReply { key: "k".into(), from: "lyra".into(), text: "hi".into() });
    assert!(matches!(&reply[1].event, Event::Message(MessageEvent::Added { agent, .. }) if *agent == lyra));
    // Killed, and reported again: another one.
    play.must(Command::Kill { agent: vael, cascade: false, by: None, remark: None });
    play.says_text(LEAD, status);
    assert!(play.occupant(8) != vael && play.state(8) == Some(SeatState::Alive));
    // It falls asleep with its session, and is woken as the same agent.
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    play.closes(S, &[LEAD]);
    assert_eq!(play.world.agent(lyra).unwrap().lifecycle, Lifecycle::Sleeping);
    play.must(open(T, Mode::Lead));
    play.must(wake(&[(3, true)]));
    assert_eq!(play.occupant(3), lyra);
}

/// Nobody of the seats is started outside of their session.
#[test]
fn after_the_end_of_the_session_nobody_is_spoken_to() {
    let mut play = alive(&[0]);
    play.must(say(None, false));
    play.runs(LEAD);
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    assert_eq!(play.refused(general(agent(0))), SeatRefusal::NoSession, "while its process is stopping");
    play.closes(S, &[agent(0), LEAD]);
    for who in [agent(0), LEAD] {
        assert_eq!(play.refused(general(who)), SeatRefusal::NoSession);
        assert_eq!(play.refused(Command::StartRun { agent: who, spec: spec() }), SeatRefusal::NoSession);
    }
    assert_eq!(play.refused(say(Some(at(0)), false)), SeatRefusal::NoSession);
    // In the next session it is started in that session.
    play.must(open(T, Mode::Direct));
    play.must(general(agent(0)));
    assert_eq!(play.world.agent(agent(0)).unwrap().lifecycle, Lifecycle::Alive { session: Some(T) });
    // Agents without a seat have nothing to do with it.
    play.must(general(R));
}

#[test]
fn a_lead_is_told_of_a_wake_in_several_messages() {
    let mut play = team("Kael");
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[]}");
    let Command::WakeSeats { seats, spec, hatch_ms, .. } = wake(&[(0, true), (1, true)]) else { panic!() };
    let messages = vec!["[WAKE AGENTS] one".to_owned(), "[WAKE AGENTS] two".to_owned()];
    let woken = play.must(Command::WakeSeats { seats, spec, messages, hatch_ms });
    let both = [(LEAD, "[WAKE AGENTS] one".to_owned()), (LEAD, "[WAKE AGENTS] two".to_owned())];
    assert_eq!(told(&woken), both);
}

#[test]
fn each_reply_of_the_inbox_is_taken_once() {
    let mut play = alive(&[0]);
    let reply = |key: &str, from: &str| Command::TakeReply { key: key.into(), from: from.into(), text: "hi".into() };
    let taken = play.must(reply("k1", "name0"));
    assert!(
        matches!(&taken[1].event, Event::Message(MessageEvent::Added { agent: a, kind: MessageKind::Assistant, .. }) if *a == agent(0))
    );
    assert_eq!(play.refused(reply("k1", "name0")), SeatRefusal::ReplyTaken);
    let stranger = play.must(reply("k2", "stranger"));
    assert!(matches!(&stranger[0].event, Event::Seat(SeatEvent::ReplyTaken { text: Some(_), position: None, .. })));
}

#[test]
fn a_reply_that_is_too_long_keeps_its_beginning() {
    let mut play = alive(&[0]);
    let text = format!("é{}", "x".repeat(2 * MAX_MESSAGE_BYTES));
    let taken = play.must(Command::TakeReply { key: "k".into(), from: "name0".into(), text });
    let Event::Message(MessageEvent::Added { content, .. }) = &taken[1].event else { panic!("{taken:?}") };
    assert!(content.len() <= MAX_MESSAGE_BYTES && content.starts_with("éxx"));
    assert!(
        content.ends_with("more bytes were left out; the inbox file has them]"),
        "{}",
        &content[content.len() - 80..]
    );
}

#[test]
fn an_artifact_of_the_lead_is_recorded_beside_the_result_of_its_tool() {
    let mut play = team("Kael");
    let content = |path: &str| match path {
        "memory/b.html" => {
            "<head><meta charset=\"utf-8\"><meta content='a letter' name=\"artifact-description\"></head>"
        }
        _ => "twelve bytes",
    };
    let call = |id: &str, path: &str| Output::ToolUse {
        id: id.into(),
        name: "Write".into(),
        input: serde_json::json!({ "file_path": path, "content": content(path) }).to_string(),
    };
    let result =
        |id: &str, content: &str, is_error| Output::ToolResult { id: id.into(), content: content.into(), is_error };
    // The call and its result in two reads of the output.
    play.says(LEAD, vec![call("t1", "/mill/memory/a.html")]);
    assert_eq!(play.world.seats().call("t1").map(|call| call.tool.as_str()), Some("Write"));
    let events = play.says(LEAD, vec![result("t1", "File created successfully at: /mill/memory/a.html", false)]);
    let written = |events: &[Record]| -> Vec<Event> {
        let of_seat = |record: &&Record| matches!(record.event, Event::Seat(SeatEvent::ArtifactWritten { .. }));
        events.iter().filter(of_seat).map(|record| record.event.clone()).collect()
    };
    let path = "/mill/memory/a.html".to_owned();
    let artifact = SeatEvent::ArtifactWritten {
        agent: LEAD,
        path,
        filename: "a.html".into(),
        bytes: 12,
        is_new: Some(true),
        meta: None,
    };
    assert_eq!(written(&events), [Event::Seat(artifact)]);
    assert!(events.iter().any(|record| matches!(
        &record.event,
        Event::Message(MessageEvent::Added { kind: MessageKind::ToolResult, .. })
    )));
    assert_eq!(play.world.seats().call("t1"), None);
    // In one read; elsewhere; and one that failed.
    let at_once = vec![call("t2", "memory/b.html"), result("t2", "The file memory/b.html has been updated.", false)];
    let events = play.says(LEAD, at_once);
    let Some(Event::Seat(SeatEvent::ArtifactWritten { is_new, meta, .. })) = written(&events).pop() else {
        panic!("{events:?}")
    };
    let described = ArtifactMeta { description: Some("a letter".into()), ..ArtifactMeta::default() };
    assert_eq!((is_new, meta), (Some(false), Some(described)));
    let others =
        vec![call("t3", "/tmp/c.html"), result("t3", "ok", false), call("t4", "memory/d"), result("t4", "no", true)];
    assert_eq!(written(&play.says(LEAD, others)), []);
    // A lead in codex.
    let changes = serde_json::json!({ "changes": [{ "path": "/mill/memory/e.html", "kind": "add", "diff": "new" }] });
    let patch = Output::ToolUse { id: "t5".into(), name: "apply_patch".into(), input: changes.to_string() };
    let events = play.says(LEAD, vec![patch, result("t5", "completed", false)]);
    assert!(matches!(
        &written(&events)[..],
        [Event::Seat(SeatEvent::ArtifactWritten { filename, bytes: 3, is_new: None, .. })] if filename == "e.html"
    ));
}

/// Nobody has read it. The lead passes it on, once, and its answer is that of the seat. So do later messages, until the seat sleeps.
#[test]
fn a_message_that_stays_unread_goes_through_the_lead() {
    let mut play = team("Kael");
    let message = told_at(&play.must(say(Some(at(0)), false)));
    let relay = |message| Command::RelayMessage { to: at(0), message, text: "hello".into() };
    let relayed = play.must(relay(message));
    assert_eq!(told(&relayed), [(LEAD, "[ROUTE TO AGENT: Lyra]\n\nhello".to_owned())]);
    let again = |record: &Record| matches!(record.event, Event::Seat(SeatEvent::Addressed { .. }));
    assert!(!relayed.iter().any(again), "it was said before: {relayed:?}");
    assert_eq!(play.refused(relay(message)), SeatRefusal::Relayed(message));
    hears(&mut play, &relayed);
    assert_eq!(spoken_for(&play.says_text(LEAD, "Lyra is well.")), [("Lyra is well.".to_owned(), Some(0))]);
    assert_eq!(reach(&play.world, at(0)), Ok(Reach::Lead), "it does not read its inbox");
    assert!(matches!(reach(&play.world, at(1)), Ok(Reach::Inbox { .. })), "the other one may");
    // Its next life may read again.
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":1}]}");
    assert_eq!(play.refused(relay(EventId(message.0 + 1))), SeatRefusal::Asleep(at(0)), "its memory has the message");
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0},{\"gridPosition\":1}]}");
    assert!(matches!(reach(&play.world, at(0)), Ok(Reach::Inbox { .. })));
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    assert_eq!(play.refused(relay(message)), SeatRefusal::NoSession);
    let mut play = alive(&[0]);
    assert_eq!(play.refused(relay(message)), SeatRefusal::NoLead, "the daemon has its process");
}

/// What was said before a wake is in the memory that the wake has told. It does not come a second time by the lead.
#[test]
fn what_a_wake_has_told_is_not_passed_on() {
    let mut play = team("Kael");
    let message = told_at(&play.must(say(Some(at(0)), false)));
    let relay = |message| Command::RelayMessage { to: at(0), message, text: "hello".into() };
    let others = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":1}]}";
    let all = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0},{\"gridPosition\":1}]}";
    play.says_text(LEAD, others);
    let Command::WakeSeats { mut seats, spec, messages, hatch_ms } = wake(&[(0, true)]) else { panic!("a wake") };
    seats[0].has_transcript = true;
    play.must(Command::WakeSeats { seats, spec, messages, hatch_ms });
    assert_eq!(play.refused(relay(message)), SeatRefusal::Relayed(message), "while it wakes");
    play.says_text(LEAD, all);
    assert_eq!(play.refused(relay(message)), SeatRefusal::Relayed(message));
    assert!(matches!(reach(&play.world, at(0)), Ok(Reach::Inbox { .. })), "it may read its inbox");
    let next = told_at(&play.must(say(Some(at(0)), false)));
    play.must(relay(next));
}

/// A seat that was not listed for a moment was not woken, and its memory is what it was. It is asked for once all the same, also by a
/// daemon that was killed after it had asked.
#[test]
fn a_message_is_passed_on_once_also_over_a_short_sleep() {
    let mut play = team("Kael");
    let message = told_at(&play.must(say(Some(at(0)), false)));
    let relay = |message| Command::RelayMessage { to: at(0), message, text: "hello".into() };
    let others = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":1}]}";
    let all = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0},{\"gridPosition\":1}]}";
    play.says_text(LEAD, others);
    play.says_text(LEAD, all);
    play.must(relay(message));
    play.says_text(LEAD, others);
    play.says_text(LEAD, all);
    assert!(matches!(reach(&play.world, at(0)), Ok(Reach::Inbox { .. })), "its next process may read");
    assert_eq!(play.refused(relay(message)), SeatRefusal::Relayed(message));
}
