//! Reports of the lead of which a part cannot be read.

use super::*;

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
