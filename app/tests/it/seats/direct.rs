//! The daemon starts the processes of the seats itself.

use super::scene::{LONG_GRACE_MS, Scene, soul};
use hatchery_core::seat::HATCH_MS;
use serde_json::{Value, json};

#[test]
fn three_of_eight_register_and_five_expire() {
    let mut scene = Scene::with("");
    for seat in 0..3 {
        scene.registers(seat, &format!("Name{seat}"));
    }
    scene.script("birth", &[json!({ "text": "I would rather not." })]);
    scene.summon(&[0, 1, 2, 3, 5, 6, 7, 8]);
    assert_eq!(scene.seats()["button"], "waking");
    for seat in 0..3 {
        scene.wait_seat(seat, "alive");
    }
    for seat in [3, 5, 6, 7, 8] {
        assert_eq!(scene.seat(seat)["status"], "hatching");
    }
    // Five minutes pass.
    scene.shop.kill_daemon();
    scene.shop.time_passes(HATCH_MS);
    scene.shop.restart();
    for seat in [3, 5, 6, 7, 8] {
        scene.wait_seat(seat, "expired");
    }
    for seat in 0..3 {
        scene.wait_seat(seat, "alive");
    }
    assert_eq!(scene.seats()["button"], "none");
    let drawn = scene.shop.grounds.command(&["seats"]).output().unwrap();
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    assert!(drawn.contains("│ 0 Name0        │ 1 Name1        │ 2 Name2        │"), "{drawn}");
    assert!(drawn.contains("│   expired      │"), "{drawn}");
    // A summon over expired seats starts them anew, and nobody else.
    scene.registers(3, "Late");
    let answer = scene.summon(&[0, 3]);
    assert_eq!(answer.json()["seats"], json!([3]));
    assert_eq!(scene.wait_seat(3, "alive")["name"], "Late");
}

#[test]
fn an_agent_of_a_seat_asks_for_permissions_as_any_other_agent_does() {
    let scene = Scene::with("");
    scene.summon_named(&["Lyra"]);
    let requested = scene.shop.wait("the run of the seat", |event| event["type"] == "run_requested");
    assert_eq!(requested["spec"]["permissions"], "ask", "{requested}");
}

#[test]
fn all_are_woken_with_their_souls_after_the_daemon_was_killed() {
    let mut scene = Scene::with("");
    scene.summon_named(&["Lyra", "Kael"]);
    scene.shop.wait("the greeting", |event| event["content"] == "Hello, I am Lyra.");
    let first = scene.seats()["sessionId"].clone();
    let said = scene
        .door()
        .post("/api/send", &json!({ "message": "how are you?", "targetAgent": "lyra", "speakerName": "Ada" }));
    assert_eq!(said.status, 202, "{said:?}");
    scene.shop.wait("the answer", |event| event["content"] == "You said: how are you?");
    scene.shop.kill_daemon();
    scene.shop.restart();
    // Processes outlive the daemon, and so do seats.
    scene.wait_seat(0, "alive");
    scene.end_session();
    scene.wait_seat(0, "sleeping");
    assert_eq!(scene.seats()["button"], "wake");
    scene.shop.kill_daemon();
    scene.shop.restart();
    scene.wake(None);
    for seat in [0, 1] {
        scene.wait_seat(seat, "alive");
    }
    assert_ne!(scene.seats()["sessionId"], first);
    let told = scene.prompt(0);
    assert!(told.contains("I chose the name Lyra &amp; I mean it &lt;always&gt;."), "{told}");
    assert!(told.contains("[Ada]: how are you?\n[Lyra]: You said: how are you?"), "{told}");
    assert!(told.contains("hasSoul=\"true\" hasTranscript=\"true\""), "{told}");
    assert!(
        !told.contains("No agent has chosen a name for this seat yet"),
        "the birth prompt is not part of the transcript: {told}"
    );
    // The thread goes over all sessions.
    let thread = scene.door().get("/api/agents/Lyra/thread").json();
    let lines: Vec<&str> =
        thread["messages"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(lines[..3], ["Hello, I am Lyra.", "how are you?", "You said: how are you?"]);
    let shown = scene.shop.grounds.command(&["thread", "Lyra"]).output().unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains("Ada: how are you?"));
}

