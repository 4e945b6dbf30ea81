//! `hatchery wait`

use super::follow::Following;
use super::{Context, asking, print_json, print_line, reference};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::http::AgentView;
use crate::report::{Code, Report};
use hatchery_core::event::RunEvent;
use hatchery_core::outcome::Cause;
use hatchery_core::{AgentId, Event};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

/// Wait until the runs of these agents have ended
///
/// An agent without a run counts as ended. Exits with 0 if all runs completed, with 1 if one ended otherwise or the time is up.
/// To wait for mail, use `hatchery mail wait`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agents: ids, beginnings of ids, or names
    #[arg(required = true, value_parser = reference)]
    agents: Vec<String>,

    /// Give up after this many seconds [default: wait forever]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let ends = asking(async {
        let waiting = wait(context, args);
        match args.timeout {
            None => waiting.await,
            Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), waiting).await.unwrap_or_else(|_| {
                Err(Report::new(Code::Failed, format_args!("not all of them ended within {seconds} seconds"))
                    .hint("`hatchery why AGENT` says what an agent is doing"))
            }),
        }
    })?;
    let word = |end: &Option<Cause>| end.map_or_else(|| "resting".to_owned(), |cause| cause.to_string());
    match context.json {
        true => {
            let list: Vec<_> =
                ends.iter().map(|(id, end)| serde_json::json!({ "agent": id, "end": word(end) })).collect();
            print_json(&serde_json::json!({ "agents": list }))?;
        }
        false => ends.iter().try_for_each(|(id, end)| print_line(&format!("{id}  {}", word(end))))?,
    }
    let good = ends.values().all(|end| matches!(end, None | Some(Cause::Completed)));
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How the last run of each agent ended; none for an agent that had no run while we waited.
async fn wait(context: &Context, args: &Args) -> Result<BTreeMap<AgentId, Option<Cause>>, Report> {
    let client = Client::visit(&context.project).await?;
    // The place in the log comes first: what ends after it is seen in the stream, what ended before is seen in the agents.
    let head = client.get::<serde_json::Value>("/api/status").await?["head"].as_u64().unwrap_or_default();
    let mut ends = BTreeMap::new();
    let mut open = BTreeSet::new();
    for agent in &args.agents {
        let view: AgentView = client.get(&agent_path(agent, "")).await?;
        ends.insert(view.id, None);
        if view.activity.has_run() {
            open.insert(view.id);
        }
    }
    let mut following = Following::new(&context.project, client, head);
    while !open.is_empty() {
        let (_, record) = following.next().await?;
        if let Event::Run { of, what: RunEvent::Ended { cause, .. } } = &record.event
            && open.remove(&of.agent)
        {
            ends.insert(of.agent, Some(*cause));
        }
    }
    Ok(ends)
}
