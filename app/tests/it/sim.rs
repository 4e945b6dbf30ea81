//! `hatchery agent-sim`: every step, played by a real process and read by the core.

mod conversation;
mod endings;
mod sayings;
mod sessions;
mod tools;
