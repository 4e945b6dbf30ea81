//! Answers to questions, and commands to quests.

use super::saying::brings_back;
use super::{go, open_quest};
use crate::client::paths::step_path;
use crate::quest_document::QuestWord;
use crate::tui::draw::SIDE_FROM;
use crate::tui::field::Field;
use crate::tui::model::{Focus, Model};
use crate::tui::overlay::{Overlay, TextReader};
use crate::tui::panel::{ChosenAnswer, Home, Side, choices, permission_words};
use crate::tui::roster::Need;
use crate::tui::update::{Effect, Tag};
use hatchery_core::quest::StepStatus;
use hatchery_core::{AgentId, EventId};
use serde_json::json;

/// How long a panel must have been on the screen before a number in it answers something.
pub(super) const READABLE_MS: i64 = 300;

pub(super) const TOO_QUICK: &str = "That was too quick to have been read. Enter again sends it.";

/// How much of a quest's id is written in a command.
const SHORT_QUEST: usize = 6;

/// What stands in Home while an answer is under way.
pub const SENDING: &str = "Sending …";

pub fn answer_effect(model: &Model, question: EventId, answer: String) -> Effect {
    let agent = model.roster.questions.iter().find(|asked| asked.id == question).map(|asked| asked.agent);
    Effect::Post {
        tag: Tag::Answer { need: format!("q{question}"), agent, words: answer.clone() },
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

/// A number while the open question of the agent in front is chosen: it stands in your text, or is chosen in Home where your text is
/// something else. None if no such question is chosen.
pub fn number_on_question(model: &mut Model, number: usize) -> Option<Vec<Effect>> {
    let chosen = model.desk().chosen?.0;
    let question = model.roster.question_of(model.current?).filter(|question| question.id == chosen)?;
    if number > choices(model, question).len() {
        return None;
    }
    if model.desk().field.is_empty() {
        model.focus = Focus::Text;
        let desk = model.desk_mut();
        (desk.field, desk.chosen) = (Field::of(&number.to_string()), None);
        crate::tui::keys::settle_purpose(model, true);
    } else {
        answer_oldest(model);
        if let Some(Side::Home(home)) = &mut model.side {
            home.chosen = Some(format!("q{chosen}"));
        }
        choose(model, number);
    }
    Some(Vec::new())
}

/// The need that is chosen in Home.
pub fn chosen_need(model: &Model) -> Option<(usize, Need<'_>)> {
    let Some(Side::Home(home)) = &model.side else { return None };
    let needs = model.roster.needs();
    let at = home.chosen.as_ref().and_then(|key| needs.iter().position(|need| need.key() == *key)).unwrap_or(0);
    needs.get(at).map(|need| (at, *need))
}

/// Shows what the chosen request is about over the screen, all of it.
pub fn read_request(model: &mut Model) {
    let asked = match chosen_need(model) {
        Some((_, Need::Question(question))) => question,
        _ => return model.say("v shows what an agent asks for. A step that has failed asks for nothing."),
    };
    let (title, text) = match &asked.permission {
        Some(permission) => permission_words(model, permission),
        None => (format!("{} asks you", model.name(asked.agent)), asked.whole()),
    };
    model.overlay = Some(Overlay::Reader(TextReader { title, text, top: 0 }));
}

/// The agent of what is chosen in Home: of a need, or one that stands below the needs.
pub fn chosen_in_home(model: &Model) -> Option<AgentId> {
    let Some(Side::Home(home)) = &model.side else { return None };
    let below = home.chosen.as_ref().filter(|key| model.roster.below_needs(model.now).contains(key));
    match below.and_then(|key| key.strip_prefix('a')) {
        Some(agent) => agent.parse().ok(),
        None => chosen_need(model).and_then(|(_, need)| need.agent()),
    }
}

/// A number chooses an answer.
pub fn choose(model: &mut Model, number: usize) {
    let Some((_, need)) = chosen_need(model) else { return };
    let agent = need.agent();
    let (key, count, own) = match need {
        Need::Question(question) => {
            let choices = choices(model, question);
            let own = choices.get(number - 1).is_some_and(|choice| choice.answer.is_typed());
            (need.key(), choices.len(), own)
        }
        Need::FailedStep { .. } => (need.key(), 2, false),
    };
    if number == 0 || number > count {
        model.say(format!("There is no answer {number}. There are {count}."));
        return;
    }
    if let Some(Side::Home(home)) = &mut model.side {
        home.choice = Some(number - 1);
        home.chosen = Some(key.clone());
        home.typing = own;
    }
    if own {
        model.own.entry(key).or_default().agent = agent;
    }
}

/// Words for a question that is no longer asked go to the texts of the agent that asked: where they would stand in its field, Enter
/// would do something else than before. While they are typed or sent, they stay.
pub fn keep_own_words(model: &mut Model) {
    if model.project.is_empty() {
        // It is not known yet what is asked.
        return;
    }
    let asked = |need: &str| model.roster.questions.iter().any(|question| format!("q{}", question.id) == need);
    let is_open = |need: &str| match &model.side {
        Some(Side::Home(home)) => {
            home.typing && home.chosen.as_deref() == Some(need)
                || home.outcomes.get(need).is_some_and(|outcome| outcome == SENDING)
        }
        _ => false,
    };
    let gone: Vec<String> = model.own.keys().filter(|need| !asked(need) && !is_open(need)).cloned().collect();
    for need in gone {
        if let Some(place) = set_own_words_aside(model, &need) {
            model.say(format!("The question is no longer asked.{place}"));
        }
    }
}

/// Puts the words for a question into the texts of the agent that asked, and says how they come back. None if there are none.
pub fn set_own_words_aside(model: &mut Model, need: &str) -> Option<String> {
    let words = model.own.remove(need).filter(|words| !words.field.is_empty())?;
    model.recall.set_aside(words.agent, &words.field.whole());
    Some(brings_back(model, words.agent))
}

fn own_words(model: &Model, need: &str) -> String {
    model.own.get(need).map(|words| words.field.whole()).unwrap_or_default()
}

/// Enter in Home: carries the chosen answer out.
pub fn answer_chosen(model: &mut Model) -> Vec<Effect> {
    let Some(Side::Home(home)) = &model.side else { return Vec::new() };
    // What was chosen was answered elsewhere meanwhile: another need is in its place, and nothing is chosen in it.
    let key = chosen_need(model).map(|(_, need)| need.key());
    if home.chosen.is_some() && home.chosen != key {
        if let Some(Side::Home(home)) = &mut model.side {
            (home.chosen, home.choice, home.typing) = (None, None, false);
        }
        model.say("This was answered meanwhile. Nothing was sent.");
        keep_own_words(model);
        return Vec::new();
    }
    let Some((_, need)) = chosen_need(model) else { return Vec::new() };
    if model.now.0 - home.entered.0 < READABLE_MS {
        model.say(TOO_QUICK);
        return Vec::new();
    }
    let Some(choice) = home.choice else {
        model.say("A number chooses an answer, then Enter sends it.");
        return Vec::new();
    };
    let key = need.key();
    match need {
        Need::Question(question) => {
            let (id, choices) = (question.id, choices(model, question));
            let Some(choice) = choices.get(choice) else { return Vec::new() };
            let answer = match &choice.answer {
                ChosenAnswer::ReadPlan(quest) => return open_quest(model, Some(*quest)),
                ChosenAnswer::Deny => match own_words(model, &key).trim() {
                    "" => "deny".to_owned(),
                    reason => format!("deny: {reason}"),
                },
                ChosenAnswer::Word(word) => word.clone(),
                ChosenAnswer::Own(begin) => {
                    let own = own_words(model, &key);
                    if own.trim().is_empty() {
                        return Vec::new();
                    }
                    format!("{begin}{own}")
                }
            };
            if let Some(Side::Home(home)) = &mut model.side {
                home.typing = false;
                home.outcomes.insert(key.clone(), SENDING.to_owned());
            }
            vec![answer_effect(model, id, answer)]
        }
        Need::FailedStep { quest, step } => {
            let (quest, at, step) = (quest.id, step, quest.steps[step].id.to_string());
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
                    if let Some(Side::Quest(panel)) = &mut model.side {
                        panel.step = at;
                    }
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
    let failed = step.status == StepStatus::Failed;
    match agent {
        Some(agent) if !failed => {
            let side = model.side.clone();
            let effects = go(model, agent);
            if model.size.0 >= SIDE_FROM {
                model.side = side;
            }
            effects
        }
        _ => ward_output(model),
    }
}

/// The command of a letter in the panel of a quest, for its chosen step.
pub fn quest_command(model: &Model, word: &str) -> Option<String> {
    let Some(Side::Quest(panel)) = &model.side else { return None };
    let quest = &panel.quest.to_string()[..SHORT_QUEST];
    let document = model.roster.documents.get(&panel.quest)?;
    Some(match word {
        "retry" => format!("/quest retry {quest} {}", document.steps.get(panel.step)?.id),
        _ if document.state == QuestWord::Paused => format!("/quest resume {quest}"),
        _ => format!("/quest pause {quest}"),
    })
}
