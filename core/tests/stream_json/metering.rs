//! Nothing is counted twice, and nothing that is reported is missed, over processes, resumes and forks of both versions.

use super::{names, outputs, turn_ends};
use hatchery_core::usage::Money;
use hatchery_core::{Meter, Output, Usage};
use std::collections::BTreeSet;

/// What one short answer of the scripted model costs in the newer recordings, and in the older ones.
const NEW: u64 = 140_000;
const OLD: u64 = 105_000;

/// What a session cost whose processes were these, in this order, in billionths of a dollar.
fn cost(mut meter: Meter, processes: &[&str]) -> u64 {
    used(&mut meter, processes).cost.nanodollars
}

fn used(meter: &mut Meter, processes: &[&str]) -> Usage {
    let mut sum = Usage::default();
    for name in processes {
        meter.new_process();
        turn_ends(name).iter().for_each(|end| sum += meter.take(end));
    }
    sum
}

#[test]
fn one_answer_counts_once() {
    let plain = Usage { cost: Money { nanodollars: NEW }, input_tokens: 10, output_tokens: 5, ..Usage::default() };
    assert_eq!(used(&mut Meter::New, &["plain"]), plain);
    assert_eq!(cost(Meter::New, &["js_plain"]), OLD);
}

#[test]
fn two_turns_of_one_process_count_once_each() {
    assert_eq!(cost(Meter::New, &["stdin_two_turns"]), 2 * NEW);
    let mut meter = Meter::New;
    let turns: Vec<_> = turn_ends("js_team_lead").iter().map(|end| meter.take(end).cost.nanodollars).collect();
    assert_eq!(turns, [490_000, OLD, 280_000, OLD], "the totals of the old version go on within a process");
}

#[test]
fn a_resumed_session_counts_each_turn_once() {
    let processes = ["session_id_first", "resume", "resume_snapshot_off", "resume_other_cwd", "continue"];
    assert_eq!(cost(Meter::New, &processes), 5 * NEW, "its totals go on over resumes");
    assert_eq!(cost(Meter::New, &["js_plain", "js_resume"]), 2 * OLD, "its totals begin anew with each process");
}

#[test]
fn a_fork_does_not_pay_for_its_parent() {
    assert_eq!(cost(Meter::Inherited, &["fork"]), NEW);
    assert_eq!(cost(Meter::Inherited, &["fork_with_session_id"]), NEW);
}

#[test]
fn a_turn_that_was_killed_is_paid_for_with_the_next() {
    assert_eq!(cost(Meter::New, &["sig_SIGTERM_tool", "sig_SIGTERM_tool_resume"]), 2 * NEW);
    assert_eq!(cost(Meter::New, &["sig_SIGINT_tool", "sig_SIGINT_tool_resume"]), 2 * NEW);
}

#[test]
fn a_failed_resume_changes_nothing() {
    assert_eq!(cost(Meter::New, &["session_id_first", "resume_unknown", "resume"]), 2 * NEW);
    assert_eq!(cost(Meter::New, &["js_plain", "js_resume_other_cwd", "js_resume"]), 2 * OLD);
}

#[test]
fn sub_agents_are_paid_for_with_models_of_their_own() {
    let both = used(&mut Meter::New, &["agents_task"]);
    assert_eq!(both.cost.nanodollars, 2 * NEW + 3_500, "the small model's millionths are not rounded away");
    assert_eq!((both.input_tokens, both.output_tokens, both.tokens()), (30, 15, 45));
}

#[test]
fn no_recorded_process_costs_more_than_its_own_total() {
    for name in names() {
        let total = turn_ends(&name).last().map_or(0, |end| end.total.cost.nanodollars);
        assert!(cost(Meter::Inherited, &[&name]) <= total, "{name}");
        assert_eq!(cost(Meter::New, &[&name]), total, "{name}");
    }
}

#[test]
fn a_meter_can_be_put_down_and_taken_up_again() {
    let mut meter = Meter::New;
    used(&mut meter, &["session_id_first"]);
    let bytes = rmp_serde::to_vec_named(&meter).unwrap();
    let mut again: Meter = rmp_serde::from_slice(&bytes).unwrap();
    assert_eq!(used(&mut again, &["resume"]).cost.nanodollars, NEW);
}

#[test]
fn money_is_read_and_shown() {
    let shown = |dollars: f64| Money::from_dollars(dollars).to_string();
    assert_eq!(Money::from_dollars(3.5000000000000004e-6).nanodollars, 3_500);
    assert_eq!(shown(0.0), "$0");
    assert_eq!(shown(0.00014000000000000001), "$0.00014");
    assert_eq!(shown(0.5), "$0.5");
    assert_eq!(shown(12.304), "$12.30");
    assert_eq!(shown(1.999), "$2.00");
    assert_eq!(shown(-1.0), "$0");
    assert_eq!(Money::from_dollars(f64::MAX).nanodollars, u64::MAX);
}

/// What the lines of a recorded run show to be used, before its result does.
fn by_line(name: &str) -> Usage {
    let used = outputs(name).into_iter().filter_map(|output| match output {
        Output::Used { usage, .. } => Some(usage),
        _ => None,
    });
    used.fold(Usage::default(), |sum, used| sum + used)
}

/// An answer is said in several lines, each with the usage of the whole.
#[test]
fn the_prompts_of_a_turn_are_known_before_it_ends_and_each_counts_once() {
    let mut compared = 0;
    for name in names() {
        let ends = turn_ends(&name);
        let [end] = ends.as_slice() else { continue };
        if end.total.input_tokens == 0 || end.since_last.is_none_or(|since| since != end.total) {
            continue;
        }
        let seen = by_line(&name);
        assert!(seen.input_tokens <= end.total.input_tokens, "{name}: {seen:?}");
        compared += u32::from(seen.input_tokens == end.total.input_tokens);
    }
    assert!(compared > 40, "{compared} recordings agree");
    assert_eq!(by_line("tool_use").input_tokens, 40, "four answers in seven lines");
    assert_eq!(by_line("agents_task").input_tokens, 30, "the sub-agent's answer counts");
}

/// The lines count hardly a token of the answers.
#[test]
fn a_killed_turn_shows_what_it_cost_so_far() {
    for name in ["sig_SIGTERM_tool", "sig_SIGINT_tool"] {
        let seen = by_line(name);
        assert!(seen.input_tokens > 0 && seen.cost.nanodollars >= 40_000, "{name}: {seen:?}");
    }
    assert!(by_line("tool_use").output_tokens > 4, "what the model wrote is estimated by its length");
}

/// A result names the windows of all models that were used; the one that counts is that of the agent itself.
#[test]
fn a_turn_says_how_full_the_context_is() {
    let mut windows = BTreeSet::new();
    for name in names() {
        for end in turn_ends(&name).iter().filter(|end| end.result.is_ok()) {
            let Some(context) = end.context else { continue };
            assert!(context.tokens > 0, "{name}: {end:?}");
            windows.extend(context.window);
        }
    }
    assert_eq!(windows, BTreeSet::from([200_000, 1_000_000]));
}
