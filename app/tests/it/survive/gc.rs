//! Nothing grows without bound: what is over is shown and cleared, and what is needed stays.

use crate::support::daemon::wait_until;
use crate::support::quest::{SHORT, done, step, text, write};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

/// Everything about it is in the log.
#[test]
fn the_folder_of_a_quest_that_is_over_is_cleared_and_not_made_again() {
    let mut shop = Workshop::with(SHORT, Vec::new());
    let book = shop.playbook().play("a.codeweaver", &[done("written")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    shop.wait_quest(&quest, "quest_completed");
    let hanging = shop.playbook().play("a.codeweaver", &[json!({ "hang": {} })]);
    let open = shop.new_quest(&hanging, json!({ "steps": [step("a", &[])] }));
    let ended = document(&shop, &quest);
    document(&shop, &open);
    let shown = shop.grounds.run(&["gc"]).good();
    assert!(shown.contains("quest folder") && shown.contains(&quest) && !shown.contains(&open), "{shown}");
    shop.grounds.run(&["gc", "--clear"]).good();
    assert!(!folder(&shop, &quest).exists() && folder(&shop, &open).exists());
    shop.kill_daemon();
    fs::remove_dir_all(folder(&shop, &open)).unwrap();
    shop.restart();
    document(&shop, &open);
    assert!(!folder(&shop, &quest).exists(), "it was cleared");
    assert_eq!(shop.quest(&quest), ended, "the log has it all");
    let exported: Value = serde_json::from_str(&shop.grounds.run(&["quest", "export", &quest]).good()).unwrap();
    assert_eq!(exported, ended);
}

/// The daemon's own broom: what is old goes without a command, and only that.
#[test]
fn folders_of_quests_and_merged_branches_go_by_their_age() {
    let mut shop = Workshop::with(&format!("keep_runs_days = 2\n{SHORT}"), Vec::new());
    shop.repository();
    let quests = ["old", "new"].map(|name| {
        let book = shop.playbook().play("a.codeweaver", &[write(&format!("{name}.txt"), name), done("written")]);
        let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "isolation": "worktree" }));
        shop.wait_quest(&quest, "quest_completed");
        let worktrees = shop.worktrees(&quest);
        wait_until("its worktrees are gone", || !worktrees.exists());
        document(&shop, &quest);
        quest
    });
    let [old, new] = &quests;
    let branches = quests.each_ref().map(|quest| shop.branch(quest));
    for branch in &branches {
        shop.git(&["merge", "--quiet", "--no-edit", branch]);
    }
    shop.kill_daemon();
    make_old(&folder(&shop, old).join("quest.json"));
    shop.restart();
    let has = |branch: &str| !shop.git(&["branch", "--list", branch]).is_empty();
    wait_until("the broom", || !folder(&shop, old).join("quest.json").exists() && !has(&branches[0]));
    assert!(folder(&shop, new).join("quest.json").exists() && has(&branches[1]));
}

/// Work that is nowhere else stays, whatever is cleared.
#[test]
fn a_merged_branch_goes_and_what_is_nowhere_else_stays() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let quests = ["merged", "squashed", "alone"].map(|name| {
        let book = shop.playbook().play("a.codeweaver", &[write(&format!("{name}.txt"), name), done("written")]);
        let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "isolation": "worktree" }));
        shop.wait_quest(&quest, "quest_completed");
        let worktrees = shop.worktrees(&quest);
        wait_until("its worktrees are gone", || !worktrees.exists());
        quest
    });
    let [merged, squashed, alone] = quests.each_ref().map(|quest| shop.branch(quest));
    let half = [write("a.txt", "half done\n"), text("written"), json!({ "sleep_ms": 600_000 })];
    let book = shop.playbook().play("half.codeweaver", &half);
    let abandoned = shop.new_quest(&book, json!({ "steps": [step("half", &[])], "isolation": "worktree" }));
    let agent = shop.hired(&abandoned, "half", "codeweaver");
    shop.wait_said(&agent, "written");
    let worktrees = shop.worktrees(&abandoned);
    shop.tell(&abandoned, "abandon");
    wait_until("its worktrees are gone", || !worktrees.exists());
    shop.git(&["merge", "--quiet", "--no-edit", &merged]);
    shop.git(&["merge", "--quiet", "--squash", &squashed]);
    shop.git(&["commit", "--quiet", "--message=squashed"]);
    let rescued = shop.grounds.run(&["rescue", "list"]).good();
    assert!(rescued.contains("step half of"), "{rescued}");
    let heads = |pattern: &str| shop.git(&["for-each-ref", "--format=%(refname) %(objectname)", pattern]);
    let kept = heads("refs/hatchery");

    let shown = shop.grounds.run(&["gc"]).good();
    let branches: Vec<&str> = shown.lines().filter(|line| line.starts_with("merged branch")).collect();
    assert!(branches.len() == 1 && merged.ends_with(branches[0].rsplit(' ').next().unwrap()), "{shown}");
    shop.grounds.run(&["gc", "--clear"]).good();
    let left = heads("refs/heads/hatchery");
    assert!(!left.contains(&merged) && left.contains(&squashed) && left.contains(&alone), "{left}");
    assert_eq!(heads("refs/hatchery"), kept);
    assert!(shop.grounds.run(&["rescue", "list"]).good().contains("step half of"));
}

/// Agents can write in `.hatchery`. What a link there leads to is not ours.
#[test]
fn no_file_of_a_quest_is_written_through_a_link() {
    let shop = Workshop::with(SHORT, Vec::new());
    let book = shop.playbook().play("a.codeweaver", &[json!({ "hang": {} })]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    document(&shop, &quest);
    let (place, elsewhere) = (folder(&shop, &quest), shop.grounds.path().join("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    fs::remove_dir_all(&place).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &place).unwrap();
    shop.tell(&quest, "abandon");
    wait_until("it is told", || shop.grounds.said().contains("symbolic link"));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::remove_file(&place).unwrap();
    wait_until("it is written again", || place.join("quest.json").exists());
}

fn folder(shop: &Workshop, quest: &str) -> PathBuf {
    shop.grounds.data().join("quests").join(quest)
}

/// Waits until the file of a quest says what the daemon says, and gives that.
fn document(shop: &Workshop, quest: &str) -> Value {
    let file = folder(shop, quest).join("quest.json");
    let kept = || fs::read(&file).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    wait_until("the file is written", || kept().is_some_and(|kept| kept == shop.quest(quest)));
    shop.quest(quest)
}

fn make_old(path: &Path) {
    let long_ago = SystemTime::now() - Duration::from_secs(3 * 24 * 3_600);
    fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
}
