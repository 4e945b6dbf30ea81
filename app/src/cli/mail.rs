//! `hatchery mail`

use super::paint::{DIM, STRONG, paint, printable};
use super::{CommandContext, asking, counted, number, print_json, print_line, reference, say};
use crate::client::paths::mail_path;
use crate::client::{Client, patience};
use crate::clock;
use crate::http::MailList;
use crate::mail_reader::{AwaitedState, Mail};
use crate::report::Report;
use crate::short_ids::ShortIds;
use hatchery_core::mail::HUMAN;
use std::process::ExitCode;
use std::time::Duration;

/// Read mail, or wait for it
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: MailCommand,

    /// The mailbox: an agent's id, the beginning of one, a name, or `human`
    #[arg(long, default_value = HUMAN, value_name = "ADDRESS", global = true, allow_hyphen_values = true, value_parser = reference)]
    of: String,
}

#[derive(Debug, clap::Subcommand)]
enum MailCommand {
    /// List unread mail, oldest first, without marking it as read
    Check,
    /// Print a mail and mark it as read: the mail with the given id, or the oldest unread mail
    Read {
        /// The mail's id
        #[arg(value_parser = number)]
        mail: Option<u64>,
    },
    /// Wait for the next mail. With agents: wait until each of them has sent a mail or has ended
    ///
    /// Exits with 1 when the time is up.
    Wait {
        /// The agents to wait for; write ids that begin with a dash after `--`
        agents: Vec<String>,
        /// Stop waiting after this many seconds; with 0, look once and do not wait
        #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=MAX_TIMEOUT_S))]
        timeout: u64,
    },
}

/// One week. A longer time is a mistake, and a very large number would overflow a clock.
const MAX_TIMEOUT_S: u64 = 7 * 24 * 3_600;

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    asking(async {
        let client = Client::visit(&context.project).await?;
        match &args.command {
            MailCommand::Check => check(context, &client.get(&mail_path(&args.of, "")).await?),
            MailCommand::Read { mail } => {
                let mail: Mail =
                    client.post(&mail_path(&args.of, "/read"), &serde_json::json!({ "mail": mail })).await?;
                show(context, &mail)
            }
            MailCommand::Wait { agents, timeout } => wait(context, &args.of, agents, *timeout).await,
        }
    })
}

fn check(context: &CommandContext, list: &MailList) -> Result<ExitCode, Report> {
    if context.json {
        print_json(list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ids = ShortIds::of(list.mail.iter().map(|mail| mail.header.from));
    for mail in &list.mail {
        let from = match (&mail.name, mail.header.from) {
            (Some(name), _) => name.clone(),
            (None, from) => ids.short(from),
        };
        let sent = paint(DIM, clock::age(mail.sent, clock::now()));
        let (id, state) = (mail.header.id, mail.header.state);
        print_line(&format!("{id:>6}  {state:<9}  {sent}  from {}: {}", printable(&from), printable(&mail.subject)))?;
    }
    if list.mail.is_empty() {
        say("no unread mail");
    }
    Ok(ExitCode::SUCCESS)
}

fn show(context: &CommandContext, mail: &Mail) -> Result<ExitCode, Report> {
    if context.json {
        print_json(mail)?;
        return Ok(ExitCode::SUCCESS);
    }
    let from = paint(STRONG, format_args!("from {}", mail.from));
    say(format_args!("{from} {}", paint(DIM, clock::age(mail.sent, clock::now()))));
    print_line(&mail.body)?;
    Ok(ExitCode::SUCCESS)
}

async fn wait(context: &CommandContext, of: &str, agents: &[String], timeout: u64) -> Result<ExitCode, Report> {
    let waited = patience::wait(&context.project, of, agents, Duration::from_secs(timeout)).await?;
    let late = waited.agents.iter().filter(|one| one.state == AwaitedState::Waiting).count() as u64;
    let nothing = (waited.mail.is_none() && agents.is_empty()) || late > 0;
    if context.json {
        print_json(&waited)?;
    } else {
        if let Some(mail) = &waited.mail {
            show(context, mail)?;
        }
        for one in &waited.agents {
            print_line(&format!("{:<9} {}", one.state.word(), one.agent))?;
            if let Some(mail) = &one.mail {
                show(context, mail)?;
            }
        }
        match late {
            0 if nothing => say("no mail came in time"),
            0 => {}
            late => say(format_args!("no mail came in time from {}", counted(late, "agent"))),
        }
    }
    Ok(if nothing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
