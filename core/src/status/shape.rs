//! Which values the fields of the protocol accept from people, agents and hooks. A field that the protocol does not name may have any
//! value. Files of other programs are not checked, because their writers would not see an error; readers take what they understand
//! ([`super::view`]).

use super::{Edit, EditError, Json, JsonKind, Object, Path, StatusDocument, incremented};

/// How many characters of a refused value a message repeats.
const MAX_SHOWN_CHARS: usize = 60;

/// The values that a field accepts. `null` equals absent, so it is always accepted, except as an item of a list.
enum Shape {
    Text,
    OneOf(&'static [&'static str]),
    /// ISO 8601.
    Time,
    Count,
    List(&'static Shape),
    /// An object whose writer chooses the names.
    Map(&'static Shape),
    /// Fields that are not listed may have any value.
    Fields(&'static [(&'static str, Shape)]),
}

use Shape::{Count, Fields, List, Map, OneOf, Text, Time};

const TEXTS: Shape = List(&Text);
const OUTPUTS: &str = "agentOutputs";
const SUMMARY: &str = "summary";

const DOCUMENT: Shape = Fields(&[
    ("activeSection", Text),
    ("activeSectionNumber", Text),
    ("currentCommand", Text),
    ("workflowStep", Text),
    ("completedSteps", TEXTS),
    ("nextStep", Text),
    ("scenarioScore", Fields(&[("satisfied", Count), ("total", Count)])),
    ("chunkProgress", Fields(&[("current", Count), ("total", Count), ("chunks", List(&Fields(&[])))])),
    ("readinessSummary", Map(&Count)),
    (
        "untrackedChanges",
        List(&Fields(&[("file", Text), ("section", Text), ("sectionNumber", Text), ("timestamp", Time)])),
    ),
    ("specVersion", Text),
    (OUTPUTS, Map(&Fields(&[(SUMMARY, Text), ("relevanceManifest", TEXTS)]))),
    ("lastUpdated", Time),
    ("buildRun", BUILD_RUN),
    ("buildEvents", List(&Fields(&[]))),
]);

const BUILD_RUN: Shape = Fields(&[
    ("runId", Text),
    ("status", OneOf(&["running", "paused", "partial", "completed"])),
    ("startedAt", Time),
    (
        "plan",
        Fields(&[
            ("totalChunks", Count),
            ("priorities", TEXTS),
            ("prioritySource", OneOf(&["global", "project", "user-prompt"])),
            ("specVersion", Text),
        ]),
    ),
    (
        "chunks",
        List(&Fields(&[
            ("id", Count),
            ("name", Text),
            ("status", OneOf(&["planned", "active", "retrying", "completed", "failed"])),
            ("sections", TEXTS),
            ("scenarios", TEXTS),
            ("dependsOn", List(&Count)),
            ("specVersionAtBuild", Text),
            ("attempt", Count),
            ("startedAt", Time),
            ("completedAt", Time),
            ("failedAt", Time),
        ])),
    ),
    ("convergencePhase", Text),
    ("lastCheckpoint", Time),
]);

/// Refuses an edit that would give a field of the protocol a value that its readers do not expect. Only the values of the edit are checked,
/// not what another program has written elsewhere in the document.
pub(super) fn check(document: &StatusDocument, edit: &Edit) -> Result<(), EditError> {
    check_values(document, edit)?;
    check_outputs(document, edit)
}

fn check_values(document: &StatusDocument, edit: &Edit) -> Result<(), EditError> {
    match edit {
        Edit::Set { path, value } => match shape_at(document, path)? {
            Some(shape) => shape.check(path, value),
            None => Ok(()),
        },
        Edit::Merge { patch } if patch.kind() == JsonKind::Object => DOCUMENT.check(&Path::root(), patch),
        // A patch that is not an object has a refusal of its own.
        Edit::Merge { .. } => Ok(()),
        Edit::Increment { path, by } => match shape_at(document, path)? {
            Some(shape) => shape.check(path, &incremented(document.get(path).as_ref(), *by, path)?),
            None => Ok(()),
        },
        Edit::Append { path, value } => match shape_at(document, path)? {
            Some(List(item)) => item.check_item(path, value),
            Some(other) => Err(other.refusal(path, JsonKind::List.to_string())),
            None => Ok(()),
        },
        Edit::Clear { path } => shape_at(document, path).map(drop),
    }
}

