//! Hatchery's shell around the pure core. Direction: core ← store ← engine ← {runner, http} ← {daemon, client} ← mcp ← cli.

pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod engine;
pub mod fsck;
pub mod history_import;
pub mod http;
pub mod mcp;
pub mod postbox;
pub mod project;
pub mod report;
pub mod runner;
pub mod sim;
pub mod store;
pub mod transfer;
