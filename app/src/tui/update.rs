//! What changes the model: keys, events of the log, answers of the daemon, the clock. Pure: what is to be done outside is returned as
//! effects.

use super::act;
use super::conversation::{Block, Inherited, blocks};
use super::field::Field;
use super::keys;
use super::model::{Link, Model, Place};
use super::overlay::{Overlay, Preview, Reader};
use super::panel::Side;
use super::sheets;
use crate::http::{AgentView, FileList, KillPreview, Overview};
use crate::live_text::LivePiece;
use crate::quest_document::{QuestDocument, QuestWord};
use crossterm::event::{KeyEvent, MouseEvent};
use hatchery_core::event::{AgentEvent, MailEvent, MessageEvent, QuestionEvent, RunEvent};
use hatchery_core::output::Output;
use hatchery_core::seat::shown;
use hatchery_core::{AgentId, Event, EventId, MessageKind, QuestId, Record, Stream, Timestamp};
use serde_json::Value;

/// Something happened.
#[derive(Debug)]
pub enum Msg {
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    Tick(Timestamp),
    Overview(Box<Overview>),
    Quest(Box<QuestDocument>),
    Agent(Box<AgentView>),
    Agents(Vec<AgentView>),
    Events(Vec<Record>),
    /// Some more of what an agent is writing.
    Live {
        agent: AgentId,
        piece: LivePiece,
    },
    Window {
        agent: AgentId,
        records: Vec<Record>,
        from: EventId,
        more: bool,
    },
    Inherited {
        agent: AgentId,
        from: AgentId,
        upto: EventId,
        forked: Timestamp,
        count: Option<usize>,
        records: Vec<Record>,
    },
    Up,
    Away {
        again: Timestamp,
    },
    Answer {
        tag: Tag,
        result: Result<Value, Failed>,
    },
    /// What the editor left.
    Edited(String),
    Attached(Attached),
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    Refused {
        code: String,
        words: String,
    },
    /// Nobody answered. It is not known whether it was carried out, unless it was not even sent.
    Away {
        sent: bool,
    },
}

/// What an answer is to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Something that was said: the number of the outgoing text.
    Say(u64),
    /// The first agent, or another one by `/run`.
    Run(String),
    /// A fork, and what is to be said to the child.
    Fork {
        prompt: Option<String>,
        field: Option<Field>,
    },
    /// An answer to a question, by the key of its need.
    Answer {
        need: String,
        words: String,
    },
    /// A command whose success is one sentence. On failure the text comes back.
    Done {
        words: String,
        text: String,
    },
    /// A new quest. Its ward is tried before it begins.
    NewQuest {
        /// It is created paused, and stays so.
        hold: bool,
        text: String,
    },
    /// The trial of the ward of a new quest.
    Trial,
    /// A command whose answer is shown.
    Show {
        title: String,
    },
    KillPreview {
        agent: AgentId,
        cascade: bool,
    },
    Sheet,
    Event,
    File(String),
    Mail,
    Ward {
        step: String,
    },
    Count(String),
    /// The files of an agent's folder.
    Files(AgentId),
    Search {
        agent: AgentId,
        words: String,
    },
}

/// Something to do outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Load {
        agent: AgentId,
        before: Option<EventId>,
    },
    LoadInherited {
        agent: AgentId,
        from: AgentId,
        upto: EventId,
        forked: Timestamp,
        count: bool,
    },
    Get {
        tag: Tag,
        path: String,
    },
    Post {
        tag: Tag,
        path: String,
        body: Value,
    },
    Refresh,
    Quest(QuestId),
    Agent(AgentId),
    /// All agents, for the finder.
    AllAgents,
    Copy(String),
    Editor(String),
    Pager(String),
    Suspend,
    Redraw,
    TryAgain,
    Bell,
    Mouse(bool),
    Attach(Attach),
}

