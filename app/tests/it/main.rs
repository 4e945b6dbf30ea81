//! One test binary, one file a subject.

#![allow(clippy::unwrap_used, reason = "a test and its support stop where something is not as it must be")]

mod agents;
mod branches;
mod by_products;
mod claude_cli;
mod doors;
mod engine;
mod history;
mod mail;
mod mcp;
mod model;
mod notifications;
mod overview;
mod projection;
mod quests;
mod reference;
mod runs;
mod seats;
mod sim;
mod status;
mod store_conformance;
mod store_differential;
mod store_postgres;
mod store_postgres_tls;
mod support;
mod survive;
mod terminal;
mod ward;
mod worktree;
