//! Seats: summon, register, report, wake, and the ends of sessions.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use crate::given::{R, S, T};
use hatchery_core::agent::{Birth, Lifecycle};
use hatchery_core::event::{AgentEvent, Egg, MessageEvent, RunEvent, SeatEvent, SessionEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::output::Output;
use hatchery_core::run::{AttemptId, Process, RunSpec, RunState};
use hatchery_core::seat::{
    Born, Button, EggOrder, HATCH_MS, Identity, LeadOrder, MAX_SOUL_BYTES, Mode, Position, Rising, SeatDocument,
    SeatRefusal, SeatState, SeatStatus, Vital, WAKE_MS, button,
};
use hatchery_core::session::EndReason;
use hatchery_core::{
    AgentId, Command, Event, EventId, Exit, MessageKind, Record, Refusal, SessionId, Timestamp, World, plan, step,
};

mod eggs;
mod leads;
mod markers;
mod reports;
mod words;

/// A world, its log, the time in it, and how many bytes each process has said.
struct Play {
    world: World,
    log: Vec<Record>,
    now: i64,
}

const LEAD: AgentId = AgentId::from_bytes([40; 16]);

fn agent(number: u8) -> AgentId {
    AgentId::from_bytes([100 + number; 16])
}

fn at(number: u64) -> Position {
    Position::new(number).unwrap()
}

fn spec() -> RunSpec {
    RunSpec {
        harness: "scripted".into(),
        host: "mill".into(),
        folder: None,
        model: None,
        script: None,
        stays: true,
        stall_ms: 600_000,
        kill_stuck: false,
        permissions: None,
        retries: 0,
        parks: true,
        signals: false,
    }
}

fn identity(name: &str, soul: &str) -> Identity {
    Identity { name: Some(name.into()), soul: Some(soul.into()), ..Identity::default() }
}

fn open(session: SessionId, mode: Mode) -> Command {
    let opened = SeatEvent::Opened {
        session,
        mode,
        pid: None,
        demo: false,
        model: None,
        with_transcript: false,
        with_catalog: false,
    };
    let lead = (mode == Mode::Lead).then(|| Box::new(lead()));
    Command::OpenSeats { session, opened, lead }
}

fn lead() -> LeadOrder {
    LeadOrder { agent: LEAD, prompt: "lead".into(), spec: spec() }
}

fn summon(positions: &[u64], first_id: u8) -> Command {
    let egg = |(offset, position): (u8, &u64)| EggOrder {
        position: at(*position),
        agent: agent(first_id + offset),
        color: Some("#007e98".into()),
        gender: Some("woman".into()),
        prompt: "choose a name".into(),
    };
    let eggs = (0..).zip(positions).map(egg).collect();
    Command::SummonSeats { eggs, spec: Box::new(spec()), message: "[SUMMON AGENTS]".into(), hatch_ms: HATCH_MS }
}

fn wake(seats: &[(u64, bool)]) -> Command {
    let rising = |(position, has_soul): &(u64, bool)| Rising {
        position: at(*position),
        agent: agent(50 + u8::try_from(*position).unwrap()),
        prompt: format!("wake up, seat {position}"),
        has_soul: *has_soul,
        has_transcript: false,
        untold_upto: EventId::START,
    };
    let seats = seats.iter().map(rising).collect();
    let messages = vec!["[WAKE AGENTS]".into()];
    Command::WakeSeats { seats, spec: Box::new(spec()), messages, hatch_ms: HATCH_MS }
}

fn register(agent: AgentId, name: &str) -> Command {
    let identity = identity(name, &format!("I am {name}."));
    Command::RegisterSeat { agent, position: None, identity }
}

impl Play {
    fn new() -> Self {
        let mut play = Self { world: World::default(), log: Vec::new(), now: 1_000 };
        play.must(Command::FoundRegistry { agent: R, name: None });
        play
    }

    /// Does a command, and checks that the log alone leads to the same world.
    fn tries(&mut self, command: Command) -> Result<Vec<Record>, Refusal> {
        let records = step(&mut self.world, &command, Timestamp(self.now))?;
        self.log.extend(records.iter().cloned());
        let mut replayed = World::default();
        for record in &self.log {
            let read = Record::read(record.id, &record.body()).unwrap();
            assert_eq!(read, *record);
            replayed.apply(&read).unwrap();
        }
        assert_eq!(replayed, self.world);
        Ok(records)
    }

    #[track_caller]
    fn must(&mut self, command: Command) -> Vec<Record> {
        self.tries(command).unwrap()
    }

    #[track_caller]
    fn refused(&mut self, command: Command) -> SeatRefusal {
        match self.tries(command).unwrap_err() {
            Refusal::Seat(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    fn state(&self, position: u64) -> Option<SeatState> {
        self.world.seats().seat(at(position)).map(|seat| seat.state)
    }

    fn soul(&self, position: u64) -> Option<String> {
        self.world.seats().seat(at(position))?.identity.soul.as_deref().map(str::to_owned)
    }

    fn occupant(&self, position: u64) -> AgentId {
        self.world.seats().seat(at(position)).unwrap().agent.unwrap()
    }

    fn of(&self, agent: AgentId) -> AttemptId {
        self.world.run(agent).unwrap().attempt_id(agent)
    }

    /// The process of an agent starts and shows that our tools answer it.
    fn runs(&mut self, agent: AgentId) {
        let of = self.of(agent);
        let (process, session) = (Process { pid: 1, began: 1 }, format!("conversation of {agent} {}", of.run));
        let capabilities = Capabilities::ALL;
        self.must(Command::ReportSpawn { of, process, session: Some(session.clone()), copy_of: None, capabilities });
        self.says(agent, vec![Output::Ready { session, model: None, version: None, tools: Vec::new() }]);
    }

    fn says(&mut self, agent: AgentId, outputs: Vec<Output>) -> Vec<Record> {
        let of = self.of(agent);
        let from = self.world.run(agent).unwrap().attempt.spooled;
        self.must(Command::TakeOutput { of, from, upto: from + 1, outputs })
    }

    fn says_text(&mut self, agent: AgentId, text: &str) -> Vec<Record> {
        self.says(agent, vec![Output::Text { text: text.into() }])
    }

    fn exits(&mut self, agent: AgentId) -> Vec<Record> {
        let of = self.of(agent);
        self.must(Command::ReportExit { of, exit: Exit::Code(0), evidence: None })
    }

    /// A session's end as the shell brings it about.
    fn closes(&mut self, session: SessionId, agents: &[AgentId]) {
        for agent in agents {
            self.exits(*agent);
        }
        self.must(Command::CloseSession { session });
    }

    fn button(&self) -> Button {
        button(self.world.seats().iter().map(|(_, seat)| seat.state))
    }
}

/// A session with these seats alive: seat n has agent n.
fn alive(positions: &[u64]) -> Play {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    play.must(summon(positions, 0));
    for number in 0..u8::try_from(positions.len()).unwrap() {
        play.runs(agent(number));
        play.must(register(agent(number), &format!("Name{number}")));
    }
    play
}

#[test]
fn the_birth_path() {
    let mut play = Play::new();
    assert_eq!(play.refused(summon(&[0], 0)), SeatRefusal::NoSession);
    play.must(open(S, Mode::Direct));
    assert_eq!(play.refused(open(T, Mode::Direct)), SeatRefusal::Active(S));
    play.must(summon(&[0, 1], 0));
    assert_eq!(play.state(0), Some(SeatState::Hatching { until: Timestamp(1_000 + HATCH_MS as i64) }));
    assert_eq!(play.button(), Button::Waking);
    // Its first words do not hatch it: a name does.
    play.runs(agent(0));
    play.says_text(agent(0), "Who am I?");
    assert!(matches!(play.world.agent(agent(0)).unwrap().lifecycle, Lifecycle::Hatching { .. }));
    play.must(register(agent(0), "Lyra"));
    assert_eq!(play.state(0), Some(SeatState::Alive));
    assert_eq!(play.world.agent(agent(0)).unwrap().lifecycle, Lifecycle::Alive { session: Some(S) });
    assert_eq!(play.world.agent(agent(0)).unwrap().name.as_deref(), Some("Lyra"));
    let seat = play.world.seats().seat(at(0)).unwrap();
    assert_eq!(seat.identity.color.as_deref(), Some("#007e98"), "what the egg was given stays");
    assert_eq!(seat.last_session.as_deref(), Some("01010101-0101-0101-0101-010101010101"));
    assert_eq!(play.refused(register(agent(0), "Other")), SeatRefusal::HasSoul(at(0)));
    assert_eq!(play.refused(register(R, "Root")), SeatRefusal::NoSeat(R));
}

#[test]
fn three_of_eight_register_and_five_expire_by_the_timer() {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    play.must(summon(&[0, 1, 2, 3, 5, 6, 7, 8], 0));
    for number in 0..8 {
        play.runs(agent(number));
    }
    for number in 0..3 {
        play.must(register(agent(number), "Same name"));
    }
    assert_eq!(plan(&play.world).wake_at, Some(Timestamp(1_000 + HATCH_MS as i64)));
    play.now += HATCH_MS as i64 - 1;
    play.must(Command::Tick);
    assert_eq!(play.state(8), Some(SeatState::Hatching { until: Timestamp(1_000 + HATCH_MS as i64) }));
    play.now += 1;
    play.must(Command::Tick);
    let states: Vec<&str> = (0..9).filter_map(|at| play.state(at)).map(SeatState::word).collect();
    assert_eq!(states, ["alive", "alive", "alive", "expired", "expired", "expired", "expired", "expired"]);
    assert_eq!(play.button(), Button::None);
    // Their processes are to be stopped.
    assert!(matches!(play.world.run(agent(7)).unwrap().state, RunState::Stopping { .. }));
    // A summon over expired seats starts them anew, and leaves the others alone.
    play.must(summon(&[0, 1, 2, 3, 5, 6, 7, 8], 20));
    assert!(matches!(play.state(3), Some(SeatState::Hatching { .. })));
    assert_eq!((play.state(0), play.occupant(0)), (Some(SeatState::Alive), agent(0)));
    assert_eq!(play.refused(summon(&[0, 1], 40)), SeatRefusal::NothingToSummon);
    assert_eq!(play.refused(summon(&[4], 40)), SeatRefusal::LeadSeat(at(4)));
}

#[test]
fn a_name_that_arrives_in_time_wins_over_the_timer() {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    play.must(summon(&[0], 0));
    play.runs(agent(0));
    play.now += HATCH_MS as i64 + 10_000;
    // Nobody has looked at the clock yet.
    play.must(register(agent(0), "Late"));
    assert_eq!(play.state(0), Some(SeatState::Alive));
    play.must(Command::Tick);
    assert_eq!(play.state(0), Some(SeatState::Alive));
}

#[test]
fn a_session_ends_and_the_seats_are_woken_with_a_new_conversation() {
    let mut play = alive(&[0, 1]);
    let soul = play.soul(0);
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    // At once, and not only when the processes are gone.
    assert_eq!(play.state(0), Some(SeatState::ASLEEP));
    assert_eq!(play.button(), Button::Wake);
    play.closes(S, &[agent(0), agent(1)]);
    play.must(open(T, Mode::Direct));
    let woken = play.must(wake(&[(0, true), (1, true)]));
    let clears =
        |record: &&Record| matches!(record.event, Event::Message(MessageEvent::Added { kind: MessageKind::Clear, .. }));
    assert_eq!(woken.iter().filter(clears).count(), 2);
    assert_eq!(play.occupant(0), agent(0), "the same agent sits there again");
    assert_eq!(play.button(), Button::Waking);
    play.runs(agent(0));
    assert_eq!((play.state(0), play.soul(0)), (Some(SeatState::Alive), soul));
    assert_eq!(play.world.agent(agent(0)).unwrap().lifecycle, Lifecycle::Alive { session: Some(T) });
    // A wake that nobody answers ends, so that it can be repeated.
    play.now += WAKE_MS as i64;
    play.must(Command::Tick);
    assert_eq!((play.state(1), play.button()), (Some(SeatState::ASLEEP), Button::Wake));
    assert_eq!(play.refused(wake(&[(0, true)])), SeatRefusal::NothingToWake);
}

/// The old process takes its time to die. The wake waits for it, and the second session never hears of the first one's end.
#[test]
fn a_wake_waits_for_the_old_process() {
    let mut play = alive(&[0]);
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    play.must(open(T, Mode::Direct));
    play.must(wake(&[(0, true)]));
    assert!(matches!(play.world.run(agent(0)).unwrap().state, RunState::Stopping { .. }));
    assert!(matches!(play.state(0), Some(SeatState::Sleeping { waking: Some(_) })));
    play.exits(agent(0));
    assert_eq!(play.world.run(agent(0)).unwrap().number, 2, "it begins as soon as the old one is gone");
    play.must(Command::CloseSession { session: S });
    play.runs(agent(0));
    assert_eq!(play.state(0), Some(SeatState::Alive));
    assert_eq!(play.world.agent(agent(0)).unwrap().lifecycle, Lifecycle::Alive { session: Some(T) });
    let seat = play.world.seats().seat(at(0)).unwrap();
    assert_eq!(seat.last_session.as_deref(), Some("02020202-0202-0202-0202-020202020202"));
}

#[test]
fn a_process_that_is_gone_puts_its_seat_to_sleep() {
    let mut play = alive(&[0, 1]);
    play.must(Command::StopRun { agent: agent(0) });
    assert_eq!(play.state(0), Some(SeatState::ASLEEP));
    assert_eq!(play.state(1), Some(SeatState::Alive));
    play.exits(agent(0));
    assert_eq!(play.button(), Button::Wake);
    play.must(wake(&[(0, true)]));
    play.runs(agent(0));
    assert_eq!(play.button(), Button::None);
}

#[test]
fn a_killed_agent_leaves_its_seat_and_the_next_one_inherits_the_soul() {
    let mut play = alive(&[0]);
    play.must(Command::Kill { agent: agent(0), cascade: false, by: None, remark: None });
    assert_eq!((play.state(0), play.soul(0).as_deref()), (Some(SeatState::ASLEEP), Some("I am Name0.")));
    play.must(wake(&[(0, true)]));
    assert_eq!(play.occupant(0), agent(50));
    assert_eq!(play.world.agent(agent(50)).unwrap().name.as_deref(), Some("Name0"));
}

/// The child inherits what was said, and neither the seat nor its voice.
#[test]
fn a_fork_of_an_agent_in_a_seat_sits_in_none() {
    let mut play = alive(&[0]);
    let birth = Birth { run: Some(Box::new(spec())), ..Birth::of(agent(60)) };
    play.must(Command::Fork { parent: agent(0), at: None, birth });
    assert_eq!((play.occupant(0), play.state(0)), (agent(0), Some(SeatState::Alive)));
    assert_eq!(play.world.seats().position_of(agent(60)), None);
    play.runs(agent(60));
    let said = play.says_text(agent(60), "[AGENT_REGISTERED] {\"name\":\"Other\",\"individuationArtifact\":\"x\"}");
    assert!(!said.iter().any(|record| matches!(record.event, Event::Seat(_))), "{said:?}");
    assert_eq!(play.soul(0).as_deref(), Some("I am Name0."));
    // The session of the seats ends without it.
    play.must(Command::EndSession { session: S, reason: EndReason::User });
    assert!(play.world.run(agent(60)).unwrap().is_open());
}

/// Somebody sleeps in seat 7 who was imported with a name and without a soul.
fn soulless() -> Play {
    let mut play = Play::new();
    let document = SeatDocument {
        position: at(7),
        vital: Vital { last_alive_at: Some(Timestamp(5)), status: SeatStatus::Sleeping, last_session_id: None },
        births: vec![Born::of(&Identity { name: Some("Vael".into()), ..Identity::default() }, None)],
    };
    play.must(Command::ImportIdentities { documents: vec![document] });
    play.must(open(S, Mode::Direct));
    play
}

#[test]
fn without_a_soul_a_wake_is_a_birth() {
    let mut play = soulless();
    assert_eq!(play.refused(wake(&[(7, true)])), SeatRefusal::Changed(at(7)));
    play.must(wake(&[(7, false)]));
    assert!(matches!(play.state(7), Some(SeatState::Hatching { .. })));
    play.runs(agent(57));
    play.must(register(agent(57), "Vael"));
    assert_eq!(play.soul(7).as_deref(), Some("I am Vael."));
}

#[test]
fn the_lead_is_the_authority_also_with_an_empty_list() {
    let mut play = Play::new();
    play.must(open(S, Mode::Lead));
    play.runs(LEAD);
    play.must(summon(&[0, 1, 2], 0));
    assert!(play.world.run(agent(0)).is_none(), "the lead has the processes");
    play.says_text(
        LEAD,
        "[AGENT_REGISTERED] {\"name\":\"Lyra\",\"gridPosition\":0,\"individuationArtifact\":\"I am Lyra\"}",
    );
    play.says_text(
        LEAD,
        "[AGENT_REGISTERED] {\"name\":\"Cael\",\"gridPosition\":1,\"individuationArtifact\":\"I am Cael\"}",
    );
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::Alive), Some(SeatState::Alive)));
    // A report in the middle of a summon: eggs stay eggs. Its status counts, and an unknown seat is created.
    play.says_text(
        LEAD,
        "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0,\"status\":\"idle\"},{\"gridPosition\":1,\"status\":\"shutdown\"},\
         {\"gridPosition\":8,\"name\":\"Vael\"}]}",
    );
    let states: Vec<&str> = [0, 1, 2, 8].into_iter().filter_map(|at| play.state(at)).map(SeatState::word).collect();
    assert_eq!(states, ["alive", "sleeping", "hatching", "alive"]);
    assert_eq!(play.world.agent(agent(1)).unwrap().lifecycle, Lifecycle::Sleeping);
    play.says_text(LEAD, "I have lost my team.\n[AGENT_STATUS] {\"agents\":[]}\nSorry.");
    let states: Vec<&str> = [0, 1, 2, 8].into_iter().filter_map(|at| play.state(at)).map(SeatState::word).collect();
    assert_eq!(states, ["sleeping", "sleeping", "hatching", "sleeping"]);
    assert_eq!(play.soul(0).as_deref(), Some("I am Lyra"), "a report never touches an identity");
    // A wake goes through the lead, and its next report counts.
    play.now += HATCH_MS as i64;
    play.must(Command::Tick);
    assert_eq!(play.button(), Button::Wake);
    play.must(wake(&[(0, true), (1, true)]));
    play.says_text(LEAD, "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0}]}");
    assert_eq!(play.state(0), Some(SeatState::Alive));
    assert!(matches!(play.state(1), Some(SeatState::Sleeping { waking: Some(_) })), "the other one may still come");
    assert_eq!(play.world.agent(agent(0)).unwrap().lifecycle, Lifecycle::Alive { session: Some(S) });
}

/// Registration and status at once: whatever the order, the soul stays.
#[test]
fn a_report_and_a_registration_in_one_breath() {
    let registered =
        "[AGENT_REGISTERED] {\"name\":\"Lyra\",\"gridPosition\":0,\"individuationArtifact\":\"I am Lyra\"}";
    let status = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0}]}";
    let named = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0,\"name\":\"Lyra\"}]}";
    let soulless = "[AGENT_REGISTERED] {\"name\":\"Lyra\",\"gridPosition\":0}";
    let orders = [
        [registered, status],
        [status, registered],
        [registered, named],
        [named, registered],
        [soulless, registered],
        [registered, soulless],
    ];
    for words in orders.map(|both| both.join("\n")) {
        let mut play = Play::new();
        play.must(open(S, Mode::Lead));
        play.runs(LEAD);
        play.must(summon(&[0], 0));
        play.says_text(LEAD, &words);
        assert_eq!((play.state(0), play.soul(0).as_deref()), (Some(SeatState::Alive), Some("I am Lyra")));
        // A second registration does not touch it either.
        let again = registered.replace("Lyra", "Kael");
        let events = play.says_text(LEAD, &again);
        let rejected = |record: &Record| matches!(record.event, Event::Seat(SeatEvent::MarkerRejected { .. }));
        assert!(events.iter().any(rejected), "{events:?}");
        assert_eq!(play.soul(0).as_deref(), Some("I am Lyra"));
    }
}

