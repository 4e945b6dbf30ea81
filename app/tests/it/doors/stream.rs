//! `GET /api/events`: the log as it grows.

use super::house::{House, Rules};
use super::raw::{Line, Parts, request};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::Duration;

/// A client of the stream that sees every frame.
struct Frames {
    line: Line,
    text: String,
}

impl Frames {
    fn of(house: &House, query: &str, headers: &[(&str, &str)]) -> Self {
        Self::on(house.line(), house, query, headers)
    }

    fn on(mut line: Line, house: &House, query: &str, headers: &[(&str, &str)]) -> Self {
        let headers = [&house.welcome(), headers].concat();
        line.send(&request("GET", &format!("/api/events{query}"), Parts { headers: &headers, body: b"" }));
        let head = line.head().unwrap().unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")), "{head:?}");
        let mut frames = Self { line, text: String::new() };
        assert_eq!(frames.next().unwrap(), "retry:1000", "the first frame says when to come back");
        frames
    }

    /// The next frame of any sort, or nothing when the stream has ended as it should.
    fn next(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let frame = frame.to_owned();
                self.text = rest.to_owned();
                return Some(frame);
            }
            let chunk = self.line.chunk().unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next frame, which must be an event: its id, which its data must repeat.
    fn event(&mut self) -> u64 {
        let frame = self.next().expect("another event");
        let mut lines = frame.lines();
        let id = lines.next().and_then(|line| line.strip_prefix("id:")).unwrap_or_else(|| panic!("no id: {frame:?}"));
        let data = lines.next().and_then(|line| line.strip_prefix("data:")).unwrap_or_else(|| panic!("{frame:?}"));
        assert_eq!(lines.next(), None, "an event is two lines: {frame:?}");
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(event["id"].to_string(), id);
        assert!(event["ts"].is_i64() && event["type"].is_string() && event.get("sessionId").is_some(), "{event}");
        id.parse().unwrap()
    }

    fn events<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.event())
    }
}

#[test]
fn a_stream_begins_where_the_cursor_says() {
    let house = House::open();
    house.fill(4);
    for query in ["", "?after=0", "?after=-1"] {
        assert_eq!(Frames::of(&house, query, &[]).events(), [1, 2, 3, 4], "{query}");
    }
    assert_eq!(Frames::of(&house, "?after=2", &[]).events(), [3, 4]);
    assert_eq!(Frames::of(&house, "", &[("last-event-id", "3")]).events(), [4]);
    for seen in ["0", "-1", ""] {
        assert_eq!(Frames::of(&house, "", &[("last-event-id", seen)]).events(), [1, 2, 3, 4], "{seen:?}");
    }
}

#[test]
fn the_address_wins_over_the_header() {
    let house = House::open();
    house.fill(3);
    assert_eq!(Frames::of(&house, "?after=2", &[("last-event-id", "1")]).events(), [3]);
    assert_eq!(Frames::of(&house, "?after=0", &[("last-event-id", "2")]).events(), [1, 2, 3]);
    // What does not count need not be right.
    assert_eq!(Frames::of(&house, "?after=2", &[("last-event-id", "nonsense")]).events(), [3]);
}

#[test]
fn what_happens_after_the_catch_up_follows_without_a_gap() {
    let house = House::open();
    house.fill(2);
    let mut late = Frames::of(&house, "?after=2", &[]);
    let mut early = Frames::of(&house, "", &[]);
    assert_eq!(early.events(), [1, 2]);
    for expected in 3..10 {
        house.agent();
        assert_eq!((early.event(), late.event()), (expected, expected));
    }
}

