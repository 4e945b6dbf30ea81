//! One quest in which every role acts and every signal is given.

use crate::support::quest::{SHORT, done, mcp, signal, step, text};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

fn turn() -> Value {
    json!("turn")
}

#[test]
fn every_role_acts_and_every_signal_is_heeded() {
    let shop = Workshop::open();
    let observables = json!({ "observables": [{ "id": "dry-feet", "description": "one comes across with dry feet" }] });
    let steps = json!({ "steps": [
        { "id": "arch", "name": "Build the arch", "observables": ["dry-feet"] },
        { "id": "deck", "name": "Lay the deck", "dependsOn": ["arch"] },
    ] });
    let asks = signal("needs-user-input", json!({ "question": "How wide?", "context": "The river is not." }));
    let leaves_off =
        signal("partially-complete", json!({ "progress": "half of it", "continuationPoint": "the keystone" }));
    let calls = |role: &str, resume: bool| {
        let fields = json!({ "targetRole": role, "reason": "a crack", "context": "on the left", "resume": resume });
        signal("needs-role-followup", fields)
    };
    let book = shop
        .playbook()
        .play(
            "requirements.chaoswhisperer",
            &[asks, turn(), mcp("set-requirements", observables), done("it is clear now")],
        )
        .play("plan.pathseeker", &[mcp("plan-steps", steps), done("two steps")])
        .play("arch.codeweaver.1", &[leaves_off])
        .play("arch.codeweaver.2", &[calls("spiritmender", true), turn(), text("I go on"), done("the arch stands")])
        .play("arch.spiritmender", &[done("filled the crack")])
        .play("arch.siegemaster", &[calls("codeweaver", false)])
        .play("arch.codeweaver.3", &[done("the crack is gone")])
        .play("deck.codeweaver", &[calls("pathseeker", true), turn(), done("the deck lies")])
        .play("deck.pathseeker", &[done("the plan stays")])
        .play("review.lawbringer", &[calls("spiritmender", true), turn(), done("all is well")])
        .play("review.spiritmender", &[done("mended the last crack")]);
    let quest = shop.new_quest(&book, json!({ "ward": "true" }));

    let (question, words) = shop.asked(&quest, 1);
    assert_eq!(words, "How wide?\n\nThe river is not.");
    let whisperer = shop.hired(&quest, "requirements", "chaoswhisperer");
    assert_eq!(shop.end(&whisperer), "completed");
    shop.expect_nothing_left();
    assert_eq!(shop.status(&quest, "requirements"), "waiting_for_human");
    shop.answer(question, "Two carts wide.");
    let again = shop.door().post(&format!("/api/questions/{question}/answer"), &json!({ "answer": "Three." }));
    assert_eq!(again.status, 404, "{again:?}");
    shop.complete(&quest);

    let story = |step: &str| shop.story(&quest, step);
    assert_eq!(
        story("requirements"),
        ["chaoswhisperer", "needs-user-input", "waits", "chaoswhisperer again", "complete", "completed"]
    );
    assert_eq!(story("plan"), ["pathseeker", "complete", "completed"]);
    let arch = "codeweaver, partially-complete, codeweaver, needs-role-followup, spiritmender, complete, codeweaver again, complete, \
                ward green, siegemaster, needs-role-followup, codeweaver, complete, ward green, completed";
    assert_eq!(story("arch").join(", "), arch);
    let deck = "codeweaver, needs-role-followup, pathseeker, complete, codeweaver again, complete, ward green, siegemaster, complete, \
                ward green, completed";
    assert_eq!(story("deck").join(", "), deck);
    let review =
        "lawbringer, needs-role-followup, spiritmender, complete, lawbringer again, complete, ward green, completed";
    assert_eq!(story("review").join(", "), review);

    let heard = |agent: &str, nth: usize| shop.door().history(agent)[nth]["content"].as_str().unwrap().to_owned();
    let agents = |step: &str| -> Vec<String> {
        let agents = shop.step(&quest, step)["agents"].as_array().unwrap().clone();
        agents.iter().map(|hand| hand["agent"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(shop.conversation(&whisperer).len(), 2);
    assert_eq!(shop.conversation(&whisperer)[0], shop.conversation(&whisperer)[1], "the same conversation");
    let answer = last_user(&shop, &whisperer);
    assert!(answer.contains("Two carts wide."), "{answer}");
    // In the order in which they worked last.
    let [first, mender, second, siege, third] = agents("arch").try_into().unwrap();
    assert!(heard(&first, 0).contains("dry-feet: one comes across with dry feet"), "{}", heard(&first, 0));
    let brief = shop.brief(&second);
    assert!(brief.contains("half of it") && brief.contains("the keystone"), "{brief}");
    let brief = shop.brief(&mender);
    assert!(
        brief.contains("The codeweaver of this step asked for you")
            && brief.contains("a crack")
            && brief.contains("on the left")
    );
    assert!(last_user(&shop, &second).contains("filled the crack"), "{}", last_user(&shop, &second));
    assert_eq!(shop.conversation(&second).len(), 2);
    assert_eq!(shop.conversation(&siege).len(), 1, "it did not want to go on");
    assert!(shop.brief(&third).contains("The siegemaster of this step asked for you"));
    let lawbringer = agents("review").pop().unwrap();
    assert!(last_user(&shop, &lawbringer).contains("mended the last crack"));
    assert_eq!(shop.step(&quest, "arch")["summary"], "the crack is gone");
    assert_eq!(shop.quest(&quest)["state"], "complete");
}

fn last_user(shop: &Workshop, agent: &str) -> String {
    let history = shop.door().history(agent);
    history.iter().rfind(|message| message["kind"] == "user").unwrap()["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_plan_that_a_person_wants_changed_is_changed() {
    let shop = Workshop::with(SHORT, Vec::new());
    let plan = |ids: &[&str]| {
        let steps: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "name": id })).collect();
        mcp("plan-steps", json!({ "steps": steps }))
    };
    let script = [plan(&["a", "b"]), done("two"), turn(), plan(&["a", "c"]), done("two others")];
    let quest = shop.new_quest(&shop.playbook().play("pathseeker", &script), json!({ "approve_plan": true }));
    let (question, _) = shop.asked(&quest, 1);
    assert_eq!(shop.status(&quest, "a"), "pending", "nothing is begun before");
    shop.answer(question, "c instead of b, please");
    let (question, _) = shop.asked(&quest, 2);
    assert!(last_user(&shop, &shop.hired(&quest, "plan", "pathseeker")).contains("c instead of b, please"));
    shop.answer(question, "yes");
    shop.complete(&quest);
    let steps = shop.quest(&quest)["steps"].clone();
    let ids: Vec<&str> = steps.as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["requirements", "plan", "a", "c", "review"]);
}

