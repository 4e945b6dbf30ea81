//! The terminal: all agents in one screen.
//!
//! ```text
//!   keys, paste, resize ─┐                     ┌─► effects: requests, files, clipboard ─► answers ─┐
//!   events of the log ───┼─► update ─► model ──┤                                                   │
//!   answers, the clock ──┘                     └─► draw (a pure function of the model) ─► terminal  │
//!           ▲───────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Every rule is the daemon's. The terminal shows what the daemon says, keeps what is typed, and asks for changes over the same API as
//! every other client.

mod act;
mod attach;
mod background;
mod clipboard;
mod command;
mod complete;
mod conversation;
mod drafts;
mod draw;
mod feed;
mod field;
mod finder;
mod flow;
#[cfg(test)]
mod hands;
mod here;
mod keys;
mod live;
mod look;
mod markdown;
mod model;
mod overlay;
mod panel;
mod plain;
mod recall;
mod roster;
mod run;
#[cfg(test)]
mod scenes;
mod search;
mod sheets;
mod text;
mod tool;
mod update;
mod window;
mod words;

pub use plain::run as run_plain;
pub use run::{TuiOptions, run};
