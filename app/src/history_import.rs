//! Taking in histories from elsewhere: JSON lines of agents and messages, with ids of their own.
//!
//! Messages come in the order of their ids where all of these are numbers, else in the order of the file; where the lines
//! of agents stand does not matter. An agent appears as soon as the message that it was forked from is there, so that every
//! line falls into a world in which it is possible. All that can be wrong is found before anything is taken in.

mod order;

use crate::clock;
use crate::engine::{Handle, SubmitError};
use futures_util::FutureExt as _;
use hatchery_core::event::MessageEvent;
use hatchery_core::history::{Imported, MAX_MESSAGE_BYTES, SourceId};
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Refusal, Timestamp, World, step};
use order::{Step, in_order};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Lines of one file. Each is kept with its id, ours and theirs, until the file is in.
pub const MAX_LINES: usize = 1_000_000;
/// Lines taken in by one command, which is one transaction.
const CHUNK_LINES: usize = 500;
/// And the bytes of their contents: a transaction of long messages is no larger than one of many.
const CHUNK_BYTES: usize = 4 << 20;

/// The lines of a file, each after those that it rests on.
#[derive(Debug)]
pub struct File {
    steps: Vec<Step>,
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
pub fn parse(text: &str) -> Result<File, ImportError> {
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    match lines().count() {
        0..=MAX_LINES => {}
        count => return Err(ImportError::TooMany(count)),
    }
    let (mut agents, mut messages) = (Vec::new(), Vec::new());
    for (number, line) in lines() {
        let wrong = |what: String| ImportError::Line { line: number + 1, what };
        match serde_json::from_str(line).map_err(|error| wrong(error.to_string()))? {
            Line::Agent(agent) => agents.push(agent),
            Line::Message(message) if message.content.len() > MAX_MESSAGE_BYTES => {
                let bytes = message.content.len();
                return Err(wrong(format!(
                    "the message is {bytes} bytes long; at most {MAX_MESSAGE_BYTES} are possible"
                )));
            }
            Line::Message(message) => messages.push(message),
        }
    }
    in_order(agents, messages).map(|steps| File { steps }).map_err(ImportError::Whole)
}

/// Takes a file in as it would be, in a world of its own, and says what would be refused. A file is more than one transaction:
/// what is refused at its end must not leave a beginning behind. Nothing is waited for, but it takes its time.
pub fn rehearse(world: World, file: &File) -> Result<(), SubmitError> {
    let rehearsal = Intake::new(Target::Rehearsal(Box::new(world)))?.all(file);
    rehearsal.now_or_never().expect("a rehearsal waits for nobody").map(drop)
}

/// Takes a file in that was rehearsed. Its agents without parents come below agent 0, from which they inherit nothing.
pub async fn take_in(handle: &Handle, file: &File) -> Result<Done, SubmitError> {
    Intake::new(Target::Engine(handle))?.all(file).await
}

/// Where the lines go.
enum Target<'a> {
    Rehearsal(Box<World>),
    Engine(&'a Handle),
}

struct Intake<'a> {
    target: Target<'a>,
    root: AgentId,
    agents: BTreeMap<SourceId, AgentId>,
    /// The file's messages, and ours.
    messages: BTreeMap<SourceId, EventId>,
    chunk: Vec<Imported>,
    chunk_bytes: usize,
}

impl<'a> Intake<'a> {
    fn new(target: Target<'a>) -> Result<Self, SubmitError> {
        let root = match &target {
            Target::Rehearsal(world) => world.root(),
            Target::Engine(handle) => handle.view().root(),
        };
        let root = root.ok_or_else(|| Refusal::NobodyCalled("agent 0".into()))?;
        let (agents, messages) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { target, root, agents, messages, chunk: Vec::new(), chunk_bytes: 0 })
    }

    async fn all(mut self, file: &File) -> Result<Done, SubmitError> {
        for step in &file.steps {
            self.step(step).await?;
        }
        self.flush().await?;
        let agents = self.agents.iter().map(|(id, agent)| (written(id), *agent)).collect();
        Ok(Done { agents, messages: self.messages.len() as u64 })
    }

    async fn step(&mut self, step: &Step) -> Result<(), SubmitError> {
        match step {
            Step::Agent(line) => {
                let upto = self.place(line.fork_message_id.as_ref()).await?;
                let parent = line.parent.as_ref().and_then(|parent| self.agents.get(parent)).copied();
                let agent = clock::new_agent_id();
                self.agents.insert(line.id.clone(), agent);
                self.chunk.push(Imported::Agent { agent, parent: parent.unwrap_or(self.root), upto });
            }
            Step::Message(line, back_to) => {
                let to = self.place(back_to.as_ref()).await?;
                let agent = self.agents.get(&line.agent).copied().unwrap_or(self.root);
                self.chunk_bytes += line.content.len();
                let (content, source_id) = (line.content.clone(), line.id.clone());
                self.chunk.push(Imported::Message { agent, kind: line.kind, content, to, source_id });
            }
        }
        match self.chunk.len() >= CHUNK_LINES || self.chunk_bytes >= CHUNK_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Where a message of the file stands in our log. It was taken in before, if perhaps not yet written.
    async fn place(&mut self, id: Option<&SourceId>) -> Result<Option<EventId>, SubmitError> {
        let Some(id) = id else { return Ok(None) };
        if !self.messages.contains_key(id) {
            self.flush().await?;
        }
        let place = self.messages.get(id).copied();
        place.map(Some).ok_or_else(|| Refusal::NobodyCalled(format!("message {}", written(id))).into())
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

/// What is no text is kept as the JSON that it was.
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
