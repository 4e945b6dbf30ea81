//! What is kept of a quest and taken in from elsewhere: `quest.json`, plans, exports. None of it can stop other quests.

use crate::support::quest::{SHORT, done, mcp, signal, step};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn file(shop: &Workshop, quest: &str) -> PathBuf {
    shop.grounds.data().join("quests").join(quest).join("quest.json")
}

fn kept(shop: &Workshop, quest: &str) -> Option<Value> {
    serde_json::from_slice(&fs::read(file(shop, quest)).ok()?).ok()
}

#[test]
fn the_file_says_what_the_daemon_says() {
    let shop = Workshop::with(SHORT, Vec::new());
    let gate = shop.gate();
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[gate.pass(), ask, json!("turn"), done("wide")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "ward": "true" }));
    let agent = shop.hired(&quest, "a", "codeweaver");
    shop.wait_for(&agent, "run_started");
    let agrees = || kept(&shop, &quest).is_some_and(|kept| kept == shop.quest(&quest));
    super::wait_until("it shows who is at work", agrees);
    assert!(kept(&shop, &quest).unwrap()["steps"][0]["agents"].is_array());
    gate.open();
    let (question, _) = shop.asked(&quest, 1);
    super::wait_until("it shows the question", agrees);
    shop.answer(question, "Two carts.");
    shop.complete(&quest);
    super::wait_until("it shows the end", agrees);
    assert_eq!(kept(&shop, &quest).unwrap()["state"], "complete");
    let exported: Value = serde_json::from_str(&shop.grounds.run(&["quest", "export", &quest]).good()).unwrap();
    assert_eq!(Some(exported), kept(&shop, &quest));
}

#[test]
fn a_corrupt_file_is_set_aside_and_stops_nobody() {
    let mut shop = Workshop::with(SHORT, Vec::new());
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let asking = shop.playbook().play("codeweaver", &[ask, json!("turn"), done("wide")]);
    let quests = [0, 1].map(|_| shop.new_quest(&asking, json!({ "steps": [step("a", &[])] })));
    let questions = quests.each_ref().map(|quest| shop.asked(quest, 1).0);
    super::wait_until("both are written", || quests.iter().all(|quest| kept(&shop, quest).is_some()));
    shop.kill_daemon();
    let (bad, good) = (&quests[0], &quests[1]);
    fs::write(file(&shop, bad), "{\"schema\": 1, \"id\":").unwrap();
    fs::remove_file(file(&shop, good)).unwrap();
    shop.restart();
    for (quest, question) in quests.iter().zip(questions) {
        shop.answer(question, "Two carts.");
        shop.complete(quest);
        super::wait_until("it is written again", || kept(&shop, quest).is_some_and(|it| it == shop.quest(quest)));
    }
    let aside = fs::read_to_string(file(&shop, bad).with_extension("json.bad-1")).unwrap();
    assert_eq!(aside, "{\"schema\": 1, \"id\":");
}

#[test]
fn a_bad_plan_is_told_to_whoever_made_it_and_to_nobody_else() {
    let shop = Workshop::with(SHORT, Vec::new());
    let plan = |steps: &[(&str, &[&str])]| {
        let steps: Vec<Value> =
            steps.iter().map(|(id, after)| json!({ "id": id, "name": id, "dependsOn": after })).collect();
        mcp("plan-steps", json!({ "steps": steps }))
    };
    let bad = [
        (plan(&[("a", &["c"]), ("b", &["a"]), ("c", &["b"])]), vec!["a", "b", "c", "→"]),
        (plan(&[("a", &["a"])]), vec!["a → a"]),
        (plan(&[("a", &[]), ("a", &[])]), vec!["`a`", "twice"]),
        (plan(&[("a", &["nowhere"])]), vec!["`nowhere`"]),
        (plan(&[("review", &[])]), vec!["`review`"]),
        (plan(&[("A step", &[])]), vec!["A step"]),
        (plan(&[]), vec!["steps"]),
        (done("without a plan"), vec!["plan-steps"]),
    ];
    let script: Vec<Value> = bad.iter().map(|(call, _)| call.clone()).collect();
    let stubborn = shop.playbook().play("pathseeker", &script);
    let good = script.iter().cloned().chain([plan(&[("a", &[]), ("b", &["a"])]), done("planned")]);
    let patient = shop.playbook().play("pathseeker", &good.collect::<Vec<_>>());
    let lost = shop.new_quest(&stubborn, json!({}));
    let planned = shop.new_quest(&patient, json!({}));
    let given = shop.new_quest(&patient, json!({ "steps": [step("x", &[]), step("y", &["x"])] }));
    for quest in [&planned, &given] {
        shop.wait_quest(quest, "quest_completed");
    }
    shop.wait_step(&lost, "plan", "step_failed");
    assert_eq!(shop.quest(&lost)["state"], "open");
    assert_eq!(shop.count(&lost, "steps_planned"), 0);
    let results = shop.results(&shop.hired(&planned, "plan", "pathseeker"));
    for ((call, words), result) in bad.iter().zip(&results) {
        assert!(words.iter().all(|word| result.contains(word)), "{call}: {result}");
    }
    assert_eq!(shop.count(&planned, "steps_planned"), 1);
    assert_eq!(shop.story(&planned, "b"), ["codeweaver", "complete", "completed"]);
    shop.expect_nothing_left();
}

