//! Agents as processes, as they look from outside: fork, kill, names, and what a start finds again.

use crate::support::daemon::{Daemon, Grounds};
use crate::support::http::Door;
use crate::support::postgres::Server;
use serde_json::{Value, json};
use std::collections::BTreeMap;

mod fork {
    use super::*;

    #[test]
    fn a_child_inherits_by_reference_and_the_prompt_is_its_first_message() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let door = &daemon.door;
        let parent = door.child(&door.root());
        for number in 0..50 {
            door.add(&parent, "user", &number.to_string());
        }
        let plain = door.fork(json!({ "parent": parent }));
        assert_eq!((plain.status, plain.types()), (201, vec!["agent_created".to_owned()]), "nothing is copied");
        let forked =
            door.fork(json!({ "parent": parent, "prompt": "\"go\"", "name": "Ann", "model": "m", "provider": "p" }));
        assert_eq!(forked.types(), ["agent_created", "message_added"]);
        let ann = door.one(&forked.id());
        assert_eq!((&ann["name"], &ann["model"], &ann["provider"]), (&json!("Ann"), &json!("m"), &json!("p")));
        assert_eq!((&ann["messages"], &ann["parent"], &ann["state"]), (&json!(1), &json!(parent), &json!("alive")));
        let context = door.context(&forked.id());
        assert_eq!((context.len(), context[49].as_str(), context[50].as_str()), (51, "49", "\"go\""));
        assert_eq!(door.history(&forked.id())[50]["kind"], "user");
        // What comes later belongs to one of them alone.
        door.add(&parent, "user", "later");
        door.add(&forked.id(), "assistant", "mine");
        assert_eq!(door.context(&plain.id()).len(), 50);
        assert_eq!(door.context(&forked.id()).last().unwrap(), "mine");
        assert_eq!(door.context(&parent).last().unwrap(), "later");
    }

    #[test]
    fn it_begins_at_any_message_of_the_history_own_or_inherited() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let door = &daemon.door;
        let old = door.child(&door.root());
        let said: Vec<u64> = ["1", "2", "3"].iter().map(|text| door.add(&old, "user", text)).collect();
        let young = door.child(&old);
        let own: Vec<u64> = ["4", "5"].iter().map(|text| door.add(&young, "user", text)).collect();
        let foreign = door.add(&old, "user", "elsewhere");
        let at = |message: u64| door.fork(json!({ "parent": young, "at": message, "prompt": "p" }));
        assert_eq!(door.context(&at(own[0]).id()), ["1", "2", "3", "4", "p"]);
        assert_eq!(door.context(&at(said[1]).id()), ["1", "2", "p"]);
        assert_eq!(door.one(&at(said[1]).id())["parent"], json!(young));
        let grandchild = door.fork(json!({ "parent": at(said[1]).id(), "prompt": "q" })).id();
        assert_eq!(door.context(&grandchild), ["1", "2", "p", "q"]);
        for strange in [foreign, 999, 0] {
            at(strange).refused(404, "not_in_history");
        }
        let before = door.agents().len();
        daemon.kill();
        let daemon = grounds.up();
        assert_eq!(daemon.door.context(&grandchild), ["1", "2", "p", "q"]);
        assert_eq!(daemon.door.agents().len(), before);
    }

    #[test]
    fn one_from_an_agent_without_messages_inherits_nothing_that_comes_later() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let door = &daemon.door;
        let parent = door.child(&door.root());
        let child = door.child(&parent);
        door.add(&parent, "user", "later");
        door.add(&child, "user", "mine");
        assert_eq!(door.context(&child), ["mine"]);
    }

    #[test]
    fn it_waits_for_running_tools_also_across_a_crash() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let parent = daemon.door.child(&daemon.door.root());
        daemon.door.add(&parent, "tool_call", "a");
        daemon.door.add(&parent, "tool_call", "b");
        let waiting = daemon.door.fork(json!({ "parent": parent, "prompt": "now" }));
        assert_eq!((waiting.status, waiting.types()), (202, vec!["fork_requested".to_owned()]));
        let second = daemon.door.fork(json!({ "parent": parent }));
        assert_eq!((second.status, second.types()), (202, vec!["fork_requested".to_owned()]));
        assert_eq!(daemon.door.get(&format!("/api/agents/{}", waiting.id())).status, 404);
        daemon.kill();
        let daemon = grounds.up();
        let door = &daemon.door;
        let result = json!({ "kind": "tool_result", "content": "done" });
        let path = format!("/api/agents/{parent}/messages");
        assert_eq!(door.post(&path, &result).types(), ["message_added"]);
        let born = door.post(&path, &result);
        assert_eq!(born.types(), ["message_added", "agent_created", "message_added", "agent_created"]);
        assert_eq!(born.values()[1]["agent"], json!(waiting.id()));
        assert_eq!(born.values()[3]["agent"], json!(second.id()));
        assert_eq!(door.context(&waiting.id()), ["a", "b", "done", "done", "now"]);
        assert_eq!(door.fork(json!({ "parent": parent })).status, 201);
    }

    #[test]
    fn one_that_waits_ends_with_its_parent() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let parent = daemon.door.child(&daemon.door.root());
        daemon.door.add(&parent, "tool_call", "a");
        let waiting = daemon.door.fork(json!({ "parent": parent })).id();
        assert_eq!(daemon.door.kill(&parent, json!({})).types(), ["fork_cancelled", "agent_killed"]);
        daemon.kill();
        let daemon = grounds.up();
        daemon.door.get(&format!("/api/agents/{waiting}")).refused(404, "unknown_agent");
        daemon.door.fork(json!({ "parent": parent })).refused(409, "agent_dead");
    }

    #[test]
    fn what_it_cannot_be_is_refused_and_leaves_no_trace() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let door = &daemon.door;
        let head = door.head();
        for (birth, status, code) in [
            (json!({ "parent": "nobody" }), 404, "nobody_called"),
            (json!({ "parent": "AAAAAAAAAAAAAAAAAAAAAA" }), 404, "unknown_agent"),
            (json!({ "name": "" }), 422, "bad_name"),
            (json!({ "name": " x" }), 422, "bad_name"),
            (json!({ "hatch_ms": 0 }), 422, "hatch_out_of_range"),
            (json!({ "prompt": "x".repeat((1 << 20) + 1) }), 422, "message_too_long"),
            (json!({ "session": "AAAAAAAAAAAAAAAAAAAAAA" }), 404, "unknown_session"),
            (json!({ "sparent": "x" }), 400, "bad_json"),
        ] {
            door.fork(birth).refused(status, code);
        }
        assert_eq!(door.head(), head);
    }
}

