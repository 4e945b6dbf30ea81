//! Ten thousand requests that are wrong in one way or another, made from the API's own document: none may be answered with
//! a 5xx, none may make the server panic, every refusal has its JSON, and the log is sound afterwards.
//!
//! `HATCHERY_SEED=n` repeats a run.

use super::house::{House, Rules};
use super::raw::{Line, Reply};
use super::schema::Schemas;
use crate::support::random::Random;
use hatchery::http::Limits;
use serde_json::{Map, Value, json};
use std::net::Shutdown;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, SystemTime};

const REQUESTS: usize = 10_000;
const CLIENTS: usize = 4;
/// Those who wait for mail give up somewhat before this, and most wait in vain.
const PATIENT: Duration = Duration::from_millis(500);

/// One request, and what may be expected of it.
struct Shot {
    method: String,
    bytes: Vec<u8>,
    /// Whole as HTTP, so that it must be answered. What is not whole may be cut off in silence.
    whole: bool,
    /// A body that the operation does not take. Nobody reads it, so the connection ends after the answer.
    unread_body: bool,
}

struct Generator<'a> {
    random: Random,
    document: &'a Value,
    operations: &'a [(String, String, Value)],
    /// Ids that exist, so that not everything ends with "there is no such agent". Whoever is killed is replaced in time.
    known: Vec<String>,
    host: &'a str,
    bearer: &'a str,
}

#[test]
fn malformed_requests_do_no_harm() {
    let seed = match std::env::var("HATCHERY_SEED") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64,
    };
    println!("HATCHERY_SEED={seed}");
    let limits = Limits { head_timeout: Duration::from_secs(2), ..Limits::default() };
    let house = House::with(Rules { limits, max_body_bytes: 64 << 10, request_timeout: PATIENT, ..Rules::default() });
    watch_for_panics();
    let document = house.get("/api/openapi.json").json();
    let operations = operations(&document);
    let session = house.make("/api/sessions", &json!({}));
    let busy = house.agent();
    house.make(&format!("/api/agents/{busy}/messages"), &json!({ "kind": "tool_call", "content": "ls" }));
    let known = [house.make("/api/agents", &json!({ "session": session })), house.agent(), busy, session];
    let tally = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let generator = Generator {
                    random: Random::new(seed.wrapping_add(client as u64)),
                    document: &document,
                    operations: &operations,
                    known: known.to_vec(),
                    host: &house.host,
                    bearer: &house.bearer,
                };
                let house = &house;
                scope.spawn(move || fire(house, generator, REQUESTS / CLIENTS, seed))
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).fold(Map::new(), |mut tally, status| {
            let count = tally.get(&status).and_then(Value::as_u64).unwrap_or_default();
            tally.insert(status, json!(count + 1));
            tally
        })
    });
    println!("answers: {}", Value::Object(tally.clone()));
    // 202 comes two or three times in ten thousand, and in one run of ten not at all.
    for status in ["201", "400", "401", "404", "405", "409", "413", "415", "422", "431"] {
        assert!(tally.contains_key(status), "seed {seed}: no answer was {status}; the requests have become too tame");
    }
    assert_eq!(house.get("/api/health").json()["status"], "ok");
    let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(panics.is_empty(), "seed {seed}: {panics:?}");
    house.assert_sound();
}

/// Sends so many requests. Gives what became of each: its status, or `silence`.
fn fire(house: &House, mut generator: Generator<'_>, count: usize, seed: u64) -> Vec<String> {
    let mut fates = Vec::with_capacity(count);
    let mut line = house.line();
    for number in 0..count {
        let shot = generator.shot();
        let about = || {
            format!(
                "seed {seed}, request {number}: {}",
                String::from_utf8_lossy(&shot.bytes[..shot.bytes.len().min(2_000)])
            )
        };
        // It may have been refused before it was whole.
        line.try_send(&shot.bytes).unwrap_or_default();
        if !shot.whole {
            line.end_sending();
        }
        let reply = answer(&mut line, &shot.method);
        match &reply {
            Some(reply) => {
                assert!(reply.status < 500, "{}: {reply:?}", about());
                if reply.status >= 400 && shot.method != "HEAD" {
                    reply.refusal().unwrap_or_else(|why| panic!("{}: {why}: {reply:?}", about()));
                }
                if reply.status == 201 {
                    generator.learn(reply);
                }
                fates.push(reply.status.to_string());
            }
            None => {
                assert!(!shot.whole, "{}: no answer", about());
                fates.push("silence".into());
            }
        }
        let goes_on = reply.is_some_and(|reply| reply.status < 400 && reply.header("content-length").is_some());
        if !(shot.whole && !shot.unread_body && goes_on) {
            line = house.line();
        }
    }
    fates
}