/// The project's usual program is another one.
#[test]
fn they_wake_in_the_program_in_which_they_fell_asleep() {
    let scene = Scene::of("stop_grace_ms = 300\n");
    scene.registers(0, "Lyra");
    let mut with = scene.with_scripts();
    with["harness"] = json!("scripted");
    let summoned = scene.door().post("/api/agents/summon", &json!({ "seats": [0], "with": with }));
    assert_eq!(summoned.status, 202, "{summoned:?}");
    scene.wait_seat(0, "alive");
    scene.end_session();
    scene.wait_seat(0, "sleeping");
    scene.wake(None);
    scene.wait_seat(0, "alive");
}

#[test]
fn one_of_two_is_woken() {
    let scene = Scene::with("");
    scene.summon_named(&["Lyra", "Kael"]);
    scene.end_session();
    scene.wake(Some(&[1]));
    scene.wait_seat(1, "alive");
    assert_eq!(scene.seat(0)["status"], "sleeping");
    assert_eq!(scene.seats()["button"], "wake");
    let refused = scene.shop.grounds.command(&["wake", "1"]).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("none of the named seats sleeps"), "another seat does: {words}");
    let command = scene.shop.grounds.command(&["wake", "0"]).status().unwrap();
    assert!(command.success());
    scene.wait_seat(0, "alive");
}

#[test]
fn two_agents_of_one_name_are_told_apart_by_their_seats() {
    let scene = Scene::with("");
    scene.registers(0, "Cael");
    scene.registers(8, "Cael");
    scene.summon(&[0, 8]);
    for seat in [0, 8] {
        scene.wait_seat(seat, "alive");
    }
    let by_name = scene.door().post("/api/send", &json!({ "message": "hi", "targetAgent": "Cael" }));
    assert_eq!((by_name.status, by_name.error().0.as_str()), (409, "ambiguous"), "{by_name:?}");
    let by_seat =
        scene.door().post("/api/send", &json!({ "message": "hi", "targetAgent": "Cael", "targetGridPosition": 8 }));
    assert_eq!(by_seat.status, 202, "{by_seat:?}");
    let heard = scene.shop.wait("the answer", |event| event["content"] == "You said: hi");
    assert_eq!(heard["agent"], scene.seat(8)["agent"]);
}

#[test]
fn a_long_conversation_fits_into_a_wake() {
    let scene = Scene::with("transcript_chars = 50000");
    let register = json!({ "mcp": { "tool": "register", "arguments": { "name": "Lyra", "soul": soul("Lyra") } } });
    let steps = [register, json!({ "long_line": 300_000 }), json!({ "text": "the last words" })];
    scene.script("seat-0.birth", &steps);
    scene.summon(&[0]);
    scene.wait_seat(0, "alive");
    scene.shop.wait("the last words", |event| event["content"] == "the last words");
    scene.end_session();
    scene.wake(None);
    scene.wait_seat(0, "alive");
    let told = scene.prompt(0);
    assert!(told.chars().count() < 60_000, "{} characters", told.chars().count());
    assert!(told.contains("[Lyra]: the last words"), "the newest is kept");
}

