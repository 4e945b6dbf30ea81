//! Wards as they are run: real processes, held by launchers, whoever is killed meanwhile.

use crate::support::daemon::{Grounds, LOOK_AGAIN, PATIENCE, PROGRAM, wait_for_end};
use crate::support::repository::QUEST;
use crate::support::runtime;
use hatchery::folder_watch::FolderWatcher;
use hatchery::held_process::{HeldProcess, ProcessState, millis};
use hatchery::processes;
use hatchery::run_folder::{ATTEMPT_TAG, LAUNCHER_TAG, Launch, LaunchKind, RunFolder, Started};
use hatchery::ward::{Ward, WardJob, WardResult, WardStatus, findings};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

struct Post {
    ward: Ward,
    grounds: Grounds,
}

impl Post {
    fn new() -> Self {
        let grounds = Grounds::new();
        let ward = Ward::of(PathBuf::from(PROGRAM), &grounds.project(), QUEST, "a-step", 1).unwrap();
        Self { ward, grounds }
    }

    fn job(&self, command: &str) -> WardJob {
        let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        WardJob { command: command.to_owned(), folder: self.grounds.path().to_owned(), env, limit: PATIENCE }
    }

    fn start(&self, job: &WardJob) {
        let _runtime = runtime().enter();
        self.ward.start(job).unwrap();
    }

    fn wait(&self, job: &WardJob) -> WardResult {
        let watch = Some(FolderWatcher::start().unwrap());
        let waited = runtime().block_on(async { tokio::time::timeout(PATIENCE, self.ward.wait(job, watch)).await });
        waited.expect("it ends in time").unwrap()
    }

    fn result(&self, command: &str) -> WardResult {
        self.wait(&self.job(command))
    }

    /// Waits until the ward has written a line into a file, and gives it.
    fn written(&self, name: &str) -> String {
        let path = self.grounds.path().join(name);
        let line = || fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
        wait_until(name, line).trim().to_owned()
    }

    fn started(&self) -> Started {
        wait_until("the start", || self.folder().read_started().unwrap())
    }

    fn folder(&self) -> RunFolder {
        RunFolder::at(self.ward.path().to_owned())
    }

    /// What carries the ward's mark.
    fn left(&self) -> Vec<u32> {
        processes::tagged(ATTEMPT_TAG, &self.folder().tag())
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        // A test that failed leaves nothing either.
        for tag in [LAUNCHER_TAG, ATTEMPT_TAG] {
            processes::kill_tagged(tag, &self.folder().tag());
        }
    }
}

