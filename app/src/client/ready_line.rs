//! The line that `hatchery up --json` prints as soon as its daemon is ready.

use super::Client;
use crate::report::{Context as _, Report};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

#[derive(Debug, Serialize, Deserialize)]
pub struct ReadyLine {
    pub pid: u32,
    pub token: String,
    pub url: String,
}

/// Waits for the line, and gives a client of the daemon that has printed it. None if the process printed another line or ended: then this
/// process has not become the daemon.
pub async fn client_of(child: &mut Child) -> Result<Option<Client>, Report> {
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line).await.context("the output of the daemon cannot be read")?;
    }
    Ok(serde_json::from_str(&line).ok().map(|ReadyLine { url, token, .. }| Client::new(&url, token)))
}
