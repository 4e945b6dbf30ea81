//! The log knows that it is whole: what became shorter, or was changed, is told, and never continued silently.

use crate::support::daemon::{Daemon, Grounds, Scene, wait_until};
use crate::support::postgres::Server;
use crate::support::random::Random;
use crate::support::sse::EventSource;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// How many times a bit of the database is flipped.
const FLIPS: usize = 40;

/// Each way to lose the end of the log after a kill.
#[test]
fn a_log_that_became_shorter_is_refused_until_the_loss_is_accepted() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("the WAL is deleted", |database| fs::remove_file(wal(database)).unwrap()),
        ("the WAL is cut", |database| {
            let wal = fs::File::options().write(true).open(wal(database)).unwrap();
            wal.set_len(wal.metadata().unwrap().len() / 2).unwrap();
        }),
        ("the database is empty", |database| {
            fs::remove_file(wal(database)).unwrap();
            fs::write(database, "").unwrap();
        }),
    ];
    for (what, damage) in damages {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let head = fill(&daemon, 40);
        wait_until_remembered(&grounds, head);
        daemon.kill();
        damage(&grounds.database());
        let refused = grounds.refused(Scene::Plain);
        assert_eq!(refused.code, Some(3), "{what}: {refused:?}");
        assert!(refused.stderr.contains(&format!("it ended at event {head}")), "{what}: {refused:?}");
        assert!(refused.stderr.contains("--accept-loss"), "{what}: {refused:?}");
        // A command that would start a daemon in the background says the same.
        let asked = grounds.run(&["ps"]);
        assert!(asked.code == Some(3) && asked.stderr.contains("earlier than it did"), "{what}: {asked:?}");
        let checked = grounds.run(&["fsck"]);
        assert!(checked.code == Some(4) && checked.stdout.contains("earlier than it did"), "{what}: {checked:?}");
        let mut command = grounds.command(&["up", "--json", "--no-open", "--accept-loss"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let daemon = Daemon::ready(child).unwrap_or_else(|ended| panic!("{what}: {ended}"));
        let head = fill(&daemon, 1);
        wait_until_remembered(&grounds, head);
        drop(daemon);
        grounds.up();
    }
}

/// A bit that is flipped in the database either changes no event or is told.
#[test]
fn a_flipped_bit_never_changes_an_event_unnoticed() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    fill(&daemon, 60);
    let log = daemon.door.log();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    let whole = fs::read(grounds.database()).unwrap();
    let mut random = Random::new(11);
    let mut told = 0;
    for number in 0..FLIPS {
        let (at, bit) = (random.below(whole.len()), 1 << random.below(8));
        let mut flipped = whole.clone();
        flipped[at] ^= bit;
        fs::write(grounds.database(), &flipped).unwrap();
        for file in [wal(&grounds.database()), grounds.database().with_extension("db-shm")] {
            fs::remove_file(file).unwrap_or_default();
        }
        let checked = grounds.run(&["fsck"]);
        match checked.code {
            Some(0) => {
                let exported = grounds.run(&["export"]).good();
                let events: Vec<&str> = exported.lines().collect();
                assert_eq!(events, log, "flip {number}: byte {at} ^ {bit}, and fsck said clean");
                grounds.run(&["down"]).good();
            }
            _ => told += 1,
        }
    }
    assert!(told > 0, "no flip was found in {FLIPS}");
}

