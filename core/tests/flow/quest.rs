//! Quests: steps, slots, signals, roles, wards, merges, and the people who are asked. One file a subject.

mod failure;
pub mod forks;
mod human;
mod peers;
mod permissions;
mod phases;
mod plans;
mod reference;
pub mod refusals;
mod roles;
mod shown;
mod signals;
mod ward;
pub mod words;
