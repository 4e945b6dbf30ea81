//! Steps in worktrees, with a real git. A kill at any moment loses no work, and the user's checkout does not change.

mod removed;

use crate::support::program::write_program;
use crate::support::repository::{Checkout, QUEST, read, write};
use hatchery::project::Project;
use hatchery::worktree::{Join, NoWorktrees, Preparation, Repository, Worktree, WorktreeError, WorktreeName};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub const CLEAN: Join = Join::Clean { changed: true };
const SAME: Join = Join::Clean { changed: false };

fn conflict(files: &[&str]) -> Join {
    Join::Conflict { files: files.iter().map(|file| (*file).to_owned()).collect(), binary: Vec::new() }
}

/// A step that has done something and settled it.
pub fn worked(repository: &Repository, step: &str, file: &str, text: &str) -> Worktree {
    let worktree = repository.isolate(QUEST, step).unwrap();
    write(worktree.folder(), file, text);
    assert!(repository.settle(&worktree, &format!("did {step}")).unwrap().commit.is_some());
    worktree
}

fn names(repository: &Repository) -> Vec<String> {
    repository.rescued().unwrap().into_iter().map(|rescued| rescued.name).collect()
}

#[test]
fn steps_work_apart_and_come_together_in_the_trunk() {
    let checkout = Checkout::new();
    write(&checkout.top(), "a.txt", "the user is in the middle of something\n");
    let before = checkout.users_view();
    let repository = checkout.repository();
    let one = worked(&repository, "one", "one.txt", "1\n");
    let two = worked(&repository, "two", "two.txt", "2\n");
    assert!(!two.folder().join("one.txt").exists());
    assert_eq!(repository.merge(QUEST, "one").unwrap(), CLEAN);
    assert_eq!(repository.merge(QUEST, "one").unwrap(), SAME, "merging twice is one");
    assert_eq!(repository.merge(QUEST, "two").unwrap(), CLEAN);
    let trunk = repository.trunk(QUEST).unwrap();
    assert_eq!((read(trunk.folder(), "one.txt"), read(trunk.folder(), "two.txt")), ("1\n".into(), "2\n".into()));
    assert_eq!(checkout.git_in(trunk.top(), &["status", "--porcelain"]), "");
    let log = checkout.git(&["log", "--first-parent", "--format=%s", &trunk.branch()]);
    assert_eq!(log, "Merge step two\nMerge step one\nbegin");
    assert_eq!(repository.bring(QUEST, "one").unwrap(), CLEAN);
    assert_eq!(read(one.folder(), "two.txt"), "2\n");
    assert_eq!(repository.bring(QUEST, "one").unwrap(), SAME);
    assert_eq!(checkout.users_view(), before);
    // When the user is content:
    checkout.git(&["checkout", "--quiet", "a.txt"]);
    checkout.git(&["merge", "--quiet", &trunk.branch()]);
    assert_eq!(read(&checkout.top(), "two.txt"), "2\n");
}

#[test]
fn a_step_begins_where_the_trunk_is() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    repository.trunk(QUEST).unwrap();
    // The user goes on, and the quest stays where it began.
    write(&checkout.top(), "later.txt", "later\n");
    checkout.git(&["add", "later.txt"]);
    checkout.git(&["commit", "--quiet", "--message=later"]);
    worked(&repository, "one", "one.txt", "1\n");
    repository.merge(QUEST, "one").unwrap();
    let two = repository.isolate(QUEST, "two").unwrap();
    assert!(two.folder().join("one.txt").exists());
    assert!(!two.folder().join("later.txt").exists());
}

