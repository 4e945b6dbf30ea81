//! `hatchery session`

use super::paint::{DIM, paint};
use super::run_flags::PlayerFlags;
use super::{CommandContext, asking, caller_id, print_json, print_line, reference, say};
use crate::client::Client;
use crate::client::once::ask_once;
use crate::client::paths::session_path;
use crate::clock;
use crate::http::{SessionAnswer, SessionEndAnswer, SessionList};
use crate::report::{Code, Context as _, Report};
use clap::value_parser;
use hatchery_core::SessionId;
use hatchery_core::session::{MAX_IDLE_MS, MIN_IDLE_MS};
use std::ops::RangeInclusive;
use std::process::ExitCode;

/// Start, end and list sessions
///
/// A session groups agents that work at the same time. When it ends, its agents fall asleep.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SessionCommand {
    /// Start a session and print its id
    ///
    /// The session of the seats is a special one: there is at most one, and --lead starts it. `hatchery summon` and `hatchery wake` start
    /// it, too, when they need it.
    #[command(
        after_help = "Examples:\n  hatchery session start \"add a verbose flag\" --idle 3600\n  hatchery session start --lead"
    )]
    Start {
        /// A label for people
        label: Option<String>,
        /// End the session after this many seconds without activity
        #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(IDLE_SECONDS))]
        idle: Option<u64>,
        /// Start the session of the seats, with their lead
        #[arg(long, conflicts_with_all = ["label", "idle"])]
        lead: bool,
        /// With --lead: an id that you choose for this request. If you repeat the command with the same id and options, the session is
        /// started once
        #[arg(long, value_name = "ID", value_parser = caller_id, requires = "lead")]
        id: Option<String>,
        // The harness of the lead, and its options.
        #[command(flatten)]
        player: Box<PlayerFlags>,
    },
    /// End a session
    ///
    /// Its agents fall asleep and keep their histories.
    End {
        /// The session's id, as `hatchery session list` shows it, or as a UUID
        /// [default: the session of the seats]
        #[arg(allow_hyphen_values = true, value_parser = reference)]
        id: Option<String>,
        /// The reason; it is logged before the session ends
        #[arg(long, value_enum, default_value_t = Reason::User)]
        reason: Reason,
    },
    /// List the sessions, newest last: id, start, state, label
    List,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    User,
    Completed,
    Failed,
}

/// The core's limits in seconds, the unit of the flag, so that an error names the numbers that the user can type.
const IDLE_SECONDS: RangeInclusive<u64> = MIN_IDLE_MS / 1_000..=MAX_IDLE_MS / 1_000;

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    if let SessionCommand::Start { lead, player, .. } = &args.command {
        match lead {
            true => player.check_before_start(context)?,
            // A session without a lead starts no process.
            false if **player != PlayerFlags::default() => {
                return Err(Report::new(
                    Code::Usage,
                    "these options say how the lead is run, and this session has no lead",
                )
                .hint("add --lead for the session of the seats"));
            }
            false => {}
        }
    }
    asking(async {
        let client = match &args.command {
            SessionCommand::Start { .. } => Client::reach(&context.project).await?,
            SessionCommand::End { .. } | SessionCommand::List => Client::visit(&context.project).await?,
        };
        match &args.command {
            SessionCommand::Start { lead: true, id, player, .. } => {
                let body = serde_json::json!({ "id": id, "with": player.as_json()? });
                let answer: SessionAnswer = ask_once(&context.project, "/api/session/start", body).await?;
                show_seats(context, &answer, &readable(&answer.session_id)?)
            }
            SessionCommand::Start { label, idle, lead: false, .. } => {
                let body =
                    serde_json::json!({ "label": label, "idleMs": idle.map(|seconds| seconds.saturating_mul(1_000)) });
                let accepted: serde_json::Value = client.post("/api/sessions", &body).await?;
                show(context, &accepted, accepted["id"].as_str().unwrap_or_default())
            }
            SessionCommand::End { id: None, .. } => {
                let answer: SessionEndAnswer = client.post("/api/session/end", &serde_json::json!({})).await?;
                let words = match &answer.session_id {
                    Some(id) => format!("session {} of the seats is ending", readable(id)?),
                    None => "no session of the seats is open".to_owned(),
                };
                show_seats(context, &answer, &words)
            }
            SessionCommand::End { id: Some(id), reason } => {
                let accepted: serde_json::Value =
                    client.post(&session_path(id, "/end"), &serde_json::json!({ "reason": reason })).await?;
                show(context, &accepted, &format!("session {} is ending", accepted["id"].as_str().unwrap_or(id)))
            }
            SessionCommand::List => list(context, &client).await,
        }
    })
}

/// Converts the id from the answer, which is a UUID for other programs, to the form that all commands print.
fn readable(uuid: &str) -> Result<String, Report> {
    let id: SessionId = uuid.parse().context("the daemon gave no id of a session")?;
    Ok(id.to_string())
}

fn show_seats(context: &CommandContext, answer: &impl serde::Serialize, words: &str) -> Result<ExitCode, Report> {
    match context.json {
        true => print_json(answer)?,
        false => print_line(words)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(context: &CommandContext, accepted: &serde_json::Value, words: &str) -> Result<ExitCode, Report> {
    match context.json {
        true => print_json(accepted)?,
        false => print_line(words)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(context: &CommandContext, client: &Client) -> Result<ExitCode, Report> {
    let list: SessionList = client.get("/api/sessions").await?;
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.sessions.is_empty() {
        say("there are no sessions");
    }
    for session in &list.sessions {
        let reason = session.reason.as_ref().map(|reason| format!(" ({reason:?})").to_lowercase()).unwrap_or_default();
        let label = session.label.as_deref().unwrap_or_default();
        let started = paint(DIM, clock::age(session.started, clock::now()));
        print_line(&format!("{}  {started}  {}{reason}  {label}", session.id, session.state))?;
    }
    Ok(ExitCode::SUCCESS)
}
