//! Whatever can be said about runs: on the log as JSON, and in the world's snapshot as MessagePack.

use super::outputs::{capabilities, output, turn_end};
use super::{agent, event_id, quests, text};
use hatchery_core::ask::About;
use hatchery_core::event::Refused;
use hatchery_core::event::{AgentEvent, BudgetEvent, PermissionEvent, QuestionEvent, RunEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::outcome::{Cause, Exit, Outcome};
use hatchery_core::output::Output;
use hatchery_core::permission::{
    Access, DecidedBy, EarlyAnswer, PendingPermission, PendingState, PermissionDecision, PermissionPolicy,
    PermissionRequest, PermissionRule,
};
use hatchery_core::run::{
    Attempt, AttemptId, BudgetState, Conversation, Delivery, DeliveryKind, DesiredRun, DesiredState, ForeignSession,
    HarnessSession, PastRun, Process, Readiness, Run, RunSpec, RunState, StopWhy,
};
use hatchery_core::usage::{ContextUse, Meter, Metered, Money, Usage};
use hatchery_core::{Event, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

pub fn spec() -> impl Strategy<Value = RunSpec> {
    let positions = (text(), text(), option::of(text()), option::of(text()), option::of(text()));
    let defaults = (any::<bool>(), any::<u64>(), any::<bool>(), any::<u32>(), any::<bool>(), any::<bool>());
    (positions, defaults, policy()).prop_map(
        |(
            (harness, host, folder, model, script),
            (stays, stall_ms, kill_stuck, retries, parks, signals),
            permissions,
        )| RunSpec {
            harness,
            host: host.into(),
            folder,
            model,
            script,
            stays,
            stall_ms,
            kill_stuck,
            retries,
            parks,
            signals,
            permissions,
        },
    )
}

pub fn happened() -> impl Strategy<Value = Event> {
    prop_oneof![
        (agent(), any::<u32>(), spec())
            .prop_map(|(agent, run, spec)| Event::Agent { agent, what: AgentEvent::RunRequested { run, spec } }),
        (attempt(), process(), option::of(text()), option::of(text()), capabilities()).prop_map(
            |(of, process, session, copy_of, capabilities)| Event::Run {
                of,
                what: RunEvent::Spawned { process, session, copy_of, capabilities }
            }
        ),
        (attempt(), text(), option::of(text()), vec(text(), 0..3)).prop_map(|(of, session, model, tools)| Event::Run {
            of,
            what: RunEvent::Started { session, model, tools }
        }),
        (attempt(), event_id()).prop_map(|(of, message)| Event::Run { of, what: RunEvent::MessageHeard { message } }),
        (attempt(), output()).prop_map(|(of, output)| Event::Run { of, what: RunEvent::OutputNoted { output } }),
        (attempt(), any::<u64>()).prop_map(|(of, upto)| Event::Run { of, what: RunEvent::OutputTaken { upto } }),
        (attempt(), any::<u64>(), any::<u64>(), option::of(refused()), any::<bool>()).prop_map(
            |(of, number, led_to, refused, signal)| Event::Run {
                of,
                what: RunEvent::CallTaken { number, led_to, refused, signal }
            }
        ),
        attempt().prop_map(|of| Event::Run { of, what: RunEvent::TurnStarted }),
        (attempt(), turn_end(), usage(), usage())
            .prop_map(|(of, end, spent, metered)| Event::Run { of, what: RunEvent::TurnEnded { end, spent, metered } }),
        (attempt(), instant()).prop_map(|(of, since)| Event::Run { of, what: RunEvent::Silent { since } }),
        attempt().prop_map(|of| Event::Run { of, what: RunEvent::Waiting }),
        attempt().prop_map(|of| Event::Run { of, what: RunEvent::Interrupted }),
        (attempt(), why()).prop_map(|(of, why)| Event::Run { of, what: RunEvent::Stopping { why } }),
        (attempt(), cause(), option::of(instant()), text())
            .prop_map(|(of, cause, until, detail)| Event::Run { of, what: RunEvent::Parked { cause, until, detail } }),
        (attempt(), cause(), text(), exit(), any::<bool>()).prop_map(|(of, cause, detail, exit, forgotten)| {
            Event::Run { of, what: RunEvent::Crashed { cause, detail, exit, forgotten } }
        }),
        (agent(), foreign()).prop_map(|(agent, harness_session)| Event::Agent {
            agent,
            what: AgentEvent::HarnessSessionAdopted(harness_session)
        }),
        attempt().prop_map(|of| Event::Run { of, what: RunEvent::BudgetReached }),
        (attempt(), usage(), option::of(context_use()))
            .prop_map(|(of, used, context)| Event::Run { of, what: RunEvent::Metered { used, context } }),
        (option::of(agent()), option::of(money()))
            .prop_map(|(agent, limit)| Event::Budget(BudgetEvent::Set { agent, limit })),
        (option::of(agent()), rule())
            .prop_map(|(agent, allows)| Event::Permission(PermissionEvent::RuleAdded { agent, allows })),
        (option::of(agent()), event_id())
            .prop_map(|(agent, rule)| Event::Permission(PermissionEvent::RuleRemoved { agent, rule })),
        (
            attempt(),
            text(),
            decision(),
            prop::sample::select(vec![DecidedBy::Policy, DecidedBy::Rule, DecidedBy::Human])
        )
            .prop_map(|(of, request, decision, by)| Event::Run {
                of,
                what: RunEvent::PermissionDecided { request, decision, by }
            }),
        (agent(), about(), text())
            .prop_map(|(agent, about, text)| Event::Question { agent, what: QuestionEvent::Asked { about, text } }),
        (agent(), event_id(), text()).prop_map(|(agent, question, answer)| Event::Question {
            agent,
            what: QuestionEvent::Answered { question, answer }
        }),
        (agent(), event_id())
            .prop_map(|(agent, question)| Event::Question { agent, what: QuestionEvent::Withdrawn { question } }),
        attempt().prop_map(|of| Event::Run { of, what: RunEvent::Resumed }),
        (attempt(), cause(), text(), exit())
            .prop_map(|(of, cause, detail, exit)| Event::Run { of, what: RunEvent::Ended { cause, detail, exit } }),
    ]
}

pub fn attempt() -> impl Strategy<Value = AttemptId> {
    (agent(), any::<u32>(), any::<u32>()).prop_map(|(agent, run, attempt)| AttemptId { agent, run, attempt })
}

fn foreign() -> impl Strategy<Value = ForeignSession> {
    (text(), text(), text(), option::of(text())).prop_map(|(harness, session, host, folder)| ForeignSession {
        harness,
        session,
        host: host.into(),
        folder,
    })
}

pub fn money() -> impl Strategy<Value = Money> {
    any::<u64>().prop_map(|nanodollars| Money { nanodollars })
}

fn about() -> impl Strategy<Value = About> {
    prop_oneof![
        attempt().prop_map(About::Silence),
        attempt().prop_map(About::Permission),
        option::of(agent()).prop_map(|of| About::Budget { of }),
        quests::quest().prop_map(|quest| About::QuestBudget { quest }),
        (quests::quest(), quests::trouble()).prop_map(|(quest, trouble)| About::Step { quest, trouble }),
    ]
}

fn process() -> impl Strategy<Value = Process> {
    (any::<u32>(), any::<u64>()).prop_map(|(pid, began)| Process { pid, began })
}

pub fn instant() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp)
}