#[test]
fn a_conflict_goes_to_the_step_and_never_to_the_trunk() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let one = worked(&repository, "one", "a.txt", "one\nTWO\nthree\n");
    let two = worked(&repository, "two", "a.txt", "one\nzwei\nthree\n");
    assert_eq!(repository.merge(QUEST, "one").unwrap(), CLEAN);
    let trunk = repository.trunk(QUEST).unwrap();
    let head = checkout.git_in(trunk.top(), &["rev-parse", "HEAD"]);
    assert_eq!(repository.merge(QUEST, "two").unwrap(), conflict(&["a.txt"]));
    assert_eq!(checkout.git_in(trunk.top(), &["rev-parse", "HEAD"]), head);
    assert_eq!(checkout.git_in(trunk.top(), &["status", "--porcelain"]), "");
    assert_eq!(read(trunk.folder(), "a.txt"), read(one.folder(), "a.txt"));
    assert!(read(two.folder(), "a.txt").contains("<<<<<<<"));
    // Nobody can settle it, and asking again does not mend it.
    let unmended = repository.settle(&two, "no").unwrap_err();
    assert!(matches!(unmended, WorktreeError::Unmended { ref files } if files == &["a.txt"]), "{unmended}");
    assert_eq!(repository.bring(QUEST, "two").unwrap(), conflict(&["a.txt"]));
    assert_eq!(repository.merge(QUEST, "two").unwrap(), conflict(&["a.txt"]));
    // Saying that it is mended does not mend it either.
    checkout.git_in(two.top(), &["add", "a.txt"]);
    assert_eq!(repository.bring(QUEST, "two").unwrap(), conflict(&["a.txt"]));
    write(two.folder(), "a.txt", "one\nTWO zwei\nthree\n=======\n");
    assert_eq!(repository.bring(QUEST, "two").unwrap(), CLEAN);
    assert_eq!(repository.bring(QUEST, "two").unwrap(), SAME);
    assert_eq!(repository.merge(QUEST, "two").unwrap(), CLEAN);
    assert_eq!(read(trunk.folder(), "a.txt"), "one\nTWO zwei\nthree\n=======\n");
}

#[test]
fn a_mended_conflict_may_be_merged_at_once() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    worked(&repository, "one", "a.txt", "1\n");
    let two = worked(&repository, "two", "a.txt", "2\n");
    repository.merge(QUEST, "one").unwrap();
    assert_eq!(repository.merge(QUEST, "two").unwrap(), conflict(&["a.txt"]));
    write(two.folder(), "a.txt", "1 and 2\n");
    assert_eq!(repository.merge(QUEST, "two").unwrap(), CLEAN);
    assert_eq!(read(repository.trunk(QUEST).unwrap().folder(), "a.txt"), "1 and 2\n");
}

#[test]
fn a_conflict_without_markers_waits_for_a_choice() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    worked(&repository, "one", "a.txt", "changed\n");
    repository.merge(QUEST, "one").unwrap();
    for (step, choice) in [("gone", ["rm", "a.txt"]), ("there", ["add", "a.txt"])] {
        // Begun before the change, as it were.
        let two = repository.isolate(QUEST, step).unwrap();
        checkout.git_in(two.top(), &["reset", "--quiet", "--hard", "main"]);
        fs::remove_file(two.folder().join("a.txt")).unwrap();
        repository.settle(&two, "delete it").unwrap();
        assert_eq!(repository.bring(QUEST, step).unwrap(), conflict(&["a.txt"]));
        assert_eq!(repository.bring(QUEST, step).unwrap(), conflict(&["a.txt"]));
        checkout.git_in(two.top(), &choice);
        assert_eq!(repository.bring(QUEST, step).unwrap(), CLEAN);
        assert_eq!(two.folder().join("a.txt").exists(), step == "there");
    }
}

#[test]
fn text_that_looks_like_a_marker_and_was_there_before_is_no_conflict() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let lesson = "How a conflict looks:\n<<<<<<< HEAD\n=======\n>>>>>>> theirs\n";
    worked(&repository, "one", "lesson.md", lesson);
    worked(&repository, "other", "a.txt", "1\n");
    repository.merge(QUEST, "one").unwrap();
    repository.merge(QUEST, "other").unwrap();
    let two = repository.isolate(QUEST, "two").unwrap();
    checkout.git_in(two.top(), &["reset", "--quiet", "--hard", "main"]);
    write(two.folder(), "a.txt", "2\n");
    assert_eq!(repository.bring(QUEST, "two").unwrap(), conflict(&["a.txt"]));
    write(two.folder(), "a.txt", "3\n");
    assert_eq!(repository.bring(QUEST, "two").unwrap(), CLEAN);
    assert_eq!(read(two.folder(), "lesson.md"), lesson);
}

