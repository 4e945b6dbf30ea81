//! A status document as a reader sees it. A field that is missing, `null` or of an unexpected type counts as absent. Numbers that make no
//! sense are shown unchanged or left out; nothing is computed from them.

use super::{Json, StatusDocument};
use crate::json::Fields;

/// A part of a whole, for example completed steps. `done` may exceed `total` if the writer says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub done: u64,
    pub total: u64,
}

/// The progress of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkProgress {
    /// The short form: the number of the current chunk, and how many chunks there are.
    Current(Share),
    /// The long form, from the states of all chunks.
    Chunks { completed: u64, active: u64, failed: u64, total: u64, retry: Option<u64> },
}

/// The section that is being worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub alias: String,
    pub number: Option<String>,
}

/// The states in which a section counts as ready. They come from different versions.
const READY: [&str; 4] = ["aligned", "ready-to-execute", "satisfied", "deferred"];

impl StatusDocument {
    /// A field that is a string and not empty.
    pub fn words(&self, name: &str) -> Option<String> {
        self.field(name).and_then(Json::words).filter(|words| !words.trim().is_empty())
    }

    pub fn scenario_score(&self) -> Option<Share> {
        let score = fields(self.field("scenarioScore"))?;
        Some(Share { done: score.count("satisfied").unwrap_or(0), total: score.count("total")? })
            .filter(|score| score.total > 0)
    }

    pub fn chunk_progress(&self) -> Option<ChunkProgress> {
        let progress = fields(self.field("chunkProgress"))?;
        let total: u64 = progress.count("total").filter(|total| *total > 0)?;
        let chunks = progress.objects("chunks");
        if chunks.is_empty() {
            return Some(ChunkProgress::Current(Share { done: progress.count("current")?, total }));
        }
        let status = |chunk: &Fields<'_>| chunk.text("status").unwrap_or_default();
        let with = |wanted: &str| chunks.iter().filter(|chunk| status(chunk) == wanted).count() as u64;
        let retry =
            chunks.iter().filter(|chunk| status(chunk) == "retrying").filter_map(|chunk| chunk.count("attempt"));
        Some(ChunkProgress::Chunks {
            completed: with("completed"),
            active: with("active") + with("retrying"),
            failed: with("failed"),
            total,
            retry: retry.max(),
        })
    }

    /// How many sections are ready, of those that were assessed.
    pub fn readiness(&self) -> Option<Share> {
        let summary = self.field("readinessSummary")?.object()?;
        let counts: Vec<(&str, u64)> =
            summary.iter().filter_map(|(name, count)| Some((name, count.text().parse().ok()?))).collect();
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0_u64, u64::saturating_add);
        let done = sum(&mut counts.iter().filter(|(name, _)| READY.contains(name)).map(|(_, count)| *count));
        let total = sum(&mut counts.iter().map(|(_, count)| *count));
        (total > 0).then_some(Share { done, total })
    }

    pub fn scan_progress(&self) -> Option<Share> {
        let progress = fields(self.field("scanProgress"))?;
        Some(Share { done: progress.count("scanned")?, total: progress.count("total")? })
            .filter(|progress| progress.total > 0)
    }

    pub fn untracked_changes(&self) -> usize {
        self.field("untrackedChanges").and_then(Json::list).map_or(0, |changes| changes.len())
    }

    pub fn active_section(&self) -> Option<Section> {
        Some(Section { alias: self.words("activeSection")?, number: self.words("activeSectionNumber") })
    }

    /// The strings in a list. Other items are left out.
    pub fn names(&self, field: &str) -> Vec<String> {
        let items = self.field(field).and_then(Json::list).unwrap_or_default();
        items.iter().filter_map(Json::words).collect()
    }
}

/// The fields of an object, for reading.
pub(crate) fn fields(json: Option<&Json>) -> Option<Fields<'_>> {
    json.and_then(|json| Fields::of(json.raw()))
}
