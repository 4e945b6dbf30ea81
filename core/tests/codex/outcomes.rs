//! What was heard, said and used, and why turns ended.

use super::{ends, heard, names, outputs, texts};
use hatchery_core::output::{FailureKind, Output, TurnResult};
use hatchery_core::permission::Access;
use hatchery_core::usage::Usage;
use hatchery_core::{Exit, Outcome, Timestamp};

fn kinds(name: &str) -> Vec<TurnResult> {
    ends(&outputs(name)).into_iter().map(|end| end.result.clone()).collect()
}

fn failed(name: &str) -> FailureKind {
    match &kinds(name)[0] {
        TurnResult::Failed { kind, .. } => *kind,
        other => panic!("{name} ended with {other:?}"),
    }
}

#[test]
fn every_recording_with_our_tools_is_ready_once() {
    // In these our tools do not answer, or a resumed thread was not asked which messages it holds.
    let without = ["mcp_missing", "mcp_missing_required", "mcp_slow", "resume_pipelined"];
    for name in names() {
        let outputs = outputs(&name);
        let ready = outputs.iter().filter(|output| matches!(output, Output::Ready { .. })).count();
        let has_tools =
            super::said(&name).iter().any(|line| line.contains("startupStatus")) && !without.contains(&&*name);
        assert_eq!(ready, usize::from(has_tools), "{name}");
    }
}

#[test]
fn without_our_tools_it_is_not_ready() {
    for (name, why) in [
        ("mcp_missing", "No such file or directory"),
        ("mcp_missing_required", "required MCP servers failed to initialize"),
        ("mcp_slow", "timed out"),
    ] {
        let outputs = outputs(name);
        let said = outputs.iter().find_map(|output| match output {
            Output::NotReady { why } => Some(why.clone()),
            _ => None,
        });
        assert!(said.as_ref().is_some_and(|said| said.contains(why)), "{name}: {said:?}");
    }
}

#[test]
fn a_message_is_heard_by_its_echo() {
    assert_eq!(heard(&outputs("full_session")), ["event-41", "event-42", "event-43", "event-44"]);
    assert_eq!(heard(&outputs("mid_turn_in_tool")), ["m1", "m2", "m4"]);
    assert_eq!(heard(&outputs("killed_at_turn_started")), ["m1"], "it had begun the turn of the second");
}

#[test]
fn a_resumed_thread_says_which_messages_it_holds() {
    assert_eq!(heard(&outputs("killed_at_echo_resumed")), ["m1", "m2", "m3"]);
    assert_eq!(heard(&outputs("killed_at_turn_started_resumed")), ["m1", "m3"], "the second was lost");
    let listed = outputs("killed_at_echo_turns_listed");
    assert_eq!(heard(&listed), ["m2", "m1", "m3"], "the last turns, the newest first");
    let ready = listed.iter().position(|output| matches!(output, Output::Ready { .. }));
    assert_eq!(ready, Some(2), "messages wait until it has said which it holds: {listed:?}");
}

#[test]
fn what_was_said_is_whole() {
    assert_eq!(texts(&outputs("two_turns")), ["I call it.", "Done with it.", "second answer"]);
    assert_eq!(texts(&outputs("mid_turn_in_answer_no_instant_interrupt")).len(), 2);
    assert_eq!(texts(&outputs("mid_turn_in_answer")), ["second part"], "the first was broken off");
}

#[test]
fn failures_have_the_causes_that_all_harnesses_share() {
    assert_eq!(failed("err401"), FailureKind::Unauthorised);
    assert_eq!(failed("err429_usage_limit"), FailureKind::RateLimited);
    assert_eq!(failed("err503_overloaded"), FailureKind::Overloaded);
    assert_eq!(failed("context_too_long"), FailureKind::PromptTooLong);
    assert_eq!(failed("err500_forever"), FailureKind::Unavailable);
    for name in ["err401", "err429_usage_limit", "err503_overloaded", "context_too_long", "err500_forever"] {
        assert_eq!(kinds(name)[1], TurnResult::Ok, "{name}: the process lives on");
    }
}

