//! Switching between agents.

use crate::tui::command;
use crate::tui::draw::{self, SIDE_FROM};
use crate::tui::flow::Flow;
use crate::tui::model::{Focus, Model, ScrollPosition};
use crate::tui::roster::Need;
use crate::tui::update::Effect;
use crate::tui::window::WindowPart;
use hatchery_core::{AgentId, EventId};

/// Fewer blocks may not fill a screen.
const FEW: usize = 60;
/// So many items before an end of what is there, more is read.
const NEAR: usize = 20;
/// So many events are searched in one request: what is nearer to the end is found from there.
const FAR: u64 = 20_000;

/// Puts an agent in front, in one frame.
pub fn go(model: &mut Model, agent: AgentId) -> Vec<Effect> {
    // A panel that has taken the place of the conversation makes room for it.
    if model.size.0 < SIDE_FROM {
        model.side = None;
    }
    if model.current == Some(agent) {
        model.focus = Focus::Text;
        return Vec::new();
    }
    let kept = model.current.filter(|_| !model.desk().field.is_empty()).map(|before| model.name(before));
    model.visit(agent);
    // What was said is about the agent that was left.
    model.notice = None;
    model.overlay = None;
    model.focus = Focus::Text;
    if let Some(before) = kept {
        model.say(format!("Your text in {before} is kept."));
    }
    let mut effects = load(model, agent);
    if !model.roster.agents.contains_key(&agent) {
        effects.push(Effect::Agent(agent));
    }
    effects
}

/// Reads the part of a conversation where one was, or its end, unless it is there.
pub fn load(model: &mut Model, agent: AgentId) -> Vec<Effect> {
    let around = model.reads_at(agent);
    let Some(talk) = model.talks.get_mut(&agent) else { return Vec::new() };
    let mut effects = Vec::new();
    if !talk.is_read && !talk.loading {
        talk.loading = true;
        // Where an agent was last heard long ago, the search begins there and not at the end of the log.
        let last = model.roster.agents.get(&agent).and_then(|it| it.view.last_message);
        let before = last.map(|last| EventId(last.0 + FAR)).filter(|far| *far < model.upto);
        let part = around.map_or(WindowPart::End { before }, WindowPart::Around);
        effects.push(Effect::Load { agent, part });
    }
    if talk.inherited.is_none()
        && !talk.inheriting
        && let Some(view) = model.roster.agents.get(&agent).map(|it| &it.view)
        && let Some(from) = view.forked_from
        && model.roster.root() != Some(from)
    {
        talk.inheriting = true;
        let count = model.roster.agents.get(&from).is_none_or(|it| it.view.messages < 50_000);
        effects.push(Effect::LoadInherited { agent, from, upto: view.fork_point, forked: view.created, count });
    }
    effects
}

pub fn load_earlier(model: &mut Model, agent: AgentId) -> Vec<Effect> {
    let Some(talk) = model.talks.get_mut(&agent) else { return Vec::new() };
    if talk.loading || !talk.more || talk.from == EventId::START {
        return Vec::new();
    }
    talk.loading = true;
    vec![Effect::Load { agent, part: WindowPart::Before(talk.from.next()) }]
}

/// Reads the end of a conversation instead of what is there.
fn load_end(model: &mut Model, agent: AgentId) -> Vec<Effect> {
    let Some(talk) = model.talks.get_mut(&agent) else { return Vec::new() };
    if talk.loading || !talk.later {
        return Vec::new();
    }
    talk.loading = true;
    vec![Effect::Load { agent, part: WindowPart::End { before: None } }]
}

/// Reads the part of the conversation in front where one is, if it is not there, or what is next to it.
pub fn come_back(model: &mut Model) -> Vec<Effect> {
    let Some(agent) = model.current else { return Vec::new() };
    let reads = model.reads_at(agent);
    match (model.talks.get_mut(&agent), reads) {
        (Some(talk), Some(id)) if talk.is_read && !talk.covers(id) && !talk.loading => {
            talk.loading = true;
            vec![Effect::Load { agent, part: WindowPart::Around(id) }]
        }
        _ => approach(model),
    }
}

