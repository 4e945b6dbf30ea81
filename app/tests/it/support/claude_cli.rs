//! The real agent CLI, pinned in `tests/claude-cli/`, run against a scripted model: never with an account, never with our
//! environment, and never outside the loopback interface.

mod home;
mod run;

pub use home::Home;
pub use run::{Ended, Input, Run};

use crate::support::npm::{PinnedProgram, RealProgram};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The CLI, or the end of the test with a word about it.
macro_rules! cli_or_skip {
    () => {
        $crate::support::npm::or_skip!($crate::support::claude_cli::ClaudeCli)
    };
}
pub(crate) use cli_or_skip;

/// The program, installed.
#[derive(Debug)]
pub struct ClaudeCli {
    program: PathBuf,
}

impl RealProgram for ClaudeCli {
    const NAME: &'static str = "CLI";
    const PINNED: PinnedProgram = PinnedProgram {
        cache: "claude-cli",
        name: "@anthropic-ai/claude-code",
        package: include_str!("../../claude-cli/package.json"),
        lock: include_str!("../../claude-cli/package-lock.json"),
        native: |modules| {
            let packages = fs::read_dir(modules.join("@anthropic-ai")).ok()?;
            packages.flatten().map(|package| package.path().join("claude")).find(|path| path.is_file())
        },
        run_by: None,
        without_optional: false,
    };

    fn at(program: PathBuf) -> Self {
        Self { program }
    }

    fn installed() -> &'static OnceLock<Result<Self, String>> {
        static INSTALLED: OnceLock<Result<ClaudeCli, String>> = OnceLock::new();
        &INSTALLED
    }
}

impl ClaudeCli {
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// A random UUID, as the CLI wants its sessions and messages named.
pub fn uuid() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    let random = u128::from_be_bytes(bytes);
    // Version 4, variant 1.
    let marked = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let digits = format!("{marked:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
