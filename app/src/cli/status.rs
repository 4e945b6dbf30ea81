//! `hatchery status`

use super::{Context, asking, print_json, print_line};
use crate::client::Client;
use crate::http::Status;
use crate::report::{Code, Report};
use std::process::ExitCode;

/// Show whether the project's daemon runs, where, and how it is doing. Starts none.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(context: &Context, _args: &Args) -> Result<ExitCode, Report> {
    let status = asking(async {
        match Client::running(&context.project).await? {
            Some(client) => client.get::<Status>("/api/status").await.map(Some),
            None => Ok(None),
        }
    })?;
    let url = context.project.daemon().map(|daemon| daemon.url);
    if context.json {
        print_json(
            &serde_json::json!({ "running": status.is_some(), "url": status.as_ref().and(url), "daemon": status }),
        )?;
        return Ok(if status.is_some() { ExitCode::SUCCESS } else { ExitCode::from(Code::Unreachable as u8) });
    }
    let Some(status) = status else {
        anstream::eprintln!("no daemon runs for {}; `hatchery up` starts one", context.project.root().display());
        return Ok(ExitCode::from(Code::Unreachable as u8));
    };
    print_line(&format!("project   {}", status.project))?;
    print_line(&format!(
        "daemon    pid {}, {}, up {} s",
        status.pid,
        url.unwrap_or_default(),
        status.uptime_ms / 1_000
    ))?;
    print_line(&format!("store     {}", status.store))?;
    if let Some(trouble) = &status.trouble {
        print_line(&format!("trouble   {}", super::paint::paint(super::paint::BAD, trouble)))?;
    }
    print_line(&format!("log       to event {}", status.head))?;
    print_line(&format!("agents    {}", status.agents))?;
    print_line(&format!("sessions  {}", status.sessions))?;
    Ok(ExitCode::SUCCESS)
}
