//! Every line that was ever released can still be read, and is still written in the same way.
//!
//! A change here that is not an addition means that logs in the field no longer say what they said.

use hatchery_core::event::{
    AgentEvent, BudgetEvent, MailEvent, MessageEvent, PermissionEvent, QuestEvent, QuestionEvent, RequestEvent,
    RunEvent, SeatEvent, SessionEvent, StatusEvent, StepEvent, write_wire,
};
use hatchery_core::harness::Capabilities;
use hatchery_core::{Event, EventId, MessageKind, Record, World};
use std::collections::BTreeSet;

const EVENTS_V1: &str = include_str!("golden/events-v1.jsonl");

/// Names all variants of each noun and tells one from another, so that a new one does not compile until it is listed, and a
/// listed one does not pass until the golden file has it. The fields are the optional ones: the file has a line with each of
/// them and a line without.
macro_rules! variants {
    ($($noun:ident { $($variant:ident { $($optional:ident)* })+ })+) => {
        const OPTIONAL: &[(&str, &[&str])] = &[
            $($((concat!(stringify!($noun), "::", stringify!($variant)), &[$(stringify!($optional)),*])),+),+
        ];

        trait Named {
            fn name(&self) -> &'static str;
        }

        $(impl Named for $noun {
            fn name(&self) -> &'static str {
                match self {
                    $($noun::$variant { .. } => concat!(stringify!($noun), "::", stringify!($variant)),)+
                }
            }
        })+
    };
}

variants! {
    MessageEvent {
        Added { to source_id }
    }
    BudgetEvent {
        Set { agent limit }
    }
    PermissionEvent {
        RuleAdded { agent }
        RuleRemoved { agent }
    }
    SessionEvent {
        Started { label idle_ms }
        Ending {}
        Ended {}
    }
    AgentEvent {
        Created { parent origin name provider model session hatch_by }
        ForkRequested {}
        ForkCancelled {}
        Hatched {}
        Expired {}
        Renamed { name }
        Slept {}
        Woken { session }
        Killed { by remark }
        Reparented {}
        HarnessSessionAdopted { folder }
        RunRequested {}
    }
    QuestionEvent {
        Asked {}
        Answered {}
        Withdrawn {}
    }
    RunEvent {
        Spawned { copy_of }
        Waiting {}
        Started { model tools }
        MessageHeard {}
        OutputNoted {}
        OutputTaken {}
        CallTaken { refused signal }
        PermissionDecided {}
        TurnStarted {}
        TurnEnded { metered }
        Metered { context }
        Silent {}
        Interrupted {}
        Stopping {}
        Parked { until }
        Crashed { forgotten }
        BudgetReached {}
        Resumed {}
        Ended {}
    }
    SeatEvent {
        Opened { pid demo model with_transcript with_catalog }
        Closing {}
        LeadNamed {}
        LeadAwaited {}
        Summoned { color gender }
        Registered { name color colorName gender faceVariant individuationArtifact }
        Filled {}
        Reported { by name }
        Waking { untold_upto order }
        Expired {}
        WakeExpired {}
        Imported { lastAliveAt lastSessionId }
        Addressed { position }
        Relayed {}
        SpokenFor {}
        MarkerRejected {}
        ArtifactWritten { is_new meta }
        ReplyTaken { position text }
    }
    QuestEvent {
        Created { budget }
        Paused {}
        Resumed {}
        Abandoned {}
        Completed {}
        BudgetSet { limit }
        WardChanged { limit_ms }
        WardRemoved {}
        RequirementsSet {}
        StepsPlanned { by summary needs_consent }
    }
    StepEvent {
        Queued { consented }
        Begun {}
        Forked {}
        ForkQueued {}
        SignalGiven {}
        WardBegun {}
        WardEnded {}
        MergeBegun {}
        MergeEnded {}
        Waits {}
        Parked { until }
        Failed {}
        Completed {}
        Dropped {}
    }
    StatusEvent {
        Edited { value append }
        BuildEventRecorded {}
        IdeaKept {}
        IdeaDismissed {}
    }
    RequestEvent {
        Taken {}
    }
    MailEvent {
        Sent {}
        Delivered {}
        Read {}
    }
}

fn variant(event: &Event) -> &'static str {
    match event {
        Event::Session { what, .. } => what.name(),
        Event::Agent { what, .. } => what.name(),
        Event::Message(what) => what.name(),
        Event::Mail(what) => what.name(),
        Event::Question { what, .. } => what.name(),
        Event::Budget(what) => what.name(),
        Event::Permission(what) => what.name(),
        Event::Run { what, .. } => what.name(),
        Event::Seat(what) => what.name(),
        Event::Quest { what, .. } => what.name(),
        Event::Step { what, .. } => what.name(),
        Event::Status(what) => what.name(),
        Event::Request(what) => what.name(),
    }
}

/// The lines, and what they say.
fn lines() -> impl Iterator<Item = (&'static str, Record)> {
    (1..).map(EventId).zip(EVENTS_V1.lines()).map(|(id, line)| {
        let record = Record::read(id, line).unwrap_or_else(|error| panic!("{error}: {line}"));
        (line, record)
    })
}

#[test]
fn every_released_line_is_still_written_as_it_was() {
    for (line, record) in lines() {
        let mut wire = Vec::new();
        write_wire(&mut wire, record.id, &record.body());
        assert_eq!(String::from_utf8(wire).unwrap(), line);
    }
}

