//! Tries the ward of a quest before its first agent starts, and asks the user what to do if the ward is red.

use super::super::paint::{BAD, DIM, WARN, paint, printable};
use super::super::{CommandContext, say};
use crate::client::Client;
use crate::client::paths::quest_path;
use crate::http::{TrialVerdict, TriedWard};
use crate::quest_document::QuestDocument;
use crate::report::{Context as _, Report};
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _};

/// How many findings are printed.
const SHOWN_FINDINGS: usize = 5;

/// Whether the quest may begin. If the ward is broken, or red on the commit at which the quest begins, the user is told.
pub async fn may_begin(context: &CommandContext, client: &Client, quest: &QuestDocument) -> Result<bool, Report> {
    let begun = quest.steps.iter().any(|step| !step.agents.is_empty());
    let Some(ward) = quest.ward.as_ref().filter(|_| !begun) else { return Ok(true) };
    if !context.json {
        let place = if quest.branch.is_some() { "your last commit, in a worktree" } else { "the project" };
        say(paint(DIM, format_args!("trying the ward `{}` on {place}", printable(&ward.command))));
    }
    let id = quest.id.to_string();
    let tried: TriedWard = client.post(&quest_path(&id, "/try-ward"), &json!({})).await?;
    if !tried.restored.is_empty() && !context.json {
        let files = printable(&tried.restored.join(", "));
        say(format_args!(
            "{} the ward has changed or deleted files that git tracks, which were restored: {files}; what a ward changes is not committed",
            paint(WARN, "warning:")
        ));
    }
    match tried.verdict {
        TrialVerdict::None | TrialVerdict::Green => {
            if let Some(why) = tried.why.as_ref().filter(|_| !context.json) {
                let warning = paint(WARN, "warning:");
                let why = printable(why);
                say(format_args!(
                    "{warning} the ward is green, but {why}: it accepts any work until the steps add tests"
                ));
            }
            Ok(true)
        }
        TrialVerdict::Red => {
            tell(&tried, &paint(WARN, "the ward is red before any work"));
            tell_worktree(quest);
            say("a step is complete only when the ward is green; begin only if the quest is to make it green");
            match asked(context, "begin anyway? [y/N] ")? {
                Some(answer) => Ok(answer),
                None => {
                    say(format_args!("the quest is paused: `hatchery quest run --no-trial {id}` begins it anyway"));
                    Ok(false)
                }
            }
        }
        TrialVerdict::Broken => {
            tell(&tried, &paint(BAD, "the ward is broken, so no step could be complete"));
            tell_worktree(quest);
            say(format_args!(
                "the quest is paused: `hatchery quest ward {id} COMMAND` changes the ward, then `hatchery quest run {id}` begins it"
            ));
            Ok(false)
        }
    }
}

/// Prints a hint: a ward that works in the user's checkout may lack untracked files in a worktree.
fn tell_worktree(quest: &QuestDocument) {
    if quest.branch.is_some() {
        say("a worktree has only what git tracks: `setup` and `copy` in `[worktrees]` prepare it (docs/quests.md)");
    }
}

fn tell(tried: &TriedWard, headline: &str) {
    let why = tried.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    say(format_args!("{headline}{}", printable(&why)));
    for finding in tried.findings.iter().take(SHOWN_FINDINGS) {
        say(paint(DIM, format_args!("  {}", printable(finding))));
    }
    if let Some(output) = &tried.output {
        say(paint(DIM, format_args!("  all of its output is in {output}")));
    }
}

/// Asks the user. `None` without a terminal, or with --json.
fn asked(context: &CommandContext, question: &str) -> Result<Option<bool>, Report> {
    if context.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(None);
    }
    anstream::eprint!("{question}");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("the answer cannot be read")?;
    Ok(Some(["y", "yes"].contains(&line.trim().to_lowercase().as_str())))
}
