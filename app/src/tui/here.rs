//! The sentences of commands whose answer is shown only here, and is no part of a history.

use super::model::Model;
use super::text;
use super::words::counted;
use crate::http::{Adoptable, AdoptableList, AdoptedView, Waited};
use crate::mail_reader::{AwaitedState, Mail};
use hatchery_core::Address;

/// How long `/wait` waits. The daemon lets one request wait no longer.
pub const WAIT_S: u64 = 25;
/// How much of an id and of a prompt is shown.
const SHORT_ID: usize = 8;
const SHOWN_CHARS: usize = 60;
/// How many conversations are listed. `hatchery adopt` lists all.
const MAX_LISTED: usize = 20;

/// What `/wait` brought.
pub fn waited(model: &Model, waited: &Waited) -> String {
    let mail = |mail: &Mail| {
        let from = match mail.from {
            Address::Human => "you".to_owned(),
            Address::Agent(agent) => model.name(agent),
        };
        format!("Mail from {from}:\n\n{}", mail.body)
    };
    let mut said: Vec<String> = waited.mail.iter().map(mail).collect();
    let mut late = Vec::new();
    for one in &waited.agents {
        let name = one.id.map_or_else(|| one.agent.clone(), |agent| model.name(agent));
        match (one.state, &one.mail) {
            (_, Some(came)) => said.push(mail(came)),
            (AwaitedState::Mail | AwaitedState::Waiting, None) => late.push(name),
            (AwaitedState::Finished, None) => said.push(format!("{name} is asleep, and has sent no mail.")),
            (AwaitedState::Dead, None) => said.push(format!("{name} is dead, and has sent no mail.")),
            (AwaitedState::Unknown, None) => said.push(format!("There is no agent {name}.")),
            (AwaitedState::Ambiguous, None) => said.push(format!("Several agents are called {name}.")),
        }
    }
    if !late.is_empty() {
        said.push(format!("No mail of {} came in {WAIT_S} s. /wait waits again.", late.join(", ")));
    }
    if said.is_empty() {
        said.push(format!("No mail came in {WAIT_S} s. /wait waits again."));
    }
    said.join("\n\n")
}

/// The conversations that `/adopt` can continue.
pub fn adoptable(model: &Model, list: &AdoptableList) -> String {
    if list.sessions.is_empty() {
        return format!("There are no conversations of this project in {}.", list.looked_in);
    }
    let line = |session: &Adoptable| {
        let id = session.session.get(..SHORT_ID).unwrap_or(&session.session);
        let age = text::age(model.now.0 - session.last_active.0);
        let messages = counted(usize::try_from(session.messages).unwrap_or(usize::MAX), "message");
        let mut line = format!("- {id}: {}, {messages}, {age} ago.", session.harness);
        if let Some(prompt) = &session.first_prompt {
            let prompt: String = text::clean(prompt).replace('`', "'").chars().take(SHOWN_CHARS).collect();
            line.push_str(&format!(" `{}`", prompt.trim()));
        }
        if let Some(folder) = &session.folder {
            line.push_str(&format!(" In {folder}."));
        }
        if let Some(agent) = session.agent {
            line.push_str(&format!(" It is {} already.", model.name(agent)));
        }
        if let Some(pid) = session.pid {
            line.push_str(&format!(" Process {pid} has it open: end it first."));
        }
        line
    };
    let lines: Vec<String> = list.sessions.iter().take(MAX_LISTED).map(line).collect();
    let mut said = format!("/adopt ID continues one of these:\n\n{}", lines.join("\n"));
    let more = u64::try_from(list.sessions.len() - lines.len()).unwrap_or(0) + list.left_out;
    if more > 0 {
        said.push_str(&format!("\n\n{more} older ones are not listed. `hatchery adopt` lists more."));
    }
    if list.passed_over > 0 {
        said.push_str(&format!("\n\n{} too large, or cannot be read.", list.passed_over));
    }
    said
}

/// A conversation became an agent.
pub fn adopted(model: &Model, adopted: &AdoptedView) -> String {
    let name = adopted.name.clone().unwrap_or_else(|| model.name(adopted.agent));
    let messages = counted(usize::try_from(adopted.messages).unwrap_or(usize::MAX), "message");
    match adopted.pid {
        Some(pid) => {
            format!("{name} has {messages}. Process {pid} still has them open: end it before you say anything.")
        }
        None => format!("{name} has {messages}. What you say continues the conversation."),
    }
}
