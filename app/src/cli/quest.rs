//! `hatchery quest`

mod show;
mod tell;
pub mod watch;

use super::run_options::Player;
use super::{Context, asking, print_json, print_line, say, text_or_stdin};
use crate::client::paths::quest_path;
use crate::client::{Client, Failure};
use crate::http::QuestList;
use crate::quest_document::{QuestDocument, QuestWord};
use crate::report::{Code, Context as _, Report};
use crate::step_plan;
use hatchery_core::EventId;
use hatchery_core::quest::{MAX_SLOTS, StepPlan};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Have a request carried out by agents in roles: requirements, a plan, steps side by side, a review
///
/// One agent finds out what is wanted, one plans the steps, others do them in as many slots as there are, a ward (your tests) says
/// whether each is good, and one reviews the whole. `hatchery ask list` shows what they ask you.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  hatchery quest new --run \"add a --verbose flag\"
  hatchery quest new --run --harness scripted \"needs no account: it plays a little quest\"
  hatchery quest list                     what there is; the beginning of an id is enough for the others
  hatchery quest show ID                  how it stands, step by step
  hatchery quest answer ID \"two carts\"   what its agents ask
  hatchery quest retry ID STEP            after a failure";

const ENDS: &str = "\
Exit codes:
    0  the quest is complete
    1  it is abandoned
    5  it waits for a command of yours, which is shown: it is paused, or each step that
       is left has failed or depends on one that has
  130  Ctrl-C; it goes on in the background";

