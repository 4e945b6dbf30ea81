//! Every "no" of a quest, met where it should be.

use super::words::*;
use hatchery_core::quest::{
    MAX_REQUEST_BYTES, MAX_SLOTS, QuestSpec, QuestStart, Requirements, Signal, StepId, StepPlan, Verdict, WardSpec,
};
use hatchery_core::refusal::RefusalKind::{self, Invalid, Missing, Untimely};
use hatchery_core::roles::{SignalKind, Table};
use hatchery_core::{Command, QuestId, Refusal, Timestamp, World, step};

const OTHER: QuestId = QuestId::from_bytes([8; 16]);

/// The refusals that were met, with their kind and code.
pub fn all() -> Vec<(Refusal, RefusalKind, &'static str)> {
    let forks = vec![(super::forks::too_many(), Untimely, "too_many_step_forks")];
    [of_charters(), of_quests(), of_plans(), of_signals(), forks].concat()
}

#[track_caller]
fn meets(play: &Play, command: Command) -> Refusal {
    play.clone().when(command).expect_err("it is refused")
}

fn create(quest_spec: QuestSpec, steps: &[StepPlan]) -> Command {
    Command::CreateQuest {
        quest: OTHER,
        quest_spec: Box::new(quest_spec),
        budget: None,
        start: QuestStart { steps: steps.to_vec(), ..QuestStart::default() },
    }
}

fn of_charters() -> Vec<(Refusal, RefusalKind, &'static str)> {
    let play = begun(quest_spec(), &[]);
    let no = |change: fn(&mut QuestSpec)| {
        let mut quest_spec = warded();
        change(&mut quest_spec);
        meets(&play, create(quest_spec, &[]))
    };
    let again = Command::CreateQuest {
        quest: Q,
        quest_spec: Box::new(quest_spec()),
        budget: None,
        start: QuestStart::default(),
    };
    let no_root = step(&mut World::default(), &create(quest_spec(), &[]), Timestamp(0)).expect_err("it is refused");
    assert_eq!(no(|it| it.request = "x".repeat(MAX_REQUEST_BYTES + 1)).code(), "bad_request");
    assert_eq!(no(|it| it.slots = MAX_SLOTS + 1).code(), "slots_out_of_range");
    assert_eq!(no(|it| it.spec.host = "".into()).code(), "bad_spec");
    vec![
        (meets(&play, again), Untimely, "quest_exists"),
        (no_root, Untimely, "no_root"),
        (meets(&play, create(alone(quest_spec()), &[])), Invalid, "no_plan"),
        (no(|it| it.request = " ".into()), Invalid, "bad_request"),
        (no(|it| it.slots = 0), Invalid, "slots_out_of_range"),
        (
            no(|it| it.ward = Some(WardSpec { command: "x".into(), limit_ms: 0, guessed_from: None })),
            Invalid,
            "ward_out_of_range",
        ),
        (
            no(|it| it.ward = Some(WardSpec { command: " ".into(), limit_ms: 1_000, guessed_from: None })),
            Invalid,
            "bad_ward",
        ),
        (no(|it| it.table.roles.clear()), Invalid, "bad_table"),
    ]
}

/// What is wrong with a table is said, whatever it is.
#[test]
fn every_preset_of_the_table_can_be_run() {
    use hatchery_core::quest::StepPlan;
    use hatchery_core::roles::{Preset, Table};
    for (preset, work) in [
        (Preset::Full, &["codeweaver", "ward", "siegemaster", "ward"][..]),
        (Preset::Checked, &["codeweaver", "ward", "siegemaster", "ward"]),
        (Preset::Quick, &["codeweaver", "ward"]),
    ] {
        let table = Table::default().with_preset(preset);
        table.check().unwrap();
        assert_eq!(
            (&table.paths.work[..], table.paths.plan.is_empty()),
            (&work.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..], !preset.plans())
        );
    }
    let whole = StepPlan::whole(&format!("\n  {}\nmore", "ß".repeat(300)));
    assert!(whole.name.len() <= 200 && whole.name.starts_with("ßß"));
    assert_eq!(StepPlan::whole(" ").name, "the request");
}

#[test]
fn a_table_by_which_no_quest_can_be_run_is_refused() {
    let bad = |change: fn(&mut Table)| {
        let mut table = Table::default();
        change(&mut table);
        table.check().expect_err("it is bad").to_string()
    };
    assert!(bad(|it| it.paths.work.clear()).contains("`work` is empty"));
    assert!(bad(|it| it.paths.review.push("judge".into())).contains("`review` names the role `judge`"));
    assert!(bad(|it| it.roles[0].calls.push("judge".into())).contains("calls of chaoswhisperer"));
    assert!(bad(|it| it.mender = "judge".into()).contains("`mender` names the role `judge`"));
    assert!(bad(|it| it.roles[0].name = "ward".into()).contains("cannot be the name"));
    assert!(bad(|it| it.roles[1] = it.roles[0].clone()).contains("there twice"));
    assert!(bad(|it| it.roles[0].may = vec![SignalKind::NeedsUserInput]).contains("never ends"));
    assert!(bad(|it| it.paths.plan.insert(0, "ward".into())).contains("begins with the ward"));
    assert!(bad(|it| it.planner = "codeweaver".into()).contains("not on the path of `plan`"));
    assert!(bad(|it| it.requirer = "codeweaver".into()).contains("not on the path of `requirements`"));
    assert!(bad(|it| it.roles = vec![it.roles[0].clone(); 33]).contains("at most 32"));
    assert!(bad(|it| it.roles[0].prompt = "x".repeat(1 << 20)).contains("prompt"));
    assert!(bad(|it| it.paths.work = vec!["codeweaver".into(); 17]).contains("path of `work`"));
    assert_eq!(Table::default().check(), Ok(()));
}

