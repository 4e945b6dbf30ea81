//! The lead's own process: how it begins, and what its end means for the session.

use super::*;

fn session_ends(events: &[Record]) -> Vec<EndReason> {
    let ends = events.iter().filter_map(|record| match &record.event {
        Event::Session { what: SessionEvent::Ending { reason }, .. } => Some(reason.clone()),
        _ => None,
    });
    ends.collect()
}

fn registers(play: &mut Play, position: u64) {
    let identity = format!("{{\"name\":\"N{position}\",\"gridPosition\":{position},\"individuationArtifact\":\"I\"}}");
    play.says_text(LEAD, &format!("[AGENT_REGISTERED] {identity}"));
}

/// The team ends with its lead: the session is over, its seats can be woken, and eggs do not block the button.
#[test]
fn a_lead_that_fails_for_good_ends_the_session_of_its_team() {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    play.must(summon(&[0, 1], 0));
    registers(&mut play, 0);
    let of = play.of(LEAD);
    let crashed = play.must(Command::ReportExit { of, exit: Exit::Code(3), evidence: None });
    assert_eq!(session_ends(&crashed), [EndReason::Failed]);
    assert_eq!(play.world.seats().lead_exit(), Some(3));
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::ASLEEP), Some(SeatState::Expired)));
    assert_eq!(play.button(), Button::Wake);
    play.must(Command::CloseSession { session: S });
    play.must(open(T, Mode::Lead));
    play.runs(LEAD);
    play.must(wake(&[(0, true)]));
    assert_eq!(play.world.seats().session().map(|open| open.id), Some(T), "the old end is not heard again");
}

#[test]
fn a_killed_lead_ends_the_session_of_its_team_and_is_no_crash() {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    let killed = play.must(Command::Kill { agent: LEAD, cascade: false, by: None, remark: None });
    assert_eq!(session_ends(&killed), [EndReason::User]);
}

/// Where the daemon runs the seats, they go on without a lead.
#[test]
fn seats_of_the_daemon_outlive_their_lead() {
    let mut play = alive(&[0]);
    let to_lead = Command::AddressSeat {
        to: None,
        text: "hello".into(),
        speaker: "Ada".into(),
        lead: Box::new(lead()),
        no_inbox: false,
    };
    play.must(to_lead.clone());
    play.runs(LEAD);
    let of = play.of(LEAD);
    let crashed = play.must(Command::ReportExit { of, exit: Exit::Code(3), evidence: None });
    assert_eq!(session_ends(&crashed), []);
    assert_eq!(play.state(0), Some(SeatState::Alive));
    play.must(to_lead);
    play.runs(LEAD);
}

/// The old process takes its time to die. There is one lead, which keeps its memory and hears all that is said meanwhile.
#[test]
fn a_quick_restart_waits_for_the_old_process_of_the_lead() {
    for mode in [Mode::Direct, Mode::Lead] {
        let mut play = Play::new();
        let start = |session, id: u8| {
            let Command::OpenSeats { opened, .. } = open(session, mode) else { panic!() };
            let lead = LeadOrder { agent: AgentId::from_bytes([id; 16]), ..lead() };
            Command::OpenSeats { session, opened, lead: Some(Box::new(lead)) }
        };
        play.must(start(S, 40));
        play.runs(LEAD);
        play.must(Command::EndSession { session: S, reason: EndReason::User });
        play.must(start(T, 41));
        assert_eq!(play.world.seats().lead(), Some(LEAD));
        assert!(play.world.agent(AgentId::from_bytes([41; 16])).is_none(), "no second lead");
        assert!(matches!(play.world.run(LEAD).unwrap().state, RunState::Stopping { .. }));
        let said = Command::AddressSeat {
            to: None,
            text: "are you there?".into(),
            speaker: "Ada".into(),
            lead: Box::new(lead()),
            no_inbox: false,
        };
        play.must(said);
        play.must(Command::Say { agent: LEAD, text: "and now?".into(), spec: Some(spec()) });
        play.exits(LEAD);
        assert_eq!(play.world.run(LEAD).unwrap().number, 2, "it begins as soon as the old one is gone");
        assert_eq!(play.world.agent(LEAD).unwrap().lifecycle, Lifecycle::Alive { session: Some(T) });
        play.must(Command::CloseSession { session: S });
        play.runs(LEAD);
        assert_eq!(play.world.seats().session().map(|open| open.id), Some(T));
        assert!(play.world.conversation(LEAD).unwrap().unheard.len() >= 3, "the prompt and both messages wait for it");
    }
}

/// A person who changes their mind: nothing starts after the end.
#[test]
fn a_lead_that_was_awaited_does_not_begin_after_the_end() {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    play.must(open(T, Mode::Lead));
    play.must(Command::EndSession { session: T, reason: EndReason::User });
    play.exits(LEAD);
    assert_eq!(play.world.run(LEAD).unwrap().number, 1);
    play.must(Command::CloseSession { session: S });
    play.must(Command::CloseSession { session: T });
}
