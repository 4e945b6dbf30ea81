//! `hatchery export`

use super::{CommandContext, asking, counted, say, written};
use crate::client::Client;
use crate::http::DocList;
use crate::identity_document::{self, IdentityDocument};
use crate::report::{Code, Context as _, Report};
use http_body_util::BodyExt as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the whole log as JSON lines
///
/// Contains the events up to the start of the export. `hatchery import` creates the same log from it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hatchery export backup.jsonl")]
pub struct Args {
    /// The file to write, or `-` [default: standard output]; the file appears when the export is complete
    file: Option<PathBuf>,

    /// Write only the identity documents of the seats, as a JSON list
    #[arg(long)]
    identities: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let count = match args.file.as_ref().filter(|file| *file != std::path::Path::new("-")) {
        None => asking(copy(context, args.identities, &mut Stdout))?,
        Some(path) => {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
            let mut file = tempfile::NamedTempFile::new_in(folder)
                .context(format_args!("{} cannot be written", path.display()))?;
            let count = asking(copy(context, args.identities, &mut file))?;
            file.as_file().sync_all().context("the export cannot be made durable")?;
            file.persist(path).context(format_args!("{} cannot be written", path.display()))?;
            count
        }
    };
    let noun = if args.identities { "document" } else { "event" };
    say(format_args!("{} exported", counted(count, noun)));
    Ok(ExitCode::SUCCESS)
}

async fn copy(context: &CommandContext, identities: bool, out: &mut dyn Write) -> Result<u64, Report> {
    let client = Client::visit(&context.project).await?;
    if identities {
        let list: DocList = client.get("/api/docs?type=agent-identity").await?;
        // `shared` gives the identities of a seat the same order on every machine. In the daemon's answer, the identity that this project
        // shows comes first.
        let docs = serde_json::to_string(&list.docs).context("the documents cannot be written")?;
        let docs = identity_document::read_all(&docs).map_err(|why| {
            Report::new(Code::Failed, format!("the daemon gave documents that cannot be read: {why}"))
        })?;
        let docs: Vec<IdentityDocument> =
            docs.iter().map(|document| IdentityDocument::of(&document.shared())).collect();
        let text = serde_json::to_string_pretty(&docs).context("the documents cannot be written")?;
        writeln!(out, "{text}").context("the export cannot be written")?;
        out.flush().context("the export cannot be written")?;
        return Ok(list.docs.len() as u64);
    }
    let mut body = client.stream("/api/export").await?;
    let mut count = 0;
    while let Some(frame) = body.frame().await {
        let bytes = frame.context("the export was interrupted and is incomplete")?.into_data().unwrap_or_default();
        count += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        out.write_all(&bytes).context("the export cannot be written")?;
    }
    out.flush().context("the export cannot be written")?;
    Ok(count)
}

/// Standard output. Its reader may close the pipe.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        written(std::io::stdout().lock().write_all(bytes)).map_err(std::io::Error::other)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        written(std::io::stdout().flush()).map_err(std::io::Error::other)
    }
}
