//! Steps with worktrees of their own: what they change meets in the quest's branch, and nothing of it is ever lost.

use crate::support::quest::{SHORT, WARDED, done, step, text, write};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Two steps change the same line, the left one first, and what the right one makes of it is mended. Gives the quest when it is complete.
fn two_change_one_file(shop: &Workshop, mut options: Value) -> String {
    let gates = [shop.gate(), shop.gate()];
    let mut book = shop.playbook();
    for (side, gate) in ["left", "right"].iter().zip(&gates) {
        let change = write("a.txt", &format!("one\n{side}\nthree\n"));
        let own = write(&format!("src/{side}.txt"), side);
        let part = format!("{side}.codeweaver");
        book = book.play(&part, &[change, own, text("ready"), gate.pass(), done("changed")]);
    }
    let book = book.play("right.spiritmender", &[write("a.txt", "one\nleft and right\nthree\n"), done("both")]);
    options["isolation"] = json!("worktree");
    let quest = shop.new_quest(&book, options);
    for side in ["left", "right"] {
        let agent = shop.hired(&quest, side, "codeweaver");
        shop.wait_said(&agent, "ready");
    }
    gates[0].open();
    shop.wait_step(&quest, "left", "step_completed");
    gates[1].open();
    shop.complete(&quest);
    quest
}

