//! Fills the list panels from the daemon's answers.

use super::act;
use super::look::Ink;
use super::model::Model;
use super::panel::{Sheet, SheetAct, SheetKind, SheetRow, Side};
use super::roster::dollars;
use super::text;
use super::update::{Effect, Tag};
use super::words::counted;
use crate::http::{MailThreads, SeatList, SeenState, UsageView, WhyView};
use crate::worktree::Changes;
use hatchery_core::seat::{Button, Position, SeatState};
use hatchery_core::{Address, AgentId, EventId, Timestamp};
use serde_json::Value;

/// So wide is a fact beside its age.
const EVIDENCE_CELLS: usize = 40;

/// Puts an answer into the open list, if it is the answer to what that list has asked for.
pub fn fill(model: &mut Model, of: (SheetKind, Option<AgentId>), value: &Value) -> Vec<Effect> {
    let Some(Side::Sheet(sheet)) = &model.side else { return Vec::new() };
    if of != (sheet.kind, sheet.agent) {
        return Vec::new();
    }
    let (kind, agent) = (sheet.kind, sheet.agent);
    let name = agent.map(|agent| model.name(agent)).unwrap_or_default();
    let (title, rows) = match kind {
        SheetKind::Mail => mail(model, value),
        SheetKind::Log => {
            if let Some(Side::Sheet(sheet)) = &mut model.side {
                sheet.events = events_of(value);
            }
            return list_log(model, value);
        }
        SheetKind::Why => why(model, &name, value),
        SheetKind::Changes => changes(&name, value),
        SheetKind::Cost => cost(model, value),
        SheetKind::Seats => seats(value),
    };
    list(model, title, rows);
    Vec::new()
}

/// An earlier part of the log came, for a list that has room for it.
pub fn add_earlier(model: &mut Model, agent: Option<AgentId>, before: EventId, value: &Value) -> Vec<Effect> {
    let Some(Side::Sheet(sheet)) = &mut model.side else { return Vec::new() };
    if (sheet.kind, sheet.agent, sheet.goes_on) != (SheetKind::Log, agent, Some(before)) {
        return Vec::new();
    }
    let mut events = events_of(value);
    events.append(&mut sheet.events);
    sheet.events = events;
    list_log(model, value)
}

fn events_of(value: &Value) -> Vec<Value> {
    value["events"].as_array().cloned().unwrap_or_default()
}

/// Lists the events that were read. One answer of the daemon reaches only so far back: the search goes on until the list is full.
fn list_log(model: &mut Model, value: &Value) -> Vec<Effect> {
    let Some(Side::Sheet(sheet)) = &mut model.side else { return Vec::new() };
    let from = value["from"].as_u64().map(EventId).filter(|from| *from > EventId::START && value["more"] == true);
    sheet.goes_on = from.filter(|_| sheet.events.len() < act::LISTED_EVENTS).map(EventId::next);
    let Some(Side::Sheet(sheet)) = &model.side else { return Vec::new() };
    let (title, rows) = log(model, sheet);
    let next = sheet.goes_on.map(|before| Effect::Get {
        tag: Tag::MoreOfLog { agent: sheet.agent, before },
        path: act::log_path(sheet, before),
    });
    list(model, title, rows);
    if let Some(Side::Sheet(sheet)) = &mut model.side {
        sheet.loading = next.is_some();
    }
    next.into_iter().collect()
}

/// Puts rows into the open list.
fn list(model: &mut Model, title: String, rows: Vec<SheetRow>) {
    if let Some(Side::Sheet(sheet)) = &mut model.side {
        let kind = sheet.kind;
        let last = rows.len().saturating_sub(1);
        let was_last = sheet.cursor + 1 >= sheet.rows.len();
        let chosen = sheet.rows.get(sheet.cursor).and_then(|row| row.act.clone());
        // The same row stays chosen when it is read again. At the end of the log, one stays at the end.
        let same = chosen.and_then(|act| rows.iter().position(|row| row.act.as_ref() == Some(&act)));
        sheet.cursor = match (kind, same) {
            (SheetKind::Log, _) if was_last => last,
            (_, Some(same)) => same,
            (_, None) => sheet.cursor.min(last),
        };
        (sheet.title, sheet.rows, sheet.loading) = (title, rows, false);
    }
}

