//! Reading a conversation: scrolling, choosing and folding blocks.

use super::{approach, load_earlier};
use crate::tui::conversation::{BlockKind, ConversationView};
use crate::tui::draw;
use crate::tui::flow::Flow;
use crate::tui::model::{BlockKey, Model, ScrollPosition};
use crate::tui::plain;
use crate::tui::update::{Effect, Failed, words};
use crate::tui::window::{Whole, Window, WindowPart};
use hatchery_core::{AgentId, EventId, Record};

pub fn scroll(model: &mut Model, by: isize) -> Vec<Effect> {
    let (cells, height) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells) else { return Vec::new() };
    let (place, at_begin) = flow.scrolled(by, height);
    let seen = flow.visible(height).last().map(|row| row.item.0);
    let desk = model.desk_mut();
    // What was in sight when you left the end is what you have seen.
    if desk.place == ScrollPosition::End && place != ScrollPosition::End {
        desk.seen = seen.map_or(desk.seen, |seen| seen.max(desk.seen));
    }
    desk.place = place;
    follow_end(model);
    match (at_begin && by < 0, model.current) {
        (true, Some(agent)) => load_earlier(model, agent),
        _ => approach(model),
    }
}

/// Goes to the end of the conversation, and follows what arrives.
pub fn to_end(model: &mut Model) -> Vec<Effect> {
    model.desk_mut().place = ScrollPosition::End;
    follow_end(model);
    approach(model)
}

fn follow_end(model: &mut Model) {
    if model.desk().place == ScrollPosition::End {
        let upto = model.talk().map(ConversationView::upto);
        let desk = model.desk_mut();
        desk.seen = upto.map_or(desk.seen, |upto| upto.max(desk.seen));
    }
}

pub fn to_begin(model: &mut Model) -> Vec<Effect> {
    let (cells, _) = draw::talk_size(model);
    let first = Flow::new(model, cells).and_then(|flow| flow.keys().next());
    if let Some(item) = first {
        model.desk_mut().place = ScrollPosition::At { item, line: 0 };
        model.desk_mut().chosen = Some(item);
    }
    model.current.map(|agent| load_earlier(model, agent)).unwrap_or_default()
}

/// The next or previous block while you browse.
pub fn choose_block(model: &mut Model, by: isize) -> Vec<Effect> {
    let (cells, height) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells) else { return Vec::new() };
    let keys: Vec<BlockKey> = flow.keys().collect();
    if keys.is_empty() {
        return Vec::new();
    }
    let visible = flow.visible(height);
    let at = match model.desk().chosen.and_then(|chosen| keys.iter().position(|key| *key == chosen)) {
        Some(at) => at.saturating_add_signed(by).min(keys.len() - 1),
        // The last one in sight.
        None => visible.last().and_then(|row| keys.iter().position(|key| *key == row.item)).unwrap_or(keys.len() - 1),
    };
    let place = match at + 1 == keys.len() {
        true => flow.end(height),
        false => flow.place_of(keys[at], height),
    };
    let desk = model.desk_mut();
    (desk.chosen, desk.place) = (Some(keys[at]), place);
    match (at < 5, model.current) {
        (true, Some(agent)) => load_earlier(model, agent),
        _ => approach(model),
    }
}

/// Opens or folds the chosen block. What stands above it stays where it is.
pub fn fold(model: &mut Model, key: BlockKey) {
    let (cells, height) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells) else { return };
    let Some(open) = flow.is_open(key) else { return };
    let is_group = flow.is_group(key);
    let top = flow.visible(height).first().map(|row| ScrollPosition::At { item: row.item, line: row.line });
    let has_more = open
        && model.talk().is_some_and(|talk| {
            talk.blocks().iter().any(|block| {
                block.id == key.0 && matches!(&block.kind, BlockKind::Tool(tool) if tool.lines().len() > 17)
            })
        });
    let desk = model.desk_mut();
    if key == BlockKey(EventId::START, 0) {
        desk.inherited_open = Some(!open);
    } else if is_group {
        desk.open_groups.insert(key.0);
    } else if has_more && !desk.open_groups.contains(&key.0) {
        // The first Enter on an opened long output shows the rest of it, the next one folds it.
        desk.open_groups.insert(key.0);
    } else {
        desk.open_groups.remove(&key.0);
        desk.folds.insert(key.0, !open);
    }
    if let Some(top) = top.filter(|_| model.desk().place != ScrollPosition::End) {
        model.desk_mut().place = top;
    }
}

