//! `hatchery status`

use super::{CommandContext, asking, counted, print_json, print_line, say};
use crate::client::Client;
use crate::clock;
use crate::http::DaemonStatus;
use crate::report::{Code, Report};
use std::process::ExitCode;

/// Show the project's daemon: address, how to open the page, store, size of the log
///
/// The page needs the project's token. `hatchery open` opens the page with the token, and `hatchery open --print` prints the link
/// with the token. Does not start a daemon. Exits with 3 if no daemon is running.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(context: &CommandContext, _args: &Args) -> Result<ExitCode, Report> {
    let status = asking(async {
        match Client::running(&context.project).await? {
            Some(client) => Ok(Some(client.get::<DaemonStatus>("/api/status").await?)),
            None => Ok(None),
        }
    })?;
    let url = context.project.daemon().map(|daemon| daemon.url);
    if context.json {
        let url = status.as_ref().and(url);
        print_json(&serde_json::json!({ "running": status.is_some(), "url": url, "daemon": status }))?;
        return Ok(if status.is_some() { ExitCode::SUCCESS } else { ExitCode::from(Code::Unreachable as u8) });
    }
    let Some(status) = status else {
        say(format_args!("no daemon runs for {}; `hatchery up` starts one", context.project.root().display()));
        return Ok(ExitCode::from(Code::Unreachable as u8));
    };
    print_line(&format!("project   {}", status.project))?;
    print_line(&format!(
        "daemon    pid {}, {}, up {}",
        status.pid,
        url.unwrap_or_default(),
        clock::length(status.uptime_ms)
    ))?;
    print_line("page      `hatchery open` opens it")?;
    print_line(&format!("store     {}", status.store))?;
    if let Some(trouble) = &status.trouble {
        print_line(&format!("trouble   {}", super::paint::paint(super::paint::BAD, trouble)))?;
    }
    print_line(&format!("log       {}", counted(status.head.0, "event")))?;
    print_line(&format!("agents    {}", status.agents))?;
    print_line(&format!("sessions  {}", status.sessions))?;
    Ok(ExitCode::SUCCESS)
}
