//! `hatchery thread`

use super::paint::{DIM, STRONG, paint, printable};
use super::{CommandContext, asking, or_seat, print_json, print_line, reference, say};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::clock;
use crate::http::ThreadView;
use crate::report::Report;
use crate::seats::SpeakerType;
use hatchery_core::seat::Position;
use std::process::ExitCode;

/// Show what was said to an agent and what it said, over all its sessions
///
/// The thread includes mail. It does not include tool calls, reports about which agents are alive, or messages from Hatchery itself
/// to agents of seats and quests.
/// `hatchery history` shows everything since the last wake. Without an agent, shows the conversation with the lead of the seats.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hatchery thread --seat 3")]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name [default: the lead of the seats]
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: Option<String>,

    /// Show all agents that have ever been in this seat, 0 to 8; seat 4 is the lead's
    #[arg(long, value_name = "SEAT", conflicts_with = "agent", value_parser = clap::value_parser!(u8).range(..=8))]
    seat: Option<u8>,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let path = match &args.agent {
        Some(agent) => agent_path(agent, "/thread"),
        None => format!("/api/seats/{}/thread", args.seat.unwrap_or(Position::LEAD.number())),
    };
    let thread: ThreadView =
        asking(async { Client::visit(&context.project).await?.get(&path).await }).map_err(|report| {
            or_seat(report, args.agent.as_deref().unwrap_or_default(), |seat| format!("thread --seat {seat}"))
        })?;
    if context.json {
        print_json(&thread)?;
        return Ok(ExitCode::SUCCESS);
    }
    if thread.messages.is_empty() {
        say("nothing was said yet");
    }
    for message in &thread.messages {
        let speaker = printable(&message.speaker(thread.name.as_deref()));
        let speaker = match message.speaker_type {
            SpeakerType::Human => paint(STRONG, speaker),
            SpeakerType::Agent => speaker,
        };
        print_line(&format!(
            "{} {speaker}: {}",
            paint(DIM, clock::age(message.ts, clock::now())),
            printable(&message.text)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
