//! What the tests stand on. Nothing here asserts anything about Hatchery.

pub mod agents;
pub mod builds;
pub mod claude_cli;
pub mod codex_acp;
pub mod codex_cli;
pub mod daemon;
pub mod faulty_store;
pub mod follower;
pub mod http;
pub mod mcp;
pub mod model;
pub mod node_agents;
pub mod npm;
pub mod opencode_cli;
pub mod place;
pub mod postgres;
pub mod program;
pub mod proxy;
pub mod quest;
pub mod random;
pub mod repository;
pub mod rows;
pub mod scenes;
pub mod sim;
pub mod sse;
pub mod tmux;
pub mod transcripts;
pub mod vendors;
pub mod victim;
pub mod workshop;

use std::sync::LazyLock;
use tokio::runtime::{Builder, Handle, Runtime};

/// Carries the connections of all stores under test.
pub fn runtime() -> &'static Handle {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
    RUNTIME.handle()
}
