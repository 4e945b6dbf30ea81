//! `hatchery quest`

mod show;
mod tell;
mod trial;
pub mod watch;

use super::run_flags::PlayerFlags;
use super::{CommandContext, asking, number, print_json, print_line, read_given, say, text_or_stdin};
use crate::client::paths::quest_path;
use crate::client::{Client, Failure};
use crate::http::QuestList;
use crate::quest_document::{QuestDocument, QuestWord};
use crate::report::{Code, Report};
use crate::short_ids::ShortIds;
use crate::step_plan;
use hatchery_core::EventId;
use hatchery_core::quest::{MAX_SLOTS, StepPlan};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Let several agents carry out a request: requirements, plan, parallel steps, review
///
/// One agent writes the requirements, one plans the steps, others do the steps in parallel, a ward (your tests) checks each step, and
/// one agent reviews the result. `hatchery ask list` shows their questions to you.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: QuestCommand,
}

const EXAMPLES: &str = "\
Examples:
  hatchery quest new --run \"add a --verbose flag\"
  hatchery quest new --run --quick \"fix the typo in the usage text\"
  hatchery quest new --run --harness scripted \"needs no account: it plays a small quest\"
  hatchery quest list                     lists the quests; commands accept the beginning of an id
  hatchery quest show ID                  shows the state of each step
  hatchery quest answer ID \"two carts\"   answers its oldest question
  hatchery quest retry ID STEP            tries a failed step again";

const ENDS: &str = "\
Exit codes:
    0  the quest is complete
    1  the quest is abandoned
    5  the quest waits for you, and the output names the command: it is paused, or every
       remaining step has failed or depends on a failed step
  130  Ctrl-C; the quest continues in the background";

