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
    // A process that has just begun writes its state before the log knows its session.
    let begins = shop.grounds.data().join("sim/begins.jsonl");
    fs::write(&begins, "").unwrap();
    let shown = shop.grounds.run(&["gc", "--clear"]).good();
    assert!(!shown.contains(".hatchery/sim/") && begins.exists(), "{shown}");
    shop.say(&agent, "go on");
    shop.wait("its second end", |event| event["type"] == "run_ended" && event["agent"] == *agent && event["run"] == 2);
    assert_eq!(shop.said(&agent), ["one", "two"], "it does not begin from the top");
    assert_eq!(shop.count_of(&agent, "run_crashed"), 0);
}

/// A person may still look at its branch, and say something to its agents as long as these live.
#[test]
fn what_a_quest_that_is_over_leaves_is_cleared() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let parts = [write("a.txt", "a"), done("written"), json!("turn"), text("as you say")];
    let book = shop.playbook().play("a.codeweaver", &parts);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "isolation": "worktree" }));
    let (worktrees, state) = (shop.worktrees(&quest), shop.grounds.data().join("sim"));
    let remembered = || fs::read_dir(&state).unwrap().count();
    let agent = shop.hired(&quest, "a", "codeweaver");
    shop.wait_quest(&quest, "quest_completed");
    let lock = worktrees.with_extension("lock");
    wait_until("its worktrees are gone", || !worktrees.exists() && !lock.exists());
    // A command that looks after the branch takes the lock again.
    fs::write(&lock, "").unwrap();
    let shown = shop.grounds.run(&["gc", "--clear"]).good();
    assert!(shown.contains("worktree lock") && !shown.contains("scripted state"), "{shown}");
    assert!(!lock.exists() && lock.with_file_name("all.lock").exists());
    shop.say(&agent, "go on");
    shop.wait("its second end", |event| event["type"] == "run_ended" && event["agent"] == *agent && event["run"] == 2);
    assert_eq!(shop.said(&agent), ["as you say"], "it does not begin from the top");
    assert_eq!(shop.count_of(&agent, "run_crashed"), 0);
    let kill = shop.door().post(&format!("/api/agents/{agent}/kill"), &json!({}));
    assert_eq!(kill.status, 200, "{kill:?}");
    assert_ne!(remembered(), 0);
    assert!(shop.grounds.run(&["gc", "--clear"]).good().contains("scripted state"));
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
    let branches = complete(&shop, ["merged", "squashed", "rewritten", "half", "nothing", "alone"]);
    let [merged, squashed, rewritten, half, nothing, alone] = branches.each_ref().map(String::as_str);
    let unfinished = [write("a.txt", "half done\n"), text("written"), json!({ "sleep_ms": 600_000 })];
    let book = shop.playbook().play("half.codeweaver", &unfinished);
    let abandoned = shop.new_quest(&book, json!({ "steps": [step("half", &[])], "isolation": "worktree" }));
    let agent = shop.hired(&abandoned, "half", "codeweaver");
    shop.wait_said(&agent, "written");
    let worktrees = shop.worktrees(&abandoned);
    shop.tell(&abandoned, "abandon");
    wait_until("its worktrees are gone", || !worktrees.exists());
    shop.git(&["merge", "--quiet", "--no-edit", merged]);
    let take = |branch: &str| {
        shop.git(&["merge", "--quiet", "--squash", branch]);
        shop.git(&["commit", "--quiet", "--message=squashed"]);
    };
    take(squashed);
    take(rewritten);
    fs::write(shop.grounds.path().join("rewritten.txt"), "in other words\n").unwrap();
    shop.git(&["commit", "--quiet", "--all", "--message=Rewrite"]);
    // One of its two files.
    shop.git(&["checkout", half, "--", "half.txt"]);
    shop.git(&["commit", "--quiet", "--message=One file"]);
    // It has taken back what it did: nothing is missing, but its commits are nowhere else.
    let back = shop.git(&["commit-tree", &format!("{nothing}~1^{{tree}}"), "-p", nothing, "-m", "Back"]);
    shop.git(&["update-ref", &format!("refs/heads/{nothing}"), &back]);
    // A merge would keep the user's side, so it would change nothing; but the work was never taken.
    shop.git(&["config", "merge.ours.driver", "true"]);
    fs::write(shop.grounds.path().join(".gitattributes"), "alone.txt merge=ours\n").unwrap();
    fs::write(shop.grounds.path().join("alone.txt"), "the user's own\n").unwrap();
    shop.git(&["add", ".gitattributes", "alone.txt"]);
    shop.git(&["commit", "--quiet", "--message=Keep ours"]);
    let rescued = shop.grounds.run(&["rescue", "list"]).good();
    assert!(rescued.contains("step half of"), "{rescued}");
    let heads = |pattern: &str| shop.git(&["for-each-ref", "--format=%(refname) %(objectname)", pattern]);
    let kept = heads("refs/hatchery");

    assert_eq!(shown_branches(&shop.grounds.run(&["gc"]).good()), sorted(&[merged, squashed, rewritten]));
    // Nothing can be said about a branch in the middle of something.
    shop.git(&["checkout", "--quiet", "--detach"]);
    assert_eq!(shown_branches(&shop.grounds.run(&["gc", "--clear"]).good()), [""; 0]);
    shop.git(&["checkout", "--quiet", "-"]);
    shop.grounds.run(&["gc", "--clear"]).good();
    let left = heads("refs/heads/hatchery");
    for gone in [merged, squashed, rewritten] {
        assert!(!left.contains(gone), "{gone} in {left}");
    }
    for stays in [half, nothing, alone] {
        assert!(left.contains(stays), "{stays} in {left}");
    }
    assert_eq!(heads("refs/hatchery"), kept);
    assert!(shop.grounds.run(&["rescue", "list"]).good().contains("step half of"));
}

