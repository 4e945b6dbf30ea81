//! The tree: forks, quests with their agents, numbers, and what is new.

use super::put;
use crate::quest_document::QuestWord;
use crate::tui::look::Ink;
use crate::tui::model::{Focus, Model};
use crate::tui::roster::{RosterAgent, State};
use crate::tui::text;
use crate::tui::words;
use hatchery_core::quest::StepStatus;
use hatchery_core::{AgentId, QuestId};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use std::collections::BTreeMap;

/// An agent that rested for longer is not shown, unless it is in use.
const LONG_DONE_MS: i64 = 2 * 3_600_000;

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeKey {
    Root,
    Agent(AgentId),
    Quest(QuestId),
    /// So many that are done, below a quest.
    Folded,
}

#[derive(Clone, Debug)]
pub struct TreeRow {
    pub key: TreeKey,
    /// The lines of the tree before it.
    art: String,
    glyph: Option<(String, Ink)>,
    name: String,
    is_title: bool,
    right: String,
    bold: bool,
}

struct Branch {
    row: TreeRow,
    below: Vec<Branch>,
}

/// The rows in order, and how many agents are not shown.
pub fn rows(model: &Model) -> (Vec<TreeRow>, usize) {
    let roster = &model.roster;
    let Some(root) = roster.root() else { return (Vec::new(), 0) };
    let mut hidden = 0;
    let mut below: BTreeMap<AgentId, Vec<&RosterAgent>> = BTreeMap::new();
    let mut of_quest: BTreeMap<QuestId, Vec<&RosterAgent>> = BTreeMap::new();
    for agent in roster.agents.values() {
        match (&agent.view.assignment, agent.view.parent) {
            (Some(assignment), _) => of_quest.entry(assignment.quest).or_default().push(agent),
            (None, Some(parent)) => {
                let parent = if roster.agents.contains_key(&parent) { parent } else { root };
                below.entry(parent).or_default().push(agent);
            }
            (None, None) => {}
        }
    }
    for agents in below.values_mut() {
        agents.sort_by_key(|agent| (agent.view.created, agent.view.id));
    }
    let mut branches = branches(model, root, &below, &mut hidden);
    for quest in &roster.quests {
        let mut agents = of_quest.remove(&quest.id).unwrap_or_default();
        let is_over = matches!(quest.state, QuestWord::Complete | QuestWord::Abandoned);
        if is_over && model.now.0 - quest.changed.0 > LONG_DONE_MS {
            hidden += agents.len();
            continue;
        }
        agents.sort_by_key(|agent| (agent.view.created, agent.view.id));
        let is_busy = |agent: &&RosterAgent| {
            !matches!(roster.state(agent), State::Resting | State::Done | State::Dead | State::Listening)
                || Some(agent.view.id) == model.current
        };
        let (busy, done): (Vec<&RosterAgent>, Vec<&RosterAgent>) = agents.into_iter().partition(is_busy);
        let busy = if is_over { Vec::new() } else { busy };
        let mut children: Vec<Branch> =
            busy.into_iter().map(|agent| Branch { row: of_agent(model, agent), below: Vec::new() }).collect();
        let failed = roster.documents.get(&quest.id).into_iter().flat_map(|document| &document.steps);
        for step in failed.filter(|step| step.status == StepStatus::Failed && step.agent.is_none() && !is_over) {
            children.push(Branch {
                row: TreeRow {
                    key: TreeKey::Quest(quest.id),
                    art: String::new(),
                    glyph: Some(("⊗".to_owned(), Ink::Bad)),
                    name: format!("{}, a step", step.id),
                    is_title: true,
                    right: text::age(model.now.0 - step.since.0),
                    bold: false,
                },
                below: Vec::new(),
            });
        }
        if !done.is_empty() && !is_over {
            let name = format!("{} done, folded", done.len());
            let row = TreeRow {
                key: TreeKey::Folded,
                art: String::new(),
                glyph: None,
                name,
                is_title: true,
                right: String::new(),
                bold: false,
            };
            children.push(Branch { row, below: Vec::new() });
        }
        let right = match quest.state {
            QuestWord::Complete | QuestWord::Abandoned => text::age(model.now.0 - quest.changed.0),
            QuestWord::Paused => "paused".to_owned(),
            QuestWord::Open if quest.steps == 0 => "plan".to_owned(),
            QuestWord::Open => format!("{}/{}", quest.complete, quest.steps),
        };
        let glyph = match quest.state {
            QuestWord::Complete => Some(("✓".to_owned(), Ink::Dim)),
            QuestWord::Abandoned => Some(("✕".to_owned(), Ink::Dim)),
            QuestWord::Open | QuestWord::Paused => None,
        };
        let name = text::title(&quest.request);
        let row = TreeRow {
            key: TreeKey::Quest(quest.id),
            art: String::new(),
            glyph,
            name,
            is_title: true,
            right,
            bold: false,
        };
        branches.push(Branch { row, below: children });
    }
    let mut rows = vec![TreeRow {
        key: TreeKey::Root,
        art: String::new(),
        glyph: None,
        name: roster.name(root),
        is_title: false,
        right: String::new(),
        bold: false,
    }];
    flatten(branches, "", &mut rows);
    (rows, hidden + roster.agent_count.saturating_sub(roster.agents.len()))
}

