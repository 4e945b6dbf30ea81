//! Things in the place of a status file that are no plain file: nothing hangs, and the other file goes on.

use crate::support::daemon::{Grounds, wait_until};
use hatchery::state_file::StatusFolder;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

type Put = fn(&Path);

const THINGS: [(&str, Put); 4] = [
    ("a FIFO", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
    ("a socket", |path| drop(UnixListener::bind(path).unwrap())),
    ("a device", |path| std::os::unix::fs::symlink("/dev/zero", path).unwrap()),
    ("a folder", |path| fs::create_dir(path).unwrap()),
];

fn remove(path: &Path) {
    if fs::symlink_metadata(path).unwrap().is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }.unwrap();
}

#[test]
fn no_command_and_no_status_line_waits_for_it() {
    for (what, put) in THINGS {
        let grounds = Grounds::new();
        let folder = StatusFolder::of(grounds.path());
        fs::create_dir_all(folder.path()).unwrap();
        for path in [folder.state_file(), folder.inbox_file()] {
            put(&path);
        }
        for command in
            [["state", "get"].as_slice(), &["state", "incr", "n"], &["inbox", "list"], &["inbox", "add", "x"]]
        {
            let ran = grounds.run(command);
            assert!(ran.code == Some(1) && ran.stderr.contains("cannot be read"), "{what}, {command:?}: {ran:?}");
        }
        let line = grounds.run(&["statusline"]).good();
        assert!(line.contains("state.json cannot be read"), "{what}: {line}");
    }
}

#[test]
fn a_daemon_serves_on_and_the_other_file_is_written() {
    for (what, put) in THINGS {
        let grounds = Grounds::new();
        let folder = StatusFolder::of(grounds.path());
        fs::create_dir_all(folder.path()).unwrap();
        put(&folder.inbox_file());
        let daemon = grounds.up();
        // A false `inFile`, after five seconds, would say that the state cannot be written.
        let answer = daemon.door.post("/api/state", &json!({ "set": { "path": "n", "value": 1 } })).json();
        assert_eq!(answer["inFile"], true, "{what}: {answer}");
        let file: Value = serde_json::from_str(&fs::read_to_string(folder.state_file()).unwrap()).unwrap();
        assert_eq!(file["n"], 1, "{what}");
        let said = grounds.run(&["state", "incr", "n"]);
        assert_eq!((said.stdout.trim(), said.stderr.as_str()), ("2", ""), "{what}");
        remove(&folder.inbox_file());
        grounds.run(&["inbox", "add", "an idea"]).good();
        wait_until("the inbox is written", || folder.inbox().is_ok_and(|inbox| inbox.items().len() == 1));
        // While the daemon runs, too. In one go: the daemon makes a file again that is missing.
        let other = grounds.path().join("other");
        put(&other);
        let swap = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(rustix::fs::CWD, &other, rustix::fs::CWD, folder.state_file(), swap).unwrap();
        grounds.run(&["inbox", "add", "another"]).good();
        assert_eq!(folder.inbox().unwrap().items().len(), 2, "{what}");
        assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 2, "{what}");
        // And after a kill, without a daemon.
        daemon.kill();
        assert_eq!(grounds.run(&["state", "incr", "n"]).code, Some(1), "{what}");
        grounds.run(&["inbox", "add", "a third"]).good();
        remove(&folder.state_file());
        assert_eq!(grounds.run(&["state", "incr", "n"]).good().trim(), "3", "{what}");
    }
}

#[test]
fn what_killed_writers_left_is_removed() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let daemon = grounds.up();
    grounds.run(&["state", "incr", "n"]).good();
    daemon.kill();
    let left = [folder.path().join(".hatchery-new-a1"), grounds.data().join("shown/.hatchery-new-b2")];
    for daemon in [true, false] {
        for path in &left {
            fs::write(path, "half").unwrap();
        }
        let theirs = folder.path().join(".tmp-theirs");
        fs::write(&theirs, "not ours").unwrap();
        if daemon {
            let daemon = grounds.up();
            assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 1);
        } else {
            grounds.run(&["state", "incr", "n"]).good();
        }
        assert!(left.iter().all(|path| !path.exists()), "daemon: {daemon}");
        assert!(theirs.exists());
    }
}
