//! `hatchery events`

use super::paint::{DIM, STRONG, paint};
use super::{CommandContext, asking, print_json_text, print_line, say};
use crate::client::Client;
use crate::client::paths::escaped;
use crate::clock;
use crate::report::{Code, Context as _, Report};
use hatchery_core::Timestamp;
use hatchery_core::usage::Money;
use http_body_util::BodyExt as _;
use std::process::ExitCode;
use std::time::Duration;

/// Show the log, one event per line
///
/// Events are numbered 1, 2, 3, … without gaps. With --json, each line is the event as the API returns it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Keep showing new events until Ctrl-C, also after a restart of the daemon
    #[arg(long, short)]
    follow: bool,

    /// Show only events after this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,

    /// Show only events about this agent: an id, the beginning of one, or a name (may be repeated)
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,

    /// Show only events of this quest and of its agents: an id, or the beginning of one (may be repeated)
    #[arg(long, value_name = "QUEST")]
    quest: Vec<String>,

    /// Show only events of this type, such as run_ended (may be repeated)
    #[arg(long = "type", value_name = "TYPE")]
    kind: Vec<String>,
}

impl Args {
    /// The filters as parameters of a query string. Each begins with `&`.
    fn filters(&self) -> String {
        let all = [("agent", &self.agent), ("quest", &self.quest), ("type", &self.kind)];
        let given = all.iter().filter(|(_, values)| !values.is_empty());
        given.map(|(name, values)| format!("&{name}={}", escaped(&values.join(",")))).collect()
    }
}

const EXAMPLES: &str = "\
Examples:
  hatchery events                     everything so far
  hatchery events --follow --after 12 everything after event 12, then new events
  hatchery events --agent ann --type run_ended --type mail_sent
  hatchery events --json | jq .type";

/// How long to wait before the next attempt to reach a daemon that has gone away.
const COME_BACK: Duration = Duration::from_millis(200);

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    asking(async {
        let mut client = Client::visit(&context.project).await?;
        let filters = args.filters();
        let (shown, mut cursor) = show_pages(context, &client, args.after, &filters).await?;
        if !args.follow {
            if shown == 0 && !context.json {
                say(match (filters.is_empty(), args.after) {
                    (false, _) => "no event matches",
                    (true, 0) => "nothing has happened yet",
                    (true, _) => "nothing has happened since",
                });
            }
            return Ok(ExitCode::SUCCESS);
        }
        loop {
            follow(context, &client, &mut cursor, &filters).await?;
            tokio::time::sleep(COME_BACK).await;
            if let Some(running) = Client::running(&context.project).await? {
                client = running;
            }
        }
    })
}

/// Prints the events that are in the log now. Returns how many events it has printed, and the position of the end of the log.
async fn show_pages(
    context: &CommandContext,
    client: &Client,
    after: u64,
    filters: &str,
) -> Result<(u64, u64), Report> {
    #[derive(serde::Deserialize)]
    struct FetchedPage {
        events: Vec<Box<serde_json::value::RawValue>>,
        upto: u64,
        more: bool,
    }
    let (mut shown, mut cursor) = (0, after);
    loop {
        let page: FetchedPage = client.get(&format!("/api/events.json?after={cursor}&limit=1000{filters}")).await?;
        for event in &page.events {
            show(context, event.get())?;
            shown += 1;
        }
        cursor = page.upto;
        if !page.more {
            return Ok((shown, cursor));
        }
    }
}

/// Prints the event stream until the connection breaks. A daemon that cannot be reached is not an error: the caller connects again.
async fn follow(context: &CommandContext, client: &Client, cursor: &mut u64, filters: &str) -> Result<(), Report> {
    let mut body = match client.stream(&format!("/api/events?after={cursor}{filters}")).await {
        Ok(body) => body,
        Err(report) if report.code == Code::Unreachable => return Ok(()),
        Err(report) => return Err(report),
    };
    let mut stream = EventStream::default();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(bytes) = frame.into_data() else { continue };
        for event in stream.take(&bytes) {
            show(context, &event)?;
        }
        *cursor = stream.last_id().unwrap_or(*cursor);
    }
    Ok(())
}

fn show(context: &CommandContext, event: &str) -> Result<(), Report> {
    match context.json {
        true => print_json_text(event),
        false => print_line(&EventLine::read(event)?.to_string()),
    }
}

/// Parses an event stream from bytes that arrive in parts.
#[derive(Debug, Default)]
pub struct EventStream {
    /// The beginning of a line whose end has not arrived yet.
    rest: Vec<u8>,
    /// Id and data of a frame whose end has not arrived yet. They do not count as received, so a client that reconnects gets this frame again.
    id: Option<u64>,
    data: Option<String>,
    /// The name of that frame. A frame with a name is not an event of the log.
    name: Option<String>,
    named: Vec<(String, String)>,
    last_id: Option<u64>,
}