mod kill {
    use super::*;

    #[test]
    fn a_cascade_is_one_transaction_and_leaves_first() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let door = &daemon.door;
        let victim = door.child(&door.root());
        let (left, right) = (door.child(&victim), door.child(&victim));
        let below = door.child(&right);
        let spared = door.child(&door.root());
        let killed = door.kill(&victim, json!({ "cascade": true, "remark": "enough" }));
        assert_eq!(killed.types(), vec!["agent_killed"; 4]);
        let order: Vec<Value> = killed.values().iter().map(|event| event["agent"].clone()).collect();
        assert_eq!(order.last(), Some(&json!(victim)));
        let place = |agent: &str| order.iter().position(|it| it == agent).unwrap();
        assert!(place(&below) < place(&right) && place(&left) < place(&victim));
        killed.values().iter().for_each(|event| assert_eq!(event["remark"], "enough"));
        daemon.kill();
        let daemon = grounds.up();
        for agent in [&victim, &left, &right, &below] {
            assert_eq!(daemon.door.one(agent)["state"], "dead");
            daemon.door.kill(agent, json!({})).refused(409, "agent_dead");
        }
        assert_eq!(daemon.door.one(&spared)["state"], "alive");
    }

    #[test]
    fn without_a_cascade_the_children_move_up_and_keep_what_they_inherited() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let door = &daemon.door;
        let above = door.child(&door.root());
        let victim = door.child(&above);
        door.add(&victim, "user", "inherited");
        let (one, other) = (door.child(&victim), door.child(&victim));
        let grandchild = door.child(&one);
        let killed = door.kill(&victim, json!({}));
        let told = ["agent_reparented", "message_added"];
        assert_eq!(killed.types(), [&told[..], &told[..], &["agent_killed"]].concat());
        let told = format!("Your parent {victim} was killed. Your parent is {above} now.");
        daemon.kill();
        let daemon = grounds.up();
        for child in [&one, &other] {
            assert_eq!(daemon.door.one(child)["parent"], json!(above));
            assert_eq!(daemon.door.context(child), ["inherited"]);
            assert_eq!(daemon.door.history(child).last().unwrap()["content"], json!(told));
        }
        assert_eq!(daemon.door.one(&grandchild)["parent"], json!(one));
        assert_eq!(daemon.door.context(&victim), ["inherited"], "its history stays");
    }

    #[test]
    fn agent_0_and_those_above_the_killer_are_safe() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let door = &daemon.door;
        let root = door.root();
        let above = door.child(&root);
        let killer = door.child(&above);
        let beside = door.child(&above);
        for cascade in [false, true] {
            door.kill(&root, json!({ "cascade": cascade })).refused(409, "root_is_immortal");
            door.kill(&root, json!({ "cascade": cascade, "by": killer })).refused(409, "root_is_immortal");
            door.kill(&above, json!({ "cascade": cascade, "by": killer })).refused(409, "kills_ancestor");
        }
        let killed = door.kill(&beside, json!({ "by": killer }));
        assert_eq!(killed.values()[0]["by"], json!(killer));
        door.kill(&killer, json!({ "by": beside })).refused(409, "agent_dead");
        assert_eq!(door.kill(&killer, json!({ "by": killer })).status, 200, "anybody may end itself");
    }
}

