//! The options of commands that may start a run.

use super::Context;
use crate::report::{Code, Report};
use hatchery_core::run::{MAX_RETRIES, MAX_STALL_MS, MIN_STALL_MS};
use std::ops::RangeInclusive;
use std::path::PathBuf;

const STALL_SECONDS: RangeInclusive<u64> = MIN_STALL_MS / 1_000..=MAX_STALL_MS / 1_000;

/// Which program plays an agent, and how.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Player {
    /// The program that runs the agent: claude, codex, opencode, gemini, qwen, scripted, or one of the settings [default: the
    /// setting `harness`]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,

    /// The model to use
    // An empty one is a variable of the shell that is not set.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: Option<String>,

    /// For the scripted harness: a script, or a folder from which it takes one
    #[arg(long, value_name = "PATH")]
    script: Option<String>,

    /// Seconds of silence after which the agent counts as stuck [default: the setting `stall_ms`]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(STALL_SECONDS))]
    stall: Option<u64>,

    /// What the agent may do without asking you: ask, edits, all or none; see docs/permissions.md [default: the setting
    /// `permissions`, else edits in a worktree and ask elsewhere]
    #[arg(long, value_name = "POLICY", value_parser = ["ask", "edits", "all", "none"])]
    permissions: Option<String>,
}

/// How a run differs from what is usual here.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RunOptions {
    #[command(flatten)]
    player: Player,

    /// The folder to work in, relative to the project's root
    #[arg(long, value_name = "FOLDER")]
    folder: Option<String>,

    /// Wait for more messages after a turn, instead of ending
    #[arg(long)]
    stay: bool,

    /// How many times in a row a crashed process is resumed [default: the setting `retries`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_RETRIES)))]
    retries: Option<u32>,
}

impl Player {
    /// What is not there is better told now than found in the crash of a process. The daemon is on the same machine.
    pub fn as_json(&self) -> Result<serde_json::Value, Report> {
        // A path is meant from where the command is given, and the daemon is elsewhere.
        let absolute = |script: &String| std::path::absolute(script).unwrap_or_else(|_| PathBuf::from(script));
        let script = self.script.as_ref().map(absolute);
        if let Some(script) = script.as_ref().filter(|script| !script.exists()) {
            let there = format!("there is no script {}", script.display());
            return Err(Report::new(Code::Usage, there).hint("--script is relative to the current folder"));
        }
        Ok(serde_json::json!({
            "harness": self.harness, "model": self.model, "script": script,
            "stallMs": self.stall.map(|seconds| seconds * 1_000), "permissions": self.permissions,
        }))
    }
}

impl RunOptions {
    /// The same for a whole run.
    pub fn as_json(&self, context: &Context) -> Result<serde_json::Value, Report> {
        if let Some(folder) = self.folder.as_ref().map(|folder| context.project.root().join(folder))
            && !folder.is_dir()
        {
            let there = format!("there is no folder {}", folder.display());
            return Err(Report::new(Code::Usage, there).hint("--folder is relative to the project's root"));
        }
        let mut options = self.player.as_json()?;
        options["folder"] = self.folder.as_deref().into();
        options["stays"] = self.stay.then_some(true).into();
        options["retries"] = self.retries.into();
        Ok(options)
    }
}
