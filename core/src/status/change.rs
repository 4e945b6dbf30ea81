//! The changes of the status that people, agents and hooks request. The same values come from the command line, over HTTP and from the
//! tools of agents. If no daemon runs, they are applied to the file, otherwise to the world.

use super::kept::BUILD_EVENTS;
use super::{Edit, EditError, Json, Path, StatusDocument, shape};
use crate::build_event::{self, BuildEvent, EventError, MAX_EVENTS_IN_DOCUMENT};
use crate::build_run::{self, BuildError, ChunkId, Move, ResumeTerms};
use crate::idea_inbox::{Idea, IdeaInbox, IdeaType, InboxError, ItemStatus};
use crate::refusal::RefusalKind;
use crate::workflow::{self, Missing, MissingStepChoice};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// The longest name of a command, a step or a taker, in bytes.
pub const MAX_NAME_BYTES: usize = 256;
/// The longest summary of a step, and the longest path of a file, in bytes.
pub const MAX_SUMMARY_BYTES: usize = 64 * 1024;
/// How many files that were written outside of a command are kept. The oldest are removed first.
pub const MAX_UNTRACKED: usize = 1_000;

/// A change of the status document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StatusChange {
    /// Sets the value at a path.
    Set {
        /// The path: names with dots between them, such as `scenarioScore.total`.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        path: Path,
        /// Any JSON value.
        #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
        value: Json,
    },
    /// Objects are merged field by field; everything else is replaced.
    Merge {
        /// An object.
        #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
        patch: Json,
    },
    /// Counts up a number.
    Increment {
        /// The path: names with dots between them, such as `scenarioScore.total`.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        path: Path,
        /// The amount. 1 if it is missing.
        #[serde(default = "one")]
        by: i64,
    },
    /// Appends an item to a list.
    Append {
        /// The path: names with dots between them, such as `scenarioScore.total`.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        path: Path,
        /// Any JSON value.
        #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
        value: Json,
    },
    /// Sets `null`, which equals absent.
    Clear {
        /// The path: names with dots between them, such as `scenarioScore.total`.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        path: Path,
    },
    /// Sets the current command, and clears what the steps of the previous command recorded.
    StartCommand {
        /// The name of the command, such as `init`, `evolve`, `ref`, `review` or `execute`.
        name: String,
    },
    /// Clears the current command.
    EndCommand {},
    /// Starts a step of the workflow. If another step must come first and `choose` is missing, the step is refused.
    StartStep {
        /// The name of the step, such as `state-owner-scan` or `interviewer`.
        step: String,
        /// What to do if another step must come first.
        #[serde(default)]
        choose: Option<MissingStepChoice>,
    },
    /// Records a step as completed.
    FinishStep {
        /// The name of the step.
        step: String,
        /// What its agent found, in a paragraph.
        #[serde(default)]
        summary: Option<String>,
        /// What to do if the step has not started and another step must come first.
        #[serde(default)]
        choose: Option<MissingStepChoice>,
    },
    /// Records a build event. If an event with the same id is known already, nothing changes.
    RecordEvent {
        /// An object with a `kind`.
        #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
        event: Json,
        /// The id of the event, if it has none of its own.
        id: String,
    },
    /// Records a file that was written outside of a command.
    NoteUntracked {
        /// The path of the file, relative to the project.
        file: String,
        /// The alias of the section of the spec to which the file belongs.
        #[serde(default)]
        section: Option<String>,
        /// The number of that section.
        #[serde(default)]
        section_number: Option<String>,
    },
    /// Begins a build run with an approved plan.
    ApprovePlan {
        /// `{"chunks":[{"name":"…","sections":["#alias"],"dependsOn":[1]}]}`; chunks are numbered from 1.
        #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
        plan: Json,
        /// The id of the run, such as `run-1708012345678`.
        run: String,
        /// Whether it may replace a run that is not finished.
        #[serde(default)]
        fresh: bool,
        /// The current version of the spec.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spec_version: Option<String>,
    },
    /// Changes the state of a chunk.
    MoveChunk {
        /// The number of the chunk.
        chunk: ChunkId,
        /// What happened.
        action: Move,
        /// Fingerprints of the sections of the spec by `#alias`, kept with a completed chunk.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        fingerprints: BTreeMap<String, String>,
        /// The current version of the spec.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spec_version: Option<String>,
    },
    /// Pauses the build run.
    PauseBuild {},
    /// Continues the build run in a new session.
    ResumeBuild {
        /// Completed chunks that are to be built again.
        #[serde(default)]
        rebuild: Vec<ChunkId>,
        /// What is done with other completed chunks whose sections have changed since they were built. If this is missing, such a build run
        /// is not resumed, and the refusal names these chunks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<build_run::ChangedChunks>,
        /// Fingerprints of the current sections of the spec, by `#alias`. The daemon reads them from the spec if they are missing.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        fingerprints: BTreeMap<String, String>,
        /// The current version of the spec.
        #[serde(default)]
        spec_version: Option<String>,
    },
    /// Removes the build run from the document.
    ClearBuild {},
}

