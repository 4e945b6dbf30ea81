//! The status protocol: its document, build runs, workflow, events and inbox.

#![allow(clippy::unwrap_used, reason = "a test and its support stop where something is not as it must be")]

mod build;
mod document;
mod inbox;
mod laws;
mod shape;
mod workflow;

use hatchery_core::status::{Json, Path, StatusDocument};

const NOW: &str = "2026-02-17T04:12:00.000Z";

fn document(text: &str) -> StatusDocument {
    StatusDocument::parse(text).unwrap()
}

fn at(document: &StatusDocument, path: &str) -> String {
    let path: Path = path.parse().unwrap();
    document.get(&path).map_or_else(|| "null".into(), |value| value.text().to_owned())
}

fn json(text: &str) -> Json {
    text.parse().unwrap()
}
