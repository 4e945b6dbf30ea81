//! `hatchery rescue`

use super::paint::{DIM, paint};
use super::{CommandContext, asking, counted, print_json, print_line, say};
use crate::client::Client;
use crate::clock;
use crate::http::RescueList;
use crate::own_environment;
use crate::report::{Code, Report};
use crate::worktree::{Repository, RescueName, Rescued, WorktreeError};
use std::path::PathBuf;
use std::process::ExitCode;

/// List and restore work from worktrees that were removed
///
/// Before Hatchery removes a step's worktree, it keeps everything that is not in the quest's branch: commits, changes and new
/// files, but not files that git ignores. Works with and without a running daemon.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: RescueCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RescueCommand {
    /// List what was kept, newest first: name, time, number of changed files, description
    List,
    /// Restore into a new worktree with a branch of its own, and print its folder
    ///
    /// Overwrites nothing. The kept work stays in the list.
    Restore {
        /// The name, as `hatchery rescue list` shows it
        #[arg(allow_hyphen_values = true)]
        name: RescueName,
        /// A folder that does not exist yet [default: one in .hatchery/rescued/]
        #[arg(long, value_name = "FOLDER")]
        into: Option<PathBuf>,
    },
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let found = Repository::find(&context.project, own_environment::entries()).map_err(explain)?;
    let none = |why| Report::failed(format_args!("there is no rescued work here: {why}")).named("no_repository");
    let repository = found.map_err(none)?;
    match &args.what {
        RescueCommand::List => list(context, &repository),
        RescueCommand::Restore { name, into } => {
            let restored = repository.restore(name, into.as_deref()).map_err(explain)?;
            if context.json {
                print_json(&restored)?;
                return Ok(ExitCode::SUCCESS);
            }
            say(format_args!("on branch {}; `git merge {0}` merges it into your branch", restored.branch));
            print_line(&restored.folder.display().to_string())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(context: &CommandContext, repository: &Repository) -> Result<ExitCode, Report> {
    // The list is read from git, also without a daemon. Only a running daemon knows which work is being kept right now.
    let running = asking(async {
        match Client::running(&context.project).await? {
            Some(client) => client.get::<RescueList>("/api/rescue").await.map(Some),
            None => Ok(None),
        }
    });
    let (clearing, head) = running.ok().flatten().map(|list| (list.clearing, list.head)).unzip();
    let clearing = clearing.unwrap_or_default();
    let rescued = newest_first(repository.rescued().map_err(explain)?);
    if context.json {
        print_json(&serde_json::json!({ "rescued": rescued, "clearing": clearing, "head": head }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !clearing.is_empty() {
        say(format_args!("work that is still being kept; look again in a moment: {}", clearing.join(", ")));
    } else if rescued.is_empty() {
        say("there is no rescued work");
    }
    for rescue in &rescued {
        print_line(&line(rescue))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sorts the newest first, because a user usually looks for recent work. Times in git have a precision of one second; within a second,
/// the higher number is newer.
fn newest_first(mut by_name: Vec<Rescued>) -> Vec<Rescued> {
    by_name.sort_by_key(|rescue| rescue.at);
    by_name.reverse();
    by_name
}

fn line(rescue: &Rescued) -> String {
    let at = paint(DIM, clock::age(rescue.at, clock::now()));
    format!("{}  {at}  {}  {}", rescue.name, counted(rescue.files, "file"), rescue.subject)
}

fn explain(error: WorktreeError) -> Report {
    match error {
        WorktreeError::Name(_) => Report::new(Code::Usage, error),
        WorktreeError::Project(report) => report,
        WorktreeError::Taken(folder) => Report::failed(format_args!(
            "the folder {} exists already, and Hatchery overwrites nothing",
            folder.display()
        ))
        .hint("look into this folder first; `--into FOLDER` restores the work into a new folder")
        .named("already_restored"),
        WorktreeError::NothingRescued(_) => Report::failed(error).named("nothing_rescued"),
        other => Report::failed(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatchery_core::Timestamp;

    #[test]
    fn the_newest_is_the_first_and_shows_its_age() {
        let rescued = |name: &str, at: i64| Rescued {
            name: name.into(),
            quest: "q".into(),
            step: None,
            commit: String::new(),
            at: Timestamp(at),
            files: 1,
            subject: "did it".into(),
        };
        let list = newest_first(vec![
            rescued("q/a/1", 2_000),
            rescued("q/a/2", 2_000),
            rescued("q/b/1", 1_000),
            rescued("q/c/1", 3_000),
        ]);
        let names: Vec<&str> = list.iter().map(|rescue| rescue.name.as_str()).collect();
        assert_eq!(names, ["q/c/1", "q/a/2", "q/a/1", "q/b/1"]);
        assert!(line(&list[0]).contains(" days ago"), "{}", line(&list[0]));
    }
}
