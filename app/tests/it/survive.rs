//! What must survive: the daemon killed at any moment, and everything that can happen to its files.

mod kill9;