#[test]
fn a_changed_row_is_told_and_never_shown() {
    for change in [
        "UPDATE events SET stream = 'agent:AAAAAAAAAAAAAAAAAAAAAA' WHERE id = 5",
        "UPDATE events SET body = replace(body, 'word 2', 'word 9') WHERE id = 5",
        "UPDATE events SET sum = NULL WHERE id = 5",
        // Without its checksum the row would look like one of an older Hatchery.
        "UPDATE events SET sum = NULL, body = replace(body, 'word 2', 'word 9') WHERE id = 5",
    ] {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let agent = daemon.door.agent(None);
        for number in 0..6 {
            assert_eq!(daemon.door.say(&agent, &format!("word {number}")).status, 201);
        }
        let is_shown = |daemon: &Daemon| {
            let events = daemon.door.get("/api/events.json?after=0");
            let history = daemon.door.get(&format!("/api/agents/{agent}/history"));
            format!("{events:?} {history:?}").contains("word 9")
        };
        let changed = rusqlite::Connection::open(grounds.database()).unwrap().execute(change, []).unwrap();
        assert_eq!(changed, 1, "{change}");
        assert!(!is_shown(&daemon), "{change}");
        daemon.signal(Signal::TERM);
        daemon.wait();
        let checked = grounds.run(&["fsck"]);
        assert!(checked.code == Some(4) && checked.stdout.contains("event 5"), "{change}: {checked:?}");
        let exported = grounds.run(&["export"]);
        assert!(exported.code != Some(0) && !exported.stdout.contains("word 9"), "{change}: {exported:?}");
        // A daemon that begins with a snapshot does not read the row when it starts.
        if let Ok(daemon) = grounds.try_up_in(Scene::Plain) {
            assert!(!is_shown(&daemon), "{change}");
        }
    }
}

/// It would hide every message between its true end and the one that it names.
#[test]
fn an_index_that_names_a_wrong_end_is_told_and_made_again() {
    let database = Server::shared().database();
    for url in [None, Some(database.url())] {
        let grounds = Grounds::with(&url.as_ref().map(|url| format!("store = \"{url}\"")).unwrap_or_default());
        let run_sql = |sql: &str| match url {
            Some(_) => database.run_sql(sql),
            None => rusqlite::Connection::open(grounds.database()).unwrap().execute_batch(sql).unwrap(),
        };
        let daemon = grounds.up();
        let agent = daemon.door.agent(None);
        let say = |daemon: &Daemon| assert_eq!(daemon.door.say(&agent, "a word").status, 201);
        (0..6).for_each(|_| say(&daemon));
        // The index is written at the end of the daemon, and not when it is killed.
        daemon.signal(Signal::TERM);
        daemon.wait();
        let daemon = grounds.up();
        (0..6).for_each(|_| say(&daemon));
        let mut messages = daemon.door.history(&agent).len();
        daemon.kill();
        // Within the log, and beyond its end.
        for flipped in ["upto + 4", "upto + 64"] {
            run_sql(&format!("UPDATE indexed SET upto = {flipped}"));
            let daemon = grounds.up();
            say(&daemon);
            messages += 1;
            assert_eq!(daemon.door.history(&agent).len(), messages, "{flipped}");
            daemon.kill();
            let log = grounds.said() + &fs::read_to_string(grounds.data().join("daemon.log")).unwrap_or_default();
            assert!(log.contains("the index of messages was damaged; it was rebuilt"), "{log}");
            grounds.run(&["fsck"]).good();
            run_sql(&format!("UPDATE indexed SET upto = {flipped}"));
            grounds.run(&["fsck", "--repair"]).good();
            run_sql(&format!("UPDATE indexed SET upto = {flipped}"));
            let checked = grounds.run(&["fsck"]);
            assert!(checked.code == Some(4) && checked.stdout.contains("how far the index goes"), "{checked:?}");
        }
    }
}

#[test]
fn an_index_that_cannot_be_read_is_made_again() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let agent = daemon.door.agent(None);
    assert_eq!(daemon.door.say(&agent, "a word").status, 201);
    daemon.signal(Signal::TERM);
    daemon.wait();
    let database = rusqlite::Connection::open(grounds.database()).unwrap();
    assert_eq!(database.execute("UPDATE message_ranges SET ids = '[[21,2'", []).unwrap(), 1);
    drop(database);
    let checked = grounds.run(&["fsck"]);
    assert!(checked.code == Some(4) && checked.stdout.contains("the index of messages cannot be read"), "{checked:?}");
    grounds.run(&["fsck", "--repair"]).good();
    grounds.run(&["fsck"]).good();
    assert!(grounds.run(&["history", &agent]).good().contains("a word"));
}

