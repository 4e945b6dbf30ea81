//! `hatchery mcp` over its real standard streams, against the real daemon.

use crate::support::daemon::Grounds;
use crate::support::mcp::Tools;
use serde_json::{Value, json};

const TOOLS: [&str; 7] = ["fork", "kill", "send", "check-mail", "read-mail", "wait", "ps"];

#[test]
fn a_client_that_asks_for_discovery_first_gets_its_handshake() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let root = daemon.door.root();
    let mut tools = Tools::bare(&grounds, &root);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (id, params) in [("a", json!({})), ("b", json!({ "_meta": meta })), ("c", json!(null))] {
        tools.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "server/discover", "params": params }));
        assert_eq!(tools.answer(&json!(id))["error"]["code"], -32601, "{params}");
    }
    tools.say(&json!({ "jsonrpc": "2.0", "id": "e", "method": "server/discover" }));
    assert_eq!(tools.answer(&json!("e"))["error"]["code"], -32601);
    let hello = tools.shake_hands();
    assert_eq!(hello["serverInfo"]["name"], "hatchery");
    assert_eq!(hello["protocolVersion"], "2025-06-18");
    assert!(hello["capabilities"]["tools"].is_object(), "{hello}");
    assert!(hello["instructions"].as_str().unwrap().contains(&root), "{hello}");
    assert!(tools.ask("ping", json!({}))["result"].is_object());
    assert_eq!(tools.ask("no/such/method", json!({}))["error"]["code"], -32601);
    // What is no message is passed over, and does not end the conversation.
    tools.say_line("this is not JSON");
    tools.say_line("");
    assert!(tools.ask("ping", json!({}))["result"].is_object());
    assert_eq!(tools.end().code(), Some(0));
}

#[test]
fn the_tools_have_flat_schemas() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let mut tools = Tools::start(&grounds, &daemon.door.root());
    let listed = tools.ask("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone();
    assert_eq!(listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), TOOLS);
    for tool in &listed {
        let schema = &tool["inputSchema"];
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)), "{tool}");
        for property in schema["properties"].as_object().unwrap().values() {
            assert!(property["type"].is_string(), "{tool}");
        }
        for union in ["anyOf", "oneOf", "allOf", "$ref", "$defs"] {
            assert!(!schema.to_string().contains(union), "{tool}");
        }
    }
}

#[test]
fn each_tool_does_its_work() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let me = door.child(&door.root());
    door.add(&me, "user", "before");
    let first = door.add(&me, "assistant", "one");
    door.add(&me, "assistant", "two");
    let mut tools = Tools::start(&grounds, &me);

    let forked = tools.call("fork", json!({ "prompt": "do \"this\"", "name": "Ann" })).good();
    let ann = forked["agent"].as_str().unwrap().to_owned();
    assert_eq!(forked["waits"], false);
    assert_eq!(door.context(&ann), ["before", "one", "two", "do \"this\""]);
    assert_eq!((&door.one(&ann)["parent"], &door.one(&ann)["name"]), (&json!(me), &json!("Ann")));
    let early = tools.call("fork", json!({ "at": first })).good();
    assert_eq!(door.context(early["agent"].as_str().unwrap()), ["before", "one"]);

    let listed = tools.call("ps", json!({})).good();
    assert_eq!(listed["you"], json!(me));
    assert_eq!(listed["agents"].as_array().unwrap().len(), 4);

    let sent = tools.call("send", json!({ "to": "Ann", "body": "hello" })).good();
    assert_eq!(sent["to"], json!(ann));
    let mut anns = Tools::start(&grounds, "Ann");
    let unread = anns.call("check-mail", json!({})).good();
    assert_eq!(unread["mail"][0], json!({ "id": sent["mail"], "from": me, "state": "queued" }));
    let read = anns.call("read-mail", json!({})).good();
    assert_eq!((&read["body"], &read["from"]), (&json!("hello"), &json!(me)));
    let none = anns.call("check-mail", json!({}));
    let next = "`wait` waits for the next mail";
    // A client shows its model the words or the data.
    assert!(none.text.ends_with(next), "{none:?}");
    assert_eq!(none.good(), json!({ "mail": [], "next": next }));

    // Both at once: the wait does not stand in the way of other calls.
    let waiting = tools.begin_call("wait", json!({ "timeout": 600 }));
    assert_eq!(tools.call("ps", json!({ "all": true })).good()["you"], json!(me));
    anns.call("send", json!({ "to": me, "body": "done" })).good();
    let waited = tools.called(&waiting).good();
    assert_eq!((&waited["mail"]["body"], &waited["mail"]["from"]), (&json!("done"), &json!(ann)));
    // Given out, but not confirmed.
    let unread = tools.call("check-mail", json!({})).good();
    assert_eq!(unread["mail"][0]["state"], "delivered");
    let confirmed = tools.call("read-mail", json!({ "mail": waited["mail"]["id"] })).good();
    assert_eq!(confirmed["body"], "done");
    tools.call("send", json!({ "to": "human", "body": "all is well" })).good();
    assert_eq!(door.read_mail("human").json()["body"], "all is well");

    let looked = tools.call("wait", json!({ "timeout": 0 }));
    assert!(looked.text.contains("no mail within 0 s"), "{looked:?}");
    assert_eq!(looked.good()["mail"], json!(null));
    anns.call("send", json!({ "to": me, "body": "more" })).good();
    let dead = door.child(&me);
    door.kill(&dead, json!({}));
    let waited = tools.call("wait", json!({ "from": ["Ann", dead, "nobody", early["agent"]], "timeout": 0 })).good();
    let states: Vec<&Value> = waited["agents"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["mail", "dead", "unknown", "waiting"]);
    assert_eq!(waited["agents"][0]["mail"]["body"], "more");

    let below = door.child(&ann);
    let killed = tools.call("kill", json!({ "agent": "Ann", "remark": "done" })).good();
    assert_eq!(killed, json!({ "killed": [ann], "moved_up": [below] }));
    assert_eq!(door.one(&below)["parent"], json!(me));
    let killed = tools.call("kill", json!({ "agent": me, "cascade": true })).good();
    assert_eq!(killed["killed"].as_array().unwrap().len(), 3);
    assert!(tools.call("fork", json!({})).bad().contains("is dead; this cannot be undone"));
    assert_eq!(tools.end().code(), Some(0));
    assert_eq!(anns.end().code(), Some(0));
}

