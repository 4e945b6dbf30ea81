//! Agents that have not chosen a name: how long they may take, and what ends their time early.

use super::*;

#[test]
fn an_egg_whose_process_is_gone_expires_at_once() {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    play.must(summon(&[0, 1], 0));
    play.runs(agent(0));
    play.runs(agent(1));
    assert_eq!(play.button(), Button::Waking);
    play.exits(agent(0));
    assert_eq!(play.state(0), Some(SeatState::Expired), "nobody is left who could choose a name");
    assert!(matches!(play.state(1), Some(SeatState::Hatching { .. })), "the other one has its time");
    play.exits(agent(1));
    assert_eq!(play.button(), Button::Summon, "and not five minutes later");
    play.must(summon(&[0], 10));
    assert!(matches!(play.state(0), Some(SeatState::Hatching { .. })));
}

/// A name in the last words of a process counts, although the process is gone by then.
#[test]
fn a_name_in_the_last_words_counts() {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    play.must(summon(&[0], 0));
    play.runs(agent(0));
    play.says_text(agent(0), "[AGENT_REGISTERED] {\"name\":\"Own\",\"individuationArtifact\":\"I am\"}");
    play.exits(agent(0));
    assert_eq!((play.state(0), play.soul(0).as_deref()), (Some(SeatState::ASLEEP), Some("I am")));
}

#[test]
fn a_session_that_ends_in_the_middle_of_a_summon_leaves_no_egg() {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    play.must(summon(&[0], 0));
    play.runs(agent(0));
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    play.closes(S, &[agent(0)]);
    assert_eq!((play.state(0), play.button()), (Some(SeatState::Expired), Button::Summon));
}

#[test]
fn a_rebirth_has_as_much_time_as_a_birth() {
    let mut play = soulless();
    let Command::WakeSeats { seats, spec, messages, .. } = wake(&[(7, false)]) else { panic!() };
    let command = |hatch_ms| Command::WakeSeats {
        seats: seats.clone(),
        spec: spec.clone(),
        messages: messages.clone(),
        hatch_ms,
    };
    assert!(matches!(play.tries(command(0)), Err(Refusal::HatchOutOfRange { ms: 0 })));
    play.must(command(20_000));
    assert_eq!(play.state(7), Some(SeatState::Hatching { until: Timestamp(play.now + 20_000) }));
    play.runs(agent(57));
    play.now += 20_000;
    play.must(Command::Tick);
    assert_eq!(play.state(7), Some(SeatState::Expired));
}
