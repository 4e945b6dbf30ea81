//! The command that says whether a step is good, and that nothing is complete while it does not.

use crate::support::quest::{WARDED, done, step, text, write};
use crate::support::workshop::Workshop;
use hatchery_core::Command;
use serde_json::json;
use std::fs;

#[test]
fn a_red_ward_is_mended_by_somebody_who_knows_what_it_found() {
    let shop = Workshop::with(WARDED, Vec::new());
    let ward = "grep -q good work.txt || { echo \"error: work.txt is $(cat work.txt)\"; exit 3; }";
    let book = shop
        .playbook()
        .play("codeweaver", &[write("work.txt", "bad"), done("done")])
        .play("spiritmender.1", &[write("work.txt", "worse"), done("tried")])
        .play("spiritmender.2", &[write("work.txt", "good"), done("mended")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "ward": ward }));
    shop.complete(&quest);
    assert_eq!(
        shop.story(&quest, "a").join(", "),
        "codeweaver, complete, ward red, spiritmender, complete, ward red, spiritmender, complete, ward green, completed"
    );
    let agents = shop.step(&quest, "a")["agents"].clone();
    for (at, found) in [(1, "error: work.txt is bad"), (2, "error: work.txt is worse")] {
        let brief = shop.brief(agents[at]["agent"].as_str().unwrap());
        let ended = shop.wait_nth(&quest, "a", "ward_ended", u32::try_from(at).unwrap());
        let artifact = ended["artifact"].as_str().unwrap();
        assert!(brief.contains(found) && brief.contains(artifact), "{brief}");
        let kept = fs::read_to_string(shop.grounds.path().join(artifact)).unwrap();
        assert!(kept.contains(found), "{kept}");
    }
}

#[test]
fn a_ward_that_stays_red_fails_the_step_and_never_completes_it() {
    let shop = Workshop::with(WARDED, Vec::new());
    // Nothing in what it says looks like an error.
    let ward = "echo run >> wards.txt; test -e fixed";
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[]), step("b", &["a"])], "ward": ward }));
    let failed = shop.wait_step(&quest, "a", "step_failed");
    assert!(failed["why"].as_str().unwrap().contains("still red after 3 mendings"), "{failed}");
    let wards = || fs::read_to_string(shop.grounds.path().join("wards.txt")).unwrap().lines().count();
    assert_eq!(wards(), 4);
    assert_eq!(shop.count(&quest, "step_completed"), 0);
    assert_eq!((shop.status(&quest, "a"), shop.status(&quest, "b")), ("failed".into(), "blocked".into()));
    assert_eq!(shop.quest(&quest)["state"], "open");
    fs::write(shop.grounds.path().join("fixed"), "").unwrap();
    shop.tell(&quest, "steps/a/retry");
    shop.wait_quest(&quest, "quest_completed");
    let story = shop.story(&quest, "a");
    assert!(
        story.ends_with(&["failed", "spiritmender", "complete", "ward green", "completed"].map(String::from)),
        "{story:?}"
    );
    assert_eq!(wards(), 6, "another one for the step behind it");
    shop.expect_nothing_left();
}

#[test]
fn a_ward_that_cannot_run_says_nothing_about_the_work() {
    let shop = Workshop::with(WARDED, Vec::new());
    let options = json!({ "steps": [step("a", &[])], "ward": "no-such-command-anywhere --check" });
    let quest = shop.new_quest(&shop.playbook(), options);
    let (question, words) = shop.asked(&quest, 1);
    assert!(words.contains("could not be run") && words.contains("`ward: COMMAND`"), "{words}");
    assert_eq!(shop.status(&quest, "a"), "waiting_for_human");
    let vague = shop.door().post(&format!("/api/questions/{question}/answer"), &json!({ "answer": "hm" }));
    assert_eq!(vague.status, 422, "{vague:?}");
    shop.answer(question, "retry");
    let (question, _) = shop.asked(&quest, 2);
    shop.answer(question, "ward: true");
    shop.complete(&quest);
    assert_eq!(
        shop.story(&quest, "a"),
        ["codeweaver", "complete", "ward broken", "waits", "ward broken", "waits", "ward green", "completed"]
    );
    assert_eq!(shop.quest(&quest)["ward"]["command"], "true");
}