#[test]
fn what_cannot_be_cleared_is_told_with_the_reason() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let [used, locked] = complete(&shop, ["used", "locked"]);
    for branch in [&used, &locked] {
        shop.git(&["merge", "--quiet", "--no-edit", branch]);
    }
    shop.git(&["worktree", "add", "--quiet", "home/beside", &used]);
    // A git that was killed may have left it.
    let lock = shop.grounds.path().join(format!(".git/refs/heads/{locked}.lock"));
    fs::write(&lock, "").unwrap();
    assert_eq!(shown_branches(&shop.grounds.run(&["gc"]).good()), sorted(&[&locked]), "the other is in use");
    let ran = shop.grounds.run(&["gc", "--clear"]);
    let line = ran.stdout.lines().find(|line| line.starts_with("merged branch")).unwrap().to_owned();
    assert!(line.contains("stays: ") && line.contains(".lock"), "{ran:?}");
    let all = ran.stdout.lines().count();
    assert!(ran.stderr.contains(&format!("{} of {all} leftovers cleared", all - 1)), "{ran:?}");
    assert_ne!(shop.git(&["branch", "--list", &locked]), "");
    fs::remove_file(&lock).unwrap();
    let ran = shop.grounds.run(&["gc", "--clear"]);
    assert!(ran.stdout.contains("merged branch") && !ran.stdout.contains("stays"), "{ran:?}");
    assert_eq!((shop.git(&["branch", "--list", &locked]).as_str(), ran.code), ("", Some(0)));
    assert_ne!(shop.git(&["branch", "--list", &used]), "");
}

/// An agent can write in `.hatchery`.
#[test]
fn a_file_in_the_place_of_a_folder_hinders_no_clearing() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "done" })]);
    assert_eq!(shop.end(&agent), "completed");
    for folder in ["sim", "runs/sessions", "quests"] {
        let path = shop.grounds.data().join(folder);
        fs::remove_dir_all(&path).ok();
        fs::write(&path, "in the way").unwrap();
    }
    let shown = shop.grounds.run(&["gc", "--clear"]).good();
    assert!(shown.contains(&format!("runs/{agent}/1-1")), "{shown}");
    assert!(!shop.folder(&agent, 1, 1).exists());
}

/// A branch of an agent without a quest, merged after the agent was killed.
#[test]
fn the_merged_branch_of_a_dead_agent_is_cleared() {
    let shop = Workshop::with("harness = 'scripted'\nstop_grace_ms = 300\n", Vec::new());
    shop.repository();
    let with = json!({ "script": shop.script(&[write("new.txt", "new"), text("written")]) });
    let agent = shop.door().post("/api/runs", &json!({ "prompt": "play", "worktree": true, "with": with })).id();
    assert_eq!(shop.end(&agent), "completed");
    let commit = shop.door().post(&format!("/api/branches/{agent}/commit"), &json!({}));
    assert_eq!(commit.status, 200, "{commit:?}");
    let branch = commit.json()["branch"].as_str().unwrap().to_owned();
    shop.git(&["merge", "--quiet", "--no-edit", &branch]);
    assert_eq!(shown_branches(&shop.grounds.run(&["gc"]).good()), [""; 0], "it lives");
    shop.git(&["checkout", "--quiet", "-b", "elsewhere", "HEAD~1"]);
    let kill = shop.door().post(&format!("/api/agents/{agent}/kill"), &json!({}));
    assert_eq!(kill.status, 200, "{kill:?}");
    let worktrees = shop.grounds.data().join("worktrees").join(branch.strip_prefix("hatchery/").unwrap());
    wait_until("its worktree is gone", || !worktrees.exists() && !worktrees.with_extension("lock").exists());
    assert_eq!(shown_branches(&shop.grounds.run(&["gc"]).good()), [""; 0], "this branch does not have it");
    shop.git(&["checkout", "--quiet", "-"]);
    assert_eq!(shown_branches(&shop.grounds.run(&["gc"]).good()), sorted(&[&branch]));
    shop.grounds.run(&["gc", "--clear"]).good();
    assert_eq!(shop.git(&["branch", "--list", &branch]), "");
}

/// Quests that have each written two files, and are complete. Gives their branches.
fn complete<const N: usize>(shop: &Workshop, names: [&str; N]) -> [String; N] {
    names.map(|name| {
        let files = [write(&format!("{name}.txt"), name), write(&format!("{name}-2.txt"), name), done("written")];
        let book = shop.playbook().play("a.codeweaver", &files);
        let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "isolation": "worktree" }));
        shop.wait_quest(&quest, "quest_completed");
        let worktrees = shop.worktrees(&quest);
        wait_until("its worktrees are gone", || !worktrees.exists());
        shop.branch(&quest)
    })
}

/// The branches among the leftovers, sorted.
fn shown_branches(shown: &str) -> Vec<String> {
    let lines = shown.lines().filter(|line| line.starts_with("merged branch"));
    let mut branches: Vec<String> = lines.map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
    branches.sort();
    branches
}

/// The slugs of branches, sorted.
fn sorted(branches: &[&str]) -> Vec<String> {
    let mut slugs: Vec<String> =
        branches.iter().map(|branch| branch.strip_prefix("hatchery/").unwrap().to_owned()).collect();
    slugs.sort();
    slugs
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
