//! The selftest that users run: short here, and long by hand.

use crate::support::daemon::{Grounds, PROGRAM, wait_until};
use crate::support::postgres::Server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn short(grounds: &Grounds, more: &[&str]) {
    let ran = grounds.run(&[&["selftest", "--short", "--json"], more].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let counts: Value = serde_json::from_str(&ran.stdout).unwrap();
    for nothing in ["lost", "doubled", "serverErrors"] {
        assert_eq!(counts[nothing], 0, "{nothing}: {counts}");
    }
    let somethings = ["acknowledged", "daemonKills", "launcherKills", "agentKills", "strangers", "events", "runs"];
    for something in somethings {
        assert!(counts[something].as_u64() > Some(0), "{something}: {counts}");
    }
}

#[test]
fn sqlite() {
    short(&Grounds::new(), &[]);
}

#[test]
fn postgres() {
    let database = Server::shared().database();
    short(&Grounds::new(), &["--store", &database.url()]);
}

/// It leaves neither its folder nor its daemon nor its agents.
#[test]
fn an_interrupted_selftest_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let grounds = Grounds::new();
        let (selftest, folder) = begin(&grounds);
        let listed = grounds.run(&["gc", "--clear"]).good();
        assert!(!listed.contains("selftest") && folder.exists(), "one that runs is no leftover: {listed}");
        send(&selftest, signal);
        let ended = selftest.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{ended:?}");
        assert!(!folder.exists(), "{}", folder.display());
        wait_until("nobody is left", || at_work_in(&folder) == 0);
    }
}

#[test]
fn what_a_killed_selftest_leaves_is_shown_and_cleared() {
    let grounds = Grounds::new();
    let (mut selftest, folder) = begin(&grounds);
    send(&selftest, Signal::KILL);
    selftest.wait().unwrap();
    // Its daemon and its agents live on, and it is no leftover as long as they do.
    for command in [["stop", "--all"].as_slice(), &["down"]] {
        let mut program = Command::new(PROGRAM);
        program.args(command).arg("--project").arg(&folder).env("HOME", grounds.path().join("home"));
        assert!(program.env("HATCHERY_TRUST_ALL", "1").status().unwrap().success());
    }
    wait_until("nobody is left", || at_work_in(&folder) == 0);
    wait_until("it is a leftover", || grounds.run(&["gc"]).good().contains("selftest"));
    grounds.run(&["gc", "--clear"]).good();
    assert!(!folder.exists());
}

/// A selftest whose first agent has begun, with its folder.
fn begin(grounds: &Grounds) -> (Child, PathBuf) {
    let mut command = grounds.command(&["selftest", "--minutes", "5", "--seed", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let entries = || fs::read_dir(grounds.data()).unwrap().flatten().map(|entry| entry.path());
    let is_folder = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("selftest-");
    wait_until("an agent has begun", || {
        entries().find(is_folder).is_some_and(|folder| {
            let agents = fs::read_dir(folder.join(".hatchery/runs")).into_iter().flatten().flatten();
            agents.filter(|agent| agent.path().join("1-1/process.json").exists()).count() > 0
        })
    });
    let folder = entries().find(is_folder).unwrap();
    (child, folder)
}

/// How many processes have a path in the folder among their arguments: daemons, launchers and agents have.
fn at_work_in(folder: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.map(|process| fs::read(process.path().join("cmdline")).unwrap_or_default());
    arguments.filter(|arguments| String::from_utf8_lossy(arguments).contains(folder.to_str().unwrap())).count()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}
