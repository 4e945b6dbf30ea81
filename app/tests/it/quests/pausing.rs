//! Quests that a person holds, and quests that have used up their money.

use crate::support::quest::{SHORT, done, step, text};
use crate::support::workshop::Workshop;
use serde_json::json;

#[test]
fn a_pause_stops_everybody_and_fails_nobody() {
    let shop = Workshop::with(SHORT, Vec::new());
    let script = [text("ready"), json!({ "sleep_ms": 600_000 }), json!("turn"), done("after the pause")];
    let book = shop.playbook().play("codeweaver", &script);
    let steps = [step("a", &[]), step("b", &[]), step("c", &[])];
    let quest = shop.new_quest(&book, json!({ "steps": steps, "slots": 2 }));
    let agents = ["a", "b"].map(|step| shop.hired(&quest, step, "codeweaver"));
    for agent in &agents {
        shop.wait_said(agent, "ready");
    }
    shop.tell(&quest, "pause");
    for agent in &agents {
        assert_eq!(shop.end(agent), "user_ended");
    }
    shop.expect_nothing_left();
    assert_eq!(shop.quest(&quest)["state"], "paused");
    for step in ["a", "b", "c"] {
        assert_eq!(shop.status(&quest, step), "queued", "{step}");
    }
    let twice = shop.door().post(&format!("/api/quests/{quest}/pause"), &json!({}));
    assert_eq!(twice.status, 409, "{twice:?}");
    assert_eq!(shop.door().get("/api/questions").json()["questions"], json!([]));

    shop.tell(&quest, "resume");
    let third = shop.hired(&quest, "c", "codeweaver");
    shop.wait_said(&third, "ready");
    shop.tell(&quest, "pause");
    shop.end(&third);
    shop.tell(&quest, "resume");
    shop.complete(&quest);
    for (step, agent) in ["a", "b", "c"].iter().zip(agents.iter().chain([&third])) {
        assert_eq!(shop.story(&quest, step), ["codeweaver", "codeweaver again", "complete", "completed"]);
        let sessions = shop.conversation(agent);
        assert!(sessions.len() == 2 && sessions[0] == sessions[1], "{sessions:?}");
    }
}

/// A script need not know where a pause will come.
#[test]
fn a_scripted_agent_goes_on_after_a_pause_where_it_was() {
    let shop = Workshop::with(SHORT, Vec::new());
    let script = [text("ready"), json!({ "sleep_ms": 600_000 }), text("back"), done("after the pause")];
    let quest = shop.new_quest(&shop.playbook().play("codeweaver", &script), json!({ "steps": [step("a", &[])] }));
    let agent = shop.hired(&quest, "a", "codeweaver");
    shop.wait_said(&agent, "ready");
    shop.tell(&quest, "pause");
    shop.end(&agent);
    shop.tell(&quest, "resume");
    shop.complete(&quest);
    assert_eq!(shop.said(&agent), ["ready", "back"]);
    assert_eq!(shop.story(&quest, "a"), ["codeweaver", "codeweaver again", "complete", "completed"]);
}

#[test]
fn a_quest_whose_money_is_used_up_waits_for_more() {
    let shop = Workshop::with(SHORT, Vec::new());
    let script = [json!({ "cost": { "usd": 0.1 } }), text("that was dear"), done("done")];
    let book = shop.playbook().play("codeweaver", &script);
    let steps = [step("a", &[]), step("b", &["a"]), step("c", &["b"])];
    let quest = shop.new_quest(&book, json!({ "steps": steps, "budget": "0.05" }));
    let (question, words) = shop.asked(&quest, 1);
    assert!(words.contains("$0.1") && words.contains("$0.05"), "{words}");
    assert_eq!(shop.status(&quest, "a"), "complete", "work is never killed for money");
    assert_eq!(shop.status(&quest, "b"), "parked");
    shop.expect_nothing_left();
    let too_little = shop.door().post(&format!("/api/questions/{question}/answer"), &json!({ "answer": "0.07" }));
    assert_eq!(too_little.status, 422, "{too_little:?}");
    assert_eq!(shop.step(&quest, "b")["question"], question);
    assert!(shop.grounds.run(&["quest", "list"]).good().contains("asks you"));
    shop.grounds.run(&["quest", "answer", &quest, "0.15"]).good();
    shop.wait_step(&quest, "b", "step_completed");
    shop.asked(&quest, 2);
    assert_eq!(shop.status(&quest, "c"), "parked");
    let raised = shop.door().post(&format!("/api/quests/{quest}/budget"), &json!({ "limit": "1" }));
    assert_eq!(raised.status, 200, "{raised:?}");
    shop.complete(&quest);
    assert_eq!(shop.door().get("/api/questions").json()["questions"], json!([]));
    assert_eq!(shop.quest(&quest)["spent"]["cost"], shop.door().get("/api/usage").json()["total"]["cost"]);
}

#[test]
fn however_often_it_is_paused_each_step_is_done_once() {
    let shop = Workshop::open();
    let nap = [text("x"), json!({ "sleep_ms": 50 }), done("done")];
    let script: Vec<_> = (0..12).flat_map(|_| nap.iter().cloned().chain([json!("turn")])).collect();
    let book = shop.playbook().play("codeweaver", &script).play("siegemaster", &script);
    let steps = [step("a", &[]), step("b", &[]), step("c", &["a", "b"])];
    let quest = shop.new_quest(&book, json!({ "steps": steps, "ward": "true" }));
    for nth in 1..=8 {
        let mut met = 0;
        let begun = shop.wait("somebody begins", |event| {
            met += u32::from(event["type"] == "step_begun");
            met == nth || event["type"] == "quest_completed"
        });
        if begun["type"] == "quest_completed" {
            break;
        }
        // It may just have become complete.
        for what in ["pause", "resume"] {
            let told = shop.door().post(&format!("/api/quests/{quest}/{what}"), &json!({}));
            assert!([200, 409].contains(&told.status), "{told:?}");
        }
    }
    shop.complete(&quest);
    for step in ["a", "b", "c"] {
        let story = shop.story(&quest, step);
        let count = |word: &str| story.iter().filter(|it| *it == word).count();
        assert_eq!((count("codeweaver"), count("siegemaster")), (1, 1), "{story:?}");
        assert_eq!((count("complete"), count("ward green"), count("completed")), (2, 2, 1), "{story:?}");
    }
}