#[test]
fn settling_takes_everything_but_what_is_ignored() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = repository.isolate(QUEST, "one").unwrap();
    assert_eq!(repository.settle(&step, "nothing").unwrap().commit, None);
    write(step.folder(), "new/-strange name\n.txt", "new\n");
    write(step.folder(), "big.ignored", "big\n");
    fs::remove_file(step.folder().join("a.txt")).unwrap();
    // A repository of its own without a commit, which git refuses to take in.
    fs::create_dir(step.folder().join("inner")).unwrap();
    checkout.git_in(&step.folder().join("inner"), &["init", "--quiet"]);
    write(step.folder(), "inner/file", "x");
    let settled = repository.settle(&step, "-a message\n\n# with a heading\n").unwrap();
    assert_eq!(settled.left_out, [Path::new("inner/")]);
    let message = checkout.git_in(step.top(), &["log", "-1", "--format=%B"]);
    assert_eq!(message.trim_end(), "-a message\n\n# with a heading");
    let shown = checkout.git_in(step.top(), &["show", "--name-status", "-z", "--format="]);
    assert_eq!(shown, "D\0a.txt\0A\0new/-strange name\n.txt\0");
    assert_eq!(repository.settle(&step, "again").unwrap().commit, None);
}

#[test]
fn a_new_worktree_is_prepared_once() {
    let checkout = Checkout::new();
    write(&checkout.top(), ".env", "SECRET=1\n");
    write(&checkout.top(), "certs/key.pem", "key\n");
    let repository = checkout.repository();
    let step = repository.isolate(QUEST, "one").unwrap();
    let preparation = Preparation {
        setup: Some("cat .env >> installed && echo out && test -e may-fail".into()),
        limit: std::time::Duration::from_secs(60),
        copy: vec![".env".into(), "certs".into(), "missing".into()],
        environment: [("PATH".to_owned(), std::env::var("PATH").unwrap())].into(),
    };
    let error = repository.prepare(&step, &preparation).unwrap_err().to_string();
    assert!(error.contains("exit code 1: out"), "{error}");
    write(step.folder(), "may-fail", "");
    repository.prepare(&step, &preparation).unwrap();
    repository.prepare(&step, &preparation).unwrap();
    assert_eq!(read(step.folder(), "installed"), "SECRET=1\nSECRET=1\n", "failed once, succeeded once");
    assert_eq!(read(step.folder(), "certs/key.pem"), "key\n");
    assert_eq!(repository.settle(&step, "nothing of it is work").unwrap().commit, None);
    let outside = Preparation { copy: vec!["../x".into()], ..preparation };
    let two = repository.isolate(QUEST, "two").unwrap();
    let error = repository.prepare(&two, &outside).unwrap_err().to_string();
    assert!(error.contains("inside the project"), "{error}");
}

#[test]
fn a_conflict_of_binary_files_is_told_apart() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    worked(&repository, "one", "a.png", "one\0");
    let two = worked(&repository, "two", "a.png", "two\0");
    repository.merge(QUEST, "one").unwrap();
    let files = vec!["a.png".to_owned()];
    assert_eq!(repository.bring(QUEST, "two").unwrap(), Join::Conflict { files: files.clone(), binary: files });
    checkout.git_in(two.top(), &["checkout", "--ours", "a.png"]);
    checkout.git_in(two.top(), &["add", "a.png"]);
    assert_eq!(repository.bring(QUEST, "two").unwrap(), CLEAN);
    assert_eq!(read(two.folder(), "a.png"), "two\0");
}

#[test]
fn changes_in_the_trunk_are_committed_before_a_merge() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let trunk = repository.trunk(QUEST).unwrap();
    worked(&repository, "one", "one.txt", "1\n");
    write(trunk.folder(), "by-hand.txt", "by hand\n");
    assert_eq!(repository.merge(QUEST, "one").unwrap(), CLEAN);
    assert_eq!(checkout.git_in(trunk.top(), &["status", "--porcelain"]), "");
    assert_eq!(checkout.git_in(trunk.top(), &["show", "HEAD:by-hand.txt"]), "by hand");
}

