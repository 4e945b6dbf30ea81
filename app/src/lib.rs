//! Hatchery's shell around the pure core. Direction: core ← store ← engine ← {runner, http} ← {daemon, client} ← mcp ← cli.

pub mod adoption;
pub mod calls;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod engine;
pub mod fsck;
pub mod harness;
pub mod history_import;
pub mod http;
pub mod launcher;
pub mod mcp;
pub mod postbox;
pub mod processes;
pub mod project;
pub mod report;
pub mod run_folder;
pub mod runner;
pub mod sim;
pub mod spool;
pub mod store;
pub mod transcripts;
pub mod transfer;
pub mod worktree;
