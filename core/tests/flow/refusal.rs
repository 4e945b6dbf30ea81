//! Every "no", at least once, and what programs and people are told about it.

use crate::given::*;
use crate::run::words::*;
use crate::{permissions, quest, run};
use hatchery_core::agent::{Birth, MAX_PENDING_FORKS, MAX_REMARK_BYTES, check_given_name, resolve};
use hatchery_core::ask::About;
use hatchery_core::event::{QuestionEvent, RequestEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::history::{MAX_MARK_BYTES, MAX_MESSAGE_BYTES, RewindTo};
use hatchery_core::mail::MAX_MAIL_BYTES;
use hatchery_core::outcome::Exit;
use hatchery_core::refusal::RefusalKind::{self, Invalid, Missing, Untimely};
use hatchery_core::request::Request;
use hatchery_core::run::{AttemptId, ForeignSession, RunSpec, StopWhy};
use hatchery_core::seat::{Identity, SeatRefusal};
use hatchery_core::session::EndReason::User;
use hatchery_core::session::MAX_LABEL_BYTES;
use hatchery_core::status::{EditError, StatusChange};
use hatchery_core::{Address, AgentId, Command, Event, EventId, Fingerprint, MessageKind, Refusal, RequestId};
use std::collections::BTreeSet;

/// Names all variants and tells one from another, so that a new one does not compile until it is listed, and listed does
/// not pass until it is tested.
macro_rules! variants {
    ($($variant:ident)+) => {
        const VARIANTS: &[&str] = &[$(stringify!($variant)),+];

        fn variant(refusal: &Refusal) -> &'static str {
            match refusal {
                $(Refusal::$variant { .. } => stringify!($variant),)+
            }
        }
    };
}

variants! {
    Seat UnknownSession SessionExists SessionOver SessionEnding SessionNotEnding
    UnknownAgent AgentExists AgentDead AgentExpired AgentAwake NobodyCalled Ambiguous NameTaken
    RootExists RootIsImmortal KillsAncestor ForkPending NotInHistory NoSuchMark NoMail NotUnread
    NoQuestion BadAnswer NoRule TooManyRules HasHarnessSession HarnessSessionTaken
    RunOpen OtherHarness ForkWithoutPrompt OptionsOfNoRun NoRun NoTurn CannotInterrupt RunStopping StaleAttempt OutputTaken CallTaken StallOutOfRange TooManyRetries BadSpec
    NoSuchHarness RootWithoutSandbox
    UnknownQuest NoQuestCalled AmbiguousQuest QuestExists QuestOver QuestPaused QuestOpen NoRoot NoPlan BadRequest SlotsOutOfRange WardOutOfRange
    BadWard NoWard BadTable BadStepId BadPlan BadRequirements BadSignal SignalTooLong UnknownStep NoAssignment OtherStep
    NotAtWork Signalled MayNotSignal MayNotCall WrongRole NothingHandedIn StepNotFailed StaleChore TooManyStepForks
    Status RequestTaken RequestIdUsed
    LabelTooLong IdleOutOfRange BadName MessageTooLong RemarkTooLong MarkTooLong MailTooLong HatchOutOfRange
}

fn bad_path() -> EditError {
    EditError::BadPath { path: "\"\"".into(), why: "it has an empty name, or it is too long".into() }
}

/// A change of a field without a name.
fn unnamed_field() -> Command {
    let patch = r#"{"":1}"#.parse().expect("JSON");
    Command::ChangeStatus { change: Box::new(StatusChange::Merge { patch }) }
}