#[test]
fn a_conflict_is_mended_and_only_the_branch_of_the_quest_is_left() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    fs::write(shop.grounds.path().join("notes"), "of the user").unwrap();
    let (head, status) = (shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"]));
    let last = step("last", &["left", "right"]);
    let quest = two_change_one_file(&shop, json!({ "steps": [step("left", &[]), step("right", &[]), last] }));
    assert_eq!(shop.story(&quest, "left"), ["codeweaver", "complete", "merge merged", "completed"]);
    let right = ["codeweaver", "complete", "merge conflict", "spiritmender", "complete", "merge merged", "completed"];
    assert_eq!(shop.story(&quest, "right"), right);
    let mender = shop.hired(&quest, "right", "spiritmender");
    assert!(shop.brief(&mender).contains("a.txt"), "{}", shop.brief(&mender));

    assert_eq!((shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"])), (head, status));
    assert_eq!(fs::read_to_string(shop.grounds.path().join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    let worktrees = shop.worktrees(&quest);
    super::wait_until("the worktrees are gone", || !worktrees.exists());
    let branch = shop.branch(&quest);
    assert_eq!(shop.quest(&quest)["branch"], branch.as_str());
    let branches = shop.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    assert_eq!(branches, format!("{branch}\nmain"));
    assert_eq!(shop.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    let shown = |path: &str| shop.git(&["show", &format!("{branch}:{path}")]);
    assert_eq!(shown("a.txt"), "one\nleft and right\nthree");
    assert_eq!((shown("src/left.txt"), shown("src/right.txt")), ("left".into(), "right".into()));
    assert!(shown("notes/last.md").contains("was done"));
    assert_eq!(shop.git(&["for-each-ref", "refs/hatchery"]), "");
}

#[test]
fn what_an_abandoned_quest_had_not_merged_comes_back() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let script = [
        write("a.txt", "half done\n"),
        write("new/file.txt", "new\n"),
        text("written"),
        json!({ "sleep_ms": 600_000 }),
    ];
    let book = shop.playbook().play("half.codeweaver", &script);
    let options = json!({ "steps": [step("whole", &[]), step("half", &[])], "isolation": "worktree" });
    let quest = shop.new_quest(&book, options);
    shop.wait_step(&quest, "whole", "step_completed");
    let agent = shop.hired(&quest, "half", "codeweaver");
    shop.wait_said(&agent, "written");
    shop.tell(&quest, "abandon");
    assert_eq!(shop.end(&agent), "user_ended");
    let worktrees = shop.worktrees(&quest);
    super::wait_until("the worktrees are gone", || !worktrees.exists());
    shop.expect_nothing_left();
    assert_eq!(shop.git(&["status", "--porcelain"]), "");
    let branch = shop.branch(&quest);
    assert!(shop.git(&["show", &format!("{branch}:notes/whole.md")]).contains("was done"));

    let list: serde_json::Value =
        serde_json::from_str(&shop.grounds.run(&["rescue", "list", "--json"]).good()).unwrap();
    let name = list["rescued"][0]["name"].as_str().unwrap_or_else(|| panic!("{list:#}"));
    assert!(name.contains("half") && list["rescued"].as_array().unwrap().len() == 1, "{list:#}");
    let folder = shop.grounds.run(&["rescue", "restore", name]).good();
    let folder = Path::new(folder.trim());
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "half done\n");
    assert_eq!(fs::read_to_string(folder.join("new/file.txt")).unwrap(), "new\n");
    let refused = shop.door().post(&format!("/api/quests/{quest}/resume"), &json!({}));
    assert_eq!(refused.status, 409, "{refused:?}");
}

#[test]
fn a_conflict_that_is_there_before_the_ward_is_mended_before_it_runs() {
    let shop = Workshop::with(WARDED, Vec::new());
    shop.repository();
    let options = json!({ "steps": [step("left", &[]), step("right", &[])], "ward": "! grep -q '<<<<' a.txt" });
    let quest = two_change_one_file(&shop, options);
    assert_eq!(
        shop.story(&quest, "right").join(", "),
        "codeweaver, complete, ward conflict, spiritmender, complete, ward green, merge merged, completed"
    );
    let brief = shop.brief(&shop.hired(&quest, "right", "spiritmender"));
    assert!(brief.contains("<conflicts>\na.txt"), "{brief}");
    assert_eq!(shop.wait_step(&quest, "right", "ward_ended")["artifact"], "", "it was not run");
    assert!(!brief.contains("Its full output"), "nobody is sent to a file that is not there: {brief}");
    assert_eq!(shop.git(&["show", &format!("{}:a.txt", shop.branch(&quest))]), "one\nleft and right\nthree");
}

/// An agent cannot edit such a file, so the user chooses: before the ward, and where there is none before the merge.
#[test]
fn a_conflict_of_binary_files_is_a_question_and_no_mender_is_paid() {
    for (settings, ward) in [(SHORT, ""), (WARDED, "true")] {
        let shop = Workshop::with(settings, Vec::new());
        shop.repository();
        let gate = shop.gate();
        let change = |side: &str| write("logo.png", &format!("{side}\u{0}"));
        let book = shop.playbook().play("left.codeweaver", &[change("left"), done("drawn")]);
        let book = book.play("right.codeweaver", &[change("right"), text("ready"), gate.pass(), done("drawn")]);
        let steps = json!([step("left", &[]), step("right", &[])]);
        let quest = shop.new_quest(&book, json!({ "steps": steps, "isolation": "worktree", "ward": ward }));
        shop.wait_said(&shop.hired(&quest, "right", "codeweaver"), "ready");
        shop.wait_step(&quest, "left", "step_completed");
        gate.open();
        let (question, words) = shop.asked(&quest, 1);
        assert!(words.contains("logo.png") && words.contains("git checkout --ours"), "{words}");
        let story = shop.story(&quest, "right");
        assert!(!story.iter().any(|part| part == "spiritmender"), "{story:?}");
        let worktree = shop.worktrees(&quest).join("steps/right");
        for words in [["checkout", "--ours", "logo.png"].as_slice(), &["add", "logo.png"]] {
            shop.git(&[&["-C", worktree.to_str().unwrap()], words].concat());
        }
        shop.answer(question, "retry");
        shop.complete(&quest);
        assert_eq!(shop.git(&["show", &format!("{}:logo.png", shop.branch(&quest))]), "right\u{0}");
        assert!(!shop.story(&quest, "right").iter().any(|part| part == "spiritmender"));
    }
}

#[test]
fn whoever_mends_in_a_worktree_finds_what_the_ward_said() {
    let shop = Workshop::with(WARDED, Vec::new());
    shop.repository();
    let book = shop.playbook().play("spiritmender", &[write("good.txt", ""), done("mended")]);
    let ward = "test -e good.txt || { echo 'error: nothing good here'; exit 1; }";
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "isolation": "worktree", "ward": ward }));
    shop.complete(&quest);
    let artifact = shop.wait_step(&quest, "a", "ward_ended")["artifact"].as_str().unwrap().to_owned();
    assert!(Path::new(&artifact).is_absolute(), "{artifact}");
    assert_eq!(fs::read_to_string(&artifact).unwrap(), "error: nothing good here\n");
    assert!(shop.brief(&shop.hired(&quest, "a", "spiritmender")).contains(&artifact));
}

#[test]
fn a_worktree_goes_when_its_ward_has_gone() {
    let shop = Workshop::with(WARDED, Vec::new());
    shop.repository();
    let flag = shop.grounds.path().join("gates");
    fs::create_dir_all(&flag).unwrap();
    let flag = flag.join("begun");
    // It will not be stopped kindly, and fills its folder until the end.
    let ward = format!("trap '' TERM INT; touch '{}'; while :; do n=$((n+1)); echo $n > file-$n; done", flag.display());
    let options = json!({ "steps": [step("a", &[])], "isolation": "worktree", "ward": ward });
    let quest = shop.new_quest(&shop.playbook(), options);
    super::wait_until("the ward runs", || flag.exists());
    shop.tell(&quest, "abandon");
    let worktrees = shop.worktrees(&quest);
    super::wait_until("the worktrees are gone", || !worktrees.exists());
    assert_eq!(shop.processes(), Vec::<u32>::new(), "nobody was at work in it any more");
    let list = shop.grounds.run(&["rescue", "list"]).good();
    assert!(list.contains("step a of"), "{list}");
}

