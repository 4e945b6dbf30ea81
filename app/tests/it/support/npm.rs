//! Brings an agent program here with `npm ci`, once for all tests, clones and test processes of this user. Outside the clone: it is
//! hundreds of megabytes, and not ours to keep.
//!
//! Install scripts are not run: they only copy the program of this platform from one package to another. The program is taken from
//! where npm puts it, so neither npm's view of scripts nor the age of Node matters.

use crate::support::daemon::ended_within;
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// For 100 MB over a slow line.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a failure is believed, so that ten tests do not wait for the same dead line one after the other.
const FAILURE_HOLDS: Duration = Duration::from_secs(120);

/// npm tells a failure first, and where its log is in the end.
const LINES_OF_A_FAILURE: usize = 3;

/// A program as npm has it, pinned by a lock file.
pub struct PinnedProgram {
    /// The folder below the cache.
    pub cache: &'static str,
    /// The package that the version is taken from.
    pub name: &'static str,
    pub package: &'static str,
    pub lock: &'static str,
    /// Where the program is below the folder of a platform's package. npm installs the package of this platform only.
    pub native: fn(&Path) -> Option<PathBuf>,
    /// The program that runs it, below the folder of packages, if it cannot be started by itself.
    pub run_by: Option<&'static str>,
    /// What npm calls optional is left out: for a package of which only a small part is needed.
    pub without_optional: bool,
}

/// A real program that tests run. Tests ask for it with `or_skip!(…)`.
pub trait RealProgram: Sized + 'static {
    /// What it is called when a test is left out.
    const NAME: &'static str;
    const PINNED: PinnedProgram;

    fn at(program: PathBuf) -> Self;

    /// One for all tests of a process.
    fn installed() -> &'static OnceLock<Result<Self, String>>;

    /// The program, installed by the first test that asks. Where it cannot be had it says so, because a test is left out then.
    fn or_say_skipped(test: &str) -> Option<&'static Self> {
        match Self::installed().get_or_init(|| Self::PINNED.program().map(Self::at)) {
            Ok(program) => Some(program),
            Err(why) => {
                // Past the harness, which shows nothing that a passing test prints.
                let words = format!("SKIPPED {test}: the real {} was NOT tried: {why}\n", Self::NAME);
                io::stderr().write_all(words.as_bytes()).unwrap();
                None
            }
        }
    }
}

/// The program, or the end of the test with a word about it.
macro_rules! or_skip {
    ($program:ty) => {{
        fn here() {}
        let test = std::any::type_name_of_val(&here).trim_start_matches("it::").trim_end_matches("::here");
        match <$program as $crate::support::npm::RealProgram>::or_say_skipped(test) {
            Some(program) => program,
            None => return,
        }
    }};
}
pub(crate) use or_skip;

impl PinnedProgram {
    /// Where the program is, or why it is not to be had.
    pub fn program(&self) -> Result<PathBuf, String> {
        let cache = cache().ok_or("neither XDG_CACHE_HOME nor HOME says where to keep it")?.join(self.cache);
        self.installed(&cache).map_err(|error| error.to_string())
    }

    fn installed(&self, cache: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(cache)?;
        // Held until we return; the kernel gives it back if we die.
        let turn = fs::File::create(cache.join("lock"))?;
        flock(&turn, FlockOperation::LockExclusive)?;
        let folder = cache.join(self.version());
        // Compared as a whole, so that another integrity under the same version is installed anew.
        if fs::read_to_string(folder.join("package-lock.json")).is_ok_and(|lock| lock == self.lock) {
            return self.native(&folder);
        }
        let failure = cache.join("failed");
        if let Some(why) = recent(&failure) {
            return Err(io::Error::other(why));
        }
        match self.install(cache, &folder) {
            Ok(()) => self.native(&folder),
            Err(error) => {
                fs::write(&failure, error.to_string())?;
                Err(error)
            }
        }
    }

    /// Into a folder of its own, which gets its name when all is there.
    fn install(&self, cache: &Path, folder: &Path) -> io::Result<()> {
        let unfinished = cache.join("unfinished");
        for old in [unfinished.as_path(), folder] {
            if old.exists() {
                fs::remove_dir_all(old)?;
            }
        }
        fs::create_dir(&unfinished)?;
        fs::write(unfinished.join("package.json"), self.package)?;
        fs::write(unfinished.join("package-lock.json"), self.lock)?;
        let said = unfinished.join("npm.log");
        let words = fs::File::create(&said)?;
        // With our environment: how to reach the registry from here is the user's own setting.
        let mut npm = Command::new("setpriv");
        npm.args(["--pdeathsig", "KILL", "--", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        npm.args(["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]).current_dir(&unfinished);
        npm.args(self.without_optional.then_some("--omit=optional"));
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
        let program = self.native(&unfinished)?;
        let mut asked = match self.run_by {
            Some(runner) => Command::new(unfinished.join("node_modules").join(runner)),
            None => Command::new(&program),
        };
        asked.args(self.run_by.map(|_| &program));
        let version_said = asked
            .arg("--version")
            .env_clear()
            .env("HOME", &unfinished)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .output()?
            .stdout;
        let version_said = String::from_utf8_lossy(&version_said);
        if !version_said.contains(&self.version()) {
            return Err(io::Error::other(format!("npm installed {version_said:?} instead of {}", self.version())));
        }
        fs::rename(&unfinished, folder)
    }

    fn native(&self, folder: &Path) -> io::Result<PathBuf> {
        (self.native)(&folder.join("node_modules"))
            .ok_or_else(|| io::Error::other("there is no program for this platform"))
    }

    fn version(&self) -> String {
        let lock: serde_json::Value = serde_json::from_str(self.lock).unwrap();
        lock["packages"][format!("node_modules/{}", self.name)]["version"].as_str().unwrap().to_owned()
    }
}

fn recent(failure: &Path) -> Option<String> {
    let age = fs::metadata(failure).ok()?.modified().ok()?.elapsed().ok()?;
    (age < FAILURE_HOLDS).then(|| fs::read_to_string(failure).ok()).flatten()
}

fn cache() -> Option<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".cache"));
    let cache =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).or_else(home)?;
    Some(cache.join("hatchery"))
}
