//! Plans: what is refused, in which order steps begin, and what becomes of them when there is another plan.

use super::words::*;
use hatchery_core::ask::{About, StepTrouble};
use hatchery_core::event::StepEvent;
use hatchery_core::quest::{QuestSpec, SlotWork, StepPlan, StepState, StepStatus};
use hatchery_core::{AgentId, Command, Event, Exit};

/// A smith has asked for a planner, who is at work on the smith's step.
fn replanning(steps: &[(&str, &[&str])], step: &str, resume: bool) -> (Play, AgentId) {
    let mut it = smithy(quest_spec(), steps);
    it.plays(step, calls("planner", resume));
    let agent = it.start(step);
    (it, agent)
}

fn hand_in(it: &mut Play, agent: AgentId, steps: &[StepPlan]) -> Result<Vec<Event>, String> {
    it.calls(agent, Command::PlanSteps { agent, steps: steps.to_vec() })
}

fn is_done(it: &mut Play, agent: AgentId, step: &str) {
    it.signals(agent, step, complete()).expect("it may");
    it.exits(agent, Exit::Code(0));
}

#[test]
fn a_step_begins_when_all_that_it_depends_on_is_complete() {
    let mut it = smithy(slots(4), &[("a", &[]), ("b", &[]), ("c", &["a", "b", "a"]), ("d", &["c"])]);
    assert_eq!(it.running(), ["a", "b"]);
    it.plays("a", complete());
    assert_eq!([it.status("c"), it.status("d")], [StepStatus::Pending, StepStatus::Pending]);
    it.plays("b", complete());
    assert_eq!(it.running(), ["c"]);
    it.plays("c", complete());
    assert_eq!(it.running(), ["d"]);
}

#[test]
fn what_was_begun_goes_before_what_was_not_and_the_rest_in_the_order_of_the_plan() {
    let mut it = smithy(slots(1), &[("z", &[]), ("b", &[]), ("a", &[])]);
    assert_eq!(it.running(), ["z"], "the plan's order, not the alphabet's");
    it.plays("z", partial());
    assert_eq!(it.running(), ["z"], "it goes on before others begin");
    it.plays("z", complete());
    assert_eq!(it.running(), ["b"]);
}

#[test]
fn another_plan_keeps_what_is_complete_or_under_way_and_replaces_the_rest() {
    let steps: &[(&str, &[&str])] = &[("a", &[]), ("b", &[]), ("c", &["a"]), ("d", &["c"])];
    let mut it = smithy(slots(2), steps);
    it.plays("a", complete());
    it.plays("b", calls("planner", true));
    let planner = it.start("b");
    assert_eq!(it.running(), ["b", "c"]);
    hand_in(&mut it, planner, &[planned("b", &[]), planned("e", &["a", "c"])]).expect("a good plan");
    assert_eq!([it.status("a"), it.status("c")], [StepStatus::Complete, StepStatus::Running]);
    assert!(!it.has("d") && it.has("e"));
    is_done(&mut it, planner, "b");
    assert_eq!((it.role("b").as_str(), it.status("e")), ("smith", StepStatus::Pending), "the caller goes on");
    it.restarted();
    for step in ["b", "c", "e"] {
        it.plays(step, complete());
    }
    assert_eq!(it.state(), "complete");
    assert_eq!(it.count(|event| matches!(event, Event::Step { what: StepEvent::Completed { .. }, .. })), 4);
}

#[test]
fn a_plan_without_the_planners_own_step_drops_it_when_the_planner_is_done() {
    let (mut it, planner) = replanning(&[("a", &[]), ("b", &["a"])], "a", true);
    hand_in(&mut it, planner, &[planned("a1", &[]), planned("a2", &["a1"])]).expect("a good plan");
    assert_eq!((it.status("a"), it.running()), (StepStatus::WaitingForRole, ["a", "a1"].map(str::to_owned).to_vec()));
    is_done(&mut it, planner, "a");
    assert!(!it.has("a") && !it.has("b"));
    it.plays("a1", complete());
    it.plays("a2", complete());
    assert_eq!(it.state(), "complete");
}

#[test]
fn a_step_that_a_new_plan_puts_behind_others_waits_for_them() {
    for resume in [true, false] {
        let (mut it, planner) = replanning(&[("a", &[]), ("b", &["a"])], "a", resume);
        let plan = [planned("a", &["a1"]), planned("a1", &[]), planned("b", &["a"])];
        hand_in(&mut it, planner, &plan).expect("a good plan");
        is_done(&mut it, planner, "a");
        assert_eq!((it.status("a"), it.running()), (StepStatus::Pending, vec!["a1".to_owned()]));
        it.restarted();
        it.plays("a1", complete());
        assert_eq!((it.role("a").as_str(), it.running()), ("smith", vec!["a".to_owned()]));
        it.plays("a", complete());
        it.plays("b", complete());
        assert_eq!(it.state(), "complete");
    }
}

