//! `hatchery import`

use super::{CommandContext, counted, own_store, print_json, read_given, say, unreadable};
use crate::client::Client;
use crate::config::Config;
use crate::report::{Code, Report};
use crate::transfer::{self, ImportCount};
use hatchery_core::EventId;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Create the log from an export, with the same ids and times
///
/// The project must be empty and its daemon must not be running. To continue an interrupted import, import the same file
/// again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hatchery import backup.jsonl --project ../another-folder\n\
    `hatchery import identities FILE` merges identity documents into the seats of a running daemon instead.")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<ImportCommand>,

    /// The file to read; `-` is standard input
    #[arg(required = true)]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum ImportCommand {
    /// Merge identity documents into the seats
    ///
    /// Reads documents that `hatchery export --identities` or another program has written, in today's form or an older one. The
    /// document with the newer `lastAliveAt` decides the status of a seat. A soul is never replaced. Importing the same file
    /// again changes nothing.
    Identities {
        /// The file to read; `-` is standard input
        file: PathBuf,
    },
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    match (&args.what, &args.file) {
        (Some(ImportCommand::Identities { file }), _) => identities(context, file),
        (None, Some(file)) => log(context, file),
        (None, None) => Err(Report::new(Code::Usage, "there is no file to import").hint("name one, or `-`")),
    }
}

fn identities(context: &CommandContext, file: &Path) -> Result<ExitCode, Report> {
    let text = match file.to_str() {
        Some("-") => super::text_or_stdin("-")?,
        _ => read_given(file)?,
    };
    let body = serde_json::json!({ "text": text });
    let accepted: serde_json::Value =
        super::asking(async { Client::reach(&context.project).await?.post("/api/docs/import", &body).await })
            .map_err(|report| Report { message: format!("{}: {}", file.display(), report.message), ..report })?;
    if context.json {
        print_json(&accepted)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(warning) = accepted["warning"].as_str() {
        say(warning);
    }
    // The answer can contain other events, too.
    let imported = |event: &&serde_json::Value| event["type"] == "seat_imported";
    let changed = accepted["events"].as_array().map_or(0, |events| events.iter().filter(imported).count());
    say(format_args!("{} changed", counted(changed as u64, "seat")));
    Ok(ExitCode::SUCCESS)
}

fn log(context: &CommandContext, file: &Path) -> Result<ExitCode, Report> {
    let is_new = !context.project.data().exists();
    let config = context.config()?;
    if is_new && file.to_str() != Some("-") {
        // Checked before `.hatchery` is created.
        File::open(file).map_err(|error| unreadable(file, &error))?;
    }
    let (imported, head) = read_log(context, &config, file);
    // The new `.hatchery` is removed again. Otherwise the next command would begin a log there, and a second import would be refused.
    if imported.is_err() && is_new && head == Some(EventId::START) {
        std::fs::remove_dir_all(context.project.data()).unwrap_or_default();
    }
    let imported = imported?;
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

/// Imports a file. Also gives the last event of the store afterwards, if the store could be opened and read.
fn read_log(context: &CommandContext, config: &Config, file: &Path) -> (Result<ImportCount, Report>, Option<EventId>) {
    let mut head = None;
    let imported = (|| {
        let own = own_store::open(context, config)?;
        let mut input: Box<dyn std::io::BufRead> = match file.to_str() {
            Some("-") => Box::new(std::io::stdin().lock()),
            _ => {
                let file = File::open(file).map_err(|error| unreadable(file, &error))?;
                Box::new(BufReader::new(file))
            }
        };
        let imported = own_store::counting(|progress| transfer::import(own.store.as_ref(), &mut *input, progress));
        head = own.store.head().ok();
        imported
    })();
    (imported, head)
}
