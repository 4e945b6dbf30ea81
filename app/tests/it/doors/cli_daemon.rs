//! Commands and the daemon: started in the background, followed across a restart, stopped, and looked at by the doctor.

use crate::support::daemon::{Grounds, Ran};
use hatchery::daemon_log::FULL_BYTES;
use hatchery::store::migration::MIGRATIONS;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Lines};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStdout, Stdio};

/// A command that goes on by itself, and is gone when its owner is.
struct Going {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Going {
    fn start(grounds: &Grounds, arguments: &[&str]) -> Self {
        let mut child = grounds.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn event(&mut self) -> Value {
        let line = self.lines.next().expect("another line").unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
    }
}

fn daemon_pid(grounds: &Grounds) -> u32 {
    grounds.project().daemon().expect("a daemon has announced itself").pid
}

/// Gone, or only waiting for its parent to take note.
fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

fn finding(ran: &Ran, about: &str) -> (String, String) {
    let findings: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let found = findings["findings"].as_array().unwrap().iter().find(|finding| finding["about"] == about);
    let found = found.unwrap_or_else(|| panic!("nothing about {about}: {findings}"));
    (found["verdict"].as_str().unwrap().to_owned(), found["what"].as_str().unwrap().to_owned())
}

#[test]
fn a_command_starts_the_daemon_and_down_stops_it() {
    let grounds = Grounds::new();
    let none = grounds.run(&["status"]);
    assert_eq!(none.code, Some(3));
    assert!(none.stderr.contains("`hatchery up` starts one"), "{none:?}");
    assert!(grounds.project().daemon().is_none(), "asking for the status starts nothing");
    let session = grounds.run(&["session", "start", "one"]).good();
    let pid = daemon_pid(&grounds);
    assert!(!has_ended(pid), "it outlives the command that started it");
    let listed = grounds.run(&["session", "list"]).good();
    assert!(listed.starts_with(session.trim()) && listed.contains("one"), "{listed}");
    assert_eq!(daemon_pid(&grounds), pid, "the second command uses the same one");
    let status = grounds.run(&["status"]).good();
    for words in [&format!("pid {pid}"), "2 events\n", "sessions  1", "agents    1"] {
        assert!(status.contains(words), "{words}: {status}");
    }
    grounds.run(&["down"]).good();
    assert!(has_ended(pid) && grounds.project().daemon().is_none(), "down waits until the process has ended");
    assert_eq!(grounds.run(&["status"]).code, Some(3));
    assert_eq!(grounds.run(&["down"]).stderr, "no daemon runs here\n");
}

#[test]
fn two_commands_at_once_start_one_daemon() {
    let grounds = Grounds::new();
    std::thread::scope(|scope| {
        for number in ["1", "2", "3"] {
            let grounds = &grounds;
            scope.spawn(move || grounds.run(&["session", "start", number]).good());
        }
    });
    let events = grounds.run(&["events", "--json"]).good();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["agent_created", "session_started", "session_started", "session_started"]);
}

#[test]
fn following_goes_on_after_a_restart() {
    let grounds = Grounds::new();
    grounds.run(&["session", "start", "first"]).good();
    let mut follow = Going::start(&grounds, &["events", "--follow", "--json"]);
    let agent_0 = follow.event();
    assert_eq!(
        (&agent_0["type"], &agent_0["name"]),
        (&"agent_created".into(), &"root".into()),
        "made by the first start"
    );
    assert_eq!(follow.event()["label"], "first");
    grounds.run(&["session", "start", "second"]).good();
    assert_eq!(follow.event()["label"], "second");
    let pid = Pid::from_raw(i32::try_from(daemon_pid(&grounds)).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    grounds.run(&["session", "start", "third"]).good();
    assert_eq!(follow.event()["label"], "third");
    grounds.run(&["down"]).good();
    grounds.run(&["session", "start", "fourth"]).good();
    let last = follow.event();
    assert_eq!((&last["label"], &last["id"]), (&"fourth".into(), &5.into()), "nothing twice, nothing left out");
}

#[test]
fn the_daemon_says_that_it_is_ready_in_one_line() {
    let grounds = Grounds::new();
    let mut up = Going::start(&grounds, &["up", "--json"]);
    let ready = up.event();
    grounds.run(&["session", "start"]).good();
    grounds.run(&["down"]).good();
    assert!(up.lines.next().is_none(), "one line and no more");
    assert!(up.child.wait().unwrap().success());
    let names: Vec<&str> = ready.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["pid", "token", "url"]);
    assert!(ready["url"].as_str().unwrap().starts_with("http://127.0.0.1:"));
}

#[test]
fn a_daemon_that_cannot_start_says_why_and_prints_no_data() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let grounds = Grounds::new();
    for (arguments, code, words) in [
        (["up", "--json", "--port", port.as_str()].as_slice(), 1, "cannot listen on 127.0.0.1"),
        (&["up", "--json", "--store", "sqlite:/proc/nowhere/log.db"], 3, "hint: "),
        (&["up", "--json", "--listen", "999.0.0.1"], 2, "is not an address"),
        (&["up", "--json", "--store", "redis://x"], 2, "is not a store"),
    ] {
        let ran = grounds.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(words), "{ran:?}");
    }
    let daemon = grounds.up();
    let second = grounds.run(&["up", "--json"]);
    assert_eq!((second.code, second.stdout.as_str()), (Some(1), ""));
    let words = format!("a daemon runs already for {}", grounds.path().canonicalize().unwrap().display());
    assert!(second.stderr.contains(&words) && second.stderr.contains(&daemon.pid().to_string()), "{second:?}");
}

