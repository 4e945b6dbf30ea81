//! The ward is tried before the first agent of a quest starts.

use crate::support::daemon::wait_until;
use crate::support::quest::{WARDED, done, step};
use crate::support::runtime;
use crate::support::tmux::Terminal;
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;

fn shop(settings: &str) -> Workshop {
    let shop = Workshop::with(&format!("{WARDED}{settings}"), Vec::new());
    shop.repository();
    shop
}

/// `quest new --run` with this ward, for one step.
fn new<'a>(plan: &'a str, ward: &'a str) -> [&'a str; 8] {
    ["quest", "new", "--run", "--ward", ward, "--plan", plan, "a bridge"]
}

fn plan(shop: &Workshop) -> String {
    let path = shop.grounds.path().join("home/plan.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, json!([step("a", &[])]).to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn only_quest(shop: &Workshop) -> serde_json::Value {
    let quests = shop.door().get("/api/quests").json();
    assert_eq!(quests["quests"].as_array().unwrap().len(), 1, "{quests:#}");
    shop.quest(quests["quests"][0]["id"].as_str().unwrap())
}

fn agents(shop: &Workshop) -> usize {
    shop.door().get("/api/agents").json()["agents"].as_array().unwrap().len()
}

#[test]
fn a_broken_ward_is_told_before_any_agent_is_started() {
    let shop = shop("");
    let ran = shop.grounds.run(&new(&plan(&shop), "no-such-program --all"));
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("the ward is broken") && ran.stderr.contains("exit code 127"), "{}", ran.stderr);
    let quest = only_quest(&shop);
    assert_eq!((quest["state"].as_str(), agents(&shop)), (Some("paused"), 1));
    let id = quest["id"].as_str().unwrap();
    assert!(ran.stderr.contains(&format!("hatchery quest ward {id} COMMAND")), "{}", ran.stderr);
    shop.grounds.run(&["quest", "ward", id, "true"]).good();
    let shown = shop.grounds.run(&["quest", "run", id]).good();
    assert!(shown.contains("the quest is complete"), "{shown}");
}

#[test]
fn a_ward_whose_module_is_missing_is_broken_and_not_red() {
    let shop = shop("");
    let ran = shop.grounds.run(&new(&plan(&shop), "echo '/usr/bin/python3: No module named pytest' >&2; exit 1"));
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("the ward is broken") && ran.stderr.contains("a Python module is missing"), "{ran:?}");
    assert!(ran.stderr.contains("COMMAND` changes the ward"), "{ran:?}");
}

#[test]
fn a_ward_that_is_red_on_head_is_told_and_the_user_decides() {
    let shop = shop("");
    let ran = shop.grounds.run(&new(&plan(&shop), "echo 'error: nothing is built' >&2; test -e notes/a.md"));
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("the ward is red before any work"), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: nothing is built"), "{}", ran.stderr);
    assert!(ran.stderr.contains("a worktree has only what git tracks: `setup` and `copy`"), "{}", ran.stderr);
    let quest = only_quest(&shop);
    let id = quest["id"].as_str().unwrap();
    assert_eq!((quest["state"].as_str(), agents(&shop)), (Some("paused"), 1));
    assert!(ran.stderr.contains(&format!("hatchery quest run --no-trial {id}")), "{}", ran.stderr);
    let shown = shop.grounds.run(&["quest", "run", "--no-trial", id]).good();
    assert!(shown.contains("the quest is complete"), "{shown}");
}

