//! `hatchery summon`

use super::run_options::Player;
use super::{Context, asking, print_json, say};
use crate::client::Client;
use crate::http::FillAnswer;
use crate::report::Report;
use std::process::ExitCode;

/// Fill empty and expired seats with new agents
///
/// There are nine seats; seat 4, in the middle, is the lead's. Each new agent is invited to choose a name and may refuse. A seat whose
/// agent has not chosen a name after five minutes expires. This command starts a session if the seats have none.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hatchery summon 0 1 2")]
pub struct Args {
    /// The seats: 0 to 8 without 4 [default: all that are empty or expired]
    #[arg(value_name = "SEAT", value_parser = clap::value_parser!(u8).range(..9))]
    seats: Vec<u8>,

    #[command(flatten)]
    player: Player,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    fill(context, "/api/agents/summon", &args.seats, &args.player, "summoned")
}

/// Asks for seats to be filled.
pub(super) fn fill(
    context: &Context,
    path: &str,
    seats: &[u8],
    player: &Player,
    done: &str,
) -> Result<ExitCode, Report> {
    let seats = (!seats.is_empty()).then_some(seats);
    let body = serde_json::json!({ "seats": seats, "with": player.as_json()? });
    let answer: FillAnswer = asking(async { Client::reach(&context.project).await?.post(path, &body).await })?;
    if context.json {
        print_json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let seats = answer.seats.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    say(format_args!("{done}: seats {seats}; `hatchery seats` shows what becomes of them"));
    Ok(ExitCode::SUCCESS)
}
