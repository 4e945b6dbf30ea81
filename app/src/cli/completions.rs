//! `hatchery completions`

use super::Cli;
use crate::report::Report;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print a completion script for a shell, for example: hatchery completions bash > ~/.local/share/bash-completion/completions/hatchery
#[derive(Debug, clap::Args)]
pub struct Args {
    shell: Shell,
}

pub fn run(args: &Args) -> Result<ExitCode, Report> {
    clap_complete::generate(args.shell, &mut Cli::command(), "hatchery", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}