#[test]
fn a_used_up_limit_says_when_it_is_lifted() {
    let outputs = outputs("err429_usage_limit");
    let mut outcome = Outcome::default();
    let upto = outputs.iter().position(|output| matches!(output, Output::TurnEnded(_))).unwrap();
    outputs[..=upto].iter().for_each(|output| outcome.take(output));
    assert_eq!(outcome.resets_at(), Some(Timestamp(1_794_900_000_000)));
    let (cause, _) = outcome.cause(Exit::Code(0), None);
    assert_eq!(cause.to_string(), "rate-limited");
}

#[test]
fn a_limit_that_is_not_reached_is_no_refusal_and_is_said_once() {
    let limits: Vec<_> =
        outputs("rate_limits_while_well").into_iter().filter(|it| matches!(it, Output::Limit { .. })).collect();
    assert!(matches!(limits.as_slice(), [Output::Limit { rejected: false, resets_at: Some(_), .. }]), "{limits:?}");
}

#[test]
fn a_retry_is_no_end() {
    for (name, expected) in [("err429_once", Some(429)), ("stream_cut_once", None)] {
        let outputs = outputs(name);
        let retry = outputs.iter().find_map(|output| match output {
            Output::Retrying { attempt, max_attempts, status, .. } => Some((*attempt, *max_attempts, *status)),
            _ => None,
        });
        assert_eq!(retry, Some((1, Some(1), expected)), "{name}");
        assert!(kinds(name).iter().all(TurnResult::is_ok), "{name}");
    }
}

#[test]
fn an_interrupt_is_answered_and_ends_the_turn() {
    let results = kinds("interrupt");
    assert_eq!(results, [TurnResult::Interrupted, TurnResult::Ok, TurnResult::Interrupted, TurnResult::Ok]);
    let answered = outputs("interrupt").into_iter().filter(|it| matches!(it, Output::Answered { problem: None, .. }));
    assert!(answered.count() >= 2);
    let refused =
        |it: &Output| matches!(it, Output::Answered { problem: Some(why), .. } if why.contains("expected active turn"));
    assert!(outputs("interrupt").iter().any(refused));
}

#[test]
fn each_request_for_permission_says_what_it_would_do_and_is_resolved() {
    let outputs = outputs("approvals");
    let asked: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Asked(request) => Some((request.request.as_str(), request.tool.as_str(), request.access.clone())),
            _ => None,
        })
        .collect();
    let execute = |command: &str| Access::Execute { command: command.to_owned() };
    assert_eq!(
        asked,
        [
            ("decision:0", "exec_command", execute("echo out > ../outside.txt && cat ../outside.txt")),
            ("decision:1", "apply_patch", Access::Edit { path: "/home/dev/new_outside.txt".to_owned() }),
            ("decision:2", "exec_command", execute("echo two > ../two.txt")),
            ("action:3", "mcp__hatchery__signal-back", Access::OwnTool),
        ]
    );
    let resolved: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Answered { request, .. } => Some(request.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(resolved, ["decision:0", "decision:1", "decision:2", "action:3"]);
}

#[test]
fn each_use_of_a_tool_has_its_result() {
    for name in ["approvals", "two_turns", "mid_turn_in_tool", "plan_and_web_search", "subagent"] {
        let outputs = outputs(name);
        let of = |pick: fn(&Output) -> Option<&String>| outputs.iter().filter_map(pick).cloned().collect::<Vec<_>>();
        let mut used = of(|it| if let Output::ToolUse { id, .. } = it { Some(id) } else { None });
        let mut results = of(|it| if let Output::ToolResult { id, .. } = it { Some(id) } else { None });
        used.sort();
        results.sort();
        assert!(!used.is_empty(), "{name}");
        assert_eq!(used, results, "{name}");
    }
}

#[test]
fn our_tools_have_the_names_that_we_gave_them() {
    let named = |it: &Output| matches!(it, Output::ToolUse { name, .. } if name == "signal-back");
    assert!(outputs("two_turns").iter().any(named));
}

