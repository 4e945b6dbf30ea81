//! Hatchery's colours, and texts without control characters. `anstream` removes the colours in pipes and if `NO_COLOR` is set.

use anstyle::{AnsiColor, Style};

pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const WARN: Style = AnsiColor::Yellow.on_default();
pub const DIM: Style = Style::new().dimmed();
pub const STRONG: Style = Style::new().bold();

/// A text in a style.
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A text of an agent without control characters, which could change the terminal.
pub fn printable(text: &str) -> String {
    text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect()
}
