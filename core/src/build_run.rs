//! A build run: an approved plan of chunks and its progress, as it stands in `buildRun` of the status document. It survives the session
//! that started it. This file reads a build run, changes it, and says what is left to do when a build is resumed.

mod chunk;
mod plan;

pub use chunk::{Chunk, ChunkId, ChunkState, Move};
pub use plan::{MAX_CHUNKS, approve};

use crate::status::view::fields;
use crate::status::{Json, JsonKind, Object, StatusDocument};
use chunk::write_state;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Paused,
    /// The run has ended, and some chunks failed.
    Partial,
    Completed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildRun {
    pub id: String,
    pub status: RunStatus,
    pub chunks: Vec<Chunk>,
    pub spec_version: Option<String>,
    pub last_checkpoint: Option<String>,
    pub phase: Option<String>,
}

/// What is done with completed chunks whose sections of the spec have changed since they were built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ChangedChunks))]
#[serde(rename_all = "snake_case")]
pub enum ChangedChunks {
    Rebuild,
    Keep,
}

/// The user's decisions when a run is resumed.
#[derive(Clone, Copy, Debug)]
pub struct ResumeTerms<'a> {
    /// Completed chunks that are to be built again.
    pub rebuild: &'a [ChunkId],
    /// What is done with the other outdated chunks. If there are any and this is not set, the run is not resumed.
    pub changed: Option<ChangedChunks>,
    /// The fingerprints of the spec's sections as they are now, by alias.
    pub sections: &'a BTreeMap<String, String>,
}

/// What the user or an agent must know to resume a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    pub run: BuildRun,
    pub done: Vec<ChunkId>,
    pub remaining: Vec<ChunkId>,
    pub failed: Vec<ChunkId>,
    /// The remaining chunks whose dependencies are completed.
    pub ready: Vec<ChunkId>,
    /// Completed chunks that were built from another version of the spec than the current one.
    pub outdated: Vec<ChunkId>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error("there is no build run")]
    NoRun,
    #[error("the build run {run} is not finished")]
    Unfinished { run: String },
    #[error("the build run {run} is completed, so it cannot be paused")]
    Over { run: String },
    #[error("the build run {run} is paused, so no chunk can start")]
    Paused { run: String },
    #[error("the sections of completed chunks have changed since these were built: {}", listed(chunks))]
    Outdated { chunks: Vec<ChunkId> },
    #[error("the build run has no chunk {chunk}")]
    NoSuchChunk { chunk: ChunkId },
    #[error("chunk {chunk} is {state}, so it cannot {action}", state = state.name(), action = action.verb())]
    Untimely { chunk: ChunkId, state: ChunkState, action: Move },
    #[error("chunk {chunk} depends on chunks that are not completed: {}", listed(open))]
    Waits { chunk: ChunkId, open: Vec<ChunkId> },
    #[error("the plan cannot be used: {why}")]
    BadPlan { why: String },
}

impl BuildError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoRun => "no_build_run",
            Self::Unfinished { .. } => "build_run_unfinished",
            Self::Over { .. } => "build_run_completed",
            Self::Paused { .. } => "build_run_paused",
            Self::Outdated { .. } => "chunks_outdated",
            Self::NoSuchChunk { .. } => "no_such_chunk",
            Self::Untimely { .. } => "chunk_untimely",
            Self::Waits { .. } => "chunk_waits",
            Self::BadPlan { .. } => "bad_build_plan",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoRun => "`hatchery build plan` approves a plan and begins one",
            Self::Unfinished { .. } => "`hatchery build resume` goes on with it, or starts fresh with `--choose fresh`",
            Self::Over { .. } => "`hatchery build plan` begins another one",
            Self::Paused { .. } => "`hatchery build resume` goes on with it",
            Self::Outdated { .. } => {
                "name those to build again with `rebuild`, and say what to do with the others: `changed` is `rebuild` or `keep`"
            }
            Self::NoSuchChunk { .. } | Self::Untimely { .. } => {
                "`hatchery build show` lists the chunks and their states"
            }
            Self::Waits { .. } => "complete those first",
            Self::BadPlan { .. } => {
                "a plan is {\"chunks\":[{\"name\":\"…\",\"sections\":[\"#alias\"],\"dependsOn\":[1]}, …]}; chunks are numbered from 1"
            }
        }
    }
}