#[test]
fn each_mistake_is_told_with_what_to_do_next() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let me = door.child(&door.root());
    let dead = door.child(&me);
    door.kill(&dead, json!({}));
    door.fork(json!({ "parent": me, "name": "twin" }));
    door.fork(json!({ "parent": me, "name": "twin", "any_name": true }));
    let mut tools = Tools::start(&grounds, &me);
    let long = "x".repeat((1 << 20) + 1);
    for (tool, arguments, expected) in [
        ("fork", json!({ "prompt": 1 }), "`prompt` must be a text, not 1: fork takes"),
        ("fork", json!({ "at": 999 }), "leave out `at`"),
        ("fork", json!({ "name": "" }), "a name has 1 to 64 bytes"),
        ("fork", json!({ "parent": dead }), "`parent` is not known"),
        ("fork", json!({ "prompt": long }), "a message has at most"),
        ("kill", json!({}), "`agent` is missing: kill takes agent (string), cascade (boolean, optional)"),
        ("kill", json!({ "agent": "nobody" }), "`ps` with `all` lists all agents"),
        ("kill", json!({ "agent": "../agents" }), "`ps` with `all` lists all agents"),
        ("kill", json!({ "agent": "twin" }), "give more characters of the id"),
        ("kill", json!({ "agent": dead }), "is dead; this cannot be undone"),
        ("kill", json!({ "agent": me, "cascade": "yes" }), "`cascade` must be true or false"),
        ("kill", json!({ "agent": "", "cascade": true }), "`agent` must be a text that is not empty"),
        ("send", json!({ "to": me }), "`body` is missing"),
        ("send", json!({ "to": ["a"], "body": "" }), "`to` must be a text"),
        ("send", json!({ "to": "nobody", "body": "" }), "`ps` with `all` lists all agents"),
        ("send", json!({ "to": dead, "body": "" }), "is dead"),
        ("send", json!({ "to": me, "body": long }), "a mail has at most"),
        ("check-mail", json!({ "of": me }), "check-mail takes no arguments"),
        ("read-mail", json!({}), "`wait` waits for the next mail"),
        ("read-mail", json!({ "mail": 1 }), "`check-mail` lists your unread mail"),
        ("read-mail", json!({ "mail": "1" }), "`mail` must be a whole number"),
        ("read-mail", json!({ "mail": -1 }), "`mail` must be a whole number"),
        ("wait", json!({ "timeout": 601 }), "a whole number from 0 to 600"),
        ("wait", json!({ "timeout": 0.5 }), "a whole number from 0 to 600"),
        ("wait", json!({ "from": me }), "`from` must be a list"),
        ("ps", json!({ "all": 1 }), "`all` must be true or false"),
    ] {
        let said = tools.call(tool, arguments.clone()).bad();
        assert!(said.contains(expected), "{tool} {arguments:.80}: {said}");
    }
    // The candidates of an ambiguous name are listed.
    let said = tools.call("kill", json!({ "agent": "twin" })).bad();
    let twins = door.agents().into_iter().filter(|agent| agent["name"] == "twin");
    twins.for_each(|twin| assert!(said.contains(twin["id"].as_str().unwrap()), "{said}"));
    for arguments in [json!("text"), json!([1, 2]), json!(7)] {
        let said = tools.call("send", arguments).bad();
        assert_eq!(said, "the arguments must be one JSON object: send takes body (string), to (string)");
    }
    // Left out altogether is as good as empty.
    let answer = tools.ask("tools/call", json!({ "name": "ps" }));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let answer = tools.ask("tools/call", json!({ "name": "spawn", "arguments": {} }));
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("fork, kill, send"), "{answer}");
}

