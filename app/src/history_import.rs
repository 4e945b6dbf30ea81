//! Imports histories from other programs: JSON lines of agents and messages, with ids of their own.
//!
//! Messages are imported in the order of their ids if all ids are numbers, otherwise in the order of the file. The position of the
//! lines of agents does not matter. An agent is created as soon as the message that it was forked from exists, so that every line
//! is possible when its turn comes. Everything that can be wrong is found before anything is imported.

mod order;

use crate::clock;
use crate::engine::{Handle, SubmitError};
use futures_util::FutureExt as _;
use hatchery_core::event::MessageEvent;
use hatchery_core::history::{ImportedItem, MAX_MESSAGE_BYTES, SourceId};
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Refusal, Timestamp, World, step};
use order::{ImportStep, in_order};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The most lines in one file. Both ids of each, the file's and ours, are in memory until the file is imported.
pub const MAX_LINES: usize = 1_000_000;
/// Lines imported by one command, which is one transaction.
const CHUNK_LINES: usize = 500;
/// The most bytes of message text in one command, so that long messages do not make a transaction large.
const CHUNK_BYTES: usize = 4 << 20;

/// The lines of a file, each after those that it refers to.
#[derive(Debug)]
pub struct ImportFile {
    steps: Vec<ImportStep>,
}

#[derive(Debug)]
pub struct ImportedHistory {
    /// The file's agent ids as text, and the ids that the agents got.
    pub agents: BTreeMap<String, AgentId>,
    pub messages: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ImportLine {
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
    #[serde(default, deserialize_with = "as_text")]
    content: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("line {line}: {what}")]
    Line { line: usize, what: String },
    #[error("{0}")]
    Whole(String),
    #[error("the file has {0} lines; at most {MAX_LINES} are possible")]
    TooMany(usize),
}

/// Reads the lines and checks that they fit together.
pub fn parse(text: &str) -> Result<ImportFile, ImportError> {
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    match lines().count() {
        0..=MAX_LINES => {}
        count => return Err(ImportError::TooMany(count)),
    }
    let (mut agents, mut messages) = (Vec::new(), Vec::new());
    for (number, line) in lines() {
        let wrong = |what: String| ImportError::Line { line: number + 1, what };
        match serde_json::from_str(line).map_err(|error| wrong(error.to_string()))? {
            ImportLine::Agent(agent) => agents.push(agent),
            ImportLine::Message(message) if message.content.len() > MAX_MESSAGE_BYTES => {
                let bytes = message.content.len();
                return Err(wrong(format!(
                    "the message is {bytes} bytes long; at most {MAX_MESSAGE_BYTES} are possible"
                )));
            }
            ImportLine::Message(message) => messages.push(message),
        }
    }
    in_order(agents, messages).map(|steps| ImportFile { steps }).map_err(ImportError::Whole)
}

/// Imports a file into a copy of the world, to find out whether something would be refused. A file is more than one transaction:
/// a refusal at its end must not leave its beginning behind. This does not wait, but may compute for long.
pub fn rehearse(world: World, file: &ImportFile) -> Result<(), SubmitError> {
    let rehearsal = Importer::new(Target::Rehearsal(Box::new(world)))?.all(file);
    rehearsal.now_or_never().expect("a rehearsal never waits").map(drop)
}

/// Imports a file that was rehearsed. Its agents without a parent become children of agent 0, and inherit nothing from it.
pub async fn import(handle: &Handle, file: &ImportFile) -> Result<ImportedHistory, SubmitError> {
    Importer::new(Target::Engine(handle))?.all(file).await
}

/// Where the lines go.
enum Target<'a> {
    Rehearsal(Box<World>),
    Engine(&'a Handle),
}

struct Importer<'a> {
    target: Target<'a>,
    root: AgentId,
    agents: BTreeMap<SourceId, AgentId>,
    /// The ids of the file's messages, and the events that they became.
    messages: BTreeMap<SourceId, EventId>,
    chunk: Vec<ImportedItem>,
    chunk_bytes: usize,
}

impl<'a> Importer<'a> {
    fn new(target: Target<'a>) -> Result<Self, SubmitError> {
        let root = match &target {
            Target::Rehearsal(world) => world.root(),
            Target::Engine(handle) => handle.view().root(),
        };
        let root = root.ok_or_else(|| Refusal::NobodyCalled("agent 0".into()))?;
        let (agents, messages) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { target, root, agents, messages, chunk: Vec::new(), chunk_bytes: 0 })
    }

    async fn all(mut self, file: &ImportFile) -> Result<ImportedHistory, SubmitError> {
        for step in &file.steps {
            self.step(step).await?;
        }
        self.flush().await?;
        let agents = self.agents.iter().map(|(id, agent)| (written(id), *agent)).collect();
        Ok(ImportedHistory { agents, messages: self.messages.len() as u64 })
    }

    async fn step(&mut self, step: &ImportStep) -> Result<(), SubmitError> {
        match step {
            ImportStep::Agent(line) => {
                let upto = self.event_of(line.fork_message_id.as_ref()).await?;
                let parent = line.parent.as_ref().and_then(|parent| self.agents.get(parent)).copied();
                let agent = clock::new_agent_id();
                self.agents.insert(line.id.clone(), agent);
                self.chunk.push(ImportedItem::Agent { agent, parent: parent.unwrap_or(self.root), upto });
            }
            ImportStep::Message(line, back_to) => {
                let to = self.event_of(back_to.as_ref()).await?;
                let agent = self.agents.get(&line.agent).copied().unwrap_or(self.root);
                self.chunk_bytes += line.content.len();
                let (content, source_id) = (line.content.clone(), line.id.clone());
                self.chunk.push(ImportedItem::Message { agent, kind: line.kind, content, to, source_id });
            }
        }
        match self.chunk.len() >= CHUNK_LINES || self.chunk_bytes >= CHUNK_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// The event that a message of the file became. The message was imported before, but may not have been written yet.
    async fn event_of(&mut self, id: Option<&SourceId>) -> Result<Option<EventId>, SubmitError> {
        let Some(id) = id else { return Ok(None) };
        if !self.messages.contains_key(id) {
            self.flush().await?;
        }
        let event = self.messages.get(id).copied();
        event.map(Some).ok_or_else(|| Refusal::NobodyCalled(format!("message {}", written(id))).into())
    }

    async fn flush(&mut self) -> Result<(), SubmitError> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        self.chunk_bytes = 0;
        let command = Command::ImportHistory { items: std::mem::take(&mut self.chunk) };
        let records = match &mut self.target {
            Target::Rehearsal(world) => step(world, &command, Timestamp::default())?,
            Target::Engine(handle) => handle.submit(command).await?,
        };
        for record in records {
            if let Event::Message(MessageEvent::Added { source_id: Some(source), .. }) = record.event {
                self.messages.insert(source, record.id);
            }
        }
        Ok(())
    }
}

/// Content that is not a text is kept as JSON.
fn as_text<'de, D: serde::Deserializer<'de>>(content: D) -> Result<String, D::Error> {
    Ok(match serde_json::Value::deserialize(content)? {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    })
}

fn written(id: &SourceId) -> String {
    match id {
        SourceId::Number(number) => number.to_string(),
        SourceId::Text(text) => text.clone(),
    }
}