#[test]
fn an_agent_that_mistypes_a_field_of_its_plan_is_told_which() {
    let shop = Workshop::with(SHORT, Vec::new());
    let plan = |steps: Value| mcp("plan-steps", json!({ "steps": steps }));
    let mistyped = json!([{ "id": "a", "name": "A" }, { "id": "b", "name": "B", "dependson": ["a"] }]);
    let script = [plan(mistyped), plan(json!([{ "id": "a", "name": "A" }])), done("one")];
    let quest = shop.new_quest(&shop.playbook().play("pathseeker", &script), json!({}));
    shop.complete(&quest);
    let told = shop.results(&shop.hired(&quest, "plan", "pathseeker"));
    let mistake = "`steps[1].dependson` is not known (did you mean `steps[1].dependsOn`?)";
    assert!(told[0].contains(mistake), "{told:?}");
    assert_eq!(shop.count(&quest, "steps_planned"), 1, "the first one did not count");
}

#[test]
fn the_little_quest_survives_a_plan_that_a_person_wants_changed() {
    let shop = Workshop::open();
    let quest = shop.new_quest(&shop.playbook(), json!({ "approve_plan": true }));
    for round in 1..=2 {
        let (question, words) = shop.asked(&quest, round);
        assert!(words.contains("The plan has 3 steps"), "{words}");
        shop.answer(question, "make it nicer, please");
    }
    let (question, _) = shop.asked(&quest, 3);
    shop.answer(question, "yes");
    shop.complete(&quest);
    assert_eq!(shop.count(&quest, "step_failed"), 0);
}

#[test]
fn a_step_that_is_too_large_is_split_and_what_is_complete_stays() {
    let shop = Workshop::with(SHORT, Vec::new());
    let too_large = json!({ "targetRole": "pathseeker", "reason": "too large", "context": "by far", "resume": true });
    let plan = json!({ "steps": [
        { "id": "large", "name": "What is left of it", "dependsOn": ["half"] },
        { "id": "half", "name": "Half of it", "dependsOn": ["before"] },
        { "id": "after", "name": "After it", "dependsOn": ["large"] },
    ] });
    let book = shop
        .playbook()
        .play("large.codeweaver", &[signal("needs-role-followup", too_large), turn(), done("small enough")])
        .play("large.pathseeker", &[mcp("plan-steps", plan), done("split")]);
    let steps = [step("before", &[]), step("large", &["before"]), step("after", &["large"])];
    let quest = shop.new_quest(&book, json!({ "steps": steps }));
    shop.complete(&quest);
    for step in ["before", "half", "after"] {
        assert_eq!(shop.story(&quest, step), ["codeweaver", "complete", "completed"], "{step}");
    }
    assert_eq!(
        shop.story(&quest, "large"),
        ["codeweaver", "needs-role-followup", "pathseeker", "complete", "codeweaver again", "complete", "completed"]
    );
    let at = |step: &str, kind: &str| shop.wait_step(&quest, step, kind)["id"].as_u64().unwrap();
    assert!(at("half", "step_completed") < at("large", "step_completed"));
    assert!(at("large", "step_completed") < at("after", "step_begun"));
    let told = last_user(&shop, &shop.hired(&quest, "large", "codeweaver"));
    assert!(told.contains("What is left of it"), "{told}");
}
