//! The end of a process, in every state and for every cause, and what becomes of its run.

use super::words::*;
use crate::given::*;
use hatchery_core::event::{AgentEvent, RunEvent};
use hatchery_core::output::{FailureKind, Output};
use hatchery_core::run::{RunSpec, RunState, StopWhy};
use hatchery_core::{Cause, Command, Event, Exit, Refusal};

const SAID_NOTHING: &str = "It ended before it said anything (exit code 1). Look at what it wrote to stderr.";
const ELSEWHERE: &str = "It was begun in another project folder, from which this log was imported or copied. Say something to it, and it \
    goes on here.";
const WELL: &str = "Its last turn ended well.";

#[test]
fn a_run_that_has_done_its_work_is_completed() {
    let it = done(spec()).when(exit(first(), Exit::Code(0)));
    let it = it.then([over(first(), Cause::Completed, Exit::Code(0), WELL)]);
    assert!(matches!(last_run(&it).state, RunState::Ended { cause: Cause::Completed, .. }));
    assert_eq!(it.world.past_runs(A).map(|(number, past)| (number, past.cause)).last(), Some((1, Cause::Completed)));
    it.when(exit(first(), Exit::Code(0))).refused(Refusal::StaleAttempt(first()));
}

/// The log is a copy, and the attempt belongs to the folder that it was copied from.
#[test]
fn a_run_of_another_folder_ends_in_every_state_without_a_next_attempt() {
    let report = || Command::ReportUnreachable { of: first() };
    for it in [wanted(spec()), working(spec()), done(RunSpec { stays: true, ..spec() })] {
        let it = it.when(report()).then([over(first(), Cause::LostWithMachine, Exit::Unknown, ELSEWHERE)]);
        it.when(report()).refused(Refusal::StaleAttempt(first()));
    }
    let stopping = working(spec()).and(stopping(first(), StopWhy::User));
    let it = stopping.when(report());
    it.then([over(first(), Cause::UserEnded, Exit::Unknown, "stopped by the user")]);
}

#[test]
fn its_last_result_counts_and_not_its_exit_code() {
    for exited in [Exit::Code(1), Exit::Signal(9), Exit::Unknown, Exit::LostWithMachine] {
        let it = done(spec()).when(exit(first(), exited));
        let detail = match exited {
            Exit::Unknown => WELL.to_owned(),
            other => format!("Its last turn ended well; only then did the process end with {other}."),
        };
        it.then([over(first(), Cause::Completed, exited, &detail)]);
    }
    // And without a result, leaving with 0 is a crash.
    let detail = "It ended in the middle of a turn (exit code 0). Look at what it wrote to stderr. It can be resumed.";
    let it = working(spec()).when(exit(first(), Exit::Code(0)));
    it.then([crashed(first(), Exit::Code(0), detail), resumed(attempt(2))]);
}

#[test]
fn a_crash_is_resumed_until_the_retries_are_spent() {
    let mut it = wanted(spec());
    for (count, seconds, until) in [(1, 1, 1_000), (2, 2, 3_000)] {
        let of = attempt(count);
        let crash = it.and(spawned(of)).when(exit(of, Exit::Code(1)));
        it = crash.then([crashed(of, Exit::Code(1), SAID_NOTHING), again_in(of, seconds, until)]);
        assert_eq!((last_run(&it).crashes, last_run(&it).parks), (count, 0), "it waits, but for no limit");
        it = it.restarted().at(until - 1).when(Command::Tick).then([]);
        it = it.at(until).when(Command::Tick).then([resumed(of.next())]);
    }
    let it = it.and(spawned(attempt(3))).when(exit(attempt(3), Exit::Code(1)));
    it.then([over(attempt(3), Cause::Crashed, Exit::Code(1), SAID_NOTHING)]);
}