#[test]
fn nobody_speaks_for_another_seat() {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    play.must(summon(&[0, 1], 0));
    play.runs(agent(0));
    let reason = |events: Vec<Record>| {
        events.into_iter().find_map(|record| match record.event {
            Event::Seat(SeatEvent::MarkerRejected { reason, .. }) => Some(reason),
            _ => None,
        })
    };
    let other = "[AGENT_REGISTERED] {\"name\":\"X\",\"gridPosition\":1,\"individuationArtifact\":\"x\"}";
    let events = play.says_text(agent(0), other);
    assert!(reason(events).unwrap().contains("cannot speak for seat 1"));
    let events = play.says_text(agent(0), "[AGENT_STATUS] {\"agents\":[]}");
    assert!(reason(events).unwrap().contains("only the lead"));
    // A marker in prose puts nobody to sleep and registers nobody.
    let events = play.says_text(agent(0), "I could write [AGENT_STATUS] {\"agents\":[]} or not.");
    assert_eq!(reason(events), None);
    // Its own registration by a marker counts.
    play.says_text(agent(0), "[AGENT_REGISTERED] {\"name\":\"Own\",\"individuationArtifact\":\"I am\"}");
    assert_eq!((play.state(0), play.state(1).map(SeatState::word)), (Some(SeatState::Alive), Some("hatching")));
}

