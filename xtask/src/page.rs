//! The page in `web/`: its checks, and its tests in a real browser. Where there is no Node they are left out, aloud.

use crate::Failure;
use crate::command::{self, cargo, run, succeeds};
use crate::root_rights::Root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Chromium is looked for. The tests look at the same places.
const BROWSERS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/// What the tests start.
const PROGRAM: &str = "hatchery";

/// Format, lint and types.
pub fn check() -> Result<(), Failure> {
    match tools()? {
        true => run(npm().args(["run", "--silent", "check"])),
        false => Ok(()),
    }
}

/// The page's own tests, then those in a browser.
pub fn test() -> Result<(), Failure> {
    if !tools()? {
        return Ok(());
    }
    run(npm().args(["run", "--silent", "test"]))?;
    if let Err(Failure(why)) = browser() {
        eprintln!("xtask: SKIPPED: the page was NOT tested in a browser: {why}");
        return Ok(());
    }
    run(cargo().args(["build", "--quiet", "-p", PROGRAM]))?;
    run(npm().args(["run", "--silent", "browser"]).env("HATCHERY_BIN", target().join("debug").join(PROGRAM)))
}

/// Whether there is Node; then everything that the lock file names is installed.
fn tools() -> Result<bool, Failure> {
    if !succeeds(Command::new("npm").arg("--version")) {
        eprintln!(
            "xtask: SKIPPED: the page was NOT looked at: npm was not found; it comes with Node.js 20.19 or newer"
        );
        return Ok(false);
    }
    // The build of the program installs them, too, and says so by this file.
    if !web().join("node_modules/.hatchery-lock").is_file() {
        run(npm().args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    }
    Ok(true)
}

fn browser() -> Result<(), Failure> {
    let is_there =
        || std::env::var_os("HATCHERY_CHROMIUM").is_some() || BROWSERS.iter().any(|it| Path::new(it).exists());
    if is_there() {
        return Ok(());
    }
    eprintln!("xtask: Chromium is missing; installing it");
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(Failure("there is no apt-get here; install Chromium, or name one by HATCHERY_CHROMIUM".into()));
    }
    let root = Root::find()?;
    run(root.command("apt-get").args(["update", "--quiet"]))?;
    run(&mut root.install("chromium"))?;
    is_there().then_some(()).ok_or_else(|| Failure("Chromium is installed, but not found".into()))
}

fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(web());
    npm
}

fn web() -> PathBuf {
    command::root().join("web")
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| command::root().join("target"), PathBuf::from)
}
