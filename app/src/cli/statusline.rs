//! `hatchery statusline`

use crate::statusline::{Facts, StatusLineInput};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// The most that is read from standard input. The JSON of Claude Code has a few kilobytes.
const MAX_SESSION_BYTES: u64 = 1024 * 1024;

/// Print a status line about the project, for the prompt of Claude Code
///
/// Reads the JSON that Claude Code writes to a status line's standard input, and the files .fctry/state.json, .fctry/config.json,
/// .fctry/inbox.json and .git/HEAD. Needs no daemon and starts none. Never fails: a part that cannot be read is left out or
/// named. `hatchery init` sets the status line up.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints the status line. `cli::main` calls this without the parser of the command line, because the parser is slower than the rest.
pub fn run() -> ExitCode {
    let mut text = Vec::new();
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        // If reading fails, the part that was read is used.
        stdin.lock().take(MAX_SESSION_BYTES).read_to_end(&mut text).unwrap_or_default();
    }
    let session = StatusLineInput::read(&String::from_utf8_lossy(&text));
    let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let facts = Facts::gather(&session, &current);
    let line = facts.render(std::env::var_os("NO_COLOR").is_none());
    // If the line cannot be printed, there is no place for an error either.
    writeln!(std::io::stdout().lock(), "{line}").unwrap_or_default();
    facts.remember();
    ExitCode::SUCCESS
}
