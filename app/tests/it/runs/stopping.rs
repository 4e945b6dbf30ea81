//! Nothing is left behind, in whatever session it hides.

use crate::support::daemon::{wait_for_end, wait_until};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

#[test]
fn a_stop_ends_the_whole_tree() {
    let shop = Workshop::open();
    let steps = [
        json!({ "child": { "sleep_s": 600 } }),
        json!({ "text": "ready" }),
        json!({ "hang": { "ignore_sigterm": true } }),
    ];
    let agent = shop.run(&steps);
    shop.wait("ready", |event| event["content"] == "ready");
    let grandchild = grandchild(&shop, &agent);
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    wait_for_end(grandchild);
    shop.expect_nothing_left();
    let kinds = shop.kinds(&agent);
    let intent = kinds.iter().position(|kind| kind == "run_stopping").unwrap();
    let end = kinds.iter().position(|kind| kind == "run_ended").unwrap();
    assert!(intent < end, "{kinds:?}");
}

#[test]
fn an_end_leaves_nothing_behind_either() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "child": { "sleep_s": 600 } }), json!({ "text": "done" })]);
    assert_eq!(shop.end(&agent), "completed");
    wait_for_end(grandchild(&shop, &agent));
    shop.expect_nothing_left();
}

#[test]
fn killing_an_agent_stops_its_process() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "ready" }), json!({ "hang": {} })]);
    shop.wait("ready", |event| event["content"] == "ready");
    assert_eq!(shop.door().kill(&agent, json!({})).status, 200);
    assert_eq!(shop.end(&agent), "killed");
    shop.expect_nothing_left();
}

#[test]
fn a_stop_survives_the_daemon_that_was_asked_for_it() {
    let mut shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "ready" }), json!({ "hang": { "ignore_sigterm": true } })]);
    shop.wait("ready", |event| event["content"] == "ready");
    shop.stop(&agent);
    shop.kill_daemon();
    shop.restart();
    assert_eq!(shop.end(&agent), "user_ended");
    shop.expect_nothing_left();
}

#[test]
fn a_run_that_nobody_stops_twice() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "hang": { "ignore_sigterm": true } })]);
    shop.wait_for(&agent, "run_started");
    shop.stop(&agent);
    let again = shop.door().post(&format!("/api/agents/{agent}/stop"), &json!({}));
    assert!(matches!(again.error().0.as_str(), "run_stopping" | "no_run"), "{again:?}");
    shop.end(&agent);
    shop.door().post(&format!("/api/agents/{agent}/stop"), &json!({})).refused(404, "no_run");
}

#[test]
fn the_daemon_leaves_its_agents_at_work_and_says_how_many() {
    let shop = Workshop::open();
    let steps = [json!({ "text": "ready" }), json!({ "hang": {} })];
    let agents = [shop.run(&steps), shop.run(&steps)];
    for agent in &agents {
        shop.wait_for(agent, "run_started");
    }
    let down = shop.grounds.run(&["down"]);
    let words = "the daemon has stopped\n2 agents go on without it; `hatchery stop --all` ends them\n";
    assert_eq!((down.code, down.stderr.as_str()), (Some(0), words));
    let stopped = shop.grounds.run(&["stop", "--all"]).good();
    for agent in &agents {
        assert_eq!(stopped.lines().filter(|line| line == agent).count(), 1, "{stopped}");
    }
    // A daemon that nobody follows has taken over.
    wait_until("the end", || shop.grounds.run(&["runs"]).good().is_empty());
    shop.expect_nothing_left();
    assert_eq!(shop.grounds.run(&["stop", "--all"]).stderr, "nothing runs\n");
}

fn grandchild(shop: &Workshop, agent: &str) -> u32 {
    let history = shop.door().history(agent);
    let result = history.iter().find(|message| message["kind"] == "tool_result").unwrap();
    let result: Value = serde_json::from_str(result["content"].as_str().unwrap()).unwrap();
    result["content"].as_str().unwrap().strip_prefix("pid ").unwrap().parse().unwrap()
}
