//! What every real agent program must do alike, played once with each of them. A test opens the project of its program, plays a scene, and
//! then looks at what only its program shows.

use super::model::{Gate, Model, Step};
use super::workshop::Workshop;
use serde_json::{Value, json};

/// What is left of a scene. The home of the program goes last.
pub struct Scene<H> {
    pub shop: Workshop,
    pub model: Model,
    pub agent: String,
    pub home: H,
}

/// Opens a project whose agents are played against this model.
pub trait Opens<H>: FnOnce(&Model) -> (Workshop, H) {}
impl<H, F: FnOnce(&Model) -> (Workshop, H)> Opens<H> for F {}

fn begin<H>(steps: impl IntoIterator<Item = Step>, prompt: &str, with: Value, open: impl Opens<H>) -> Scene<H> {
    let model = Model::playing(steps);
    let (shop, home) = open(&model);
    let agent = shop.prompt(prompt, with);
    Scene { shop, model, agent, home }
}

/// An answer that comes when the gate is opened, and an agent whose process has heard its message.
fn waiting<H>(gate: &Gate, first: &str, then: &[&str], with: Value, open: impl Opens<H>) -> Scene<H> {
    let then = then.iter().map(|text| Step::text(text));
    let scene = begin([Step::text(first).behind(gate)].into_iter().chain(then), "hello", with, open);
    scene.model.asked(1);
    scene.shop.wait_for(&scene.agent, "message_heard");
    scene
}

pub fn a_plain_answer_and_a_word_that_resumes<H>(open: impl Opens<H>) -> Scene<H> {
    let scene = begin(["first answer", "second answer"].map(Step::text), "hello", json!({}), open);
    let Scene { shop, agent, .. } = &scene;
    assert_eq!(shop.end(agent), "completed");
    assert_eq!(shop.said(agent), ["first answer"]);
    shop.say(agent, "and then?");
    shop.wait_nth_of(agent, "run_ended", 2);
    assert_eq!(shop.said(agent), ["first answer", "second answer"]);
    scene
}

pub fn a_tool_of_ours_is_called<H>(open: impl Opens<H>) {
    let call = Step::tool_use("mcp__hatchery__send", json!({ "to": "human", "body": "from the model" }));
    let Scene { shop, agent, home: _home, model: _model } =
        begin([call, Step::text("sent")], "send a mail", json!({}), open);
    assert_eq!(shop.end(&agent), "completed");
    shop.expect_mail(&agent, "from the model");
    let kinds: Vec<_> = shop.door().history(&agent).iter().map(|message| message["kind"].clone()).collect();
    assert_eq!(kinds, ["user", "tool_call", "tool_result", "assistant"]);
}

/// Gives the child beside the scene.
pub fn a_fork_knows_what_its_parent_said<H>(open: impl Opens<H>) -> (Scene<H>, String) {
    let scene = begin(["the parent's answer", "the child's answer"].map(Step::text), "hello", json!({}), open);
    let Scene { shop, agent, .. } = &scene;
    assert_eq!(shop.end(agent), "completed");
    let child = shop.door().child(agent);
    shop.say(&child, "your turn");
    assert_eq!(shop.end(&child), "completed");
    assert_eq!(shop.said(&child), ["the parent's answer", "the child's answer"]);
    assert_eq!(shop.said(agent), ["the parent's answer"]);
    (scene, child)
}

/// The look at what came of it is before the agent is stopped.
pub fn an_interrupted_turn_does_not_end_the_conversation<H>(open: impl Opens<H>, look: impl FnOnce(&Scene<H>)) {
    let gate = Gate::default();
    let scene = waiting(&gate, "never said", &["the next answer"], json!({ "stays": true }), open);
    let Scene { shop, agent, .. } = &scene;
    shop.interrupt(agent);
    shop.wait_for(agent, "turn_ended");
    shop.say(agent, "go on");
    shop.wait("the answer", |event| event["content"] == "the next answer");
    assert_eq!(shop.count_of(agent, "run_spawned"), 1, "the process stayed");
    look(&scene);
    shop.stop(agent);
    assert_eq!(shop.end(agent), "user_ended");
    shop.expect_nothing_left();
}

pub fn a_process_killed_in_mid_turn_is_resumed<H>(open: impl Opens<H>) -> Scene<H> {
    let gate = Gate::default();
    let scene = waiting(&gate, "never said", &["the answer"], json!({}), open);
    let Scene { shop, agent, model, .. } = &scene;
    shop.kill_process(agent);
    assert_eq!(shop.end(agent), "completed");
    assert_eq!(shop.said(agent), ["the answer"]);
    let seen = model.asked(2).dialogue();
    assert!(seen.iter().any(|line| line == "user: hello"), "{seen:?}");
    assert_eq!(shop.wait_for(agent, "run_crashed")["exit"], json!({ "signal": 9 }));
    scene
}

pub fn a_daemon_killed_in_mid_turn_finds_its_agent_again<H>(open: impl Opens<H>) {
    let gate = Gate::default();
    let Scene { mut shop, agent, home: _home, model: _model } = waiting(&gate, "the answer", &[], json!({}), open);
    shop.kill_daemon();
    gate.open();
    shop.restart();
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), ["the answer"]);
    assert_eq!(shop.count_of(&agent, "run_spawned"), 1);
}
