//! The field that you type in: text, cursor, chips of long pastes, undo and yank. The keys are readline's. Pure.

use super::text;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation as _;

/// A paste with more than this becomes a chip.
const CHIP_LINES: usize = 20;
const CHIP_BYTES: usize = 4 << 10;
/// A text that comes back from the history or an editor is laid out up to this length.
pub const LONG_BYTES: usize = 64 << 10;
/// What the daemon takes as one message.
pub const MAX_BYTES: usize = 1 << 20;
/// How many steps can be undone.
const MAX_UNDO: usize = 200;
/// A chip is one character of a private plane, so the cursor passes it in one step.
const FIRST_CHIP: u32 = 0xF_0000;
const MAX_CHIPS: usize = 1_000;

/// Text with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    text: String,
    /// In bytes, always between two graphemes.
    cursor: usize,
    #[serde(default)]
    chips: Vec<String>,
    #[serde(skip)]
    undo: Vec<(String, usize)>,
    #[serde(skip)]
    killed: String,
    /// The last change was of this kind: letters typed in a row are undone together.
    #[serde(skip)]
    typing: bool,
}

/// A paste was too long. Nothing was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong(pub usize);

/// A row of the field as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRow {
    pub text: String,
    /// The column of the cursor, if it is in this row.
    pub cursor: Option<usize>,
}

impl Field {
    pub fn of(text: &str) -> Self {
        let mut field = Self::default();
        field.insert(text);
        field.undo.clear();
        field
    }

