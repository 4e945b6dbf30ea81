//! Every recorded run has the cause that a person would give it, and the words that it ended with.

use super::{exit, names, outcome, parse, read, recorded, turn_ends};
use hatchery_core::Cause::{self, *};
use hatchery_core::output::{Output, TurnResult};
use hatchery_core::{Exit, Outcome, Timestamp};

/// Name, how the process ended, the cause, and how the last result's words begin.
const RUNS: &[(&str, Exit, Cause, &str)] = &[
    ("agent_flag", Exit::Code(0), Completed, "hi"),
    ("agents_task", Exit::Code(0), Completed, "main done"),
    ("api400", Exit::Code(1), Crashed, "API Error: 400 messages: bad"),
    ("api400_credit", Exit::Code(1), OutOfCredit, "Credit balance is too low"),
    ("api400_toolong", Exit::Code(1), PromptTooLong, "Prompt is too long · the request is ~210"),
    ("api401", Exit::Code(1), Unauthorised, "Invalid API key · Fix external API key"),
    ("api403", Exit::Code(1), Unauthorised, "Failed to authenticate. API Error: 403 n"),
    ("api429_forever", Exit::Code(1), RateLimited, "API Error: Request rejected (429) · Rate"),
    ("api429_once", Exit::Code(0), Completed, "recovered"),
    ("api500_forever", Exit::Code(1), Unavailable, "API Error: 500 Internal server error. Th"),
    ("api500_forever_retries0", Exit::Code(1), Unavailable, "API Error: 500 Internal server error. Th"),
    ("api500_once", Exit::Code(0), Completed, "recovered"),
    ("api529_forever", Exit::Code(1), Overloaded, "API Error: Repeated 529 Overloaded error"),
    ("api529_forever_retries1", Exit::Code(1), Overloaded, "API Error: 529 Overloaded. This is a ser"),
    ("auth_token", Exit::Code(0), Completed, "end"),
    ("bad_flag", Exit::Code(1), BadArguments, ""),
    ("bare", Exit::Code(0), Completed, "x"),
    ("bare_resume", Exit::Code(0), Completed, "x"),
    ("conn_refused", Exit::Code(1), Unavailable, "API Error: Connection refused — a firewa"),
    ("continue", Exit::Code(0), Completed, "x"),
    ("empty_answer", Exit::Code(0), Completed, "default answer"),
    ("fork", Exit::Code(0), Completed, "answer fork"),
    ("fork_with_session_id", Exit::Code(0), Completed, "answer fork"),
    ("hang_mid_stream", Exit::Code(0), Completed, "recovered"),
    ("hang_no_headers", Exit::Code(0), Completed, "recovered"),
    ("hooks_events", Exit::Code(0), Completed, "now really done"),
    ("js_api529", Exit::Code(1), Overloaded, "API Error: 529 {\"type\":\"error\",\"error\":{"),
    ("js_denied", Exit::Code(0), Completed, "x"),
    ("js_mcp", Exit::Code(0), Completed, "Signalled."),
    ("js_no_verbose", Exit::Code(1), Crashed, ""),
    ("js_plain", Exit::Code(0), Completed, "hi"),
    ("js_resume", Exit::Code(0), Completed, "two"),
    ("js_resume_other_cwd", Exit::Code(1), Crashed, ""),
    ("js_sigint", Exit::Code(0), UserEnded, ""),
    ("js_team_lead", Exit::Code(0), Completed, "idle"),
    ("js_teammate_prewritten", Exit::Code(0), Completed, "x"),
    ("json_schema", Exit::Code(0), Completed, "{\"ok\":true}"),
    ("max_budget", Exit::Code(1), Crashed, "Reached maximum budget ($0.01)"),
    ("max_turns", Exit::Code(1), Crashed, "Reached maximum number of turns (2)"),
    ("mcp_always_load", Exit::Code(0), Completed, "Signalled."),
    ("mcp_bad_config", Exit::Code(1), BadArguments, ""),
    ("mcp_bad_input", Exit::Code(0), Completed, "ok"),
    ("mcp_http", Exit::Code(0), Completed, "Signalled."),
    ("mcp_http_badtoken", Exit::Code(0), Completed, "Signalled."),
    ("mcp_http_down", Exit::Code(0), Completed, "Signalled."),
    ("mcp_http_envtoken", Exit::Code(0), Completed, "Signalled."),
    ("mcp_parallel", Exit::Code(0), Completed, "ok"),
    ("mcp_slow_start", Exit::Code(0), Completed, "Signalled."),
    ("mcp_slow_start_timeout", Exit::Code(0), Completed, "Signalled."),
    ("mcp_slow_tool", Exit::Code(0), Completed, "Signalled."),
    ("mcp_stdio", Exit::Code(0), Completed, "Signalled."),
    ("mcp_stdio_denied", Exit::Code(0), Completed, "Signalled."),
    ("mcp_stdio_missing", Exit::Code(0), Completed, "Signalled."),
    ("mcp_stdio_notoolsearch", Exit::Code(0), Completed, "Signalled."),
    ("mcp_tool_iserror", Exit::Code(0), Completed, "ok"),
    ("mcp_tool_timeout", Exit::Code(0), Completed, "Signalled."),
    ("model_custom", Exit::Code(0), Completed, "end"),
    ("new_teammate_prewritten", Exit::Code(0), Completed, "x"),
    ("new_teammate_stdin_idle", Exit::Code(0), Completed, "x"),
    ("no_api_key", Exit::Code(1), Unauthorised, "Not logged in · Please run /login"),
    ("no_persist", Exit::Code(0), Completed, "x"),
    ("no_persist_resume", Exit::Code(1), Crashed, ""),
    ("no_prompt", Exit::Code(1), Crashed, ""),
    ("output_json", Exit::Code(0), Completed, "one line"),
    ("output_text", Exit::Code(0), Crashed, ""),
    ("partial_messages", Exit::Code(0), Completed, "Done."),
    ("permmode_acceptEdits", Exit::Code(0), Completed, "end"),
    ("permmode_auto", Exit::Code(0), Completed, "end"),
    ("permmode_bypassPermissions", Exit::Code(1), BadArguments, ""),
    ("permmode_default", Exit::Code(0), Completed, "end"),
    ("permmode_dontAsk", Exit::Code(0), Completed, "end"),
    ("permmode_manual", Exit::Code(0), Completed, "end"),
    ("permmode_plan", Exit::Code(0), Completed, "end"),
    ("plain", Exit::Code(0), Completed, "Hello from the fake model."),
    ("prompt_dash", Exit::Code(0), Completed, "ok"),
    ("prompt_on_stdin", Exit::Code(0), Completed, "one line"),
    ("prompt_slash_path", Exit::Code(0), Completed, "ok"),
    ("prompt_slash_unknown", Exit::Code(0), Completed, "ok"),
    ("resume", Exit::Code(0), Completed, "answer two"),
    ("resume_other_cwd", Exit::Code(0), Completed, "x"),
    ("resume_snapshot_off", Exit::Code(0), Completed, "answer three"),
    ("resume_unknown", Exit::Code(1), Crashed, ""),
    ("session_id_bad", Exit::Code(1), Crashed, ""),
    ("session_id_first", Exit::Code(0), Completed, "answer one"),
    ("session_id_reuse_error", Exit::Code(1), Crashed, ""),
    ("settings_bad", Exit::Code(0), Completed, "end"),
    ("settings_missing_file", Exit::Code(1), Crashed, ""),
    ("sig_SIGHUP_stream", Exit::Code(129), Crashed, ""),
    ("sig_SIGHUP_stream_resume", Exit::Code(0), Completed, "resumed ok"),
    ("sig_SIGINT_stream", Exit::Code(0), UserEnded, ""),
    ("sig_SIGINT_stream_resume", Exit::Code(0), Completed, "resumed ok"),
    ("sig_SIGINT_tool", Exit::Code(0), UserEnded, ""),
    ("sig_SIGINT_tool_resume", Exit::Code(0), Completed, "resumed ok"),
    ("sig_SIGKILL_stream", Exit::Signal(9), Crashed, ""),
    ("sig_SIGKILL_stream_resume", Exit::Code(0), Completed, "resumed ok"),
    ("sig_SIGTERM_stream", Exit::Code(143), Crashed, ""),
    ("sig_SIGTERM_stream_resume", Exit::Code(0), Completed, "resumed ok"),
    ("sig_SIGTERM_tool", Exit::Code(143), Crashed, ""),
    ("sig_SIGTERM_tool_resume", Exit::Code(0), Completed, "resumed ok"),
    ("skip_perms_root", Exit::Code(1), BadArguments, ""),
    ("skip_perms_root_sandbox", Exit::Code(0), Completed, "end"),
    ("sse_overloaded_mid", Exit::Code(0), Completed, "recovered"),
    ("stdin_bad_json", Exit::Code(1), Crashed, ""),
    ("stdin_can_use_tool", Exit::Code(0), Completed, "done"),
    ("stdin_empty", Exit::Code(0), Crashed, ""),
    ("stdin_interrupt", Exit::Code(0), Completed, "after interrupt"),
    ("stdin_one", Exit::Code(0), Completed, "one"),
    ("stdin_pipe_left_open", Exit::Code(0), Completed, "ok"),
    ("stdin_two_turns", Exit::Code(0), Completed, "two"),
    ("stdin_unknown_type", Exit::Code(0), Completed, "one"),
    ("stop_max_tokens", Exit::Code(0), Completed, "default answer"),
    ("stream_json_no_verbose", Exit::Code(1), Crashed, ""),
    ("system_prompt", Exit::Code(0), Completed, "x"),
    ("teams_inbox_lead", Exit::Code(0), Completed, "lead 3"),
    ("teams_tools", Exit::Code(0), Completed, "x"),
    ("tool_denied", Exit::Code(0), Completed, "Could not."),
    ("tool_unknown", Exit::Code(0), Completed, "ok"),
    ("tool_use", Exit::Code(0), Completed, "All done."),
];

