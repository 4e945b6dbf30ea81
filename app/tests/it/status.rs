//! The status protocol: the files, the commands that change them, and the status line.

mod commands;
mod consumers;
mod copies;
mod daemon;
mod foreign;
mod init;
mod line;
mod linked;
mod live;
mod protocol;
mod shown;
mod tools;
mod writers;