/// Reads more of the conversation in front where one comes near to an end of what is there.
pub fn approach(model: &mut Model) -> Vec<Effect> {
    let Some(agent) = model.current else { return Vec::new() };
    let (cells, height) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells) else { return Vec::new() };
    let place = model.desk().place;
    let near_begin = match place {
        ScrollPosition::At { item, .. } => flow.keys().take(NEAR).any(|key| key >= item),
        ScrollPosition::End => false,
    };
    let near_end = flow.items_below() < height + NEAR;
    let Some(talk) = model.talks.get_mut(&agent).filter(|talk| talk.is_read && !talk.loading) else {
        return Vec::new();
    };
    let few = talk.blocks().len() < FEW;
    match place {
        ScrollPosition::End if talk.later => load_end(model, agent),
        // A page may have found little: the rest of a screen is worth another one.
        ScrollPosition::End if few => load_earlier(model, agent),
        ScrollPosition::End => Vec::new(),
        ScrollPosition::At { .. } if near_begin && talk.more => load_earlier(model, agent),
        ScrollPosition::At { .. } if near_end && talk.later => {
            talk.loading = true;
            vec![Effect::Load { agent, part: WindowPart::After(talk.to) }]
        }
        ScrollPosition::At { .. } => Vec::new(),
    }
}

/// The agent that was in front last, or the one that needs you, or the latest.
pub fn open_first(model: &mut Model) -> Vec<Effect> {
    let known = |agent: &AgentId| model.roster.agents.get(agent).is_some_and(|it| it.view.state.is_living());
    let last = model.visits.iter().rev().find(|agent| known(agent)).copied();
    let asks = || model.roster.needs().first().and_then(Need::agent);
    let latest = || {
        let root = model.roster.root();
        let others = model.roster.order().iter().filter(|id| Some(**id) != root);
        let mut agents: Vec<_> = others.filter_map(|id| model.roster.agents.get(id)).collect();
        agents.sort_by_key(|it| it.view.last_active);
        agents.last().map(|it| it.view.id)
    };
    match last.or_else(asks).or_else(latest) {
        Some(agent) => {
            let typed = model.front.field.take();
            let effects = go(model, agent);
            if !typed.is_empty() && model.desk().field.is_empty() {
                model.desk_mut().field = typed;
            }
            effects
        }
        None => Vec::new(),
    }
}

/// Goes to the agent that the command line named.
pub fn resolve_wanted(model: &mut Model) {
    let Some(wanted) = model.wanted.clone().filter(|_| !model.project.is_empty()) else { return };
    model.wanted = None;
    match command::agent(model, &wanted) {
        Ok(agent) => model.visits.push(agent),
        Err(mistake) => return model.say(mistake),
    }
    model.current = None;
}

/// The next one that needs you, the oldest first, in a circle.
pub fn next_need(model: &mut Model) -> Vec<Effect> {
    let agents: Vec<AgentId> = model.roster.needs().iter().filter_map(Need::agent).collect();
    if agents.is_empty() {
        model.say("Nobody needs you.");
        return Vec::new();
    }
    let at = agents.iter().position(|agent| Some(*agent) == model.current);
    let next = agents[at.map_or(0, |at| (at + 1) % agents.len())];
    if Some(next) == model.current {
        model.say("Only this one needs you.");
    }
    go(model, next)
}

pub fn neighbour(model: &mut Model, forward: bool) -> Vec<Effect> {
    let order = model.roster.order();
    if order.is_empty() {
        return Vec::new();
    }
    let count = order.len();
    let at = order.iter().position(|agent| Some(*agent) == model.current);
    let next = match (at, forward) {
        (Some(at), true) => (at + 1) % count,
        (Some(at), false) => (at + count - 1) % count,
        (None, _) => 0,
    };
    let agent = order[next];
    go(model, agent)
}

pub fn relative(model: &mut Model, up: bool) -> Vec<Effect> {
    let Some(current) = model.current else { return Vec::new() };
    let to = match up {
        true => model.roster.agents.get(&current).and_then(|it| it.view.parent),
        false => model.roster.children(current).first().copied(),
    };
    match to {
        Some(agent) => go(model, agent),
        None => {
            model.say(if up { "It has no parent." } else { "It has no children." });
            Vec::new()
        }
    }
}

pub fn last_visited(model: &mut Model) -> Vec<Effect> {
    match model.last_visited() {
        Some(agent) => go(model, agent),
        None => {
            model.say("You have not been anywhere else.");
            Vec::new()
        }
    }
}

pub fn by_number(model: &mut Model, number: usize) -> Vec<Effect> {
    match model.pins.get(number.wrapping_sub(1)).copied().flatten() {
        Some(agent) => go(model, agent),
        None => {
            model.say(format!("No agent has the number {number}. /pin {number} gives it to this one."));
            Vec::new()
        }
    }
}
