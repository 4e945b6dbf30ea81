//! The settings of the terminal: `[tui]` in `hatchery.toml`.

use crate::report::{Code, Report};
use serde::Deserialize;
use std::collections::BTreeMap;

/// How likely a name must be meant to be suggested.
const LIKE: f64 = 0.8;

/// What can be done by a letter after Ctrl-X: its name in `[tui.keys]`, and its usual letter.
pub const KEYS: [(&str, char); 24] = [
    ("next_need", 'e'),
    ("find", 'o'),
    ("next", 'j'),
    ("previous", 'k'),
    ("home", 'h'),
    ("tree", 't'),
    ("quest", 'q'),
    ("mail", 'm'),
    ("log", 'l'),
    ("why", 'w'),
    ("changes", 'd'),
    ("cost", 'c'),
    ("seats", 's'),
    ("hide", 'z'),
    ("answer", 'a'),
    ("fork", 'f'),
    ("fork_with_text", 'F'),
    ("interrupt", 'I'),
    ("copy", 'y'),
    ("editor", 'v'),
    ("search", '/'),
    ("try_again", 'r'),
    ("mouse", 'M'),
    ("help", '?'),
];

/// How the terminal behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tui {
    /// Ring the bell, once for each need that comes up.
    pub bell: bool,
    /// Turn the ring of an agent when something is heard from it.
    pub motion: bool,
    pub mouse: bool,
    /// Go to a fork that you asked for.
    pub follow_fork: bool,
    pub keys: Keys,
}

/// The letters after Ctrl-X that were changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The usual letter, by the letter that is pressed for it.
    meant: BTreeMap<char, char>,
}

impl Keys {
    /// The usual letter of what this one does. None: nothing is on it.
    pub fn meant(&self, pressed: char) -> Option<char> {
        match self.meant.get(&pressed) {
            Some(usual) => Some(*usual),
            // The usual letter of something that was moved elsewhere.
            None if self.meant.values().any(|usual| *usual == pressed) => None,
            None => Some(pressed),
        }
    }

    /// The letter to press for what is usually on this one.
    pub fn shown(&self, usual: char) -> char {
        self.meant.iter().find(|(_, meant)| **meant == usual).map_or(usual, |(pressed, _)| *pressed)
    }

    /// These letters, each with the usual one that it stands for.
    #[cfg(test)]
    pub fn moved(letters: &[(char, char)]) -> Self {
        Self { meant: letters.iter().copied().collect() }
    }

    pub fn is_usual(&self) -> bool {
        self.meant.is_empty()
    }
}

/// The settings as people write them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TerminalSettings {
    bell: Option<bool>,
    motion: Option<bool>,
    mouse: Option<bool>,
    follow_fork: Option<bool>,
    #[serde(default)]
    keys: BTreeMap<String, String>,
}

impl TerminalSettings {
    pub(super) fn over_defaults(self) -> Result<Tui, Report> {
        Ok(Tui {
            bell: self.bell.unwrap_or(false),
            motion: self.motion.unwrap_or(true),
            mouse: self.mouse.unwrap_or(false),
            follow_fork: self.follow_fork.unwrap_or(true),
            keys: keys(&self.keys)?,
        })
    }
}

fn keys(written: &BTreeMap<String, String>) -> Result<Keys, Report> {
    let mut letters: BTreeMap<&str, char> = KEYS.into_iter().collect();
    for (name, letter) in written {
        let Some(known) = letters.get_mut(name.as_str()) else { return Err(unknown(name)) };
        let mut chars = letter.chars();
        *known = match (chars.next(), chars.next()) {
            (Some(letter), None) if letter.is_ascii_graphic() && !letter.is_ascii_digit() => letter,
            _ => {
                return Err(Report::new(Code::Usage, format_args!("`tui.keys.{name}` is not one letter"))
                    .hint("use one ASCII character that is no digit; it is pressed after Ctrl-X"));
            }
        };
    }
    let mut on: BTreeMap<char, &str> = BTreeMap::new();
    for (name, letter) in &letters {
        if let Some(other) = on.insert(*letter, name) {
            return Err(Report::new(
                Code::Usage,
                format_args!("`tui.keys`: {other} and {name} are both on `{letter}`"),
            )
            .hint("give one of them another letter"));
        }
    }
    let meant = KEYS.into_iter().filter_map(|(name, usual)| Some((*letters.get(name)?, usual)));
    Ok(Keys { meant: meant.filter(|(pressed, usual)| pressed != usual).collect() })
}

fn unknown(name: &str) -> Report {
    let like = |known: &str| strsim::jaro_winkler(name, known);
    let near = KEYS.into_iter().map(|(known, _)| known).max_by(|a, b| like(a).total_cmp(&like(b)));
    let report = Report::new(Code::Usage, format_args!("`tui.keys.{name}` is not known"));
    match near.filter(|near| like(near) >= LIKE) {
        Some(near) => report.hint(format_args!("do you mean `{near}`?")),
        None => report.hint(format_args!("known are: {}", KEYS.map(|(known, _)| known).join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &[(&str, &str)]) -> Result<Keys, String> {
        let keys = keys.iter().map(|(name, key)| ((*name).to_owned(), (*key).to_owned())).collect();
        let settings = TerminalSettings { keys, ..TerminalSettings::default() };
        settings.over_defaults().map(|tui| tui.keys).map_err(|report| report.to_string())
    }

    #[test]
    fn a_letter_can_be_moved_and_two_can_change_places() {
        let keys = read(&[("fork", "g")]).unwrap();
        assert_eq!((keys.meant('g'), keys.meant('f'), keys.meant('h')), (Some('f'), None, Some('h')));
        assert_eq!((keys.shown('f'), keys.shown('h')), ('g', 'h'));
        let keys = read(&[("next", "k"), ("previous", "j")]).unwrap();
        assert_eq!((keys.meant('j'), keys.meant('k')), (Some('k'), Some('j')));
        assert!(read(&[]).unwrap().is_usual());
    }

    #[test]
    fn a_conflict_is_told_with_both_names() {
        let error = read(&[("fork", "h")]).unwrap_err();
        assert!(error.contains("fork and home are both on `h`"), "{error}");
        assert!(read(&[("fork", "ab")]).unwrap_err().contains("is not one letter"));
        assert!(read(&[("frok", "a")]).unwrap_err().contains("`tui.keys.frok` is not known"));
    }
}
