//! `hatchery send`

use super::{Context, accepted, reference};
use crate::report::{Context as _, Report};
use std::io::Read as _;
use std::process::ExitCode;

/// Send a mail to an agent, or to the human.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Who gets it: an agent's id, the beginning of one, a name, or `human`.
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    to: String,
    /// What it says; `-` reads it from standard input.
    body: String,
    /// Who sends it.
    #[arg(long, default_value = "human", value_name = "AGENT", allow_hyphen_values = true, value_parser = reference)]
    from: String,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let body = match args.body.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("standard input cannot be read as UTF-8")?;
            text
        }
        text => text.to_owned(),
    };
    accepted(context, "/api/mail", &serde_json::json!({ "from": args.from, "to": args.to, "body": body }))
}
