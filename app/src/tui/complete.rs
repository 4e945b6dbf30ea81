//! Completion: commands and their arguments after `/`, agents and files after `@`. A list covers what is under it and pushes nothing.

use super::command::{NAMES, nearest};
use super::field::Field;
use super::model::Model;
use super::overlay::{Overlay, Suggest, Suggestion};
use super::roster::short;
use super::update::{Effect, Tag};
use super::words;
use crate::client::paths::agent_path;
use hatchery_core::AgentId;

/// How many entries are offered at most.
const MAX_ENTRIES: usize = 50;
/// How many of them are files.
const MAX_FILES: usize = 40;

/// Tab: takes the only entry, or goes through them.
pub fn tab(model: &mut Model, back: bool) -> Vec<Effect> {
    let mut effects = Vec::new();
    if !matches!(model.overlay, Some(Overlay::Suggest(_))) {
        if take_nearest(model) {
            return effects;
        }
        offer(model, true);
        effects = files_wanted(model);
    }
    if let Some(Overlay::Suggest(suggest)) = &mut model.overlay {
        let count = suggest.entries.len();
        suggest.at = Some(match (suggest.at, back) {
            (None, false) => 0,
            (None, true) => count - 1,
            (Some(at), false) => (at + 1) % count,
            (Some(at), true) => (at + count - 1) % count,
        });
        if count == 1 {
            take(model);
        }
    }
    effects
}

/// A command that is not there, with words after it, becomes the nearest one: "There is no /frok. /fork? Tab takes it."
fn take_nearest(model: &mut Model) -> bool {
    let raw = model.desk().field.raw();
    let Some(written) = raw.strip_prefix('/').filter(|_| raw.len() == model.desk().field.len()) else { return false };
    let Some((name, rest)) = written.split_once(char::is_whitespace) else { return false };
    if name.is_empty() || name.starts_with('/') || NAMES.iter().any(|(known, ..)| *known == name) {
        return false;
    }
    let Some(near) = nearest(name, NAMES.iter().map(|(known, ..)| *known)) else { return false };
    let mended = Field::of(&format!("/{near} {rest}"));
    model.desk_mut().field.set(&mended);
    super::keys::settle_purpose(model, false);
    true
}

/// Offers what fits after each key, by itself only after `/` and `@`.
pub fn refresh(model: &mut Model) -> Vec<Effect> {
    offer(model, false);
    files_wanted(model)
}

/// The files of an agent's folder are there.
pub fn files_came(model: &mut Model, agent: AgentId, files: Vec<String>) {
    model.files = Some((agent, files));
    let offered = matches!(&model.overlay, Some(Overlay::Suggest(Suggest { at: Some(_), .. })));
    let waits = model.overlay.is_none() || matches!(model.overlay, Some(Overlay::Suggest(_)));
    // An entry that is chosen already does not move.
    if waits && !offered && typed_word(&model.desk().field).starts_with('@') {
        offer(model, false);
    }
}

/// Puts the chosen entry into the text.
pub fn take(model: &mut Model) {
    let Some(Overlay::Suggest(suggest)) = model.overlay.take() else { return };
    if let Some(entry) = suggest.at.and_then(|at| suggest.entries.get(at)) {
        let was_empty = model.desk().field.is_empty();
        model.desk_mut().field.complete(suggest.from, &entry.insert);
        super::keys::fix_purpose(model, was_empty);
    }
}

fn offer(model: &mut Model, asked: bool) {
    let found = fits(model, &model.desk().field, asked);
    match found {
        Some(suggest) if !suggest.entries.is_empty() => model.overlay = Some(Overlay::Suggest(suggest)),
        _ => {
            if matches!(model.overlay, Some(Overlay::Suggest(_))) {
                model.overlay = None;
            }
        }
    }
}

/// The word before the cursor.
fn typed_word(field: &Field) -> &str {
    field.before_cursor().rsplit(char::is_whitespace).next().unwrap_or_default()
}

