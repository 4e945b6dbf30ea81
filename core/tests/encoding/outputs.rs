//! Whatever an agent program can say, and what it can do.

use super::runs::{context_use, instant, request, usage};
use super::text;
use hatchery_core::harness::{Capabilities, Declared, ModelChoice, RepeatsHistory};
use hatchery_core::output::{Denial, FailureKind, Output, ServiceError, TurnEnd, TurnResult};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub fn output() -> impl Strategy<Value = Output> {
    let plain = prop_oneof![words(), troubles()];
    plain.prop_recursive(3, 6, 1, |inner| {
        (text(), inner).prop_map(|(tool_use, output)| Output::Subagent { tool_use, output: Box::new(output) })
    })
}

fn words() -> impl Strategy<Value = Output> {
    prop_oneof![
        (text(), option::of(text()), option::of(text()), vec(text(), 0..3))
            .prop_map(|(session, model, version, tools)| Output::Ready { session, model, version, tools }),
        text().prop_map(|why| Output::NotReady { why }),
        Just(Output::TurnStarted),
        text().prop_map(|text| Output::Text { text }),
        text().prop_map(|text| Output::Thinking { text }),
        (text(), text(), text()).prop_map(|(id, name, input)| Output::ToolUse { id, name, input }),
        (text(), text(), any::<bool>()).prop_map(|(id, content, is_error)| Output::ToolResult {
            id,
            content,
            is_error
        }),
        text().prop_map(|id| Output::Heard { id }),
        text().prop_map(|text| Output::Note { text }),
        turn_end().prop_map(Output::TurnEnded),
        (usage(), option::of(context_use())).prop_map(|(usage, context)| Output::Used { usage, context }),
    ]
}

fn troubles() -> impl Strategy<Value = Output> {
    prop_oneof![
        (
            any::<u32>(),
            option::of(any::<u32>()),
            option::of(any::<u16>()),
            option::of(any::<u64>()),
            option::of(text())
        )
            .prop_map(|(attempt, max_attempts, status, delay_ms, reason)| Output::Retrying {
                attempt,
                max_attempts,
                status,
                delay_ms,
                reason
            }),
        (any::<bool>(), option::of(instant()), option::of(text()))
            .prop_map(|(rejected, resets_at, window)| Output::Limit { rejected, resets_at, window }),
        (text(), option::of(text()), text()).prop_map(|(tool, tool_use, reason)| Output::Denied {
            tool,
            tool_use,
            reason
        }),
        request().prop_map(Output::Asked),
        text().prop_map(|request| Output::AskCancelled { request }),
        (text(), option::of(text())).prop_map(|(request, problem)| Output::Answered { request, problem }),
        (option::of(text()), option::of(any::<u64>()))
            .prop_map(|(trigger, tokens_before)| Output::Compacted { trigger, tokens_before }),
        (any::<[bool; 2]>(), model_choice(), repeats_history()).prop_map(
            |([resumes, forks], model_choice, repeats_history)| {
                Output::Declares(Declared { resumes, forks, model_choice, repeats_history })
            }
        ),
        text().prop_map(|model| Output::ModelChosen { model }),
        api_error().prop_map(Output::ApiError),
        (any::<u64>(), text()).prop_map(|(bytes, reason)| Output::Unread { bytes, reason }),
    ]
}

pub fn capabilities() -> impl Strategy<Value = Capabilities> {
    let yes_or_no = any::<[bool; 10]>();
    (yes_or_no, model_choice(), repeats_history()).prop_map(|(yes_or_no, model_choice, repeats_history)| {
        let [chooses, echoes, forks, interrupts, stays_open, asks, reports_cost, single, resumes, explains] = yes_or_no;
        Capabilities {
            chooses_session_id: chooses,
            echoes_messages: echoes,
            forks,
            interrupts,
            stays_open,
            asks_permission: asks,
            reports_cost,
            one_at_a_time: single,
            resumes,
            explains_denials: explains,
            model_choice,
            repeats_history,
        }
    })
}

fn model_choice() -> impl Strategy<Value = ModelChoice> {
    use ModelChoice::{AtStart, Never, SessionModel, SessionOption};
    prop::sample::select(vec![AtStart, SessionOption, SessionModel, Never])
}

fn repeats_history() -> impl Strategy<Value = RepeatsHistory> {
    use RepeatsHistory::{Always, Never, OnRequest};
    prop::sample::select(vec![Always, OnRequest, Never])
}

fn failure_kind() -> impl Strategy<Value = FailureKind> {
    prop_oneof![
        Just(FailureKind::RateLimited),
        Just(FailureKind::Overloaded),
        Just(FailureKind::OutOfCredit),
        Just(FailureKind::Unauthorised),
        Just(FailureKind::PromptTooLong),
        Just(FailureKind::Unavailable),
        Just(FailureKind::Refused),
        Just(FailureKind::OutputTooLong),
        Just(FailureKind::WrongModel),
        Just(FailureKind::Other),
    ]
}

fn api_error() -> impl Strategy<Value = ServiceError> {
    (failure_kind(), option::of(any::<u16>()), text()).prop_map(|(kind, status, text)| ServiceError {
        kind,
        status,
        text,
    })
}

pub fn turn_end() -> impl Strategy<Value = TurnEnd> {
    let denial = (text(), option::of(text())).prop_map(|(tool, tool_use)| Denial { tool, tool_use });
    let result = prop_oneof![
        Just(TurnResult::Ok),
        Just(TurnResult::Interrupted),
        (failure_kind(), text()).prop_map(|(kind, detail)| TurnResult::Failed { kind, detail }),
        Just(TurnResult::SessionUnknown),
    ];
    let used = (usage(), option::of(usage()), option::of(context_use()));
    let turn = (option::of(text()), any::<bool>());
    (result, option::of(text()), any::<u32>(), vec(denial, 0..3), used, turn).prop_map(
        |(result, text, num_turns, denials, (total, since_last, context), (turn, unanswered))| TurnEnd {
            result,
            text,
            num_turns,
            denials,
            total,
            since_last,
            context,
            turn,
            unanswered,
        },
    )
}
