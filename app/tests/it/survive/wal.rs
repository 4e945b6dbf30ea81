//! A write-ahead log that was cut or flipped, and a file that is no database at all.

use crate::support::daemon::{Daemon, Grounds, Scene};
use crate::support::random::Random;
use crate::support::runtime;
use hatchery::fsck;
use hatchery::store::{self, StoreUrl};
use std::fs;
use std::path::Path;

/// How many places are tried without a daemon, and one in how many of them with one.
const CUTS: usize = 150;
const WITH_A_DAEMON: usize = 15;

#[test]
fn a_cut_wal_leaves_a_prefix_of_the_log() {
    let (grounds, log) = killed_with_a_wal();
    let length = fs::metadata(wal(&grounds.database())).unwrap().len();
    let mut random = Random::new(2);
    for number in 0..CUTS {
        // Spread over the whole, and off the borders of frames and pages.
        let at = length * number as u64 / CUTS as u64 + random.below(64) as u64;
        check_damaged(&grounds, &log, number, &format!("cut at {at} of {length}"), |wal| {
            wal.truncate(usize::try_from(at).unwrap());
        });
    }
}

#[test]
fn a_flipped_byte_in_the_wal_leaves_a_prefix_of_the_log() {
    let (grounds, log) = killed_with_a_wal();
    let length = usize::try_from(fs::metadata(wal(&grounds.database())).unwrap().len()).unwrap();
    let mut random = Random::new(3);
    for number in 0..CUTS {
        let at = if number < 32 { number } else { random.below(length) };
        let bits = 1 << random.below(8);
        check_damaged(&grounds, &log, number, &format!("byte {at} of {length} ^ {bits}"), |wal| wal[at] ^= bits);
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let mut random = Random::new(4);
    // A file of one byte is an empty one to SQLite.
    for size in [2, 15, 16, 100, 511, 512, 4_096, 100_000] {
        let grounds = Grounds::new();
        let garbage: Vec<u8> = (0..size).map(|_| random.next().to_le_bytes()[0]).collect();
        grounds.begin_database();
        fs::write(grounds.database(), &garbage).unwrap();
        let ran = grounds.refused(Scene::Plain);
        assert_eq!(ran.code, Some(3), "{size} bytes: {ran:?}");
        assert!(ran.stderr.contains("the store is damaged") && ran.stderr.contains("hint:"), "{size} bytes: {ran:?}");
        assert!(ran.stderr.contains("hatchery.db"), "it says which file: {ran:?}");
        let checked = grounds.run(&["fsck"]);
        assert_eq!(checked.code, Some(3), "{size} bytes: {checked:?}");
        assert_eq!(fs::read(grounds.database()).unwrap(), garbage, "{size} bytes were changed");
    }
}

/// SQLite would take it for a new database, and throw the WAL away.
#[test]
fn a_wal_without_its_database_is_refused_and_left_alone() {
    let (grounds, _log) = killed_with_a_wal();
    let before = fs::read(wal(&grounds.database())).unwrap();
    fs::write(grounds.database(), "").unwrap();
    for _ in ["empty", "gone"] {
        let ran = grounds.refused(Scene::Plain);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stderr.contains("hatchery.db-wal still holds a part of the log"), "{ran:?}");
        assert_eq!(fs::read(wal(&grounds.database())).unwrap(), before);
        fs::remove_file(grounds.database()).unwrap_or_default();
    }
}

/// A database cut short lost pages that were safe: nothing can be promised but that it is said.
#[test]
fn a_cut_database_never_panics() {
    let grounds = Grounds::with("snapshot_every = 100");
    let daemon = grounds.up();
    let log = fill(&daemon, 150);
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    let connection = rusqlite::Connection::open(grounds.database()).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let whole = fs::read(grounds.database()).unwrap();
    let mut refused = 0;
    for part in 1..8 {
        fs::write(grounds.database(), &whole[..whole.len() * part / 8]).unwrap();
        let checked = grounds.run(&["fsck"]);
        assert!([Some(3), Some(4)].contains(&checked.code), "{part}/8: {checked:?}");
        match Daemon::ready(grounds.start()) {
            Ok(daemon) => {
                let served = daemon.door.get("/api/events.json?after=0&limit=1000");
                if served.status == 200 {
                    let events = served.events();
                    assert_eq!(events, log[..events.len()], "{part}/8");
                }
            }
            Err(status) => {
                assert_eq!(status.code(), Some(3), "{part}/8: {status}: {}", grounds.said());
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

/// A project whose daemon was killed while its WAL was long, and the log that was acknowledged.
fn killed_with_a_wal() -> (Grounds, Vec<String>) {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let log = fill(&daemon, 60);
    daemon.kill();
    assert!(fs::metadata(wal(&grounds.database())).unwrap().len() > 100_000);
    (grounds, log)
}

fn fill(daemon: &Daemon, messages: usize) -> Vec<String> {
    let agent = daemon.door.agent(None);
    for number in 0..messages {
        assert_eq!(daemon.door.say(&agent, &format!("{number} {}", "x".repeat(number * 50))).status, 201);
    }
    daemon.door.log()
}

fn check_damaged(grounds: &Grounds, log: &[String], number: usize, what: &str, damage: impl FnOnce(&mut Vec<u8>)) {
    let copy = Grounds::new();
    copy.begin_database();
    for name in ["hatchery.db", "hatchery.db-wal", "hatchery.db-shm", "token"] {
        fs::copy(grounds.data().join(name), copy.data().join(name)).unwrap();
    }
    let mut bytes = fs::read(wal(&copy.database())).unwrap();
    damage(&mut bytes);
    fs::write(wal(&copy.database()), bytes).unwrap();
    if number.is_multiple_of(WITH_A_DAEMON) {
        let daemon = copy.up();
        let kept = daemon.door.log();
        // Where nothing is left, the daemon begins anew with another agent 0.
        let begun_anew = kept.len() == 1 && kept[0].contains("agent_created") && !kept[0].contains("parent");
        assert!(begun_anew || kept == log[..kept.len()], "{what}: {kept:?}");
        let agent = daemon.door.agent(None);
        assert_eq!(daemon.door.say(&agent, "it goes on").status, 201, "{what}");
        assert_eq!(daemon.door.head(), kept.len() as u64 + 2, "{what}");
        drop(daemon);
        copy.run(&["fsck"]).good();
    } else {
        let store = store::open(&StoreUrl::Sqlite(copy.database()), runtime())
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = fsck::check(store.as_ref(), false, &mut |_| {}).unwrap();
        assert!(found.is_clean(), "{what}: {found:?}");
        assert!(found.events <= log.len() as u64, "{what}");
    }
}

fn wal(database: &Path) -> std::path::PathBuf {
    database.with_extension("db-wal")
}