#[test]
fn what_a_killed_daemon_left_of_a_quest_that_is_over_goes() {
    let mut shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let options = json!({ "steps": [step("a", &[]), step("b", &[])], "isolation": "worktree" });
    let quest = shop.new_quest(&shop.playbook(), options);
    shop.wait_quest(&quest, "quest_completed");
    shop.kill_daemon();
    shop.restart();
    let worktrees = shop.worktrees(&quest);
    super::wait_until("the worktrees are gone", || !worktrees.exists());
    for step in ["a", "b"] {
        assert!(shop.git(&["show", &format!("{}:notes/{step}.md", shop.branch(&quest))]).contains("was done"));
    }
    assert_eq!(shop.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(shop.git(&["for-each-ref", "refs/hatchery"]), "");
    shop.expect_nothing_left();
}

#[test]
fn two_quests_do_not_get_in_each_others_way() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let books = ["first", "second"].map(|name| {
        shop.playbook().play("codeweaver", &[write("a.txt", &format!("of the {name}\n")), done("changed")])
    });
    let options = json!({ "steps": [step("a", &[]), step("b", &["a"])], "isolation": "worktree" });
    let quests = books.each_ref().map(|book| shop.new_quest(book, options.clone()));
    for (quest, name) in quests.iter().zip(["first", "second"]) {
        shop.wait_quest(quest, "quest_completed");
        assert_eq!(shop.git(&["show", &format!("{}:a.txt", shop.branch(quest))]), format!("of the {name}"));
    }
    shop.expect_nothing_left();
}

#[test]
fn a_quest_that_is_abandoned_while_it_begins_leaves_nothing() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let options = json!({ "steps": [step("a", &[]), step("b", &[]), step("c", &[])], "isolation": "worktree" });
    let moments = ["step_begun", "run_spawned", "run_started", "signal_given", "merge_begun", "merge_ended"];
    let quests = moments.map(|moment| {
        let quest = shop.new_quest(&shop.playbook(), options.clone());
        let agent = shop.hired(&quest, "a", "codeweaver");
        shop.wait(moment, |event| {
            event["type"] == moment && (event["quest"] == quest.as_str() || event["agent"] == agent.as_str())
        });
        // It may have been faster.
        let abandoned = shop.door().post(&format!("/api/quests/{quest}/abandon"), &json!({}));
        assert!([200, 409].contains(&abandoned.status), "{abandoned:?}");
        quest
    });
    let folders: Vec<_> = quests.iter().map(|quest| shop.worktrees(quest)).collect();
    super::wait_until("nobody and nothing is left", || {
        shop.processes().is_empty() && !folders.iter().any(|folder| folder.exists())
    });
    let branches = shop.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    let known = |name: &str| name == "main" || quests.iter().any(|quest| name == shop.branch(quest));
    assert!(branches.lines().all(known), "{branches}");
    assert_eq!(shop.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(shop.git(&["status", "--porcelain"]), "");
}

/// A quest whose only step has written something and sits there.
fn half_done(shop: &Workshop) -> (String, String) {
    let script = [write("a.txt", "half done\n"), text("written"), json!({ "sleep_ms": 600_000 })];
    let book = shop.playbook().play("half.codeweaver", &script);
    let quest = shop.new_quest(&book, json!({ "steps": [step("half", &[])], "isolation": "worktree" }));
    let agent = shop.hired(&quest, "half", "codeweaver");
    shop.wait_said(&agent, "written");
    (quest, agent)
}

/// Neither a lock nor a branch without work, and what was half done is safe.
#[test]
fn a_quest_that_came_to_nothing_leaves_what_was_rescued_and_nothing_else() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let (quest, _) = half_done(&shop);
    let lock = shop.worktrees(&quest).with_extension("lock");
    assert!(lock.exists());
    shop.tell(&quest, "abandon");
    super::wait_until("the lock is gone", || !lock.exists());
    assert!(!shop.worktrees(&quest).exists());
    assert_eq!(shop.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]), "main");
    let list = shop.grounds.run(&["rescue", "list"]).good();
    assert!(list.contains("step half of"), "{list}");
}

#[test]
fn what_could_not_be_tidied_up_is_tried_again_without_a_restart() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let (quest, agent) = half_done(&shop);
    // A repository in a worktree cannot be rescued, so the worktree stays.
    let inner = shop.worktrees(&quest).join("steps/half/inner").display().to_string();
    shop.git(&["init", "--quiet", &inner]);
    fs::write(shop.grounds.path().join(&inner).join("mine"), "mine").unwrap();
    shop.tell(&quest, "abandon");
    assert_eq!(shop.end(&agent), "user_ended");
    super::wait_until("it could not be done", || shop.grounds.said().contains("could not be removed; trying again"));
    assert!(shop.grounds.path().join(&inner).join("mine").exists());
    fs::remove_dir_all(shop.grounds.path().join(&inner)).unwrap();
    let worktrees = shop.worktrees(&quest);
    super::wait_until("the worktrees are gone", || !worktrees.exists());
    assert!(shop.grounds.run(&["rescue", "list"]).good().contains("step half of"));
}
