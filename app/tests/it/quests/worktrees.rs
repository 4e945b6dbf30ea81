//! Steps with worktrees of their own: what they change meets in the quest's branch, and nothing of it is ever lost.

use crate::support::quest::{SHORT, done, step, text, write};
use crate::support::workshop::Workshop;
use serde_json::json;
use std::fs;

#[test]
fn a_conflict_is_mended_and_only_the_branch_of_the_quest_is_left() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    fs::write(shop.grounds.path().join("notes"), "of the user").unwrap();
    let (head, status) = (shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"]));
    let gates = [shop.gate(), shop.gate()];
    let mut book = shop.playbook();
    for (side, gate) in ["left", "right"].iter().zip(&gates) {
        let change = write("a.txt", &format!("one\n{side}\nthree\n"));
        let own = write(&format!("src/{side}.txt"), side);
        let part = format!("{side}.codeweaver");
        book = book.play(&part, &[change, own, text("ready"), gate.pass(), done("changed")]);
    }
    let book = book.play("right.spiritmender", &[write("a.txt", "one\nleft and right\nthree\n"), done("both")]);
    let wishes = json!({ "steps": [step("left", &[]), step("right", &[]), step("last", &["left", "right"])], "isolation": "worktree" });
    let quest = shop.new_quest(&book, wishes);
    for side in ["left", "right"] {
        let agent = shop.hired(&quest, side, "codeweaver");
        shop.wait_said(&agent, "ready");
    }
    gates[0].open();
    shop.wait_step(&quest, "left", "step_completed");
    gates[1].open();
    shop.complete(&quest);
    assert_eq!(shop.story(&quest, "left"), ["codeweaver", "complete", "merge merged", "completed"]);
    let right = ["codeweaver", "complete", "merge conflict", "spiritmender", "complete", "merge merged", "completed"];
    assert_eq!(shop.story(&quest, "right"), right);
    let mender = shop.hired(&quest, "right", "spiritmender");
    assert!(shop.brief(&mender).contains("a.txt"), "{}", shop.brief(&mender));

    assert_eq!((shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"])), (head, status));
    assert_eq!(fs::read_to_string(shop.grounds.path().join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    let worktrees = shop.grounds.data().join("worktrees").join(&quest);
    super::wait_until("the worktrees are gone", || !worktrees.exists());
    let branch = format!("hatchery/{quest}");
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
    let wishes = json!({ "steps": [step("whole", &[]), step("half", &[])], "isolation": "worktree" });
    let quest = shop.new_quest(&book, wishes);
    shop.wait_step(&quest, "whole", "step_completed");
    let agent = shop.hired(&quest, "half", "codeweaver");
    shop.wait_said(&agent, "written");
    shop.tell(&quest, "abandon");
    assert_eq!(shop.end(&agent), "user_ended");
    super::wait_until("the worktrees are gone", || !shop.grounds.data().join("worktrees").join(&quest).exists());
    shop.expect_nothing_left();
    assert_eq!(shop.git(&["status", "--porcelain"]), "");
    let branch = format!("hatchery/{quest}");
    assert!(shop.git(&["show", &format!("{branch}:notes/whole.md")]).contains("was done"));

    let list: serde_json::Value =
        serde_json::from_str(&shop.grounds.run(&["rescue", "list", "--json"]).good()).unwrap();
    let name = list["rescued"][0]["name"].as_str().unwrap_or_else(|| panic!("{list:#}"));
    assert!(name.contains("half") && list["rescued"].as_array().unwrap().len() == 1, "{list:#}");
    let folder = shop.grounds.run(&["rescue", "restore", name]).good();
    let folder = std::path::Path::new(folder.trim());
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "half done\n");
    assert_eq!(fs::read_to_string(folder.join("new/file.txt")).unwrap(), "new\n");
    let refused = shop.door().post(&format!("/api/quests/{quest}/resume"), &json!({}));
    assert_eq!(refused.status, 409, "{refused:?}");
}
