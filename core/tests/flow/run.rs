//! Runs: an agent at work in a process. One file a subject.

pub mod words;
