//! The plan of a build run. It is checked as a whole before the run begins.

use super::chunk::PAST;
use super::{BuildError, BuildRun, RunStatus, show_progress};
use crate::dag;
use crate::status::{Json, JsonKind, Object, StatusDocument, shape};
use serde_json::json;

/// The most chunks of a plan. No plan that a person approves has more.
pub const MAX_CHUNKS: usize = 1_000;

/// Begins a run with an approved plan. An unfinished run is replaced only if `fresh` is set.
pub fn approve(
    document: &mut StatusDocument,
    plan: &Json,
    run: &str,
    fresh: bool,
    now: &str,
) -> Result<(), BuildError> {
    if let Some(known) = BuildRun::read(document).filter(|run| run.status != RunStatus::Completed && !fresh) {
        return Err(BuildError::Unfinished { run: known.id });
    }
    let bad = |why: String| BuildError::BadPlan { why };
    let given = plan.object().ok_or_else(|| bad(format!("it is {}, not an object", plan.kind())))?;
    let listed = given.get("chunks").and_then(Json::list).ok_or_else(|| bad("it has no list `chunks`".into()))?;
    if listed.is_empty() || listed.len() > MAX_CHUNKS {
        return Err(bad(format!("it has {} chunks; it needs 1 to {MAX_CHUNKS}", listed.len())));
    }
    let mut chunks = Vec::with_capacity(listed.len());
    for (chunk, id) in listed.iter().zip(1_u64..) {
        let mut chunk = chunk.object().ok_or_else(|| bad(format!("chunk {id} is {}, not an object", chunk.kind())))?;
        if chunk.get("name").and_then(Json::words).is_none_or(|name| name.trim().is_empty()) {
            return Err(bad(format!("chunk {id} has no name")));
        }
        // A plan may be a copy of an older run, with the fields of its progress.
        for past in PAST {
            chunk.remove(past);
        }
        chunk.set("id", json!(id).into());
        chunk.set("status", "planned".into());
        for (list, kind) in
            [("sections", JsonKind::Text), ("scenarios", JsonKind::Text), ("dependsOn", JsonKind::Number)]
        {
            let known = list_of(&chunk, list, kind).map_err(|why| bad(format!("`{list}` of chunk {id} {why}")))?;
            chunk.set(list, known);
        }
        chunks.push(chunk.to_json());
    }
    check_order(&chunks).map_err(bad)?;
    let mut terms = Object::default();
    terms.set("totalChunks", json!(chunks.len()).into());
    let priorities = list_of(&given, "priorities", JsonKind::Text).map_err(|why| bad(format!("`priorities` {why}")))?;
    terms.set("priorities", priorities);
    for field in ["prioritySource", "specVersion"] {
        if let Some(value) = text_of(&given, field).map_err(bad)? {
            terms.set(field, value);
        }
    }
    if terms.get("specVersion").is_none()
        && let Some(version) = document.words("specVersion")
    {
        terms.set("specVersion", version.as_str().into());
    }
    let mut begun = Object::default();
    begun.set("runId", run.into());
    begun.set("status", RunStatus::Running.name().into());
    begun.set("startedAt", now.into());
    begun.set("plan", terms.to_json());
    begun.set("chunks", Json::of_list(&chunks));
    if let Some(phase) = text_of(&given, "convergencePhase").map_err(bad)? {
        begun.set("convergencePhase", phase);
    }
    let begun = begun.to_json();
    shape::check_build_run(&begun).map_err(|wrong| bad(wrong.to_string()))?;
    document.set("buildRun", begun);
    show_progress(document);
    Ok(())
}

/// A list of a plan, empty if it is missing. Readers do not check the items, so each must have the right type.
fn list_of(object: &Object, name: &str, kind: JsonKind) -> Result<Json, String> {
    let Some(value) = object.get(name) else { return Ok(json!([]).into()) };
    let items = value.list().ok_or_else(|| format!("is {}, not a list", value.kind()))?;
    match items.iter().find(|item| item.kind() != kind) {
        Some(odd) => Err(format!("has {} in it, and each item must be {kind}", odd.kind())),
        None => Ok(value.clone()),
    }
}

/// A text of a plan.
fn text_of(object: &Object, name: &str) -> Result<Option<Json>, String> {
    match object.get(name) {
        Some(value) if value.kind() != JsonKind::Text => Err(format!("`{name}` is {}, not a text", value.kind())),
        value => Ok(value.cloned()),
    }
}

/// Checks that dependencies name chunks of the plan, and that no chunk depends on itself, directly or through others.
fn check_order(chunks: &[Json]) -> Result<(), String> {
    let ids: Vec<String> = (1..=chunks.len()).map(|id| id.to_string()).collect();
    let needs = chunks.iter().map(|chunk| chunk.object().and_then(|chunk| chunk.get("dependsOn")?.list()));
    let needs: Vec<Vec<Json>> = needs.map(Option::unwrap_or_default).collect();
    let graph = ids.iter().zip(&needs).map(|(id, needs)| (id.as_str(), needs.iter().map(Json::text).collect()));
    dag::check(graph).map_err(|problem| problem.to_string())
}
