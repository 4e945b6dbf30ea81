//! `hatchery wake`

use super::CommandContext;
use super::summon::FillRequest;
use crate::client::Client;
use crate::report::Report;
use std::process::ExitCode;

/// Fill sleeping seats again, each with its soul and its last session
///
/// Each new agent receives two texts: the soul of the seat, in which the seat's first agent described itself, and a transcript of
/// the seat's last session. A seat without a soul is summoned again. This command starts a session if the seats have none.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hatchery wake 0")]
pub struct Args {
    /// The seats: 0 to 8 without 4 [default: all that sleep]
    #[arg(value_name = "SEAT", value_parser = clap::value_parser!(u8).range(..=8))]
    seats: Vec<u8>,

    #[command(flatten)]
    request: FillRequest,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    // `visit` creates no project: a project that does not exist has no sleeping seats.
    let client = Client::visit(&context.project);
    super::summon::fill(context, client, "/api/agents/wake", &args.seats, &args.request, "woken")
}
