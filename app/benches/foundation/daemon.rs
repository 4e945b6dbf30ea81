//! A real daemon as a child of this program.

use crate::{raw, wire};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub struct Daemon {
    child: Child,
    pub address: SocketAddr,
    pub token: String,
}

impl Daemon {
    /// Starts it and waits for its readiness line.
    pub fn start(project: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hatchery"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HATCHERY_")) {
            command.env_remove(name);
        }
        let mut child = command
            .args(["up", "--json", "--no-open", "--project"])
            .arg(project)
            .env("HATCHERY_LOG", "error")
            // The project is of this program.
            .env("HATCHERY_TRUST_ALL", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = ready["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap();
        Self { child, address, token: ready["token"].as_str().unwrap().to_owned() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// As a loss of power would: nothing is put in order.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A head that the daemon lets in.
    pub fn head(&self, method: &str, path: &str) -> String {
        format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n", self.address, self.token)
    }

    pub fn post(&self, path: &str, body: &str) -> Vec<u8> {
        let head = self.head("POST", path);
        format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    /// Creates an agent and gives the request that adds a message to its history.
    pub async fn message_request(&self) -> Vec<u8> {
        let answer = wire::Client::connect(self.address).await.ask(&self.post("/api/agents", "{}")).await;
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        let path = format!("/api/agents/{}/messages", answer["id"].as_str().unwrap());
        self.post(&path, &format!(r#"{{"kind":"assistant","content":"{}"}}"#, raw::body()))
    }

    /// The request that follows the log from its present end, or from another place.
    pub fn follow_request(&self, after: u64) -> Vec<u8> {
        format!("{}last-event-id: {after}\r\n\r\n", self.head("GET", "/api/events")).into_bytes()
    }

    /// The last event of the log.
    pub async fn log_head(&self) -> u64 {
        let request = format!("{}\r\n", self.head("GET", "/api/status")).into_bytes();
        let answer = wire::Client::connect(self.address).await.ask(&request).await;
        serde_json::from_slice::<serde_json::Value>(&answer).unwrap()["head"].as_u64().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have been killed before.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
