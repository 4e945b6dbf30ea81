//! What must survive: the daemon killed at any moment, and everything that can happen to its files.

mod full_disk;
mod gc;
mod kill9;
mod ledger;
mod lifecycle;
mod postgres;
mod read_only;
mod selftest;
mod snapshot;
mod transfer;
mod unknown;
mod versions;
mod wal;
mod whole;