/// A change of the idea inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum IdeaChange {
    /// Adds an idea.
    Add {
        /// The id of the idea, such as `inbox-1708012345678-a1b2c3`. If an idea with the same id is known already, nothing is added.
        id: String,
        /// `evolve`, `reference` or `feature`.
        #[serde(rename = "type")]
        kind: String,
        /// The idea, a link or a description. At most 64 KiB of UTF-8.
        content: String,
    },
    /// Removes an idea.
    Dismiss {
        /// The id of the idea.
        id: String,
    },
    /// Takes an idea for processing: the named one, or the oldest pending one.
    Take {
        /// The id of the idea.
        #[serde(default)]
        id: Option<String>,
        /// Who takes the idea.
        #[serde(default)]
        taker: Option<String>,
    },
    /// Ends the processing of an idea; `pending` gives it back.
    Finish {
        /// The id of the idea.
        id: String,
        /// `processed`, `incorporated`, `error` or `pending`.
        status: String,
        /// The result of the processing.
        #[serde(default)]
        note: Option<String>,
    },
}

/// Why the status cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatusRefusal {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(transparent)]
    Inbox(#[from] InboxError),
    #[error("{0}")]
    Missing(Missing),
    #[error("there is no step `{step}`; did you mean `{meant}`? The steps are {known}")]
    Misspelt { step: String, meant: &'static str, known: String },
    #[error("`{field}` shows quest {quest} while it runs")]
    ShowsQuest { field: String, quest: crate::QuestId },
    #[error("`{what}` has {bytes} bytes, and {max} is the most")]
    TooLong { what: &'static str, bytes: usize, max: usize },
    #[error("the status document has {count} fields already, and {max} is the most")]
    TooManyFields { count: usize, max: usize },
}

impl StatusRefusal {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Edit(error) => error.code(),
            Self::Build(error) => error.code(),
            Self::Event(error) => error.code(),
            Self::Inbox(error) => error.code(),
            Self::Missing(_) => "steps_missing",
            Self::Misspelt { .. } => "step_misspelt",
            Self::ShowsQuest { .. } => "shows_quest",
            Self::TooLong { .. } => "status_text_too_long",
            Self::TooManyFields { .. } => "too_many_fields",
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::Edit(error) => error.hint(),
            Self::Build(error) => error.hint(),
            Self::Event(error) => error.hint(),
            Self::Inbox(error) => error.hint(),
            Self::Missing(_) => "choose with --choose run, --choose skip or --choose abort",
            Self::Misspelt { .. } => "a step of your own with this name begins with --choose skip",
            Self::ShowsQuest { .. } => "steer the quest instead: `hatchery quest show` says how",
            Self::TooLong { .. } => "put the long text into a file and name the file",
            Self::TooManyFields { .. } => "clear fields that are not needed any more: `hatchery state clear PATH`",
        }
    }

    pub fn kind(&self) -> RefusalKind {
        match self {
            Self::Inbox(InboxError::NoSuchItem(_) | InboxError::NothingPending)
            | Self::Build(BuildError::NoRun | BuildError::NoSuchChunk { .. }) => RefusalKind::Missing,
            Self::Edit(
                EditError::BadPath { .. }
                | EditError::NotJson { .. }
                | EditError::PatchNotAnObject { .. }
                | EditError::WrongShape { .. },
            )
            | Self::Event(_)
            | Self::Inbox(
                InboxError::BadType(_)
                | InboxError::BadStatus(_)
                | InboxError::BadResult(_)
                | InboxError::Empty
                | InboxError::TooLong(_),
            )
            | Self::Build(BuildError::BadPlan { .. })
            | Self::Misspelt { .. }
            | Self::TooLong { .. } => RefusalKind::Invalid,
            Self::Edit(_)
            | Self::Inbox(_)
            | Self::Build(_)
            | Self::Missing(_)
            | Self::ShowsQuest { .. }
            | Self::TooManyFields { .. } => RefusalKind::Untimely,
        }
    }
}

