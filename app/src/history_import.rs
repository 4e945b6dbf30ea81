//! Taking in histories from elsewhere: JSON lines of agents and messages, with ids of their own.
//!
//! The file's order does not matter. Messages are taken in by their ids, and an agent appears as soon as the message that
//! it was forked from is there, so that every line falls into a world in which it is possible.

use crate::clock;
use crate::engine::{Handle, SubmitError};
use hatchery_core::history::{Imported, SourceId};
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Refusal};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Lines taken in by one command, which is one transaction.
const CHUNK: usize = 500;

#[derive(Debug, Default)]
pub struct File {
    agents: BTreeMap<SourceId, AgentLine>,
    messages: BTreeMap<SourceId, MessageLine>,
}

#[derive(Debug)]
pub struct Done {
    /// The file's agent ids as text, and ours.
    pub agents: BTreeMap<String, AgentId>,
    pub messages: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Agent(AgentLine),
    Message(MessageLine),
}

#[derive(Debug, Deserialize)]
struct AgentLine {
    id: SourceId,
    parent: Option<SourceId>,
    fork_message_id: Option<SourceId>,
}

#[derive(Debug, Deserialize)]
struct MessageLine {
    id: SourceId,
    agent: SourceId,
    kind: MessageKind,
    #[serde(default)]
    content: Option<serde_json::Value>,
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("line {line}: {what}")]
    Line { line: usize, what: String },
    #[error("{0}")]
    Whole(String),
}

/// Reads the lines and checks that they fit together, before anything is taken in.
pub fn parse(text: &str) -> Result<File, ImportError> {
    let mut file = File::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| ImportError::Line { line: number + 1, what };
        match serde_json::from_str(line).map_err(|error| wrong(error.to_string()))? {
            Line::Agent(agent) => {
                if let Some(twice) = file.agents.insert(agent.id.clone(), agent) {
                    return Err(wrong(format!("agent {} is there twice", written(&twice.id))));
                }
            }
            Line::Message(message) => {
                if let Some(twice) = file.messages.insert(message.id.clone(), message) {
                    return Err(wrong(format!("message {} is there twice", written(&twice.id))));
                }
            }
        }
    }
    file.check()?;
    Ok(file)
}

impl File {
    fn check(&self) -> Result<(), ImportError> {
        let whole = |what: String| Err(ImportError::Whole(what));
        for agent in self.agents.values() {
            if let Some(parent) = agent.parent.as_ref().filter(|parent| !self.agents.contains_key(parent)) {
                return whole(format!(
                    "agent {} has the parent {}, which is not in the file",
                    written(&agent.id),
                    written(parent)
                ));
            }
            match (&agent.fork_message_id, &agent.parent) {
                (Some(at), Some(parent)) if self.messages.get(at).is_none_or(|message| message.agent != *parent) => {
                    return whole(format!(
                        "agent {} is forked at {}, which is no message of its parent",
                        written(&agent.id),
                        written(at)
                    ));
                }
                (Some(at), None) => {
                    return whole(format!(
                        "agent {} is forked at {}, but has no parent",
                        written(&agent.id),
                        written(at)
                    ));
                }
                _ => {}
            }
        }
        match self.messages.values().find(|message| !self.agents.contains_key(&message.agent)) {
            Some(message) => whole(format!(
                "message {} is of agent {}, which is not in the file",
                written(&message.id),
                written(&message.agent)
            )),
            None => Ok(()),
        }
    }
}

/// Takes a file in. Its agents without parents come below agent 0, from which they inherit nothing.
pub async fn take_in(handle: &Handle, file: File) -> Result<Done, SubmitError> {
    let root = handle.view().root().ok_or_else(|| Refusal::NobodyCalled("agent 0".into()))?;
    let mut intake =
        Intake { handle, root, file: &file, agents: BTreeMap::new(), messages: BTreeMap::new(), chunk: Vec::new() };
    for message in file.messages.values() {
        intake.agent(&message.agent).await?;
        intake.message(message).await?;
    }
    for agent in file.agents.keys() {
        intake.agent(agent).await?;
    }
    intake.flush().await?;
    let agents = intake.agents.iter().map(|(id, agent)| (written(id), *agent)).collect();
    Ok(Done { agents, messages: intake.messages.len() as u64 })
}