#[test]
fn a_ward_that_kills_its_launcher_becomes_a_question() {
    let shop = Workshop::with(WARDED, Vec::new());
    let options = json!({ "steps": [step("a", &[])], "ward": "echo $$ >> killers; kill -9 $PPID; exec sleep 600" });
    let quest = shop.new_quest(&shop.playbook(), options);
    let (question, words) = shop.asked(&quest, 1);
    assert!(words.contains("launcher was killed"), "{words}");
    let tries = fs::read_to_string(shop.grounds.path().join("killers")).unwrap().lines().count();
    assert!((1..=3).contains(&tries), "{tries}");
    shop.answer(question, "ward: true");
    shop.complete(&quest);
    shop.expect_nothing_left();
}

#[test]
fn what_a_ward_leaves_behind_goes_with_it() {
    let shop = Workshop::with(WARDED, Vec::new());
    let ward = "setsid sleep 4242 & (sleep 4242 & echo $! > pid) ; wait $! & true";
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[])], "ward": ward }));
    shop.complete(&quest);
    let root = shop.grounds.path().canonicalize().unwrap();
    assert!(root.join("pid").exists(), "there was something to leave behind");
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let there = fs::read_link(entry.path().join("cwd")).is_ok_and(|folder| folder == root);
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!there || !words.starts_with(b"sleep"), "{entry:?} is left behind");
    }
}

#[test]
fn a_ward_outlives_the_daemon_and_runs_once() {
    let mut shop = Workshop::with(WARDED, Vec::new());
    let gate = shop.gate();
    let ward = format!("echo run >> wards.txt; {}; exit 0", gate.command());
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[])], "ward": ward }));
    shop.wait_step(&quest, "a", "ward_begun");
    let wards = shop.grounds.path().join("wards.txt");
    super::wait_until("the ward runs", || wards.exists());
    shop.kill_daemon();
    gate.open();
    shop.restart();
    shop.complete(&quest);
    assert_eq!(fs::read_to_string(wards).unwrap(), "run\n");
    assert_eq!(shop.story(&quest, "a"), ["codeweaver", "complete", "ward green", "completed"]);
}

/// Whatever is committed or brought into the worktree would be changed under the ward's eyes.
#[test]
fn a_ward_that_outlives_the_daemon_is_left_alone_in_its_worktree() {
    let mut shop = Workshop::with(WARDED, Vec::new());
    shop.repository();
    let gate = shop.gate();
    let seen = shop.grounds.path().join("gates/seen");
    let look = format!("git rev-parse HEAD >> '{}'", seen.display());
    let ward = format!("{look}; echo by the ward > found.txt; {}; {look}", gate.command());
    let options = json!({ "steps": [step("a", &[])], "ward": ward, "isolation": "worktree" });
    let quest = shop.new_quest(&shop.playbook(), options);
    let found = shop.worktrees(&quest).join("steps/a/found.txt");
    super::wait_until("the ward runs", || found.exists());
    shop.kill_daemon();
    shop.restart();
    // Whatever the new daemon does with the ward that it finds, it has done by then.
    let other = shop.new_quest(&shop.playbook(), json!({ "steps": [step("b", &[])] }));
    shop.wait_quest(&other, "quest_completed");
    gate.open();
    shop.complete(&quest);
    let heads = fs::read_to_string(seen).unwrap();
    let heads: Vec<&str> = heads.lines().collect();
    assert!(heads.len() == 2 && heads[0] == heads[1], "{heads:?}");
}