/// S is open, T has ended; A is alive and as many forks of it wait as may, B is dead, C has expired, D descends from A.
fn cases() -> Vec<(Command, Refusal, RefusalKind, &'static str)> {
    let is_over = || Refusal::SessionOver { session: T, reason: User };
    let label = Some("x".repeat(MAX_LABEL_BYTES + 1));
    let remark = Some("x".repeat(MAX_REMARK_BYTES + 1));
    let message = "x".repeat(MAX_MESSAGE_BYTES + 1);
    let mark = "x".repeat(MAX_MARK_BYTES + 1);
    let mail = "x".repeat(MAX_MAIL_BYTES + 1);
    let nowhere = hatchery_core::SessionId::from_bytes([9; 16]);
    let no_session = || Refusal::UnknownSession(nowhere);
    let no_agent = || Refusal::UnknownAgent(NOBODY);
    let too_short = Command::StartSession { session: nowhere, label: None, idle_ms: Some(1) };
    let labelled = Command::StartSession { session: nowhere, label, idle_ms: None };
    let remarked = Command::Kill { agent: D, cascade: false, by: None, remark };
    let never = bear(R, Birth { hatch_ms: Some(0), ..Birth::of(NOBODY) });
    let (human, expired) = (Address::Human, Address::Agent(C));
    vec![
        (
            Command::RegisterSeat { agent: A, position: None, identity: Identity::default() },
            Refusal::Seat(SeatRefusal::NoSeat(A)),
            Missing,
            "no_seat",
        ),
        (end(nowhere, User), no_session(), Missing, "unknown_session"),
        (close(nowhere), no_session(), Missing, "unknown_session"),
        (create(NOBODY, Some(nowhere)), no_session(), Missing, "unknown_session"),
        (wake(A, Some(nowhere)), no_session(), Missing, "unknown_session"),
        (start(S), Refusal::SessionExists(S), Untimely, "session_exists"),
        (start(T), Refusal::SessionExists(T), Untimely, "session_exists"),
        (end(T, User), is_over(), Untimely, "session_over"),
        (close(T), is_over(), Untimely, "session_over"),
        (close(S), Refusal::SessionNotEnding(S), Untimely, "session_not_ending"),
        (fork(NOBODY, NOBODY), no_agent(), Missing, "unknown_agent"),
        (rename(NOBODY, "Cael"), no_agent(), Missing, "unknown_agent"),
        (wake(NOBODY, None), no_agent(), Missing, "unknown_agent"),
        (kill(NOBODY), no_agent(), Missing, "unknown_agent"),
        (say(NOBODY, "hello"), no_agent(), Missing, "unknown_agent"),
        (rewind(NOBODY, RewindTo::LastMark), no_agent(), Missing, "unknown_agent"),
        (create(A, None), Refusal::AgentExists(A), Untimely, "agent_exists"),
        (create(B, None), Refusal::AgentExists(B), Untimely, "agent_exists"),
        (say(B, "hello"), Refusal::AgentDead(B), Untimely, "agent_dead"),
        (send(human, expired, "hello"), Refusal::AgentExpired(C), Untimely, "agent_expired"),
        (wake(A, Some(S)), Refusal::AgentAwake(A), Untimely, "agent_awake"),
        (found(A), Refusal::RootExists(R), Untimely, "root_exists"),
        (kill(R), Refusal::RootIsImmortal(R), Untimely, "root_is_immortal"),
        (kill_by(D, A, false), Refusal::KillsAncestor { by: D, ancestor: A }, Untimely, "kills_ancestor"),
        (fork(A, NOBODY), Refusal::ForkPending { parent: A }, Untimely, "fork_pending"),
        (fork_at(R, NOBODY, 99), Refusal::NotInHistory { agent: R, message: EventId(99) }, Missing, "not_in_history"),
        (rewind(R, RewindTo::LastMark), Refusal::NoSuchMark { agent: R, label: None }, Missing, "no_such_mark"),
        (take(human), Refusal::NoMail(human), Missing, "no_mail"),
        (read_this(human, 1), Refusal::NotUnread { to: human, mail: EventId(1) }, Missing, "not_unread"),
        (labelled, Refusal::LabelTooLong { bytes: MAX_LABEL_BYTES + 1 }, Invalid, "label_too_long"),
        (too_short, Refusal::IdleOutOfRange { ms: 1 }, Invalid, "idle_out_of_range"),
        (rename(A, ""), Refusal::BadName { name: String::new() }, Invalid, "bad_name"),
        (say(A, &message), Refusal::MessageTooLong { bytes: message.len() }, Invalid, "message_too_long"),
        (remarked, Refusal::RemarkTooLong { bytes: MAX_REMARK_BYTES + 1 }, Invalid, "remark_too_long"),
        (add(A, MessageKind::Mark, &mark), Refusal::MarkTooLong { bytes: mark.len() }, Invalid, "mark_too_long"),
        (send(human, human, &mail), Refusal::MailTooLong { bytes: mail.len() }, Invalid, "mail_too_long"),
        (unnamed_field(), Refusal::Status(Box::new(bad_path().into())), Invalid, "bad_path"),
        (never, Refusal::HatchOutOfRange { ms: 0 }, Invalid, "hatch_out_of_range"),
    ]
}

