//! Several agents at once: who gets a slot, and that each result counts once.

use crate::support::quest::{SHORT, WARDED, done, step, text};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn agents_that_finish_in_reverse_are_each_heeded_once() {
    let shop = Workshop::with(SHORT, Vec::new());
    let gates = [shop.gate(), shop.gate(), shop.gate()];
    let mut book = shop.playbook();
    for (at, gate) in gates.iter().enumerate() {
        book = book.play(&format!("s{at}.codeweaver"), &[text("ready"), gate.pass(), done(&format!("result {at}"))]);
    }
    let quest = shop.new_quest(&book, json!({ "steps": [step("s0", &[]), step("s1", &[]), step("s2", &[])] }));
    for at in 0..3 {
        let agent = shop.hired(&quest, &format!("s{at}"), "codeweaver");
        shop.wait_said(&agent, "ready");
    }
    for at in [2, 1, 0] {
        gates[at].open();
        shop.wait_step(&quest, &format!("s{at}"), "step_completed");
    }
    shop.complete(&quest);
    let ended: Vec<_> = shop.events().into_iter().filter(|event| event["type"] == "step_completed").collect();
    let ended: Vec<_> = ended.iter().map(|event| (event["step"].as_str().unwrap(), &event["summary"])).collect();
    assert_eq!(ended, [("s2", &json!("result 2")), ("s1", &json!("result 1")), ("s0", &json!("result 0"))]);
    for at in 0..3 {
        assert_eq!(shop.story(&quest, &format!("s{at}")), ["codeweaver", "complete", "completed"]);
    }
}

#[test]
fn ten_steps_share_three_slots() {
    let shop = Workshop::with(WARDED, Vec::new());
    let after = |at: usize| match at {
        0..=4 => vec![],
        5 => vec!["s0"],
        6 => vec!["s1", "s2"],
        7 => vec!["s5"],
        8 => vec!["s6", "s3"],
        _ => vec!["s7", "s8", "s4"],
    };
    let steps: Vec<Value> = (0..10).map(|at| step(&format!("s{at}"), &after(at))).collect();
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": steps, "ward": "true", "slots": 3 }));
    shop.complete(&quest);

    let events: Vec<Value> = shop.events().into_iter().filter(|event| event["quest"] == quest.as_str()).collect();
    let (mut working, mut complete, mut most) = (BTreeSet::new(), BTreeSet::new(), 0);
    for event in &events {
        let Some(step) = event["step"].as_str() else { continue };
        match event["type"].as_str().unwrap() {
            "step_begun" | "ward_begun" | "merge_begun" => {
                let number: usize = step[1..].parse().unwrap();
                assert!(after(number).iter().all(|before| complete.contains(before)), "{event}: {complete:?}");
                assert!(working.insert(step), "{event}");
            }
            "step_queued" | "step_waits" | "step_parked" | "step_failed" => drop(working.remove(step)),
            "step_completed" => {
                working.remove(step);
                assert!(complete.insert(step), "{event}");
            }
            _ => {}
        }
        assert!(working.len() <= 3, "{working:?} at {event}");
        most = most.max(working.len());
    }
    assert_eq!((most, complete.len()), (3, 10));
    // Those that are ready begin together: before anything else happens.
    let first = shop.events().iter().position(|event| event["type"] == "run_spawned").unwrap();
    let begun = shop.events()[..first].iter().filter(|event| event["type"] == "step_begun").count();
    assert_eq!(begun, 3);
}
