//! A project on disk: where its root is, and what `.hatchery/` holds. Nothing here knows what is in the log.

mod linked;
mod lock;
mod ownership;
mod stamp;

pub use lock::{Lock, LockNote, holder};
pub use ownership::SAFE_FOLDERS;

use crate::clock;
use crate::no_links;
use crate::report::{Code, Context as _, Report};
use crate::worktree::WORKTREES;
use base64::Engine as _;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
}

/// What a running daemon says of itself, for the commands that look for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonFile {
    pub pid: u32,
    pub url: String,
    pub version: String,
}

impl Project {
    /// The nearest folder at or above `start` that has `.hatchery/` or `.git`, else `start` itself. The worktrees of quests and runs belong
    /// to the project that made them.
    pub fn find(start: &Path) -> Result<Self, Report> {
        let start = start.canonicalize().context(format_args!("the folder {} cannot be used", start.display()))?;
        if !start.is_dir() {
            return Err(Report::new(Code::Usage, format_args!("{} is not a folder", start.display()))
                .hint("name the folder of a project, or a folder in it"));
        }
        // A data folder looks like a repository, too: see `git_shield`.
        let is_data = |folder: &Path| folder.file_name().is_some_and(|name| name == ".hatchery");
        let is_worktree = |folder: &Path| folder.ancestors().skip(1).any(|above| above.ends_with(WORKTREES));
        let marked = |folder: &&Path| {
            folder.join(".hatchery").is_dir()
                || (folder.join(".git").exists() && !is_data(folder) && !is_worktree(folder))
        };
        let root = start.ancestors().find(marked).unwrap_or(&start).to_owned();
        // Paths stand in the log, in JSON and in the environment of agents, which are text.
        if root.to_str().is_none() {
            return Err(Report::new(Code::Usage, format_args!("the path {} is not UTF-8", root.display()))
                .hint("rename the folder, or choose another one with --project"));
        }
        Ok(Self { root })
    }

