//! Quests on the command line: what it says, and with which code it ends.

use crate::support::daemon::Ran;
use crate::support::quest::{SHORT, done, signal, step};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;

#[test]
fn each_subcommand_explains_itself() {
    let shop = Workshop::open();
    let commands = [
        "new", "run", "watch", "pause", "resume", "abandon", "retry", "list", "show", "answer", "budget", "ward",
        "export", "import",
    ];
    let all = shop.grounds.run(&["quest", "--help"]).good();
    for command in commands {
        assert!(all.contains(&format!("  {command} ")), "{command}: {all}");
        let help = shop.grounds.run(&["quest", command, "--help"]).good();
        assert!(help.contains("Usage: hatchery quest"), "{help}");
    }
    let bare = shop.grounds.run(&["quest"]);
    assert!(bare.code == Some(2) && bare.stderr.contains("Usage: hatchery quest"), "{bare:?}");
}

#[test]
fn what_cannot_be_is_refused_with_a_hint() {
    let shop = Workshop::with(SHORT, Vec::new());
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask, json!("turn"), done("wide")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "hold": true }));
    let path = |name: &str, content: &str| {
        let path = shop.grounds.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let cycle = path("cycle.json", &json!([step("a", &["b"]), step("b", &["a"])]).to_string());
    let cut = path("cut.json", "[{\"id\":");
    let odd = path("odd.json", "[{\"id\": \"a\"}]");
    let typo = path("typo.json", &json!([{ "id": "deck", "name": "Deck", "dependson": [] }]).to_string());
    let lost = path("lost.json", &json!([step("deck", &["arch"])]).to_string());
    let nothing = path("nothing.json", "[]");
    let plan = path("plan.json", &json!([step("deck", &[])]).to_string());
    let empty = path("empty.json", "{}");
    let missing = shop.grounds.path().join("nowhere.json").display().to_string();
    let new = |plan: &str| vec!["quest", "new", "--plan", plan, "a bridge"].into_iter().map(String::from).collect();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let refused: Vec<(i32, Vec<String>, &[&str])> = vec![
        (1, words(&["quest", "show", "nobody"]), &["there is no quest `nobody`", "hatchery quest list"]),
        (1, words(&["quest", "run", "nobody"]), &["there is no quest"]),
        (1, words(&["quest", "watch", "nobody"]), &["there is no quest"]),
        (1, words(&["quest", "pause", "nobody"]), &["there is no quest"]),
        (1, words(&["quest", "abandon", "nobody"]), &["there is no quest"]),
        (1, words(&["quest", "export", "nobody"]), &["there is no quest"]),
        (1, words(&["quest", "retry", &quest, "nowhere"]), &["nowhere"]),
        (1, words(&["quest", "retry", &quest, "Not A Step"]), &["Not A Step", "lowercase letters"]),
        (1, words(&["quest", "retry", &quest, "a"]), &["`a`"]),
        (1, words(&["quest", "pause", &quest]), &["paused", "resume"]),
        (1, words(&["quest", "answer", &quest, "yes"]), &["has no open question", "hatchery ask list"]),
        (
            1,
            words(&["quest", "answer", &quest, "--question", "1", "yes"]),
            &["question 1 is not asked about this quest"],
        ),
        (2, words(&["quest", "budget", &quest, "much"]), &["`much`", "for example"]),
        (2, words(&["quest", "ward", &quest]), &["COMMAND"]),
        (1, words(&["quest", "ward", &quest, "--none"]), &["has no ward", "nothing to do"]),
        (1, words(&["quest", "ward", &quest, " "]), &["cannot be a ward"]),
        (2, words(&["quest", "import", &missing]), &["nowhere.json"]),
        (2, words(&["quest", "import", &empty]), &["no exported quest"]),
        (2, words(&["quest", "new", ""]), &["the request is empty", "for example"]),
        (2, words(&["quest", "new", " "]), &["the request is empty"]),
        (2, new(&cycle), &["cycle.json", "a → b → a"]),
        (2, new(&lost), &["lost.json", "deck", "arch"]),
        (2, new(&cut), &["cut.json", "not JSON"]),
        (2, new(&odd), &["odd.json", "step `a`", "`name` is missing"]),
        (2, new(&typo), &["typo.json", "step `deck`", "`dependson`", "did you mean `dependsOn`?"]),
        (2, new(&nothing), &["nothing.json", "there is no step in it"]),
        (2, new(&missing), &["nowhere.json"]),
        (
            2,
            words(&["quest", "new", "--approve-plan", "--plan", &plan, "a bridge"]),
            &["no plan to approve", "--approve-plan"],
        ),
        (2, words(&["quest", "new", "--isolation", "worktree", "a bridge"]), &["git init", "--isolation none"]),
        (2, words(&["quest", "new", "--slots", "0", "a bridge"]), &["--slots"]),
        (2, words(&["quest", "new", "--slots", "65", "a bridge"]), &["--slots"]),
        (2, words(&["quest", "new", "--budget", "much", "a bridge"]), &["`much`", "--budget"]),
        (2, words(&["quest", "new", "--harness", "nope", "a bridge"]), &["`nope`", "claude", "scripted"]),
    ];
    for (code, arguments, expected) in refused {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = shop.grounds.run(&arguments);
        assert!(ran.code == Some(code) && ran.stdout.is_empty(), "{arguments:?}: {ran:?}");
        for word in expected {
            assert!(ran.stderr.contains(word), "{arguments:?} does not say {word}: {ran:?}");
        }
        assert!(ran.stderr.starts_with("error: "), "{arguments:?}: {ran:?}");
        assert!(!ran.stderr.contains("the body"), "nobody on the command line knows of HTTP: {ran:?}");
    }
    let list: Value = serde_json::from_str(&shop.grounds.run(&["quest", "list", "--json"]).good()).unwrap();
    assert_eq!(list["quests"].as_array().unwrap().len(), 1, "nothing was made by what was refused: {list:#}");
}