#[test]
fn a_bad_plan_is_refused_with_the_reason_and_the_old_one_stays() {
    let (mut it, planner) = replanning(&[("a", &[]), ("b", &["a"])], "a", true);
    let long = StepPlan { name: "x".repeat(201), ..planned("x", &[]) };
    let empty = StepPlan { files_to_create: vec![String::new()], ..planned("x", &[]) };
    for (steps, why) in [
        (vec![], "no step in it"),
        (vec![planned("a", &["b"]), planned("b", &["a"])], "a → b → a"),
        (vec![planned("x", &["y"])], "`x` depends on `y`"),
        (vec![planned("x", &[]), planned("x", &[])], "there twice"),
        (vec![planned("review", &[])], "every quest has"),
        (vec![long], "1 to 200 bytes"),
        (vec![empty], "something empty"),
    ] {
        let refusal = it.clone().when(Command::PlanSteps { agent: planner, steps: steps.clone() }).unwrap_err();
        assert!(refusal.to_string().contains(why), "{refusal}");
        assert_eq!(hand_in(&mut it, planner, &steps), Err("bad_plan".into()));
    }
    assert!(it.has("b"));
}

#[test]
fn a_plan_promises_only_what_is_required() {
    let mut it = begun(quest_spec(), &[]);
    let agent = it.start("requirements");
    it.calls(agent, Command::SetRequirements { agent, requirements: wanted() }).expect("it may");
    is_done(&mut it, agent, "requirements");
    let planner = it.start("plan");
    let promised = |what: &str| StepPlan { observables: vec![what.into()], ..planned("a", &[]) };
    assert_eq!(hand_in(&mut it, planner, &[promised("wings")]), Err("bad_plan".into()));
    hand_in(&mut it, planner, &[promised("dry-feet")]).expect("that is required");
}

/// Whoever is asked once more what is wanted may add to it, but not take away what steps are there for.
#[test]
fn requirements_that_a_step_is_there_for_stay() {
    let mut it = begun(quest_spec(), &[]);
    let agent = it.start("requirements");
    it.calls(agent, Command::SetRequirements { agent, requirements: wanted() }).expect("it may");
    is_done(&mut it, agent, "requirements");
    let planner = it.start("plan");
    let step = StepPlan { observables: vec!["dry-feet".into()], ..planned("arch", &[]) };
    hand_in(&mut it, planner, &[step]).expect("that is required");
    it.signals(planner, "plan", calls("chaoswhisperer", true)).expect("it may");
    it.exits(planner, hatchery_core::Exit::Code(0));
    let agent = it.start("plan");
    let mut others = wanted();
    others.observables[0].id = "wings".into();
    let refusal =
        it.clone().when(Command::SetRequirements { agent, requirements: others.clone() }).expect_err("it is refused");
    assert_eq!(refusal.code(), "bad_requirements");
    assert!(refusal.to_string().contains("`dry-feet` of step `arch`"), "{refusal}");
    others.observables.extend(wanted().observables);
    it.calls(agent, Command::SetRequirements { agent, requirements: others.clone() }).expect("nothing is taken away");
    assert_eq!(it.world.quest(Q).and_then(|quest| quest.requirements.clone()), Some(others));
}

