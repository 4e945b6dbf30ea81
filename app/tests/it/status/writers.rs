//! Many processes change one file at once, some of them are killed, and others do not know our lock.

use crate::support::daemon::{Grounds, PATIENCE, wait_until};
use crate::support::random::Random;
use hatchery::report::Report;
use hatchery::state_file::StatusFolder;
use hatchery_core::status::{Edit, Json, StatusDocument};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const WRITERS: usize = 8;

/// How often each writer counts up. Each time is a process, so that a long run is made on request only.
fn increments() -> usize {
    if std::env::var_os("HATCHERY_SOAK").is_some() { 200 } else { 40 }
}

/// Where a writer process works, how often, and where it notes what it has done. Set for `writer_process` only.
const WORK: &str = "HATCHERY_TEST_WRITER";

fn increment(folder: &StatusFolder) -> u64 {
    let changed = folder.change_state(move |document| {
        document.apply(&Edit::Increment { path: "counter.n".parse().unwrap(), by: 1 }).unwrap();
        Ok::<_, Report>(document.get(&"counter.n".parse().unwrap()))
    });
    changed.unwrap().value.unwrap().text().parse().unwrap()
}

/// Not a test of its own: a process that the tests below start from this same binary.
#[test]
fn writer_process() {
    let Ok(work) = std::env::var(WORK) else { return };
    let work: Value = serde_json::from_str(&work).unwrap();
    let folder = StatusFolder::of(Path::new(work["project"].as_str().unwrap()));
    let note = work["note"].as_str().unwrap();
    for done in 1..=work["times"].as_u64().unwrap() {
        increment(&folder);
        fs::write(note, done.to_string()).unwrap();
    }
}

/// Ends the reader, also when a test fails: its thread would be waited for.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A process that is gone when it is dropped.
struct Writer(Child);

impl Writer {
    fn kill(&mut self) {
        // Fails only when it has ended already.
        self.0.kill().unwrap_or_default();
        self.0.wait().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn writer(grounds: &Grounds, number: usize, times: usize) -> Writer {
    let work = json!({ "project": grounds.path(), "times": times, "note": note(grounds, number) });
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "status::writers::writer_process"]).env(WORK, work.to_string());
    Writer(command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap())
}

fn note(grounds: &Grounds, number: usize) -> std::path::PathBuf {
    grounds.path().join(format!("note-{number}"))
}

/// How often a writer has counted up for certain.
fn noted(grounds: &Grounds, number: usize) -> u64 {
    fs::read_to_string(note(grounds, number)).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn counted(folder: &StatusFolder) -> u64 {
    folder.state().unwrap().get(&"counter.n".parse().unwrap()).map_or(0, |count| count.text().parse().unwrap())
}

fn seeded(grounds: &Grounds) -> StatusFolder {
    let folder = StatusFolder::of(grounds.path());
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.state_file(), r#"{"buildRun":{"runId":"r","theirs":[1e400]},"counter":{"n":0}}"#).unwrap();
    folder
}

/// Reads the file all the while, as a program that knows nothing of locks does.
fn never_torn(folder: &StatusFolder, over: &AtomicBool) -> u64 {
    let mut looks = 0;
    let mut last = 0;
    while !over.load(Ordering::Relaxed) || looks == 0 {
        let text = fs::read_to_string(folder.state_file()).unwrap();
        let document = StatusDocument::parse(&text).unwrap_or_else(|error| panic!("torn: {error}: {text:?}"));
        let count = document.get(&"counter.n".parse().unwrap()).unwrap().text().parse().unwrap();
        assert!(count >= last, "the counter went back from {last} to {count}");
        last = count;
        looks += 1;
        std::thread::yield_now();
    }
    looks
}

fn nothing_left_behind(folder: &StatusFolder) {
    let names = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, ["state.json"]);
}

/// Eight writers count up with the command, a process each time, while a reader looks. Every number is given to exactly one of them.
fn count_up(grounds: &Grounds, folder: &StatusFolder) -> u64 {
    let over = AtomicBool::new(false);
    let mut numbers: Vec<u64> = std::thread::scope(|scope| {
        let reader = scope.spawn(|| never_torn(folder, &over));
        let ends = Over(&over);
        let count = || -> Vec<u64> {
            let incr = || grounds.run(&["state", "incr", "counter.n"]).good().trim().parse().unwrap();
            (0..increments()).map(|_| incr()).collect()
        };
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(count)).collect();
        let numbers = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        drop(ends);
        assert!(reader.join().unwrap() > 0);
        numbers
    });
    numbers.sort_unstable();
    let all = u64::try_from(WRITERS * increments()).unwrap();
    assert_eq!(numbers, (1..=all).collect::<Vec<_>>());
    all
}

