//! The inbox files of a team: messages to agents, and their answers.

use super::scene::{Scene, registered};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Nothing that is unread is passed on while a test runs, unless the test says so.
const UNREAD_MS: u64 = 3_600_000;

/// The file is looked at once an hour: only what is noticed by the watch counts.
fn scene() -> (Scene, PathBuf, tempfile::TempDir) {
    scene_with("")
}

fn scene_with(more: &str) -> (Scene, PathBuf, tempfile::TempDir) {
    let teams = tempfile::tempdir().unwrap();
    let inboxes = teams.path().join("crew/inboxes");
    std::fs::create_dir_all(&inboxes).unwrap();
    // Written before anybody has looked.
    write(&inboxes.join("ada.json"), &[entry("lyra", "early")]);
    let settings = format!(
        "mode = 'lead'\nhuman = 'ada'\nteam = 'crew'\nteams = '{}'\nlook_ms = 3600000\nunread_ms = {UNREAD_MS}\n{more}",
        teams.path().display()
    );
    (Scene::with(&settings), inboxes, teams)
}

/// A daemon for which every message was unread for long enough.
fn restart_when_all_is_due(scene: &mut Scene) {
    scene.set("unread_ms", 1);
    scene.shop.restart();
}

fn entry(from: &str, text: &str) -> Value {
    json!({ "from": from, "text": text, "timestamp": "2026-02-16T12:00:00.000Z", "read": false })
}

fn write(path: &Path, entries: &[Value]) {
    std::fs::write(path, json!(entries).to_string()).unwrap();
}

fn entries(path: &Path) -> Vec<Value> {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
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
    let sent: Value = serde_json::from_str(&std::fs::read_to_string(inboxes.join("Lyra.json")).unwrap()).unwrap();
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
    let lock = inboxes.join("Lyra.json.lock");
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
    assert!(!inboxes.join("Lyra.json").exists());
    for _ in 0..2 {
        scene.shop.restart();
        // It answers when what was left is brought.
        scene.seats();
        let sent = entries(&inboxes.join("Lyra.json"));
        assert_eq!((sent.len(), &sent[0]["text"]), (1, &json!("hello")), "{sent:?}");
        scene.shop.kill_daemon();
    }
    // She reads it, and it is over.
    let mut read = entries(&inboxes.join("Lyra.json"));
    read[0]["read"] = json!(true);
    write(&inboxes.join("Lyra.json"), &read);
    restart_when_all_is_due(&mut scene);
    no_longer_pending(&scene);
    assert!(routed(&scene).is_empty(), "the lead was not asked");
    assert_eq!(entries(&inboxes.join("Lyra.json")), read);
}

/// Waits until no message is on its way.
fn no_longer_pending(scene: &Scene) {
    let folder = scene.shop.grounds.data().join("team-outbox");
    scene.wait_until("nothing is pending", || (std::fs::read_dir(&folder).unwrap().count() == 0).then_some(()));
}

/// What the lead was asked to pass on.
fn routed(scene: &Scene) -> Vec<String> {
    let lead = scene.seats()["lead"].as_str().unwrap().to_owned();
    let told = scene.door().history(&lead).into_iter().filter(|it| it["kind"] == "user");
    let told = told.map(|it| it["content"].as_str().unwrap().to_owned());
    told.filter(|text| text.starts_with("[ROUTE TO AGENT")).collect()
}

/// The agent does not read its inbox. Nobody waits for ever: the lead passes the message on, and nothing is said twice.
#[test]
fn a_message_that_stays_unread_goes_through_the_lead() {
    let (mut scene, inboxes, _teams) = scene();
    scene.start_lead_with_lyra(&[
        json!("turn"),
        json!({ "text": "She says hello." }),
        json!("turn"),
        json!({ "text": "She is well." }),
        json!("turn"),
        json!({ "text": "She is tired." }),
    ]);
    let lyra = inboxes.join("Lyra.json");
    scene.send(&json!({ "message": "first", "targetAgent": "Lyra" }));
    let mut read = entries(&lyra);
    assert_eq!(read.len(), 1);
    read[0]["read"] = json!(true);
    write(&lyra, &read);
    scene.shop.kill_daemon();
    restart_when_all_is_due(&mut scene);
    no_longer_pending(&scene);
    assert!(routed(&scene).is_empty(), "she has read it");
    scene.shop.kill_daemon();
    scene.set("unread_ms", UNREAD_MS);
    scene.shop.restart();
    scene.send(&json!({ "message": "hello", "targetAgent": "Lyra" }));
    scene.send(&json!({ "message": "how are you?", "targetAgent": "Lyra" }));
    // The daemon is killed meanwhile.
    scene.shop.kill_daemon();
    restart_when_all_is_due(&mut scene);
    scene.shop.wait("the answers", |event| event["content"] == "She is well.");
    assert_eq!(routed(&scene), ["[ROUTE TO AGENT: Lyra]\n\nhello", "[ROUTE TO AGENT: Lyra]\n\nhow are you?"]);
    assert_eq!(entries(&lyra), read, "what the lead passes on is no longer in the inbox");
    no_longer_pending(&scene);
    // The next one goes through the lead at once.
    scene.send(&json!({ "message": "and now?", "targetAgent": "Lyra" }));
    scene.shop.wait("the answer", |event| event["content"] == "She is tired.");
    assert_eq!(entries(&lyra), read);
    let thread = scene.door().get("/api/agents/Lyra/thread").json();
    let lines: Vec<&str> =
        thread["messages"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
    let said = ["first", "hello", "how are you?", "She says hello.", "She is well.", "and now?", "She is tired."];
    assert_eq!(lines, said, "each once");
    let events =
        scene.dialect("?dialect=julian&after=-1", None, |event| event["content"][0]["text"] == "She is tired.");
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("user_message"), of("agent_message")), (4, 4), "each once, and the reply from before: {events:?}");
}