pub fn usage() -> impl Strategy<Value = Usage> {
    any::<[u64; 5]>().prop_map(|[nanodollars, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens]| {
        Usage { cost: Money { nanodollars }, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens }
    })
}

fn refused() -> impl Strategy<Value = Refused> {
    (text(), text(), text()).prop_map(|(code, message, hint)| Refused { code, message, hint })
}

fn why() -> impl Strategy<Value = StopWhy> {
    prop_oneof![
        Just(StopWhy::User),
        Just(StopWhy::Killed),
        Just(StopWhy::Stuck),
        Just(StopWhy::Session),
        Just(StopWhy::Paused),
        Just(StopWhy::Abandoned),
        Just(StopWhy::Signalled),
        Just(StopWhy::AwaitsPermission),
        Just(StopWhy::OverBudget),
        text().prop_map(|why| StopWhy::NotReady { why }),
    ]
}

fn cause() -> impl Strategy<Value = Cause> {
    use Cause::*;
    prop::sample::select(vec![
        Completed,
        Crashed,
        Stuck,
        Killed,
        UserEnded,
        RateLimited,
        Overloaded,
        OutOfCredit,
        Unauthorised,
        PromptTooLong,
        LostWithMachine,
        OverBudget,
        AwaitsPermission,
        Unavailable,
        Refused,
        OutputTooLong,
        WrongModel,
        BadArguments,
    ])
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![
        any::<i32>().prop_map(Exit::Code),
        any::<i32>().prop_map(Exit::Signal),
        Just(Exit::NotStarted),
        Just(Exit::LostWithMachine),
        Just(Exit::Unknown),
    ]
}

