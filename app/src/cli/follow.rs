//! Following the log: each event once, in order, over restarts of the daemon.

use super::events::EventLines;
use crate::client::Client;
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use hatchery_core::{EventId, Record};
use http_body_util::BodyExt as _;
use std::time::Duration;

/// How long to wait before asking a daemon that went away again.
const COME_BACK: Duration = Duration::from_millis(200);

/// Shows every event after `cursor` to `take`, until that has an answer. A daemon that is away is no error: it comes back, and so
/// do we.
pub async fn follow<T>(
    project: &Project,
    mut client: Client,
    mut cursor: u64,
    mut take: impl FnMut(&str, &Record) -> Result<Option<T>, Report>,
) -> Result<T, Report> {
    loop {
        let mut body = match client.stream(&format!("/api/events?after={cursor}")).await {
            Ok(body) => Some(body),
            Err(report) if report.code == Code::Unreachable => None,
            Err(report) => return Err(report),
        };
        let mut lines = EventLines::default();
        while let Some(open) = &mut body
            && let Some(Ok(frame)) = open.frame().await
        {
            let Ok(bytes) = frame.into_data() else { continue };
            for line in lines.take(&bytes) {
                let record = read(&line)?;
                cursor = record.id.0;
                if let Some(answer) = take(&line, &record)? {
                    return Ok(answer);
                }
            }
        }
        tokio::time::sleep(COME_BACK).await;
        if let Some(running) = Client::running(project).await? {
            client = running;
        }
    }
}

fn read(line: &str) -> Result<Record, Report> {
    #[derive(serde::Deserialize)]
    struct Numbered {
        id: u64,
    }
    let Numbered { id } = serde_json::from_str(line).context("an event cannot be read")?;
    Record::read(EventId(id), line).context("an event cannot be read")
}
