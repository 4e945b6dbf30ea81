//! The pure core of Hatchery: commands in, events out.
//!
//! ```text
//! Command ──► decide(world, command, now) ──► events | Refusal
//!             apply(world, event)
//!             settle(world, now) ──► events that are due, until none is left
//!             plan(world) ──► the desired state, and the next deadline
//! ```
//!
//! Nothing here reads a clock, a file, the network, the environment or a source of randomness. Time and ids come in as
//! arguments, so the same inputs give the same log, and folding the log gives the same world.
//!
//! | Module | Owns |
//! |---|---|
//! | [`command`] | every command |
//! | [`event`] | every event, and how events are written and read |
//! | [`refusal`] | every refusal, with its reason and what to do next |
//! | [`world`] | the current state, computed from the log |
//! | [`step`](mod@step) | deciding, applying, settling |
//! | [`plan`](mod@plan) | the desired state of processes and chores, which the runner carries out |
//! | [`session`], [`agent`], [`history`], [`mail`] | the nouns: their states, and the decisions about them |
//! | [`run`] | a piece of work of an agent, its processes, and what the agent keeps between runs |
//! | [`quest`] | work as a graph of steps, done by agents in roles |
//! | [`roles`], [`dag`] | the table of roles and their signals; the check that a graph of steps has no cycle |
//! | [`seat`] | fixed places for identities, their souls, and their lead |
//! | [`ask`], [`permission`], [`budget`] | questions to the user, what agents may do without asking, limits on cost |
//! | [`request`] | requests with an id of the caller, which are carried out once |
//! | [`status`], [`build_run`], [`build_event`], [`workflow`], [`idea_inbox`] | the status protocol: its files, and how they may be changed |
//! | [`harness`] | what the core knows of harnesses: their capabilities, and the reader of their output |
//! | [`output`], [`partial`] | the output of an agent program in one form for all harnesses, and pieces of it before it is complete |
//! | [`stream_json`], [`codex`], [`acp`] | readers of the output of the Claude CLI, of codex, and of agents that speak ACP |
//! | `json`, `json_rpc`, `failure`, `file_write` | what the readers share |
//! | [`transcript`] | the transcripts of the Claude CLI, and the path through them |
//! | [`outcome`] | how a run went, and why it ended |
//! | [`price`], [`usage`] | the cost of tokens by model; cost and tokens, and the meter that adds them up |
//! | [`why`] | what an agent is doing now, and the evidence |
//! | [`id`], [`slug`], [`time`], [`recent_list`] | ids, readable names, timestamps, lists of the newest items |

// A new variant must be considered in every match.
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
