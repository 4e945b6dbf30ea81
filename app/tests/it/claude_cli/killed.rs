//! What is left after `kill -9`.

use super::{echoes, is_init};
use crate::support::claude_cli::{Home, cli_or_skip, uuid};
use crate::support::model::{Block, Fault, Gate, Model, Place, Step};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn a_session_that_was_killed_before_it_began_is_begun_again_and_not_resumed() {
    let cli = cli_or_skip!();
    let model = Model::playing([Step::text("one")]);
    let home = Home::new(cli, &model);
    let session = uuid();
    let mut run = home.begin(&session);
    let said = run.say("first");
    run.line(1, |line| line["state"] == "queued");
    run.signal(Signal::KILL);
    assert_eq!(home.transcript(&session), None);

    let mut run = home.resume(&session);
    run.say("second");
    let ended = run.end();
    assert_eq!((ended.code, ended.order()), (Some(1), vec!["result/error_during_execution".to_owned()]));
    assert_eq!(ended.results()[0]["errors"], json!([format!("No conversation found with session ID: {session}")]));

    let mut run = home.begin(&session);
    run.say_as(&said, "first");
    let ended = run.end();
    assert_eq!((ended.code, echoes(&ended)), (Some(0), vec![&json!(said)]));
    assert_eq!(model.asked(1).dialogue(), ["user: first"]);

    let mut run = home.begin(&session);
    run.say("second");
    let ended = run.end();
    assert_eq!((ended.code, ended.lines.len()), (Some(1), 0));
    assert!(ended.stderr.contains("already in use"), "{ended:?}");
}

#[test]
fn a_killed_turn_can_be_resumed_once_init_was_seen() {
    let cli = cli_or_skip!();
    let gate = Gate::default();
    // For ever, because the first turn may be killed before it has asked.
    let model = Model::playing([Step::text("two").behind(&gate).for_ever()]);
    let home = Home::new(cli, &model);
    let session = uuid();
    let mut run = home.begin(&session);
    let said = run.say("first");
    run.line(1, is_init);
    let ended = run.signal(Signal::KILL);
    assert_eq!((ended.signal, ended.results().len(), echoes(&ended).len()), (Some(9), 0, 0), "{ended:#?}");
    assert!(home.transcript(&session).unwrap().contains(&said));

    gate.open();
    let mut run = home.resume(&session);
    run.say("second");
    let ended = run.end();
    assert_eq!((ended.code, &ended.results()[0]["result"]), (Some(0), &json!("two")), "{ended:#?}");
    let dialogue = model.asked(model.count()).dialogue();
    assert_eq!(dialogue, ["user: first", "assistant: No response requested.", "user: second"]);
}

#[test]
fn what_was_said_of_an_answer_before_a_kill_is_not_known_after_it() {
    let cli = cli_or_skip!();
    let gate = Gate::default();
    let answer = Step::blocks([Block::text("begun"), Block::text("never said")]);
    let model = Model::playing([answer.fault(Place::Behind(0), Fault::Hold(gate.clone())), Step::text("one")]);
    let home = Home::new(cli, &model);
    let session = uuid();
    let mut run = home.begin(&session);
    let said = run.say("first");
    gate.reached();
    // A block is said as soon as it is whole, and our line is echoed before it.
    run.line(1, |line| line["type"] == "assistant");
    let ended = run.signal(Signal::KILL);
    assert_eq!(ended.order().last_chunk(), Some(&["user".to_owned(), "assistant".to_owned()]));

    let mut run = home.resume(&session);
    // Not answered, so the same line is asked again, though it is in the history already.
    run.say_as(&said, "first");
    let ended = run.end();
    assert_eq!((ended.code, echoes(&ended)), (Some(0), vec![&json!(said)]));
    assert_eq!(ended.results()[0]["result"], "one");
    // Nothing of "begun": an answer is written down when it is whole.
    assert_eq!(model.asked(2).dialogue(), ["user: first", "assistant: No response requested.", "user: first"]);
}

#[test]
fn a_line_that_waits_for_its_turn_is_lost_with_the_process() {
    let cli = cli_or_skip!();
    let model =
        Model::playing([Step::text("never said").behind(&Gate::default()), Step::text("two"), Step::text("three")]);
    let home = Home::new(cli, &model);
    let session = uuid();
    let mut run = home.begin(&session);
    run.say("first");
    model.asked(1);
    let waiting = run.say("second");
    run.line(1, |line| line["state"] == "queued" && line["command_uuid"] == waiting.as_str());
    let ended = run.signal(Signal::KILL);
    assert_eq!(echoes(&ended), [] as [&Value; 0]);

    let mut run = home.resume(&session);
    run.say("third");
    run.say_as(&waiting, "second");
    let ended = run.end();
    assert_eq!((ended.code, ended.results().len()), (Some(0), 2), "{ended:#?}");
    let resumed = ["user: first", "assistant: No response requested.", "user: third"];
    assert_eq!(model.asked(2).dialogue(), resumed);
    assert_eq!(model.asked(3).dialogue(), [&resumed[..], &["assistant: two", "user: second"]].concat());
}
