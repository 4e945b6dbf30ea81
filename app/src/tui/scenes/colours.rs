//! The screens in colour, as letters: one for what each cell means.

use crate::tui::draw;
use crate::tui::look::{Colour, Ink, Look};
use crate::tui::model::Model;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

/// The background of the design's pictures.
const LOOK: Look = Look { colour: Colour::True { background: (0x17, 0x16, 0x14) }, ascii: false };

/// The screen on the design's background. `.` is plain and a capital letter is bold: accent, good, warning, red, dim, line. `?` is filled.
/// On a tint, `~` stands before the first letter of the row, `=` on that of code.
pub(super) fn shown(model: &mut Model) -> String {
    model.look = LOOK;
    let (width, height) = model.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw::draw(model, &mut buffer);
    let rows = (0..height).map(|y| {
        let row: String = (0..width).map(|x| letter(&buffer[(x, y)])).collect();
        row.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn letter(cell: &Cell) -> char {
    let is = |ink: Ink| LOOK.style(ink).fg == Some(cell.fg);
    let tinted = |ink: Ink| LOOK.style(ink).bg == Some(cell.bg);
    let bold = cell.modifier.contains(Modifier::BOLD);
    if tinted(Ink::AccentFilled) {
        return '?';
    }
    if cell.symbol() == " " {
        return match () {
            () if tinted(Ink::Asked) => '~',
            () if tinted(Ink::Code) => '=',
            () => ' ',
        };
    }
    let letter = match () {
        () if is(Ink::Accent) => 'a',
        () if is(Ink::Good) => 'g',
        () if is(Ink::Warn) => 'w',
        () if is(Ink::Bad) => 'r',
        () if is(Ink::Dim) => 'd',
        () if is(Ink::Line) => 'l',
        () if cell.fg == Color::Reset => '.',
        () => '!',
    };
    match (bold, letter) {
        (true, '.') => 'B',
        (true, letter) => letter.to_ascii_uppercase(),
        (false, letter) => letter,
    }
}
