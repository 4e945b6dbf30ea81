//! The real ACP adapter of codex, pinned in `tests/codex-acp/`, with the codex that is pinned in `tests/codex-cli/`: never with an account,
//! never with our environment, and never outside the loopback interface.

use crate::support::npm::{PinnedProgram, RealProgram};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The adapter, or the end of the test with a word about it.
macro_rules! codex_acp_or_skip {
    () => {
        $crate::support::npm::or_skip!($crate::support::codex_acp::CodexAcp)
    };
}
pub(crate) use codex_acp_or_skip;

/// The program, installed.
#[derive(Debug)]
pub struct CodexAcp {
    program: PathBuf,
}

impl RealProgram for CodexAcp {
    const NAME: &'static str = "codex-acp";
    const PINNED: PinnedProgram = PinnedProgram {
        cache: "codex-acp",
        name: "@agentclientprotocol/codex-acp",
        package: include_str!("../../codex-acp/package.json"),
        lock: include_str!("../../codex-acp/package-lock.json"),
        // A script of Node.
        native: |modules| {
            Some(modules.join("@agentclientprotocol/codex-acp/dist/index.js")).filter(|program| program.is_file())
        },
        // It is told where codex is.
        run_by: None,
        without_optional: true,
    };

    fn at(program: PathBuf) -> Self {
        Self { program }
    }

    fn installed() -> &'static OnceLock<Result<Self, String>> {
        static INSTALLED: OnceLock<Result<CodexAcp, String>> = OnceLock::new();
        &INSTALLED
    }
}

impl CodexAcp {
    pub fn program(&self) -> &Path {
        &self.program
    }
}