/// It was at work, and nothing speaks for its doing it again. A second time in a row does.
#[test]
fn one_that_was_at_work_goes_on_at_once() {
    let detail = MID_TURN;
    let it = working(spec()).when(exit(first(), Exit::Signal(9)));
    let it = it.then([crashed(first(), Exit::Signal(9), detail), resumed(attempt(2))]);
    let it = it.and(spawned(attempt(2))).and(begun(attempt(2))).when(exit(attempt(2), Exit::Signal(9)));
    it.then([crashed(attempt(2), Exit::Signal(9), detail), again_in(attempt(2), 2, 2_000)]);
}

#[test]
fn a_crash_without_retries_ends_the_run() {
    let it = present(RunSpec { retries: 0, ..spec() }).when(exit(first(), Exit::Code(1)));
    it.then([over(first(), Cause::Crashed, Exit::Code(1), SAID_NOTHING)]);
}

#[test]
fn a_turn_that_ends_well_gives_the_retries_back() {
    let it = working(spec()).and(crashed(first(), Exit::Signal(9), "")).and(resumed(attempt(2)));
    let it = it.and(spawned(attempt(2))).and(begun(attempt(2))).and(heard(attempt(2), 10));
    assert_eq!(last_run(&it).crashes, 1);
    assert_eq!(last_run(&it.clone().and(turn_ended(attempt(2), refused(FailureKind::Other), usage(0)))).crashes, 1);
    assert_eq!(last_run(&it.and(turn_ended(attempt(2), well(), usage(0)))).crashes, 0);
}

/// It would fail again in the same way.
#[test]
fn what_could_not_even_be_started_is_not_tried_again() {
    let evidence = Some("there is no harness `x`".to_owned());
    let it = wanted(spec()).when(Command::ReportExit { of: first(), exit: Exit::NotStarted, evidence });
    let detail = "It could not be started. It left behind: there is no harness `x`";
    it.then([over(first(), Cause::Crashed, Exit::NotStarted, detail)]);
}

#[test]
fn the_evidence_is_for_crashes_and_has_a_limit() {
    let report =
        |evidence: &str| Command::ReportExit { of: first(), exit: Exit::Code(1), evidence: Some(evidence.into()) };
    let it = present(RunSpec { retries: 0, ..spec() }).when(report(&"é".repeat(5_000)));
    let start = format!("{SAID_NOTHING} It left behind: ");
    let detail = format!("{start}{}", "é".repeat(1_000 - start.chars().count()));
    it.then([over(first(), Cause::Crashed, Exit::Code(1), &detail)]);
    let detail = "Its last turn ended well; only then did the process end with exit code 1.";
    done(spec()).when(report("a warning")).then([over(first(), Cause::Completed, Exit::Code(1), detail)]);
}

/// Each failure of a turn, and whether it is the end of the run.
#[test]
fn a_failed_turn_has_its_cause() {
    let final_ones = [
        (refused(FailureKind::Unauthorised), Cause::Unauthorised, "Log in again or correct the key, then resume it."),
        (refused(FailureKind::OutOfCredit), Cause::OutOfCredit, "Add credit to the account, then resume it."),
        (
            refused(FailureKind::PromptTooLong),
            Cause::PromptTooLong,
            "Its history is too long for the model: compact it, or start a new agent with less.",
        ),
        (refused(FailureKind::Refused), Cause::Refused, "Say it in other words, or start a new agent."),
        (refused(FailureKind::WrongModel), Cause::WrongModel, "Choose another model with --model."),
        (
            refused(FailureKind::OutputTooLong),
            Cause::OutputTooLong,
            "Ask for less at once, or raise the limit of the agent program for one answer.",
        ),
    ];
    for (end, cause, advice) in final_ones {
        let it = failed(spec(), end).when(exit(first(), Exit::Code(1)));
        it.then([over(first(), cause, Exit::Code(1), &format!("It failed: no. {advice}"))]);
    }
    let it = working(spec()).and(noted(first(), billing())).when(exit(first(), Exit::Code(1)));
    let detail = "It ended in the middle of a turn (exit code 1), after: no credit. It can be resumed.";
    it.then([crashed(first(), Exit::Code(1), detail), resumed(attempt(2))]);
    let it = failed(spec(), refused(FailureKind::Other)).when(exit(first(), Exit::Code(1)));
    let detail = "It failed: no. Resume it, or start a new agent.";
    it.then([crashed(first(), Exit::Code(1), detail), resumed(attempt(2))]);
}