fn of_quests() -> Vec<(Refusal, RefusalKind, &'static str)> {
    let mut play = smithy(warded(), &[("a", &[])]);
    let quest = Q;
    let (verdict, artifact, restored) = (Verdict::Green, "x".into(), Vec::new());
    let stale = Command::ReportWard { quest, step: id("a"), number: 1, verdict, artifact, restored };
    let no_ward = Command::SetWard { quest, command: None, limit_ms: 60_000 };
    let retry = |step: &str| Command::RetryStep { quest, step: id(step), fresh: false };
    let met = vec![
        (meets(&play, Command::PauseQuest { quest: OTHER }), Missing, "unknown_quest"),
        (meets(&play, Command::ResumeQuest { quest }), Untimely, "quest_open"),
        (meets(&play, retry("zzz")), Missing, "unknown_step"),
        (meets(&play, retry("a")), Untimely, "step_not_failed"),
        (meets(&play, stale), Untimely, "stale_chore"),
        (meets(&smithy(quest_spec(), &[("a", &[])]), no_ward.clone()), Untimely, "no_ward"),
    ];
    for (command, limit_ms, code) in [(" ", 60_000, "bad_ward"), ("make", 1, "ward_out_of_range")] {
        let play = smithy(quest_spec(), &[("a", &[])]);
        assert_eq!(meets(&play, Command::SetWard { quest, command: Some(command.into()), limit_ms }).code(), code);
    }
    play.must(Command::PauseQuest { quest });
    let paused = (meets(&play, Command::PauseQuest { quest }), Untimely, "quest_paused");
    play.must(Command::AbandonQuest { quest });
    let over = (meets(&play, Command::ResumeQuest { quest }), Untimely, "quest_over");
    for command in [Command::AbandonQuest { quest }, Command::PauseQuest { quest }, retry("a"), no_ward.clone()] {
        assert_eq!(meets(&play, command).code(), "quest_over");
    }
    let (unknown, ambiguous) = super::reference::refusals();
    let named = [(unknown, Missing, "unknown_quest"), (ambiguous, Untimely, "ambiguous")];
    met.into_iter().chain([paused, over]).chain(named).collect()
}

fn of_plans() -> Vec<(Refusal, RefusalKind, &'static str)> {
    let mut play = begun(quest_spec(), &[]);
    let agent = play.start("requirements");
    let hand_in = |steps: &[StepPlan]| Command::PlanSteps { agent, steps: steps.to_vec() };
    let require = |requirements| Command::SetRequirements { agent, requirements };
    let met = vec![
        ("-".parse::<StepId>().expect_err("no name"), Invalid, "bad_step_id"),
        (meets(&play, hand_in(&[planned("a", &[])])), Invalid, "wrong_role"),
        (meets(&play, require(Requirements::default())), Invalid, "bad_requirements"),
        (
            meets(&play, Command::GiveSignal { agent, step: id("requirements"), signal: complete() }),
            Untimely,
            "nothing_handed_in",
        ),
        (meets(&play, Command::PlanSteps { agent: ROOT, steps: vec![] }), Missing, "no_assignment"),
    ];
    play.calls(agent, require(wanted())).expect("it may");
    play.signals(agent, "requirements", complete()).expect("it may");
    play.exits(agent, hatchery_core::Exit::Code(0));
    let planner = play.start("plan");
    let cycle = vec![planned("a", &["b"]), planned("b", &["a"])];
    let bad = (meets(&play, Command::PlanSteps { agent: planner, steps: cycle }), Invalid, "bad_plan");
    let late = meets(&play, require(wanted()));
    assert_eq!(late.code(), "not_at_work");
    met.into_iter().chain([bad, (late, Untimely, "not_at_work")]).collect()
}

fn of_signals() -> Vec<(Refusal, RefusalKind, &'static str)> {
    let mut play = begun(quest_spec(), &[]);
    let agent = play.start("requirements");
    let give = |step: &str, signal| Command::GiveSignal { agent, step: id(step), signal };
    let long = Signal::NeedsUserInput { question: "x".repeat(1 << 17), context: String::new(), choices: Vec::new() };
    let no_signal =
        Signal::read(&serde_json::json!({ "signal": "complete", "stepId": "a" })).expect_err("it is refused");
    let met = vec![
        (no_signal, Invalid, "bad_signal"),
        (meets(&play, give("plan", complete())), Invalid, "other_step"),
        (meets(&play, give("requirements", partial())), Invalid, "may_not_signal"),
        (meets(&play, give("requirements", long)), Invalid, "signal_too_long"),
    ];
    play.signals(agent, "requirements", asks("which?")).expect("it may");
    let twice = (meets(&play, give("requirements", asks("what?"))), Untimely, "signalled");
    let mut smithy = smithy(quest_spec(), &[("a", &[])]);
    let smith = smithy.start("a");
    let call = Command::GiveSignal { agent: smith, step: id("a"), signal: calls("king", true) };
    let may_not = (meets(&smithy, call), Invalid, "may_not_call");
    met.into_iter().chain([twice, may_not]).collect()
}