fn branches(
    model: &Model,
    of: AgentId,
    below: &BTreeMap<AgentId, Vec<&RosterAgent>>,
    hidden: &mut usize,
) -> Vec<Branch> {
    let mut out = Vec::new();
    for agent in below.get(&of).into_iter().flatten() {
        let id = agent.view.id;
        let children = match model.tree_folds.contains(&id) {
            true => Vec::new(),
            false => branches(model, id, below, hidden),
        };
        let idle = matches!(
            model.roster.state(agent),
            State::Resting | State::Dead | State::Asleep | State::Failed | State::Done
        );
        let old = model.now.0 - agent.view.last_active.0 > LONG_DONE_MS;
        let in_use =
            Some(id) == model.current || model.pins.contains(&Some(id)) || agent.fresh > 0 || !children.is_empty();
        if idle && old && !in_use {
            *hidden += 1;
            continue;
        }
        out.push(Branch { row: of_agent(model, agent), below: children });
    }
    out
}

fn of_agent(model: &Model, agent: &RosterAgent) -> TreeRow {
    let state = model.roster.state(agent);
    let is_new = agent.fresh > 0 && Some(agent.view.id) != model.current;
    TreeRow {
        key: TreeKey::Agent(agent.view.id),
        art: String::new(),
        glyph: Some((state.glyph(agent.ring).to_owned(), state.ink())),
        name: model.name(agent.view.id),
        is_title: false,
        right: match is_new && !matches!(state, State::Asks | State::Silent | State::BudgetUsed) {
            true => format!("{} new", agent.fresh),
            false => words::age_of(model, agent),
        },
        bold: is_new,
    }
}

fn flatten(branches: Vec<Branch>, before: &str, rows: &mut Vec<TreeRow>) {
    let count = branches.len();
    for (at, Branch { mut row, below }) in branches.into_iter().enumerate() {
        let last = at + 1 == count;
        row.art = format!("{before}{} ", if last { "└─" } else { "├─" });
        rows.push(row);
        flatten(below, &format!("{before}{} ", if last { "  " } else { "│ " }), rows);
    }
}

/// The first row that is in sight, and how many are.
fn in_sight(model: &Model, rows: &[TreeRow], hidden: usize, height: u16) -> (usize, usize) {
    let height = usize::from(height).saturating_sub(if hidden > 0 { 3 } else { 1 });
    let chosen = model.tree_row.or(model.current);
    let of_cursor = rows.iter().position(|row| matches!(row.key, TreeKey::Agent(id) if Some(id) == chosen));
    let top = of_cursor.map_or(0, |at| (at + 1).saturating_sub(height)).min(rows.len().saturating_sub(height));
    (top, height)
}

