//! A project with seats whose agents play scripts.

use crate::support::daemon::{LOOK_AGAIN, PATIENCE};
use crate::support::http::{Answer, Door};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// For a process that does not want to leave: longer than a test waits, so that the test ends the process itself.
pub const LONG_GRACE_MS: u64 = 600_000;

pub struct Scene {
    pub shop: Workshop,
    scripts: PathBuf,
}

impl Scene {
    /// With these settings of seats.
    pub fn with(settings: &str) -> Self {
        Self::of(&format!("harness = 'scripted'\nstop_grace_ms = 300\n[seats]\n{settings}\n"))
    }

    pub fn of(settings: &str) -> Self {
        let shop = Workshop::with(settings, Vec::new());
        let scripts = shop.grounds.path().join("scripts");
        std::fs::create_dir(&scripts).unwrap();
        Self { shop, scripts }
    }

    /// Another value of a setting, for the next daemon.
    pub fn set(&self, key: &str, value: u64) {
        let path = self.shop.grounds.path().join("hatchery.toml");
        let settings = std::fs::read_to_string(&path).unwrap();
        let is_it = |line: &str| line.split('=').next().is_some_and(|own| own.trim() == key);
        let lines =
            settings.lines().map(|line| if is_it(line) { format!("{key} = {value}\n") } else { format!("{line}\n") });
        std::fs::write(&path, lines.collect::<String>()).unwrap();
    }

    pub fn door(&self) -> Door {
        self.shop.door()
    }

    /// What the agents of a part play, for example `seat-0.birth`.
    pub fn script(&self, part: &str, steps: &[Value]) {
        let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
        std::fs::write(self.scripts.join(format!("{part}.jsonl")), lines).unwrap();
    }

    /// The agent of a seat registers with this name, and says something.
    pub fn registers(&self, seat: u64, name: &str) {
        let register = json!({ "mcp": { "tool": "register", "arguments": { "name": name, "soul": soul(name) } } });
        self.script(&format!("seat-{seat}.birth"), &[register, json!({ "text": format!("Hello, I am {name}.") })]);
    }

    pub fn with_scripts(&self) -> Value {
        json!({ "script": self.scripts })
    }

    pub fn summon(&self, seats: &[u64]) -> Answer {
        let body = json!({ "seats": seats, "with": self.with_scripts() });
        let answer = self.door().post("/api/agents/summon", &body);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer
    }

    pub fn wake(&self, seats: Option<&[u64]>) -> Answer {
        let answer = self.door().post("/api/agents/wake", &json!({ "seats": seats, "with": self.with_scripts() }));
        assert_eq!(answer.status, 202, "{answer:?}");
        answer
    }

    /// Starts a session whose lead plays this.
    pub fn start_lead(&self, script: &[Value]) {
        self.script("lead", script);
        let started = self.door().post("/api/session/start", &json!({ "with": self.with_scripts() }));
        assert_eq!(started.status, 200, "{started:?}");
    }

    /// Starts a session whose lead registers Lyra in seat 0 when it is asked to, and then plays the rest.
    pub fn start_lead_with_lyra(&self, rest: &[Value]) {
        let begins = [json!({ "text": status(&[]) }), json!("turn"), json!({ "text": registered(0, "Lyra") })];
        self.start_lead(&begins.iter().chain(rest).cloned().collect::<Vec<_>>());
        self.shop.wait("the greeting", |event| event["type"] == "seats_reported");
        self.summon(&[0]);
        self.wait_seat(0, "alive");
    }

    /// Seats 0, 1 and so on hatch with these names.
    pub fn summon_named(&self, names: &[&str]) {
        let seats: Vec<u64> = (0..).take(names.len()).collect();
        for (seat, name) in seats.iter().zip(names) {
            self.registers(*seat, name);
        }
        self.summon(&seats);
        for seat in seats {
            self.wait_seat(seat, "alive");
        }
    }

