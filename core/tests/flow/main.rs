//! Given events, when a command, then events or a refusal. One file a noun.

mod agent;
mod given;
mod refusal;
mod session;
mod settling;
mod world;
