//! Histories through the whole product: every tree of the replay data, what cuts take back, and what comes from elsewhere.

use crate::support::daemon::Grounds;
use crate::support::http::{Answer, Door};
use crate::support::postgres::Server;
use crate::support::runtime;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// The data are the core's as well: see the README beside them.
const REPLAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/replay");
/// Between the ids of two trees in one file.
const TREE_IDS: i64 = 100_000;

#[derive(Deserialize)]
struct Tree {
    case: i64,
    agents: Vec<Value>,
    messages: Vec<Value>,
    expect: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    agent: i64,
    ids: Vec<i64>,
    interrupted: Vec<i64>,
}

#[test]
fn every_tree_is_replayed_sqlite() {
    let trees = trees();
    without_an_index(&Grounds::with(WITHOUT_AN_INDEX), &trees);
    let grounds = Grounds::with(WITH_AN_INDEX);
    with_an_index(&grounds, &trees, &|sql| {
        rusqlite::Connection::open(grounds.database()).unwrap().execute_batch(sql).unwrap();
    });
}

#[test]
fn every_tree_is_replayed_postgres() {
    let trees = trees();
    let databases = [(); 2].map(|()| Server::shared().database());
    let grounds = |at: usize, settings: &str| Grounds::with(&format!("store = '{}'\n{settings}", databases[at].url()));
    without_an_index(&grounds(0, WITHOUT_AN_INDEX), &trees);
    with_an_index(&grounds(1, WITH_AN_INDEX), &trees, &|sql| databases[1].run_sql(sql));
}

/// Snapshots so far apart that none is kept before the daemon ends.
const WITHOUT_AN_INDEX: &str = "snapshot_every = 1000000";
/// And as close together as is allowed.
const WITH_AN_INDEX: &str = "snapshot_every = 100";

fn without_an_index(grounds: &Grounds, trees: &[Tree]) {
    let daemon = grounds.up();
    let agents = import_trees(&daemon.door, trees);
    check_trees(&daemon.door, trees, &agents);
    daemon.kill();
    check_trees(&grounds.up().door, trees, &agents);
}

fn with_an_index(grounds: &Grounds, trees: &[Tree], run_sql: &dyn Fn(&str)) {
    let daemon = grounds.up();
    let agents = import_trees(&daemon.door, trees);
    check_trees(&daemon.door, trees, &agents);
    daemon.kill();
    grounds.run(&["fsck"]).good();
    // The index lies: the daemon says so when it is asked, and makes it anew.
    run_sql("DELETE FROM message_ranges");
    let daemon = grounds.up();
    // No reader takes a history for whole that is not.
    let answers = agents.values().map(|agent| daemon.door.get(&format!("/api/agents/{agent}/history")));
    let refused: Vec<Answer> = answers.filter(|answer| answer.status == 503).collect();
    assert!(refused.len() > agents.len() / 2, "{} of {}", refused.len(), agents.len());
    assert!(refused.iter().all(|answer| answer.body.contains("`hatchery fsck --repair`")), "{:?}", refused[0]);
    let found = grounds.run(&["fsck"]);
    assert_eq!(found.code, Some(4), "{found:?}");
    assert!(found.stdout.contains("the index of agent"), "{found:?}");
    let mended = grounds.run(&["fsck", "--repair"]).good();
    assert!(mended.contains("mended"), "{mended}");
    check_trees(&daemon.door, trees, &agents);
    // It goes on from there.
    let agent = daemon.door.child(&daemon.door.root());
    for number in 0..150 {
        daemon.door.add(&agent, "user", &number.to_string());
    }
    daemon.kill();
    run_sql("DELETE FROM message_ranges");
    grounds.run(&["fsck", "--repair"]).good();
    let daemon = grounds.up();
    grounds.run(&["fsck"]).good();
    check_trees(&daemon.door, trees, &agents);
    assert_eq!(daemon.door.context(&agent).len(), 150);
}

fn trees() -> Vec<Tree> {
    let lines = fs::read_to_string(format!("{REPLAY}/random-trees.jsonl")).unwrap();
    let trees: Vec<Tree> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(trees.len(), 200);
    trees
}

/// Gives which of the file's agents became which.
fn import_trees(door: &Door, trees: &[Tree]) -> BTreeMap<String, String> {
    let imported = import(door, lines_of(trees).into());
    assert_eq!(imported.status, 201, "{imported:?}");
    serde_json::from_value(imported.json()["agents"].clone()).unwrap()
}

