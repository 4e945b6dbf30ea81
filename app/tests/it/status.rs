//! The status protocol: the files, the commands that change them, and the status line.

mod commands;
mod consumers;
mod copies;
mod daemon;
mod fields;
mod foreign;
mod glance;
mod init;
mod killed;
mod line;
mod linked;
mod live;
mod places;
mod protocol;
mod session;
mod shown;
mod tools;
mod writers;