#[test]
fn a_run_whose_turn_was_broken_off_was_ended_by_the_user() {
    let it = failed(spec(), broken_off()).when(exit(first(), Exit::Code(0)));
    let detail = "Its last turn was interrupted (exit code 0). It can be resumed.";
    it.then([over(first(), Cause::UserEnded, Exit::Code(0), detail)]);
}

#[test]
fn a_machine_that_went_down_is_a_crash_that_is_resumed() {
    let lost = Event::Run {
        of: first(),
        what: RunEvent::Crashed {
            cause: Cause::LostWithMachine,
            detail: "The machine stopped while it ran. It can be resumed.".into(),
            exit: Exit::LostWithMachine,
            forgotten: false,
        },
    };
    let it = working(spec()).when(exit(first(), Exit::LostWithMachine));
    it.then([lost.clone(), resumed(attempt(2))]);
    let it = present(spec()).when(exit(first(), Exit::LostWithMachine));
    it.then([lost, resumed(attempt(2))]);
}

/// A process that had nothing to do leaves nothing undone; to nudge a new one would cost a turn for nothing.
#[test]
fn one_that_was_to_stay_and_left_between_two_turns_is_not_resumed_for_nothing() {
    for (exited, cause) in [(Exit::Signal(9), Cause::Crashed), (Exit::LostWithMachine, Cause::LostWithMachine)] {
        let detail = format!("It ended between two turns ({exited}). Say something to it, and it goes on.");
        let it = done(staying()).when(exit(first(), exited)).then([over(first(), cause, exited, &detail)]);
        let it = it.when(tell(A, "more", Some(staying())));
        let it = it.then([
            said(A, "more"),
            Event::Agent { agent: A, what: AgentEvent::RunRequested { run: 2, spec: staying() } },
        ]);
        assert_eq!(undelivered(&it), [12], "the conversation goes on");
        assert!(conversation(&it).harness_session.is_some());
    }
    let it = done(staying()).when(exit(first(), Exit::Code(0)));
    it.then([over(first(), Cause::Completed, Exit::Code(0), WELL)]);
    // One that has something to hear is.
    let detail = "It ended between two turns (SIGKILL). Say something to it, and it goes on.";
    let it = done(staying()).and(said(A, "more")).when(exit(first(), Exit::Signal(9)));
    it.then([crashed(first(), Exit::Signal(9), detail), resumed(attempt(2))]);
}

#[test]
fn what_was_said_while_it_was_leaving_is_heard_by_the_next_process() {
    let it = done(spec()).and(said(A, "wait")).when(exit(first(), Exit::Code(0))).then([resumed(attempt(2))]);
    assert_eq!(undelivered(&it), [11]);
    let it = failed(spec(), broken_off()).and(said(A, "rather this")).when(exit(first(), Exit::Code(0)));
    assert_eq!(undelivered(&it.then([resumed(attempt(2))])), [11]);
}

#[test]
fn an_interrupt_that_came_too_late_does_not_bring_a_process_back() {
    let it = working(spec()).and(interrupted(first())).and(turn_ended(first(), well(), usage(0)));
    let it = it.when(exit(first(), Exit::Code(0)));
    let it = it.then([over(first(), Cause::Completed, Exit::Code(0), WELL)]);
    assert_eq!(undelivered(&it), [0; 0]);
}

/// Else a process that never listens would be started again for ever.
#[test]
fn a_process_that_left_without_listening_has_crashed() {
    let deaf = "It ended before it received its message (exit code 0).";
    let mut it = wanted(spec());
    for (of, then) in [(attempt(1), resumed(attempt(2))), (attempt(2), again_in(attempt(2), 2, 2_000))] {
        it = it.and(spawned(of)).and(begun(of)).and(turn_ended(of, well(), usage(0)));
        it = it.when(exit(of, Exit::Code(0))).then([crashed(of, Exit::Code(0), deaf), then]);
    }
    let it = it.and(resumed(attempt(3)));
    let of = attempt(3);
    let it = it.and(spawned(of)).and(begun(of)).and(turn_ended(of, well(), usage(0)));
    it.when(exit(of, Exit::Code(0))).then([over(of, Cause::Crashed, Exit::Code(0), deaf)]);
}

