//! Names and short ids on the command line: a person's names are unique among the living, and whoever may be meant is told apart.

use crate::support::quest::{SHORT, done, signal, step};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

#[test]
fn a_name_that_a_living_agent_has_is_refused_with_a_free_one() {
    let shop = Workshop::open();
    shop.grounds.run(&["run", "--name", "docs", "hello"]).good();
    for arguments in
        [&["run", "--name", "docs", "hello"][..], &["fork", "docs", "--name", "docs"], &["rename", "root", "docs"]]
    {
        let refused = shop.grounds.run(arguments);
        assert_eq!(refused.code, Some(1), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("is called `docs` already"), "{refused:?}");
        assert!(refused.stderr.contains("`docs-2` is free"), "{refused:?}");
    }
    let reserved = shop.grounds.run(&["fork", "--name", "root"]);
    assert!(reserved.code == Some(1) && reserved.stderr.contains("`root-2` is free"), "{reserved:?}");
    // To give an agent its own name again changes nothing, and a dead one's is free.
    shop.grounds.run(&["rename", "docs", "docs"]).good();
    shop.grounds.run(&["kill", "docs"]).good();
    shop.grounds.run(&["fork", "--name", "docs"]).good();
}

#[test]
fn who_may_be_meant_is_listed_with_what_tells_them_apart() {
    let shop = Workshop::open();
    let ids: Vec<String> =
        (0..2).map(|_| shop.door().post("/api/agents", &json!({ "name": "twin", "any_name": true })).id()).collect();
    let ran = shop.grounds.run(&["why", "twin"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("`twin` may mean 2 agents"), "{ran:?}");
    for id in &ids {
        assert!(ran.stderr.contains(&format!("{id}  alive, at rest, active ")), "{ran:?}");
    }
    let shown = shop.grounds.run(&["ps"]).good();
    let short = &ids[0][..8];
    assert!(shown.contains(&format!("{short} ")) && !shown.contains(&ids[0]), "{shown}");
    let json: Value = serde_json::from_str(&shop.grounds.run(&["ps", "--json"]).good()).unwrap();
    assert!(json.to_string().contains(&ids[0]));
    assert!(shop.grounds.run(&["why", short]).good().contains(&ids[0]));
    let tree = shop.grounds.run(&["tree"]).good();
    assert!(tree.contains(&format!("twin {short} ")), "{tree}");
    assert!(tree.starts_with("NAME ID STATE · HISTORY · NOW\n"), "{tree}");
}

#[test]
fn the_tree_shows_what_each_agent_does_now() {
    let shop = Workshop::open();
    let agent = shop
        .run(&[json!({ "tool": { "name": "Read", "input": { "file_path": "bridge.md" } } }), json!({ "hang": {} })]);
    shop.wait("the tool", |event| event["agent"] == agent.as_str() && event["kind"] == "tool_call");
    let now = |command: &str| {
        let shown = shop.grounds.run(&[command]).good();
        let line =
            shown.lines().find(|line| line.contains(&agent[..8])).unwrap_or_else(|| panic!("{shown}")).to_owned();
        assert!(line.contains("Read"), "{command}: {line}");
    };
    now("ps");
    now("tree");
    shop.stop(&agent);
    shop.end(&agent);
}

#[test]
fn the_agents_of_quests_are_numbered_and_why_names_what_is_asked() {
    let shop = Workshop::with(SHORT, Vec::new());
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask, json!("turn"), done("wide")]);
    for _ in 0..2 {
        let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
        shop.asked(&quest, 1);
    }
    let agents = shop.door().get("/api/agents").json();
    let named = |name: &str| agents["agents"].as_array().unwrap().iter().filter(|it| it["name"] == name).count();
    assert_eq!((named("codeweaver-a"), named("codeweaver-a-2")), (1, 1), "{agents:#}");
    let why = shop.grounds.run(&["why", "codeweaver-a-2"]).good();
    assert!(why.contains("asks you: How wide?") && why.contains("hatchery ask answer "), "{why}");
    let tree = shop.grounds.run(&["tree"]).good();
    assert_eq!(tree.matches("waits for you: hatchery ask answer").count(), 2, "{tree}");
    let everywhere = shop.grounds.run(&["ask", "list", "--everywhere"]).good();
    assert_eq!(everywhere.matches("How wide?").count(), 2, "{everywhere}");
    let root = shop.grounds.path().canonicalize().unwrap();
    assert!(everywhere.starts_with(root.to_str().unwrap()), "{everywhere}");
}

#[test]
fn empty_and_absurd_ids_are_unknown_ones() {
    let shop = Workshop::open();
    let long = "x".repeat(50_000);
    for absurd in ["", " ", "..", "/", "?", &long] {
        for (arguments, words) in [
            (["why", absurd], "no agent is named"),
            (["kill", absurd], "no agent is named"),
            (["diff", absurd], "no agent, quest or branch is called"),
        ] {
            let ran = shop.grounds.run(&arguments);
            assert_eq!(ran.code, Some(1), "{} {:.20}: {ran:?}", arguments[0], absurd);
            assert!(ran.stderr.contains(words), "{} {:.20}: {ran:?}", arguments[0], absurd);
        }
        let quest = shop.grounds.run(&["quest", "show", absurd]);
        assert!(quest.code == Some(1) && quest.stderr.contains("there is no quest"), "{quest:?}");
        let session = shop.grounds.run(&["session", "end", absurd]);
        assert!(
            session.code == Some(1) && session.stderr.contains("there is no session"),
            "{:.20}: {session:?}",
            absurd
        );
    }
}

#[test]
fn a_quest_without_git_has_a_slug_that_every_command_accepts() {
    let shop = Workshop::with(SHORT, Vec::new());
    let made = shop.grounds.run(&["quest", "new", "--isolation", "none", "--quick", "Build a small bridge"]);
    let (id, said) = (made.stdout.trim().to_owned(), made.stderr.clone());
    let slug = said
        .split_whitespace()
        .find(|word| word.starts_with("build-small-bridge-"))
        .unwrap_or_else(|| panic!("{said}"));
    let shown = shop.grounds.run(&["quest", "show", &id]).good();
    assert!(shown.lines().next().unwrap().contains(slug));
    // It has no other phases.
    let steps: Vec<&str> =
        shown.lines().filter(|line| line.starts_with("  pending") || line.starts_with("  queued")).collect();
    assert!(steps.len() == 1 && !shown.contains("review") && !shown.contains("requirements"), "{shown}");
    for (arguments, code, words) in [
        (&["quest", "show", slug][..], 0, id.as_str()),
        (&["quest", "budget", slug, "5"], 0, "5"),
        (&["quest", "export", slug], 0, &id),
        (&["quest", "show", "build-small"], 0, &id),
        (&["events", "--quest", slug], 0, "quest_created"),
        (&["diff", slug], 1, "has no branch"),
        (&["merge", slug], 1, "not in a git repository"),
        (&["quest", "abandon", slug], 0, "abandoned"),
    ] {
        let ran = shop.grounds.run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(words), "{arguments:?}: {ran:?}");
    }
}
