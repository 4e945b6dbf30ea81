//! Nothing grows without bound: what is over is shown and cleared, and what is needed stays.

use crate::support::daemon::wait_until;
use crate::support::quest::{SHORT, done, step, write};
use crate::support::workshop::Workshop;
use serde_json::json;
use std::fs;

#[test]
fn what_is_over_is_shown_and_cleared_and_what_runs_stays() {
    let shop = Workshop::open();
    let done = shop.run(&[json!({ "text": "done" })]);
    assert_eq!(shop.end(&done), "completed");
    let dead = shop.run(&[json!({ "text": "done" })]);
    assert_eq!(shop.end(&dead), "completed");
    let kill = shop.door().post(&format!("/api/agents/{dead}/kill"), &json!({}));
    assert_eq!(kill.status, 200, "{kill:?}");
    let busy = shop.run(&[json!({ "hang": {} })]);
    shop.wait_for(&busy, "run_started");
    let runs = shop.grounds.data().join("runs");
    let empty = shop.door().agent(None);
    fs::create_dir(runs.join(&empty)).unwrap();
    let unknown = runs.join("not-an-agent");
    fs::create_dir(&unknown).unwrap();
    let shown = shop.grounds.run(&["gc"]).good();
    for what in [format!("runs/{done}/1-1"), format!("runs/{empty}"), "sessions/".into(), ".hatchery/sim/".into()] {
        assert!(shown.contains(&what), "{what} in {shown}");
    }
    assert!(!shown.contains(&busy) && !shown.contains("not-an-agent"), "{shown}");
    assert!(shop.folder(&done, 1, 1).exists(), "looking clears nothing");
    assert!(!shop.grounds.run(&["gc", "--days", "1"]).good().contains(&done), "it is not that old");
    shop.grounds.run(&["gc", "--clear"]).good();
    assert!(!shop.folder(&done, 1, 1).exists() && !runs.join(&empty).exists());
    assert!(shop.folder(&busy, 1, 1).exists() && unknown.exists());
    // The folder of the agent is empty now.
    shop.grounds.run(&["gc", "--clear"]).good();
    assert!(!runs.join(&done).exists());
    assert_eq!(shop.said(&done), ["done"], "the log has it all");
}

/// An agent that has ended goes on when something is said to it, and needs what it remembered.
#[test]
fn what_a_living_agent_goes_on_with_stays() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "one" }), json!("turn"), json!({ "text": "two" })]);
    assert_eq!(shop.end(&agent), "completed");
    let shown = shop.grounds.run(&["gc", "--clear"]).good();
    assert!(!shown.contains(".hatchery/sim/"), "{shown}");
    shop.say(&agent, "go on");
    shop.wait("its second end", |event| event["type"] == "run_ended" && event["agent"] == *agent && event["run"] == 2);
    assert_eq!(shop.said(&agent), ["one", "two"], "it does not begin from the top");
    assert_eq!(shop.count_of(&agent, "run_crashed"), 0);
}

/// A person may still look at its branch, but nobody goes on with its agents.
#[test]
fn what_a_quest_that_is_over_leaves_is_cleared() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let book = shop.playbook().play("a.codeweaver", &[write("a.txt", "a"), done("written")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "isolation": "worktree" }));
    let (worktrees, state) = (shop.worktrees(&quest), shop.grounds.data().join("sim"));
    let remembered = || fs::read_dir(&state).unwrap().count();
    shop.wait_quest(&quest, "quest_completed");
    let lock = worktrees.with_extension("lock");
    wait_until("its worktrees are gone", || !worktrees.exists() && !lock.exists());
    // A command that looks after the branch takes the lock again.
    fs::write(&lock, "").unwrap();
    assert_ne!(remembered(), 0);
    let shown = shop.grounds.run(&["gc"]).good();
    assert!(shown.contains("worktree lock") && shown.contains("scripted state"), "{shown}");
    shop.grounds.run(&["gc", "--clear"]).good();
    assert!(!lock.exists() && lock.with_file_name("all.lock").exists());
    assert_eq!(remembered(), 0);
}
