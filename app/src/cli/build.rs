//! `hatchery build`

use super::paint::{BAD, DIM, GOOD, WARN, paint, printable};
use super::state::changed;
use super::{CommandContext, print_json, print_line, say, text_or_stdin};
use crate::clock;
use crate::http::ResumeView;
use crate::report::{Code, Report};
use crate::spec_sections;
use crate::status_door::{NotChanged, StatusDoor};
use hatchery_core::build_run::{BuildError, BuildRun, ChangedChunks, Chunk, ChunkId, ChunkState, Move, Resume};
use hatchery_core::status::{Json, StatusChange, StatusDocument, StatusRefusal};
use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

const CLEARED: &str = "all chunks are built: the build run is completed, and cleared";

/// Record the progress of a build run, chunk by chunk, and resume an interrupted build run
///
/// The build run is in `buildRun` of .fctry/state.json. A build run survives the session that began it. It is cleared when its
/// last chunk is completed. An unfinished build run ends only by `build clear`, `build plan --fresh` or `build resume --choose fresh`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: BuildCommand,
}

#[derive(Debug, clap::Subcommand)]
enum BuildCommand {
    /// Begin a build run with an approved plan
    Plan {
        /// The plan, as JSON: {"chunks":[{"name":"…","sections":["#alias"],"dependsOn":[1]}]}; `-` reads it from standard input
        plan: String,
        /// Replace a build run that is not finished
        #[arg(long)]
        fresh: bool,
    },
    /// Show the chunks of the build run
    Show,
    /// Record what happened to a chunk
    Chunk {
        /// The chunk's number
        #[arg(value_parser = chunk_number)]
        id: ChunkId,
        /// What happened to the chunk
        #[arg(value_enum)]
        action: ChunkAction,
    },
    /// Pause the build run
    Pause,
    /// Show what is done and what remains of an interrupted build run, and continue it
    ///
    /// Lists the completed chunks whose sections of the spec have changed since they were built. Asks for each of these chunks
    /// whether to build it again or to keep it.
    Resume {
        /// What to do: resume (1) continues the build run, fresh (2) clears it, cancel (3) changes nothing
        #[arg(long, value_enum)]
        choose: Option<ResumeChoice>,
        /// Build this completed chunk again; may be given several times
        #[arg(long, value_name = "CHUNK", value_parser = chunk_number)]
        rebuild: Vec<ChunkId>,
        /// What to do with completed chunks whose sections have changed: rebuild (1) or keep (2)
        #[arg(long, value_enum)]
        changed: Option<Outdated>,
    },
    /// Clear the build run
    Clear,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ChunkAction {
    Start,
    Retry,
    Done,
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ResumeChoice {
    #[value(alias = "1")]
    Resume,
    #[value(alias = "2")]
    Fresh,
    #[value(alias = "3")]
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Outdated {
    #[value(alias = "1")]
    Rebuild,
    #[value(alias = "2")]
    Keep,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let door = StatusDoor::of(&context.project);
    let change = match &args.what {
        BuildCommand::Plan { plan, fresh } => {
            let plan: Json = text_or_stdin(plan)?.parse().map_err(|error: hatchery_core::status::EditError| {
                Report::new(Code::Usage, &error).hint("the plan is a JSON object")
            })?;
            let run = format!("run-{}", clock::now().0);
            changed(&door, &StatusChange::ApprovePlan { plan, run: run.clone(), fresh: *fresh, spec_version: None })?;
            print_line(&run)?;
            return Ok(ExitCode::SUCCESS);
        }
        BuildCommand::Show => {
            show(context, &door.state()?)?;
            return Ok(ExitCode::SUCCESS);
        }
        BuildCommand::Chunk { id, action } => {
            let (chunk, action) = (*id, action.as_move());
            let fingerprints = Default::default();
            changed(&door, &StatusChange::MoveChunk { chunk, action, fingerprints, spec_version: None })?;
            match BuildRun::read(&door.state()?) {
                Some(run) => print_line(run.chunk(chunk).map(|chunk| chunk.state.name()).unwrap_or_default())?,
                None => {
                    print_line(ChunkState::Completed.name())?;
                    say(CLEARED);
                }
            }
            return Ok(ExitCode::SUCCESS);
        }
        BuildCommand::Resume { choose, rebuild, changed } => return resume(context, &door, *choose, rebuild, *changed),
        BuildCommand::Pause => StatusChange::PauseBuild {},
        BuildCommand::Clear => StatusChange::ClearBuild {},
    };
    changed(&door, &change)?;
    Ok(ExitCode::SUCCESS)
}

impl ChunkAction {
    fn as_move(self) -> Move {
        match self {
            Self::Start => Move::Start,
            Self::Retry => Move::Retry,
            Self::Done => Move::Complete,
            Self::Fail => Move::Fail,
        }
    }
}

fn show(context: &CommandContext, document: &StatusDocument) -> Result<(), Report> {
    let run = BuildRun::read(document).ok_or_else(|| refusal(BuildError::NoRun))?;
    if context.json {
        return print_json(&document.field("buildRun").and_then(Json::value));
    }
    let phase = run.phase.as_deref().map(|phase| format!(", {}", printable(phase))).unwrap_or_default();
    print_line(&format!("{}  {}{phase}", printable(&run.id), run.status.name()))?;
    run.chunks.iter().try_for_each(|chunk| print_line(&line(&run, chunk)))
}

fn line(run: &BuildRun, chunk: &Chunk) -> String {
    let state = match chunk.state {
        ChunkState::Planned { .. } => paint(DIM, "planned"),
        ChunkState::Active { attempt } => paint(WARN, format_args!("active, attempt {attempt}")),
        ChunkState::Retrying { attempt } => paint(WARN, format_args!("retrying, attempt {attempt}")),
        ChunkState::Completed => paint(GOOD, "completed"),
        ChunkState::Failed { attempts } => paint(BAD, format_args!("failed after attempt {attempts}")),
    };
    let waits = run.open_dependencies(chunk);
    let waits = match chunk.state {
        ChunkState::Planned { .. } if !waits.is_empty() => format!(", waits for {}", numbers(&waits)),
        _ => String::new(),
    };
    format!("{:>4}  {}  {state}{waits}", chunk.id, printable(&chunk.name))
}

fn resume(
    context: &CommandContext,
    door: &StatusDoor,
    choose: Option<ResumeChoice>,
    rebuild: &[ChunkId],
    outdated: Option<Outdated>,
) -> Result<ExitCode, Report> {
    let document = door.state()?;
    let version = spec_sections::registered_version(door.folder()).or_else(|| document.words("specVersion"));
    let run = BuildRun::read(&document).ok_or_else(|| refusal(BuildError::NoRun))?;
    let sections = spec_sections::fingerprints(door.folder()).unwrap_or_default();
    let Some(shown) = run.resume(version.as_deref(), &sections) else {
        say(format_args!("the build run {} is completed; nothing remains", printable(&run.id)));
        return Ok(ExitCode::SUCCESS);
    };
    match context.json {
        true => print_json(&ResumeView::of(&shown, version.clone()))?,
        false => tell(&shown, version.as_deref())?,
    }
    let Some(choice) = choose.or_else(asked) else {
        say("choose with --choose resume, --choose fresh or --choose cancel");
        return Ok(ExitCode::from(Code::Waits as u8));
    };
    match choice {
        ResumeChoice::Resume => {
            let Some(rebuild) = chosen(&shown, rebuild, outdated) else {
                say(
                    "choose with --changed rebuild or --changed keep, or name what to build again with --rebuild CHUNK",
                );
                return Ok(ExitCode::from(Code::Waits as u8));
            };
            // The outdated chunks that are built again are in `rebuild`. The user keeps all others.
            let decided = Some(ChangedChunks::Keep);
            let (fingerprints, spec_version) = (sections.clone(), version.clone());
            changed(door, &StatusChange::ResumeBuild { rebuild, changed: decided, fingerprints, spec_version })?;
            let left = BuildRun::read(&door.state()?).and_then(|run| run.resume(version.as_deref(), &sections));
            match left.map(|left| left.ready.first().copied()) {
                Some(Some(next)) => {
                    say(format_args!("resumed; the next chunk is {next}: `hatchery build chunk {next} start`"))
                }
                Some(None) => say("resumed; nothing is left to start"),
                None => say(CLEARED),
            }
        }
        ResumeChoice::Fresh => {
            changed(door, &StatusChange::ClearBuild {})?;
            say("the build run is cleared; `hatchery build plan` begins another");
        }
        ResumeChoice::Cancel => say("nothing is changed"),
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(shown: &Resume, version: Option<&str>) -> Result<(), Report> {
    let names = |ids: &[ChunkId]| {
        let named = ids.iter().filter_map(|id| shown.run.chunk(*id));
        named.map(|chunk| format!("\n  {:>3}  {}", chunk.id, printable(&chunk.name))).collect::<String>()
    };
    let part = |title: &str, ids: &[ChunkId]| match ids.is_empty() {
        true => Ok(()),
        false => print_line(&format!("{title}:{}", names(ids))),
    };
    print_line(&format!("build run {}, {}", printable(&shown.run.id), shown.run.status.name()))?;
    part("completed", &shown.done)?;
    part("failed", &shown.failed)?;
    part("remaining", &shown.remaining)?;
    if !shown.outdated.is_empty() {
        let version = version.map(|version| format!(" (version {})", printable(version))).unwrap_or_default();
        part(&format!("completed, but the spec has changed for them since{version}"), &shown.outdated)?;
    }
    print_line("(1) Resume from the next pending chunk\n(2) Start fresh\n(3) Cancel")
}

/// The completed chunks that are built again: those in `named`, and the outdated ones for which the user chose `rebuild`. `None` if an
/// outdated chunk has no choice.
fn chosen(shown: &Resume, named: &[ChunkId], outdated: Option<Outdated>) -> Option<Vec<ChunkId>> {
    let mut rebuild = named.to_vec();
    for id in shown.outdated.iter().filter(|id| !named.contains(id)) {
        let choice = outdated.or_else(|| {
            let name = shown.run.chunk(*id).map(|chunk| printable(&chunk.name)).unwrap_or_default();
            say(format_args!(
                "chunk {id}, {name}: the spec has changed since it was built\n(1) Rebuild it\n(2) Keep it"
            ));
            asked()
        })?;
        if choice == Outdated::Rebuild {
            rebuild.push(*id);
        }
    }
    Some(rebuild)
}

/// Reads a choice from the terminal: its number or its name. `None` without a terminal.
fn asked<T: clap::ValueEnum>() -> Option<T> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return None;
    }
    for line in stdin.lock().lines() {
        match T::from_str(line.ok()?.trim(), true) {
            Ok(choice) => return Some(choice),
            Err(_) => say(format_args!("a number from 1 to {}?", T::value_variants().len())),
        }
    }
    None
}

fn numbers(ids: &[ChunkId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn refusal(error: BuildError) -> Report {
    NotChanged::from(StatusRefusal::from(error)).into()
}

fn chunk_number(text: &str) -> Result<ChunkId, &'static str> {
    text.parse().map_err(|_| "give the number of the chunk; `hatchery build show` lists the chunks")
}