#[test]
fn a_registration_that_is_not_whole_is_refused() {
    let mut play = Play::new();
    play.must(open(S, Mode::Direct));
    play.must(summon(&[0], 0));
    let mut tries = |identity| play.refused(Command::RegisterSeat { agent: agent(0), position: None, identity });
    assert_eq!(tries(Identity { soul: Some("x".into()), ..Identity::default() }), SeatRefusal::NoName);
    assert_eq!(tries(identity("Lyra", " ")), SeatRefusal::NoSoul);
    let bytes = MAX_SOUL_BYTES + 1;
    assert_eq!(tries(identity("Lyra", &"x".repeat(bytes))), SeatRefusal::SoulTooLong { bytes });
    let position = Some(at(3));
    let command = Command::RegisterSeat { agent: agent(0), position, identity: identity("Lyra", "x") };
    let refusal = SeatRefusal::OtherSeat { agent: agent(0), own: at(0), other: at(3) };
    assert_eq!(play.refused(command), refusal);
}

#[test]
fn an_import_merges_and_never_replaces_a_soul() {
    let mut play = alive(&[0]);
    let document = |position: u64, soul: &str, status| SeatDocument {
        position: at(position),
        vital: Vital { last_alive_at: Some(Timestamp(i64::MAX)), status, last_session_id: Some("elsewhere".into()) },
        births: vec![Born::of(&identity("Other", soul), Some(Timestamp(1)))],
    };
    let documents = vec![document(0, "another soul", SeatStatus::Sleeping), document(1, "a soul", SeatStatus::Alive)];
    play.must(Command::ImportIdentities { documents: documents.clone() });
    assert_eq!(play.soul(0).as_deref(), Some("I am Name0."), "its own soul stays");
    assert_eq!(play.state(0), Some(SeatState::Alive), "its process runs here");
    let others = &play.world.seats().seat(at(0)).unwrap().others;
    assert_eq!(others[0].soul.as_deref(), Some("another soul"), "and the other one is not lost");
    // Alive elsewhere: here it can be woken.
    assert_eq!((play.state(1), play.soul(1).as_deref()), (Some(SeatState::ASLEEP), Some("a soul")));
    assert_eq!(play.must(Command::ImportIdentities { documents }), [], "the second time changes nothing");
    let lead = Command::ImportIdentities { documents: vec![document(4, "x", SeatStatus::Alive)] };
    assert_eq!(play.refused(lead), SeatRefusal::LeadSeat(at(4)));
}

