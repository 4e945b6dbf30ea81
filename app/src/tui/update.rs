//! What changes the model: keys, events of the log, answers of the daemon, the clock. Pure: what is to be done outside is returned as
//! effects.

mod answer;
mod effect;
mod message;

pub use effect::{Attach, Attached, Effect};
pub use message::{Failed, Msg, Tag, words};

use super::act;
use super::conversation::Inherited;
use super::feed::words_of;
use super::field::Field;
use super::keys;
use super::model::{Connection, Model, ScrollPosition};
use super::panel::Side;
use super::roster::Need;
use super::window::{Window, WindowPart};
use crate::http::Overview;
use crate::quest_document::QuestWord;
use hatchery_core::event::{AgentEvent, MailEvent, MessageEvent, QuestionEvent, RunEvent};
use hatchery_core::output::Output;
use hatchery_core::seat::shown;
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, Stream, Timestamp};
use std::collections::BTreeSet;

pub fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    let may_show = matches!(msg, Msg::Key(_) | Msg::Mouse(_) | Msg::Overview(_) | Msg::Quest(_));
    let mut effects = changed(model, msg);
    if may_show {
        effects.extend(act::wanted_changes(model));
    }
    effects
}

fn changed(model: &mut Model, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) => {
            // What a key has said is over with the next key.
            if model.notice.as_ref().is_some_and(|notice| notice.of_key) && !model.leaving {
                model.notice = None;
            }
            by_hand(model, |model| keys::key(model, key))
        }
        Msg::Paste(text) => keys::paste(model, &text),
        Msg::TypedAtOnce(text) => {
            let effects = keys::paste(model, text.trim_end_matches('\n'));
            if text.ends_with('\n') {
                model.say("This came at once, like a paste, so it was not sent. Enter sends it.");
            }
            effects
        }
        Msg::Mouse(event) => by_hand(model, |model| keys::mouse(model, event)),
        Msg::Resize(width, height) => {
            model.size = (width, height);
            Vec::new()
        }
        Msg::Tick(now) => tick(model, now),
        Msg::Overview(overview) => overview_came(model, *overview),
        Msg::Quest(document) => {
            let before = need_keys(model);
            model.roster.documents.insert(document.id, *document);
            act::settle_step(model);
            // A failed step is known with the document of its quest.
            needs_came(model, &before).into_iter().collect()
        }
        Msg::Agent(view) => {
            model.roster.take_agent(*view);
            act::arrive(model)
        }
        Msg::Agents(views) => {
            model.roster.take_others(views);
            Vec::new()
        }
        Msg::Events(records) => records.iter().flat_map(|record| event(model, record)).collect(),
        Msg::Window { agent, part, result: Ok(came) } => window(model, agent, part, came),
        Msg::Window { agent, part: _, result: Err(why) } => {
            if let Some(talk) = model.talks.get_mut(&agent) {
                talk.not_read();
            }
            if model.current == Some(agent) && model.going.take().is_some() {
                model.say(words(&why));
            }
            Vec::new()
        }
        Msg::Whole { agent, what, result } => act::whole(model, agent, what, result),
        Msg::NotInherited(agent) => {
            if let Some(talk) = model.talks.get_mut(&agent) {
                talk.inheriting = false;
            }
            Vec::new()
        }
        Msg::Inherited { agent, from, forked, count, ancestors } => {
            if let Some(talk) = model.talks.get_mut(&agent) {
                // Where there is nothing, it need not be asked for again.
                talk.inherited = Inherited::of(from, forked, count, &ancestors, |it| model.roster.has_seat(it));
            }
            Vec::new()
        }
        Msg::Up => {
            model.link = Connection::Up;
            let mut effects = vec![Effect::Refresh];
            // What could not be read is read now.
            effects.extend(act::come_back(model));
            effects
        }
        Msg::Unreached(why) => {
            let words = words_of(&why.message, why.hint.as_deref());
            model.say(format!("The daemon cannot be reached: {words}"));
            model.unreached = Some(words);
            Vec::new()
        }
        Msg::Trouble(trouble) => {
            model.roster.trouble = trouble;
            Vec::new()
        }
        Msg::Away { since, again } => {
            model.link = Connection::Away { since, again };
            // What is under way may arrive: a daemon that hangs reads it when it goes on.
            for outgoing in &mut model.outbox {
                outgoing.doubtful |= std::mem::take(&mut outgoing.sending);
            }
            Vec::new()
        }
        Msg::Answer { tag, result } => answer::take(model, tag, result),
        Msg::Live { agent, piece } => {
            super::live::take(model, agent, piece);
            Vec::new()
        }
        Msg::Attached(attached) => {
            act::attached(model, attached);
            Vec::new()
        }
        Msg::Edited(text) => {
            let was_empty = model.desk().field.is_empty();
            model.desk_mut().field.set(&Field::of_any(text.trim_end_matches('\n')));
            keys::settle_purpose(model, was_empty);
            Vec::new()
        }
    }
}