impl EventStream {
    /// Takes the next bytes. Returns the data of all frames that these bytes complete, except frames with a name.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        let mut events = Vec::new();
        for line in String::from_utf8_lossy(&whole).lines() {
            if line.is_empty() {
                self.last_id = self.id.take().or(self.last_id);
                match (self.data.take(), self.name.take()) {
                    (Some(data), None) => events.push(data),
                    (Some(data), Some(name)) => self.named.push((name, data)),
                    (None, _) => {}
                }
            } else if let Some(id) = line.strip_prefix("id:") {
                self.id = id.parse().ok();
            } else if let Some(data) = line.strip_prefix("data:") {
                self.data = Some(data.to_owned());
            } else if let Some(name) = line.strip_prefix("event:") {
                self.name = Some(name.trim_start().to_owned());
            }
        }
        events
    }

    /// The frames with a name that have arrived since the last call: name and data.
    pub fn take_named(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.named)
    }

    /// The position after which to continue. A frame without data advances this position, too.
    pub fn last_id(&self) -> Option<u64> {
        self.last_id
    }
}

/// An event as a line for people: the time, the type, and the fields of the event.
#[derive(Debug)]
pub struct EventLine {
    pub id: u64,
    pub kind: String,
    ts: Timestamp,
    rest: Vec<(String, serde_json::Value)>,
}

impl EventLine {
    pub fn read(event: &str) -> Result<Self, Report> {
        let fields: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(event).context("an event cannot be read")?;
        let number = |name: &str| fields.get(name).and_then(serde_json::Value::as_i64).unwrap_or_default();
        Ok(Self {
            id: u64::try_from(number("id")).unwrap_or_default(),
            ts: Timestamp(number("ts")),
            kind: fields.get("type").and_then(serde_json::Value::as_str).unwrap_or("?").to_owned(),
            rest: fields
                .into_iter()
                .filter(|(name, _)| !["id", "ts", "type", "sessionId"].contains(&name.as_str()))
                .collect(),
        })
    }
}

/// Longer texts are cut. `--json` prints them whole.
const SHOWN_CHARS: usize = 100;

impl std::fmt::Display for EventLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>6} {} {}", self.id, paint(DIM, clock::told(self.ts)), paint(STRONG, &self.kind))?;
        for (name, value) in &self.rest {
            // The spec of a run has many fields. The harness is the most useful one.
            let value = if name == "spec" { &value["harness"] } else { value };
            let text = match (value.as_str(), value["nanodollars"].as_u64()) {
                (Some(text), _) => text.chars().flat_map(char::escape_debug).collect(),
                (None, Some(nanodollars)) => Money { nanodollars }.to_string(),
                (None, None) => value.to_string(),
            };
            let cut = if text.chars().count() > SHOWN_CHARS { "…" } else { "" };
            let text: String = text.chars().take(SHOWN_CHARS).collect();
            write!(f, " {}{text}{cut}", paint(DIM, format_args!("{name}=")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_may_be_cut_anywhere() {
        let stream = "retry:1000\n\n:\n\nid:1\ndata:{\"ü\":1}\n\nid:2\ndata:{}\n\nid:9\n\n".as_bytes();
        for cut in 0..stream.len() {
            let mut lines = EventStream::default();
            let mut seen = lines.take(&stream[..cut]);
            let announced = lines.last_id().unwrap_or(0);
            assert!(seen.len() as u64 >= announced.min(2), "cut at {cut}: the cursor is not ahead of what was shown");
            seen.extend(lines.take(&stream[cut..]));
            assert_eq!(seen, ["{\"ü\":1}", "{}"], "cut at {cut}");
            assert_eq!(lines.last_id(), Some(9), "cut at {cut}");
        }
    }

    #[test]
    fn a_frame_with_a_name_is_no_event() {
        let mut lines = EventStream::default();
        let seen = lines.take(b"id:1\ndata:{}\n\nevent:trouble\ndata:{\"trouble\":null}\n\nid:2\ndata:[]\n\n");
        assert_eq!(seen, ["{}", "[]"]);
        assert_eq!(lines.take_named(), [("trouble".to_owned(), r#"{"trouble":null}"#.to_owned())]);
        assert!(lines.take_named().is_empty());
    }

    #[test]
    fn how_an_agent_is_run_is_told_in_a_word() {
        let line = EventLine::read(r#"{"id":1,"ts":0,"type":"x","spec":{"harness":"claude","host":"h"}}"#).unwrap();
        let plain = anstream::adapter::strip_str(&line.to_string()).to_string();
        assert!(plain.ends_with("x spec=claude"), "{plain}");
    }

    #[test]
    fn money_is_told_as_people_write_it() {
        let line = EventLine::read(r#"{"id":1,"ts":0,"type":"x","limit":{"nanodollars":20000000}}"#).unwrap();
        let plain = anstream::adapter::strip_str(&line.to_string()).to_string();
        assert!(plain.ends_with("x limit=$0.02"), "{plain}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let line = EventLine::read(r#"{"id":1,"ts":0,"type":"x","content":"\u001b[2J\n"}"#).unwrap().to_string();
        assert!(!line.contains("\x1b[2J") && !line.contains('\n'), "{line:?}");
    }
}
