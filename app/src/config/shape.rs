//! What may stand in `[quests]`: which keys there are, and what each takes. Looked at before it is read, because what is wrong is to be
//! told in the words of the one who wrote it: the key, the value, and what would be right.

use crate::nearest::nearest;
use crate::report::{Code, Report};
use config::{Map, Value, ValueKind};
use hatchery_core::quest::{MAX_SLOTS, MAX_WARD_MS, MIN_WARD_MS};

/// What a key takes.
enum Takes {
    /// Such as a command, a folder, a name.
    Text(&'static str),
    Number(u64, u64),
    YesOrNo,
    OneOf(&'static [&'static str]),
    /// A list of texts, from these if there are any.
    Texts(&'static str, &'static [&'static str]),
    Table(&'static [Key]),
    Tables(&'static [Key]),
}

struct Key {
    name: &'static str,
    takes: Takes,
    /// Whether its table makes no sense without it.
    needed: bool,
}

const fn key(name: &'static str, takes: Takes) -> Key {
    Key { name, takes, needed: false }
}

const fn needed(name: &'static str, takes: Takes) -> Key {
    Key { name, takes, needed: true }
}

const SIGNALS: &[&str] = &["complete", "partially-complete", "needs-user-input", "needs-role-followup"];
const STATIONS: Takes = Takes::Texts("a list of roles and \"ward\", such as [\"codeweaver\", \"ward\"]", &[]);
const PATHS: &[Key] =
    &[key("requirements", STATIONS), key("plan", STATIONS), key("work", STATIONS), key("review", STATIONS)];
const ROLE: &[Key] = &[
    needed("name", Takes::Text("a name: small letters, digits and dashes")),
    needed("may", Takes::Texts("a list of signals, such as [\"complete\"]", SIGNALS)),
    key("calls", Takes::Texts("a list of roles, such as [\"spiritmender\"]", &[])),
    key("prompt", Takes::Text("a text: what the role is told")),
];
const QUESTS: &[Key] = &[
    key("slots", Takes::Number(1, MAX_SLOTS as u64)),
    key("ward", Takes::Text("a command in quotes, such as \"make test\"; \"\" to have it guessed")),
    key("ward_limit_ms", Takes::Number(MIN_WARD_MS, MAX_WARD_MS)),
    key("isolation", Takes::OneOf(&["worktree", "none"])),
    key("approve_plan", Takes::YesOrNo),
    key("prompts", Takes::Text("a folder, from the project's root")),
    key("roles", Takes::Tables(ROLE)),
    key("paths", Takes::Table(PATHS)),
    key("mender", Takes::Text("the name of a role")),
    key("planner", Takes::Text("the name of a role")),
    key("requirer", Takes::Text("the name of a role")),
];

/// What is wrong with `[quests]`, as it stands in a file.
pub fn check_quests(place: &str, quests: &Value) -> Result<(), Report> {
    check(place, "quests", &Takes::Table(QUESTS), quests)
}

fn check(place: &str, name: &str, takes: &Takes, value: &Value) -> Result<(), Report> {
    match (takes, &value.kind) {
        (Takes::Table(keys), ValueKind::Table(table)) => check_table(place, name, keys, table),
        (Takes::Tables(keys), ValueKind::Array(list)) => list.iter().try_for_each(|one| match &one.kind {
            ValueKind::Table(table) => check_table(place, name, keys, table),
            _ => Err(unfit(place, name, value, takes)),
        }),
        (_, _) if fits(takes, value) => Ok(()),
        (_, _) => Err(unfit(place, name, value, takes)),
    }
}

fn check_table(place: &str, name: &str, keys: &[Key], table: &Map<String, Value>) -> Result<(), Report> {
    let mut written: Vec<&String> = table.keys().collect();
    written.sort();
    for key in written {
        let Some(known) = keys.iter().find(|known| known.name == key) else {
            let names: Vec<&str> = keys.iter().map(|known| known.name).collect();
            let meant = nearest(key, names.iter().copied()).unwrap_or_default();
            return Err(Report::new(Code::Usage, format_args!("{place}: `{name}.{key}` is not a setting"))
                .hint(format_args!("did you mean `{name}.{meant}`? There are: {}", names.join(", "))));
        };
        check(place, &format!("{name}.{key}"), &known.takes, &table[key])?;
    }
    match keys.iter().find(|known| known.needed && !table.contains_key(known.name)) {
        Some(missing) => {
            let message = format!("{place}: an entry of `{name}` has no `{}`", missing.name);
            Err(Report::new(Code::Usage, message).hint(accepted(&missing.takes)))
        }
        None => Ok(()),
    }
}

fn fits(takes: &Takes, value: &Value) -> bool {
    let text = |value: &Value| match &value.kind {
        ValueKind::String(text) => Some(text.clone()),
        _ => None,
    };
    match takes {
        Takes::Text(_) => text(value).is_some(),
        Takes::Number(low, high) => whole(value).is_some_and(|number| (*low..=*high).contains(&number)),
        Takes::YesOrNo => matches!(value.kind, ValueKind::Boolean(_)),
        Takes::OneOf(words) => text(value).is_some_and(|text| words.contains(&text.as_str())),
        Takes::Texts(_, words) => match &value.kind {
            ValueKind::Array(list) => {
                list.iter().all(|one| text(one).is_some_and(|text| words.is_empty() || words.contains(&text.as_str())))
            }
            _ => false,
        },
        Takes::Table(_) | Takes::Tables(_) => false,
    }
}

fn whole(value: &Value) -> Option<u64> {
    match value.kind {
        ValueKind::I64(number) => number.try_into().ok(),
        ValueKind::I128(number) => number.try_into().ok(),
        ValueKind::U64(number) => Some(number),
        ValueKind::U128(number) => number.try_into().ok(),
        _ => None,
    }
}

fn unfit(place: &str, name: &str, value: &Value, takes: &Takes) -> Report {
    let message = format!("{place}: {name} = {} cannot be used", shown(value));
    Report::new(Code::Usage, message).hint(accepted(takes))
}

/// What a key takes, in words.
fn accepted(takes: &Takes) -> String {
    let quoted = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>();
    match takes {
        Takes::Text(what) => format!("it has to be {what}"),
        Takes::Number(low, high) => format!("it has to be a whole number from {low} to {high}"),
        Takes::YesOrNo => "it has to be true or false".into(),
        Takes::OneOf(words) => format!("it has to be {}", quoted(words).join(" or ")),
        Takes::Texts(what, []) => format!("it has to be {what}"),
        Takes::Texts(what, words) => format!("it has to be {what}; there are {}", quoted(words).join(", ")),
        Takes::Table(keys) => {
            let names: Vec<&str> = keys.iter().map(|known| known.name).collect();
            format!("it is a table with: {}", names.join(", "))
        }
        Takes::Tables(keys) => {
            let names: Vec<&str> = keys.iter().map(|known| known.name).collect();
            format!("each entry is a table with: {}", names.join(", "))
        }
    }
}

/// A value as it is written, or the beginning of it.
fn shown(value: &Value) -> String {
    const SHOWN_CHARS: usize = 60;
    let whole = match &value.kind {
        ValueKind::String(text) => format!("\"{text}\""),
        ValueKind::Array(list) => {
            let entries: Vec<String> = list.iter().map(shown).collect();
            format!("[{}]", entries.join(", "))
        }
        ValueKind::Table(_) => "{ … }".into(),
        _ => value.to_string(),
    };
    match whole.chars().count() > SHOWN_CHARS {
        true => whole.chars().take(SHOWN_CHARS).chain(['…']).collect(),
        false => whole,
    }
}
