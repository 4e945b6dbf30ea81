//! Glyphs and colours: what each meaning looks like in this terminal. Shape and word always go with colour.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// How the terminal can be drawn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub colour: Colour,
    /// Only ASCII characters of our own.
    pub ascii: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// 24 bits, on a background that the terminal has told.
    True { background: (u8, u8, u8) },
    /// The terminal's own 16 colours; whether they are on a dark background may be unknown.
    Sixteen { dark: Option<bool> },
    /// `NO_COLOR`: bold, dim and reverse stay.
    None,
}

/// What a text means, as far as its colour is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Plain,
    Bold,
    Dim,
    /// Thoughts.
    DimItalic,
    /// You: what you chose, what you said, who needs you.
    Accent,
    /// The filled `?`.
    AccentFilled,
    Good,
    Warn,
    Bad,
    /// Hairlines.
    Line,
    /// Code, on a tint where the background is known.
    Code,
    /// Your open question, on a tint where the background is known.
    Asked,
    /// A match of a search.
    Found,
}

impl Look {
    pub const PLAIN: Self = Self { colour: Colour::None, ascii: false };

    pub fn style(self, ink: Ink) -> Style {
        let plain = Style::new();
        let dim = plain.add_modifier(Modifier::DIM);
        match ink {
            Ink::Plain => plain,
            Ink::Bold => plain.add_modifier(Modifier::BOLD),
            Ink::Found => plain.add_modifier(Modifier::REVERSED),
            _ => match self.colour {
                Colour::True { background } => in_truecolor(ink, background),
                Colour::Sixteen { dark } => in_sixteen(ink, dark),
                Colour::None => match ink {
                    Ink::Dim | Ink::DimItalic | Ink::Line => dim,
                    Ink::AccentFilled => plain.add_modifier(Modifier::REVERSED),
                    Ink::Accent | Ink::Bad => plain.add_modifier(Modifier::BOLD),
                    _ => plain,
                },
            },
        }
    }
}

fn in_truecolor(ink: Ink, background: (u8, u8, u8)) -> Style {
    let dark = is_dark(background);
    let pick = |on_dark: u32, on_light: u32| {
        let value = if dark { on_dark } else { on_light };
        let [_, red, green, blue] = value.to_be_bytes();
        Color::Rgb(red, green, blue)
    };
    let mixed = |percent: u16, towards: (u8, u8, u8)| {
        let mix = |from: u8, to: u8| {
            let mixed = (u16::from(from) * (100 - percent) + u16::from(to) * percent) / 100;
            u8::try_from(mixed).unwrap_or(u8::MAX)
        };
        Color::Rgb(mix(background.0, towards.0), mix(background.1, towards.1), mix(background.2, towards.2))
    };
    let ink_colour = if dark { (255, 255, 255) } else { (0, 0, 0) };
    let tint = |percent: u16| mixed(percent, ink_colour);
    let accent = pick(0x93_ab_ff, 0x2b_4e_cb);
    let plain = Style::new();
    match ink {
        Ink::Accent => plain.fg(accent),
        Ink::AccentFilled => {
            plain.bg(accent).fg(Color::Rgb(background.0, background.1, background.2)).add_modifier(Modifier::BOLD)
        }
        Ink::Good => plain.fg(pick(0x6f_cf_97, 0x1b_73_40)),
        Ink::Warn => plain.fg(pick(0xe3_b3_50, 0x85_56_00)),
        Ink::Bad => plain.fg(pick(0xff_94_88, 0xb0_2a_20)),
        Ink::Dim => plain.fg(pick(0xa1_9b_8f, 0x6a_66_5d)),
        Ink::DimItalic => plain.fg(pick(0xa1_9b_8f, 0x6a_66_5d)).add_modifier(Modifier::ITALIC),
        Ink::Line => plain.fg(tint(25)),
        Ink::Code => plain.bg(tint(5)),
        Ink::Asked => plain.bg(mixed(10, if dark { (0x93, 0xab, 0xff) } else { (0x2b, 0x4e, 0xcb) })),
        Ink::Plain | Ink::Bold | Ink::Found => plain,
    }
}