/// What is added to your text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attach {
    /// A file of this machine, from the project on.
    File(String),
    /// A paste that is too long for a message: it becomes a file.
    Paste(String),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attached {
    /// A text that fits into a message.
    Text {
        path: String,
        text: String,
    },
    /// Something that the agent reads itself.
    Path {
        path: String,
        bytes: u64,
    },
    Failed {
        why: String,
    },
}

pub fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) => keys::key(model, key),
        Msg::Paste(text) => keys::paste(model, &text),
        Msg::Mouse(event) => keys::mouse(model, event),
        Msg::Resize(width, height) => {
            model.size = (width, height);
            Vec::new()
        }
        Msg::Tick(now) => tick(model, now),
        Msg::Overview(overview) => overview_came(model, *overview),
        Msg::Quest(document) => {
            model.roster.documents.insert(document.id, *document);
            Vec::new()
        }
        Msg::Agent(view) => {
            model.roster.take_agent(*view);
            act::arrive(model)
        }
        Msg::Agents(views) => {
            for view in views {
                if !model.roster.agents.contains_key(&view.id) {
                    model.roster.take_agent(view);
                }
            }
            Vec::new()
        }
        Msg::Events(records) => records.iter().flat_map(|record| event(model, record)).collect(),
        Msg::Window { agent, records, from, more } => window(model, agent, records, from, more),
        Msg::Inherited { agent, from, upto, forked, count, records } => {
            if let Some(talk) = model.talks.get_mut(&agent) {
                let blocks: Vec<Block> = blocks(from, model.roster.has_seat(from), &records);
                talk.inherited = Some(Inherited { from, count, upto, forked, blocks });
            }
            Vec::new()
        }
        Msg::Up => {
            model.link = Link::Up;
            vec![Effect::Refresh]
        }
        Msg::Away { again } => {
            let since = match model.link {
                Link::Away { since, .. } => since,
                Link::Opening | Link::Up => model.now,
            };
            model.link = Link::Away { since, again };
            for outgoing in &mut model.outbox {
                outgoing.sending = false;
            }
            Vec::new()
        }
        Msg::Answer { tag, result } => answer(model, tag, result),
        Msg::Live { agent, piece } => {
            super::live::take(model, agent, piece);
            Vec::new()
        }
        Msg::Attached(attached) => {
            act::attached(model, attached);
            Vec::new()
        }
        Msg::Edited(text) => {
            model.desk_mut().field.set(&Field::of(text.trim_end_matches('\n')));
            keys::settle_purpose(model);
            Vec::new()
        }
    }
}

fn tick(model: &mut Model, now: Timestamp) -> Vec<Effect> {
    model.now = now;
    if model.notice.as_ref().is_some_and(|notice| notice.until <= now) {
        model.notice = None;
    }
    fold_out_of_sight(model);
    Vec::new()
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
        if desk.place == Place::End {
            desk.grouped = desk.grouped.max(grouped);
        }
    }
}