/// What stands in a row of the area.
pub fn at_row(model: &Model, area: Rect, y: u16) -> Option<TreeKey> {
    let (rows, hidden) = rows(model);
    let (top, height) = in_sight(model, &rows, hidden, area.height);
    let row = usize::from(y.checked_sub(area.y + 1)?);
    (row < height).then(|| rows.get(top + row).map(|row| row.key))?
}

pub fn draw(model: &Model, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let look = model.look;
    let cells = usize::from(area.width);
    let (rows, hidden) = rows(model);
    let needs = model.roster.need_count();
    let at_work = model.roster.working().count();
    let right = match (needs, at_work) {
        (0, 0) => "nobody works".to_owned(),
        (0, count) => format!("{count} work"),
        (1, _) => "1 needs you".to_owned(),
        (count, _) => format!("{count} need you"),
    };
    let head = super::apart(
        vec![
            Span::styled(" Agents", look.style(Ink::Bold)),
            Span::styled(format!(" {}", model.roster.order().len()), look.style(Ink::Dim)),
        ],
        vec![Span::styled(right, look.style(if needs > 0 { Ink::Accent } else { Ink::Dim }))],
        cells.saturating_sub(1),
    );
    put(buffer, area.x, area.y, area.width, &head);
    let chosen = model.tree_row.or(model.current);
    let (top, height) = in_sight(model, &rows, hidden, area.height);
    let mut cursor = None;
    for (at, row) in rows.iter().skip(top).take(height).enumerate() {
        let y = area.y + 1 + u16::try_from(at).unwrap_or(0);
        let agent = match row.key {
            TreeKey::Agent(agent) => Some(agent),
            _ => None,
        };
        let is_current = agent.is_some() && agent == model.current;
        let is_chosen = model.focus == Focus::Tree && agent.is_some() && agent == chosen;
        let pin = agent.and_then(|agent| model.pins.iter().position(|pin| *pin == Some(agent)));
        let pin = pin.map_or(" ".to_owned(), |at| (at + 1).to_string());
        let mark = if is_chosen || (is_current && model.focus != Focus::Tree) { "❯" } else { " " };
        let mut left = vec![
            Span::styled(mark, look.style(Ink::Accent)),
            Span::styled(format!("{pin} "), look.style(Ink::Dim)),
            Span::styled(row.art.clone(), look.style(Ink::Line)),
        ];
        if let Some((glyph, ink)) = &row.glyph {
            left.push(Span::styled(glyph.clone(), look.style(*ink)));
            left.push(Span::raw(" "));
        }
        let used: usize = left.iter().map(Span::width).sum();
        let gap = usize::from(!row.right.is_empty());
        let room = cells.saturating_sub(used + text::width(&row.right) + gap + 1);
        let name = if row.is_title { text::cut(&row.name, room) } else { text::cut_middle(&row.name, room) };
        let needs = matches!(row.glyph, Some((_, Ink::AccentFilled | Ink::Bad)));
        let ink = if row.bold || is_current || needs { Ink::Bold } else { Ink::Plain };
        left.push(Span::styled(name, look.style(if row.key == TreeKey::Folded { Ink::Dim } else { ink })));
        let right_ink = match (needs, row.bold) {
            (true, _) => Ink::Accent,
            (false, true) => Ink::Bold,
            (false, false) => Ink::Dim,
        };
        let line =
            super::apart(left, vec![Span::styled(row.right.clone(), look.style(right_ink))], cells.saturating_sub(1));
        put(buffer, area.x, y, area.width, &line);
        if is_chosen {
            cursor = Some(Position { x: area.x, y });
        }
    }
    let below = area.y + 2 + u16::try_from(rows.len().min(height)).unwrap_or(0);
    if hidden > 0 && below < area.bottom() {
        let key = if model.size.0 >= 160 { "Ctrl-X o" } else { "^X o" };
        let words = format!(" {hidden} asleep or long done: {key}");
        put(buffer, area.x, below, area.width, &Line::styled(words, look.style(Ink::Dim)));
    }
    cursor
}
