//! `hatchery pr`

use super::paint::{DIM, paint};
use super::{CommandContext, asking, branch, print_json, print_line, reference, say};
use crate::client::Client;
use crate::harness::find_program;
use crate::http::BranchView;
use crate::report::{Context as _, Report};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Make a pull request of the work of an agent or a quest
///
/// Commits what the agent has not committed, except by-products, and prints the branch, a title and a description. If the GitHub CLI (`gh`) is
/// installed, also pushes the branch and creates the pull request with it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// An agent, a quest or a branch: an id, the beginning of one, or a name [default: if there is only one branch, that branch]
    #[arg(value_name = "AGENT|QUEST", allow_hyphen_values = true, value_parser = reference)]
    who: Option<String>,

    /// Only print; push nothing and create nothing
    #[arg(long)]
    print: bool,

    /// Create the pull request as a draft
    #[arg(long, conflicts_with = "print")]
    draft: bool,

    /// The remote to push the branch to
    #[arg(long, value_name = "NAME", default_value = "origin")]
    remote: String,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let view = asking(async {
        let client = Client::visit(&context.project).await?;
        branch::committed(&client, args.who.as_deref()).await
    })?;
    if view.commits == 0 {
        return Err(Report::failed(format_args!("your branch has all of {} already", view.line.branch))
            .hint("`hatchery diff` shows what is changed and not committed")
            .named("nothing_new"));
    }
    if context.json {
        print_json(&view)?;
        return Ok(ExitCode::SUCCESS);
    }
    show(&view)?;
    if args.print {
        return Ok(ExitCode::SUCCESS);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    match find_program(Path::new("gh"), context.project.root(), &path) {
        Some(gh) => create(context, args, &view, &gh),
        None => {
            say(format_args!(
                "the GitHub CLI (`gh`) is not installed, so nothing was pushed: `git push -u {} {}`, then create the pull request",
                args.remote, view.line.branch
            ));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn show(view: &BranchView) -> Result<(), Report> {
    print_line(&format!("{}  {}", paint(DIM, "branch"), view.line.branch))?;
    print_line(&format!("{}   {}", paint(DIM, "title"), view.title))?;
    if !view.body.is_empty() {
        print_line("")?;
        print_line(&view.body)?;
    }
    if let Some(words) = branch::left_out(view) {
        say(words);
    }
    Ok(())
}

/// Pushes the branch with git and creates the pull request with gh. Both programs print their own messages.
fn create(context: &CommandContext, args: &Args, view: &BranchView, gh: &Path) -> Result<ExitCode, Report> {
    let root = context.project.root();
    let branch = &view.line.branch;
    let refs = format!("refs/heads/{branch}:refs/heads/{branch}");
    let mut push = Command::new("git");
    push.current_dir(root).args(["push", "--set-upstream", &args.remote, &refs]);
    if !push.status().context("git cannot be run")?.success() {
        return Err(Report::failed(format_args!("{branch} could not be pushed to {}", args.remote))
            .hint("`git remote -v` lists the remotes; `--remote NAME` chooses another")
            .named("push_failed"));
    }
    let mut create = Command::new(gh);
    create.current_dir(root).args(["pr", "create", "--head", branch, "--title", &view.title, "--body", &view.body]);
    if args.draft {
        create.arg("--draft");
    }
    match create.status().context("gh cannot be run")?.success() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(Report::failed("`gh pr create` failed; the branch is pushed")
            .hint("`gh auth status` may say more")
            .named("gh_failed")),
    }
}