/// All trees in one file; the ids of each are moved so that none meet.
fn lines_of(trees: &[Tree]) -> String {
    let moved = |tree: &Tree, id: &Value| id.as_i64().map(|id| tree.case * TREE_IDS + id);
    let mut lines = String::new();
    for tree in trees {
        for agent in &tree.agents {
            let (id, parent) = (moved(tree, &agent["id"]), moved(tree, &agent["parent"]));
            let fork = moved(tree, &agent["fork_message_id"]);
            lines += &json!({ "agent": { "id": id, "parent": parent, "fork_message_id": fork } }).to_string();
            lines.push('\n');
        }
        for message in &tree.messages {
            let (id, agent) = (moved(tree, &message["id"]), moved(tree, &message["agent"]));
            lines += &json!({ "message": { "id": id, "agent": agent, "kind": message["kind"], "content": "x" } })
                .to_string();
            lines.push('\n');
        }
    }
    lines
}

fn check_trees(door: &Door, trees: &[Tree], agents: &BTreeMap<String, String>) {
    let mut http = door.http();
    let mut histories = 0;
    for tree in trees {
        let first = tree.case * TREE_IDS;
        for expected in &tree.expect {
            let agent = &agents[&(first + expected.agent).to_string()];
            let answer = runtime().block_on(http.get(&format!("/api/agents/{agent}/history?full=true")));
            let history = answer.expect("the daemon answers").json();
            let messages = history["messages"].as_array().unwrap();
            let source = |message: &Value| message["source_id"].as_i64().unwrap() - first;
            let ids: Vec<i64> = messages.iter().map(source).collect();
            assert_eq!(ids, expected.ids, "tree {}, agent {}", tree.case, expected.agent);
            let interrupted = messages.iter().filter(|message| message["interrupted"] == true);
            assert_eq!(interrupted.map(source).collect::<Vec<_>>(), expected.interrupted, "tree {}", tree.case);
            histories += 1;
        }
    }
    assert!(histories > 500);
}

/// The same through the doors that agents use: forks and messages, one by one.
#[test]
fn the_named_cases_come_out_as_expected_also_after_a_restart() {
    let cases: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(format!("{REPLAY}/named-cases.json")).unwrap()).unwrap();
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let played: Vec<_> = cases.iter().map(|case| (case, play(&daemon.door, case))).collect();
    check_cases(&daemon.door, &played);
    daemon.kill();
    check_cases(&grounds.up().door, &played);
}

fn play(door: &Door, case: &Value) -> BTreeMap<String, String> {
    let mut agents: BTreeMap<String, String> = BTreeMap::new();
    let named = |agents: &mut BTreeMap<String, String>, name: &str| {
        agents.entry(name.to_owned()).or_insert_with(|| door.child(&door.root())).clone()
    };
    for entry in case["log"].as_array().unwrap() {
        let [who, what, text] = [0, 1, 2].map(|at| entry[at].as_str().unwrap_or_default());
        if who == "FORK" {
            let parent = named(&mut agents, text);
            agents.insert(what.to_owned(), door.child(&parent));
        } else {
            let agent = named(&mut agents, who);
            door.add(&agent, what, text);
        }
    }
    named(&mut agents, case["leaf"].as_str().unwrap());
    agents
}

fn check_cases(door: &Door, played: &[(&Value, BTreeMap<String, String>)]) {
    let said = ["system", "user", "assistant", "tool_call", "tool_result"];
    for (case, agents) in played {
        let leaf = &agents[case["leaf"].as_str().unwrap()];
        if case["expect"].is_array() {
            let history = door.history(leaf);
            let texts = history.iter().filter(|message| said.contains(&message["kind"].as_str().unwrap()));
            assert_eq!(texts.map(|message| message["content"].clone()).collect::<Value>(), case["expect"], "{case}");
        }
        if case["expect_conversation"].is_array() {
            assert_eq!(json!(door.context(leaf)), case["expect_conversation"], "{case}");
        }
    }
}

