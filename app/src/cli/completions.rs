//! `hatchery completions`

use super::{Cli, written};
use crate::report::Report;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::io::Write as _;
use std::process::ExitCode;

/// Print a completion script for a shell
///
/// The examples show where each shell looks for it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  hatchery completions bash > ~/.local/share/bash-completion/completions/hatchery
  hatchery completions zsh > ~/.zfunc/_hatchery          # a folder in $fpath
  hatchery completions fish > ~/.config/fish/completions/hatchery.fish";

pub fn run(args: &Args) -> Result<ExitCode, Report> {
    // The script is collected first, because clap_complete panics if the reader has closed the pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hatchery", &mut script);
    written(std::io::stdout().write_all(&script))?;
    Ok(ExitCode::SUCCESS)
}
