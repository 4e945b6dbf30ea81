//! What happened to a step, as data and in words.

use crate::amounts::counted;
use hatchery_core::Timestamp;
use hatchery_core::quest::{Note, NoteKind};
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
        NoteKind::RoleNext { role } => format!("{role} is next"),
        NoteKind::Continues { role } => format!("a fresh {role} goes on"),
        NoteKind::Mends { role, findings } => format!("{role} mends {}", counted((*findings).into(), "finding")),
        NoteKind::Reconciles { role, files } => {
            format!("{role} resolves conflicts in {}", counted((*files).into(), "file"))
        }
        NoteKind::Called { role, from } => format!("{from} asks for {role}"),
        NoteKind::Resumes { role } => format!("{role} is to go on"),
        NoteKind::WardNext => "the ward is next".into(),
        NoteKind::MergeNext => "to be merged".into(),
        NoteKind::Begun { role, agent } => format!("{role} begins ({agent})"),
        NoteKind::Resumed { role, agent } => format!("{role} goes on ({agent})"),
        NoteKind::Forked { parent, agent } => format!("{parent} forks {agent}"),
        NoteKind::Signalled { role, signal } => format!("{role} signals {signal}"),
        NoteKind::SignalRefused { role, why } => format!("a signal of the {role} was refused: {why}"),
        NoteKind::WardGreen => "the ward is green".into(),
        NoteKind::WardRed { findings } => format!("the ward is red: {}", counted((*findings).into(), "finding")),
        NoteKind::WardConflict { files } => {
            format!("the ward was not run: conflicts in {}", counted((*files).into(), "file"))
        }
        NoteKind::WardBroken { why } => format!("the ward is broken: {why}"),
        NoteKind::Merged { without } if without.is_empty() => "merged".into(),
        NoteKind::Merged { without } => format!("merged, without by-products: {}", without.join(", ")),
        NoteKind::NothingToMerge => "nothing to merge".into(),
        NoteKind::MergeConflict { files } => format!("conflicts in {}", counted((*files).into(), "file")),
        NoteKind::MergeBroken { why } => format!("could not be merged: {why}"),
        NoteKind::Asks => "asks the human".into(),
        NoteKind::Parked { role } => format!("{role} is parked"),
        NoteKind::Failed { why } => format!("failed: {why}"),
        NoteKind::Completed => "complete".into(),
    }
}