#[test]
fn what_was_taken_back_stays_away_and_a_child_keeps_what_it_inherited() {
    let grounds = Grounds::with("snapshot_every = 100");
    let daemon = grounds.up();
    let door = &daemon.door;
    let agent = door.child(&door.root());
    let post = |path: &str, body: Value| door.post(&format!("/api/agents/{agent}/{path}"), &body);
    door.add(&agent, "user", "one");
    assert_eq!(post("mark", json!({ "label": "here" })).status, 201);
    door.add(&agent, "user", "taken back");
    let early = door.child(&agent);
    door.add(&agent, "assistant", "taken back, too");
    assert_eq!(post("rewind", json!({ "mark": "here" })).status, 201);
    let late = door.child(&agent);
    door.add(&agent, "user", "two");
    let kept = [(&agent, vec!["one", "two"]), (&early, vec!["one", "taken back"]), (&late, vec!["one"])];
    kept.iter().for_each(|(agent, texts)| assert_eq!(&door.context(agent), texts));
    post("rewind", json!({ "mark": "nowhere" })).refused(404, "no_such_mark");
    post("rewind", json!({ "message": 999 })).refused(404, "not_in_history");
    post("rewind", json!({ "mark": "here", "message": 1 })).refused(400, "two_targets");
    daemon.kill();
    let daemon = grounds.up();
    kept.iter().for_each(|(agent, texts)| assert_eq!(&daemon.door.context(agent), texts, "it came back"));
    // Enough to keep a snapshot and an index.
    for number in 0..120 {
        daemon.door.add(&early, "usage", &number.to_string());
    }
    let one = daemon.door.history(&agent)[0]["id"].as_u64().unwrap();
    let back = daemon.door.post(&format!("/api/agents/{agent}/rewind"), &json!({ "message": one }));
    assert_eq!(back.status, 201, "{back:?}");
    daemon.kill();
    let daemon = grounds.up();
    assert_eq!(daemon.door.context(&agent), ["one"]);
    kept[1..].iter().for_each(|(agent, texts)| assert_eq!(&daemon.door.context(agent), texts));
    assert_eq!(daemon.door.post(&format!("/api/agents/{agent}/clear"), &json!({})).status, 201);
    assert_eq!(daemon.door.context(&agent), [""; 0]);
    assert_eq!(daemon.door.context(&late), ["one"]);
}

mod import_of {
    use super::*;

