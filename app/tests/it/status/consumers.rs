//! The programs that the files are made for: a status line and a viewer that read the document as the protocol defines it. Each field has
//! exactly the type that they expect, at every moment of a quest.

use crate::support::quest::{WARDED, done, step, text};
use crate::support::workshop::Workshop;
use hatchery::state_file::StatusFolder;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The document, as strict as a program in another language may be about it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    active_section: Option<String>,
    active_section_number: Option<String>,
    current_command: Option<String>,
    workflow_step: Option<String>,
    completed_steps: Option<Vec<String>>,
    next_step: Option<String>,
    scenario_score: Option<Score>,
    chunk_progress: Option<Progress>,
    spec_version: Option<String>,
    agent_outputs: Option<BTreeMap<String, Output>>,
    build_run: Option<Run>,
    build_events: Option<Vec<BuildEvent>>,
    experience_question: Option<String>,
    context_state: Option<ContextState>,
    last_updated: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContextState {
    usage: Option<f64>,
    isolation_mode: String,
    last_checkpoint: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Score {
    satisfied: u64,
    total: u64,
}

#[derive(Debug, Deserialize)]
struct Progress {
    current: u64,
    total: u64,
    chunks: Vec<ProgressChunk>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressChunk {
    id: u64,
    name: String,
    status: String,
    sections: Option<Vec<String>>,
    scenarios: Option<Vec<String>>,
    completed_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Output {
    summary: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    run_id: String,
    status: String,
    started_at: String,
    plan: Plan,
    chunks: Vec<Chunk>,
    convergence_phase: String,
    last_checkpoint: Option<String>,
    pending_question: Option<PendingQuestion>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PendingQuestion {
    text: String,
    timestamp: String,
    blocked_chunks: Vec<u64>,
    section_context: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plan {
    total_chunks: u64,
    priorities: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    id: u64,
    name: String,
    status: String,
    sections: Vec<String>,
    scenarios: Vec<String>,
    depends_on: Vec<u64>,
    attempt: Option<u64>,
    completed_at: Option<String>,
    failed_at: Option<String>,
    creates: Option<Vec<String>>,
    modifies: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BuildEvent {
    id: String,
    kind: String,
    timestamp: String,
    summary: String,
    chunk: String,
    reason: Option<String>,
    attempt: Option<u64>,
    failed: Option<Vec<String>>,
    isolation_mode: Option<String>,
}

const STEPS: [&str; 8] = [
    "state-owner-scan",
    "interviewer",
    "researcher",
    "visual-translator",
    "scenario-crafter",
    "spec-writer",
    "executor-plan",
    "executor-build",
];

/// What must be so in every version of the file.
fn check(state: &State) {
    if let Some(Score { satisfied, total }) = state.scenario_score {
        assert!(satisfied <= total, "{state:?}");
    }
    if let Some(progress) = &state.chunk_progress {
        assert!(progress.current <= progress.total && progress.total > 0, "{state:?}");
        assert_eq!(progress.chunks.len() as u64, progress.total, "{state:?}");
        for (chunk, number) in progress.chunks.iter().zip(1..) {
            assert!(chunk.id == number && is_status(&chunk.status) && !chunk.name.is_empty(), "{chunk:?}");
            assert_eq!(chunk.completed_at.is_some(), chunk.status == "completed", "{chunk:?}");
            assert!(chunk.scenarios.iter().chain(&chunk.sections).all(|list| !list.is_empty()), "{chunk:?}");
        }
    }
    assert!(state.workflow_step.as_deref().is_none_or(|step| STEPS.contains(&step)), "{state:?}");
    assert!(state.active_section.as_deref().is_none_or(|alias| alias.starts_with('#')), "{state:?}");
    assert!(state.active_section.is_some() || state.active_section_number.is_none(), "{state:?}");
    if let Some(run) = &state.build_run {
        assert!(run.run_id.strip_prefix("run-").is_some_and(|time| time.parse::<u64>().is_ok()), "{run:?}");
        assert!(["running", "paused", "partial", "completed"].contains(&run.status.as_str()), "{run:?}");
        assert_eq!(run.plan.total_chunks, run.chunks.len() as u64);
        assert!(run.plan.priorities.is_empty() && !run.convergence_phase.is_empty());
        for (chunk, number) in run.chunks.iter().zip(1..) {
            assert!(chunk.id == number && is_status(&chunk.status) && !chunk.name.is_empty(), "{chunk:?}");
            assert!(chunk.depends_on.iter().all(|need| (1..=run.plan.total_chunks).contains(need)), "{chunk:?}");
            let works = ["active", "retrying"].contains(&chunk.status.as_str());
            assert_eq!(chunk.attempt.is_some(), works, "{chunk:?}");
            assert_eq!(chunk.completed_at.is_some(), chunk.status == "completed", "{chunk:?}");
            assert_eq!(chunk.failed_at.is_some(), chunk.status == "failed", "{chunk:?}");
            assert!(chunk.sections.iter().all(|alias| alias.starts_with('#')) && chunk.scenarios.is_empty());
            assert!(chunk.creates.iter().chain(&chunk.modifies).all(|files| !files.is_empty()), "{chunk:?}");
        }
        for at in [Some(&run.started_at), run.last_checkpoint.as_ref()].into_iter().flatten() {
            assert!(is_time(at), "{at}");
        }
        if let Some(question) = &run.pending_question {
            assert!(
                run.status == "paused" && !question.text.is_empty() && is_time(&question.timestamp),
                "{question:?}"
            );
            assert!(question.blocked_chunks.iter().all(|it| (1..=run.plan.total_chunks).contains(it)), "{question:?}");
            assert!(question.section_context.iter().all(|it| it.starts_with('#')), "{question:?}");
        }
    }
    let events = state.build_events.as_deref().unwrap_or_default();
    let ids: BTreeSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids.len(), events.len(), "each event is there once");
    assert!(events.windows(2).all(|pair| pair[0].timestamp <= pair[1].timestamp), "in order: {events:?}");
    assert!(events.iter().all(|event| !event.kind.is_empty() && !event.summary.is_empty() && !event.chunk.is_empty()));
    for event in events {
        let again = event.kind == "chunk-retrying";
        assert_eq!((event.attempt.is_some(), event.reason.is_some()), (again, again), "{event:?}");
        assert_eq!(event.failed.is_some(), event.kind == "verification-failed", "{event:?}");
        assert_eq!(event.isolation_mode.is_some(), event.kind == "context-boundary", "{event:?}");
    }
    let asked = state.build_run.as_ref().and_then(|run| run.pending_question.as_ref());
    assert_eq!(state.experience_question.as_ref(), asked.map(|question| &question.text));
    assert_eq!(state.context_state.is_some(), state.build_run.is_some() || !events.is_empty(), "{state:?}");
    if let Some(context) = &state.context_state {
        let boundary = events.iter().rev().find_map(|event| event.isolation_mode.as_deref());
        assert_eq!(context.isolation_mode, boundary.unwrap_or("standard"));
        let at_run = state.build_run.as_ref().and_then(|run| run.last_checkpoint.as_ref());
        assert_eq!(context.last_checkpoint.as_ref(), at_run, "{state:?}");
        assert!(context.usage.is_none());
    }
    assert!(state.agent_outputs.iter().flatten().all(|(_, output)| !output.summary.is_empty()));
    assert!(is_time(&state.last_updated));
    assert!(state.current_command.is_none() && state.completed_steps.is_none() && state.spec_version.is_none());
    assert!(state.next_step.as_deref().is_none_or(|next| !next.contains('\n')));
}

fn is_status(word: &str) -> bool {
    ["planned", "active", "retrying", "completed", "failed"].contains(&word)
}

fn is_time(text: &str) -> bool {
    text.len() == "2026-02-17T04:00:00.000Z".len() && text.ends_with('Z') && text.as_bytes()[10] == b'T'
}

#[test]
fn every_version_of_the_file_is_what_its_readers_expect() {
    let shop = Workshop::with(WARDED, Vec::new());
    let folder = StatusFolder::of(shop.grounds.path());
    fs::create_dir_all(folder.path()).unwrap();
    let mark = shop.grounds.path().join("mended");
    // The ward of the first step is red once.
    let ward = format!("test -e '{0}' || {{ touch '{0}'; exit 1; }}", mark.display());
    let book = shop
        .playbook()
        .play("a.codeweaver", &[text("begins"), done("laid the stones")])
        .play("a.spiritmender", &[done("mended")])
        .play("b.codeweaver", &[done("built the deck")])
        .play("c.codeweaver", &[done("painted it")]);
    let steps = [step("a", &[]), step("b", &["a"]), step("c", &["b"])];
    shop.new_quest(&book, json!({ "steps": steps, "ward": ward }));
    let mut versions: BTreeSet<String> = BTreeSet::new();
    let mut told: Vec<BuildEvent> = Vec::new();
    let mut is_over = false;
    while !is_over {
        is_over = shop.events().iter().any(|event| event["type"] == "quest_completed");
        if let Ok(text) = fs::read_to_string(folder.state_file())
            && versions.insert(text.clone())
        {
            let state: State = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            check(&state);
            // A viewer counts the events that it has shown, so new ones may only come at the end.
            let events = state.build_events.unwrap_or_default();
            assert_eq!(events[..told.len()], told, "what was told stays");
            told = events;
        }
        assert!(shop.grounds.run(&["statusline"]).good().lines().count() <= 2);
        let failed = |event: &Value| event["type"] == "step_failed";
        assert!(!shop.events().iter().any(failed), "{:#?}", shop.events());
    }
    assert!(versions.len() > 3, "it was seen in {} versions", versions.len());
}
