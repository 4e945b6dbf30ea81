//! The conversation in the harness: kept between processes and runs, ended by what the harness cannot unhear, and copied by forks
//! only while it is exactly what they inherit.

use super::words::*;
use crate::given::*;
use hatchery_core::event::{AgentEvent, MessageEvent, RunEvent};
use hatchery_core::history::{ImportedItem, RewindTo, SourceId};
use hatchery_core::output::FailureKind;
use hatchery_core::run::{DeliveryKind, inherited_session};
use hatchery_core::{Cause, Command, Event, EventId, Exit, MessageKind, Refusal};

fn at_rest() -> Given {
    done(spec()).and(over(first(), Cause::Completed, Exit::Code(0), ""))
}

fn import(kind: MessageKind) -> Command {
    let source_id = SourceId::Number(1);
    let item = ImportedItem::Message { agent: A, kind, content: String::new(), to: None, source_id };
    Command::ImportHistory { items: vec![item] }
}

fn again(it: Given) -> Given {
    it.when(run(A, spec())).then([Event::Agent { agent: A, what: AgentEvent::RunRequested { run: 2, spec: spec() } }])
}

#[test]
fn it_goes_on_in_the_next_run() {
    let it = again(at_rest());
    assert_eq!(conversation(&it).harness_session.as_ref().unwrap().session, TALK);
    assert_eq!(conversation(&it).waiting.iter().map(|it| it.what).collect::<Vec<_>>(), [DeliveryKind::Nudge]);
}

#[test]
fn nothing_is_taken_back_while_a_process_knows_it() {
    let open = || Refusal::RunOpen { agent: A, run: 1 };
    for it in [wanted(spec()), working(spec()), done(staying())] {
        it.clone().when(add(A, MessageKind::Clear, "")).refused(open());
        it.clone().when(rewind(A, RewindTo::Message(EventId(3)))).refused(open());
        it.clone().when(add(A, MessageKind::Rewind, "3")).refused(open());
        it.when(import(MessageKind::User)).refused(open());
    }
}

#[test]
fn whatever_changes_what_was_said_ends_it() {
    let source_id = Some(SourceId::Number(1));
    let kind = MessageKind::User;
    let imported = Event::Message(MessageEvent::Added { agent: A, kind, content: String::new(), to: None, source_id });
    let changes = [
        (add(A, MessageKind::Clear, ""), cleared(A)),
        (rewind(A, RewindTo::Message(EventId(3))), rewound(A, 3)),
        (import(kind), imported),
    ];
    for (command, event) in changes {
        let it = at_rest().and(said(A, "unheard")).when(command).then([event]);
        assert_eq!((conversation(&it).harness_session.as_ref(), undelivered(&it)), (None, vec![]));
        let it = again(it.and(said(A, "more"))).restarted();
        assert_eq!(conversation(&it).waiting.iter().map(|it| it.what).collect::<Vec<_>>(), [DeliveryKind::Briefing]);
    }
}

#[test]
fn one_that_the_harness_has_lost_begins_anew() {
    let it = again(at_rest().and(said(A, "more")));
    let of = hatchery_core::run::AttemptId { agent: A, run: 2, attempt: 1 };
    let it = hears(it.and(spawned(of)), [result(forgotten())]);
    let it = it.then([turn_ended(of, forgotten(), usage(0)), taken(of, 1)]);
    let crash = Event::Run {
        of,
        what: RunEvent::Crashed {
            cause: Cause::Crashed,
            detail: "It failed: the harness does not have its session any more. Resume it.".into(),
            exit: Exit::Code(1),
            forgotten: true,
        },
    };
    let it = it.when(exit(of, Exit::Code(1))).then([crash, resumed(of.next())]);
    assert_eq!(conversation(&it).harness_session, None);
    assert_eq!(conversation(&it).waiting.iter().map(|it| it.what).collect::<Vec<_>>(), [DeliveryKind::Briefing]);
}

/// The user logs in, and says something.
#[test]
fn one_that_needs_a_login_is_kept() {
    let of = hatchery_core::run::AttemptId { agent: A, run: 2, attempt: 1 };
    let it = again(at_rest()).and(spawned(of)).and(turn_ended(of, refused(FailureKind::Unauthorised), usage(0)));
    let it = it.when(exit(of, Exit::Code(1))).done();
    assert!(!last_run(&it).is_open());
    assert_eq!(conversation(&it).harness_session.as_ref().unwrap().session, TALK);
}

/// Else the agent could never be run again.
#[test]
fn one_that_was_lost_is_not_looked_for_again_when_the_retries_are_spent() {
    let mut strict = spec();
    strict.retries = 0;
    let of = hatchery_core::run::AttemptId { agent: A, run: 2, attempt: 1 };
    let it = at_rest()
        .and(Event::Agent { agent: A, what: AgentEvent::RunRequested { run: 2, spec: strict } })
        .and(spawned(of));
    let it = it.and(turn_ended(of, forgotten(), usage(0))).when(exit(of, Exit::Code(1)));
    let detail = "It failed: the harness does not have its session any more. Resume it.";
    let it = it.then([over(of, Cause::Crashed, Exit::Code(1), detail)]);
    assert_eq!(conversation(&it).harness_session, None);
}

/// A (which has said "hi" and is at rest) and its child B.
fn family() -> Given {
    let it = working(spec()).and(spoke(A, "hi")).and(turn_ended(first(), well(), usage(0)));
    it.and(over(first(), Cause::Completed, Exit::Code(0), "")).and(forked(A, B, Some(9)))
}

fn copies(it: &Given) -> bool {
    inherited_session(&it.world, B).is_some_and(|harness_session| harness_session.session == TALK)
}

#[test]
fn a_fork_may_copy_what_it_inherits_as_long_as_nothing_was_added() {
    assert!(copies(&family()));
    assert!(copies(&family().and(said(B, "go"))));
    assert!(!copies(&family().and(said(A, "more"))), "it would hear what came later");
    assert!(!copies(&family().and(cleared(B))), "it has cleared what it inherited");
    let it = family().and(forked(A, C, Some(3)));
    assert!(inherited_session(&it.world, C).is_none(), "it was forked from an earlier message");
    assert!(inherited_session(&it.world, A).is_none(), "agent 0 was never run");
    assert!(inherited_session(&it.world, R).is_none(), "agent 0 inherits nothing");
}

#[test]
fn a_fork_does_not_copy_what_its_parent_has_not_heard_or_not_ended() {
    let it = done(staying()).and(said(A, "unheard")).and(forked(A, B, Some(11)));
    assert!(!copies(&it), "the last message is not in it yet");
    let it = it.and(heard(first(), 11));
    assert!(!copies(&it), "an answer is on its way into it");
    assert!(copies(&it.and(turn_ended(first(), well(), usage(0)))));
}

#[test]
fn a_copy_that_could_not_be_made_is_not_tried_again() {
    let of = hatchery_core::run::AttemptId { agent: B, run: 1, attempt: 1 };
    let it = family()
        .and(Event::Agent { agent: B, what: AgentEvent::RunRequested { run: 1, spec: spec() } })
        .and(copied(of));
    assert!(copies(&it));
    let it = it.and(turn_ended(of, forgotten(), usage(0)));
    assert!(!copies(&it));
    assert!(
        conversation(&it).harness_session.is_some(),
        "whether its parent's can be resumed is for its parent to find out"
    );
}