/// A is run for the first time and in the middle of a turn; ten bytes of its output and no call are taken in.
fn cases_of_runs() -> Vec<(Command, Refusal, RefusalKind, &'static str)> {
    let harness_session_taken = Refusal::HarnessSessionTaken { session: TALK.into(), agent: A, name: None };
    let other_harness = Refusal::OtherHarness { agent: A, harness: spec().harness, model: None };
    let later = AttemptId { attempt: 2, ..first() };
    let early = Command::TakeCall { of: first(), number: 2, ask: Ok(Box::new(Command::Tick)) };
    let bad = |change: fn(&mut RunSpec)| {
        let mut bad = spec();
        change(&mut bad);
        run(R, bad)
    };
    vec![
        (run(A, spec()), Refusal::RunOpen { agent: A, run: 1 }, Untimely, "run_open"),
        (tell(A, "x", Some(RunSpec { model: Some("m".into()), ..spec() })), other_harness, Untimely, "run_open"),
        (stop(R), Refusal::NoRun(R), Missing, "no_run"),
        (adopt(A, "other"), Refusal::HasHarnessSession(A), Untimely, "has_harness_session"),
        (adopt(R, TALK), harness_session_taken, Untimely, "harness_session_taken"),
        (answer(1), Refusal::NoQuestion(EventId(1)), Missing, "no_question"),
        (Command::RemovePermissionRule { rule: EventId(1) }, Refusal::NoRule(EventId(1)), Missing, "no_rule"),
        (exit(later, Exit::Unknown), Refusal::StaleAttempt(later), Untimely, "stale_attempt"),
        (output(first(), 0, 10, []), Refusal::OutputTaken { agent: A, at: 10 }, Untimely, "output_taken"),
        (early, Refusal::CallTaken { agent: A, number: 0 }, Untimely, "call_taken"),
        (bad(|it| it.stall_ms = 1), Refusal::StallOutOfRange { ms: 1 }, Invalid, "stall_out_of_range"),
        (bad(|it| it.retries = 101), Refusal::TooManyRetries { retries: 101 }, Invalid, "too_many_retries"),
        (bad(|it| it.host = "".into()), Refusal::BadSpec { text: String::new() }, Invalid, "bad_spec"),
    ]
}

fn adopt(agent: hatchery_core::AgentId, session: &str) -> Command {
    let harness_session =
        ForeignSession { harness: "claude".into(), session: session.into(), host: "mill".into(), folder: None };
    Command::AdoptHarnessSession { agent, harness_session, name: None }
}

fn answer(question: u64) -> Command {
    Command::AnswerQuestion { question: EventId(question), answer: String::new() }
}

