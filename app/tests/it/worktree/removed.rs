//! What happens to the work in a worktree that is removed: what is rescued.

use super::{names, worked};
use crate::support::repository::{Checkout, QUEST, read, write};
use hatchery::worktree::{RescueName, WorktreeError};
use std::fs;

#[test]
fn nothing_is_rescued_where_nothing_would_be_lost() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = worked(&repository, "one", "one.txt", "1\n");
    write(step.folder(), "big.ignored", "big\n");
    repository.merge(QUEST, "one").unwrap();
    assert_eq!(repository.remove(&step).unwrap(), None);
    assert_eq!(repository.remove(&step).unwrap(), None, "once more is nothing");
    assert!(!step.top().exists());
    assert_eq!(checkout.git(&["branch", "--list", &step.branch()]), "");
    assert_eq!(names(&repository), Vec::<String>::new());
    let trunk = repository.trunk(QUEST).unwrap();
    assert_eq!(repository.remove(&trunk).unwrap(), None);
    assert_ne!(checkout.git(&["branch", "--list", &trunk.branch()]), "", "the trunk's branch is the user's to delete");
    assert_eq!(read(repository.trunk(QUEST).unwrap().folder(), "one.txt"), "1\n");
}

#[test]
fn what_would_be_lost_is_rescued_and_comes_back() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = worked(&repository, "one", "committed.txt", "committed\n");
    write(step.folder(), "a.txt", "changed\n");
    write(step.folder(), "new.txt", "new\n");
    write(step.folder(), "big.ignored", "big\n");
    let name = repository.remove(&step).unwrap().unwrap();
    assert!(!step.top().exists());
    assert_eq!(checkout.git(&["branch", "--list", &step.branch()]), "");
    let rescued = repository.rescued().unwrap();
    assert_eq!(rescued.len(), 1);
    let found = &rescued[0];
    assert_eq!((found.quest.as_str(), found.step.as_deref(), found.files), (QUEST, Some("one"), 3));
    assert_eq!((&found.name, found.subject.contains("step one")), (&name.to_string(), true));
    assert!(found.at.0 > 1_600_000_000_000);

    // By the command, without a daemon.
    let into = checkout.top().join("home/back");
    let (list, back) = (["rescue", "list"], ["rescue", "restore", &found.name, "--into", into.to_str().unwrap()]);
    assert!(checkout.grounds.run(&list).good().contains(&found.name));
    assert_eq!(checkout.grounds.run(&back).good().trim(), into.to_str().unwrap());
    assert!(!checkout.project().is_served());
    for (file, text) in [("a.txt", "changed\n"), ("new.txt", "new\n"), ("committed.txt", "committed\n")] {
        assert_eq!(read(&into, file), text);
    }
    assert!(!into.join("big.ignored").exists());
    let taken = checkout.grounds.run(&back);
    assert_eq!(taken.code, Some(1), "nothing is overwritten");
    assert!(taken.stderr.contains(into.to_str().unwrap()) && taken.stderr.contains("--into"), "{taken:?}");
    let again = repository.restore(&name, None).unwrap();
    assert_eq!(read(&again.folder, "new.txt"), "new\n");
    let absent = RescueName { number: 7, ..name };
    let error = repository.restore(&absent, None).unwrap_err();
    assert!(matches!(error, WorktreeError::NothingRescued(_)), "{error}");
}

#[test]
fn a_removal_that_was_killed_is_finished_and_rescues_once() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = worked(&repository, "one", "one.txt", "1\n");
    let name = repository.remove(&step).unwrap().unwrap();
    // Killed after everything was kept: the worktree is there as it was.
    checkout.git(&["branch", &step.branch(), &format!("refs/hatchery/rescue/{name}^")]);
    repository.isolate(QUEST, "one").unwrap();
    assert_eq!(repository.remove(&step).unwrap(), Some(name.clone()));
    // Killed while the files went: those that are left are not somebody's work.
    let step = worked(&repository, "two", "two.txt", "2\n");
    repository.merge(QUEST, "two").unwrap();
    checkout.git(&["worktree", "lock", "--reason=hatchery removes it", step.top().to_str().unwrap()]);
    fs::remove_file(step.top().join(".git")).unwrap();
    fs::remove_file(step.folder().join("a.txt")).unwrap();
    assert_eq!(repository.remove(&step).unwrap(), None);
    assert!(!step.top().exists());
    assert_eq!(names(&repository), [name.to_string()]);
}

#[test]
fn a_branch_whose_folder_somebody_deleted_is_rescued_too() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = worked(&repository, "one", "one.txt", "1\n");
    fs::remove_dir_all(step.top()).unwrap();
    let name = repository.remove(&step).unwrap().unwrap();
    assert_eq!(checkout.git(&["show", &format!("refs/hatchery/rescue/{name}:one.txt")]), "1");
    // Work that an agent has put on a branch of its own, beside its step's.
    let step = worked(&repository, "two", "two.txt", "2\n");
    checkout.git_in(step.top(), &["checkout", "--quiet", "--detach", "main"]);
    write(step.folder(), "three.txt", "3\n");
    let name = repository.remove(&step).unwrap().unwrap();
    assert_eq!(checkout.git(&["show", &format!("refs/hatchery/rescue/{name}:three.txt")]), "3");
    assert_eq!(checkout.git(&["show", &format!("refs/hatchery/rescue/{name}^2:two.txt")]), "2");
    assert_eq!(checkout.git(&["branch", "--list", &step.branch()]), "");
}

#[test]
fn a_repository_inside_a_worktree_is_not_lost_with_it() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = repository.isolate(QUEST, "one").unwrap();
    let inner = step.folder().join("inner");
    fs::create_dir(&inner).unwrap();
    checkout.git_in(&inner, &["init", "--quiet"]);
    write(&inner, "file", "x");
    let error = repository.remove(&step).unwrap_err();
    assert!(matches!(&error, WorktreeError::Nested(folder) if folder == &inner), "{error}");
    assert!(inner.join("file").exists());
    fs::remove_dir_all(&inner).unwrap();
    assert_eq!(repository.remove(&step).unwrap(), None);
}
