//! Brings the CLI here with `npm ci`, once for all tests, clones and test processes of this user. Outside the clone: it is 350 MB, and
//! not ours to keep.
//!
//! Its install script only copies the program of this platform from one package to another. It is not run; the program is
//! taken from where npm puts it, so neither npm's view of scripts nor the age of Node matters.

use crate::support::daemon::ended_within;
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PACKAGE: &str = include_str!("../../../claude-cli/package.json");
const LOCK: &str = include_str!("../../../claude-cli/package-lock.json");
/// For 100 MB over a slow line.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a failure is believed, so that ten tests do not wait for the same dead line one after the other.
const FAILURE_HOLDS: Duration = Duration::from_secs(120);

/// npm tells a failure first, and where its log is in the end.
const LINES_OF_A_FAILURE: usize = 3;

/// Where the program is, or why it is not to be had.
pub fn program() -> Result<PathBuf, String> {
    let cache = cache().ok_or("neither XDG_CACHE_HOME nor HOME says where to keep it")?;
    installed(&cache).map_err(|error| error.to_string())
}

fn installed(cache: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(cache)?;
    // Held until we return; the kernel gives it back if we die.
    let turn = fs::File::create(cache.join("lock"))?;
    flock(&turn, FlockOperation::LockExclusive)?;
    let folder = cache.join(version());
    // Compared as a whole, so that another integrity under the same version is installed anew.
    if fs::read_to_string(folder.join("package-lock.json")).is_ok_and(|lock| lock == LOCK) {
        return native(&folder);
    }
    let failure = cache.join("failed");
    if let Some(why) = recent(&failure) {
        return Err(io::Error::other(why));
    }
    match install(cache, &folder) {
        Ok(()) => native(&folder),
        Err(error) => {
            fs::write(&failure, error.to_string())?;
            Err(error)
        }
    }
}

/// Into a folder of its own, which gets its name when all is there.
fn install(cache: &Path, folder: &Path) -> io::Result<()> {
    let unfinished = cache.join("unfinished");
    for old in [unfinished.as_path(), folder] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    fs::create_dir(&unfinished)?;
    fs::write(unfinished.join("package.json"), PACKAGE)?;
    fs::write(unfinished.join("package-lock.json"), LOCK)?;
    let said = unfinished.join("npm.log");
    let words = fs::File::create(&said)?;
    // With our environment: how to reach the registry from here is the user's own setting.
    let mut npm = Command::new("setpriv");
    npm.args(["--pdeathsig", "KILL", "--", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    npm.args(["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]).current_dir(&unfinished);
    npm.stdin(Stdio::null()).stdout(words.try_clone()?).stderr(words);
    let mut child = npm.spawn()?;
    if !ended_within(child.id(), INSTALL_TIMEOUT) {
        child.kill()?;
    }
    let status = child.wait()?;
    if !status.success() {
        let said = fs::read_to_string(&said)?;
        let told = |line: &&str| !line.starts_with("npm warn") && !line.is_empty();
        let why: Vec<&str> = said.lines().filter(told).take(LINES_OF_A_FAILURE).collect();
        return Err(io::Error::other(format!("`npm ci` did not succeed ({status}): {}", why.join(" | "))));
    }
    let version_said = Command::new(native(&unfinished)?).arg("--version").env_clear().output()?.stdout;
    let version_said = String::from_utf8_lossy(&version_said);
    if !version_said.starts_with(&version()) {
        return Err(io::Error::other(format!("npm installed {version_said:?} instead of {}", version())));
    }
    fs::rename(&unfinished, folder)
}

/// The program of this platform; npm installs one of them.
fn native(folder: &Path) -> io::Result<PathBuf> {
    let packages = fs::read_dir(folder.join("node_modules/@anthropic-ai"))?;
    let mut programs = packages.flatten().map(|package| package.path().join("claude")).filter(|path| path.is_file());
    programs.next().ok_or_else(|| io::Error::other("there is no program for this platform"))
}

fn version() -> String {
    let lock: serde_json::Value = serde_json::from_str(LOCK).unwrap();
    lock["packages"]["node_modules/@anthropic-ai/claude-code"]["version"].as_str().unwrap().to_owned()
}

fn recent(failure: &Path) -> Option<String> {
    let age = fs::metadata(failure).ok()?.modified().ok()?.elapsed().ok()?;
    (age < FAILURE_HOLDS).then(|| fs::read_to_string(failure).ok()).flatten()
}

fn cache() -> Option<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".cache"));
    let cache =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).or_else(home)?;
    Some(cache.join("hatchery/claude-cli"))
}
