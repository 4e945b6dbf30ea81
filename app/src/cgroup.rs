//! A control group for each attempt, where Linux gives us one. Whatever an agent starts stays in it, also a process that has left its
//! parent, its session and its environment behind. So the daemon finds such a process after the launcher was killed, too.
//!
//! Only version 2 is used, and only if this user may make groups below the group that the launcher is in: that is so in a systemd user
//! session, and for root. Elsewhere there is none, and the session and the tag in the environment have to do.

use crate::processes;
use rustix::process::Signal;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// How the name of a group begins. The rest says which run folder it is for.
const PREFIX: &str = "hatchery-";
/// How long the processes of a group may take to be gone after they were killed.
const ENDING_TIMEOUT: Duration = Duration::from_secs(10);
const ENDING_PAUSE: Duration = Duration::from_millis(5);

/// The group of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes the group of a run folder and moves this process into it. None where that is not possible.
    pub fn enter(folder: &Path) -> Option<Self> {
        let above = own_group()?;
        let group = Self(above.join(name_of(folder)));
        match fs::create_dir(&group.0) {
            Ok(()) => {}
            // Another launcher of this folder made it, and was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
        match group.take(std::process::id()) {
            Ok(()) => Some(group),
            Err(_) => {
                group.remove();
                None
            }
        }
    }

    /// The group of a run folder, by the path that was recorded, or where a launcher of this process would have made it. The record is in a
    /// folder into which the agent can write, so it counts only if it has the name of this folder's group.
    pub fn find(folder: &Path, recorded: Option<&Path>) -> Option<Self> {
        let name = name_of(folder);
        let mount = mount_point()?;
        let is_plain = |path: &&Path| !path.components().any(|part| part == Component::ParentDir);
        let is_ours = |path: &&Path| path.starts_with(&mount) && path.file_name().is_some_and(|it| *it == *name);
        let recorded = recorded.filter(is_plain).filter(is_ours).map(Path::to_owned);
        let path = recorded.or_else(|| own_group().map(|above| above.join(&name)))?;
        path.join("cgroup.procs").exists().then_some(Self(path))
    }

    /// Removes the empty groups that killed launchers have left behind. One that is not empty stays.
    pub fn sweep() {
        let Some(entries) = own_group().and_then(|above| fs::read_dir(above).ok()) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                Self(entry.path()).remove();
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Kills everything in the group, and says how many processes there were. Returns when they are gone.
    pub fn kill(&self) -> usize {
        // The tools of an agent may have started this very daemon, in their group.
        let others = || self.members().into_iter().filter(|pid| *pid != std::process::id()).collect::<Vec<u32>>();
        let found = others().len();
        let until = Instant::now() + ENDING_TIMEOUT;
        while !others().is_empty() && Instant::now() < until {
            others().into_iter().for_each(|pid| processes::signal(pid, Signal::KILL));
            std::thread::sleep(ENDING_PAUSE);
        }
        found
    }

    /// Leaves the group, if this process is in it, and removes it. One that is not empty stays: its processes can still be found.
    pub fn leave(&self) {
        if self.members().contains(&std::process::id())
            && let Some(above) = self.0.parent()
        {
            // If this fails, the group is not empty, and stays.
            Self(above.to_owned()).take(std::process::id()).unwrap_or_default();
        }
        self.remove();
    }

    /// Removes an empty group.
    pub fn remove(&self) {
        fs::remove_dir(&self.0).unwrap_or_default();
    }

    fn take(&self, pid: u32) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }

    fn members(&self) -> Vec<u32> {
        let listed = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        listed.lines().filter_map(|pid| pid.parse().ok()).collect()
    }
}

/// The name of the group of a run folder. A path may be longer than the name of a group.
fn name_of(folder: &Path) -> String {
    let hash = Sha256::digest(folder.as_os_str().as_bytes());
    let short: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{short}")
}

/// The group that this process is in.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = mount_point()?.join(path);
    // A launcher that another attempt's process has started is in that attempt's group.
    let nested = own.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    match nested {
        true => own.parent().map(Path::to_owned),
        false => Some(own),
    }
}

/// Where the groups of version 2 are mounted.
fn mount_point() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| place.split(' ').nth(4).map(PathBuf::from))?
    })
}