#[test]
fn a_ward_of_an_abandoned_quest_is_stopped() {
    let shop = Workshop::with(WARDED, Vec::new());
    let gate = shop.gate();
    let ward = format!("touch begun; {}", gate.command());
    let book = shop.playbook().play("codeweaver", &[text("x"), done("done")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "ward": ward }));
    super::wait_until("the ward runs", || shop.grounds.path().join("begun").exists());
    shop.tell(&quest, "abandon");
    super::wait_until("nobody is left", || shop.processes().is_empty());
    assert_eq!(shop.quest(&quest)["state"], "abandoned");
    assert_eq!(shop.count(&quest, "step_completed"), 0);
}

#[test]
fn a_ward_goes_on_in_a_pause_and_what_follows_does_not() {
    let shop = Workshop::with(WARDED, Vec::new());
    let gate = shop.gate();
    let ward = format!("echo run >> wards.txt; {}", gate.command());
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[]), step("b", &["a"])], "ward": ward }));
    super::wait_until("the ward runs", || shop.grounds.path().join("wards.txt").exists());
    shop.tell(&quest, "pause");
    gate.open();
    shop.wait_step(&quest, "a", "ward_ended");
    assert_eq!(shop.quest(&quest)["state"], "paused");
    assert_eq!(shop.story(&quest, "b"), Vec::<String>::new());
    shop.tell(&quest, "resume");
    shop.complete(&quest);
    assert_eq!(fs::read_to_string(shop.grounds.path().join("wards.txt")).unwrap(), "run\nrun\n");
    assert_eq!(shop.story(&quest, "a"), ["codeweaver", "complete", "ward green", "completed"]);
}

#[test]
fn a_ward_that_takes_too_long_says_nothing_about_the_work() {
    let shop = Workshop::with(WARDED, Vec::new());
    let ward = "test -e again || { touch again; sleep 4242; }";
    let options = json!({ "steps": [step("a", &[])], "ward": ward, "ward_limit_ms": 1_000 });
    let quest = shop.new_quest(&shop.playbook(), options);
    let (question, words) = shop.asked(&quest, 1);
    assert!(words.contains("could not be run"), "{words}");
    shop.expect_nothing_left();
    shop.answer(question, "retry");
    shop.complete(&quest);
    assert_eq!(shop.story(&quest, "a"), ["codeweaver", "complete", "ward broken", "waits", "ward green", "completed"]);
}

#[test]
fn a_red_ward_is_replaced_while_the_quest_goes_on() {
    let shop = Workshop::with(WARDED, Vec::new());
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[])], "ward": "exit 1" }));
    shop.wait_step(&quest, "a", "step_failed");
    let said = shop.grounds.run(&["quest", "ward", &quest, "echo looked >> wards.txt"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""));
    let retry = format!("`hatchery quest retry {quest} STEP` tries a step again that has failed");
    assert_eq!(said.stderr, format!("the ward of the quest is now `echo looked >> wards.txt`; {retry}\n"));
    shop.grounds.run(&["quest", "retry", &quest, "a"]).good();
    shop.wait_quest(&quest, "quest_completed");
    let story = shop.story(&quest, "a");
    assert!(story.ends_with(&["ward red", "failed", "ward green", "completed"].map(String::from)), "{story:?}");
    assert_eq!(fs::read_to_string(shop.grounds.path().join("wards.txt")).unwrap(), "looked\n");
    shop.expect_nothing_left();
}

#[test]
fn a_ward_that_runs_is_stopped_when_another_takes_its_place() {
    let shop = Workshop::with(WARDED, Vec::new());
    let gate = shop.gate();
    let ward = format!("touch begun; {}; exit 1", gate.command());
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[])], "ward": ward }));
    super::wait_until("the ward runs", || shop.grounds.path().join("begun").exists());
    let answer = shop.door().post(&format!("/api/quests/{quest}/ward"), &json!({ "command": "true" }));
    assert_eq!(answer.status, 200, "{answer:?}");
    shop.complete(&quest);
    assert_eq!(shop.story(&quest, "a"), ["codeweaver", "complete", "ward green", "completed"]);
    assert_eq!(shop.count(&quest, "ward_begun"), 2);
}

