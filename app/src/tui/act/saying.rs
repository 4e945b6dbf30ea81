//! Your text: saying it, and getting it back when it could not be said.

use super::answers::{READABLE_MS, TOO_QUICK};
use super::{answer_effect, approach, fork, open_quest};
use crate::client::paths::agent_path;
use crate::tui::command;
use crate::tui::field::{Field, TooLong};
use crate::tui::model::{Connection, Model, Outgoing, Purpose, ScrollPosition};
use crate::tui::panel::{self, AnswerChoice, ChosenAnswer, is_answered_by_words};
use crate::tui::roster::State;
use crate::tui::text;
use crate::tui::update::{Attached, Effect, Failed, Tag, words};
use hatchery_core::{AgentId, EventId};
use serde_json::{Value, json};

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
            let Some(asked) = model.roster.questions.iter().find(|it| it.id == question) else {
                model.say(format!(
                    "#{} is answered already. Your words are still here; Enter says them.",
                    crate::tui::text::thousands(question.0)
                ));
                model.desk_mut().purpose = Some(Purpose::Message);
                return Vec::new();
            };
            // A permission is answered by choosing, and only when it could be read.
            let shown_ms = model.now.0 - asked.asked.max(model.in_front_since).0;
            if is_answered_by_words(asked) && shown_ms < READABLE_MS {
                let number = whole.trim();
                model.say(match model.from_end {
                    // A line does not stay where a second Enter could send it.
                    true => {
                        format!("That was too quick to have been read. /answer {number} answers question {question}.")
                    }
                    false => TOO_QUICK.to_owned(),
                });
                return Vec::new();
            }
            let is_amount = asked.takes.amount;
            let words = match panel::chosen_by_number(model, asked, &whole) {
                None => whole,
                Some(choice) if is_amount => {
                    let (number, label) = (whole.trim(), choice.label);
                    model.say(format!(
                        "Is {number} an amount, or the answer {label}? ${number} is an amount; ^X a chooses an answer."
                    ));
                    return Vec::new();
                }
                Some(AnswerChoice { answer: ChosenAnswer::Word(word), .. }) => word,
                Some(AnswerChoice { answer: ChosenAnswer::Deny, .. }) => "deny".to_owned(),
                Some(AnswerChoice { answer: ChosenAnswer::ReadPlan(quest), .. }) => {
                    take_text(model);
                    return open_quest(model, Some(quest));
                }
                Some(AnswerChoice { answer: ChosenAnswer::Own(begin), .. }) => {
                    take_text(model);
                    let desk = model.desk_mut();
                    desk.field = Field::of(&begin);
                    desk.purpose = (!begin.is_empty()).then_some(Purpose::Answer(question));
                    model.say("Type your answer. Enter sends it.");
                    return Vec::new();
                }
            };
            take_text(model);
            model.say("Sending …");
            vec![answer_effect(model, question, words)]
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

/// Takes the text out of the field to be sent, and keeps it in the history. A long paste is not kept: what is sent is in the log.
pub fn take_text(model: &mut Model) -> Field {
    let field = model.desk_mut().take_text().field;
    remember(model, model.current, &field);
    model.overlay = None;
    field
}

/// Keeps what was sent in the history, without long pastes.
pub fn remember(model: &mut Model, agent: Option<AgentId>, field: &Field) {
    let shown = if field.raw().len() == field.len() { field.whole() } else { String::new() };
    model.recall.keep(agent, &shown);
}

/// Takes the text out of the field and puts all of it into the history, because it is nowhere else.
pub fn lay_aside(model: &mut Model) {
    let field = model.desk_mut().take_text().field;
    model.recall.set_aside(model.current, &field.whole());
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
    model.put_out(agent, field);
    if Some(agent) == model.current {
        model.desk_mut().place = ScrollPosition::End;
    }
    let mut effects = flush(model);
    effects.extend(approach(model));
    effects
}

/// Sends what waits, one text of each agent at a time, in order. Nothing is sent before the log is read up to the daemon's word: what
/// is doubtful may be in it.
pub fn flush(model: &mut Model) -> Vec<Effect> {
    if model.link != Connection::Up || model.upto < model.roster.head {
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
            body: json!({ "id": outgoing.id, "text": outgoing.field.whole() }),
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
            let place = give_back_to(model, Some(outgoing.agent), &outgoing.field);
            model.say(words(&why) + &place);
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

/// Text that was refused is in the field of the agent again, or in its history when something else is being typed there. Gives the
/// sentence that says so, where that cannot be seen.
pub fn give_back_to(model: &mut Model, agent: Option<AgentId>, field: &Field) -> String {
    // The field without an agent is out of sight once there is one.
    let is_out_of_sight = agent.is_none() && model.current.is_some();
    // In the plain mode there is no field: the text is in the terminal, and a draft is the screen's.
    if model.from_end {
        model.recall.set_aside(agent, &field.whole());
        return String::new();
    }
    let desk = model.desk_of_mut(agent);
    if !desk.field.is_empty() || is_out_of_sight {
        model.recall.set_aside(agent, &field.whole());
        return brings_back(model, agent);
    }
    desk.field.set(field);
    desk.purpose = Some(if field.raw().starts_with('/') { Purpose::Command } else { Purpose::Message });
    match agent.filter(|_| agent != model.current) {
        Some(agent) => format!(" Your words are in your text to {}.", model.name(agent)),
        None => String::new(),
    }
}

/// How words come back that were set aside.
pub(super) fn brings_back(model: &Model, agent: Option<AgentId>) -> String {
    match agent.filter(|_| agent != model.current) {
        Some(agent) => format!(" ↑ in {} brings your words back.", model.name(agent)),
        None => " ↑ brings your words back.".to_owned(),
    }
}

/// A command was refused: its text stays to be corrected.
pub fn failed(model: &mut Model, text: &str, why: &str) -> Vec<Effect> {
    // Where it would stand in the field of another agent, Enter would carry it out for that one.
    let place = match text.is_empty() {
        true => String::new(),
        false => give_back_to(model, model.recall.typed_to(text).unwrap_or(model.current), &Field::of(text)),
    };
    model.say(format!("{why}{place}"));
    Vec::new()
}

/// Puts a file that was read into your text: its words, or its path where it is too long or no text.
pub fn attached(model: &mut Model, attached: Attached) {
    let was_empty = model.desk().field.is_empty();
    let (insert, said) = match attached {
        Attached::Failed { why, command } => return drop(failed(model, &command, &why)),
        Attached::Path { path, bytes } => {
            let size = text::size(usize::try_from(bytes).unwrap_or(usize::MAX));
            (format!("@{path} "), format!("{path}, {size}, is named in your text. The agent reads it."))
        }
        Attached::Text { path, text: words } => {
            let said = format!("{path} is in your text, {}.", text::size(words.len()));
            (format!("{path}:\n{words}"), said)
        }
    };
    let said = match model.desk_mut().field.paste(&insert) {
        Ok(()) => said,
        Err(TooLong(bytes)) => format!("{} is too long for one message.", text::size(bytes)),
    };
    model.say(said);
    crate::tui::keys::fix_purpose(model, was_empty);
}