struct Intake<'a> {
    handle: &'a Handle,
    root: AgentId,
    file: &'a File,
    agents: BTreeMap<SourceId, AgentId>,
    /// The file's messages, and ours.
    messages: BTreeMap<SourceId, EventId>,
    chunk: Vec<Imported>,
}

impl Intake<'_> {
    /// Makes an agent, and those above it, unless they are there.
    async fn agent(&mut self, id: &SourceId) -> Result<(), SubmitError> {
        let mut missing = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next.filter(|id| !self.agents.contains_key(id) && !missing.contains(id)) {
            missing.push(id);
            next = self.file.agents.get(id).and_then(|agent| agent.parent.as_ref());
        }
        for id in missing.into_iter().rev() {
            let Some(line) = self.file.agents.get(id) else { continue };
            let upto = match &line.fork_message_id {
                Some(at) => Some(self.place(at).await?),
                None => None,
            };
            let parent = line.parent.as_ref().and_then(|parent| self.agents.get(parent)).copied().unwrap_or(self.root);
            let agent = clock::new_agent_id();
            self.agents.insert(id.clone(), agent);
            self.push(Imported::Agent { agent, parent, upto }).await?;
        }
        Ok(())
    }

    async fn message(&mut self, line: &MessageLine) -> Result<(), SubmitError> {
        let content = match &line.content {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let to = match line.kind {
            MessageKind::Rewind => self.rewind_target(line, &content).await?,
            _ => None,
        };
        let agent = self.agents.get(&line.agent).copied().unwrap_or(self.root);
        let source_id = line.id.clone();
        self.push(Imported::Message { agent, kind: line.kind, content, to, source_id }).await
    }

    /// A rewind names a message of the file, or the label of a mark, or nothing, which means the last mark.
    async fn rewind_target(&mut self, line: &MessageLine, content: &str) -> Result<Option<EventId>, SubmitError> {
        let named = SourceId::Text(content.to_owned());
        let number = content.parse().map(SourceId::Number);
        let known = number.ok().into_iter().chain([named]).find(|id| self.file.messages.contains_key(id));
        let target = known.or_else(|| {
            let marks = self.file.messages.values().filter(|it| it.kind == MessageKind::Mark && it.id < line.id);
            let label = |it: &&MessageLine| {
                content.is_empty() || it.content.as_ref().and_then(|text| text.as_str()) == Some(content)
            };
            marks.filter(|it| it.agent == line.agent).filter(label).map(|it| it.id.clone()).next_back()
        });
        match target {
            Some(target) => self.place(&target).await.map(Some),
            None => Ok(None),
        }
    }

    /// Where a message of the file stands in our log.
    async fn place(&mut self, id: &SourceId) -> Result<EventId, SubmitError> {
        if !self.messages.contains_key(id) {
            self.flush().await?;
        }
        self.messages.get(id).copied().ok_or_else(|| Refusal::NobodyCalled(format!("message {}", written(id))).into())
    }

    async fn push(&mut self, item: Imported) -> Result<(), SubmitError> {
        self.chunk.push(item);
        match self.chunk.len() >= CHUNK {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<(), SubmitError> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let records = self.handle.submit(Command::ImportHistory { items: std::mem::take(&mut self.chunk) }).await?;
        for record in records {
            if let Event::MessageAdded { source_id: Some(source), .. } = record.event {
                self.messages.insert(source, record.id);
            }
        }
        Ok(())
    }
}

fn written(id: &SourceId) -> String {
    match id {
        SourceId::Number(number) => number.to_string(),
        SourceId::Text(text) => text.clone(),
    }
}
