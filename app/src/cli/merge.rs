//! `hatchery merge`

use super::{CommandContext, asking, branch, counted, print_json, quoted, reference, say};
use crate::client::Client;
use crate::client::paths::branch_path;
use crate::http::{BranchKind, BranchLine, BranchView, ClearedBranch};
use crate::own_environment;
use crate::report::{Context as _, Report};
use crate::worktree::{Repository, Taken, Taking, WorktreeError};
use serde_json::json;
use std::process::ExitCode;

/// Merge the work of an agent or a quest into your branch
///
/// Commits what the agent has not committed, except by-products, and merges its branch into the branch that you have checked out. If your
/// checkout has uncommitted changes, or if both sides have changed the same lines, nothing is done. A quest is always merged with a merge commit that names its
/// request. After the merge an agent's worktree and branch are removed, unless its process stays there; its next task starts at your
/// branch again. A quest keeps its branch.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// An agent, a quest or a branch: an id, the beginning of one, or a name [default: if there is only one branch, that branch]
    #[arg(value_name = "AGENT|QUEST", allow_hyphen_values = true, value_parser = reference)]
    who: Option<String>,

    /// Make one commit of all changes
    #[arg(long)]
    squash: bool,
}

const EXAMPLES: &str = "\
Examples:
  hatchery run -w --name flag \"add a --verbose flag\"
  hatchery diff flag
  hatchery merge flag --squash";

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let found = Repository::find(&context.project, own_environment::entries()).context("git is in trouble")?;
    let repository = found
        .map_err(|why| Report::failed(format_args!("nothing can be merged here: {why}")).named("no_repository"))?;
    asking(async {
        let client = Client::visit(&context.project).await?;
        let waits = || match context.json {
            true => {}
            false => say("another `hatchery merge` works in your checkout; this one follows it"),
        };
        let _turn = repository.checkout_turn(waits).map_err(not_merged)?;
        let view = branch::committed(&client, args.who.as_deref()).await?;
        let head = view.head.clone().unwrap_or_default();
        let how = match args.squash {
            true => Taking::Squash { message: format!("{}\n\n{}", view.title, view.body).trim_end().to_owned() },
            // The branch of a quest contains the commits and merges of its steps. The merge commit says what they are for.
            false => {
                Taking::Merge { message: merge_message(&view), always_commit: view.line.kind == BranchKind::Quest }
            }
        };
        let taken = repository.take_into_checkout(&view.line.slug, &head, &how).map_err(not_merged)?;
        let (into, commit) = match taken {
            Taken::Merged { into, commit } => (into, Some(commit)),
            Taken::Already { into } => (into, None),
            refused => return Err(explain(&view, refused)),
        };
        let cleared: Result<ClearedBranch, Report> =
            client.post(&branch_path(&view.line.slug, "/merged"), &json!({ "head": head })).await;
        let cleared = cleared.map_err(|report| not_cleared(&view, &into, &report))?;
        if context.json {
            print_json(&json!({
                "branch": view.line.branch, "into": into, "commit": commit, "files": view.files,
                "leftOut": view.left_out, "rescued": cleared.rescued, "usedBy": cleared.used_by,
            }))?;
            return Ok(ExitCode::SUCCESS);
        }
        tell(&view, &into, commit.is_some(), args.squash, &cleared);
        Ok(ExitCode::SUCCESS)
    })
}

/// The message of a merge commit: the task and the branch.
fn merge_message(view: &BranchView) -> String {
    let what = match view.line.kind {
        BranchKind::Quest => "quest".to_owned(),
        BranchKind::Agent => view.line.name.clone().unwrap_or_else(|| "agent".to_owned()),
    };
    format!("Merge {what}: {}\n\n{}\n\nBranch: {}", view.title, view.body, view.line.branch).replace("\n\n\n\n", "\n\n")
}

