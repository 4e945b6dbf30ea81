//! Clients of the other dialect that come back: after the same event come the same events, live and later.

use super::scene::{Scene, dialect, registered, soul};
use crate::support::http::Door;
use serde_json::{Value, json};

fn is_end(event: &Value) -> bool {
    event["type"] == "session_end"
}

/// What a client gets that follows from the beginning while all of this happens.
fn live(scene: &Scene, happens: impl FnOnce(&Scene)) -> Vec<Value> {
    let door = scene.door();
    let follower = std::thread::spawn(move || dialect(&door, "?dialect=julian&after=-1", None, is_end));
    happens(scene);
    follower.join().unwrap()
}

/// Every client that comes back after one of the events gets exactly those that follow.
#[track_caller]
fn check_every_cursor(door: &Door, live: &[Value]) {
    assert_eq!(dialect(door, "?dialect=julian&after=-1", None, is_end), live, "from the beginning");
    for (at, event) in live.iter().enumerate().take(live.len() - 1) {
        let id = event["id"].as_u64().unwrap();
        let rest = dialect(door, &format!("?dialect=julian&after={id}"), None, is_end);
        assert_eq!(rest, live[at + 1..], "after {event}");
    }
}

fn kill(scene: &Scene, position: u64) {
    let agent = scene.seat(position)["agent"].as_str().unwrap().to_owned();
    let killed = scene.door().post(&format!("/api/agents/{agent}/kill"), &json!({}));
    assert_eq!(killed.status, 200, "{killed:?}");
}

#[test]
fn seats_of_the_daemon_are_told_the_same_way_always() {
    let mut scene = Scene::with("");
    let register = json!({ "mcp": { "tool": "register", "arguments": { "name": "Lyra", "soul": soul("Lyra") } } });
    // Its first words are said by somebody without a name, also for a client that hears of it later.
    let steps = [json!({ "text": "Who am I?" }), json!("turn"), register, json!({ "text": "I am here." })];
    scene.script("seat-0.birth", &steps);
    scene.registers(1, "Kael");
    let live = live(&scene, |scene| {
        scene.summon(&[0, 1]);
        // It registers when its first words are in the log: a call may overtake words.
        scene.shop.wait("the first words", |event| event["content"] == "Who am I?");
        scene.send(&json!({ "message": "whoever you like", "targetGridPosition": 0 }));
        scene.shop.wait("the name", |event| event["content"] == "I am here.");
        scene.wait_seat(1, "alive");
        kill(scene, 1);
        let said = scene.door().post("/api/send", &json!({ "message": "hello", "targetGridPosition": 0 }));
        assert_eq!(said.status, 202, "{said:?}");
        scene.shop.wait("the answer", |event| event["content"] == "You said: hello");
        scene.end_session();
    });
    let find = |is: &dyn Fn(&Value) -> bool| live.iter().find(|event| is(event)).unwrap_or_else(|| panic!("{live:#?}"));
    let nameless = find(&|event| event["content"][0]["text"] == "Who am I?");
    assert_eq!(nameless["agentName"], "nameless");
    let after_kill = find(&|event| event["type"] == "agent_status" && event["agents"].as_array().unwrap().len() == 1);
    assert_eq!(after_kill["agents"][0]["gridPosition"], 0, "who is alive at that moment");
    assert!(find(&|event| event["type"] == "session_start")["pid"].is_u64());
    check_every_cursor(&scene.door(), &live);
    // Another daemon, with another process id, and everybody asleep.
    scene.shop.kill_daemon();
    scene.shop.restart();
    check_every_cursor(&scene.door(), &live);
}

#[test]
fn words_tools_and_artifacts_of_a_lead_are_told_the_same_way_always() {
    let mut scene = Scene::with("mode = 'lead'\nteams = 'no-teams'");
    let path = "/mill/memory/a.html";
    let write = json!({ "tool": {
        "name": "Write",
        "input": { "file_path": path, "content": "<meta name=\"artifact-category\" content=\"letters\">" },
        "result": format!("File created successfully at: {path}"),
    } });
    scene.script(
        "lead",
        &[
            json!({ "text": "Good morning.\n[AGENT_STATUS] {\"agents\":[]}" }),
            json!("turn"),
            json!({ "text": format!("{}\n{}", registered(0, "Lyra"), registered(1, "Kael")) }),
            write,
            json!("turn"),
            json!({ "text": "Lyra says hello back." }),
            json!("turn"),
            json!({ "text": "And I am well, too." }),
            json!("turn"),
            json!({ "text": "Kael is gone." }),
        ],
    );
    let live = live(&scene, |scene| {
        let started = scene.door().post("/api/session/start", &json!({ "with": scene.with_scripts() }));
        assert_eq!(started.status, 200, "{started:?}");
        scene.shop.wait("the greeting", |event| event["type"] == "seats_reported");
        scene.summon(&[0, 1]);
        scene.shop.wait("the artifact", |event| event["type"] == "artifact_written");
        scene
            .shop
            .wait("the end of the turn", |event| event["type"] == "turn_ended" && event["id"].as_u64() > Some(20));
        for (target, answer) in [(json!("Lyra"), "Lyra says hello back."), (Value::Null, "And I am well, too.")] {
            let said = scene.door().post("/api/send", &json!({ "message": "hello", "targetAgent": target }));
            assert_eq!(said.status, 202, "{said:?}");
            scene.shop.wait(answer, |event| event["content"] == answer);
        }
        kill(scene, 1);
        // The lead is told, and answers.
        let answer = scene.shop.wait("the answer", |event| event["content"] == "Kael is gone.");
        let answer = answer["id"].as_u64();
        scene.shop.wait("the end of it", |event| event["type"] == "turn_ended" && event["id"].as_u64() > answer);
        scene.end_session();
    });
    let find = |is: &dyn Fn(&Value) -> bool| live.iter().find(|event| is(event)).unwrap_or_else(|| panic!("{live:#?}"));
    // The result of the tool, and the artifact beside it.
    let result = find(&|event| event["type"] == "claude_tool_result");
    assert_eq!((&result["toolName"], &result["isError"]), (&json!("Write"), &json!(false)));
    let artifact = find(&|event| event["type"] == "artifact_written");
    assert_ne!(artifact["id"], result["id"]);
    assert_eq!(
        (&artifact["filename"], &artifact["path"], &artifact["isNew"], &artifact["sizeBytes"]),
        (&json!("a.html"), &json!(path), &json!(true), &json!(49))
    );
    assert_eq!(artifact["meta"], json!({ "category": "letters" }));
    assert!(find(&|event| event["type"] == "claude_system")["availableTools"].is_array());
    // What is not known is said to be so.
    assert_eq!(live.last().unwrap().get("exitCode"), Some(&Value::Null), "the lead's process still runs");
    let for_lyra = find(&|event| event["type"] == "agent_message");
    assert_eq!((&for_lyra["agentName"], &for_lyra["gridPosition"]), (&json!("Lyra"), &json!(0)));
    find(&|event| event["type"] == "claude_text" && event["content"][0]["text"] == "And I am well, too.");
    check_every_cursor(&scene.door(), &live);
    scene.shop.kill_daemon();
    scene.shop.restart();
    check_every_cursor(&scene.door(), &live);
}
