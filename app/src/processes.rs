//! The processes of the machine: their descendants, their tags, and signals to them. Linux shows all of this in `/proc`; on other systems
//! only a process whose id is known can be signalled.

use hatchery_core::run::Process;
use rustix::process::{Pid, Signal};
use std::time::{Duration, Instant};

/// This process.
pub fn this_process() -> Process {
    let pid = std::process::id();
    Process { pid, began: began(pid).unwrap_or_default() }
}

/// A process as it is now.
pub fn look_up(pid: u32) -> Process {
    Process { pid, began: began(pid).unwrap_or_default() }
}

/// Whether this process still runs. A later process with the same id began at another time.
pub fn is_alive(process: &Process) -> bool {
    match began(process.pid) {
        Some(began) => began == process.began,
        None => false,
    }
}

/// Sends a signal to one process. It is not an error when the process is gone.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw)
        && let Err(error) = rustix::process::kill_process(pid, signal)
    {
        tracing::debug!(?pid, ?signal, %error, "the signal was not sent");
    }
}

/// Waits until a process is gone, at most for this long. A process that was killed stays for as long as the kernel frees its memory,
/// without an environment.
pub fn wait_for_end(process: &Process, at_most: Duration) {
    let until = Instant::now() + at_most;
    while is_alive(process) && Instant::now() < until {
        std::thread::sleep(ENDING_PAUSE);
    }
}

/// Whether a process carries an entry of this name in its environment. None if it has no environment to look into, as a process that is
/// being ended, or one of another user.
pub fn is_tagged(pid: u32, name: &str) -> Option<bool> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok().filter(|environ| !environ.is_empty())?;
    let entry = format!("{name}=");
    Some(environ.split(|byte| *byte == 0).any(|it| it.starts_with(entry.as_bytes())))
}

/// Kills every process that carries the tag, and those that were forked meanwhile, until none is left. Says how many, and returns when they
/// are gone: what they had open is free then.
pub fn kill_tagged(name: &str, value: &str) -> usize {
    let mut killed = Vec::new();
    // Each round may miss what is forked during its scan. A process that forks faster than all rounds is not stopped.
    for _ in 0..MAX_KILL_ROUNDS {
        let found = tagged(name, value);
        if found.is_empty() {
            break;
        }
        kill_all(found, &mut killed);
    }
    gone(&killed)
}

/// Kills what is left of a process session whose leader has ended. The kernel gives the leader's id to no other process while the
/// session has members. A leader that lives, or never was, has its members left alone.
pub fn kill_session(leader: &Process) -> usize {
    let mut killed = Vec::new();
    for _ in 0..MAX_KILL_ROUNDS {
        if leader.pid <= 1 || began(leader.pid).is_some() {
            break;
        }
        // Nothing in it is older than its leader.
        let found: Vec<u32> =
            in_session(leader.pid).into_iter().filter(|pid| began(*pid) >= Some(leader.began)).collect();
        if found.is_empty() {
            break;
        }
        kill_all(found, &mut killed);
    }
    gone(&killed)
}

fn kill_all(found: Vec<u32>, killed: &mut Vec<Process>) {
    for pid in found {
        killed.push(look_up(pid));
        signal(pid, Signal::KILL);
    }
    std::thread::sleep(KILL_PAUSE);
}

/// Waits until processes that were killed are gone, and says how many there were.
fn gone(killed: &[Process]) -> usize {
    killed.iter().for_each(|process| wait_for_end(process, ENDING_TIMEOUT));
    killed.len()
}

/// How often the process table is scanned for processes that were forked meanwhile.
const MAX_KILL_ROUNDS: usize = 100;
/// Between two of these scans.
const KILL_PAUSE: Duration = Duration::from_millis(5);
/// How long a killed process may take to be gone. The kernel needs longer only if the machine is about to fail.
const ENDING_TIMEOUT: Duration = Duration::from_secs(10);
const ENDING_PAUSE: Duration = Duration::from_millis(5);

pub use platform::{ExitWatch, adopt_orphans, began, boot, descendants, in_session, parent, staying_in, tagged};

#[cfg(target_os = "linux")]
mod platform {
    use hatchery_core::run::Process;
    use rustix::process::{Pid, PidfdFlags};
    use std::collections::BTreeMap;
    use std::io::Read as _;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Waits for the end of a process that need not be a child of ours, without polling.
    #[derive(Debug)]
    pub struct ExitWatch(AsyncFd<OwnedFd>);

    impl ExitWatch {
        /// None when the process is gone already, or cannot be watched.
        pub fn of(process: &Process) -> Option<Self> {
            let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
            let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
            // The handle is opened before the check: an open handle never refers to a later process.
            #[expect(deprecated, reason = "the owned handle stays open while it is registered; the new form is unsafe")]
            let watch = AsyncFd::with_interest(handle, Interest::READABLE).ok()?;
            super::is_alive(process).then_some(Self(watch))
        }