/// All foldable blocks of the turn of the chosen one.
pub fn fold_turn(model: &mut Model) {
    let Some(chosen) = model.desk().chosen else { return };
    let Some(talk) = model.talk() else { return };
    let is_mine = |kind: &BlockKind| matches!(kind, BlockKind::ToAgent { .. });
    let begin = talk
        .blocks()
        .iter()
        .rev()
        .find(|block| block.id <= chosen.0 && is_mine(&block.kind))
        .map_or(EventId::START, |block| block.id);
    let end = talk
        .blocks()
        .iter()
        .find(|block| block.id > chosen.0 && is_mine(&block.kind))
        .map_or(EventId(u64::MAX), |block| block.id);
    let foldable = |kind: &BlockKind| matches!(kind, BlockKind::Tool(_) | BlockKind::Thought { .. });
    let ids: Vec<EventId> = talk
        .blocks()
        .iter()
        .filter(|block| block.id >= begin && block.id < end && foldable(&block.kind))
        .map(|block| block.id)
        .collect();
    let desk = model.desk_mut();
    let open = !ids.iter().all(|id| desk.folds.get(id) == Some(&true));
    for id in ids {
        desk.open_groups.insert(id);
        desk.folds.insert(id, open);
    }
}

/// What the agent said last, as its source.
pub fn last_answer(model: &Model) -> Option<String> {
    answer_before(model, 0)
}

/// What it said so many answers before its last one.
pub fn answer_before(model: &Model, count: usize) -> Option<String> {
    let mut answers = model.talk()?.blocks().iter().rev().filter_map(|block| match &block.kind {
        BlockKind::Spoken { text, .. } => Some(text.clone()),
        _ => None,
    });
    answers.nth(count)
}

/// The code in a text, without its fences.
pub fn code_of(source: &str) -> String {
    let mut inside = false;
    let mut out = String::new();
    for line in source.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// What is said where the end of the conversation is wanted and not there.
pub const FURTHER_DOWN: &str = "Its last words are further down. Ctrl-End goes there.";

/// All of a conversation was read: it is shown or copied as text. Where it could not be read, what is here is better than nothing.
pub fn whole(model: &mut Model, agent: AgentId, what: Whole, result: Result<Vec<Record>, Failed>) -> Vec<Effect> {
    let talk = match result {
        Ok(records) => {
            let mut talk = ConversationView::new(agent, model.roster.has_seat(agent));
            talk.inherited = model.talks.get(&agent).and_then(|talk| talk.inherited.clone());
            let window = Window { records, from: EventId::START, more: false, to: EventId::START, later: false };
            talk.take(WindowPart::End { before: None }, window);
            talk
        }
        Err(why) => {
            model.say(format!("{} This is what was read before.", words(&why)));
            let Some(talk) = model.talks.get(&agent) else { return Vec::new() };
            talk.clone()
        }
    };
    let full = what == Whole::Page { full: true };
    let text = match model.from_end && what != Whole::Copy {
        true => plain::transcript(model, &talk, full),
        false => transcript(model, &talk, full),
    };
    vec![match what {
        Whole::Copy => Effect::Copy(text),
        Whole::Page { .. } => Effect::Pager(text),
    }]
}

/// A conversation as text: folded as on the screen, or with everything.
fn transcript(model: &Model, talk: &ConversationView, full: bool) -> String {
    let (cells, _) = draw::talk_size(model);
    let mut desk = model.desks.get(&talk.agent).cloned().unwrap_or_default();
    if full {
        desk.inherited_open = Some(true);
        let inherited = talk.inherited.iter().flat_map(|inherited| &inherited.blocks);
        for block in inherited.chain(talk.blocks()) {
            desk.folds.insert(block.id, true);
            desk.open_groups.insert(block.id);
        }
    }
    let rows = Flow::of(model, &desk, talk, cells.max(80)).whole().all_rows();
    rows.iter().map(|row| row.text.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n") + "\n"
}