/// The only runs whose last turn was broken off. `stdin_interrupt` went on afterwards.
const INTERRUPTED: [&str; 3] = ["js_sigint", "sig_SIGINT_stream", "sig_SIGINT_tool"];
/// The only runs that were to resume a session that is not there.
const SESSION_UNKNOWN: [&str; 3] = ["js_resume_other_cwd", "no_persist_resume", "resume_unknown"];

/// What the recorded process wrote to stderr.
fn stderr(name: &str) -> Option<String> {
    let meta = std::fs::read_to_string(super::folder().join(format!("{name}.meta.json"))).unwrap();
    let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
    meta["stderr"].as_str().map(str::to_owned)
}

#[test]
fn every_recorded_run_is_judged_rightly() {
    assert_eq!(names(), RUNS.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), "each recorded run has its row");
    for (name, ended, cause, words) in RUNS {
        let outcome = outcome(name);
        assert_eq!(exit(name), *ended, "{name}");
        let (judged, detail) = outcome.cause(*ended, stderr(name).as_deref());
        assert_eq!(judged, *cause, "{name}: {detail}");
        let interrupted = outcome.last_turn() == Some(&TurnResult::Interrupted);
        assert_eq!(interrupted, INTERRUPTED.contains(name), "{name}");
        let unknown = outcome.last_turn() == Some(&TurnResult::SessionUnknown);
        assert_eq!(unknown, SESSION_UNKNOWN.contains(name), "{name}");
        let last = match outcome.last_turn() {
            Some(TurnResult::Ok) => turn_ends(name).pop().and_then(|turn| turn.text).unwrap_or_default(),
            Some(TurnResult::Failed { detail, .. }) => detail.clone(),
            Some(TurnResult::Interrupted | TurnResult::SessionUnknown) | None => String::new(),
        };
        assert!(last.starts_with(words), "{name}: {last}");
    }
}

