//! Whatever can be said about quests: on the log as JSON, and in the world's snapshot as MessagePack.

use super::runs::{attempt, comes_back, instant, money, policy, spec, usage};
use super::{agent, event_id, text};
use hatchery_core::ask::StepTrouble;
use hatchery_core::event::{QuestEvent, StepEvent};
use hatchery_core::quest::{
    Assignment, Brief, Caller, Chore, ChoreKind, GivenSignal, Isolation, Merge, NextAction, Note, NoteKind, Observable,
    Quest, QuestContext, QuestSpec, QuestState, QueuePosition, RefusedSignal, Requirements, Signal, SlotWork, Step,
    StepAgent, StepFork, StepForkState, StepId, StepPlan, StepProgress, StepState, Verdict, WardRun, WardSpec,
};
use hatchery_core::roles::{Paths, Phase, Role, SignalKind, Table};
use hatchery_core::{Event, QuestId};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub fn quest() -> impl Strategy<Value = QuestId> {
    any::<[u8; 16]>().prop_map(QuestId::from_bytes)
}

pub fn trouble() -> impl Strategy<Value = StepTrouble> {
    use StepTrouble::*;
    prop::sample::select(vec![Input, Circle, Ended, Ward, Merge, Approval])
}

pub fn happened() -> impl Strategy<Value = Event> {
    prop_oneof![of_quests(), of_steps()]
}

fn of_quests() -> impl Strategy<Value = Event> {
    prop_oneof![
        (quest(), quest_spec(), option::of(money())).prop_map(|(quest, quest_spec, budget)| Event::Quest {
            quest,
            what: QuestEvent::Created { quest_spec: Box::new(quest_spec), budget }
        }),
        quest().prop_map(|quest| Event::Quest { quest, what: QuestEvent::Paused }),
        quest().prop_map(|quest| Event::Quest { quest, what: QuestEvent::Resumed }),
        quest().prop_map(|quest| Event::Quest { quest, what: QuestEvent::Abandoned }),
        quest().prop_map(|quest| Event::Quest { quest, what: QuestEvent::Completed }),
        (quest(), option::of(money()))
            .prop_map(|(quest, limit)| Event::Quest { quest, what: QuestEvent::BudgetSet { limit } }),
        (quest(), text(), option::of(any::<u64>())).prop_map(|(quest, command, limit_ms)| Event::Quest {
            quest,
            what: QuestEvent::WardChanged { command, limit_ms }
        }),
        quest().prop_map(|quest| Event::Quest { quest, what: QuestEvent::WardRemoved }),
        (quest(), requirements()).prop_map(|(quest, requirements)| Event::Quest {
            quest,
            what: QuestEvent::RequirementsSet { requirements }
        }),
        (quest(), vec(planned(), 0..3), option::of(agent()), option::of(text()), any::<bool>()).prop_map(
            |(quest, steps, by, summary, needs_consent)| Event::Quest {
                quest,
                what: QuestEvent::StepsPlanned { steps, by, summary, needs_consent }
            }
        ),
    ]
}

fn of_steps() -> impl Strategy<Value = Event> {
    let of = || (quest(), step_id());
    let of_chore = || (quest(), step_id(), any::<u32>());
    prop_oneof![
        (of(), next(), progress(), any::<bool>()).prop_map(|((quest, step), next, progress, consented)| Event::Step {
            quest,
            step,
            what: StepEvent::Queued { next, progress, consented }
        }),
        (of(), agent(), text()).prop_map(|((quest, step), agent, role)| Event::Step {
            quest,
            step,
            what: StepEvent::Begun { agent, role }
        }),
        (of(), agent(), agent(), agent()).prop_map(|((quest, step), agent, step_agent, parent)| Event::Step {
            quest,
            step,
            what: StepEvent::Forked { agent, step_agent, parent }
        }),
        (of(), agent()).prop_map(|((quest, step), agent)| Event::Step {
            quest,
            step,
            what: StepEvent::ForkQueued { agent }
        }),
        (of(), attempt(), signal()).prop_map(|((quest, step), of, signal)| Event::Step {
            quest,
            step,
            what: StepEvent::SignalGiven { of, signal }
        }),
        of_chore().prop_map(|(quest, step, number)| Event::Step { quest, step, what: StepEvent::WardBegun { number } }),
        (of_chore(), verdict(), text(), vec(text(), 0..3)).prop_map(
            |((quest, step, number), verdict, artifact, restored)| Event::Step {
                quest,
                step,
                what: StepEvent::WardEnded { number, verdict, artifact, restored }
            }
        ),
        of_chore().prop_map(|(quest, step, number)| Event::Step {
            quest,
            step,
            what: StepEvent::MergeBegun { number }
        }),
        (of_chore(), merge(), vec(text(), 0..3)).prop_map(|((quest, step, number), merge, left_out)| Event::Step {
            quest,
            step,
            what: StepEvent::MergeEnded { number, merge, left_out }
        }),
        (of(), progress(), next()).prop_map(|((quest, step), progress, then)| Event::Step {
            quest,
            step,
            what: StepEvent::Waits { progress, then }
        }),
        (of(), option::of(instant())).prop_map(|((quest, step), until)| Event::Step {
            quest,
            step,
            what: StepEvent::Parked { until }
        }),
        (of(), text(), next()).prop_map(|((quest, step), why, then)| Event::Step {
            quest,
            step,
            what: StepEvent::Failed { why, then }
        }),
        (of(), text()).prop_map(|((quest, step), summary)| Event::Step {
            quest,
            step,
            what: StepEvent::Completed { summary }
        }),
        of().prop_map(|(quest, step)| Event::Step { quest, step, what: StepEvent::Dropped }),
    ]
}

