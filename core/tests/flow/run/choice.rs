//! The choice of a run's spec: the request, then the last run, then the harness session, then the settings.

use hatchery_core::Refusal;
use hatchery_core::permission::PermissionPolicy::{All, Ask, Edits, None as Nothing};
use hatchery_core::run::{
    EarlierWork, HarnessSession, RunFacts, RunOptions, RunPurpose, RunSpec, UsualRun, choose_spec, fork_starts,
};
use hatchery_core::usage::Meter;
use std::sync::Arc;

const USUAL: UsualRun<'static> = UsualRun {
    harness: "claude",
    script: Some("usual.json"),
    stall_ms: 60_000,
    kill_stuck: false,
    retries: 3,
    parks: true,
    permissions: None,
};

fn choose(
    options: RunOptions,
    earlier: EarlierWork<'_>,
    usual: UsualRun<'_>,
    purpose: RunPurpose,
    [is_root, in_sandbox]: [bool; 2],
) -> Result<RunSpec, Refusal> {
    let host: Arc<str> = "mill".into();
    let harnesses = ["claude", "codex", "goose"];
    let facts = RunFacts { host: &host, harnesses: &harnesses, worktrees: ".hatchery/worktrees/", is_root, in_sandbox };
    choose_spec(options, earlier, usual, facts, purpose)
}

fn chosen(options: RunOptions, earlier: EarlierWork<'_>) -> RunSpec {
    choose(options, earlier, USUAL, RunPurpose::Agent, [false; 2]).expect("it is possible")
}

fn last() -> RunSpec {
    RunSpec {
        harness: "codex".into(),
        host: "elsewhere".into(),
        folder: Some("lib".into()),
        model: Some("big".into()),
        script: Some("last.json".into()),
        stays: true,
        stall_ms: 5_000,
        kill_stuck: true,
        retries: 9,
        parks: false,
        signals: true,
        permissions: Some(Edits),
    }
}

fn session() -> HarnessSession {
    HarnessSession {
        harness: "goose".into(),
        session: "s".into(),
        host: "mill".into(),
        folder: Some("docs".into()),
        meter: Meter::New,
        capabilities: None,
    }
}

