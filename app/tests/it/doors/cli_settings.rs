//! Where the program works, and what it is told by file, environment and flags.

use crate::support::daemon::{Daemon, Grounds, Ran};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hatchery");

/// `doctor` in a folder, without `--project`. It starts nothing.
fn doctor(folder: &Path, environment: &[(&str, &Path)], arguments: &[&str]) -> Ran {
    let mut command = Command::new(PROGRAM);
    command.args(["doctor", "--json"]).args(arguments).current_dir(folder).stdin(Stdio::null());
    Ran::from(command.env_clear().envs(environment.iter().copied()).output().unwrap())
}

fn project(ran: &Ran) -> String {
    let findings: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    findings["findings"][0]["what"].as_str().unwrap().to_owned()
}

#[test]
fn a_project_is_found_from_inside() {
    let folder = TempDir::with_prefix("hatchery").unwrap();
    let root = folder.path().canonicalize().unwrap();
    let deep = root.join("a/b/c");
    std::fs::create_dir_all(&deep).unwrap();
    let found = |from: &Path| project(&doctor(from, &[], &[]));
    assert_eq!(found(&deep), deep.to_str().unwrap(), "no mark: the folder itself");
    // A worktree has a file in place of the folder.
    std::fs::write(root.join("a/.git"), "gitdir: elsewhere").unwrap();
    assert_eq!(found(&deep), root.join("a").to_str().unwrap());
    std::fs::create_dir(root.join("a/b/.hatchery")).unwrap();
    assert_eq!(found(&deep), root.join("a/b").to_str().unwrap(), "the nearest wins");
    std::fs::write(root.join("a/b/c/.hatchery"), "a file of that name is no mark").unwrap();
    assert_eq!(found(&deep), root.join("a/b").to_str().unwrap());
    let elsewhere = root.join("a");
    assert_eq!(project(&doctor(&root, &[("HATCHERY_PROJECT", &deep)], &[])), root.join("a/b").to_str().unwrap());
    let flag = ["--project", elsewhere.to_str().unwrap()];
    assert_eq!(project(&doctor(&root, &[("HATCHERY_PROJECT", &deep)], &flag)), elsewhere.to_str().unwrap());
    let nowhere = doctor(&root, &[], &["--project", "nowhere"]);
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
    assert!(nowhere.stderr.contains("the folder nowhere cannot be used"), "{nowhere:?}");
}

#[test]
fn a_setting_that_nobody_knows_names_the_nearest() {
    let grounds = Grounds::with("hearbeat_ms = 100");
    for arguments in [["up", "--json"].as_slice(), &["events"], &["session", "start"], &["fsck"]] {
        let ran = grounds.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("`hearbeat_ms` is not known"), "{ran:?}");
        assert!(ran.stderr.contains("did you mean `heartbeat_ms`?"), "{ran:?}");
        assert!(ran.stderr.contains("hatchery.toml"), "{ran:?}");
    }
    let grounds = Grounds::new();
    let ran = Ran::from(grounds.command(&["up", "--json"]).env("HATCHERY_PROT", "1").output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("HATCHERY_PROT: `prot` is not known") && ran.stderr.contains("`port`"), "{ran:?}");
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let grounds = Grounds::with("listen = '127.0.0.2'");
    let listens = |environment: &[(&str, &str)], flags: &[&str]| {
        let arguments = [&["up", "--json", "--no-open"], flags].concat();
        let mut command = grounds.command(&arguments);
        let child = command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let daemon = Daemon::ready(child.unwrap()).unwrap();
        daemon.door.authority.split(':').next().unwrap().to_owned()
    };
    assert_eq!(listens(&[], &[]), "127.0.0.2");
    assert_eq!(listens(&[("HATCHERY_LISTEN", "127.0.0.3")], &[]), "127.0.0.3");
    assert_eq!(listens(&[("HATCHERY_LISTEN", "127.0.0.3")], &["--listen", "127.0.0.4"]), "127.0.0.4");
}
