//! One test binary, one file a subject.

#![allow(clippy::unwrap_used, reason = "a test and its support stop where something is not as it must be")]

mod support;
mod survive;