/// For what gives no sign.
fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn why(result: WardResult) -> String {
    match result {
        WardResult::Broken { why } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn green_is_an_exit_of_0() {
    let post = Post::new();
    assert_eq!(post.ward.status().unwrap(), WardStatus::NotStarted);
    // Nothing is said to it, and both of its voices are in one place, in job.
    assert_eq!(post.result("cat; echo one; echo two >&2; echo three; pwd"), WardResult::Green);
    let place = post.grounds.path().canonicalize().unwrap();
    assert_eq!(post.ward.output().unwrap(), format!("one\ntwo\nthree\n{}\n", place.display()));
    assert_eq!(post.ward.status().unwrap(), WardStatus::Ended(WardResult::Green));
    assert!(!fs::read_to_string(post.ward.path().join("launch.json")).unwrap().contains("PATH"));
}

/// The daemon holds the lock of the folder until its launcher is about to start. A child that the daemon forks at that moment, for git or
/// for another agent, has a copy of the lock until it has become another program.
#[test]
#[cfg(target_os = "linux")]
fn a_launcher_waits_for_a_lock_that_is_about_to_be_released() {
    let post = Post::new();
    let WardJob { command, folder: place, env, .. } = post.job("echo done");
    let folder = post.folder();
    folder.create_for_ward().unwrap();
    let copy = folder.lock().unwrap().unwrap();
    let kind = LaunchKind::Ward { limit_ms: millis(PATIENCE), grace_ms: 100 };
    let (first_lines, answers_awaited) = (Vec::new(), Vec::new());
    let (program, args) = ("/bin/sh".into(), vec!["-c".into(), command]);
    let launch = Launch { kind, program, args, env, folder: place, first_lines, answers_awaited };
    folder.write_launch(&launch).unwrap();
    let mut launcher = std::process::Command::new(PROGRAM);
    let mut launcher = launcher.arg("launch").arg(post.ward.path()).spawn().unwrap();
    let fds = format!("/proc/{}/fd", launcher.id());
    let is_at_the_lock = |launcher: &mut std::process::Child| {
        let open = fs::read_dir(&fds).into_iter().flatten().flatten();
        let mut paths = open.filter_map(|fd| fs::read_link(fd.path()).ok());
        let waits = paths.any(|path| path == post.ward.path().join("lock"));
        assert_eq!(launcher.try_wait().unwrap(), None, "it has left, and nobody starts the process");
        waits.then_some(())
    };
    wait_until("the launcher", || is_at_the_lock(&mut launcher));
    drop(copy);
    wait_until("the end", || folder.read_ended().unwrap());
    assert_eq!(post.ward.output().unwrap(), "done\n");
    assert!(launcher.wait().unwrap().success());
}

#[test]
fn red_is_any_other_and_says_what_was_found() {
    let post = Post::new();
    let command = "echo fine; echo 'a.c:4:1: error: no'; exit 3";
    assert_eq!(post.result(command), WardResult::Red { code: 3 });
    assert_eq!(findings(&post.ward.output().unwrap()), ["a.c:4:1: error: no"]);
}

#[test]
fn what_could_not_be_run_is_broken() {
    for command in ["no-such-command-anywhere", "/etc/passwd", "kill -9 $$", "sh -c 'kill -9 $$'; exit $?"] {
        let post = Post::new();
        let result = post.result(command);
        assert!(matches!(result, WardResult::Broken { .. }), "{command}: {result:?}");
    }
    let post = Post::new();
    let job = WardJob { folder: PathBuf::from("/nowhere/at/all"), ..post.job("true") };
    let why = why(post.wait(&job));
    assert!(why.contains("could not be started"), "{why}");
}

#[test]
fn a_ward_has_only_so_much_time() {
    let post = Post::new();
    // It would even call itself green when it is told to end.
    let command = "trap 'exit 0' INT TERM; (trap '' INT TERM; echo $$ > inner; exec sleep 600) & wait";
    let job = WardJob { limit: Duration::from_millis(500), ..post.job(command) };
    assert!(why(post.wait(&job)).contains("time"));
    assert_eq!(post.left(), [0; 0]);
}

#[test]
fn what_a_ward_leaves_behind_is_gone() {
    let post = Post::new();
    let command = "setsid sh -c 'echo $$ > hidden; exec sleep 600' & while ! test -s hidden; do :; done";
    assert_eq!(post.result(command), WardResult::Green);
    wait_for_end(post.written("hidden").parse().unwrap());
    assert_eq!(post.left(), [0; 0]);
}

#[test]
fn one_that_is_begun_twice_is_started_once() {
    let post = Post::new();
    let job = post.job("echo started >> count; echo $$ > pid; exec sleep 600");
    post.start(&job);
    post.start(&job);
    let pid: u32 = post.written("pid").parse().unwrap();
    post.start(&job);
    // Another life of the daemon knows nothing but the folder.
    let again = Ward::of(PathBuf::from(PROGRAM), &post.grounds.project(), QUEST, "a-step", 1).unwrap();
    assert_eq!(again.status().unwrap(), WardStatus::Running);
    again.stop().unwrap();
    again.stop().unwrap();
    assert!(why(post.wait(&job)).contains("stopped"));
    wait_for_end(pid);
    post.start(&job);
    assert_eq!(post.written("count"), "started");
}

#[test]
fn one_that_is_stopped_before_it_began_never_begins() {
    let post = Post::new();
    post.ward.stop().unwrap();
    let job = post.job("echo started > count");
    assert!(why(post.wait(&job)).contains("before it was started"));
    assert!(!post.grounds.path().join("count").exists());
}

#[test]
fn one_whose_launcher_is_killed_is_broken_and_gone() {
    let post = Post::new();
    let job = post.job("trap '' PIPE HUP; echo $$ > pid; setsid sleep 600");
    post.start(&job);
    let pid: u32 = post.written("pid").parse().unwrap();
    let launcher = post.started().launcher;
    let killed = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| post.wait(&job));
        processes::signal(launcher.pid, Signal::KILL);
        waiting.join().unwrap()
    });
    assert!(why(killed).contains("launcher"));
    wait_for_end(pid);
    assert_eq!(post.left(), [0; 0]);
    assert!(matches!(post.ward.status().unwrap(), WardStatus::Ended(WardResult::Broken { .. })));
}

