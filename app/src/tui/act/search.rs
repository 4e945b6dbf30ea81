//! Searching a conversation.

use super::{load_earlier, take_text};
use crate::client::paths::escaped;
use crate::tui::draw;
use crate::tui::flow::Flow;
use crate::tui::model::{Focus, Key, Model, Search};
use crate::tui::update::{Effect, Tag};
use hatchery_core::{AgentId, EventId, Timestamp};
use serde_json::Value;

pub fn begin_search(model: &mut Model) {
    let back = model.desk().place;
    model.focus = Focus::Browse;
    model.search = Some(Search { typing: true, back, ..Search::default() });
}

/// Looks in what is loaded, and asks the log for what came before.
pub fn search(model: &mut Model) -> Vec<Effect> {
    let (cells, height) = draw::talk_size(model);
    let Some(words) = model.search.as_ref().map(|search| search.words.whole().to_lowercase()) else {
        return Vec::new();
    };
    let Some(flow) = Flow::new(model, cells) else { return Vec::new() };
    let matches = |key: &Key| !words.is_empty() && flow.source(*key).to_lowercase().contains(&words);
    let found: Vec<Key> = flow.keys().filter(matches).collect();
    let last = found.last().map(|key| flow.place_of(*key, height));
    let count = found.len();
    let chosen = found.last().copied();
    let (agent, from, more) = match model.talk() {
        Some(talk) => (Some(talk.agent), talk.from, talk.more),
        None => (None, EventId::START, false),
    };
    if let Some(search) = &mut model.search {
        (search.found, search.at) = (found, count.saturating_sub(1));
        search.upto = more.then_some(from);
    }
    if let Some(place) = last {
        let desk = model.desk_mut();
        (desk.place, desk.chosen) = (place, chosen);
    }
    match agent.filter(|_| more && words.chars().count() >= 3) {
        Some(agent) => {
            let path =
                format!("/api/events.json?limit=50&agent={agent}&before={}&words={}", from.0 + 1, escaped(&words));
            vec![Effect::Get { tag: Tag::Search { agent, words }, path }]
        }
        None => Vec::new(),
    }
}

/// The log has matches before the window: the conversation is read back to the newest of them.
pub fn found_in_log(model: &mut Model, agent: AgentId, words: &str, value: &Value) -> Vec<Effect> {
    let current = model.search.as_ref().is_some_and(|search| search.words.whole().to_lowercase() == words);
    if !current || model.current != Some(agent) {
        return Vec::new();
    }
    let from = value["from"].as_u64().map(EventId);
    let oldest = value["events"].as_array().and_then(|events| events.last()).and_then(|event| event["id"].as_u64());
    if let Some(search) = &mut model.search {
        search.upto = from;
    }
    match (oldest, model.search.as_ref().is_some_and(|search| search.found.is_empty())) {
        (Some(_), true) => load_earlier(model, agent),
        _ => Vec::new(),
    }
}

pub fn next_match(model: &mut Model, forward: bool) {
    let (cells, height) = draw::talk_size(model);
    let Some(search) = &model.search else { return };
    let count = search.found.len();
    if count == 0 {
        return;
    }
    let at = if forward { (search.at + 1) % count } else { (search.at + count - 1) % count };
    let key = search.found[at];
    let Some(place) = Flow::new(model, cells).map(|flow| flow.place_of(key, height)) else { return };
    if let Some(search) = &mut model.search {
        search.at = at;
    }
    let desk = model.desk_mut();
    (desk.place, desk.chosen) = (place, Some(key));
}

/// Goes to an event of the current conversation.
pub fn goto(model: &mut Model, id: EventId) -> Vec<Effect> {
    let (cells, height) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells) else { return Vec::new() };
    let key = flow.keys().rfind(|key| key.0 <= id && key.1 < 249);
    let inside = model.talk().is_some_and(|talk| id > talk.from || !talk.more);
    match key.filter(|_| inside) {
        Some(key) => {
            let place = flow.place_of(key, height);
            let desk = model.desk_mut();
            (desk.place, desk.chosen) = (place, Some(key));
            model.focus = Focus::Browse;
            Vec::new()
        }
        None => {
            let path = format!("/api/events.json?limit=1&after={}", id.0.saturating_sub(1));
            vec![Effect::Get { tag: Tag::Event, path }]
        }
    }
}

/// Sets the text aside: ↑ brings it back.
pub fn set_aside(model: &mut Model) {
    let field = take_text(model);
    if field.raw().len() != field.len() {
        let agent = model.current;
        model.recall.keep(agent, &field.whole());
    }
    model.say("Set aside. ↑ brings it back.");
}

/// The moment at which a proposed letter of `^X` is shown.
pub fn prefix_shown_at(model: &Model) -> Option<Timestamp> {
    model.prefix.map(|at| Timestamp(at.0 + draw::PREFIX_PAUSE_MS))
}
