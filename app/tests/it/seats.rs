//! Seats with real processes: summon, wake, the lead, messages, and the clients that know another dialect.

mod claude;
mod clients;
mod cursor;
mod direct;
mod inbox;
mod lead;
mod original;
mod say;
mod scene;
mod shown;
