//! What agents say by ACP, as it was recorded: every file in `fixtures/acp` is read and judged. A line that begins with `> ` was
//! written to the agent, one with `< ` is what it said. The agents are `codex-acp` 2.6.0, `claude-agent-acp` 0.99.1 and `opencode`
//! 1.18.33; the recordings with `_v2` speak a draft of version 2, of which only the form is read.

#![allow(clippy::disallowed_methods, reason = "recordings are read from files, though not by the core itself")]
#![allow(clippy::unwrap_used, reason = "a test and its support stop where something is not as it must be")]

mod shapes;

#[path = "../support/damage.rs"]
mod damage;
#[path = "../support/recordings.rs"]
mod recordings;

use hatchery_core::acp::{AcpReader, AcpRequestId, approval, declared};
use hatchery_core::harness::{Declared, ModelChoice, Reader as _, RepeatsHistory};
use hatchery_core::output::{FailureKind, Output, TurnResult};
use hatchery_core::permission::{Access, PermissionDecision, PermissionRequest};
use recordings::{ends, texts};
use serde_json::{Value, json};

const RECORDINGS: &str = "acp";

fn names() -> Vec<String> {
    recordings::names(RECORDINGS)
}

/// What the agent said, with its answer to our question about the history, which was not asked in the recordings.
fn said(name: &str) -> Vec<String> {
    let mut lines = recordings::said(RECORDINGS, name, id);
    let loaded = lines.iter().enumerate().find_map(|(at, line)| {
        let line: Value = serde_json::from_str(line).ok()?;
        match AcpRequestId::read(line["id"].as_str()?)? {
            AcpRequestId::LoadSession(session) => Some((at + 1, AcpRequestId::HistoryRepeated(session))),
            _ => None,
        }
    });
    if let Some((at, id)) = loaded {
        let answer = json!({ "id": id.to_string(), "error": { "code": -32601, "message": "Method not found" } });
        lines.insert(at, answer.to_string());
    }
    lines
}