/// What the last daemon wrote is not shown as the reason why the next one did not start.
#[test]
fn a_daemon_that_fails_in_the_background_is_quoted() {
    let grounds = Grounds::new();
    grounds.run(&["session", "start"]).good();
    grounds.run(&["down"]).good();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = format!("port = {}", taken.local_addr().unwrap().port());
    std::fs::write(grounds.path().join("hatchery.toml"), settings).unwrap();
    let ran = grounds.run(&["ps"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert!(ran.stderr.contains("cannot listen on 127.0.0.1"), "{ran:?}");
    assert!(!ran.stderr.contains("shutting down"), "{ran:?}");
}

#[test]
fn the_doctor_finds_nothing_wrong_where_nothing_is() {
    let grounds = Grounds::new();
    for _ in 0..2 {
        let ran = grounds.run(&["doctor", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for about in ["project", "settings", "daemon", "folder", "store", "port", "disk"] {
            assert_eq!(finding(&ran, about).0, "good", "{about}: {ran:?}");
        }
        assert!(["good", "note"].contains(&finding(&ran, "claude").0.as_str()));
        assert!(["good", "note"].contains(&finding(&ran, "codex").0.as_str()));
        assert!(!grounds.database().exists() || grounds.project().is_served(), "looking makes nothing");
        grounds.run(&["session", "start"]).good();
    }
    let words = grounds.run(&["doctor"]).good();
    assert!(words.lines().any(|line| line.starts_with("ok   store")), "{words}");
}

#[test]
fn the_doctor_says_of_each_agent_program_where_it_is_its_version_and_what_it_can_do() {
    let grounds = Grounds::with(
        "codex_path = './play'\n[harness.own]\nacp = ['./play', 'acp']\n[harness.gone]\nacp = ['./gone']",
    );
    let program = grounds.path().join("play");
    let answer = r#"{"jsonrpc":"2.0","id":"initialize","result":{"protocolVersion":1,"agentCapabilities":{}}}"#;
    let script =
        format!("#!/bin/sh\nif [ \"$1\" = acp ]; then read -r line; echo '{answer}'; else echo player 1.2.3; fi\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = grounds.run(&["doctor", "--json"]);
    let (_, codex) = finding(&ran, "codex");
    assert!(
        codex.contains("play, player 1.2.3; ") && codex.contains("can confirm each message, take messages"),
        "{codex}"
    );
    let findings: Value = serde_json::from_str(&ran.stdout).unwrap();
    let is_own = |finding: &&Value| finding["what"].as_str().unwrap().starts_with("own: ");
    let own = findings["findings"].as_array().unwrap().iter().find(is_own).unwrap();
    let what = own["what"].as_str().unwrap();
    assert!(own["about"] == "acp" && own["verdict"] == "good", "{own}");
    assert!(what.contains("player 1.2.3; whether it is logged in shows at its first message; can be "), "{own}");
    assert!(what.contains("cannot confirm each message"), "{own}");
    assert!(ran.stdout.contains("gone (./gone)"), "{ran:?}");
}

#[test]
fn the_doctor_runs_nothing_of_a_project_that_is_not_trusted() {
    let settings = "claude_path = './play'\ncodex_path = './play'\n[harness.own]\nacp = ['./play', 'acp']";
    let grounds = Grounds::with(settings);
    let program = grounds.path().join("play");
    std::fs::write(&program, "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = Ran::from(grounds.command(&["doctor", "--json"]).env_remove("HATCHERY_TRUST_ALL").output().unwrap());
    assert!(ran.stdout.matches("not asked for its version before you trust the project").count() >= 3, "{ran:?}");
    assert!(!grounds.path().join("ran").exists());
    grounds.run(&["doctor"]);
    assert!(grounds.path().join("ran").exists(), "the test would see it");
}

#[test]
fn a_full_log_of_the_daemon_makes_way_for_a_new_one() {
    let grounds = Grounds::new();
    let (log, old) = (grounds.data().join("daemon.log"), grounds.data().join("daemon.log.1"));
    std::fs::create_dir_all(grounds.data()).unwrap();
    std::fs::write(&log, vec![b'\n'; usize::try_from(FULL_BYTES).unwrap()]).unwrap();
    grounds.run(&["session", "start"]).good();
    assert_eq!(std::fs::metadata(&old).unwrap().len(), FULL_BYTES);
    grounds.run(&["down"]).good();
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("ready") && said.contains("shutting down"), "{said}");
}

#[test]
fn a_daemon_that_does_not_start_is_heard_although_its_log_was_full() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let grounds = Grounds::with(&format!("log = 'debug'\nport = {}", taken.local_addr().unwrap().port()));
    std::fs::create_dir_all(grounds.data()).unwrap();
    std::fs::write(grounds.data().join("daemon.log"), vec![b'\n'; usize::try_from(FULL_BYTES).unwrap()]).unwrap();
    let ran = grounds.run(&["ps"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("cannot listen on 127.0.0.1"), "{ran:?}");
}

/// The files of the store, and what is in them.
fn files(grounds: &Grounds) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(grounds.data()).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let mut files: Vec<_> = named.filter(|(name, _)| name.starts_with("hatchery.db")).collect();
    files.sort();
    files.into_iter().map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

#[test]
fn the_doctor_leaves_an_older_schema_to_the_daemon() {
    let grounds = Grounds::new();
    std::fs::create_dir_all(grounds.data()).unwrap();
    let first = MIGRATIONS[0];
    grounds.begin_database();
    let store = rusqlite::Connection::open(grounds.database()).unwrap();
    store.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    store.execute_batch("CREATE TABLE migrations (name TEXT PRIMARY KEY) STRICT").unwrap();
    store.execute_batch(first.sqlite).unwrap();
    store.execute("INSERT INTO migrations (name) VALUES (?1)", [first.name]).unwrap();
    drop(store);
    let before = files(&grounds);
    let ran = grounds.run(&["doctor", "--json"]);
    let (verdict, what) = finding(&ran, "store");
    assert_eq!((ran.code, verdict.as_str()), (Some(0), "note"), "{ran:?}");
    assert!(what.contains("older schema; `hatchery up` will bring it up to date"), "{what}");
    assert!(files(&grounds) == before, "not a byte has changed");
    grounds.run(&["session", "start"]).good();
    grounds.run(&["down"]).good();
    assert_eq!(finding(&grounds.run(&["doctor", "--json"]), "store").0, "good");
}

#[test]
fn the_doctor_finds_what_is_wrong_and_says_what_to_do() {
    let check = |grounds: &Grounds, about: &str, words: &str| {
        let ran = grounds.run(&["doctor", "--json"]);
        let (verdict, what) = finding(&ran, about);
        assert_eq!((ran.code, verdict.as_str()), (Some(4), "bad"), "{about}: {ran:?}");
        assert!(what.contains(words), "{about}: {what}");
    };
    check(&Grounds::with("prot = 1"), "settings", "did you mean `port`?");
    check(&Grounds::with("port ="), "settings", "hatchery.toml");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    check(
        &Grounds::with(&format!("port = {}", taken.local_addr().unwrap().port())),
        "port",
        "choose another with --port",
    );
    let grounds = Grounds::new();
    grounds.run(&["session", "start"]).good();
    grounds.run(&["down"]).good();
    let token = grounds.data().join("token");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    check(&grounds, "folder", "chmod 600");
    std::fs::remove_file(&token).unwrap();
    std::fs::create_dir(&token).unwrap();
    check(&grounds, "folder", "cannot be read");
    std::fs::remove_dir(&token).unwrap();
    std::fs::write(&token, "short").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    check(&grounds, "folder", "delete it");
    std::fs::remove_file(&token).unwrap();
    std::fs::remove_file(grounds.data().join("hatchery.db-wal")).unwrap_or_default();
    std::fs::write(grounds.database(), "this is no database, and has never been one").unwrap();
    check(&grounds, "store", "hatchery.db");
}

#[test]
fn the_doctor_refuses_a_cli_that_is_too_old() {
    let check = |version: &str| {
        let grounds = Grounds::new();
        let program = grounds.path().join("old-claude");
        std::fs::write(&program, format!("#!/bin/sh\necho '{version} (Claude Code)'\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = grounds.command(&["doctor", "--json"]);
        command.env("CLAUDE_CLI_PATH", &program).env("ANTHROPIC_API_KEY", "dummy");
        finding(&Ran::from(command.output().unwrap()), "claude")
    };
    let (verdict, what) = check("2.1.99");
    assert_eq!(verdict, "bad");
    assert!(what.contains("has version 2.1.99, which is too old: 2.1.112 or newer is needed"), "{what}");
    let (verdict, what) = check("2.1.325");
    assert_eq!(verdict, "good");
    assert!(what.contains("old-claude, 2.1.325 (Claude Code); a key is in the environment; can confirm"), "{what}");
}

/// Only whether there is a login is looked at.
#[test]
fn the_doctor_says_whether_the_agent_programs_are_logged_in() {
    let grounds = Grounds::with("codex_path = './codex'");
    for (name, words) in [("claude", "2.1.325 (Claude Code)"), ("codex", "codex-cli 0.166.0")] {
        let program = grounds.path().join(name);
        std::fs::write(&program, format!("#!/bin/sh\necho '{words}'\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let check = |variable: (&str, &str)| {
        let mut command = grounds.command(&["doctor", "--json"]);
        command.env("CLAUDE_CLI_PATH", grounds.path().join("claude")).env(variable.0, variable.1);
        let ran = Ran::from(command.output().unwrap());
        [finding(&ran, "claude"), finding(&ran, "codex")]
    };
    for ((verdict, what), remedy) in check(("NOTHING", "1")).into_iter().zip(["log in with `claude`", "`codex login`"])
    {
        assert_eq!(verdict, "note");
        assert!(what.contains("no login found") && what.contains(remedy), "{what}");
    }
    let [claude, _] = check(("ANTHROPIC_API_KEY", "dummy"));
    assert!(claude.0 == "good" && claude.1.contains("a key is in the environment"), "{claude:?}");
    let [_, codex] = check(("OPENAI_API_KEY", "dummy"));
    assert!(codex.0 == "good" && codex.1.contains("a key is in the environment"), "{codex:?}");
    for file in [".claude/.credentials.json", ".codex/auth.json"] {
        let file = grounds.path().join("home").join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "{}").unwrap();
    }
    for (verdict, what) in check(("NOTHING", "1")) {
        assert!(verdict == "good" && what.contains("; logged in;"), "{what}");
    }
}
