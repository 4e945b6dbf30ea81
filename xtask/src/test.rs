//! `cargo xtask test`: all tests, after making sure of what they need from the system.

use crate::command::{cargo, succeeds};
use crate::{Failure, command, page, postgres, tmux};
use std::process::Command;

/// With one of these arguments, only the named packages are tested.
const PACKAGES: [&str; 2] = ["-p", "--package"];

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    find_compiler()?;
    postgres::ensure()?;
    let has_tmux = tmux::ensure();
    let tested = command::run(cargo().arg("test").args(selection(arguments)).args(arguments));
    if !has_tmux {
        tmux::say_skipped();
    }
    tested?;
    // With arguments, only what they name is tested.
    match arguments.is_empty() {
        true => page::test(),
        false => Ok(()),
    }
}

fn find_compiler() -> Result<(), Failure> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    match succeeds(Command::new(&compiler).arg("--version")) {
        true => Ok(()),
        false => Err(Failure(format!(
            "`{compiler}` does not work, and SQLite is built from C: install a C compiler (Debian: build-essential)"
        ))),
    }
}

/// All packages, with the targets that cargo tests by itself: everything but the benchmarks, which `--all-targets` would run.
fn selection(given: &[String]) -> Option<&'static str> {
    let ours = given.iter().take_while(|argument| *argument != "--");
    let mut names = ours.map(|argument| argument.split('=').next().unwrap_or_default());
    let named = names.any(|name| PACKAGES.contains(&name));
    (!named).then_some("--workspace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_tested_unless_a_package_is_named() {
        for (given, expected) in [
            ("", Some("--workspace")),
            ("a_name", Some("--workspace")),
            ("-p xtask", None),
            ("--package=xtask --doc", None),
            ("name -- -p", Some("--workspace")),
        ] {
            let arguments: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
            assert_eq!(selection(&arguments), expected, "{given}");
        }
    }
}