#[test]
fn ids_are_22_characters_and_a_reference_means_one_agent() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    // More than there are letters to begin with.
    let ids: Vec<String> = (0..65).map(|_| door.agent(None)).collect();
    ids.iter().for_each(|id| assert_eq!(id.len(), 22));
    let mut begins: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for id in &ids {
        begins.entry(&id[..1]).or_default().push(id);
    }
    let (letter, several) = begins.into_iter().find(|(_, ids)| ids.len() > 1).unwrap();
    let ambiguous = door.get(&format!("/api/agents/{letter}"));
    ambiguous.refused(409, "ambiguous");
    several.iter().for_each(|id| assert!(ambiguous.body.contains(id.as_str()), "{ambiguous:?}"));
    assert_eq!(door.one(&ids[0][..21])["id"], json!(ids[0]));

    let rename = |agent: &str, name: Option<&str>| {
        let answer = door.post(&format!("/api/agents/{agent}/rename"), &json!({ "name": name }));
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    rename(&ids[0], Some("Ann Ü"));
    assert_eq!(door.one("Ann%20%C3%9C")["id"], json!(ids[0]));
    let taken = door.post(&format!("/api/agents/{}/rename", ids[1]), &json!({ "name": "Ann Ü" }));
    taken.refused(409, "name_taken");
    // Agents choose what they like.
    let twin = door.post("/api/agents", &json!({ "name": "Ann Ü", "any_name": true })).id();
    let ambiguous = door.get("/api/agents/Ann%20%C3%9C");
    ambiguous.refused(409, "ambiguous");
    assert!(ambiguous.body.contains(&ids[0]) && ambiguous.body.contains(&twin));
    // The dead have no say in what a name means, unless nobody else has it: their histories stay.
    door.kill(&ids[0], json!({}));
    assert_eq!(door.one("Ann%20%C3%9C")["id"], json!(twin));
    rename(&twin, None);
    assert_eq!(door.one("Ann%20%C3%9C")["id"], json!(ids[0]));
    door.get("/api/agents/Ann").refused(404, "nobody_called");
    door.get("/api/agents/%00").refused(404, "nobody_called");
}

#[test]
fn a_start_finds_everybody_where_they_were_sqlite() {
    finds_everybody(&Grounds::with("snapshot_every = 100"));
}

