//! `hatchery mcp` as the CLI meets it.

use super::is_init;
use crate::support::claude_cli::{Home, cli_or_skip, uuid};
use crate::support::daemon::Grounds;
use crate::support::model::{Model, Step};
use serde_json::json;

#[test]
fn a_call_of_our_tool_arrives_as_mail() {
    let cli = cli_or_skip!();
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let agent = daemon.door.child(&daemon.door.root());
    let look = Step::tool_use("mcp__hatchery__check-mail", json!({}));
    let send = Step::tool_use("mcp__hatchery__send", json!({ "to": "human", "body": "hello from inside" }));
    let model = Model::playing([look, send, Step::text("sent")]);
    let home = Home::new(cli, &model).with_tools_of(&grounds, &agent);
    let mut run = home.begin(&uuid());
    run.say("send a mail");
    let ended = run.end();
    assert_eq!((ended.code, &ended.results()[0]["result"]), (Some(0), &json!("sent")), "{ended:#?}");
    assert_eq!(ended.results()[0]["permission_denials"], json!([]));
    let mail = daemon.door.read_mail("human").json();
    assert_eq!((&mail["from"], &mail["body"]), (&json!(agent), &json!("hello from inside")));

    let init = ended.lines.iter().find(|line| is_init(line)).unwrap();
    let servers = init["mcp_servers"].as_array().unwrap();
    assert_eq!(servers.len(), 1, "{servers:?}");
    assert_eq!((&servers[0]["name"], &servers[0]["status"]), (&json!("hatchery"), &json!("connected")));
    // `alwaysLoad`: the model sees the schemas at once. It is also told who it is.
    let first = model.asked(1);
    assert_eq!(
        first.tools().iter().filter(|tool| tool.starts_with("mcp__hatchery__")).count(),
        7,
        "{:?}",
        first.tools()
    );
    assert!(first.body["messages"].to_string().contains(&format!("You are agent {agent} of Hatchery")));
    // Where there is data beside the words, the model is shown the data alone.
    let looked = model.asked(2).dialogue();
    let next = "`wait` waits for the next mail";
    assert_eq!(looked.last().unwrap(), &format!("user: (returns) {}", json!({ "mail": [], "next": next })));
}
