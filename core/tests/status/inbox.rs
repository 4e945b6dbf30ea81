//! The idea inbox.

use super::NOW;
use hatchery_core::idea_inbox::{IdeaInbox, IdeaType, InboxError, ItemStatus, MAX_CONTENT_BYTES};

fn ids(inbox: &IdeaInbox) -> Vec<String> {
    inbox.items().into_iter().map(|item| item.id).collect()
}

fn with(ids: &[&str]) -> IdeaInbox {
    let mut inbox = IdeaInbox::default();
    for id in ids {
        inbox.add(id, IdeaType::Evolve, &format!("idea {id}"), NOW).unwrap();
    }
    inbox
}

#[test]
fn the_newest_idea_comes_first_and_counts_once() {
    let mut inbox = with(&["a", "b"]);
    assert_eq!(ids(&inbox), ["b", "a"]);
    inbox.add("a", IdeaType::Feature, "again", NOW).unwrap();
    assert_eq!(inbox.item("a").unwrap().content, "idea a");
    assert_eq!(IdeaInbox::parse(&inbox.text()).unwrap(), inbox);
}

#[test]
fn an_idea_needs_words_and_a_known_type() {
    let mut inbox = IdeaInbox::default();
    assert_eq!(inbox.add("a", IdeaType::Evolve, "  \n", NOW), Err(InboxError::Empty));
    let long = "x".repeat(MAX_CONTENT_BYTES + 1);
    assert_eq!(inbox.add("a", IdeaType::Evolve, &long, NOW), Err(InboxError::TooLong(long.len())));
    assert_eq!(IdeaType::parse("idea"), Err(InboxError::BadType("idea".into())));
    assert_eq!(inbox, IdeaInbox::default());
}

#[test]
fn an_item_has_one_taker() {
    let mut inbox = with(&["a", "b", "c"]);
    let first = inbox.take(None, Some("me"), NOW).unwrap();
    assert_eq!((first.id.as_str(), first.status), ("a", ItemStatus::Processing), "the oldest is taken first");
    assert_eq!(
        inbox.take(Some("a"), None, NOW),
        Err(InboxError::Taken { id: "a".into(), status: ItemStatus::Processing })
    );
    assert_eq!(inbox.take(Some("c"), None, NOW).unwrap().id, "c");
    assert_eq!(inbox.take(None, None, NOW).unwrap().id, "b");
    assert_eq!(inbox.take(None, None, NOW), Err(InboxError::NothingPending));
    let done = inbox.finish("a", ItemStatus::Incorporated, Some("in 2.1"), NOW).unwrap();
    assert_eq!((done.status, done.note.as_deref()), (ItemStatus::Incorporated, Some("in 2.1")));
    assert!(matches!(inbox.finish("a", ItemStatus::Processed, None, NOW), Err(InboxError::NotProcessing { .. })));
    inbox.finish("b", ItemStatus::Pending, None, NOW).unwrap();
    assert_eq!(inbox.take(None, None, NOW).unwrap().id, "b", "an item that was given back can be taken again");
}

#[test]
fn what_others_wrote_is_kept() {
    let text = r#"[{"id":"x","type":"odd","content":"c","analysis":{"deep":[1e400]},"status":"new"},"no item",{"content":"no id"}]"#;
    let mut inbox = IdeaInbox::parse(text).unwrap();
    assert_eq!(ids(&inbox), ["x"]);
    assert_eq!(inbox.item("x").unwrap().status, ItemStatus::Pending);
    inbox.add("y", IdeaType::Reference, "https://example.org", NOW).unwrap();
    inbox.take(Some("x"), None, NOW).unwrap();
    let after = inbox.to_json().to_string();
    assert!(
        after.contains(r#""analysis":{"deep":[1e400]}"#) && after.ends_with(r#","no item",{"content":"no id"}]"#),
        "{after}"
    );
    assert_eq!(inbox.dismiss("nothing"), Err(InboxError::NoSuchItem("nothing".into())));
    inbox.dismiss("x").unwrap();
    assert_eq!(ids(&inbox), ["y"]);
    assert!(inbox.text().contains("no item"));
}

#[test]
fn what_is_no_list_is_no_inbox() {
    for text in ["", "{}", "[", "null", "[]x"] {
        assert!(matches!(IdeaInbox::parse(text), Err(InboxError::NotAList(_))), "{text:?}");
    }
}
