//! Agents that were not allowed to work, and say that they have.

use crate::support::quest::{SHORT, done, step};
use crate::support::workshop::Workshop;
use serde_json::json;

#[test]
fn a_step_whose_agent_was_denied_tools_and_changed_nothing_asks() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let bash = json!({ "ask": { "name": "Bash", "input": { "command": "make" }, "result": "made" } });
    let book = shop.playbook().play("a.codeweaver", &[bash, done("all is well"), json!("turn"), done("nothing to do")]);
    let with = json!({ "script": book.folder, "permissions": "edits" });
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "isolation": "worktree", "with": with }));
    let asked = shop.wait("a question", |event| event["about"]["permission"].is_object());
    shop.answer(asked["id"].as_u64().unwrap(), "deny");
    let (question, text) = shop.asked(&quest, 1);
    assert!(text.contains("were denied 1 uses of tools, and the step changed nothing"), "{text}");
    assert!(text.contains("all is well"), "{text}");
    let shown = shop.grounds.run(&["quest", "show", &quest]).good();
    assert!(shown.contains("1 tool uses denied"), "{shown}");
    shop.answer(question, "then say so");
    shop.wait_quest(&quest, "quest_completed");
    for words in ["show", "watch"] {
        let ran = shop.grounds.run(&["quest", words, &quest]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("nothing was changed") && !said.contains("the work is on the branch"), "{ran:?}");
    }
    assert_eq!(shop.quest(&quest)["hasWork"], false);
}
