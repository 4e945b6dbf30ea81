//! Where the CLI believes to live: a fresh home, a folder to work in, a model. Whatever was started in it is gone when it goes.

use super::{ClaudeCli, Input, Run};
use crate::support::daemon::{Grounds, PATIENCE, PROGRAM, ended_within};
use crate::support::model::Model;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// More than any test starts. A test that fails must still end.
const MOST_LEFT_BEHIND: usize = 100;

pub struct Home {
    folder: TempDir,
    /// Where the CLI works.
    work: PathBuf,
    program: PathBuf,
    model: String,
}

impl Home {
    pub fn new(cli: &ClaudeCli, model: &Model) -> Self {
        let folder = TempDir::with_prefix("claude").unwrap();
        for name in ["home", "work", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let work = folder.path().join("work");
        Self { folder, work, program: cli.program().to_owned(), model: model.url() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Lets the CLI work elsewhere from now on.
    pub fn work_in(&mut self, folder: &Path) {
        self.work = folder.to_owned();
    }

    /// Everything that the CLI gets of an environment.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("HOME", self.folder.path().join("home").into()),
            ("TMPDIR", self.folder.path().join("tmp").into()),
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("ANTHROPIC_BASE_URL", self.model.clone().into()),
            ("ANTHROPIC_API_KEY", "dummy".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_ERROR_REPORTING", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".into()),
            // What it was told is on disk before it says `init`. Without this a kill within the first turn may leave nothing.
            ("CLAUDE_CODE_EAGER_FLUSH", "1".into()),
        ]
    }

    /// Begins a conversation under an id that is ours.
    pub fn begin(&self, session: &str) -> Run {
        self.start(Input::pipe(), &["--session-id", session])
    }

    pub fn resume(&self, session: &str) -> Run {
        self.start(Input::pipe(), &["--resume", session])
    }

    /// In the form in which the harness starts it: lines of JSON in, lines of JSON out into a file.
    pub fn start(&self, input: Input, arguments: &[&str]) -> Run {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program);
        command.args(["-p", "--output-format", "stream-json", "--verbose"]);
        command.args(["--input-format", "stream-json", "--replay-user-messages"]);
        command.arg("--mcp-config").arg(self.tools_file()).args([
            "--strict-mcp-config",
            "--allowedTools",
            "mcp__hatchery",
        ]);
        command.args(arguments).env_clear().envs(self.environment()).current_dir(&self.work);
        Run::start(command, input, self.folder.path())
    }

    /// Gives it the tools of an agent, with their schemas shown to the model from the beginning.
    pub fn with_tools_of(self, grounds: &Grounds, agent: &str) -> Self {
        let arguments = json!(["mcp", "--agent", agent, "--project", grounds.path()]);
        let server = json!({ "type": "stdio", "command": PROGRAM, "args": arguments, "alwaysLoad": true });
        fs::write(self.tools_path(), json!({ "mcpServers": { "hatchery": server } }).to_string()).unwrap();
        self
    }

    /// What the CLI keeps of a conversation, if it has written anything yet.
    pub fn transcript(&self, session: &str) -> Option<String> {
        let projects = fs::read_dir(self.folder.path().join("home/.claude/projects")).ok()?;
        let files = projects.flatten().map(|project| project.path().join(format!("{session}.jsonl")));
        files.filter_map(|file| fs::read_to_string(file).ok()).next()
    }

    /// Without tools, unless some were given.
    fn tools_file(&self) -> PathBuf {
        let path = self.tools_path();
        if !path.exists() {
            fs::write(&path, json!({ "mcpServers": {} }).to_string()).unwrap();
        }
        path
    }

    fn tools_path(&self) -> PathBuf {
        self.folder.path().join("tools.json")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Servers and shells that a killed CLI left behind are known by the home that they inherited.
        let mark = [b"HOME=", self.folder.path().join("home").as_os_str().as_bytes()].concat();
        // Again and again, because one of them may just be starting another.
        for pid in std::iter::from_fn(|| marked(&mark).pop()).take(MOST_LEFT_BEHIND) {
            // Fails only when it has ended already.
            kill_process(pid, Signal::KILL).unwrap_or_default();
            ended_within(pid.as_raw_pid().unsigned_abs(), PATIENCE);
        }
    }
}

fn marked(mark: &[u8]) -> Vec<Pid> {
    let carries = |process: &Path| {
        fs::read(process.join("environ"))
            .is_ok_and(|variables| variables.split(|byte| *byte == 0).any(|one| one == mark))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes.filter(|process| carries(process)).filter_map(|process| pid(&process)).collect()
}

fn pid(process: &Path) -> Option<Pid> {
    Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)
}
