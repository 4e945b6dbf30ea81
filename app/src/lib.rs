//! Hatchery's shell around the pure core: the store, the engine, the daemon and its doors.

pub mod store;
