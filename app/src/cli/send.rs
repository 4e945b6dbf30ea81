//! `hatchery send`

use super::{CommandContext, accepted_once, caller_id, reference, words_or_stdin};
use crate::report::Report;
use hatchery_core::mail::HUMAN;
use std::process::ExitCode;

/// Send a mail to an agent or to yourself (`human`)
///
/// A mail does not start a process. It waits in the mailbox until the recipient reads it. To give an agent a task, use
/// `hatchery say`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The recipient: an agent's id, the beginning of one, a name, or `human`
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    to: String,
    /// The text; `-` reads it from standard input
    body: String,
    /// The sender
    #[arg(long, default_value = HUMAN, value_name = "AGENT", allow_hyphen_values = true, value_parser = reference)]
    from: String,
    /// An id that you choose for this mail: if you repeat the command with the same id and mail, the mail is sent once
    #[arg(long, value_name = "ID", value_parser = caller_id)]
    id: Option<String>,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let body = words_or_stdin(&args.body)?;
    let body = serde_json::json!({ "id": args.id, "from": args.from, "to": args.to, "body": body });
    accepted_once(context, "/api/mail", body, |accepted| {
        let number = accepted.event("mail_sent").map(|event| format!(" {}", event["id"])).unwrap_or_default();
        match args.to.as_str() {
            HUMAN => format!("mail{number} waits for you: `hatchery mail read`"),
            to => format!("mail{number} is in the mailbox of {to}; it starts no process, `hatchery say {to} …` does"),
        }
    })
}
