//! A full disk: said clearly, nothing acknowledged that is not there, reading goes on, and when there is room again so
//! does writing, without a restart.

use crate::support::daemon::{Daemon, Grounds, Ran, Scene, own_mounts_or_say_skipped};
use crate::support::follower::Follower;
use crate::support::random::Random;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Room for the files of the store, and little more.
const DISK: u64 = 3 << 20;
/// What a cycle may add before it must have met the end of the disk.
const MOST_MESSAGES: usize = 400;

#[test]
fn sqlite() {
    if !own_mounts_or_say_skipped("survive::full_disk::sqlite") {
        return;
    }
    let grounds = Grounds::with("snapshot_every = 100");
    let data = grounds.data();
    let daemon = grounds.up_in(Scene::Small(&data, DISK));
    let (follower, _doors) = Follower::of(&daemon.door);
    let agent = daemon.door.agent(None);
    let mut log = daemon.door.log();
    let mut random = Random::new(1);
    for cycle in 0..12 {
        let ballast = Ballast::fill(&daemon, data.join("ballast"), random.below(40_000));
        let refused = (0..MOST_MESSAGES).find_map(|number| {
            let size = *random.one_of(&[10, 500, 3_000, 20_000]);
            let answer = daemon.door.say(&agent, &format!("{cycle}/{number} {}", "x".repeat(size)));
            match answer.status {
                201 => {
                    log.extend(answer.events());
                    None
                }
                _ => Some(answer),
            }
        });
        let refused = refused.expect("the disk is full at last");
        assert_eq!(refused.status, 507, "{refused:?}\n{}", grounds.said());
        let (code, hint) = refused.error();
        assert_eq!(code, "store_full");
        assert!(hint.contains("free some space"), "{hint}");
        assert_eq!(daemon.door.get("/api/health").json()["status"], "store_trouble");
        assert_eq!(daemon.door.log(), log, "reading goes on, and shows what was acknowledged and nothing else");
        follower.wait_for(log.len() as u64);
        let (fresh, _doors) = Follower::of(&daemon.door);
        fresh.wait_for(log.len() as u64);
        assert_eq!(fresh.log(), log);
        drop(ballast);
        let answer = daemon.door.say(&agent, "there is room again");
        assert_eq!(answer.status, 201, "{answer:?}\n{}", grounds.said());
        log.extend(answer.events());
        assert_eq!(daemon.door.get("/api/health").json()["status"], "ok");
    }
    follower.wait_for(log.len() as u64);
    assert_eq!(follower.log(), log);
    assert_eq!(daemon.door.log(), log);
    let found = daemon.door.post("/api/fsck", &serde_json::json!({})).json();
    assert_eq!(found["problems"], serde_json::json!([]), "{found}");
}

/// However little room there is, the daemon starts or says what it lacks.
#[test]
fn a_start_without_room_is_refused_clearly() {
    if !own_mounts_or_say_skipped("survive::full_disk::a_start_without_room_is_refused_clearly") {
        return;
    }
    let mut started = 0;
    for pages in (1..24).chain([40, 60]) {
        let grounds = Grounds::new();
        let data = grounds.data();
        let scene = Scene::Small(&data, pages * 4096);
        match grounds.try_up_in(scene) {
            Ok(_) => started += 1,
            Err(ran) => {
                assert!([Some(1), Some(3)].contains(&ran.code), "{pages} pages: {ran:?}");
                assert!(ran.stderr.contains("pace") && ran.stderr.contains("hint: "), "{pages} pages: {ran:?}");
            }
        }
    }
    assert!(started > 0 && started < 25, "{started}");
}

/// A file that takes all the room but a little. Gone when dropped.
struct Ballast(PathBuf);

impl Ballast {
    fn fill(daemon: &Daemon, path: PathBuf, leave: usize) -> Self {
        let path = daemon.view(&path);
        let mut file = fs::File::create(&path).unwrap();
        let mut size: u64 = 0;
        while let Ok(written @ 1..) = file.write(&[0; 1024]) {
            size += written as u64;
        }
        file.set_len(size.saturating_sub(leave as u64)).unwrap();
        Self(path)
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

/// A limit on the size of files ends a program that does not expect it. Here it is a full disk.
#[test]
fn a_limit_on_the_size_of_files_is_answered_like_a_full_disk() {
    let grounds = Grounds::new();
    let child = limited(&grounds, &["up", "--json", "--no-open"]).stdout(Stdio::piped()).spawn().unwrap();
    let daemon = Daemon::ready(child).unwrap();
    let agent = daemon.door.agent(None);
    let refused = (0..MOST_MESSAGES).find_map(|_| {
        let answer = daemon.door.say(&agent, &"x".repeat(20_000));
        (answer.status != 201).then_some(answer)
    });
    let refused = refused.expect("the limit is met at last");
    assert_eq!((refused.status, refused.error().0.as_str()), (507, "store_full"), "{refused:?}");
    assert_eq!(daemon.door.get("/api/agents").status, 200, "it lives on");
}

#[test]
fn a_command_without_a_daemon_meets_the_limit_like_a_full_disk() {
    let (from, to) = (Grounds::new(), Grounds::new());
    let daemon = from.up();
    let agent = daemon.door.agent(None);
    for _ in 0..60 {
        assert_eq!(daemon.door.say(&agent, &"x".repeat(20_000)).status, 201);
    }
    let export = to.path().join("export.jsonl");
    from.run(&["export", export.to_str().unwrap()]).good();
    let ran = Ran::from(limited(&to, &["import", export.to_str().unwrap()]).output().unwrap());
    assert!(ran.code.is_some_and(|code| code != 0), "a signal has ended it: {ran:?}");
    assert!(ran.stderr.contains("no space is left"), "{ran:?}");
    to.run(&["import", export.to_str().unwrap()]).good();
}

/// A command whose files may have 600,000 bytes.
fn limited(grounds: &Grounds, arguments: &[&str]) -> Command {
    let inner = grounds.command(arguments);
    let mut command = Command::new("prlimit");
    command.arg("--fsize=600000").arg("--").arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(grounds.path());
    command.stdin(Stdio::null());
    command
}