#[test]
fn eight_processes_count_up_and_nothing_is_lost() {
    let grounds = Grounds::new();
    let folder = seeded(&grounds);
    let all = count_up(&grounds, &folder);
    assert_eq!(counted(&folder), all);
    let text = fs::read_to_string(folder.state_file()).unwrap();
    assert!(text.contains("1e400") && text.contains("\"runId\": \"r\""), "{text}");
    nothing_left_behind(&folder);
}

/// With a daemon every command asks it, so that the log is the only place that counts.
#[test]
fn eight_processes_count_up_with_a_daemon_and_nothing_is_lost() {
    let grounds = Grounds::new();
    let folder = seeded(&grounds);
    let daemon = grounds.up();
    let all = count_up(&grounds, &folder);
    assert_eq!(daemon.door.get("/api/state?path=counter.n").json()["value"], all);
    assert_eq!(counted(&folder), all, "an answer comes after the file is written");
}

/// A command that said that it had counted has counted, whether the daemon was there, was killed in between, or was away.
#[test]
fn a_daemon_that_is_killed_again_and_again_loses_no_increment() {
    let grounds = Grounds::new();
    let folder = seeded(&grounds);
    let over = AtomicBool::new(false);
    let (good, tried) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| never_torn(&folder, &over));
        let ends = Over(&over);
        let lanes: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        tried.fetch_add(1, Ordering::Relaxed);
                        let ran = grounds.run(&["state", "incr", "counter.n"]);
                        if ran.code == Some(0) {
                            good.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        for round in 1..=6 {
            let daemon = grounds.up();
            let goal = good.load(Ordering::Relaxed) + 4;
            wait_until("some commands have counted", || good.load(Ordering::Relaxed) >= goal);
            // Answers that the file does not show yet.
            for _ in 0..20 {
                let answer = daemon.door.post("/api/state?wait=log", &json!({ "increment": { "path": "counter.n" } }));
                assert_eq!(answer.status, 200, "{answer:?}");
                tried.fetch_add(1, Ordering::Relaxed);
                good.fetch_add(1, Ordering::Relaxed);
            }
            daemon.kill();
            let goal = good.load(Ordering::Relaxed) + round % 3;
            wait_until("some commands have counted without a daemon", || good.load(Ordering::Relaxed) >= goal);
        }
        drop(ends);
        lanes.into_iter().for_each(|lane| lane.join().unwrap());
        reader.join().unwrap();
    });
    let _daemon = grounds.up();
    let (count, good, tried) = (counted(&folder), good.into_inner(), tried.into_inner());
    assert!((good..=tried).contains(&count), "{good} of {tried} said that they had counted, and {count} are there");
    grounds.run(&["down"]).good();
    nothing_left_behind(&folder);
}

#[test]
fn the_command_counts_up_in_many_processes() {
    let grounds = Grounds::new();
    let folder = seeded(&grounds);
    let calls: Vec<Child> = (0..40)
        .map(|_| grounds.command(&["state", "incr", "counter.n"]).stdout(Stdio::null()).spawn().unwrap())
        .collect();
    for mut call in calls {
        assert!(call.wait().unwrap().success());
    }
    assert_eq!(counted(&folder), 40);
}

