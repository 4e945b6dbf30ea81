//! Follows the log: returns each event once, in order, also over restarts of the daemon.

use super::events::EventStream;
use super::say;
use crate::client::Client;
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use hatchery_core::Record;
use hatchery_core::event::wire_id;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::time::Duration;

/// How long to wait before the next attempt to reach a daemon that has gone away.
const COME_BACK: Duration = Duration::from_millis(100);

/// A follower of the log in this process, with its position.
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
    /// Follows the log from the event after `cursor`.
    pub fn new(project: &Project, client: Client, cursor: u64) -> Self {
        let (project, frames) = (project.clone(), EventStream::default());
        Self { project, client, cursor, stream: None, frames, ready: VecDeque::new() }
    }

    /// Waits for the next event, and returns its JSON and the record. If the connection breaks, connects again.
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

    /// The client of the daemon that was reached last.
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

    /// Connects again after the daemon has gone away. A daemon that left `daemon.json` behind was killed, so another daemon is started. A
    /// daemon that was stopped is not started again.
    async fn come_back(&self) -> Result<Client, Report> {
        if let Some(running) = Client::running(&self.project).await? {
            return Ok(running);
        }
        if self.project.is_announced() {
            say("the daemon was killed; another one is started");
            return Client::reach(&self.project).await;
        }
        Err(Report::new(Code::Unreachable, "the daemon was stopped")
            .hint("repeat the command: it starts another daemon and continues"))
    }
}

/// Parses an event of the event stream.
pub fn read(line: &str) -> Result<Record, Report> {
    let id = wire_id(line).context("an event cannot be read")?;
    Record::read(id, line).context("an event cannot be read")
}