#[test]
fn a_cursor_that_is_none_is_refused() {
    let house = House::open();
    house.fill(2);
    let cases = [
        ("after=NaN", "bad_query"),
        ("after=", "bad_query"),
        ("after=1e3", "bad_query"),
        ("after=1.0", "bad_query"),
        ("after=0x1", "bad_query"),
        ("after=99999999999999999999", "bad_query"),
        ("after=1&after=2", "bad_query"),
        ("after=%ff", "bad_query"),
        ("since=1", "bad_query"),
        ("after=-2", "bad_cursor"),
        ("after=-9223372036854775808", "bad_cursor"),
        ("after=3", "cursor_beyond_log"),
        ("after=9223372036854775807", "cursor_beyond_log"),
    ];
    for path in ["/api/events", "/api/events.json"] {
        for (query, code) in cases {
            let reply = house.get(&format!("{path}?{query}"));
            assert_eq!((reply.status, reply.code().as_str()), (400, code), "{path}?{query}: {reply:?}");
        }
    }
    for seen in ["NaN", "1e3", "99999999999999999999", "-2", "3", "1 2"] {
        let headers = [&house.welcome()[..], &[("last-event-id", seen)]].concat();
        let reply = house.line().ask("GET", "/api/events", Parts { headers: &headers, body: b"" });
        assert_eq!(reply.status, 400, "{seen}: {reply:?}");
        reply.code();
    }
}

#[test]
fn heartbeats_are_comments_and_leave_no_trace() {
    let house = House::with(Rules { heartbeat: Duration::from_millis(20), ..Rules::default() });
    house.fill(1);
    let mut frames = Frames::of(&house, "", &[]);
    assert_eq!(frames.event(), 1);
    for _ in 0..3 {
        assert_eq!(frames.next().unwrap(), ":");
    }
    house.fill(2);
    let after = std::iter::from_fn(|| frames.next()).find(|frame| frame != ":").unwrap();
    assert!(after.starts_with("id:2\n"), "{after}");
    assert_eq!(house.get("/api/events.json").json()["head"], 2);
}

/// More pages than the live channel holds, and more bytes than the sockets do: only the log can have what the reader gets.
#[test]
fn a_reader_that_falls_behind_gets_everything_once_from_the_log() {
    const MESSAGES: u64 = 400;
    let house = House::open();
    let agent = house.agent();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(&house.address.into()).unwrap();
    let mut slow = Frames::on(Line::over(TcpStream::from(socket)), &house, "", &[]);
    assert_eq!(slow.events(), [1, 2]);
    let body = json!({ "kind": "user", "content": "x".repeat(48 << 10) }).to_string();
    let mut writer = house.line();
    for _ in 0..MESSAGES {
        let parts = Parts { headers: &house.welcome(), body: body.as_bytes() };
        assert_eq!(writer.ask("POST", &format!("/api/agents/{agent}/messages"), parts).status, 201);
    }
    for expected in 3..=MESSAGES + 2 {
        assert_eq!(slow.event(), expected);
    }
    house.agent();
    assert_eq!(slow.event(), MESSAGES + 3);
}

#[test]
fn streams_end_when_the_daemon_does() {
    let mut house = House::open();
    house.fill(1);
    let mut frames = Frames::of(&house, "", &[]);
    assert_eq!(frames.event(), 1);
    house.close();
    assert_eq!(frames.next(), None, "the stream ends with its last chunk, not in the middle");
    assert!(frames.line.is_at_end());
}

#[test]
fn asking_for_the_head_of_a_stream_opens_none() {
    let house = House::open();
    let mut line = house.line();
    let parts = Parts { headers: &house.welcome(), body: b"" };
    let head = line.ask("HEAD", "/api/events", parts);
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(line.ask("GET", "/api/health", parts).status, 200, "the connection goes on");
}

/// Two agents that get messages in turn: events 1 and 2 make them, then `count` for each.
fn two_agents(house: &House, count: usize) -> [String; 2] {
    let agents = [house.agent(), house.agent()];
    for _ in 0..count {
        for agent in &agents {
            say(house, agent);
        }
    }
    agents
}

