//! What keys and commands lead to: switching, saying, forking, opening panels. Each changes the model and returns what is to be done
//! outside.

use super::command;
use super::conversation::Kind;
use super::draw;
use super::field::Field;
use super::flow::Flow;
use super::model::{AwaitedFork, Focus, Key, Link, Model, Outgoing, Place, Purpose, Search};
use super::overlay::Overlay;
use super::panel::{Answer, Home, QuestPanel, Sheet, SheetKind, Side, choices};
use super::roster::{Need, State};
use super::update::{Effect, Failed, Tag, is_watched, words};
use crate::client::paths::{agent_path, escaped, quest_path, step_path};
use hatchery_core::quest::Status;
use hatchery_core::{AgentId, EventId, QuestId, Timestamp};
use serde_json::{Value, json};

/// So many events are searched in one request: what is nearer to the end is found from there.
const FAR: u64 = 20_000;
/// How long a panel must have been on the screen before a number in it answers something.
const READABLE_MS: i64 = 300;

// ---- Switching ----

/// Puts an agent in front, in one frame.
pub fn go(model: &mut Model, agent: AgentId) -> Vec<Effect> {
    if model.current == Some(agent) {
        model.focus = Focus::Text;
        return Vec::new();
    }
    let kept = model.current.filter(|_| !model.desk().field.is_empty()).map(|before| model.name(before));
    model.visit(agent);
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

/// Reads the last part of a conversation, unless it is there.
pub fn load(model: &mut Model, agent: AgentId) -> Vec<Effect> {
    let Some(talk) = model.talks.get_mut(&agent) else { return Vec::new() };
    let mut effects = Vec::new();
    if !talk.is_read && !talk.loading {
        talk.loading = true;
        // Where an agent was last heard long ago, the search begins there and not at the end of the log.
        let last = model.roster.agents.get(&agent).and_then(|it| it.view.last_message);
        let before = last.map(|last| EventId(last.0 + FAR)).filter(|far| *far < model.upto);
        effects.push(Effect::Load { agent, before });
    }
    if talk.inherited.is_none()
        && let Some(view) = model.roster.agents.get(&agent).map(|it| &it.view)
        && let (Some(from), Some(upto)) = (view.forked_from, view.fork_point)
        && model.roster.root() != Some(from)
    {
        let few = model.roster.agents.get(&from).is_none_or(|it| it.view.messages < 50_000);
        effects.push(Effect::LoadInherited { agent, from, upto, forked: view.created, count: few });
    }
    effects
}

pub fn load_earlier(model: &mut Model, agent: AgentId) -> Vec<Effect> {
    let Some(talk) = model.talks.get_mut(&agent) else { return Vec::new() };
    if talk.loading || !talk.more || talk.from == EventId::START {
        return Vec::new();
    }
    talk.loading = true;
    vec![Effect::Load { agent, before: Some(EventId(talk.from.0 + 1)) }]
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

// ---- Your text ----

/// Enter in your text.
pub fn send(model: &mut Model) -> Vec<Effect> {
    let desk = model.desk();
    if desk.field.whole().trim().is_empty() {
        return Vec::new();
    }
    let purpose = desk.purpose.unwrap_or(Purpose::Message);
    let whole = desk.field.whole();
    match purpose {
        Purpose::Command => command::run(model, &whole),
        Purpose::Answer(question) => {
            if !model.roster.questions.iter().any(|it| it.id == question) {
                model.say(format!(
                    "#{} is answered already. Your words are still here; Enter says them.",
                    super::text::thousands(question.0)
                ));
                model.desk_mut().purpose = Some(Purpose::Message);
                return Vec::new();
            }
            let field = take_text(model);
            let need = format!("q{question}");
            model.say("Sending …");
            vec![answer_effect(question, need, field.whole())]
        }
        Purpose::Message => {
            let field = take_text(model);
            match model.current {
                Some(agent) => say_to(model, agent, field),
                None => {
                    model.say("An agent is started …");
                    vec![Effect::Post {
                        tag: Tag::Run(whole.clone()),
                        path: "/api/runs".into(),
                        body: json!({ "prompt": whole }),
                    }]
                }
            }
        }
    }
}

/// Takes the text out of the field and keeps it in the history.
pub fn take_text(model: &mut Model) -> Field {
    let agent = model.current;
    let desk = model.desk_mut();
    desk.purpose = None;
    let field = desk.field.take();
    let shown = if field.raw().len() == field.len() { field.whole() } else { String::new() };
    model.recall.keep(agent, &shown);
    model.overlay = None;
    field
}

/// Says something to an agent, or keeps it until the daemon is back.
pub fn say_to(model: &mut Model, agent: AgentId, mut field: Field) -> Vec<Effect> {
    if field.raw().starts_with("//") {
        let text = field.whole();
        field = Field::of(&text[1..]);
    }
    if model.roster.agents.get(&agent).is_some_and(|it| model.roster.state(it) == State::Dead) {
        let prompt = field.whole();
        return fork(model, agent, None, None, Some(prompt), Some(field));
    }
    let number = model.next_number;
    model.next_number += 1;
    model.outbox.push(Outgoing {
        number,
        agent,
        field,
        at: model.now,
        sending: false,
        doubtful: false,
        after: model.upto,
        event: None,
    });
    if Some(agent) == model.current {
        model.desk_mut().place = Place::End;
    }
    flush(model)
}

/// Sends what waits, one text of each agent at a time, in order. Nothing is sent before the log is read up to the daemon's word: what
/// is doubtful may be in it.
pub fn flush(model: &mut Model) -> Vec<Effect> {
    if model.link != Link::Up || model.upto < model.roster.head {
        return Vec::new();
    }
    let mut busy: Vec<AgentId> = Vec::new();
    let mut effects = Vec::new();
    for outgoing in &mut model.outbox {
        if busy.contains(&outgoing.agent) {
            continue;
        }
        busy.push(outgoing.agent);
        if outgoing.sending || outgoing.event.is_some() {
            continue;
        }
        outgoing.sending = true;
        outgoing.doubtful = false;
        outgoing.after = model.upto;
        let path = agent_path(&outgoing.agent.to_string(), "/say");
        effects.push(Effect::Post {
            tag: Tag::Say(outgoing.number),
            path,
            body: json!({ "text": outgoing.field.whole() }),
        });
    }
    effects
}

/// The daemon's answer to something that was said.
pub fn said(model: &mut Model, number: u64, result: Result<Value, Failed>) -> Vec<Effect> {
    let Some(at) = model.outbox.iter().position(|it| it.number == number) else { return Vec::new() };
    match result {
        Ok(value) => {
            let events = value["events"].as_array().map(Vec::as_slice).unwrap_or_default();
            let message =
                events.iter().find(|event| event["type"] == "message_added").and_then(|event| event["id"].as_u64());
            let id = message.map_or(EventId::START, EventId);
            let agent = model.outbox[at].agent;
            let shown = model.talks.get(&agent).is_some_and(|talk| talk.upto() >= id || !talk.is_read);
            match model.upto >= id || shown {
                true => drop(model.outbox.remove(at)),
                false => (model.outbox[at].event, model.outbox[at].sending) = (Some(id), true),
            }
            flush(model)
        }
        Err(Failed::Away { sent }) => {
            let outgoing = &mut model.outbox[at];
            (outgoing.sending, outgoing.doubtful) = (false, outgoing.doubtful || sent);
            Vec::new()
        }
        Err(why) => {
            let outgoing = model.outbox.remove(at);
            model.say(words(&why));
            give_back_to(model, outgoing.agent, &outgoing.field);
            flush(model)
        }
    }
}

/// A message is in the log: it is not waited for any more.
pub fn arrived(model: &mut Model, agent: AgentId, id: EventId, content: &str) {
    let is_it = |it: &Outgoing| {
        it.agent == agent
            && (it.event == Some(id) || ((it.sending || it.doubtful) && it.after < id && it.field.whole() == content))
    };
    if let Some(at) = model.outbox.iter().position(is_it) {
        model.outbox.remove(at);
    }
}

/// Text that was refused is in the field again, or in the history when something else is being typed.
pub fn give_back(model: &mut Model, field: &Field) {
    match model.current {
        Some(agent) => give_back_to(model, agent, field),
        None => model.front.field.set(field),
    }
}

fn give_back_to(model: &mut Model, agent: AgentId, field: &Field) {
    let desk = model.desks.entry(agent).or_default();
    match desk.field.is_empty() {
        true => {
            desk.field.set(field);
            desk.purpose = Some(if field.raw().starts_with('/') { Purpose::Command } else { Purpose::Message });
        }
        false => model.recall.keep(Some(agent), &field.whole()),
    }
}

/// A command was refused: its text stays to be corrected.
pub fn failed(model: &mut Model, text: &str, why: &str) -> Vec<Effect> {
    model.say(why);
    if !text.is_empty() {
        give_back(model, &Field::of(text));
    }
    Vec::new()
}

// ---- Agents ----

pub fn fork(
    model: &mut Model,
    parent: AgentId,
    at: Option<EventId>,
    name: Option<&str>,
    prompt: Option<String>,
    field: Option<Field>,
) -> Vec<Effect> {
    let body = json!({ "parent": parent.to_string(), "at": at.map(|at| at.0), "name": name });
    model.awaited_fork = Some(AwaitedFork { child: None, stay: false, forked: true });
    model.say(format!("{} is forked …", model.name(parent)));
    vec![Effect::Post { tag: Tag::Fork { prompt, field }, path: "/api/agents".into(), body }]
}

/// The daemon has taken the fork on. It may wait for tools of its parent.
pub fn forked(model: &mut Model, child: AgentId, prompt: Option<String>, field: Option<Field>) -> Vec<Effect> {
    match &mut model.awaited_fork {
        Some(awaited) => awaited.child = Some(child),
        None => model.awaited_fork = Some(AwaitedFork { child: Some(child), stay: false, forked: true }),
    }
    let mut effects = vec![Effect::Agent(child)];
    let words = field.or_else(|| prompt.map(|prompt| Field::of(&prompt)));
    if let Some(field) = words.filter(|field| !field.is_empty()) {
        let number = model.next_number;
        model.next_number += 1;
        model.outbox.push(Outgoing {
            number,
            agent: child,
            field,
            at: model.now,
            sending: false,
            doubtful: false,
            after: model.upto,
            event: None,
        });
        effects.extend(flush(model));
    }
    effects
}

/// Goes to a fork that you asked for as soon as it is there, unless a key was pressed since.
pub fn arrive(model: &mut Model) -> Vec<Effect> {
    let Some(AwaitedFork { child: Some(child), stay, forked }) = model.awaited_fork.clone() else { return Vec::new() };
    if !model.roster.agents.contains_key(&child) {
        return Vec::new();
    }
    model.awaited_fork = None;
    if stay {
        let name = model.name(child);
        model.visits.retain(|agent| *agent != child);
        let before = model.visits.len().saturating_sub(1);
        model.visits.insert(before, child);
        model.say(format!("{name} is there · ^X ^X goes there"));
        return Vec::new();
    }
    let parent = model.current.filter(|_| !model.desk().field.is_empty()).map(|agent| model.name(agent));
    let effects = go(model, child);
    if forked {
        model.desk_mut().inherited_open = Some(true);
        let kept = parent.map(|parent| format!(" Your text in {parent} is kept.")).unwrap_or_default();
        model.say(format!("You are in the fork.{kept}"));
    }
    effects
}

pub fn post_about(model: &Model, agent: AgentId, rest: &str, body: Value, done: &str, text: &str) -> Vec<Effect> {
    let words = done.replace("{}", &model.name(agent));
    vec![Effect::Post {
        tag: Tag::Done { words, text: text.to_owned() },
        path: agent_path(&agent.to_string(), rest),
        body,
    }]
}

pub fn interrupt(model: &mut Model) -> Vec<Effect> {
    match model.current {
        Some(agent) => post_about(model, agent, "/interrupt", json!({}), "{} is interrupted.", ""),
        None => Vec::new(),
    }
}

/// Asks what a kill would do, and then you.
pub fn ask_kill(model: &mut Model, agent: AgentId, remark: Option<String>) -> Vec<Effect> {
    let ask = super::overlay::KillAsk { agent, remark, alone: None, cascade: None, choice: 0 };
    model.overlay = Some(Overlay::Kill(ask));
    let path = agent_path(&agent.to_string(), "/kill");
    vec![
        Effect::Get { tag: Tag::KillPreview { agent, cascade: false }, path: path.clone() },
        Effect::Get { tag: Tag::KillPreview { agent, cascade: true }, path: format!("{path}?cascade=true") },
    ]
}

pub fn kill(model: &mut Model) -> Vec<Effect> {
    let Some(Overlay::Kill(ask)) = model.overlay.take() else { return Vec::new() };
    if ask.choice == 0 || ask.alone.is_none() {
        model.say(format!("{} is kept.", model.name(ask.agent)));
        return Vec::new();
    }
    let command = model.desk().field.raw().starts_with("/kill");
    if command {
        take_text(model);
    }
    let body = json!({ "cascade": ask.choice == 2, "remark": ask.remark });
    post_about(model, ask.agent, "/kill", body, "{} is dead. Its history stays and can be forked.", "")
}

// ---- Panels ----

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
        model.say("There is no quest. /quest new WHAT YOU WANT begins one.");
        return Vec::new();
    };
    let steps = model.roster.documents.get(&quest).map(|document| document.steps.as_slice()).unwrap_or_default();
    let at = step.and_then(|step| steps.iter().position(|it| it.id == step)).unwrap_or(0);
    model.side = Some(Side::Quest(QuestPanel { quest, step: at, ward: None, scroll: 0 }));
    model.focus = Focus::Side;
    vec![Effect::Quest(quest)]
}

