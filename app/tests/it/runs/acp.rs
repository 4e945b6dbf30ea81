//! An agent that is spoken to by ACP: the real opencode, run by the daemon against a scripted model.

use crate::support::model::{Gate, Model, Step};
use crate::support::opencode_cli::{OpencodeCli, OpencodeHome, opencode_or_skip};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

/// A workshop whose agents are played by opencode, under a name of the project's own.
fn workshop(cli: &OpencodeCli, model: &Model) -> (Workshop, OpencodeHome) {
    let home = OpencodeHome::new(model);
    let settings = format!(
        "stop_grace_ms = 3000\n[harness]\ndefault = 'own'\n[harness.own]\nacp = ['{}', 'acp']\nforks = true\n",
        cli.program().display()
    );
    (Workshop::with(&settings, home.environment()), home)
}

fn run(shop: &Workshop, prompt: &str, with: Value) -> String {
    let answer = shop.door().post("/api/runs", &json!({ "prompt": prompt, "with": with }));
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.id()
}

/// What the model was shown in a conversation, without what opencode asks beside it.
fn seen(model: &Model, times: usize) -> Vec<String> {
    model.asked(times).dialogue()
}

#[test]
fn a_tool_of_ours_a_plain_answer_and_a_word_that_loads_the_session() {
    let cli = opencode_or_skip!();
    let call = Step::tool_use("hatchery_send", json!({ "to": "human", "body": "from the model" }));
    let model = Model::playing([call, Step::text("first answer"), Step::text("second answer")]);
    let (shop, _home) = workshop(cli, &model);
    let agent = run(&shop, "hello", json!({}));
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent), ["first answer"]);
    let sent = shop.wait("the mail", |event| event["type"] == "mail_sent");
    assert_eq!((&sent["from"], &sent["body"]), (&json!(agent), &json!("from the model")));
    let kinds: Vec<_> = shop.door().history(&agent).iter().map(|message| message["kind"].clone()).collect();
    assert_eq!(kinds, ["user", "tool_call", "tool_result", "assistant"]);
    shop.say(&agent, "and then?");
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["run"] == 2);
    assert_eq!(shop.said(&agent), ["first answer", "second answer"], "what was loaded is not said again");
    let seen = seen(&model, 3);
    assert!(seen.iter().any(|line| line.contains("first answer")), "{seen:?}");
    assert!(seen.last().is_some_and(|line| line.contains("and then?")), "{seen:?}");
}

#[test]
fn a_message_in_mid_turn_waits_for_the_end_of_the_turn_and_a_cancelled_turn_leaves_the_process() {
    let cli = opencode_or_skip!();
    let (first, second) = (Gate::default(), Gate::default());
    let model = Model::playing([
        Step::text("first answer").behind(&first),
        Step::text("never said").behind(&second),
        Step::text("third answer"),
    ]);
    let (shop, _home) = workshop(cli, &model);
    let agent = run(&shop, "one", json!({ "stays": true }));
    model.asked(1);
    shop.say(&agent, "two");
    first.open();
    shop.wait("the first answer", |event| event["content"] == "first answer");
    model.asked(2);
    // Nothing says that the second turn has begun before it says something. It can be interrupted all the same.
    let interrupted = shop.door().post(&format!("/api/agents/{agent}/interrupt"), &json!({}));
    assert_eq!(interrupted.status, 200, "{interrupted:?}");
    let mut turns = 0;
    shop.wait("the end of the second turn", |event| {
        turns += usize::from(event["type"] == "turn_ended");
        turns == 2
    });
    shop.say(&agent, "three");
    shop.wait("the third answer", |event| event["content"] == "third answer");
    assert_eq!(shop.kinds(&agent).iter().filter(|kind| *kind == "run_spawned").count(), 1);
    assert_eq!(shop.kinds(&agent).iter().filter(|kind| *kind == "message_heard").count(), 3);
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    shop.expect_nothing_left();
}

#[test]
fn a_permission_is_asked_and_answered_and_a_killed_process_is_loaded_again() {
    let cli = opencode_or_skip!();
    let touch =
        |file: &str| Step::tool_use("bash", json!({ "command": format!("touch {file}"), "description": "touch" }));
    let model = Model::playing([touch("allowed.txt"), touch("asked.txt"), Step::text("the answer")]);
    let (shop, _home) = workshop(cli, &model);
    let agent = run(&shop, "hello", json!({ "permissions": "ask" }));
    let asked = shop.wait("a question", |event| event["agent"] == agent && event["type"] == "question_asked");
    let answer = shop.door().post(&format!("/api/questions/{}/answer", asked["id"]), &json!({ "answer": "allow" }));
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut met = 0;
    shop.wait("a second question", |event| {
        met += usize::from(event["agent"] == agent && event["type"] == "question_asked");
        met == 2
    });
    assert!(shop.grounds.path().join("allowed.txt").exists());
    let pid = shop.wait_for(&agent, "run_spawned")["process"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent), ["the answer"]);
    assert!(!shop.grounds.path().join("asked.txt").exists());
    assert_eq!(shop.door().get("/api/questions").json()["questions"], json!([]));
    shop.expect_nothing_left();
}
