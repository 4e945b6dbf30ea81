//! `hatchery open`

use super::{CommandContext, asking, print_json, print_line, say};
use crate::client::Client;
use crate::report::Report;
use std::process::ExitCode;

/// Open the project's page in a browser
///
/// The link contains the project's token, which the browser then keeps as a cookie. Do not share the link.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only print the link
    #[arg(long)]
    print: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let link = asking(async { Ok(Client::visit(&context.project).await?.link()) })?;
    if context.json {
        print_json(&serde_json::json!({ "link": link }))?;
        return Ok(ExitCode::SUCCESS);
    }
    print_line(&link)?;
    if !args.print && open::that_detached(&link).is_err() {
        say("no browser could be started: open the link yourself");
    }
    Ok(ExitCode::SUCCESS)
}
