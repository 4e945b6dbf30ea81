//! Who is let in: the token, the host, the origin; and that the secret stays one.

use super::house::{House, Rules, TOKEN};
use super::raw::{Line, Parts, Reply};
use crate::support::daemon::Grounds;
use hatchery::config::Auth;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

/// Asks with exactly these headers.
fn ask(house: &House, path: &str, headers: &[(&str, &str)]) -> Reply {
    house.line().ask("GET", path, Parts { headers, body: b"" })
}

/// Sends this and nothing else.
fn send(house: &House, text: &str) -> Reply {
    let mut line = house.line();
    line.send(text.as_bytes());
    line.reply().unwrap().expect("an answer")
}

fn cookie(house: &House) -> String {
    format!("hatchery_{}={TOKEN}", house.address.port())
}

#[test]
fn nothing_but_health_is_open_without_the_token() {
    let house = House::open();
    let document = serde_json::to_value(hatchery::http::openapi()).unwrap();
    let documented = document["paths"].as_object().unwrap().keys().map(String::as_str);
    let mut closed = 0;
    for path in
        documented.chain(["/", "/nothing", "/api/nothing", "/?token", "/?token=", "/?token=wrong", "/index.html"])
    {
        for method in ["GET", "POST", "PUT", "OPTIONS", "BREW"] {
            let path = path.replace("{id}", "AAAAAAAAAAAAAAAAAAAAAA");
            let headers = [("host", house.host.as_str()), ("content-type", "application/json")];
            let reply = house.line().ask(method, &path, Parts { headers: &headers, body: b"{}" });
            if path == "/api/health" {
                assert_ne!(reply.status, 401);
                continue;
            }
            closed += 1;
            assert_eq!((reply.status, reply.code().as_str()), (401, "no_token"), "{method} {path}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
    }
    assert!(closed > 60, "{closed}");
    let shape = ask(&house, "/api/health", &[("host", &house.host)]).json();
    assert_eq!(
        shape,
        json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }),
        "health tells strangers no more"
    );
}

#[test]
fn the_token_comes_as_bearer_or_as_cookie_and_must_be_right() {
    let house = House::open();
    let cookie = cookie(&house);
    let other = format!("x={TOKEN}; hatchery_1={TOKEN}");
    let among_others = format!("a=b; {cookie}; c=d");
    let (upper, spaced) = (format!("BEARER {TOKEN}"), format!("Bearer  {TOKEN} "));
    let (basic, short, long) =
        (format!("Basic {TOKEN}"), format!("Bearer {}", &TOKEN[1..]), format!("Bearer {TOKEN}x"));
    for (name, value, status) in [
        ("authorization", house.bearer.as_str(), 200),
        ("authorization", &upper, 200),
        ("authorization", &spaced, 200),
        ("cookie", &cookie, 200),
        ("cookie", &among_others, 200),
        ("cookie", &other, 401),
        ("authorization", &basic, 401),
        ("authorization", &short, 401),
        ("authorization", &long, 401),
        ("authorization", "Bearer", 401),
        ("authorization", "Bearer ", 401),
        ("authorization", TOKEN, 401),
        ("x-token", TOKEN, 401),
    ] {
        let reply = ask(&house, "/api/status", &[("host", &house.host), (name, value)]);
        assert_eq!(reply.status, status, "{name}: {value}");
    }
    let in_the_address = ask(&house, &format!("/api/status?token={TOKEN}"), &[("host", &house.host)]);
    assert_eq!(in_the_address.status, 401, "only the printed link carries the token in its address");
}

#[test]
fn a_name_that_is_not_ours_is_refused_however_it_is_written() {
    let house = House::open();
    let port = house.address.port();
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("[::1].evil.example:{port}"),
        format!("evil.example@127.0.0.1:{port}"),
        "127.0.0.1:evil.example".into(),
        format!("10.0.0.1:{port}"),
        format!("0.0.0.0:{port}"),
        "[".into(),
        "[]".into(),
        " ".into(),
    ] {
        for path in ["/api/status", "/api/health", &format!("/?token={TOKEN}")] {
            let reply = ask(&house, path, &[("host", &host), ("authorization", &house.bearer)]);
            assert_eq!((reply.status, reply.code().as_str()), (421, "wrong_host"), "{host} {path}");
            assert_eq!(reply.header("set-cookie"), None);
        }
    }
    for host in [format!("127.0.0.1:{port}"), format!("LocalHost:{port}"), format!("[::1]:{port}"), "localhost".into()]
    {
        assert_eq!(
            ask(&house, "/api/status", &[("host", &host), ("authorization", &house.bearer)]).status,
            200,
            "{host}"
        );
    }
}