impl RunStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Partial => "partial",
            Self::Completed => "completed",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Running, Self::Paused, Self::Partial, Self::Completed].into_iter().find(|status| status.name() == text)
    }
}

impl BuildRun {
    /// The run of a document. A run with a missing or unknown status counts as running, so that a typing error does not lose it.
    pub fn read(document: &StatusDocument) -> Option<Self> {
        let run = fields(document.field("buildRun"))?;
        let status = run.text("status").and_then(|status| RunStatus::parse(&status)).unwrap_or(RunStatus::Running);
        let chunks = run.objects("chunks").iter().zip(1..).map(|(chunk, place)| Chunk::read(chunk, place)).collect();
        Some(Self {
            id: run.text("runId").unwrap_or_default(),
            status,
            chunks,
            spec_version: run.object("plan").and_then(|plan| plan.text("specVersion")),
            last_checkpoint: run.text("lastCheckpoint"),
            phase: run.text("convergencePhase"),
        })
    }

    pub fn chunk(&self, id: ChunkId) -> Option<&Chunk> {
        self.chunks.iter().find(|chunk| chunk.id == id)
    }

    /// The dependencies of a chunk that are not completed.
    pub fn open_dependencies(&self, chunk: &Chunk) -> Vec<ChunkId> {
        let completed = |id: &ChunkId| self.chunk(*id).is_some_and(|chunk| chunk.state == ChunkState::Completed);
        chunk.depends_on.iter().copied().filter(|id| !completed(id)).collect()
    }

    /// What is left to do. None if the run is completed.
    pub fn resume(&self, spec_version: Option<&str>, now: &BTreeMap<String, String>) -> Option<Resume> {
        if self.status == RunStatus::Completed {
            return None;
        }
        let with = |wanted: fn(&ChunkState) -> bool| {
            let chosen = self.chunks.iter().filter(move |chunk| wanted(&chunk.state));
            chosen.map(|chunk| chunk.id).collect::<Vec<_>>()
        };
        let remaining = with(|state| {
            matches!(state, ChunkState::Planned { .. } | ChunkState::Active { .. } | ChunkState::Retrying { .. })
        });
        let is_ready = |id: &&ChunkId| self.chunk(**id).is_some_and(|chunk| self.open_dependencies(chunk).is_empty());
        Some(Resume {
            done: with(|state| *state == ChunkState::Completed),
            failed: with(|state| matches!(state, ChunkState::Failed { .. })),
            ready: remaining.iter().filter(is_ready).copied().collect(),
            outdated: self.outdated(spec_version, now),
            remaining,
            run: self.clone(),
        })
    }

    /// The completed chunks whose sections have changed since they were built. A section that was removed counts as changed. If the
    /// fingerprint of a section is not known, the version of the spec is compared instead. A chunk without fingerprints and version cannot
    /// be compared, and does not count.
    fn outdated(&self, spec_version: Option<&str>, now: &BTreeMap<String, String>) -> Vec<ChunkId> {
        let differs = |chunk: &&Chunk| {
            let known = || chunk.sections.iter().filter_map(|alias| Some((alias, chunk.fingerprints.get(alias)?)));
            let one_differs = !now.is_empty() && known().any(|(alias, then)| now.get(alias) != Some(then));
            let all_known = !now.is_empty() && !chunk.sections.is_empty() && known().count() == chunk.sections.len();
            let built_from = chunk.spec_version.as_deref().or(self.spec_version.as_deref());
            let other_version = built_from.zip(spec_version).is_some_and(|(then, now)| then != now);
            chunk.state == ChunkState::Completed && (one_differs || (!all_known && other_version))
        };
        self.chunks.iter().filter(differs).map(|chunk| chunk.id).collect()
    }
}