    /// The project whose status a folder shares. It is the project of the folder, except in a git worktree that has no status of its own:
    /// that one shares the status of the main checkout.
    pub fn find_for_status(start: &Path) -> Result<Self, Report> {
        let project = Self::find(start)?;
        let has = |file: &str| project.root.join(file).exists();
        if [".hatchery", ".fctry/state.json", ".fctry/inbox.json"].into_iter().any(has) {
            return Ok(project);
        }
        match linked::main_checkout(&project.root) {
            Some(main) => Self::find(&main).map(|found| if found.root == main { found } else { project }),
            None => Ok(project),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn data(&self) -> PathBuf {
        self.root.join(".hatchery")
    }

    /// Whether Hatchery has been used here.
    pub fn exists(&self) -> bool {
        self.data().is_dir()
    }

    pub fn config_file(&self) -> PathBuf {
        self.root.join("hatchery.toml")
    }

    /// Where the database is, unless a setting says otherwise.
    pub fn database_file(&self) -> PathBuf {
        self.data().join("hatchery.db")
    }

    /// What is remembered of the head of the log.
    pub fn head_file(&self) -> PathBuf {
        self.data().join("head.json")
    }

    pub fn daemon_log(&self) -> PathBuf {
        self.data().join("daemon.log")
    }

    /// Makes the data folder, invisible to git and closed to others. One that was made elsewhere, or leads elsewhere, is refused.
    pub fn prepare(&self) -> Result<(), Report> {
        use std::os::unix::fs::DirBuilderExt as _;
        self.check_owner()?;
        let data = self.data();
        self.refuse_links()?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&data);
        made.context(format_args!("the folder {} cannot be made", data.display()))
            .map_err(|report| report.hint("choose another folder with --project, or make this one writable"))?;
        self.check_stamp()?;
        self.close_to_others()?;
        let ignore = data.join(".gitignore");
        if !ignore.exists() {
            // Whole or not at all: an empty one would show the token to git.
            write_whole(&ignore, b"*\n", 0o644)
                .context(format_args!("{} cannot be written", ignore.display()))
                .map_err(|report| report.hint(MAKE_ROOM))?;
        }
        Ok(())
    }

    /// What the running daemon says of itself in the lock's file. What `daemon.json` says is not believed: when the daemon was killed,
    /// another program may listen where it did, and would be given tokens.
    pub fn daemon(&self) -> Option<DaemonFile> {
        self.is_served().then(|| self.lock_note()).flatten()?.daemon
    }

    /// Whether a daemon runs, or one has not ended in order.
    pub fn is_announced(&self) -> bool {
        self.is_served() || self.daemon_file().exists()
    }

    /// Says where the daemon listens: in the lock's file for our commands, in `daemon.json` for other programs.
    pub fn announce(&self, lock: &Lock, daemon: &DaemonFile) -> Result<(), Report> {
        let text = serde_json::to_string_pretty(daemon).context("the daemon cannot be described")?;
        let noted =
            lock.note(Some(daemon.clone())).context(format_args!("{} cannot be written", self.lock_file().display()));
        noted.map_err(|report| report.hint(MAKE_ROOM))?;
        let path = self.daemon_file();
        write_whole(&path, text.as_bytes(), 0o600)
            .context(format_args!("{} cannot be written", path.display()))
            .map_err(|report| report.hint(MAKE_ROOM))
    }

    /// Removes the announcement of an ending daemon, unless the file speaks of another one.
    pub fn retract_own(&self) {
        let text = std::fs::read_to_string(self.daemon_file()).unwrap_or_default();
        let own = serde_json::from_str::<DaemonFile>(&text).is_ok_and(|daemon| daemon.pid == std::process::id());
        if own {
            self.retract();
        }
    }

    /// Removes what a daemon before this one has left.
    pub fn retract(&self) {
        match std::fs::remove_file(self.daemon_file()) {
            Err(error) if error.kind() != ErrorKind::NotFound => tracing::warn!(%error, "daemon.json stays behind"),
            _ => {}
        }
    }

    /// The secret that opens the API, made at the first start. Only its owner may read it. A token that came with
    /// a copy is known elsewhere, so a new one replaces it. To be called under the lock.
    pub fn token(&self) -> Result<String, Report> {
        let path = self.token_file();
        let is_foreign = self.has_foreign_token();
        if let Some(token) = self.existing_token()? {
            if !is_foreign {
                return Ok(token);
            }
            tracing::warn!("{} was not written by the daemon, so it is replaced", path.display());
        }
        let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(clock::random::<32>());
        write_whole(&path, token.as_bytes(), 0o600)
            .context(format_args!("{} cannot be written", path.display()))
            .map_err(|report| report.hint(MAKE_ROOM))?;
        self.stamp_token()?;
        Ok(token)
    }

    pub fn existing_token(&self) -> Result<Option<String>, Report> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.token_file();
        let text = match no_links::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Report::failed(format_args!("{} cannot be read: {error}", path.display()))),
        };
        let mode = std::fs::metadata(&path).map(|meta| meta.permissions().mode() & 0o777).unwrap_or(0o600);
        if mode & 0o077 != 0 {
            return Err(Report::new(Code::Failed, format_args!("{} can be read by others", path.display()))
                .hint(format_args!("chmod 600 {0}, or delete it to have a new one made", path.display())));
        }
        match text.trim() {
            token if token.len() >= MIN_TOKEN_CHARS && token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Ok(Some(token.to_owned()))
            }
            _ => Err(Report::failed(format_args!("{} holds no usable token", path.display()))
                .hint("delete it: the next start makes a new one")),
        }
    }

    /// Which of several daemons on one store this one is: processes run where they were started. Made at the first start. The stamp says
    /// what it is; the file is for people. To be called under the lock.
    pub fn host(&self) -> Result<String, Report> {
        let known = self.stamped_host()?;
        let host = known.clone().unwrap_or_else(clock::new_uuid);
        let path = self.host_file();
        if no_links::read(&path).ok().is_none_or(|written| written.trim_ascii() != host.as_bytes()) {
            write_whole(&path, host.as_bytes(), 0o600)
                .context(format_args!("{} cannot be written", path.display()))
                .map_err(|report| report.hint(MAKE_ROOM))?;
        }
        if known.is_none() {
            self.stamp_host(&host)?;
        }
        Ok(host)
    }

    pub fn token_file(&self) -> PathBuf {
        self.data().join("token")
    }

    fn host_file(&self) -> PathBuf {
        self.data().join("host")
    }

    fn lock_file(&self) -> PathBuf {
        self.data().join("daemon.lock")
    }

    fn daemon_file(&self) -> PathBuf {
        self.data().join("daemon.json")
    }
}

