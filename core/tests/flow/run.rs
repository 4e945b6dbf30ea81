//! Runs: an agent at work in a process. One file a subject.

mod begin;
mod call;
mod capabilities;
pub mod choice;
mod delivery;
mod exit;
mod harness_session;
mod metering;
mod output;
mod park;
mod places;
mod silence;
mod spending;
mod stop;
mod why;
pub mod words;
