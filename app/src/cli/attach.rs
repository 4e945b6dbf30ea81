//! `hatchery attach`

use super::follow::Following;
use super::paint::{BAD, DIM, STRONG, paint, printable};
use super::typed::{self, Addressee};
use super::waiting_run::WaitingRun;
use super::{CommandContext, asking, counted, print_json_text, print_line, reference, say};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::http::{AgentView, called_with};
use crate::report::{Context as _, Report};
use crate::run_folder::RunFolder;
use hatchery_core::event::{MessageEvent, QuestionEvent, RunEvent};
use hatchery_core::outcome::{Cause, Exit};
use hatchery_core::output::Output;
use hatchery_core::seat::shown;
use hatchery_core::usage::{Money, Usage};
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record};
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Follow what an agent says and does, and answer it, until Ctrl-C
///
/// In a terminal, each line that you type answers the agent's open question, or is a message to the agent if it asks nothing. Ctrl-C
/// ends this view, not the agent. The view continues after a restart of the daemon.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,

    /// Start after this event; 0 shows everything [default: only new events]
    #[arg(long, value_name = "N")]
    after: Option<u64>,

    /// Also take lines from standard input when it is not a terminal
    #[arg(long)]
    input: bool,
}

/// When a view of an agent ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    Interrupted,
    RunIsOver,
    /// When the turn in which the agent received this message is over, or the run is over.
    Answered(EventId),
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    asking(async {
        let client = Client::visit(&context.project).await?;
        let agent: AgentView = client.get(&agent_path(&args.agent, "")).await?;
        let after = match args.after {
            Some(after) => after,
            None => client.get::<serde_json::Value>("/api/status").await?["head"].as_u64().unwrap_or_default(),
        };
        if !context.json && agent.spent.cost.nanodollars > 0 {
            say(paint(DIM, format_args!("{} so far", agent.spent.cost)));
        }
        introduce(context, &agent.name.map_or_else(|| agent.id.to_string(), |name| format!("{} ({name})", agent.id)));
        let lines = typed::lines(context, args.input);
        if lines.is_some() && !context.json {
            say(paint(DIM, "type an answer or a message, then Enter; Ctrl-C ends the view"));
        }
        if !context.json {
            typed::show_open(&client, Addressee::Agent(agent.id)).await?;
        }
        let id = agent.id.to_string();
        tokio::select! {
            ended = follow(context, client, &id, after, Until::Interrupted) => ended,
            failed = typed::send_all(context, lines, Addressee::Agent(agent.id)) => failed.map(|()| ExitCode::SUCCESS),
        }
    })
}

/// Prints an agent's events as they arrive. In a terminal, also sends the typed lines to the agent, as answers and messages.
pub async fn talk(
    context: &CommandContext,
    client: Client,
    agent: &str,
    cursor: u64,
    until: Until,
) -> Result<ExitCode, Report> {
    let to = Addressee::Agent(agent.parse().context("the daemon gave no id")?);
    tokio::select! {
        ended = follow(context, client, agent, cursor, until) => ended,
        failed = typed::send_all(context, typed::lines(context, false), to) => failed.map(|()| ExitCode::SUCCESS),
    }
}

/// Prints the agent's id and name, so that the user can give other commands about this agent.
pub fn introduce(context: &CommandContext, agent: &str) {
    if !context.json {
        say(paint(DIM, format_args!("agent {agent}")));
    }
}

