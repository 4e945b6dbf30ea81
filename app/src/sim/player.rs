//! Plays a script: a turn for each message, step by step.

use super::failure::PlayedFailure;
use super::inbox::{Arrived, InboxMessage, Interrupt, PlayerCall, PlayerInbox, PlayerReply};
use super::memory::{Memory, MemoryError};
use super::script::{CrashSignal, ScriptStep, ServiceFailure};
use super::servers::{Called, Servers};
use super::signals::Ears;
use super::voice::{Bill, TurnEnding, Voice};
use crate::clock::{Clock as _, SystemClock};
use hatchery_core::Usage;
use hatchery_core::partial::PartialKind;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Player {
    pub voice: Voice,
    pub memory: Memory,
    pub inbox: Arc<PlayerInbox>,
    pub servers: Servers,
    pub signals: Arc<Ears>,
    /// Echo the messages that were taken in.
    pub replay: bool,
}

/// What is told of a turn at its end.
#[derive(Debug, Default)]
struct Turn {
    /// The last text is the answer.
    text: String,
    used: Usage,
    /// Each tool means another round with the model.
    tools: u32,
}

/// What a step leads to.
enum Action {
    Step,
    EndOfTurn,
    Interrupted { by: Interrupt, in_a_tool: bool },
    Failed { api: ServiceFailure, resets_at_s: Option<i64> },
    Exit(u8),
}

impl Player {
    /// Gives the exit code.
    pub fn run(mut self) -> u8 {
        loop {
            let ended = match self.inbox.wait() {
                Arrived::Message(message) => self.turn(&message).unwrap_or_else(|error| {
                    eprintln!("Error: {error}");
                    Some(1)
                }),
                Arrived::Call(call) => self.attend(call).and_then(|interrupt| self.take_note(interrupt)),
                Arrived::End => Some(0),
            };
            if let Some(code) = ended {
                return code;
            }
        }
    }

    /// Plays one turn; gives the exit code if it was the last.
    fn turn(&mut self, message: &InboxMessage) -> Result<Option<u8>, MemoryError> {
        self.voice.begin_turn(&self.servers.status());
        if self.replay {
            self.voice.heard(message);
        }
        let mut turn = Turn::default();
        let next = match self.memory.done() {
            true => self.say(&mut turn, format!("You said: {}", message.text())),
            false => self.steps(&mut turn)?,
        };
        let bill = Bill { turn: turn.used, session: self.memory.total(), rounds: 1 + turn.tools };
        match next {
            Action::Step | Action::EndOfTurn => {
                self.voice.end_turn(&TurnEnding::Well { text: &turn.text }, &bill);
                Ok(None)
            }
            Action::Interrupted { by, in_a_tool } => {
                match by {
                    Interrupt::Request(_) => self.memory.skip_turn()?,
                    // The process ends. A later one goes on where it was, as a model goes on with its work after a pause.
                    Interrupt::Signal => self.memory.leave_turn()?,
                }
                let code = self.take_note(by);
                self.voice.broken_off(in_a_tool);
                self.voice.end_turn(&TurnEnding::Interrupted { in_a_tool }, &bill);
                Ok(code)
            }
            Action::Failed { api, resets_at_s } => {
                let failure = PlayedFailure::of(api);
                self.voice.fail(&failure, resets_at_s);
                self.voice.end_turn(&TurnEnding::Failed(&failure), &bill);
                Ok(Some(1))
            }
            Action::Exit(code) => Ok(Some(code)),
        }
    }

    /// Plays steps until one of them says that the turn is over, or there are no more.
    fn steps(&mut self, turn: &mut Turn) -> Result<Action, MemoryError> {
        loop {
            if let Some(by) = self.interrupt() {
                return Ok(Action::Interrupted { by, in_a_tool: false });
            }
            let Some(step) = self.memory.step()? else { return Ok(Action::EndOfTurn) };
            match self.play(step, turn) {
                Action::Step => {}
                over @ (Action::EndOfTurn | Action::Interrupted { .. } | Action::Failed { .. } | Action::Exit(_)) => {
                    return Ok(over);
                }
            }
        }
    }

