//! What agents say about their steps, and which of it counts.

use crate::support::daemon::wait_until;
use crate::support::quest::{SHORT, done, mcp, signal, step, text};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_signal_that_only_the_stream_has_counts() {
    let shop = Workshop::with(SHORT, Vec::new());
    let seems = |step: &str| {
        let input = json!({ "signal": "complete", "stepId": step, "summary": "seen in the stream" });
        json!({ "tool": { "name": "mcp__hatchery__signal-back", "input": input } })
    };
    let book = shop
        .playbook()
        .play("a.codeweaver", &[seems("{{step}}"), text("bye")])
        .play("b.codeweaver", &[seems("a"), json!("turn"), done("by the tool")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[]), step("b", &[])] }));
    shop.complete(&quest);
    assert_eq!(shop.step(&quest, "a")["summary"], "seen in the stream");
    let agent = shop.hired(&quest, "a", "codeweaver");
    assert_eq!(shop.conversation(&agent).len(), 1);
    // What would have been refused counts no more than that.
    assert_eq!(shop.step(&quest, "b")["summary"], "by the tool");
    let agent = shop.hired(&quest, "b", "codeweaver");
    assert_eq!(shop.conversation(&agent).len(), 2);
}

#[test]
fn a_signal_that_does_not_fit_is_an_error_and_nothing_else() {
    let settings = SHORT.replace("'codeweaver'", "'siegemaster'");
    let shop = Workshop::with(&settings, Vec::new());
    let about = |step: &str| mcp("signal-back", json!({ "signal": "complete", "stepId": step, "summary": "x" }));
    let follow_up =
        json!({ "targetRole": "chaoswhisperer", "reason": "it is late", "context": "very late", "resume": true });
    let observables = json!({ "observables": [{ "id": "one", "description": "one" }] });
    let bad = [
        (about("nowhere"), "there is no step `nowhere`"),
        (about("deck"), "`arch`"),
        (signal("needs-user-input", json!({ "question": "may I?" })), "needs-user-input"),
        (signal("needs-role-followup", follow_up), "chaoswhisperer"),
        (signal("complete", json!({})), "summary"),
        (signal("finished", json!({ "summary": "x" })), "complete"),
        (mcp("set-requirements", observables), "chaoswhisperer"),
        (mcp("plan-steps", json!({ "steps": [{ "id": "own", "name": "Own" }] })), "pathseeker"),
    ];
    let after = [done("done"), done("done"), done("something else")];
    let script: Vec<_> = bad.iter().map(|(call, _)| call.clone()).chain(after).collect();
    let gate = shop.gate();
    let book = shop.playbook().play("arch.siegemaster", &script).play("deck.siegemaster", &[gate.pass(), done("x")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("arch", &[]), step("deck", &[])] }));
    shop.wait_step(&quest, "arch", "step_completed");
    let agent = shop.hired(&quest, "arch", "siegemaster");
    let results = shop.results(&agent);
    for ((call, words), result) in bad.iter().zip(&results) {
        assert!(result.contains(words), "{call}: {result}");
    }
    let [first, second, third] = &results[bad.len()..] else { panic!("{results:?}") };
    assert_eq!(first, second, "the same signal twice is one");
    assert!(third.contains("complete"), "{third}");
    assert_eq!(shop.story(&quest, "arch"), ["siegemaster", "complete", "completed"]);
    assert_eq!(shop.step(&quest, "arch")["summary"], "done");
    assert_eq!(shop.story(&quest, "deck"), ["siegemaster"], "nobody else's signal is its own");
    assert_eq!((shop.count(&quest, "requirements_set"), shop.count(&quest, "steps_planned")), (0, 1));
    gate.open();
    shop.complete(&quest);
}

#[test]
fn a_refused_signal_is_shown_with_its_reason_until_another_counts() {
    let shop = Workshop::with(SHORT, Vec::new());
    let gate = shop.gate();
    let elsewhere = mcp("signal-back", json!({ "signal": "complete", "stepId": "nowhere", "summary": "x" }));
    let book = shop.playbook().play("a.codeweaver", &[elsewhere, gate.pass(), done("done")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    let why = format!("there is no step `nowhere` in quest {quest}");
    wait_until("it is recorded", || shop.step(&quest, "a")["refusedSignal"]["why"] == why);
    let shown = shop.grounds.run(&["quest", "show", &quest]).good();
    assert!(shown.contains(&format!("the last signal of the codeweaver (implements) was refused: {why}")), "{shown}");
    let file = shop.grounds.data().join("quests").join(&quest).join("quest.json");
    wait_until("the file has it", || fs::read_to_string(&file).is_ok_and(|text| text.contains("refusedSignal")));
    let agent = shop.hired(&quest, "a", "codeweaver");
    wait_until("the agent is told", || {
        shop.results(&agent).first().is_some_and(|told| told.contains("your signal was refused and does not count"))
    });
    gate.open();
    shop.complete(&quest);
    assert_eq!(shop.step(&quest, "a")["refusedSignal"], Value::Null);
    let history = shop.grounds.run(&["quest", "show", &quest, "--history"]).good();
    assert!(history.contains("a signal of the codeweaver (implements) was refused"), "{history}");
}

#[test]
fn a_subagent_speaks_under_its_parent_and_ends_nothing() {
    let shop = Workshop::with(SHORT, Vec::new());
    let subagent = json!({ "subagent": { "prompt": "look around", "text": "I am done, and so are you" } });
    let book = shop.playbook().play("a.codeweaver", &[subagent.clone(), text("not yet"), subagent, done("now")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    shop.complete(&quest);
    let agent = shop.hired(&quest, "a", "codeweaver");
    assert_eq!(shop.said(&agent), ["not yet"], "a subagent's words are not its parent's");
    assert_eq!(shop.kinds(&agent).iter().filter(|kind| *kind == "run_ended").count(), 1);
    let notes: Vec<_> = shop.of(&agent).into_iter().filter(|event| event["output"]["type"] == "subagent").collect();
    assert!(notes.iter().any(|note| note["output"]["output"]["text"] == "I am done, and so are you"), "{notes:#?}");
}

#[test]
fn whoever_dies_after_its_signal_has_given_it() {
    let shop = Workshop::with(SHORT, Vec::new());
    let seems = json!({ "signal": "complete", "stepId": "{{step}}", "summary": "with its last breath" });
    let seems = json!({ "tool": { "name": "mcp__hatchery__signal-back", "input": seems } });
    let book = shop
        .playbook()
        .play("a.codeweaver", &[done("and then the lights went out"), json!({ "crash": "KILL" })])
        .play("b.codeweaver", &[done("and that was all"), json!({ "exit": 7 })])
        .play("c.codeweaver", &[seems, json!({ "exit": 0 })])
        .play("d.codeweaver", &[done("too much"), json!({ "error": { "api": 529 } })]);
    let quest =
        shop.new_quest(&book, json!({ "steps": [step("a", &[]), step("b", &[]), step("c", &[]), step("d", &[])] }));
    shop.complete(&quest);
    for id in ["a", "b", "c", "d"] {
        assert_eq!(shop.story(&quest, id), ["codeweaver", "complete", "completed"], "{id}");
        assert_eq!(shop.conversation(&shop.hired(&quest, id, "codeweaver")).len(), 1, "{id}");
    }
}
