//! The lock of a project's daemon. It is held on two things: on `.hatchery/daemon.lock`, which also says where the daemon listens,
//! and on the project's root, so that a daemon whose `.hatchery` was deleted still keeps a second one away.

use super::{DaemonFile, HEIR_PATIENCE, LOOKER_PAUSE, MAKE_ROOM, Project, flock, lives};
use crate::file_identity::FileIdentity;
use crate::no_links;
use crate::report::{Code, Context as _, Report};
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::Instant;

/// A note in the lock's file is a line. A longer one was not written by us.
const MAX_NOTE_BYTES: usize = 4_096;

/// Held by the daemon for as long as it lives. The kernel frees it with the process, however that ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    identity: FileIdentity,
    _root: Option<File>,
}

/// What the holder writes into the lock's file: at once who it is, and when it is ready where it listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockNote {
    pub pid: u32,
    #[serde(default)]
    pub daemon: Option<DaemonFile>,
}

impl Lock {
    /// What has happened to the lock's file, if its path no longer leads to it: clients cannot find the daemon then.
    pub fn lost(&self) -> Option<String> {
        self.identity.lost()
    }

    pub fn identity(&self) -> FileIdentity {
        self.identity.clone()
    }

    /// Says that the daemon is ending: it no longer answers.
    pub fn note_end(&self) {
        if let Err(error) = self.note(None) {
            tracing::warn!(%error, "the end cannot be noted in the lock's file");
        }
    }

    pub(super) fn note(&self, daemon: Option<DaemonFile>) -> std::io::Result<()> {
        let note = LockNote { pid: std::process::id(), daemon };
        let text = serde_json::to_vec(&note).map_err(std::io::Error::other)?;
        self.file.set_len(0)?;
        self.file.write_all_at(&text, 0)
    }
}

impl Project {
    /// Makes this process the only daemon of the project, or says which one is.
    pub fn lock(&self) -> Result<Lock, Report> {
        let deadline = Instant::now() + HEIR_PATIENCE;
        let mut file = self.try_lock()?;
        while file.is_none() && self.lock_note().is_some_and(|it| !lives(it.pid)) && Instant::now() < deadline {
            std::thread::sleep(LOOKER_PAUSE);
            file = self.try_lock()?;
        }
        let Some(file) = file else {
            let who = self.lock_note().map(|it| match it.daemon {
                Some(daemon) => format!(" (pid {}, {})", it.pid, daemon.url),
                None => format!(" (pid {})", it.pid),
            });
            let who = who.unwrap_or_default();
            return Err(Report::failed(format_args!("a daemon runs already for {}{who}", self.root.display()))
                .hint("`hatchery status` shows it, `hatchery down` stops it")
                .named("daemon_runs"));
        };
        let root = self.lock_root(deadline)?;
        let path = self.lock_file();
        let identity = FileIdentity::of(&file, &path).context(format_args!("{} cannot be read", path.display()))?;
        let lock = Lock { file, identity, _root: root };
        let noted = lock.note(None).context(format_args!("{} cannot be written", path.display()));
        noted.map_err(|report| report.hint(MAKE_ROOM))?;
        Ok(lock)
    }

    /// The lock's file, locked, unless another process holds it. Those who only look hold it for a moment as well, but share it:
    /// that tells them from a daemon, and they are waited out.
    fn try_lock(&self) -> Result<Option<File>, Report> {
        let path = self.lock_file();
        let doing = format!("{} cannot be locked", path.display());
        let file = no_links::open_file(&path, OFlags::WRONLY | OFlags::CREATE);
        let file = file.context(&doing).map_err(|report| report.hint(MAKE_ROOM))?;
        match exclusively(&file) {
            Ok(true) => Ok(Some(file)),
            Ok(false) => Ok(None),
            Err(error) => Err(Report::failed(format_args!("{doing}: {error}"))),
        }
    }

    /// Locks the project's root. A file system on which folders cannot be locked is used without this second lock.
    fn lock_root(&self, deadline: Instant) -> Result<Option<File>, Report> {
        let Ok(root) = File::open(&self.root) else { return Ok(None) };
        loop {
            match exclusively(&root) {
                Ok(true) => return Ok(Some(root)),
                Err(_) => return Ok(None),
                // The child of a daemon that was just killed may hold it for a moment.
                Ok(false) if Instant::now() < deadline => std::thread::sleep(LOOKER_PAUSE),
                Ok(false) => return Err(self.lost_by(holder(&self.root))),
            }
        }
    }

