//! The pure heart of Hatchery: commands in, events out.
//!
//! ```text
//! Command ──► decide(world, command, now) ──► events | Refusal
//!             apply(world, event)
//!             settle(world, now) ──► what follows by itself, until quiet
//!             plan(world) ──► what should be happening now, and when to look again
//! ```
//!
//! Nothing here reads a clock, a file, the network, the environment or a source of randomness. Time and ids come in as
//! arguments, so the same inputs give the same log, and folding the log gives the same world.
//!
//! | Room | Owns |
//! |---|---|
//! | [`command`] | what can be asked |
//! | [`event`] | what can have happened, and how it is written down |
//! | [`refusal`] | every "no", with its reason and what to do next |
//! | [`session`], [`agent`], [`history`], [`mail`] | the nouns: their states, and what can be decided about them |
//! | [`run`] | an agent at work in a process, what it keeps between its runs, and what its words become |
//! | [`quest`] | work as a graph of steps, done by agents in roles |
//! | [`request`] | requests with an id of the caller, which are carried out once |
//! | [`seat`] | fixed places for identities, their souls, and their lead |
//! | [`roles`] | the table of roles: their signals, their calls, and the path of each phase |
//! | [`dag`] | whether a graph can be worked off |
//! | [`why`] | what an agent does at the moment, and how that is known |
//! | [`world`] | everything that is true now, folded from the log |
//! | [`step`](mod@step) | deciding, applying, settling |
//! | [`plan`](mod@plan) | what the runner has to carry out |
//! | [`output`] | what a child says, in one form for all harnesses |
//! | [`stream_json`] | the form in which the Claude CLI says it |
//! | [`codex`], [`acp`] | the forms in which codex and agents behind ACP say it |
//! | `json` | JSON objects whose fields are looked at one by one, for all readers |
//! | [`transcript`] | the transcripts that the Claude CLI keeps, and the path through them |
//! | [`outcome`] | how a run went, and why it is over |
//! | [`price`] | what tokens cost, by model |
//! | [`usage`] | money and tokens, and the meter that adds them up |
//! | [`status`], [`build_run`], [`build_event`], [`workflow`], [`idea_inbox`] | the status protocol: its files, and what may change in them |
//! | [`id`], [`slug`], [`time`] | identities, readable names, and instants |

// A new variant must be thought of wherever it matters.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod acp;
pub mod agent;
pub mod ask;
pub mod budget;
pub mod build_event;
pub mod build_run;
pub mod codex;
pub mod command;
pub mod dag;
pub mod event;
mod failure;
mod file_write;
pub mod harness;
pub mod history;
pub mod id;
pub mod idea_inbox;
mod json;
mod json_rpc;
pub mod mail;
pub mod outcome;
pub mod output;
pub mod partial;
pub mod permission;
pub mod plan;
pub mod price;
pub mod quest;
pub mod recent_list;
pub mod refusal;
pub mod request;
pub mod roles;
pub mod run;
pub mod seat;
pub mod session;
pub mod slug;
pub mod status;
pub mod step;
pub mod stream_json;
pub mod time;
pub mod transcript;
pub mod usage;
pub mod why;
pub mod workflow;
pub mod world;

pub use command::Command;
pub use event::{Event, EventId, Record, Stream};
pub use history::MessageKind;
pub use id::{AgentId, Fingerprint, QuestId, RequestId, SessionId};
pub use mail::Address;
pub use outcome::{Cause, Exit, Outcome};
pub use output::Output;
pub use plan::{Plan, plan};
pub use refusal::Refusal;
pub use step::{decide, rests_on, settle, step};
pub use time::Timestamp;
pub use usage::{Meter, Usage};
pub use world::World;
