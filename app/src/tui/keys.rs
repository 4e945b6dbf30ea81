//! What each key does. In your text the keys are readline's; after `^X`, in the conversation and in panels, a letter has one meaning. No
//! single key does harm.

use super::act;
use super::command;
use super::complete;
use super::draw;
use super::field::{Field, TooLong};
use super::finder;
use super::model::{Focus, Key, Model, Purpose};
use super::overlay::{Act, Finder, Help, Overlay};
use super::panel::{SheetAct, Side};
use super::text;
use super::update::{Effect, Tag};
use crate::client::paths::{agent_path, escaped};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use hatchery_core::EventId;
use serde_json::json;

/// Rows that the wheel moves.
const WHEEL: isize = 3;

pub fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    if let Some(awaited) = &mut model.awaited_fork {
        awaited.stay = true;
    }
    let leaving = std::mem::take(&mut model.leaving);
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    if model.prefix.take().is_some() {
        return after_prefix(model, key);
    }
    if control && key.code == KeyCode::Char('x') {
        model.prefix = Some(model.now);
        return Vec::new();
    }
    if control && key.code == KeyCode::Char('l') {
        return vec![Effect::Redraw];
    }
    if control && key.code == KeyCode::Char('z') {
        return vec![Effect::Suspend];
    }
    if model.overlay.as_ref().is_some_and(Overlay::takes_keys) {
        return in_overlay(model, key);
    }
    if alt && let KeyCode::Char(letter @ ('e' | 'o' | 'j' | 'k' | 'a')) = key.code {
        return letter_of_prefix(model, letter);
    }
    if model.search.as_ref().is_some_and(|search| search.typing) {
        return in_search(model, key);
    }
    match model.focus {
        Focus::Text => in_text(model, key, leaving),
        Focus::Browse => in_browse(model, key),
        Focus::Tree => in_tree(model, key),
        Focus::Side => in_side(model, key),
    }
}

/// A paste is one insert into whatever is being typed. It never sends or runs anything.
pub fn paste(model: &mut Model, pasted: &str) -> Vec<Effect> {
    let line = || pasted.replace(['\n', '\r'], " ");
    if let Some(
        Overlay::Finder(Finder { words, .. })
        | Overlay::Help(Help { words, .. })
        | Overlay::Recall { words, .. }
        | Overlay::Propose(words)
        | Overlay::Goto(words),
    ) = &mut model.overlay
    {
        words.insert(&line());
        return Vec::new();
    }
    if let Some(search) = model.search.as_mut().filter(|search| search.typing) {
        search.words.insert(&line());
        return act::search(model);
    }
    if let Some(Side::Home(home)) = &mut model.side
        && model.focus == Focus::Side
        && home.typing
    {
        let key = home.chosen.clone().unwrap_or_default();
        home.own.entry(key).or_default().insert(&line());
        return Vec::new();
    }
    model.focus = Focus::Text;
    let was_empty = model.desk().field.is_empty();
    if let Err(TooLong(bytes)) = model.desk_mut().field.paste(pasted) {
        model.say(format!("{} is too long for a message. /attach makes a file of it.", text::size(bytes)));
    }
    fix_purpose(model, was_empty);
    model.overlay = None;
    Vec::new()
}

pub fn mouse(model: &mut Model, event: MouseEvent) -> Vec<Effect> {
    let areas = draw::areas(model);
    let at = ratatui::layout::Position { x: event.column, y: event.row };
    match event.kind {
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
            let by = if event.kind == MouseEventKind::ScrollUp { -WHEEL } else { WHEEL };
            match (&mut model.side, areas.side.filter(|area| area.contains(at))) {
                (Some(Side::Sheet(sheet)), Some(_)) => {
                    sheet.cursor = sheet.cursor.saturating_add_signed(by).min(sheet.rows.len().saturating_sub(1));
                    Vec::new()
                }
                _ => act::scroll(model, by),
            }
        }
        MouseEventKind::Down(MouseButton::Left) => {
            if areas.separator.contains(at) {
                act::to_end(model);
            } else if areas.text.contains(at) {
                let cells = draw::text_cells(model.size.0);
                let row = usize::from(at.y - areas.text.y);
                model.desk_mut().field.click(row, usize::from(at.x.saturating_sub(2)), cells);
                model.focus = Focus::Text;
            } else if let Some(area) = areas.tree.filter(|area| area.contains(at)) {
                let (rows, _) = draw::tree_rows(model);
                let row = usize::from(at.y.saturating_sub(area.y + 1));
                match rows.get(row).map(|row| row.key) {
                    Some(draw::TreeKey::Agent(agent)) => return act::go(model, agent),
                    Some(draw::TreeKey::Quest(quest)) => return act::open_quest(model, Some(quest)),
                    _ => {}
                }
            } else if let Some(area) = areas.talk.filter(|area| area.contains(at)) {
                let (cells, height) = draw::talk_size(model);
                let rows = super::flow::Flow::new(model, cells).map(|flow| flow.visible(height)).unwrap_or_default();
                let top = usize::from(area.height).saturating_sub(rows.len());
                if let Some(row) = usize::from(at.y - area.y).checked_sub(top).and_then(|row| rows.get(row)) {
                    let key = row.item;
                    model.desk_mut().chosen = Some(key);
                    act::fold(model, key);
                }
            } else if areas.side.is_some_and(|area| area.contains(at)) {
                model.focus = Focus::Side;
            }
            Vec::new()
        }
        _ => Vec::new(),
    }
}