#[test]
fn an_imported_egg_expires_and_one_with_a_name_sleeps() {
    let mut play = Play::new();
    let egg = |position: u64, name: Option<&str>| SeatDocument {
        position: at(position),
        vital: Vital { status: SeatStatus::Hatching, ..Vital::default() },
        births: vec![Born::of(&Identity { name: name.map(Into::into), ..Identity::default() }, Some(Timestamp(900)))],
    };
    play.must(Command::ImportIdentities { documents: vec![egg(0, None), egg(1, Some("Lyra"))] });
    assert_eq!(play.state(1), Some(SeatState::ASLEEP), "no ghost that no button could move");
    assert_eq!(plan(&play.world).wake_at, Some(Timestamp(900 + HATCH_MS as i64)));
    play.now += HATCH_MS as i64;
    play.must(Command::Tick);
    assert_eq!(play.state(0), Some(SeatState::Expired));
}

#[test]
fn the_daemon_reports_when_it_starts_again() {
    let mut play = alive(&[0, 1]);
    let of = play.of(agent(0));
    let crashed = play.must(Command::ReportExit { of, exit: Exit::LostWithMachine, evidence: None });
    let reports = |record: &&Record| matches!(&record.event, Event::Seat(SeatEvent::Reported { by: None, agents }) if agents.len() == 1);
    assert_eq!(crashed.iter().filter(reports).count(), 1);
    assert!(crashed.iter().any(|record| matches!(record.event, Event::Run { what: RunEvent::Ended { .. }, .. })));
    assert!(!crashed.iter().any(|record| matches!(record.event, Event::Agent { what: AgentEvent::Killed { .. }, .. })));
    assert_eq!((play.state(0), play.state(1)), (Some(SeatState::ASLEEP), Some(SeatState::Alive)));
}