/// The old process does not want to leave. The second session begins meanwhile, and never hears of the first one's end.
#[test]
fn a_session_is_restarted_while_the_old_process_takes_its_time() {
    let scene = Scene::of(&format!("harness = 'scripted'\nstop_grace_ms = {LONG_GRACE_MS}\n[seats]\n"));
    let register = json!({ "mcp": { "tool": "register", "arguments": { "name": "Lyra", "soul": soul("Lyra") } } });
    scene.script("seat-0.birth", &[register, json!({ "hang": { "ignore_sigterm": true } })]);
    scene.summon(&[0]);
    scene.wait_seat(0, "alive");
    scene.wait_hanging(scene.seat(0)["agent"].as_str().unwrap());
    let first = scene.seats()["sessionId"].clone();
    scene.end_session();
    let woken = scene.wake(None).json();
    let second = woken["sessionId"].clone();
    assert_ne!(first, second);
    assert!(scene.seat(0)["waking"] == true);
    scene.shop.kill_process(scene.seat(0)["agent"].as_str().unwrap());
    let seat = scene.wait_seat(0, "alive");
    assert_eq!(seat["lastSessionId"], second);
    // The same in the words of the other dialect.
    let events = scene.dialect("?dialect=julian&after=-1", None, |event| {
        event["type"] == "agent_message" && event["sessionId"] == second
    });
    let of = |kind: &str| -> Vec<_> {
        events.iter().filter(|event| event["type"] == kind).map(|event| event["sessionId"].clone()).collect()
    };
    assert_eq!((of("session_start"), of("session_end")), (vec![first.clone(), second.clone()], vec![first]));
    assert_eq!(scene.door().get("/api/health").json()["sessionId"], second);
}

/// Nobody is left who could choose a name: the seat does not stay blocked for five minutes.
#[test]
fn an_egg_whose_process_ends_expires_at_once() {
    let scene = Scene::of("harness = 'scripted'\nretries = 0\nstop_grace_ms = 300\n[seats]\n");
    scene.script("birth", &[json!({ "text": "No, thank you." }), json!({ "exit": 3 })]);
    scene.summon(&[0]);
    scene.wait_seat(0, "expired");
    assert_eq!(scene.seats()["button"], "summon");
    scene.registers(0, "Lyra");
    scene.summon(&[0]);
    scene.wait_seat(0, "alive");
}

/// In this mode there is no team of ours. The inboxes of other teams are none of our business.
#[test]
fn no_team_inbox_is_read() {
    let teams = tempfile::tempdir().unwrap();
    let inboxes = teams.path().join("crew/inboxes");
    std::fs::create_dir_all(&inboxes).unwrap();
    std::fs::write(inboxes.join("ada.json"), json!([{ "from": "lyra", "text": "not for us" }]).to_string()).unwrap();
    let scene = Scene::with(&format!("human = 'ada'\nteam = 'crew'\nteams = '{}'", teams.path().display()));
    scene.registers(0, "Lyra");
    scene.summon(&[0]);
    scene.wait_seat(0, "alive");
    let taken = scene.shop.events().iter().any(|event| event["type"] == "inbox_reply_taken");
    assert!(!taken, "a lead's daemon would have read it before it answered its first request");
}

/// A request that is refused changes nothing, and a seat that is named twice is filled once.
#[test]
fn a_summon_that_is_refused_opens_no_session() {
    let scene = Scene::with("");
    let refused = scene.door().post("/api/agents/summon", &json!({ "seats": [4], "with": scene.with_scripts() }));
    assert_eq!((refused.status, refused.error().0.as_str()), (422, "lead_seat"), "{refused:?}");
    assert_eq!(scene.door().get("/api/health").json()["sessionActive"], false);
    scene.registers(6, "Lyra");
    let answer = scene.summon(&[6, 6]);
    assert_eq!(answer.json()["seats"], json!([6]));
    scene.wait_seat(6, "alive");
    let requested = scene.shop.events().iter().filter(|event| event["type"] == "run_requested").count();
    assert_eq!(requested, 1);
}

