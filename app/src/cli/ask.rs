//! `hatchery ask`

use super::paint::{DIM, STRONG, paint, printable};
use super::{CommandContext, accepted_once, asking, caller_id, number, print_json, print_line, say, text_or_stdin};
use crate::client::Client;
use crate::clock;
use crate::http::{QuestionList, QuestionView};
use crate::projects;
use crate::report::{Context as _, Report};
use crate::short_ids::ShortIds;
use hatchery_core::Timestamp;
use std::process::ExitCode;

/// List and answer the questions that wait for you
///
/// All questions are in one queue. Agents ask for permissions and decisions. Hatchery asks about plans that need approval, steps
/// that cannot continue, agents that have been silent for too long, and used-up budgets. Each question says which answers it
/// accepts, and can be answered once.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: AskCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AskCommand {
    /// List the open questions, oldest first
    List {
        /// List the questions of all your projects whose daemons run
        #[arg(long)]
        everywhere: bool,
    },
    /// Answer a question
    Answer {
        /// The question's number
        #[arg(value_parser = number)]
        question: u64,
        /// The answer; `-` reads it from standard input
        answer: String,
        /// An id that you choose for this answer: if you repeat the command with the same id and answer, the answer is given once
        #[arg(long, value_name = "ID", value_parser = caller_id)]
        id: Option<String>,
    },
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    match &args.what {
        AskCommand::List { everywhere: true } => list_everywhere(context),
        AskCommand::List { everywhere: false } => list(context),
        AskCommand::Answer { question, answer, id } => {
            let body = serde_json::json!({ "id": id, "answer": text_or_stdin(answer)? });
            accepted_once(context, &format!("/api/questions/{question}/answer"), body, |accepted| {
                let more = match (accepted.event("question_answered"), accepted.has("permission_rule_added")) {
                    (_, true) => "; the rule is in `hatchery permissions list`",
                    (Some(_), false) => "",
                    (None, false) => ", as it was before",
                };
                format!("question {question} is answered{more}")
            })
        }
    }
}

fn list(context: &CommandContext) -> Result<ExitCode, Report> {
    let list: QuestionList = asking(async { Client::visit(&context.project).await?.get("/api/questions").await })?;
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.questions.is_empty() {
        say("there are no open questions");
    }
    let ids = short_ids(&list.questions);
    for question in &list.questions {
        print_line(&line(question, &ids, clock::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list_everywhere(context: &CommandContext) -> Result<ExitCode, Report> {
    let mut lists = Vec::new();
    let answers = asking(projects::everywhere("/api/questions"))?;
    let silent = projects::silent(&answers);
    for (project, answer) in answers {
        let Some((_, answer)) = answer else { continue };
        let list: QuestionList = serde_json::from_value(answer).context("the answer cannot be read")?;
        lists.push((project.root().display().to_string(), list));
    }
    if context.json {
        let json: Vec<_> = lists
            .iter()
            .map(|(root, list)| serde_json::json!({ "project": root, "head": list.head, "questions": list.questions }))
            .collect();
        // Each project has a log of its own, so the list has no single position in a log.
        print_json(&serde_json::json!({ "head": null, "projects": json }))?;
        return silent.map_or(Ok(ExitCode::SUCCESS), Err);
    }
    if silent.is_none() && lists.iter().all(|(_, list)| list.questions.is_empty()) {
        say("there are no open questions");
    }
    for (root, list) in lists.iter().filter(|(_, list)| !list.questions.is_empty()) {
        let questions = &list.questions;
        print_line(&paint(STRONG, root))?;
        let ids = short_ids(questions);
        for question in questions {
            print_line(&line(question, &ids, clock::now()))?;
        }
        say(paint(DIM, format_args!("  answer with `hatchery ask answer N … --project {root}`")));
    }
    silent.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The short ids of agents and quests together: one length distinguishes all of them.
fn short_ids(questions: &[QuestionView]) -> ShortIds {
    let ids = questions.iter().flat_map(|it| [Some(it.agent.to_string()), it.quest.map(|quest| quest.to_string())]);
    ShortIds::of(ids.flatten())
}

fn line(question: &QuestionView, ids: &ShortIds, now: Timestamp) -> String {
    let name = question.name.as_deref().map(|name| format!(" ({})", printable(name))).unwrap_or_default();
    let quest = question.quest.map(|quest| format!("  quest {}", ids.short(quest))).unwrap_or_default();
    let age = paint(DIM, clock::age(question.asked, now));
    // The following lines of a text with several lines are indented below the number of the question.
    let text = printable(&question.whole()).replace('\n', "\n        ");
    let choices: String =
        question.takes.choices.iter().map(|choice| format!("\n        - {}", printable(choice))).collect();
    format!("{:>6}  {}{name}{quest}  {age}\n        {text}{choices}", question.id, ids.short(question.agent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_does_not_drive_the_terminal() {
        let asked = serde_json::json!({
            "id": 7, "agent": "AAAAAAAAAAAAAAAAAAAAAA", "name": "a\u{7}", "about": { "budget": { "of": null } },
            "text": "How\u{1b}[2J wide?\nIn feet.", "asked": 0,
            "takes": { "words": [], "amount": false, "ward": false, "text": true, "choices": ["Ten", "Twelve\u{1b}[2J"] },
        });
        let asked = [serde_json::from_value(asked).unwrap()];
        let told = line(&asked[0], &short_ids(&asked), Timestamp(0));
        assert!(!told.contains("\u{1b}[2J") && !told.contains('\u{7}'), "{told:?}");
        assert!(told.contains("wide?\n        In feet.\n        - Ten\n        - Twelve"), "{told:?}");
    }
}
