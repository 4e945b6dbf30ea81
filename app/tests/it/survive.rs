//! What must survive: the daemon killed at any moment, and everything that can happen to its files.

mod full_disk;
mod kill9;
mod ledger;
mod lifecycle;
mod postgres;
mod read_only;
mod snapshot;
mod transfer;
mod unknown;
mod wal;