/// Another program holds the lock for longer than we wait for it. The message is said once, and comes when the lock is free.
#[test]
fn a_lock_that_is_held_for_long_doubles_nothing() {
    let (scene, inboxes, _teams) = scene();
    scene.start_lead_with_lyra(&[]);
    let lock = inboxes.join("Lyra.json.lock");
    std::fs::create_dir(&lock).unwrap();
    // It is in use: its time is renewed, as the CLI does it.
    let held = std::fs::File::open(&lock).unwrap();
    held.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(3_600)).unwrap();
    scene.send(&json!({ "message": "hello", "targetAgent": "Lyra" }));
    assert!(!inboxes.join("Lyra.json").exists());
    std::fs::remove_dir(&lock).unwrap();
    let sent = scene
        .wait_until("the message", || inboxes.join("Lyra.json").exists().then(|| entries(&inboxes.join("Lyra.json"))));
    assert_eq!((sent.len(), &sent[0]["text"]), (1, &json!("hello")), "{sent:?}");
    assert!(routed(&scene).is_empty());
    let said = scene
        .shop
        .events()
        .iter()
        .filter(|event| event["type"] == "message_added" && event["content"] == "hello")
        .count();
    assert_eq!(said, 1);
}

/// The human's inbox is not that of an agent of the same name.
#[test]
fn an_agent_that_is_called_like_the_human_has_its_own_words() {
    let (scene, inboxes, _teams) = scene();
    scene.shop.wait("the reply from before", |event| event["type"] == "inbox_reply_taken" && event["text"] == "early");
    scene.start_lead(&[
        json!({ "text": registered(0, "Ada") }),
        json!("turn"),
        json!({ "text": "The other Ada is well." }),
    ]);
    scene.wait_seat(0, "alive");
    let before = entries(&inboxes.join("ada.json"));
    scene.send(&json!({ "message": "how are you?", "targetAgent": "Ada" }));
    scene.shop.wait("the answer", |event| event["content"] == "The other Ada is well.");
    assert_eq!(routed(&scene), ["[ROUTE TO AGENT: Ada]\n\nhow are you?"]);
    assert_eq!(entries(&inboxes.join("ada.json")), before, "nobody writes to the human in the human's name");
    assert_eq!(replies(&scene).len(), 2, "no echo: {:?}", replies(&scene));
    let told = scene.told_at_the_next_wake();
    assert!(told.contains("[ada (the human)]: how are you?\n[Ada]: The other Ada is well."), "{told}");
}

/// A team of the same name is made anew: its folder is another one, and is watched like the first.
#[test]
fn a_folder_that_is_made_anew_is_watched_again() {
    let (scene, inboxes, _teams) = scene();
    scene.shop.wait("the reply from before", |event| event["type"] == "inbox_reply_taken" && event["text"] == "early");
    let ada = inboxes.join("ada.json");
    for round in ["one", "two"] {
        // With the folder of the team, or without.
        let gone = if round == "one" { &inboxes } else { inboxes.parent().unwrap() };
        std::fs::remove_dir_all(gone).unwrap();
        std::fs::create_dir_all(&inboxes).unwrap();
        scene.wait_until("the human's inbox", || ada.exists().then_some(()));
        write(&ada, &[entry("lyra", "early"), entry("lyra", round)]);
        scene.shop.wait(round, |event| event["type"] == "inbox_reply_taken" && event["text"] == round);
    }
    assert_eq!(replies(&scene), ["early", "one", "two"], "each once");
}