/// A daemon that is killed while it starts a process leaves its lock to that one, until it has become another program.
const HEIR_PATIENCE: Duration = Duration::from_secs(1);
const MAKE_ROOM: &str = "make the folder writable, or free some space";
/// A process that looks at the lock holds it for some microseconds.
pub const LOOKER_PAUSE: Duration = Duration::from_millis(1);

fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // A process of another user counts, too.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// False if another process holds the lock.
pub fn flock(file: &File, operation: FlockOperation) -> std::io::Result<bool> {
    match rustix::fs::flock(file, operation) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Shorter secrets can be guessed.
const MIN_TOKEN_CHARS: usize = 16;

/// Writes a file so that readers see the old content or the new, and never half of it.
pub fn write_whole(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    let file = written_beside(path, content, mode)?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// The same for what need not survive a loss of power, because it is made again then: a sync costs more than all the rest.
pub fn write_for_now(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    written_beside(path, content, mode)?.persist(path).map(drop).map_err(|error| error.error)
}

fn written_beside(path: &Path, content: &[u8], mode: u32) -> std::io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(mode)).tempfile_in(folder)?;
    file.write_all(content)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_nearest_marked_parent() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir(folder.path().join("a/.git")).unwrap();
        let root = Project::find(&deep).unwrap().root().to_owned();
        assert_eq!(root, folder.path().canonicalize().unwrap().join("a"));
        std::fs::create_dir(folder.path().join("a/b/.hatchery")).unwrap();
        assert!(Project::find(&deep).unwrap().root().ends_with("a/b"));
        let inside = folder.path().join("a/b/.hatchery/runs");
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir(folder.path().join("a/b/.hatchery/.git")).unwrap();
        assert!(Project::find(&inside).unwrap().root().ends_with("a/b"));
    }

    #[test]
    fn a_worktree_of_a_quest_belongs_to_its_project() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("shop/.hatchery/worktrees/quest/trunk/src");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.with_file_name(".git"), "gitdir: elsewhere").unwrap();
        assert!(Project::find(&deep).unwrap().root().ends_with("shop"));
        // Unless Hatchery was used in the worktree itself.
        std::fs::create_dir(deep.with_file_name(".hatchery")).unwrap();
        assert!(Project::find(&deep).unwrap().root().ends_with("trunk"));
    }

    #[test]
    fn a_path_that_is_not_text_is_refused() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        std::fs::create_dir(&path).unwrap();
        let report = Project::find(&path).unwrap_err();
        assert!(report.code == Code::Usage && report.message.contains("is not UTF-8"), "{report}");
    }

    #[test]
    fn one_daemon_a_project() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let lock = project.lock().unwrap();
        assert!(project.is_served());
        assert!(project.lock().is_err());
        drop(lock);
        assert!(!project.is_served());
    }

    #[test]
    fn what_a_killed_daemon_has_left_is_not_asked() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let daemon = DaemonFile { pid: 1, url: "http://127.0.0.1:1".into(), version: "1".into() };
        let lock = project.lock().unwrap();
        project.announce(&lock, &daemon).unwrap();
        assert_eq!(project.daemon(), Some(daemon));
        drop(lock);
        assert_eq!(project.daemon(), None, "another program may listen there now");
        assert!(project.is_announced());
        project.retract();
        assert!(!project.is_announced());
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let token = project.token().unwrap();
        assert_eq!(project.token().unwrap(), token);
        std::fs::set_permissions(project.token_file(), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(project.token().unwrap_err().to_string().contains("can be read by others"));
    }
}
