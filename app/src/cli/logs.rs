//! `hatchery logs`

use super::paint::printable;
use super::{CommandContext, asking, print_line, quoted, reference, say};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::http::AgentView;
use crate::no_links;
use crate::report::{Context as _, Report};
use crate::run_folder::{self, RunFolder};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

/// Print what the processes of an agent have written, to look into a crash
///
/// Shows their standard error and, if you ask for it, their output. The files are kept for `keep_runs_days`. What the agent said is in
/// `hatchery history`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,

    /// Print the raw output (JSON lines) instead of the errors
    #[arg(long)]
    output: bool,

    /// Only print the last lines
    #[arg(short = 'n', long, value_name = "LINES", value_parser = clap::value_parser!(u32).range(1..))]
    last: Option<u32>,

    /// Only print the names of the files
    #[arg(long, conflicts_with_all = ["output", "last"])]
    files: bool,
}

/// How many lines are kept back before they are printed, if all lines are wanted.
const KEPT_LINES: u32 = 1;

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let agent: AgentView =
        asking(async { Client::visit(&context.project).await?.get(&agent_path(&args.agent, "")).await })?;
    let all = run_folder::all(&context.project).context("the folders of processes cannot be listed")?;
    let of_agent = all.into_iter().filter(|(of, _)| of.agent == agent.id);
    let folders: BTreeMap<(u32, u32), RunFolder> =
        of_agent.map(|(of, folder)| ((of.run, of.attempt), folder)).collect();
    if folders.is_empty() {
        say(format_args!("agent {} has no folders of processes on this machine", agent.id));
    }
    let mut lines = VecDeque::new();
    for folder in folders.values() {
        let file = if args.output { folder.stdout() } else { folder.stderr() };
        match args.files {
            true => print_line(&file.display().to_string())?,
            false => read(&file, args.last, &mut lines)?,
        }
    }
    let nothing = lines.is_empty();
    for line in lines {
        print_line(&line)?;
    }
    if nothing && !folders.is_empty() && !args.files {
        let who = quoted(agent.name.as_deref().unwrap_or(&args.agent));
        match args.output {
            true => say("its processes wrote nothing"),
            false => say(format_args!(
                "its processes wrote nothing to standard error; `hatchery logs {who} --output` prints what they wrote to standard output, \
                 `hatchery history {who}` what was said"
            )),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the lines of a file, without control characters. With `last`, keeps only the last lines. Otherwise prints all lines except the
/// last one, which stays in `lines`. A process that has written nothing may have no file.
fn read(file: &Path, last: Option<u32>, lines: &mut VecDeque<String>) -> Result<(), Report> {
    let failed = || format!("{} cannot be read", file.display());
    let open = match no_links::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        open => open.context(failed())?,
    };
    for line in BufReader::new(open).split(b'\n') {
        lines.push_back(printable(&String::from_utf8_lossy(&line.context(failed())?)));
        // A file may be larger than memory, so its lines are not collected. One kept line shows the caller that the file is not empty.
        while lines.len() > last.unwrap_or(KEPT_LINES) as usize {
            let oldest = lines.pop_front();
            if let Some(line) = oldest.filter(|_| last.is_none()) {
                print_line(&line)?;
            }
        }
    }
    Ok(())
}
