//! Opening and closing panels.

use crate::client::paths::{agent_path, escaped};
use crate::tui::draw;
use crate::tui::model::{Connection, Focus, Model};
use crate::tui::panel::{Home, QuestPanel, Sheet, SheetKind, Side};
use crate::tui::update::{Effect, Tag, is_watched};
use hatchery_core::quest::StepStatus;
use hatchery_core::{AgentId, Event, EventId, QuestId, Timestamp};

/// Opens a panel, or closes it when it is open.
pub fn toggle(model: &mut Model, letter: char) -> Vec<Effect> {
    let is_open = match (&model.side, letter) {
        (Some(Side::Home(_)), 'h') | (Some(Side::Quest(_)), 'q') => true,
        (Some(Side::Sheet(sheet)), letter) => sheet_kind(letter) == Some(sheet.kind),
        _ => false,
    };
    if is_open {
        return close_side(model);
    }
    match letter {
        'h' => {
            let entered = model.now;
            model.side = Some(Side::Home(Home { entered, ..Home::default() }));
            model.focus = Focus::Side;
            wanted_quests(model)
        }
        'q' => open_quest(model, None),
        letter => match sheet_kind(letter) {
            Some(kind) => open_sheet(model, kind),
            None => Vec::new(),
        },
    }
}

fn sheet_kind(letter: char) -> Option<SheetKind> {
    Some(match letter {
        'm' => SheetKind::Mail,
        'l' => SheetKind::Log,
        'w' => SheetKind::Why,
        'd' => SheetKind::Changes,
        'c' => SheetKind::Cost,
        's' => SheetKind::Seats,
        _ => return None,
    })
}

pub fn close_side(model: &mut Model) -> Vec<Effect> {
    model.side = None;
    model.side_closed = true;
    model.focus = Focus::Text;
    Vec::new()
}

/// Closes a panel that has taken the place of the conversation.
pub fn uncover(model: &mut Model) {
    if model.side.is_some() && draw::areas(model).talk.is_none() {
        (model.side, model.side_closed) = (None, true);
    }
}

pub fn toggle_tree(model: &mut Model) -> Vec<Effect> {
    let shown = draw::shows_tree(model);
    if shown && (model.focus == Focus::Tree || model.size.0 >= 100) {
        model.tree = Some(false);
        model.focus = Focus::Text;
        return Vec::new();
    }
    model.tree = Some(true);
    if model.size.0 < 160 {
        model.side = None;
    }
    model.focus = Focus::Tree;
    model.tree_row = model.current;
    Vec::new()
}

pub fn open_quest(model: &mut Model, quest: Option<QuestId>) -> Vec<Effect> {
    let of_current =
        model.current.and_then(|agent| model.roster.agents.get(&agent)).and_then(|it| it.view.assignment.as_ref());
    let step = of_current.map(|it| it.step.clone());
    let quest = quest.or(of_current.map(|it| it.quest)).or_else(|| model.roster.quests.last().map(|quest| quest.id));
    let Some(quest) = quest else {
        // Another panel would stand there as if it were the quest's.
        close_side(model);
        model.say("There is no quest. /quest new WHAT YOU WANT begins one.");
        return Vec::new();
    };
    let steps = model.roster.documents.get(&quest).map(|document| document.steps.as_slice()).unwrap_or_default();
    let at = step.and_then(|step| steps.iter().position(|it| it.id == step)).unwrap_or(0);
    model.side = Some(Side::Quest(QuestPanel { quest, step: at, ward: None, scroll: 0 }));
    model.focus = Focus::Side;
    settle_step(model);
    vec![Effect::Quest(quest)]
}

/// A step that is not listed cannot stay chosen: the first one that is at work or has failed is of interest, or the first one.
pub fn settle_step(model: &mut Model) {
    let Some(Side::Quest(panel)) = &mut model.side else { return };
    let Some(document) = model.roster.documents.get(&panel.quest) else { return };
    let listed = draw::listed_steps(document);
    if listed.contains(&panel.step) {
        return;
    }
    let of_interest = |at: &&usize| {
        let status = document.steps[**at].status;
        matches!(
            status,
            StepStatus::Running | StepStatus::WaitingForRole | StepStatus::WaitingForHuman | StepStatus::Failed
        )
    };
    if let Some(at) = listed.iter().find(of_interest).or(listed.first()) {
        (panel.step, panel.ward) = (*at, None);
    }
}

pub fn open_sheet(model: &mut Model, kind: SheetKind) -> Vec<Effect> {
    if kind.is_of_one() && model.current.is_none() {
        model.say("There is no agent yet.");
        return Vec::new();
    }
    model.side = Some(Side::Sheet(Sheet::loading(kind, model.current, kind.title())));
    model.focus = Focus::Side;
    read_sheet(model)
}

