//! `/quest`: the words of the command line.

use super::arguments::Arguments;
use super::names::nearest;
use crate::client::paths::{quest_path, step_path};
use crate::http::{QuestLine, TrialVerdict, TriedWard};
use crate::tui::act;
use crate::tui::model::Model;
use crate::tui::text;
use crate::tui::update::{Effect, Failed, Tag, words};
use serde_json::{Value, json};

/// How many problems of a ward are named in one sentence.
const SHOWN_FINDINGS: usize = 3;

pub(super) fn quest(model: &mut Model, rest: &str, written: &str) -> Result<Vec<Effect>, String> {
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let rest = rest.trim();
    let done = |words: String| Tag::Done { words, text: written.to_owned() };
    // The quest of the current agent, or the one in the panel, or the last one.
    let usual = || {
        let of_current = model
            .current
            .and_then(|agent| model.roster.agents.get(&agent))
            .and_then(|it| it.view.assignment.as_ref())
            .map(|it| it.quest);
        let in_panel = match &model.side {
            Some(crate::tui::panel::Side::Quest(panel)) => Some(panel.quest),
            _ => None,
        };
        in_panel.or(of_current).or_else(|| model.roster.quests.last().map(|quest| quest.id))
    };
    let named = |word: &str| {
        let found: Vec<_> = model
            .roster
            .quests
            .iter()
            .filter(|quest| word.len() >= 4 && quest.id.to_string().starts_with(word))
            .collect();
        match found.as_slice() {
            [one] => Some(one.id),
            _ => None,
        }
    };
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (quest, after) = match named(first) {
        Some(quest) => (Some(quest), after.trim()),
        None => (usual(), rest),
    };
    let needed = || quest.ok_or("There is no quest. /quest new WHAT YOU WANT begins one.".to_owned());
    let post = |path: String, body: Value, words: String| vec![Effect::Post { tag: done(words), path, body }];
    Ok(match word {
        "new" => {
            let arguments = Arguments::read(
                rest,
                &["--harness", "--slots", "--ward", "--budget", "--model", "--isolation", "--script"],
                &["--approve-plan", "--hold"],
            )?;
            if arguments.rest.is_empty() {
                return Err("/quest new needs what you want to have.".to_owned());
            }
            let slots = arguments
                .flag("--slots")
                .map(|slots| slots.parse::<u32>().map_err(|_| format!("--slots {slots} is no number.")))
                .transpose()?;
            let mut body = json!({
                "request": arguments.rest,
                "slots": slots,
                "ward": arguments.flag("--ward"),
                "budget": arguments.flag("--budget"),
                "isolation": arguments.flag("--isolation"),
                // Nothing begins before the ward was tried.
                "hold": true,
                "with": { "harness": arguments.flag("--harness"), "model": arguments.flag("--model"), "script": arguments.flag("--script") },
            });
            if arguments.flag("--approve-plan").is_some() {
                body["approvePlan"] = Value::Bool(true);
            }
            let tag = Tag::NewQuest { hold: arguments.flag("--hold").is_some(), text: written.to_owned() };
            vec![Effect::Post { tag, path: "/api/quests".into(), body }]
        }
        "list" => {
            let line = |quest: &QuestLine| {
                let (id, title) = (quest.id.to_string(), text::title(&quest.request));
                let state =
                    serde_json::to_value(quest.state).ok().and_then(|it| it.as_str().map(|it| it.replace('_', " ")));
                let state = state.unwrap_or_default();
                format!("- {}: {title} · {state}, {} of {} steps", &id[..6], quest.complete, quest.steps)
            };
            let lines: Vec<String> = model.roster.quests.iter().map(line).collect();
            let none = "There is no quest. /quest new WHAT YOU WANT begins one.".to_owned();
            model.show_here(if lines.is_empty() { none } else { lines.join("\n") });
            Vec::new()
        }
        "show" | "" => {
            let quest = needed()?;
            act::open_quest(model, Some(quest))
        }
        "pause" => post(quest_path(&needed()?.to_string(), "/pause"), json!({}), "The quest is paused.".to_owned()),
        "resume" => post(quest_path(&needed()?.to_string(), "/resume"), json!({}), "The quest goes on.".to_owned()),
        "abandon" => match after == "--yes" || after.ends_with(" --yes") {
            true => post(
                quest_path(&needed()?.to_string(), "/abandon"),
                json!({}),
                "The quest is abandoned. Its work is kept under rescue.".to_owned(),
            ),
            false => return Err(
                "This ends the quest for good and stops its agents; their work is kept. /quest abandon --yes does it."
                    .to_owned(),
            ),
        },
        "retry" if after.is_empty() => return Err("/quest retry needs the name of a step.".to_owned()),
        "retry" => {
            post(step_path(&needed()?.to_string(), after, "/retry"), json!({}), format!("{after} is tried again."))
        }
        "ward" => {
            let command = (!after.is_empty() && after != "none").then_some(after);
            post(
                quest_path(&needed()?.to_string(), "/ward"),
                json!({ "command": command }),
                "The ward is changed.".to_owned(),
            )
        }
        "budget" => {
            let path = quest_path(&needed()?.to_string(), "/budget");
            let limit = super::amount("/quest budget", after)?;
            let words = match &limit {
                Some(limit) => format!("The quest may spend ${limit} in all."),
                None => "The quest has no budget any more.".to_owned(),
            };
            post(path, json!({ "limit": limit }), words)
        }
        other => {
            let known = ["new", "list", "show", "pause", "resume", "retry", "ward", "budget", "abandon"];
            let hint = nearest(other, known.into_iter()).map_or_else(|| known.join(", "), |near| format!("{near}?"));
            return Err(format!("There is no /quest {other}. {hint}"));
        }
    })
}

/// A quest was created. Its ward is tried, and it begins if the ward is green.
pub fn created(model: &mut Model, answer: &Value, hold: bool) -> Vec<Effect> {
    let quest = answer["id"].as_str().unwrap_or_default().to_owned();
    if hold {
        model.say("The quest is paused: /quest resume begins it. ^X q shows it.".to_owned());
        return vec![Effect::Refresh];
    }
    model.say("Before the quest begins, its ward is tried. ^X q shows the quest.".to_owned());
    let path = quest_path(&quest, "/try-ward");
    vec![Effect::Refresh, Effect::Post { tag: Tag::Trial, path, body: json!({ "begin": true }) }]
}

/// The ward of a new quest was tried.
pub fn tried(model: &mut Model, result: Result<Value, Failed>) -> Vec<Effect> {
    let said = match result.map(serde_json::from_value::<TriedWard>) {
        Ok(Ok(tried)) => verdict(&tried),
        Ok(Err(error)) => format!("The ward was tried, and the answer cannot be read: {error}"),
        Err(why) => format!("The quest is paused, because its ward could not be tried. {}", words(&why)),
    };
    model.say(said);
    vec![Effect::Refresh]
}

fn verdict(tried: &TriedWard) -> String {
    let why: Vec<&str> =
        tried.why.iter().chain(tried.findings.iter().take(SHOWN_FINDINGS)).map(String::as_str).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
    match tried.verdict {
        TrialVerdict::None | TrialVerdict::Green => "The quest begins. ^X q shows it.".to_owned(),
        TrialVerdict::Red => format!(
            "The quest is paused: its ward is red before any work{why}. /quest resume begins it anyway, if that is its task."
        ),
        TrialVerdict::Broken => format!(
            "The quest is paused: its ward is broken, so no step could be complete{why}. /quest ward COMMAND changes it, then /quest \
             resume begins the quest."
        ),
    }
}
