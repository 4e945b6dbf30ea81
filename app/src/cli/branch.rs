//! Finds the branch for `diff`, `merge` and `pr`.

use crate::client::Client;
use crate::client::paths::branch_path;
use crate::http::{BranchKind, BranchLine, BranchList, BranchView};
use crate::report::{Code, Report};

/// The quest or agent that a request names: the given one, otherwise the only one with a branch.
pub async fn meant(client: &Client, given: Option<&str>) -> Result<String, Report> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let list: BranchList = client.get("/api/branches").await?;
    // A merged branch is chosen only if the user names it, or if there is no other branch.
    let unmerged: Vec<BranchLine> = list.branches.iter().filter(|line| !line.merged).cloned().collect();
    let candidates = if unmerged.is_empty() { &list.branches } else { &unmerged };
    match candidates.as_slice() {
        [] => Err(Report::failed("no agent and no quest has a branch")
            .hint("`hatchery run --worktree TASK` gives an agent a branch; `hatchery quest new` gives a quest one")
            .named("no_branch")),
        [only] => Ok(only.slug.clone()),
        several => {
            let lines: Vec<String> = several.iter().map(line).collect();
            let message = format!("{} branches could be meant:\n{}", several.len(), lines.join("\n"));
            Err(Report::new(Code::Usage, message).hint("name one: the branch, the agent or the quest"))
        }
    }
}

/// A branch as a line of a list.
fn line(branch: &BranchLine) -> String {
    let who = match (&branch.kind, &branch.name) {
        (BranchKind::Quest, _) => "quest".to_owned(),
        (BranchKind::Agent, Some(name)) => format!("agent {name}"),
        (BranchKind::Agent, None) => "agent".to_owned(),
    };
    let busy = if branch.busy { ", at work" } else { "" };
    let merged = if branch.merged { ", merged" } else { "" };
    format!("  {}  {who}{busy}{merged}", branch.branch)
}

/// Commits the changes in the worktree, and returns the branch after that commit.
pub async fn committed(client: &Client, given: Option<&str>) -> Result<BranchView, Report> {
    let meant = meant(client, given).await?;
    let view: BranchView = client.post(&branch_path(&meant, "/commit"), &serde_json::json!({})).await?;
    match view.head {
        Some(_) => Ok(view),
        None => {
            let message = format!("there is no branch {}: nothing was begun on it, or it was merged", view.line.branch);
            Err(Report::failed(message).hint("`git log` shows what your branch has").named("no_branch"))
        }
    }
}

/// A sentence about by-products that were not committed.
pub fn left_out(view: &BranchView) -> Option<String> {
    match view.left_out.as_slice() {
        [] => None,
        paths => Some(format!("not committed, because they are by-products: {}", paths.join(", "))),
    }
}
