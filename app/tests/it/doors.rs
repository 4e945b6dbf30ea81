//! What comes in through the doors: HTTP and the command line.

mod bounds;
mod cli_daemon;
mod cli_output;
mod cli_settings;
mod convention;
mod everyday;
mod foreign;
mod found_by_lock;
mod fuzz;
mod house;
mod names;
mod notices;
mod once;
mod openapi;
mod pages;
mod projects;
mod raw;
mod readme;
mod refusals;
mod schema;
mod strangers;
mod stream;
