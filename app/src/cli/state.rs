//! `hatchery state`

use super::{Context, print_json, print_line, say, text_or_stdin};
use crate::clock;
use crate::report::{Code, Report};
use crate::state_file::{Changed, StatusFolder};
use crate::untracked;
use hatchery_core::build_event::{BuildEvent, EventError};
use hatchery_core::status::{Document, Edit, EditError, Json, Path};
use hatchery_core::workflow::{self, Choice, Started};
use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

/// Read and change the project's status, .fctry/state.json
///
/// For agents and hooks. A change is made under a lock and on disk when the command ends: thousands of them at once lose nothing, and a
/// reader never sees half a file. Fields that Hatchery does not know are kept. Needs no daemon.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print the document, or what is at a path; `null` if nothing is
    Get {
        /// Such as `currentCommand`, `scenarioScore.total` or `buildRun.chunks[0].status`
        path: Option<String>,
    },
    /// Set what is at a path
    Set {
        /// Where
        path: String,
        /// The value, as JSON; `-` reads it from standard input
        value: String,
    },
    /// Merge an object into the document, field by field
    Merge {
        /// The object, as JSON; `-` reads it from standard input
        patch: String,
    },
    /// Count up a number, and print it
    Incr {
        /// Where
        path: String,
        /// By how much; may be negative
        #[arg(default_value_t = 1, allow_negative_numbers = true)]
        by: i64,
    },
    /// Append an item to a list
    Append {
        /// Where
        path: String,
        /// The item, as JSON; `-` reads it from standard input
        value: String,
    },
    /// Clear what is at a path: it is set to null, which equals absent
    Clear {
        /// Where
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
        /// Its kind
        kind: String,
        /// Its other fields, as a JSON object; `-` reads it from standard input
        fields: Option<String>,
    },
    /// Record a file that was written outside of a command, as a hook of Claude Code (reads its JSON from standard input)
    Untracked,
}

#[derive(Debug, clap::Subcommand)]
enum CommandPart {
    /// Set the current command, and clear what the steps of the last one left behind
    Start {
        /// Such as init, evolve, ref, review or execute
        name: String,
    },
    /// Clear the current command
    Done,
}

#[derive(Debug, clap::Subcommand)]
enum StepPart {
    /// Begin a step; if another step must come first, ask what to do
    Start {
        /// Such as state-owner-scan, interviewer, spec-writer or executor-build
        name: String,
        /// What to do if another step must come first: run (1), skip (2) or abort (3)
        #[arg(long, value_parser = choice)]
        choose: Option<Choice>,
    },
    /// Record a step as completed
    Done {
        /// The step's name
        name: String,
        /// What its agent found, in a paragraph; other agents read it
        #[arg(long)]
        summary: Option<String>,
    },
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let folder = StatusFolder::of(context.project.root());
    match &args.what {
        What::Get { path } => get(&folder, path.as_deref()),
        What::Set { path, value } => edit(&folder, &Edit::Set { path: at(path)?, value: json(value)? }),
        What::Merge { patch } => edit(&folder, &Edit::Merge { patch: json(patch)? }),
        What::Append { path, value } => edit(&folder, &Edit::Append { path: at(path)?, value: json(value)? }),
        What::Clear { path } => edit(&folder, &Edit::Clear { path: at(path)? }),
        What::Incr { path, by } => {
            let path = at(path)?;
            let sum = change(&folder, |document| {
                document.apply(&Edit::Increment { path: path.clone(), by: *by }).map_err(refusal)?;
                Ok(document.get(&path))
            })?;
            print_line(sum.as_ref().map_or("null", Json::text))?;
            Ok(ExitCode::SUCCESS)
        }
        What::Command { what: CommandPart::Start { name } } => done(change(&folder, |document| {
            workflow::start_command(document, name);
            Ok(())
        })),
        What::Command { what: CommandPart::Done } => done(change(&folder, |document| {
            workflow::end_command(document);
            Ok(())
        })),
        What::Step { what: StepPart::Start { name, choose } } => start(&folder, name, *choose),
        What::Step { what: StepPart::Done { name, summary } } => done(change(&folder, |document| {
            workflow::finish_step(document, name, summary.as_deref());
            Ok(())
        })),
        What::Event { kind, fields } => event(context, &folder, kind, fields.as_deref()),
        What::Untracked => untracked::record(&folder, context.project.root()),
    }
}

