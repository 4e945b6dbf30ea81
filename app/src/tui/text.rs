//! Text measured in cells of a terminal: cut, wrapped and made harmless. Knows nothing of agents.

use crate::cli::terminal::reorders;
use hatchery_core::Timestamp;
use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// What stands for a character that must not reach the terminal.
const HARMLESS: char = '·';
const TAB: &str = "    ";
const JOINER: char = '\u{200d}';
/// A flag is two of these letters.
const FIRST_OF_FLAGS: char = '\u{1f1e6}';
const LAST_OF_FLAGS: char = '\u{1f1ff}';

/// How many cells a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A text without anything that could drive the terminal: control characters, escapes, and marks that turn the direction of
/// writing are shown as `·`. Line breaks stay. What terminals give different widths is shown in parts: a flag as its two letters, a
/// family as its people.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|char| is_harmful(char) || is_joined(char) || char == '\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\t' => out.push_str(TAB),
            '\r' if chars.peek() == Some(&'\n') => {}
            // Between letters it belongs to how a word is written.
            JOINER if chars.peek().is_some_and(|next| next.is_alphabetic()) => out.push(char),
            FIRST_OF_FLAGS..=LAST_OF_FLAGS => out.extend(letter_of_flag(char)),
            char if is_joined(char) => {}
            char if is_harmful(char) => out.push(HARMLESS),
            char => out.push(char),
        }
    }
    Cow::Owned(out)
}

/// Whether it makes one sign of several. Terminals disagree about the width of such a sign, and the rest of the row would be elsewhere than
/// it is thought to be.
fn is_joined(char: char) -> bool {
    matches!(char, JOINER | '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | FIRST_OF_FLAGS..=LAST_OF_FLAGS)
}

fn letter_of_flag(char: char) -> Option<char> {
    char::from_u32(u32::from('A') + u32::from(char) - u32::from(FIRST_OF_FLAGS))
}

fn is_harmful(char: char) -> bool {
    (char.is_control() && char != '\n' && char != '\t') || reorders(char)
}

/// The output of a tool without its colours: whole escape sequences are left out.
pub fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\u{1b}' {
            out.push(char);
            continue;
        }
        match chars.next() {
            // CSI: parameters, then one final character.
            Some('[') => while chars.next().is_some_and(|char| !('@'..='~').contains(&char)) {},
            // OSC, DCS, PM, APC: until BEL or ST.
            Some(']' | 'P' | '^' | '_' | 'X') => {
                while let Some(char) = chars.next() {
                    if char == '\u{7}' || (char == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    out
}

/// At most so many cells, with `…` for what is missing at the end.
pub fn cut(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    match cells {
        0 => String::new(),
        _ => format!("{}…", head(text, cells - 1)),
    }
}

/// The same, without a blank before the `…`.
pub fn cut_at_word(text: &str, cells: usize) -> String {
    match width(text) <= cells || cells == 0 {
        true => cut(text, cells),
        false => format!("{}…", head(text, cells - 1).trim_end()),
    }
}

/// A long request by its first clause: "Send failed webhooks again, with backoff" is "Send failed webhooks again".
pub fn title(request: &str) -> String {
    const LEAST: usize = 12;
    let line = clean(request.lines().next().unwrap_or_default()).into_owned();
    let clause = [", ", ": ", "; ", ". "].iter().filter_map(|mark| line.find(mark)).filter(|at| *at >= LEAST).min();
    clause.map_or_else(|| line.clone(), |at| line[..at].to_owned())
}

/// The same, with what is missing in the middle: names of agents differ at both ends.
pub fn cut_middle(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    if cells < 4 {
        return cut(text, cells);
    }
    let left = cells / 2;
    format!("{}…{}", head(text, left), tail(text, cells - 1 - left))
}

/// The longest beginning that fits.
pub fn head(text: &str, cells: usize) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += width(grapheme);
        if used > cells {
            return &text[..at];
        }
    }
    text
}

/// The longest end that fits.
pub fn tail(text: &str, cells: usize) -> &str {
    let mut used = 0;
    let mut from = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += width(grapheme);
        if used > cells {
            break;
        }
        from = at;
    }
    &text[from..]
}

/// A text filled with blanks to so many cells, or cut to them.
pub fn padded(text: &str, cells: usize) -> String {
    let text = cut(text, cells);
    let missing = cells.saturating_sub(width(&text));
    text + &" ".repeat(missing)
}

/// The byte ranges of the rows of one line, broken between words where possible.
pub fn rows(line: &str, cells: usize) -> Vec<std::ops::Range<usize>> {
    let cells = cells.max(2);
    let mut rows = Vec::new();
    let (mut from, mut used, mut word, mut word_width) = (0, 0, 0, 0);
    for (at, grapheme) in line.grapheme_indices(true) {
        let wide = width(grapheme);
        if used + wide > cells && grapheme != " " {
            // Break before the current word, or in it when it fills the row.
            let end = if word > from { word } else { at };
            rows.push(from..end);
            (used, from) = if word > from { (word_width, word) } else { (0, at) };
            word = from;
        }
        used += wide;
        word_width += wide;
        if grapheme == " " {
            (word, word_width) = (at + 1, 0);
        }
    }
    rows.push(from..line.len());
    rows
}

