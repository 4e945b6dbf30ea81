//! Waits for mail for longer than one request may last. If the daemon is killed meanwhile, only the request ends, and the wait continues.

use super::paths::mail_path;
use super::{Client, Failure};
use crate::http::Waited;
use crate::mail_reader::{Awaited, AwaitedState};
use crate::project::Project;
use std::time::{Duration, Instant};

/// The wait of one request. It is shorter than the daemon allows.
const SLICE: Duration = Duration::from_secs(20);

/// Waits for the next mail or, if agents are named, until each of them has sent a mail or has ended.
pub async fn wait(project: &Project, of: &str, named: &[String], timeout: Duration) -> Result<Waited, Failure> {
    let started = Instant::now();
    let waits = |one: &Awaited| one.state == AwaitedState::Waiting;
    let mut agents: Vec<Awaited> = named
        .iter()
        .map(|agent| Awaited { agent: agent.clone(), id: None, state: AwaitedState::Waiting, mail: None })
        .collect();
    loop {
        let left = timeout.saturating_sub(started.elapsed());
        let meant = |one: &Awaited| one.id.map_or_else(|| one.agent.clone(), |id| id.to_string());
        let open: Vec<String> = agents.iter().filter(|one| waits(one)).map(meant).collect();
        let timeout_ms = u64::try_from(left.min(SLICE).as_millis()).unwrap_or(u64::MAX);
        let body = serde_json::json!({ "from": open, "timeoutMs": timeout_ms });
        let asked = Client::visit(project).await?.ask(&mail_path(of, "/wait"), &body).await;
        let Waited { mail, agents: news } = match asked {
            Err(Failure::Away(_) | Failure::Unasked(_)) if started.elapsed() < timeout => continue,
            answer => answer?,
        };
        for (one, new) in agents.iter_mut().filter(|one| waits(one)).zip(news) {
            *one = Awaited { agent: std::mem::take(&mut one.agent), ..new };
        }
        let settled = if named.is_empty() { mail.is_some() } else { !agents.iter().any(waits) };
        if settled || started.elapsed() >= timeout {
            return Ok(Waited { mail, agents });
        }
    }
}