/// A message that nobody has read is in the memory of the agent when it is woken. So the inbox does not bring it a second time, and the
/// lead is not asked to pass it on.
#[test]
fn a_message_that_a_wake_has_told_does_not_come_again() {
    let (mut scene, inboxes, _teams) = scene();
    let asleep = json!({ "text": super::scene::status(&[]) });
    let awake = json!({ "text": super::scene::status(&[(0, "alive")]) });
    scene.start_lead_with_lyra(&[json!("turn"), asleep, json!("turn"), awake]);
    let lyra = inboxes.join("Lyra.json");
    scene.send(&json!({ "message": "do you like the sea?", "targetAgent": "Lyra" }));
    let foreign = json!({ "from": "kael", "text": "mine stays", "timestamp": "t", "read": false });
    let both: Vec<Value> = entries(&lyra).into_iter().chain([foreign.clone()]).collect();
    write(&lyra, &both);
    scene.send(&json!({ "message": "let them sleep" }));
    scene.wait_seat(0, "sleeping");
    scene.wake(None);
    let woken = scene.shop.wait("the wake", |event| {
        event["content"].as_str().is_some_and(|content| content.starts_with("[WAKE AGENTS]"))
    });
    let told = woken["content"].as_str().unwrap();
    assert!(told.contains("[ada]: do you like the sea?"), "{told}");
    assert_eq!(entries(&lyra), [foreign], "her next process reads this file");
    scene.wait_seat(0, "alive");
    // Her next messages come as usual.
    scene.send(&json!({ "message": "good morning", "targetAgent": "Lyra" }));
    assert_eq!(entries(&lyra)[1]["text"], "good morning");
    scene.shop.kill_daemon();
    restart_when_all_is_due(&mut scene);
    no_longer_pending(&scene);
    assert_eq!(routed(&scene), ["[ROUTE TO AGENT: Lyra]\n\ngood morning"], "only what the wake has not told");
}

/// The lock of the file is held while the message is taken out of it. The lead is not asked before that is done: the agent would hear
/// the message twice.
#[test]
fn a_message_is_passed_on_only_when_it_is_out_of_the_inbox() {
    let (mut scene, inboxes, _teams) = scene();
    scene.start_lead_with_lyra(&[json!("turn"), json!({ "text": "She says hello." })]);
    scene.send(&json!({ "message": "hello", "targetAgent": "Lyra" }));
    let lock = inboxes.join("Lyra.json.lock");
    std::fs::create_dir(&lock).unwrap();
    let held = std::fs::File::open(&lock).unwrap();
    held.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(3_600)).unwrap();
    scene.shop.kill_daemon();
    restart_when_all_is_due(&mut scene);
    // It has tried twice.
    let tries = |scene: &Scene| scene.shop.grounds.said().matches("cannot be asked to pass a message on").count();
    scene.wait_until("two tries", || (tries(&scene) >= 2 || !routed(&scene).is_empty()).then_some(()));
    assert!(routed(&scene).is_empty(), "the inbox still has it: {:?}", entries(&inboxes.join("Lyra.json")));
    std::fs::remove_dir(&lock).unwrap();
    scene.shop.wait("the answer", |event| event["content"] == "She says hello.");
    assert!(entries(&inboxes.join("Lyra.json")).is_empty());
}

/// A wake that has no room for a message has not told it: the message stays in the inbox file, and the lead passes it on if nobody
/// reads it.
#[test]
fn what_a_wake_leaves_out_stays_in_the_inbox() {
    let (mut scene, inboxes, _teams) = scene_with("transcript_chars = 1000");
    scene.start_lead_with_lyra(&[]);
    let long = "x".repeat(2_000);
    for message in ["an early question", &long, "the last words"] {
        scene.send(&json!({ "message": message, "targetAgent": "Lyra" }));
    }
    let told = scene.told_at_the_next_wake();
    assert!(told.contains("[ada]: the last words") && !told.contains("an early question"), "{told}");
    let lyra = inboxes.join("Lyra.json");
    let left = || -> Vec<String> { entries(&lyra).iter().map(|it| it["text"].as_str().unwrap().to_owned()).collect() };
    scene.wait_until("only what the wake has told is taken out", || {
        (left() == ["an early question", long.as_str()]).then_some(())
    });
    scene.shop.kill_daemon();
    restart_when_all_is_due(&mut scene);
    no_longer_pending(&scene);
    let passed_on = ["an early question", long.as_str()].map(|text| format!("[ROUTE TO AGENT: Lyra]\n\n{text}"));
    assert_eq!(routed(&scene), passed_on, "each once");
}

