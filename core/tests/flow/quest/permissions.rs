//! An agent of a quest asks for permission: it holds its slot for a while, and not for longer.

use super::words::*;
use hatchery_core::event::RunEvent;
use hatchery_core::output::Output;
use hatchery_core::permission::{
    Access, DecidedBy, PATIENCE_MS, PendingState, PermissionDecision, PermissionPolicy, PermissionRequest,
};
use hatchery_core::quest::{Isolation, QuestSpec, StepStatus};
use hatchery_core::run::{RunSpec, RunState, StopWhy};
use hatchery_core::{AgentId, Cause, Event, Exit};

fn request(id: &str) -> PermissionRequest {
    PermissionRequest {
        request: id.into(),
        tool: "Bash".into(),
        tool_use: None,
        input: r#"{"command":"make"}"#.into(),
        access: Access::Execute { command: "make".into() },
        folder: None,
    }
}

fn asking(quest_spec: QuestSpec) -> QuestSpec {
    let spec = RunSpec { permissions: Some(PermissionPolicy::Ask), ..quest_spec.spec.clone() };
    QuestSpec { spec, ..quest_spec }
}

/// One slot, two steps; the agent of the first asks, and nobody answers in time.
fn impatient() -> (Play, AgentId) {
    let mut it = smithy(asking(slots(1)), &[("a", &[]), ("b", &[])]);
    let agent = it.start("a");
    it.says(agent, vec![Output::Asked(request("r"))]);
    assert_eq!(it.later(PATIENCE_MS - 1), [], "it does not count as stuck");
    let stopping = RunEvent::Stopping { why: StopWhy::AwaitsPermission };
    assert_eq!(it.later(1), [Event::Run { of: it.attempt_id(agent), what: stopping }]);
    (it, agent)
}

#[test]
fn the_slot_is_given_back_and_the_answer_counts_for_the_next_process() {
    let (mut it, agent) = impatient();
    it.exits(agent, Exit::Code(143));
    assert!(matches!(it.run(agent).state, RunState::Parked { cause: Cause::AwaitsPermission, until: None }));
    assert_eq!(it.running(), ["b"], "another step has the slot");
    it.restarted();
    it.answers("allow");
    assert_eq!(it.running(), ["b"], "it waits for a slot");
    it.plays("b", complete());
    assert_eq!((it.running(), it.agent("a")), (vec!["a".to_owned()], agent));
    it.start("a");
    let events = it.says(agent, vec![Output::Asked(request("s"))]);
    let decided =
        RunEvent::PermissionDecided { request: "s".into(), decision: PermissionDecision::Allow, by: DecidedBy::Human };
    assert!(events.contains(&Event::Run { of: it.attempt_id(agent), what: decided }), "{events:?}");
    it.says(agent, vec![Output::Answered { request: "s".into(), problem: None }, Output::Asked(request("t"))]);
    assert!(it.run(agent).waits_for_permission(), "an answer counts once");
}

#[test]
fn an_answer_that_comes_while_it_is_stopped_lets_it_go_on_at_once() {
    let (mut it, agent) = impatient();
    it.answers("deny: not now");
    it.exits(agent, Exit::Code(143));
    assert_eq!((it.running(), it.agent("a")), (vec!["a".to_owned()], agent));
    it.start("a");
    it.says(agent, vec![Output::Asked(request("s"))]);
    let state = &it.run(agent).attempt.permissions[0].state;
    let PendingState::Decided { decision: PermissionDecision::Deny { reason }, .. } = state else {
        panic!("{state:?}")
    };
    assert!(reason.contains("not now"));
}

#[test]
fn who_is_stopped_while_it_waits_asks_no_more() {
    let (mut it, agent) = impatient();
    it.exits(agent, Exit::Code(143));
    it.must(hatchery_core::Command::StopRun { agent });
    assert!(it.run(agent).attempt.permissions.is_empty());
    assert!(it.questions().iter().all(|open| it.world.question(*open).unwrap().agent == agent), "about its end");
    assert_ne!(it.status("a"), StepStatus::Running);
}

#[test]
fn the_policy_of_a_step_is_that_of_its_role_or_of_the_place() {
    let worktree = Isolation::Worktree { base: ".hatchery/worktrees/q".into(), within: None };
    let plain = alone(slots(1));
    assert_eq!(plain.permissions("smith"), PermissionPolicy::Ask);
    let isolated = QuestSpec { isolation: worktree, ..plain.clone() };
    assert_eq!(isolated.permissions("smith"), PermissionPolicy::Edits);
    let mut of_role = asking(isolated);
    assert_eq!(of_role.permissions("smith"), PermissionPolicy::Ask);
    of_role.table.roles[0].permissions = Some(PermissionPolicy::None);
    assert_eq!(of_role.permissions("smith"), PermissionPolicy::None);
    let mut it = smithy(asking(plain), &[("a", &[])]);
    let agent = it.start("a");
    assert_eq!(it.run(agent).spec.policy(), PermissionPolicy::Ask);
}