/// Every refusal of a choice, with its code.
pub fn refusals() -> [(Refusal, &'static str); 4] {
    let options = RunOptions { harness: Some("gose".into()), ..RunOptions::default() };
    let unknown = choose(options, EarlierWork::default(), USUAL, RunPurpose::Agent, [false; 2]);
    let options = RunOptions { permissions: Some(All), ..RunOptions::default() };
    let root = choose(options, EarlierWork::default(), USUAL, RunPurpose::Quest, [true, false]);
    let silent = fork_starts(Some(true), &RunOptions::default(), None, None);
    let options = RunOptions { stays: Some(true), ..RunOptions::default() };
    let idle = fork_starts(Some(false), &options, Some("do"), None);
    [
        (unknown.expect_err("it is unknown"), "no_such_harness"),
        (root.expect_err("root may not"), "root_without_sandbox"),
        (silent.expect_err("it has no prompt"), "nothing_to_do"),
        (idle.expect_err("its options are for a run"), "nothing_to_do"),
    ]
}

#[test]
fn a_fork_starts_if_it_is_asked_to_or_if_there_is_something_to_do() {
    let (last, none, options) =
        (last(), RunOptions::default(), RunOptions { stays: Some(true), ..RunOptions::default() });
    for (asked, options, prompt, last, starts) in [
        (None, &none, None, Some(&last), false),
        (None, &none, Some("do"), None, false),
        (None, &none, Some("do"), Some(&last), true),
        (None, &options, Some("do"), None, true),
        (Some(true), &none, Some("do"), None, true),
        (Some(false), &none, Some("do"), Some(&last), false),
    ] {
        assert_eq!(fork_starts(asked, options, prompt, last), Ok(starts), "{asked:?} {prompt:?}");
    }
}

#[test]
fn without_anything_else_the_settings_count() {
    let spec = chosen(RunOptions::default(), EarlierWork::default());
    let usual = RunSpec {
        harness: "claude".into(),
        host: "mill".into(),
        folder: None,
        model: None,
        script: Some("usual.json".into()),
        stays: false,
        stall_ms: 60_000,
        kill_stuck: false,
        retries: 3,
        parks: true,
        signals: false,
        permissions: Some(Ask),
    };
    assert_eq!(spec, usual);
}

#[test]
fn the_last_run_counts_before_the_session_and_the_settings() {
    let (last, session) = (last(), session());
    let earlier = EarlierWork { last: Some(&last), harness_session: Some(&session) };
    // The host is this one, and only the agents of quests signal.
    let expected = RunSpec { host: "mill".into(), signals: false, ..last.clone() };
    assert_eq!(chosen(RunOptions::default(), earlier), expected);
    let only_session = EarlierWork { last: None, harness_session: Some(&session) };
    let spec = chosen(RunOptions::default(), only_session);
    assert_eq!((spec.harness.as_str(), spec.folder.as_deref()), ("goose", Some("docs")));
}

#[test]
fn the_request_counts_first() {
    let last = last();
    let options = RunOptions {
        harness: Some("claude".into()),
        model: Some("small".into()),
        folder: Some("app".into()),
        script: Some("own.json".into()),
        stays: Some(false),
        stall_ms: Some(7_000),
        kill_stuck: Some(false),
        retries: Some(1),
        park: Some(true),
        permissions: Some(Nothing),
    };
    let spec = chosen(options, EarlierWork { last: Some(&last), harness_session: None });
    let expected = RunSpec {
        harness: "claude".into(),
        host: "mill".into(),
        folder: Some("app".into()),
        model: Some("small".into()),
        script: Some("own.json".into()),
        stays: false,
        stall_ms: 7_000,
        kill_stuck: false,
        retries: 1,
        parks: true,
        signals: false,
        permissions: Some(Nothing),
    };
    assert_eq!(spec, expected);
}

#[test]
fn a_model_stays_with_its_harness() {
    let last = last();
    let earlier = EarlierWork { last: Some(&last), harness_session: None };
    let with = |harness: &str| RunOptions { harness: Some(harness.into()), ..RunOptions::default() };
    assert_eq!(chosen(with("codex"), earlier).model.as_deref(), Some("big"));
    assert_eq!(chosen(with("goose"), earlier).model, None);
}

#[test]
fn the_policy_depends_on_the_folder_if_nothing_names_it() {
    let table = [
        (None, None, RunPurpose::Agent, Some(Ask)),
        (Some("src"), None, RunPurpose::Agent, Some(Ask)),
        (Some(".hatchery/worktrees/docs-1a2b"), None, RunPurpose::Agent, Some(Edits)),
        (Some(".hatchery/worktrees2"), None, RunPurpose::Agent, Some(Ask)),
        (Some(".hatchery/worktrees/docs-1a2b"), Some(Nothing), RunPurpose::Agent, Some(Nothing)),
        (Some(".hatchery/worktrees/docs-1a2b"), None, RunPurpose::Quest, None),
        (None, Some(Edits), RunPurpose::Quest, Some(Edits)),
    ];
    for (folder, permissions, purpose, expected) in table {
        let options = RunOptions { folder: folder.map(str::to_owned), ..RunOptions::default() };
        let usual = UsualRun { permissions, ..USUAL };
        let spec = choose(options, EarlierWork::default(), usual, purpose, [false; 2]).expect("it is possible");
        assert_eq!(spec.permissions, expected, "{folder:?} {permissions:?} {purpose:?}");
    }
}

#[test]
fn root_allows_everything_only_in_a_sandbox() {
    for (is_root, in_sandbox, permissions, is_possible) in
        [(false, false, All, true), (true, true, All, true), (true, false, All, false), (true, false, Edits, true)]
    {
        let options = RunOptions { permissions: Some(permissions), ..RunOptions::default() };
        for purpose in [RunPurpose::Agent, RunPurpose::Quest] {
            let spec = choose(options.clone(), EarlierWork::default(), USUAL, purpose, [is_root, in_sandbox]);
            assert_eq!(spec.is_ok(), is_possible, "root {is_root}, sandbox {in_sandbox}, {permissions:?}: {spec:?}");
        }
    }
}

#[test]
fn an_unknown_harness_is_refused_with_the_names_of_the_others() {
    let [(refusal, _), ..] = refusals();
    assert_eq!(refusal.to_string(), "there is no harness `gose`");
    assert_eq!(refusal.hint(), "choose one of: claude, codex, goose");
}