// ---- After ^X ----

fn after_prefix(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => Vec::new(),
        KeyCode::Char('g') if control => Vec::new(),
        KeyCode::Char('x') if control => act::last_visited(model),
        KeyCode::Left => act::relative(model, true),
        KeyCode::Right => act::relative(model, false),
        KeyCode::Char(letter) => letter_of_prefix(model, letter),
        _ => Vec::new(),
    }
}

/// A letter after `^X`, from anywhere.
fn letter_of_prefix(model: &mut Model, letter: char) -> Vec<Effect> {
    used(model, letter);
    // What lies over the screen makes room for what was asked for.
    if !matches!(letter, 'v' | 'y') {
        model.overlay = None;
    }
    match letter {
        'e' => act::next_need(model),
        'o' => {
            model.overlay = Some(Overlay::Finder(Finder::default()));
            vec![Effect::AllAgents]
        }
        'j' => act::neighbour(model, true),
        'k' => act::neighbour(model, false),
        '1'..='9' => act::by_number(model, letter as usize - '0' as usize),
        'h' | 'q' | 'm' | 'l' | 'w' | 'd' | 'c' => act::toggle(model, letter),
        's' => act::toggle(model, 's'),
        't' => act::toggle_tree(model),
        'z' => {
            (model.side, model.tree, model.side_closed, model.focus) = (None, Some(false), true, Focus::Text);
            Vec::new()
        }
        'a' => act::answer_oldest(model),
        'f' => match model.current {
            Some(agent) => act::fork(model, agent, None, None, None, None),
            None => Vec::new(),
        },
        'F' => match model.current {
            Some(agent) => {
                let field = act::take_text(model);
                act::fork(model, agent, None, None, None, Some(field))
            }
            None => Vec::new(),
        },
        'I' => act::interrupt(model),
        'y' => match act::last_answer(model) {
            Some(text) => vec![Effect::Copy(text)],
            None => Vec::new(),
        },
        'v' => vec![Effect::Editor(model.desk().field.whole())],
        '/' => {
            act::begin_search(model);
            Vec::new()
        }
        'r' => vec![Effect::TryAgain],
        'M' => {
            model.mouse = !model.mouse;
            model.say(if model.mouse {
                "The mouse scrolls and clicks. Shift-drag selects."
            } else {
                "The mouse is the terminal's."
            });
            vec![Effect::Mouse(model.mouse)]
        }
        '?' => {
            model.overlay = Some(Overlay::Help(Help::default()));
            Vec::new()
        }
        _ => {
            model.say(format!("^X {letter} does nothing. ^X ? shows all keys."));
            Vec::new()
        }
    }
}

fn used(model: &mut Model, letter: char) {
    *model.used.entry(format!("^X {letter}")).or_default() += 1;
}

// ---- Your text ----