#[test]
fn the_words_say_what_happened_and_what_to_do() {
    let detail = |name: &str| outcome(name).cause(exit(name), None).1;
    assert_eq!(detail("plain"), "Its last turn ended well.");
    assert_eq!(
        detail("api400_credit"),
        "It failed: Credit balance is too low. Add credit to the account, then resume it."
    );
    assert_eq!(
        detail("session_id_reuse_error"),
        "It ended before it said anything (exit code 1). Look at what it wrote to stderr."
    );
    assert_eq!(
        detail("sig_SIGTERM_tool"),
        "It ended in the middle of a turn (exit code 143, as after SIGTERM). \
         Look at what it wrote to stderr. It can be resumed."
    );
    assert_eq!(
        detail("sig_SIGKILL_stream"),
        "It ended in the middle of a turn (SIGKILL). Look at what it wrote to stderr. It can be resumed."
    );
    assert_eq!(detail("sig_SIGINT_tool"), "Its last turn was interrupted (exit code 0). It can be resumed.");
    assert_eq!(detail("max_turns"), "It failed: Reached maximum number of turns (2). Resume it, or start a new agent.");
}

#[test]
fn the_exit_code_alone_decides_nothing() {
    for ended in [Exit::Code(0), Exit::Code(1), Exit::Signal(9), Exit::Unknown] {
        assert_eq!(outcome("plain").cause(ended, None).0, Completed, "{ended}");
        assert_eq!(outcome("api529_forever").cause(ended, None).0, Overloaded, "{ended}");
        assert_eq!(Outcome::default().cause(ended, None).0, Crashed, "{ended}");
    }
}

