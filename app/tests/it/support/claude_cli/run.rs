//! One run of the CLI: lines go in, lines come out into a file, and it ends.

use super::uuid;
use crate::support::daemon::{LOOK_AGAIN, PATIENCE, ended_within};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Instant;

/// What its standard input is.
pub struct Input(Kind);

enum Kind {
    Pipe,
    Fifo(PathBuf),
}

/// Killed when it is dropped, if it has not ended.
pub struct Run {
    child: Child,
    mouth: Mouth,
    output: PathBuf,
    errors: PathBuf,
}

/// Where lines go in.
enum Mouth {
    Pipe(Option<ChildStdin>),
    /// Opened anew for each line, as a supervisor does that may be gone between two of them.
    Fifo(PathBuf),
}

/// All that a run has said, and how it went.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub lines: Vec<Value>,
    pub stderr: String,
}

impl Input {
    /// Ends when we end it.
    pub fn pipe() -> Self {
        Self(Kind::Pipe)
    }

    /// Held open by the CLI itself, so it never ends.
    pub fn fifo(path: &Path) -> Self {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        Self(Kind::Fifo(path.to_owned()))
    }
}

impl Run {
    pub(super) fn start(mut command: Command, input: Input, folder: &Path) -> Self {
        let name = uuid();
        let (output, errors) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        command.stdout(fs::File::create(&output).unwrap()).stderr(fs::File::create(&errors).unwrap());
        command.stdin(match &input.0 {
            Kind::Pipe => Stdio::piped(),
            Kind::Fifo(path) => fs::File::options().read(true).write(true).open(path).unwrap().into(),
        });
        let mut child = command.spawn().unwrap();
        let mouth = match input.0 {
            Kind::Pipe => Mouth::Pipe(child.stdin.take()),
            Kind::Fifo(path) => Mouth::Fifo(path),
        };
        Self { child, mouth, output, errors }
    }

    /// Says something to the agent, and gives the UUID that it was said under.
    pub fn say(&mut self, text: &str) -> String {
        let uuid = uuid();
        self.say_as(&uuid, text);
        uuid
    }

    pub fn say_as(&mut self, uuid: &str, text: &str) {
        self.send(&json!({ "type": "user", "uuid": uuid, "message": { "role": "user", "content": text } }));
    }

    pub fn interrupt(&mut self, request: &str) {
        self.send(&json!({ "type": "control_request", "request_id": request, "request": { "subtype": "interrupt" } }));
    }

    fn send(&mut self, line: &Value) {
        let line = format!("{line}\n");
        match &mut self.mouth {
            Mouth::Pipe(pipe) => pipe.as_mut().unwrap().write_all(line.as_bytes()).unwrap(),
            Mouth::Fifo(path) => {
                fs::File::options().append(true).open(path).unwrap().write_all(line.as_bytes()).unwrap();
            }
        }
    }

    /// What it has said until now.
    pub fn lines(&self) -> Vec<Value> {
        let output = fs::read_to_string(&self.output).unwrap();
        // The last one may not be whole yet.
        let whole = output.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect()
    }

    /// Waits for the nth line that is so, counted from 1.
    pub fn line(&mut self, nth: usize, is: impl Fn(&Value) -> bool) -> Value {
        let mut found = None;
        self.until(|run| {
            found = run.lines().into_iter().filter(&is).nth(nth - 1);
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits for the end of the nth turn, counted from 1.
    pub fn result(&mut self, nth: usize) -> Value {
        self.line(nth, |line| line["type"] == "result")
    }

    /// Waits until something is so that gives no sign. Fails when the run ends before.
    pub fn until(&mut self, mut is_so: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        // Looked at once more after the end: the last lines come with it.
        let mut ended = None;
        while !is_so(self) {
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "ended: {ended:?}, {:#?}\n{}",
                self.lines(),
                self.errors()
            );
            ended = self.child.try_wait().unwrap();
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Ends its input, and waits for nothing.
    pub fn end_input(&mut self) {
        match &mut self.mouth {
            Mouth::Pipe(pipe) => drop(pipe.take()),
            Mouth::Fifo(path) => panic!("{} does not end", path.display()),
        }
    }

    /// Ends its input and waits for its end.
    pub fn end(mut self) -> Ended {
        self.end_input();
        self.ended()
    }

    /// Sends it a signal and waits for its end.
    pub fn signal(mut self, signal: Signal) -> Ended {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.ended()
    }

    fn ended(&mut self) -> Ended {
        assert!(ended_within(self.child.id(), PATIENCE), "it does not end: {:#?}", self.lines());
        let status: ExitStatus = self.child.wait().unwrap();
        Ended { code: status.code(), signal: status.signal(), lines: self.lines(), stderr: self.errors() }
    }

    fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Fails only when it has ended already.
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
    }
}

impl Ended {
    /// The order of what it said: the types, with their subtypes and states.
    pub fn order(&self) -> Vec<String> {
        let name = |line: &Value| {
            let parts = ["type", "subtype", "state"].map(|field| line[field].as_str().map(str::to_owned));
            parts.into_iter().flatten().collect::<Vec<_>>().join("/")
        };
        self.lines.iter().map(name).collect()
    }

    pub fn results(&self) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == "result").collect()
    }
}
