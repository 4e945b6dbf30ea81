//! Following the log: each event once, in order, over restarts of the daemon.

use super::events::EventStream;
use super::say;
use crate::client::Client;
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use hatchery_core::{EventId, Record};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::time::Duration;

/// How long to wait before asking a daemon that went away again.
const COME_BACK: Duration = Duration::from_millis(100);

/// A place in the log that moves forward.
#[derive(Debug)]
pub struct Following {
    project: Project,
    client: Client,
    cursor: u64,
    stream: Option<Incoming>,
    frames: EventStream,
    ready: VecDeque<String>,
}

impl Following {
    /// Everything after `cursor`.
    pub fn new(project: &Project, client: Client, cursor: u64) -> Self {
        let (project, frames) = (project.clone(), EventStream::default());
        Self { project, client, cursor, stream: None, frames, ready: VecDeque::new() }
    }

    /// The next event, as it is written and as it is meant. A daemon that is away is no error: it comes back, and so do we.
    pub async fn next(&mut self) -> Result<(String, Record), Report> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                let record = read(&line)?;
                self.cursor = record.id.0;
                return Ok((line, record));
            }
            match &mut self.stream {
                Some(open) => match open.frame().await {
                    Some(Ok(frame)) => {
                        let bytes = frame.into_data().unwrap_or_default();
                        self.ready.extend(self.frames.take(&bytes));
                    }
                    Some(Err(_)) | None => self.stream = None,
                },
                None => self.open().await?,
            }
        }
    }

    /// The daemon as it was last reached.
    pub fn client(&self) -> &Client {
        &self.client
    }

    async fn open(&mut self) -> Result<(), Report> {
        self.frames = EventStream::default();
        match self.client.stream(&format!("/api/events?after={}", self.cursor)).await {
            Ok(stream) => self.stream = Some(stream),
            Err(report) if report.code == Code::Unreachable => {
                tokio::time::sleep(COME_BACK).await;
                self.client = self.come_back().await?;
            }
            Err(report) => return Err(report),
        }
        Ok(())
    }

    /// A daemon that is announced and not there was killed: what it saw to needs another one. One that was stopped stays so.
    async fn come_back(&self) -> Result<Client, Report> {
        if let Some(running) = Client::running(&self.project).await? {
            return Ok(running);
        }
        if self.project.is_announced() {
            say("the daemon is gone; another one is started");
            return Client::reach(&self.project).await;
        }
        Err(Report::new(Code::Unreachable, "the daemon was stopped")
            .hint("the same command starts another one and goes on; `hatchery up` does, too"))
    }
}

/// An event as it is written on the wire.
pub fn read(line: &str) -> Result<Record, Report> {
    #[derive(serde::Deserialize)]
    struct Numbered {
        id: u64,
    }
    let Numbered { id } = serde_json::from_str(line).context("an event cannot be read")?;
    Record::read(EventId(id), line).context("an event cannot be read")
}