fn mail(model: &Model, value: &Value) -> (String, Vec<SheetRow>) {
    let Ok(threads) = serde_json::from_value::<MailThreads>(value.clone()) else { return unreadable() };
    let who = |address: Address| match address {
        Address::Human => "you".to_owned(),
        Address::Agent(agent) => model.name(agent),
    };
    let mut rows = Vec::new();
    let (unread, read): (Vec<_>, Vec<_>) = threads
        .mail
        .into_iter()
        .rev()
        .partition(|mail| mail.mail.to == Address::Human && mail.state != SeenState::Read);
    let count = unread.len();
    for seen in unread {
        rows.push(SheetRow {
            // A body is read by Enter, never by looking.
            left: format!("● {}", who(seen.mail.from)),
            right: text::age(model.now.0 - seen.mail.sent.0),
            ink: Ink::Bold,
            act: Some(SheetAct::ReadMail { id: seen.mail.id, from: seen.mail.from }),
        });
    }
    for seen in read {
        let line = text::clean(seen.mail.body.lines().next().unwrap_or_default()).into_owned();
        let title = format!("{} to {}", who(seen.mail.from), who(seen.mail.to));
        rows.push(SheetRow {
            left: format!("  {title}: {line}"),
            right: text::age(model.now.0 - seen.mail.sent.0),
            ink: Ink::Plain,
            act: Some(SheetAct::Read { title, text: seen.mail.body, from: Some(seen.mail.from) }),
        });
    }
    let title = match (count, rows.is_empty()) {
        (_, true) => "No mail. Agents write to `human`.".to_owned(),
        (0, false) => "No unread mail".to_owned(),
        (count, false) => format!("{} for you, unread", counted(count, "mail")),
    };
    (title, rows)
}

fn log(model: &Model, sheet: &Sheet) -> (String, Vec<SheetRow>) {
    let events = &sheet.events;
    let rows: Vec<SheetRow> = events
        .iter()
        .map(|event| {
            let id = EventId(event["id"].as_u64().unwrap_or_default());
            let at = Timestamp(event["ts"].as_i64().unwrap_or_default());
            let kind = event["type"].as_str().unwrap_or_default().replace('_', " ");
            let whose = event["agent"].as_str().and_then(|agent| agent.parse().ok()).map(|agent| model.name(agent));
            let whose = whose.filter(|_| sheet.agent.is_none()).map(|name| format!("  {name}")).unwrap_or_default();
            let detail = ["content", "text", "detail", "body", "name", "answer"]
                .iter()
                .find_map(|name| event[*name].as_str())
                .unwrap_or_default();
            let detail = match event["kind"].as_str() {
                Some("tool_call") => {
                    let tool = super::tool::Tool::read(detail);
                    format!("{} {}", tool.name, tool.target())
                }
                Some("tool_result") => super::tool::ToolOutcome::read(detail, at).text,
                _ => detail.to_owned(),
            };
            let detail = text::without_escapes(&detail);
            let detail = text::clean(detail.lines().next().unwrap_or_default()).into_owned();
            let gap = if detail.is_empty() { "" } else { "  " };
            SheetRow {
                left: format!("{} {kind}{whose}{gap}{detail}", super::flow::number(id)),
                right: text::clock(at, model.offset_s),
                ink: Ink::Plain,
                act: Some(SheetAct::ShowEvent(id)),
            }
        })
        .collect();
    let rows = with_notices(model, rows, events);
    let of =
        sheet.agent.map(|agent| format!(" of {}", model.name(agent))).unwrap_or_else(|| " of all agents".to_owned());
    if let Some(before) = sheet.goes_on {
        let count = text::thousands(u64::try_from(events.len()).unwrap_or(u64::MAX));
        return (format!("{count} found · searched to #{}", text::thousands(before.0)), rows);
    }
    let title = match rows.is_empty() {
        true => format!("No match. {} events are there.", text::thousands(model.upto.0)),
        false if events.len() == 1 => format!("The last event{of}"),
        false => format!("The last {}{of}", counted(events.len(), "event")),
    };
    (title, rows)
}

