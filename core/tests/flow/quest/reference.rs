//! Which quest a reference means: an id, a slug, or the beginning of one of them.

use super::words::*;
use hatchery_core::quest::{Isolation, QuestSpec, QuestStart, resolve, slug_of};
use hatchery_core::{Command, QuestId, Refusal};

/// `AAAA…` and `AAAB…`: alike in their first three characters.
const X: QuestId = QuestId::from_bytes([0; 16]);
const Y: QuestId = QuestId::from_bytes([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

/// Two quests whose slugs begin alike. The second one is paused and older in the order of ids only.
fn twins(slugs: [&str; 2]) -> Play {
    let mut play = before();
    for (quest, slug, request) in
        [(X, slugs[0], "Add a verbose flag"), (Y, slugs[1], "\n\nAdd a quiet flag\nand tests")]
    {
        let isolation = Isolation::Worktree { base: format!(".hatchery/worktrees/{slug}"), within: None };
        let quest_spec = Box::new(QuestSpec { request: request.into(), isolation, ..quest_spec() });
        let start = QuestStart { hold: quest == Y, ..QuestStart::default() };
        play.must(Command::CreateQuest { quest, quest_spec, budget: None, start });
    }
    play
}

/// The refusals of a reference: of one that means nothing, and of one that means two quests.
pub fn refusals() -> (Refusal, Refusal) {
    let it = twins(["add-verbose-1a2b", "add-quiet-3c4d"]).world;
    (resolve(&it, "sing").expect_err("no quest has it"), resolve(&it, "add-").expect_err("two quests have it"))
}

#[test]
fn an_id_a_slug_or_any_beginning_that_only_one_quest_has() {
    let it = twins(["add-verbose-1a2b", "add-quiet-3c4d"]).world;
    for (reference, quest) in [
        (X.to_string().as_str(), X),
        (&Y.to_string()[..21], Y),
        ("AAAA", X),
        ("AAAB", Y),
        ("add-v", X),
        ("add-quiet-3c4d", Y),
    ] {
        assert_eq!(resolve(&it, reference), Ok(quest), "{reference}");
    }
    let nowhere = QuestId::from_bytes([9; 16]);
    for (reference, refusal) in [
        ("", Refusal::NoQuestCalled(String::new())),
        ("sing", Refusal::NoQuestCalled("sing".into())),
        (nowhere.to_string().as_str(), Refusal::UnknownQuest(nowhere)),
        ("é".repeat(1_000).as_str(), Refusal::NoQuestCalled("é".repeat(64))),
    ] {
        assert_eq!(resolve(&it, reference), Err(refusal), "{reference}");
    }
}

#[test]
fn a_whole_slug_comes_before_the_beginning_of_another() {
    let it = twins(["add", "add-more"]).world;
    assert_eq!(resolve(&it, "add"), Ok(X));
    assert_eq!(resolve(&it, "add-"), Ok(Y));
}

#[test]
fn an_ambiguous_reference_lists_what_tells_the_quests_apart() {
    let (_, refusal) = refusals();
    let expected = format!(
        "`add-` may mean 2 quests:\n  {X}  add-verbose-1a2b, open: Add a verbose flag\n  {Y}  add-quiet-3c4d, paused: Add a quiet flag"
    );
    assert_eq!(refusal.to_string(), expected);
}

#[test]
fn a_quest_without_a_branch_has_a_slug_too() {
    let mut play = before();
    for (quest, request) in [(X, "Build a bridge"), (Y, "Build a road")] {
        let quest_spec = Box::new(QuestSpec { request: request.into(), isolation: Isolation::None, ..quest_spec() });
        play.must(Command::CreateQuest { quest, quest_spec, budget: None, start: QuestStart::default() });
    }
    let slug = |quest| slug_of(quest, play.world.quest_spec(quest).expect("it was created"));
    assert_eq!((slug(X).as_str(), slug(Y).as_str()), ("build-bridge-0000", "build-road-0000"));
    for (reference, quest) in [("build-bridge-0000", X), ("build-r", Y)] {
        assert_eq!(resolve(&play.world, reference), Ok(quest), "{reference}");
    }
    let refused = resolve(&play.world, "build-").expect_err("two quests have it");
    assert!(refused.to_string().contains(&format!("{Y}  build-road-0000, open: Build a road")), "{refused}");
}