    #[test]
    fn ids_that_are_no_numbers_leaves_the_order_of_the_file() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let lines = [
            json!({ "message": { "id": "m10", "agent": "b", "kind": "user", "content": "first" } }),
            json!({ "agent": { "id": "c", "parent": "b", "fork_message_id": "m9" } }),
            json!({ "message": { "id": "z", "agent": "c", "kind": "user", "content": "third" } }),
            json!({ "message": { "id": "m9", "agent": "b", "kind": "assistant", "content": { "no": "text" } } }),
            json!({ "message": { "id": 7, "agent": "b", "kind": "user", "content": null } }),
            json!({ "agent": { "id": "b", "parent": null, "fork_message_id": null } }),
        ];
        let imported = import(&daemon.door, lines.map(|line| format!("{line}\n\n")).concat().into());
        assert_eq!((imported.status, &imported.json()["messages"]), (201, &json!(4)), "{imported:?}");
        let agent = |name: &str| imported.json()["agents"][name].as_str().unwrap().to_owned();
        assert_eq!(daemon.door.context(&agent("b")), ["first", "{\"no\":\"text\"}", ""]);
        assert_eq!(daemon.door.context(&agent("c")), ["first", "{\"no\":\"text\"}", "third"]);
        assert_eq!(daemon.door.history(&agent("b"))[2]["source_id"], 7);
        assert_eq!(daemon.door.one(&agent("b"))["parent"], json!(daemon.door.root()));
        // They are agents like any other.
        daemon.door.add(&agent("c"), "user", "fourth");
        assert_eq!(daemon.door.context(&daemon.door.child(&agent("c"))).len(), 4);
    }

    #[test]
    fn what_is_wrong_is_refused_whole_and_in_json() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let head = daemon.door.head();
        let agent = "{\"agent\":{\"id\":1,\"parent\":null,\"fork_message_id\":null}}\n";
        let message = |kind: &str, content: &str| {
            format!("{{\"message\":{{\"id\":5,\"agent\":1,\"kind\":\"{kind}\",\"content\":\"{content}\"}}}}\n")
        };
        for (lines, words) in [
            ("not json".to_owned(), "line 1: "),
            (format!("{agent}\n{{}}\n"), "line 3: "),
            (format!("{agent}{}", message("shout", "")), "line 2: unknown variant `shout`"),
            (format!("{agent}{agent}"), "agent 1 is in the file twice"),
            (message("user", ""), "which is not in the file"),
            (format!("{agent}{}", message("rewind", "nowhere")), "goes back to `nowhere`"),
            (format!("{agent}{}", message("user", &"x".repeat((1 << 20) + 1))), "line 2: the message is 1048577 bytes"),
        ] {
            let refused = import(&daemon.door, lines.into());
            refused.refused(400, "bad_line");
            assert!(refused.body.contains(words), "{refused:?}");
        }
        import(&daemon.door, Bytes::from_static(b"\xff\xfe")).refused(400, "not_text");
        assert_eq!(daemon.door.head(), head, "something was taken in");
        let nothing = import(&daemon.door, Bytes::new());
        assert_eq!((nothing.status, &nothing.json()["agents"]), (201, &json!({})));
    }

    /// A file is larger than any other request may be.
    #[test]
    fn a_large_file_works_from_the_command_line() {
        let grounds = Grounds::with("max_body_bytes = 4096");
        let daemon = grounds.up();
        let file = grounds.path().join("large.jsonl");
        let mut lines = format!("{}\n", json!({ "agent": { "id": "a", "parent": null, "fork_message_id": null } }));
        for id in 0..3_000 {
            let text = "\"ü\0\" ".repeat(200);
            lines += &json!({ "message": { "id": id, "agent": "a", "kind": "user", "content": text } }).to_string();
            lines.push('\n');
        }
        fs::write(&file, &lines).unwrap();
        assert!(lines.len() > 1 << 22);
        let printed = grounds.run(&["history", "import", file.to_str().unwrap(), "--json"]).good();
        let imported: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(imported["messages"], 3_000);
        let agent = imported["agents"]["a"].as_str().unwrap();
        assert_eq!(daemon.door.one(agent)["messages"], 3_000);
        let printed = grounds.run(&["history", agent, "--json"]).good();
        let history: Value = serde_json::from_str(&printed).unwrap();
        let messages = history["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 3_000);
        for (number, message) in messages.iter().enumerate() {
            assert_eq!(message["source_id"], number);
        }
        // Others are still held to the limit.
        let long = daemon.door.say(agent, &"x".repeat(5_000));
        long.refused(413, "body_too_large");
        let ran = grounds.run(&["history", "import", "/no/such/file"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    }

    /// However deep: there is no recursion. Deeper ones would only take longer to write.
    #[test]
    fn a_chain_of_a_thousand_ancestors_is_replayed() {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let depth: i64 = 1_000;
        let mut lines = String::new();
        for id in (0..depth).rev() {
            let parent = (id > 0).then_some(id - 1);
            lines += &json!({ "agent": { "id": id, "parent": parent, "fork_message_id": parent } }).to_string();
            lines.push('\n');
            lines +=
                &json!({ "message": { "id": id, "agent": id, "kind": "user", "content": id.to_string() } }).to_string();
            lines.push('\n');
        }
        let imported = import(&daemon.door, lines.into());
        assert_eq!(imported.status, 201, "{imported:.200?}");
        let leaf = imported.json()["agents"][(depth - 1).to_string()].as_str().unwrap().to_owned();
        let all: Vec<String> = (0..depth).map(|id| id.to_string()).collect();
        assert!(daemon.door.context(&leaf) == all);
        daemon.kill();
        assert!(grounds.up().door.context(&leaf) == all);
    }
}

/// Ids of the log are everybody's; a place in a history is one of its own messages.
#[test]
fn only_a_message_of_the_history_is_a_place_to_go_back_to() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let [ann, ben] = [door.child(&door.root()), door.child(&door.root())];
    let first = door.add(&ann, "user", "one");
    let foreign = door.add(&ben, "user", "two");
    door.add(&ann, "user", "three");
    for nowhere in [foreign, first - 1, 9_999] {
        door.fork(json!({ "parent": ann, "at": nowhere })).refused(404, "not_in_history");
        door.post(&format!("/api/agents/{ann}/rewind"), &json!({ "message": nowhere })).refused(404, "not_in_history");
    }
    let child = door.fork(json!({ "parent": ann, "at": first })).id();
    assert_eq!(door.context(&child), ["one"]);
    assert_eq!(door.context(&ann), ["one", "three"]);
}

/// A file is taken in by many transactions, and yet whole or not at all.
#[test]
fn a_file_that_is_refused_leaves_nothing_behind() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let message = |id: u32, kind: &str, content: &str| {
        json!({ "message": { "id": id, "agent": 1, "kind": kind, "content": content } }).to_string() + "\n"
    };
    let agent = json!({ "agent": { "id": 1, "parent": null, "fork_message_id": null } }).to_string() + "\n";
    let long: String = (1..=700).map(|id| message(id, "user", "x")).collect();
    let label_too_long = format!("{agent}{long}{}", message(701, "mark", &"m".repeat(300)));
    let back_behind_a_clear =
        [agent.clone(), message(1, "user", "x"), message(2, "clear", ""), message(3, "rewind", "1")].concat();
    let before = daemon.door.get("/api/status").json()["head"].clone();
    for file in [label_too_long, back_behind_a_clear] {
        let refused = import(&daemon.door, file.into());
        assert!((400..500).contains(&refused.status), "{refused:?}");
        assert_eq!(daemon.door.get("/api/status").json()["head"], before);
    }
}