#[test]
fn what_a_subagent_says_is_not_said_by_its_parent() {
    let outputs = outputs("subagent");
    assert_eq!(texts(&outputs), ["spawning", "waiting", "all done"]);
    let of_subagent: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Subagent { tool_use, output } => Some((tool_use.as_str(), output.as_ref().clone())),
            _ => None,
        })
        .collect();
    assert_eq!(of_subagent, [("call_c45e16427a314b84b183", Output::Text { text: "child answer".to_owned() })]);
    assert_eq!(ends(&outputs).len(), 1);
    let end = ends(&outputs)[0];
    assert_eq!(end.since_last.map(|used| used.tokens()), Some(45 + 1_005), "the sub-agent's tokens count");
}

#[test]
fn what_a_turn_used_is_the_difference_of_totals() {
    let outputs = outputs("full_session");
    let ends = ends(&outputs);
    let used: Vec<_> = ends.iter().map(|end| end.since_last.unwrap().tokens()).collect();
    // The total is said again when a turn is interrupted.
    assert_eq!(used, [2_285, 0]);
    let total = ends[0].total;
    assert_eq!((total.input_tokens, total.cache_read_tokens, total.output_tokens), (810, 1_400, 75));
    // gpt-5.5 costs 5, 30 and 0.5 dollars for a million tokens of input, output and cache.
    assert_eq!(ends[0].since_last.unwrap().cost.nanodollars, 810 * 5_000 + 75 * 30_000 + 1_400 * 500);
}

/// What was counted request by request before each end of a turn.
fn metered(outputs: &[Output]) -> Vec<Usage> {
    let mut sums = vec![Usage::default()];
    for output in outputs {
        match output {
            Output::Used { usage, .. } => *sums.last_mut().unwrap() += *usage,
            Output::TurnEnded(_) => sums.push(Usage::default()),
            _ => {}
        }
    }
    sums
}

#[test]
fn what_each_request_used_is_told_when_it_is_over_and_adds_up_to_what_the_turn_used() {
    let used: Vec<u64> = outputs("full_session")
        .iter()
        .filter_map(|output| match output {
            Output::Used { usage, .. } => Some(usage.tokens()),
            _ => None,
        })
        .collect();
    assert_eq!(used, [1_050, 15, 1_220]);
    for name in names() {
        let outputs = outputs(&name);
        for (end, metered) in ends(&outputs).into_iter().zip(metered(&outputs)) {
            assert_eq!(end.since_last.unwrap_or_default(), metered, "{name}");
        }
    }
}

#[test]
fn a_resumed_thread_begins_with_what_it_had_used() {
    let outputs = outputs("killed_at_echo_resumed");
    let end = ends(&outputs)[0];
    assert_eq!(end.total.tokens(), 120);
    assert_eq!(end.since_last.map(|used| used.tokens()), Some(15));
}

#[test]
fn a_compaction_is_noted() {
    let compacted = outputs("fork_read_list_compact").into_iter().filter(|it| matches!(it, Output::Compacted { .. }));
    assert_eq!(compacted.count(), 1);
}

#[test]
fn a_broken_off_process_has_no_end() {
    for name in ["eof_in_turn", "sigterm_in_turn", "killed_in_tool"] {
        let mut outcome = Outcome::default();
        outputs(name).iter().for_each(|output| outcome.take(output));
        assert_eq!(outcome.last_turn(), None, "{name}");
    }
}

#[test]
fn the_end_of_a_turn_says_how_full_the_context_is() {
    let outputs = outputs("full_session");
    let full: Vec<_> = ends(&outputs).iter().map(|end| end.context.unwrap()).collect();
    assert!(full.iter().all(|context| context.tokens > 0 && context.window == Some(258_400)), "{full:?}");
    let mut last = outputs.iter().filter_map(|output| match output {
        Output::Used { context, .. } => *context,
        _ => None,
    });
    assert_eq!(last.next_back(), full.last().copied());
}
