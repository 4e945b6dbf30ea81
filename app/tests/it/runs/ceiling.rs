//! No more agents run at once than may, however many are asked for, and everything can be stopped.

use crate::support::workshop::Workshop;
use serde_json::{Value, json};

fn phases(shop: &Workshop) -> Vec<(String, String)> {
    let runs = shop.door().get("/api/runs").json();
    let text = |run: &Value, field: &str| run[field].as_str().unwrap().to_owned();
    runs["runs"].as_array().unwrap().iter().map(|run| (text(run, "agent"), text(run, "phase"))).collect()
}

#[test]
fn what_is_beyond_the_ceiling_waits_visibly_and_in_order() {
    let shop = Workshop::with("harness = 'scripted'\nmax_runs = 2\nstop_grace_ms = 50", Vec::new());
    let agents: Vec<String> = (0..5).map(|_| shop.run(&[json!({ "hang": {} })])).collect();
    for agent in &agents[..2] {
        shop.wait_for(agent, "run_started");
    }
    for agent in &agents[2..] {
        shop.wait_for(agent, "run_waiting");
    }
    let waiting: Vec<String> =
        phases(&shop).into_iter().filter(|(_, phase)| phase == "waiting").map(|(agent, _)| agent).collect();
    assert_eq!(waiting.len(), 3, "{:?}", phases(&shop));
    let why = shop.door().get(&format!("/api/agents/{}/why", agents[2])).json();
    assert!(why.to_string().contains("waits for its turn"), "{why}");
    // A place that becomes free goes to the one that has waited longest.
    for (left, next) in [(0, 2), (1, 3), (2, 4)] {
        shop.stop(&agents[left]);
        shop.wait_for(&agents[next], "run_started");
        assert!(agents[next + 1..].iter().all(|agent| !shop.kinds(agent).iter().any(|kind| kind == "run_spawned")));
    }
    shop.grounds.run(&["stop", "--all"]).good();
    assert!(phases(&shop).iter().all(|(_, phase)| phase == "ended"), "{:?}", phases(&shop));
    shop.expect_nothing_left();
}

/// Each agent has two children that do the same.
#[test]
fn agents_that_multiply_are_bounded_and_stopped() {
    let shop = Workshop::with("harness = 'scripted'\nmax_runs = 4\nstop_grace_ms = 50", Vec::new());
    let fork = json!({ "mcp": { "tool": "fork", "arguments": { "prompt": "Go on." } } });
    let agent = shop.run(&[fork.clone(), json!({ "text": "one" }), fork, json!({ "hang": {} })]);
    shop.wait_for(&agent, "run_started");
    shop.wait("an agent that waits", |event| event["type"] == "run_waiting");
    assert!(shop.processes().len() <= 4 * PROCESSES_OF_A_RUN, "{:?}", shop.processes());
    shop.grounds.run(&["stop", "--all"]).good();
    let open: Vec<_> = phases(&shop).into_iter().filter(|(_, phase)| phase != "ended").collect();
    assert!(open.is_empty(), "{open:?}");
    shop.expect_nothing_left();
}

/// The launcher, the agent and its tools, with one to spare for a tool that is being started.
const PROCESSES_OF_A_RUN: usize = 4;