fn in_text(model: &mut Model, key: KeyEvent, leaving: bool) -> Vec<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    let cells = draw::text_cells(model.size.0);
    let was_empty = model.desk().field.is_empty();
    if let Some(effects) = in_suggestions(model, key) {
        return effects;
    }
    let (_, height) = draw::talk_size(model);
    let page = isize::try_from(height.saturating_sub(2).max(1)).unwrap_or(10);
    match key.code {
        KeyCode::Enter if shift || alt => edit(model, |field| field.insert("\n")),
        KeyCode::Enter if model.desk().field.before_cursor().ends_with('\\') => edit(model, |field| {
            field.backspace();
            field.insert("\n");
        }),
        KeyCode::Enter => return act::send(model),
        KeyCode::Char('j') if control => edit(model, |field| field.insert("\n")),
        KeyCode::Tab | KeyCode::BackTab => return complete::tab(model, key.code == KeyCode::BackTab),
        KeyCode::Esc => {
            model.overlay = None;
            model.focus = Focus::Browse;
            model.desk_mut().chosen = None;
            if !model.used.contains_key("esc") {
                model.used.insert("esc".to_owned(), 1);
                model.say("You browse: j k move, Enter folds. Esc goes back to your text. It never stops anybody.");
            }
            return act::choose_block(model, 0);
        }
        KeyCode::PageUp => return act::scroll(model, -page),
        KeyCode::PageDown => return act::scroll(model, page),
        KeyCode::Home if control => return act::to_begin(model),
        KeyCode::End if control => {
            act::to_end(model);
            return Vec::new();
        }
        KeyCode::Up => return vertical(model, false, cells),
        KeyCode::Down => return vertical(model, true, cells),
        KeyCode::Char('p') if control => return vertical(model, false, cells),
        KeyCode::Char('n') if control => return vertical(model, true, cells),
        KeyCode::Char('r') if control => {
            model.overlay = Some(Overlay::Recall { words: Field::default(), at: 0 });
            return Vec::new();
        }
        KeyCode::Char('c') if control => {
            if !was_empty {
                act::set_aside(model);
            } else if leaving {
                model.quit = true;
            } else {
                model.leaving = true;
                model.say("Ctrl-C again leaves. Agents go on.");
            }
            return Vec::new();
        }
        KeyCode::Char('d') if control && was_empty => {
            model.quit = true;
            return Vec::new();
        }
        _ => {
            let changed = edit_key(&mut model.desk_mut().field, key);
            if changed {
                model.recall.settle();
            }
        }
    }
    fix_purpose(model, was_empty);
    complete::refresh(model);
    Vec::new()
}

fn edit(model: &mut Model, change: impl FnOnce(&mut Field)) {
    change(&mut model.desk_mut().field);
}

/// Readline's keys on a field. True when the text may have changed.
pub fn edit_key(field: &mut Field, key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    match key.code {
        KeyCode::Left if control || alt => field.word_left(),
        KeyCode::Right if control || alt => field.word_right(),
        KeyCode::Left => field.left(),
        KeyCode::Right => field.right(),
        KeyCode::Home => field.home(),
        KeyCode::End => field.end(),
        KeyCode::Backspace if alt => field.kill_to_word(false),
        KeyCode::Backspace if control => field.kill_word_back(),
        KeyCode::Backspace => field.backspace(),
        KeyCode::Delete => field.delete_forward(),
        KeyCode::Char(letter) if control => match letter {
            'a' => field.home(),
            'e' => field.end(),
            'b' => field.left(),
            'f' => field.right(),
            'd' => field.delete_forward(),
            'h' => field.backspace(),
            'w' => field.kill_word_back(),
            'u' => field.kill_to_line_start(),
            'k' => field.kill_to_line_end(),
            'y' => field.yank(),
            't' => field.transpose(),
            // Terminals send ^_ in different ways.
            '_' | '7' | '/' | '-' => field.undo(),
            _ => return false,
        },
        KeyCode::Char(letter) if alt => match letter {
            'b' => field.word_left(),
            'f' => field.word_right(),
            'd' => field.kill_to_word(true),
            _ => return false,
        },
        KeyCode::Char(letter) => field.insert(letter.encode_utf8(&mut [0; 4])),
        _ => return false,
    }
    true
}

fn vertical(model: &mut Model, down: bool, cells: usize) -> Vec<Effect> {
    let agent = model.current;
    if model.desk_mut().field.vertical(down, cells) {
        return Vec::new();
    }
    // What waits to be sent can be taken back.
    if !down
        && model.desk().field.is_empty()
        && let Some(at) = model.outbox.iter().rposition(|it| Some(it.agent) == agent && !it.sending && !it.doubtful)
    {
        let outgoing = model.outbox.remove(at);
        model.desk_mut().field.set(&outgoing.field);
        settle_purpose(model);
        return Vec::new();
    }
    let shown = model.desk().field.clone();
    let recalled = match down {
        false => model.recall.older(agent, &shown),
        true => model.recall.newer(agent),
    };
    if let Some(field) = recalled {
        model.desk_mut().field.set(&field);
        settle_purpose(model);
    }
    Vec::new()
}

