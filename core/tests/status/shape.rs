//! What the protocol's own fields accept.

use super::{NOW, document, json};
use hatchery_core::status::{StatusChange, StatusRefusal};

fn change(text: &str) -> StatusChange {
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn applied(from: &str, text: &str) -> Result<String, StatusRefusal> {
    let mut document = document(from);
    change(text).apply(&mut document, NOW).map(|()| document.to_json().text().to_owned())
}

#[test]
fn a_value_of_the_wrong_shape_is_refused_with_what_the_field_accepts() {
    for (text, words) in [
        (
            r#"{"set":{"path":"buildRun","value":"x"}}"#,
            "`buildRun` cannot be \"x\": the protocol says that it is an object",
        ),
        (r#"{"set":{"path":"buildRun","value":[]}}"#, "`buildRun` cannot be a list"),
        (r#"{"set":{"path":"buildRun.status","value":"flying"}}"#, "`running`, `paused`, `partial`, `completed`"),
        (r#"{"set":{"path":"buildRun","value":{"chunks":[{"status":"odd"}]}}}"#, "`buildRun.chunks.0.status`"),
        (r#"{"set":{"path":"buildRun","value":{"startedAt":"yesterday"}}}"#, "a time such as"),
        (r#"{"set":{"path":"activeSection","value":5}}"#, "`activeSection` cannot be 5"),
        (r#"{"set":{"path":"activeSection.x","value":5}}"#, "`activeSection` cannot be an object"),
        (r#"{"clear":{"path":"activeSection.x"}}"#, "`activeSection` cannot be an object"),
        (
            r#"{"set":{"path":"specVersion","value":1.2}}"#,
            "`specVersion` cannot be 1.2: the protocol says that it is a text",
        ),
        (r#"{"set":{"path":"completedSteps","value":"a"}}"#, "a list in which each item is a text"),
        (r#"{"set":{"path":"completedSteps","value":["a",null]}}"#, "`completedSteps.1` cannot be null"),
        (r#"{"append":{"path":"completedSteps","value":{}}}"#, "`completedSteps` cannot be an object"),
        (r#"{"append":{"path":"nextStep","value":"a"}}"#, "`nextStep` cannot be a list"),
        (r#"{"append":{"path":"buildEvents","value":"a"}}"#, "`buildEvents` cannot be \"a\""),
        (r#"{"increment":{"path":"scenarioScore.satisfied","by":-1}}"#, "`scenarioScore.satisfied` cannot be -1"),
        (r#"{"increment":{"path":"currentCommand"}}"#, "`currentCommand` cannot be 1"),
        (
            r#"{"merge":{"patch":{"notes":1,"readinessSummary":{"draft":"7"}}}}"#,
            "`readinessSummary.draft` cannot be \"7\"",
        ),
        (r#"{"merge":{"patch":{"agentOutputs":{"a":"done"}}}}"#, "`agentOutputs.a` cannot be \"done\""),
        (
            r#"{"merge":{"patch":{"agentOutputs":{"a":{"relevanceManifest":[]}}}}}"#,
            "`agentOutputs.a` cannot be an object without `summary`",
        ),
        (r#"{"set":{"path":"agentOutputs.a","value":{}}}"#, "an object with a text `summary`"),
        (r#"{"set":{"path":"agentOutputs","value":{"a":{"summary":null}}}}"#, "an object without `summary`"),
        (r#"{"set":{"path":"agentOutputs.a.relevanceManifest","value":["b"]}}"#, "an object without `summary`"),
        (r#"{"append":{"path":"agentOutputs.a.relevanceManifest","value":"b"}}"#, "an object without `summary`"),
        (r#"{"set":{"path":"untrackedChanges","value":[{"file":1}]}}"#, "`untrackedChanges.0.file`"),
        (r#"{"set":{"path":"scenarioScore.total","value":true}}"#, "a whole number from 0"),
        (r#"{"set":{"path":"completedSteps.0","value":"a"}}"#, "there is no item 0"),
        (
            r#"{"approve_plan":{"plan":{"chunks":[{"name":"a"}],"prioritySource":"me"},"run":"run-1"}}"#,
            "`buildRun.plan.prioritySource`",
        ),
        (r#"{"record_event":{"event":{"kind":"chunk-started","timestamp":"now"},"id":"e"}}"#, "it must be a time"),
    ] {
        let refused = applied("{}", text).expect_err(text);
        assert!(refused.to_string().contains(words), "{text}: {refused}");
        assert!(!refused.hint().is_empty());
    }
}

#[test]
fn an_output_keeps_its_summary() {
    let known = r#"{"agentOutputs":{"a":{"summary":"s"},"theirs":{"notes":1}}}"#;
    for text in [
        r#"{"clear":{"path":"agentOutputs.a.summary"}}"#,
        r#"{"merge":{"patch":{"agentOutputs":{"a":{"summary":null}}}}}"#,
    ] {
        let refused = applied(known, text).expect_err(text).to_string();
        assert!(refused.contains("`agentOutputs.a` cannot be an object without `summary`"), "{text}: {refused}");
    }
    for text in [
        r#"{"set":{"path":"agentOutputs.a.relevanceManifest","value":["b"]}}"#,
        r#"{"merge":{"patch":{"agentOutputs":{"a":{"relevanceManifest":["b"]},"b":{"summary":""}}}}}"#,
        r#"{"set":{"path":"agentOutputs.theirs.notes","value":2}}"#,
        r#"{"clear":{"path":"agentOutputs.a"}}"#,
        r#"{"set":{"path":"agentOutputs.a","value":null}}"#,
        r#"{"clear":{"path":"agentOutputs"}}"#,
    ] {
        applied(known, text).unwrap_or_else(|refused| panic!("{text}: {refused}"));
    }
}

#[test]
fn null_other_fields_and_what_others_have_written_do_not_matter() {
    for (from, text, after) in [
        ("{}", r#"{"set":{"path":"buildRun","value":null}}"#, r#"{"buildRun":null}"#),
        (
            "{}",
            r#"{"merge":{"patch":{"scenarioScore":{"total":null,"mood":[]},"scanProgress":"x"}}}"#,
            r#"{"scenarioScore":{"total":null,"mood":[]},"scanProgress":"x"}"#,
        ),
        (
            r#"{"scenarioScore":{"satisfied":"many","total":8}}"#,
            r#"{"set":{"path":"scenarioScore.total","value":9}}"#,
            r#"{"scenarioScore":{"satisfied":"many","total":9}}"#,
        ),
        (
            r#"{"completedSteps":[1]}"#,
            r#"{"append":{"path":"completedSteps","value":"a"}}"#,
            r#"{"completedSteps":[1,"a"]}"#,
        ),
        (r#"{"buildRun":"x"}"#, r#"{"set":{"path":"nextStep","value":"y"}}"#, r#"{"buildRun":"x","nextStep":"y"}"#),
        (r#"{"buildRun":"x"}"#, r#"{"clear":{"path":"buildRun"}}"#, r#"{"buildRun":null}"#),
    ] {
        assert_eq!(applied(from, text).unwrap(), after, "{text}");
    }
}

#[test]
fn the_example_of_the_protocol_is_accepted_whole() {
    let patch = json(include_str!("example.json"));
    StatusChange::Merge { patch }.apply(&mut document("{}"), NOW).unwrap();
}