impl StatusChange {
    /// The edit, if the change is only an edit.
    pub fn edit(&self) -> Option<Edit> {
        Some(match self {
            Self::Set { path, value } => Edit::Set { path: path.clone(), value: value.clone() },
            Self::Merge { patch } => Edit::Merge { patch: patch.clone() },
            Self::Increment { path, by } => Edit::Increment { path: path.clone(), by: *by },
            Self::Append { path, value } => Edit::Append { path: path.clone(), value: value.clone() },
            Self::Clear { path } => Edit::Clear { path: path.clone() },
            Self::StartCommand { .. }
            | Self::EndCommand {}
            | Self::StartStep { .. }
            | Self::FinishStep { .. }
            | Self::RecordEvent { .. }
            | Self::NoteUntracked { .. }
            | Self::ApprovePlan { .. }
            | Self::MoveChunk { .. }
            | Self::PauseBuild {}
            | Self::ResumeBuild { .. }
            | Self::ClearBuild {} => return None,
        })
    }

    /// Whether it changes the build run as a whole.
    pub(super) fn is_about_build(&self) -> bool {
        match self {
            Self::ApprovePlan { .. }
            | Self::MoveChunk { .. }
            | Self::PauseBuild {}
            | Self::ResumeBuild { .. }
            | Self::ClearBuild {} => true,
            Self::Set { .. }
            | Self::Merge { .. }
            | Self::Increment { .. }
            | Self::Append { .. }
            | Self::Clear { .. }
            | Self::StartCommand { .. }
            | Self::EndCommand {}
            | Self::StartStep { .. }
            | Self::FinishStep { .. }
            | Self::RecordEvent { .. }
            | Self::NoteUntracked { .. } => false,
        }
    }

    /// Changes a document. `now` is a time in RFC 3339.
    pub fn apply(&self, document: &mut StatusDocument, now: &str) -> Result<(), StatusRefusal> {
        let edit = self.edit();
        if let Some(edit) = &edit {
            shape::check(document, edit)?;
        }
        if let Self::Append { path, value } = self
            && path.segments() == [BUILD_EVENTS]
        {
            return append_event(document, path, value);
        }
        if let Some(edit) = edit {
            return Ok(document.apply(&edit)?);
        }
        match self {
            Self::StartCommand { name } => {
                workflow::start_command(document, within("name", name, MAX_NAME_BYTES)?);
            }
            Self::EndCommand {} => workflow::end_command(document),
            Self::StartStep { step, choose } => {
                let step = spelt(step, *choose)?;
                workflow::start_step(document, step, *choose, now).map_err(StatusRefusal::Missing)?;
            }
            Self::FinishStep { step, summary, choose } => {
                let summary = summary.as_deref().map(|it| within("summary", it, MAX_SUMMARY_BYTES)).transpose()?;
                let step = spelt(step, *choose)?;
                workflow::finish_step(document, step, summary, *choose, now).map_err(StatusRefusal::Missing)?;
            }
            Self::RecordEvent { event, id } => {
                let checked = BuildEvent::check(event, id, now)?;
                if build_event::repeated_event(document, event).is_none() {
                    checked.record(document);
                }
            }
            Self::NoteUntracked { file, section, section_number } => {
                let file = within("file", file, MAX_SUMMARY_BYTES)?;
                note_untracked(document, file, section.as_deref(), section_number.as_deref(), now);
            }
            Self::ApprovePlan { plan, run, fresh, spec_version } => {
                note_version(document, spec_version.as_deref())?;
                build_run::approve(document, plan, within("run", run, MAX_NAME_BYTES)?, *fresh, now)?;
            }
            Self::MoveChunk { chunk, action, fingerprints, spec_version } => {
                note_version(document, spec_version.as_deref())?;
                build_run::move_chunk(document, *chunk, *action, fingerprints, now)?;
            }
            Self::PauseBuild {} => build_run::pause(document)?,
            Self::ResumeBuild { rebuild, changed, fingerprints, spec_version } => {
                // The chunks of the document are compared with the version that is current now.
                note_version(document, spec_version.as_deref())?;
                let terms = ResumeTerms { rebuild, changed: *changed, sections: fingerprints };
                build_run::resume(document, &terms, now)?;
            }
            Self::ClearBuild {} => build_run::clear(document),
            Self::Set { .. }
            | Self::Merge { .. }
            | Self::Increment { .. }
            | Self::Append { .. }
            | Self::Clear { .. } => {}
        }
        Ok(())
    }
}