/// Prints an agent's events as they arrive.
pub async fn follow(
    context: &CommandContext,
    client: Client,
    agent: &str,
    cursor: u64,
    until: Until,
) -> Result<ExitCode, Report> {
    let view: AgentView = client.get(&agent_path(agent, "")).await?;
    let (agent, has_seat) = (view.id, view.seat.is_some());
    // Otherwise a view that begins while the run waits would show nothing. The event of this wait may still arrive; then it is not printed a second time.
    let mut told = None;
    if !context.json
        && let Some(waiting) = WaitingRun::of(&client, &view).await?
    {
        say(paint(DIM, &waiting));
        told = Some(waiting);
    }
    let mut following = Following::new(&context.project, client, cursor);
    let mut heard = false;
    let mut costs = Costs::default();
    loop {
        let (line, record) = following.next().await?;
        if whose(&record.event) != Some(agent) {
            continue;
        }
        match context.json {
            true => print_json_text(&line)?,
            false => {
                match WaitingRun::begun_by(&record.event) {
                    Some(waiting) if told.take().is_some_and(|told| told.is_same(&waiting)) => {}
                    Some(waiting) => say(paint(DIM, waiting)),
                    None => show(context, &record, has_seat)?,
                }
                costs.show(&record.event);
            }
        }
        match (&record.event, until) {
            (_, Until::Interrupted) => {}
            (Event::Run { what: RunEvent::Ended { cause, .. }, .. }, Until::RunIsOver | Until::Answered(_)) => {
                return Ok(if *cause == Cause::Completed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
            }
            (Event::Run { what: RunEvent::MessageHeard { message }, .. }, Until::Answered(asked)) => {
                heard = heard || *message == asked;
            }
            (Event::Run { what: RunEvent::TurnEnded { .. }, .. }, Until::Answered(_)) if heard => {
                return Ok(ExitCode::SUCCESS);
            }
            _ => {}
        }
    }
}

/// The cost of the agent since this view began. It is printed whenever it has grown by a cent, and at the end of each turn.
#[derive(Debug, Default)]
struct Costs {
    sum: Usage,
    shown: Money,
}

/// By how much the cost must grow before it is printed in the middle of a turn: one cent.
const TOLD_NANODOLLARS: u64 = 10_000_000;

impl Costs {
    fn show(&mut self, event: &Event) {
        let Event::Run { what, .. } = event else { return };
        let ends = match what {
            RunEvent::Metered { used, .. } => {
                self.sum += *used;
                false
            }
            RunEvent::TurnEnded { spent, metered, .. } => {
                self.sum = self.sum.replacing(*metered, *spent);
                true
            }
            _ => return,
        };
        let Money { nanodollars } = self.sum.cost;
        let more = nanodollars.abs_diff(self.shown.nanodollars);
        if more >= TOLD_NANODOLLARS || (ends && more > 0) {
            self.shown = self.sum.cost;
            let tokens = match self.sum.tokens() {
                few @ ..1_000 => counted(few, "token"),
                many => format!("{}k tokens", many / 1_000),
            };
            say(paint(DIM, format_args!("  {} · {tokens}", self.sum.cost)));
        }
    }
}

fn whose(event: &Event) -> Option<AgentId> {
    match event.stream() {
        hatchery_core::Stream::Agent(agent) => Some(agent),
        hatchery_core::Stream::Session(_)
        | hatchery_core::Stream::Mail(_)
        | hatchery_core::Stream::Quest(_)
        | hatchery_core::Stream::Seats
        | hatchery_core::Stream::Registry
        | hatchery_core::Stream::Status
        | hatchery_core::Stream::Request(_) => None,
    }
}

/// The agent's own words go to standard output; everything else about the agent goes to standard error.
fn show(context: &CommandContext, record: &Record, has_seat: bool) -> Result<(), Report> {
    match &record.event {
        Event::Message(MessageEvent::Added { kind: MessageKind::Assistant, content, .. }) if has_seat => {
            let shown = shown(content);
            if !shown.trim().is_empty() {
                print_line(&printable(shown.trim_end()))?;
            }
        }
        Event::Message(MessageEvent::Added { kind: MessageKind::Assistant, content, .. }) => {
            print_line(&printable(content))?
        }
        Event::Message(MessageEvent::Added { kind: MessageKind::User, content, .. }) => {
            say(paint(STRONG, format_args!("> {}", printable(content))));
        }
        Event::Message(MessageEvent::Added { kind: MessageKind::ToolCall, content, .. }) => {
            let call: serde_json::Value = serde_json::from_str(content).unwrap_or_default();
            let name = call["name"].as_str().unwrap_or("a tool");
            say(paint(DIM, format_args!("  {name} {}", printable(&called_with(&call["input"])))));
        }
        Event::Message(MessageEvent::Added { kind: MessageKind::ToolResult, content, .. }) => {
            let result: serde_json::Value = serde_json::from_str(content).unwrap_or_default();
            let text = cut(result["content"].as_str().unwrap_or_default());
            match result["is_error"] == true {
                true => say(paint(BAD, format_args!("  ✗ {text}"))),
                false => say(paint(DIM, format_args!("  → {text}"))),
            }
        }
        Event::Run { what: RunEvent::OutputNoted { output }, .. } => note(output),
        Event::Run { what: RunEvent::Silent { .. }, .. } => {
            say(paint(BAD, "it has been silent for longer than it should be"))
        }
        Event::Question { what: QuestionEvent::Asked { text, .. }, .. } => {
            say(typed::offered(record.id, text, !context.json && std::io::stdin().is_terminal()));
        }
        Event::Run { what: RunEvent::Interrupted, .. } => say(paint(DIM, "interrupted")),
        Event::Run { what: RunEvent::Crashed { detail, .. }, .. } => say(paint(BAD, format_args!("crashed: {detail}"))),
        Event::Run { of, what: RunEvent::Resumed } => say(paint(DIM, format_args!("attempt {}", of.attempt))),
        Event::Run { what: RunEvent::Ended { cause, detail, .. }, .. } if *cause == Cause::Completed => {
            say(paint(DIM, format_args!("{cause}: {detail}")));
        }
        Event::Run { of, what: RunEvent::Ended { cause, detail, exit } } => {
            say(paint(BAD, format_args!("{cause}: {detail}")));
            match (cause, exit) {
                (Cause::Crashed, Exit::NotStarted) => {
                    say("  hint: `hatchery doctor` looks for the programs that agents need");
                }
                (Cause::Crashed, _) => {
                    let stderr = RunFolder::of(&context.project, *of).stderr();
                    say(format_args!("  hint: its stderr is in {}", stderr.display()));
                }
                _ => {}
            }
        }
        // `hatchery events` shows all other events.
        _ => {}
    }
    Ok(())
}

fn note(output: &Output) {
    match output {
        Output::Thinking { text } => say(paint(DIM, format_args!("  … {}", cut(text)))),
        Output::Subagent { output, .. } => {
            if let Output::Text { text } = output.as_ref() {
                say(paint(DIM, format_args!("  | {}", cut(text))));
            }
        }
        Output::Retrying { attempt, reason, .. } => {
            say(paint(DIM, format_args!("  retry {attempt}: {}", reason.as_deref().unwrap_or("the request failed"))));
        }
        Output::Denied { tool, reason, .. } => say(paint(BAD, format_args!("  {tool} denied: {}", cut(reason)))),
        Output::ApiError(error) => say(paint(BAD, format_args!("  {}", cut(&error.text)))),
        _ => {}
    }
}

/// Cuts a long text. `hatchery history` shows the whole text.
fn cut(text: &str) -> String {
    const SHOWN_CHARS: usize = 160;
    let line = printable(text).replace('\n', " ");
    match line.chars().count() > SHOWN_CHARS {
        true => line.chars().take(SHOWN_CHARS).chain(['…']).collect(),
        false => line,
    }
}