#[test]
fn a_beginning_that_fits_two_is_no_name() {
    let shop = Workshop::with(SHORT, Vec::new());
    let made: Vec<String> =
        (0..65).map(|_| shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[])], "hold": true }))).collect();
    // There are 64 first letters.
    let twice =
        made.iter().map(|id| &id[..1]).find(|first| made.iter().filter(|id| id.starts_with(*first)).count() > 1);
    let first = twice.unwrap();
    let ambiguous = shop.door().get(&format!("/api/quests/{first}"));
    assert_eq!((ambiguous.status, ambiguous.error().0.as_str()), (409, "ambiguous"), "{ambiguous:?}");
    assert!(ambiguous.error().1.contains("more characters"), "{ambiguous:?}");
    assert_eq!(shop.quest(&made[0][..12])["id"], made[0].as_str());
}

#[test]
fn a_quest_from_the_command_line() {
    let shop = Workshop::with(SHORT, Vec::new());
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask, json!("turn"), done("two carts wide")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "hold": true }));
    let short = &quest[..8];
    let run = |words: &[&str]| -> Ran { shop.grounds.run(words) };
    assert!(run(&["quest", "list"]).good().contains("paused"));
    run(&["quest", "resume", &quest]).good();
    shop.asked(&quest, 1);
    assert!(run(&["quest", "list"]).good().contains("asks you"));
    let asked = run(&["ask", "list"]).good();
    assert!(asked.contains("How wide?") && asked.contains(&format!("quest {short}")), "{asked}");
    let shown = run(&["quest", "show", &quest[..8]]).good();
    assert!(shown.contains("waiting for human"), "{shown}");
    run(&["quest", "answer", &quest, "two carts"]).good();
    let watched = run(&["quest", "watch", &quest]).good();
    assert!(watched.is_empty() || watched.contains("complete"), "{watched}");
    let shown = run(&["quest", "show", "--history", &quest]).good();
    assert!(shown.contains("1 of 1 steps complete"), "{shown}");
    assert!(shown.contains("codeweaver (implements) signals needs-user-input"), "{shown}");
    assert!(!run(&["quest", "list"]).good().contains(short));
    assert!(run(&["quest", "list", "--all"]).good().contains(short));
    let over = run(&["quest", "abandon", &quest]);
    assert!(over.code == Some(1) && over.stderr.contains("complete"), "{over:?}");
    shop.expect_nothing_left();
}