/// The purpose is fixed with the first character. A question that comes up later changes nothing.
pub fn fix_purpose(model: &mut Model, was_empty: bool) {
    if model.desk().field.is_empty() {
        model.desk_mut().purpose = None;
    } else if was_empty || model.desk().purpose.is_none() {
        settle_purpose(model);
    } else {
        // The second slash says that it was no command.
        let raw = model.desk().field.raw();
        if raw.starts_with("//") && model.desk().purpose == Some(Purpose::Command) {
            model.desk_mut().purpose = Some(Purpose::Message);
        }
    }
}

/// The purpose of a text that came as a whole.
pub fn settle_purpose(model: &mut Model) {
    let raw = model.desk().field.raw();
    let purpose = match (raw.is_empty(), raw.starts_with('/') && !raw.starts_with("//")) {
        (true, _) => None,
        (false, true) => Some(Purpose::Command),
        (false, false) => {
            let question = model
                .current
                .and_then(|agent| model.roster.question_of(agent))
                .filter(|question| question.takes.text || question.takes.amount || question.takes.ward);
            Some(question.map_or(Purpose::Message, |question| Purpose::Answer(question.id)))
        }
    };
    model.desk_mut().purpose = purpose;
}

/// Keys while entries are offered. None when the key is for the text.
fn in_suggestions(model: &mut Model, key: KeyEvent) -> Option<Vec<Effect>> {
    let Some(Overlay::Suggest(suggest)) = &mut model.overlay else { return None };
    let count = suggest.entries.len();
    match key.code {
        KeyCode::Down => suggest.at = Some(suggest.at.map_or(0, |at| (at + 1) % count)),
        KeyCode::Up if suggest.at.is_some() => suggest.at = suggest.at.map(|at| (at + count - 1) % count),
        KeyCode::Enter if suggest.at.is_some() => complete::take(model),
        KeyCode::Esc => model.overlay = None,
        _ => return None,
    }
    Some(Vec::new())
}

// ---- Browsing ----

fn in_browse(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let (_, height) = draw::talk_size(model);
    let page = isize::try_from(height.saturating_sub(2).max(1)).unwrap_or(10);
    let chosen = model.desk().chosen;
    let pending_g = model.used.remove("pending g").is_some();
    match key.code {
        KeyCode::Esc if model.search.is_some() => {
            if let Some(search) = model.search.take() {
                model.desk_mut().place = search.back;
            }
            Vec::new()
        }
        KeyCode::Char(letter @ ('h' | 'm' | 'l' | 'w' | 'd' | 'c' | 's' | 't' | 'q')) if pending_g => {
            letter_of_prefix(model, letter)
        }
        KeyCode::Esc | KeyCode::Char('s' | 'i') => {
            model.focus = Focus::Text;
            model.search = None;
            model.desk_mut().chosen = None;
            Vec::new()
        }
        KeyCode::Char('g') if pending_g => act::to_begin(model),
        KeyCode::Char('g') => {
            model.used.insert("pending g".to_owned(), 1);
            Vec::new()
        }
        KeyCode::Char('G') | KeyCode::End => {
            act::to_end(model);
            model.desk_mut().chosen = None;
            act::choose_block(model, 0)
        }
        KeyCode::Char('j') | KeyCode::Down => act::choose_block(model, 1),
        KeyCode::Char('k') | KeyCode::Up => act::choose_block(model, -1),
        KeyCode::Char('J') => act::neighbour(model, true),
        KeyCode::Char('K') => act::neighbour(model, false),
        KeyCode::Char(' ') | KeyCode::PageDown => {
            model.desk_mut().chosen = None;
            act::scroll(model, page)
        }
        KeyCode::Char('b') | KeyCode::PageUp => {
            model.desk_mut().chosen = None;
            act::scroll(model, -page)
        }
        KeyCode::Enter => {
            if let Some(key) = chosen {
                act::fold(model, key);
            }
            Vec::new()
        }
        KeyCode::Char('E') => {
            act::fold_turn(model);
            Vec::new()
        }
        KeyCode::Char('y' | 'Y') => match chosen.map(|key| source_of(model, key)) {
            Some(source) if key.code == KeyCode::Char('Y') => vec![Effect::Copy(act::code_of(&source))],
            Some(source) => vec![Effect::Copy(source)],
            None => Vec::new(),
        },
        KeyCode::Char('v') => vec![Effect::Pager(act::transcript(model))],
        KeyCode::Char('/') => {
            act::begin_search(model);
            Vec::new()
        }
        KeyCode::Char('n') => {
            act::next_match(model, true);
            Vec::new()
        }
        KeyCode::Char('N') => {
            act::next_match(model, false);
            Vec::new()
        }
        KeyCode::Char('f') => {
            let at = chosen.map(|key| format!(" --at #{}", key.0)).unwrap_or_default();
            propose(model, &format!("/fork{at} "))
        }
        KeyCode::Char('X') => propose(model, "/stop"),
        KeyCode::Char('I') => propose(model, "/interrupt"),
        KeyCode::Char(':') => propose(model, "/"),
        KeyCode::Char('#') => {
            model.overlay = Some(Overlay::Goto(Field::default()));
            Vec::new()
        }
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            model.focus = Focus::Text;
            Vec::new()
        }
        KeyCode::Char(letter @ ('e' | 'o' | 'h' | 't' | 'q' | 'm' | 'l' | 'w' | 'd' | 'c' | 'a' | '?' | '1'..='9')) => {
            letter_of_prefix(model, letter)
        }
        _ => Vec::new(),
    }
}