/// The file has a second name in another folder. A change by that name is not noticed by the watch, which is on the folder: only a look
/// at the file finds it.
#[test]
fn a_reply_that_the_watch_does_not_notice_is_found_by_a_look() {
    let teams = tempfile::tempdir().unwrap();
    let inboxes = teams.path().join("crew/inboxes");
    std::fs::create_dir_all(&inboxes).unwrap();
    let elsewhere = teams.path().join("elsewhere.json");
    write(&elsewhere, &[entry("lyra", "early")]);
    std::fs::hard_link(&elsewhere, inboxes.join("ada.json")).unwrap();
    let scene = Scene::with(&format!(
        "mode = 'lead'\nhuman = 'ada'\nteam = 'crew'\nteams = '{}'\nlook_ms = 50",
        teams.path().display()
    ));
    let mut all = vec![entry("lyra", "early")];
    scene.shop.wait("the reply from before", |event| event["type"] == "inbox_reply_taken" && event["text"] == "early");
    for text in ["one", "two"] {
        all.push(entry("lyra", text));
        write(&elsewhere, &all);
        scene.shop.wait(text, |event| event["type"] == "inbox_reply_taken" && event["text"] == text);
    }
    assert_eq!(replies(&scene), ["early", "one", "two"], "each once");
}

/// The CLI keeps the capital letters of a name. Who follows the original program writes the name in small letters. Both are read.
#[test]
fn both_spellings_of_the_humans_name_are_read() {
    let teams = tempfile::tempdir().unwrap();
    let inboxes = teams.path().join("crew/inboxes");
    std::fs::create_dir_all(&inboxes).unwrap();
    let scene = Scene::with(&format!(
        "mode = 'lead'\nhuman = 'Ada'\nteam = 'crew'\nteams = '{}'\nlook_ms = 3600000",
        teams.path().display()
    ));
    let of_cli = inboxes.join("Ada.json");
    scene.wait_until("the human's inbox", || of_cli.exists().then_some(()));
    let taken = |text: &str| {
        scene.shop.wait(text, |event| event["type"] == "inbox_reply_taken" && event["text"] == text);
    };
    write(&of_cli, &[entry("lyra", "as the CLI")]);
    taken("as the CLI");
    write(&inboxes.join("ada.json"), &[entry("lyra", "as the original"), entry("lyra", "as the CLI")]);
    taken("as the original");
    assert_eq!(replies(&scene), ["as the CLI", "as the original"], "each once");
}

/// Nothing of the last session is in the agent's own history. It is the last session all the same.
#[test]
fn a_wake_tells_a_session_that_went_through_the_lead_as_a_whole() {
    let (scene, inboxes, _teams) = scene();
    // The lead goes on with its script in the second session.
    let asleep = json!({ "text": super::scene::status(&[]) });
    let awake = json!({ "text": super::scene::status(&[(0, "alive")]) });
    let answer = json!({ "text": "She likes the sea." });
    scene.start_lead_with_lyra(&[json!("turn"), asleep, json!("turn"), awake, json!("turn"), answer]);
    scene.send(&json!({ "message": "an old question", "targetAgent": "Lyra" }));
    let count = |is: &dyn Fn(&Value) -> bool| scene.shop.events().iter().filter(|event| is(event)).count();
    let ended = |times: usize| {
        let is_end = |event: &Value| event["type"] == "session_ended";
        scene.wait_until("the end", || (count(&is_end) == times).then_some(()));
    };
    scene.end_session();
    ended(1);
    let started = scene.door().post("/api/session/start", &json!({ "with": scene.with_scripts() }));
    assert_eq!(started.status, 200, "{started:?}");
    scene.wake(Some(&[0]));
    scene.wait_seat(0, "alive");
    // Without an inbox, the lead is asked.
    std::fs::remove_dir_all(inboxes.parent().unwrap()).unwrap();
    scene.send(&json!({ "message": "do you like the sea?", "targetAgent": "Lyra" }));
    scene.shop.wait("the answer", |event| event["content"] == "She likes the sea.");
    scene.end_session();
    ended(2);
    scene.wake(Some(&[0]));
    let is_wake = |event: &Value| event["content"].as_str().is_some_and(|it| it.starts_with("[WAKE AGENTS]"));
    scene.wait_until("the second wake", || (count(&is_wake) == 2).then_some(()));
    let events = scene.shop.events();
    let told = events.iter().rfind(|event| is_wake(event)).unwrap()["content"].as_str().unwrap();
    assert!(told.contains("[ada]: do you like the sea?\n[Lyra]: She likes the sea."), "{told}");
    assert!(!told.contains("an old question"), "{told}");
}
