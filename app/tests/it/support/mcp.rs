//! A client of `hatchery mcp`: one line out, one line in, as the program of a coding agent speaks it.

use super::daemon::{Grounds, PATIENCE};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

pub struct Tools {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Where its words go.
    said: PathBuf,
    asked: u64,
    /// Answers that came before they were looked for.
    early: Vec<Value>,
}

/// What a tool answered.
#[derive(Debug)]
pub struct Called {
    pub text: String,
    pub data: Value,
    pub is_error: bool,
}

impl Tools {
    /// Starts it for an agent, and shakes hands.
    pub fn start(grounds: &Grounds, agent: &str) -> Self {
        let mut tools = Self::bare(grounds, agent);
        tools.shake_hands();
        tools
    }

    /// Starts it, and says nothing.
    pub fn bare(grounds: &Grounds, agent: &str) -> Self {
        let said = grounds.path().join("said");
        let words = fs::File::options().create(true).append(true).open(&said).unwrap();
        let mut command = grounds.command(&["mcp", "--agent", agent]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(words).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = channel();
        // Ends with the output, which ends with the child.
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        Self { input: child.stdin.take(), child, lines, said, asked: 0, early: Vec::new() }
    }

    pub fn shake_hands(&mut self) -> Value {
        let client = json!({ "name": "test", "version": "0" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let answer = self.ask("initialize", params);
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer["result"].clone()
    }

    pub fn say(&mut self, message: &Value) {
        self.say_line(&message.to_string());
    }

    pub fn say_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(&id)
    }

    /// Asks, and does not wait for the answer.
    pub fn begin(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        json!(self.asked)
    }

    pub fn answer(&mut self, id: &Value) -> Value {
        loop {
            if let Some(at) = self.early.iter().position(|answer| answer["id"] == *id) {
                return self.early.remove(at);
            }
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|error| {
                let said = fs::read_to_string(&self.said).unwrap_or_default();
                panic!("no answer to {id} ({error}, ended: {:?}): {said}", self.child.try_wait())
            });
            self.early.push(protocol(&line));
        }
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Called {
        let id = self.begin_call(tool, arguments);
        self.called(&id)
    }

    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> Value {
        self.begin("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    pub fn called(&mut self, id: &Value) -> Called {
        let answer = self.answer(id);
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"));
        Called {
            text: text.to_owned(),
            data: result["structuredContent"].clone(),
            is_error: result["isError"].as_bool().unwrap_or_default(),
        }
    }

    /// Ends its input and waits for its end. Whatever it has written is the protocol.
    pub fn end(mut self) -> ExitStatus {
        self.input.take();
        let status = self.child.wait().unwrap();
        self.lines.iter().for_each(|line| drop(protocol(&line)));
        status
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
    }
}

impl Called {
    #[track_caller]
    pub fn good(self) -> Value {
        assert!(!self.is_error, "{self:?}");
        assert!(self.data.is_object(), "{self:?}");
        self.data
    }

    /// The words of an error.
    #[track_caller]
    pub fn bad(self) -> String {
        assert!(self.is_error, "{self:?}");
        self.text
    }
}

fn protocol(line: &str) -> Value {
    let message: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("not the protocol: {line}"));
    assert_eq!(message["jsonrpc"], "2.0", "{line}");
    message
}
