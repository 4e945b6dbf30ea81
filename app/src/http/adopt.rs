//! Conversations of the Claude CLI and of codex over HTTP: lists them, and makes agents from them.

use super::Api;
use super::error::{ApiError, JsonBody};
use crate::adoption::{self, AdoptionError};
use crate::codex_threads::CodexThreads;
use crate::transcripts::{MAX_TRANSCRIPT_BYTES, Summary, TranscriptError, TranscriptList, Transcripts};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::run::{self, ForeignSession};
use hatchery_core::{AgentId, EventId, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

/// The harnesses whose conversations can be adopted.
const CLAUDE: &str = "claude";
const CODEX: &str = "codex";

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Adopt {
    /// The conversation: an id, or the beginning of one.
    session: String,
    /// The agent's name. At most 64 bytes of UTF-8.
    name: Option<String>,
}

/// The conversations of this project, newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AdoptableList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    pub sessions: Vec<Adoptable>,
    /// The folders that were searched.
    #[serde(rename = "lookedIn")]
    pub looked_in: String,
    /// Transcripts that are too large or cannot be read.
    #[serde(rename = "passedOver")]
    pub passed_over: u64,
    /// Older transcripts that were not read.
    #[serde(rename = "leftOut")]
    pub left_out: u64,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Adoptable {
    pub session: String,
    /// The program that has the conversation: `claude` or `codex`.
    pub harness: String,
    /// The folder of the conversation, relative to the project's root. Without it: the root.
    pub folder: Option<String>,
    /// The time of the last line.
    #[serde(rename = "lastActive")]
    pub last_active: Timestamp,
    pub messages: u64,
    /// The beginning of the first prompt.
    #[serde(rename = "firstPrompt")]
    pub first_prompt: Option<String>,
    /// The agent that already has the conversation.
    pub agent: Option<AgentId>,
    pub name: Option<String>,
    /// The process that has it open now.
    pub pid: Option<u32>,
}

/// The result of an adoption.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AdoptedView {
    pub agent: AgentId,
    pub name: Option<String>,
    pub session: String,
    pub messages: u64,
    /// Lines of the transcript that are cut off, too long, or not JSON.
    pub unread: u64,
    /// The process that has the conversation open now. Two processes in one conversation lose messages.
    pub pid: Option<u32>,
}

/// List the conversations of the Claude CLI and of codex in this project. Reads every transcript completely, so it can take long.
#[utoipa::path(get, path = "/api/adopt", operation_id = "list_adoptable", tag = "adoption", responses((status = 200, description = "The latest 500", body = AdoptableList)))]
pub async fn list(State(api): State<Api>) -> Result<Json<AdoptableList>, ApiError> {
    let (transcripts, threads) = (api.defaults.transcripts.clone(), api.defaults.codex_threads.clone());
    let handle = api.handle.clone();
    looking(move || AdoptableList::read(&handle.view(), &transcripts, &threads)).await.map(Json)
}

impl AdoptableList {
    /// Reads every transcript completely. The world says which conversations have an agent.
    pub fn read(world: &World, transcripts: &Transcripts, threads: &CodexThreads) -> Result<Self, TranscriptError> {
        let folders = [transcripts.folder().ok(), threads.folder().map(Path::to_owned)];
        let folders: Vec<String> = folders.iter().flatten().map(|folder| folder.display().to_string()).collect();
        if folders.is_empty() {
            return Err(TranscriptError::NoHome);
        }
        let of_claude = match transcripts.list() {
            // Codex may have its own home folder.
            Err(TranscriptError::NoHome) => TranscriptList::default(),
            listed => listed?,
        };
        let (running, of_codex) = (transcripts.running(), threads.list());
        let claude = of_claude.sessions.into_iter().map(|session| view(world, CLAUDE, &running, session));
        let codex = of_codex.sessions.into_iter().map(|session| view(world, CODEX, &running, session));
        let mut sessions: Vec<Adoptable> = claude.chain(codex).collect();
        sessions.sort_by_key(|session| Reverse(session.last_active));
        Ok(Self {
            head: world.head(),
            sessions,
            looked_in: folders.join(" and "),
            passed_over: of_claude.passed_over + of_codex.passed_over,
            left_out: of_claude.left_out + of_codex.left_out,
        })
    }
}

