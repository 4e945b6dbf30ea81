//! Lines in, lines out: turns, interrupts, resuming and forking.

use super::{echoes, is_echo, is_init, sessions};
use crate::support::claude_cli::{Home, Input, cli_or_skip, uuid};
use crate::support::model::{Fault, Gate, Model, Place, Step};
use hatchery_core::harness::Reader as _;
use hatchery_core::stream_json::StreamJsonReader;
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn a_line_is_answered_to_its_end_also_when_the_input_has_ended() {
    let cli = cli_or_skip!();
    let gate = Gate::default();
    let model = Model::playing([Step::text("one").behind(&gate)]);
    let home = Home::new(cli, &model);
    let session = uuid();
    let mut run = home.begin(&session);
    let said = run.say("hello");
    run.end_input();
    let asked = model.asked(1);
    assert_eq!((asked.dialogue(), asked.session), (vec!["user: hello".to_owned()], Some(session.clone())));
    // What is known before the model has said a word: that the line was taken, and what the session is like. No echo.
    let before = ["command_lifecycle/queued", "command_lifecycle/started", "system/init"];
    run.line(1, is_init);
    gate.open();
    let ended = run.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let after = ["user", "assistant", "result/success", "command_lifecycle/completed"];
    assert_eq!(ended.order(), [&before[..], &after].concat());
    assert!(ended.lines.iter().all(|line| line["session_id"] == session.as_str()), "{ended:#?}");
    let states: Vec<&Value> = ended.lines.iter().map(|line| &line["command_uuid"]).filter(|id| !id.is_null()).collect();
    assert_eq!(states, [&json!(said); 3]);
    assert_eq!(echoes(&ended), [&json!(said)]);
    let result = ended.results()[0];
    assert_eq!((&result["result"], &result["terminal_reason"]), (&json!("one"), &json!("completed")));
}

#[test]
fn a_fifo_that_never_ends_carries_turn_after_turn() {
    let cli = cli_or_skip!();
    let model = Model::playing([Step::text("one"), Step::text("two")]);
    let home = Home::new(cli, &model);
    let mut run = home.start(Input::fifo(&home.path().join("input")), &["--session-id", &uuid()]);
    let first = run.say("first");
    assert_eq!(run.result(1)["result"], "one");
    let second = run.say("second");
    assert_eq!(run.result(2)["result"], "two");
    assert_eq!(model.asked(2).dialogue(), ["user: first", "assistant: one", "user: second"]);
    run.line(2, |line| line["state"] == "completed");
    // A line that was answered already is echoed and not asked again.
    run.say_as(&first, "first");
    run.line(3, is_echo);
    let ended = run.signal(Signal::TERM);
    assert_eq!(ended.code, Some(143), "{ended:#?}");
    assert_eq!(ended.lines.iter().filter(|line| is_init(line)).count(), 2, "an init a turn: {ended:#?}");
    assert_eq!(echoes(&ended), [&json!(first), &json!(second), &json!(first)]);
    assert_eq!(model.count(), 2);
}

#[test]
fn what_is_written_is_told_in_pieces() {
    let cli = cli_or_skip!();
    let model = Model::playing([Step::text("one and two")]);
    let home = Home::new(cli, &model);
    let arguments = ["--session-id", &uuid(), "--include-partial-messages"];
    let mut run = home.start(Input::fifo(&home.path().join("input")), &arguments);
    run.say("go");
    assert_eq!(run.result(1)["result"], "one and two");
    let ended = run.signal(Signal::TERM);
    let mut reader = StreamJsonReader::default();
    let pieces = ended.lines.iter().filter_map(|line| reader.partial(&line.to_string()));
    assert_eq!(pieces.map(|piece| piece.text).collect::<String>(), "one and two", "{ended:#?}");
}

#[test]
fn a_conversation_is_resumed_and_forked_under_our_own_ids() {
    let cli = cli_or_skip!();
    let model = Model::playing([Step::text("one"), Step::text("two"), Step::text("three"), Step::text("four")]);
    let home = Home::new(cli, &model);
    let (trunk, branch) = (uuid(), uuid());
    let mut run = home.begin(&trunk);
    let first = run.say("first");
    run.end();

    let mut run = home.resume(&trunk);
    // Sent again in another process: known from the transcript, not asked again.
    run.say_as(&first, "first");
    run.say("second");
    let ended = run.end();
    assert_eq!((ended.code, sessions(&ended)), (Some(0), vec![json!(trunk)]));
    assert_eq!(ended.results().len(), 1, "{ended:#?}");
    assert_eq!(model.asked(2).dialogue(), ["user: first", "assistant: one", "user: second"]);
    assert_eq!(model.count(), 2);

    let mut run = home.start(Input::pipe(), &["--resume", &trunk, "--fork-session", "--session-id", &branch]);
    run.say("third");
    let ended = run.end();
    assert_eq!((ended.code, sessions(&ended)), (Some(0), vec![json!(branch)]));
    let common = ["user: first", "assistant: one", "user: second", "assistant: two"];
    assert_eq!(model.asked(3).dialogue(), [&common[..], &["user: third"]].concat());

    let mut run = home.resume(&trunk);
    run.say("fourth");
    run.end();
    assert_eq!(
        model.asked(4).dialogue(),
        [&common[..], &["user: fourth"]].concat(),
        "the trunk knows nothing of its branch"
    );
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_conversation() {
    let cli = cli_or_skip!();
    let gate = Gate::default();
    let half = Step::text("half of a long answer").fault(Place::Within(0), Fault::Hold(gate.clone()));
    let model = Model::playing([half, Step::text("two")]);
    let home = Home::new(cli, &model);
    let mut run = home.begin(&uuid());
    run.say("first");
    gate.reached();
    run.interrupt("r1");
    let answer = run.line(1, |line| line["type"] == "control_response");
    assert_eq!((&answer["response"]["subtype"], &answer["response"]["request_id"]), (&json!("success"), &json!("r1")));
    let result = run.result(1);
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_during_execution"), &json!(true)));
    assert_eq!(result["terminal_reason"], "aborted_streaming");
    run.line(1, |line| line["state"] == "cancelled");
    run.say("second");
    assert_eq!(run.result(2)["result"], "two");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let dialogue = model.asked(2).dialogue();
    assert_eq!(dialogue.first().unwrap(), "user: first");
    assert_eq!(dialogue[dialogue.len() - 2..], ["user: [Request interrupted by user]", "user: second"]);
}