fn source_of(model: &Model, key: Key) -> String {
    let (cells, _) = draw::talk_size(model);
    super::flow::Flow::new(model, cells).map(|flow| flow.source(key)).unwrap_or_default()
}

/// Puts a command on the bottom line. Enter carries it out.
fn propose(model: &mut Model, command: &str) -> Vec<Effect> {
    model.overlay = Some(Overlay::Propose(Field::of(command)));
    Vec::new()
}

fn in_search(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let Some(search) = &mut model.search else { return Vec::new() };
    match key.code {
        KeyCode::Esc => {
            let back = search.back;
            model.search = None;
            model.desk_mut().place = back;
            Vec::new()
        }
        KeyCode::Enter => {
            search.typing = false;
            if search.words.is_empty() {
                model.search = None;
            }
            Vec::new()
        }
        _ => {
            edit_key(&mut search.words, key);
            act::search(model)
        }
    }
}

// ---- Panels ----

fn in_tree(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let (rows, _) = draw::tree_rows(model);
    let agents: Vec<_> = rows
        .iter()
        .filter_map(|row| match row.key {
            draw::TreeKey::Agent(agent) => Some(agent),
            _ => None,
        })
        .collect();
    let at = model.tree_row.and_then(|row| agents.iter().position(|agent| *agent == row));
    let step = |by: isize| at.map_or(0, |at| at.saturating_add_signed(by)).min(agents.len().saturating_sub(1));
    match key.code {
        KeyCode::Char('j') | KeyCode::Down => {
            model.tree_row = agents.get(step(1)).copied();
            Vec::new()
        }
        KeyCode::Char('k') | KeyCode::Up => {
            model.tree_row = agents.get(step(-1)).copied();
            Vec::new()
        }
        KeyCode::Enter => match model.tree_row {
            Some(agent) => act::go(model, agent),
            None => Vec::new(),
        },
        KeyCode::Char(' ') => {
            if let Some(agent) = model.tree_row
                && !model.tree_folds.remove(&agent)
            {
                model.tree_folds.insert(agent);
            }
            Vec::new()
        }
        KeyCode::Char('f') => match model.tree_row {
            Some(agent) => act::fork(model, agent, None, None, None, None),
            None => Vec::new(),
        },
        KeyCode::Char('X') => match model.tree_row {
            Some(agent) => {
                let name = model.name(agent);
                propose(model, &format!("/stop {name}"))
            }
            None => Vec::new(),
        },
        _ => leave_or_letter(model, key),
    }
}

fn leave_or_letter(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => {
            model.focus = Focus::Text;
            // Where a panel has taken the place of the conversation, going back closes it.
            if model.size.0 < 100 {
                (model.side, model.side_closed) = (None, true);
            }
            Vec::new()
        }
        KeyCode::Char('c' | 'g') if control => {
            model.focus = Focus::Text;
            Vec::new()
        }
        KeyCode::Tab => {
            model.focus = match (model.focus, &model.side) {
                (Focus::Side, _) if draw::shows_tree(model) => Focus::Tree,
                (Focus::Tree, Some(_)) => Focus::Side,
                (focus, _) => focus,
            };
            Vec::new()
        }
        KeyCode::Char('i') => {
            model.focus = Focus::Text;
            Vec::new()
        }
        KeyCode::Char(':') => propose(model, "/"),
        KeyCode::Char(letter @ ('e' | 'o' | 'h' | 't' | 'q' | 'm' | 'l' | 'w' | 'd' | 'c' | 'a' | 'z' | '?')) => {
            letter_of_prefix(model, letter)
        }
        _ => Vec::new(),
    }
}

