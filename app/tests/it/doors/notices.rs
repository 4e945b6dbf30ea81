//! What a command tells about the daemon that it meets: it hangs, it has read other settings, or it is another version.

use super::house::{House, Rules};
use crate::support::builds::{build_of_version, run_by};
use crate::support::daemon::{Daemon, Grounds, Ran};
use crate::support::workshop::Workshop;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a command may take to say that the daemon hangs: 3 seconds, with room for a busy machine.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_daemon_that_hangs_is_told_within_three_seconds() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    daemon.signal(Signal::STOP);
    let begun = Instant::now();
    let mut command = grounds.command(&["ps"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut words = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = words.next().unwrap().unwrap();
    assert!(told.contains(&format!("process {}", daemon.pid())) && told.contains("has not answered"), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    // What it knows is missing in an answer for all projects.
    let asked = grounds.run(&["ask", "list", "--everywhere"]);
    assert!(asked.code == Some(3) && asked.stderr.contains("does not answer in"), "{asked:?}");
    assert!(!asked.stderr.contains("there are no open questions"), "{asked:?}");
    // It was only slow: the command goes on.
    daemon.signal(Signal::CONT);
    assert!(child.wait().unwrap().success());
}

/// Starts a command, and gives the first words that it says, which must come soon.
fn first_words(grounds: &Grounds, arguments: &[&str]) -> (Child, String) {
    let begun = Instant::now();
    let mut command = grounds.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut told).unwrap();
    assert!(begun.elapsed() < SOON, "{arguments:?}: {:?}, {told}", begun.elapsed());
    (child, told)
}

#[test]
fn down_says_that_a_daemon_hangs_and_waits_for_one_that_was_only_slow() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    daemon.signal(Signal::STOP);
    let (mut child, told) = first_words(&grounds, &["down"]);
    assert!(told.contains(&format!("the daemon (process {}) has not answered", daemon.pid())), "{told}");
    assert!(told.contains("`hatchery down --force`"), "{told}");
    daemon.signal(Signal::CONT);
    assert!(child.wait().unwrap().success());
    assert_eq!(daemon.wait().code(), Some(0), "it has ended in order");
}

#[test]
fn a_daemon_that_hangs_is_ended_by_force_and_nobody_else() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "here" }), json!({ "hang": {} })]);
    shop.wait_said(&agent, "here");
    let (processes, grounds) = (shop.processes(), &shop.grounds);
    kill_process(Pid::from_raw(shop.daemon_pid().cast_signed()).unwrap(), Signal::STOP).unwrap();
    // Whoever is named in the lock's file holds no lock.
    let mut bystander = Command::new("sleep").arg("1000").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let note = json!({ "pid": bystander.id(), "daemon": { "pid": bystander.id(), "url": "http://127.0.0.1:9", "version": "0" } });
    std::fs::write(grounds.data().join("daemon.lock"), note.to_string()).unwrap();
    let refused = grounds.run(&["down", "--wait", "0"]);
    assert!(refused.code == Some(3) && refused.stderr.contains("`hatchery down --force`"), "{refused:?}");
    let ended = grounds.run(&["down", "--force"]);
    assert!(ended.code == Some(0) && ended.stderr.contains("was ended by force; nothing is lost"), "{ended:?}");
    assert!(ended.stderr.contains("1 agent keeps running"), "{ended:?}");
    assert!(bystander.try_wait().unwrap().is_none(), "the bystander was ended");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert_eq!(shop.processes(), processes, "the agent has worked on");
    grounds.run(&["stop", &agent]).good();
}

#[test]
fn a_daemon_that_answers_is_ended_in_order_with_force_too() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let ended = grounds.run(&["down", "--force"]);
    assert!(ended.code == Some(0) && ended.stderr.contains("the daemon has stopped"), "{ended:?}");
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn up_replace_says_that_a_daemon_hangs_and_takes_its_place_by_force() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let old = daemon.pid();
    daemon.signal(Signal::STOP);
    let (mut child, told) = first_words(&grounds, &["up", "--replace", "--no-open"]);
    assert!(told.contains(&format!("the daemon (process {old}) has not answered")), "{told}");
    assert!(told.contains("`hatchery up --replace --force`"), "{told}");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut command = grounds.command(&["up", "--replace", "--force", "--json"]);
    let next = Daemon::ready(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()).unwrap();
    assert_ne!(next.pid(), old);
    assert_eq!(next.door.get("/api/health").status, 200);
    assert_eq!(daemon.wait().code(), None, "it was killed");
}