fn id(request: &Value) -> Option<AcpRequestId> {
    let session = || request["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
    Some(match request["method"].as_str()? {
        "initialize" => AcpRequestId::Initialize,
        "session/new" => AcpRequestId::NewSession,
        "session/load" => AcpRequestId::LoadSession(session()),
        "session/resume" => AcpRequestId::ResumeSession(session()),
        "session/fork" => AcpRequestId::ForkSession(session()),
        "session/prompt" => AcpRequestId::Say(request["id"].to_string()),
        _ => return None,
    })
}

fn outputs(name: &str) -> Vec<Output> {
    let mut reader = AcpReader::default();
    said(name).iter().flat_map(|line| reader.read(line).unwrap()).collect()
}

fn asked(outputs: &[Output]) -> Vec<&PermissionRequest> {
    let asked = outputs.iter().filter_map(|output| match output {
        Output::Asked(request) => Some(request),
        _ => None,
    });
    asked.collect()
}

#[test]
fn every_recording_is_ready_once() {
    for name in names().iter().filter(|name| !name.ends_with("_v2")) {
        let ready = outputs(name).iter().filter(|output| matches!(output, Output::Ready { .. })).count();
        assert_eq!(ready, 1, "{name}");
    }
}

/// In it the same words mean other things.
#[test]
fn an_agent_that_speaks_version_2_is_not_ready() {
    for name in names().iter().filter(|name| name.ends_with("_v2")) {
        let why = "it speaks version 2 of ACP, and Hatchery speaks version 1".to_owned();
        assert!(outputs(name).contains(&Output::NotReady { why: why.clone() }), "{name}");
        let alone = said(name).iter().find_map(|line| declared(line));
        assert_eq!(alone, Some(Err(why)), "{name}");
    }
}

#[test]
fn the_model_and_the_version_are_those_of_the_agent() {
    let outputs = outputs("acp_opencode");
    let [Output::Declares(_), Output::Ready { session, model, version, .. }, ..] = &outputs[..] else {
        panic!("it is not ready")
    };
    assert!(session.starts_with("ses_"), "{session}");
    assert_eq!((model.as_deref(), version.as_deref()), (Some("fake/claude-fake"), Some("1.18.33")));
}

/// Three agents declare all of it. What is not declared cannot be done.
#[test]
fn what_an_agent_declares_is_read() {
    for name in names().iter().filter(|name| !name.ends_with("_v2") && !name.ends_with("node20")) {
        let (model_choice, repeats_history) = (ModelChoice::SessionOption, RepeatsHistory::OnRequest);
        let all = Declared { resumes: true, forks: true, model_choice, repeats_history };
        assert!(outputs(name).contains(&Output::Declares(all)), "{name}");
        let alone = said(name).iter().find_map(|line| declared(line));
        assert_eq!(alone, Some(Ok(Declared { model_choice: ModelChoice::Never, ..all })), "{name}: without a session");
    }
    let line = |can: Value| json!({ "id": "initialize", "result": { "agentCapabilities": can } }).to_string();
    let declares = |can: Value| declared(&line(can)).and_then(Result::ok);
    assert_eq!(declares(json!({})), Some(Declared { model_choice: ModelChoice::Never, ..Declared::default() }));
    let of_gemini = declares(json!({ "loadSession": true }));
    assert!(of_gemini.is_some_and(|it| it.resumes && !it.forks && it.repeats_history == RepeatsHistory::Always));
    let silent = declares(json!({ "sessionCapabilities": { "resume": {} } }));
    assert!(silent.is_some_and(|it| it.resumes && it.repeats_history == RepeatsHistory::Never));
    assert_eq!(declared("{\"id\": \"other\", \"result\": {}}"), None);
    assert_eq!(declared("no JSON"), None);
}

#[test]
fn chunks_are_joined_to_messages() {
    let outputs = outputs("opencode_permissions");
    assert_eq!(texts(&outputs), ["I call it."]);
    assert!(outputs.contains(&Output::Thinking { text: "Thinking it over".into() }));
    assert_eq!(ends(&outputs)[0].text.as_deref(), Some("I call it."));
}

#[test]
fn a_loaded_history_is_not_said_again() {
    let outputs = outputs("opencode_killed_loaded");
    assert_eq!(texts(&outputs), ["after session/load"]);
    assert!(matches!(&outputs[1], Output::Ready { session, .. } if session == "ses_e1c422f88ffewpFWGW8fbce50e"));
}

#[test]
fn a_turn_begins_with_its_first_update_and_confirms_its_message_at_the_latest_at_its_end() {
    for name in names().iter().filter(|name| !name.ends_with("_v2")) {
        let outputs = outputs(name);
        let begun = outputs.iter().filter(|output| matches!(output, Output::TurnStarted)).count();
        // A turn that is refused at once has no update.
        let well = ends(&outputs).iter().filter(|end| end.result.is_ok()).count();
        assert!(begun >= well, "{name}");
        let heard = outputs.iter().filter(|output| matches!(output, Output::Heard { .. })).count();
        assert!(heard >= well && heard <= ends(&outputs).len(), "{name}");
    }
}

#[test]
fn a_cancelled_turn_is_interrupted_and_the_next_one_is_not() {
    for agent in ["claude", "codex", "opencode"] {
        for name in [format!("{agent}_cancel"), format!("{agent}_cancel_in_tool")] {
            let outputs = outputs(&name);
            let results: Vec<_> = ends(&outputs).into_iter().map(|end| end.result.clone()).collect();
            assert_eq!(results, [TurnResult::Interrupted, TurnResult::Ok], "{name}");
        }
    }
}

#[test]
fn failures_have_the_causes_that_all_harnesses_share_as_far_as_agents_say_them() {
    let kind = |name: &str| match &ends(&outputs(name))[0].result {
        TurnResult::Failed { kind, detail } => (*kind, detail.clone()),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(kind("claude_err401").0, FailureKind::Unauthorised);
    assert_eq!(kind("codex_err401").0, FailureKind::Unauthorised);
    assert_eq!(kind("claude_err429").0, FailureKind::RateLimited);
    assert_eq!(kind("codex_err429").0, FailureKind::RateLimited);
    assert_eq!(kind("claude_err500").0, FailureKind::Unavailable);
    assert_eq!(kind("opencode_err401"), (FailureKind::Other, "Internal error: bad key".into()), "it does not say more");
    // This one ends its turn as if it were well, with the error as its text. Beside it, it says that its thread has failed.
    let words = "We’re currently experiencing high demand, which may cause temporary errors.";
    assert_eq!(kind("codex_err500"), (FailureKind::Unavailable, words.into()));
}

#[test]
fn a_session_that_is_gone_is_begun_anew() {
    let ids =
        [AcpRequestId::LoadSession, AcpRequestId::ResumeSession, AcpRequestId::ForkSession].map(|id| id("s".into()));
    for id in ids {
        let answer = json!({ "id": id.to_string(), "error": { "code": -32603, "message": "Internal error" } });
        let outputs = AcpReader::default().read(&answer.to_string()).unwrap();
        let [Output::TurnEnded(end)] = &outputs[..] else { panic!("{id}: {outputs:?}") };
        assert_eq!(end.result, TurnResult::SessionUnknown);
    }
}

/// A login that has expired is no reason to forget a session.
#[test]
fn a_session_that_needs_a_login_is_kept() {
    let opened = [AcpRequestId::LoadSession, AcpRequestId::ResumeSession, AcpRequestId::ForkSession];
    let ids = opened.map(|id| id("s".into())).into_iter().chain([AcpRequestId::Initialize, AcpRequestId::NewSession]);
    for id in ids {
        let error = json!({ "code": -32000, "message": "Authentication required" });
        let outputs = AcpReader::default().read(&json!({ "id": id.to_string(), "error": error }).to_string()).unwrap();
        let [Output::TurnEnded(end)] = &outputs[..] else { panic!("{id}: {outputs:?}") };
        let detail = "Authentication required".to_owned();
        assert_eq!(end.result, TurnResult::Failed { kind: FailureKind::Unauthorised, detail }, "{id}");
    }
}

#[test]
fn each_request_for_permission_says_what_it_would_do() {
    let outputs = outputs("opencode_permissions");
    let asked = asked(&outputs);
    let execute = |command: &str| Access::Execute { command: command.to_owned() };
    assert_eq!(
        asked.iter().map(|request| request.access.clone()).collect::<Vec<_>>(),
        [Access::OwnTool, execute("echo hi > out.txt; cat out.txt"), execute("touch second.txt")]
    );
    assert_eq!(asked[0].tool, "signal-back");
    let of_claude = self::outputs("claude_permissions");
    let edit = Access::Edit { path: "/home/dev/project/new.txt".into() };
    assert_eq!(self::asked(&of_claude)[3].access, edit);
    // The request names only the call; what the call is was said before.
    let of_codex = self::outputs("codex_permissions");
    assert_eq!(self::asked(&of_codex)[0].access, Access::OwnTool);
}

#[test]
fn an_answer_chooses_an_option_of_the_request() {
    let outputs = outputs("opencode_permissions");
    let request = asked(&outputs)[1];
    let written = |decision| serde_json::from_str::<Value>(&approval(request, &decision)).unwrap();
    let chosen = |option: &str| json!({ "outcome": { "outcome": "selected", "optionId": option } });
    assert_eq!(written(PermissionDecision::Allow), json!({ "jsonrpc": "2.0", "id": 1, "result": chosen("once") }));
    let denied = written(PermissionDecision::Deny { reason: "no".into() });
    assert_eq!(denied, json!({ "jsonrpc": "2.0", "id": 1, "result": chosen("reject") }));
}

#[test]
fn each_use_of_a_tool_has_one_result() {
    for name in names().iter().filter(|name| !name.contains("killed") && !name.ends_with("_v2")) {
        let outputs = outputs(name);
        let of = |pick: fn(&Output) -> Option<&String>| outputs.iter().filter_map(pick).cloned().collect::<Vec<_>>();
        let mut used = of(|it| if let Output::ToolUse { id, .. } = it { Some(id) } else { None });
        let mut results = of(|it| if let Output::ToolResult { id, .. } = it { Some(id) } else { None });
        used.sort();
        results.sort();
        assert_eq!(used, results, "{name}");
    }
}

#[test]
fn our_tools_have_the_names_that_we_gave_them() {
    for name in ["claude_permissions", "codex_permissions", "opencode_permissions"] {
        let named = |it: &Output| matches!(it, Output::ToolUse { name, .. } if name == "signal-back");
        assert!(outputs(name).iter().any(named), "{name}");
    }
}

#[test]
fn money_is_the_agents_own_if_it_says_so_and_otherwise_that_of_the_table() {
    let outputs_of = |name| outputs(name);
    let opencode = outputs_of("opencode_permissions");
    let end = ends(&opencode)[0];
    assert_eq!(end.total.cost.nanodollars, 315_000);
    assert_eq!(end.since_last.map(|used| (used.input_tokens, used.output_tokens)), Some((10, 5)));
    assert!(end.context.is_some_and(|context| context.tokens > 0 && context.window == Some(200_000)), "{end:?}");
}
