//! How much of the daemon one client may take: connections, time and bytes.

use super::house::{House, Rules};
use super::raw::{Line, Parts};
use crate::support::daemon::wait_until;
use hatchery::history_import::MAX_LINES;
use hatchery::http::Limits;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_millis(100);

#[test]
fn a_full_house_says_so_and_has_room_again_later() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let house = House::with(Rules { limits, ..Rules::default() });
    let parts = Parts { headers: &house.welcome(), body: b"" };
    let mut inside = [house.line(), house.line()];
    for line in &mut inside {
        assert_eq!(line.ask("GET", "/api/status", parts).status, 200);
    }
    let mut outside = house.line();
    let reply = outside.ask("GET", "/api/status", parts);
    assert_eq!((reply.status, reply.code().as_str()), (503, "too_many_connections"));
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(outside.is_at_end());
    let [first, mut second] = inside;
    drop(first);
    let deadline = Instant::now() + crate::support::daemon::PATIENCE;
    while house.line().ask("GET", "/api/status", parts).status != 200 {
        assert!(Instant::now() < deadline, "a place that was given back stays taken");
    }
    assert_eq!(second.ask("GET", "/api/status", parts).status, 200, "those inside are not disturbed");
}

#[test]
fn a_client_that_does_not_finish_its_head_is_cut_off() {
    let limits = Limits { head_timeout: SOON, ..Limits::default() };
    let house = House::with(Rules { limits, ..Rules::default() });
    for beginning in ["", "GET /api/he", "GET /api/health HTTP/1.1\r\nhost: local"] {
        let mut line = house.line();
        line.send(beginning.as_bytes());
        assert!(line.is_at_end(), "{beginning:?}");
    }
}

#[test]
fn a_client_that_does_not_finish_its_body_is_told() {
    let house = House::with(Rules { request_timeout: SOON, ..Rules::default() });
    let before = house.head();
    let mut line = house.line();
    let head = format!(
        "POST /api/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{{",
        house.host, house.bearer
    );
    line.send(head.as_bytes());
    let reply = line.reply().unwrap().unwrap();
    assert_eq!((reply.status, reply.code().as_str()), (408, "too_slow"));
    assert_eq!(house.head(), before);
}