    /// A text of any length: a very long one is a chip, so that it costs one frame.
    pub fn of_any(text: &str) -> Self {
        let mut field = Self::default();
        let is_chip = text.len() > LONG_BYTES && field.paste(text).is_ok();
        if is_chip {
            field.undo.clear();
            return field;
        }
        Self::of(text)
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text with chips as they are kept.
    pub fn raw(&self) -> &str {
        &self.text
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// How long the text is that would be sent.
    pub fn len(&self) -> usize {
        self.text.chars().map(|char| self.chip(char).map_or(char.len_utf8(), str::len)).sum()
    }

    /// The whole text, with the chips' contents.
    pub fn whole(&self) -> String {
        let mut out = String::with_capacity(self.len());
        for char in self.text.chars() {
            match self.chip(char) {
                Some(chip) => out.push_str(chip),
                None => out.push(char),
            }
        }
        out
    }

    /// The text as it is shown: a chip is its label.
    pub fn shown(&self) -> String {
        self.shown_range(0..self.text.len())
    }

    /// What is shown before the cursor.
    pub fn shown_before_cursor(&self) -> String {
        self.shown_range(0..self.cursor)
    }

    /// As it comes back from the disk: without what can be undone or yanked.
    pub fn stored(&self) -> Self {
        let mut stored = Self::default();
        stored.text = stored.adopted(self).unwrap_or_else(|| self.whole());
        stored.cursor = self.cursor.min(stored.text.len());
        stored
    }

    /// Takes everything out, as it is.
    pub fn take(&mut self) -> Self {
        let killed = std::mem::take(&mut self.killed);
        std::mem::replace(self, Self { killed, ..Self::default() })
    }

    pub fn set(&mut self, other: &Self) {
        self.remember(false);
        self.text = self.adopted(other).unwrap_or_else(|| other.whole());
        self.cursor = self.text.len();
    }

    /// The text of another field, with chips of this one. None if this one would have too many. The chips of a text that was here stay, because
    /// undo brings it back.
    fn adopted(&mut self, other: &Self) -> Option<String> {
        let adopt = |char| match other.chip(char) {
            None => Some(char),
            Some(chip) => {
                let known = self.chips.iter().position(|it| it == chip);
                let at = known.or_else(|| {
                    self.chips.push(chip.to_owned());
                    (self.chips.len() <= MAX_CHIPS).then(|| self.chips.len() - 1)
                })?;
                char::from_u32(FIRST_CHIP + u32::try_from(at).ok()?)
            }
        };
        other.text.chars().map(adopt).collect()
    }

    /// Replaces the bytes before the cursor from this one on.
    pub fn complete(&mut self, from: usize, with: &str) {
        self.remember(false);
        self.text.replace_range(from..self.cursor, with);
        self.cursor = from + with.len();
    }

    pub fn insert(&mut self, text: &str) {
        let plain: String = text.chars().map(|char| if is_chip(char) { '\u{fffd}' } else { char }).collect();
        let typed = plain.chars().count() == 1 && plain != "\n";
        self.remember(typed);
        self.text.insert_str(self.cursor, &plain);
        self.cursor += plain.len();
    }

    /// A paste is one insert. A long one becomes a chip.
    pub fn paste(&mut self, text: &str) -> Result<(), TooLong> {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if self.len() + text.len() > MAX_BYTES {
            return Err(TooLong(self.len() + text.len()));
        }
        let long = text.len() > CHIP_BYTES || text.lines().count() > CHIP_LINES;
        match u32::try_from(self.chips.len()).ok().and_then(|at| char::from_u32(FIRST_CHIP + at)) {
            Some(chip) if long && self.chips.len() < MAX_CHIPS => {
                self.remember(false);
                self.chips.push(text);
                self.text.insert(self.cursor, chip);
                self.cursor += chip.len_utf8();
            }
            _ => self.insert(&text),
        }
        Ok(())
    }

    pub fn backspace(&mut self) {
        self.delete(self.previous()..self.cursor, false);
    }

    pub fn delete_forward(&mut self) {
        self.delete(self.cursor..self.next(), false);
    }

    pub fn kill_word_back(&mut self) {
        // Readline's ^W: up to a blank.
        let before = &self.text[..self.cursor];
        let end = before.trim_end().len();
        let from = before[..end].rfind(char::is_whitespace).map_or(0, |at| at + next_len(before, at));
        self.delete(from..self.cursor, true);
    }

    pub fn kill_to_word(&mut self, forward: bool) {
        match forward {
            true => self.delete(self.cursor..self.word_end(), true),
            false => self.delete(self.word_start()..self.cursor, true),
        }
    }

    pub fn kill_to_line_start(&mut self) {
        self.delete(self.line_start()..self.cursor, true);
    }

    pub fn kill_to_line_end(&mut self) {
        let end = self.line_end();
        // At the end of a line, the line break itself.
        let end = if end == self.cursor { self.next() } else { end };
        self.delete(self.cursor..end, true);
    }

    pub fn yank(&mut self) {
        self.remember(false);
        self.text.insert_str(self.cursor, &self.killed);
        self.cursor += self.killed.len();
    }

    /// Swaps the two characters around the cursor.
    pub fn transpose(&mut self) {
        let at_end = self.cursor == self.text.len();
        let middle = if at_end { self.previous() } else { self.cursor };
        let (from, to) = (previous_of(&self.text, middle), next_of(&self.text, middle));
        if from == middle || middle == to {
            return;
        }
        self.remember(false);
        let swapped = format!("{}{}", &self.text[middle..to], &self.text[from..middle]);
        self.text.replace_range(from..to, &swapped);
        self.cursor = to;
    }

    pub fn undo(&mut self) {
        if let Some((text, cursor)) = self.undo.pop() {
            (self.text, self.cursor, self.typing) = (text, cursor, false);
        }
    }

    pub fn left(&mut self) {
        self.go(self.previous());
    }

    pub fn right(&mut self) {
        self.go(self.next());
    }

    pub fn word_left(&mut self) {
        self.go(self.word_start());
    }

    pub fn word_right(&mut self) {
        self.go(self.word_end());
    }

    pub fn home(&mut self) {
        self.go(self.line_start());
    }

    pub fn end(&mut self) {
        self.go(self.line_end());
    }

    /// One row up or down among the rows of this width. False on the first or last one.
    pub fn vertical(&mut self, down: bool, cells: usize) -> bool {
        let rows = self.row_ranges(cells);
        let Some(at) = rows.iter().rposition(|row| row.start <= self.cursor) else { return false };
        let target = if down { at + 1 } else { at.wrapping_sub(1) };
        let Some(row) = rows.get(target).cloned() else { return false };
        let column = text::width(&self.shown_range(rows[at].start..self.cursor));
        let mut to = row.start;
        while to < row.end && text::width(&self.shown_range(row.start..next_of(&self.text, to))) <= column {
            to = next_of(&self.text, to);
        }
        self.go(to);
        true
    }

    /// The rows as they are drawn, and where the cursor is.
    pub fn rows(&self, cells: usize) -> Vec<FieldRow> {
        let ranges = self.row_ranges(cells);
        let of_cursor = ranges.iter().rposition(|row| row.start <= self.cursor).unwrap_or(0);
        let row = |(at, range): (usize, &Range<usize>)| FieldRow {
            text: self.shown_range(range.clone()).trim_end_matches('\n').to_owned(),
            cursor: (at == of_cursor)
                .then(|| text::width(&self.shown_range(range.start..self.cursor.min(range.end).max(range.start)))),
        };
        ranges.iter().enumerate().map(row).collect()
    }

    /// Puts the cursor where a click was.
    pub fn click(&mut self, row: usize, column: usize, cells: usize) {
        if let Some(range) = self.row_ranges(cells).get(row).cloned() {
            let mut to = range.start;
            while to < range.end && text::width(&self.shown_range(range.start..next_of(&self.text, to))) <= column {
                to = next_of(&self.text, to);
            }
            self.go(to);
        }
    }

    /// Byte ranges of the rows. A chip may make a row longer than it should be: it is not broken.
    fn row_ranges(&self, cells: usize) -> Vec<Range<usize>> {
        let mut rows = Vec::new();
        let mut from = 0;
        for line in self.text.split('\n') {
            match line.chars().any(is_chip) {
                false => {
                    rows.extend(text::rows(line, cells).into_iter().map(|row| from + row.start..from + row.end));
                }
                true => rows.extend(self.rows_with_chips(from, line, cells)),
            }
            from += line.len() + 1;
        }
        // The cursor behind a full row needs a row of its own.
        if let Some(last) = rows.last().cloned()
            && self.cursor == self.text.len()
            && text::width(&self.shown_range(last.clone())) >= cells
        {
            rows.push(last.end..last.end);
        }
        rows
    }

    fn rows_with_chips(&self, from: usize, line: &str, cells: usize) -> Vec<Range<usize>> {
        let (mut rows, mut start, mut used) = (Vec::new(), from, 0);
        for (at, grapheme) in line.grapheme_indices(true) {
            let wide = text::width(&self.shown_range(from + at..from + at + grapheme.len()));
            if used + wide > cells && used > 0 {
                rows.push(start..from + at);
                (start, used) = (from + at, 0);
            }
            used += wide;
        }
        rows.push(start..from + line.len());
        rows
    }

    fn shown_range(&self, range: Range<usize>) -> String {
        let mut out = String::new();
        for char in self.text[range].chars() {
            match self.chip(char) {
                Some(chip) => {
                    let number = u32::from(char) - FIRST_CHIP + 1;
                    let lines = text::thousands(u64::try_from(chip.lines().count()).unwrap_or(u64::MAX));
                    out.push_str(&format!("[paste {number}: {}, {lines} lines]", text::size(chip.len())));
                }
                None => out.push(char),
            }
        }
        text::clean(&out).into_owned()
    }

    fn chip(&self, char: char) -> Option<&str> {
        let at = u32::from(char).checked_sub(FIRST_CHIP)?;
        self.chips.get(usize::try_from(at).ok()?).map(String::as_str)
    }

    fn delete(&mut self, range: Range<usize>, keep: bool) {
        if range.is_empty() {
            return;
        }
        self.remember(false);
        if keep {
            self.killed = self.text[range.clone()].to_owned();
        }
        self.cursor = range.start;
        self.text.replace_range(range, "");
    }

    fn remember(&mut self, typing: bool) {
        if !(typing && self.typing) {
            self.undo.push((self.text.clone(), self.cursor));
            if self.undo.len() > MAX_UNDO {
                self.undo.remove(0);
            }
        }
        self.typing = typing;
    }

    fn go(&mut self, to: usize) {
        (self.cursor, self.typing) = (to, false);
    }

    fn previous(&self) -> usize {
        previous_of(&self.text, self.cursor)
    }

    fn next(&self) -> usize {
        next_of(&self.text, self.cursor)
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_start(&self) -> usize {
        let before = &self.text[..self.cursor];
        let end = before.trim_end_matches(|char: char| !char.is_alphanumeric()).len();
        before[..end].rfind(|char: char| !char.is_alphanumeric()).map_or(0, |at| at + next_len(before, at))
    }

    fn word_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        let start = after.find(char::is_alphanumeric).unwrap_or(after.len());
        let length = after[start..].find(|char: char| !char.is_alphanumeric()).unwrap_or(after.len() - start);
        self.cursor + start + length
    }
}

fn is_chip(char: char) -> bool {
    (FIRST_CHIP..=0xF_FFFD).contains(&u32::from(char))
}

fn next_len(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

fn previous_of(text: &str, at: usize) -> usize {
    text[..at].grapheme_indices(true).next_back().map_or(0, |(from, _)| from)
}

fn next_of(text: &str, at: usize) -> usize {
    text[at..].graphemes(true).next().map_or(at, |grapheme| at + grapheme.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_moves_by_what_people_see() {
        let mut field = Field::of("ae\u{301}日 b");
        field.left();
        field.left();
        field.backspace();
        assert_eq!((field.raw(), field.cursor()), ("ae\u{301} b", 4));
        field.left();
        assert_eq!(field.cursor(), 1);
    }

    #[test]
    fn a_paste_that_comes_and_goes_is_kept_once() {
        let mut field = Field::default();
        field.paste(&"line\n".repeat(100)).unwrap();
        let draft = field.clone();
        for _ in 0..5 {
            field.set(&Field::of("an earlier message"));
            field.set(&draft);
        }
        assert_eq!((field.chips.len(), field.whole()), (1, draft.whole()));
        field.set(&Field::of("short"));
        assert_eq!(field.stored().chips, [""; 0], "what is not in the text is not stored");
    }

    #[test]
    fn words_lines_and_yank_are_readlines() {
        let mut field = Field::of("one two-three\nfour");
        field.kill_to_word(false);
        assert_eq!(field.raw(), "one two-three\n");
        field.backspace();
        field.kill_word_back();
        assert_eq!(field.raw(), "one ");
        field.yank();
        field.yank();
        assert_eq!(field.raw(), "one two-threetwo-three");
        field.home();
        field.kill_to_line_end();
        assert!(field.is_empty());
        field.undo();
        field.undo();
        assert_eq!(field.raw(), "one two-three");
        let mut field = Field::of("abc");
        field.transpose();
        assert_eq!(field.raw(), "acb");
        field.left();
        field.left();
        field.transpose();
        assert_eq!((field.raw(), field.cursor()), ("cab", 2));
    }

    #[test]
    fn letters_that_were_typed_in_a_row_are_undone_together() {
        let mut field = Field::default();
        for letter in ["a", "b", "c"] {
            field.insert(letter);
        }
        field.undo();
        assert!(field.is_empty());
    }

    #[test]
    fn a_long_paste_is_one_character_and_is_sent_in_full() {
        let mut field = Field::of("see ");
        let log = "a line of the log that is rather long and has no end in sight, it seems\n".repeat(14_000);
        field.paste(&log).unwrap();
        field.insert("!");
        assert_eq!(field.shown(), "see [paste 1: 984 KB, 14,000 lines]!");
        assert_eq!(field.whole(), format!("see {log}!"));
        field.left();
        field.left();
        assert_eq!(field.cursor(), 4);
        assert_eq!(field.paste(&log), Err(TooLong(2 * log.len() + 5)));
        field.paste("short\r\n").unwrap();
        assert!(field.raw().starts_with("see short\n"));
    }

    /// Another text takes its place, and undo brings it back with its paste.
    #[test]
    fn undo_brings_a_paste_back() {
        let paste = "a long line\n".repeat(1_000);
        let mut field = Field::of("see ");
        field.paste(&paste).unwrap();
        let mut other = Field::default();
        other.paste(&paste.replace("long", "other")).unwrap();
        field.set(&other);
        assert_eq!(field.whole(), paste.replace("long", "other"));
        field.undo();
        assert_eq!(field.whole(), format!("see {paste}"));
    }

    #[test]
    fn somebody_elses_private_characters_are_not_chips() {
        let mut field = Field::default();
        field.paste("x\u{f0000}y").unwrap();
        assert_eq!(field.whole(), "x\u{fffd}y");
    }

    #[test]
    fn rows_and_the_cursor_are_where_they_are_drawn() {
        let mut field = Field::of("one two three\nfour");
        let rows = field.rows(8);
        let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(texts, ["one two ", "three", "four"]);
        assert_eq!(rows[2].cursor, Some(4));
        assert!(field.vertical(false, 8));
        assert_eq!(field.rows(8)[1].cursor, Some(4));
        assert!(field.vertical(false, 8));
        assert!(!field.vertical(false, 8));
        assert_eq!(Field::of("12345678").rows(8).len(), 2);
    }
}
