//! `hatchery gc`

use super::paint::{DIM, paint};
use super::{CommandContext, asking, counted, print_json, print_line, say};
use crate::client::Client;
use crate::gc::LeftoverKind;
use crate::http::{FoundLeftover, Leftovers};
use crate::report::Report;
use std::process::ExitCode;

/// Show what is left over, and clear it
///
/// Leftovers are the folders of ended attempts, of wards of ended quests, of ended quests with their quest.json, and of killed selftests;
/// empty folders of agents, locks of harness sessions, the state of dead scripted agents, and branches of ended quests and dead agents
/// that are merged or squashed into the branch that is checked out. The log and rescued work stay, and so does a branch that a worktree
/// uses. The daemon clears leftovers by itself after `keep_runs_days`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Clear what is shown
    #[arg(long)]
    clear: bool,

    /// Only what is at least this many days old
    #[arg(long, value_name = "N", default_value_t = 0)]
    days: u32,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let body = serde_json::json!({ "clear": args.clear, "days": args.days });
    let found: Leftovers = asking(async { Client::visit(&context.project).await?.post("/api/gc", &body).await })?;
    if context.json {
        print_json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    for FoundLeftover { leftover, stays } in &found.leftovers {
        let kind = match leftover.kind {
            LeftoverKind::Attempt => "attempt",
            LeftoverKind::Ward => "ward",
            LeftoverKind::QuestFolder => "quest folder",
            LeftoverKind::Selftest => "selftest",
            LeftoverKind::AgentFolder => "empty folder",
            LeftoverKind::SessionLock => "session lock",
            LeftoverKind::ScriptedState => "scripted state",
            LeftoverKind::WorktreeLock => "worktree lock",
            LeftoverKind::Branch => "merged branch",
        };
        let size = paint(DIM, format_args!("{:>8} KiB", leftover.bytes.div_ceil(1_024)));
        let stays = stays.iter().map(|why| format!("  stays: {}", why.replace('\n', " "))).collect::<String>();
        print_line(&format!("{kind:<14} {size}  {}{stays}", leftover.what))?;
    }
    let bytes: u64 = found.leftovers.iter().map(|found| found.leftover.bytes).sum();
    let all = counted(found.leftovers.len() as u64, "leftover");
    match args.clear {
        true => say(format_args!("{} of {all} cleared", found.cleared)),
        false if found.leftovers.is_empty() => say("nothing is left over"),
        false => say(format_args!("{all}, {} KiB; `hatchery gc --clear` clears them", bytes.div_ceil(1_024))),
    }
    Ok(ExitCode::SUCCESS)
}