/// Never colour 8, which is the background in Solarized; never dim and a colour together.
fn in_sixteen(ink: Ink, dark: Option<bool>) -> Style {
    let plain = Style::new();
    // The bright half is readable on a dark background, and the normal half on a light or an unknown one.
    let bright = dark == Some(true);
    let pick = |light: Color, normal: Color| plain.fg(if bright { light } else { normal });
    let accent = if dark == Some(false) { plain.fg(Color::Blue) } else { plain.fg(Color::LightBlue) };
    match ink {
        Ink::Accent => accent.add_modifier(Modifier::BOLD),
        Ink::AccentFilled => accent.add_modifier(Modifier::REVERSED),
        Ink::Good => pick(Color::LightGreen, Color::Green),
        Ink::Warn => pick(Color::LightYellow, Color::Yellow),
        Ink::Bad => pick(Color::LightRed, Color::Red),
        Ink::Dim | Ink::DimItalic | Ink::Line => plain.add_modifier(Modifier::DIM),
        Ink::Code | Ink::Asked | Ink::Plain | Ink::Bold | Ink::Found => plain,
    }
}

/// Whether light text is readable on it.
pub fn is_dark((red, green, blue): (u8, u8, u8)) -> bool {
    2_126 * u32::from(red) + 7_152 * u32::from(green) + 722 * u32::from(blue) < 1_275_000
}

/// The four steps of the ring of an agent at work.
pub const RING: [&str; 4] = ["◴", "◷", "◶", "◵"];

/// Our characters in ASCII. Text of agents is changed by it as well: such a terminal could not show it.
fn ascii(symbol: &str) -> Option<&'static str> {
    Some(match symbol {
        "◴" | "◷" | "◶" | "◵" => "*",
        "✓" => "v",
        "⊜" => "=",
        "☾" => "z",
        "◍" => "0",
        "⊗" => "!",
        "◦" => ".",
        "◌" | "╎" => ":",
        "○" => "o",
        "⊘" => "/",
        "✕" => "x",
        "❯" | "›" => ">",
        "▸" => "+",
        "▾" | "╌" | "─" | "·" | "–" | "−" => "-",
        "‹" => "<",
        "↓" => "v",
        "↑" => "^",
        "←" => "<",
        "→" => ">",
        "│" | "▎" | "├" => "|",
        "└" => "`",
        "…" => "~",
        _ => return None,
    })
}

/// Turns everything that was drawn into ASCII where it can be.
pub fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some(plain) = ascii(cell.symbol()) {
            cell.set_symbol(plain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_colour_is_used_without_colours() {
        let every = [
            Ink::Accent,
            Ink::AccentFilled,
            Ink::Good,
            Ink::Warn,
            Ink::Bad,
            Ink::Dim,
            Ink::Line,
            Ink::Code,
            Ink::Asked,
        ];
        for ink in every {
            let style = Look::PLAIN.style(ink);
            assert_eq!((style.fg, style.bg), (None, None), "{ink:?}");
            let style = Look { colour: Colour::Sixteen { dark: None }, ascii: false }.style(ink);
            assert_ne!(style.fg, Some(Color::DarkGray), "{ink:?}");
            assert!(style.fg.is_none() || !style.add_modifier.contains(Modifier::DIM), "{ink:?}");
        }
    }

    /// The relative luminance of WCAG 2.
    fn luminance(color: Color) -> f64 {
        let Color::Rgb(red, green, blue) = color else { panic!("{color:?}") };
        let part = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.039_28 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue)
    }

    #[test]
    fn all_text_is_readable_on_black_and_on_white() {
        for background in [(0, 0, 0), (30, 30, 30), (255, 255, 255), (250, 248, 240)] {
            let look = Look { colour: Colour::True { background }, ascii: false };
            let plain = luminance(Color::Rgb(background.0, background.1, background.2));
            let tints = [Ink::Code, Ink::Asked].map(|ink| luminance(look.style(ink).bg.unwrap()));
            for ink in [Ink::Accent, Ink::Good, Ink::Warn, Ink::Bad, Ink::Dim] {
                let text = luminance(look.style(ink).fg.unwrap());
                for ground in [plain, tints[0], tints[1]] {
                    let contrast = (text.max(ground) + 0.05) / (text.min(ground) + 0.05);
                    assert!(contrast >= 4.5, "{ink:?} on {background:?}: {contrast}");
                }
            }
        }
    }
}