#[test]
fn every_variant_has_its_line() {
    let found: BTreeSet<&str> = lines().map(|(_, record)| variant(&record.event)).collect();
    assert_eq!(found, OPTIONAL.iter().map(|(name, _)| *name).collect());
}

#[test]
fn every_optional_field_is_there_once_and_missing_once() {
    for (name, fields) in OPTIONAL {
        for field in *fields {
            let key = format!("\"{field}\":");
            let of_variant = || lines().filter(|(_, record)| variant(&record.event) == *name);
            assert!(of_variant().any(|(line, _)| line.contains(&key)), "{name} with {field}");
            assert!(of_variant().any(|(line, _)| !line.contains(&key)), "{name} without {field}");
        }
    }
}

#[test]
fn every_kind_of_message_has_its_line() {
    use MessageKind::*;
    let kinds = [
        Clear,
        System,
        User,
        Assistant,
        ToolCall,
        ToolResult,
        Mark,
        Rewind,
        AgentKilled,
        Command,
        Fork,
        Usage,
        Interrupted,
    ];
    for kind in kinds {
        let is_said =
            |event: &Event| matches!(event, Event::Message(MessageEvent::Added { kind: said, .. }) if *said == kind);
        assert!(lines().any(|(_, record)| is_said(&record.event)), "{kind:?}");
    }
}

/// Each word that a run can end with, for a cause or by an intent, and each thing that is noted of its output.
#[test]
fn every_word_about_a_run_has_its_line() {
    let causes = [
        "completed",
        "crashed",
        "stuck",
        "killed",
        "user_ended",
        "rate_limited",
        "overloaded",
        "out_of_credit",
        "unauthorised",
        "prompt_too_long",
        "lost_with_machine",
        "over_budget",
        "awaits_permission",
        "unavailable",
        "refused",
        "output_too_long",
        "wrong_model",
        "bad_arguments",
    ];
    let causes = causes.map(|word| format!(r#""cause":"{word}""#));
    let exits = [r#"{"code":"#, r#"{"signal":"#, r#""not_started""#, r#""lost_with_machine""#, r#""unknown""#];
    let exits = exits.map(|word| format!(r#""exit":{word}"#));
    let intents = [
        "user",
        "killed",
        "stuck",
        "session",
        "paused",
        "abandoned",
        "signalled",
        "awaits_permission",
        "over_budget",
        "step_over",
    ];
    let intents = intents.map(|word| format!(r#""{word}""#));
    let intents = intents.into_iter().chain([r#"{"not_ready":{"why":"#.to_owned()]);
    let intents: Vec<String> = intents.map(|word| format!(r#""why":{word}"#)).collect();
    let noted = [
        "declares",
        "model_chosen",
        "thinking",
        "note",
        "subagent",
        "retrying",
        "limit",
        "denied",
        "asked",
        "ask_cancelled",
        "answered",
        "compacted",
        "api_error",
        "unread",
    ];
    let noted = noted.map(|word| format!(r#""output":{{"type":"{word}""#));
    let choices = ["session_option", "session_model", "never"].map(|word| format!(r#""model_choice":"{word}"}}"#));
    for word in causes.iter().chain(&exits).chain(&intents).chain(&noted).chain(&choices) {
        assert!(EVENTS_V1.contains(word), "{word}");
    }
}

/// Each thing that a quest's events can say.
#[test]
fn every_word_about_a_quest_has_its_line() {
    let signals = ["complete", "partially-complete", "needs-user-input", "needs-role-followup"];
    let signals = signals.map(|word| format!(r#""signal":{{"{word}":{{"#));
    let briefs = [r#""begin""#, r#"{"continue":"#, r#"{"mend":"#, r#"{"reconcile":"#, r#"{"follow_up":"#];
    let briefs = briefs.map(|word| format!(r#""brief":{word}"#));
    let next = [r#"{"begin":"#, r#"{"resume":"#, r#""ward""#, r#""merge""#].map(|word| format!(r#""next":{word}"#));
    let verdicts = [r#""green""#, r#"{"red":"#, r#"{"broken":"#].map(|word| format!(r#""verdict":{word}"#));
    let merges =
        [r#""merged""#, r#""empty""#, r#"{"conflict":"#, r#"{"broken":"#].map(|word| format!(r#""merge":{word}"#));
    let isolations = [r#""none""#, r#"{"worktree":"#].map(|word| format!(r#""isolation":{word}"#));
    let troubles = ["input", "circle", "ended", "ward", "merge", "approval"];
    let troubles = troubles.map(|word| format!(r#""trouble":"{word}""#));
    let words = [&signals[..], &briefs, &next, &verdicts, &merges, &isolations, &troubles].concat();
    let others = [r#""about":{"quest_budget":"#, r#""callers":[{"#, r#""signals":true"#].map(str::to_owned);
    for word in words.iter().chain(&others) {
        assert!(EVENTS_V1.contains(word), "{word}");
    }
}

/// Lines from the time when a harness did not declare what it can do.
#[test]
fn a_spawn_without_capabilities_has_all_of_them() {
    let line = r#"{"type":"run_spawned","process":{"pid":7,"began":1}}"#;
    let RunEvent::Spawned { capabilities, .. } = serde_json::from_str(line).unwrap() else { panic!("{line}") };
    assert_eq!(capabilities, Capabilities::ALL);
}

#[test]
fn the_released_lines_are_a_log_that_can_be_lived_through() {
    let mut world = World::default();
    for (line, record) in lines() {
        world.apply(&record).unwrap_or_else(|impossible| panic!("{impossible}: {line}"));
    }
    assert_eq!(world.head().0, EVENTS_V1.lines().count() as u64);
}