#[test]
fn an_exported_quest_goes_on_elsewhere() {
    let shop = Workshop::open();
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("left.codeweaver", &[ask]);
    let options = json!({ "ward": "true", "slots": 2, "budget": "12.5", "approve_plan": true });
    let quest = shop.new_quest(&book, options);
    let (question, words) = shop.asked(&quest, 1);
    assert!(words.contains("The plan has 3 steps"), "{words}");
    shop.answer(question, "yes");
    shop.wait_step(&quest, "right", "step_completed");
    shop.asked(&quest, 2);
    let export = shop.grounds.run(&["quest", "export", &quest]).good();
    let there = Workshop::open();
    let exported = there.grounds.path().join("exported.json");
    fs::write(&exported, &export).unwrap();
    let imported = there.grounds.run(&["quest", "import", exported.to_str().unwrap()]).good();
    assert_eq!(imported.trim(), quest, "it keeps its id where nobody has it");
    let before: Value = serde_json::from_str(&export).unwrap();
    assert_eq!(there.quest(&quest)["state"], "paused");
    assert_eq!(lasting(there.quest(&quest)), lasting(before.clone()));
    let again = there.grounds.run(&["quest", "import", exported.to_str().unwrap()]).good();
    assert_ne!(again.trim(), quest);
    assert_eq!(lasting(there.quest(again.trim())), lasting(before));

    there.grounds.run(&["quest", "run", &quest]).good();
    assert_eq!(there.story(&quest, "first"), ["completed"], "what was complete is not done again");
    let left = ["codeweaver", "complete", "ward green", "siegemaster", "complete", "ward green", "completed"];
    assert_eq!(there.story(&quest, "left"), left);
    // The same once more, beside those that it had the first time.
    there.grounds.run(&["quest", "run", again.trim()]).good();
    let agents = |quest: &str| there.step(quest, "left")["agents"].clone();
    assert_ne!(agents(&quest), agents(again.trim()));
    there.expect_nothing_left();
}

/// A file may come from anybody.
#[test]
fn an_imported_quest_has_the_permissions_and_programs_that_are_set_here() {
    let shop = Workshop::with(SHORT, Vec::new());
    let quest = shop.new_quest(&shop.playbook(), json!({ "hold": true, "steps": [step("a", &[])] }));
    let mut export = shop.quest(&quest);
    for role in export["table"]["roles"].as_array_mut().unwrap() {
        role["permissions"] = json!("all");
        role["harness"] = json!("claude");
        role["model"] = json!("the-dearest");
    }
    export["ward"] = json!({ "command": "touch taken-over", "limit_ms": 60_000 });
    let settings = format!("{SHORT}[quests.roles.codeweaver]\npermissions = 'edits'\n");
    let there = Workshop::with(&settings, Vec::new());
    let answer = there.door().post("/api/quests/import", &export);
    assert_eq!(answer.status, 201, "{answer:?}");
    let warning = answer.json()["warning"].as_str().unwrap_or_default().to_owned();
    assert!(warning.contains("The ward `touch taken-over` comes from the file"), "{warning}");
    let taken = there.quest(&answer.id());
    for role in taken["table"]["roles"].as_array().unwrap() {
        let permissions = if role["name"] == "codeweaver" { json!("edits") } else { Value::Null };
        assert_eq!(
            (&role["permissions"], &role["harness"], &role["model"]),
            (&permissions, &Value::Null, &Value::Null)
        );
    }
    // What is set here can make work impossible, and is asked before the quest is there.
    let settings = format!("{SHORT}[quests.roles.codeweaver]\npermissions = 'none'\n");
    let there = Workshop::with(&settings, Vec::new());
    there.door().post("/api/quests/import", &export).refused(409, "cannot_work");
    let settings = format!("{SHORT}[quests.roles.codeweaver]\nharness = 'nobody'\n");
    let there = Workshop::with(&settings, Vec::new());
    there.door().post("/api/quests/import", &export).refused(400, "no_such_harness");
}

