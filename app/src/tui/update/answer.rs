//! The daemon's answers to what was asked for.

use super::{Effect, Failed, Tag, words};
use crate::http::{AdoptedView, FileList, KillPreview};
use crate::tui::field::Field;
use crate::tui::model::{self, Model};
use crate::tui::overlay::{Overlay, Preview, TextReader};
use crate::tui::panel::{SheetKind, SheetRow, Side};
use crate::tui::{act, command, complete, here, sheets, text};
use crate::worktree::Changes;
use hatchery_core::{AgentId, Timestamp};
use serde_json::Value;

/// The narrowest panel has so much room for a sentence.
const SHEET_CELLS: usize = 36;

pub(super) fn take(model: &mut Model, tag: Tag, result: Result<Value, Failed>) -> Vec<Effect> {
    match (tag, result) {
        (Tag::Say(number), result) => act::said(model, number, result),
        (Tag::Run(text), Ok(value)) => match id_of(&value) {
            Some(agent) => {
                model.awaited_fork =
                    Some(model::AwaitedFork { child: Some(agent), stay: false, forked: false, waits_for: None });
                vec![Effect::Agent(agent), Effect::Refresh]
            }
            None => act::failed(model, &text, "the daemon gave no id"),
        },
        (Tag::Run(text), Err(why)) => {
            let words = words(&why);
            act::failed(model, &text, &words)
        }
        (Tag::Fork { .. }, Ok(value)) => match id_of(&value) {
            Some(agent) => {
                let requested =
                    value["events"].as_array().into_iter().flatten().find(|it| it["type"] == "fork_requested");
                let waits_for = requested.and_then(|event| event["agent"].as_str()).and_then(|it| it.parse().ok());
                act::forked(model, agent, waits_for)
            }
            None => Vec::new(),
        },
        (Tag::Fork { parent, field }, Err(why)) => {
            model.awaited_fork = None;
            let place = field.map(|field| act::give_back_to(model, Some(parent), &field)).unwrap_or_default();
            model.say(words(&why) + &place);
            Vec::new()
        }
        (Tag::Answer { need, agent, words: said }, result) => {
            let is_from_home = matches!(&model.side, Some(Side::Home(home)) if home.outcomes.get(&need).is_some_and(|it| it == act::SENDING));
            let here = || " Your words are still here.".to_owned();
            let kept = match &result {
                Ok(_) => String::new(),
                Err(_) if !is_from_home => match act::give_back_to(model, agent.or(model.current), &Field::of(&said)) {
                    place if place.is_empty() => here(),
                    place => place,
                },
                Err(Failed::Refused { code, .. }) if code == "no_question" => {
                    act::set_own_words_aside(model, &need).unwrap_or_default()
                }
                Err(_) if model.own.contains_key(&need) => here(),
                Err(_) => String::new(),
            };
            let outcome = match &result {
                Ok(value) => {
                    let event = value["events"][0]["id"].as_u64().map(|id| format!("  #{}", text::thousands(id)));
                    format!("You answered: {said}{}", event.unwrap_or_default())
                }
                Err(Failed::Refused { code, .. }) if code == "no_question" && answered_at(model, &need).is_some() => {
                    let ago = model.now.0 - answered_at(model, &need).unwrap_or(model.now).0;
                    format!("Somebody else has answered this {} ago.{kept}", text::age(ago.max(0)))
                }
                Err(Failed::Refused { code, .. }) if code == "no_question" => {
                    format!("It is answered already, or no longer asked.{kept}")
                }
                Err(why) => format!("{}{kept}", words(why)),
            };
            let now = model.now;
            if result.is_ok() {
                model.own.remove(&need);
            }
            if let Some(Side::Home(home)) = &mut model.side {
                if result.is_ok() {
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
            complete::files_came(model, agent, files.map(|it| it.files).unwrap_or_default());
            Vec::new()
        }
        // An agent without a folder of its own has nothing to count.
        (Tag::Changes(agent), result) => {
            let changes = result.ok().and_then(|it| serde_json::from_value::<Changes>(it).ok());
            if let (Some(changes), Some(known)) = (changes.filter(|it| !it.shared), model.changes.get_mut(&agent)) {
                known.lines = Some((changes.added, changes.removed, changes.files.len()));
            }
            Vec::new()
        }
        (Tag::Done { words, .. }, Ok(_)) => {
            model.say(words);
            vec![Effect::Refresh]
        }
        (Tag::Done { text, .. } | Tag::NewQuest { text, .. } | Tag::Adopted { text }, Err(why)) => {
            let words = words(&why);
            act::failed(model, &text, &words)
        }
        (Tag::NewQuest { hold, .. }, Ok(value)) => command::quest::created(model, &value, hold),
        (Tag::Trial, result) => command::quest::tried(model, result),
        (Tag::Waited, Ok(value)) => {
            let said = serde_json::from_value(value).map(|it| here::waited(model, &it));
            model.show_here(said.unwrap_or_else(unreadable));
            vec![Effect::Refresh]
        }
        (Tag::Adoptable, Ok(value)) => {
            let said = serde_json::from_value(value).map(|it| here::adoptable(model, &it));
            model.show_here(said.unwrap_or_else(unreadable));
            Vec::new()
        }
        (Tag::Adopted { .. }, Ok(value)) => match serde_json::from_value::<AdoptedView>(value) {
            Ok(adopted) => {
                model.awaited_fork = Some(model::AwaitedFork {
                    child: Some(adopted.agent),
                    stay: false,
                    forked: false,
                    waits_for: None,
                });
                model.say(here::adopted(model, &adopted));
                vec![Effect::Agent(adopted.agent), Effect::Refresh]
            }
            Err(error) => {
                model.say(unreadable(error));
                vec![Effect::Refresh]
            }
        },
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
        (Tag::Sheet(kind, agent), Ok(value)) => sheets::fill(model, (kind, agent), &value),
        (Tag::MoreOfLog { agent, before }, Ok(value)) => sheets::add_earlier(model, agent, before, &value),
        (Tag::Event(id), Ok(value)) => {
            let event = value["events"][0].clone();
            let title = format!("Event #{}", text::thousands(id.0));
            let text = serde_json::to_string_pretty(&event).unwrap_or_default();
            model.overlay = Some(Overlay::Reader(TextReader { title, text, top: 0 }));
            Vec::new()
        }
        (Tag::Goto { agent, id }, Ok(value)) => {
            let event = &value["events"][0];
            let is_about = ["agent", "from", "to"].iter().any(|name| event[*name] == agent.to_string());
            match is_about && model.current == Some(agent) {
                true => act::go_to(model, id),
                false => take(model, Tag::Event(id), Ok(value)),
            }
        }
        (Tag::File(path), Ok(value)) => {
            let text = value["diff"].as_str().unwrap_or_default().to_owned();
            model.overlay = Some(Overlay::Reader(TextReader { title: path, text, top: 0 }));
            Vec::new()
        }
        (Tag::Mail, Ok(value)) => {
            let from: String = value["from"]
                .as_str()
                .map(|from| from.parse().map(|id| model.name(id)).unwrap_or(from.to_owned()))
                .unwrap_or_default();
            let text = value["body"].as_str().unwrap_or_default().to_owned();
            model.overlay = Some(Overlay::Reader(TextReader { title: format!("Mail from {from}"), text, top: 0 }));
            let mut effects = vec![Effect::Refresh];
            if matches!(&model.side, Some(Side::Sheet(sheet)) if sheet.kind == SheetKind::Mail) {
                effects.extend(act::read_sheet(model));
            }
            effects
        }
        (Tag::Ward { step }, Ok(value)) => {
            if let Some(Side::Quest(panel)) = &mut model.side {
                let output = value["text"].as_str().or(value["output"].as_str()).unwrap_or_default();
                let lines: Vec<String> = text::without_escapes(output).lines().map(str::to_owned).collect();
                let last = lines[lines.len().saturating_sub(40)..].to_vec();
                // It stands at the end.
                let nothing = if last.is_empty() { " nothing" } else { "" };
                (panel.ward, panel.scroll) = (Some((format!("The ward of {step} said{nothing}"), last)), usize::MAX);
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
        (Tag::MoreOfLog { .. }, Err(why)) => {
            if let Some(Side::Sheet(sheet)) = &mut model.side {
                (sheet.loading, sheet.goes_on) = (false, None);
            }
            model.say(words(&why));
            Vec::new()
        }
        (Tag::Sheet(kind, agent), Err(why)) => {
            let rows = sheets::wrapped(model, &words(&why), SHEET_CELLS).into_iter().map(SheetRow::plain).collect();
            if let Some(Side::Sheet(sheet)) = &mut model.side
                && (sheet.kind, sheet.agent) == (kind, agent)
            {
                (sheet.title, sheet.rows, sheet.loading) = ("It cannot be shown".to_owned(), rows, false);
            }
            Vec::new()
        }
        // A kill that cannot be shown is not asked about.
        (Tag::KillPreview { agent, .. }, Err(why)) => {
            if matches!(&model.overlay, Some(Overlay::Kill(ask)) if ask.agent == agent) {
                model.overlay = None;
            }
            model.say(words(&why));
            Vec::new()
        }
        (_, Err(why)) => {
            model.say(words(&why));
            Vec::new()
        }
    }
}

/// When the question of a need was answered, if that is known.
fn answered_at(model: &Model, need: &str) -> Option<Timestamp> {
    model.answered.filter(|(question, _)| format!("q{question}") == need).map(|(_, at)| at)
}

fn unreadable(_: serde_json::Error) -> String {
    "The daemon's answer cannot be read. It may be of another version.".to_owned()
}

fn id_of(value: &Value) -> Option<AgentId> {
    value["id"].as_str()?.parse().ok()
}