fn say(house: &House, agent: &str) {
    let body = json!({ "kind": "user", "content": "x" }).to_string();
    let parts = Parts { headers: &house.welcome(), body: body.as_bytes() };
    assert_eq!(house.line().ask("POST", &format!("/api/agents/{agent}/messages"), parts).status, 201);
}

#[test]
fn a_filter_is_applied_by_the_daemon_to_what_was_and_to_what_comes() {
    let house = House::open();
    let [ann, ben] = two_agents(&house, 2);
    let first = house.get(&format!("/api/agents/{ann}")).json();
    let all = house.get("/api/events.json").json();
    let of = |agent: &str| -> Vec<u64> {
        let events = all["events"].as_array().unwrap().iter();
        events.filter(|event| event["agent"] == agent).map(|event| event["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(first["head"], all["head"], "an answer says of which event it is");
    let mut frames = Frames::of(&house, &format!("?agent={ann}"), &[]);
    for expected in of(&ann) {
        assert_eq!(frames.event(), expected);
    }
    let mut both = Frames::of(&house, &format!("?agent={ann},{ben}&type=message_added"), &[]);
    let mut messages: Vec<u64> = [of(&ann), of(&ben)].concat();
    messages.sort_unstable();
    let messages: Vec<u64> = messages
        .into_iter()
        .filter(|id| {
            all["events"].as_array().unwrap().iter().any(|event| event["id"] == *id && event["type"] == "message_added")
        })
        .collect();
    for expected in &messages {
        assert_eq!(both.event(), *expected);
    }
    let head = all["head"].as_u64().unwrap();
    say(&house, &ben);
    say(&house, &ann);
    assert_eq!(frames.event(), head + 2, "the other agent's message is left out");
    assert_eq!(both.events(), [head + 1, head + 2]);
    let page = house.get(&format!("/api/events.json?agent={ben}&type=message_added&limit=1000")).json();
    assert_eq!(page["events"].as_array().unwrap().len(), 3);
}

/// A client whose filter matches nothing must not search the same events again whenever it comes back.
#[test]
fn a_filtered_stream_moves_the_cursor_of_a_client_that_gets_no_events() {
    let house = House::with(Rules { heartbeat: Duration::from_millis(20), ..Rules::default() });
    let [ann, ben] = two_agents(&house, 1);
    let head = house.get("/api/events.json").json()["head"].as_u64().unwrap();
    let mut frames = Frames::of(&house, "?type=run_ended", &[]);
    let moved = |frames: &mut Frames| std::iter::from_fn(|| frames.next()).find(|frame| frame != ":").unwrap();
    assert_eq!(moved(&mut frames), format!("id:{head}"), "an id without data");
    say(&house, &ben);
    assert_eq!(moved(&mut frames), format!("id:{}", head + 1));
    // It comes back with that id, and gets what came meanwhile, each once.
    drop(frames);
    say(&house, &ann);
    let seen = (head + 1).to_string();
    let mut again = Frames::of(&house, &format!("?agent={ann}"), &[("last-event-id", &seen)]);
    assert_eq!(moved(&mut again).lines().next().unwrap(), format!("id:{}", head + 2));
}

#[test]
fn a_filter_that_means_nothing_is_refused() {
    let house = House::open();
    house.fill(1);
    let known = "?type=message_added";
    for path in ["/api/events", "/api/events.json"] {
        for query in ["agent=nobody", "agent=", "quest=nothing", "type=run_endet", "type=", "type=run_ended,,x"] {
            let reply = house.get(&format!("{path}?{query}"));
            assert_eq!((reply.status, reply.code().as_str()), (400, "bad_filter"), "{path}?{query}: {reply:?}");
        }
        let many = vec!["run_ended"; 51].join(",");
        assert_eq!(house.get(&format!("{path}?type={many}")).code(), "bad_filter");
    }
    assert_eq!(house.get(&format!("/api/events.json{known}")).status, 200);
}
