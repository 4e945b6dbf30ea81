//! `hatchery tui`

use super::{CommandContext, reference};
use crate::report::Report;
use crate::tui;
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Show all agents in one screen: talk to them, answer them, switch between them
///
/// `hatchery` alone does the same in a terminal. Press Ctrl-X and a letter to switch agents or open a panel; a moment after
/// Ctrl-X, the letters are shown. /help lists all keys and commands. Agents keep working when you leave, and the text that you
/// have typed is kept for each agent.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// The agent to begin with: an id, the beginning of one, or a name [default: the last one]
    #[arg(value_parser = reference)]
    agent: Option<String>,

    /// Print each line once instead of drawing a screen, for screen readers. This is the default with ACCESSIBLE=1, with
    /// TERM=dumb, and without a terminal
    #[arg(long)]
    plain: bool,

    /// Let the mouse scroll and click; Ctrl-X M turns it on and off
    #[arg(long)]
    mouse: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let options = tui::TuiOptions { agent: args.agent.clone(), mouse: args.mouse };
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let screen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    match args.plain || env("ACCESSIBLE") == "1" || env("TERM") == "dumb" || !screen {
        true => tui::run_plain(&context.project, &options),
        false => tui::run(&context.project, &options),
    }
}
