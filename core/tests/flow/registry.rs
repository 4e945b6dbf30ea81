//! Who is meant: an id, the beginning of one, or a name that only one living agent has.

use crate::given::*;
use hatchery_core::agent::{MAX_NAME_BYTES, check_given_name, free_name, resolve};
use hatchery_core::{Address, AgentId, Refusal, mail};

/// `AAAA…` and `AAAB…`: alike in their first three characters.
const X: AgentId = AgentId::from_bytes([0; 16]);
const Y: AgentId = AgentId::from_bytes([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

fn twins() -> Given {
    given([created(X, None), created(Y, None)])
}

fn ambiguous(reference: &str, candidates: [AgentId; 2]) -> Result<AgentId, Refusal> {
    Err(Refusal::Ambiguous { reference: reference.into(), candidates: candidates.into() })
}

#[test]
fn an_id_or_any_beginning_that_only_one_has() {
    let it = twins();
    assert_eq!(resolve(&it.world, &X.to_string()), Ok(X));
    assert_eq!(resolve(&it.world, "AAAA"), Ok(X));
    assert_eq!(resolve(&it.world, "AAAB"), Ok(Y));
    assert_eq!(resolve(&it.world, &Y.to_string()[..21]), Ok(Y));
    assert_eq!(resolve(&it.world, "AAA"), ambiguous("AAA", [X, Y]));
    assert_eq!(resolve(&it.world, "aaaa"), Err(Refusal::NobodyCalled("aaaa".into())), "case matters");
    assert_eq!(resolve(&it.world, ""), Err(Refusal::NobodyCalled(String::new())), "nothing is not everything");
    assert_eq!(resolve(&it.world, &NOBODY.to_string()), Err(Refusal::UnknownAgent(NOBODY)));
}

#[test]
fn an_ambiguous_reference_lists_all_that_it_may_mean() {
    let refusal = resolve(&twins().world, "AAA").unwrap_err().to_string();
    assert!(refusal.contains(&X.to_string()) && refusal.contains(&Y.to_string()), "{refusal}");
}

#[test]
fn a_name_means_the_living_and_only_without_one_the_dead() {
    let it = twins().and(renamed(X, "Cael")).and(renamed(Y, "Cael"));
    assert_eq!(resolve(&it.world, "Cael"), ambiguous("Cael", [X, Y]));
    let it = it.and(dead(X));
    assert_eq!(resolve(&it.world, "Cael"), Ok(Y));
    assert_eq!(resolve(&it.world, "AAAA"), Ok(X));
    assert_eq!(resolve(&it.world, "AAA"), ambiguous("AAA", [X, Y]));
    let it = it.and(dead(Y));
    assert_eq!(resolve(&it.world, "Cael"), ambiguous("Cael", [X, Y]));
    let it = twins().and(renamed(X, "Ann")).and(dead(X));
    assert_eq!(resolve(&it.world, "Ann"), Ok(X), "its history stays");
}

#[test]
fn a_name_is_taken_whole_and_before_the_beginning_of_an_id() {
    let it = twins().and(renamed(R, "AAAA"));
    assert_eq!(resolve(&it.world, "AAAA"), Ok(R));
    assert_eq!(resolve(&it.world, "AAAAA"), Ok(X));
    let it = twins().and(renamed(R, "Cael"));
    assert_eq!(resolve(&it.world, "Cae"), Err(Refusal::NobodyCalled("Cae".into())));
}

/// A name cannot stand in front of an id, but it may look like one.
#[test]
fn a_whole_id_means_that_agent_and_no_other() {
    let it = twins().and(renamed(R, &X.to_string())).and(renamed(Y, &NOBODY.to_string()));
    assert_eq!(resolve(&it.world, &X.to_string()), Ok(X));
    assert_eq!(resolve(&it.world, &NOBODY.to_string()), Ok(Y));
}

#[test]
fn an_address_is_the_human_or_an_agent() {
    let it = twins().and(renamed(X, "Cael"));
    assert_eq!(mail::resolve(&it.world, "human"), Ok(Address::Human));
    assert_eq!(mail::resolve(&it.world, "Cael"), Ok(Address::Agent(X)));
    assert_eq!(mail::resolve(&it.world, "Human"), Err(Refusal::NobodyCalled("Human".into())));
}

#[test]
fn a_refusal_repeats_no_more_than_a_name_may_have() {
    let endless = "é".repeat(10_000);
    let told = "é".repeat(MAX_NAME_BYTES);
    assert_eq!(resolve(&twins().world, &endless), Err(Refusal::NobodyCalled(told)));
}

#[test]
fn a_free_name_is_the_nearest_that_no_living_agent_has() {
    let it = twins().and(renamed(X, "docs")).and(renamed(Y, "docs-2"));
    assert_eq!(free_name(&it.world, "docs"), "docs-3");
    assert_eq!(free_name(&it.world, "other"), "other");
    assert_eq!(free_name(&it.world, "root"), "root-2", "it belongs to agent 0");
    let long = "ä".repeat(MAX_NAME_BYTES / 2);
    let it = it.and(renamed(X, &long));
    let free = free_name(&it.world, &long);
    assert!(free.len() <= MAX_NAME_BYTES && free.ends_with("ä-2"), "{free}");
    let it = it.and(dead(Y));
    assert_eq!(free_name(&it.world, "docs-2"), "docs-2");
    // An agent keeps its own name.
    assert_eq!(check_given_name(&it.world, Some(&long), Some(X)), Ok(()));
    assert_eq!(check_given_name(&it.world, None, None), Ok(()));
    assert!(check_given_name(&it.world, Some("root"), Some(X)).is_err());
}
