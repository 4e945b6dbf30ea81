//! Quests: steps, slots, signals, roles, wards, merges, and the people who are asked. One file a subject.

pub mod refusals;
pub mod words;
