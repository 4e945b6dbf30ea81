//! The lead's own process: how it begins, and what its end means for the session.

use super::*;
use hatchery_core::seat::{Reach, reach, team_managed};

const S2: SessionId = SessionId::from_bytes([3; 16]);

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
        assert!(play.world.conversation(LEAD).unwrap().waiting.len() >= 3, "the prompt and both messages wait for it");
    }
}

/// The daemon ran the seats before. Under a lead, their ended processes mean nothing: the lead says who is alive.
#[test]
fn seats_that_had_a_process_of_ours_live_under_a_lead() {
    let mut play = alive(&[0, 1]);
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    // One of the old processes is still dying when the lead begins.
    play.exits(agent(0));
    play.must(open(T, Mode::Lead));
    play.runs(LEAD);
    play.must(wake(&[(0, true), (1, true)]));
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0},{\"gridPosition\":1}]}");
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::Alive), Some(SeatState::Alive)));
    play.exits(agent(1));
    play.must(Command::CloseSession { session: S });
    for number in [0, 1] {
        assert_eq!(play.state(number.into()), Some(SeatState::Alive), "the end of its old process is not its end");
        let lifecycle = play.world.agent(agent(number)).unwrap().lifecycle;
        assert_eq!(lifecycle, Lifecycle::Alive { session: Some(T) }, "agent {number}");
        assert_eq!(team_managed(&play.world, agent(number)), Some(at(number.into())));
    }
    let name = "Name0".to_owned();
    assert_eq!(reach(&play.world, at(0)), Ok(Reach::Inbox { agent: agent(0), name }));
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":1}]}");
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::ASLEEP), Some(SeatState::Alive)));
    assert_eq!(play.world.agent(agent(0)).unwrap().lifecycle, Lifecycle::Sleeping);
    // And back: the daemon runs them again.
    play.must(Command::EndSession { session: T, reason: EndReason::User });
    play.closes(T, &[LEAD]);
    play.must(open(S2, Mode::Direct));
    play.must(wake(&[(0, true)]));
    play.runs(agent(0));
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::Alive), Some(SeatState::ASLEEP)));
}

/// The team is gone with the process of its lead. The next one may find it again, and has to say so.
#[test]
fn a_lead_that_is_started_again_has_to_report_anew() {
    for exit in [Exit::Code(3), Exit::LostWithMachine] {
        let mut play = Play::new();
        let lead = LeadOrder { spec: RunSpec { retries: 2, ..spec() }, ..lead() };
        let Command::OpenSeats { session, opened, .. } = open(S, Mode::Lead) else { panic!() };
        play.must(Command::OpenSeats { session, opened, lead: Some(Box::new(lead)) });
        play.runs(LEAD);
        play.must(summon(&[0, 1], 0));
        registers(&mut play, 0);
        let of = play.of(LEAD);
        let crashed = play.must(Command::ReportExit { of, exit, evidence: None });
        assert_eq!(session_ends(&crashed), [], "it is tried again");
        assert_eq!(play.state(0), Some(SeatState::ASLEEP));
        assert_eq!(play.world.agent(agent(0)).unwrap().lifecycle, Lifecycle::Sleeping);
        assert!(matches!(play.state(1), Some(SeatState::Hatching { .. })), "it may still get its name");
        play.now += 3_600_000;
        play.must(Command::Tick);
        play.runs(LEAD);
        assert_eq!((play.state(0), play.button()), (Some(SeatState::ASLEEP), Button::Wake));
        play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0}]}");
        assert_eq!(play.state(0), Some(SeatState::Alive));
    }
}

/// Its old process still speaks of the team that it had. The new session does not hear of it.
#[test]
fn the_last_words_of_an_old_process_are_no_report() {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    registers(&mut play, 0);
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    play.must(open(T, Mode::Lead));
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0}]}");
    assert_eq!(play.state(0), Some(SeatState::ASLEEP));
    play.exits(LEAD);
    play.runs(LEAD);
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0}]}");
    assert_eq!(play.state(0), Some(SeatState::Alive));
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
