//! What one sees at a glance: what agents do, what a kill would do, what was changed, what is asked.

use crate::support::daemon::Grounds;
use crate::support::quest::{SHORT, WARDED, done, signal, step, text, write};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;

/// The agents that a query gives, by their ids.
fn agents(shop: &Workshop, query: &str) -> Vec<Value> {
    let answer = shop.door().get(&format!("/api/agents{query}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["agents"].as_array().unwrap().clone()
}

#[test]
fn the_list_of_agents_says_what_each_does_and_how_that_is_known() {
    let shop = Workshop::open();
    let call = json!({ "tool": { "name": "Bash", "input": { "command": "cargo test" }, "result": "ok" } });
    let worker = shop.run(&[text("I begin."), call, json!({ "sleep_ms": 600_000 })]);
    shop.wait("the result of its tool", |event| {
        event["agent"] == worker.as_str() && event["type"] == "message_added" && event["kind"] == "tool_result"
    });
    let idle = shop.door().child(&shop.door().root());
    let all = agents(&shop, "");
    let of = |id: &str| all.iter().find(|agent| agent["id"] == id).unwrap().clone();
    let shown = of(&worker);
    assert_eq!(shown["activity"], "working", "{shown:#}");
    assert_eq!((&shown["doing"]["tool"], &shown["doing"]["line"]), (&json!("Bash"), &json!("cargo test")), "{shown:#}");
    assert!(shown["evidence"]["what"].as_str().unwrap().contains("run 1, attempt 1 is process"), "{shown:#}");
    assert_eq!(shop.door().one(&worker)["doing"], shown["doing"]);
    assert_eq!((&of(&idle)["activity"], &of(&idle)["doing"]), (&json!("resting"), &Value::Null));
    let active: Vec<Value> = agents(&shop, "?active=true").iter().map(|agent| agent["id"].clone()).collect();
    assert_eq!(active, [json!(worker)]);
    shop.door().kill(&idle, json!({}));
    assert!(agents(&shop, "?living=true").iter().all(|agent| agent["id"] != idle.as_str()));
    shop.stop(&worker);
    shop.end(&worker);
}

#[test]
fn what_a_kill_would_do_is_what_it_does() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let top = door.child(&door.root());
    let middle = door.child(&top);
    let (one, two) = (door.child(&middle), door.child(&middle));
    let preview = |agent: &str, query: &str| door.get(&format!("/api/agents/{agent}/kill{query}")).json();
    let head = door.head();
    let moved = preview(&middle, "");
    assert_eq!(moved["killed"], json!([middle]));
    let mut children: Vec<&str> =
        moved["moved"].as_array().unwrap().iter().map(|it| it["agent"].as_str().unwrap()).collect();
    let mut expected = [one.as_str(), two.as_str()];
    children.sort_unstable();
    expected.sort_unstable();
    assert_eq!(children, expected);
    assert!(moved["moved"].as_array().unwrap().iter().all(|it| it["to"] == top.as_str()), "{moved}");
    let all = preview(&top, "?cascade=true");
    assert_eq!((all["killed"].as_array().unwrap().len(), &all["killed"][0]), (4, &json!(top)));
    assert_eq!(door.head(), head, "looking changes nothing");
    door.get(&format!("/api/agents/{}/kill", door.root())).refused(409, "root_is_immortal");
}

#[test]
fn what_a_step_and_an_agent_have_changed_can_be_seen_while_they_work_and_afterwards() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let gate = shop.gate();
    let script = [
        write("a.txt", "one\nTWO\nthree\n"),
        write("src/new.txt", "x\ny\n"),
        text("written"),
        gate.pass(),
        done("changed"),
    ];
    let book = shop.playbook().play("a.codeweaver", &script);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "isolation": "worktree" }));
    let agent = shop.hired(&quest, "a", "codeweaver");
    shop.wait_said(&agent, "written");
    let see = |path: &str| {
        let answer = shop.door().get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    };
    let of_step = format!("/api/quests/{quest}/steps/a/changes");
    let now = see(&of_step);
    let file = |path: &str, how: &str, added: u64, removed: u64| json!({ "path": path, "how": how, "added": added, "removed": removed, "binary": false });
    assert_eq!(now["files"], json!([file("a.txt", "modified", 1, 1), file("src/new.txt", "added", 2, 0)]), "{now:#}");
    assert_eq!((&now["added"], &now["removed"], &now["truncated"]), (&json!(3), &json!(1), &json!(false)));
    assert_eq!(see(&format!("/api/agents/{agent}/changes")), now);
    let diff = see(&format!("{of_step}?file=a.txt"));
    assert!(diff["diff"].as_str().unwrap().contains("-two\n+TWO\n"), "{diff}");
    let diff = see(&format!("{of_step}?file=src/new.txt"));
    assert!(diff["diff"].as_str().unwrap().contains("+x\n+y\n"), "{diff}");
    assert_eq!(see(&format!("/api/quests/{quest}/changes"))["files"], json!([]), "nothing is merged yet");
    for path in ["../../../etc/passwd", "*.txt", "nothing.txt"] {
        shop.door().get(&format!("{of_step}?file={path}")).refused(404, "not_changed");
    }
    gate.open();
    shop.complete(&quest);
    let worktrees = shop.worktrees(&quest);
    crate::quests::wait_until("the worktrees are gone", || !worktrees.exists());
    let merged = see(&of_step);
    assert_eq!(merged["files"], now["files"], "the merge has the same: {merged:#}");
    assert_eq!(see(&format!("/api/quests/{quest}/changes"))["files"], now["files"]);
    // An agent without a quest works in the user's checkout.
    fs::write(shop.grounds.path().join("a.txt"), "one\n").unwrap();
    let user = see(&format!("/api/agents/{}/changes", shop.door().root()));
    assert_eq!(user["files"], json!([file("a.txt", "modified", 0, 2)]), "{user:#}");
    assert_eq!(shop.git(&["status", "--porcelain"]), " M a.txt");
}