#[test]
fn a_shared_log_that_was_changed_or_set_back_is_told() {
    let database = Server::shared().database();
    let grounds = Grounds::with(&format!("store = \"{}\"", database.url()));
    let daemon = grounds.up();
    let head = fill(&daemon, 6);
    wait_until_remembered(&grounds, head);
    grounds.run(&["fsck"]).good();
    database.run_sql("UPDATE events SET stream = 'agent:AAAAAAAAAAAAAAAAAAAAAA' WHERE id = 5");
    let checked = grounds.run(&["fsck"]);
    assert!(checked.code == Some(4) && checked.stdout.contains("event 5"), "{checked:?}");
    database.run_sql("UPDATE events SET sum = NULL, body = replace(body, 'word 2', 'word 9') WHERE id = 5");
    let exported = grounds.run(&["export"]);
    assert!(!exported.stdout.contains("word 9"), "{exported:?}");
    daemon.kill();
    let exported = grounds.run(&["export"]);
    assert!(exported.code != Some(0) && !exported.stdout.contains("word 9"), "{exported:?}");
    database.run_sql("DELETE FROM events WHERE id > 4; UPDATE log SET head = 4");
    let refused = grounds.refused(Scene::Plain);
    assert!(refused.stderr.contains(&format!("it ended at event {head}")), "{refused:?}");
}

/// `.hatchery` deleted under a live daemon: nothing is acknowledged that would be lost, nothing begins anew silently, and the
/// log is not lost at all.
#[test]
fn a_deleted_data_folder_is_noticed_and_the_log_is_saved() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let agent = daemon.door.agent(None);
    daemon.door.say(&agent, "before");
    let log = daemon.door.log();
    let mut stream = EventSource::open(&daemon.door, &format!("/api/events?after={}", daemon.door.head()));
    delete(&grounds);
    // Those who follow the log are told at once.
    let (name, told) = stream.next();
    assert_eq!(name, "trouble");
    assert!(told["trouble"].is_string(), "{told}");
    let answer = daemon.door.say(&agent, "after");
    assert_eq!((answer.status, answer.error().0.as_str()), (507, "store_gone"), "{answer:?}");
    wait_until("the log is saved", || {
        daemon.door.get("/api/status").json()["trouble"].to_string().contains("saved-log")
    });
    let second = grounds.refused(Scene::Plain);
    let still_runs = format!("(pid {}) still runs", daemon.pid());
    assert!(second.stderr.contains(&still_runs), "{second:?}");
    for command in ["status", "ps"] {
        let ran = grounds.run(&[command]);
        assert!(ran.code == Some(3) && ran.stderr.contains(&still_runs), "{ran:?}");
    }
    grounds.run(&["down"]).good();
    assert_eq!(daemon.wait().code(), Some(0));
    let refused = grounds.refused(Scene::Plain);
    assert!(refused.stderr.contains("earlier than it did"), "{refused:?}");
    for left in ["hatchery.db", "hatchery.db-wal", "hatchery.db-shm"] {
        fs::remove_file(grounds.data().join(left)).unwrap_or_default();
    }
    fs::rename(grounds.data().join("saved-log-1.db"), grounds.database()).unwrap();
    // A database that was put there is accepted by the user only.
    assert!(grounds.refused(Scene::Plain).stderr.contains("hatchery.db was not made here"));
    grounds.run(&["trust", "--yes"]).good();
    assert_eq!(grounds.up().door.log(), log);
}

#[test]
fn a_replaced_database_is_noticed() {
    for file in ["hatchery.db", "hatchery.db-wal"] {
        let grounds = Grounds::new();
        let daemon = grounds.up();
        let agent = daemon.door.agent(None);
        let (place, copy) = (grounds.data().join(file), grounds.path().join("copy"));
        fs::copy(&place, &copy).unwrap();
        fs::rename(&copy, &place).unwrap();
        let answer = daemon.door.say(&agent, "after");
        assert_eq!((answer.status, answer.error().0.as_str()), (507, "store_gone"), "{file}: {answer:?}");
        wait_until("the log is saved", || {
            daemon.door.get("/api/status").json()["trouble"].to_string().contains("saved-log")
        });
        drop(daemon);
        // What has taken its place may be anybody's.
        let refused = grounds.refused(Scene::Plain);
        assert!(refused.stderr.contains(&format!("{file} was not made here")), "{refused:?}");
    }
}