/// `plan-steps` and quest.json have the one, the API has the other: what is said in either must not get lost.
#[test]
fn a_plan_is_read_in_both_spellings() {
    let read = |text: &str| serde_json::from_str::<StepPlan>(text).expect("a step");
    let one = read(r#"{"id":"b","name":"B","depends_on":["a"],"files_to_create":["c"],"files_to_modify":["d"]}"#);
    let other = read(r#"{"id":"b","name":"B","dependsOn":["a"],"filesToCreate":["c"],"filesToModify":["d"]}"#);
    assert_eq!(one, other);
    assert_eq!(one.depends_on, [id("a")]);
}

#[test]
fn a_role_that_plans_and_works_comes_to_an_end() {
    let mut alone = alone(quest_spec());
    alone.table.planner = "smith".into();
    let mut it = begun(alone, &[planned("a", &[])]);
    it.plays("a", complete());
    assert_eq!(it.state(), "complete");
}

/// It finds out that something else comes first, plans that, and says that it is done: with the planning.
#[test]
fn nothing_is_complete_before_what_it_depends_on() {
    let mut alone = alone(quest_spec());
    alone.table.planner = "smith".into();
    let mut it = begun(alone, &[planned("a", &[])]);
    let agent = it.start("a");
    hand_in(&mut it, agent, &[planned("a", &["b"]), planned("b", &[])]).expect("a good plan");
    is_done(&mut it, agent, "a");
    assert_eq!((it.status("a"), it.running()), (StepStatus::Pending, vec!["b".to_owned()]));
    it.plays("b", complete());
    it.plays("a", complete());
    assert_eq!(it.state(), "complete");
}

/// A ward is found by its number: what was said of the step that is gone must not count for another one.
#[test]
fn a_step_with_the_name_of_a_dropped_one_has_wards_of_its_own() {
    let mut it = smithy(warded(), &[("a", &[]), ("b", &[])]);
    it.plays("a", complete());
    it.ward("a", red(&["error"]));
    it.plays("a", calls("planner", false));
    let planner = it.start("a");
    hand_in(&mut it, planner, &[planned("c", &[])]).expect("a good plan");
    is_done(&mut it, planner, "a");
    assert!(!it.has("a"));
    it.plays("b", calls("planner", false));
    let planner = it.start("b");
    hand_in(&mut it, planner, &[planned("a", &[]), planned("b", &[])]).expect("a good plan");
    is_done(&mut it, planner, "b");
    it.restarted();
    it.plays("a", complete());
    assert_eq!(it.step("a").state, StepState::Running(SlotWork::Ward(2)));
}

/// A quest whose only step is complete, and whose review has called the planner.
fn reviewing(quest_spec: QuestSpec, resume: bool) -> (Play, AgentId) {
    let mut alone = alone(quest_spec);
    alone.table.paths.review = vec!["smith".into()];
    let mut it = begun(alone, &[planned("a", &[])]);
    it.plays("a", complete());
    it.plays("review", calls("planner", resume));
    let planner = it.start("review");
    (it, planner)
}

#[test]
fn a_review_can_lead_to_a_new_step_and_goes_on_after_it() {
    for resume in [true, false] {
        let (mut it, planner) = reviewing(quest_spec(), resume);
        hand_in(&mut it, planner, &[planned("b", &["a"]), planned("c", &["b"])]).expect("a good plan");
        is_done(&mut it, planner, "review");
        it.restarted();
        assert_eq!((it.status("review"), it.running()), (StepStatus::Pending, vec!["b".to_owned()]));
        it.plays("b", complete());
        assert_eq!(it.status("review"), StepStatus::Pending);
        it.plays("c", complete());
        assert_eq!((it.role("review").as_str(), it.running()), ("smith", vec!["review".to_owned()]));
        it.plays("review", complete());
        assert_eq!(it.state(), "complete");
    }
}

#[test]
fn a_plan_that_is_split_anew_needs_consent_again() {
    let consent = QuestSpec { approve_plan: true, ..quest_spec() };
    let mut it = smithy(consent.clone(), &[("a", &[]), ("b", &["a"])]);
    it.plays("a", calls("planner", true));
    let planner = it.start("a");
    let plan = [planned("a", &[]), planned("a1", &[]), planned("b", &["a"])];
    hand_in(&mut it, planner, &plan).expect("a good plan");
    assert_eq!((it.status("a1"), it.running()), (StepStatus::Pending, vec!["a".to_owned()]), "nothing of it is begun");
    is_done(&mut it, planner, "a");
    let asked = it.world.question(it.question()).expect("it is open").clone();
    assert_eq!(asked.about, About::Step { quest: Q, trouble: StepTrouble::Approval });
    assert!(asked.text.contains("changed for step `a`, and 3 steps are left"), "{}", asked.text);
    // What a person wants otherwise is told to the planner, and asked about again.
    it.answers("without a1, please");
    assert_eq!((it.agent("a"), it.status("a1")), (planner, StepStatus::Pending));
    let planner = it.start("a");
    hand_in(&mut it, planner, &[planned("a", &[]), planned("a2", &[]), planned("b", &["a"])]).expect("a good plan");
    is_done(&mut it, planner, "a");
    it.restarted();
    assert_eq!((it.status("a"), it.status("a2")), (StepStatus::WaitingForHuman, StepStatus::Pending));
    it.answers("yes");
    assert_eq!((it.role("a").as_str(), it.status("a2")), ("smith", StepStatus::Running), "the caller goes on");
    // A planner that drops its own step, and one that the review has called.
    let mut it = smithy(consent.clone(), &[("a", &[])]);
    it.plays("a", calls("planner", true));
    let planner = it.start("a");
    hand_in(&mut it, planner, &[planned("a1", &[])]).expect("a good plan");
    is_done(&mut it, planner, "a");
    assert!(it.has("a") && it.status("a1") == StepStatus::Pending);
    it.answers("yes");
    assert_eq!((it.has("a"), it.status("a1")), (false, StepStatus::Running));
    let (mut it, planner) = reviewing(consent, true);
    hand_in(&mut it, planner, &[planned("b", &[])]).expect("a good plan");
    is_done(&mut it, planner, "review");
    assert_eq!((it.status("review"), it.status("b")), (StepStatus::WaitingForHuman, StepStatus::Pending));
    it.answers("yes");
    assert_eq!((it.status("review"), it.running()), (StepStatus::Pending, vec!["b".to_owned()]));
    it.plays("b", complete());
    it.plays("review", complete());
    assert_eq!(it.state(), "complete");
}
