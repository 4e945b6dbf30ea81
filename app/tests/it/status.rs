//! The status protocol: the files, the commands that change them, and the status line.

mod commands;
mod line;
mod writers;