#[test]
fn a_green_ward_without_tests_is_told_and_the_quest_begins() {
    let shop = shop("");
    let ran = shop.grounds.run(&new(&plan(&shop), "echo 'running 0 tests'"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("the ward is green, but it has found no tests (running 0 tests)"), "{}", ran.stderr);
}

#[test]
fn a_ward_that_changes_tracked_files_is_told_before_the_quest_begins() {
    let shop = shop("");
    let ran = shop.grounds.run(&new(&plan(&shop), "echo changed > a.txt"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("changed or deleted files that git tracks, which were restored: a.txt"), "{ran:?}");
    let branch = only_quest(&shop)["branch"].as_str().unwrap().to_owned();
    assert_eq!(shop.git(&["show", &format!("{branch}:a.txt")]), shop.git(&["show", "HEAD:a.txt"]));
}

#[test]
fn what_a_set_up_command_has_changed_is_not_blamed_on_the_ward() {
    let shop = shop("[worktrees]\nsetup = 'echo prepared > a.txt'\n");
    let ran = shop.grounds.run(&new(&plan(&shop), "grep -q prepared a.txt"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("restored"), "{ran:?}");
}

#[test]
fn a_user_at_a_terminal_is_asked_whether_a_quest_with_a_red_ward_begins() {
    let test = "a_user_at_a_terminal_is_asked_whether_a_quest_with_a_red_ward_begins";
    for (key, answer) in [("n", "no"), ("y", "yes")] {
        let shop = shop("");
        let command = format!("quest new --run --ward 'test -e notes/a.md' --plan {} bridge", plan(&shop));
        let Some(terminal) = Terminal::of_command(&shop.grounds, &command, test) else { return };
        terminal.see("begin anyway? [y/N]");
        assert_eq!((only_quest(&shop)["state"].as_str(), agents(&shop)), (Some("paused"), 1));
        terminal.text(key);
        terminal.keys(&["Enter"]);
        terminal.see("LEFT");
        let state = only_quest(&shop)["state"].as_str().unwrap().to_owned();
        assert_eq!(state, if answer == "yes" { "complete" } else { "paused" });
    }
}

#[test]
fn the_ward_is_tried_as_the_steps_will_have_it() {
    let shop = shop("[worktrees]\nsetup = 'echo ready > prepared'\ncopy = ['home/secret']\n");
    let plan = plan(&shop);
    fs::write(shop.grounds.path().join("home/secret"), "s").unwrap();
    fs::write(shop.grounds.path().join("only-here.txt"), "not committed\n").unwrap();
    let ward = "test -e prepared && test -e home/secret && test ! -e only-here.txt && echo x > left-by-ward";
    let ran = shop.grounds.run(&new(&plan, ward));
    assert!(ran.stderr.contains("trying the ward"), "{}", ran.stderr);
    assert!(ran.stderr.contains("only-here.txt"), "it is told what the agents do not see: {}", ran.stderr);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let quest = only_quest(&shop);
    let files = shop.git(&["ls-tree", "-r", "--name-only", quest["branch"].as_str().unwrap()]);
    assert!(files.contains("notes/a.md") && !files.contains("left-by-ward"), "{files}");
    assert_eq!(shop.git(&["status", "--porcelain"]), "?? only-here.txt");
    // It has begun, so there is nothing to try any more.
    let again = shop.door().post(&format!("/api/quests/{}/try-ward", quest["id"].as_str().unwrap()), &json!({}));
    again.refused(409, "quest_begun");
}

#[test]
fn a_set_up_command_that_fails_is_a_broken_ward() {
    let shop = shop("[worktrees]\nsetup = 'echo cannot be prepared; exit 3'\n");
    let ran = shop.grounds.run(&new(&plan(&shop), "true"));
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("the ward is broken") && ran.stderr.contains("cannot be prepared"), "{}", ran.stderr);
    assert_eq!(agents(&shop), 1);
}

/// As the page begins a quest: created paused, then tried, and begun if that is well.
#[test]
fn a_client_has_the_ward_tried_and_the_quest_begun() {
    let shop = shop("");
    let book = shop.playbook().play("a.codeweaver", &[done("a")]);
    let quest =
        shop.new_quest(&book, json!({ "steps": [step("a", &[])], "ward": "no-such-program --all", "hold": true }));
    let tried = |begin: bool| {
        let answer = shop.door().post(&format!("/api/quests/{quest}/try-ward"), &json!({ "begin": begin }));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let broken = tried(true);
    assert_eq!((&broken["verdict"], &broken["begun"]), (&json!("broken"), &json!(false)), "{broken}");
    assert_eq!((shop.quest(&quest)["state"].as_str(), agents(&shop)), (Some("paused"), 1));
    let changed = shop.door().post(&format!("/api/quests/{quest}/ward"), &json!({ "command": "true" }));
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(tried(false)["begun"], false);
    assert_eq!(tried(true)["begun"], true);
    shop.complete(&quest);
}

/// A user may leave the page while the ward is tried.
#[test]
fn a_trial_goes_on_when_its_client_goes_away_and_two_share_one_trial() {
    let shop = shop("");
    let book = shop.playbook().play("a.codeweaver", &[done("a")]);
    let (began, go) = (shop.grounds.path().join("home/began"), shop.grounds.path().join("home/go"));
    fs::create_dir_all(began.parent().unwrap()).unwrap();
    let ward = format!("echo x >> '{}'; while ! test -e '{}'; do sleep 0.05; done", began.display(), go.display());
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "ward": ward, "hold": true }));
    let path = format!("/api/quests/{quest}/try-ward");
    let last = |query: &str| shop.door().get(&format!("{path}{query}")).json();
    assert_eq!(last(""), json!({ "running": false, "tried": null }));
    let ask = || {
        let (door, path) = (shop.door().clone(), path.clone());
        runtime().spawn(async move { door.http().post(&path, &json!({ "begin": true })).await })
    };
    let (first, second) = (ask(), ask());
    wait_until("the ward is tried", || began.exists() && last("")["running"] == true);
    first.abort();
    second.abort();
    fs::write(&go, "").unwrap();
    let tried = last("?wait=true");
    assert_eq!((&tried["running"], &tried["tried"]["verdict"]), (&json!(false), &json!("green")), "{tried}");
    shop.complete(&quest);
    let trials = fs::read_to_string(&began).unwrap();
    assert_eq!(trials.lines().count(), 2, "one trial, and the ward of the step: {trials}");
}

