//! `hatchery say`

use super::attach::{self, Until};
use super::run_flags::RunFlags;
use super::{
    CommandContext, accepted_once, asking, caller_id, or_seat, print_json, quoted, reference, say, words_or_stdin,
};
use crate::client::Client;
use crate::client::once::ask_once;
use crate::client::paths::agent_path;
use crate::http::{AgentView, SeatList, SeatMessageAnswer};
use crate::report::{Code, Report};
use hatchery_core::EventId;
use hatchery_core::seat::Position;
use std::process::ExitCode;

/// Send a message to an agent, and start a process for it if none is running
///
/// The message is in the agent's history at once. A running process receives it at its next tool call or at the end of its
/// turn. Without --follow this command does not wait for the answer: `hatchery attach` shows it.
///
/// Without an agent the message is for the lead of the seats. The lead and the agents in seats receive messages only while the
/// seats have a session: `hatchery session start --lead`, `hatchery summon` and `hatchery wake` start one.
#[derive(Debug, clap::Args)]
#[command(override_usage = "hatchery say [OPTIONS] [AGENT] <TEXT>", after_help = EXAMPLES)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name. Without it the message is for the lead of the seats
    #[arg(allow_hyphen_values = true, value_name = "AGENT")]
    first: String,

    /// The message; `-` reads it from standard input
    #[arg(value_name = "TEXT")]
    second: Option<String>,

    /// Send the message to the agent in this seat instead, 0 to 8; seat 4 is the lead's
    #[arg(long, value_name = "SEAT", conflicts_with = "second", value_parser = clap::value_parser!(u8).range(..=8))]
    seat: Option<u8>,

    /// An id that you choose for this message: if you repeat the command with the same id and message, the message is sent once
    ///
    /// For scripts that repeat a command whose outcome they do not know. An id has 1 to 128 visible ASCII characters. Use a new
    /// id for each message.
    #[arg(long, value_name = "ID", value_parser = caller_id)]
    id: Option<String>,

    /// Print the answer, until the run ends or Ctrl-C
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    with: RunFlags,
}

const EXAMPLES: &str = "\
Examples:
  hatchery say Lyra \"how are you?\"       to an agent
  hatchery say --seat 3 \"how are you?\"   to the agent in seat 3
  hatchery say \"good morning\"            to the lead of the seats";

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let lead = Position::LEAD.number();
    match (&args.second, args.seat) {
        (Some(text), _) => {
            let agent = reference(&args.first).map_err(|why| Report::new(Code::Usage, why))?;
            to_agent(context, args, &agent, &agent, text)
                .map_err(|report| or_seat(report, &agent, |seat| format!("say --seat {seat} \"…\"")))
        }
        (None, Some(seat)) if seat != lead => {
            to_agent(context, args, &occupant(context, seat)?, &format!("the agent in seat {seat}"), &args.first)
        }
        (None, _) => to_lead(context, args, &args.first),
    }
}

/// Sends a message to an agent. `called` is the agent's name in the output.
fn to_agent(context: &CommandContext, args: &Args, agent: &str, called: &str, text: &str) -> Result<ExitCode, Report> {
    let body = serde_json::json!({ "id": args.id, "text": words_or_stdin(text)?, "with": args.with.as_json(context)? });
    let path = agent_path(agent, "/say");
    if !args.follow {
        return accepted_once(context, &path, body, |accepted| {
            let then = match (accepted.has("run_requested"), accepted.0["warning"].is_string()) {
                (true, false) => " and starts to work",
                (true, true) => ", and a run begins",
                // The warning says when the agent reads the message.
                (false, true) => "",
                (false, false) => " and will read it while it works",
            };
            format!("{called} has your message{then}; `hatchery attach {}` follows it", quoted(agent))
        });
    }
    asking(async {
        let accepted: serde_json::Value = ask_once(&context.project, &path, body).await?;
        if let Some(warning) = accepted["warning"].as_str() {
            say(format_args!("warning: {warning}"));
        }
        let client = Client::visit(&context.project).await?;
        let events = accepted["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        let message = events.iter().find(|event| event["type"] == "message_added");
        let id = message.and_then(|event| event["id"].as_u64()).unwrap_or_default();
        // If the lead passes the message on, the message is in the lead's history, and the lead answers.
        let hearer = message.and_then(|event| event["agent"].as_str()).or_else(|| accepted["id"].as_str());
        let until = Until::Answered(EventId(id));
        attach::talk(context, client, hearer.unwrap_or_default(), id.saturating_sub(1), until).await
    })
}

fn to_lead(context: &CommandContext, args: &Args, text: &str) -> Result<ExitCode, Report> {
    let words = words_or_stdin(text)?;
    let body = serde_json::json!({ "id": args.id, "message": words, "with": args.with.as_json(context)? });
    asking(async {
        let client = Client::visit(&context.project).await?;
        // A single word that names an agent is refused: in `hatchery say Lyra`, the message is missing.
        if args.seat.is_none() && !text.contains(char::is_whitespace) && text != "-" {
            let meant: Result<AgentView, Report> = client.get(&agent_path(text, "")).await;
            if meant.is_ok() {
                return Err(Report::new(Code::Usage, format_args!("there is no message for {text}"))
                    .hint(format_args!("give the message after the agent: `hatchery say {text} \"…\"`")));
            }
        }
        let answer: SeatMessageAnswer = ask_once(&context.project, "/api/send", body).await?;
        if args.follow {
            let list: SeatList = client.get("/api/seats").await?;
            let lead = list.lead.map(|lead| lead.to_string()).unwrap_or_default();
            let cursor = answer.event_id.0.saturating_sub(1);
            return attach::talk(context, client, &lead, cursor, Until::Answered(answer.event_id)).await;
        }
        match context.json {
            true => print_json(&answer)?,
            false => say("the lead of the seats has your message; `hatchery thread` shows the conversation"),
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Finds the agent in a seat.
fn occupant(context: &CommandContext, seat: u8) -> Result<String, Report> {
    let list: SeatList = asking(async { Client::visit(&context.project).await?.get("/api/seats").await })?;
    let agent = list.seats.iter().find(|it| it.grid_position == seat).and_then(|it| it.agent);
    agent.map(|agent| agent.to_string()).ok_or_else(|| {
        Report::new(Code::Failed, format_args!("no agent is in seat {seat}"))
            .hint("`hatchery seats` shows the seats; `hatchery summon` and `hatchery wake` fill them")
            .named("empty_seat")
    })
}
