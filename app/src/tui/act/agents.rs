//! What is done to an agent: fork, interrupt, kill.

use super::{go, take_text};
use crate::client::paths::agent_path;
use crate::tui::field::Field;
use crate::tui::model::{AwaitedFork, Model};
use crate::tui::overlay::Overlay;
use crate::tui::update::{Effect, Tag};
use hatchery_core::{AgentId, EventId};
use serde_json::{Value, json};

pub fn fork(
    model: &mut Model,
    parent: AgentId,
    at: Option<EventId>,
    name: Option<&str>,
    prompt: Option<String>,
    field: Option<Field>,
) -> Vec<Effect> {
    let field = field.or_else(|| prompt.map(|prompt| Field::of(&prompt))).filter(|field| !field.is_empty());
    // The child may be born later, when its parent's tools have ended, so its first message goes with the request.
    let prompt = field.as_ref().map(Field::whole);
    let body = json!({ "parent": parent.to_string(), "at": at.map(|at| at.0), "name": name, "prompt": prompt });
    model.awaited_fork = Some(AwaitedFork { child: None, stay: false, forked: true, waits_for: None });
    model.say(format!("{} is forked …", model.name(parent)));
    vec![Effect::Post { tag: Tag::Fork { parent, field }, path: "/api/agents".into(), body }]
}

/// The daemon has taken the fork on. It may wait for tools of its parent.
pub fn forked(model: &mut Model, child: AgentId, waits_for: Option<AgentId>) -> Vec<Effect> {
    let stay = model.awaited_fork.as_ref().is_some_and(|awaited| awaited.stay);
    model.awaited_fork = Some(AwaitedFork { child: Some(child), stay, forked: true, waits_for });
    if let Some(parent) = waits_for.filter(|_| model.from_end) {
        // On the screen, the separator says so.
        model.say(format!("{} is forked when its tools have ended.", model.name(parent)));
    }
    vec![Effect::Agent(child)]
}

/// Goes to a fork that you asked for as soon as it is there, unless a key was pressed since.
pub fn arrive(model: &mut Model) -> Vec<Effect> {
    let Some(AwaitedFork { child: Some(child), stay, forked, .. }) = model.awaited_fork.clone() else {
        return Vec::new();
    };
    if !model.roster.agents.contains_key(&child) {
        return Vec::new();
    }
    model.awaited_fork = None;
    if stay || !model.follow_fork {
        let name = model.name(child);
        model.visits.retain(|agent| *agent != child);
        let before = model.visits.len().saturating_sub(1);
        model.visits.insert(before, child);
        model.say(format!("{name} is there · ^X ^X goes there"));
        return Vec::new();
    }
    let parent = model.current.filter(|_| !model.desk().field.is_empty()).map(|agent| model.name(agent));
    let effects = go(model, child);
    if forked {
        model.desk_mut().inherited_open = Some(true);
        let kept = parent.map(|parent| format!(" Your text in {parent} is kept.")).unwrap_or_default();
        let knows = if model.is_first_time("fork") { ", which knows what its parent knew" } else { "" };
        model.say(format!("You are in the fork{knows}.{kept}"));
    }
    effects
}

pub fn post_about(model: &Model, agent: AgentId, rest: &str, body: Value, done: &str, text: &str) -> Vec<Effect> {
    let words = done.replace("{}", &model.name(agent));
    vec![Effect::Post {
        tag: Tag::Done { words, text: text.to_owned() },
        path: agent_path(&agent.to_string(), rest),
        body,
    }]
}

pub fn interrupt(model: &mut Model) -> Vec<Effect> {
    match model.current {
        Some(agent) => post_about(model, agent, "/interrupt", json!({}), "{} is interrupted.", ""),
        None => Vec::new(),
    }
}

/// Asks what a kill would do, and then you.
pub fn ask_kill(model: &mut Model, agent: AgentId, remark: Option<String>) -> Vec<Effect> {
    let ask = crate::tui::overlay::KillAsk { agent, remark, alone: None, cascade: None, choice: 0 };
    model.overlay = Some(Overlay::Kill(ask));
    let path = agent_path(&agent.to_string(), "/kill");
    vec![
        Effect::Get { tag: Tag::KillPreview { agent, cascade: false }, path: path.clone() },
        Effect::Get { tag: Tag::KillPreview { agent, cascade: true }, path: format!("{path}?cascade=true") },
    ]
}

pub fn kill(model: &mut Model) -> Vec<Effect> {
    let Some(Overlay::Kill(ask)) = model.overlay.take() else { return Vec::new() };
    if ask.choice == 0 || ask.alone.is_none() {
        model.say(format!("{} is kept.", model.name(ask.agent)));
        return Vec::new();
    }
    let command = model.desk().field.raw().starts_with("/kill");
    if command {
        take_text(model);
    }
    let body = json!({ "cascade": ask.choice == 2, "remark": ask.remark });
    post_about(model, ask.agent, "/kill", body, "{} is dead. Its history stays and can be forked.", "")
}