#[test]
fn a_turn_that_began_after_the_last_result_counts() {
    let mut outcome = outcome("plain");
    outcome.take(&Output::TurnStarted);
    assert_eq!(outcome.cause(Exit::Signal(9), None).0, Crashed, "the first turn ended well, but it died in the second");
    assert_eq!(outcome.last_turn(), None);
}

#[test]
fn a_failure_of_an_earlier_turn_does_not_taint_a_later_one() {
    let again = recorded("api400_credit") + r#"{"type":"result","is_error":true,"subtype":"success"}"#;
    let mut outcome = Outcome::default();
    read(&again).iter().for_each(|output| outcome.take(output));
    assert_eq!(outcome.cause(Exit::Code(1), None).0, Crashed, "the second turn did not fail for lack of credit");
}

#[test]
fn what_a_sub_agent_says_is_never_the_parents_end() {
    let of_a_subagent = r#"{"type":"result","is_error":true,"api_error_status":529,"parent_tool_use_id":"toolu_1"}"#;
    let mut outcome = outcome("plain");
    parse(of_a_subagent).unwrap().iter().for_each(|output| outcome.take(output));
    assert_eq!(outcome.cause(Exit::Code(0), None).0, Completed);
}

#[test]
fn an_api_error_without_a_result_is_a_crash_that_tells_of_it() {
    let mut outcome = Outcome::default();
    let line =
        recorded("api429_forever").lines().find(|line| line.contains("is_api_error_message")).unwrap().to_owned();
    parse(&line).unwrap().iter().for_each(|output| outcome.take(output));
    let (cause, detail) = outcome.cause(Exit::Unknown, None);
    assert_eq!(cause, Crashed);
    assert!(detail.contains("exit code unknown") && detail.contains("Rate limited"), "{detail}");
}

#[test]
fn the_time_at_which_a_limit_is_lifted_is_kept() {
    let limit = |status: &str| {
        format!(r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}","resetsAt":1800000000}}}}"#)
    };
    let mut outcome = Outcome::default();
    parse(&limit("allowed")).unwrap().iter().for_each(|output| outcome.take(output));
    assert_eq!(outcome.resets_at(), None, "nothing was refused");
    parse(&limit("rejected")).unwrap().iter().for_each(|output| outcome.take(output));
    assert_eq!(outcome.resets_at(), Some(Timestamp(1_800_000_000_000)));
}

#[test]
fn an_outcome_can_be_written_down() {
    for name in names() {
        let outcome = outcome(&name);
        let bytes = rmp_serde::to_vec_named(&outcome).unwrap();
        assert_eq!(rmp_serde::from_slice::<Outcome>(&bytes).unwrap(), outcome, "{name}");
    }
    assert_eq!(serde_json::to_string(&LostWithMachine).unwrap(), r#""lost_with_machine""#);
}

/// A result of the CLI that failed with these words.
fn failing(result: &str, status: Option<u16>, stop_reason: &str) -> Cause {
    let line = serde_json::json!({
        "type": "result", "subtype": "success", "is_error": true, "result": result, "api_error_status": status,
        "terminal_reason": "api_error", "stop_reason": stop_reason,
    });
    let mut outcome = Outcome::default();
    parse(&line.to_string()).unwrap().iter().for_each(|output| outcome.take(output));
    outcome.cause(Exit::Code(1), None).0
}

#[test]
fn outages_and_hopeless_failures_are_told_apart_by_status_and_words() {
    let model = "There's an issue with the selected model (opus-9). It may not exist or you may not have access to it.";
    assert_eq!(failing(model, Some(404), "stop_sequence"), WrongModel);
    assert_eq!(failing(model, None, "stop_sequence"), WrongModel);
    let refusal =
        "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy";
    assert_eq!(failing(refusal, None, "stop_sequence"), Refused);
    assert_eq!(failing("no", None, "refusal"), Refused);
    let output = "API Error: Claude's response exceeded the 32000 output token maximum.";
    assert_eq!(failing(output, None, "stop_sequence"), OutputTooLong);
    for words in ["API Error: Connection error.", "API Error: Request timed out.", "API Error: read ECONNRESET"] {
        assert_eq!(failing(words, None, "stop_sequence"), Unavailable, "{words}");
    }
    for status in [500, 502, 504, 520] {
        assert_eq!(failing("API Error", Some(status), "stop_sequence"), Unavailable, "{status}");
    }
    assert_eq!(failing("something else", None, "stop_sequence"), Crashed);
}