/// The trial has made its worktree, and no agent has ever worked for it.
#[test]
fn a_quest_that_is_abandoned_after_a_trial_leaves_no_worktree() {
    let shop = shop("");
    let book = shop.playbook().play("a.codeweaver", &[done("a")]);
    let held = json!({ "steps": [step("a", &[])], "ward": "false", "hold": true, "isolation": "worktree" });
    let quest = shop.new_quest(&book, held);
    let tried = shop.door().post(&format!("/api/quests/{quest}/try-ward"), &json!({})).json();
    assert_eq!(tried["verdict"], "red", "{tried}");
    let worktrees = shop.worktrees(&quest);
    assert!(worktrees.exists());
    shop.tell(&quest, "abandon");
    wait_until("its worktrees are gone", || !worktrees.exists() && !worktrees.with_extension("lock").exists());
    assert_eq!(shop.git(&["branch", "--list", &shop.branch(&quest)]), "");
    shop.door().post(&format!("/api/quests/{quest}/try-ward"), &json!({})).refused(409, "quest_over");
}

#[test]
fn what_a_new_quest_has_is_shown_before_it_is_created() {
    let shop = shop("");
    let usual = || shop.door().get("/api/quest-defaults").json();
    assert_eq!((&usual()["ward"], &usual()["guessedFrom"], &usual()["slots"]), (&Value::Null, &Value::Null, &json!(3)));
    fs::write(shop.grounds.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
    let shown = usual();
    assert_eq!((&shown["ward"], &shown["guessedFrom"]), (&json!("make test"), &json!("Makefile")), "{shown}");
    assert!(shown["warning"].as_str().unwrap().contains("Makefile"), "{shown}");
}

#[test]
fn the_terminal_tries_the_ward_before_a_quest_begins() {
    let shop = shop("");
    let test = "the_terminal_tries_the_ward_before_a_quest_begins";
    let Some(terminal) = Terminal::open(&shop.grounds, (160, 40), test) else { return };
    terminal.see("/quest new");
    terminal.text("/quest new --ward no-such-program a bridge");
    terminal.keys(&["Enter"]);
    terminal.see("its ward is broken");
    assert_eq!((only_quest(&shop)["state"].as_str(), agents(&shop)), (Some("paused"), 1));
}