fn step_id() -> impl Strategy<Value = StepId> {
    "[a-z0-9][a-z0-9-]{0,63}".prop_map(|id| id.parse().expect("it is a name"))
}

fn planned() -> impl Strategy<Value = StepPlan> {
    let lists = [(); 3].map(|()| vec(text(), 0..3));
    (step_id(), text(), text(), vec(step_id(), 0..3), lists).prop_map(
        |(id, name, description, depends_on, [files_to_create, files_to_modify, observables])| StepPlan {
            id,
            name,
            description,
            depends_on,
            files_to_create,
            files_to_modify,
            observables,
        },
    )
}

fn requirements() -> impl Strategy<Value = Requirements> {
    let context = (text(), text()).prop_map(|(id, description)| QuestContext { id, description });
    let observable = (text(), option::of(text()), text()).prop_map(|(id, context, description)| Observable {
        id,
        context,
        description,
    });
    (vec(context, 0..3), vec(observable, 0..3))
        .prop_map(|(contexts, observables)| Requirements { contexts, observables })
}

fn ward() -> impl Strategy<Value = WardSpec> {
    (text(), any::<u64>(), option::of(text())).prop_map(|(command, limit_ms, guessed_from)| WardSpec {
        command,
        limit_ms,
        guessed_from,
    })
}

fn signal_kind() -> impl Strategy<Value = SignalKind> {
    use SignalKind::*;
    prop::sample::select(vec![Complete, PartiallyComplete, NeedsUserInput, NeedsRoleFollowup])
}

fn note_kind() -> impl Strategy<Value = NoteKind> {
    let (role, why) = (text(), text());
    prop_oneof![
        Just(NoteKind::WardNext),
        Just(NoteKind::Asks),
        Just(NoteKind::Completed),
        role.prop_map(|role| NoteKind::RoleNext { role }),
        why.prop_map(|why| NoteKind::Failed { why }),
        (text(), text()).prop_map(|(role, from)| NoteKind::Called { role, from }),
        (text(), any::<u32>()).prop_map(|(role, findings)| NoteKind::Mends { role, findings }),
        (text(), agent()).prop_map(|(role, agent)| NoteKind::Begun { role, agent }),
        (text(), signal_kind()).prop_map(|(role, signal)| NoteKind::Signalled { role, signal }),
        vec(text(), 0..3).prop_map(|without| NoteKind::Merged { without }),
        (agent(), agent()).prop_map(|(parent, agent)| NoteKind::Forked { parent, agent }),
    ]
}

fn table() -> impl Strategy<Value = Table> {
    let kind = signal_kind();
    let player = (option::of(text()), option::of(text()));
    let role = (text(), vec(kind, 0..4), vec(text(), 0..3), text(), policy(), player).prop_map(
        |(name, may, calls, prompt, permissions, (harness, model))| Role {
            name,
            may,
            calls,
            prompt,
            permissions,
            harness,
            model,
        },
    );
    let paths = [(); 4].map(|()| vec(text(), 0..3)).prop_map(|[requirements, plan, work, review]| Paths {
        requirements,
        plan,
        work,
        review,
    });
    (vec(role, 0..3), paths, [text(), text(), text()]).prop_map(|(roles, paths, [mender, planner, requirer])| Table {
        roles,
        paths,
        mender,
        planner,
        requirer,
    })
}

fn quest_spec() -> impl Strategy<Value = QuestSpec> {
    let isolation = prop_oneof![
        Just(Isolation::None),
        (text(), option::of(text())).prop_map(|(base, within)| Isolation::Worktree { base, within })
    ];
    (text(), any::<u32>(), spec(), option::of(ward()), isolation, any::<bool>(), table()).prop_map(
        |(request, slots, spec, ward, isolation, approve_plan, table)| QuestSpec {
            request,
            slots,
            spec,
            ward,
            isolation,
            approve_plan,
            table,
        },
    )
}