    /// What to say if a daemon holds only the root, because its `.hatchery` was deleted or replaced. Commands do not find it then.
    pub fn folder_lost(&self) -> Option<Report> {
        let root = File::open(&self.root).ok()?;
        let is_held = matches!(flock(&root, FlockOperation::NonBlockingLockShared), Ok(false));
        // Where the kernel cannot be asked, another program may have locked the folder. It gives its list out in pieces, so a lock may be
        // missing in it while others come and go.
        let look = |_| {
            self.daemon_pid().or_else(|| {
                std::thread::sleep(LOOKER_PAUSE);
                None
            })
        };
        let daemon = (0..LOOKS).filter(|_| is_held).find_map(look);
        daemon.map(|pid| self.lost_by(Some(pid)))
    }

    fn lost_by(&self, daemon: Option<u32>) -> Report {
        let who = daemon.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        let message = format!(
            "a daemon{who} still runs for {}, but its folder {} was deleted or replaced",
            self.root.display(),
            self.data().display()
        );
        Report::new(Code::Unreachable, message).hint(
            "`hatchery down` stops it; then put the folder back, or begin a new log with `hatchery up --accept-loss`",
        )
    }

    /// True while a daemon holds the lock. A file alone proves nothing: its writer may have been killed. Looks without
    /// making anything, so it works where nothing can be written.
    pub fn is_served(&self) -> bool {
        let Ok(file) = no_links::open(&self.lock_file()) else { return false };
        matches!(flock(&file, FlockOperation::NonBlockingLockShared), Ok(false))
    }

    /// What the holder of the lock says about itself. Only meaningful while the lock is held.
    pub fn lock_note(&self) -> Option<LockNote> {
        let file = no_links::open(&self.lock_file()).ok()?;
        let mut bytes = vec![0; MAX_NOTE_BYTES];
        let read = file.read_at(&mut bytes, 0).ok()?;
        serde_json::from_slice(&bytes[..read]).ok()
    }

    /// The process that holds the daemon's lock, or the root of a project whose `.hatchery` is gone. The kernel says so, where it
    /// can be asked; a file that any process may have written is believed only where it cannot.
    pub fn daemon_pid(&self) -> Option<u32> {
        match Path::new(LOCKS).exists() {
            true => holder(&self.lock_file()).or_else(|| holder(&self.root)).filter(|pid| is_this_program(*pid)),
            false => self.lock_note().map(|note| note.pid).filter(|_| self.is_served()),
        }
    }
}

/// How often the list of locks is read for a lock that is held.
const LOOKS: u32 = 5;

/// The kernel's list of all file locks.
const LOCKS: &str = "/proc/locks";

/// False when another process has the lock. Processes that only look are waited out.
fn exclusively(file: &File) -> std::io::Result<bool> {
    loop {
        if flock(file, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(true);
        }
        if !flock(file, FlockOperation::NonBlockingLockShared)? {
            return Ok(false);
        }
        flock(file, FlockOperation::Unlock)?;
        std::thread::sleep(LOOKER_PAUSE);
    }
}

/// The process that has locked a file exclusively. None where the kernel cannot be asked.
pub fn holder(path: &Path) -> Option<u32> {
    let file = std::fs::metadata(path).ok()?;
    let inode = format!(":{}", file.ino());
    let locks = std::fs::read_to_string(LOCKS).ok()?;
    // 1: FLOCK  ADVISORY  WRITE 15654 fe:00:10070239 0 EOF
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            [_, "FLOCK", _, "WRITE", pid, place, ..] if place.ends_with(&inode) => {
                pid.parse().ok().filter(|_| has_open(pid, &file))
            }
            _ => None,
        }
    })
}

/// The list gives the device of some file systems otherwise than `stat` does, so a process counts that has this very file open.
fn has_open(pid: &str, file: &std::fs::Metadata) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().any(|entry| {
        let found = std::fs::metadata(entry.path());
        found.is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()))
    })
}

/// Whether a process runs this program, perhaps another version of it.
fn is_this_program(pid: u32) -> bool {
    let name =
        |path: &Path| path.file_name().map(|name| name.to_string_lossy().trim_end_matches(" (deleted)").to_owned());
    let Some(its) = std::fs::read_link(format!("/proc/{pid}/exe")).ok().and_then(|exe| name(&exe)) else {
        return false;
    };
    // Versions that are installed beside each other have names of their own.
    its.starts_with(env!("CARGO_PKG_NAME")) || std::env::current_exe().is_ok_and(|exe| name(&exe) == Some(its))
}
