//! `hatchery logs`

use super::paint::printable;
use super::{Context, asking, print_line, reference, say};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::http::AgentView;
use crate::report::{Context as _, Report};
use crate::run_folder::{self, RunFolder};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

/// Print what an agent's processes wrote to their standard error and output
///
/// The files are kept for `keep_runs_days`. What the agent said is in `hatchery history`; this is for looking into a crash.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,

    /// Print the raw output (JSON lines) instead of the errors
    #[arg(long)]
    output: bool,

    /// Only print the names of the files
    #[arg(long, conflicts_with = "output")]
    files: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let agent: AgentView =
        asking(async { Client::visit(&context.project).await?.get(&agent_path(&args.agent, "")).await })?;
    let all = run_folder::all(&context.project).context("the folders of processes cannot be listed")?;
    let of_agent = all.into_iter().filter(|(of, _)| of.agent == agent.id);
    let folders: BTreeMap<(u32, u32), RunFolder> =
        of_agent.map(|(of, folder)| ((of.run, of.attempt), folder)).collect();
    if folders.is_empty() {
        say(format_args!("agent {} has no folders of processes on this machine", agent.id));
    }
    for folder in folders.values() {
        let file = if args.output { folder.stdout() } else { folder.stderr() };
        match args.files {
            true => print_line(&file.display().to_string())?,
            false => print(&file)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a file without what would drive the terminal. A process that wrote nothing may have none.
fn print(file: &Path) -> Result<(), Report> {
    let failed = || format!("{} cannot be read", file.display());
    let open = match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        open => open.context(failed())?,
    };
    for line in BufReader::new(open).split(b'\n') {
        print_line(&printable(&String::from_utf8_lossy(&line.context(failed())?)))?;
    }
    Ok(())
}