fn signal() -> impl Strategy<Value = Signal> {
    prop_oneof![
        text().prop_map(|summary| Signal::Complete { summary }),
        (text(), text())
            .prop_map(|(progress, continuation_point)| Signal::PartiallyComplete { progress, continuation_point }),
        (text(), text(), vec(text(), 0..3)).prop_map(|(question, context, choices)| Signal::NeedsUserInput {
            question,
            context,
            choices
        }),
        (text(), text(), text(), any::<bool>()).prop_map(|(target_role, reason, context, resume)| {
            Signal::NeedsRoleFollowup { target_role, reason, context, resume }
        }),
    ]
}

fn brief() -> impl Strategy<Value = Brief> {
    prop_oneof![
        Just(Brief::Begin),
        (text(), text()).prop_map(|(progress, continuation_point)| Brief::Continue { progress, continuation_point }),
        (vec(text(), 0..3), text()).prop_map(|(findings, artifact)| Brief::Mend { findings, artifact }),
        vec(text(), 0..3).prop_map(|files| Brief::Reconcile { files }),
        (text(), text(), text()).prop_map(|(from, reason, context)| Brief::FollowUp { from, reason, context }),
    ]
}

fn next() -> impl Strategy<Value = NextAction> {
    prop_oneof![
        (text(), brief()).prop_map(|(role, brief)| NextAction::Begin { role, brief }),
        (agent(), text()).prop_map(|(agent, role)| NextAction::Resume { agent, role }),
        Just(NextAction::Ward),
        Just(NextAction::Merge),
    ]
}

fn progress() -> impl Strategy<Value = StepProgress> {
    let caller = (agent(), text(), any::<bool>()).prop_map(|(agent, role, resume)| Caller { agent, role, resume });
    (any::<[u32; 5]>(), vec(caller, 0..3)).prop_map(
        |([station, mendings, conflicts, follow_ups, continuations], callers)| StepProgress {
            station,
            callers,
            mendings,
            conflicts,
            follow_ups,
            continuations,
        },
    )
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Green),
        vec(text(), 0..3).prop_map(|findings| Verdict::Red { findings }),
        vec(text(), 0..3).prop_map(|files| Verdict::Conflict { files }),
        text().prop_map(|why| Verdict::Broken { why }),
    ]
}

fn merge() -> impl Strategy<Value = Merge> {
    prop_oneof![
        Just(Merge::Merged),
        Just(Merge::Empty),
        vec(text(), 0..3).prop_map(|files| Merge::Conflict { files }),
        text().prop_map(|why| Merge::Broken { why }),
    ]
}

