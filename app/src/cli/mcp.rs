//! `hatchery mcp`

use super::{CommandContext, reference, start_logging};
use crate::mcp;
use crate::report::{Context as _, Report};
use crate::run_folder::RunFolder;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// Serve the tools of one agent over MCP, on standard input and output
///
/// Put `hatchery mcp --agent ID` into the MCP configuration of the agent's program. The tools are fork, kill, send,
/// check-mail, read-mail, wait and ps; they act only for this agent. An agent that Hatchery runs has them already. Ends when
/// standard input ends.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent that the tools act for: an id, the beginning of one, or a name
    #[arg(long, allow_hyphen_values = true, value_parser = reference)]
    agent: String,

    /// The run folder of the agent's process. The daemon sets it when it starts an agent.
    #[arg(long, value_name = "FOLDER", hide = true)]
    run: Option<PathBuf>,

    /// Offer the tools of a quest as well: signal-back, set-requirements, plan-steps and get-quest.
    #[arg(long, hide = true, requires = "run")]
    quest: bool,

    /// Offer the tool of a seat as well: register.
    #[arg(long, hide = true, requires = "run")]
    seat: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    // The log lines of a run's tools go to the agent's standard error, so only warnings and errors are logged.
    let log = match args.run {
        Some(_) => "warn".to_owned(),
        None => context.config()?.log,
    };
    start_logging(&log, BoxMakeWriter::new(std::io::stderr))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let folder = args.run.clone().map(RunFolder::at);
    let served = runtime.block_on(mcp::serve(&context.project, &args.agent, folder, args.quest, args.seat));
    // A thread may still wait for a line of standard input. The program does not wait for that thread.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}
