//! `hatchery trust`

use super::paint::{STRONG, paint, printable};
use super::{Context, print_json, print_line, say};
use crate::config::{Config, Flags};
use crate::report::{Context as _, Report};
use crate::store::StoreUrl;
use crate::trust;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

/// Allow what this project brings that can have programs run
///
/// A project's hatchery.toml can name programs, wards and a store, its .hatchery/prompts tell agents what to do, and a .hatchery that
/// came with a clone or a copy has a log of its own. Hatchery uses none of it before you have seen it here and agreed. Your answer
/// is remembered by content: what changes is asked for again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Agree without being asked
    #[arg(long)]
    yes: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let project = &context.project;
    let foreign = project.is_foreign();
    let brought = trust::unknown(project)?;
    if context.json {
        print_json(&serde_json::json!({ "foreignLog": foreign, "brought": brought }))?;
    } else {
        if foreign {
            print_line(&format!("{} was made elsewhere; its log can have programs run", project.data().display()))?;
        }
        for (name, content) in &brought {
            print_line(&format!("{}\n  {}", paint(STRONG, name), printable(content).replace('\n', "\n  ")))?;
        }
    }
    if !foreign && brought.is_empty() {
        say("there is nothing to allow");
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !agreed()? {
        return Err(Report::failed("nothing was allowed").hint("`hatchery trust --yes` agrees without being asked"));
    }
    if foreign {
        // On a shared store a copy must not take the original's processes for its own. In an embedded one there is no original.
        let shared = matches!(Config::resolve(project, &Flags::default())?.store, StoreUrl::Postgres(_));
        project.adopt_data(shared)?;
    }
    project.prepare()?;
    trust::accept(project)?;
    say("allowed");
    Ok(ExitCode::SUCCESS)
}

fn agreed() -> Result<bool, Report> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut terminal = anstream::stderr();
    write!(terminal, "Allow this? [y/N] ").and_then(|()| terminal.flush()).context("the terminal cannot be written")?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("the answer cannot be read")?;
    Ok(["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}
