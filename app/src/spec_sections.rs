//! The sections of a project's spec (`.fctry/spec.md`): the number of each, and a fingerprint, so that a build can tell which of them have
//! changed since a chunk was built.

use crate::state_file::{StatusFolder, read_bounded};
use hatchery_core::build_run::Move;
use hatchery_core::status::{StatusChange, StatusDocument};
use std::collections::BTreeMap;
use std::path::PathBuf;

const MAX_SPEC_BYTES: usize = 16 * 1024 * 1024;
const MAX_CONFIG_BYTES: usize = 1024 * 1024;

/// The fingerprint of each section that has an alias, by `#alias`.
pub type Fingerprints = BTreeMap<String, String>;

/// The number of each section that has an alias and a number, by `#alias`.
pub type Numbers = BTreeMap<String, String>;

/// The registry of versions.
pub const REGISTRY: &str = "config.json";

pub fn registry_file(folder: &StatusFolder) -> PathBuf {
    folder.path().join(REGISTRY)
}

pub fn file(folder: &StatusFolder) -> PathBuf {
    folder.path().join("spec.md")
}

/// The fingerprints of the spec as it is now. None if there is no spec that can be read.
pub fn fingerprints(folder: &StatusFolder) -> Option<Fingerprints> {
    text(folder).map(|spec| of_text(&spec))
}

/// The numbers of the spec's sections. None if there is no spec that can be read.
pub fn numbers(folder: &StatusFolder) -> Option<Numbers> {
    text(folder).map(|spec| numbers_of(&spec))
}

pub fn text(folder: &StatusFolder) -> Option<String> {
    let spec = read_bounded(&file(folder), MAX_SPEC_BYTES).ok().flatten()?;
    Some(String::from_utf8_lossy(&spec).into_owned())
}

/// A heading of a spec: `### 2.12 Status line {#status-line}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    pub level: usize,
    /// Without `#`.
    pub alias: Option<String>,
    pub number: Option<String>,
    /// Without the number and the alias.
    pub title: String,
}

impl Heading {
    /// The heading in a line, if the line is one.
    fn read(line: &str) -> Option<Self> {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let text = line[level..].strip_prefix(' ').filter(|_| level > 0)?;
        let number = text.split_whitespace().next().filter(|word| word.starts_with(|char: char| char.is_ascii_digit()));
        let alias = text.rsplit_once("{#").and_then(|(_, rest)| rest.trim_end().strip_suffix('}'));
        let title = text.strip_prefix(number.unwrap_or_default()).unwrap_or(text);
        let title = if alias.is_some() { title.rsplit_once("{#").map_or(title, |(title, _)| title) } else { title };
        Some(Self {
            level,
            title: title.trim().to_owned(),
            alias: alias.map(str::to_owned),
            number: number.map(|number| number.trim_end_matches('.').to_owned()),
        })
    }
}

/// The lines of a spec, with the headings among them. What stands in a code block is no heading.
pub fn lines(spec: &str) -> impl Iterator<Item = (&str, Option<Heading>)> {
    let mut fence: Option<&str> = None;
    spec.lines().map(move |line| {
        let text = line.trim_start();
        let mark = text.starts_with("```").then_some('`').or_else(|| text.starts_with("~~~").then_some('~'));
        let length = mark.map_or(0, |mark| text.chars().take_while(|char| *char == mark).count());
        match (fence, mark) {
            (None, Some(_)) => fence = Some(&text[..length]),
            (Some(open), Some(_)) if text.starts_with(open) && text[length..].trim().is_empty() => fence = None,
            (None, None) => return (line, Heading::read(line)),
            (Some(_), _) => {}
        }
        (line, None)
    })
}

fn numbers_of(spec: &str) -> Numbers {
    let headings = lines(spec).filter_map(|(_, heading)| heading);
    headings.filter_map(|heading| Some((format!("#{}", heading.alias?), heading.number?))).collect()
}

