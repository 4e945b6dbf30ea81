//! What follows the name of a command: flags, agents, questions, events.

use super::names::nearest;
use crate::tui::model::Model;
use crate::tui::panel;
use hatchery_core::{AgentId, EventId};

/// The words after a command: flags with their values, and the rest.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a> {
    flags: Vec<(&'a str, &'a str)>,
    pub(super) rest: &'a str,
}

impl<'a> Arguments<'a> {
    /// Reads the named flags anywhere before the text.
    pub(super) fn read(mut rest: &'a str, with_value: &[&'a str], without: &[&'a str]) -> Result<Self, String> {
        let mut flags = Vec::new();
        loop {
            rest = rest.trim_start();
            if !rest.starts_with("--") {
                return Ok(Self { flags, rest: rest.trim_end() });
            }
            let (flag, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            if without.contains(&flag) {
                flags.push((flag, ""));
                rest = after;
            } else if with_value.contains(&flag) {
                let after = after.trim_start();
                let (value, after) = match after.strip_prefix('"').and_then(|after| after.split_once('"')) {
                    Some((value, after)) => (value, after),
                    None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
                };
                if value.is_empty() {
                    return Err(format!("{flag} needs a value."));
                }
                flags.push((flag, value));
                rest = after;
            } else {
                return Err(format!("There is no {flag} here."));
            }
        }
    }

    pub(super) fn flag(&self, name: &str) -> Option<&'a str> {
        self.flags.iter().find(|(flag, _)| *flag == name).map(|(_, value)| *value)
    }
}

/// The agent that is meant, or who could be.
pub fn agent(model: &Model, reference: &str) -> Result<AgentId, String> {
    match model.roster.find(reference).as_slice() {
        [one] => Ok(*one),
        [] => {
            let bare = reference.trim_start_matches('@');
            let names: Vec<String> = model.roster.order().iter().map(|id| model.name(*id)).collect();
            let mut like: Vec<&String> =
                names.iter().filter(|name| name.starts_with(bare) && !bare.is_empty()).collect();
            like.truncate(3);
            let hint = match like.is_empty() {
                false => format!(" {}?", like.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")),
                true => {
                    nearest(bare, names.iter().map(String::as_str)).map(|near| format!(" {near}?")).unwrap_or_default()
                }
            };
            Err(format!("No living agent is called {bare}.{hint}"))
        }
        many => {
            let named = |id: &AgentId| {
                let seat = model.roster.agents.get(id).and_then(|it| it.view.seat);
                let short = crate::tui::roster::short(*id);
                seat.map_or(short.clone(), |seat| format!("seat {seat} ({short})"))
            };
            let ids: Vec<String> = many.iter().map(named).collect();
            Err(format!("{} are called {reference}: {}?", crate::tui::text::count_word(many.len()), ids.join(" or ")))
        }
    }
}

/// How a command names an agent: by its name, or by its id where several have the name or it has none that can be written.
pub fn reference(model: &Model, agent: AgentId) -> String {
    let name = model.name(agent);
    let is_one = model.roster.find(&name) == [agent] && !name.contains(char::is_whitespace);
    if is_one { name } else { agent.to_string() }
}

/// The named agent, or the one that you see.
pub(super) fn one_agent(model: &Model, rest: &str) -> Result<AgentId, String> {
    match rest.is_empty() {
        true => model.current.ok_or("There is no agent yet.".to_owned()),
        false => agent(model, rest),
    }
}

/// `AGENT TEXT`. A first word that names no agent is a mistake and not part of the text: the text must not reach another agent.
pub(super) fn agent_and_text<'a>(model: &Model, rest: &'a str) -> Result<(AgentId, &'a str), String> {
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match after.trim() {
        "" => Err("It needs an agent and a text.".to_owned()),
        text => agent(model, first).map(|id| (id, text)),
    }
}

pub(super) fn question_and_text<'a>(model: &Model, rest: &'a str) -> Result<(EventId, &'a str), String> {
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if first.starts_with('#')
        && let Some(id) = event_id(first)
    {
        return Ok((id, after.trim()));
    }
    let of_current = model.current.and_then(|agent| model.roster.question_of(agent));
    let question = of_current.or_else(|| model.roster.questions.first()).ok_or("Nobody asks you anything.")?;
    match rest.is_empty() {
        true => Err("/answer needs your words, or the number of an answer.".to_owned()),
        false => Ok((question.id, rest)),
    }
}

/// `2` is the second answer that is offered, and `2 too slow` the same with a reason, where no other words are taken.
pub(super) fn numbered_answer(model: &Model, question: EventId, words: &str) -> String {
    let asked = model.roster.questions.iter().find(|it| it.id == question);
    let meant = asked.and_then(|asked| {
        panel::numbered_word(model, asked, words).or_else(|| panel::numbered_with_words(model, asked, words))
    });
    meant.unwrap_or_else(|| words.to_owned())
}

/// `#46,342`, `46342`.
pub(super) fn event_id(text: &str) -> Option<EventId> {
    let digits = text.trim().trim_start_matches('#').replace(',', "");
    digits.parse().ok().map(EventId)
}