/// Changes the state of a chunk, and the status of the run with it: the run is cleared when its last chunk is completed, and becomes
/// partial if all chunks that are left have failed or depend on a failed one.
pub fn move_chunk(
    document: &mut StatusDocument,
    id: ChunkId,
    action: Move,
    fingerprints: &BTreeMap<String, String>,
    now: &str,
) -> Result<ChunkState, BuildError> {
    let run = BuildRun::read(document).ok_or(BuildError::NoRun)?;
    let chunk = run.chunk(id).ok_or(BuildError::NoSuchChunk { chunk: id })?;
    let state = chunk.state.after(action).ok_or(BuildError::Untimely { chunk: id, state: chunk.state, action })?;
    let open = run.open_dependencies(chunk);
    if matches!(action, Move::Start | Move::Retry) {
        if run.status == RunStatus::Paused {
            return Err(BuildError::Paused { run: run.id });
        }
        if !open.is_empty() {
            return Err(BuildError::Waits { chunk: id, open });
        }
    }
    let of_chunk = |(alias, _): &(&String, &String)| chunk.sections.contains(alias);
    let known: BTreeMap<&String, &String> = fingerprints.iter().filter(of_chunk).collect();
    let version = document.words("specVersion").or_else(|| run.spec_version.clone());
    edit_run(document, |run| {
        edit_chunk(run, id, |chunk| {
            write_state(chunk, state, version.as_deref(), now);
            if action == Move::Complete && !known.is_empty() {
                chunk.set("sectionFingerprints", json!(known).into());
            }
        });
        if action == Move::Complete {
            run.set("lastCheckpoint", now.into());
        }
    });
    settle(document);
    Ok(state)
}

/// Pauses a run that is not completed.
pub fn pause(document: &mut StatusDocument) -> Result<(), BuildError> {
    let run = BuildRun::read(document).ok_or(BuildError::NoRun)?;
    match run.status {
        RunStatus::Completed => return Err(BuildError::Over { run: run.id }),
        RunStatus::Running | RunStatus::Paused | RunStatus::Partial => set_status(document, RunStatus::Paused),
    }
    Ok(())
}

fn set_status(document: &mut StatusDocument, status: RunStatus) {
    edit_run(document, |run| run.set("status", status.name().into()));
}

/// Continues a run in a new session. Interrupted chunks, failed chunks and chunks that are to be built again become planned.
pub fn resume(document: &mut StatusDocument, terms: &ResumeTerms<'_>, now: &str) -> Result<(), BuildError> {
    let run = BuildRun::read(document).ok_or(BuildError::NoRun)?;
    if let Some(unknown) = terms.rebuild.iter().find(|id| run.chunk(**id).is_none()) {
        return Err(BuildError::NoSuchChunk { chunk: *unknown });
    }
    let version = document.words("specVersion");
    let outdated = run.outdated(version.as_deref(), terms.sections).into_iter();
    let undecided: Vec<ChunkId> = outdated.filter(|id| !terms.rebuild.contains(id)).collect();
    let rebuild: Vec<ChunkId> = match terms.changed {
        None if !undecided.is_empty() => return Err(BuildError::Outdated { chunks: undecided }),
        None | Some(ChangedChunks::Keep) => terms.rebuild.to_vec(),
        Some(ChangedChunks::Rebuild) => terms.rebuild.iter().copied().chain(undecided).collect(),
    };
    for chunk in &run.chunks {
        let again = match chunk.state {
            ChunkState::Completed => rebuild.contains(&chunk.id),
            ChunkState::Active { .. } | ChunkState::Retrying { .. } | ChunkState::Failed { .. } => true,
            ChunkState::Planned { .. } => false,
        };
        if let Some(state) = chunk.state.after(Move::Rebuild).filter(|_| again) {
            edit_run(document, |run| edit_chunk(run, chunk.id, |chunk| write_state(chunk, state, None, now)));
        }
    }
    set_status(document, RunStatus::Running);
    settle(document);
    Ok(())
}