pub fn policy() -> impl Strategy<Value = Option<PermissionPolicy>> {
    option::of(prop::sample::select(PermissionPolicy::ALL.to_vec()))
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        text().prop_map(|path| Access::Read { path }),
        text().prop_map(|path| Access::Edit { path }),
        text().prop_map(|command| Access::Execute { command }),
        Just(Access::Other),
        Just(Access::OwnTool),
        Just(Access::NotOffered),
    ]
}

pub fn request() -> impl Strategy<Value = PermissionRequest> {
    (text(), text(), option::of(text()), text(), access(), option::of(text())).prop_map(
        |(request, tool, tool_use, input, access, folder)| PermissionRequest {
            request,
            tool,
            tool_use,
            input,
            access,
            folder,
        },
    )
}

fn pending() -> impl Strategy<Value = PendingPermission> {
    let state = prop_oneof![
        Just(PendingState::New),
        (event_id(), instant()).prop_map(|(question, since)| PendingState::Asked { question, since }),
        (event_id(), decision()).prop_map(|(at, decision)| PendingState::Decided { at, decision }),
    ];
    (request(), state).prop_map(|(request, state)| PendingPermission { request, state })
}

fn early(pending: &PendingPermission) -> EarlyAnswer {
    let PermissionRequest { tool, input, .. } = pending.request.clone();
    EarlyAnswer { tool, input, decision: PermissionDecision::Allow }
}

fn rule() -> impl Strategy<Value = PermissionRule> {
    prop_oneof![
        option::of(text()).prop_map(|below| PermissionRule::Read { below }),
        option::of(text()).prop_map(|below| PermissionRule::Edit { below }),
        text().prop_map(|command| PermissionRule::Execute { command }),
        text().prop_map(|name| PermissionRule::Tool { name }),
    ]
}

fn decision() -> impl Strategy<Value = PermissionDecision> {
    prop_oneof![Just(PermissionDecision::Allow), text().prop_map(|reason| PermissionDecision::Deny { reason })]
}

/// However much was said.
fn outcome() -> impl Strategy<Value = Outcome> {
    vec(output(), 0..4).prop_map(|outputs| {
        let mut outcome = Outcome::default();
        outputs.iter().for_each(|output| outcome.take(output));
        outcome
    })
}

fn state() -> impl Strategy<Value = RunState> {
    prop_oneof![
        Just(RunState::Starting),
        process().prop_map(|process| RunState::Spawned { process }),
        process().prop_map(|process| RunState::Running { process }),
        (why(), option::of(process())).prop_map(|(why, process)| RunState::Stopping { why, process }),
        (cause(), option::of(instant())).prop_map(|(cause, until)| RunState::Parked { cause, until }),
        (cause(), instant()).prop_map(|(cause, at)| RunState::Ended { cause, at }),
    ]
}

fn run() -> impl Strategy<Value = Run> {
    let counts = any::<([u32; 6], [u64; 2], [bool; 9])>();
    let answers =
        (vec((any::<u64>(), event_id()), 0..3), option::of(event_id()), option::of(text()), option::of(instant()));
    (
        spec(),
        state(),
        counts,
        [instant(), instant(), instant()],
        answers,
        outcome(),
        (meter(), usage(), vec(pending(), 0..3)),
    )
        .prop_map(
            |(
                spec,
                state,
                (
                    counts,
                    [spooled, calls],
                    [copied, started, has_confirmed, in_turn, held, signalled, waits, cut_short, awaits],
                ),
                times,
                (answers, question, signal_in_output, silent),
                outcome,
                (meter, spent, permissions),
            )| {
                let [number, attempt, crashes, parks, turns, overspent] = counts;
                let [requested, last_output, addressed] = times;
                let answers = answers.into_iter().collect();
                let early_answers = permissions.iter().map(early).collect();
                let readiness = match (started, copied) {
                    (false, _) => Readiness::Starting,
                    (true, true) => Readiness::ConfirmsModel,
                    (true, false) => Readiness::Ready,
                };
                let budget = match held {
                    true => BudgetState::UsedUp { cut_short, calls: overspent },
                    false => BudgetState::Within,
                };
                let attempt = Attempt {
                    number: attempt,
                    waits,
                    last_output,
                    spooled,
                    calls,
                    answers,
                    capabilities: Capabilities::ALL,
                    copied,
                    readiness,
                    has_confirmed,
                    in_turn,
                    waiting_call: awaits.then(|| "toolu_1".to_owned()),
                    silent,
                    permissions: permissions.into_iter().collect(),
                    budget,
                    signal_in_output,
                    outcome,
                    meter,
                };
                Run {
                    number,
                    spec: spec.into(),
                    state,
                    attempt,
                    crashes,
                    parks,
                    requested,
                    addressed,
                    question,
                    early_answers,
                    signalled,
                    turns,
                    spent,
                }
            },
        )
}

