//! Makes an agent of a conversation that was begun in the Claude CLI: its history is taken in, and then the conversation is
//! the agent's own, to be resumed by its runs.
//!
//! A history is more than one transaction, so the conversation comes last: an adoption that is cut short leaves an agent
//! without a name and without a conversation behind, and can be repeated.

use crate::clock;
use crate::engine::{Handle, SubmitError};
use crate::transcripts::{Transcript, TranscriptMessage};
use hatchery_core::history::{ImportedItem, SourceId};
use hatchery_core::run::ForeignSession;
use hatchery_core::{AgentId, Command, Refusal, World, step};
use std::io;
use std::sync::Arc;

/// Messages taken in by one command, which is one transaction.
const CHUNK_MESSAGES: usize = 500;
/// And the bytes of their contents, give or take one line of the transcript.
const CHUNK_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub struct Adopted {
    pub agent: AgentId,
    pub messages: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum AdoptionError {
    #[error(transparent)]
    Engine(#[from] SubmitError),
    #[error("the transcript cannot be read any more: {0}")]
    Transcript(#[from] io::Error),
}

/// Takes a conversation in, as an agent below agent 0 that inherits nothing.
pub async fn adopt(
    handle: &Handle,
    transcript: Transcript,
    harness_session: ForeignSession,
    name: Option<String>,
) -> Result<Adopted, AdoptionError> {
    let mut world = World::clone(&handle.view());
    let root = world.root().ok_or_else(|| Refusal::NobodyCalled("agent 0".into())).map_err(SubmitError::from)?;
    let agent = clock::new_agent_id();
    let made = Command::ImportHistory { items: vec![ImportedItem::Agent { agent, parent: root, upto: None }] };
    let given = Command::AdoptHarnessSession { agent, harness_session, name };
    // Rehearsed, so that what is refused in the end leaves no beginning behind.
    for command in [&made, &given] {
        step(&mut world, command, clock::now()).map_err(SubmitError::from)?;
    }
    handle.submit(made).await?;
    match take_in(handle, agent, Arc::new(transcript), given).await {
        Ok(messages) => Ok(Adopted { agent, messages }),
        Err(error) => {
            let remark = Some("its conversation could not be adopted".to_owned());
            // The error that counts is the first one.
            if let Err(left) = handle.submit(Command::Kill { agent, cascade: false, by: None, remark }).await {
                tracing::warn!(%agent, %left, "half of an adoption stays behind");
            }
            Err(error)
        }
    }
}

async fn take_in(
    handle: &Handle,
    agent: AgentId,
    transcript: Arc<Transcript>,
    given: Command,
) -> Result<u64, AdoptionError> {
    let (mut next, mut messages) = (0, 0);
    while next < transcript.lines() {
        let read = Arc::clone(&transcript);
        let chunk = tokio::task::spawn_blocking(move || read.read(next, is_enough)).await;
        let (said, after) = chunk.map_err(io::Error::other)??;
        next = after;
        messages += said.len() as u64;
        let items: Vec<ImportedItem> = said.into_iter().map(|said| imported(agent, said)).collect();
        if !items.is_empty() {
            handle.submit(Command::ImportHistory { items }).await?;
        }
    }
    handle.submit(given).await?;
    Ok(messages)
}

fn is_enough(said: &[TranscriptMessage]) -> bool {
    said.len() >= CHUNK_MESSAGES || said.iter().map(|said| said.content.len()).sum::<usize>() >= CHUNK_BYTES
}

fn imported(agent: AgentId, said: TranscriptMessage) -> ImportedItem {
    let TranscriptMessage { kind, content, uuid } = said;
    ImportedItem::Message { agent, kind, content, to: None, source_id: SourceId::Text(uuid) }
}