#[test]
fn what_a_ward_said_can_be_read_in_parts() {
    let shop = Workshop::with(WARDED, Vec::new());
    let ward = "echo first; echo second";
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("a", &[])], "ward": ward }));
    shop.complete(&quest);
    let number = shop.wait_step(&quest, "a", "ward_ended")["number"].clone();
    let wards = shop.step(&quest, "a")["wards"].clone();
    assert_eq!((&wards[0]["number"], &wards[0]["verdict"]), (&number, &json!("green")), "{wards:#}");
    assert!(wards[0]["started"].as_i64() <= wards[0]["ended"].as_i64(), "{wards:#}");
    let path = format!("/api/quests/{quest}/steps/a/wards/{number}/output");
    let part = |query: &str| shop.door().get(&format!("{path}{query}")).json();
    assert_eq!(part(""), json!({ "from": 0, "upto": 13, "size": 13, "text": "first\nsecond\n" }));
    assert_eq!(part("?from=6&limit=3")["text"], "sec");
    assert_eq!(part("?from=-7")["text"], "second\n");
    shop.door().get(&format!("/api/quests/{quest}/steps/a/wards/99/output")).refused(404, "no_ward_output");
    shop.door().get(&format!("/api/quests/{quest}/steps/..%2F..%2Fa/wards/1/output")).refused(404, "no_ward_output");
}