fn meter() -> impl Strategy<Value = Meter> {
    prop_oneof![
        Just(Meter::New),
        Just(Meter::Inherited),
        usage().prop_map(Meter::Copied),
        usage().prop_map(Meter::PerProcess),
        usage().prop_map(Meter::PerSession)
    ]
}

pub fn context_use() -> impl Strategy<Value = ContextUse> {
    (any::<u64>(), option::of(any::<u64>())).prop_map(|(tokens, window)| ContextUse { tokens, window })
}

fn metered() -> impl Strategy<Value = Metered> {
    (usage(), usage()).prop_map(|(turn, lost)| Metered { turn, lost })
}

fn conversation() -> impl Strategy<Value = Conversation> {
    use DeliveryKind::*;
    let named = (text(), text(), text(), option::of(text()));
    let harness_session = (named, meter(), option::of(capabilities())).prop_map(|(named, meter, capabilities)| {
        let (harness, session, host, folder) = named;
        HarnessSession { folder, harness, session, host: host.into(), meter, capabilities }
    });
    let what = prop::sample::select(vec![Briefing, Message, Nudge, Reminder, Interrupt]);
    let delivery = (event_id(), what).prop_map(|(id, what)| Delivery { id, what });
    let turns = vec((event_id(), text()), 0..3);
    (
        option::of(harness_session),
        any::<bool>(),
        vec(delivery, 0..4),
        usage(),
        metered(),
        option::of(context_use()),
        turns,
        option::of(event_id()),
    )
        .prop_map(|(harness_session, orphaned, waiting, spent, metered, context, turns, maybe_received)| {
            Conversation {
                harness_session,
                orphaned,
                waiting: waiting.into_iter().collect(),
                spent,
                metered,
                context,
                turns: turns.into_iter().collect(),
                maybe_received,
            }
        })
}

fn past_run() -> impl Strategy<Value = PastRun> {
    (text(), any::<[u32; 2]>(), (instant(), instant()), cause(), text(), usage()).prop_map(
        |(harness, [attempts, turns], (requested, ended), cause, detail, spent)| PastRun {
            harness,
            attempts,
            turns,
            requested,
            ended,
            cause,
            detail,
            spent,
        },
    )
}

fn wanted() -> impl Strategy<Value = DesiredRun> {
    let act = prop_oneof![
        (option::of(event_id()), any::<bool>()).prop_map(|(upto, last)| DesiredState::Running { upto, last }),
        Just(DesiredState::Stopped)
    ];
    (any::<[u32; 2]>(), text(), act, any::<bool>()).prop_map(|([run, attempt], host, act, lends_place)| DesiredRun {
        run,
        attempt,
        host: host.into(),
        state: act,
        lends_place,
    })
}

/// As the snapshot keeps it, and as it is shown.
pub fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(it: &T) -> Result<(), TestCaseError> {
    let saved = rmp_serde::to_vec_named(it).expect("plain data");
    prop_assert_eq!(&rmp_serde::from_slice::<T>(&saved).expect("what was saved loads"), it);
    let written = serde_json::to_string(it).expect("plain data");
    prop_assert_eq!(&serde_json::from_str::<T>(&written).expect("what was written can be read"), it);
    Ok(())
}

proptest! {
    #[test]
    fn what_the_world_keeps_of_runs_comes_back_unchanged(
        run in run(), conversation in conversation(), past in past_run(), wanted in wanted()
    ) {
        comes_back(&run)?;
        comes_back(&conversation)?;
        comes_back(&past)?;
        comes_back(&wanted)?;
    }

    /// It is said by a child, so it is written by somebody else, and read by us.
    #[test]
    fn an_output_comes_back_unchanged(output in output()) {
        let written = serde_json::to_string(&output).expect("plain data");
        prop_assert_eq!(serde_json::from_str::<Output>(&written).expect("what was written can be read"), output);
    }
}
