//! `hatchery logs`

use super::paint::printable;
use super::{CommandContext, asking, print_json_text, print_line, quoted, reference, say};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::http::AgentView;
use crate::no_links;
use crate::report::{Context as _, Report};
use crate::run_folder::{self, RunFolder};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

/// Print what the processes of an agent have written, to look into a crash
///
/// Shows their standard error and, if you ask for it, their output. The files are kept for `keep_runs_days`. What the agent said is in
/// `hatchery history`. With --json each line is an object with `run`, `attempt` and `line`, or with `file`.
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

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let agent: AgentView =
        asking(async { Client::visit(&context.project).await?.get(&agent_path(&args.agent, "")).await })?;
    let all = run_folder::all(&context.project).context("the folders of processes cannot be listed")?;
    let of_agent = all.into_iter().filter(|(of, _)| of.agent == agent.id);
    let folders: BTreeMap<(u32, u32), RunFolder> =
        of_agent.map(|(of, folder)| ((of.run, of.attempt), folder)).collect();
    let is_empty = folders.is_empty();
    if is_empty && !context.json {
        say(format_args!("agent {} has no folders of processes on this machine", agent.id));
    }
    let mut printed = PrintedLines { json: context.json, last: args.last, kept: VecDeque::new(), any: false };
    for ((run, attempt), folder) in folders {
        let of = (run, attempt);
        let file = if args.output { folder.stdout() } else { folder.stderr() };
        match (args.files, context.json) {
            (true, true) => {
                print_json_line(&json!({ "run": run, "attempt": attempt, "file": file.display().to_string() }))?
            }
            (true, false) => print_line(&file.display().to_string())?,
            (false, _) => printed.read(of, &file)?,
        }
    }
    printed.end()?;
    if !printed.any && !is_empty && !args.files && !context.json {
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

/// The lines of several files, one after the other. Files may be larger than memory, so only the last lines are kept, if only those are
/// wanted.
struct PrintedLines {
    json: bool,
    last: Option<u32>,
    kept: VecDeque<(AttemptNumber, String)>,
    any: bool,
}

/// A run and an attempt of it.
type AttemptNumber = (u32, u32);

impl PrintedLines {
    /// A process that has written nothing may have no file.
    fn read(&mut self, of: AttemptNumber, file: &Path) -> Result<(), Report> {
        let failed = || format!("{} cannot be read", file.display());
        let open = match no_links::open(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            open => open.context(failed())?,
        };
        for line in BufReader::new(open).split(b'\n') {
            let line = String::from_utf8_lossy(&line.context(failed())?).into_owned();
            self.any = true;
            let Some(last) = self.last else {
                self.print(of, &line)?;
                continue;
            };
            self.kept.push_back((of, line));
            if self.kept.len() > last as usize {
                self.kept.pop_front();
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Report> {
        std::mem::take(&mut self.kept).iter().try_for_each(|(of, line)| self.print(*of, line))
    }

    fn print(&self, (run, attempt): AttemptNumber, line: &str) -> Result<(), Report> {
        match self.json {
            true => print_json_line(&json!({ "run": run, "attempt": attempt, "line": line })),
            false => print_line(&printable(line)),
        }
    }
}

fn print_json_line(value: &serde_json::Value) -> Result<(), Report> {
    print_json_text(&value.to_string())
}
