//! `cargo xtask test`: all tests, after making sure of what they need from the system.

use crate::command::{cargo, succeeds};
use crate::{Failure, command, postgres};
use std::process::Command;

/// Every target with tests, then the examples in the documentation. Not `--all-targets`: that would run the benchmarks.
const RUNS: [&[&str]; 2] = [&["--lib", "--bins", "--tests"], &["--doc"]];
/// Whoever names targets wants those and no others.
const TARGETS: [&str; 8] = ["--lib", "--bin", "--bins", "--test", "--tests", "--benches", "--all-targets", "--doc"];
const PACKAGES: [&str; 2] = ["-p", "--package"];

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    find_compiler()?;
    postgres::ensure()?;
    for arguments in runs(arguments) {
        command::run(cargo().arg("test").args(arguments))?;
    }
    Ok(())
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

/// The arguments of each run of `cargo test`.
fn runs(given: &[String]) -> Vec<Vec<String>> {
    let names_one_of = |known: &[&str]| {
        let ours = given.iter().take_while(|argument| *argument != "--");
        let mut names = ours.map(|argument| argument.split('=').next().unwrap_or_default());
        names.any(|name| known.contains(&name))
    };
    let workspace: &[&str] = if names_one_of(&PACKAGES) { &[] } else { &["--workspace"] };
    let runs: &[&[&str]] = if names_one_of(&TARGETS) { &[&[]] } else { &RUNS };
    let run = |targets: &&[&str]| {
        let ours = workspace.iter().chain(targets.iter()).map(|argument| (*argument).to_owned());
        ours.chain(given.iter().cloned()).collect()
    };
    runs.iter().map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, expected: &[&str]) {
        let given: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
        let runs: Vec<String> = runs(&given).into_iter().map(|run| run.join(" ")).collect();
        assert_eq!(runs, expected);
    }

    #[test]
    fn everything_is_tested_unless_something_is_named() {
        check("", &["--workspace --lib --bins --tests", "--workspace --doc"]);
        check("-p xtask", &["--lib --bins --tests -p xtask", "--doc -p xtask"]);
        check("--test it", &["--workspace --test it"]);
        check("--package=xtask --doc", &["--package=xtask --doc"]);
    }

    #[test]
    fn what_follows_the_dashes_is_for_the_tests() {
        check(
            "name -- --test -p",
            &["--workspace --lib --bins --tests name -- --test -p", "--workspace --doc name -- --test -p"],
        );
    }
}