/// Whoever is killed between writing it down and doing it cannot stop the old one.
#[test]
fn a_ward_that_was_replaced_does_not_run_beside_the_new_one_after_a_kill() {
    let mut shop = Workshop::with(WARDED, Vec::new());
    let gate = shop.gate();
    let ward = format!("echo $$ > pid; {}", gate.command());
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[])], "ward": ward }));
    super::wait_until("the ward runs", || shop.grounds.path().join("pid").exists());
    shop.kill_daemon();
    let command = Some("! kill -0 $(cat pid)".to_owned());
    shop.decided(Command::SetWard { quest: quest.parse().unwrap(), command, limit_ms: 60_000 });
    shop.restart();
    shop.complete(&quest);
    assert_eq!(shop.story(&quest, "a"), ["codeweaver", "complete", "ward green", "completed"]);
}

/// The intent is on the log, and whoever wrote it down could not act on it any more.
#[test]
fn a_ward_of_a_quest_that_was_abandoned_is_stopped_by_the_next_daemon() {
    let mut shop = Workshop::with(WARDED, Vec::new());
    let gate = shop.gate();
    let ward = format!("touch begun; {}", gate.command());
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[])], "ward": ward }));
    super::wait_until("the ward runs", || shop.grounds.path().join("begun").exists());
    shop.kill_daemon();
    shop.decided(Command::AbandonQuest { quest: quest.parse().unwrap() });
    assert!(!shop.processes().is_empty(), "nobody has told it to stop");
    shop.restart();
    super::wait_until("nobody is left", || shop.processes().is_empty());
}

#[test]
fn what_wards_have_said_goes_long_after_their_quest_is_over() {
    let mut shop = Workshop::with(&format!("keep_runs_days = 2\n{WARDED}"), Vec::new());
    let options = json!({ "steps": [step("a", &[])], "ward": "echo looked" });
    let (over, new) = (shop.new_quest(&shop.playbook(), options.clone()), shop.new_quest(&shop.playbook(), options));
    let ask = crate::support::quest::signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("b.codeweaver", &[ask]);
    let steps = json!([step("a", &[]), step("b", &["a"])]);
    let open = shop.new_quest(&book, json!({ "steps": steps, "ward": "echo looked" }));
    for quest in [&over, &new] {
        shop.wait_quest(quest, "quest_completed");
    }
    shop.asked(&open, 1);
    shop.kill_daemon();
    let folder = |quest: &str| shop.grounds.data().join(format!("quests/{quest}/wards/a-1"));
    let [over, new, open] = [&over, &new, &open].map(|quest| folder(quest));
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 24 * 3_600);
    for folder in [&over, &open] {
        fs::File::open(folder).unwrap().set_modified(long_ago).unwrap();
    }
    shop.restart();
    super::wait_until("the broom", || !over.exists());
    assert!(new.exists() && open.exists());
}

/// Everything was committed before the ward began, so what is different afterwards is the ward's.
#[test]
fn what_a_ward_destroys_is_restored_and_never_committed() {
    let shop = Workshop::with(WARDED, Vec::new());
    shop.repository();
    let book = shop.playbook().play("codeweaver", &[write("a.txt", "the work\n"), done("done")]);
    let options = json!({ "steps": [step("a", &[])], "isolation": "worktree", "ward": "rm -rf *; echo wreck > a.txt" });
    let quest = shop.new_quest(&book, options);
    shop.complete(&quest);
    assert_eq!(shop.git(&["show", &format!("{}:a.txt", shop.branch(&quest))]), "the work");
    let ended = shop.wait_step(&quest, "a", "ward_ended");
    assert!(ended["restored"].as_array().unwrap().contains(&json!("a.txt")), "{ended}");
    let shown = shop.grounds.run(&["quest", "show", "--history", &quest]).good();
    assert!(shown.contains("the ward had changed or deleted files, which were restored: a.txt"), "{shown}");
    let watched = shop.grounds.run(&["quest", "watch", &quest]);
    assert_eq!(watched.code, Some(0), "{watched:?}");
}
