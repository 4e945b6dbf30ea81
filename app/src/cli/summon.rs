//! `hatchery summon`

use super::run_flags::PlayerFlags;
use super::{CommandContext, asking, caller_id, print_json, say};
use crate::client::Client;
use crate::client::once::ask_once;
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
    #[arg(value_name = "SEAT", value_parser = clap::value_parser!(u8).range(..=8))]
    seats: Vec<u8>,

    #[command(flatten)]
    request: FillRequest,
}

/// The options that `summon` and `wake` have in common.
#[derive(Debug, clap::Args)]
pub struct FillRequest {
    /// An id that you choose for this request: if you repeat the command with the same id and seats, the seats are filled once
    ///
    /// For scripts that repeat a command whose outcome they do not know. An id has 1 to 128 visible ASCII characters. Use a new
    /// id for each request.
    #[arg(long, value_name = "ID", value_parser = caller_id)]
    id: Option<String>,

    #[command(flatten)]
    player: PlayerFlags,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    args.request.player.check_before_start(context)?;
    fill(context, Client::reach(&context.project), "/api/agents/summon", &args.seats, &args.request, "summoned")
}

/// Asks the daemon to fill seats.
pub(super) fn fill(
    context: &CommandContext,
    client: impl Future<Output = Result<Client, Report>>,
    path: &str,
    seats: &[u8],
    FillRequest { id, player }: &FillRequest,
    done: &str,
) -> Result<ExitCode, Report> {
    let seats = (!seats.is_empty()).then_some(seats);
    let body = serde_json::json!({ "id": id, "seats": seats, "with": player.as_json()? });
    let answer: FillAnswer = asking(async {
        client.await?;
        Ok(ask_once(&context.project, path, body).await?)
    })?;
    if context.json {
        print_json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let seats = answer.seats.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    say(format_args!("{done}: seats {seats}; `hatchery seats` shows what becomes of them"));
    Ok(ExitCode::SUCCESS)
}