#[test]
fn a_request_without_a_host_or_with_two_is_refused() {
    let house = House::open();
    let (bearer, host) = (&house.bearer, &house.host);
    for (request, status, code) in [
        (format!("GET /api/status HTTP/1.0\r\nauthorization: {bearer}\r\n\r\n"), 421, "wrong_host"),
        (format!("GET /api/status HTTP/1.1\r\nauthorization: {bearer}\r\n\r\n"), 421, "wrong_host"),
        (format!("GET /api/status HTTP/1.1\r\nhost:\r\nauthorization: {bearer}\r\n\r\n"), 421, "wrong_host"),
        (
            format!(
                "GET /api/status HTTP/1.1\r\nhost: {host}\r\nhost: evil.example\r\nauthorization: {bearer}\r\n\r\n"
            ),
            400,
            "two_hosts",
        ),
        (
            format!("GET /api/status HTTP/1.1\r\nhost: {host}\r\nhost: {host}\r\nauthorization: {bearer}\r\n\r\n"),
            400,
            "two_hosts",
        ),
        (
            format!("GET http://evil.example/api/status HTTP/1.1\r\nhost: {host}\r\nauthorization: {bearer}\r\n\r\n"),
            400,
            "two_hosts",
        ),
        (format!("GET http://{host}/?token={TOKEN} HTTP/1.1\r\nhost: evil.example\r\n\r\n"), 400, "two_hosts"),
        (
            format!("GET http://me@{host}/api/status HTTP/1.1\r\nhost: {host}\r\nauthorization: {bearer}\r\n\r\n"),
            400,
            "two_hosts",
        ),
        (
            format!("CONNECT evil.example:80 HTTP/1.1\r\nhost: {host}\r\nauthorization: {bearer}\r\n\r\n"),
            400,
            "two_hosts",
        ),
    ] {
        let reply = send(&house, &request);
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{request:?}");
    }
    let whole = send(
        &house,
        &format!("GET http://{host}/api/status HTTP/1.1\r\nhost: {host}\r\nauthorization: {bearer}\r\n\r\n"),
    );
    assert_eq!(whole.status, 200, "a whole address is fine when it is ours");
}

#[test]
fn a_foreign_page_is_refused_even_with_the_cookie() {
    let house = House::open();
    let cookie = cookie(&house);
    let ours = format!("http://{}", house.host);
    let another_port = format!("http://127.0.0.1:{}", house.address.port() ^ 1);
    let post = |headers: &[(&str, &str)]| {
        let headers =
            [&[("host", house.host.as_str()), ("cookie", &cookie), ("content-type", "application/json")], headers]
                .concat();
        house.line().ask("POST", "/api/sessions", Parts { headers: &headers, body: b"{}" })
    };
    assert_eq!(post(&[("origin", &ours)]).status, 201);
    for origin in [
        "null",
        "",
        "http://evil.example",
        &another_port,
        &ours.replace("http", "https"),
        &format!("{ours}/"),
        "http://localhost",
    ] {
        let reply = post(&[("origin", origin)]);
        assert_eq!((reply.status, reply.code().as_str()), (403, "wrong_origin"), "{origin}");
    }
    assert_eq!(post(&[("origin", &ours), ("origin", "http://evil.example")]).status, 403);
    for site in ["same-site", "cross-site"] {
        assert_eq!(post(&[("sec-fetch-site", site)]).status, 403, "{site}");
    }
    assert_eq!(post(&[("sec-fetch-site", "same-origin")]).status, 201);
    // A form cannot send JSON, and nothing else is read.
    let form = [("host", house.host.as_str()), ("cookie", &cookie), ("content-type", "text/plain")];
    assert_eq!(house.line().ask("POST", "/api/sessions", Parts { headers: &form, body: b"{}" }).status, 415);
    assert_eq!(house.head(), 3, "agent 0, and two sessions");
}

#[test]
fn the_link_gives_a_cookie_and_takes_the_token_out_of_the_address() {
    let house = House::open();
    let opened = ask(&house, &format!("/?token={TOKEN}"), &[("host", &house.host), ("sec-fetch-site", "cross-site")]);
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")), "{opened:?}");
    let expected = format!("{}; HttpOnly; SameSite=Strict; Path=/", cookie(&house));
    assert_eq!(opened.header("set-cookie"), Some(expected.as_str()));
    assert_eq!(opened.header("cache-control"), Some("no-store"));
    let cookie = expected.split(';').next().unwrap();
    let page = ask(&house, "/", &[("host", &house.host), ("cookie", cookie)]);
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").unwrap().starts_with("text/html") && page.text().contains("<html"));
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert!(!page.text().contains(TOKEN));
    let wrong = ask(&house, "/?token=wrong", &[("host", &house.host)]);
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None));
}

