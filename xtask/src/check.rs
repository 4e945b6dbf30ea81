//! `cargo xtask check`: everything about the code that needs no test to run.

use crate::command::{cargo, succeeds};
use crate::{Failure, command, page};
use std::process::Command;
use std::time::{Duration, Instant};

/// The version that wrote the fields of deny.toml.
const CARGO_DENY: &str = "0.20.2";
/// How long the advisories may take to arrive. They are a few megabytes.
const FETCH_TIMEOUT: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A part of the chore, with its name.
pub type Part = (&'static str, fn() -> Result<(), Failure>);

pub const PARTS: [Part; 5] = [
    ("format", format),
    ("clippy", clippy),
    ("page", page::check),
    ("dependencies", dependencies),
    ("advisories", advisories),
];

pub fn run() -> Result<(), Failure> {
    PARTS.iter().try_for_each(|(_, part)| part())
}

fn format() -> Result<(), Failure> {
    command::run(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<(), Failure> {
    command::run(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn dependencies() -> Result<(), Failure> {
    install_deny()?;
    command::run(cargo().args([
        "deny",
        "--all-features",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]))
}

/// Known faults in dependencies. The list of them is on the network; to be without one is no fault of the code.
fn advisories() -> Result<(), Failure> {
    install_deny()?;
    match finishes(cargo().args(["deny", "fetch", "db"])) {
        true => command::run(cargo().args(["deny", "--all-features", "check", "--disable-fetch", "advisories"])),
        false => {
            eprintln!("xtask: SKIPPED: the advisories cannot be fetched, so known faults were NOT looked for");
            Ok(())
        }
    }
}

fn install_deny() -> Result<(), Failure> {
    match succeeds(cargo().args(["deny", "--version"])) {
        true => Ok(()),
        false => command::run(cargo().args(["install", "cargo-deny", "--locked", "--version", CARGO_DENY])),
    }
}

/// True when the program ends well, and in time.
fn finishes(command: &mut Command) -> bool {
    let Ok(mut child) = command.spawn() else { return false };
    let deadline = Instant::now() + FETCH_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK_AGAIN),
            Ok(None) | Err(_) => {
                drop(child.kill());
                drop(child.wait());
                return false;
            }
        }
    }
}
