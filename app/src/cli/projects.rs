//! `hatchery projects`

use super::paint::{BAD, DIM, STRONG, paint};
use super::{CommandContext, asking, counted, print_json, print_line, say};
use crate::projects;
use crate::report::Report;
use std::process::ExitCode;

/// List your projects on this machine: folder, agents at work, questions that wait for you
///
/// A project is listed once a daemon has run for it. Starts no daemon. Exits with 3 if a daemon runs and does not answer.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(context: &CommandContext, _args: &Args) -> Result<ExitCode, Report> {
    let mut lines = asking(projects::lines())?;
    // The link contains the token of the project. Only `hatchery open` prints it on request.
    lines.iter_mut().for_each(|line| line.link = None);
    let silent = projects::told_silent(lines.iter().filter(|line| line.silent).map(|line| line.root.clone()));
    if context.json {
        print_json(&serde_json::json!({ "head": null, "projects": lines }))?;
        return silent.map_or(Ok(ExitCode::SUCCESS), Err);
    }
    if lines.is_empty() {
        say("no projects yet: `hatchery demo` shows what Hatchery does, `hatchery run \"…\"` starts an agent here");
    }
    for line in lines {
        let state = match line.running {
            true => format!("{} working of {}", line.working, counted(line.agents, "agent")),
            false if line.silent => paint(BAD, "its daemon does not answer"),
            false => paint(DIM, "no daemon runs"),
        };
        let waits = match line.questions {
            0 => String::new(),
            count => format!("  {}", paint(BAD, format_args!("{} for you", counted(count as u64, "question")))),
        };
        print_line(&format!("{}  {state}{waits}", paint(STRONG, line.root)))?;
    }
    silent.map_or(Ok(ExitCode::SUCCESS), Err)
}
