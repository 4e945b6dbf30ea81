//! tmux, in which the tests of the terminal start the real program. Without it these tests pass without testing anything.

use crate::Failure;
use crate::command::{run, succeeds};
use crate::root_rights::Root;
use std::process::Command;

/// Whether there is a tmux. A missing one is installed if we may.
pub fn ensure() -> bool {
    let is_there = || succeeds(Command::new("tmux").arg("-V"));
    if is_there() {
        return true;
    }
    eprintln!("xtask: tmux is missing; installing it");
    if let Err(Failure(why)) = install() {
        eprintln!("xtask: tmux cannot be installed: {why}");
    }
    is_there()
}

/// Said after the tests, where it is read: cargo does not show what a test says that passes.
pub fn say_skipped() {
    eprintln!("xtask: SKIPPED: the terminal was NOT tested: tmux was not found; install Debian's package `tmux`");
}

fn install() -> Result<(), Failure> {
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(Failure("there is no apt-get here".into()));
    }
    let root = Root::find()?;
    run(root.command("apt-get").args(["update", "--quiet"]))?;
    run(&mut root.install("tmux"))
}