/// Nothing may make the index shorter under a daemon; if something does, no history loses a message for longer than until
/// the next checkpoint.
#[test]
fn an_index_that_was_cut_under_the_daemon_is_made_up_for() {
    let grounds = Grounds::with("snapshot_every = 100");
    let daemon = grounds.up();
    let agent = daemon.door.child(&daemon.door.root());
    let speak = |count| {
        for _ in 0..count {
            daemon.door.add(&agent, "user", "x");
        }
    };
    let database = rusqlite::Connection::open(grounds.database()).unwrap();
    let indexed = || database.query_row("SELECT upto FROM indexed", [], |row| row.get::<_, u64>(0)).unwrap();
    speak(150);
    assert!(indexed() >= 100);
    database.execute_batch("DELETE FROM message_ranges; UPDATE indexed SET upto = 0, again = 0").unwrap();
    // The first checkpoint finds out, a later one writes the whole.
    while indexed() < 300 {
        speak(50);
    }
    let expected = daemon.door.one(&agent)["messages"].as_u64().unwrap();
    assert_eq!(daemon.door.history(&agent).len() as u64, expected);
    daemon.kill();
    let daemon = grounds.up();
    assert_eq!(daemon.door.history(&agent).len() as u64, expected);
    grounds.run(&["fsck"]).good();
}

/// The rows of the log have checksums, those of the index have none.
#[test]
fn a_history_whose_index_was_altered_is_refused_and_not_shortened() {
    let grounds = Grounds::with("snapshot_every = 100");
    let daemon = grounds.up();
    let (one, other) = (daemon.door.child(&daemon.door.root()), daemon.door.child(&daemon.door.root()));
    for _ in 0..60 {
        daemon.door.add(&one, "user", "of one");
        daemon.door.add(&other, "user", "of the other");
    }
    let whole = daemon.door.history(&one);
    daemon.kill();
    let database = rusqlite::Connection::open(grounds.database()).unwrap();
    let ids: String = database
        .query_row("SELECT ids FROM message_ranges WHERE agent = ?1 ORDER BY first LIMIT 1", [&one], |row| row.get(0))
        .unwrap();
    let pairs: Vec<(u64, u64)> = serde_json::from_str(&ids).unwrap();
    let last = pairs.len() - 1;
    // One message less; one of the other agent instead; one of the other agent more.
    let altered: [fn(&mut (u64, u64)); 3] =
        [|pair| *pair = (2, 1), |pair| *pair = (pair.0 + 1, pair.1 + 1), |pair| pair.1 += 1];
    for alter in altered {
        let mut changed = pairs.clone();
        alter(&mut changed[last]);
        let changed = serde_json::to_string(&changed).unwrap();
        let sql = "UPDATE message_ranges SET ids = ?1 WHERE agent = ?2 AND ids IN (?3, ?4)";
        database.execute(sql, [&changed, &one, &ids, &changed]).unwrap();
        let daemon = grounds.up();
        let refused = grounds.run(&["history", &one]);
        assert!(refused.code == Some(3) && refused.stderr.contains("does not fit the log"), "{changed}: {refused:?}");
        let thread = daemon.door.get(&format!("/api/agents/{one}/thread"));
        assert_eq!(thread.status, 503, "{thread:?}");
        assert_eq!(daemon.door.history(&other).len(), whole.len());
        grounds.run(&["fsck", "--repair"]).good();
        assert_eq!(daemon.door.history(&one), whole);
        daemon.kill();
        let restore = "UPDATE message_ranges SET ids = ?1 WHERE agent = ?2";
        database.execute(restore, [&ids, &one]).unwrap();
    }
}

fn import(door: &Door, lines: Bytes) -> Answer {
    runtime().block_on(async {
        let response = door.http().send(hyper::Method::POST, "/api/history/import", &[], lines).await.unwrap();
        let status = response.status().as_u16();
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        Answer { status, body: String::from_utf8(body.to_vec()).unwrap() }
    })
}
