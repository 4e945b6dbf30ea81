//! `hatchery adopt`

use super::paint::{DIM, WARN, paint};
use super::{CommandContext, asking, counted, print_json, print_line, say};
use crate::client::Client;
use crate::clock;
use crate::codex_threads::CodexThreads;
use crate::harness::{Claude, Codex};
use crate::http::{Adoptable, AdoptableList, AdoptedView};
use crate::report::{Code, Report};
use hatchery_core::World;
use std::process::ExitCode;

/// Turn conversations of Claude Code and codex into agents
///
/// Without arguments, lists the conversations of this project and its subfolders: id, last activity, number of messages, first
/// prompt, the program, and the agent that already has the conversation. The daemon reads the
/// conversations from $CLAUDE_CONFIG_DIR or ~/.claude, and from $CODEX_HOME or ~/.codex. It uses the variables of its own
/// environment, not of yours. It never changes the conversations.
///
/// With ids, each conversation becomes a new child of agent 0 with its history. Messages that were rewound are left out.
/// `hatchery say` continues the same conversation with the same program. First quit any `claude` that still has the conversation
/// open: two processes in one conversation lose messages.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The conversations to adopt: ids, or the beginnings of ids
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,

    /// Adopt every conversation that has no agent yet
    #[arg(long, conflicts_with = "sessions")]
    all: bool,

    /// The agent's name
    #[arg(long, conflicts_with = "all", requires = "sessions")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  hatchery adopt                          lists the conversations
  hatchery adopt b2087215 --name docs     makes an agent of one
  hatchery say docs \"Where were we?\"      continues it";

/// How many characters of a prompt a list shows.
const SHOWN_CHARS: usize = 60;
/// How many characters of an id are shown, if these are enough to distinguish all ids.
const SHORT_ID: usize = 8;

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    if args.name.is_some() && args.sessions.len() > 1 {
        return Err(Report::new(Code::Usage, "one name cannot be given to several agents")
            .hint("adopt them one by one, or name them later with `hatchery rename`"));
    }
    // A folder becomes a project with its first agent, not with a list.
    if !context.project.exists() {
        let found = without_project(context)?;
        if args.sessions.is_empty() && !args.all {
            return list(context, &found);
        }
        let begins = |id: &String| found.sessions.iter().any(|session| session.session.starts_with(id.as_str()));
        let is_known = |id: &String| found.left_out + found.passed_over > 0 || begins(id);
        if let Some(unknown) = args.sessions.iter().find(|id| !is_known(id)) {
            return Err(Report::failed(format_args!(
                "there is no conversation {unknown} of this project in {}",
                found.looked_in
            ))
            .hint("`hatchery adopt` lists the conversations")
            .named("no_such_conversation"));
        }
        if args.all && found.sessions.is_empty() {
            say("there is nothing to adopt");
            return Ok(ExitCode::SUCCESS);
        }
    }
    asking(async {
        let client = Client::reach(&context.project).await?;
        if args.sessions.is_empty() && !args.all {
            return list(context, &client.get("/api/adopt").await?);
        }
        let sessions = match args.all {
            true => free(client.get("/api/adopt").await?),
            false => args.sessions.clone(),
        };
        adopt(context, &client, &sessions, args.name.as_deref()).await
    })
}

/// The conversations of a folder that is no project yet, as the daemon would read them with the environment of this command.
fn without_project(context: &CommandContext) -> Result<AdoptableList, Report> {
    let config = context.config()?;
    let transcripts = Claude::of(&context.project, &config).transcripts;
    let threads = CodexThreads::new(context.project.root(), &Codex::of(&config).environment);
    AdoptableList::read(&World::default(), &transcripts, &threads)
        .map_err(|error| Report::failed(error).hint("set HOME or CLAUDE_CONFIG_DIR").named("no_transcripts"))
}

/// The ids of the conversations without an agent.
fn free(list: AdoptableList) -> Vec<String> {
    let free: Vec<Adoptable> = list.sessions.into_iter().filter(|session| session.agent.is_none()).collect();
    if free.is_empty() {
        say("there is nothing to adopt");
    }
    free.into_iter().map(|session| session.session).collect()
}

