//! The project's own chores, as `cargo xtask CHORE`. One file a chore; nothing beyond the standard library, so that they
//! are there before anything has been fetched.

mod check;
mod ci;
mod command;
mod docs;
mod page;
mod postgres;
mod rivals;
mod root_rights;
mod test;
mod tmux;

use std::process::ExitCode;

const HELP: &str = "\
The project's chores.

  cargo xtask test [ARGS]  all tests; installs what they need. ARGS go to `cargo test`
  cargo xtask check        format, clippy, the page, licenses and sources of dependencies, advisories
  cargo xtask ci           both, each part with its duration: what .ci/run runs
  cargo xtask docs         writes the generated pages in docs/, and web/openapi.json
  cargo xtask rivals [--quick]  durable steps of Restate and DBOS, to hold ours against: docs/performance.md";

/// Why a chore failed, in words for the developer who started it.
#[derive(Debug)]
struct Failure(String);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        None => {
            println!("{HELP}");
            Ok(())
        }
        Some((chore, rest)) => match (chore.as_str(), rest) {
            ("test", rest) => test::run(rest),
            ("check", []) => check::run(),
            ("ci", []) => ci::run(),
            ("docs", []) => docs::run(),
            ("rivals", rest) => rivals::run(rest),
            ("help" | "--help" | "-h", _) => {
                println!("{HELP}");
                Ok(())
            }
            _ => Err(Failure(format!("`{}` is not a chore\n\n{HELP}", arguments.join(" ")))),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(why)) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
