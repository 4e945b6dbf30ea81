//! Searching a conversation.

use super::{lay_aside, uncover};
use crate::cli::read_record;
use crate::client::paths::escaped;
use crate::tui::draw;
use crate::tui::flow::Flow;
use crate::tui::model::{Focus, Model};
use crate::tui::search::{MAX_FOUND, Search, is_in};
use crate::tui::text;
use crate::tui::update::{Effect, Tag};
use crate::tui::window::WindowPart;
use hatchery_core::{AgentId, EventId, Timestamp};
use serde_json::Value;

/// Shorter words are looked for only in what is loaded: the log has them everywhere.
const LEAST_CHARS: usize = 3;

pub fn begin_search(model: &mut Model) {
    model.focus = Focus::Browse;
    uncover(model);
    model.search = Some(Search::begin(model.desk().place));
}

/// Looks in what is loaded, and asks the log for the rest of it.
pub fn search(model: &mut Model) -> Vec<Effect> {
    let (agent, before) = match model.talk() {
        Some(talk) if talk.later => (talk.agent, model.upto.next()),
        Some(talk) => (talk.agent, talk.from.next()),
        None => return Vec::new(),
    };
    let Some(search) = &mut model.search else { return Vec::new() };
    search.restart();
    if let Some(talk) = model.talks.get(&agent) {
        search.look_in(talk);
    }
    let words = search.wanted();
    let is_whole = model.talks.get(&agent).is_some_and(|talk| !talk.more && !talk.later);
    let mut effects = show_match(model);
    if !is_whole && words.chars().count() >= LEAST_CHARS {
        effects.push(in_log(agent, words, before));
    }
    effects
}

fn in_log(agent: AgentId, words: String, before: EventId) -> Effect {
    let path = format!("/api/events.json?limit=100&agent={agent}&before={before}&words={}", escaped(&words));
    Effect::Get { tag: Tag::Search { agent, words }, path }
}

/// A part of the log was searched. The search goes on with what comes before it.
pub fn found_in_log(model: &mut Model, agent: AgentId, words: &str, value: &Value) -> Vec<Effect> {
    let is_current = model.search.as_ref().is_some_and(|search| search.wanted() == words);
    if !is_current || model.current != Some(agent) {
        return Vec::new();
    }
    let Some(search) = &mut model.search else { return Vec::new() };
    let events = value["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let records = events.iter().filter_map(|event| read_record(&event.to_string()).ok());
    let had_none = search.found.is_empty();
    search.add(records.filter(|record| is_in(agent, record, words)).map(|record| record.id));
    let from = value["from"].as_u64().map(EventId).filter(|from| *from > EventId::START);
    search.upto = from;
    let goes_on = from.filter(|_| search.found.len() < MAX_FOUND);
    let mut effects = if had_none { show_match(model) } else { Vec::new() };
    effects.extend(goes_on.map(|from| in_log(agent, words.to_owned(), from.next())));
    effects
}

pub fn next_match(model: &mut Model, forward: bool) -> Vec<Effect> {
    let Some(search) = &mut model.search else { return Vec::new() };
    let count = search.found.len();
    if count == 0 {
        return Vec::new();
    }
    search.at = if forward { (search.at + 1) % count } else { (search.at + count - 1) % count };
    show_match(model)
}

/// Goes to the chosen match. One that is not loaded is read first.
fn show_match(model: &mut Model) -> Vec<Effect> {
    match model.search.as_ref().and_then(Search::current) {
        Some(key) => go_to(model, key.0),
        None => Vec::new(),
    }
}

/// Goes to an event of the log. One that is no part of the current conversation is shown as it is; in the plain mode, each is.
pub fn goto(model: &mut Model, id: EventId) -> Result<Vec<Effect>, String> {
    if id > model.upto {
        let (id, last) = (text::thousands(id.0), text::thousands(model.upto.0));
        return Err(format!("There is no event #{id}. The last one is #{last}."));
    }
    let tag = match model.talk().filter(|_| !model.from_end) {
        Some(talk) if talk.has(id) => return Ok(go_to(model, id)),
        Some(talk) => Tag::Goto { agent: talk.agent, id },
        None => Tag::Event(id),
    };
    Ok(vec![Effect::Get { tag, path: format!("/api/events.json?limit=1&after={}", id.0.saturating_sub(1)) }])
}

/// Goes to an event of the current conversation, or asks for the part of the log where it is.
pub fn go_to(model: &mut Model, id: EventId) -> Vec<Effect> {
    let Some(talk) = model.current.and_then(|agent| model.talks.get_mut(&agent)) else { return Vec::new() };
    if talk.covers(id) {
        model.going = None;
        place_at(model, id);
        return Vec::new();
    }
    model.going = Some(id);
    if talk.loading {
        return Vec::new();
    }
    talk.loading = true;
    vec![Effect::Load { agent: talk.agent, part: WindowPart::Around(id) }]
}

/// A part of the current conversation came: looks in it for what is searched, and goes where one wanted to go.
pub fn go_on(model: &mut Model) -> Vec<Effect> {
    if let (Some(search), Some(talk)) = (&mut model.search, model.current.and_then(|agent| model.talks.get(&agent)))
        && !search.words.is_empty()
    {
        search.look_in(talk);
    }
    match model.going {
        Some(id) => go_to(model, id),
        None => Vec::new(),
    }
}

/// Puts the item of an event in sight and chooses it. A tool is named by its call, so the event may be a later one of the item.
fn place_at(model: &mut Model, id: EventId) {
    model.focus = Focus::Browse;
    uncover(model);
    let (cells, height) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells) else { return };
    let Some(key) = flow.keys().rfind(|key| key.0 <= id && key.1 < 249).or_else(|| flow.keys().next()) else { return };
    let place = flow.place_of(key, height);
    let desk = model.desk_mut();
    (desk.place, desk.chosen) = (place, Some(key));
}

/// Sets the text aside: ↑ brings it back.
pub fn set_aside(model: &mut Model) {
    lay_aside(model);
    model.overlay = None;
    model.say("Set aside. ↑ brings it back.");
}

/// The moment at which a proposed letter of `^X` is shown.
pub fn prefix_shown_at(model: &Model) -> Option<Timestamp> {
    model.prefix.map(|at| Timestamp(at.0 + draw::PREFIX_PAUSE_MS))
}