/// Mail is said, too: what the agent got and what it sent is in its memory.
#[test]
fn mail_of_the_last_session_is_told_at_the_wake() {
    let scene = Scene::with("human = 'ada'");
    scene.summon_named(&["Lyra", "Kael"]);
    scene.shop.wait("the greeting", |event| event["content"] == "Hello, I am Lyra.");
    let mail = |from: &str, to: &str, body: &str| {
        let sent = scene.door().post("/api/mail", &json!({ "from": from, "to": to, "body": body }));
        assert_eq!(sent.status, 201, "{sent:?}");
    };
    mail("human", "Lyra", "a letter & more");
    mail("Kael", "Lyra", "from next door");
    mail("Lyra", "Kael", "thank you");
    mail("human", "Kael", "not for Lyra");
    let wake_again = |session: usize| {
        scene.end_session();
        let ended = || scene.shop.events().iter().filter(|event| event["type"] == "session_ended").count();
        scene.wait_until("the end", || (ended() == session).then_some(()));
        scene.wake(Some(&[0]));
        scene.wait_seat(0, "alive");
        scene.prompt(0)
    };
    let told = wake_again(1);
    let said =
        "[ada, by mail]: a letter &amp; more\n[Kael, by mail]: from next door\n[Lyra, by mail to Kael]: thank you\n";
    assert!(told.contains(said) && !told.contains("not for Lyra"), "{told}");
    let told = wake_again(2);
    assert!(!told.contains("a letter"), "only the last session: {told}");
}

/// Between two sentences an agent may use many tools, and then it is killed. The next one is told all the same what was said.
#[test]
fn what_was_said_outlives_many_tools_and_a_kill() {
    let scene = Scene::with("");
    let register = json!({ "mcp": { "tool": "register", "arguments": { "name": "Lyra", "soul": soul("Lyra") } } });
    let tool = json!({ "tool": { "name": "Read", "input": {}, "result": "x" } });
    let begins = [register, json!({ "text": "I like the sea." })];
    let steps: Vec<_> =
        begins.into_iter().chain(std::iter::repeat_n(tool, 520)).chain([json!({ "text": "Done." })]).collect();
    scene.script("seat-0.birth", &steps);
    scene.summon(&[0]);
    scene.shop.wait("the last words", |event| event["content"] == "Done.");
    let agent = scene.seat(0)["agent"].as_str().unwrap().to_owned();
    let killed = scene.door().post(&format!("/api/agents/{agent}/kill"), &json!({}));
    assert_eq!(killed.status, 200, "{killed:?}");
    scene.wait_seat(0, "sleeping");
    let thread = scene.door().get("/api/seats/0/thread").json();
    assert_eq!(thread["messages"][0]["text"], "I like the sea.");
    scene.wake(None);
    scene.wait_seat(0, "alive");
    assert!(scene.prompt(0).contains("[Lyra]: I like the sea.\n[Lyra]: Done."), "{}", scene.prompt(0));
}

/// The messages of a thread: who speaks, to whom a mail is, and the text.
fn thread(scene: &Scene, path: &str) -> Vec<(String, Value, String)> {
    let thread = scene.door().get(path).json();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let line = |line: &Value| (word(&line["speakerName"]), line["mailTo"].clone(), word(&line["text"]));
    thread["messages"].as_array().unwrap().iter().map(line).collect()
}

