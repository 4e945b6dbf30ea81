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
    // It has had a name all the time, so it is not a placeholder that nobody sees any more.
    assert_eq!((play.state(7), play.button()), (Some(SeatState::ASLEEP), Button::Wake));
    assert_eq!(play.world.seats().seat(at(7)).unwrap().called(), Some("Vael"));
    assert_eq!(play.refused(summon(&[7], 0)), SeatRefusal::NothingToSummon, "a summon never erases a name");
}

/// A log of an older version: there the seat had expired, and was summoned.
#[test]
fn a_summon_in_an_old_log_still_fills_its_seat() {
    let mut play = soulless();
    let egg = Egg { position: at(7), agent: agent(0), color: None, gender: None, until: Timestamp(9_000) };
    let event = Event::Seat(SeatEvent::Summoned { seats: vec![egg] });
    let record = Record { id: play.world.head().next(), ts: Timestamp(play.now), session: Some(S), event };
    play.world.apply(&record).unwrap();
    assert_eq!((play.state(7), play.occupant(7)), (Some(SeatState::Hatching { until: Timestamp(9_000) }), agent(0)));
}

fn soul_from_elsewhere(position: u64, status: SeatStatus) -> Command {
    let document = SeatDocument {
        position: at(position),
        vital: Vital { last_alive_at: Some(Timestamp(5)), status, last_session_id: None },
        births: vec![Born::of(&identity("Vael", "I am from elsewhere."), Some(Timestamp(1)))],
    };
    Command::ImportIdentities { documents: vec![document] }
}

/// No soul is left in a seat that no button can move.
#[test]
fn a_soul_that_arrives_while_somebody_hatches_can_be_woken() {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    play.must(summon(&[0, 1], 0));
    play.runs(agent(0));
    play.runs(agent(1));
    play.must(soul_from_elsewhere(0, SeatStatus::Sleeping));
    play.must(soul_from_elsewhere(1, SeatStatus::Sleeping));
    assert_eq!(play.refused(register(agent(0), "Lyra")), SeatRefusal::HasSoul(at(0)), "a soul is written once");
    play.exits(agent(0));
    play.now += HATCH_MS as i64;
    play.must(Command::Tick);
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::ASLEEP), Some(SeatState::ASLEEP)));
    assert_eq!(play.button(), Button::Wake);
    play.exits(agent(1));
    play.must(wake(&[(0, true)]));
    assert_eq!(play.soul(0).as_deref(), Some("I am from elsewhere."));
}

/// Whatever an imported document says, a summon does not erase its soul, and a clock that is ahead does not keep an egg.
#[test]
fn an_imported_soul_is_not_summoned_away() {
    let mut play = Play::new();
    play.must(soul_from_elsewhere(0, SeatStatus::Expired));
    assert_eq!((play.state(0), play.button()), (Some(SeatState::ASLEEP), Button::Wake));
    play.must(open(S, Mode::Direct));
    assert_eq!(play.refused(summon(&[0], 0)), SeatRefusal::NothingToSummon);
    let far = SeatDocument {
        position: at(1),
        vital: Vital { status: SeatStatus::Hatching, ..Vital::default() },
        births: vec![Born::of(&Identity::default(), Some(Timestamp(32_503_680_000_000)))],
    };
    play.must(Command::ImportIdentities { documents: vec![far] });
    play.now += HATCH_MS as i64;
    play.must(Command::Tick);
    assert_eq!(play.state(1), Some(SeatState::Expired));
}

#[test]
fn a_seat_that_is_named_twice_is_filled_once() {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    let summoned = play.must(summon(&[6, 6], 0));
    let runs = |record: &&Record| matches!(record.event, Event::Agent { what: AgentEvent::RunRequested { .. }, .. });
    assert_eq!((summoned.iter().filter(runs).count(), play.occupant(6)), (1, agent(0)));
}

/// A lead's agent without a name sleeps. That an agent hatches in this seat elsewhere does not make it an egg, for which nobody would
/// wait.
#[test]
fn an_egg_of_elsewhere_does_not_become_the_agent_that_sleeps_here() {
    for status in [SeatStatus::Hatching, SeatStatus::Expired] {
        let mut play = Play::new();
        play.must(open(S, Mode::Lead));
        play.runs(LEAD);
        play.says_text(
            LEAD,
            "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":3},{\"gridPosition\":5,\"name\":\"Vael\"}]}",
        );
        play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[]}");
        let elsewhere = |position| SeatDocument {
            position: at(position),
            vital: Vital { last_alive_at: Some(Timestamp(i64::MAX)), status, last_session_id: None },
            births: vec![Born::of(&Identity::default(), Some(Timestamp(900)))],
        };
        let documents = vec![elsewhere(3), elsewhere(5)];
        play.must(Command::ImportIdentities { documents: documents.clone() });
        assert_eq!((play.state(3), play.state(5)), (Some(SeatState::ASLEEP), Some(SeatState::ASLEEP)));
        assert_eq!(play.button(), Button::Wake);
        assert_eq!(play.must(Command::ImportIdentities { documents }), [], "the second time changes nothing");
        play.must(wake(&[(3, false), (5, false)]));
    }
}

/// The thread and the transcript of the seat are those of this soul.
#[test]
fn the_soul_of_a_killed_agent_stays_the_one_that_is_shown() {
    let mut play = alive(&[0]);
    play.must(Command::Kill { agent: agent(0), cascade: false, by: None, remark: None });
    play.must(soul_from_elsewhere(0, SeatStatus::Sleeping));
    assert_eq!(play.soul(0).as_deref(), Some("I am Name0."));
    let seat = play.world.seats().seat(at(0)).unwrap();
    assert_eq!(seat.others[0].soul.as_deref(), Some("I am from elsewhere."), "the other one is kept");
    play.must(wake(&[(0, true)]));
    assert_eq!(play.world.agent(play.occupant(0)).unwrap().name.as_deref(), Some("Name0"));
}