/// Make an agent from a conversation: it gets the history, and messages to it continue the conversation. Can take long, and finishes even if the
/// client disconnects.
#[utoipa::path(post, path = "/api/adopt", operation_id = "adopt", tag = "adoption", request_body = Adopt,
    responses((status = 201, description = "Adopted", body = AdoptedView)))]
pub async fn take(State(api): State<Api>, body: JsonBody<Adopt>) -> Result<(StatusCode, Json<AdoptedView>), ApiError> {
    // In a task, because a future that is dropped in the middle would leave an incomplete agent behind.
    let adopted = tokio::spawn(adopt(api, body.0)).await.unwrap_or_else(|error| Err(broken(&error)));
    Ok((StatusCode::CREATED, Json(adopted?)))
}

async fn adopt(api: Api, wish: Adopt) -> Result<AdoptedView, ApiError> {
    let Adopt { session, name } = wish;
    let (transcripts, threads) = (api.defaults.transcripts.clone(), api.defaults.codex_threads.clone());
    let look = move || {
        let found = match (transcripts.find(&session), threads.find(&session)) {
            (Ok(of_claude), Ok(of_codex)) => {
                let candidates = vec![of_claude.summary.session, of_codex.summary.session];
                return Err(TranscriptError::Ambiguous { reference: session, candidates });
            }
            (Ok(transcript), Err(TranscriptError::NoSuch(_) | TranscriptError::NoHome)) => (CLAUDE, transcript),
            (Err(TranscriptError::NoSuch(_) | TranscriptError::NoHome), thread) => (CODEX, thread?),
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        Ok((found, transcripts.running()))
    };
    let ((harness, transcript), running) = looking(look).await?;
    let Summary { session, folder, unread, .. } = transcript.summary.clone();
    let harness_session =
        ForeignSession { harness: harness.into(), session: session.clone(), host: api.defaults.host.clone(), folder };
    let adopted = adoption::adopt(&api.handle, transcript, harness_session, name.clone()).await?;
    let pid = running.get(&session).copied();
    Ok(AdoptedView { agent: adopted.agent, name, session, messages: adopted.messages, unread, pid })
}

/// Reads files, which may take long.
async fn looking<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, TranscriptError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(look).await {
        Ok(looked) => Ok(looked?),
        Err(error) => Err(broken(&error)),
    }
}

fn broken(error: &tokio::task::JoinError) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "adoption_failed", error, "look into .hatchery/daemon.log")
}

fn view(world: &World, harness: &str, running: &BTreeMap<String, u32>, summary: Summary) -> Adoptable {
    let Summary { session, folder, written, messages, first_prompt, unread: _ } = summary;
    let agent = run::holder(world, &session);
    let name = agent.and_then(|agent| world.agent(agent)).and_then(|agent| agent.name.clone());
    let pid = running.get(&session).copied();
    let harness = harness.to_owned();
    Adoptable { session, harness, folder, last_active: written, messages, first_prompt, agent, name, pid }
}

impl From<TranscriptError> for ApiError {
    fn from(error: TranscriptError) -> Self {
        let (status, code, hint) = match &error {
            TranscriptError::NoHome => {
                (StatusCode::NOT_FOUND, "no_transcripts", "start the daemon with HOME or CLAUDE_CONFIG_DIR set".into())
            }
            TranscriptError::NoSuch(_) => {
                (StatusCode::NOT_FOUND, "no_such_conversation", "`hatchery adopt` lists them".into())
            }
            TranscriptError::Ambiguous { .. } => {
                (StatusCode::CONFLICT, "ambiguous_conversation", "give more characters of the id".into())
            }
            TranscriptError::TooLarge { .. } => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "transcript_too_large",
                format!("at most {MAX_TRANSCRIPT_BYTES} bytes are read"),
            ),
            TranscriptError::Unreadable { .. } => {
                (StatusCode::NOT_FOUND, "unreadable_transcript", "look at the file's permissions".into())
            }
        };
        Self::new(status, code, &error, hint)
    }
}

impl From<AdoptionError> for ApiError {
    fn from(error: AdoptionError) -> Self {
        match error {
            AdoptionError::Engine(error) => error.into(),
            AdoptionError::Transcript(_) => {
                Self::new(StatusCode::NOT_FOUND, "unreadable_transcript", error, "adopt it again when it can be read")
            }
        }
    }
}
