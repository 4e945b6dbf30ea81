//! Follow-ups: another role acts first. Chains have an end, and circles are cut.

use super::words::*;
use hatchery_core::ask::{About, StepTrouble};
use hatchery_core::event::AgentEvent;
use hatchery_core::quest::{MAX_FOLLOW_UPS, MAX_RETURNS, StepStatus, Verdict};
use hatchery_core::{Command, Event};

#[test]
fn a_chain_of_callers_goes_back_the_way_it_came() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let smith = it.agent("a");
    it.plays("a", calls("tinker", true));
    let tinker = it.agent("a");
    assert!(it.told(tinker).contains("<reason>\nwhy") && it.told(tinker).contains("<context>\nwhere"));
    it.plays("a", calls("planner", true));
    assert_eq!(it.role("a"), "planner");
    it.restarted();
    it.plays("a", complete());
    assert_eq!(it.agent("a"), tinker);
    it.plays("a", complete());
    assert_eq!(it.agent("a"), smith);
    it.plays("a", complete());
    assert_eq!(it.state(), "complete");
}

#[test]
fn one_that_is_not_to_go_on_is_passed_by_on_the_way_back() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let smith = it.agent("a");
    it.plays("a", calls("tinker", true));
    it.plays("a", calls("planner", false));
    it.plays("a", complete());
    assert_eq!(it.agent("a"), smith);
}

#[test]
fn a_circle_of_roles_is_cut_by_a_question() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    // The two may call each other, each time a fresh one, but not without an end.
    for _ in 0..MAX_RETURNS {
        it.plays("a", calls("tinker", true));
        assert_eq!(it.role("a"), "tinker");
        it.plays("a", calls("smith", true));
        if it.status("a") != StepStatus::WaitingForHuman {
            assert_eq!(it.role("a"), "smith");
        }
    }
    let tinker = it.agent_of("a");
    assert_eq!(it.status("a"), StepStatus::WaitingForHuman);
    let asked = it.world.question(it.question()).expect("it is open").clone();
    assert_eq!((asked.agent, asked.about), (tinker, About::Step { quest: Q, trouble: StepTrouble::Circle }));
    it.answers("do it yourself");
    assert_eq!(it.agent("a"), tinker);
    assert!(it.told(tinker).contains("do it yourself"));
}

#[test]
fn so_is_a_ping_pong_that_is_no_circle() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    for _ in 0..MAX_FOLLOW_UPS {
        it.plays("a", calls("tinker", true));
        it.plays("a", complete());
    }
    it.plays("a", calls("tinker", true));
    assert_eq!(it.status("a"), StepStatus::WaitingForHuman);
    it.answers("once more");
    it.plays("a", calls("tinker", true));
    assert_eq!(it.role("a"), "tinker", "a person had a say");
}

#[test]
fn what_another_role_did_passes_the_ward_too() {
    let mut it = smithy(warded(), &[("a", &[])]);
    it.plays("a", calls("tinker", false));
    it.plays("a", complete());
    it.ward("a", red(&["error"]));
    assert_eq!(it.role("a"), "tinker");
    // The mender asks for somebody else; then the ward looks again.
    it.plays("a", calls("smith", false));
    assert_eq!(it.role("a"), "smith");
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    assert_eq!(it.state(), "complete");
}

#[test]
fn the_work_of_a_caller_that_was_killed_is_taken_over_and_its_message_too() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let smith = it.agent("a");
    it.plays("a", calls("tinker", true));
    it.must(Command::Kill { agent: smith, cascade: false, by: None, remark: None });
    it.plays("a", complete());
    let heir = it.agent("a");
    assert!(heir != smith && it.role("a") == "smith");
    assert!(
        it.told(heir).contains("does not exist any more")
            && it.told(heir).contains("The tinker that you asked for is done")
    );
}

#[test]
fn whoever_has_done_its_work_sleeps() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.agent("a");
    let events = it.plays("a", complete());
    assert!(events.contains(&Event::Agent { agent, what: AgentEvent::Slept }));
}