#[test]
fn doctor_and_projects_say_that_a_daemon_hangs() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    daemon.signal(Signal::STOP);
    let root = grounds.project().root().display().to_string();
    let begun = Instant::now();
    let mut child = grounds.command(&["doctor"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let told = lines.find(|line| line.contains("daemon")).unwrap();
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(told.starts_with("bad") && told.contains(&format!("process {}", daemon.pid())), "{told}");
    assert!(told.contains("has not answered") && told.contains("`hatchery down --force`"), "{told}");
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(4));
    let begun = Instant::now();
    let listed = grounds.run(&["projects"]);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(listed.code, Some(3), "{listed:?}");
    assert!(listed.stdout.contains(&root) && listed.stdout.contains("its daemon does not answer"), "{listed:?}");
    assert!(!listed.stdout.contains("no daemon runs"), "{listed:?}");
    assert!(listed.stderr.contains("hatchery down --force --project"), "{listed:?}");
    let listed: Value = serde_json::from_str(&grounds.run(&["projects", "--json"]).stdout).unwrap();
    assert_eq!((&listed["projects"][0]["running"], &listed["projects"][0]["silent"]), (&json!(false), &json!(true)));
}

fn write(grounds: &Grounds, settings: &str) {
    std::fs::write(grounds.path().join("hatchery.toml"), settings).unwrap();
}

/// The settings of the run that was asked for last.
fn last_spec(grounds: &Grounds) -> Value {
    let log = grounds.run(&["events", "--json"]).good();
    let mut events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.rfind(|event| event["type"] == "run_requested").unwrap()["spec"].clone()
}

#[test]
fn a_changed_setting_counts_at_once() {
    let grounds = Grounds::with("harness = 'scripted'\n");
    grounds.run(&["run", "hello"]).good();
    assert_eq!(last_spec(&grounds)["retries"], 3);
    write(&grounds, "harness = 'scripted'\nretries = 1\n");
    grounds.run(&["run", "hello again"]).good();
    assert_eq!(last_spec(&grounds)["retries"], 1);
    assert_eq!(grounds.run(&["ask", "list"]).stderr, "there are no open questions\n", "nothing waits");
}

/// Whoever asks by HTTP only does not have the file looked at. The daemon does it by itself.
#[test]
fn a_higher_limit_lets_those_run_who_wait_for_their_turn() {
    let shop = Workshop::with("harness = 'scripted'\nmax_runs = 1\nstop_grace_ms = 300\n", Vec::new());
    let first = shop.run(&[json!({ "text": "first" }), json!({ "hang": {} })]);
    shop.wait_said(&first, "first");
    let second = shop.run(&[json!({ "text": "second" }), json!({ "hang": {} })]);
    shop.wait_for(&second, "run_waiting");
    write(&shop.grounds, "harness = 'scripted'\nmax_runs = 2\nstop_grace_ms = 300\n");
    shop.wait_said(&second, "second");
    shop.stop(&first);
    shop.stop(&second);
    assert_eq!((shop.end(&first), shop.end(&second)), ("user_ended".into(), "user_ended".into()));
}

#[test]
fn a_setting_that_needs_a_restart_is_told_until_it_counts() {
    let grounds = Grounds::with("harness = 'scripted'\n");
    grounds.run(&["run", "hello"]).good();
    write(&grounds, "harness = 'scripted'\nretries = 1\nheartbeat_ms = 500\n");
    for _ in 0..2 {
        let told = grounds.run(&["ask", "list"]).stderr;
        assert!(told.contains("this waits until the daemon is started again: heartbeat_ms."), "{told}");
    }
    // What was changed back waits no longer.
    write(&grounds, "harness = 'scripted'\nretries = 1\n");
    assert_eq!(grounds.run(&["ask", "list"]).stderr, "there are no open questions\n");
    write(&grounds, "harness = 'scripted'\nretries = 1\nheartbeat_ms = 500\n");
    grounds.run(&["down"]).good();
    grounds.run(&["ps"]).good();
    assert_eq!(grounds.run(&["ask", "list"]).stderr, "there are no open questions\n");
}

#[test]
fn a_changed_setting_that_runs_something_needs_the_users_word() {
    let grounds = Grounds::with("harness = 'scripted'\n");
    let asking =
        |arguments: &[&str]| Ran::from(grounds.command(arguments).env_remove("HATCHERY_TRUST_ALL").output().unwrap());
    asking(&["run", "hello"]).good();
    write(&grounds, "harness = 'scripted'\nretries = 1\n[worktrees]\nsetup = 'touch evil'\n");
    let told = asking(&["run", "hello"]);
    assert!(told.stderr.contains("the daemon goes on with what it has read before"), "{told:?}");
    assert!(told.stderr.contains("worktrees.setup") && told.stderr.contains("`hatchery trust`"), "{told:?}");
    assert_eq!(last_spec(&grounds)["retries"], 3, "all of it, or nothing");
    asking(&["trust", "--yes"]).good();
    asking(&["run", "hello"]).good();
    assert_eq!(last_spec(&grounds)["retries"], 1);
}