fn in_side(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    match &mut model.side {
        Some(Side::Home(_)) => in_home(model, key),
        Some(Side::Quest(panel)) => match key.code {
            KeyCode::Char('j') | KeyCode::Down => {
                let steps = model.roster.documents.get(&panel.quest).map_or(0, |document| document.steps.len());
                (panel.step, panel.ward) = ((panel.step + 1).min(steps.saturating_sub(1)), None);
                Vec::new()
            }
            KeyCode::Char('k') | KeyCode::Up => {
                (panel.step, panel.ward) = (panel.step.saturating_sub(1), None);
                Vec::new()
            }
            KeyCode::Enter => act::open_step(model),
            KeyCode::Char('r') => act::quest_command(model, "retry"),
            KeyCode::Char('p') => act::quest_command(model, "pause"),
            _ => leave_or_letter(model, key),
        },
        Some(Side::Sheet(_)) => in_sheet(model, key),
        None => leave_or_letter(model, key),
    }
}

fn in_home(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let count = model.roster.need_count();
    let at = act::chosen_need(model).map_or(0, |(at, _)| at);
    let chosen = act::chosen_need(model).map(|(_, need)| need.key());
    let agent = act::chosen_need(model).and_then(|(_, need)| need.agent());
    let Some(Side::Home(home)) = &mut model.side else { return Vec::new() };
    if home.typing {
        match key.code {
            KeyCode::Enter if !key.modifiers.contains(KeyModifiers::SHIFT) => return act::answer_chosen(model),
            KeyCode::Esc => home.typing = false,
            KeyCode::Up | KeyCode::Down => home.typing = false,
            _ => {
                let key_of = chosen.unwrap_or_default();
                edit_key(home.own.entry(key_of).or_default(), key);
            }
        }
        return Vec::new();
    }
    match key.code {
        KeyCode::Char(number @ '1'..='9') => {
            act::choose(model, number as usize - '0' as usize);
            Vec::new()
        }
        KeyCode::Enter => act::answer_chosen(model),
        KeyCode::Char('j') | KeyCode::Down | KeyCode::Char('k') | KeyCode::Up => {
            let down = matches!(key.code, KeyCode::Char('j') | KeyCode::Down);
            let to = if down { (at + 1).min(count.saturating_sub(1)) } else { at.saturating_sub(1) };
            let need = model.roster.needs().get(to).map(super::roster::Need::key);
            if let Some(Side::Home(home)) = &mut model.side {
                (home.chosen, home.choice) = (need, None);
            }
            Vec::new()
        }
        KeyCode::Char('s') => match agent {
            Some(agent) => act::go(model, agent),
            None => Vec::new(),
        },
        _ => leave_or_letter(model, key),
    }
}