/// A person sees what comes back, at every address outside of the API.
#[test]
fn a_browser_gets_a_page_and_a_program_gets_json() {
    let house = House::open();
    let (host, html) = (("host", house.host.as_str()), ("accept", "text/html,application/xhtml+xml"));
    let token = ("authorization", house.bearer.as_str());
    for (path, headers, status, words) in [
        ("/", vec![host, html], 401, "hatchery open"),
        ("/nowhere", vec![host, html], 401, "hatchery open"),
        ("/nowhere", vec![host, html, token], 404, "There is no such page"),
    ] {
        let page = ask(&house, path, &headers);
        assert_eq!(page.status, status, "{path}");
        assert!(page.header("content-type").unwrap().starts_with("text/html"), "{path}: {page:?}");
        assert!(page.text().contains(words) && !page.text().contains("nowhere"), "{path}: {}", page.text());
    }
    for (path, headers, status) in [
        ("/nowhere", vec![host], 401),
        ("/nowhere", vec![host, token], 404),
        ("/api/nowhere", vec![host, html, token], 404),
    ] {
        let reply = ask(&house, path, &headers);
        assert_eq!(reply.status, status, "{path}");
        assert!(!reply.code().is_empty(), "{path}: {reply:?}");
    }
}

#[test]
fn no_refusal_repeats_the_token() {
    let house = House::open();
    let cookie = cookie(&house);
    let secret = [("host", house.host.as_str()), ("authorization", &house.bearer), ("cookie", &cookie)];
    for (method, path) in [
        ("GET", format!("/api/nothing?token={TOKEN}")),
        ("GET", format!("/api/events?token={TOKEN}")),
        ("GET", format!("/api/events?after={TOKEN}")),
        ("BREW", format!("/api/events?after={TOKEN}")),
        ("POST", "/api/sessions".into()),
        ("GET", "/api/status".into()),
    ] {
        let reply = house.line().ask(method, &path, Parts { headers: &secret, body: b"" });
        assert!(!reply.text().contains(TOKEN), "{method} {path}: {reply:?}");
    }
}

#[test]
fn a_foreign_name_and_a_foreign_page_are_refused_also_without_a_token() {
    let house = House::with(Rules { auth: Auth::None, ..Rules::default() });
    assert_eq!(ask(&house, "/api/status", &[("host", &house.host)]).status, 200);
    assert_eq!(ask(&house, "/api/status", &[("host", "evil.example")]).status, 421);
    assert_eq!(ask(&house, "/api/status", &[("host", &house.host), ("origin", "null")]).status, 403);
    assert_eq!(ask(&house, "/api/status", &[("host", &house.host), ("sec-fetch-site", "same-site")]).status, 403);
}

#[test]
fn the_daemon_keeps_its_token_to_itself() {
    let grounds = Grounds::with("log = 'trace'");
    let daemon = grounds.up();
    let token = &daemon.door.token.clone();
    assert!(token.len() >= 32, "{token}");
    let mode = std::fs::metadata(grounds.data().join("token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    daemon.door.agent(None);
    let address = daemon.door.authority.parse().unwrap();
    for path in [format!("/?token={token}"), "/?token=wrong".into(), format!("/api/nothing?token={token}")] {
        let headers = [("host", daemon.door.authority.as_str())];
        Line::to(address).ask("GET", &path, Parts { headers: &headers, body: b"" });
    }
    let mut garbage = Line::to(address);
    garbage.send(format!("GARBAGE {token}\r\n\r\n").as_bytes());
    drop(garbage.reply());
    for arguments in [["status"].as_slice(), &["status", "--json"], &["doctor"], &["doctor", "--json"], &["events"]] {
        let ran = grounds.run(arguments);
        assert!(!ran.stdout.contains(token) && !ran.stderr.contains(token), "{arguments:?}: {ran:?}");
    }
    grounds.run(&["down"]).good();
    assert!(daemon.wait().success());
    let said = grounds.said();
    assert!(said.contains("shutting down"), "the log was written: {said}");
    assert!(!said.contains(token), "{said}");
    assert!(!std::fs::read_to_string(grounds.data().join("token")).unwrap().is_empty());
}

#[test]
fn a_daemon_in_the_background_writes_no_token_to_its_log() {
    let grounds = Grounds::with("log = 'trace'");
    grounds.run(&["session", "start", "one"]).good();
    grounds.run(&["down"]).good();
    let log = std::fs::read_to_string(grounds.data().join("daemon.log")).unwrap();
    let token = std::fs::read_to_string(grounds.data().join("token")).unwrap();
    assert!(log.contains("shutting down") && !log.contains(token.trim()), "{log}");
}

#[test]
fn without_a_token_only_loopback_is_served() {
    let open = Grounds::with("auth = 'none'");
    let daemon = open.up();
    let headers = [("host", daemon.door.authority.as_str())];
    let line = || Line::to(daemon.door.authority.parse().unwrap());
    assert_eq!(line().ask("GET", "/api/status", Parts { headers: &headers, body: b"" }).status, 200);
    for address in ["0.0.0.0", "[::]:0", "192.0.2.1"] {
        let ran = Grounds::with("auth = 'none'").run(&["up", "--json", "--no-open", "--listen", address]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{address}: {ran:?}");
        assert!(ran.stderr.contains("without a token"), "{ran:?}");
    }
}