/// What was said before does not go along to another agent or another panel.
fn by_hand(model: &mut Model, does: impl FnOnce(&mut Model) -> Vec<Effect>) -> Vec<Effect> {
    let place = |model: &Model| (model.current, model.side.as_ref().map(Side::name));
    let before = (place(model), model.said);
    let effects = does(model);
    if model.said > before.1 {
        model.notice.iter_mut().for_each(|notice| notice.of_key = true);
    } else if place(model) != before.0 {
        model.notice = None;
    }
    act::keep_own_words(model);
    effects
}

fn tick(model: &mut Model, now: Timestamp) -> Vec<Effect> {
    model.now = now;
    if model.notice.as_ref().is_some_and(|notice| notice.until <= now) {
        model.notice = None;
    }
    fold_out_of_sight(model);
    act::follow_sheet(model)
}

/// Groups of tools that are above the screen are folded. What is in sight keeps its height.
fn fold_out_of_sight(model: &mut Model) {
    let (cells, height) = super::draw::talk_size(model);
    let Some(top) =
        super::flow::Flow::new(model, cells).and_then(|flow| flow.visible(height).first().map(|row| row.item))
    else {
        return;
    };
    let grouped =
        model.talk().and_then(|talk| talk.blocks().iter().rev().find(|block| block.id < top.0)).map(|block| block.id);
    if let Some(grouped) = grouped {
        // The tools around the first row in sight are one group with those above: leave the group as it is.
        let desk = model.desk_mut();
        if desk.place == ScrollPosition::End {
            desk.grouped = desk.grouped.max(grouped);
        }
    }
}

fn overview_came(model: &mut Model, overview: Overview) -> Vec<Effect> {
    let first = model.link == Connection::Opening || model.project.is_empty();
    let needed_before = need_keys(model);
    model.project = overview.project.rsplit('/').next().unwrap_or_default().to_owned();
    // What was said about a daemon that is away is over.
    if matches!(model.link, Connection::Away { .. }) {
        model.notice = None;
    }
    (model.link, model.unreached) = (Connection::Up, None);
    if model.upto == EventId::START {
        model.upto = overview.head;
    }
    model.roster.take(overview);
    act::keep_own_words(model);
    act::resolve_wanted(model);
    let mut effects = act::wanted_quests(model);
    if model.current.is_none() {
        effects.extend(act::open_first(model));
    } else if let Some(current) = model.current {
        effects.extend(act::load(model, current));
    }
    if first && model.size.0 >= 160 && model.side.is_none() && !model.side_closed {
        model.side = Some(Side::Home(super::panel::Home::default()));
    }
    if !first {
        effects.extend(needs_came(model, &needed_before));
    }
    if first && let Some(Side::Sheet(sheet)) = &mut model.side {
        // It was open when the terminal was left.
        sheet.agent = model.current;
        effects.extend(act::read_sheet(model));
    }
    effects.extend(act::follow_sheet(model));
    effects.extend(act::flush(model));
    effects.extend(act::arrive(model));
    effects
}

fn need_keys(model: &Model) -> BTreeSet<String> {
    model.roster.needs().iter().map(Need::key).collect()
}

/// Once for each need that came up, also when another one is gone. That an agent asks is told with its event.
fn needs_came(model: &mut Model, before: &BTreeSet<String>) -> Option<Effect> {
    let needs = model.roster.needs();
    let is_new = |need: &&Need<'_>| !before.contains(&need.key()) && need.since() >= model.began;
    let mut new = needs.iter().filter(is_new).peekable();
    new.peek()?;
    let failed = new.find_map(|need| match need {
        Need::FailedStep { quest, step } => Some(format!("Step {} has failed · ^X a", quest.steps[*step].id)),
        Need::Question(_) => None,
    });
    if let Some(failed) = failed.filter(|_| !model.from_end) {
        model.say(failed);
    }
    Some(Effect::Bell)
}

/// Whether this is the whole of a text that was being written.
fn begins_with(event: &Event, written: &str) -> bool {
    let Event::Message(MessageEvent::Added { content, .. }) = event else { return false };
    !written.is_empty() && (content.starts_with(written) || shown(content).starts_with(written))
}

/// Whether what an agent was writing is whole with this, or will never be.
fn ends_writing(event: &Event) -> bool {
    let Event::Run { what, .. } = event else { return false };
    match what {
        RunEvent::OutputNoted { output } => matches!(output, Output::Thinking { .. }),
        RunEvent::TurnEnded { .. } | RunEvent::Ended { .. } | RunEvent::Crashed { .. } => true,
        _ => false,
    }
}