#[test]
fn a_question_says_where_it_is_from_and_what_it_takes() {
    let shop = Workshop::with(SHORT, Vec::new());
    let asked = json!({ "question": "Stone or wood?", "context": "Both are there.", "choices": ["Stone", "Wood"] });
    let asks = signal("needs-user-input", asked);
    let book = shop.playbook().play("a.codeweaver", &[asks]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    let (id, _) = shop.asked(&quest, 1);
    let list = shop.door().get("/api/questions").json();
    let asked = list["questions"].as_array().unwrap().iter().find(|it| it["id"] == id).unwrap().clone();
    assert_eq!((&asked["quest"], &asked["step"]), (&json!(quest), &json!("a")), "{asked:#}");
    let takes = json!({
        "words": [], "amount": false, "reason": false, "ward": false, "text": true, "choices": ["Stone", "Wood"]
    });
    assert_eq!(asked["takes"], takes);
    let told = shop.grounds.run(&["ask", "list"]).good();
    assert!(told.contains("- Stone\n") && told.contains("- Wood\n"), "{told}");
    assert_eq!((&asked["text"], &asked["context"]), (&json!("Stone or wood?"), &json!("Both are there.")));
    let given = shop.step(&quest, "a")["signals"].clone();
    assert_eq!(given[0]["signal"]["needs-user-input"]["question"], "Stone or wood?", "{given:#}");
    assert_eq!((&given[0]["agent"], &given[0]["role"]), (&asked["agent"], &json!("codeweaver")));
    let agent = asked["agent"].as_str().unwrap();
    assert_eq!(shop.door().one(agent)["question"], id, "its agent says so, too");
}

#[test]
fn the_log_is_read_in_both_directions_and_by_filters_without_a_gap() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let (ann, ben) = (door.child(&door.root()), door.child(&door.root()));
    let of_ann: Vec<u64> = (0..7).map(|number| door.add(&ann, "user", &format!("Word {number}"))).collect();
    door.add(&ben, "user", "word");
    let mail = door.mail(&ben, &ann, "hello");
    let see = |query: &str| {
        let answer = door.get(&format!("/api/events.json?{query}"));
        assert_eq!(answer.status, 200, "{query}: {answer:?}");
        answer.json()
    };
    let ids = |page: &Value| -> Vec<u64> {
        page["events"].as_array().unwrap().iter().map(|event| event["id"].as_u64().unwrap()).collect()
    };
    let head = door.head();
    // Backwards, three at a time, from the end to the beginning.
    let (mut before, mut seen) = (head + 1, Vec::new());
    loop {
        let page = see(&format!("before={before}&limit=3"));
        seen.splice(0..0, ids(&page));
        before = page["from"].as_u64().unwrap() + 1;
        if page["more"] == false {
            break;
        }
    }
    assert_eq!(seen, (1..=head).collect::<Vec<_>>());
    let said = see(&format!("agent={ann}&type=message_added"));
    assert_eq!(ids(&said), of_ann);
    let last = see(&format!("agent={ann}&type=message_added&limit=2&before={}", head + 1));
    assert_eq!((ids(&last), &last["more"]), (of_ann[5..].to_vec(), &json!(true)));
    assert_eq!(ids(&see("words=word%206")), of_ann[6..]);
    assert_eq!(ids(&see("words=WORD&type=message_added")).len(), 8);
    assert_eq!(ids(&see(&format!("agent={ann}&type=mail_sent"))), [mail], "also what it gets");
    let count = door.get(&format!("/api/events/count?agent={ann}&type=message_added")).json();
    assert_eq!((&count["count"], &count["upto"], &count["head"]), (&json!(7), &json!(head), &json!(head)));
    let all = see("limit=1000");
    let at = |ts: &Value| door.get(&format!("/api/events/at?ts={ts}")).json()["after"].as_u64().unwrap();
    assert_eq!((at(&json!(0)), at(&json!(i64::MAX))), (0, head));
    let middle = &all["events"][4];
    assert!(at(&middle["ts"]) < middle["id"].as_u64().unwrap(), "the moment is before what happened then");
}

#[test]
fn a_long_history_is_read_from_its_end() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let agent = door.child(&door.root());
    let ids: Vec<u64> = (0..5).map(|number| door.add(&agent, "user", &number.to_string())).collect();
    let see = |query: &str| door.get(&format!("/api/agents/{agent}/history?{query}")).json();
    let said = |page: &Value| -> Vec<String> {
        page["messages"].as_array().unwrap().iter().map(|it| it["content"].as_str().unwrap().to_owned()).collect()
    };
    let last = see("limit=2");
    assert_eq!((said(&last), &last["earlier"]), (vec!["3".into(), "4".into()], &json!(3)));
    let before = see(&format!("limit=2&before={}", ids[3]));
    assert_eq!((said(&before), &before["earlier"]), (vec!["1".into(), "2".into()], &json!(1)));
    assert_eq!((said(&see("")).len(), &see("")["earlier"]), (5, &json!(0)));
}

#[test]
fn mail_is_looked_at_with_its_state_and_stays_as_it_is() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let door = &daemon.door;
    let (ann, ben) = (door.child(&door.root()), door.child(&door.root()));
    let one = door.mail("human", &ann, "one");
    door.mail(&ben, &ann, "two");
    let three = door.mail(&ann, "human", "three");
    door.read_mail(&ann);
    let see = |query: &str| door.get(&format!("/api/mail/{query}")).json();
    let seen = |list: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        list["mail"].as_array().unwrap().iter().map(|it| (text(&it["body"]), text(&it["state"]))).collect()
    };
    let pairs = |expected: &[(&str, &str)]| -> Vec<(String, String)> {
        expected.iter().map(|(body, state)| ((*body).to_owned(), (*state).to_owned())).collect()
    };
    let all = see(&format!("{ann}/threads"));
    assert_eq!(seen(&all), pairs(&[("one", "read"), ("two", "queued"), ("three", "queued")]));
    assert_eq!(seen(&see("human/threads")), pairs(&[("one", "read"), ("three", "queued")]));
    assert_eq!(seen(&see(&format!("{ann}/threads?with={ben}"))), pairs(&[("two", "queued")]));
    let last = see("human/threads?limit=1");
    assert_eq!(seen(&last), pairs(&[("three", "queued")]));
    let before = last["before"].as_u64().unwrap();
    assert!(one < before && before <= three, "{last}");
    assert_eq!(seen(&see(&format!("human/threads?before={before}"))), pairs(&[("one", "read")]));
    assert_eq!(door.unread("human"), [(three, "queued".to_owned())], "looking is not reading");
}
