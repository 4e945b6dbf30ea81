//! The real codex CLI, pinned in `tests/codex-cli/`, run against a scripted model: never with an account, never with our environment,
//! and never outside the loopback interface.

use crate::support::model::Model;
use crate::support::npm::{PinnedProgram, RealProgram};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Codex, or the end of the test with a word about it.
macro_rules! codex_or_skip {
    () => {
        $crate::support::npm::or_skip!($crate::support::codex_cli::CodexCli)
    };
}
pub(crate) use codex_or_skip;

/// The program, installed.
#[derive(Debug)]
pub struct CodexCli {
    program: PathBuf,
}

impl RealProgram for CodexCli {
    const NAME: &'static str = "codex";
    const PINNED: PinnedProgram = PinnedProgram {
        cache: "codex-cli",
        name: "@openai/codex",
        package: include_str!("../../codex-cli/package.json"),
        lock: include_str!("../../codex-cli/package-lock.json"),
        native: |modules| {
            let packages = fs::read_dir(modules.join("@openai")).ok()?;
            let vendors = packages.flatten().filter_map(|package| fs::read_dir(package.path().join("vendor")).ok());
            vendors.flatten().flatten().map(|triple| triple.path().join("bin/codex")).find(|path| path.is_file())
        },
        run_by: None,
        without_optional: false,
    };

    fn at(program: PathBuf) -> Self {
        Self { program }
    }

    fn installed() -> &'static OnceLock<Result<Self, String>> {
        static INSTALLED: OnceLock<Result<CodexCli, String>> = OnceLock::new();
        &INSTALLED
    }
}

impl CodexCli {
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// Where codex believes to live: a fresh home with settings that lead to a scripted model.
pub struct CodexHome {
    folder: TempDir,
}

impl CodexHome {
    pub fn new(model: &Model) -> Self {
        let folder = TempDir::with_prefix("codex").unwrap();
        for name in ["home", "home/.codex", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let settings = format!(
            "model = 'gpt-5.5'\nmodel_provider = 'scripted'\n[model_providers.scripted]\nname = 'scripted'\n\
             base_url = '{}/v1'\nenv_key = 'OPENAI_API_KEY'\nwire_api = 'responses'\nrequest_max_retries = 0\n\
             stream_max_retries = 1\n",
            model.url()
        );
        fs::write(folder.path().join("home/.codex/config.toml"), settings).unwrap();
        Self { folder }
    }

    /// Where codex keeps its threads.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("home/.codex")
    }

    /// Everything that codex gets of an environment.
    pub fn environment(&self) -> Vec<(String, OsString)> {
        let own = [
            ("HOME", self.folder.path().join("home").into()),
            ("TMPDIR", self.folder.path().join("tmp").into()),
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("CODEX_HOME", self.path().into()),
            ("OPENAI_API_KEY", "dummy".into()),
        ];
        own.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Holds a thread as a process of codex does, until the file is dropped.
    pub fn lock_thread(&self, thread: &str) -> fs::File {
        let folder = self.path().join("thread-writer-locks");
        fs::create_dir_all(&folder).unwrap();
        let lock = fs::File::create(folder.join(format!("{thread}.lock"))).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        lock
    }

    /// The ids of our messages in codex's own records, in order.
    pub fn recorded_messages(&self) -> Vec<String> {
        let mut folders = vec![self.path().join("sessions")];
        let mut ids = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                match fs::read_to_string(entry.path()) {
                    Ok(text) => ids.extend(text.split('\n').filter_map(message_id)),
                    Err(_) => folders.push(entry.path()),
                }
            }
        }
        ids
    }
}

fn message_id(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let payload = &line["payload"];
    let said = payload["type"] == "item_completed" && payload["item"]["type"] == "UserMessage";
    said.then(|| payload["item"]["client_id"].as_str().map(str::to_owned)).flatten()
}
