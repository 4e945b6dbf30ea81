//! Agents that do not do what they should: they leave without a word, their service is overloaded, a person stops them.

use crate::support::quest::{SHORT, done, signal, step, text};
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
    // From the second time on it waits before it is started again.
    let story =
        "codeweaver, parked, codeweaver again, parked, codeweaver again, failed, codeweaver again, complete, completed";
    assert_eq!(shop.story(&quest, "a").join(", "), story);
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
    assert!(words.contains("stopped by the user") && words.contains("`retry`"), "{words}");
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

#[test]
fn whoever_waits_for_a_person_gives_its_slot_back() {
    let shop = Workshop::with(SHORT, Vec::new());
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask, turn(), done("wide")]);
    let steps = [step("a", &[]), step("b", &[]), step("c", &["a"])];
    let quest = shop.new_quest(&book, json!({ "steps": steps, "slots": 1 }));
    shop.wait_step(&quest, "b", "step_completed");
    assert_eq!(shop.status(&quest, "a"), "waiting_for_human");
    assert_eq!(shop.status(&quest, "c"), "pending");
    shop.answer(shop.asked(&quest, 1).0, "two carts");
    shop.complete(&quest);
}

#[test]
fn roles_that_call_each_other_in_a_circle_are_cut() {
    let shop = Workshop::with(SHORT, Vec::new());
    let call = |role: &str| {
        let fields = json!({ "targetRole": role, "reason": "not my part", "context": "at all", "resume": true });
        signal("needs-role-followup", fields)
    };
    let book = shop
        .playbook()
        .play("codeweaver", &[call("spiritmender"), turn(), done("after all")])
        .play("spiritmender", &[call("codeweaver"), turn(), done("I did it")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    let (question, words) = shop.asked(&quest, 1);
    assert!(words.contains("spiritmender") && words.contains("not my part"), "{words}");
    shop.answer(question, "You do it.");
    shop.complete(&quest);
    let story = "codeweaver, needs-role-followup, spiritmender, needs-role-followup, codeweaver, needs-role-followup, spiritmender, \
                 needs-role-followup, waits, spiritmender again, complete, codeweaver again, complete, spiritmender again, complete, \
                 codeweaver again, complete, completed";
    assert_eq!(shop.story(&quest, "a").join(", "), story);
}

#[test]
fn an_agent_that_is_killed_is_replaced_when_a_person_says_so() {
    let shop = Workshop::with(SHORT, Vec::new());
    let gate = shop.gate();
    let book = shop
        .playbook()
        .play("a.codeweaver.1", &[text("ready"), gate.pass()])
        .play("a.codeweaver.2", &[done("in its place")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    let agent = shop.hired(&quest, "a", "codeweaver");
    shop.wait_said(&agent, "ready");
    let killed = shop.door().kill(&agent, json!({}));
    assert_eq!(killed.status, 200, "{killed:?}");
    let (question, _) = shop.asked(&quest, 1);
    shop.answer(question, "retry");
    shop.complete(&quest);
    assert_eq!(shop.story(&quest, "a"), ["codeweaver", "waits", "codeweaver", "complete", "completed"]);
    assert_eq!(shop.step(&quest, "a")["summary"], "in its place");
}

#[test]
fn what_is_parked_stays_so_in_a_pause_and_ends_with_its_quest() {
    let shop = Workshop::with(SHORT, Vec::new());
    let limited = json!({ "error": { "api": 429, "resets_in_s": 3_600 } });
    let book = shop.playbook().play("codeweaver", &[limited, done("never")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    shop.wait_step(&quest, "a", "step_parked");
    let agent = shop.hired(&quest, "a", "codeweaver");
    shop.tell(&quest, "pause");
    assert_eq!(shop.status(&quest, "a"), "parked");
    shop.tell(&quest, "resume");
    assert_eq!(shop.status(&quest, "a"), "parked");
    shop.tell(&quest, "abandon");
    assert_eq!(shop.end(&agent), "user_ended");
    assert_eq!(shop.conversation(&agent).len(), 1);
    assert_eq!(shop.count(&quest, "step_failed"), 0);
    shop.expect_nothing_left();
}