#[test]
fn many_steps_merge_at_once() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let steps: Vec<String> = (0..4).map(|number| format!("step-{number}")).collect();
    std::thread::scope(|scope| {
        for step in &steps {
            let repository = &repository;
            scope.spawn(move || {
                worked(repository, step, &format!("{step}.txt"), step);
                assert_eq!(repository.merge(QUEST, step).unwrap(), CLEAN);
            });
        }
    });
    let trunk = repository.trunk(QUEST).unwrap();
    assert!(steps.iter().all(|step| trunk.folder().join(format!("{step}.txt")).exists()));
}

#[test]
fn a_project_in_a_subfolder_works_in_the_same_one() {
    let checkout = Checkout::within("pkg/app");
    let before = checkout.users_view();
    let repository = checkout.repository();
    let step = repository.isolate(QUEST, "one").unwrap();
    assert!(step.top().starts_with(checkout.root().join(".hatchery")));
    assert_eq!(step.folder(), step.top().join("pkg/app"));
    assert_eq!(read(step.folder(), "a.txt"), "one\ntwo\nthree\n");
    write(step.top(), "outside.txt", "of the project, and not of the repository\n");
    repository.settle(&step, "outside").unwrap();
    assert_eq!(repository.merge(QUEST, "one").unwrap(), CLEAN);
    assert!(repository.trunk(QUEST).unwrap().top().join("outside.txt").exists());
    assert_eq!(checkout.users_view(), before);
}

#[test]
fn what_a_killed_git_left_is_in_nobodys_way() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = worked(&repository, "one", "one.txt", "1\n");
    let own = checkout.git_in(step.top(), &["rev-parse", "--absolute-git-dir"]);
    let own = Path::new(&own);
    // Locks.
    write(own, "index.lock", "");
    write(own, "HEAD.lock", "");
    write(&checkout.top(), &format!(".git/refs/heads/{}.lock", step.branch()), "");
    write(step.folder(), "two.txt", "2\n");
    assert!(repository.settle(&step, "again").unwrap().commit.is_some());
    // The folder is gone, its entry and the branch are there.
    fs::remove_dir_all(step.top()).unwrap();
    assert_eq!(repository.isolate(QUEST, "one").unwrap(), step);
    assert_eq!(read(step.folder(), "two.txt"), "2\n");
    // Made by half: git has locked it, and some files are not there.
    write(own, "locked", "initializing");
    fs::remove_file(step.folder().join("two.txt")).unwrap();
    fs::remove_file(own.join("index")).unwrap();
    assert_eq!(repository.isolate(QUEST, "one").unwrap(), step);
    assert_eq!(checkout.git_in(step.top(), &["status", "--porcelain"]), "");
    // Even its link is not there yet, or not any more.
    fs::remove_file(step.top().join(".git")).unwrap();
    repository.isolate(QUEST, "one").unwrap();
    assert_eq!(checkout.git_in(step.top(), &["status", "--porcelain"]), "");
    // An empty folder, and no entry.
    repository.merge(QUEST, "one").unwrap();
    repository.remove(&step).unwrap();
    fs::create_dir_all(step.top()).unwrap();
    repository.isolate(QUEST, "one").unwrap();
    assert_eq!(read(step.folder(), "two.txt"), "2\n");
}

#[test]
fn what_is_in_a_worktree_stays_when_it_is_asked_for_again() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = repository.isolate(QUEST, "one").unwrap();
    write(step.folder(), "a.txt", "half done\n");
    write(step.folder(), "new.txt", "new\n");
    assert_eq!(repository.isolate(QUEST, "one").unwrap(), step);
    assert_eq!(checkout.repository().isolate(QUEST, "one").unwrap(), step);
    assert_eq!((read(step.folder(), "a.txt"), read(step.folder(), "new.txt")), ("half done\n".into(), "new\n".into()));
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = repository.at(WorktreeName::step(QUEST, "one").unwrap());
    write(step.top(), "mine.txt", "mine\n");
    let error = repository.isolate(QUEST, "one").unwrap_err();
    assert!(matches!(error, WorktreeError::InTheWay(_)), "{error}");
    let error = repository.remove(&step).unwrap_err();
    assert!(matches!(error, WorktreeError::InTheWay(_)), "{error}");
    assert_eq!(read(step.top(), "mine.txt"), "mine\n");
}

