//! `hatchery state`

use super::{CommandContext, print_json, print_line, say, text_or_stdin};
use crate::clock;
use crate::report::{Code, Report};
use crate::status_door::{Done, NotChanged, StatusDoor};
use crate::untracked;
use hatchery_core::build_event::{BuildEvent, EventError};
use hatchery_core::status::{EditError, Json, Path, StatusChange};
use hatchery_core::workflow::MissingStepChoice;
use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

/// Read and change the project's status, .fctry/state.json
///
/// For agents and hooks. When the command ends, the change is in the file. No change is lost if many commands run at the same
/// time, and a reader never sees an incomplete file. Fields that Hatchery does not know are kept. A running daemon makes the change; without a
/// daemon the command changes the file itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hatchery state set activeSection '\"#core-flow\"'   a text needs quotes of its own
  hatchery state merge '{\"scenarioScore\":{\"satisfied\":5,\"total\":8}}'
  hatchery state incr counters.builds
  hatchery state step start interviewer")]
pub struct Args {
    #[command(subcommand)]
    what: StateCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StateCommand {
    /// Print the document, or the value at a path; `null` if there is none
    Get {
        /// The path, such as `currentCommand`, `scenarioScore.total` or `buildRun.chunks[0].status`
        path: Option<String>,
    },
    /// Set the value at a path
    Set {
        /// The path of the value
        path: String,
        /// The value, as JSON; `-` reads it from standard input
        value: String,
    },
    /// Merge an object into the document, field by field
    Merge {
        /// The object, as JSON; `-` reads it from standard input
        patch: String,
    },
    /// Increase a number, and print the new number
    Incr {
        /// The path of the number
        path: String,
        /// The amount to add; may be negative
        #[arg(default_value_t = 1, allow_negative_numbers = true)]
        by: i64,
    },
    /// Append an item to a list
    Append {
        /// The path of the list
        path: String,
        /// The item, as JSON; `-` reads it from standard input
        value: String,
    },
    /// Set the value at a path to null. Readers treat null as a missing value
    Clear {
        /// The path of the value
        path: String,
    },
    /// Begin or end a command of the workflow
    Command {
        #[command(subcommand)]
        what: CommandPart,
    },
    /// Begin or complete a step of the workflow
    Step {
        #[command(subcommand)]
        what: StepPart,
    },
    /// Record a build event, such as chunk-verified or context-checkpointed
    Event {
        /// The kind of the event
        kind: String,
        /// The other fields of the event, as a JSON object; `-` reads the object from standard input
        fields: Option<String>,
    },
    /// Record a file write that happened while no workflow command was active. A hook of Claude Code calls this, with its JSON on
    /// standard input
    Untracked,
}

#[derive(Debug, clap::Subcommand)]
enum CommandPart {
    /// Set the current workflow command, and clear what the steps of the previous one recorded
    Start {
        /// The workflow command, such as init, evolve, ref, review or execute
        name: String,
    },
    /// Clear the current workflow command
    Done,
}

#[derive(Debug, clap::Subcommand)]
enum StepPart {
    /// Begin a step. If another step must come first, ask what to do
    Start {
        /// The step, such as state-owner-scan, interviewer, spec-writer or executor-build
        name: String,
        /// If another step must come first: run (1) begins that step, skip (2) begins this step anyway, abort (3) ends the
        /// current command
        #[arg(long, value_parser = choice)]
        choose: Option<MissingStepChoice>,
    },
    /// Record a step as completed
    Done {
        /// The step's name
        name: String,
        /// What the step's agent found, in a paragraph that other agents read
        #[arg(long)]
        summary: Option<String>,
        /// If the step has not begun and another step must come first: run (1) begins that step, skip (2) records this step
        /// anyway, abort (3) ends the current command
        #[arg(long, value_parser = choice)]
        choose: Option<MissingStepChoice>,
    },
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let door = StatusDoor::of(&context.project);
    let change = match &args.what {
        StateCommand::Get { path } => return get(&door, path.as_deref()),
        StateCommand::Untracked => return untracked::record(&door, context.project.root()),
        StateCommand::Event { kind, fields } => return event(context, &door, kind, fields.as_deref()),
        StateCommand::Step { what: StepPart::Start { name, choose } } => {
            let start = |choose| StatusChange::StartStep { step: name.clone(), choose };
            return step(context, &door, name, *choose, start);
        }
        StateCommand::Step { what: StepPart::Done { name, summary, choose } } => {
            let finish = |choose| StatusChange::FinishStep { step: name.clone(), summary: summary.clone(), choose };
            return step(context, &door, name, *choose, finish);
        }
        StateCommand::Incr { path, by } => {
            let sum = changed(&door, &StatusChange::Increment { path: at(path)?, by: *by })?;
            print_line(sum.text())?;
            return Ok(ExitCode::SUCCESS);
        }
        StateCommand::Set { path, value } => StatusChange::Set { path: at(path)?, value: json(value)? },
        StateCommand::Merge { patch } => StatusChange::Merge { patch: json(patch)? },
        StateCommand::Append { path, value } => StatusChange::Append { path: at(path)?, value: json(value)? },
        StateCommand::Clear { path } => StatusChange::Clear { path: at(path)? },
        StateCommand::Command { what: CommandPart::Start { name } } => {
            StatusChange::StartCommand { name: name.clone() }
        }
        StateCommand::Command { what: CommandPart::Done } => StatusChange::EndCommand {},
    };
    changed(&door, &change)?;
    Ok(ExitCode::SUCCESS)
}

/// Changes the document, and says if the file was unreadable or cannot be written.
pub fn changed(door: &StatusDoor, change: &StatusChange) -> Result<Json, Report> {
    Ok(told(door.change(change)?))
}

fn told(Done { value, set_aside, in_file }: Done<Json>) -> Json {
    if !in_file {
        say("the change is in the log, but the daemon cannot write it into .fctry/state.json; check the file");
    }
    if let Some(aside) = set_aside {
        say(format_args!("state.json could not be read; it is kept as {}, and a new one was begun", aside.display()));
    }
    value
}

fn get(door: &StatusDoor, path: Option<&str>) -> Result<ExitCode, Report> {
    let path = path.map(at).transpose()?.unwrap_or_default();
    let found = door.state()?.get(&path);
    print_line(&found.map_or_else(|| "null".to_owned(), |value| value.laid_out()))?;
    Ok(ExitCode::SUCCESS)
}

/// Begins or completes a step. If another step must come first, a person chooses what to do.
fn step(
    context: &CommandContext,
    door: &StatusDoor,
    step: &str,
    choice: Option<MissingStepChoice>,
    change: impl Fn(Option<MissingStepChoice>) -> StatusChange,
) -> Result<ExitCode, Report> {
    let mut choice = choice;
    match door.change(&change(choice)) {
        Ok(done) => drop(told(done)),
        Err(NotChanged::Refused { code, report }) if code == "steps_missing" && context.json => {
            return Err(Report { code: Code::Waits, ..report.named(code) });
        }
        Err(NotChanged::Refused { code, report }) if code == "steps_missing" => {
            say(&report.message);
            choice = asked();
            if choice.is_none() {
                say("choose with --choose run, --choose skip or --choose abort");
                return Ok(ExitCode::from(Code::Waits as u8));
            }
            told(door.change(&change(choice))?);
        }
        Err(denied) => return Err(denied.into()),
    }
    let state = door.state()?;
    let is_done = state.names("completedSteps").iter().any(|done| done == step);
    let is_start = matches!(change(None), StatusChange::StartStep { .. });
    match state.words("workflowStep") {
        Some(begun) if is_start && begun == step => print_line(step)?,
        _ if !is_start && is_done => {}
        // The exit code is a failure, so that a script does not continue as if the step had begun.
        _ if choice == Some(MissingStepChoice::Abort) => {
            say("the command is aborted");
            return Ok(ExitCode::from(Code::Failed as u8));
        }
        Some(first) => {
            print_line(&first)?;
            say(format_args!(
                "{first} comes first: do it, then `hatchery state step done {first}`, then start {step} again"
            ));
        }
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a choice from the terminal. `None` without a terminal.
fn asked() -> Option<MissingStepChoice> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return None;
    }
    let mut lines = stdin.lock().lines();
    loop {
        match lines.next()? {
            Ok(line) => match MissingStepChoice::parse(&line) {
                Some(choice) => return Some(choice),
                None => say("1, 2 or 3?"),
            },
            Err(_) => return None,
        }
    }
}

fn event(context: &CommandContext, door: &StatusDoor, kind: &str, fields: Option<&str>) -> Result<ExitCode, Report> {
    let given = fields.map_or_else(|| json("{}"), json)?;
    let refused = |error: EventError| Report::new(Code::Usage, &error).hint(error.hint());
    let mut object = given.object().ok_or_else(|| refused(EventError::NotAnObject(given.kind())))?;
    object.set("kind", kind.into());
    let given = object.to_json();
    let event =
        BuildEvent::check(&given, &clock::new_named_id("event"), &clock::written(clock::now())).map_err(refused)?;
    // An event with a time and without an id may already be recorded under another id, so it is sent as it was given.
    let told = if object.get("timestamp").is_some() { given } else { event.body().clone() };
    let known = changed(door, &StatusChange::RecordEvent { event: told, id: event.id.clone() })?;
    let id = known.words().unwrap_or_else(|| event.id.clone());
    match context.json {
        true => {
            let mut body = event.body().object().unwrap_or_default();
            body.set("id", id.as_str().into());
            print_json(&body.to_json().value())?;
        }
        false => print_line(&id)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn at(path: &str) -> Result<Path, Report> {
    path.parse().map_err(refusal)
}

fn json(text: &str) -> Result<Json, Report> {
    text_or_stdin(text)?.parse().map_err(refusal)
}

/// The error for a wrong path or value.
fn refusal(error: EditError) -> Report {
    Report::new(Code::Usage, &error).hint(error.hint())
}

fn choice(text: &str) -> Result<MissingStepChoice, String> {
    MissingStepChoice::parse(text).ok_or_else(|| "choose run, skip or abort".into())
}