/// Puts what was said on the bottom line between the events of the same time. It is no part of the log.
fn with_notices(model: &Model, rows: Vec<SheetRow>, events: &[Value]) -> Vec<SheetRow> {
    let begin = events.first().and_then(|event| event["ts"].as_i64());
    let mut notices = model.notices.iter().filter(|(at, _)| begin.is_some_and(|begin| at.0 >= begin)).peekable();
    let row = |(at, said): &(Timestamp, String)| SheetRow {
        left: format!("only here: {}", text::clean(said)),
        right: text::clock(*at, model.offset_s),
        ink: Ink::Dim,
        act: Some(SheetAct::Read {
            title: format!("Only here, at {}", text::clock(*at, model.offset_s)),
            text: said.clone(),
            from: None,
        }),
    };
    let mut all = Vec::with_capacity(rows.len());
    for (event, of_event) in events.iter().zip(rows) {
        let at = event["ts"].as_i64().unwrap_or_default();
        while let Some(notice) = notices.next_if(|(said, _)| said.0 < at) {
            all.push(row(notice));
        }
        all.push(of_event);
    }
    all.extend(notices.map(row));
    all
}

fn why(model: &Model, name: &str, value: &Value) -> (String, Vec<SheetRow>) {
    let Ok(why) = serde_json::from_value::<WhyView>(value.clone()) else { return unreadable() };
    let mut evidence = why.evidence;
    evidence.sort_by_key(|it| std::cmp::Reverse(it.at));
    let mut rows = Vec::new();
    for it in evidence {
        let age = match it.at > why.now {
            true => format!("at {}", text::clock(it.at, model.offset_s)),
            false => format!("{} ago", text::age(why.now.0 - it.at.0)),
        };
        let mut lines = wrapped(model, &it.what, EVIDENCE_CELLS).into_iter();
        rows.push(SheetRow { right: age, ..SheetRow::plain(lines.next().unwrap_or_default()) });
        rows.extend(lines.map(SheetRow::plain));
    }
    (format!("{name} is {}", why.state.word()), rows)
}

fn changes(name: &str, value: &Value) -> (String, Vec<SheetRow>) {
    let Ok(changes) = serde_json::from_value::<Changes>(value.clone()) else { return unreadable() };
    let count = changes.files.len();
    let files = changes.files.iter().map(|file| SheetRow {
        left: text::clean(&file.path).into_owned(),
        right: if file.binary { "binary".to_owned() } else { format!("+{} −{}", file.added, file.removed) },
        ink: Ink::Plain,
        act: Some(SheetAct::ShowFile(file.path.clone())),
    });
    let sum = format!("{}, +{} −{}", counted(count, "file"), changes.added, changes.removed);
    // In a folder that several agents use, it is not recorded which agent changed what.
    let about = match changes.shared {
        true => vec![
            format!("{name} has no folder of its own."),
            "Others and you change the same files.".to_owned(),
            String::new(),
        ],
        false => Vec::new(),
    };
    let title = match (count, changes.shared) {
        (0, true) => "Nothing in the shared folder is uncommitted".to_owned(),
        (0, false) => format!("{name} has changed nothing"),
        (_, true) => format!("Not committed in the shared folder: {sum}"),
        (_, false) => format!("{name}: {sum}"),
    };
    let about = about.into_iter().map(|row| SheetRow { ink: Ink::Dim, ..SheetRow::plain(row) });
    (title, about.chain(files).collect())
}