const A_PLAN: &str = "\
A plan for --plan:
  [{\"id\": \"parser\", \"name\": \"Read the flag\"},
   {\"id\": \"docs\", \"name\": \"Describe it\", \"description\": \"In README.md.\", \"dependsOn\": [\"parser\"]}]
docs/quests.md tells what else a step may have.";

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a quest; it is paused until `quest run` begins it, unless --run begins it at once
    #[command(after_help = A_PLAN)]
    New(Box<New>),
    /// Begin or resume a quest and follow it, as `watch` does
    #[command(after_help = ENDS)]
    Run {
        /// Its id, or the beginning of it
        quest: String,
    },
    /// Follow a quest: a line for each thing that happens
    ///
    /// What its agents ask is shown with the command that answers it, and waited for. Ctrl-C ends the view, not the quest.
    #[command(after_help = ENDS)]
    Watch {
        /// Its id, or the beginning of it
        quest: String,
    },
    /// Begin nothing more and stop the agents at work; nothing is marked as failed
    Pause {
        /// Its id, or the beginning of it
        quest: String,
    },
    /// Go on with a paused quest in the background; `run` does the same and follows it
    Resume {
        /// Its id, or the beginning of it
        quest: String,
    },
    /// End a quest for good, as it is; in a git repository its work is kept
    Abandon {
        /// Its id, or the beginning of it
        quest: String,
    },
    /// Try a failed step again, and with it what waits for it
    Retry {
        /// The quest's id, or the beginning of it
        quest: String,
        /// The id of the step, as `hatchery quest show` has it
        step: String,
    },
    /// List the quests: id, state, steps that are complete of how many, cost, last change, request
    List {
        /// Show those that are over as well
        #[arg(long, short)]
        all: bool,
    },
    /// Show a quest with its steps: what each does or waits for, and what it depends on
    Show {
        /// Its id, or the beginning of it
        quest: String,
        /// Show what happened to each step, too
        #[arg(long)]
        history: bool,
    },
    /// Answer the oldest question of a quest, or a certain one
    Answer {
        /// The quest's id, or the beginning of it
        quest: String,
        /// What to answer; the question says what it takes. `-` reads it from standard input
        answer: String,
        /// The question's number, as `hatchery ask list` has it [default: the oldest]
        #[arg(long, value_name = "N")]
        question: Option<u64>,
    },
    /// Set a ceiling for what the agents of a quest may use in all
    ///
    /// When it is reached they finish their turns and wait, and you are asked (`hatchery ask list`).
    Budget {
        /// Its id, or the beginning of it
        quest: String,
        /// In dollars, such as 5 or 0.25; `none` takes the ceiling away
        #[arg(value_name = "USD", value_parser = tell::ceiling)]
        limit: tell::Ceiling,
    },
    /// Name another ward; what the old one says no longer counts
    Ward {
        /// Its id, or the beginning of it
        quest: String,
        /// The command, for a shell
        #[arg(required_unless_present = "none")]
        command: Option<String>,
        /// Have no ward any more
        #[arg(long, conflicts_with = "command")]
        none: bool,
    },
    /// Print a quest as JSON, the same as its quest.json
    Export {
        /// Its id, or the beginning of it
        quest: String,
    },
    /// Take in a quest that was exported; it is paused until `quest run`
    Import {
        /// The file; `-` for standard input
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct New {
    /// What is wanted; `-` reads it from standard input
    request: String,

    /// Begin at once and follow it, as `hatchery quest watch` does
    #[arg(long)]
    run: bool,

    /// How many agents may be at work at once [default: 3, or the setting `quests.slots`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SLOTS)))]
    slots: Option<u32>,

    /// The command that says whether the work is good; empty for none [default: the setting `quests.ward`, else guessed]
    #[arg(long, value_name = "COMMAND")]
    ward: Option<String>,

    /// Where steps are worked on [default: worktree in a git repository with a commit, else none]
    #[arg(long, value_name = "WHERE")]
    isolation: Option<Isolation>,

    /// What its agents may use in all, in dollars, such as 5 or 0.25 [default: as much as they need]
    #[arg(long, value_name = "USD", value_parser = tell::dollars)]
    budget: Option<String>,

    /// Ask me before the plan that they make is carried out
    #[arg(long)]
    approve_plan: bool,

    /// A JSON file with the steps, instead of having them planned; you need not be asked about it, so not with --approve-plan
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,

    #[command(flatten)]
    with: Player,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Isolation {
    /// Each step in a git worktree of its own, merged when its ward is green
    Worktree,
    /// All in the project itself
    None,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    match &args.what {
        What::New(new) => create(context, new),
        What::Run { quest } => begin(context, quest),
        What::Watch { quest } => asking(async {
            let client = Client::reach(&context.project).await?;
            let document: QuestDocument = client.get(&quest_path(quest, "")).await?;
            watch::watch(context, client, &document, document.version).await
        }),
        What::Pause { quest } => tell::pause(context, quest),
        What::Resume { quest } => tell::resume(context, quest),
        What::Abandon { quest } => tell::abandon(context, quest),
        What::Retry { quest, step } => tell::retry(context, quest, step),
        What::List { all } => list(context, *all),
        What::Show { quest, history } => {
            let document = tell::document(context, quest)?;
            match context.json {
                true => print_json(&document)?,
                false => show::show(&document, *history)?,
            }
            Ok(ExitCode::SUCCESS)
        }
        What::Answer { quest, answer, question } => tell::answer(context, quest, answer, *question),
        What::Budget { quest, limit } => tell::budget(context, quest, limit.0.as_deref()),
        What::Ward { quest, command, .. } => tell::ward(context, quest, command.as_deref()),
        What::Export { quest } => {
            print_json(&tell::document(context, quest)?)?;
            Ok(ExitCode::SUCCESS)
        }
        What::Import { file } => import(context, file),
    }
}

fn create(context: &Context, new: &New) -> Result<ExitCode, Report> {
    let request = tell::request(&new.request)?;
    let steps = new.plan.as_deref().map(read_plan).transpose()?.unwrap_or_default();
    let isolation = new.isolation.map(|isolation| match isolation {
        Isolation::Worktree => "worktree",
        Isolation::None => "none",
    });
    let body = json!({
        "request": request, "slots": new.slots, "ward": new.ward, "isolation": isolation, "budget": new.budget,
        "approve_plan": new.approve_plan.then_some(true), "hold": !new.run, "steps": steps,
        "with": new.with.as_json()?,
    });
    let made = asking(async { Ok(Client::reach(&context.project).await?.ask("/api/quests", &body).await) })?;
    let made: Value = made.map_err(|failure| of_plan(failure, new.plan.as_deref()))?;
    let id = made["id"].as_str().unwrap_or_default();
    let document = tell::document(context, id)?;
    if new.run {
        show::introduce(context, &document);
        // What has happened since it was made is worth seeing, too.
        let made = made["events"][0]["id"].as_u64().map_or(document.version, EventId);
        return asking(async {
            let client = Client::reach(&context.project).await?;
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

/// The steps in a file.
fn read_plan(file: &Path) -> Result<Vec<StepPlan>, Report> {
    let wrong = |why: String| {
        Report::new(Code::Usage, format_args!("{}: {why}", file.display()))
            .hint("`hatchery quest new --help` shows a plan; docs/quests.md tells what each field means")
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    let plan: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
    step_plan::read_plan(plan).map_err(wrong)
}

/// Steps that do not fit together are the fault of the file that they come from.
fn of_plan(failure: Failure, plan: Option<&Path>) -> Report {
    match (failure, plan) {
        (Failure::Refused { detail, .. }, Some(file)) if detail.code == "bad_plan" => {
            Report::new(Code::Usage, format_args!("{}: {}", file.display(), detail.message)).hint(detail.hint)
        }
        (failure, _) => failure.into(),
    }
}

fn begin(context: &Context, quest: &str) -> Result<ExitCode, Report> {
    asking(async {
        let client = Client::reach(&context.project).await?;
        let mut document: QuestDocument = client.get(&quest_path(quest, "")).await?;
        if document.state == QuestWord::Paused {
            let _: Value = client.post(&quest_path(quest, "/resume"), &json!({})).await?;
            document.state = QuestWord::Open;
        }
        show::introduce(context, &document);
        watch::watch(context, client, &document, document.version).await
    })
}

fn list(context: &Context, all: bool) -> Result<ExitCode, Report> {
    let mut list: QuestList = asking(async { Client::reach(&context.project).await?.get("/api/quests").await })?;
    let is_over = |word| matches!(word, QuestWord::Complete | QuestWord::Abandoned);
    list.quests.retain(|quest| all || !is_over(quest.state));
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.quests.is_empty() {
        say(if all { "there was never a quest: `hatchery quest new`" } else { "no quest is open; --all shows all" });
    }
    for quest in &list.quests {
        print_line(&show::line(quest))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn import(context: &Context, file: &Path) -> Result<ExitCode, Report> {
    let text = match file.to_str() {
        Some("-") => text_or_stdin("-")?,
        _ => std::fs::read_to_string(file).context(format_args!("{} cannot be read", file.display()))?,
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