fn in_sheet(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let upto = model.upto;
    let Some(Side::Sheet(sheet)) = &mut model.side else { return Vec::new() };
    let last = sheet.rows.len().saturating_sub(1);
    let is_log = sheet.kind == super::panel::SheetKind::Log;
    if sheet.filtering {
        match key.code {
            KeyCode::Enter | KeyCode::Esc => {
                sheet.filtering = false;
                if key.code == KeyCode::Esc {
                    sheet.filter = Field::default();
                }
                let of = sheet.agent.map(|agent| format!("&agent={agent}")).unwrap_or_default();
                let words = sheet.filter.whole();
                let words = if words.is_empty() { String::new() } else { format!("&words={}", escaped(&words)) };
                sheet.loading = true;
                let path = format!("/api/events.json?limit=200&before={}{of}{words}", upto.0 + 1);
                return vec![Effect::Get { tag: Tag::Sheet, path }];
            }
            _ => {
                edit_key(&mut sheet.filter, key);
                return Vec::new();
            }
        }
    }
    match key.code {
        KeyCode::Char('j') | KeyCode::Down => sheet.cursor = (sheet.cursor + 1).min(last),
        KeyCode::Char('k') | KeyCode::Up => sheet.cursor = sheet.cursor.min(last).saturating_sub(1),
        KeyCode::Char('G') | KeyCode::End => sheet.cursor = last,
        KeyCode::Home => sheet.cursor = 0,
        KeyCode::PageDown | KeyCode::Char(' ') => sheet.cursor = (sheet.cursor + 10).min(last),
        KeyCode::PageUp | KeyCode::Char('b') => sheet.cursor = sheet.cursor.saturating_sub(10),
        KeyCode::Char('/') if is_log => sheet.filtering = true,
        KeyCode::Char('#') if is_log => model.overlay = Some(Overlay::Goto(Field::default())),
        KeyCode::Char('A') if is_log => {
            sheet.agent = None;
            sheet.title = "Log of all agents".to_owned();
            sheet.loading = true;
            return vec![Effect::Get {
                tag: Tag::Sheet,
                path: format!("/api/events.json?limit=200&before={}", upto.0 + 1),
            }];
        }
        KeyCode::Char('c') if sheet.kind == super::panel::SheetKind::Mail && key.modifiers.is_empty() => {
            return propose(model, "/send ");
        }
        KeyCode::Enter => {
            let act = sheet.rows.get(sheet.cursor).and_then(|row| row.act.clone());
            let agent = sheet.agent;
            return match act {
                Some(SheetAct::ReadMail(id)) => {
                    vec![Effect::Post {
                        tag: Tag::Mail,
                        path: "/api/mail/human/read".into(),
                        body: json!({ "mail": id.0 }),
                    }]
                }
                Some(SheetAct::ShowEvent(id)) => {
                    vec![Effect::Get {
                        tag: Tag::Event,
                        path: format!("/api/events.json?limit=1&after={}", id.0.saturating_sub(1)),
                    }]
                }
                Some(SheetAct::ShowFile(file)) => match agent {
                    Some(agent) => {
                        let path = agent_path(&agent.to_string(), &format!("/changes?file={}", escaped(&file)));
                        vec![Effect::Get { tag: Tag::File(file), path }]
                    }
                    None => Vec::new(),
                },
                Some(SheetAct::Go(agent)) => act::go(model, agent),
                Some(SheetAct::Summon(seat)) => propose(model, &format!("/summon {seat}")),
                Some(SheetAct::Wake(seat)) => propose(model, &format!("/wake {seat}")),
                Some(SheetAct::Read { title, text }) => {
                    model.overlay = Some(Overlay::Reader(super::overlay::Reader { title, text, top: 0 }));
                    Vec::new()
                }
                None => Vec::new(),
            };
        }
        _ => return leave_or_letter(model, key),
    }
    Vec::new()
}

// ---- Overlays ----