/// The answer, if there is one. Of a stream only the head, because it would not end.
fn answer(line: &mut Line, method: &str) -> Option<Reply> {
    let head = line.head().ok()??;
    match head.header("content-type") {
        Some("text/event-stream") => Some(head),
        _ => line.body_of(head, method).ok(),
    }
}

impl Generator<'_> {
    fn shot(&mut self) -> Shot {
        match self.random.below(20) {
            0 => self.noise(),
            1 => self.broken_head(),
            2 => self.pipelined(),
            _ => self.request(),
        }
    }

    /// A request for a documented operation, with something wrong in it more often than not.
    fn request(&mut self) -> Shot {
        let (method, path, operation) = self.random.one_of(self.operations).clone();
        let method = match self.random.below(12) {
            0 => (*self.random.one_of(&["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "PATCH", "get", "M-SEARCH", "X"]))
                .into(),
            _ => method.to_uppercase(),
        };
        let target = self.target(&path, &operation);
        let body = self.body(&operation);
        let mut head = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
        self.headers(&mut head);
        let (frame, whole) = self.framed(&body);
        head.extend_from_slice(&frame);
        let takes_body = method == "POST" && operation.get("requestBody").is_some();
        Shot { method, bytes: head, whole, unread_body: !body.is_empty() && !takes_body }
    }

    fn target(&mut self, path: &str, operation: &Value) -> String {
        let id = match self.random.below(4) {
            0 => self.odd_text(),
            _ => self.reference(),
        };
        let parts = path.split('/').map(|part| if part.starts_with('{') { encoded(&id) } else { part.to_owned() });
        let mut target = parts.collect::<Vec<_>>().join("/");
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut query = Vec::new();
        for parameter in parameters.iter().filter(|it| it["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            let value = match self.random.below(4) {
                0 => continue,
                1 => self.odd_number(),
                2 => self.value(&parameter["schema"]).to_string(),
                _ => self.odd_text(),
            };
            query.push(format!("{name}={}", encoded(&value)));
        }
        if self.random.below(10) == 0 {
            query.push(format!("{}={}", encoded(&self.odd_text()), encoded(&self.odd_text())));
        }
        if !query.is_empty() {
            target = format!("{target}?{}", query.join("&"));
        }
        match self.random.below(25) {
            0 => format!("{target}%zz%"),
            1 => format!("{target}/../..//%00%ff"),
            2 => format!("http://{}{target}", self.random.one_of(&["evil.example", "127.0.0.1", "[::1"])),
            _ => target,
        }
    }

    fn headers(&mut self, head: &mut Vec<u8>) {
        let mut add = |name: &str, value: &[u8]| {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        };
        let random = &mut self.random;
        match random.below(30) {
            0 => {}
            1 => add("host", b"evil.example"),
            2 => add("host", b"\xff\xfe"),
            3 => (0..2).for_each(|_| add("host", self.host.as_bytes())),
            _ => add("host", self.host.as_bytes()),
        }
        match random.below(15) {
            0 => {}
            1 => add("authorization", b"Bearer \xf0\x9f"),
            2 => add("cookie", b"hatchery_=;;;=hatchery"),
            _ => add("authorization", self.bearer.as_bytes()),
        }
        match random.below(12) {
            0 => {}
            1 => add("content-type", b"text/plain"),
            2 => add("content-type", b"\x80json"),
            3 => add("content-type", b"application/json; charset=utf-16"),
            _ => add("content-type", b"application/json"),
        }
        match random.below(12) {
            0 => add("last-event-id", b"9e99"),
            1 => add("last-event-id", b"\xff"),
            2 => add("origin", b"null"),
            3 => add("expect", b"100-continue"),
            4 => add("x", &vec![b'x'; 1 << random.below(15)]),
            5 => (0..random.below(100)).for_each(|_| add("x", b"y")),
            6 => add("sec-fetch-site", b"cross-site"),
            7 => add("content-encoding", b"gzip"),
            8 => add("upgrade", b"h2c"),
            _ => {}
        }
    }

    fn learn(&mut self, reply: &Reply) {
        let place = self.random.below(self.known.len());
        match reply.json()["id"].as_str() {
            Some(id) if id != "human" => self.known[place] = id.to_owned(),
            _ => {}
        }
    }

    /// Somebody who may be there: by the id, by its beginning, or by a name.
    fn reference(&mut self) -> String {
        match self.random.below(8) {
            0 => "human".into(),
            1 => "root".into(),
            2 => {
                let length = 1 + self.random.below(22);
                self.random.one_of(&self.known).chars().take(length).collect()
            }
            _ => self.random.one_of(&self.known).clone(),
        }
    }

    /// A history from elsewhere, mostly with something wrong in it.
    fn lines(&mut self) -> Vec<u8> {
        let mut text = String::new();
        for _ in 0..self.random.below(6) {
            let id = self.source_id();
            let other = self.source_id();
            let line = match self.random.below(8) {
                0 => self.odd_value(0),
                1 => json!({ "agent": { "id": id, "parent": other, "fork_message_id": self.source_id() } }),
                2..=4 => json!({ "agent": { "id": id, "parent": null, "fork_message_id": null } }),
                _ => {
                    let kind = *self.random.one_of(&["user", "rewind", "clear", "mark", "tool_call", "shout"]);
                    json!({ "message": { "id": id, "agent": other, "kind": kind, "content": self.odd_text() } })
                }
            };
            text.push_str(&line.to_string());
            let end = *self.random.one_of(&["\n", "\r\n", "\n\n", " "]);
            text.push_str(end);
        }
        let mut text = text.into_bytes();
        if self.random.below(20) == 0 {
            text.extend(self.bytes(20));
        }
        text
    }

    fn source_id(&mut self) -> Value {
        match self.random.below(6) {
            0 => json!(i64::MIN),
            1 => json!(u64::MAX),
            2 => json!("a"),
            3 => Value::Null,
            _ => json!(self.random.below(4)),
        }
    }

    fn body(&mut self, operation: &Value) -> Vec<u8> {
        if operation["requestBody"]["content"].get("application/x-ndjson").is_some() {
            return self.lines();
        }
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            return if self.random.below(10) == 0 { self.bytes(40) } else { Vec::new() };
        }
        let mut body = self.value(schema);
        match self.random.below(12) {
            0 => body = self.odd_value(0),
            1 => {
                if let Some(fields) = body.as_object_mut() {
                    fields.insert(self.odd_text(), json!(1));
                }
            }
            2 => {
                if let Some(fields) = body.as_object_mut() {
                    let names: Vec<String> = fields.keys().cloned().collect();
                    names.iter().take(1).for_each(|name| drop(fields.remove(name)));
                }
            }
            3..=5 => {
                let odd = self.odd_value(0);
                let names: Vec<String> = body.as_object().into_iter().flat_map(Map::keys).cloned().collect();
                if !names.is_empty() {
                    body[self.random.one_of(&names)] = odd;
                }
            }
            _ => {}
        }
        let mut text = body.to_string().into_bytes();
        match self.random.below(20) {
            0 => text.truncate(self.random.below(text.len() + 1)),
            1 => {
                let at = self.random.below(text.len() + 1);
                let noise = self.bytes(4);
                text.splice(at..at, noise);
            }
            2 => text = "[{\"a\":".repeat(1 + self.random.below(3_000)).into_bytes(),
            3 => text.extend_from_slice(b"{}"),
            4 => text = self.odd_number().into_bytes(),
            5 => text = format!("{{\"label\":\"{}\"}}", "x".repeat(self.random.below(100 << 10))).into_bytes(),
            6 => text = format!("{{\"idle_ms\":{}}}", self.odd_number()).into_bytes(),
            _ => {}
        }
        text
    }

    /// The end of the head, and the body. True when it is whole.
    fn framed(&mut self, body: &[u8]) -> (Vec<u8>, bool) {
        let sized = |length: usize| [format!("content-length: {length}\r\n\r\n").as_bytes(), body].concat();
        match self.random.below(30) {
            0 => (sized(body.len() + 1 + self.random.below(100)), false),
            1 => ([b"transfer-encoding: chunked\r\n\r\nzz\r\n".as_slice(), body].concat(), false),
            2 => (
                [format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len() + 9).as_bytes(), body].concat(),
                false,
            ),
            3 => ([b"content-length: -1\r\n\r\n".as_slice(), body].concat(), false),
            4 => (b"transfer-encoding: gzip, chunked, x\r\n\r\n".to_vec(), false),
            5 if !body.is_empty() => {
                let chunk = format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len());
                ([chunk.as_bytes(), body, b"\r\n0\r\n\r\n"].concat(), true)
            }
            _ => (sized(body.len()), true),
        }
    }

    /// A value that fits the schema.
    fn value(&mut self, schema: &Value) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            let schema = Schemas(self.document).resolve(reference).unwrap();
            return self.value(schema);
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            let choice = self.random.one_of(choices).clone();
            return self.value(&choice);
        }
        if let Some(choices) = schema["enum"].as_array() {
            return self.random.one_of(choices).clone();
        }
        let kind = match schema["type"].as_array() {
            Some(kinds) => self.random.one_of(kinds).clone(),
            None => schema["type"].clone(),
        };
        match kind.as_str() {
            Some("object") => {
                let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
                let mut made = Map::new();
                for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                    // All optional fields at once are seldom right together.
                    if required.iter().any(|it| it == name) || self.random.below(3) > 0 {
                        made.insert(name.clone(), self.value(schema));
                    }
                }
                Value::Object(made)
            }
            Some("array") => (0..self.random.below(4)).map(|_| self.value(&schema["items"])).collect(),
            Some("string") if schema["minLength"] == 22 => json!(self.random.one_of(&self.known)),
            Some("string") if self.random.below(3) == 0 => json!(self.odd_text()),
            Some("string") if schema["maxLength"].is_null() && self.random.below(2) == 0 => json!(self.reference()),
            Some("string") => json!("a text"),
            Some("integer") => {
                let least = schema["minimum"].as_i64().unwrap_or_default();
                match self.random.below(6) {
                    0 => json!(least),
                    1 => json!(u64::MAX),
                    3 => schema.get("maximum").cloned().unwrap_or(json!(u64::MAX)),
                    2 => json!(1_000 + self.random.below(1_000_000)),
                    _ => json!(least + self.random.below(200) as i64),
                }
            }
            Some("boolean") => json!(self.random.below(2) == 0),
            _ => Value::Null,
        }
    }

    /// A value that fits nothing in particular.
    fn odd_value(&mut self, depth: usize) -> Value {
        match self.random.below(if depth > 3 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-1),
            3 => json!(1.5e300),
            4 => json!(u64::MAX),
            5 => json!(self.odd_text()),
            6 => Value::Array((0..self.random.below(4)).map(|_| self.odd_value(depth + 1)).collect()),
            _ => {
                Value::Object((0..self.random.below(4)).map(|_| (self.odd_text(), self.odd_value(depth + 1))).collect())
            }
        }
    }

    fn odd_number(&mut self) -> String {
        let odd = [
            "NaN",
            "",
            "1e3",
            "-0",
            "0",
            "-1",
            "-2",
            "1",
            "3",
            "1e999",
            "0x10",
            "99999999999999999999",
            "1.5",
            "٣",
            "+1",
        ];
        match self.random.below(4) {
            0 => "9".repeat(1 + self.random.below(400)),
            _ => (*self.random.one_of(&odd)).into(),
        }
    }

    fn odd_text(&mut self) -> String {
        match self.random.below(8) {
            0 => String::new(),
            1 => "\u{0}\u{1b}[2J\r\n".into(),
            2 => "../../etc/passwd".into(),
            3 => "x".repeat(self.random.below(2_000)),
            4 => "\u{202e}\u{10ffff}é'\"\\;--".into(),
            5 => "AAAAAAAAAAAAAAAAAAAAAA".into(),
            6 => "AAAAAAAAAAAAAAAAAAAAAB".into(),
            _ => String::from_utf8_lossy(&self.bytes(24)).into_owned(),
        }
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..1 + self.random.below(most)).map(|_| self.random.next() as u8).collect()
    }

    /// Bytes that mean nothing.
    fn noise(&mut self) -> Shot {
        let mut bytes = self.bytes(300);
        if self.random.below(2) == 0 {
            bytes.extend_from_slice(b"\r\n\r\n");
        }
        Shot { method: "GET".into(), bytes, whole: false, unread_body: false }
    }

    fn broken_head(&mut self) -> Shot {
        let odd = self.odd_text();
        let text = match self.random.below(8) {
            0 => format!("GET {odd} HTTP/1.1\r\n\r\n"),
            1 => format!("GET /api/health HTTP/1.1\r\n{odd}: {odd}\r\n\r\n"),
            2 => format!("{odd} /api/health HTTP/1.1\r\n\r\n"),
            3 => "GET /api/health HTTP/7.3\r\n\r\n".into(),
            4 => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
            5 => "GET /api/health\r\n\r\n".into(),
            6 => format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(20_000)),
            _ => "GET /api/health HTTP/1.1\r\nhost: localhost\r\nhost".into(),
        };
        Shot { method: "GET".into(), bytes: text.into_bytes(), whole: false, unread_body: false }
    }

    /// Two requests at once; the answer to the first is looked at, and the second is left on the line.
    fn pipelined(&mut self) -> Shot {
        let mut first = self.request();
        let second = self.request();
        first.whole = false;
        first.bytes.extend_from_slice(&second.bytes);
        first
    }
}

/// Path and query as a careful client writes them: the oddness is in what they mean.
fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    text.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(move |(method, it)| (method.clone(), path.clone(), it.clone()))
    });
    all.collect()
}

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A panic of a task is caught by the runtime and would go unnoticed.
fn watch_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if matches!(std::thread::current().name(), Some("tokio-rt-worker" | "engine")) {
                PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
            }
            before(info);
        }));
    });
}

impl Line {
    fn end_sending(&self) {
        // Fails only when the other side was faster.
        self.socket().shutdown(Shutdown::Write).unwrap_or_default();
    }
}
