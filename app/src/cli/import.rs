//! `hatchery import`

use super::{Context, counted, print_json, say};
use crate::daemon;
use crate::report::{Context as _, Report};
use crate::store;
use crate::transfer;
use std::fs::File;
use std::io::{BufReader, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Create the log from an export, with the same ids and times
///
/// The project must be empty and its daemon must not be running. To continue an interrupted import, import the same file
/// again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hatchery import backup.jsonl --project ../another-folder")]
pub struct Args {
    /// The file to read; `-` is standard input
    file: PathBuf,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let config = context.config()?;
    context.project.prepare()?;
    let _lock = context.project.lock()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().context("no runtime")?;
    let store = store::open(&config.store, runtime.handle()).map_err(|error| daemon::explain(error.into()))?;
    let mut input: Box<dyn std::io::BufRead> = match args.file.to_str() {
        Some("-") => Box::new(std::io::stdin().lock()),
        _ => {
            let file = File::open(&args.file).context(format_args!("{} cannot be read", args.file.display()))?;
            Box::new(BufReader::new(file))
        }
    };
    let live = std::io::stderr().is_terminal();
    let imported = transfer::import(store.as_ref(), &mut *input, &mut |count| {
        if live {
            anstream::eprint!("\r{count} events");
        }
    })?;
    if live {
        anstream::eprint!("\r");
    }
    match context.json {
        true => print_json(&imported)?,
        false => say(format_args!(
            "{} imported, {} of the file there already",
            counted(imported.added, "event"),
            imported.known
        )),
    }
    Ok(ExitCode::SUCCESS)
}