fn overview_came(model: &mut Model, overview: Overview) -> Vec<Effect> {
    let first = model.link == Link::Opening || model.project.is_empty();
    let needs_before = model.roster.questions.len();
    model.project = overview.project.rsplit('/').next().unwrap_or_default().to_owned();
    model.link = Link::Up;
    if model.upto == EventId::START {
        model.upto = overview.head;
    }
    model.roster.take(overview);
    act::resolve_wanted(model);
    let mut effects = act::wanted_quests(model);
    if model.current.is_none() {
        effects.extend(act::open_first(model));
    } else if let Some(current) = model.current
        && model.talk().is_none_or(|talk| !talk.is_read && !talk.loading)
    {
        effects.extend(act::load(model, current));
    }
    if first && model.size.0 >= 160 && model.side.is_none() && !model.side_closed {
        model.side = Some(Side::Home(super::panel::Home::default()));
    }
    if !first && model.roster.questions.len() > needs_before {
        effects.push(Effect::Bell);
    }
    effects.extend(act::flush(model));
    effects.extend(act::arrive(model));
    effects
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
        if let Some(talk) = model.talks.get_mut(&agent) {
            talk.append(record);
        }
        if is_current && model.desk().place == Place::End {
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
            if Some(*agent) != model.current {
                model.say(format!("{name} asks you · ^X e"));
            }
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

fn window(model: &mut Model, agent: AgentId, records: Vec<Record>, from: EventId, more: bool) -> Vec<Effect> {
    let mut effects = Vec::new();
    let Some(talk) = model.talks.get_mut(&agent) else { return effects };
    let is_first = !talk.is_read;
    let got = records.len();
    let first = records.first().map(|record| record.id);
    talk.prepend(records, from, more);
    let upto = talk.upto();
    let desk = model.desks.entry(agent).or_default();
    if is_first {
        desk.grouped = desk.grouped.max(upto);
        if let Some(left) = desk.left
            && desk.seen != EventId::START
            && upto > desk.seen
        {
            desk.new_from = Some((desk.seen, left));
        }
        if desk.place == Place::End {
            desk.seen = desk.seen.max(upto);
        }
    } else if let Some(first) = first {
        desk.grouped = desk.grouped.max(first);
    }
    // A page may have found little: the rest of a screen is worth another one.
    let few = model.talks.get(&agent).is_some_and(|talk| talk.blocks().len() < 60);
    if more && (few || got == 0) {
        effects.extend(act::load_earlier(model, agent));
    }
    effects
}

fn answer(model: &mut Model, tag: Tag, result: Result<Value, Failed>) -> Vec<Effect> {
    match (tag, result) {
        (Tag::Say(number), result) => act::said(model, number, result),
        (Tag::Run(text), Ok(value)) => match id_of(&value) {
            Some(agent) => {
                model.awaited_fork = Some(super::model::AwaitedFork { child: Some(agent), stay: false, forked: false });
                vec![Effect::Agent(agent), Effect::Refresh]
            }
            None => act::failed(model, &text, "the daemon gave no id"),
        },
        (Tag::Run(text), Err(why)) => {
            let words = words(&why);
            act::failed(model, &text, &words)
        }
        (Tag::Fork { prompt, field }, Ok(value)) => match id_of(&value) {
            Some(agent) => act::forked(model, agent, prompt, field),
            None => Vec::new(),
        },
        (Tag::Fork { field, .. }, Err(why)) => {
            if let Some(field) = field {
                act::give_back(model, &field);
            }
            model.say(words(&why));
            Vec::new()
        }
        (Tag::Answer { need, words: said }, result) => {
            let outcome = match &result {
                Ok(value) => {
                    let event =
                        value["events"][0]["id"].as_u64().map(|id| format!("  #{}", super::text::thousands(id)));
                    format!("You answered: {said}{}", event.unwrap_or_default())
                }
                Err(Failed::Refused { code, .. }) if code == "no_question" => {
                    "It is answered already, or no longer asked. Your words are still here.".to_owned()
                }
                Err(why) => format!("{} Your words are still here.", words(why)),
            };
            let now = model.now;
            if let Some(Side::Home(home)) = &mut model.side {
                if result.is_ok() {
                    home.own.remove(&need);
                    // The next need is in its place now, and has to be read before it can be answered.
                    (home.chosen, home.choice, home.entered) = (None, None, now);
                }
                home.outcomes.insert(need, outcome.clone());
            }
            model.say(outcome);
            vec![Effect::Refresh]
        }
        (Tag::Files(agent), result) => {
            let files = result.ok().and_then(|it| serde_json::from_value::<FileList>(it).ok());
            super::complete::files_came(model, agent, files.map(|it| it.files).unwrap_or_default());
            Vec::new()
        }
        (Tag::Done { words, .. }, Ok(_)) => {
            model.say(words);
            vec![Effect::Refresh]
        }
        (Tag::Done { text, .. } | Tag::NewQuest { text, .. }, Err(why)) => {
            let words = words(&why);
            act::failed(model, &text, &words)
        }
        (Tag::NewQuest { hold, .. }, Ok(value)) => super::command::quest::created(model, &value, hold),
        (Tag::Trial, result) => super::command::quest::tried(model, result),
        (Tag::Show { title }, Ok(value)) => {
            let now = model.now;
            let text = format!("{title}\n\n{}", sheets::plain(&value));
            if let Some(talk) = model.current.and_then(|agent| model.talks.get_mut(&agent)) {
                talk.add_here(text, now);
            }
            Vec::new()
        }
        (Tag::KillPreview { agent, cascade }, Ok(value)) => {
            if let (Some(Overlay::Kill(ask)), Ok(preview)) =
                (&mut model.overlay, serde_json::from_value::<KillPreview>(value))
                && ask.agent == agent
            {
                let preview = Preview {
                    killed: preview.killed,
                    moved: preview.moved.into_iter().map(|moved| (moved.agent, moved.to)).collect(),
                    stopped: preview.stopped,
                    withdrawn: preview.withdrawn,
                };
                match cascade {
                    true => ask.cascade = Some(preview),
                    false => ask.alone = Some(preview),
                }
            }
            Vec::new()
        }
        (Tag::Sheet, Ok(value)) => {
            sheets::fill(model, &value);
            Vec::new()
        }
        (Tag::Event, Ok(value)) => {
            let event = value["events"][0].clone();
            let title = format!(
                "Event {}",
                event["id"].as_u64().map(|id| format!("#{}", super::text::thousands(id))).unwrap_or_default()
            );
            let text = serde_json::to_string_pretty(&event).unwrap_or_default();
            model.overlay = Some(Overlay::Reader(Reader { title, text, top: 0 }));
            Vec::new()
        }
        (Tag::File(path), Ok(value)) => {
            let text = value["diff"].as_str().unwrap_or_default().to_owned();
            model.overlay = Some(Overlay::Reader(Reader { title: path, text, top: 0 }));
            Vec::new()
        }
        (Tag::Mail, Ok(value)) => {
            let from: String = value["from"]
                .as_str()
                .map(|from| from.parse().map(|id| model.name(id)).unwrap_or(from.to_owned()))
                .unwrap_or_default();
            let text = value["body"].as_str().unwrap_or_default().to_owned();
            model.overlay = Some(Overlay::Reader(Reader { title: format!("Mail from {from}"), text, top: 0 }));
            vec![Effect::Refresh]
        }
        (Tag::Ward { step }, Ok(value)) => {
            if let Some(Side::Quest(panel)) = &mut model.side {
                let output = value["text"].as_str().or(value["output"].as_str()).unwrap_or_default();
                let lines: Vec<String> = super::text::without_escapes(output).lines().map(str::to_owned).collect();
                let last = lines[lines.len().saturating_sub(40)..].to_vec();
                panel.ward = Some((format!("The ward of {step} said"), last));
            }
            Vec::new()
        }
        (Tag::Count(words), Ok(value)) => {
            if let Some(Overlay::Finder(finder)) = &mut model.overlay
                && finder.words.whole() == words
            {
                finder.events = value["count"].as_u64().map(|count| (words, count));
            }
            Vec::new()
        }
        (Tag::Search { agent, words }, Ok(value)) => act::found_in_log(model, agent, &words, &value),
        (Tag::Sheet, Err(why)) => {
            let words = words(&why);
            if let Some(Side::Sheet(sheet)) = &mut model.side {
                (sheet.title, sheet.loading) = (words, false);
            }
            Vec::new()
        }
        (_, Err(why)) => {
            model.say(words(&why));
            Vec::new()
        }
    }
}

fn id_of(value: &Value) -> Option<AgentId> {
    value["id"].as_str()?.parse().ok()
}

pub fn words(why: &Failed) -> String {
    match why {
        Failed::Refused { words, .. } => words.clone(),
        Failed::Away { .. } => "The daemon did not answer.".to_owned(),
    }
}

/// Whether the documents of quests are needed: only those have failed steps.
pub fn is_watched(model: &Model, quest: &crate::http::QuestLine) -> bool {
    let in_panel = matches!(&model.side, Some(Side::Quest(panel)) if panel.quest == quest.id);
    in_panel || (quest.state == QuestWord::Open && quest.failed > 0)
}
