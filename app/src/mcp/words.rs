//! The text that the tools return to a model: short, and with the next step in terms of these tools.

use crate::client::Failure;
use crate::http::{AgentView, AssignmentView, MailList, Waited};
use crate::mail_reader::Mail;
use crate::quest_document::QuestDocument;
use hatchery_core::AgentId;
use rmcp::model::Tool;

pub fn instructions(agent: AgentId) -> String {
    format!(
        "You are agent {agent} of Hatchery, which runs agents as an operating system runs processes. `fork` creates a child \
         agent that inherits your history. `ps` lists the agents. `kill` ends an agent. Agents and the user talk by mail: `send` \
         a mail, list yours with `check-mail`, read it with `read-mail`, and use `wait` when you need a reply before you can \
         continue. The user's address is `human`."
    )
}

/// The sentence for an agent of a quest about its new fork.
pub const NEEDS_SLOT: &str =
    "it starts to work when a slot of your quest is free; while you `wait`, it can use your slot";

/// The answer of `fork`: the text, and what to do next.
pub fn forked(child: &str, waits: bool) -> (String, Option<&'static str>) {
    match waits {
        false => (format!("agent {child} is created"), None),
        true => (
            format!("agent {child} is not created yet"),
            Some("it is created when this call has returned: continue; you can fork again, and `wait` for it"),
        ),
    }
}

pub fn unread(list: &MailList) -> (String, Option<&'static str>) {
    match list.mail.is_empty() {
        true => ("no unread mail".into(), Some("`wait` waits for the next mail")),
        false => (
            list.mail
                .iter()
                .map(|mail| &mail.header)
                .map(|it| format!("{} from {} ({})\n", it.id, it.from, it.state))
                .collect(),
            None,
        ),
    }
}

pub fn mail(mail: &Mail) -> String {
    format!("mail {} from {}:\n{}", mail.id, mail.from, mail.body)
}

pub fn waited(waited: &Waited, timeout: u64) -> (String, Option<&'static str>) {
    let told = waited.agents.iter().map(|one| match &one.mail {
        Some(mail) => format!("{}: {}\n", one.agent, self::mail(mail)),
        None => format!("{}: {}\n", one.agent, one.state.word()),
    });
    match &waited.mail {
        Some(mail) => (self::mail(mail), None),
        None if waited.agents.is_empty() => {
            (format!("no mail within {timeout} s"), Some("call `wait` again to wait longer"))
        }
        None => (told.collect(), None),
    }
}

pub fn agents(agents: &[AgentView], you: AgentId) -> String {
    let told = agents.iter().map(|agent| {
        let name = agent.name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
        let parent = agent.parent.map(|parent| format!(", child of {parent}")).unwrap_or_default();
        let mark = if agent.id == you { ", you" } else { "" };
        format!("{}{name}: {}{parent}{mark}\n", agent.id, agent.state)
    });
    told.collect()
}

pub fn quest(quest: &QuestDocument, yours: &AssignmentView) -> String {
    let (complete, all) = quest.progress();
    let mut text = format!("{}\n{complete} of {all} steps are complete\n", quest.request);
    for step in &quest.steps {
        let mark = if step.id == yours.step { ", yours" } else { "" };
        let after: Vec<String> = step.depends_on.iter().map(ToString::to_string).collect();
        let after = if after.is_empty() { String::new() } else { format!(", after {}", after.join(" and ")) };
        text += &format!("{}: {} ({}{after}{mark})\n", step.id, step.name, step.status.word());
    }
    text
}

pub fn no_object(tool: &Tool) -> String {
    format!("the arguments must be one JSON object: {}", super::arguments::takes(tool))
}

pub fn of_failure(failure: Failure) -> String {
    match failure {
        Failure::Refused { detail, .. } => {
            let next = next_step(&detail.code).map_or(detail.hint, str::to_owned);
            format!("{}; {next}", detail.message)
        }
        Failure::Away(report) => {
            format!("{}; it is not known whether this was done: check with `ps` before you repeat it", report.message)
        }
        Failure::Unasked(report) | Failure::Broken(report) => {
            format!("{}; try again, and tell the user if it keeps failing", report.message)
        }
    }
}

/// What a model can do about a refusal. The daemon's own hints name commands for people.
fn next_step(code: &str) -> Option<&'static str> {
    Some(match code {
        "unknown_agent" | "nobody_called" => "`ps` with `all` lists all agents",
        "ambiguous" => "give more characters of the id; `ps` lists the ids",
        "agent_dead" | "agent_expired" => "this cannot be undone: fork another agent, or continue without it",
        "root_is_immortal" => "the root agent cannot be killed",
        "kills_ancestor" => "you cannot kill an agent that you descend from; `send` it a mail instead",
        "fork_pending" => "wait until your running tools have returned; then `ps` lists the child",
        "not_in_history" => "leave out `at` to fork from the current end of your history",
        "no_mail" => "`wait` waits for the next mail",
        "not_unread" => "`check-mail` lists your unread mail",
        "stopping" => "call the tool again in a few seconds",
        _ => return None,
    })
}