#[test]
fn a_start_finds_everybody_where_they_were_postgres() {
    let database = Server::shared().database();
    finds_everybody(&Grounds::with(&format!("store = '{}'\nsnapshot_every = 100", database.url())));
}

fn finds_everybody(grounds: &Grounds) {
    let mut daemon = grounds.up();
    for round in 0..3 {
        populate(&daemon, round);
        let before = picture(&daemon.door);
        daemon.kill();
        daemon = grounds.up();
        assert_eq!(picture(&daemon.door), before);
    }
}

/// Agents of every state, with marks, cuts and mail.
#[test]
fn a_list_of_current_agents_has_the_latest_and_counts_the_others() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let root = door.root();
    let mut agents: Vec<String> = (0..55).map(|_| door.child(&root)).collect();
    agents.push(door.child(&agents[0]));
    let dead = door.child(&root);
    assert_eq!(door.post(&format!("/api/agents/{dead}/kill"), &json!({})).status, 200);
    let list = |extent: &str| {
        let list = door.get(&format!("/api/agents{extent}")).json();
        let ids: Vec<String> =
            list["agents"].as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(list["idChars"], 8, "of all agents");
        (ids, list["hidden"].as_u64().unwrap())
    };
    assert_eq!((list("").0.len(), list("").1), (58, 0));
    // The last 50 of those at rest, in the order of their birth.
    assert_eq!(list("?extent=current"), (agents[6..].to_vec(), 8));
    let (with_ancestors, hidden) = list("?extent=current_with_ancestors");
    assert_eq!((with_ancestors.len(), hidden), (52, 6));
    assert!(with_ancestors.contains(&root) && with_ancestors.contains(&agents[0]));
    let told = grounds.run(&["ps"]);
    assert_eq!((told.stdout.lines().count(), told.stderr.trim()), (51, "8 more that are idle, dead or expired: --all"));
    assert_eq!(grounds.run(&["ps", "--all"]).good().lines().count(), 59);
}

fn populate(daemon: &Daemon, round: u64) {
    let door = &daemon.door;
    let session = door.post("/api/sessions", &json!({})).id();
    let parent = door.agent(Some(&session));
    for number in 0..40 {
        door.add(&parent, if number % 10 == 9 { "mark" } else { "user" }, &format!("{round} {number}"));
    }
    let child = door.fork(json!({ "parent": parent, "prompt": "go", "name": format!("child {round}") })).id();
    door.post(&format!("/api/agents/{parent}/rewind"), &json!({}));
    door.add(&child, "clear", "");
    door.add(&child, "user", "anew");
    let orphan = door.child(&child);
    door.kill(&child, json!({}));
    door.mail(&parent, &orphan, "unread");
    door.mail("human", &orphan, "delivered");
    door.wait(&orphan, &[], 0);
    door.add(&orphan, "tool_call", "runs");
    door.fork(json!({ "parent": orphan }));
    door.fork(json!({ "parent": parent, "hatch_ms": 3_600_000 }));
}

/// An agent, its history and its unread mail.
type Portrait = (Value, Vec<Value>, Vec<(u64, String)>);

/// Everything that can be seen of the agents.
fn picture(door: &Door) -> Vec<Portrait> {
    let agents = door.agents().into_iter();
    agents
        .map(|agent| {
            let id = agent["id"].as_str().unwrap().to_owned();
            (agent, door.history(&id), door.unread(&id))
        })
        .collect()
}