#[test]
fn it_speaks_for_its_agent_and_nobody_else() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let root = door.root();
    let above = door.child(&root);
    let me = door.child(&above);
    let beside = door.child(&above);
    let mine = door.mail("human", &me, "for me");
    let theirs = door.mail("human", &beside, "for somebody else");
    let mut tools = Tools::start(&grounds, &me);
    assert!(tools.call("kill", json!({ "agent": root })).bad().contains("cannot be killed"));
    let said = tools.call("kill", json!({ "agent": above, "cascade": true })).bad();
    assert!(said.contains("an agent that you descend from"), "{said}");
    let said = tools.call("read-mail", json!({ "mail": theirs })).bad();
    assert!(said.contains("no unread mail"), "{said}");
    for (tool, arguments) in [
        ("kill", json!({ "agent": beside, "by": root })),
        ("send", json!({ "to": beside, "body": "", "from": "human" })),
        ("read-mail", json!({ "of": beside })),
        ("wait", json!({ "of": beside, "timeout": 0 })),
        ("fork", json!({ "agent": beside })),
    ] {
        assert!(tools.call(tool, arguments).bad().contains("is not known"), "{tool}");
    }
    assert_eq!(door.unread(&beside), [(theirs, "queued".to_owned())]);
    assert_eq!(tools.call("read-mail", json!({})).good()["id"], mine);
    // A name that somebody else takes later does not change for whom it speaks.
    door.post(&format!("/api/agents/{me}/rename"), &json!({ "name": "Ann" }));
    let mut by_name = Tools::start(&grounds, "Ann");
    door.post(&format!("/api/agents/{me}/rename"), &json!({}));
    door.post(&format!("/api/agents/{beside}/rename"), &json!({ "name": "Ann" }));
    assert_eq!(by_name.call("ps", json!({})).good()["you"], json!(me));
    tools.call("kill", json!({ "agent": beside })).good();
    let log = door.log();
    let killed: Value = serde_json::from_str(log.last().unwrap()).unwrap();
    assert_eq!((&killed["type"], &killed["by"]), (&json!("agent_killed"), &json!(me)));
    let child = tools.call("fork", json!({})).good();
    assert_eq!(door.one(child["agent"].as_str().unwrap())["parent"], json!(me));
}

#[test]
fn it_finds_the_daemon_that_runs_now() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let me = daemon.door.child(&daemon.door.root());
    let mut tools = Tools::start(&grounds, &me);
    tools.call("send", json!({ "to": "human", "body": "before" })).good();
    daemon.kill();
    let daemon = grounds.up();
    tools.call("send", json!({ "to": "human", "body": "after" })).good();
    assert_eq!(daemon.door.read_mail("human").json()["body"], "before");
    assert_eq!(daemon.door.read_mail("human").json()["body"], "after");
    // When there is none it starts one, and a wait that was going on goes on.
    let waiting = tools.begin_call("wait", json!({ "timeout": 600 }));
    assert_eq!(tools.call("ps", json!({})).good()["you"], json!(me));
    daemon.kill();
    assert_eq!(tools.call("ps", json!({})).good()["you"], json!(me));
    assert!(grounds.project().is_served());
    grounds.run(&["send", &me, "go on"]).good();
    assert_eq!(tools.called(&waiting).good()["mail"]["body"], "go on");
    assert_eq!(tools.end().code(), Some(0));
}

#[test]
fn the_end_of_its_input_is_its_end() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let me = daemon.door.child(&daemon.door.root());
    assert_eq!(Tools::bare(&grounds, &me).end().code(), Some(0));
    let mut tools = Tools::start(&grounds, &me);
    tools.begin_call("wait", json!({ "timeout": 600 }));
    assert_eq!(tools.end().code(), Some(0));
}

#[test]
fn a_body_of_any_text_comes_through() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let me = daemon.door.child(&daemon.door.root());
    let mut tools = Tools::start(&grounds, &me);
    for body in ["", "\0", "\"quotes\" and \\", "line\nline\r\n\u{2028}", "🥚\u{10ffff}", &"ü\0".repeat(300_000)] {
        tools.call("send", json!({ "to": me, "body": body })).good();
        let read = tools.call("read-mail", json!({})).good();
        assert!(read["body"] == body, "{body:.20} came back changed");
    }
}

#[test]
fn it_is_for_somebody_or_does_not_start() {
    let grounds = Grounds::new();
    let _daemon = grounds.up();
    for (arguments, code, words) in
        [(&["mcp", "--agent", "nobody"][..], 1, "no agent is named `nobody`"), (&["mcp"], 2, "--agent <AGENT>")]
    {
        let ran = grounds.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
}