pub fn open_sheet(model: &mut Model, kind: SheetKind) -> Vec<Effect> {
    let current = model.current.map(|agent| agent.to_string());
    let of = |rest: &str| current.as_ref().map(|agent| agent_path(agent, rest));
    let (title, path) = match kind {
        SheetKind::Mail => ("Mail", Some("/api/mail/human/threads?limit=100".to_owned())),
        SheetKind::Log => (
            "Log",
            current.as_ref().map(|agent| format!("/api/events.json?limit=200&before={}&agent={agent}", i64::MAX)),
        ),
        SheetKind::Why => ("How we know", of("/why")),
        SheetKind::Changes => ("Changes", of("/changes")),
        SheetKind::Cost => ("Cost", Some("/api/usage?days=7".to_owned())),
        SheetKind::Seats => ("Seats", Some("/api/seats".to_owned())),
    };
    let Some(path) = path else {
        model.say("There is no agent yet.");
        return Vec::new();
    };
    let path = if kind == SheetKind::Log {
        path.replace(&i64::MAX.to_string(), &(model.upto.0 + 1).to_string())
    } else {
        path
    };
    model.side = Some(Side::Sheet(Sheet::loading(kind, model.current, title)));
    model.focus = Focus::Side;
    vec![Effect::Get { tag: Tag::Sheet, path }]
}