fn in_overlay(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let is_out = key.code == KeyCode::Esc || (control && matches!(key.code, KeyCode::Char('g' | 'c')));
    let last_agents = finder::last_act(model);
    let Some(overlay) = &mut model.overlay else { return Vec::new() };
    match overlay {
        Overlay::Kill(ask) => match key.code {
            KeyCode::Char(number @ '1'..='3') => {
                let below = ask.cascade.as_ref().is_some_and(|preview| preview.killed.len() > 1);
                let number = number as usize - '1' as usize;
                if number < 2 || below {
                    ask.choice = number;
                }
                Vec::new()
            }
            KeyCode::Enter => act::kill(model),
            _ => {
                let name = ask.agent;
                model.overlay = None;
                model.say(format!("{} is kept.", model.name(name)));
                Vec::new()
            }
        },
        _ if is_out => {
            model.overlay = None;
            Vec::new()
        }
        Overlay::Finder(finder) => match key.code {
            KeyCode::Down => {
                finder.at += 1;
                Vec::new()
            }
            KeyCode::Up => {
                finder.at = finder.at.saturating_sub(1);
                Vec::new()
            }
            KeyCode::Char('n') if control => {
                finder.at += 1;
                Vec::new()
            }
            KeyCode::Char('p') if control => {
                finder.at = finder.at.saturating_sub(1);
                Vec::new()
            }
            KeyCode::Tab => {
                if let Some(Act::Go(agent)) = last_agents {
                    (finder.with, finder.at, finder.words) = (Some(agent), 0, Field::default());
                }
                Vec::new()
            }
            KeyCode::Enter => match last_agents {
                Some(act) => carry_out(model, act),
                None => Vec::new(),
            },
            _ => {
                edit_key(&mut finder.words, key);
                (finder.at, finder.events) = (0, None);
                let words = finder.words.whole();
                match words.chars().count() >= 2 {
                    true => vec![Effect::Get {
                        tag: Tag::Count(words.clone()),
                        path: format!("/api/events/count?words={}", escaped(&words)),
                    }],
                    false => Vec::new(),
                }
            }
        },
        Overlay::Help(help) => match key.code {
            KeyCode::Down => {
                help.at += 1;
                Vec::new()
            }
            KeyCode::Up => {
                help.at = help.at.saturating_sub(1);
                Vec::new()
            }
            KeyCode::PageDown => {
                (help.page, help.at) = (1, 0);
                Vec::new()
            }
            KeyCode::PageUp => {
                (help.page, help.at) = (0, 0);
                Vec::new()
            }
            KeyCode::Enter => match finder::help_act(help) {
                Some(act) => carry_out(model, act),
                None => Vec::new(),
            },
            _ => {
                edit_key(&mut help.words, key);
                help.at = 0;
                Vec::new()
            }
        },
        Overlay::Propose(field) => match key.code {
            KeyCode::Enter => {
                let command = field.whole();
                model.overlay = None;
                command::run_proposed(model, &command)
            }
            _ => {
                edit_key(field, key);
                if field.is_empty() {
                    model.overlay = None;
                }
                Vec::new()
            }
        },
        Overlay::Goto(field) => match key.code {
            KeyCode::Enter => {
                let digits: String = field.whole().chars().filter(char::is_ascii_digit).collect();
                model.overlay = None;
                match digits.parse() {
                    Ok(id) => act::goto(model, EventId(id)),
                    Err(_) => Vec::new(),
                }
            }
            _ => {
                edit_key(field, key);
                Vec::new()
            }
        },
        Overlay::Recall { words, at } => match key.code {
            KeyCode::Char('r') if control => {
                *at += 1;
                Vec::new()
            }
            KeyCode::Up => {
                *at += 1;
                Vec::new()
            }
            KeyCode::Down => {
                *at = at.saturating_sub(1);
                Vec::new()
            }
            KeyCode::Enter => {
                let (words, at) = (words.whole(), *at);
                let found = model.recall.search(&words, at + 1).get(at).map(|text| Field::of(text));
                model.overlay = None;
                if let Some(field) = found {
                    if !model.desk().field.is_empty() {
                        act::take_text(model);
                    }
                    model.desk_mut().field.set(&field);
                    settle_purpose(model);
                }
                Vec::new()
            }
            _ => {
                edit_key(words, key);
                *at = 0;
                Vec::new()
            }
        },
        Overlay::Reader(reader) => {
            let page = usize::from(model.size.1).saturating_sub(6).max(1);
            let lines = reader.text.lines().count();
            match key.code {
                KeyCode::Char('j') | KeyCode::Down => reader.top = (reader.top + 1).min(lines),
                KeyCode::Char('k') | KeyCode::Up => reader.top = reader.top.saturating_sub(1),
                KeyCode::Char(' ') | KeyCode::PageDown => reader.top = (reader.top + page).min(lines),
                KeyCode::Char('b') | KeyCode::PageUp => reader.top = reader.top.saturating_sub(page),
                KeyCode::Char('y') => return vec![Effect::Copy(reader.text.clone())],
                KeyCode::Char('v') => return vec![Effect::Pager(reader.text.clone())],
                KeyCode::Char('q' | 's' | 'i') => model.overlay = None,
                _ => {}
            }
            Vec::new()
        }
        Overlay::Suggest(_) => Vec::new(),
    }
}

/// Does what an entry of the finder or of the keys stands for.
fn carry_out(model: &mut Model, act: Act) -> Vec<Effect> {
    model.overlay = None;
    match act {
        Act::Go(agent) => act::go(model, agent),
        Act::Quest(quest) => act::open_quest(model, Some(quest)),
        Act::Log(words) => {
            let mut effects = act::open_sheet(model, super::panel::SheetKind::Log);
            if let Some(Side::Sheet(sheet)) = &mut model.side {
                (sheet.filter, sheet.agent) = (Field::of(&words), None);
                sheet.title = "Log of all agents".to_owned();
            }
            let path = format!("/api/events.json?limit=200&before={}&words={}", model.upto.0 + 1, escaped(&words));
            effects.clear();
            effects.push(Effect::Get { tag: Tag::Sheet, path });
            effects
        }
        Act::Propose(command) => propose(model, &command),
        Act::Key(letter) => letter_of_prefix(model, letter),
    }
}
