//! The real opencode CLI, pinned in `tests/opencode-cli/`, run against a scripted model: never with an account, never with our
//! environment, and never outside the loopback interface.

use crate::support::model::Model;
use crate::support::npm::{PinnedProgram, RealProgram};
use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// opencode, or the end of the test with a word about it.
macro_rules! opencode_or_skip {
    () => {
        $crate::support::npm::or_skip!($crate::support::opencode_cli::OpencodeCli)
    };
}
pub(crate) use opencode_or_skip;

/// The program, installed.
#[derive(Debug)]
pub struct OpencodeCli {
    program: PathBuf,
}

impl RealProgram for OpencodeCli {
    const NAME: &'static str = "opencode";
    const PINNED: PinnedProgram = PinnedProgram {
        cache: "opencode-cli",
        name: "opencode-linux-x64",
        package: include_str!("../../opencode-cli/package.json"),
        lock: include_str!("../../opencode-cli/package-lock.json"),
        native: |modules| Some(modules.join("opencode-linux-x64/bin/opencode")).filter(|program| program.is_file()),
        run_by: None,
        without_optional: false,
    };

    fn at(program: PathBuf) -> Self {
        Self { program }
    }

    fn installed() -> &'static OnceLock<Result<Self, String>> {
        static INSTALLED: OnceLock<Result<OpencodeCli, String>> = OnceLock::new();
        &INSTALLED
    }
}

impl OpencodeCli {
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// Where opencode believes to live: a fresh home with settings that lead to a scripted model.
pub struct OpencodeHome {
    folder: TempDir,
}

impl OpencodeHome {
    pub fn new(model: &Model) -> Self {
        let folder = TempDir::with_prefix("opencode").unwrap();
        fs::create_dir_all(folder.path().join("home/.config/opencode")).unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        let options = json!({ "baseURL": format!("{}/v1", model.url()), "apiKey": "dummy" });
        // In dollars for a million tokens.
        let cost = json!({ "input": 2, "output": 4 });
        // It reports costs only of a model whose limits it knows.
        let limit = json!({ "context": 200_000, "output": 8_000 });
        let named = |name: &str| json!({ "name": name, "cost": cost, "limit": limit });
        let models = json!({ "m": named("m"), "other": named("other") });
        let settings = json!({
            "provider": { "scripted": { "npm": "@ai-sdk/anthropic", "options": options, "models": models } },
            "model": "scripted/m",
            "autoupdate": false,
            "share": "disabled",
            "permission": { "bash": "ask" },
        });
        fs::write(folder.path().join("home/.config/opencode/opencode.json"), settings.to_string()).unwrap();
        Self { folder }
    }

    /// Everything that opencode gets of an environment.
    pub fn environment(&self) -> Vec<(String, OsString)> {
        let own: [(&str, OsString); 7] = [
            ("HOME", self.folder.path().join("home").into()),
            ("TMPDIR", self.folder.path().join("tmp").into()),
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            // Nothing but the scripted model is asked for anything.
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".into()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".into()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".into()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".into()),
        ];
        own.map(|(name, value)| (name.to_owned(), value)).into()
    }
}