#[test]
fn a_flood_is_bounded_on_disk() {
    let post = Post::new();
    assert_eq!(post.result("echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last"), WardResult::Green);
    assert!(fs::metadata(post.ward.output_file()).unwrap().len() < 9 << 20);
    let output = post.ward.output().unwrap();
    assert!(output.starts_with("first\n") && output.ends_with("last\n") && output.contains("bytes left out"));
}

#[test]
fn names_never_become_paths_unchecked() {
    let grounds = Grounds::new();
    for (quest, step) in [("..", "a"), (QUEST, ".."), (QUEST, "a/../../b"), (QUEST, "")] {
        assert!(Ward::of(PathBuf::from(PROGRAM), &grounds.project(), quest, step, 1).is_err());
    }
}

/// It would be started for ever: nothing ever says that it was.
#[test]
fn a_ward_that_deletes_its_folder_is_broken_after_a_few_tries() {
    let post = Post::new();
    let count = post.grounds.path().join("count");
    let command = format!("echo once >> {}; rm -rf \"${ATTEMPT_TAG}\"", count.display());
    let job = post.job(&command);
    let watch = Some(FolderWatcher::start().unwrap());
    let waited = runtime().block_on(async { tokio::time::timeout(PATIENCE, post.ward.wait(&job, watch)).await });
    match waited.expect("it ends in time") {
        // The lock may be seen to be gone before the rest is.
        Ok(WardResult::Broken { why }) => {
            assert!(why.contains("its folder deleted") || why.contains("launcher was killed"), "{why}");
        }
        // The folder of the next try may be gone before its first file is written. That makes a broken ward, too.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}"),
        other => panic!("{other:?}"),
    }
    let tries = fs::read_to_string(&count).unwrap().lines().count();
    assert!((1..=3).contains(&tries), "{tries}");
}

/// Its parent is the launcher, which alone can say how it ended.
#[test]
fn a_ward_that_kills_its_launcher_is_broken_after_a_few_tries() {
    let post = Post::new();
    let count = post.grounds.path().join("count");
    let job = post.job(&format!("echo $$ >> {}; kill -9 $PPID; exec sleep 600", count.display()));
    let watch = Some(FolderWatcher::start().unwrap());
    let waited = runtime().block_on(async { tokio::time::timeout(PATIENCE, post.ward.wait(&job, watch)).await });
    let why = why(waited.expect("it ends in time").unwrap());
    assert!(why.contains("launcher was killed"), "{why}");
    let tries: Vec<u32> = fs::read_to_string(&count).unwrap().lines().map(|pid| pid.parse().unwrap()).collect();
    assert!((1..=3).contains(&tries.len()), "{tries:?}");
    tries.into_iter().for_each(wait_for_end);
    assert_eq!(post.left(), [0; 0]);
}

/// What the ward writes there is not the launcher's word.
#[test]
fn a_ward_that_writes_its_own_end_changes_nothing() {
    let post = Post::new();
    let ended = "{\"exit\":{\"code\":0},\"problem\":null}";
    let command = format!("printf '%s' '{ended}' > \"${ATTEMPT_TAG}/exit.json\"; sleep 0.3; exit 3");
    assert_eq!(post.result(&command), WardResult::Red { code: 3 });
}

