//! The words in which the tests of runs speak, beside those of `given`.

use crate::given::*;
use hatchery_core::event::Refused;
use hatchery_core::event::{AgentEvent, RunEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::outcome::{Cause, Exit};
use hatchery_core::output::{FailureKind, Output, ServiceError, TurnEnd, TurnResult};
use hatchery_core::run::{AttemptId, Conversation, Process, Run, RunSpec, StopWhy, wire_name};
use hatchery_core::usage::{Money, Usage};
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Timestamp};

pub const STALL_MS: u64 = 10_000;
/// What the human is asked when nothing was heard for that long.
pub const SILENCE: &str = "Its process has written nothing for 10 s. Answer `wait`, `stop`, or a message to the agent.";
/// The name that the harness has for a conversation.
pub const TALK: &str = "c-1";

/// What is said of a process that was killed at work.
pub const MID_TURN: &str =
    "It ended in the middle of a turn (SIGKILL). Look at what it wrote to stderr. It can be resumed.";

/// Ends after its turn, is resumed twice, waits out a limit.
pub fn spec() -> RunSpec {
    RunSpec {
        harness: "scripted".into(),
        host: "mill".into(),
        folder: None,
        model: None,
        script: None,
        stays: false,
        stall_ms: STALL_MS,
        kill_stuck: false,
        retries: 2,
        parks: true,
        signals: false,
        permissions: None,
    }
}

/// Waits for further messages after a turn.
pub fn staying() -> RunSpec {
    RunSpec { stays: true, ..spec() }
}

/// The first run of A.
pub fn attempt(attempt: u32) -> AttemptId {
    AttemptId { agent: A, run: 1, attempt }
}

/// The first process of the first run of A.
pub fn first() -> AttemptId {
    attempt(1)
}

pub fn process() -> Process {
    Process { pid: 42, began: 7 }
}

pub fn run(agent: AgentId, spec: RunSpec) -> Command {
    Command::StartRun { agent, spec }
}

pub fn tell(agent: AgentId, text: &str, spec: Option<RunSpec>) -> Command {
    Command::Say { agent, text: text.into(), spec }
}

pub fn spawn(of: AttemptId) -> Command {
    Command::ReportSpawn {
        of,
        process: process(),
        session: Some(TALK.into()),
        copy_of: None,
        capabilities: Capabilities::ALL,
    }
}

pub fn copy(of: AttemptId) -> Command {
    Command::ReportSpawn {
        of,
        process: process(),
        session: Some(TALK.into()),
        copy_of: Some("c-0".into()),
        capabilities: Capabilities::ALL,
    }
}

pub fn exit(of: AttemptId, exit: Exit) -> Command {
    Command::ReportExit { of, exit, evidence: None }
}

pub fn call(of: AttemptId, number: u64, ask: Command) -> Command {
    Command::TakeCall { of, number, ask: Ok(Box::new(ask)) }
}

pub fn interrupt(agent: AgentId) -> Command {
    Command::InterruptRun { agent }
}

pub fn stop(agent: AgentId) -> Command {
    Command::StopRun { agent }
}

pub fn output<const N: usize>(of: AttemptId, from: u64, upto: u64, outputs: [Output; N]) -> Command {
    Command::TakeOutput { of, from, upto, outputs: outputs.into() }
}

pub fn requested(agent: AgentId, spec: RunSpec) -> Event {
    Event::Agent { agent, what: AgentEvent::RunRequested { run: 1, spec } }
}

pub fn spawned(of: AttemptId) -> Event {
    spawned_with(of, Capabilities::ALL)
}

/// A process of a harness that can do only so much.
pub fn spawned_with(of: AttemptId, capabilities: Capabilities) -> Event {
    let what = RunEvent::Spawned { process: process(), session: Some(TALK.into()), copy_of: None, capabilities };
    Event::Run { of, what }
}

pub fn copied(of: AttemptId) -> Event {
    let (session, copy_of) = (Some(TALK.into()), Some("c-0".into()));
    Event::Run { of, what: RunEvent::Spawned { process: process(), session, copy_of, capabilities: Capabilities::ALL } }
}

pub fn begun(of: AttemptId) -> Event {
    Event::Run { of, what: RunEvent::Started { session: TALK.into(), model: None, tools: Vec::new() } }
}

pub fn heard(of: AttemptId, message: u64) -> Event {
    Event::Run { of, what: RunEvent::MessageHeard { message: EventId(message) } }
}

pub fn noted(of: AttemptId, output: Output) -> Event {
    Event::Run { of, what: RunEvent::OutputNoted { output } }
}

pub fn taken(of: AttemptId, upto: u64) -> Event {
    Event::Run { of, what: RunEvent::OutputTaken { upto } }
}

pub fn call_taken(of: AttemptId, number: u64, led_to: u64) -> Event {
    Event::Run { of, what: RunEvent::CallTaken { number, led_to, refused: None, signal: false } }
}

pub fn call_refused(of: AttemptId, number: u64, refused: Refused) -> Event {
    Event::Run { of, what: RunEvent::CallTaken { number, led_to: 0, refused: Some(refused), signal: false } }
}

pub fn turn_started(of: AttemptId) -> Event {
    Event::Run { of, what: RunEvent::TurnStarted }
}

pub fn turn_ended(of: AttemptId, end: TurnEnd, spent: Usage) -> Event {
    turn_settled(of, end, spent, Usage::default())
}

/// The end of a turn of which a part was counted before.
pub fn turn_settled(of: AttemptId, end: TurnEnd, spent: Usage, metered: Usage) -> Event {
    Event::Run { of, what: RunEvent::TurnEnded { end, spent, metered } }
}

