//! Scripted agents as real processes, in a folder of their own. What they say is read by the core.

use super::daemon::PATIENCE;
use hatchery_core::harness::Reader as _;
use hatchery_core::output::Output;
use hatchery_core::stream_json::StreamJsonReader;
use hatchery_core::{Cause, Exit, Outcome};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use tempfile::TempDir;

pub const FIRST: &str = "11111111-1111-4111-8111-111111111111";
pub const SECOND: &str = "22222222-2222-4222-8222-222222222222";
/// The arguments of a long conversation.
pub const TALK: [&str; 7] = [
    "-p",
    "--output-format=stream-json",
    "--verbose",
    "--input-format=stream-json",
    "--replay-user-messages",
    "--allowedTools=mcp__hatchery__ps",
    "--strict-mcp-config",
];

/// A folder with scripts, the sims' state, and their working folder.
pub struct Stage {
    folder: TempDir,
}

/// A scripted agent that has ended.
#[derive(Debug)]
pub struct Played {
    /// Without what it says of our tools, which few of these have.
    pub outputs: Vec<Output>,
    /// The first line of its first turn.
    pub init: Value,
    pub exit: Exit,
    pub stderr: String,
}

/// One that is alive, with its standard input open.
pub struct Playing {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    words: PathBuf,
    said: Vec<String>,
}

impl Stage {
    pub fn new() -> Self {
        Self { folder: TempDir::with_prefix("sim").unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a script, and gives its path.
    pub fn script(&self, steps: &[Value]) -> String {
        let text: String = steps.iter().map(|step| format!("{step}\n")).collect();
        let scripts = fs::read_dir(self.path()).unwrap().count();
        let path = self.path().join(format!("script-{scripts}.jsonl"));
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Plays to the end, with nothing on standard input.
    pub fn play(&self, arguments: &[&str]) -> Played {
        let mut playing = self.start(arguments);
        playing.input.take();
        playing.end()
    }

    /// Plays these steps for one prompt.
    pub fn play_steps(&self, steps: &[Value]) -> Played {
        self.play(&[&self.script(steps), "go"])
    }

    /// Plays a conversation of these messages to its end.
    pub fn talk(&self, arguments: &[&str], messages: &[&str]) -> Played {
        let mut playing = self.start(&[&TALK[..], arguments].concat());
        messages.iter().for_each(|message| playing.tell(message));
        playing.end()
    }

    /// Ended by the kernel when the thread that starts it ends.
    pub fn start(&self, arguments: &[&str]) -> Playing {
        let words = TempDir::with_prefix_in("words", self.path()).unwrap().keep().join("stderr");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_hatchery"), "agent-sim"]).args(arguments);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HATCHERY_SIM_STATE", self.path().join("state")).current_dir(self.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(fs::File::create(&words).unwrap());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = channel();
        // Ends with the output, which ends with the child.
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        Playing { input: child.stdin.take(), child, lines, words, said: Vec::new() }
    }
}

impl Playing {
    /// Says something that begins a turn. Its uuid is the text.
    pub fn tell(&mut self, text: &str) {
        let message = json!({ "role": "user", "content": text });
        self.write(&json!({ "type": "user", "uuid": text, "message": message }).to_string());
    }

    pub fn ask(&mut self, id: &str, subtype: &str) {
        let request = json!({ "subtype": subtype });
        self.write(&json!({ "type": "control_request", "request_id": id, "request": request }).to_string());
    }

    pub fn write(&mut self, line: &str) {
        // It may have ended; whoever cares looks at how.
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap_or_default();
    }

    /// Waits until it says a line with this in it.
    pub fn hears(&mut self, part: &str) {
        while !self.said.last().is_some_and(|line| line.contains(part)) {
            let line = self.lines.recv_timeout(PATIENCE);
            self.said.push(line.unwrap_or_else(|error| panic!("no `{part}` ({error}) after {:#?}", self.said)));
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends its input, and waits for its end.
    pub fn end(mut self) -> Played {
        self.input.take();
        self.ended()
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> Played {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.said.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("it goes on ({error}): {:#?}", self.said),
            }
        }
        let exit = exit(self.child.wait().unwrap());
        let mut reader = StreamJsonReader::default();
        let mut read = |line: &String| reader.read(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let mut outputs: Vec<Output> = self.said.iter().flat_map(&mut read).collect();
        outputs.retain(|output| !matches!(output, Output::Ready { .. } | Output::NotReady { .. }));
        let mut lines = self.said.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let init = lines.find(|line| line["subtype"] == "init").unwrap_or_default();
        Played { outputs, init, exit, stderr: fs::read_to_string(&self.words).unwrap() }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
    }
}

impl Played {
    /// The names of what was said, in order.
    pub fn kinds(&self) -> String {
        let kind = |output| serde_json::to_value(output).unwrap()["type"].as_str().unwrap().to_owned();
        self.outputs.iter().map(kind).collect::<Vec<_>>().join(" ")
    }

    pub fn texts(&self) -> Vec<&str> {
        let texts = self.outputs.iter().filter_map(|output| match output {
            Output::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::default();
        self.outputs.iter().for_each(|output| outcome.take(output));
        outcome
    }

    pub fn cause(&self) -> Cause {
        self.outcome().cause(self.exit, None).0
    }
}

fn exit(status: ExitStatus) -> Exit {
    match status.code() {
        Some(code) => Exit::Code(code),
        None => Exit::Signal(status.signal().unwrap()),
    }
}