/// A paragraph in rows, without blanks at their ends.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    text.lines().flat_map(|line| rows(line, cells).into_iter().map(|row| line[row].trim_end().to_owned())).collect()
}

/// `48,213`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `12 s`, `3 min`, `2 h`, `4 days`.
pub fn age(millis: i64) -> String {
    crate::clock::length(millis.max(0).unsigned_abs())
}

/// `12 minutes` for `12 min`.
pub fn in_words(age: &str) -> String {
    let (number, unit) = age.rsplit_once(' ').unwrap_or((age, ""));
    let word = match unit {
        "s" => "second",
        "min" => "minute",
        "h" => "hour",
        _ => return age.to_owned(),
    };
    format!("{number} {word}{}", if number == "1" { "" } else { "s" })
}

/// How long something took: `6.2 s`, `9 s`, `38 s`, `1 min`.
pub fn lasted(millis: i64) -> String {
    match millis.max(0) {
        0..100 => String::new(),
        short @ 100..10_000 if short % 1_000 / 100 > 0 => format!("{}.{} s", short / 1_000, short % 1_000 / 100),
        long => age(long),
    }
}

/// `1.0 MB`, `12 KB`.
pub fn size(bytes: usize) -> String {
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_000 => format!("{} KB", bytes / 1_024),
        _ => format!(
            "{}.{} MB",
            bytes / 1_048_576 + usize::from(bytes < 1_048_576),
            (bytes % 1_048_576) * 10 / 1_048_576 * usize::from(bytes >= 1_048_576)
        ),
    }
}

/// `one`, `two` … for small numbers at the begin of a sentence.
pub fn count_word(count: usize) -> String {
    const WORDS: [&str; 11] = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"];
    WORDS.get(count).map_or_else(|| count.to_string(), |word| (*word).to_owned())
}

/// `13:31`, in the user's time zone.
pub fn clock(at: Timestamp, offset_s: i32) -> String {
    let seconds = seconds_of_day(at, offset_s);
    format!("{:02}:{:02}", seconds / 3_600, seconds / 60 % 60)
}

/// `14:02:11`.
pub fn clock_seconds(at: Timestamp, offset_s: i32) -> String {
    format!("{}:{:02}", clock(at, offset_s), seconds_of_day(at, offset_s) % 60)
}

fn seconds_of_day(at: Timestamp, offset_s: i32) -> i64 {
    (at.0.div_euclid(1_000) + i64::from(offset_s)).rem_euclid(86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_drives_a_terminal_gets_through() {
        assert_eq!(clean("a\u{1b}[2Jb\u{7}\u{9b}1m\u{202e}c\td\r\ne"), "a·[2Jb··1m·c    d\ne");
        assert_eq!(without_escapes("\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}x\u{1b}P1\u{1b}\\y"), "red xy");
        assert!(matches!(clean("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_terminals_measure_in_different_ways_is_shown_in_parts() {
        let (joined, parts) = ("👩\u{200d}👧 🇩🇪 ❤\u{fe0f} 👍\u{1f3fd}", "👩👧 DE ❤ 👍");
        assert_eq!(clean(joined), parts);
        let letters = "क\u{94d}\u{200d}ष";
        assert_eq!(clean(letters), letters);
    }

    #[test]
    fn text_is_cut_and_wrapped_by_cells() {
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut_middle("codeweaver-worker", 14), "codewea…worker");
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("aaaaaaaa b", 5), ["aaaaa", "aaa b"]);
        assert_eq!(wrap("日本語日本語", 5), ["日本", "語日", "本語"]);
        assert_eq!(wrap("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
        assert_eq!(wrap("a\n\nb", 5), ["a", "", "b"]);
    }

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(
            (thousands(7), thousands(46_342), thousands(1_000_000)),
            ("7".into(), "46,342".into(), "1,000,000".into())
        );
        assert_eq!((age(12_400), age(720_000), age(4_000_000)), ("12 s".into(), "12 min".into(), "1 h".into()));
        let words = [1_000, 12_400, 60_000, 4_000_000, 2 * 86_400_000].map(|millis| in_words(&age(millis)));
        assert_eq!(words, ["1 second", "12 seconds", "1 minute", "1 hour", "2 days"]);
        assert_eq!((lasted(6_240), lasted(38_000)), ("6.2 s".into(), "38 s".into()));
        assert_eq!(
            (size(1_048_576), size(1_048_000), size(12_288)),
            ("1.0 MB".into(), "1.0 MB".into(), "12 KB".into())
        );
        assert_eq!(clock(Timestamp(1_700_000_000_000), 3_600), "23:13");
    }
}
