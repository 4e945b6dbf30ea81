//! A daemon that a command starts for its own use, in a project of its own: for `demo` and `selftest`.

use crate::client::{Client, ready_line};
use crate::report::{Context as _, Report};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Starts a command that runs `hatchery up --json`, and waits until its daemon is ready. The daemon ends with the caller.
pub async fn start(mut command: Command) -> Result<(Child, Client), Report> {
    // Such a daemon must not use settings of real projects, above all not a shared store.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HATCHERY_")) {
        command.env_remove(name);
    }
    command.env("HATCHERY_LOG", "error").stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().context("the daemon cannot be started")?;
    let client = ready_line::client_of(&mut child).await?;
    Ok((child, client.ok_or_else(|| Report::failed("the daemon did not get ready"))?))
}
