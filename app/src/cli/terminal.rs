//! Makes output safe for a terminal. Texts of agents, mails and repositories can contain control characters, which could move the cursor,
//! change the title or type an answer for the user. All output of the command line passes through here, so no command can forget it.

use super::paint::{BAD, DIM, GOOD, STRONG, WARN};
use std::borrow::Cow;
use std::sync::LazyLock;

/// The escape sequences of Hatchery's colours. A foreign text may contain them, too: they can only change its colour.
static OURS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let styles = [BAD, GOOD, WARN, DIM, STRONG];
    let parts = styles.iter().flat_map(|style| [style.render().to_string(), style.render_reset().to_string()]);
    // A style can be rendered as several sequences; each ends with `m`.
    let mut ours: Vec<String> =
        parts.flat_map(|part| part.split_inclusive('m').map(str::to_owned).collect::<Vec<_>>()).collect();
    ours.sort();
    ours.dedup();
    ours
});

/// A text for people: control characters become a visible mark, except line ends, tabs and Hatchery's colours.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let ours = if next == '\u{1b}' { OURS.iter().find(|ours| rest.starts_with(ours.as_str())) } else { None };
        let length = ours.map_or(next.len_utf8(), String::len);
        match ours {
            Some(ours) => safe.push_str(ours),
            None if is_hidden(next) => safe.push('\u{fffd}'),
            None => safe.push(next),
        }
        rest = &rest[length..];
    }
    Cow::Owned(safe)
}

/// JSON for programs, which a person may read, too. JSON escapes the control characters below U+0020 itself. The others are escaped here;
/// a JSON parser reads the same text.
pub fn shown_json(text: &str) -> Cow<'_, str> {
    let is_bare = |char: char| ('\u{7f}'..='\u{9f}').contains(&char) || reorders(char);
    if !text.contains(is_bare) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match is_bare(char) {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(char))),
            false => safe.push(char),
        }
    }
    Cow::Owned(safe)
}

/// Whether a character changes the order in which a line is shown, so that a command can look like another one.
pub fn reorders(char: char) -> bool {
    matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

fn is_hidden(char: char) -> bool {
    (char.is_control() && !matches!(char, '\n' | '\t')) || reorders(char)
}

#[cfg(test)]
mod tests {
    use super::super::paint::paint;
    use super::*;

    #[test]
    fn only_our_own_colours_pass() {
        let painted = paint(BAD, "bad");
        assert_eq!(shown(&painted), painted);
        assert_eq!(
            shown("a\u{1b}[2Jb\u{1b}]0;x\u{7}c\u{7f}\u{9b}31md\r"),
            "a\u{fffd}[2Jb\u{fffd}]0;x\u{fffd}c\u{fffd}\u{fffd}31md\u{fffd}"
        );
        assert_eq!(shown("rm \u{202e}txt.\u{2066}a"), "rm \u{fffd}txt.\u{fffd}a");
        assert_eq!(shown("one\n\ttwo ü"), "one\n\ttwo ü");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let json = serde_json::to_string("a\u{1b}\u{7f}\u{9b}\u{202e}ü").unwrap();
        let safe = shown_json(&json);
        assert!(!safe.chars().any(|char| char.is_control() || reorders(char)), "{safe:?}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "a\u{1b}\u{7f}\u{9b}\u{202e}ü");
    }
}