fn cost(model: &Model, value: &Value) -> (String, Vec<SheetRow>) {
    let Ok(usage) = serde_json::from_value::<UsageView>(value.clone()) else { return unreadable() };
    let mut rows = Vec::new();
    let limit = model.roster.budgets.iter().find(|budget| budget.agent.is_none());
    let of = limit.map(|budget| format!(" of {} a day", dollars(budget.limit))).unwrap_or_default();
    rows.push(SheetRow { right: format!("{}{of}", dollars(model.roster.today.cost)), ..SheetRow::plain("today") });
    rows.push(SheetRow { right: dollars(usage.total.cost), ..SheetRow::plain("in all") });
    rows.push(SheetRow::plain(""));
    let mut agents = usage.agents;
    agents.sort_by_key(|it| std::cmp::Reverse(it.spent.cost.nanodollars));
    for it in agents {
        rows.push(SheetRow {
            left: model.name(it.agent),
            right: format!("{}k tokens  {}", it.spent.tokens() / 1_000, dollars(it.spent.cost)),
            ink: Ink::Plain,
            act: Some(SheetAct::Go(it.agent)),
        });
    }
    (format!("{} in all, {} today", dollars(usage.total.cost), dollars(model.roster.today.cost)), rows)
}

/// The nine seats, and the one button that there is for all of them.
fn seats(value: &Value) -> (String, Vec<SheetRow>) {
    let Ok(list) = serde_json::from_value::<SeatList>(value.clone()) else { return unreadable() };
    let go = |agent: Option<AgentId>| agent.map(SheetAct::Go);
    let row = |position: Position| {
        let number = position.number();
        let seat = list.seats.iter().find(|seat| seat.grid_position == number);
        let (name, state, act) = match seat {
            _ if position == Position::LEAD => match (list.lead, list.lead_alive) {
                (None, _) => ("lead", "not started", None),
                (lead, true) => ("lead", "alive", go(lead)),
                (lead, false) => ("lead", "sleeping", go(lead)),
            },
            None => ("nobody", "empty", None),
            Some(seat) => {
                let state = if seat.waking { "waking" } else { seat.status.as_str() };
                (seat.name.as_deref().unwrap_or("nobody"), state, go(seat.agent))
            }
        };
        let left = format!("{number}  {}  {state}", text::padded(&text::clean(name), 20));
        SheetRow { act, ..SheetRow::plain(left) }
    };
    let command = |words: &str, left: &str| SheetRow {
        ink: Ink::Accent,
        act: Some(SheetAct::Propose(words.to_owned())),
        ..SheetRow::plain(left)
    };
    let asleep = list.seats.iter().filter(|seat| seat.status == SeatState::ASLEEP.word());
    let asleep: Vec<String> = asleep.map(|seat| seat.grid_position.to_string()).collect();
    let (title, button) = match list.button {
        Button::Summon => ("Nobody is in a seat", Some(command("/summon", "SUMMON  fills the seats"))),
        Button::Wake => {
            let words = format!("/wake {}", asleep.join(" "));
            ("Some seats sleep", Some(command(&words, "WAKE  fills the seats that sleep")))
        }
        Button::Waking => ("Some seats are being filled", None),
        Button::None => ("All agents in seats are alive", None),
    };
    let button = button.into_iter().flat_map(|button| [button, SheetRow::plain("")]);
    (title.to_owned(), button.chain(Position::all().map(row)).collect())
}

/// A sentence in rows. In the plain mode it is one.
pub fn wrapped(model: &Model, sentence: &str, cells: usize) -> Vec<String> {
    text::wrap(&text::clean(sentence), if model.from_end { usize::MAX } else { cells })
}

fn unreadable() -> (String, Vec<SheetRow>) {
    ("The daemon's answer cannot be read. It may be of another version.".to_owned(), Vec::new())
}