/// What is complete has left its files on the quest's branch, which an export does not hold.
#[test]
fn whoever_takes_in_a_quest_without_its_branch_is_warned() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("b.codeweaver", &[ask]);
    let steps = json!([step("a", &[]), step("b", &["a"])]);
    let quest = shop.new_quest(&book, json!({ "steps": steps, "isolation": "worktree" }));
    shop.wait_step(&quest, "a", "step_completed");
    shop.asked(&quest, 1);
    let export = shop.grounds.run(&["quest", "export", &quest]).good();
    let take_in = |fetched: bool| {
        let there = Workshop::with(SHORT, Vec::new());
        there.repository();
        if fetched {
            let branch = shop.branch(&quest);
            let branch = format!("{branch}:{branch}");
            there.git(&["fetch", "--quiet", shop.grounds.path().to_str().unwrap(), &branch]);
        }
        let exported = there.grounds.path().join("exported.json");
        fs::write(&exported, &export).unwrap();
        let ran = there.grounds.run(&["quest", "import", exported.to_str().unwrap()]);
        assert_eq!((ran.code, ran.stdout.trim()), (Some(0), quest.as_str()), "{ran:?}");
        ran.stderr
    };
    let warned = take_in(false);
    let branch = shop.branch(&quest);
    let words = format!("warning: 1 step is complete, and what was done is not here: there is no branch {branch}.");
    assert!(warned.contains(&words), "{warned}");
    assert!(!take_in(true).contains("warning"));
    let again = shop.door().post("/api/quests/import", &serde_json::from_str::<Value>(&export).unwrap());
    let warning = again.json()["warning"].as_str().unwrap().to_owned();
    assert!(warning.contains(&format!("{branch}:{}", shop.branch(&again.id()))), "{warning}");
}

#[test]
fn a_plan_that_nobody_has_agreed_to_is_made_and_asked_about_again_elsewhere() {
    let shop = Workshop::open();
    let quest = shop.new_quest(&shop.playbook(), json!({ "approve_plan": true }));
    shop.asked(&quest, 1);
    let there = Workshop::open();
    let exported = there.grounds.path().join("exported.json");
    fs::write(&exported, shop.grounds.run(&["quest", "export", &quest]).good()).unwrap();
    there.grounds.run(&["quest", "import", exported.to_str().unwrap()]).good();
    there.tell(&quest, "resume");
    let (question, words) = there.asked(&quest, 1);
    assert!(words.contains("The plan has 3 steps"), "{words}");
    assert_eq!(there.story(&quest, "requirements"), ["completed"], "what was complete is not done again");
    there.answer(question, "yes");
    there.complete(&quest);
    shop.expect_nothing_left();
}

/// What of a quest does not depend on where and when it is carried out.
fn lasting(mut quest: Value) -> Value {
    for name in ["id", "version", "created", "changed", "state", "spent"] {
        quest.as_object_mut().unwrap().remove(name);
    }
    for step in quest["steps"].as_array_mut().unwrap() {
        // A review is worth as much as what it has seen, so it is done again.
        let complete = step["status"] == "complete" && step["phase"] != "review";
        let step = step.as_object_mut().unwrap();
        for name in
            ["agent", "agents", "attempts", "history", "wards", "signals", "since", "question", "questionText", "doing"]
        {
            step.remove(name);
        }
        if !complete {
            step.remove("status");
            step.remove("summary");
        }
    }
    quest
}

#[test]
fn a_log_with_quests_is_sound_and_can_be_taken_elsewhere() {
    let mut shop = Workshop::open();
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("left.codeweaver", &[ask, json!("turn"), done("wide")]);
    let quest = shop.new_quest(&book, json!({ "ward": "true" }));
    shop.wait_step(&quest, "right", "step_completed");
    let (question, _) = shop.asked(&quest, 1);
    shop.expect_nothing_left();
    // It keeps a snapshot when it is asked to leave.
    shop.stop_daemon();
    shop.restart();
    let before = shop.quest(&quest);
    let sound = shop.grounds.run(&["fsck"]);
    assert_eq!(sound.code, Some(0), "{sound:?}");
    let log = shop.grounds.path().join("log.jsonl");
    shop.grounds.run(&["export", log.to_str().unwrap()]).good();
    let there = crate::support::daemon::Grounds::new();
    there.run(&["import", log.to_str().unwrap()]).good();
    let taken: Value = serde_json::from_str(&there.run(&["quest", "export", &quest]).good()).unwrap();
    // There it is paused, because its processes are here.
    let lasting = |mut quest: Value| {
        for name in ["state", "changed", "version"] {
            quest.as_object_mut().unwrap().remove(name);
        }
        quest
    };
    assert_eq!(lasting(taken), lasting(before));
    shop.answer(question, "Two carts.");
    shop.complete(&quest);
}