/// Removes the run from the document.
pub fn clear(document: &mut StatusDocument) {
    document.clear("buildRun");
    document.clear("chunkProgress");
}

fn edit_run(document: &mut StatusDocument, change: impl FnOnce(&mut Object)) {
    if let Some(mut run) = document.field("buildRun").and_then(Json::object) {
        change(&mut run);
        document.set("buildRun", run.to_json());
    }
}

/// Changes one chunk. All others stay as they are, even if they cannot be understood.
fn edit_chunk(run: &mut Object, id: ChunkId, change: impl FnOnce(&mut Object)) {
    let Some(mut chunks) = run.get("chunks").and_then(Json::list) else { return };
    let objects = chunks.iter_mut().filter(|chunk| chunk.kind() == JsonKind::Object);
    let mut wanted = objects
        .zip(1_u64..)
        .filter(|(chunk, place)| fields(Some(chunk)).and_then(|chunk| chunk.count("id")).unwrap_or(*place) == id);
    if let Some((chunk, _)) = wanted.next()
        && let Some(mut object) = chunk.object()
    {
        change(&mut object);
        *chunk = object.to_json();
    }
    run.set("chunks", Json::of_list(&chunks));
}

/// Updates the run's status and progress from its chunks. A run whose chunks are all completed is cleared.
fn settle(document: &mut StatusDocument) {
    if let Some(run) = BuildRun::read(document) {
        // A failed chunk has ended, and the chunks that depend on it cannot start.
        let is_stuck = |chunk: &Chunk| match chunk.state {
            ChunkState::Completed | ChunkState::Failed { .. } => true,
            ChunkState::Planned { .. } => !run.open_dependencies(chunk).is_empty(),
            ChunkState::Active { .. } | ChunkState::Retrying { .. } => false,
        };
        let status = match run.status {
            status if run.chunks.is_empty() => status,
            _ if run.chunks.iter().all(|chunk| chunk.state == ChunkState::Completed) => return clear(document),
            _ if run.chunks.iter().all(is_stuck) => RunStatus::Partial,
            RunStatus::Paused => RunStatus::Paused,
            RunStatus::Running | RunStatus::Partial | RunStatus::Completed => RunStatus::Running,
        };
        set_status(document, status);
    }
    show_progress(document);
}

/// `chunkProgress`, from the chunks. It is cleared when the build is completed.
pub(crate) fn show_progress(document: &mut StatusDocument) {
    match BuildRun::read(document) {
        Some(run) if run.status != RunStatus::Completed => document.set("chunkProgress", progress(&run)),
        _ => document.clear("chunkProgress"),
    }
}

fn progress(run: &BuildRun) -> Json {
    let busy = |chunk: &&Chunk| matches!(chunk.state, ChunkState::Active { .. } | ChunkState::Retrying { .. });
    let done = run.chunks.iter().filter(|chunk| chunk.state == ChunkState::Completed).count();
    let current = done + usize::from(run.chunks.iter().any(|chunk| busy(&chunk)));
    let chunks = run.chunks.iter().map(|chunk| {
        let mut shown = json!({ "id": chunk.id, "name": chunk.name, "status": chunk.state.name() });
        if let ChunkState::Active { attempt } | ChunkState::Retrying { attempt } = chunk.state {
            shown["attempt"] = json!(attempt);
        }
        for (name, list) in [("sections", &chunk.sections), ("scenarios", &chunk.scenarios)] {
            if !list.is_empty() {
                shown[name] = json!(list);
            }
        }
        if let Some(at) = chunk.completed_at.as_ref().filter(|_| chunk.state == ChunkState::Completed) {
            shown["completedAt"] = json!(at);
        }
        shown
    });
    json!({ "current": current, "total": run.chunks.len(), "chunks": chunks.collect::<Vec<_>>() }).into()
}

fn listed(ids: &[ChunkId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