/// Asks for what the open list shows.
pub fn read_sheet(model: &mut Model) -> Vec<Effect> {
    let (now, upto) = (model.now, model.upto);
    let Some(Side::Sheet(sheet)) = &mut model.side else { return Vec::new() };
    let of = |rest: &str| sheet.agent.map(|agent| agent_path(&agent.to_string(), rest));
    let path = match sheet.kind {
        SheetKind::Mail => Some("/api/mail/human/threads?limit=100".to_owned()),
        SheetKind::Log => Some(log_path(sheet, upto.next())),
        SheetKind::Why => of("/why"),
        SheetKind::Changes => of("/changes"),
        SheetKind::Cost => Some("/api/usage?days=7".to_owned()),
        SheetKind::Seats => Some("/api/seats".to_owned()),
    };
    let Some(path) = path else { return Vec::new() };
    (sheet.loading, sheet.stale, sheet.read, sheet.goes_on) = (true, false, now, None);
    vec![Effect::Get { tag: Tag::Sheet(sheet.kind, sheet.agent), path }]
}

/// Events of the log for a list, before one of them.
pub fn log_path(sheet: &Sheet, before: EventId) -> String {
    let of = sheet.agent.map(|agent| format!("&agent={agent}")).unwrap_or_default();
    let words = sheet.filter.whole();
    let words = if words.is_empty() { String::new() } else { format!("&words={}", escaped(&words)) };
    format!("/api/events.json?limit={LISTED_EVENTS}&before={before}{of}{words}")
}

/// How many events are listed. `#` goes to an earlier one.
pub const LISTED_EVENTS: usize = 200;

/// How long an open list is left alone before it is read again.
const READ_AGAIN_MS: i64 = 1_000;

/// When the open list is read again, if something has happened that it shows.
pub fn sheet_due(model: &Model) -> Option<Timestamp> {
    match &model.side {
        // In the plain mode a list is told once.
        Some(Side::Sheet(sheet)) if sheet.stale && !sheet.loading && !sheet.filtering && !model.from_end => {
            Some(Timestamp(sheet.read.0 + READ_AGAIN_MS))
        }
        _ => None,
    }
}

/// Reads the open list again when that is due.
pub fn follow_sheet(model: &mut Model) -> Vec<Effect> {
    match sheet_due(model) {
        Some(due) if due <= model.now && model.link == Connection::Up => read_sheet(model),
        _ => Vec::new(),
    }
}

/// Marks the open list if an event is about what it shows.
pub fn touch_sheet(model: &mut Model, event: &Event, whose: Option<AgentId>) {
    let Some(Side::Sheet(sheet)) = &mut model.side else { return };
    let is_of_it = sheet.agent.is_none() || sheet.agent == whose;
    let is_run = matches!(event, Event::Run { .. } | Event::Message(_));
    sheet.stale |= match sheet.kind {
        SheetKind::Mail => matches!(event, Event::Mail(_)),
        SheetKind::Log => is_of_it,
        SheetKind::Why => whose.is_some() && is_of_it,
        SheetKind::Changes => is_run && is_of_it,
        SheetKind::Cost => is_run,
        SheetKind::Seats => !matches!(event, Event::Message(_) | Event::Mail(_) | Event::Question { .. }),
    };
}

/// Documents of quests that something is shown of.
pub fn wanted_quests(model: &Model) -> Vec<Effect> {
    let stale = |quest: &&crate::http::QuestLine| {
        is_watched(model, quest)
            && model.roster.documents.get(&quest.id).is_none_or(|known| known.changed < quest.changed)
    };
    model.roster.quests.iter().filter(stale).map(|quest| Effect::Quest(quest.id)).collect()
}

/// How much agents have changed costs the daemon a git command for each, so it is asked for again only after so long.
const COUNTED_AGAIN_MS: i64 = 30_000;
/// So many agents are counted at most.
const MAX_COUNTED: usize = 16;

/// The changes that a panel in sight shows: in Home of who works, in a quest of who is at the chosen step.
pub fn wanted_changes(model: &mut Model) -> Vec<Effect> {
    let shown: Vec<AgentId> = match &model.side {
        Some(Side::Home(_)) => model.roster.workers(model.now).into_iter().map(|agent| agent.view.id).collect(),
        Some(Side::Quest(panel)) => {
            let step = model.roster.documents.get(&panel.quest).and_then(|quest| quest.steps.get(panel.step));
            step.and_then(|step| step.agent.or_else(|| step.agents.last().map(|it| it.agent))).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let now = model.now;
    let stale =
        |agent: &AgentId| model.changes.get(agent).is_none_or(|known| now.0 - known.asked.0 >= COUNTED_AGAIN_MS);
    let wanted: Vec<AgentId> = shown.into_iter().take(MAX_COUNTED).filter(stale).collect();
    let mut effects = Vec::new();
    for agent in wanted {
        model.changes.entry(agent).or_default().asked = now;
        effects.push(Effect::Get { tag: Tag::Changes(agent), path: agent_path(&agent.to_string(), "/changes") });
    }
    effects
}