fn state() -> impl Strategy<Value = StepState> {
    let work = prop_oneof![
        (agent(), text(), option::of(signal()), any::<bool>())
            .prop_map(|(agent, role, signal, paused)| SlotWork::Agent { agent, role, signal, paused }),
        any::<u32>().prop_map(SlotWork::Ward),
        any::<u32>().prop_map(SlotWork::Merge),
    ];
    prop_oneof![
        Just(StepState::Pending),
        next().prop_map(StepState::Queued),
        work.prop_map(StepState::Running),
        next().prop_map(StepState::Asking),
        (agent(), text(), option::of(instant())).prop_map(|(agent, role, until)| StepState::Parked {
            agent,
            role,
            until
        }),
        Just(StepState::Blocked),
        (text(), next()).prop_map(|(why, then)| StepState::Failed { why, then }),
        (text(), instant(), option::of(text())).prop_map(|(summary, at, version)| StepState::Complete {
            summary,
            at,
            spec_version: version.map(Into::into),
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let phase = prop::sample::select(vec![Phase::Requirements, Phase::Plan, Phase::Work, Phase::Review]);
    let hand = (agent(), text()).prop_map(|(agent, role)| StepAgent { agent, role });
    let note = (instant(), note_kind()).prop_map(|(at, what)| Note { at, what });
    let ward = (any::<u32>(), instant(), option::of(instant()), option::of(verdict()))
        .prop_map(|(number, started, ended, verdict)| WardRun { number, started, ended, verdict });
    let given = (instant(), agent(), text(), signal()).prop_map(|(at, agent, role, signal)| GivenSignal {
        at,
        agent,
        role,
        signal,
    });
    let refused =
        (instant(), agent(), text(), text()).prop_map(|(at, agent, role, why)| RefusedSignal { at, agent, role, why });
    let signals = (vec(given, 0..3), option::of(refused));
    let past = (vec(hand, 0..3), vec(ward, 0..3), signals, text(), instant(), vec(note, 0..3));
    let place = (phase, state(), progress());
    (place, any::<([u32; 6], [bool; 2])>(), option::of(event_id()), past).prop_map(
        |(
            (phase, state, progress),
            (counts, [dropped, has_work]),
            question,
            (hands, wards, (signals, refused), summary, since, notes),
        )| {
            let [number, waits_for, chores, attempts, denied, denied_since] = counts;
            let (wards, signals) = (wards.into_iter().collect(), signals.into_iter().collect());
            let (hands, notes) = (hands.into_iter().collect(), notes.into_iter().collect());
            Step {
                phase,
                number,
                state,
                progress,
                waits_for,
                dropped,
                question,
                chores,
                attempts,
                agents: hands,
                wards,
                signals,
                refused,
                denied,
                denied_since,
                has_work,
                summary,
                since,
                notes,
            }
        },
    )
}

fn whole() -> impl Strategy<Value = Quest> {
    let state = prop_oneof![
        Just(QuestState::Open),
        Just(QuestState::Paused),
        instant().prop_map(|at| QuestState::Complete { at }),
        instant().prop_map(|at| QuestState::Abandoned { at }),
    ];
    let place = (any::<bool>(), event_id(), any::<u32>(), step_id())
        .prop_map(|(fresh, since, number, step)| QueuePosition { fresh, since, number, step });
    let fork_state = prop_oneof![
        event_id().prop_map(StepForkState::Queued),
        Just(StepForkState::Running),
        Just(StepForkState::Parked),
    ];
    let fork = (step_id(), agent(), agent(), any::<u32>(), fork_state)
        .prop_map(|(step, step_agent, parent, number, state)| StepFork { step, step_agent, parent, number, state });
    let forks = vec((agent(), fork), 0..3);
    let made_of =
        (option::of(requirements()), option::of(ward()), vec(planned(), 0..3), vec((step_id(), step()), 0..3));
    let order = (
        vec((step_id(), vec(step_id(), 0..3)), 0..3),
        vec(place, 0..3),
        vec(step_id(), 0..3),
        vec(step_id(), 0..3),
        forks,
    );
    let past = (vec((step_id(), any::<u32>()), 0..3), option::of(text()));
    let counts = (any::<[u32; 3]>(), past, option::of(money()), usage(), [instant(), instant()], event_id());
    (state, made_of, order, counts).prop_map(
        |(
            state,
            (requirements, ward, plans, steps),
            (dependents, positions, working, unapproved, forks),
            ([open, agents, forked], (past, spec_version), budget, spent, [created, changed], version),
        )| Quest {
            state,
            requirements,
            ward,
            plans: plans.into_iter().map(|plan| (plan.id.clone(), plan)).collect(),
            steps: steps.into_iter().collect(),
            dependents: dependents
                .into_iter()
                .map(|(id, on)| (id, on.into_iter().collect::<imbl::OrdSet<_>>()))
                .collect(),
            queue: positions.iter().cloned().collect(),
            positions: positions.into_iter().map(|place| (place.step.clone(), place)).collect(),
            working: working.into_iter().collect(),
            forks: forks.into_iter().collect(),
            forked,
            open,
            unapproved: unapproved.into_iter().collect(),
            agents,
            past_chores: past.into_iter().collect(),
            budget,
            spent,
            spec_version: spec_version.map(Into::into),
            created,
            changed,
            version,
        },
    )
}

proptest! {
    #[test]
    fn what_the_world_keeps_of_quests_comes_back_unchanged(
        quest in whole(), quest_spec in quest_spec(), of in (quest(), step_id(), text()), number in any::<u32>()
    ) {
        comes_back(&quest)?;
        comes_back(&quest_spec)?;
        comes_back(&Assignment { quest: of.0, step: of.1, role: of.2.clone() })?;
        for what in [ChoreKind::Ward, ChoreKind::Merge] {
            comes_back(&Chore { number, host: of.2.as_str().into(), what })?;
        }
    }
}

#[test]
fn a_name_that_could_be_a_path_or_an_option_is_no_step() {
    for id in ["", "-a", "a/b", "..", "A", "a b", "ä", &"a".repeat(65)] {
        assert!(id.parse::<StepId>().is_err(), "{id}");
        assert!(serde_json::from_value::<StepId>(id.into()).is_err(), "{id}");
    }
    for id in ["a", "0", "a-b-1", &"a".repeat(64)] {
        assert_eq!(serde_json::from_value::<StepId>(id.into()).unwrap(), id.parse().unwrap());
    }
}
