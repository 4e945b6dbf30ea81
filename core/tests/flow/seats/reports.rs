//! Reports of the lead of which a part cannot be read.

use super::*;
use hatchery_core::seat::{ListedStatus, SeatListed};

fn states(play: &Play) -> Vec<&'static str> {
    [0, 1, 2].into_iter().filter_map(|at| play.state(at)).map(SeatState::word).collect()
}

#[test]
fn an_entry_with_an_unknown_status_is_rejected_and_the_others_count() {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    for position in 0..3 {
        play.says_text(
            LEAD,
            &format!(
                "[AGENT_REGISTERED] {{\"name\":\"N{position}\",\"gridPosition\":{position},\"individuationArtifact\":\"I\"}}"
            ),
        );
    }
    assert_eq!(states(&play), ["alive", "alive", "alive"]);
    let events = play.says_text(
        LEAD,
        "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0,\"status\":\"shutdown\"},{\"gridPosition\":1,\"status\":\"dancing\"}]}",
    );
    let reasons: Vec<String> = events
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Seat(SeatEvent::MarkerRejected { reason, .. }) => Some(reason),
            _ => None,
        })
        .collect();
    assert!(reasons.len() == 1 && reasons[0].contains("entry 2") && reasons[0].contains("dancing"), "{reasons:?}");
    // A report with a part that cannot be read does not say who is gone.
    assert_eq!(states(&play), ["sleeping", "alive", "alive"]);
    // One without any part that can be read says nothing at all.
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":1,\"status\":\"dancing\"}]}");
    assert_eq!(states(&play), ["sleeping", "alive", "alive"]);
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[]}");
    assert_eq!(states(&play), ["sleeping", "sleeping", "sleeping"], "an empty list is whole");
}

/// A name that the lead reports is a name: its egg hatches, in time or late.
#[test]
fn an_egg_that_is_reported_with_a_name_has_hatched() {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    play.must(summon(&[0, 1], 0));
    let report =
        |position: u64| format!("[AGENT_STATUS] {{\"agents\":[{{\"gridPosition\":{position},\"name\":\"Lyra\"}}]}}");
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0}]}");
    assert!(matches!(play.state(0), Some(SeatState::Hatching { .. })), "without a name it stays an egg");
    play.says_text(LEAD, &report(0));
    let of_registry = play.world.agent(agent(0)).unwrap();
    assert_eq!(
        (of_registry.name.as_deref(), of_registry.lifecycle),
        (Some("Lyra"), Lifecycle::Alive { session: Some(S) })
    );
    play.now += HATCH_MS as i64;
    play.must(Command::Tick);
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::Alive), Some(SeatState::Expired)));
    // Late, the lead brings one back.
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0},{\"gridPosition\":1}]}");
    assert_eq!(play.state(1), Some(SeatState::Expired), "nobody has a name there");
    play.says_text(LEAD, &report(1));
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::ASLEEP), Some(SeatState::Alive)));
    let brought = play.world.agent(play.occupant(1)).unwrap();
    assert_eq!((brought.name.as_deref(), brought.lifecycle), (Some("Lyra"), Lifecycle::Alive { session: Some(S) }));
    // Their souls may follow.
    let soul = "[AGENT_REGISTERED] {\"name\":\"Kael\",\"gridPosition\":1,\"individuationArtifact\":\"I am Kael\"}";
    play.says_text(LEAD, soul);
    assert_eq!(play.soul(1).as_deref(), Some("I am Kael"));
    assert_eq!(play.world.seats().seat(at(1)).unwrap().called(), Some("Kael"));
}

/// Whatever the lead calls its agents: they can be woken, and their documents go elsewhere.
#[test]
fn a_bad_name_in_a_report_blocks_nothing() {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    let long = "x".repeat(1_000);
    let said = play.says_text(
        LEAD,
        &format!("[AGENT_STATUS] {{\"agents\":[{{\"gridPosition\":0,\"name\":\"{long}\"}},{{\"gridPosition\":1,\"name\":\"\"}}]}}"),
    );
    let rejected = |record: &&Record| matches!(record.event, Event::Seat(SeatEvent::MarkerRejected { .. }));
    assert_eq!(said.iter().filter(rejected).count(), 2);
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::Alive), Some(SeatState::Alive)));
    assert_eq!(play.world.seats().seat(at(0)).unwrap().called(), None);
    let documents: Vec<SeatDocument> =
        play.world.seats().iter().map(|(position, seat)| SeatDocument::of(position, seat)).collect();
    Play::new().must(Command::ImportIdentities { documents });
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[]}");
    play.must(wake(&[(0, false), (1, false)]));
    // A log of an older version may have such a name.
    let listed = SeatListed { position: at(2), name: Some(long), status: ListedStatus::Alive };
    let event = Event::Seat(SeatEvent::Reported { by: Some(LEAD), agents: vec![listed] });
    let record = Record { id: play.world.head().next(), ts: Timestamp(play.now), session: Some(S), event };
    play.world.apply(&record).unwrap();
    assert_eq!((play.state(2), play.world.seats().seat(at(2)).unwrap().called()), (Some(SeatState::Alive), None));
}

/// A client that has lost what it knew asks for it. Nothing changes by it, in either mode.
#[test]
fn who_is_alive_is_said_again() {
    let mut play = Play::new();
    assert_eq!(play.refused(Command::RestateSeats), SeatRefusal::NoSession);
    let mut play = alive(&[0, 1]);
    play.must(Command::StopRun { agent: agent(1) });
    let before = [play.state(0), play.state(1)];
    let said = play.must(Command::RestateSeats);
    assert_eq!(said.len(), 1, "{said:?}");
    let Event::Seat(SeatEvent::Reported { by: None, agents }) = &said[0].event else { panic!("{said:?}") };
    assert_eq!(agents.iter().map(|listed| listed.position.number()).collect::<Vec<_>>(), [0]);
    assert_eq!([play.state(0), play.state(1)], before);
}