/// Documents of quests that something is shown of.
pub fn wanted_quests(model: &Model) -> Vec<Effect> {
    let stale = |quest: &&crate::http::QuestLine| {
        is_watched(model, quest)
            && model.roster.documents.get(&quest.id).is_none_or(|known| known.changed < quest.changed)
    };
    model.roster.quests.iter().filter(stale).map(|quest| Effect::Quest(quest.id)).collect()
}

// ---- Answers ----

fn answer_effect(question: EventId, need: String, answer: String) -> Effect {
    let words = answer.clone();
    Effect::Post {
        tag: Tag::Answer { need, words },
        path: format!("/api/questions/{question}/answer"),
        body: json!({ "answer": answer }),
    }
}

/// Opens Home on the oldest question.
pub fn answer_oldest(model: &mut Model) -> Vec<Effect> {
    let entered = model.now;
    model.side = Some(Side::Home(Home { entered, ..Home::default() }));
    model.focus = Focus::Side;
    Vec::new()
}

/// The need that is chosen in Home.
pub fn chosen_need(model: &Model) -> Option<(usize, Need<'_>)> {
    let Some(Side::Home(home)) = &model.side else { return None };
    let needs = model.roster.needs();
    let at = home.chosen.as_ref().and_then(|key| needs.iter().position(|need| need.key() == *key)).unwrap_or(0);
    needs.get(at).map(|need| (at, *need))
}