    /// Ends the session and wakes all. What the lead is told then.
    pub fn told_at_the_next_wake(&self) -> String {
        self.end_session();
        self.shop.wait("the end", |event| event["type"] == "session_ended");
        self.wake(None);
        let woken = self.shop.wait("the wake", |event| {
            event["content"].as_str().is_some_and(|content| content.starts_with("[WAKE AGENTS]"))
        });
        woken["content"].as_str().unwrap().to_owned()
    }

    pub fn send(&self, body: &Value) {
        let said = self.door().post("/api/send", body);
        assert_eq!(said.status, 202, "{said:?}");
    }

    pub fn end_session(&self) {
        let answer = self.door().post("/api/session/end", &json!({}));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    pub fn seats(&self) -> Value {
        self.door().get("/api/seats").json()
    }

    pub fn seat(&self, position: u64) -> Value {
        let list = self.seats();
        let seats = list["seats"].as_array().unwrap();
        seats.iter().find(|seat| seat["gridPosition"] == position).cloned().unwrap_or_default()
    }

    /// Waits until a seat has a status. The view may be a moment behind the events.
    #[track_caller]
    pub fn wait_seat(&self, position: u64, status: &str) -> Value {
        self.wait_until(&format!("seat {position} is {status}"), || {
            let seat = self.seat(position);
            (seat["status"] == status && seat["waking"] == false).then_some(seat)
        })
    }

    /// Looks again and again until something is so.
    #[track_caller]
    pub fn wait_until<T>(&self, what: &str, look: impl Fn() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < deadline, "{what}: {}\n{:#?}", self.seats(), self.shop.events().last());
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits until the first process of an agent hangs, and hears no request to end.
    #[track_caller]
    pub fn wait_hanging(&self, agent: &str) {
        let spool = self.shop.folder(agent, 1, 1).join("stdout.jsonl");
        let hangs = || std::fs::read_to_string(&spool).is_ok_and(|said| said.contains("\"status\":\"hanging\""));
        self.wait_until("it hangs", || hangs().then_some(()));
    }

    /// What a seat's agent was told first in its last session.
    pub fn prompt(&self, position: u64) -> String {
        let agent = self.seat(position)["agent"].as_str().unwrap().to_owned();
        let history = self.door().history(&agent);
        let told = history.iter().find(|message| message["kind"] == "user").unwrap();
        told["content"].as_str().unwrap().to_owned()
    }

    /// The events of the other dialect, until one of them is the last that is wanted.
    pub fn dialect(&self, query: &str, last_seen: Option<u64>, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        dialect(&self.door(), query, last_seen, is_last)
    }
}

pub fn dialect(door: &Door, query: &str, last_seen: Option<u64>, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut stream = TcpStream::connect(&door.authority).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let header = last_seen.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let request = format!(
        "GET /api/events{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{header}\r\n",
        door.authority, door.token
    );
    stream.write_all(request.as_bytes()).unwrap();
    let (mut text, mut buffer) = (Vec::new(), [0; 1 << 16]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Ok(count) = stream.read(&mut buffer) {
            text.extend_from_slice(&buffer[..count]);
        }
        let shown = String::from_utf8_lossy(&text);
        let complete = shown.rfind("\n\n").map_or("", |end| &shown[..end]);
        let events: Vec<Value> =
            complete.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
        if events.iter().any(&is_last) {
            return events;
        }
        assert!(Instant::now() < deadline, "the last event did not come: {shown}");
    }
}

pub fn soul(name: &str) -> String {
    format!("I chose the name {name} & I mean it <always>.")
}

/// How a lead registers an agent.
pub fn registered(position: u64, name: &str) -> String {
    let identity = json!({ "name": name, "gridPosition": position, "individuationArtifact": soul(name) });
    format!("[AGENT_REGISTERED] {identity}")
}

/// How a lead says who is alive.
pub fn status(agents: &[(u64, &str)]) -> String {
    let listed: Vec<Value> =
        agents.iter().map(|(at, status)| json!({ "gridPosition": at, "status": status })).collect();
    format!("[AGENT_STATUS] {}", json!({ "agents": listed }))
}

pub fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}