/// The files are asked for when an `@` is typed, and kept until the next one.
fn files_wanted(model: &Model) -> Vec<Effect> {
    let word = typed_word(&model.desk().field);
    let Some(agent) = model.current.filter(|_| word.starts_with('@')) else { return Vec::new() };
    let known = model.files.as_ref().is_some_and(|(of, _)| *of == agent);
    match word == "@" || !known {
        true => vec![Effect::Get { tag: Tag::Files(agent), path: agent_path(&agent.to_string(), "/files") }],
        false => Vec::new(),
    }
}

fn fits(model: &Model, field: &Field, asked: bool) -> Option<Suggest> {
    let before = field.before_cursor();
    if field.cursor() != field.raw().len() && !asked {
        return None;
    }
    let from = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = &before[from..];
    let is_command = field.raw().starts_with('/') && !field.raw().starts_with("//");
    if is_command && from == 0 {
        return Some(Suggest { from, entries: commands(&word[1..]), at: None });
    }
    if let Some(name) = word.strip_prefix('@') {
        let mut entries = files(model, name);
        entries.extend(agents(model, name, "@"));
        entries.truncate(MAX_ENTRIES);
        return Some(Suggest { from, entries, at: None });
    }
    if is_command {
        let name = before[1..].split_whitespace().next().unwrap_or_default();
        let (_, usage, _) = NAMES.iter().find(|(known, ..)| *known == name)?;
        let is_first = before[1..].split_whitespace().count() <= 1 + usize::from(!word.is_empty());
        if name == "quest" && is_first {
            let known = ["new", "list", "show", "pause", "resume", "retry", "ward", "budget", "abandon"];
            let entries = known
                .iter()
                .filter(|known| known.starts_with(word))
                .map(|known| entry(&format!("{known} "), known, ""))
                .collect();
            return Some(Suggest { from, entries, at: None });
        }
        if name == "rewind" && is_first {
            let labels = model.talk().map(|talk| talk.marks()).unwrap_or_default();
            let fits = labels.into_iter().filter(|label| label.starts_with(word));
            let entries = fits.map(|label| entry(&format!("{label} "), &super::text::clean(label), "mark"));
            return Some(Suggest { from, entries: entries.take(MAX_ENTRIES).collect(), at: None });
        }
        if name == "quest"
            && let Some(entries) = quest_arguments(model, before, word)
        {
            return Some(Suggest { from, entries, at: None });
        }
        if (usage.contains("AGENT") && is_first) && (asked || !word.is_empty() || name == "go") {
            return Some(Suggest { from, entries: agents(model, word, ""), at: None });
        }
        return None;
    }
    // In a message, Tab completes the name of an agent.
    (asked && !word.is_empty()).then(|| Suggest { from, entries: agents(model, word, ""), at: None })
}

/// The quest of `/quest pause …`, and the step of `/quest retry QUEST …`.
fn quest_arguments(model: &Model, before: &str, word: &str) -> Option<Vec<Suggestion>> {
    let words: Vec<&str> = before[1..].split_whitespace().collect();
    let given = words.len() - usize::from(!word.is_empty());
    let quests = model.roster.quests.iter();
    match (words.get(1).copied()?, given) {
        ("show" | "pause" | "resume" | "retry" | "ward" | "budget" | "abandon", 2) => {
            let fits = quests.filter(|quest| quest.id.to_string().starts_with(word));
            let entries = fits.map(|quest| {
                let id = quest.id.to_string();
                entry(
                    &format!("{} ", &id[..id.len().min(8)]),
                    &id[..id.len().min(8)],
                    &super::text::title(&quest.request),
                )
            });
            Some(entries.take(MAX_ENTRIES).collect())
        }
        ("retry", 3) => {
            let quest = quests.clone().find(|quest| quest.id.to_string().starts_with(words[2]))?;
            let steps = &model.roster.documents.get(&quest.id)?.steps;
            let fits = steps.iter().filter(|step| step.id.to_string().starts_with(word));
            let entries = fits.map(|step| entry(&format!("{} ", step.id), &step.id.to_string(), &step.name));
            Some(entries.take(MAX_ENTRIES).collect())
        }
        _ => None,
    }
}

