//! The commands that change a quest. Each prints a sentence about the result or, with --json, the answer with its events.

use super::super::{CommandContext, asking, print_json, say, text_or_stdin};
use crate::client::Client;
use crate::client::paths::{branch_path, quest_path, step_path};
use crate::http::BranchView;
use crate::quest_document::{QuestDocument, QuestWord, StepDocument};
use crate::report::{Code, Report};
use hatchery_core::quest::StepStatus;
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn pause(context: &CommandContext, quest: &str) -> Result<ExitCode, Report> {
    tell(context, quest, &quest_path(quest, "/pause"), &json!({}), |quest| {
        let id = quest.id;
        format!(
            "the quest is paused: nothing new starts, and its working agents are stopped; `hatchery quest resume {id}` resumes it"
        )
    })
}

pub fn resume(context: &CommandContext, quest: &str) -> Result<ExitCode, Report> {
    tell(context, quest, &quest_path(quest, "/resume"), &json!({}), |quest| {
        format!("the quest goes on in the background; `hatchery quest watch {}` follows it", quest.id)
    })
}

pub fn abandon(context: &CommandContext, quest: &str) -> Result<ExitCode, Report> {
    tell(context, quest, &quest_path(quest, "/abandon"), &json!({}), |quest| match &quest.branch {
        Some(branch) if quest.progress().0 > 0 => format!(
            "the quest is abandoned; the merged work is on the branch {branch}, and `hatchery rescue list` will show the rest"
        ),
        Some(_) => {
            "the quest is abandoned, nothing was merged; `hatchery rescue list` will show the agents' work".to_owned()
        }
        None => "the quest is abandoned; the work of its agents stays in the project".to_owned(),
    })
}

pub fn retry(context: &CommandContext, quest: &str, step: &str, fresh: bool) -> Result<ExitCode, Report> {
    let action = if fresh { "/retry?fresh=true" } else { "/retry" };
    tell(context, quest, &step_path(quest, step, action), &json!({}), |quest| {
        format!("step {step} is tried again; {}", how_to_go_on(quest))
    })
}

/// Sets the budget of a quest. Without a limit, removes it.
pub fn budget(context: &CommandContext, quest: &str, limit: Option<&str>) -> Result<ExitCode, Report> {
    tell(context, quest, &quest_path(quest, "/budget"), &json!({ "limit": limit }), |quest| {
        let spent = quest.spent.cost;
        match quest.budget {
            Some(limit) => format!("the agents of the quest may use {limit} in all; they have used {spent}"),
            None => format!("the agents of the quest may use as much as they need; they have used {spent}"),
        }
    })
}

/// Replaces the ward of a quest. Without a command, removes it.
pub fn ward(context: &CommandContext, quest: &str, command: Option<&str>) -> Result<ExitCode, Report> {
    tell(context, quest, &quest_path(quest, "/ward"), &json!({ "command": command }), |quest| {
        let now = match command {
            Some(command) => format!("the ward of the quest is now `{command}`"),
            None => "the quest has no ward any more".to_owned(),
        };
        match quest.steps.iter().any(|step| step.status == StepStatus::Failed) {
            true => format!("{now}; `hatchery quest retry {} STEP` tries a step again that has failed", quest.id),
            false => now,
        }
    })
}

/// Answers the given question of a quest, or the oldest one.
pub fn answer(context: &CommandContext, quest: &str, answer: &str, question: Option<u64>) -> Result<ExitCode, Report> {
    let document = document(context, quest)?;
    let asked: Vec<(u64, &StepDocument)> =
        document.steps.iter().filter_map(|step| Some((step.question?.0, step))).collect();
    let meant = match question {
        Some(question) => asked.iter().find(|(id, _)| *id == question),
        None => asked.iter().min_by_key(|(id, _)| *id),
    };
    let Some((question, step)) = meant else {
        let message = match question {
            Some(question) => format!("question {question} is not asked about this quest"),
            None => "the quest has no open question".to_owned(),
        };
        return Err(Report::failed(message).hint("`hatchery ask list` shows all questions").named("no_question"));
    };
    let body = json!({ "answer": text_or_stdin(answer)? });
    tell(context, quest, &format!("/api/questions/{question}/answer"), &body, |quest| {
        let now = quest.steps.iter().find(|it| it.id == step.id).map(|step| step.status.word());
        let now = now.map(|status| format!(", and step {} is {status}", step.id)).unwrap_or_default();
        format!("question {question} is answered{now}; {}", how_to_go_on(quest))
    })
}

pub fn document(context: &CommandContext, quest: &str) -> Result<QuestDocument, Report> {
    asking(async { Client::visit(&context.project).await?.get(&quest_path(quest, "")).await })
}

/// Whether the user's branch contains the work of a quest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The user's branch contains all of the work.
    Yes,
    No,
    /// The branch of the quest was deleted, for example after a merge.
    BranchGone,
}

/// Asks the daemon whether the user's branch contains the work of a quest.
pub fn merged(context: &CommandContext, quest: &QuestDocument) -> Result<Merged, Report> {
    let Some(branch) = quest.branch.as_ref().filter(|_| quest.has_work) else { return Ok(Merged::No) };
    let view =
        asking(async { Client::visit(&context.project).await?.get::<BranchView>(&branch_path(branch, "")).await });
    match view {
        Ok(view) if view.head.is_none() => Ok(Merged::BranchGone),
        Ok(view) => Ok(if view.line.merged { Merged::Yes } else { Merged::No }),
        // The request fails if the repository was removed. The quest can still be shown.
        Err(report) if report.code == Code::Failed => Ok(Merged::No),
        Err(report) => Err(report),
    }
}

/// Asks the daemon for a change, and prints the result.
fn tell(
    context: &CommandContext,
    quest: &str,
    path: &str,
    body: &Value,
    words: impl FnOnce(&QuestDocument) -> String,
) -> Result<ExitCode, Report> {
    let accepted: Value = asking(async { Client::visit(&context.project).await?.post(path, body).await })?;
    match context.json {
        true => print_json(&accepted)?,
        false => say(words(&document(context, quest)?)),
    }
    Ok(ExitCode::SUCCESS)
}

fn how_to_go_on(quest: &QuestDocument) -> String {
    let id = quest.id;
    match quest.state {
        QuestWord::Paused => format!("the quest is paused: `hatchery quest run {id}` resumes it"),
        QuestWord::Open => format!("`hatchery quest watch {id}` follows it"),
        QuestWord::Complete => "the quest is complete".to_owned(),
        QuestWord::Abandoned => "the quest is abandoned".to_owned(),
    }
}

/// Checks an amount of dollars on the command line. The text is sent to the daemon unchanged.
pub fn dollars(text: &str) -> Result<String, String> {
    match hatchery_core::budget::amount(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("`{text}` is no amount of dollars; for example 5 or 0.25")),
    }
}

/// An amount of dollars, or `none`.
pub fn ceiling(text: &str) -> Result<Ceiling, String> {
    match text {
        "none" => Ok(Ceiling(None)),
        amount => dollars(amount).map(|amount| Ceiling(Some(amount))),
    }
}

/// A budget on the command line. `None` removes the budget.
#[derive(Clone, Debug)]
pub struct Ceiling(pub Option<String>);

/// The request of a quest, from the command line or from standard input.
pub fn request(given: &str) -> Result<String, Report> {
    let request = text_or_stdin(given)?;
    match request.trim().is_empty() {
        true => Err(Report::new(Code::Usage, "the request is empty")
            .hint("for example `hatchery quest new --run \"add a --verbose flag\"`; `-` reads it from standard input")),
        false => Ok(request),
    }
}