/// A child that has cleared its environment has lost the mark, and its launcher is gone: the session still tells whose it is.
#[test]
fn a_killed_launcher_takes_a_child_without_a_mark_along() {
    let post = Post::new();
    let job = post.job("env -i sh -c 'sleep 1000 & echo $! > child.tmp; mv child.tmp child' & sleep 1000");
    post.start(&job);
    let child: u32 = post.written("child").parse().unwrap();
    let started = post.started();
    assert!(!post.left().contains(&child), "it carries no mark");
    processes::signal(started.launcher.pid, Signal::KILL);
    match post.wait(&job) {
        WardResult::Broken { why } => assert!(why.contains("launcher was killed"), "{why}"),
        other => panic!("{other:?}"),
    }
    wait_for_end(child);
}

/// Leaves its parent, its session and its environment behind, and writes its number to `hidden`.
const HIDES: &str = "env -i /usr/bin/setsid /bin/sh -c '/usr/bin/setsid /bin/sh -c \"echo \\$\\$ > hidden.tmp; \
     /bin/mv hidden.tmp hidden; exec /bin/sleep 600\" & exit 0' < /dev/null > /dev/null 2>&1";

#[test]
fn a_child_that_hides_is_ended_with_its_ward() {
    // By itself, and when it is stopped.
    let post = Post::new();
    let job = post.job(&format!("{HIDES}; while ! test -s hidden; do :; done; exit 3"));
    assert_eq!(post.wait(&job), WardResult::Red { code: 3 });
    wait_for_end(post.written("hidden").parse().unwrap());
    let post = Post::new();
    let job = post.job(&format!("{HIDES}; exec sleep 600"));
    post.start(&job);
    let hidden: u32 = post.written("hidden").parse().unwrap();
    assert!(!post.left().contains(&hidden), "it carries no mark");
    post.ward.stop().unwrap();
    assert!(why(post.wait(&job)).contains("stopped"));
    wait_for_end(hidden);
}

#[test]
fn a_killed_launcher_takes_a_child_that_hides_along_where_there_are_control_groups() {
    let post = Post::new();
    let job = post.job(&format!("{HIDES}; exec sleep 600"));
    post.start(&job);
    let hidden: u32 = post.written("hidden").parse().unwrap();
    let started = post.started();
    let Some(cgroup) = started.cgroup.clone() else {
        eprintln!("SKIPPED: no control group of our own can be made here");
        processes::signal(hidden, Signal::KILL);
        return;
    };
    processes::signal(started.launcher.pid, Signal::KILL);
    assert!(why(post.wait(&job)).contains("launcher was killed"));
    wait_for_end(hidden);
    assert!(!cgroup.exists(), "the group is gone, too");
}

/// What the ward writes there is compared with what the kernel knows.
#[test]
fn a_forged_process_file_changes_nothing_while_the_launcher_holds_the_lock() {
    let post = Post::new();
    let forged = r#"{"process":{"pid":1,"began":1},"launcher":{"pid":1,"began":1},"boot":"x"}"#;
    let file = format!("\"${ATTEMPT_TAG}/process.json\"");
    let command = format!(
        "while ! test -s {file}; do :; done; mv {file} real.tmp; printf '%s' '{forged}' > {file}; echo >> real.tmp; \
         mv real.tmp real; echo $$ > pid; exec sleep 600"
    );
    let job = post.job(&command);
    post.start(&job);
    let pid: u32 = post.written("pid").parse().unwrap();
    let held = HeldProcess::new(PathBuf::from(PROGRAM), post.folder());
    let ProcessState::Running(said) = held.state().unwrap() else { panic!("it runs") };
    assert_eq!(said.launcher.pid, 1, "the file says so");
    let real: Started = serde_json::from_str(&post.written("real")).unwrap();
    let confirmed = held.confirmed(said);
    assert_eq!((confirmed.launcher, confirmed.process.pid), (real.launcher, pid));
    // It ends like any other.
    post.ward.stop().unwrap();
    assert!(why(post.wait(&job)).contains("stopped"));
    wait_for_end(pid);
}
