//! A quest whose daemon is killed in the middle of everything, one moment after the other: it completes, and nothing is done twice.

use crate::support::quest::{Gate, done, mcp, signal, step, text, write};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;

/// Where the daemon is killed.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    Requirements,
    Plan,
    Work,
    Ward,
    Merge,
    Question,
    Review,
}

fn survives(moment: Moment) {
    let mut shop = Workshop::open();
    shop.repository();
    let gate = shop.gate();
    let held = |at: Moment, gate: &Gate, script: &[Value]| -> Vec<Value> {
        let wait = if at == moment { vec![text("held"), gate.pass()] } else { vec![text("free")] };
        wait.into_iter().chain(script.iter().cloned()).collect()
    };
    let observables = json!({ "observables": [{ "id": "one", "description": "one thing" }] });
    let plan = json!({ "steps": [{ "id": "arch", "name": "Build the arch", "observables": ["one"] }] });
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop
        .playbook()
        .play("chaoswhisperer", &held(Moment::Requirements, &gate, &[mcp("set-requirements", observables), done("r")]))
        .play("pathseeker", &held(Moment::Plan, &gate, &[mcp("plan-steps", plan), done("p")]))
        .play("codeweaver", &held(Moment::Work, &gate, &[ask, json!("turn"), write("arch.txt", "stone\n"), done("w")]))
        .play("lawbringer", &held(Moment::Review, &gate, &[done("l")]));
    let wards = shop.grounds.path().join("gates/wards");
    let waits = if moment == Moment::Ward { gate.command() } else { "true".to_owned() };
    let ward = format!("echo run >> '{}'; {waits}", wards.display());
    let quest = shop.new_quest(&book, json!({ "ward": ward, "isolation": "worktree" }));
    let at_gate = |shop: &Workshop, step: &str, role: &str| {
        let agent = shop.hired(&quest, step, role);
        shop.wait_said(&agent, "held");
    };
    let answer = |shop: &Workshop| {
        let (question, _) = shop.asked(&quest, 1);
        shop.answer(question, "Wide.");
    };
    if ![Moment::Requirements, Moment::Plan, Moment::Work, Moment::Question].contains(&moment) {
        answer(&shop);
    }
    match moment {
        Moment::Requirements => at_gate(&shop, "requirements", "chaoswhisperer"),
        Moment::Plan => at_gate(&shop, "plan", "pathseeker"),
        Moment::Work => at_gate(&shop, "arch", "codeweaver"),
        Moment::Ward => super::wait_until("the ward runs", || wards.exists()),
        Moment::Merge => drop(shop.wait_step(&quest, "arch", "merge_begun")),
        Moment::Question => drop(shop.asked(&quest, 1)),
        Moment::Review => at_gate(&shop, "review", "lawbringer"),
    }
    shop.kill_daemon();
    gate.open();
    shop.restart();
    if [Moment::Requirements, Moment::Plan, Moment::Work, Moment::Question].contains(&moment) {
        answer(&shop);
    }
    shop.complete(&quest);

    let told = |step: &str| shop.story(&quest, step).join(", ");
    assert_eq!(told("requirements"), "chaoswhisperer, complete, completed");
    assert_eq!(told("plan"), "pathseeker, complete, completed");
    assert_eq!(
        told("arch"),
        "codeweaver, needs-user-input, waits, codeweaver again, complete, ward green, siegemaster, complete, ward green, \
         merge merged, completed"
    );
    assert_eq!(told("review"), "lawbringer, complete, ward green, completed");
    assert_eq!(fs::read_to_string(&wards).unwrap().lines().count(), 3, "each ward ran once");
    let kinds: Vec<Value> = shop.events().iter().map(|event| event["type"].clone()).collect();
    let count = |kind: &str| kinds.iter().filter(|it| **it == kind).count();
    assert_eq!((count("run_spawned"), count("run_crashed"), count("run_ended")), (6, 0, 6));
    assert_eq!(shop.git(&["show", &format!("{}:arch.txt", shop.branch(&quest))]), "stone");
    let merges = shop.git(&["log", "--merges", "--format=%H", &shop.branch(&quest)]);
    assert!(merges.lines().count() <= 1, "{merges}");
}

#[test]
fn while_requirements_are_found() {
    survives(Moment::Requirements);
}

#[test]
fn while_the_plan_is_made() {
    survives(Moment::Plan);
}

#[test]
fn while_a_step_is_worked_on() {
    survives(Moment::Work);
}

#[test]
fn while_a_ward_runs() {
    survives(Moment::Ward);
}

#[test]
fn while_a_step_is_merged() {
    survives(Moment::Merge);
}

#[test]
fn while_a_person_is_asked() {
    survives(Moment::Question);
}

#[test]
fn while_all_of_it_is_reviewed() {
    survives(Moment::Review);
}

#[test]
fn again_and_again() {
    let mut shop = Workshop::open();
    shop.repository();
    let wards = shop.grounds.path().join("said-wards");
    fs::write(shop.grounds.path().join(".git/info/exclude"), "/home/\n/plays/\n/said*\n/.hatchery/\n").unwrap();
    let ward = format!("echo run >> '{}'", wards.display());
    let steps: Vec<Value> = (0..3).map(|at| step(&format!("s{at}"), &[])).collect();
    let options = json!({ "steps": steps, "ward": ward, "isolation": "worktree" });
    let quest = shop.new_quest(&shop.playbook(), options);
    let mut next = 10;
    loop {
        let seen =
            shop.wait("more", |event| event["id"].as_u64().unwrap() >= next || event["type"] == "quest_completed");
        if seen["type"] == "quest_completed" {
            break;
        }
        shop.kill_daemon();
        shop.restart();
        next = shop.door().head() + 17;
    }
    shop.complete(&quest);
    for at in 0..3 {
        let story = "codeweaver, complete, ward green, siegemaster, complete, ward green, merge merged, completed";
        assert_eq!(shop.story(&quest, &format!("s{at}")).join(", "), story);
        assert!(shop.git(&["show", &format!("{}:notes/s{at}.md", shop.branch(&quest))]).contains("was done"));
    }
    assert_eq!(fs::read_to_string(&wards).unwrap().lines().count(), 7, "each ward ran once");
    assert_eq!(shop.events().iter().filter(|event| event["type"] == "run_crashed").count(), 0);
    let worktrees = shop.worktrees(&quest);
    super::wait_until("the worktrees are gone", || !worktrees.exists());
    assert_eq!(shop.git(&["for-each-ref", "refs/hatchery"]), "");
}