/// The model was asked.
pub fn used(amount: u64) -> Output {
    Output::Used { usage: usage(amount), context: None }
}

pub fn metered(of: AttemptId, amount: u64) -> Event {
    Event::Run { of, what: RunEvent::Metered { used: usage(amount), context: None } }
}

pub fn silent(of: AttemptId, since: i64) -> Event {
    Event::Run { of, what: RunEvent::Silent { since: Timestamp(since) } }
}

pub fn interrupted(of: AttemptId) -> Event {
    Event::Run { of, what: RunEvent::Interrupted }
}

pub fn stopping(of: AttemptId, why: StopWhy) -> Event {
    Event::Run { of, what: RunEvent::Stopping { why } }
}

pub fn parked(of: AttemptId, cause: Cause, until: i64, detail: &str) -> Event {
    Event::Run { of, what: RunEvent::Parked { cause, until: Some(Timestamp(until)), detail: detail.into() } }
}

/// It crashed, and is started again after so many seconds, at this time.
pub fn again_in(of: AttemptId, seconds: i64, until: i64) -> Event {
    parked(of, Cause::Crashed, until, &format!("It is started again in {seconds} s."))
}

pub fn crashed(of: AttemptId, exit: Exit, detail: &str) -> Event {
    Event::Run { of, what: RunEvent::Crashed { cause: Cause::Crashed, detail: detail.into(), exit, forgotten: false } }
}

pub fn resumed(of: AttemptId) -> Event {
    Event::Run { of, what: RunEvent::Resumed }
}

pub fn over(of: AttemptId, cause: Cause, exit: Exit, detail: &str) -> Event {
    Event::Run { of, what: RunEvent::Ended { cause, detail: detail.into(), exit } }
}

pub fn spoke(agent: AgentId, content: &str) -> Event {
    added(agent, MessageKind::Assistant, content)
}

/// The process can work.
pub fn ready() -> Output {
    Output::Ready { session: TALK.into(), model: None, version: None, tools: Vec::new() }
}

/// It cannot, because our tools are in this state.
pub fn not_ready(status: &str) -> Output {
    Output::NotReady { why: status.into() }
}

pub fn text(text: &str) -> Output {
    Output::Text { text: text.into() }
}

/// The process has heard a delivery.
pub fn echo(delivery: u64) -> Output {
    Output::Heard { id: wire_name(EventId(delivery)) }
}

/// The process has obeyed a request.
pub fn obeyed(delivery: u64) -> Output {
    Output::Answered { request: wire_name(EventId(delivery)), problem: None }
}

pub fn result(end: TurnEnd) -> Output {
    Output::TurnEnded(end)
}

/// A turn that ended well, at no cost.
pub fn well() -> TurnEnd {
    TurnEnd { num_turns: 1, ..TurnEnd::default() }
}

/// A turn that was interrupted.
pub fn broken_off() -> TurnEnd {
    TurnEnd { result: TurnResult::Interrupted, ..TurnEnd::default() }
}

/// A turn that failed like this.
pub fn refused(kind: FailureKind) -> TurnEnd {
    TurnEnd { result: TurnResult::Failed { kind, detail: "no".into() }, ..TurnEnd::default() }
}

/// A turn in which a session was to be resumed that is not there.
pub fn forgotten() -> TurnEnd {
    TurnEnd { result: TurnResult::SessionUnknown, ..TurnEnd::default() }
}

pub fn billing() -> Output {
    Output::ApiError(ServiceError { kind: FailureKind::OutOfCredit, status: None, text: "no credit".into() })
}

pub fn nothing_spent() -> Usage {
    Usage::default()
}

/// As many thousandths of a dollar, and as many tokens.
pub fn usage(amount: u64) -> Usage {
    let cost = Money { nanodollars: amount * 1_000_000 };
    Usage { cost, input_tokens: amount, output_tokens: amount, ..Usage::default() }
}

/// A has been told "hello" (event 3), and a process is wanted (event 4, its briefing).
pub fn wanted(spec: RunSpec) -> Given {
    given([created(A, None), said(A, "hello"), requested(A, spec)])
}

/// The briefing of the first run.
pub const BRIEFING: u64 = 4;

/// There is a process (event 5).
pub fn present(spec: RunSpec) -> Given {
    wanted(spec).and(spawned(first()))
}

/// It has started (6), has heard its briefing (7), and is in its first turn; ten bytes of its output are taken in (8).
pub fn working(spec: RunSpec) -> Given {
    present(spec).and(begun(first())).and(heard(first(), BRIEFING)).and(taken(first(), 10))
}

/// Its first turn has ended well (9), and twenty bytes are taken in (10).
pub fn done(spec: RunSpec) -> Given {
    working(spec).and(turn_ended(first(), well(), nothing_spent())).and(taken(first(), 20))
}

/// Its first turn has ended like this.
pub fn failed(spec: RunSpec, end: TurnEnd) -> Given {
    working(spec).and(turn_ended(first(), end, nothing_spent())).and(taken(first(), 20))
}

/// A process of A says something, and it is taken in: so many bytes as things said.
pub fn hears<const N: usize>(it: Given, outputs: [Output; N]) -> When {
    let run = last_run(&it);
    let (of, from) = (run.attempt_id(A), run.attempt.spooled);
    it.when(output(of, from, from + N as u64, outputs))
}

/// The last run of A.
pub fn last_run(it: &Given) -> &Run {
    it.world.run(A).expect("A is or was run")
}

pub fn conversation(it: &Given) -> &Conversation {
    it.world.conversation(A).expect("A is or was run")
}

/// What waits to be said to A, by the ids of what caused it.
pub fn undelivered(it: &Given) -> Vec<u64> {
    conversation(it).waiting.iter().map(|delivery| delivery.id.0).collect()
}
