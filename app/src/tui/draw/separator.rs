//! The separator: who is in front, what it does and how that is known, what it cost; where you are, and who needs you.

use super::quest as quest_panel;
use crate::tui::look::Ink;
use crate::tui::model::{Connection, Model, ScrollPosition};
use crate::tui::roster::{RosterAgent, State, dollars, short};
use crate::tui::text;
use crate::tui::words;
use hatchery_core::seat::Position;
use ratatui::text::{Line, Span};

/// From here on words are written out.
const WORDS_FROM: usize = 100;
const EVERYTHING_FROM: usize = 160;
/// Below this the cost stands on the right.
const NARROW: usize = 70;

/// A part of the separator with its colour.
type Part = Vec<(String, Ink)>;

pub fn line(model: &Model, cells: usize) -> Line<'static> {
    let mut drops = 0;
    loop {
        let (left, right) = parts(model, cells, drops);
        let bar = if cells >= WORDS_FROM { " ── " } else { " ─ " };
        let used = wide(&left, bar) + wide(&right, bar) + 2 * 3 + 2;
        if used < cells || drops >= MAX_DROPS {
            return assembled(model, &left, &right, bar, cells);
        }
        drops += 1;
    }
}

/// In this order: process, "of" amounts, parent, id, words of the evidence, step or slot, cost, place, evidence. Then the state is one
/// word, and the name is cut.
const MAX_DROPS: usize = 11;
const SHORT_EVIDENCE: usize = 5;
const BARE_STATE: usize = 10;
/// How long a name is then.
const SHORT_NAME: usize = 12;

fn parts(model: &Model, cells: usize, drops: usize) -> (Vec<Part>, Vec<Part>) {
    let wide = cells >= WORDS_FROM;
    let mut right: Vec<Part> = Vec::new();
    let needs = model.roster.need_count();
    let need_words = if wide { format!("{needs} need you").replace("1 need ", "1 needs ") } else { needs.to_string() };
    let needs: Option<Part> =
        (needs > 0).then(|| vec![("?".to_owned(), Ink::AccentFilled), (format!(" {need_words}"), Ink::Accent)]);
    let current = model.current.and_then(|agent| model.roster.agents.get(&agent));
    if let Connection::Away { since, again } = model.link {
        let mut left = vec![
            vec![(if drops < 5 { "⊗ the daemon is away" } else { "⊗ away" }.to_owned(), Ink::Bad)],
            vec![(format!("from {}", text::clock_seconds(since, model.offset_s)), Ink::Dim)],
            vec![(format!("again in {}", text::age(again.0 - model.now.0)), Ink::Dim)],
        ];
        // On a narrow screen, that it is away and since when are left.
        left.truncate(if drops < 2 { 3 } else { 2 });
        if let Some(agent) = current.filter(|_| drops < 4) {
            let state = model.roster.state(agent);
            right.push(vec![
                (state.glyph(agent.ring).to_owned(), Ink::Dim),
                (format!(" {}", model.name(agent.view.id)), Ink::Plain),
            ]);
        }
        return (left, right);
    }
    if let Some(trouble) = &model.roster.trouble {
        let left = vec![vec![(format!("⊗ {}", text::cut(trouble, room_for_trouble(model, cells))), Ink::Bad)]];
        if let Some(agent) = current.filter(|_| drops < 4) {
            right.push(vec![(
                format!("{} {}", model.roster.state(agent).glyph(agent.ring), model.name(agent.view.id)),
                Ink::Plain,
            )]);
        }
        right.extend(needs);
        return (left, right);
    }
    let Some(agent) = current else {
        let at_work = model.roster.working().count();
        let words = match at_work {
            0 => "nobody works".to_owned(),
            count => format!("{count} work"),
        };
        let left = vec![vec![(format!("◦ {}", model.project), Ink::Bold)], vec![(words, Ink::Dim)]];
        right.extend(needs);
        return (left, right);
    };
    let view = &agent.view;
    let state = model.roster.state(agent);
    let said = words::state_of(model, agent, wide);
    let mut who: Part = vec![(state.glyph(agent.ring).to_owned(), state.ink())];
    match view.seat {
        Some(seat) => who.extend(seated(model, agent, seat)),
        None => {
            let name = model.name(view.id);
            let name = if drops == MAX_DROPS { text::cut_middle(&name, SHORT_NAME) } else { name };
            who.push((format!(" {name}"), Ink::Bold));
            // An agent without a name is called by its id already.
            if drops < 4 && view.name.is_some() {
                who.push((format!(" {}", short(view.id)), Ink::Dim));
            }
        }
    }
    let parent = view.parent.filter(|_| drops < 3 && view.seat.is_none() && (wide || view.assignment.is_none()));
    if let Some(parent) = parent {
        who.push((format!(" ‹ {}", model.name(parent)), Ink::Dim));
    }
    let ink = match state {
        State::Asks | State::Silent | State::BudgetUsed => Ink::Accent,
        State::Working => Ink::Good,
        State::Failed | State::Crashed => Ink::Bad,
        _ => Ink::Plain,
    };
    let evidence = if cells < NARROW || drops >= SHORT_EVIDENCE { &said.short } else { &said.evidence };
    let words = if drops < BARE_STATE { said.state.clone() } else { state.word().to_owned() };
    let mut does = vec![(words, ink)];
    if !evidence.is_empty() && drops < 9 && cells >= 50 {
        does.push((format!(", {evidence}"), if said.old { Ink::Warn } else { Ink::Plain }));
    }
    let mut left = vec![who, does];
    if cells >= EVERYTHING_FROM
        && drops < 1
        && let Some(run) = agent.run.as_ref().filter(|run| run.pid.is_some())
    {
        let process = format!("process {}, run {}, attempt {}", run.pid.unwrap_or(0), run.run, run.attempts);
        left.push(vec![(process, Ink::Dim)]);
    }
    if drops < 6
        && let Some(words) = place_in_quest(model, agent)
    {
        left.push(vec![(words, Ink::Dim)]);
    }
    if drops < 7 && !said.with_cost {
        let limit = model.roster.budget(view.id).filter(|_| wide && drops < 2);
        let of = limit.map(|limit| format!(" of {}", dollars(limit))).unwrap_or_default();
        let full = view.context.and_then(|context| context.percent()).filter(|_| cells >= EVERYTHING_FROM && drops < 2);
        let full = full.map(|percent| format!(", context {percent} %")).unwrap_or_default();
        let cost = vec![(format!("{}{of}{full}", dollars(view.spent.cost)), Ink::Plain)];
        match cells < NARROW {
            true => right.push(cost),
            false => left.push(cost),
        }
    }
    let desk = model.desk();
    if desk.place != ScrollPosition::End
        && let Some(talk) = model.talk()
    {
        let count = talk.count_after(desk.seen);
        match (count, talk.later) {
            (0, false) => {}
            (0, true) => right.push(vec![("↓ more".to_owned(), Ink::Plain)]),
            (count, _) => right.push(vec![(format!("↓ {count} new"), Ink::Accent)]),
        }
    }
    if cells >= 120 && !model.roster.mail.is_empty() {
        right.push(vec![(format!("mail {}", model.roster.mail.len()), Ink::Accent)]);
    }
    if drops < 8
        && let Some(place) = model.roster.place(view.id)
    {
        let all = model.roster.order().len();
        right.push(vec![(if wide { format!("{place} of {all}") } else { format!("{place}/{all}") }, Ink::Plain)]);
    }
    let at_work = model.roster.working().count();
    if cells >= EVERYTHING_FROM && at_work > 0 {
        right.push(vec![(format!("{at_work} work"), Ink::Dim)]);
    }
    right.extend(needs);
    (left, right)
}

