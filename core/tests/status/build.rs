//! Build runs, build events and the health of the context.

use super::{NOW, at, document, json};
use hatchery_core::build_event::{BuildEvent, ContextHealth, MAX_EVENTS_IN_DOCUMENT};
use hatchery_core::build_run::{self, BuildError, BuildRun, ChangedChunks, ChunkState, Move, ResumeTerms, RunStatus};
use hatchery_core::status::StatusDocument;
use hatchery_core::status::view::ChunkProgress;
use std::collections::BTreeMap;

const PLAN: &str = r##"{"specVersion":"2.4","priorities":["speed"],"convergencePhase":"viewer","chunks":[
    {"name":"one","sections":["#a"],"ours":{"kept":true}},{"name":"two","dependsOn":[1]},{"name":"three"}]}"##;

fn planned() -> StatusDocument {
    let mut document = document(r#"{"unknown":1}"#);
    build_run::approve(&mut document, &json(PLAN), "run-1", false, NOW).unwrap();
    document
}

/// Nothing is known of the sections of the spec.
fn none() -> BTreeMap<String, String> {
    BTreeMap::new()
}

fn run(document: &StatusDocument) -> BuildRun {
    BuildRun::read(document).unwrap()
}

#[test]
fn an_approved_plan_becomes_a_run() {
    let document = planned();
    let run = run(&document);
    assert_eq!((run.status, run.chunks.len(), run.spec_version.as_deref()), (RunStatus::Running, 3, Some("2.4")));
    assert_eq!(at(&document, "buildRun.plan"), r#"{"totalChunks":3,"priorities":["speed"],"specVersion":"2.4"}"#);
    assert_eq!(at(&document, "buildRun.chunks[0].ours.kept"), "true");
    assert_eq!(at(&document, "unknown"), "1");
    let progress = ChunkProgress::Chunks { completed: 0, active: 0, failed: 0, total: 3, retry: None };
    assert_eq!(document.chunk_progress(), Some(progress));
}

#[test]
fn plans_that_cannot_be_worked_off_are_refused() {
    for plan in [
        "[]",
        "{}",
        r#"{"chunks":[]}"#,
        r#"{"chunks":[1]}"#,
        r#"{"chunks":[{"name":" "}]}"#,
        r#"{"chunks":[{"name":"a","dependsOn":[2]}]}"#,
        r#"{"chunks":[{"name":"a","dependsOn":[1]}]}"#,
        r#"{"chunks":[{"name":"a","dependsOn":[2]},{"name":"b","dependsOn":[1]}]}"#,
        r#"{"chunks":[{"name":"a","sections":"x"}]}"#,
        r#"{"chunks":[{"name":"a","sections":[1]}]}"#,
        r#"{"chunks":[{"name":"a","scenarios":[null]}]}"#,
        r#"{"chunks":[{"name":"a"},{"name":"b","dependsOn":["1"]}]}"#,
        r#"{"chunks":[{"name":"a"}],"priorities":"speed"}"#,
        r#"{"chunks":[{"name":"a"}],"priorities":[{}]}"#,
        r#"{"chunks":[{"name":"a"}],"prioritySource":7}"#,
        r#"{"chunks":[{"name":"a"}],"specVersion":2.4}"#,
        r#"{"chunks":[{"name":"a"}],"convergencePhase":[]}"#,
    ] {
        let mut document = StatusDocument::default();
        let refused = build_run::approve(&mut document, &json(plan), "run-1", false, NOW);
        assert!(matches!(refused, Err(BuildError::BadPlan { .. })), "{plan}: {refused:?}");
        assert_eq!(document, StatusDocument::default());
    }
}

#[test]
fn an_unfinished_run_is_not_replaced_by_accident() {
    let mut document = planned();
    let refused = build_run::approve(&mut document, &json(PLAN), "run-2", false, NOW);
    assert_eq!(refused, Err(BuildError::Unfinished { run: "run-1".into() }));
    build_run::approve(&mut document, &json(PLAN), "run-2", true, NOW).unwrap();
    assert_eq!(run(&document).id, "run-2");
}

#[test]
fn every_move_is_legal_in_its_states_only() {
    let states = [
        ChunkState::Planned { attempts: 0 },
        ChunkState::Active { attempt: 1 },
        ChunkState::Retrying { attempt: 2 },
        ChunkState::Completed,
        ChunkState::Failed { attempts: 3 },
    ];
    let names = |action: Move| states.map(|state| state.after(action).map_or("-", ChunkState::name)).join(" ");
    assert_eq!(names(Move::Start), "active - - - -");
    assert_eq!(names(Move::Retry), "- retrying retrying - retrying");
    assert_eq!(names(Move::Complete), "- completed completed - -");
    assert_eq!(names(Move::Fail), "- failed failed - -");
    assert_eq!(names(Move::Rebuild), "- planned planned planned planned");
    assert_eq!(ChunkState::Failed { attempts: 3 }.after(Move::Retry), Some(ChunkState::Retrying { attempt: 4 }));
}

#[test]
fn chunks_move_on_and_the_run_with_them() {
    let mut document = planned();
    let mut go = |id, action| build_run::move_chunk(&mut document, id, action, &none(), NOW);
    assert_eq!(go(2, Move::Start), Err(BuildError::Waits { chunk: 2, open: vec![1] }));
    assert_eq!(go(9, Move::Start), Err(BuildError::NoSuchChunk { chunk: 9 }));
    assert_eq!(go(1, Move::Start), Ok(ChunkState::Active { attempt: 1 }));
    let untimely = go(1, Move::Start).unwrap_err();
    assert_eq!(untimely.to_string(), "chunk 1 is active, so it cannot start");
    go(1, Move::Retry).unwrap();
    go(1, Move::Complete).unwrap();
    go(2, Move::Start).unwrap();
    go(3, Move::Start).unwrap();
    go(3, Move::Fail).unwrap();
    assert_eq!(run(&document).status, RunStatus::Running);
    assert_eq!(at(&document, "buildRun.chunks[0].specVersionAtBuild"), "\"2.4\"");
    assert_eq!(at(&document, "buildRun.chunks[0].ours.kept"), "true");
    assert_eq!(at(&document, "buildRun.lastCheckpoint"), format!("\"{NOW}\""));
    let progress = ChunkProgress::Chunks { completed: 1, active: 1, failed: 1, total: 3, retry: None };
    assert_eq!(document.chunk_progress(), Some(progress));
    build_run::move_chunk(&mut document, 2, Move::Complete, &none(), NOW).unwrap();
    assert_eq!(run(&document).status, RunStatus::Partial);
    build_run::move_chunk(&mut document, 3, Move::Retry, &none(), NOW).unwrap();
    assert_eq!(run(&document).status, RunStatus::Running);
    build_run::move_chunk(&mut document, 3, Move::Complete, &none(), NOW).unwrap();
    assert_eq!(BuildRun::read(&document), None, "a run that is completed is cleared");
    assert_eq!(at(&document, "buildRun"), "null");
    assert_eq!(document.chunk_progress(), None, "and so is its progress");
}

#[test]
fn a_resumed_run_knows_what_is_done_and_what_is_out_of_date() {
    let mut document = planned();
    for (id, action) in [(1, Move::Start), (1, Move::Complete), (2, Move::Start)] {
        build_run::move_chunk(&mut document, id, action, &none(), NOW).unwrap();
    }
    let mut newer = document.clone();
    newer.set("specVersion", "2.5");
    let undecided = ResumeTerms { rebuild: &[], changed: None, sections: &none() };
    let refused = build_run::resume(&mut newer, &undecided, NOW);
    assert_eq!(refused, Err(BuildError::Outdated { chunks: vec![1] }));
    let decided = ResumeTerms { changed: Some(ChangedChunks::Rebuild), ..undecided };
    build_run::resume(&mut newer, &decided, NOW).unwrap();
    assert_eq!(run(&newer).chunk(1).unwrap().state, ChunkState::Planned { attempts: 0 });
    let shown = run(&document).resume(Some("2.4"), &none()).unwrap();
    assert_eq!((shown.done, shown.remaining, shown.ready), (vec![1], vec![2, 3], vec![2, 3]));
    assert!(shown.outdated.is_empty());
    assert_eq!(run(&document).resume(Some("2.5"), &none()).unwrap().outdated, [1]);
    // The session died in the middle of chunk 2. Chunk 1 is kept.
    let mut kept = document.clone();
    let sections = none();
    let terms = |rebuild| ResumeTerms { rebuild, changed: None, sections: &sections };
    build_run::resume(&mut kept, &terms(&[]), NOW).unwrap();
    assert_eq!(run(&kept).chunk(2).unwrap().state, ChunkState::Planned { attempts: 1 });
    assert_eq!(build_run::move_chunk(&mut kept, 2, Move::Start, &none(), NOW), Ok(ChunkState::Active { attempt: 2 }));
    // Chunk 1 is built again, so chunk 2 waits for it.
    build_run::resume(&mut document, &terms(&[1]), NOW).unwrap();
    let rebuilt = run(&document).resume(Some("2.4"), &none()).unwrap();
    assert_eq!((rebuilt.done, rebuilt.ready), (vec![], vec![1, 3]));
    assert_eq!(build_run::resume(&mut document, &terms(&[7]), NOW), Err(BuildError::NoSuchChunk { chunk: 7 }));
}

/// `attempt` is there only while a chunk is worked on, and a checkpoint is a completed chunk.
#[test]
fn a_chunk_has_an_attempt_while_it_is_worked_on() {
    let mut document = planned();
    let mut go = |action, now: &str| {
        build_run::move_chunk(&mut document, 1, action, &none(), now).unwrap();
        (at(&document, "buildRun.chunks[0].attempt"), at(&document, "buildRun.lastCheckpoint"))
    };
    let shown = |attempt: &str, checkpoint: &str| (attempt.to_owned(), checkpoint.to_owned());
    assert_eq!(go(Move::Start, NOW), shown("1", "null"));
    assert_eq!(go(Move::Fail, NOW), shown("null", "null"));
    assert_eq!(go(Move::Retry, NOW), shown("2", "null"), "the attempts are counted all the same");
    assert_eq!(go(Move::Complete, NOW), shown("null", &format!("\"{NOW}\"")));
    assert_eq!(go(Move::Rebuild, NOW).0, "null");
    assert_eq!(go(Move::Start, NOW).0, "1");
}

#[test]
fn a_paused_run_stays_paused_until_it_is_resumed() {
    let mut document = planned();
    build_run::move_chunk(&mut document, 1, Move::Start, &none(), NOW).unwrap();
    build_run::pause(&mut document).unwrap();
    let refused = build_run::move_chunk(&mut document, 3, Move::Start, &none(), NOW);
    assert_eq!(refused, Err(BuildError::Paused { run: "run-1".into() }));
    build_run::move_chunk(&mut document, 1, Move::Complete, &none(), NOW).expect("it was in work");
    assert_eq!(run(&document).status, RunStatus::Paused);
    build_run::resume(&mut document, &ResumeTerms { rebuild: &[], changed: None, sections: &none() }, NOW).unwrap();
    assert_eq!(run(&document).status, RunStatus::Running);
}

#[test]
fn a_completed_run_is_not_paused() {
    let mut document = document(r#"{"buildRun":{"runId":"r","status":"completed","chunks":[{"status":"completed"}]}}"#);
    let before = document.clone();
    assert_eq!(build_run::pause(&mut document), Err(BuildError::Over { run: "r".into() }));
    assert_eq!(document, before);
}

#[test]
fn a_strange_run_is_read_as_far_as_it_goes() {
    let strange = document(
        r#"{"buildRun":{"status":"whatever","chunks":[null,{"status":7,"name":null},{"id":5,"status":"completed"}]}}"#,
    );
    let run = run(&strange);
    assert_eq!(run.status, RunStatus::Running);
    assert_eq!(
        run.chunks.iter().map(|chunk| (chunk.id, chunk.state.name())).collect::<Vec<_>>(),
        [(1, "planned"), (5, "completed")]
    );
    let mut moved = strange.clone();
    build_run::move_chunk(&mut moved, 1, Move::Start, &none(), NOW).unwrap();
    assert_eq!(at(&moved, "buildRun.chunks[0]"), "null", "what makes no sense is left alone");
    assert_eq!(at(&moved, "buildRun.chunks[1].status"), "\"active\"");
    assert_eq!(BuildRun::read(&document(r#"{"buildRun":null}"#)), None);
}

fn event(text: &str) -> Result<BuildEvent, hatchery_core::build_event::EventError> {
    BuildEvent::check(&json(text), "event-1", NOW)
}

#[test]
fn events_get_an_id_and_a_time_and_count_once() {
    let mut document = planned();
    let verified = event(r#"{"kind":"chunk-verified","chunk":"Chunk 3","mode":"full","checks":[{"name":"a","result":"pass","retried":true}],"extra":1}"#).unwrap();
    assert!(verified.record(&mut document));
    assert!(!verified.record(&mut document), "the same id counts once");
    assert_eq!(at(&document, "buildEvents[0].extra"), "1");
    assert_eq!(at(&document, "buildEvents[0].timestamp"), format!("\"{NOW}\""));
    assert_eq!(at(&document, "buildEvents[1]"), "null");
}

#[test]
fn bad_events_are_refused_with_the_field() {
    for (text, part) in [
        ("[]", "must be an object"),
        ("{}", "needs a `kind`"),
        (r#"{"kind":7}"#, "needs a `kind`"),
        (r#"{"kind":"a b"}"#, "needs a `kind`"),
        (r#"{"kind":"chunk-verified","mode":"most"}"#, "`mode`"),
        (r#"{"kind":"chunk-verified","checks":{}}"#, "`checks`"),
        (r#"{"kind":"verification-failed","checks":[{"name":"a","result":"maybe"}]}"#, "`pass` or `fail`"),
        (r#"{"kind":"x","summary":5}"#, "`summary`"),
        (r#"{"kind":"x","id":""}"#, "`id`"),
    ] {
        let refused = event(text).unwrap_err().to_string();
        assert!(refused.contains(part), "{text}: {refused}");
    }
    event(r#"{"kind":"something-new","chunk":3}"#).unwrap();
}

#[test]
fn the_document_keeps_the_newest_events() {
    let mut document = StatusDocument::default();
    for number in 0..MAX_EVENTS_IN_DOCUMENT + 5 {
        let one = BuildEvent::check(&json(r#"{"kind":"x"}"#), &format!("e{number}"), NOW).unwrap();
        assert!(one.record(&mut document));
    }
    assert_eq!(at(&document, "buildEvents[0].id"), "\"e5\"");
    assert_eq!(at(&document, &format!("buildEvents[{}].id", MAX_EVENTS_IN_DOCUMENT - 1)), "\"e1004\"");
}

#[test]
fn the_health_of_the_context_has_three_fields() {
    let mut document = planned();
    let nothing = ContextHealth { isolation_mode: "standard".into(), usage: None, last_checkpoint: None };
    assert_eq!(ContextHealth::of(&document, None), nothing);
    build_run::move_chunk(&mut document, 1, Move::Start, &none(), NOW).unwrap();
    build_run::move_chunk(&mut document, 1, Move::Complete, &none(), NOW).unwrap();
    assert_eq!(ContextHealth::of(&document, Some(40)).last_checkpoint.as_deref(), Some(NOW));
    let tell = |document: &mut StatusDocument, id: &str, text: &str| {
        assert!(BuildEvent::check(&json(text), id, NOW).unwrap().record(document));
    };
    tell(&mut document, "1", r#"{"kind":"context-boundary","summary":"Chunk 2, subagent"}"#);
    tell(&mut document, "2", r#"{"kind":"context-boundary","isolationMode":"fresh session"}"#);
    tell(&mut document, "3", r#"{"kind":"context-checkpointed","timestamp":"2026-02-18T00:00:00Z"}"#);
    let health = ContextHealth::of(&document, Some(40));
    assert_eq!((health.isolation_mode.as_str(), health.usage), ("fresh session", Some(40)));
    assert_eq!(health.last_checkpoint.as_deref(), Some("2026-02-18T00:00:00Z"));
    assert_eq!(at(&document, "buildRun.lastCheckpoint"), "\"2026-02-18T00:00:00Z\"");
}

#[test]
fn a_chunk_is_outdated_when_one_of_its_sections_has_changed() {
    let mut document = StatusDocument::default();
    let plan = r##"{"specVersion":"1","chunks":[{"name":"a","sections":["#flow"]},{"name":"b","sections":["#rules"]},{"name":"c"}]}"##;
    build_run::approve(&mut document, &plan.parse().unwrap(), "run-1", false, NOW).unwrap();
    let sections = |flow: &str| -> BTreeMap<String, String> {
        [("#flow", flow), ("#rules", "r1")].map(|(alias, mark)| (alias.to_owned(), mark.to_owned())).into()
    };
    for chunk in 1..=2 {
        build_run::move_chunk(&mut document, chunk, Move::Start, &none(), NOW).unwrap();
        build_run::move_chunk(&mut document, chunk, Move::Complete, &sections("f1"), NOW).unwrap();
    }
    let outdated =
        |version: &str, now: &BTreeMap<String, String>| run(&document).resume(Some(version), now).unwrap().outdated;
    assert_eq!(outdated("2", &sections("f1")), [] as [u64; 0], "another version, but the same sections");
    assert_eq!(outdated("2", &sections("f2")), [1]);
    assert_eq!(outdated("1", &sections("f2")), [1], "a section may change without a new version");
    assert_eq!(outdated("2", &none()), [1, 2], "without the sections, the version has to do");
    let mut gone = sections("f1");
    gone.remove("#flow");
    assert_eq!(outdated("1", &gone), [1], "a section that is gone has changed");
}

#[test]
fn a_section_that_nobody_knows_hides_no_change_of_another() {
    let mut document = StatusDocument::default();
    let plan = r##"{"specVersion":"1","chunks":[{"name":"a","sections":["#flow","#misspelt"]},{"name":"b"}]}"##;
    build_run::approve(&mut document, &plan.parse().unwrap(), "run-1", false, NOW).unwrap();
    let sections = |mark: &str| BTreeMap::from([("#flow".to_owned(), mark.to_owned())]);
    build_run::move_chunk(&mut document, 1, Move::Start, &none(), NOW).unwrap();
    build_run::move_chunk(&mut document, 1, Move::Complete, &sections("f1"), NOW).unwrap();
    let outdated = |version, mark| run(&document).resume(Some(version), &sections(mark)).unwrap().outdated;
    assert_eq!(outdated("1", "f2"), [1]);
    assert_eq!(outdated("1", "f1"), [] as [u64; 0]);
    assert_eq!(outdated("2", "f1"), [1], "nobody knows whether the other one has changed");
}

#[test]
fn a_run_in_which_nothing_can_begin_is_partial() {
    let mut document = planned();
    let mut go = |id, action| build_run::move_chunk(&mut document, id, action, &none(), NOW).map(drop);
    go(3, Move::Start).unwrap();
    go(3, Move::Complete).unwrap();
    go(1, Move::Start).unwrap();
    go(1, Move::Fail).unwrap();
    assert_eq!(run(&document).status, RunStatus::Partial, "chunk 2 waits for chunk 1");
    build_run::move_chunk(&mut document, 1, Move::Retry, &none(), NOW).unwrap();
    assert_eq!(run(&document).status, RunStatus::Running);
}
