//! `hatchery quest`

mod show;
pub mod watch;

use super::wishes::Player;
use super::{Context, accepted, asking, print_json, print_line, say, text_or_stdin, words_or_stdin};
use crate::client::Client;
use crate::client::paths::{quest_path, step_path};
use crate::http::QuestList;
use crate::quest_document::{QuestDocument, QuestWord};
use crate::report::{Code, Context as _, Report};
use hatchery_core::EventId;
use hatchery_core::quest::MAX_SLOTS;
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
  hatchery quest list; hatchery quest show ID; hatchery quest watch ID";

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a quest; it is held until `quest run` begins it
    New(Box<New>),
    /// Begin or resume a quest and follow it until it is over
    Run { quest: String },
    /// Follow a quest until it is over
    Watch { quest: String },
    /// Begin nothing more and stop the agents at work; nothing is marked as failed
    Pause { quest: String },
    /// Go on with a quest, in the background
    Resume { quest: String },
    /// End a quest for good, as it is; its work is kept in git
    Abandon { quest: String },
    /// Try a failed step again
    Retry {
        quest: String,
        /// The id of the step
        step: String,
    },
    /// List the quests
    List {
        /// Show those that are over as well
        #[arg(long, short)]
        all: bool,
    },
    /// Show a quest with its steps
    Show {
        quest: String,
        /// Show what happened to each step, too
        #[arg(long)]
        history: bool,
    },
    /// Answer the oldest question of a quest, or a certain one
    Answer {
        quest: String,
        /// What to answer; `-` reads it from standard input
        answer: String,
        /// The question's number, when there are several
        #[arg(long)]
        question: Option<u64>,
    },
    /// Set a ceiling for what its agents may use in all
    Budget {
        quest: String,
        /// In dollars; `none` takes the ceiling away
        limit: String,
    },
    /// Print a quest as JSON, the same as its quest.json
    Export { quest: String },
    /// Take in a quest that was exported; it is held until `quest run`
    Import {
        /// The file; `-` for standard input
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct New {
    /// What is wanted; `-` reads it from standard input
    request: String,

    /// Begin at once and follow it until it is over
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

    /// What its agents may use in all, in dollars
    #[arg(long, value_name = "USD")]
    budget: Option<String>,

    /// Ask me before the plan is carried out
    #[arg(long)]
    approve_plan: bool,

    /// A file with the steps, as JSON, instead of having them planned: [{"id", "name", "description", "dependsOn": […], …}]
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
    let post = |quest: &str, rest: &str| accepted(context, &quest_path(quest, rest), &json!({}));
    match &args.what {
        What::New(new) => create(context, new),
        What::Run { quest } => begin(context, quest),
        What::Watch { quest } => asking(async {
            let client = Client::reach(&context.project).await?;
            let document: QuestDocument = client.get(&quest_path(quest, "")).await?;
            watch::watch(context, client, &document, document.version).await
        }),
        What::Pause { quest } => post(quest, "/pause"),
        What::Resume { quest } => post(quest, "/resume"),
        What::Abandon { quest } => post(quest, "/abandon"),
        What::Retry { quest, step } => accepted(context, &step_path(quest, step, "/retry"), &json!({})),
        What::List { all } => list(context, *all),
        What::Show { quest, history } => {
            let document = document(context, quest)?;
            match context.json {
                true => print_json(&document)?,
                false => show::show(&document, *history)?,
            }
            Ok(ExitCode::SUCCESS)
        }
        What::Answer { quest, answer, question } => reply(context, quest, answer, *question),
        What::Budget { quest, limit } => {
            let limit = (limit != "none").then_some(limit);
            accepted(context, &quest_path(quest, "/budget"), &json!({ "limit": limit }))
        }
        What::Export { quest } => {
            print_json(&document(context, quest)?)?;
            Ok(ExitCode::SUCCESS)
        }
        What::Import { file } => import(context, file),
    }
}

fn document(context: &Context, quest: &str) -> Result<QuestDocument, Report> {
    asking(async { Client::reach(&context.project).await?.get(&quest_path(quest, "")).await })
}

fn create(context: &Context, new: &New) -> Result<ExitCode, Report> {
    let request = words_or_stdin(&new.request)?;
    let steps: Value = match &new.plan {
        None => json!([]),
        Some(file) => {
            let wrong = |why: String| Report::new(Code::Usage, format_args!("{}: {why}", file.display()));
            let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
            let plan: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
            // With or without the object around it.
            if plan["steps"].is_array() { plan["steps"].clone() } else { plan }
        }
    };
    let isolation = new.isolation.map(|isolation| match isolation {
        Isolation::Worktree => "worktree",
        Isolation::None => "none",
    });
    let body = json!({
        "request": request, "slots": new.slots, "ward": new.ward, "isolation": isolation, "budget": new.budget,
        "approve_plan": new.approve_plan.then_some(true), "hold": !new.run, "steps": steps,
        "with": new.with.as_json()?,
    });
    let made: Value = asking(async { Client::reach(&context.project).await?.post("/api/quests", &body).await })?;
    let id = made["id"].as_str().unwrap_or_default();
    let document = document(context, id)?;
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

fn reply(context: &Context, quest: &str, answer: &str, question: Option<u64>) -> Result<ExitCode, Report> {
    let question = match question {
        Some(question) => question,
        None => {
            let open = document(context, quest)?.steps.into_iter().filter_map(|step| step.question).min();
            let none =
                || Report::failed("nothing is asked about this quest").hint("`hatchery ask list` shows all questions");
            open.ok_or_else(none)?.0
        }
    };
    let body = json!({ "answer": text_or_stdin(answer)? });
    accepted(context, &format!("/api/questions/{question}/answer"), &body)
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
            say(format_args!("`hatchery quest run {id}` begins it"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