    fn play(&mut self, step: ScriptStep, turn: &mut Turn) -> Action {
        match step {
            ScriptStep::Text(text) => self.say(turn, text),
            ScriptStep::LongLine(bytes) => self.say(turn, "x".repeat(bytes)),
            ScriptStep::Think(text) => {
                self.voice.think(&text);
                Action::Step
            }
            ScriptStep::Partial(text) => {
                self.voice.partial(PartialKind::Text, &text);
                Action::Step
            }
            ScriptStep::PartialThought(text) => {
                self.voice.partial(PartialKind::Thinking, &text);
                Action::Step
            }
            ScriptStep::Tool { name, input, result, is_error } => {
                self.tool(turn, &name, &input, json!(result), is_error)
            }
            ScriptStep::Ask { name, input, result } => self.ask(turn, &name, &input, result),
            ScriptStep::Mcp { server, tool, arguments } => self.mcp(turn, server, &tool, arguments),
            ScriptStep::Subagent { prompt, text } => {
                let tool_use = self.voice.tool_use("Agent", &json!({ "prompt": prompt }));
                self.voice.subagent(&tool_use, &prompt, &text);
                self.voice.tool_result(&tool_use, json!(text), false);
                turn.tools += 1;
                Action::Step
            }
            ScriptStep::SleepMs(ms) => self.sleep(Duration::from_millis(ms)),
            ScriptStep::Flood { lines, bytes } => self.flood(turn, lines, bytes),
            ScriptStep::WriteFile { path, content } => self.write_file(turn, &path, &content),
            ScriptStep::Child { sleep_s } => self.child(turn, sleep_s),
            ScriptStep::Cost(price) => {
                turn.used += price.usage();
                self.voice.used(&price.usage());
                Action::Step
            }
            ScriptStep::Compact => {
                self.voice.compacted();
                Action::Step
            }
            ScriptStep::Turn | ScriptStep::Again => Action::EndOfTurn,
            ScriptStep::Error { api, resets_in_s } => {
                let now_s = SystemClock.now().0 / 1_000;
                Action::Failed { api, resets_at_s: resets_in_s.map(|seconds| now_s + i64::from(seconds)) }
            }
            ScriptStep::Exit(code) => Action::Exit(code),
            ScriptStep::LastWords(text) => {
                self.voice.text(&text);
                Action::Exit(0)
            }
            ScriptStep::Crash(signal) => crash(signal),
            ScriptStep::Hang { ignore_sigterm } => {
                self.signals.close(ignore_sigterm);
                self.voice.hanging();
                loop {
                    std::thread::park();
                }
            }
        }
    }

    fn say(&mut self, turn: &mut Turn, text: String) -> Action {
        self.voice.text(&text);
        turn.text = text;
        Action::Step
    }

    fn tool(&mut self, turn: &mut Turn, name: &str, input: &Value, result: Value, is_error: bool) -> Action {
        let id = self.voice.tool_use(name, input);
        self.voice.tool_result(&id, result, is_error);
        turn.tools += 1;
        Action::Step
    }

    fn ask(&mut self, turn: &mut Turn, name: &str, input: &Value, result: String) -> Action {
        let id = self.voice.tool_use(name, input);
        let request = self.voice.ask(&id, name, input);
        turn.tools += 1;
        loop {
            match self.inbox.reply_to(&request) {
                PlayerReply::Answer(answer) => {
                    if self.replay {
                        self.voice.answer(&request, answer.clone());
                    }
                    let denied = || answer["message"].as_str().unwrap_or("denied").to_owned();
                    let (content, is_error) = match answer["behavior"].as_str() {
                        Some("allow") => carry_out(name, input, result),
                        _ => (denied(), true),
                    };
                    self.voice.tool_result(&id, json!(content), is_error);
                    return Action::Step;
                }
                PlayerReply::Call(call) => {
                    if let Some(by) = self.attend(call) {
                        self.voice.cancel(&request);
                        self.voice.tool_result(&id, json!("[Request interrupted by user for tool use]"), true);
                        return Action::Interrupted { by, in_a_tool: true };
                    }
                }
                PlayerReply::End => return Action::Exit(0),
            }
        }
    }

    fn mcp(
        &mut self,
        turn: &mut Turn,
        server: Option<String>,
        tool: &str,
        arguments: serde_json::Map<String, Value>,
    ) -> Action {
        let server = server.or_else(|| self.servers.first().map(str::to_owned)).unwrap_or_else(|| "none".to_owned());
        let id = self.voice.tool_use(&format!("mcp__{server}__{tool}"), &Value::Object(arguments.clone()));
        turn.tools += 1;
        match self.servers.call(&server, tool, arguments, &self.inbox) {
            Called::Answered { content, is_error } => {
                self.voice.tool_result(&id, content, is_error);
                Action::Step
            }
            Called::Interrupted => {
                self.voice.tool_result(&id, json!("[Request interrupted by user for tool use]"), true);
                match self.interrupt() {
                    Some(by) => Action::Interrupted { by, in_a_tool: true },
                    None => Action::Step,
                }
            }
        }
    }