/// Refuses an edit that would create an output of an agent without a summary, or remove the summary. The summary is the only field that the
/// protocol requires of an output, because later agents read it.
fn check_outputs(document: &StatusDocument, edit: &Edit) -> Result<(), EditError> {
    let is_about_outputs = match edit {
        Edit::Set { path, .. } | Edit::Increment { path, .. } | Edit::Append { path, .. } | Edit::Clear { path } => {
            path.segments().first().is_some_and(|name| *name == OUTPUTS)
        }
        Edit::Merge { patch } => patch.object().is_some_and(|patch| patch.get(OUTPUTS).is_some()),
    };
    let mut after = document.clone();
    // An edit that cannot be applied has a refusal of its own.
    if !is_about_outputs || after.apply(edit).is_err() {
        return Ok(());
    }
    let outputs = |document: &StatusDocument| document.field(OUTPUTS).and_then(Json::object).unwrap_or_default();
    let lacks_summary =
        |output: &Json| output.object().is_some_and(|output| output.get(SUMMARY).is_none_or(Json::is_null));
    let before = outputs(document);
    // An output that another program has written without a summary can be changed part by part.
    let is_known = |name: &str| before.get(name).is_some_and(lacks_summary);
    let after = outputs(&after);
    match after.iter().find(|(name, output)| lacks_summary(output) && !is_known(name)) {
        Some((name, _)) => Err(EditError::WrongShape {
            at: Path::field(OUTPUTS).below(name),
            found: "an object without `summary`".to_owned(),
            accepts: "an object with a text `summary`".to_owned(),
        }),
        None => Ok(()),
    }
}

/// Refuses a build run that the protocol's readers would not understand.
pub(crate) fn check_build_run(run: &Json) -> Result<(), EditError> {
    BUILD_RUN.check(&Path::field("buildRun"), run)
}

/// Whether a text is a date, or a date with a time of day, in ISO 8601: `2026-02-12T15:23:45Z`.
pub(crate) fn is_time(text: &str) -> bool {
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    let number = |part: &str, digits: usize, range: std::ops::RangeInclusive<u32>| {
        part.len() == digits
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse().is_ok_and(|number| range.contains(&number))
    };
    let is_date = matches!(date.split('-').collect::<Vec<_>>()[..], [year, month, day]
        if number(year, 4, 0..=9999) && number(month, 2, 1..=12) && number(day, 2, 1..=31));
    let is_clock = |clock: &str| {
        let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, rest)| (clock, Some(rest)));
        let is_fraction = fraction.is_none_or(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()));
        let parts: Vec<&str> = clock.split(':').collect();
        let fits = match parts[..] {
            [hour, minute] => fraction.is_none() && number(hour, 2, 0..=24) && number(minute, 2, 0..=59),
            [hour, minute, second] => number(hour, 2, 0..=24) && number(minute, 2, 0..=59) && number(second, 2, 0..=60),
            _ => false,
        };
        fits && is_fraction
    };
    let is_of_day = |time: &str| match (time.strip_suffix('Z'), time.rfind(['+', '-'])) {
        (Some(clock), _) => is_clock(clock),
        (None, Some(at)) => {
            let zone = &time[at + 1..];
            is_clock(&time[..at])
                && matches!(zone.split(':').collect::<Vec<_>>()[..], [hour, minute]
                if number(hour, 2, 0..=23) && number(minute, 2, 0..=59))
        }
        (None, None) => is_clock(time),
    };
    is_date && time.is_none_or(is_of_day)
}

/// The shape of the value at a path. None if the protocol does not define it.
fn shape_at(document: &StatusDocument, path: &Path) -> Result<Option<&'static Shape>, EditError> {
    let mut shape: &'static Shape = const { &DOCUMENT };
    let mut here = Path::root();
    for segment in path.segments() {
        shape = match shape {
            Fields(fields) => match fields.iter().find(|(name, _)| segment == name) {
                Some((_, field)) => field,
                None => return Ok(None),
            },
            Map(value) => value,
            List(item) => {
                let len = document.get(&here).and_then(|list| list.list()).map_or(0, |items| items.len());
                if !segment.as_str().parse::<usize>().is_ok_and(|index| index < len) {
                    return Err(EditError::NoSuchItem { at: here, index: segment.as_str().to_owned(), len });
                }
                item
            }
            Text | OneOf(_) | Time | Count => return Err(shape.refusal(&here, JsonKind::Object.to_string())),
        };
        here = here.with(segment.clone());
    }
    Ok(Some(shape))
}

