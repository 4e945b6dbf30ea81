//! What a process says: each kind of output, and each byte of it once.

use super::words::*;
use crate::given::*;
use hatchery_core::agent::Birth;
use hatchery_core::output::{Denial, FailureKind, Output, ServiceError, TurnEnd, TurnResult};
use hatchery_core::run::StopWhy;
use hatchery_core::{Exit, MessageKind, Refusal, Timestamp};

#[test]
fn its_words_are_its_history() {
    let use_tool = Output::ToolUse { id: "t".into(), name: "ls".into(), input: r#"{"b": 1, "a": [2]}"#.into() };
    let result = Output::ToolResult { id: "t".into(), content: "a\nb".into(), is_error: true };
    let it = hears(working(spec()), [text("hello"), use_tool, result, text("bye")]).then([
        spoke(A, "hello"),
        added(A, MessageKind::ToolCall, r#"{"id":"t","input":{"a":[2],"b":1},"name":"ls"}"#),
        added(A, MessageKind::ToolResult, r#"{"content":"a\nb","id":"t","is_error":true}"#),
        spoke(A, "bye"),
        taken(first(), 14),
    ]);
    assert_eq!(it.heard(A).len(), 5, "what was said to it, and what it said");
    assert_eq!(it.restarted().world.agent(A).unwrap().open_tools, 0);
}

#[test]
fn the_input_of_a_tool_need_not_be_json() {
    let broken = Output::ToolUse { id: "t".into(), name: "ls".into(), input: "{".into() };
    let call = added(A, MessageKind::ToolCall, r#"{"id":"t","input":"{","name":"ls"}"#);
    hears(working(spec()), [broken]).then([call, taken(first(), 11)]);
}

#[test]
fn whatever_is_not_its_history_is_noted() {
    let noted_only = [
        Output::Thinking { text: "hm".into() },
        Output::Note { text: "a hook objects".into() },
        Output::Subagent { tool_use: "t".into(), output: Box::new(text("not its parent's word")) },
        Output::Retrying { attempt: 1, max_attempts: None, status: Some(529), delay_ms: None, reason: None },
        Output::Limit { rejected: false, resets_at: None, window: None },
        Output::Denied { tool: "Bash".into(), tool_use: None, reason: "no".into() },
        Output::AskCancelled { request: "r".into() },
        Output::Compacted { trigger: None, tokens_before: None },
        Output::ApiError(ServiceError { kind: FailureKind::Other, status: None, text: "no".into() }),
        Output::Unread { bytes: 3, reason: "no JSON".into() },
    ];
    for output in noted_only {
        let it = hears(working(spec()), [output.clone()]).then([noted(first(), output), taken(first(), 11)]);
        assert_eq!(it.heard(A), ["hello"]);
    }
}

#[test]
fn nothing_is_taken_in_twice() {
    let from_zero = || output(first(), 0, 10, [text("again")]);
    working(spec()).when(from_zero()).refused(Refusal::OutputTaken { agent: A, at: 10 });
    let ahead = output(first(), 12, 20, [text("later")]);
    working(spec()).when(ahead).refused(Refusal::OutputTaken { agent: A, at: 10 });
    // It would come again.
    let nowhere = || output(first(), 10, 10, [text("again")]);
    working(spec()).when(nowhere()).refused(Refusal::OutputTaken { agent: A, at: 10 });
    let back = output(first(), 10, 5, []);
    working(spec()).when(back).refused(Refusal::OutputTaken { agent: A, at: 10 });
}

#[test]
fn what_comes_from_an_older_process_is_refused() {
    let it = working(spec()).and(crashed(first(), Exit::Signal(9), "")).and(resumed(attempt(2)));
    let stale = || Refusal::StaleAttempt(first());
    let it = it.when(output(first(), 10, 20, [text("late")])).refused(stale());
    let it = it.when(call(first(), 1, tell(A, "late", None))).refused(stale());
    let it = it.when(exit(first(), Exit::Code(0))).refused(stale());
    // And of the new one nothing is known yet.
    let it = it.when(output(attempt(2), 0, 1, [])).refused(Refusal::StaleAttempt(attempt(2)));
    let it = it.and(spawned(attempt(2)));
    it.when(output(attempt(2), 0, 1, [text("new")])).then([spoke(A, "new"), taken(attempt(2), 1)]);
}

#[test]
fn an_ended_run_says_nothing_more() {
    use hatchery_core::Cause;
    let it = done(spec()).and(over(first(), Cause::Completed, Exit::Code(0), ""));
    it.when(output(first(), 20, 30, [text("late")])).refused(Refusal::StaleAttempt(first()));
}

/// What comes after the kill stays in the spool; what it cost was spent.
#[test]
fn the_dead_say_nothing_but_their_bill_counts() {
    let end = TurnEnd { total: usage(3), ..well() };
    let it = working(spec()).when(kill(A)).then([dead(A), stopping(first(), StopWhy::Killed)]);
    let it = hears(it, [text("I was not done"), result(end.clone())]);
    let it = it.then([turn_ended(first(), end, usage(3)), taken(first(), 12)]);
    assert_eq!(conversation(&it).spent, usage(3));
}

#[test]
fn an_egg_that_is_run_hatches_with_its_first_word() {
    let egg = Birth { hatch_ms: Some(1_000), run: Some(Box::new(spec())), ..Birth::of(A) };
    let it = given([born(R, R, None, egg), requested(A, spec()), spawned(first())]);
    let it = hears(it, [ready(), echo(3)]).then([begun(first()), heard(first(), 3), taken(first(), 2)]);
    hears(it, [text("peep")]).then([hatched(A), spoke(A, "peep"), taken(first(), 3)]);
}

#[test]
fn an_egg_that_says_nothing_expires_and_its_process_is_stopped() {
    let egg = Birth { hatch_ms: Some(1_000), run: Some(Box::new(spec())), ..Birth::of(A) };
    let it = given([born(R, R, None, egg), requested(A, spec()), spawned(first())]).at(1_000);
    let it = it.when(hatchery_core::Command::Tick).then([expired(A), stopping(first(), StopWhy::Killed)]);
    use hatchery_core::Cause;
    it.when(exit(first(), Exit::Signal(9))).then([over(
        first(),
        Cause::Killed,
        Exit::Signal(9),
        "its agent was killed",
    )]);
}

/// The answer is a message already, and the world is no place for a book of complaints.
#[test]
fn a_result_is_kept_in_short() {
    let long = "x".repeat(5_000);
    let end = TurnEnd {
        text: Some("the whole answer".into()),
        result: TurnResult::Failed { kind: FailureKind::Other, detail: long.clone() },
        denials: vec![Denial { tool: long.clone(), tool_use: Some(long.clone()) }; 50],
        ..well()
    };
    let it = hears(working(spec()), [result(end)]);
    let cut = || "x".repeat(1_000);
    let short = TurnEnd {
        text: None,
        result: TurnResult::Failed { kind: FailureKind::Other, detail: cut() },
        denials: vec![Denial { tool: cut(), tool_use: Some(cut()) }; 20],
        ..well()
    };
    it.then([turn_ended(first(), short, nothing_spent()), taken(first(), 11)]);
}

#[test]
fn a_turn_begins_with_what_it_hears_or_with_a_line_of_its_own() {
    let in_turn = |it: &Given| last_run(it).attempt.in_turn;
    let it = done(staying());
    assert!(!in_turn(&it));
    let of_itself =
        hears(it.clone(), [Output::TurnStarted, Output::TurnStarted]).then([turn_started(first()), taken(first(), 22)]);
    assert!(in_turn(&of_itself));
    let it = it.and(said(A, "more"));
    assert!(!in_turn(&it), "it was told nothing yet");
    let it = hears(it, [echo(11)]).then([heard(first(), 11), taken(first(), 21)]);
    assert!(in_turn(&it));
    let it = hears(it, [Output::TurnStarted, text("yes"), result(well())]);
    let it = it.then([spoke(A, "yes"), turn_ended(first(), well(), nothing_spent()), taken(first(), 24)]);
    assert!(!in_turn(&it));
    assert_eq!(last_run(&it).turns, 2);
}

/// A tool that has not answered when its turn is over never will.
#[test]
fn no_tool_outlives_its_turn_or_its_process() {
    let it = working(spec()).and(called(A)).when(fork(A, B)).then([fork_requested(A, B)]);
    let end = turn_ended(first(), well(), nothing_spent());
    hears(it.clone(), [result(well())]).then([end, taken(first(), 11), forked(A, B, Some(9))]);
    let crash = crashed(first(), Exit::Signal(9), MID_TURN);
    it.when(exit(first(), Exit::Signal(9))).then([crash, resumed(attempt(2)), forked(A, B, Some(9))]);
}

/// The child inherits the call with its answer, and not the call after it.
#[test]
fn a_fork_happens_at_its_result_though_the_next_tool_is_called_in_the_same_breath() {
    let it = working(spec()).and(called(A)).when(fork(A, B)).then([fork_requested(A, B)]);
    let answer = || Output::ToolResult { id: "t".into(), content: "ok".into(), is_error: false };
    let call = Output::ToolUse { id: "u".into(), name: "ls".into(), input: "{}".into() };
    let answered = || added(A, MessageKind::ToolResult, r#"{"content":"ok","id":"t","is_error":false}"#);
    let called = added(A, MessageKind::ToolCall, r#"{"id":"u","input":{},"name":"ls"}"#);
    hears(it, [answer(), call]).then([answered(), called, taken(first(), 12), forked(A, B, Some(11))]);
}

#[test]
fn time_does_not_run_backwards_for_a_process() {
    let it = hears(working(spec()).at(500), [text("a")]).then([spoke(A, "a"), taken(first(), 11)]);
    let it = hears(it.at(400), [text("b")]).then([spoke(A, "b"), taken(first(), 12)]);
    assert_eq!(last_run(&it).attempt.last_output, Timestamp(500));
}
