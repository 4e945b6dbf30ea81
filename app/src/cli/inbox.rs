//! `hatchery inbox`

use super::paint::{DIM, STRONG, paint, printable};
use super::{CommandContext, print_line, say, text_or_stdin};
use crate::clock;
use crate::report::Report;
use crate::status_door::StatusDoor;
use hatchery_core::idea_inbox::{Idea, InboxError, ItemStatus};
use hatchery_core::status::{IdeaChange, StatusRefusal};
use std::process::ExitCode;

/// Keep ideas for later, in .fctry/inbox.json
///
/// An idea survives sessions and builds. Only one agent or person can take an idea for processing. A running daemon makes the
/// change; without a daemon the command changes the file itself.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: InboxCommand,
}

#[derive(Debug, clap::Subcommand)]
enum InboxCommand {
    /// Add an idea, and print its id
    Add {
        /// The idea, a link or a description; `-` reads it from standard input
        content: String,
        /// The type of the idea: evolve, reference or feature
        #[arg(long = "type", value_name = "TYPE", default_value = "evolve")]
        kind: String,
    },
    /// Show the ideas, the newest first
    List {
        /// Show only ideas with this status: pending, processing, processed, incorporated or error
        #[arg(long)]
        status: Option<String>,
    },
    /// Remove an idea
    Dismiss {
        /// The idea's id
        id: String,
    },
    /// Take an idea for processing, or say how the processing ended
    Process {
        /// The idea's id [default: the oldest pending idea]
        id: Option<String>,
        /// End the processing with this status: processed, incorporated, error, or pending to give the idea back
        #[arg(long, value_name = "STATUS", requires = "id")]
        done: Option<String>,
        /// The name of the taker
        #[arg(long, value_name = "NAME", conflicts_with = "done")]
        taker: Option<String>,
        /// The result of the processing
        #[arg(long, requires = "done")]
        note: Option<String>,
    },
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let door = StatusDoor::of(&context.project);
    match &args.what {
        InboxCommand::Add { content, kind } => {
            let (kind, content) = (kind.clone(), text_or_stdin(content)?);
            let item = change(&door, &IdeaChange::Add { id: clock::new_named_id("inbox"), kind, content })?;
            print_line(if context.json { item.body.text() } else { &item.id })?;
        }
        InboxCommand::List { status } => list(context, &door, status.as_deref())?,
        InboxCommand::Dismiss { id } => {
            let item = change(&door, &IdeaChange::Dismiss { id: id.clone() })?;
            if context.json {
                print_line(item.body.text())?;
            }
        }
        InboxCommand::Process { id, done: None, taker, .. } => {
            show(context, &change(&door, &IdeaChange::Take { id: id.clone(), taker: taker.clone() })?)?;
        }
        InboxCommand::Process { id, done: Some(status), note, .. } => {
            let (id, status, note) = (id.clone().unwrap_or_default(), status.clone(), note.clone());
            show(context, &change(&door, &IdeaChange::Finish { id, status, note })?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &CommandContext, door: &StatusDoor, status: Option<&str>) -> Result<(), Report> {
    let status = status.map(ItemStatus::parse).transpose().map_err(refusal)?;
    let items = door.inbox()?.items();
    let wanted: Vec<&Idea> = items.iter().filter(|item| status.is_none_or(|status| status == item.status)).collect();
    if context.json {
        let bodies: Vec<_> = wanted.iter().map(|item| item.body.clone()).collect();
        let items = hatchery_core::status::Json::of_list(&bodies).laid_out();
        return print_line(&format!("{{\"head\":null,\"items\":{items}}}"));
    }
    if wanted.is_empty() {
        match status {
            Some(status) => say(format_args!("the inbox has no idea that is {}", status.name())),
            None => say("the inbox is empty; `hatchery inbox add` puts an idea into it"),
        }
    }
    wanted.into_iter().try_for_each(|item| show(context, item))
}

fn show(context: &CommandContext, item: &Idea) -> Result<(), Report> {
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

/// Changes the inbox, and says if the file was unreadable or cannot be written.
fn change(door: &StatusDoor, change: &IdeaChange) -> Result<Idea, Report> {
    let done = door.change_ideas(change)?;
    if !done.in_file {
        say("the change is in the log, but the daemon cannot write it into .fctry/inbox.json; check the file");
    }
    if let Some(aside) = done.set_aside {
        say(format_args!("inbox.json could not be read; it is kept as {}, and a new one was begun", aside.display()));
    }
    Ok(done.value)
}

fn refusal(error: InboxError) -> Report {
    crate::status_door::NotChanged::from(StatusRefusal::from(error)).into()
}