fn tell(view: &BranchView, into: &str, changed: bool, squashed: bool, cleared: &ClearedBranch) {
    let branch = &view.line.branch;
    match changed {
        true => {
            let files = counted(view.files, "file");
            say(format_args!("{into} has the work of {branch} now: {files}, +{} -{}", view.added, view.removed));
        }
        false => say(format_args!("{into} has all of {branch} already")),
    }
    if let Some(words) = branch::left_out(view) {
        say(words);
    }
    match (view.line.kind, cleared.rescued.as_deref(), cleared.used_by.as_deref()) {
        (BranchKind::Agent, _, Some(agent)) => say(format_args!(
            "the branch and its worktree stay while {agent} listens there; after `hatchery stop {}`, `hatchery merge {}` removes them",
            quoted(agent),
            view.line.slug
        )),
        (BranchKind::Agent, Some(name), None) => {
            say(format_args!("the branch is removed; its original commits are kept: `hatchery rescue restore {name}`"));
        }
        (BranchKind::Agent, None, None) => say("the branch and its worktree are removed"),
        // For git, a squashed branch is not merged, so `git branch -d` would refuse to delete it.
        (BranchKind::Quest, _, _) => say(format_args!(
            "the branch stays; `git branch {} {branch}` removes it",
            if squashed || !changed { "-D" } else { "-d" }
        )),
    }
    if view.line.kind == BranchKind::Quest && view.line.open {
        say("the quest goes on; merge again when it is complete");
    }
}

fn not_merged(error: WorktreeError) -> Report {
    let name = match error {
        WorktreeError::CheckoutInUse { .. } | WorktreeError::Busy { .. } => "checkout_in_use",
        WorktreeError::Undone { .. } => "merge_undone",
        WorktreeError::HalfMerged { .. } => "merge_not_undone",
        _ => "failed",
    };
    Report::failed(error).named(name)
}

/// The error for a merge that succeeded, but whose worktree or branch could not be removed.
fn not_cleared(view: &BranchView, into: &str, report: &Report) -> Report {
    let BranchLine { branch, slug, .. } = &view.line;
    let message = format!(
        "{into} has the work of {branch} now, but its worktree and the branch could not be removed: {}",
        report.message
    );
    let hint = report.hint.as_ref().map(|hint| format!("{hint}; ")).unwrap_or_default();
    Report::failed(message)
        .hint(format_args!(
            "{hint}`hatchery merge {slug}` removes them when the cause is gone; it merges nothing twice"
        ))
        .named("not_cleared")
}

/// The error that says why nothing was merged, and what to do.
fn explain(view: &BranchView, taken: Taken) -> Report {
    let branch = &view.line.branch;
    match taken {
        Taken::Dirty { files, count } => {
            let what = if count == 1 { "1 file is".to_owned() } else { format!("{count} files are") };
            let more = if count > files.len() { ", …" } else { "" };
            let message = format!(
                "your checkout has uncommitted changes, so nothing was merged: {what} changed ({}{more})",
                files.join(", ")
            );
            Report::failed(message)
                .hint("commit them, or `git stash` before the merge and `git stash pop` after it")
                .named("checkout_dirty")
        }
        Taken::InTheWay { files } => {
            let message = format!(
                "{branch} adds files that are in your checkout and that git does not know, so nothing was merged: {}",
                files.join(", ")
            );
            Report::failed(message).hint("move them away or remove them, and merge again").named("files_in_the_way")
        }
        Taken::OwnData { files } => {
            let message = format!(
                "{branch} brings files of Hatchery's own folder, which could have programs run, so nothing was merged: {}",
                files.join(", ")
            );
            Report::failed(message)
                .hint("remove them from the branch: `git rm -r --cached .hatchery` in its worktree, and commit")
                .named("own_data")
        }
        Taken::Conflict { into, files } => {
            let message = format!(
                "{branch} and {into} have changed the same lines, so nothing was merged. The conflicts are in: {}",
                files.join(", ")
            );
            let ask = match view.line.kind {
                BranchKind::Agent => {
                    let who = view.line.name.as_deref().unwrap_or(&view.line.id);
                    format!(
                        "let the agent resolve them: `hatchery run --agent {who} \"merge {into} into your branch and resolve the conflicts\"`, \
                             then merge again; or "
                    )
                }
                BranchKind::Quest => String::new(),
            };
            Report::failed(message)
                .hint(format_args!("{ask}resolve them yourself: `git merge {branch}`"))
                .named("merge_conflict")
        }
        Taken::Unready { why } => Report::failed(format_args!("nothing was merged: {why} in your checkout"))
            .hint("`git status` says more; finish that, or check out the branch that is to have the work")
            .named("checkout_not_ready"),
        Taken::Merged { .. } | Taken::Already { .. } => Report::failed("the branch was merged"),
    }
}