#[test]
fn a_merge_that_was_killed_in_the_middle_is_finished() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    worked(&repository, "one", "one.txt", "1\n");
    let trunk = repository.trunk(QUEST).unwrap();
    let base = checkout.git_in(trunk.top(), &["rev-parse", "HEAD"]);
    repository.merge(QUEST, "one").unwrap();
    let merged = checkout.git_in(trunk.top(), &["rev-parse", "HEAD"]);
    // As it was when git had begun to write the files, and somebody's change besides.
    checkout.git_in(trunk.top(), &["reset", "--quiet", "--soft", &base]);
    checkout.git_in(trunk.top(), &["reset", "--quiet"]);
    checkout.git(&["update-ref", &format!("refs/hatchery/landing/{QUEST}"), &merged]);
    write(trunk.folder(), "one.txt", "");
    assert_eq!(repository.merge(QUEST, "one").unwrap(), SAME);
    assert_eq!(read(trunk.folder(), "one.txt"), "1\n");
    assert_eq!(checkout.git_in(trunk.top(), &["status", "--porcelain"]), "");
    assert_eq!(checkout.git(&["for-each-ref", "refs/hatchery/landing"]), "");
    assert_eq!(names(&repository), [format!("{QUEST}/_trunk/1")], "it may have been somebody's");
}

#[test]
fn an_agent_that_left_its_branch_is_followed() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = repository.isolate(QUEST, "one").unwrap();
    checkout.git_in(step.top(), &["checkout", "--quiet", "-b", "my-own"]);
    write(step.folder(), "one.txt", "1\n");
    repository.settle(&step, "one").unwrap();
    assert_eq!(checkout.git_in(step.top(), &["symbolic-ref", "--short", "HEAD"]), step.branch());
    assert_eq!(repository.merge(QUEST, "one").unwrap(), CLEAN);
    // Where it went does not build on its branch: nothing is guessed.
    checkout.git_in(step.top(), &["checkout", "--quiet", "--detach", "main"]);
    let error = repository.settle(&step, "two").unwrap_err();
    assert!(matches!(error, WorktreeError::Strayed { .. }), "{error}");
}

#[test]
fn a_worktree_without_its_link_never_leads_to_the_users_repository() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = repository.isolate(QUEST, "one").unwrap();
    write(&checkout.top(), "staged.txt", "of the user\n");
    checkout.git(&["add", "staged.txt"]);
    let before = checkout.users_view();
    fs::remove_file(step.top().join(".git")).unwrap();
    write(step.folder(), "new.txt", "new\n");
    repository.settle(&step, "where?").unwrap_err();
    assert_eq!(checkout.users_view(), before);
    repository.isolate(QUEST, "one").unwrap();
    assert!(repository.settle(&step, "here").unwrap().commit.is_some());
    assert_eq!(checkout.users_view(), before);
}

#[test]
fn a_git_that_outlives_its_caller_is_waited_for() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    repository.trunk(QUEST).unwrap();
    // Somebody else holds the quest, as a git without its daemon would, and lets go by ending.
    let lock = fs::File::open(checkout.root().join(format!(".hatchery/worktrees/{QUEST}.lock"))).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut orphan = Command::new("sleep").arg("600").stdin(Stdio::from(lock)).spawn().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| repository.isolate(QUEST, "one").unwrap());
        let step = repository.at(WorktreeName::step(QUEST, "one").unwrap());
        assert!(!step.top().exists());
        orphan.kill().unwrap();
        orphan.wait().unwrap();
        assert!(waiting.join().unwrap().top().join("a.txt").exists());
    });
}

#[test]
fn somebody_who_has_not_said_who_they_are_can_have_quests() {
    let checkout = Checkout::new();
    checkout.git(&["config", "--unset", "user.name"]);
    checkout.git(&["config", "--unset", "user.email"]);
    // Settings that would stop a commit of ours.
    checkout.git(&["config", "commit.gpgSign", "true"]);
    checkout.git(&["config", "merge.ff", "only"]);
    write_program(&checkout.top().join(".git/hooks/pre-commit"), "#!/bin/sh\nexit 1\n");
    let repository = checkout.repository();
    let step = worked(&repository, "one", "one.txt", "1\n");
    worked(&repository, "two", "two.txt", "2\n");
    assert_eq!(repository.merge(QUEST, "two").unwrap(), CLEAN);
    assert_eq!(repository.bring(QUEST, "one").unwrap(), CLEAN);
    assert_eq!(checkout.git_in(step.top(), &["log", "-1", "--format=%an <%ae>"]), "Hatchery <hatchery@localhost>");
}