/// Order is by id. Clocks may stand still or run backwards.
#[test]
fn times_do_not_matter() {
    let from = Grounds::new();
    let daemon = from.up();
    populate(&daemon, 0);
    let before = picture(&daemon.door);
    let log: Vec<Value> = daemon.door.log().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    drop(daemon);
    let backwards = |place: u64| 2_000_000_000_000 - place * 60_000;
    let still = |_: u64| 1_700_000_000_000_u64;
    for (clock, times) in [("still", &still as &dyn Fn(u64) -> u64), ("backwards", &backwards)] {
        let to = Grounds::new();
        let lines = (0..).zip(&log).map(|(place, event)| {
            let mut event = event.clone();
            event["ts"] = json!(times(place));
            // An egg's time is up by the real clock; this one is far ahead.
            if event["hatch_by"].is_u64() {
                event["hatch_by"] = json!(4_000_000_000_000_u64);
            }
            format!("{event}\n")
        });
        let file = to.path().join("log.jsonl");
        std::fs::write(&file, lines.collect::<String>()).unwrap();
        to.run(&["import", file.to_str().unwrap()]).good();
        let daemon = to.up();
        let after = picture(&daemon.door);
        assert_eq!(after.len(), before.len());
        for ((was, said, unread), (is, says, mail)) in before.iter().zip(&after) {
            for part in ["id", "parent", "state", "name", "forkedFrom", "forkPoint", "lastMessage", "messages"] {
                assert_eq!(was[part], is[part], "{clock}: {part}");
            }
            assert_eq!((timeless(said), unread), (timeless(says), mail), "{clock}");
        }
    }
}

/// A history without when it was said.
fn timeless(history: &[Value]) -> Vec<Value> {
    let mut history = history.to_vec();
    history.iter_mut().for_each(|message| message["ts"] = Value::Null);
    history
}

#[test]
fn the_commands_speak_json_and_say_when_it_did_not_work() {
    let grounds = Grounds::new();
    let _daemon = grounds.up();
    let json = |arguments: &[&str]| -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&grounds.run(&arguments).good()).unwrap()
    };
    let root = json(&["ps"])["agents"][0]["id"].as_str().unwrap().to_owned();
    let forked = json(&["fork", &root, "do it", "--no-run", "--name", "Ann"]);
    assert_eq!(forked["events"][0]["parent"], json!(root));
    let plain = grounds.run(&["fork"]).good();
    assert_eq!(plain.trim().len(), 22, "{plain}");
    assert_eq!(json(&["rename", plain.trim(), "Ben"])["events"][0]["name"], "Ben");
    assert_eq!(json(&["mark", "Ann", "here"])["events"][0]["kind"], "mark");
    assert_eq!(json(&["rewind", "Ann", "here"])["events"][0]["kind"], "rewind");
    assert_eq!(json(&["clear", "Ann"])["events"][0]["kind"], "clear");
    assert_eq!(json(&["history", "Ann", "--full"])["messages"].as_array().unwrap().len(), 0);
    assert!(json(&["tree"]).is_object() || json(&["tree"]).is_array());
    assert!(grounds.run(&["tree"]).good().contains("└─ "));
    assert_eq!(json(&["kill", "Ben", "--remark", "done"])["events"][0]["remark"], "done");
    assert_eq!(json(&["history", "Ben"])["messages"].as_array().unwrap().len(), 0, "the history of the dead stays");
    assert_eq!(json(&["ps"])["agents"].as_array().unwrap().len(), 2);
    assert_eq!(json(&["ps", "--all"])["agents"].as_array().unwrap().len(), 3);
    for (arguments, code, words) in [
        (&["kill", "nobody"][..], 1, "hatchery ps --all"),
        (&["kill", &root], 1, "cannot be killed"),
        (&["fork", "nobody"], 1, "no agent is named `nobody`"),
        (&["fork", "Ann", "--at", "x"], 2, "invalid value"),
        (&["fork", "Ann", "--at", "99999"], 1, "is not in the history"),
        (&["rewind", "Ann", "nowhere"], 1, "has no mark `nowhere`"),
        (&["rename", "Ben", "Bob"], 1, "is dead"),
        (&["fork", "Ann", " "], 2, "there is nothing to say"),
        (&["send", "Ann", ""], 2, "there is nothing to say"),
        (&["history"], 2, "whose history?"),
        (&["rename", "Ann", " "], 1, "cannot be a name"),
    ] {
        let ran = grounds.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
    for command in ["fork", "kill", "rename", "clear", "mark", "rewind", "send", "mail", "tree", "history", "ps", "mcp"]
    {
        let help = grounds.command(&[command, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains("Usage: hatchery") && help.contains("--json"), "{help}");
    }
}