#[test]
fn every_refusal_is_given_where_it_should_be() {
    let mut seen = BTreeSet::new();
    let mut check_words = |refusal: &Refusal, kind, code| {
        assert_eq!((refusal.kind(), refusal.code()), (kind, code));
        assert!(!refusal.to_string().is_empty() && !refusal.hint().is_empty(), "{code} says what and what next");
        seen.insert(variant(refusal));
    };
    let it = given([started(S), started(T), ending(T, User), ended(T, User), created(A, None), created(B, None)]);
    let it = it.and(dead(B)).and(laid(C, 9)).and(expired(C)).and(forked(A, D, None));
    let promised = |number: usize| AgentId::from_bytes([100 + u8::try_from(number).expect("a few"); 16]);
    let forks = |it: Given| (0..MAX_PENDING_FORKS).fold(it, |it, number| it.and(fork_requested(A, promised(number))));
    let it = forks(it.and(called(A))).and(renamed(A, "Cael")).and(renamed(D, "Cael"));
    let (id, fingerprint) = (RequestId::from_bytes([1; 16]), Fingerprint::from_bytes([1; 16]));
    let it = it.and(Event::Request(RequestEvent::Taken { request: id, fingerprint, led_to: 0 }));
    let at = it.world.head();
    let once = |fingerprint| Command::Once { request: Request { id, fingerprint }, command: Box::new(Command::Tick) };
    let requests = [
        (once(fingerprint), Refusal::RequestTaken { id, at, led_to: 0 }, Untimely, "request_taken"),
        (once(Fingerprint::from_bytes([2; 16])), Refusal::RequestIdUsed { id, at }, Untimely, "request_id_used"),
    ];
    for (command, refusal, kind, code) in cases().into_iter().chain(requests) {
        check_words(&refusal, kind, code);
        it.clone().when(command).refused(refusal);
    }
    for (reference, refusal, kind, code) in [
        ("Zoë", Refusal::NobodyCalled("Zoë".into()), Missing, "nobody_called"),
        ("Cael", Refusal::Ambiguous { reference: "Cael".into(), candidates: vec![A, D] }, Untimely, "ambiguous"),
    ] {
        check_words(&refusal, kind, code);
        assert_eq!(resolve(&it.world, reference), Err(refusal));
    }
    let refusal = Refusal::NameTaken { name: "Cael".into(), by: A, free: "Cael-2".into() };
    check_words(&refusal, Untimely, "name_taken");
    assert_eq!(check_given_name(&it.world, Some("Cael"), None), Err(refusal));
    for (refusal, code) in run::choice::refusals() {
        check_words(&refusal, Invalid, code);
    }
    for (command, refusal, kind, code) in cases_of_runs() {
        check_words(&refusal, kind, code);
        working(spec()).when(command).refused(refusal);
    }
    let question = EventId(9);
    let asked = hatchery_core::Event::Question {
        agent: A,
        what: QuestionEvent::Asked { about: About::Silence(first()), text: "Well?".into() },
    };
    let refusal = Refusal::BadAnswer { question, expected: "Well?".into() };
    check_words(&refusal, Invalid, "bad_answer");
    working(spec()).and(asked).when(answer(9)).refused(refusal);
    let (refusal, full) = permissions::too_many_rules();
    check_words(&refusal, Untimely, "too_many_rules");
    full.refused(refusal);
    let refusal = Refusal::NoTurn(A);
    check_words(&refusal, Untimely, "no_turn");
    done(staying()).when(interrupt(A)).refused(refusal);
    let refusal = Refusal::CannotInterrupt { agent: A, harness: "scripted".into() };
    check_words(&refusal, Untimely, "cannot_interrupt");
    let bare = spawned_with(first(), Capabilities { interrupts: false, ..Capabilities::ALL });
    wanted(spec()).and(bare).and(begun(first())).when(interrupt(A)).refused(refusal);
    let refusal = Refusal::RunStopping { agent: A, run: 1 };
    check_words(&refusal, Untimely, "run_stopping");
    working(spec()).and(stopping(first(), StopWhy::User)).when(stop(A)).refused(refusal);
    let refusal = Refusal::SessionEnding { session: S, reason: User };
    check_words(&refusal, Untimely, "session_ending");
    it.and(ending(S, User)).when(end(S, User)).refused(refusal);
    for (refusal, kind, code) in quest::refusals::all() {
        check_words(&refusal, kind, code);
    }
    assert_eq!(seen, VARIANTS.iter().copied().collect());
}

#[test]
fn a_refusal_names_the_id_it_speaks_of() {
    assert!(Refusal::UnknownSession(S).to_string().contains(&S.to_string()));
    assert!(Refusal::AgentDead(A).to_string().contains(&A.to_string()));
}