/// The version of the spec that the registry of versions (`.fctry/config.json`) names.
pub fn registered_version(folder: &StatusFolder) -> Option<String> {
    let config = read_bounded(&registry_file(folder), MAX_CONFIG_BYTES).ok().flatten()?;
    let config = StatusDocument::parse(&String::from_utf8_lossy(&config)).ok()?;
    config.get(&"versions.spec.current".parse().ok()?)?.words()
}

/// Whether a change depends on the spec as it is now.
pub fn matters_to(change: &StatusChange) -> bool {
    use StatusChange::{ApprovePlan, MoveChunk, ResumeBuild};
    matches!(change, ApprovePlan { .. } | MoveChunk { .. } | ResumeBuild { .. })
}

/// A change of a build run, with what it needs to know of the spec as it is now. What the caller has said stays.
pub fn filled(folder: &StatusFolder, change: &StatusChange) -> StatusChange {
    let mut change = change.clone();
    let (sections, version) = match &mut change {
        StatusChange::ApprovePlan { spec_version, .. } => (None, spec_version),
        StatusChange::MoveChunk { action: Move::Complete, fingerprints, spec_version, .. }
        | StatusChange::ResumeBuild { fingerprints, spec_version, .. } => (Some(fingerprints), spec_version),
        StatusChange::MoveChunk { spec_version, .. } => (None, spec_version),
        _ => return change,
    };
    if let Some(sections) = sections.filter(|sections| sections.is_empty()) {
        *sections = fingerprints(folder).unwrap_or_default();
    }
    if version.is_none() {
        *version = registered_version(folder);
    }
    change
}

/// A section begins with a heading `### 2.2 Core flow {#core-flow}` and ends before the next heading of its level or above.
fn of_text(spec: &str) -> Fingerprints {
    let mut open: Vec<(usize, String, crc32fast::Hasher)> = Vec::new();
    let mut found = Fingerprints::new();
    let mut close = |open: &mut Vec<(usize, String, crc32fast::Hasher)>, level: usize| {
        while open.last().is_some_and(|(known, ..)| *known >= level) {
            if let Some((_, alias, hash)) = open.pop() {
                found.insert(alias, format!("{:08x}", hash.finalize()));
            }
        }
    };
    for (line, heading) in lines(spec) {
        if let Some(heading) = heading {
            close(&mut open, heading.level);
            if let Some(alias) = heading.alias {
                open.push((heading.level, format!("#{alias}"), crc32fast::Hasher::new()));
            }
        }
        for (.., hash) in &mut open {
            hash.update(line.trim_end().as_bytes());
            hash.update(b"\n");
        }
    }
    close(&mut open, 0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_changes_with_its_own_text_and_that_of_its_parts() {
        let spec = "# A\n## 2 Flows {#flows}\nfirst\n### 2.1 Core {#core}\ncore\n## 3 Rules {#rules}\nrules\n";
        let before = of_text(spec);
        assert_eq!(before.keys().collect::<Vec<_>>(), ["#core", "#flows", "#rules"]);
        let after = of_text(&spec.replace("\ncore\n", "\ncore, but faster\n"));
        let changed: Vec<_> = before.keys().filter(|alias| before[*alias] != after[*alias]).collect();
        assert_eq!(changed, ["#core", "#flows"]);
        assert_eq!(of_text(&spec.replace('\n', "  \n")), before, "white space at the end of a line is no change");
        let with_code = spec.replace("\ncore\n", "\n```sh\n# a comment\n```\ncore\n");
        let changed = with_code.replace("\ncore\n", "\ncore, but faster\n");
        assert_ne!(
            of_text(&with_code)["#core"],
            of_text(&changed)["#core"],
            "a comment in a code block ends no section"
        );
        let numbers = numbers_of(&spec.replace("2.1 Core", "2.1. Core"));
        assert_eq!((numbers["#core"].as_str(), numbers["#rules"].as_str()), ("2.1", "3"));
    }
}
