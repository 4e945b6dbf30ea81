//! The inbox files of a team: messages to agents, and their answers.

use super::scene::Scene;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn scene() -> (Scene, PathBuf, tempfile::TempDir) {
    let teams = tempfile::tempdir().unwrap();
    let inboxes = teams.path().join("crew/inboxes");
    std::fs::create_dir_all(&inboxes).unwrap();
    // Written before anybody has looked.
    write(&inboxes.join("ada.json"), &[entry("lyra", "early")]);
    let settings = format!("mode = 'lead'\nhuman = 'ada'\nteam = 'crew'\nteams = '{}'", teams.path().display());
    (Scene::with(&settings), inboxes, teams)
}

fn entry(from: &str, text: &str) -> Value {
    json!({ "from": from, "text": text, "timestamp": "2026-02-16T12:00:00.000Z", "read": false })
}

fn write(path: &Path, entries: &[Value]) {
    std::fs::write(path, json!(entries).to_string()).unwrap();
}

fn replies(scene: &Scene) -> Vec<String> {
    let text = |event: &Value| -> Option<String> {
        let taken = event["type"] == "inbox_reply_taken" && event["text"].is_string();
        let said = event["type"] == "message_added" && event["kind"] == "assistant" && event["content"] != json!("…");
        (taken || said).then(|| event["text"].as_str().or(event["content"].as_str()).unwrap().to_owned())
    };
    scene.shop.events().iter().filter_map(text).filter(|text| !text.contains("AGENT_")).collect()
}

#[test]
fn each_reply_counts_once_however_the_file_changes() {
    let (mut scene, inboxes, _teams) = scene();
    scene.shop.wait("the reply from before", |event| event["type"] == "inbox_reply_taken" && event["text"] == "early");
    scene.start_lead_with_lyra(&[]);
    // A message to the agent goes into its inbox, and not through the lead.
    let hello = json!({ "id": "1", "message": "hello", "targetGridPosition": 0, "speakerName": "ada" });
    let said = scene.door().post("/api/send", &hello);
    assert_eq!(said.status, 202, "{said:?}");
    assert_eq!(scene.door().post("/api/send", &hello).body, said.body, "a repeat");
    let agent = scene.seat(0)["agent"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let said = scene.door().post(&format!("/api/agents/{agent}/say"), &json!({ "id": "2", "text": "you" }));
        assert_eq!(said.status, 200, "{said:?}");
    }
    let sent: Value = serde_json::from_str(&std::fs::read_to_string(inboxes.join("lyra.json")).unwrap()).unwrap();
    let texts: Vec<_> = sent.as_array().unwrap().iter().map(|it| (&it["from"], &it["text"])).collect();
    assert_eq!(texts, [(&json!("ada"), &json!("hello")), (&json!("ada"), &json!("you"))], "each once");
    let ada = inboxes.join("ada.json");
    let taken = |scene: &Scene, text: &str| {
        scene.shop.wait(text, |event| event["type"] == "message_added" && event["content"] == text);
    };
    // In place.
    write(&ada, &[entry("lyra", "early"), entry("lyra", "in place")]);
    taken(&scene, "in place");
    // By a rename.
    let other = inboxes.join("ada.json.tmp");
    write(&other, &[entry("lyra", "early"), entry("lyra", "in place"), entry("lyra", "renamed")]);
    std::fs::rename(&other, &ada).unwrap();
    taken(&scene, "renamed");
    // Cut, and written anew with an old entry and a notice of the program.
    write(&ada, &[]);
    let notice = json!({ "type": "idle_notification" }).to_string();
    write(&ada, &[entry("lyra", "renamed"), entry("lyra", &notice), entry("lyra", "after the cut")]);
    taken(&scene, "after the cut");
    // While nobody looks.
    scene.shop.kill_daemon();
    write(&ada, &[entry("lyra", "renamed"), entry("lyra", "after the cut"), entry("lyra", "at night")]);
    scene.shop.restart();
    taken(&scene, "at night");
    assert_eq!(replies(&scene), ["early", "in place", "renamed", "after the cut", "at night"]);
    let left: Value = serde_json::from_str(&std::fs::read_to_string(&ada).unwrap()).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 3, "nothing is taken away");
    let thread = scene.door().get("/api/agents/Lyra/thread").json();
    assert_eq!(thread["messages"][0]["text"], "hello");
    assert_eq!(thread["messages"].as_array().unwrap().len(), 6, "{thread}");
}

/// A reply that is too long for a message is taken in as far as it fits, and stops nobody else's.
#[test]
fn a_reply_that_is_too_long_does_not_hold_up_the_others() {
    let (scene, inboxes, _teams) = scene();
    scene.shop.wait("the reply from before", |event| event["type"] == "inbox_reply_taken" && event["text"] == "early");
    let long = format!("long {}", "x".repeat(2 << 20));
    write(&inboxes.join("ada.json"), &[entry("lyra", "early"), entry("lyra", &long), entry("kael", "short")]);
    scene.shop.wait("the next one", |event| event["type"] == "inbox_reply_taken" && event["text"] == "short");
    let taken = replies(&scene);
    assert_eq!(taken.len(), 3, "each once");
    assert!(taken[1].starts_with("long x") && taken[1].contains("more bytes were left out"));
}

/// The log has the message, and the file not yet, because another process holds its lock.
#[test]
fn a_message_that_a_killed_daemon_could_not_write_is_brought_by_the_next_one() {
    let (mut scene, inboxes, _teams) = scene();
    scene.start_lead_with_lyra(&[]);
    let lock = inboxes.join("lyra.json.lock");
    std::fs::create_dir(&lock).unwrap();
    let door = scene.door();
    let sender = std::thread::spawn(move || {
        // It gets no answer.
        drop(std::panic::catch_unwind(|| {
            door.post("/api/send", &json!({ "message": "hello", "targetAgent": "Lyra" }))
        }));
    });
    scene.shop.wait("the message", |event| event["type"] == "message_added" && event["content"] == "hello");
    scene.shop.kill_daemon();
    sender.join().unwrap();
    std::fs::remove_dir(&lock).unwrap();
    assert!(!inboxes.join("lyra.json").exists());
    for _ in 0..2 {
        scene.shop.restart();
        // It answers when what was left is brought.
        scene.seats();
        let sent: Value = serde_json::from_str(&std::fs::read_to_string(inboxes.join("lyra.json")).unwrap()).unwrap();
        assert_eq!((sent.as_array().unwrap().len(), &sent[0]["text"]), (1, &json!("hello")), "{sent}");
        let left = std::fs::read_dir(scene.shop.grounds.data().join("team-outbox")).unwrap().count();
        assert_eq!(left, 0, "what was brought is over");
        scene.shop.kill_daemon();
    }
    scene.shop.restart();
}

/// A team of the same name is made anew: its folder is another one, and is watched like the first.
#[test]
fn a_folder_that_is_made_anew_is_watched_again() {
    let (scene, inboxes, _teams) = scene();
    scene.shop.wait("the reply from before", |event| event["type"] == "inbox_reply_taken" && event["text"] == "early");
    let ada = inboxes.join("ada.json");
    for round in ["one", "two"] {
        std::fs::remove_dir_all(&inboxes).unwrap();
        std::fs::create_dir(&inboxes).unwrap();
        scene.wait_until("the human's inbox", || ada.exists().then_some(()));
        write(&ada, &[entry("lyra", "early"), entry("lyra", round)]);
        scene.shop.wait(round, |event| event["type"] == "inbox_reply_taken" && event["text"] == round);
    }
    assert_eq!(replies(&scene), ["early", "one", "two"], "each once");
}