/// One event of the log. Each is applied once: the feed gives them in order, and a conversation refuses what it has.
fn event(model: &mut Model, record: &Record) -> Vec<Effect> {
    let mut effects = Vec::new();
    if record.id <= model.upto {
        return effects;
    }
    model.upto = record.id;
    let about = whose(&record.event);
    act::touch_sheet(model, &record.event, about);
    if let Some(agent) = about {
        let is_current = Some(agent) == model.current;
        let counts = matches!(
            &record.event,
            Event::Message(MessageEvent::Added { kind: MessageKind::Assistant | MessageKind::ToolCall, .. })
        );
        let speaks = matches!(&record.event, Event::Message(_) | Event::Run { .. });
        if speaks {
            model.roster.hear(agent, record.ts, is_current, counts);
        }
        // The log may be behind the pieces: what happened before a text was begun does not end it.
        let is_later = model
            .partial
            .get(&agent)
            .is_some_and(|partial| record.ts > partial.since || begins_with(&record.event, partial.text.trim_end()));
        if is_later && (counts || ends_writing(&record.event)) {
            model.partial.remove(&agent);
        }
        let reads = model.reads_at(agent);
        if let Some(talk) = model.talks.get_mut(&agent) {
            talk.append(record);
            talk.leave_out(reads);
        }
        if is_current && model.desk().place == ScrollPosition::End {
            model.desk_mut().seen = record.id;
        }
    }
    if let Event::Message(MessageEvent::Added { agent, kind: MessageKind::User, content, .. }) = &record.event {
        act::arrived(model, *agent, record.id, content);
    }
    match &record.event {
        Event::Agent { agent, what: AgentEvent::Created { .. } } => effects.push(Effect::Agent(*agent)),
        Event::Question { agent, what: QuestionEvent::Asked { .. } } => {
            let name = model.name(*agent);
            match (Some(*agent) == model.current, model.is_first_time("asked")) {
                (_, true) => {
                    model.say(format!("{name} asks you. ^X a opens its question: a number chooses, Enter answers."))
                }
                (false, false) => model.say(format!("{name} asks you · ^X e")),
                (true, false) => {}
            }
        }
        Event::Question { what: QuestionEvent::Answered { question, .. }, .. } => {
            model.answered = Some((*question, record.ts));
        }
        Event::Mail(MailEvent::Sent { to: hatchery_core::Address::Human, from, .. }) => {
            let name = match from {
                hatchery_core::Address::Agent(agent) => model.name(*agent),
                hatchery_core::Address::Human => "you".to_owned(),
            };
            model.say(format!("{name} wrote to you · ^X m"));
        }
        _ => {}
    }
    effects
}

fn whose(event: &Event) -> Option<AgentId> {
    match event {
        Event::Mail(MailEvent::Sent { to: hatchery_core::Address::Agent(agent), .. }) => return Some(*agent),
        Event::Mail(MailEvent::Sent { from: hatchery_core::Address::Agent(agent), .. }) => return Some(*agent),
        _ => {}
    }
    match event.stream() {
        Stream::Agent(agent) => Some(agent),
        _ => None,
    }
}

fn window(model: &mut Model, agent: AgentId, part: WindowPart, came: Window) -> Vec<Effect> {
    let reads = model.reads_at(agent);
    let Some(talk) = model.talks.get_mut(&agent) else { return Vec::new() };
    let is_first = !talk.is_read;
    let first = came.records.first().map(|record| record.id);
    talk.take(part, came);
    if reads.is_some() {
        talk.leave_out(reads);
    }
    let upto = talk.upto();
    let desk = model.desks.entry(agent).or_default();
    if is_first {
        desk.grouped = desk.grouped.max(upto);
        desk.come_back(talk);
        if desk.place == ScrollPosition::End {
            desk.seen = desk.seen.max(upto);
        }
    } else if let Some(first) = first.filter(|_| matches!(part, WindowPart::Before(_))) {
        desk.grouped = desk.grouped.max(first);
    }
    if model.current != Some(agent) {
        return Vec::new();
    }
    let effects = act::go_on(model);
    if effects.is_empty() { act::come_back(model) } else { effects }
}

/// Whether the documents of quests are needed: only those have failed steps.
pub fn is_watched(model: &Model, quest: &crate::http::QuestLine) -> bool {
    let in_panel = matches!(&model.side, Some(Side::Quest(panel)) if panel.quest == quest.id);
    in_panel || (quest.state == QuestWord::Open && quest.failed > 0)
}