#[test]
fn an_exit_is_believed_in_every_state_that_may_have_a_process() {
    let ends = |it: Given| it.when(exit(first(), Exit::Signal(15))).answer_is_ok();
    for it in [wanted(spec()), present(spec()), working(spec()), done(spec())] {
        assert!(ends(it.clone()));
        assert!(ends(it.and(stopping(first(), StopWhy::User))));
    }
    let limit = Output::Limit { rejected: true, resets_at: None, window: None };
    let it = working(spec()).and(noted(first(), limit)).and(turn_ended(
        first(),
        refused(FailureKind::RateLimited),
        usage(0),
    ));
    let it = it.and(parked(first(), Cause::RateLimited, 9_000, ""));
    it.when(exit(first(), Exit::Code(1))).refused(Refusal::StaleAttempt(first()));
    given([created(A, None)]).when(exit(first(), Exit::Code(1))).refused(Refusal::NoRun(A));
}

#[test]
fn only_the_latest_runs_are_kept_at_hand() {
    let mut it = given([created(A, None)]);
    for number in 1..=103 {
        let of = hatchery_core::run::AttemptId { agent: A, run: number, attempt: 1 };
        it = it.and(Event::Agent { agent: A, what: AgentEvent::RunRequested { run: number, spec: spec() } });
        it = it.and(over(of, Cause::Completed, Exit::Code(0), ""));
    }
    let kept: Vec<u32> = it.world.past_runs(A).map(|(number, _)| number).collect();
    assert_eq!(kept, (4..=103).collect::<Vec<_>>());
}

#[test]
fn a_program_that_does_not_know_its_arguments_is_not_started_again() {
    let evidence = Some("error: unknown option '--nope'".to_owned());
    let it = present(spec()).when(Command::ReportExit { of: first(), exit: Exit::Code(1), evidence });
    let detail = "It does not understand how it was started: error: unknown option '--nope'. Correct the arguments of its \
                  agent program in the settings.";
    it.then([over(first(), Cause::BadArguments, Exit::Code(1), detail)]);
}

#[test]
fn a_script_that_cannot_be_played_is_not_tried_again() {
    let evidence = Some("Error: invalid script: line 1 of the script is not a step".to_owned());
    let it = present(spec()).when(Command::ReportExit { of: first(), exit: Exit::Code(1), evidence });
    let detail = "It does not understand how it was started: Error: invalid script: line 1 of the script is not a step. \
                  Correct the script, then say something to it.";
    it.then([over(first(), Cause::BadArguments, Exit::Code(1), detail)]);
}

#[test]
fn an_outage_is_waited_out_with_growing_pauses_and_costs_no_retry() {
    let detail = "It failed: no. The service or the network is down; resume it in a while.";
    let it = failed(spec(), refused(FailureKind::Unavailable)).when(exit(first(), Exit::Code(1)));
    let it = it.then([parked(first(), Cause::Unavailable, 15_000, detail)]);
    let words: Vec<String> =
        hatchery_core::why::why(&it.world, A).unwrap().evidence.into_iter().map(|it| it.what).collect();
    assert!(words.contains(&"its last error: no".to_owned()), "the service's own words: {words:?}");
    let of = attempt(2);
    let it = it.and(resumed(of)).and(spawned(of)).and(begun(of));
    let it = it.and(turn_ended(of, refused(FailureKind::Unavailable), usage(0))).when(exit(of, Exit::Code(1)));
    let it = it.then([parked(of, Cause::Unavailable, 30_000, detail)]);
    assert_eq!(last_run(&it).crashes, 0);
    let impatient = RunSpec { parks: false, ..spec() };
    let it = failed(impatient, refused(FailureKind::Unavailable)).when(exit(first(), Exit::Code(1)));
    it.then([over(first(), Cause::Unavailable, Exit::Code(1), detail)]);
}