/// A person who looks at the thread of an agent sees all that was said, by mail too, in its order.
#[test]
fn mail_is_in_the_thread() {
    let scene = Scene::with("human = 'ada'");
    scene.summon_named(&["Lyra", "Kael"]);
    scene.shop.wait("the greeting", |event| event["content"] == "Hello, I am Lyra.");
    let mail = |from: &str, to: &str, body: &str| {
        let sent = scene.door().post("/api/mail", &json!({ "from": from, "to": to, "body": body }));
        assert_eq!(sent.status, 201, "{sent:?}");
    };
    mail("human", "Lyra", "a letter");
    scene.send(&json!({ "message": "did you get it?", "targetAgent": "Lyra" }));
    scene.shop.wait("the answer", |event| event["content"] == "You said: did you get it?");
    mail("Lyra", "Kael", "she wrote to me");
    mail("Lyra", "human", "I did");
    mail("human", "Kael", "not for Lyra");
    let line = |speaker: &str, to: Value, text: &str| (speaker.to_owned(), to, text.to_owned());
    let lines = [
        line("Lyra", Value::Null, "Hello, I am Lyra."),
        line("ada", json!("Lyra"), "a letter"),
        line("ada", Value::Null, "did you get it?"),
        line("Lyra", Value::Null, "You said: did you get it?"),
        line("Lyra", json!("Kael"), "she wrote to me"),
        line("Lyra", json!("ada"), "I did"),
    ];
    let mut found = thread(&scene, "/api/agents/Lyra/thread");
    // The scripted agent may answer its mail; that is not the question here.
    found.retain(|found| lines.contains(found));
    assert_eq!(found, lines);
    assert!(!thread(&scene, "/api/agents/Lyra/thread").iter().any(|line| line.2 == "not for Lyra"));
    assert_eq!(thread(&scene, "/api/seats/0/thread"), thread(&scene, "/api/agents/Lyra/thread"));
    let shown = scene.shop.grounds.run(&["thread", "Lyra"]).good();
    for line in ["ada, by mail: a letter", "Lyra, by mail to Kael: she wrote to me", "Lyra, by mail to ada: I did"] {
        assert!(shown.contains(line), "{shown}");
    }
}

/// A client whose connection broke repeats its request with the same id.
#[test]
fn a_summon_and_a_wake_that_are_repeated_are_one() {
    let mut scene = Scene::with("");
    for (seat, name) in [(0, "Lyra"), (1, "Kael")] {
        scene.registers(seat, name);
    }
    let with = scene.with_scripts();
    let counted = |scene: &Scene, kind: &str| {
        let log = scene.door().log();
        log.iter().filter(|event| event.contains(&format!("\"type\":\"{kind}\""))).count()
    };
    let summon = json!({ "id": "s-1", "seats": [0], "with": with });
    let first = scene.door().post("/api/agents/summon", &summon);
    assert_eq!(first.status, 202, "{first:?}");
    let again = scene.door().post("/api/agents/summon", &summon);
    assert_eq!((again.status, &again.body), (202, &first.body), "the egg is there already");
    scene.wait_seat(0, "alive");
    scene.shop.kill_daemon();
    scene.shop.restart();
    assert_eq!(scene.door().post("/api/agents/summon", &summon).body, first.body, "another daemon");
    let other = json!({ "id": "s-1", "seats": [1], "with": with });
    scene.door().post("/api/agents/summon", &other).refused(409, "request_id_used");
    scene.door().post("/api/agents/wake", &summon).refused(409, "request_id_used");
    assert_eq!(counted(&scene, "seats_summoned"), 1);
    scene.end_session();
    scene.wait_seat(0, "sleeping");
    let wake = json!({ "id": "w-1", "with": with });
    let woken = scene.door().post("/api/agents/wake", &wake);
    assert_eq!((woken.status, &woken.json()["seats"]), (202, &json!([0])), "{woken:?}");
    assert_eq!(scene.door().post("/api/agents/wake", &wake).body, woken.body);
    scene.wait_seat(0, "alive");
    scene.end_session();
    scene.wait_seat(0, "sleeping");
    assert_eq!(scene.door().post("/api/agents/wake", &wake).body, woken.body, "it is not woken a second time");
    assert_eq!((counted(&scene, "seats_waking"), &scene.seat(0)["status"]), (1, &json!("sleeping")));
    assert_eq!(scene.door().get("/api/health").json()["sessionActive"], false, "and no session was opened");
    // The same by the command line.
    let script = with["script"].as_str().unwrap();
    let commands: [&[&str]; 2] = [
        &["summon", "1", "--id", "s-2", "--script", script, "--json"],
        &["wake", "0", "--id", "w-2", "--script", script, "--json"],
    ];
    for command in commands {
        let first = scene.shop.grounds.run(command).good();
        assert_eq!(scene.shop.grounds.run(command).good(), first, "{command:?}");
    }
    assert_eq!((counted(&scene, "seats_summoned"), counted(&scene, "seats_waking")), (2, 2));
}
