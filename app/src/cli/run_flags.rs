//! The options of commands that may start a run.

use super::CommandContext;
use crate::harness::{find_program, too_old};
use crate::quests;
use crate::report::{Code, Context as _, Report};
use crate::runner::RunSettings;
use crate::trust;
use hatchery_core::run::{MAX_RETRIES, MAX_STALL_MS, MIN_STALL_MS};
use std::ops::RangeInclusive;
use std::path::PathBuf;

const STALL_SECONDS: RangeInclusive<u64> = MIN_STALL_MS / 1_000..=MAX_STALL_MS / 1_000;

/// The harness of an agent, and the options of the harness.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct PlayerFlags {
    /// The harness, which connects Hatchery to an agent program: claude, codex, opencode, gemini, qwen, scripted, or one that the
    /// settings define [default: the setting `harness`]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,

    /// The model to use
    // An empty model is refused, because it usually comes from an unset variable of the shell.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: Option<String>,

    /// For the harness scripted: a script, or a folder from which each agent takes one script
    #[arg(long, value_name = "PATH")]
    script: Option<String>,

    /// Seconds of silence after which the agent counts as stuck [default: the setting `stall_ms`]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(STALL_SECONDS))]
    stall: Option<u64>,

    /// What happens when the agent needs permission. ask: you are asked. edits: file changes in its folder are allowed, and you
    /// are asked about the rest. all: everything is allowed. none: everything is denied, and you are not asked. See
    /// docs/permissions.md [default: the setting `permissions`, else edits in a worktree and ask elsewhere]
    #[arg(long, value_name = "POLICY", value_parser = ["ask", "edits", "all", "none"])]
    permissions: Option<String>,
}

/// The options of a run. A missing option has its default from the settings.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RunFlags {
    #[command(flatten)]
    player: PlayerFlags,

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

impl PlayerFlags {
    /// Refuses a harness whose program is missing before anything is created. A running daemon checks this itself, with its own environment.
    /// A daemon that is about to be started gets the environment of this command.
    pub fn check_before_start(&self, context: &CommandContext) -> Result<(), Report> {
        if context.project.is_served() {
            return Ok(());
        }
        let config = context.config()?;
        let name = self.harness.as_ref().unwrap_or(&config.runs.harness);
        let program = std::env::current_exe().context("this program cannot be found again")?;
        let harnesses = RunSettings::of(&context.project, &config, &program).harnesses;
        let Some(harness) = harnesses.named(name) else {
            return Err(Report::new(Code::Usage, format_args!("there is no harness `{name}`"))
                .hint(format_args!("choose one of: {}", harnesses.names().join(", "))));
        };
        let program = harness.program();
        let Some(found) = find_program(program, context.project.root(), &std::env::var_os("PATH").unwrap_or_default())
        else {
            return Err(quests::not_there(name, program).hint(
                "install it, and `hatchery doctor` shows whether it is found; `--harness scripted` needs no program",
            ));
        };
        // A program that the project names is not started, not even for its version, before the user trusts the project.
        trust::check(&context.project, &config.file)?;
        match too_old(name, &found) {
            Some(why) => Err(quests::outdated(name, &why)),
            None => Ok(()),
        }
    }

    /// The options as JSON for the daemon. A missing script is an error here; otherwise the process would crash later. The daemon runs on
    /// the same machine.
    pub fn as_json(&self) -> Result<serde_json::Value, Report> {
        // The path is relative to the current folder of this command, and the daemon has another current folder.
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

impl RunFlags {
    pub fn check_before_start(&self, context: &CommandContext) -> Result<(), Report> {
        self.player.check_before_start(context)
    }

    /// The options of the run as JSON for the daemon. A missing folder is an error.
    pub fn as_json(&self, context: &CommandContext) -> Result<serde_json::Value, Report> {
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