fn list(context: &CommandContext, list: &AdoptableList) -> Result<ExitCode, Report> {
    if context.json {
        print_json(list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.sessions.is_empty() {
        say(format_args!("there are no conversations of this project in {}", list.looked_in));
    }
    let length = short_enough(&list.sessions);
    for session in &list.sessions {
        print_line(&line(session, length))?;
    }
    if list.left_out > 0 {
        say(format_args!("{} older ones were left out", list.left_out));
    }
    if list.passed_over > 0 {
        let why = "too large or cannot be read; the daemon's log says which";
        say(format_args!("{} passed over: {why}", counted(list.passed_over, "transcript")));
    }
    Ok(ExitCode::SUCCESS)
}

fn line(session: &Adoptable, length: usize) -> String {
    let id = session.session.get(..length).unwrap_or(&session.session);
    let active = paint(DIM, clock::age(session.last_active, clock::now()));
    let prompt: String = session.first_prompt.iter().flat_map(|prompt| prompt.chars()).take(SHOWN_CHARS).collect();
    let prompt: String = prompt.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let folder = session.folder.as_ref().map(|folder| paint(DIM, format_args!("  in {folder}"))).unwrap_or_default();
    let agent = session.agent.map(|agent| match &session.name {
        Some(name) => paint(DIM, format_args!("  is agent {agent} ({name})")),
        None => paint(DIM, format_args!("  is agent {agent}")),
    });
    let at_it = session.pid.map(|pid| paint(WARN, format_args!("  process {pid} has it open")));
    let (agent, at_it) = (agent.unwrap_or_default(), at_it.unwrap_or_default());
    let harness = &session.harness;
    format!("{id}  {active}  {harness:<6}  {:>6} messages  {prompt}{folder}{agent}{at_it}", session.messages)
}

/// How many characters are needed to distinguish all ids, at least `SHORT_ID`.
fn short_enough(sessions: &[Adoptable]) -> usize {
    let mut ids: Vec<&str> = sessions.iter().map(|session| session.session.as_str()).collect();
    ids.sort_unstable();
    let common = |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count() + 1;
    ids.windows(2).map(common).fold(SHORT_ID, usize::max)
}

/// Adopts the conversations one after the other. If one conversation cannot be adopted, the others still are.
async fn adopt(
    context: &CommandContext,
    client: &Client,
    sessions: &[String],
    name: Option<&str>,
) -> Result<ExitCode, Report> {
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for session in sessions {
        let body = serde_json::json!({ "session": session, "name": name });
        match client.post::<AdoptedView>("/api/adopt", &body).await {
            Ok(adopted) => {
                if !context.json {
                    let messages = counted(adopted.messages, "message");
                    let origin = paint(DIM, format_args!("{messages} of {}", adopted.session));
                    print_line(&format!("{}  {origin}", adopted.agent))?;
                }
                warn(&adopted);
                all.push(adopted);
            }
            Err(report) => failures.push(report),
        }
    }
    if context.json {
        print_json(&all)?;
    }
    let last = failures.pop();
    failures.into_iter().for_each(|report| say(format_args!("{} {report}", paint(WARN, "not adopted:"))));
    last.map_or(Ok(ExitCode::SUCCESS), Err)
}

fn warn(adopted: &AdoptedView) {
    let warning = paint(WARN, "warning:");
    if let Some(pid) = adopted.pid {
        let agent = adopted.name.clone().unwrap_or_else(|| adopted.agent.to_string());
        say(format_args!(
            "{warning} process {pid} still has {} open; end this process before you send a message to {agent}: two processes in one conversation lose messages",
            adopted.session
        ));
    }
    if adopted.unread > 0 {
        say(format_args!("{warning} {} of the transcript cannot be read", counted(adopted.unread, "line")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatchery_core::Timestamp;

    #[test]
    fn ids_are_as_short_as_they_can_be() {
        let session = |id: &str| Adoptable {
            session: id.into(),
            harness: "claude".into(),
            folder: None,
            last_active: Timestamp(0),
            messages: 1,
            first_prompt: None,
            agent: None,
            name: None,
            pid: None,
        };
        let (one, near, far) = (session("11111111-1111"), session("11111111-1211"), session("2"));
        assert_eq!(short_enough(&[]), SHORT_ID);
        assert_eq!(short_enough(&[session("11111111-1111"), far]), SHORT_ID);
        assert_eq!(short_enough(&[one, near]), "11111111-12".len());
    }
}