#[test]
fn a_wrong_file_changes_nothing_and_is_told() {
    let grounds = Grounds::with("harness = 'scripted'\nretries = 2\n");
    grounds.run(&["run", "hello"]).good();
    for wrong in ["harness = 'scripted'\nretires = 1\n", "harness = 'nobody'\n", "this is not TOML"] {
        write(&grounds, wrong);
        let told = grounds.run(&["run", "hello"]);
        assert_eq!(told.code, Some(0), "{told:?}");
        assert!(told.stderr.contains("the daemon goes on with what it has read before, because"), "{told:?}");
        assert_eq!(last_spec(&grounds)["retries"], 2);
    }
}

#[test]
fn up_replace_takes_the_place_of_a_daemon_and_agents_work_on() {
    let mut shop = Workshop::open();
    let agent = shop.run_with(&[json!({ "text": "here" }), json!({ "sleep_ms": 600_000 })], json!({}));
    shop.wait_said(&agent, "here");
    let before = shop.door().get("/api/status").json()["pid"].clone();
    let mut command = shop.grounds.command(&["up", "--replace", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_ne!(ready["pid"], before);
    let status = shop.grounds.run(&["status"]).good();
    assert!(status.contains(&format!("pid {}", ready["pid"])), "{status}");
    assert!(status.contains("`hatchery open` opens it"), "{status}");
    assert!(!status.contains(ready["token"].as_str().unwrap()), "{status}");
    let runs: serde_json::Value = serde_json::from_str(&shop.grounds.run(&["runs", "--json"]).good()).unwrap();
    let run = &runs["runs"][0];
    assert_eq!(
        (&run["agent"], &run["phase"], &run["attempts"]),
        (&json!(agent), &json!("running"), &json!(1)),
        "{runs:#}"
    );
    shop.grounds.run(&["stop", "--all"]).good();
    shop.grounds.run(&["down"]).good();
    child.wait().unwrap();
    shop.restart();
}

fn serving(grounds: &Grounds) -> String {
    grounds.project().daemon().unwrap().version
}

#[test]
fn a_newer_build_takes_the_place_of_an_older_one_while_agents_work_on() {
    let mut shop = Workshop::open();
    let own = env!("CARGO_PKG_VERSION");
    let agent = shop.run(&[json!({ "text": "here" }), json!({ "hang": {} })]);
    shop.wait_said(&agent, "here");
    let processes = shop.processes();
    let newer = build_of_version(&shop.grounds, "7.1.0");
    assert_eq!(run_by(&newer, &shop.grounds, &["--version"]).good(), "hatchery 7.1.0\n");
    let told = run_by(&newer, &shop.grounds, &["ps"]);
    let words = format!("the daemon is version {own}, this command is 7.1.0; `hatchery up --replace`");
    assert!(told.code == Some(0) && told.stderr.contains(&words), "{told:?}");
    assert_eq!(serving(&shop.grounds), own, "only told");
    // In the foreground, as a user does it.
    let mut up = Command::new(&newer);
    up.args(["up", "--replace", "--json", "--project"]).arg(shop.grounds.path());
    up.env_clear().env("HOME", shop.grounds.path().join("home")).env("PATH", std::env::var_os("PATH").unwrap());
    let mut up = up.env("HATCHERY_TRUST_ALL", "1").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(up.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(serving(&shop.grounds), "7.1.0", "{line}");
    // The older command says so as well, and works.
    let told = shop.grounds.run(&["ps"]);
    assert!(told.code == Some(0) && told.stderr.contains(&format!("version 7.1.0, this command is {own}")), "{told:?}");
    // By a setting the command does it itself, if it is the newer one.
    write(&shop.grounds, "harness = 'scripted'\nstop_grace_ms = 300\nreplace_daemon = true\n");
    shop.grounds.run(&["ps"]).good();
    assert_eq!(serving(&shop.grounds), "7.1.0", "an older command replaces nothing");
    let newest = build_of_version(&shop.grounds, "7.2.0");
    let told = run_by(&newest, &shop.grounds, &["ps"]);
    assert!(told.stderr.contains("a daemon of version 7.2.0 takes its place"), "{told:?}");
    assert_eq!((told.code, serving(&shop.grounds)), (Some(0), "7.2.0".to_owned()), "{told:?}");
    up.wait().unwrap();
    assert_eq!(shop.processes(), processes, "the agent has worked on");
    // And back: what the newer ones wrote has the same form, so this one takes it over.
    run_by(&newest, &shop.grounds, &["down"]).good();
    shop.restart();
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    assert_eq!(shop.kinds(&agent).iter().filter(|kind| *kind == "run_spawned").count(), 1, "there was one process");
}

#[test]
fn an_edit_while_the_daemon_starts_is_taken_over() {
    let house = House::with(Rules { edited: "retries = 1\n", ..Rules::default() });
    assert_eq!(house.settings.take_over().unwrap().taken, ["retries"]);
    assert_eq!(house.settings.take_over().unwrap().taken, [""; 0], "once");
}
