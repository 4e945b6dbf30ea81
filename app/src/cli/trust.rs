//! `hatchery trust`

use super::paint::{STRONG, paint, printable};
use super::{CommandContext, print_json, print_line, say};
use crate::config::{Config, Flags, SettingsFile};
use crate::report::{Context as _, Report};
use crate::store::StoreUrl;
use crate::trust;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

/// Allow this project's settings, prompts and log, which can make Hatchery run programs
///
/// The file hatchery.toml can name programs, wards and a store. The files in .hatchery/prompts tell agents what to do. A folder
/// .hatchery that came with a clone or a copy has a log of its own. This command shows these files. Hatchery uses them only
/// after you have agreed. Hatchery remembers the content that you agreed to, and asks again after a change.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Agree without being asked
    #[arg(long)]
    yes: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let project = &context.project;
    let foreign = project.foreign();
    if foreign.is_some() && project.has_first_stamp() && project.is_served() {
        return Err(Report::failed(
            "the daemon of an older version runs here, and goes on writing what is to be taken over",
        )
        .hint("`hatchery down` stops it, and agents work on; then `hatchery trust`")
        .named("daemon_runs"));
    }
    // The files are read once, so that the user agrees exactly to the shown content, even if a file changes meanwhile.
    let all = trust::brought(project, &SettingsFile::read(project)?)?;
    let mut brought = trust::unknown(project, &all);
    if let Some(store) = brought.get_mut("store") {
        *store = without_password(store);
    }
    if context.json {
        print_json(&serde_json::json!({ "foreignLog": foreign.is_some(), "brought": brought }))?;
    } else {
        if let Some(foreign) = &foreign {
            print_line(&format!("{} was made elsewhere; its log can have programs run", foreign.display()))?;
        }
        for (name, content) in &brought {
            print_line(&format!("{}\n  {}", paint(STRONG, name), printable(content).replace('\n', "\n  ")))?;
        }
    }
    if foreign.is_none() && brought.is_empty() {
        if !context.json {
            say("there is nothing to allow");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !agreed()? {
        return Err(Report::failed("nothing was allowed")
            .hint("`hatchery trust --yes` agrees without being asked")
            .named("not_trusted"));
    }
    if foreign.is_some() {
        // On a shared store, a copy of a project must not treat the processes of the original as its own. With SQLite, the copy has its own
        // log.
        let shared = matches!(Config::resolve(project, &Flags::default())?.store, StoreUrl::Postgres(_));
        project.adopt_data(shared)?;
    }
    project.prepare()?;
    trust::accept(project, &all)?;
    say("allowed");
    Ok(ExitCode::SUCCESS)
}

/// A store without its password, for display. The remembered setting contains the password, so a changed password is asked about again.
fn without_password(store: &str) -> String {
    let url: Result<StoreUrl, _> = serde_json::from_str::<String>(store).unwrap_or_default().parse();
    url.map_or_else(|error| error.to_string(), |url| url.to_string())
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