const A_PLAN: &str = "\
A plan for --plan:
  [{\"id\": \"parser\", \"name\": \"Read the flag\"},
   {\"id\": \"docs\", \"name\": \"Describe it\", \"description\": \"In README.md.\", \"dependsOn\": [\"parser\"]}]
docs/quests.md lists the other fields of a step.";

#[derive(Debug, clap::Subcommand)]
enum QuestCommand {
    /// Create a quest; it is paused until `quest run` starts it, unless --run starts it at once
    #[command(after_help = A_PLAN)]
    New(Box<New>),
    /// Start or resume a quest and follow it like `watch`
    #[command(after_help = ENDS)]
    Run {
        /// The quest: an id, or the beginning of one
        quest: String,
        /// Do not try the ward before the first agent starts
        #[arg(long)]
        no_trial: bool,
    },
    /// Follow a quest, one line per event
    ///
    /// Shows each question with the command that answers it, and keeps waiting. In a terminal, a line that you type answers the
    /// oldest question. If there is no question, the line is a message to the working agent. If several agents work, begin the
    /// line with the step: `STEP: …`. Ctrl-C ends the view, not the quest.
    #[command(after_help = ENDS)]
    Watch {
        /// The quest: an id, or the beginning of one
        quest: String,
    },
    /// Stop the quest's agents and start nothing new; no step fails because of this
    Pause {
        /// The quest: an id, or the beginning of one
        quest: String,
    },
    /// Continue a paused quest in the background; `run` also follows it
    Resume {
        /// The quest: an id, or the beginning of one
        quest: String,
    },
    /// End a quest permanently; in a git repository its work is kept
    Abandon {
        /// The quest: an id, or the beginning of one
        quest: String,
    },
    /// Try a failed step again; steps that depend on it become unblocked
    Retry {
        /// The quest: an id, or the beginning of one
        quest: String,
        /// The step's id, as `hatchery quest show` lists it
        step: String,
        /// Let a new agent try, without the conversation of the previous agent. After a refusal of the model or a full context
        /// window, a new agent tries even without this option
        #[arg(long)]
        fresh: bool,
    },
    /// List the quests: id, state, complete steps, cost, last change, request
    List {
        /// Also list quests that are complete or abandoned
        #[arg(long, short)]
        all: bool,
    },
    /// Show a quest and its steps: what each step does or waits for, and its dependencies
    Show {
        /// The quest: an id, or the beginning of one
        quest: String,
        /// Also show what happened to each step
        #[arg(long)]
        history: bool,
    },
    /// Answer a question of a quest: the oldest, or the one that --question names
    Answer {
        /// The quest: an id, or the beginning of one
        quest: String,
        /// The answer; the question says what it accepts. `-` reads it from standard input
        answer: String,
        /// The question's number, as `hatchery ask list` shows it [default: the oldest]
        #[arg(long, value_name = "N", value_parser = number)]
        question: Option<u64>,
    },
    /// Set how much all agents of a quest may spend
    ///
    /// When the budget is used up, the turns of the quest's agents are interrupted, their runs are parked, and you are asked
    /// (`hatchery ask list`).
    Budget {
        /// The quest: an id, or the beginning of one
        quest: String,
        /// Dollars, such as 5 or 0.25; `none` removes the budget
        #[arg(value_name = "USD", value_parser = tell::ceiling)]
        limit: tell::Ceiling,
    },
    /// Replace the ward while the quest goes on; results of the old ward no longer count
    Ward {
        /// The quest: an id, or the beginning of one
        quest: String,
        /// The shell command
        #[arg(required_unless_present = "none")]
        command: Option<String>,
        /// Remove the ward
        #[arg(long, conflicts_with = "command")]
        none: bool,
    },
    /// Print a quest as JSON, the same as quest.json
    Export {
        /// The quest: an id, or the beginning of one
        quest: String,
    },
    /// Import an exported quest; it is paused until `quest run`
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct New {
    /// The request; `-` reads it from standard input
    request: String,

    /// Start at once and follow the quest like `hatchery quest watch`
    #[arg(long)]
    run: bool,

    /// How many steps run at the same time, at most [default: the setting `quests.slots`, which is 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SLOTS)))]
    slots: Option<u32>,

    /// The command that checks the work; empty for none [default: the setting `quests.ward`, otherwise guessed from the project]
    #[arg(long, value_name = "COMMAND")]
    ward: Option<String>,

    /// Where agents work [default: worktree in a git repository with a commit, otherwise none]
    #[arg(long, value_name = "WHERE")]
    isolation: Option<IsolationFlag>,

    /// How much all its agents may spend, in dollars, such as 5 or 0.25 [default: no limit]
    #[arg(long, value_name = "USD", value_parser = tell::dollars)]
    budget: Option<String>,

    /// One agent and the ward, for small work: the same as --roles quick
    #[arg(long, conflicts_with = "roles")]
    quick: bool,

    /// Which phases and roles the quest uses [default: full]
    #[arg(long, value_name = "PRESET")]
    roles: Option<Roles>,

    /// With --run: do not try the ward before the first agent starts
    #[arg(long, requires = "run")]
    no_trial: bool,

    /// Ask you before the agents' plan is carried out
    #[arg(long)]
    approve_plan: bool,

    /// A JSON file with the steps, so that no agent plans them; cannot be combined with --approve-plan
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,

    #[command(flatten)]
    with: PlayerFlags,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum IsolationFlag {
    /// Each step has a git worktree of its own and is merged when its ward is green
    Worktree,
    /// All steps work in the project folder
    None,
}

/// The presets of the table of roles.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Roles {
    /// Requirements, plan, parallel steps and review
    Full,
    /// One step: implemented, checked by the ward, attacked and checked again
    Checked,
    /// One step: implemented and checked by the ward
    Quick,
}

impl Roles {
    fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Checked => "checked",
            Self::Quick => "quick",
        }
    }
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    match &args.what {
        QuestCommand::New(new) => create(context, new),
        QuestCommand::Run { quest, no_trial } => begin(context, quest, *no_trial),
        QuestCommand::Watch { quest } => asking(async {
            let client = Client::visit(&context.project).await?;
            let document: QuestDocument = client.get(&quest_path(quest, "")).await?;
            watch::watch(context, client, &document, document.version).await
        }),
        QuestCommand::Pause { quest } => tell::pause(context, quest),
        QuestCommand::Resume { quest } => tell::resume(context, quest),
        QuestCommand::Abandon { quest } => tell::abandon(context, quest),
        QuestCommand::Retry { quest, step, fresh } => tell::retry(context, quest, step, *fresh),
        QuestCommand::List { all } => list(context, *all),
        QuestCommand::Show { quest, history } => {
            let document = tell::document(context, quest)?;
            match context.json {
                true => print_json(&document)?,
                false => show::show(&document, tell::merged(context, &document)?, *history)?,
            }
            Ok(ExitCode::SUCCESS)
        }
        QuestCommand::Answer { quest, answer, question } => tell::answer(context, quest, answer, *question),
        QuestCommand::Budget { quest, limit } => tell::budget(context, quest, limit.0.as_deref()),
        QuestCommand::Ward { quest, command, .. } => tell::ward(context, quest, command.as_deref()),
        QuestCommand::Export { quest } => {
            print_json(&QuestDocument { head: None, ..tell::document(context, quest)? })?;
            Ok(ExitCode::SUCCESS)
        }
        QuestCommand::Import { file } => import(context, file),
    }
}

fn create(context: &CommandContext, new: &New) -> Result<ExitCode, Report> {
    let request = tell::request(&new.request)?;
    let steps = new.plan.as_deref().map(read_plan).transpose()?.unwrap_or_default();
    let isolation = new.isolation.map(|isolation| match isolation {
        IsolationFlag::Worktree => "worktree",
        IsolationFlag::None => "none",
    });
    let preset = if new.quick { Roles::Quick } else { new.roles.unwrap_or(Roles::Full) };
    let body = json!({
        "preset": preset.word(), "request": request, "slots": new.slots, "ward": new.ward, "isolation": isolation, "budget": new.budget,
        "approvePlan": new.approve_plan.then_some(true), "hold": !new.run || !new.no_trial, "steps": steps,
        "with": new.with.as_json()?,
    });
    new.with.check_before_start(context)?;
    let made = asking(async { Ok(Client::reach(&context.project).await?.ask("/api/quests", &body).await) })?;
    let made: Value = made.map_err(|failure| of_plan(failure, new.plan.as_deref()))?;
    let id = made["id"].as_str().unwrap_or_default();
    if let Some(warning) = made["warning"].as_str() {
        say(format_args!("warning: {warning}"));
    }
    let mut document = tell::document(context, id)?;
    if new.run {
        show::introduce(context, &document);
        // The view also shows what has happened since the quest was created.
        let made = made["events"][0]["id"].as_u64().map_or(document.version, EventId);
        return asking(async {
            let client = Client::reach(&context.project).await?;
            if !new.no_trial && !resume(context, &client, &mut document).await? {
                return Ok(ExitCode::from(Code::Waits as u8));
            }
            watch::watch(context, client, &document, made).await
        });
    }
    match context.json {
        true => print_json(&document)?,
        false => {
            print_line(id)?;
            show::introduce(context, &document);
            say(format_args!("`hatchery quest run {id}` begins it"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the steps of a plan from a file.
fn read_plan(file: &Path) -> Result<Vec<StepPlan>, Report> {
    let wrong = |why: String| {
        Report::new(Code::Usage, format_args!("{}: {why}", file.display()))
            .hint("`hatchery quest new --help` shows a plan; docs/quests.md tells what each field means")
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    let plan: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
    step_plan::read_plan(plan).map_err(wrong)
}

/// If the daemon refuses a plan from a file, the error names the file.
fn of_plan(failure: Failure, plan: Option<&Path>) -> Report {
    match (failure, plan) {
        (Failure::Refused { detail, .. }, Some(file)) if detail.code == "bad_plan" => {
            Report::new(Code::Usage, format_args!("{}: {}", file.display(), detail.message)).hint(detail.hint)
        }
        (failure, _) => failure.into(),
    }
}

/// Resumes a paused quest, unless its ward is tried and is broken, or is red and the user declines. Returns whether the quest was resumed.
async fn resume(context: &CommandContext, client: &Client, document: &mut QuestDocument) -> Result<bool, Report> {
    if !trial::may_begin(context, client, document).await? {
        return Ok(false);
    }
    let resumed: Value = client.post(&quest_path(&document.id.to_string(), "/resume"), &json!({})).await?;
    document.state = QuestWord::Open;
    document.version = resumed["events"][0]["id"].as_u64().map_or(document.version, EventId);
    Ok(true)
}

fn begin(context: &CommandContext, quest: &str, no_trial: bool) -> Result<ExitCode, Report> {
    asking(async {
        let client = Client::visit(&context.project).await?;
        let mut document: QuestDocument = client.get(&quest_path(quest, "")).await?;
        // Slots, ward and place of work do not matter for a quest that is over.
        if matches!(document.state, QuestWord::Open | QuestWord::Paused) {
            show::introduce(context, &document);
        }
        if document.state == QuestWord::Paused {
            match no_trial {
                true => {
                    let _: Value = client.post(&quest_path(quest, "/resume"), &json!({})).await?;
                    document.state = QuestWord::Open;
                }
                false if !resume(context, &client, &mut document).await? => {
                    return Ok(ExitCode::from(Code::Waits as u8));
                }
                false => {}
            }
        }
        watch::watch(context, client, &document, document.version).await
    })
}

fn list(context: &CommandContext, all: bool) -> Result<ExitCode, Report> {
    let mut list: QuestList = asking(async { Client::visit(&context.project).await?.get("/api/quests").await })?;
    // A short id must also be different from the ids of quests that are not shown.
    let ids = ShortIds::of(list.quests.iter().map(|quest| quest.id));
    let is_over = |word| matches!(word, QuestWord::Complete | QuestWord::Abandoned);
    list.quests.retain(|quest| all || !is_over(quest.state));
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.quests.is_empty() {
        say(if all { "there are no quests yet: `hatchery quest new`" } else { "no quest is open; --all shows all" });
    }
    for quest in &list.quests {
        print_line(&show::line(quest, &ids))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn import(context: &CommandContext, file: &Path) -> Result<ExitCode, Report> {
    let text = match file.to_str() {
        Some("-") => text_or_stdin("-")?,
        _ => read_given(file)?,
    };
    let document: QuestDocument = serde_json::from_str(&text)
        .map_err(|error| Report::new(Code::Usage, format_args!("this is no exported quest: {error}")))?;
    let made: Value =
        asking(async { Client::reach(&context.project).await?.post("/api/quests/import", &document).await })?;
    match context.json {
        true => print_json(&made)?,
        false => {
            let id = made["id"].as_str().unwrap_or_default();
            print_line(id)?;
            if let Some(warning) = made["warning"].as_str() {
                say(format_args!("warning: {warning}"));
            }
            say(format_args!("`hatchery quest run {id}` begins it"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
