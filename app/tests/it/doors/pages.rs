//! `GET /api/events.json` and `GET /api/export`: the log in pieces, and whole.

use super::house::House;
use serde_json::{Value, json};

fn ids(page: &Value) -> Vec<u64> {
    page["events"].as_array().unwrap().iter().map(|event| event["id"].as_u64().unwrap()).collect()
}

#[test]
fn a_walk_over_the_pages_meets_every_event_once() {
    let house = House::open();
    house.fill(7);
    let mut seen = Vec::new();
    loop {
        let page = house.get(&format!("/api/events.json?after={}&limit=3", seen.len())).json();
        assert_eq!(page["head"], 7);
        let found = ids(&page);
        assert!(found.len() <= 3);
        if found.is_empty() {
            break;
        }
        seen.extend(found);
    }
    assert_eq!(seen, (1..=7).collect::<Vec<_>>());
    assert_eq!(ids(&house.get("/api/events.json?after=-1&limit=1").json()), [1]);
}

#[test]
fn a_limit_out_of_range_is_refused() {
    let house = House::open();
    for (limit, code) in [
        ("0", "bad_limit"),
        ("1001", "bad_limit"),
        ("4294967295", "bad_limit"),
        ("-1", "bad_query"),
        ("ten", "bad_query"),
    ] {
        let reply = house.get(&format!("/api/events.json?limit={limit}"));
        assert_eq!((reply.status, reply.code().as_str()), (400, code), "{limit}: {reply:?}");
    }
    assert_eq!(house.get("/api/events.json?limit=1000").status, 200);
}

#[test]
fn a_page_has_100_events_unless_asked_otherwise() {
    let house = House::open();
    house.fill(101);
    assert_eq!(ids(&house.get("/api/events.json").json()).len(), 100);
    assert_eq!(ids(&house.get("/api/events.json?limit=1000").json()).len(), 101);
}

#[test]
fn long_messages_make_short_pages() {
    let house = House::open();
    let agent = house.agent();
    for _ in 0..4 {
        let message = json!({ "kind": "assistant", "content": "x".repeat(200 << 10) });
        house.make(&format!("/api/agents/{agent}/messages"), &message);
    }
    let first = house.get("/api/events.json?limit=1000").json();
    assert_eq!((ids(&first), &first["head"]), (vec![1, 2, 3], &json!(6)));
    assert_eq!(ids(&house.get("/api/events.json?after=3").json()), [4]);
}

#[test]
fn an_export_is_the_same_events_one_a_line() {
    let house = House::open();
    house.fill(3);
    let export = house.get("/api/export");
    assert_eq!(export.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = export.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!(lines), house.get("/api/events.json").json()["events"]);
}

#[test]
fn a_map_tells_when_each_part_of_the_log_began() {
    let house = House::open();
    house.fill(21);
    let map = house.get("/api/events/map?parts=5").json();
    assert_eq!(map["head"], 21);
    let parts = map["parts"].as_array().unwrap();
    let firsts: Vec<u64> = parts.iter().map(|part| part["first"].as_u64().unwrap()).collect();
    assert_eq!(firsts, [1, 5, 9, 13, 17]);
    for (first, part) in firsts.iter().zip(parts) {
        let page = house.get(&format!("/api/events.json?after={}&limit=1", first - 1)).json();
        assert_eq!(page["events"][0]["ts"], part["ts"]);
    }
    // A log that is shorter than the map has a part for each event.
    assert_eq!(house.get("/api/events/map?parts=200").json()["parts"].as_array().unwrap().len(), 21);
}