#[test]
fn a_body_that_is_too_large_is_refused_and_the_answer_arrives() {
    let house = House::with(Rules { max_body_bytes: 4_096, ..Rules::default() });
    let large = vec![b'x'; 4 << 20];
    for announced in [true, false] {
        let mut line = house.line();
        let length = match announced {
            true => format!("content-length: {}", large.len()),
            false => "transfer-encoding: chunked".into(),
        };
        let head = format!(
            "POST /api/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\ncontent-type: application/json\r\n{length}\r\n\r\n",
            house.host, house.bearer
        );
        line.send(head.as_bytes());
        if !announced {
            line.send(format!("{:x}\r\n", large.len()).as_bytes());
        }
        // A client that writes all before it reads: its bytes are taken, so that it comes to read the answer.
        line.send(&large);
        let reply = line.reply().unwrap().expect("the answer is not lost");
        assert_eq!((reply.status, reply.code().as_str()), (413, "body_too_large"), "announced: {announced}");
    }
    let fitting = format!(r#"{{"label":"{}"}}"#, "x".repeat(200));
    assert_eq!(house.ask("POST", "/api/sessions", fitting.as_bytes()).status, 201);
}

/// A client that was answered before it has sent its body goes on sending. Its connection must not be reset: programs that write first
/// and read later would lose the answer.
#[test]
fn an_early_answer_closes_the_connection_only_after_the_client_was_heard() {
    let house = House::open();
    let mut line = house.line();
    let head = format!("POST /api/sessions HTTP/1.1\r\nhost: {}\r\ncontent-length: 204800\r\n\r\n", house.host);
    line.send(head.as_bytes());
    let reply = line.reply().unwrap().expect("an answer before a byte of the body was sent");
    assert_eq!(reply.status, 401);
    assert!(line.is_at_end(), "the daemon has said all that it says");
    for _ in 0..200 {
        line.try_send(&[b'x'; 1_024]).expect("the connection was reset");
    }
}

/// The head of a request that takes in a file of histories.
fn import_head(house: &House, further: &str) -> String {
    let (host, bearer) = (&house.host, &house.bearer);
    format!("POST /api/history/import HTTP/1.1\r\nhost: {host}\r\nauthorization: {bearer}\r\n{further}\r\n\r\n")
}

#[test]
fn a_file_of_histories_that_is_too_large_is_refused() {
    let house = House::open();
    let before = house.head();
    let mut line = house.line();
    line.send(import_head(&house, "content-length: 268435457").as_bytes());
    let reply = line.reply().unwrap().expect("an answer before a byte of it was sent");
    assert_eq!((reply.status, reply.code().as_str()), (413, "body_too_large"));
    let reply = house.ask("POST", "/api/history/import", "x\n".repeat(MAX_LINES + 1).as_bytes());
    assert_eq!((reply.status, reply.code().as_str()), (413, "too_many_lines"), "{reply:?}");
    assert!(reply.message().contains("1000001 lines; at most 1000000"), "{reply:?}");
    assert_eq!(house.head(), before);
}

#[test]
fn files_of_histories_are_taken_in_one_at_a_time() {
    let house = House::open();
    let agent = r#"{"agent":{"id":1}}"#;
    let mut line = house.line();
    line.send(import_head(&house, &format!("expect: 100-continue\r\ncontent-length: {}", agent.len())).as_bytes());
    assert_eq!(line.head().unwrap().unwrap().status, 100, "the daemon waits for the file");
    let reply = house.ask("POST", "/api/history/import", agent.as_bytes());
    assert_eq!((reply.status, reply.code().as_str()), (429, "import_busy"));
    assert_eq!(house.ask("POST", "/api/sessions", b"{}").status, 201, "others are not held up");
    line.send(agent.as_bytes());
    assert_eq!(line.reply_to("POST").unwrap().unwrap().status, 201);
    assert_eq!(house.ask("POST", "/api/history/import", agent.as_bytes()).status, 201);
}

#[test]
fn a_file_of_histories_is_taken_in_whole_although_its_sender_has_gone() {
    const MESSAGES: u64 = 3_000;
    let house = House::open();
    let before = house.head();
    let whole = before + 1 + MESSAGES;
    let mut file = String::from("{\"agent\":{\"id\":1}}\n");
    for id in 1..=MESSAGES {
        file += &format!("{{\"message\":{{\"id\":{id},\"agent\":1,\"kind\":\"user\",\"content\":\"x\"}}}}\n");
    }
    let mut line = house.line();
    line.send((import_head(&house, &format!("content-length: {}", file.len())) + &file).as_bytes());
    // One that leaves before its file has arrived is gone with it.
    wait_until("the first of it is taken in", || house.head() > before);
    drop(line);
    wait_until("all of it is taken in", || house.head() == whole);
}

#[test]
fn a_file_of_histories_that_does_not_arrive_gives_its_turn_back() {
    let house = House::with(Rules { request_timeout: SOON / 20, ..Rules::default() });
    let mut line = house.line();
    line.send(import_head(&house, "content-length: 20").as_bytes());
    let reply = line.reply().unwrap().unwrap();
    assert_eq!((reply.status, reply.code().as_str()), (408, "too_slow"));
    assert_eq!(house.ask("POST", "/api/history/import", b"").status, 201);
}

/// What hyper refuses by itself is refused in JSON, too.
#[test]
fn a_head_that_cannot_be_read_is_refused_in_json() {
    let house = House::open();
    let long = "x".repeat(20_000);
    let many = "x: y\r\n".repeat(100);
    for (request, status, code) in [
        ("GARBAGE\r\n\r\n".into(), 400, "bad_request"),
        ("\u{1}\u{2}\u{3}\r\n\r\n".into(), 400, "bad_request"),
        ("GET / HTTP/9.9\r\n\r\n".into(), 400, "bad_request"),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n".into(), 400, "bad_request"),
        ("POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n".into(), 400, "bad_request"),
        (format!("GET / HTTP/1.1\r\nx: {long}\r\n\r\n"), 431, "head_too_large"),
        (format!("GET /{long} HTTP/1.1\r\n\r\n"), 431, "head_too_large"),
        (format!("GET / HTTP/1.1\r\n{many}\r\n"), 431, "head_too_large"),
    ] {
        let mut line = house.line();
        line.send(request.as_bytes());
        let reply = line.reply().unwrap().expect("an answer");
        let start: String = request.chars().take(40).collect();
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{start:?}");
        assert!(line.is_at_end(), "{start:?}");
    }
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let house = House::open();
    let mut line: Line = house.line();
    let parts = Parts { headers: &house.welcome(), body: b"" };
    let one = super::raw::request("GET", "/api/health", parts);
    line.send(&one.repeat(3));
    for _ in 0..3 {
        assert_eq!(line.reply().unwrap().unwrap().status, 200);
    }
}
