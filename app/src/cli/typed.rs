//! The lines that a user types while a command follows agents: an answer to the open question, or a message.

use super::paint::{BAD, DIM, paint, printable};
use super::{CommandContext, say};
use crate::client::Client;
use crate::client::paths::{agent_path, quest_path};
use crate::http::{AgentView, QuestionList, QuestionView};
use crate::quest_document::{QuestDocument, StepDocument};
use crate::report::{Code, Report};
use hatchery_core::{AgentId, EventId, QuestId};
use serde_json::{Value, json};
use std::io::{BufRead as _, IsTerminal as _};
use tokio::sync::mpsc::{Receiver, channel};

/// How many typed lines can wait to be sent.
const MAX_WAITING: usize = 16;

/// The recipient of the typed lines: the agent or quest that the command follows.
#[derive(Clone, Copy, Debug)]
pub enum Addressee {
    Agent(AgentId),
    Quest(QuestId),
}

impl Addressee {
    fn is_asked_by(self, question: &QuestionView) -> bool {
        match self {
            Self::Agent(agent) => question.agent == agent,
            Self::Quest(quest) => question.quest == Some(quest),
        }
    }
}

/// The typed lines, in order. Without a terminal, standard input is read only if the caller asks for it (`wanted`), because the input may
/// be meant for the program that started this one.
pub fn lines(context: &CommandContext, wanted: bool) -> Option<Receiver<String>> {
    if !wanted && (context.json || !std::io::stdin().is_terminal()) {
        return None;
    }
    let (typed, lines) = channel(MAX_WAITING);
    // Reading from a terminal cannot be interrupted, so a thread does it. The thread ends with the process.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if typed.blocking_send(line).is_err() {
                return;
            }
        }
    });
    Some(lines)
}

/// A question, and how to answer it.
pub fn offered(id: EventId, text: &str, typing: bool) -> String {
    let here = if typing { "type your answer here, or " } else { "" };
    format!("{}\n  {here}`hatchery ask answer {id} …`", printable(text))
}

/// Prints the questions that are already open. The next typed line answers the oldest one.
pub async fn show_open(client: &Client, to: Addressee) -> Result<(), Report> {
    let list: QuestionList = client.get("/api/questions").await?;
    for question in list.questions.iter().filter(|question| to.is_asked_by(question)) {
        say(offered(question.id, &question.whole(), std::io::stdin().is_terminal()));
    }
    Ok(())
}

/// Sends each line to the agent or quest. Never returns, so that the view continues after the end of the input.
pub async fn send_all(context: &CommandContext, lines: Option<Receiver<String>>, to: Addressee) -> Result<(), Report> {
    let Some(mut lines) = lines else { return std::future::pending().await };
    while let Some(line) = lines.recv().await {
        if line.trim().is_empty() {
            continue;
        }
        let sent = match Client::visit(&context.project).await {
            Ok(client) => send(&client, to, line.trim()).await,
            Err(report) => Err(report),
        };
        match sent {
            Ok(words) => say(paint(DIM, words)),
            // The line is still on the screen, and the user can type it again.
            Err(report) => say(format_args!("{}: {report}", paint(BAD, "not sent"))),
        }
    }
    std::future::pending().await
}

/// Sends a line as the answer to the oldest open question; without a question, as a message. Returns a sentence about the result.
async fn send(client: &Client, to: Addressee, words: &str) -> Result<String, Report> {
    let list: QuestionList = client.get("/api/questions").await?;
    if let Some(question) = list.questions.iter().find(|question| to.is_asked_by(question)) {
        let path = format!("/api/questions/{}/answer", question.id);
        let _: Value = client.post(&path, &json!({ "answer": words })).await?;
        return Ok(format!("question {} is answered", question.id));
    }
    let (agent, words) = match to {
        Addressee::Agent(agent) => (agent, words),
        Addressee::Quest(quest) => {
            let document: QuestDocument = client.get(&quest_path(&quest.to_string(), "")).await?;
            at_work(&document, words)?
        }
    };
    let _: Value = client.post(&agent_path(&agent.to_string(), "/say"), &json!({ "text": words })).await?;
    // The name is only for display. If it cannot be read, the id is shown.
    let view = client.get::<AgentView>(&agent_path(&agent.to_string(), "")).await;
    let name = view.ok().and_then(|view| view.name).unwrap_or_else(|| agent.to_string());
    Ok(format!("{} has your message", printable(&name)))
}

/// The recipient of a message to a quest: the agent of the step that the message names, or the only agent at work.
fn at_work<'a>(quest: &QuestDocument, words: &'a str) -> Result<(AgentId, &'a str), Report> {
    let working: Vec<(&StepDocument, AgentId)> =
        quest.steps.iter().filter_map(|step| Some((step, step.agent?))).collect();
    let named = words.split_once(':').and_then(|(step, rest)| {
        let found = working.iter().find(|(at, _)| at.id.as_str() == step.trim())?;
        Some((found.1, rest.trim()))
    });
    match (named, working.as_slice()) {
        (Some(named), _) => Ok(named),
        (None, [(_, agent)]) => Ok((*agent, words)),
        (None, []) => Err(Report::new(Code::Usage, "nothing is asked, and no agent of the quest is at work")),
        (None, several) => {
            let steps: Vec<&str> = several.iter().map(|(step, _)| step.id.as_str()).collect();
            let message = format!(
                "{} agents are at work; begin with the step that you mean, such as `{}: …`",
                steps.len(),
                steps[0]
            );
            Err(Report::new(Code::Usage, message).hint(format_args!("the steps are {}", steps.join(", "))))
        }
    }
}