impl Shape {
    fn check(&self, at: &Path, value: &Json) -> Result<(), EditError> {
        if value.is_null() { Ok(()) } else { self.check_item(at, value) }
    }

    /// An item of a list cannot be `null`.
    fn check_item(&self, at: &Path, value: &Json) -> Result<(), EditError> {
        let words = || value.words().unwrap_or_default();
        let fits = match self {
            Text => value.kind() == JsonKind::Text,
            OneOf(known) => value.kind() == JsonKind::Text && known.contains(&words().as_str()),
            Time => value.kind() == JsonKind::Text && is_time(&words()),
            Count => value.kind() == JsonKind::Number && value.text().parse::<u64>().is_ok(),
            List(item) => match value.list() {
                Some(items) => {
                    let mut items = items.iter().zip(0_usize..);
                    return items.try_for_each(|(value, index)| item.check_item(&at.below(&index.to_string()), value));
                }
                None => false,
            },
            Map(shape) => match value.object() {
                Some(object) => return object.iter().try_for_each(|(name, value)| shape.check(&at.below(name), value)),
                None => false,
            },
            Fields(fields) => match value.object() {
                Some(object) => return check_fields(fields, at, &object),
                None => false,
            },
        };
        if fits { Ok(()) } else { Err(self.refusal(at, shown(value))) }
    }

    fn refusal(&self, at: &Path, found: String) -> EditError {
        EditError::WrongShape { at: at.clone(), found, accepts: self.to_string() }
    }
}

fn check_fields(fields: &[(&str, Shape)], at: &Path, object: &Object) -> Result<(), EditError> {
    let given = |name: &str| object.get(name);
    fields.iter().try_for_each(|(name, shape)| given(name).map_or(Ok(()), |value| shape.check(&at.below(name), value)))
}

/// A short value unchanged, otherwise the type of the value.
fn shown(value: &Json) -> String {
    let is_short = value.text().chars().count() <= MAX_SHOWN_CHARS;
    match value.kind() {
        JsonKind::Text | JsonKind::Number | JsonKind::Boolean | JsonKind::Null if is_short => value.text().to_owned(),
        kind @ (JsonKind::Null
        | JsonKind::Boolean
        | JsonKind::Number
        | JsonKind::Text
        | JsonKind::List
        | JsonKind::Object) => kind.to_string(),
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |names: &mut dyn Iterator<Item = &&str>| names.map(|name| format!("`{name}`")).collect::<Vec<_>>();
        match self {
            Text => write!(f, "a text"),
            OneOf(known) => write!(f, "one of the texts {}", quoted(&mut known.iter()).join(", ")),
            Time => write!(f, "a time such as \"2026-02-12T15:23:45Z\""),
            Count => write!(f, "a whole number from 0"),
            List(item) => write!(f, "a list in which each item is {item}"),
            Map(value) => write!(f, "an object in which each value is {value}"),
            Fields([]) => write!(f, "an object"),
            Fields(fields) => {
                write!(
                    f,
                    "an object with fields such as {}",
                    quoted(&mut fields.iter().map(|(name, _)| name)).join(", ")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_time;

    #[test]
    fn times_are_recognised() {
        for time in [
            "2026-02-12",
            "2026-02-12T15:23Z",
            "2026-02-12T15:23:45Z",
            "2026-02-12T15:23:45.123456Z",
            "2026-02-12T15:23:45+01:00",
            "2026-02-12T15:23:45.5-08:30",
            "2026-02-12T15:23:45",
        ] {
            assert!(is_time(time), "{time}");
        }
        for other in [
            "",
            "T",
            "now",
            "2026",
            "2026-13-12T15:23:45Z",
            "2026-02-32",
            "2026-02-12T",
            "2026-02-12 15:23:45Z",
            "2026-02-12T15:61:45Z",
            "2026-02-12T15:23:45.Z",
            "2026-02-12T15:23:45ZZ",
            "2026-02-12T15:23:45+1",
            "12.2.2026",
        ] {
            assert!(!is_time(other), "{other}");
        }
    }
}
