//! What happened to a step, as data and in words.

use crate::amounts::counted;
use hatchery_core::Timestamp;
use hatchery_core::quest::{Note, NoteKind};
use hatchery_core::roles::titled;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NoteDocument {
    pub at: Timestamp,
    /// For people. Programs read `kind` and what belongs to it.
    pub what: String,
    #[serde(flatten)]
    pub kind: NoteKind,
}

impl NoteDocument {
    pub(super) fn of(note: &Note) -> Self {
        Self { at: note.at, what: words(&note.what), kind: note.what.clone() }
    }
}

fn words(kind: &NoteKind) -> String {
    match kind {
        NoteKind::RoleNext { role } => format!("{} is next", titled(role)),
        NoteKind::Continues { role } => format!("a fresh {} goes on", titled(role)),
        NoteKind::Mends { role, findings } => {
            format!("{} mends {}", titled(role), counted((*findings).into(), "finding"))
        }
        NoteKind::Reconciles { role, files } => {
            format!("{} resolves conflicts in {}", titled(role), counted((*files).into(), "file"))
        }
        NoteKind::Called { role, from } => format!("{} asks for {}", titled(from), titled(role)),
        NoteKind::Resumes { role } => format!("{} is to go on", titled(role)),
        NoteKind::WardNext => "the ward is next".into(),
        NoteKind::MergeNext => "to be merged".into(),
        NoteKind::Begun { role, agent } => format!("{} begins: {agent}", titled(role)),
        NoteKind::Resumed { role, agent } => format!("{} goes on: {agent}", titled(role)),
        NoteKind::Forked { parent, agent } => format!("{parent} forks {agent}"),
        NoteKind::Signalled { role, signal } => format!("{} signals {signal}", titled(role)),
        NoteKind::SignalRefused { role, why } => format!("a signal of the {} was refused: {why}", titled(role)),
        NoteKind::WardGreen => "the ward is green".into(),
        NoteKind::WardRed { findings } => format!("the ward is red: {}", counted((*findings).into(), "finding")),
        NoteKind::WardConflict { files } => {
            format!("the ward was not run: conflicts in {}", counted((*files).into(), "file"))
        }
        NoteKind::WardRestored { files } => {
            format!("the ward had changed or deleted files, which were restored: {}", files.join(", "))
        }
        NoteKind::WardBroken { why } => format!("the ward is broken: {why}"),
        NoteKind::Merged { without } if without.is_empty() => "merged".into(),
        NoteKind::Merged { without } => format!("merged, without by-products: {}", without.join(", ")),
        NoteKind::NothingToMerge => "nothing to merge".into(),
        NoteKind::MergeConflict { files } => format!("conflicts in {}", counted((*files).into(), "file")),
        NoteKind::MergeBroken { why } => format!("could not be merged: {why}"),
        NoteKind::Asks => "asks the human".into(),
        NoteKind::Parked { role } => format!("{} is parked", titled(role)),
        NoteKind::Failed { why } => format!("failed: {why}"),
        NoteKind::Completed => "complete".into(),
    }
}
