//! A folder or a file that cannot be written: the daemon does not start, and says why and what to do.

use crate::support::daemon::{Grounds, Scene, own_mounts_or_say_skipped};

#[test]
fn a_read_only_folder() {
    if !own_mounts_or_say_skipped("survive::read_only::a_read_only_folder") {
        return;
    }
    let grounds = Grounds::new();
    grounds.up().kill();
    // The project, its data, and the data of a project that was never served.
    for path in [grounds.path().to_owned(), grounds.data()] {
        let ran = grounds.refused(Scene::ReadOnly(&path));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("Read-only file system") && ran.stderr.contains("hint:"), "{ran:?}");
    }
    std::fs::remove_dir_all(grounds.data()).unwrap();
    let ran = grounds.refused(Scene::ReadOnly(grounds.path()));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("Read-only file system") && ran.stderr.contains("hint:"), "{ran:?}");
    grounds.up().kill();
}

#[test]
fn a_read_only_database() {
    if !own_mounts_or_say_skipped("survive::read_only::a_read_only_database") {
        return;
    }
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let agent = daemon.door.agent(None);
    assert_eq!(daemon.door.say(&agent, "hello").status, 201);
    daemon.kill();
    let ran = grounds.refused(Scene::ReadOnly(&grounds.database()));
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("cannot be written") && ran.stderr.contains("hint: make"), "{ran:?}");
    assert_eq!(grounds.up().door.head(), 2, "it was left as it was");
}