fn room_for_trouble(model: &Model, cells: usize) -> usize {
    let current = model.current.and_then(|agent| model.roster.agents.get(&agent));
    let name = current.map_or(0, |agent| text::width(&model.name(agent.view.id)));
    cells.saturating_sub(name + 24).max(cells / 2)
}

/// What is wrong with the store, where the separator has no room for all of it.
pub fn cut_trouble(model: &Model, cells: usize) -> Option<&str> {
    let trouble = model.roster.trouble.as_deref().filter(|_| !matches!(model.link, Connection::Away { .. }))?;
    (text::width(trouble) > room_for_trouble(model, cells)).then_some(trouble)
}

/// An agent of the seats is known by its seat. Another living one with its name is named as well.
fn seated(model: &Model, agent: &RosterAgent, seat: Position) -> Part {
    let number = u8::from(seat);
    let Some(name) = &agent.view.name else { return vec![(format!(" seat {number}"), Ink::Bold)] };
    let mut who = vec![(format!(" {}", text::clean(name)), Ink::Bold), (format!(" seat {number}"), Ink::Dim)];
    let namesake = model.roster.find(name).into_iter().filter(|id| *id != agent.view.id).find_map(|id| {
        let other = model.roster.agents.get(&id)?;
        other.view.seat.map(u8::from)
    });
    if let Some(other) = namesake {
        who.push((format!(", not {} seat {other}", text::clean(name)), Ink::Dim));
    }
    who
}

/// The slot that an agent of a quest is in; its step, where its name does not say it.
fn place_in_quest(model: &Model, agent: &RosterAgent) -> Option<String> {
    let assignment = agent.view.assignment.as_ref()?;
    let step = assignment.step.to_string();
    let slot = model.roster.documents.get(&assignment.quest).and_then(|quest| quest_panel::slot(quest, &step));
    match slot {
        Some(slot) => Some(format!("slot {slot}")),
        None => (!model.name(agent.view.id).ends_with(&step)).then_some(step),
    }
}

fn wide(parts: &[Part], bar: &str) -> usize {
    let texts: usize = parts.iter().flatten().map(|(text, _)| text::width(text)).sum();
    texts + parts.len().saturating_sub(1) * text::width(bar)
}

fn assembled(model: &Model, left: &[Part], right: &[Part], bar: &str, cells: usize) -> Line<'static> {
    let look = model.look;
    let rule = |text: String| Span::styled(text, look.style(Ink::Line));
    let mut spans = vec![rule("── ".to_owned())];
    let add = |spans: &mut Vec<Span<'static>>, parts: &[Part]| {
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                spans.push(rule(bar.to_owned()));
            }
            spans.extend(part.iter().map(|(text, ink)| Span::styled(text.clone(), look.style(*ink))));
        }
    };
    add(&mut spans, left);
    let used = 3 + wide(left, bar) + if right.is_empty() { 1 } else { 5 + wide(right, bar) };
    let filler = cells.saturating_sub(used).max(1);
    match right.is_empty() {
        true => spans.push(rule(format!(" {}", "─".repeat(filler)))),
        false => {
            spans.push(rule(format!(" {} ", "─".repeat(filler))));
            add(&mut spans, right);
            spans.push(rule(" ──".to_owned()));
        }
    }
    Line::from(spans)
}