#[test]
fn killed_writers_leave_a_whole_file() {
    let grounds = Grounds::new();
    let folder = seeded(&grounds);
    let over = AtomicBool::new(false);
    let mut random = Random::new(31);
    let killed: usize = std::thread::scope(|scope| {
        let reader = scope.spawn(|| never_torn(&folder, &over));
        let ends = Over(&over);
        let mut killed = 0;
        for round in 0..6 {
            let numbers: Vec<usize> = (0..4).map(|of| round * 4 + of).collect();
            let mut writers: Vec<Writer> = numbers.iter().map(|number| writer(&grounds, *number, 100_000)).collect();
            // Each has done something, and is killed in the middle of whatever it does then.
            let deadline = Instant::now() + PATIENCE;
            let goals: Vec<u64> = numbers.iter().map(|_| 1 + random.next() % 5).collect();
            for ((number, goal), writer) in numbers.iter().zip(goals).zip(&mut writers) {
                while noted(&grounds, *number) < goal {
                    assert!(Instant::now() < deadline, "writer {number} does nothing");
                    std::thread::yield_now();
                }
                writer.kill();
                killed += 1;
            }
        }
        drop(ends);
        reader.join().unwrap();
        killed
    });
    let certain: u64 = (0..24).map(|number| noted(&grounds, number)).sum();
    let count = counted(&folder);
    assert!(count >= certain, "{certain} were certain, and {count} are there");
    assert!(count <= certain + 2 * u64::try_from(killed).unwrap(), "{count} are more than were made ({certain})");
    // The next writer clears away what they left.
    increment(&folder);
    nothing_left_behind(&folder);
}

#[test]
fn a_change_keeps_what_another_program_writes_during_it() {
    let grounds = Grounds::new();
    let folder = seeded(&grounds);
    let change = |mut edits: u32| {
        let file = folder.state_file();
        let change = move |document: &mut StatusDocument| {
            if let Some(left) = edits.checked_sub(1) {
                edits = left;
                fs::write(&file, format!(r#"{{"counter":{{"n":100}},"left":{left}}}"#)).unwrap();
            }
            let count = Edit::Increment { path: "counter.n".parse().unwrap(), by: 1 };
            document.apply(&count).map_err(Report::failed)
        };
        folder.change_state(change).unwrap();
        counted(&folder)
    };
    assert_eq!(change(3), 101);
    assert_eq!(folder.state().unwrap().get(&"left".parse().unwrap()).as_ref().map(Json::text), Some("0"));
    assert_eq!(change(u32::MAX), 101, "a program that never pauses does not stop the others");
    nothing_left_behind(&folder);
}

#[test]
fn two_writes_within_one_tick_of_the_clock_are_told_apart() {
    let grounds = Grounds::new();
    let folder = seeded(&grounds);
    let file = folder.state_file();
    let content = |n: u64| format!(r#"{{"counter":{{"n":{n}}}}}"#);
    fs::write(&file, content(100)).unwrap();
    let mut other = Some(200);
    let change = move |document: &mut StatusDocument| {
        if let Some(n) = other.take() {
            let before = fs::metadata(&file).unwrap();
            fs::write(&file, content(n)).unwrap();
            let written = fs::File::options().write(true).open(&file).unwrap();
            written.set_modified(before.modified().unwrap()).unwrap();
            let now = fs::metadata(&file).unwrap();
            let version = |meta: &fs::Metadata| (meta.len(), meta.modified().unwrap());
            assert_eq!(version(&now), version(&before));
        }
        let count = Edit::Increment { path: "counter.n".parse().unwrap(), by: 1 };
        document.apply(&count).map_err(Report::failed)
    };
    folder.change_state(change).unwrap();
    assert_eq!(counted(&folder), 201);
}

#[test]
fn a_writer_that_knows_no_lock_is_lived_with() {
    let grounds = Grounds::new();
    let folder = seeded(&grounds);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rounds = 0;
            while !over.load(Ordering::Relaxed) {
                let text = fs::read_to_string(folder.state_file()).unwrap();
                let mut state: serde_json::Map<String, Value> =
                    serde_json::from_str(&text.replace("1e400", "1")).unwrap();
                rounds += 1;
                state.insert("foreign".into(), json!({ "rounds": rounds, "filler": "x".repeat(200_000) }));
                // In place, in two parts: a reader in between sees half of it.
                let text = serde_json::to_string_pretty(&state).unwrap();
                let (head, tail) = text.split_at(text.len() / 2);
                let mut file = fs::File::create(folder.state_file()).unwrap();
                std::io::Write::write_all(&mut file, head.as_bytes()).unwrap();
                std::io::Write::write_all(&mut file, tail.as_bytes()).unwrap();
            }
        });
        let _ends = Over(&over);
        for _ in 0..100 {
            increment(&folder);
        }
    });
    let state = folder.state().unwrap();
    assert_eq!(state.get(&"buildRun.runId".parse().unwrap()).as_ref().map(Json::text), Some("\"r\""));
    assert!(state.field("foreign").is_some());
    nothing_left_behind(&folder);
}
