//! `hatchery why`

use super::paint::{BAD, DIM, STRONG, paint, printable};
use super::{CommandContext, asking, print_json, print_line, reference};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::clock;
use crate::http::{QuestionList, WhyView};
use crate::report::Report;
use std::process::ExitCode;

/// Show what an agent is doing now, with the evidence and its age, and the question that it waits for
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let (view, questions) = asking(async {
        let client = Client::visit(&context.project).await?;
        let view: WhyView = client.get(&agent_path(&args.agent, "/why")).await?;
        let questions: QuestionList = client.get("/api/questions").await?;
        Ok((view, questions.questions))
    })?;
    if context.json {
        print_json(&view)?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = view.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    // The same word as in `hatchery ps`.
    let asks = questions.iter().any(|question| question.agent == view.agent);
    let state = if asks { "asking" } else { view.state.word() };
    print_line(&format!("{}{name} is {}", view.agent, paint(STRONG, state)))?;
    for evidence in &view.evidence {
        let age = paint(DIM, clock::age(evidence.at, view.now));
        print_line(&format!("  {} · {age}", evidence.what))?;
    }
    for question in questions.iter().filter(|question| question.agent == view.agent) {
        let text = printable(&question.whole()).replace('\n', "\n  ");
        print_line(&format!("  {} {text}", paint(BAD, "asks you:")))?;
        print_line(&format!("  hatchery ask answer {} …", question.id))?;
    }
    Ok(ExitCode::SUCCESS)
}
