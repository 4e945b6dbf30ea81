//! `hatchery launch`, which only the daemon calls.

use crate::launcher;
use crate::report::{Context as _, Report};
use crate::run_folder::RunFolder;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the process of one attempt (started by the daemon)
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// The folder of the attempt
    folder: PathBuf,
}

pub fn run(args: &Args) -> Result<ExitCode, Report> {
    let folder = RunFolder::at(args.folder.clone());
    launcher::run(&folder).context(format_args!("{} cannot be launched", args.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
