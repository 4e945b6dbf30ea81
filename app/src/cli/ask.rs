//! `hatchery ask`

use super::paint::{DIM, paint};
use super::{Context, accepted, asking, print_json, print_line, say, text_or_stdin, why::age};
use crate::client::Client;
use crate::clock;
use crate::http::QuestionList;
use crate::report::Report;
use std::process::ExitCode;

/// See and answer what the agents ask the human
///
/// One queue, the oldest question first: agents that are silent for too long, budgets that are used up. Each says what it takes for
/// an answer, and is answered once.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show what is open, the oldest first
    List,
    /// Answer a question
    Answer {
        /// The question's number
        question: u64,
        /// What to answer; `-` reads it from standard input
        answer: String,
    },
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    match &args.what {
        What::List => list(context),
        What::Answer { question, answer } => {
            let body = serde_json::json!({ "answer": text_or_stdin(answer)? });
            accepted(context, &format!("/api/questions/{question}/answer"), &body)
        }
    }
}

fn list(context: &Context) -> Result<ExitCode, Report> {
    let list: QuestionList = asking(async { Client::reach(&context.project).await?.get("/api/questions").await })?;
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.questions.is_empty() {
        say("nobody asks anything");
    }
    for question in &list.questions {
        let name = question.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        let age = paint(DIM, age(question.asked, clock::now()));
        print_line(&format!("{:>6}  {}{name}  {age}\n        {}", question.id, question.agent, question.text))?;
    }
    Ok(ExitCode::SUCCESS)
}