/// Changes the document, and says where a file went that did not parse.
pub fn change<T>(folder: &StatusFolder, change: impl FnOnce(&mut Document) -> Result<T, Report>) -> Result<T, Report> {
    let Changed { value, set_aside } = folder.change_state(change)?;
    if let Some(aside) = set_aside {
        say(format_args!("state.json could not be read; it is kept as {}, and a new one was begun", aside.display()));
    }
    Ok(value)
}

fn get(folder: &StatusFolder, path: Option<&str>) -> Result<ExitCode, Report> {
    let path = path.map(at).transpose()?.unwrap_or_default();
    let found = folder.state()?.get(&path);
    print_line(&found.map_or_else(|| "null".to_owned(), |value| value.laid_out()))?;
    Ok(ExitCode::SUCCESS)
}

fn edit(folder: &StatusFolder, edit: &Edit) -> Result<ExitCode, Report> {
    done(change(folder, |document| document.apply(edit).map_err(refusal)))
}

fn start(folder: &StatusFolder, step: &str, choice: Option<Choice>) -> Result<ExitCode, Report> {
    let try_with = |choice: Option<Choice>| {
        let mut missing = None;
        let started = change(folder, |document| {
            workflow::start_step(document, step, choice, &clock::written(clock::now())).map_err(|lacks| {
                missing = Some(lacks);
                Report::new(Code::Waits, "")
            })
        });
        (started, missing)
    };
    let started = match try_with(choice) {
        (Ok(started), _) => started,
        (Err(report), None) => return Err(report),
        (Err(_), Some(lacks)) => {
            say(&lacks);
            match asked() {
                Some(choice) => try_with(Some(choice)).0?,
                None => {
                    say("choose with --choose run, --choose skip or --choose abort");
                    return Ok(ExitCode::from(Code::Waits as u8));
                }
            }
        }
    };
    match started {
        Started::Begun => print_line(step)?,
        Started::Instead(first) => {
            print_line(&first)?;
            say(format_args!(
                "{first} comes first: do it, then `hatchery state step done {first}`, then start {step} again"
            ));
        }
        Started::Aborted => say("the command is aborted"),
    }
    Ok(ExitCode::SUCCESS)
}

/// What a person at the terminal chooses.
fn asked() -> Option<Choice> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return None;
    }
    let mut lines = stdin.lock().lines();
    loop {
        match lines.next()? {
            Ok(line) => match Choice::parse(&line) {
                Some(choice) => return Some(choice),
                None => say("1, 2 or 3?"),
            },
            Err(_) => return None,
        }
    }
}

fn event(context: &Context, folder: &StatusFolder, kind: &str, fields: Option<&str>) -> Result<ExitCode, Report> {
    let given = fields.map_or_else(|| json("{}"), json)?;
    let refused = |error: EventError| Report::new(Code::Usage, &error).hint(error.hint());
    let mut object = given.object().ok_or_else(|| refused(EventError::NotAnObject(given.kind())))?;
    object.set("kind", kind.into());
    let event = BuildEvent::check(&object.to_json(), &clock::new_named_id("event"), &clock::written(clock::now()))
        .map_err(refused)?;
    change(folder, |document| Ok(event.record(document)))?;
    match context.json {
        true => print_json(&event.body().value())?,
        false => print_line(&event.id)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn at(path: &str) -> Result<Path, Report> {
    path.parse().map_err(refusal)
}

fn json(text: &str) -> Result<Json, Report> {
    text_or_stdin(text)?.parse().map_err(refusal)
}

/// What is wrong with a path, a value, or with applying it to what is there.
fn refusal(error: EditError) -> Report {
    let code = match error {
        EditError::BadPath { .. } | EditError::NotJson { .. } | EditError::PatchNotAnObject { .. } => Code::Usage,
        _ => Code::Failed,
    };
    Report::new(code, &error).hint(error.hint())
}

fn choice(text: &str) -> Result<Choice, String> {
    Choice::parse(text).ok_or_else(|| "choose run, skip or abort".into())
}

fn done(changed: Result<(), Report>) -> Result<ExitCode, Report> {
    changed.map(|()| ExitCode::SUCCESS)
}