#[test]
fn names_never_become_paths_unchecked() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    for quest in ["", "..", "--force", "../../../../../tmp/aaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
        assert!(matches!(repository.trunk(quest).unwrap_err(), WorktreeError::Name(_)), "{quest}");
    }
    for step in ["", "..", "-x", "a/b", "a b", "A", "_trunk"] {
        assert!(matches!(repository.isolate(QUEST, step).unwrap_err(), WorktreeError::Name(_)), "{step}");
        assert!(matches!(repository.merge(QUEST, step).unwrap_err(), WorktreeError::Name(_)), "{step}");
    }
    let ran = checkout.grounds.run(&["rescue", "restore", "../../etc"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn where_there_is_no_use_for_worktrees_it_is_said_why() {
    let folder = TempDir::new().unwrap();
    let checkout = Checkout::new();
    let find = |folder: &Path, environment: Vec<(String, String)>| {
        fs::create_dir_all(folder.join(".hatchery")).unwrap();
        Repository::find(&Project::find(folder).unwrap(), environment.into_iter()).unwrap().map(|_| ()).unwrap_err()
    };
    assert_eq!(find(folder.path(), checkout.environment()), NoWorktrees::NoRepository);
    assert_eq!(find(folder.path(), vec![("PATH".into(), "/nowhere".into())]), NoWorktrees::NoGit);
    checkout.git_in(folder.path(), &["init", "--quiet"]);
    assert_eq!(find(folder.path(), checkout.environment()), NoWorktrees::NoCommit);
    assert_eq!(find(&checkout.top().join("new"), checkout.environment()), NoWorktrees::NotCommitted);
    checkout.git_in(folder.path(), &["init", "--quiet", "--bare", "bare"]);
    assert_eq!(find(&folder.path().join("bare"), checkout.environment()), NoWorktrees::Bare);
}

/// The life of a step, from its beginning to its end. May be lived again from anywhere.
fn live(repository: &Repository) -> Result<(), WorktreeError> {
    let trunk = repository.trunk(QUEST)?;
    let step = repository.isolate(QUEST, "one")?;
    if !trunk.folder().join("one.txt").exists() {
        write(step.folder(), "one.txt", "1\n");
        repository.settle(&step, "one")?;
        assert!(matches!(repository.merge(QUEST, "one")?, Join::Clean { .. }));
    }
    if repository.rescued()?.is_empty() {
        write(step.folder(), "lost.txt", "not settled\n");
    }
    repository.remove(&step).map(drop)
}

#[test]
fn a_kill_after_anything_that_git_does_costs_nothing() {
    let mut at = 0;
    loop {
        let checkout = Checkout::new();
        let before = checkout.users_view();
        let killed = live(&checkout.killed_repository(at));
        live(&checkout.repository()).unwrap();
        let repository = checkout.repository();
        let trunk = repository.trunk(QUEST).unwrap();
        assert_eq!(read(trunk.folder(), "one.txt"), "1\n", "killed at {at}");
        assert_eq!(checkout.git_in(trunk.top(), &["status", "--porcelain"]), "", "killed at {at}");
        let log = checkout.git(&["log", "--first-parent", "--format=%s", &trunk.branch()]);
        assert_eq!(log, "Merge step one\nbegin", "killed at {at}");
        let step = WorktreeName::step(QUEST, "one").unwrap();
        assert!(!repository.at(step.clone()).top().exists(), "killed at {at}");
        assert_eq!(checkout.git(&["branch", "--list", &step.branch()]), "", "killed at {at}");
        assert_eq!(names(&repository), [format!("{QUEST}/one/1")], "killed at {at}");
        assert_eq!(checkout.git(&["show", &format!("refs/hatchery/rescue/{QUEST}/one/1:lost.txt")]), "not settled");
        assert_eq!(checkout.users_view(), before, "killed at {at}");
        if killed.is_ok() {
            break;
        }
        at += 1;
    }
    assert!(at > 10, "git has changed something {at} times only");
}
