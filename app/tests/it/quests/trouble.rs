//! Agents that do not do what they should: they leave without a word, their service is overloaded, a person stops them.

use crate::support::quest::{SHORT, done, step, text};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

fn turn() -> Value {
    json!("turn")
}

#[test]
fn leaving_without_a_signal_is_a_crash_however_well_it_looks() {
    let shop = Workshop::with(SHORT, Vec::new());
    let nothing = [text("one"), turn(), text("two"), turn(), text("three"), turn(), text("four"), turn()];
    let script: Vec<Value> = nothing.into_iter().chain([done("at last")]).collect();
    let book = shop.playbook().play("a.codeweaver", &script);
    let steps = [step("a", &[]), step("b", &["a"]), step("c", &["b"]), step("other", &[])];
    let quest = shop.new_quest(&book, json!({ "steps": steps }));
    let failed = shop.wait_step(&quest, "a", "step_failed");
    assert!(failed["why"].as_str().unwrap().contains("without"), "{failed}");
    shop.wait_step(&quest, "other", "step_completed");
    let agent = shop.hired(&quest, "a", "codeweaver");
    let kinds = shop.kinds(&agent);
    let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    assert_eq!((count("run_spawned"), count("run_crashed")), (4, 3));
    assert_eq!(shop.said(&agent), ["one", "two", "three", "four"]);

    let document = shop.quest(&quest);
    assert_eq!(document["state"], "open");
    for (id, status) in [("a", "failed"), ("b", "blocked"), ("c", "blocked"), ("other", "complete")] {
        assert_eq!(shop.status(&quest, id), status, "{id}");
    }
    let shown = shop.grounds.run(&["quest", "list"]).good();
    assert!(shown.contains("1 failed"), "{shown}");

    shop.tell(&quest, "steps/a/retry");
    shop.wait_quest(&quest, "quest_completed");
    assert_eq!(shop.story(&quest, "a"), ["codeweaver", "failed", "codeweaver again", "complete", "completed"]);
    assert_eq!(shop.said(&agent).len(), 4);
    assert_eq!(shop.step(&quest, "a")["summary"], "at last");
    let refused = shop.door().post(&format!("/api/quests/{quest}/steps/a/retry"), &json!({}));
    assert_eq!(refused.status, 409, "{refused:?}");
    shop.expect_nothing_left();
}

#[test]
fn an_overload_gives_the_slot_back_and_spends_nothing() {
    let shop = Workshop::with(SHORT, Vec::new());
    let overloaded = json!({ "error": { "api": 529, "resets_in_s": 2 } });
    let book = shop.playbook().play("a.codeweaver", &[overloaded.clone(), overloaded, done("after all")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[]), step("b", &[])], "slots": 1 }));
    shop.wait_step(&quest, "a", "step_parked");
    shop.wait_step(&quest, "b", "step_completed");
    assert_eq!(shop.status(&quest, "a"), "parked");
    shop.complete(&quest);
    assert_eq!(
        shop.story(&quest, "a"),
        ["codeweaver", "parked", "codeweaver again", "parked", "codeweaver again", "complete", "completed"]
    );
    let agent = shop.hired(&quest, "a", "codeweaver");
    assert!(!shop.kinds(&agent).iter().any(|kind| kind == "run_crashed"));
}

#[test]
fn an_agent_that_a_person_stops_leads_to_a_question() {
    let shop = Workshop::with(SHORT, Vec::new());
    let script = [text("ready"), json!({ "sleep_ms": 600_000 }), turn(), done("gently")];
    let book = shop.playbook().play("a.codeweaver", &script);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    let agent = shop.hired(&quest, "a", "codeweaver");
    shop.wait_said(&agent, "ready");
    shop.stop(&agent);
    let (question, words) = shop.asked(&quest, 1);
    assert!(words.contains("stopped by a person") && words.contains("`retry`"), "{words}");
    assert_eq!(shop.status(&quest, "a"), "waiting_for_human");
    shop.expect_nothing_left();
    shop.answer(question, "Go on, but gently.");
    shop.complete(&quest);
    assert_eq!(shop.story(&quest, "a"), ["codeweaver", "waits", "codeweaver again", "complete", "completed"]);
    let sessions = shop.conversation(&agent);
    assert!(sessions.len() == 2 && sessions[0] == sessions[1], "{sessions:?}");
    let history = shop.door().history(&agent);
    assert!(history.iter().any(|it| it["content"].as_str().unwrap().contains("Go on, but gently.")), "{history:?}");
}
