//! `cargo xtask ci`: everything that must hold before a change goes in. All parts run, so that one push shows all faults.

use crate::command::cargo;
use crate::{Failure, check, command};
use std::time::{Duration, Instant};

#[derive(Debug)]
struct Outcome {
    name: &'static str,
    took: Duration,
    result: Result<(), Failure>,
}

pub fn run() -> Result<(), Failure> {
    let test: check::Part = ("test", as_in_the_readme);
    let outcomes: Vec<Outcome> = std::iter::once(test).chain(check::PARTS).map(attempt).collect();
    eprintln!();
    let mut failed = Vec::new();
    for Outcome { name, took, result } in &outcomes {
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        eprintln!("xtask: {name:<12} {:>6.1} s  {verdict}", took.as_secs_f64());
        failed.extend(result.as_ref().err().map(|Failure(why)| why.as_str()));
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure(failed.join("\n"))),
    }
}

/// The very command that the README tells people to use.
fn as_in_the_readme() -> Result<(), Failure> {
    command::run(cargo().args(["xtask", "test"]))
}

fn attempt((name, part): check::Part) -> Outcome {
    eprintln!("\nxtask: ===== {name} =====");
    let started = Instant::now();
    let result = part();
    if let Err(Failure(why)) = &result {
        eprintln!("xtask: {why}");
    }
    Outcome { name, took: started.elapsed(), result }
}
