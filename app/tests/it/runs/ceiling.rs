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

/// A parent that waits for its child lends it its place, and to nobody else. The child goes on after the wait of its parent.
#[test]
fn a_child_that_its_parent_waits_for_begins_although_all_places_are_taken() {
    let shop = Workshop::with("harness = 'scripted'\nmax_runs = 1\nstop_grace_ms = 50", Vec::new());
    let fork = json!({ "mcp": { "tool": "fork", "arguments": { "prompt": "Help.", "name": "helper" } } });
    let wait = json!({ "mcp": { "tool": "wait", "arguments": { "from": ["helper"], "timeout": 600 } } });
    let parent = shop.run(&[fork, json!({ "text": "forked" }), wait, json!({ "hang": {} })]);
    let stranger = shop.run(&[json!({ "hang": {} })]);
    shop.wait_for(&stranger, "run_waiting");
    let child = shop.wait("the child", |event| event["type"] == "agent_created" && event["name"] == "helper");
    let child = child["agent"].as_str().unwrap().to_owned();
    shop.wait_for(&child, "run_started");
    let why = shop.door().get(&format!("/api/agents/{parent}/why")).json();
    assert!(why.to_string().contains("an agent below it may use its place"), "{why}");
    let listed = shop.grounds.run(&["runs"]).good();
    assert!(listed.lines().any(|line| line.contains(&parent[..8]) && line.contains("in its tool `wait`")), "{listed}");
    let waiting = |agent: &str| phases(&shop).contains(&(agent.to_owned(), "waiting".to_owned()));
    assert!(waiting(&stranger), "the place is only for an agent below");
    // The end of the child ends the wait, and the parent works in its place again.
    shop.stop(&child);
    shop.wait("the result of the wait", |event| {
        event["agent"] == *parent
            && event["kind"] == "tool_result"
            && event["content"].to_string().contains("helper: finished")
    });
    assert!(waiting(&stranger));
    // The child has played the script of its parent, and so has children that wait for a place, too.
    shop.grounds.run(&["kill", "--cascade", &parent]).good();
    shop.wait_for(&stranger, "run_started");
    shop.grounds.run(&["stop", "--all"]).good();
    shop.expect_nothing_left();
}

/// Each agent forks one that does the same, and waits for mail. The wait of the first one ends while the others still wait, so that it works
/// beside the one that has borrowed its place. Nobody begins then, and there are never more processes than five for each place.
#[test]
fn agents_that_fork_and_wait_have_a_bounded_number_of_processes() {
    let shop = Workshop::with("harness = 'scripted'\nmax_runs = 1\nstop_grace_ms = 50", Vec::new());
    let fork = json!({ "mcp": { "tool": "fork", "arguments": { "prompt": "Go on." } } });
    let wait = json!({ "mcp": { "tool": "wait", "arguments": { "timeout": 600 } } });
    let first = shop.run(&[fork, json!({ "text": "forked" }), wait, json!({ "text": "heard" }), json!({ "hang": {} })]);
    let mut started = 0;
    let last = shop.wait("as many as may", |event| {
        started += usize::from(event["type"] == "run_started");
        started == MOST_PROCESSES
    });
    let born = shop.wait("its child", |event| event["type"] == "agent_created" && event["parent"] == last["agent"]);
    let waiting = born["agent"].as_str().unwrap().to_owned();
    shop.wait_for(&waiting, "run_waiting");
    shop.wait("its wait", |event| {
        event["agent"] == last["agent"] && event["kind"] == "tool_call" && event["content"].to_string().contains("wait")
    });
    let working = || -> Vec<String> {
        let all = phases(&shop).into_iter().filter(|(_, phase)| !["waiting", "ended"].contains(&phase.as_str()));
        all.map(|(agent, _)| agent).collect()
    };
    assert_eq!(working().len(), MOST_PROCESSES, "{:?}", phases(&shop));
    assert!(shop.processes().len() <= MOST_PROCESSES * PROCESSES_OF_A_RUN, "{:?}", shop.processes());
    shop.grounds.run(&["send", &first, "go on"]).good();
    shop.wait("the first one works", |event| event["agent"] == *first && event["content"] == "heard");
    // Decided after that.
    let stranger = shop.run(&[json!({ "hang": {} })]);
    shop.wait_for(&stranger, "run_waiting");
    assert_eq!(working().len(), MOST_PROCESSES, "{:?}", phases(&shop));
    assert_eq!(shop.count_of(&waiting, "run_spawned"), 0);
    // The ceiling is no dead end: when the first one is gone, all others wait, and the last of them lends its place.
    shop.stop(&first);
    shop.wait_for(&waiting, "run_started");
    assert_eq!(shop.count_of(&stranger, "run_spawned"), 0, "the place is for an agent below");
    assert!(working().len() <= MOST_PROCESSES, "{:?}", phases(&shop));
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

/// A place can be lent four times.
const MOST_PROCESSES: usize = 5;
/// The launcher, the agent and its tools, with one to spare for a tool that is being started.
const PROCESSES_OF_A_RUN: usize = 4;