/// A number chooses an answer.
pub fn choose(model: &mut Model, number: usize) {
    let Some((_, need)) = chosen_need(model) else { return };
    let (key, count, own) = match need {
        Need::Question(question) => {
            let choices = choices(question);
            let own = choices.get(number - 1).is_some_and(|choice| matches!(choice.answer, Answer::Own(_)));
            (need.key(), choices.len(), own)
        }
        Need::FailedStep { .. } => (need.key(), 2, false),
    };
    if number == 0 || number > count {
        return;
    }
    if let Some(Side::Home(home)) = &mut model.side {
        home.choice = Some(number - 1);
        home.chosen = Some(key.clone());
        home.typing = own;
        if own {
            home.own.entry(key).or_default();
        }
    }
}

/// Enter in Home: carries the chosen answer out.
pub fn answer_chosen(model: &mut Model) -> Vec<Effect> {
    let Some((_, need)) = chosen_need(model) else { return Vec::new() };
    let Some(Side::Home(home)) = &model.side else { return Vec::new() };
    if model.now.0 - home.entered.0 < READABLE_MS {
        model.say("That was too quick to have been read. Enter again sends it.");
        return Vec::new();
    }
    let Some(choice) = home.choice else {
        model.say("A number chooses an answer, then Enter sends it.");
        return Vec::new();
    };
    let key = need.key();
    match need {
        Need::Question(question) => {
            let (id, choices) = (question.id, choices(question));
            let Some(choice) = choices.get(choice) else { return Vec::new() };
            let answer = match &choice.answer {
                Answer::Word(word) => word.clone(),
                Answer::Own(begin) => {
                    let own = home.own.get(&key).map(Field::whole).unwrap_or_default();
                    if own.trim().is_empty() {
                        return Vec::new();
                    }
                    format!("{begin}{own}")
                }
            };
            if let Some(Side::Home(home)) = &mut model.side {
                home.typing = false;
                home.outcomes.insert(key.clone(), "Sending …".to_owned());
            }
            vec![answer_effect(id, key, answer)]
        }
        Need::FailedStep { quest, step } => {
            let (quest, step) = (quest.id, quest.steps[step].id.to_string());
            match choice {
                0 => {
                    let path = step_path(&quest.to_string(), &step, "/retry");
                    vec![Effect::Post {
                        tag: Tag::Done { words: format!("{step} is tried again."), text: String::new() },
                        path,
                        body: json!({}),
                    }]
                }
                _ => {
                    let effects = open_quest(model, Some(quest));
                    effects.into_iter().chain(ward_output(model)).collect()
                }
            }
        }
    }
}