        /// Returns when the process is gone.
        pub async fn exited(&self) {
            // If the handle cannot be waited for, the caller's polling finds the end.
            if self.0.readable().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// When a process began, in the kernel's ticks since it started: with the number it tells a process from all others.
    /// Nothing when there is none, or when it is dead and only waits to be collected.
    pub fn began(pid: u32) -> Option<u64> {
        stat(pid).filter(|stat| !stat.is_zombie).map(|stat| stat.began)
    }

    /// Which start of the machine this is.
    pub fn boot() -> String {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        id.map(|id| id.trim().to_owned()).unwrap_or_default()
    }

    /// From now on the orphans among this process's descendants become its children.
    pub fn adopt_orphans() -> std::io::Result<()> {
        let me = rustix::process::getpid();
        Ok(rustix::process::set_child_subreaper(Some(me))?)
    }

    /// The parent of a process.
    pub fn parent(pid: u32) -> Option<u32> {
        stat(pid).map(|stat| stat.parent)
    }

    /// All descendants of a process.
    pub fn descendants(pid: u32) -> Vec<u32> {
        // Not every Linux lists the children of a process. Without the lists the whole process table is searched.
        match Path::new("/proc/thread-self/children").exists() {
            true => below(pid, children),
            false => {
                let mut table = children_by_parent();
                below(pid, |pid| table.remove(&pid).unwrap_or_default())
            }
        }
    }

    fn below(pid: u32, mut children: impl FnMut(u32) -> Vec<u32>) -> Vec<u32> {
        let mut found = vec![pid];
        let mut next = 0;
        while let Some(pid) = found.get(next) {
            found.extend(children(*pid));
            next += 1;
        }
        found.split_off(1)
    }

    /// The children of all threads of a process, without those that only wait to be collected.
    fn children(pid: u32) -> Vec<u32> {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let lists: String = threads.filter_map(|thread| read_small(thread.path().join("children"))).collect();
        lists.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| began(*pid).is_some()).collect()
    }

    fn children_by_parent() -> BTreeMap<u32, Vec<u32>> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pid in all() {
            if let Some(stat) = stat(pid).filter(|stat| !stat.is_zombie) {
                children.entry(stat.parent).or_default().push(pid);
            }
        }
        children
    }

    /// All that carry an entry in their environment. Those of other users cannot be looked into, and are not ours.
    pub fn tagged(name: &str, value: &str) -> Vec<u32> {
        let entry = format!("{name}={value}");
        let carries = |pid: &u32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|it| it == entry.as_bytes())
        };
        let me = std::process::id();
        all().filter(|pid| *pid != me).filter(carries).collect()
    }

    /// All that belong to a process session.
    pub fn in_session(leader: u32) -> Vec<u32> {
        all().filter(|pid| stat(*pid).is_some_and(|stat| stat.session == leader && !stat.is_zombie)).collect()
    }

    /// The names of the programs that are in a folder or below it. Nothing where that cannot be known.
    pub fn staying_in(folder: &Path) -> Option<Vec<String>> {
        let is_inside =
            |pid: &u32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let name = |pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        Some(all().filter(is_inside).filter_map(name).map(|name| name.trim_end().to_owned()).collect())
    }

    struct Stat {
        parent: u32,
        session: u32,
        began: u64,
        is_zombie: bool,
    }

    fn all() -> impl Iterator<Item = u32> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    /// A text of the kernel. The kernel says that such a file is empty, so without space from the start it would be read in many small
    /// pieces.
    fn read_small(path: impl AsRef<Path>) -> Option<String> {
        let mut text = String::with_capacity(4096);
        std::fs::File::open(path).ok()?.read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn stat(pid: u32) -> Option<Stat> {
        let text = read_small(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may hold anything, blanks and parentheses included.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        Some(Stat {
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            began: fields.get(19)?.parse().ok()?,
            is_zombie: state == "Z" || state == "X",
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::io::{BufRead as _, BufReader};
        use std::process::{Command, Stdio};

        #[test]
        fn children_and_their_children_are_found_in_both_ways() {
            let script = "sh -c 'sleep 1000 & echo ready; wait' & wait";
            let mut shell = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
            let mut ready = String::new();
            BufReader::new(shell.stdout.take().unwrap()).read_line(&mut ready).unwrap();
            let mut table = children_by_parent();
            let searched = below(shell.id(), |pid| table.remove(&pid).unwrap_or_default());
            let listed = below(shell.id(), children);
            for pid in searched.iter().chain([&shell.id()]) {
                crate::processes::signal(*pid, rustix::process::Signal::KILL);
            }
            shell.wait().unwrap();
            assert_eq!((ready.as_str(), searched.len()), ("ready\n", 2));
            assert_eq!(listed, searched);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use hatchery_core::run::Process;
    use rustix::process::Pid;
    use std::path::Path;

    /// Not possible here.
    #[derive(Debug)]
    pub struct ExitWatch(std::convert::Infallible);

    impl ExitWatch {
        pub fn of(_process: &Process) -> Option<Self> {
            None
        }

        pub async fn exited(&self) {
            match self.0 {}
        }
    }

    /// Whether there is such a process is all that can be known.
    pub fn began(pid: u32) -> Option<u64> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        rustix::process::test_kill_process(pid).ok().map(|()| 0)
    }

    pub fn boot() -> String {
        String::new()
    }

    pub fn adopt_orphans() -> std::io::Result<()> {
        Ok(())
    }

    pub fn descendants(_pid: u32) -> Vec<u32> {
        Vec::new()
    }

    pub fn parent(_pid: u32) -> Option<u32> {
        None
    }

    pub fn in_session(_leader: u32) -> Vec<u32> {
        Vec::new()
    }

    pub fn tagged(_name: &str, _value: &str) -> Vec<u32> {
        Vec::new()
    }

    pub fn staying_in(_folder: &Path) -> Option<Vec<String>> {
        None
    }
}
