//! Given events, when a command, then events or a refusal. One file a noun.

mod agent;
mod asking;
mod egg;
mod fork;
mod given;
mod history;
mod import;
mod kill;
mod mail;
mod permissions;
mod quest;
mod refusal;
mod registry;
mod request;
mod run;
mod seats;
mod session;
mod settling;
mod status;
mod status_foreign;
mod world;
