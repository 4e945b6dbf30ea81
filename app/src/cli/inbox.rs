//! `hatchery inbox`

use super::paint::{DIM, STRONG, paint, printable};
use super::{Context, print_line, say, text_or_stdin};
use crate::clock;
use crate::report::{Code, Report};
use crate::state_file::StatusFolder;
use hatchery_core::idea_inbox::{IdeaInbox, IdeaType, InboxError, Item, ItemStatus};
use std::process::ExitCode;

/// Keep ideas for later, in .fctry/inbox.json
///
/// An idea survives sessions and builds. It is taken for processing by exactly one taker. Needs no daemon.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Add an idea, and print its id
    Add {
        /// The idea, a link or a description; `-` reads it from standard input
        content: String,
        /// What it is: evolve, reference or feature
        #[arg(long = "type", value_name = "TYPE", default_value = "evolve")]
        kind: String,
    },
    /// Show the ideas, the newest first
    List {
        /// Only those with this status: pending, processing, processed, incorporated or error
        #[arg(long)]
        status: Option<String>,
    },
    /// Remove an idea
    Dismiss {
        /// Its id
        id: String,
    },
    /// Take an idea for processing, or say how the processing ended
    Process {
        /// Its id [default: the oldest pending one]
        id: Option<String>,
        /// End the processing with this status: processed, incorporated, error, or pending to give it back
        #[arg(long, value_name = "STATUS", requires = "id")]
        done: Option<String>,
        /// Who takes it
        #[arg(long, value_name = "NAME", conflicts_with = "done")]
        taker: Option<String>,
        /// What came of it
        #[arg(long, requires = "done")]
        note: Option<String>,
    },
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let folder = StatusFolder::of(context.project.root());
    let now = clock::written(clock::now());
    match &args.what {
        What::Add { content, kind } => {
            let kind = IdeaType::parse(kind).map_err(refusal)?;
            let content = text_or_stdin(content)?;
            let item = change(&folder, |inbox| inbox.add(&clock::new_named_id("inbox"), kind, &content, &now))?;
            print_line(if context.json { item.body.text() } else { &item.id })?;
        }
        What::List { status } => list(context, &folder, status.as_deref())?,
        What::Dismiss { id } => {
            let item = change(&folder, |inbox| inbox.dismiss(id))?;
            if context.json {
                print_line(item.body.text())?;
            }
        }
        What::Process { id, done: None, taker, .. } => {
            let item = change(&folder, |inbox| inbox.take(id.as_deref(), taker.as_deref(), &now))?;
            show(context, &item)?;
        }
        What::Process { id, done: Some(status), note, .. } => {
            let known = ItemStatus::parse(status).ok().filter(|status| *status != ItemStatus::Processing);
            let status = known.ok_or_else(|| refusal(InboxError::BadStatus(status.clone())))?;
            let id = id.as_deref().unwrap_or_default();
            let item = change(&folder, |inbox| inbox.finish(id, status, note.as_deref(), &now))?;
            show(context, &item)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context, folder: &StatusFolder, status: Option<&str>) -> Result<(), Report> {
    let status = status.map(ItemStatus::parse).transpose().map_err(refusal)?;
    let items = folder.inbox()?.items();
    let wanted: Vec<&Item> = items.iter().filter(|item| status.is_none_or(|status| status == item.status)).collect();
    if context.json {
        let bodies: Vec<_> = wanted.iter().map(|item| item.body.clone()).collect();
        return print_line(&hatchery_core::status::Json::of_list(&bodies).laid_out());
    }
    if wanted.is_empty() {
        say("the inbox has no such idea");
    }
    wanted.into_iter().try_for_each(|item| show(context, item))
}

fn show(context: &Context, item: &Item) -> Result<(), Report> {
    if context.json {
        return print_line(item.body.text());
    }
    let status = item.status.name();
    let note = item.note.as_deref().map(|note| format!("\n    {}", paint(DIM, printable(note)))).unwrap_or_default();
    print_line(&format!(
        "{}  {}  {status}\n    {}{note}",
        printable(&item.id),
        paint(STRONG, printable(&item.kind)),
        printable(&item.content).replace('\n', "\n    ")
    ))
}

/// Changes the inbox, and says where a file went that did not parse.
fn change<T>(folder: &StatusFolder, change: impl FnOnce(&mut IdeaInbox) -> Result<T, InboxError>) -> Result<T, Report> {
    let changed = folder.change_inbox(|inbox| change(inbox).map_err(refusal))?;
    if let Some(aside) = changed.set_aside {
        say(format_args!("inbox.json could not be read; it is kept as {}, and a new one was begun", aside.display()));
    }
    Ok(changed.value)
}

fn refusal(error: InboxError) -> Report {
    let code = match error {
        InboxError::BadType(_) | InboxError::BadStatus(_) | InboxError::Empty | InboxError::TooLong(_) => Code::Usage,
        _ => Code::Failed,
    };
    Report::new(code, &error).hint(error.hint())
}