fn commands(typed: &str) -> Vec<Suggestion> {
    let mut entries: Vec<Suggestion> = NAMES
        .iter()
        .filter(|(name, ..)| name.starts_with(typed))
        .map(|(name, usage, what)| entry(&format!("/{name} "), &format!("/{name} {usage}"), what))
        .collect();
    if entries.is_empty()
        && let Some(near) = super::command::nearest(typed, NAMES.iter().map(|(name, ..)| *name))
        && let Some((name, usage, what)) = NAMES.iter().find(|(name, ..)| *name == near)
    {
        entries.push(entry(&format!("/{name} "), &format!("/{name} {usage}"), what));
    }
    entries
}

/// Files by fuzzy match: the letters in this order, the nearer together and the nearer to the name the better.
fn files(model: &Model, typed: &str) -> Vec<Suggestion> {
    let Some((_, files)) = model.files.as_ref().filter(|(agent, _)| Some(*agent) == model.current) else {
        return Vec::new();
    };
    let typed = typed.to_lowercase();
    let mut found: Vec<((usize, usize), &String)> =
        files.iter().filter_map(|file| Some((likeness(file, &typed)?, file))).collect();
    found.sort();
    let shown = found.into_iter().take(MAX_FILES);
    shown.map(|(_, file)| entry(&format!("@{file} "), &super::text::clean(file), "file")).collect()
}

/// How far apart the letters stand in a path, and how long the path is. None: they are not in it.
fn likeness(path: &str, typed: &str) -> Option<(usize, usize)> {
    let path = path.to_lowercase();
    let name = path.rfind('/').map_or(0, |at| at + 1);
    if let Some(at) = path[name..].find(typed) {
        return Some((usize::from(at > 0), path.len()));
    }
    if let Some(at) = path.find(typed) {
        return Some((2 + at.min(1), path.len()));
    }
    let (mut from, mut gaps) = (0, 4);
    for letter in typed.chars() {
        let at = path[from..].find(letter)?;
        gaps += at;
        from += at + letter.len_utf8();
    }
    Some((gaps, path.len()))
}

fn agents(model: &Model, typed: &str, begin: &str) -> Vec<Suggestion> {
    let typed = typed.to_lowercase();
    let mut found: Vec<(bool, Suggestion)> = Vec::new();
    for id in model.roster.order() {
        let Some(agent) = model.roster.agents.get(id) else { continue };
        let name = model.name(*id);
        let lower = name.to_lowercase();
        if lower.contains(&typed) || short(*id).to_lowercase().starts_with(&typed) {
            let unique = model.roster.find(&name).len() == 1;
            let insert = if unique { format!("{begin}{name} ") } else { format!("{begin}{id} ") };
            let state = model.roster.state(agent);
            let left = format!("{} {name}", state.glyph(agent.ring));
            let right = format!(
                "{} {}",
                words::state_of(model, agent, false).state,
                agent.view.doing.as_ref().map_or("", |doing| doing.line.as_str())
            );
            found.push((!lower.starts_with(&typed), entry(&insert, &left, &super::text::clean(&right))));
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, entry)| entry).take(MAX_ENTRIES).collect()
}

fn entry(insert: &str, left: &str, right: &str) -> Suggestion {
    Suggestion { insert: insert.to_owned(), left: left.to_owned(), right: right.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::likeness;

    #[test]
    fn files_are_found_by_their_name_first_and_by_letters_in_order_last() {
        let files = ["src/tui/field.rs", "docs/field.md", "core/src/stream_json/fields.rs", "src/fine/lid.rs", "a.txt"];
        let mut found: Vec<_> = files.iter().filter_map(|file| Some((likeness(file, "field")?, *file))).collect();
        found.sort();
        let names: Vec<&str> = found.into_iter().map(|(_, file)| file).collect();
        assert_eq!(names, ["docs/field.md", "src/tui/field.rs", "core/src/stream_json/fields.rs", "src/fine/lid.rs"]);
        assert_eq!(likeness("a.txt", "b"), None);
    }
}