/// Reads what the last ward of the chosen step said.
pub fn ward_output(model: &Model) -> Vec<Effect> {
    let Some(Side::Quest(panel)) = &model.side else { return Vec::new() };
    let Some(step) = model.roster.documents.get(&panel.quest).and_then(|document| document.steps.get(panel.step))
    else {
        return Vec::new();
    };
    let Some(ward) = step.wards.last() else { return Vec::new() };
    let path = step_path(&panel.quest.to_string(), &step.id.to_string(), &format!("/wards/{}/output", ward.number));
    vec![Effect::Get { tag: Tag::Ward { step: step.id.to_string() }, path }]
}

/// Enter on a step: who is at work, or what the ward said.
pub fn open_step(model: &mut Model) -> Vec<Effect> {
    let Some(Side::Quest(panel)) = &model.side else { return Vec::new() };
    let Some(step) = model.roster.documents.get(&panel.quest).and_then(|document| document.steps.get(panel.step))
    else {
        return Vec::new();
    };
    let agent = step.agent.or_else(|| step.agents.last().map(|it| it.agent));
    let failed = step.status == Status::Failed;
    match agent {
        Some(agent) if !failed => {
            let side = model.side.clone();
            let effects = go(model, agent);
            model.side = side;
            effects
        }
        _ => ward_output(model),
    }
}

pub fn quest_command(model: &mut Model, word: &str) -> Vec<Effect> {
    let Some(Side::Quest(panel)) = &model.side else { return Vec::new() };
    let quest = panel.quest.to_string();
    let Some(document) = model.roster.documents.get(&panel.quest) else { return Vec::new() };
    let (path, words) = match word {
        "retry" => {
            let Some(step) = document.steps.get(panel.step) else { return Vec::new() };
            (step_path(&quest, &step.id.to_string(), "/retry"), format!("{} is tried again.", step.id))
        }
        _ if document.state == crate::quest_document::QuestWord::Paused => {
            (quest_path(&quest, "/resume"), "The quest goes on.".to_owned())
        }
        _ => (quest_path(&quest, "/pause"), "The quest is paused.".to_owned()),
    };
    vec![Effect::Post { tag: Tag::Done { words, text: String::new() }, path, body: json!({}) }]
}

