//! What the tools say to a model: short, and with the next step in the tools' own terms.

use crate::client::Failure;
use crate::http::{AgentView, AssignmentView, MailList, Waited};
use crate::postbox::Mail;
use crate::quest_document::QuestDocument;
use hatchery_core::AgentId;
use rmcp::model::Tool;

pub fn instructions(agent: AgentId) -> String {
    format!(
        "You are agent {agent} of Hatchery, which runs agents as an operating system runs processes. `fork` makes a child \
         that inherits your history, `ps` lists the agents, `kill` ends one. Agents and the human talk by mail: `send`, \
         `check-mail`, `read-mail`, and `wait` for what you cannot go on without. The human's address is `human`."
    )
}

/// With what to do next, as have those below that return two.
pub fn forked(child: &str, waits: bool) -> (String, Option<&'static str>) {
    match waits {
        false => (format!("agent {child} is there"), None),
        true => (
            format!("agent {child} is not there yet"),
            Some(
                "it will be as soon as the tools that run in you, this call included, have answered: go on, and do not \
                 fork again before `ps` shows it",
            ),
        ),
    }
}

pub fn unread(list: &MailList) -> (String, Option<&'static str>) {
    match list.mail.is_empty() {
        true => ("no unread mail".into(), Some("`wait` waits for the next one")),
        false => (list.mail.iter().map(|it| format!("{} from {} ({})\n", it.id, it.from, it.state)).collect(), None),
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
        let parent = agent.parent.map(|parent| format!(", below {parent}")).unwrap_or_default();
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
            format!("{}; whether it was done is not known: look with `ps` before you repeat it", report.message)
        }
        Failure::Broken(report) => format!("{}; try again, and tell the human if it goes on", report.message),
    }
}

/// What a model can do about a refusal. The daemon's own hints are for people at a command line.
fn next_step(code: &str) -> Option<&'static str> {
    Some(match code {
        "unknown_agent" | "nobody_called" => "`ps` with all lists everybody",
        "ambiguous" => "write more of the id; `ps` lists them",
        "agent_dead" | "agent_expired" => "it stays so: fork another agent, or go on without it",
        "root_is_immortal" => "nobody can; leave it alone",
        "kills_ancestor" => "only those who are not above you can be killed; `send` it a mail instead",
        "fork_pending" => "let the tools that run in you answer first; `ps` shows the child then",
        "not_in_history" => "leave `at` out to fork from now",
        "no_mail" => "`wait` waits for the next one",
        "not_unread" => "`check-mail` lists what is unread",
        "stopping" => "call it again in a moment",
        _ => return None,
    })
}