#[test]
fn watching_shows_everything_from_the_beginning() {
    let shop = Workshop::with(SHORT, Vec::new());
    let plan = shop.grounds.path().join("plan.json");
    fs::write(&plan, json!({ "steps": [step("a", &[]), step("b", &["a"])] }).to_string()).unwrap();
    let words =
        ["quest", "new", "--run", "--ward", "", "--isolation", "none", "--plan", plan.to_str().unwrap(), "a bridge"];
    let ran = shop.grounds.run(&words);
    assert!(ran.stderr.contains("3 slots") && ran.stderr.contains("no ward"), "{ran:?}");
    let shown = ran.good();
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    assert!(lines[0].starts_with("plan") && lines[0].contains("2 steps: a, b"), "{shown}");
    assert!(lines[1].starts_with("a ") && lines[1].contains("codeweaver"), "{shown}");
    assert_eq!(lines.last(), Some(&"the quest is complete"), "{shown}");
}

#[test]
fn without_the_program_that_plays_nothing_is_made_and_nothing_is_begun() {
    let shop = Workshop::with("claude_path = '/nowhere/claude'\nstop_grace_ms = 300\n", Vec::new());
    let refused = shop.grounds.run(&["quest", "new", "a bridge"]);
    assert!(refused.code == Some(1) && refused.stdout.is_empty(), "{refused:?}");
    for word in ["/nowhere/claude", "--harness scripted", "hatchery doctor"] {
        assert!(refused.stderr.contains(word), "{word}: {refused:?}");
    }
    let answer = shop.door().post("/api/quests", &json!({ "request": "a bridge" }));
    assert_eq!(answer.status, 409, "{answer:?}");
    let quests = || shop.door().get("/api/quests").json()["quests"].as_array().unwrap().len();
    assert_eq!(quests(), 0);

    // It needs no program of others.
    let id = shop.grounds.run(&["quest", "new", "--harness", "scripted", "--isolation", "none", "a bridge"]).good();
    let mut exported = shop.quest(id.trim());
    exported["harness"] = json!("claude");
    let answer = shop.door().post("/api/quests/import", &exported);
    assert_eq!(answer.status, 201, "{answer:?}");
    let refused = shop.grounds.run(&["quest", "run", &answer.id()]);
    assert!(refused.code == Some(1) && refused.stderr.contains("/nowhere/claude"), "{refused:?}");
    assert_eq!(shop.quest(&answer.id())["state"], "paused");
}

#[test]
fn a_bare_program_is_looked_for_on_the_path() {
    let shop = Workshop::with("claude_path = 'no-such-player'\n", Vec::new());
    let refused = shop.grounds.run(&["quest", "new", "a bridge"]);
    assert!(refused.stderr.contains("no-such-player, which is not on PATH"), "{refused:?}");
}

#[test]
fn what_is_done_to_a_quest_is_told_in_a_sentence_or_as_events() {
    let shop = Workshop::with(SHORT, Vec::new());
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask.clone(), json!("turn"), ask]);
    let silent = [json!({ "text": "bye" })];
    let book = book.play("b.codeweaver", &silent);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[]), step("b", &[])] }));
    shop.asked(&quest, 1);
    shop.wait_step(&quest, "b", "step_failed");
    let told = |words: &[&str], expected: &[&str]| {
        let ran = shop.grounds.run(&[&["quest"], words].concat());
        assert!(ran.code == Some(0) && ran.stdout.is_empty(), "{words:?}: {ran:?}");
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{words:?}: {ran:?}");
        for part in expected {
            assert!(ran.stderr.contains(part), "{words:?} does not say {part}: {ran:?}");
        }
    };
    let watch = format!("hatchery quest watch {quest}");
    told(&["budget", &quest, "5"], &["$5.00 in all", "used $0"]);
    told(&["budget", &quest, "none"], &["as much as they need"]);
    told(&["pause", &quest], &["paused", &format!("hatchery quest resume {quest}")]);
    told(&["retry", &quest, "b"], &["step b is tried again", "paused"]);
    told(&["resume", &quest], &["goes on in the background", &watch]);
    told(&["answer", &quest, "two carts"], &["is answered", "step a is", &watch]);
    shop.asked(&quest, 2);
    told(&["abandon", &quest], &["abandoned", "stays in the project"]);

    let other = shop.new_quest(&book, json!({ "steps": [step("c", &[])], "hold": true }));
    let events = shop.grounds.run(&["quest", "abandon", &other, "--json"]).good();
    let events: Value = serde_json::from_str(&events).unwrap();
    assert_eq!(events["events"][0]["type"], "quest_abandoned", "{events:#}");
}
