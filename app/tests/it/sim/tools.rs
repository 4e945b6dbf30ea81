//! Calls of real MCP servers.

use crate::support::daemon::Grounds;
use crate::support::sim::{Played, Stage, TALK};
use hatchery_core::output::Output;
use hatchery_core::{Cause, Exit};
use serde_json::{Value, json};
use std::fs;

fn results(played: &Played) -> Vec<(&str, bool)> {
    let results = played.outputs.iter().filter_map(|output| match output {
        Output::ToolResult { content, is_error, .. } => Some((content.as_str(), *is_error)),
        _ => None,
    });
    results.collect()
}

/// The tools of agent 0, as a coding agent is told of them.
fn hatchery(grounds: &Grounds, agent: &str) -> Value {
    let project = grounds.path();
    let arguments = json!(["mcp", "--agent", agent, "--project", project]);
    json!({ "mcpServers": { "hatchery": { "command": env!("CARGO_BIN_EXE_hatchery"), "args": arguments } } })
}

#[test]
fn the_real_tools_are_called() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let root = daemon.door.root();
    let stage = Stage::new();
    let config = stage.path().join("mcp.json");
    fs::write(&config, hatchery(&grounds, &root).to_string()).unwrap();
    let script = stage.script(&[
        json!({ "mcp": { "tool": "ps" } }),
        json!({ "mcp": { "server": "hatchery", "tool": "fork", "arguments": { "name": "scout" } } }),
        json!({ "mcp": { "tool": "kill", "arguments": { "nobody": 1 } } }),
        json!({ "mcp": { "tool": "no-such-tool" } }),
    ]);
    let played = stage.talk(&["--mcp-config", config.to_str().unwrap(), "--script", &script], &["go"]);
    let connected = json!([{ "name": "hatchery", "status": "connected" }]);
    assert_eq!(played.init["mcp_servers"], connected, "{}", played.stderr);
    let Output::ToolUse { name, input, .. } = &played.outputs[4] else { panic!("{played:?}") };
    assert_eq!((name.as_str(), input.as_str()), ("fork", r#"{"name":"scout"}"#));
    let results = results(&played);
    assert!(results[0].0.contains(&root) && !results[0].1, "{results:?}");
    assert_eq!(
        results.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(),
        [false, false, true, true],
        "{results:?}"
    );
    assert!(grounds.run(&["ps"]).stdout.contains("scout"));
    assert_eq!((played.exit, played.cause()), (Exit::Code(0), Cause::Completed));
}

#[test]
fn a_call_that_takes_long_can_be_interrupted() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let stage = Stage::new();
    let config = hatchery(&grounds, &daemon.door.root()).to_string();
    let script = stage.script(&[json!({ "mcp": { "tool": "wait" } }), json!("turn"), json!({ "text": "after" })]);
    let mut playing = stage.start(&[&TALK[..], &["--mcp-config", &config, "--script", &script]].concat());
    playing.tell("a");
    playing.hears("mcp__hatchery__wait");
    playing.ask("r1", "interrupt");
    playing.hears("aborted_tools");
    playing.tell("b");
    let played = playing.end();
    assert_eq!((played.texts(), played.cause()), (vec!["after"], Cause::Completed));
}

#[test]
fn a_server_that_cannot_be_reached_has_failed_and_the_run_goes_on() {
    let stage = Stage::new();
    let script = stage.script(&[json!({ "mcp": { "server": "gone", "tool": "ps" } }), json!({ "text": "after" })]);
    let config = json!({ "mcpServers": { "gone": { "command": "/nonexistent" }, "mute": { "command": "true" } } });
    let played = stage.talk(&["--mcp-config", &config.to_string(), "--script", &script], &["go"]);
    let failed = |name: &str| json!({ "name": name, "status": "failed" });
    assert_eq!(played.init["mcp_servers"], json!([failed("gone"), failed("mute")]));
    let refusal = "<tool_use_error>Error: No such tool available: mcp__gone__ps</tool_use_error>";
    assert_eq!(results(&played), [(refusal, true)]);
    assert_eq!((played.texts(), played.cause()), (vec!["after"], Cause::Completed));
    assert!(played.stderr.contains("MCP server gone"), "{}", played.stderr);
}

#[test]
fn a_configuration_that_cannot_be_read_ends_it() {
    for config in ["no-such-file.json", "{\"mcpServers\": 7}"] {
        let played = Stage::new().talk(&["--mcp-config", config], &["go"]);
        assert_eq!((played.exit, played.outputs.len()), (Exit::Code(1), 0), "{config}");
        assert!(played.stderr.contains("Invalid MCP configuration"), "{}", played.stderr);
    }
}