// ---- Reading ----

pub fn scroll(model: &mut Model, by: isize) -> Vec<Effect> {
    let (cells, height) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells) else { return Vec::new() };
    let (place, at_begin) = flow.scrolled(by, height);
    let near_begin = match place {
        Place::At { item, .. } => flow.keys().take(20).any(|key| key == item),
        Place::End => false,
    };
    let seen = flow.visible(height).last().map(|row| row.item.0);
    let desk = model.desk_mut();
    // What was in sight when you left the end is what you have seen.
    if desk.place == Place::End && place != Place::End {
        desk.seen = seen.map_or(desk.seen, |seen| seen.max(desk.seen));
    }
    desk.place = place;
    follow_end(model);
    match (at_begin || near_begin, model.current) {
        (true, Some(agent)) => load_earlier(model, agent),
        _ => Vec::new(),
    }
}

pub fn to_end(model: &mut Model) {
    model.desk_mut().place = Place::End;
    follow_end(model);
}

fn follow_end(model: &mut Model) {
    if model.desk().place == Place::End {
        let upto = model.talk().map(super::conversation::Conversation::upto);
        let desk = model.desk_mut();
        desk.seen = upto.map_or(desk.seen, |upto| upto.max(desk.seen));
    }
}

pub fn to_begin(model: &mut Model) -> Vec<Effect> {
    let (cells, _) = draw::talk_size(model);
    let first = Flow::new(model, cells).and_then(|flow| flow.keys().next());
    if let Some(item) = first {
        model.desk_mut().place = Place::At { item, line: 0 };
        model.desk_mut().chosen = Some(item);
    }
    model.current.map(|agent| load_earlier(model, agent)).unwrap_or_default()
}

/// The next or previous block while you browse.
pub fn choose_block(model: &mut Model, by: isize) -> Vec<Effect> {
    let (cells, height) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells) else { return Vec::new() };
    let keys: Vec<Key> = flow.keys().collect();
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
        true => Place::End,
        false => flow.place_of(keys[at], height),
    };
    let desk = model.desk_mut();
    (desk.chosen, desk.place) = (Some(keys[at]), place);
    match (at < 5, model.current) {
        (true, Some(agent)) => load_earlier(model, agent),
        _ => Vec::new(),
    }
}

/// Opens or folds the chosen block. What stands above it stays where it is.
pub fn fold(model: &mut Model, key: Key) {
    let (cells, height) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells) else { return };
    let Some(open) = flow.is_open(key) else { return };
    let is_group = flow.is_group(key);
    let top = flow.visible(height).first().map(|row| Place::At { item: row.item, line: row.line });
    let has_more = open
        && model.talk().is_some_and(|talk| {
            talk.blocks()
                .iter()
                .any(|block| block.id == key.0 && matches!(&block.kind, Kind::Tool(tool) if tool.lines().len() > 17))
        });
    let desk = model.desk_mut();
    if key == Key(EventId::START, 0) {
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
    if let Some(top) = top.filter(|_| model.desk().place != Place::End) {
        model.desk_mut().place = top;
    }
}

/// All foldable blocks of the turn of the chosen one.
pub fn fold_turn(model: &mut Model) {
    let Some(chosen) = model.desk().chosen else { return };
    let Some(talk) = model.talk() else { return };
    let is_mine = |kind: &Kind| matches!(kind, Kind::ToAgent { .. });
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
    let foldable = |kind: &Kind| matches!(kind, Kind::Tool(_) | Kind::Thought { .. });
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
    model.talk()?.blocks().iter().rev().find_map(|block| match &block.kind {
        Kind::Spoken { text, .. } => Some(text.clone()),
        _ => None,
    })
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

/// The whole conversation that is loaded, as text.
pub fn transcript(model: &Model) -> String {
    let (cells, _) = draw::talk_size(model);
    let Some(flow) = Flow::new(model, cells.max(80)) else { return String::new() };
    let rows = flow.all_rows();
    rows.iter().map(|row| row.text.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n") + "\n"
}

// ---- Search ----

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
