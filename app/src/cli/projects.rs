//! `hatchery projects`

use super::paint::{BAD, DIM, STRONG, paint};
use super::{Context, asking, counted, print_json, print_line, say};
use crate::client::Client;
use crate::project::Project;
use crate::projects;
use crate::report::Report;
use serde::Serialize;
use serde_json::Value;
use std::process::ExitCode;

/// List your projects on this machine: where they are, who works, who waits for you
///
/// A project is listed once a daemon has run for it. Starts no daemon.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// One project, for `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProjectLine {
    root: String,
    running: bool,
    working: usize,
    questions: usize,
    agents: u64,
}

pub fn run(context: &Context, _args: &Args) -> Result<ExitCode, Report> {
    let lines = asking(async {
        let mut lines = Vec::new();
        for (project, overview) in everywhere("/api/overview").await? {
            lines.push(line_of(&project, overview.as_ref()));
        }
        Ok(lines)
    })?;
    if context.json {
        print_json(&serde_json::json!({ "projects": lines }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if lines.is_empty() {
        say("no projects yet: `hatchery demo` shows what Hatchery does, `hatchery run \"…\"` starts an agent here");
    }
    for line in lines {
        let state = match line.running {
            true => format!("{} working of {}", line.working, counted(line.agents, "agent")),
            false => paint(DIM, "no daemon runs"),
        };
        let waits = match line.questions {
            0 => String::new(),
            count => format!("  {}", paint(BAD, format_args!("{} for you", counted(count as u64, "question")))),
        };
        print_line(&format!("{}  {state}{waits}", paint(STRONG, line.root)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line_of(project: &Project, overview: Option<&Value>) -> ProjectLine {
    let list =
        |name: &str| overview.and_then(|overview| overview[name].as_array()).map(Vec::as_slice).unwrap_or_default();
    let works = |agent: &&Value| matches!(agent["activity"].as_str(), Some("working" | "starting" | "silent"));
    ProjectLine {
        root: project.root().display().to_string(),
        running: overview.is_some(),
        working: list("agents").iter().filter(works).count(),
        questions: list("questions").len(),
        agents: overview.and_then(|overview| overview["agentCount"].as_u64()).unwrap_or_default(),
    }
}

/// The answers of all daemons of this user that run now, each with its project. One that does not answer is listed without an answer.
pub async fn everywhere(path: &str) -> Result<Vec<(Project, Option<Value>)>, Report> {
    let mut answers = Vec::new();
    for project in projects::all()? {
        let answer = match Client::running(&project).await {
            Ok(Some(client)) => client.get(path).await.ok(),
            Ok(None) | Err(_) => None,
        };
        answers.push((project, answer));
    }
    Ok(answers)
}