impl IdeaChange {
    /// Changes the inbox, and returns the item that was changed or removed.
    pub fn apply(&self, inbox: &mut IdeaInbox, now: &str) -> Result<Idea, StatusRefusal> {
        Ok(match self {
            Self::Add { id, kind, content } => {
                let kind = IdeaType::parse(kind)?;
                inbox.add(within("id", id, MAX_NAME_BYTES)?, kind, content, now)?
            }
            Self::Dismiss { id } => inbox.dismiss(id)?,
            Self::Take { id, taker } => {
                let taker = taker.as_deref().map(|it| within("taker", it, MAX_NAME_BYTES)).transpose()?;
                inbox.take(id.as_deref(), taker, now)?
            }
            Self::Finish { id, status, note } => {
                let known = ItemStatus::parse(status).ok().filter(|status| *status != ItemStatus::Processing);
                let status = known.ok_or_else(|| InboxError::BadResult(status.chars().take(100).collect()))?;
                let note = note.as_deref().map(|it| within("note", it, MAX_SUMMARY_BYTES)).transpose()?;
                inbox.finish(id, status, note, now)?
            }
        })
    }
}

/// Refuses a name that is probably another spelling of a step in the table. A caller that skips missing steps may use any name.
fn spelt(step: &str, choose: Option<MissingStepChoice>) -> Result<&str, StatusRefusal> {
    let step = within("step", step, MAX_NAME_BYTES)?;
    match workflow::misspelt(step).filter(|_| choose != Some(MissingStepChoice::Skip)) {
        Some((meant, known)) => Err(StatusRefusal::Misspelt { step: step.to_owned(), meant, known: known.join(", ") }),
        None => Ok(step),
    }
}

/// Appends to the build events. A known event is not added again, and the oldest are removed first.
fn append_event(document: &mut StatusDocument, path: &Path, value: &Json) -> Result<(), StatusRefusal> {
    let events = document.field(BUILD_EVENTS).and_then(Json::list).unwrap_or_default();
    let id = value.object().as_ref().and_then(build_event::id_of);
    if id.is_some_and(|id| events.iter().any(|event| build_event::has_id(event.text(), &id))) {
        return Ok(());
    }
    document.apply(&Edit::Append { path: path.clone(), value: value.clone() })?;
    let events = document.field(BUILD_EVENTS).and_then(Json::list).unwrap_or_default();
    let surplus = events.len().saturating_sub(MAX_EVENTS_IN_DOCUMENT);
    if surplus > 0 {
        document.set(BUILD_EVENTS, Json::of_list(&events[surplus..]));
    }
    Ok(())
}

/// Writes the current version into the document. The source is the registry of versions.
fn note_version(document: &mut StatusDocument, version: Option<&str>) -> Result<(), StatusRefusal> {
    if let Some(version) = version {
        document.set("specVersion", within("spec_version", version, MAX_NAME_BYTES)?);
    }
    Ok(())
}

/// Only the newest change of a file is kept.
fn note_untracked(document: &mut StatusDocument, file: &str, section: Option<&str>, number: Option<&str>, now: &str) {
    let mut entry = json!({ "file": file });
    for (name, value) in [("section", section), ("sectionNumber", number)] {
        if let Some(value) = value {
            entry[name] = json!(value);
        }
    }
    entry["timestamp"] = json!(now);
    let mut changes = document.field("untrackedChanges").and_then(Json::list).unwrap_or_default();
    changes.retain(|known| known.object().and_then(|known| known.get("file")?.words()).as_deref() != Some(file));
    changes.push(entry.into());
    let surplus = changes.len().saturating_sub(MAX_UNTRACKED);
    document.set("untrackedChanges", Json::of_list(&changes[surplus..]));
}

fn within<'a>(what: &'static str, text: &'a str, max: usize) -> Result<&'a str, StatusRefusal> {
    match text.len() <= max {
        true => Ok(text),
        false => Err(StatusRefusal::TooLong { what, bytes: text.len(), max }),
    }
}

fn one() -> i64 {
    1
}