    fn sleep(&mut self, time: Duration) -> Action {
        let until = Instant::now() + time;
        while let Some(call) = self.inbox.call_before(until) {
            if let Some(by) = self.attend(call) {
                return Action::Interrupted { by, in_a_tool: false };
            }
        }
        Action::Step
    }

    fn flood(&mut self, turn: &mut Turn, lines: u64, bytes: usize) -> Action {
        let mut text = String::new();
        for number in 1..=lines {
            if let Some(by) = self.interrupt() {
                return Action::Interrupted { by, in_a_tool: false };
            }
            text = format!("flood {number} ");
            text.extend(std::iter::repeat_n('x', bytes.saturating_sub(text.len())));
            self.voice.text(&text);
        }
        turn.text = text;
        Action::Step
    }

    fn write_file(&mut self, turn: &mut Turn, path: &Path, content: &str) -> Action {
        let (result, is_error) = written(path, content);
        self.tool(turn, "Write", &json!({ "file_path": path, "content": content }), json!(result), is_error)
    }

    /// Starts a process that no signal to our group or session reaches.
    fn child(&mut self, turn: &mut Turn, sleep_s: u64) -> Action {
        let us = std::env::current_exe().unwrap_or_else(|_| "hatchery".into());
        let mut command = Command::new(us);
        command.args(["agent-sim", "--sleep-apart"]).arg(sleep_s.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (result, is_error) = match command.spawn() {
            Ok(child) => (format!("pid {}", child.id()), false),
            Err(error) => (error.to_string(), true),
        };
        self.tool(turn, "Bash", &json!({ "command": format!("setsid sleep {sleep_s}") }), json!(result), is_error)
    }

    /// Attends to whatever came meanwhile; gives what wants the turn to end.
    fn interrupt(&mut self) -> Option<Interrupt> {
        while let Some(call) = self.inbox.call() {
            if let Some(interrupt) = self.attend(call) {
                return Some(interrupt);
            }
        }
        None
    }

    /// Answers at once what is no interrupt. Of those requests, only the greeting is understood.
    fn attend(&mut self, call: PlayerCall) -> Option<Interrupt> {
        match call {
            PlayerCall::Interrupt(interrupt) => return Some(interrupt),
            PlayerCall::Other { id, subtype } if subtype == "initialize" => {
                self.voice.answer(&id, json!({ "commands": [] }))
            }
            PlayerCall::Other { id, subtype } => {
                self.voice.refuse(&id, &format!("a scripted agent does not know `{subtype}`"))
            }
        }
        None
    }

    /// Answers an interrupt; gives the exit code if the process is to end by it.
    fn take_note(&mut self, interrupt: Interrupt) -> Option<u8> {
        match interrupt {
            Interrupt::Request(id) => {
                self.voice.answer(&id, json!({ "still_queued": [] }));
                None
            }
            Interrupt::Signal => Some(0),
        }
    }
}

/// What a tool does that was allowed: the result, and whether it is an error.
fn carry_out(name: &str, input: &Value, result: String) -> (String, bool) {
    match (name, input["file_path"].as_str(), input["content"].as_str()) {
        ("Write", Some(path), Some(content)) => written(Path::new(path), content),
        _ => (result, false),
    }
}

fn written(path: &Path, content: &str) -> (String, bool) {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::create_dir_all(folder),
        Some(_) | None => Ok(()),
    };
    match folder.and_then(|()| std::fs::write(path, content)) {
        Ok(()) => (format!("File created successfully at: {}", path.display()), false),
        Err(error) => (format!("{}: {error}", path.display()), true),
    }
}

fn crash(signal: CrashSignal) -> Action {
    let signal = match signal {
        CrashSignal::Abrt => Signal::ABORT,
        CrashSignal::Hup => Signal::HUP,
        CrashSignal::Kill => Signal::KILL,
        CrashSignal::Segv => Signal::SEGV,
        CrashSignal::Term => Signal::TERM,
    };
    // The first SIGSEGV only takes Rust's own handler away.
    while kill_process(getpid(), signal).is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Action::Exit(1)
}