/// The folder of a project on a shared store holds the lock and the folders of runs: without it nothing is supervised.
#[test]
fn a_deleted_data_folder_is_noticed_on_a_shared_store() {
    let database = Server::shared().database();
    let grounds = Grounds::with(&format!("store = \"{}\"", database.url()));
    let daemon = grounds.up();
    let agent = daemon.door.agent(None);
    delete(&grounds);
    wait_until("the daemon notices", || daemon.door.say(&agent, "after").status == 507);
    drop(daemon);
    // The log is on the server, so nothing is lost and the next daemon goes on.
    let daemon = grounds.up();
    assert!(daemon.door.head() > 1);
}

/// What an agent runs who wants a clean checkout.
#[test]
fn git_clean_leaves_the_data_alone() {
    let grounds = Grounds::new();
    git(&grounds, &["init", "--quiet"]);
    let daemon = grounds.up();
    let agent = daemon.door.agent(None);
    for arguments in [&["clean", "-fdxq"][..], &["stash", "--all"], &["add", "--all"], &["clean", "-fdx"]] {
        git(&grounds, arguments);
        assert_eq!(daemon.door.say(&agent, "still here").status, 201, "after git {arguments:?}");
    }
    let known = git(&grounds, &["ls-files"]);
    assert!(!known.contains(".hatchery"), "{known}");
    let status = git(&grounds, &["status", "--porcelain"]);
    assert!(!status.contains(".hatchery"), "{status}");
}

#[test]
fn a_project_that_becomes_a_repository_is_shielded_without_a_restart() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let agent = daemon.door.agent(None);
    git(&grounds, &["init", "--quiet"]);
    wait_until("the folder is shielded", || grounds.data().join(".git/HEAD").exists());
    for arguments in [&["clean", "-fdxq"][..], &["add", "--all"]] {
        git(&grounds, arguments);
        assert_eq!(daemon.door.say(&agent, "still here").status, 201, "after git {arguments:?}");
    }
    assert!(!git(&grounds, &["ls-files"]).contains(".hatchery"));
}

/// At once, although the daemon writes into it.
fn delete(grounds: &Grounds) {
    let gone = grounds.path().join("gone");
    fs::rename(grounds.data(), &gone).unwrap();
    fs::remove_dir_all(gone).unwrap();
}

/// Git takes a folder away that is a repository of its own only if it is told so twice. Then what was saved is not lost to the next one.
#[test]
fn what_was_saved_after_a_thorough_clean_stays() {
    let grounds = Grounds::new();
    git(&grounds, &["init", "--quiet"]);
    let daemon = grounds.up();
    daemon.door.agent(None);
    git(&grounds, &["clean", "-ffdxq"]);
    let saved = grounds.data().join("saved-log-1.db");
    wait_until("the log is saved", || {
        daemon.door.get("/api/status").json()["trouble"].to_string().contains("saved-log")
    });
    git(&grounds, &["clean", "-fdxq"]);
    assert!(saved.exists());
    grounds.run(&["down"]).good();
    assert_eq!(daemon.wait().code(), Some(0));
}

fn git(grounds: &Grounds, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Somebody", "-c", "user.email=somebody@localhost"]).args(arguments);
    let ran = git.current_dir(grounds.path()).env("HOME", grounds.path().join("home")).output().unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

/// Waits until the head is on disk outside of the database.
fn wait_until_remembered(grounds: &Grounds, head: u64) {
    wait_until("the head is remembered", || {
        let text = fs::read_to_string(grounds.data().join("head.json")).unwrap_or_default();
        let file: Value = serde_json::from_str(&text).unwrap_or_default();
        file["heads"].as_object().is_some_and(|heads| heads.values().any(|kept| kept["id"].as_u64() == Some(head)))
    });
}

fn fill(daemon: &Daemon, messages: usize) -> u64 {
    let agent = daemon.door.agent(None);
    for number in 0..messages {
        assert_eq!(daemon.door.say(&agent, &format!("word {number} {}", "x".repeat(number * 30))).status, 201);
    }
    daemon.door.head()
}

fn wal(database: &Path) -> std::path::PathBuf {
    database.with_extension("db-wal")
}
