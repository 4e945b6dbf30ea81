//! What the terminal can show: colours, and whether its background is dark. It is asked once, before anything is drawn.

use super::look::{Colour, Look, is_dark};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write as _;
use std::time::{Duration, Instant};

/// How long an answer may take. Most terminals answer within a few milliseconds, and all of them answer the second question.
const PATIENCE: Duration = Duration::from_millis(100);

/// Reads the environment, and asks the terminal for its background where that matters. Raw mode must be on.
pub fn look() -> Look {
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let ascii = env("HATCHERY_ASCII") == "1"
        || !is_utf8(&[env("LC_ALL"), env("LC_CTYPE"), env("LANG")])
        || env("TERM") == "linux";
    let answer = ask();
    let ascii = ascii || lines_are_wide(&answer);
    if !env("NO_COLOR").is_empty() {
        return Look { colour: Colour::None, ascii };
    }
    let truecolor = matches!(env("COLORTERM").as_str(), "truecolor" | "24bit");
    let colour = match (truecolor, parse(&answer)) {
        (true, Some(background)) => Colour::True { background },
        (_, background) => Colour::Sixteen { dark: background.map(is_dark) },
    };
    Look { colour, ascii }
}

/// The first variable that is set decides.
fn is_utf8(variables: &[String; 3]) -> bool {
    let locale = variables.iter().find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Prints a `─` in the first column and asks where the cursor is; OSC 11 asks for the background. The question for the device's attributes
/// comes last, because every terminal answers that one. Gives what was answered.
fn ask() -> String {
    answers().map(|answer| String::from_utf8_lossy(&answer).into_owned()).unwrap_or_default()
}

fn answers() -> Option<Vec<u8>> {
    let mut out = std::io::stdout();
    let questions = "\r─\x1b[6n\r\x1b[K\x1b]11;?\x1b\\\x1b[c";
    out.write_all(questions.as_bytes()).and_then(|()| out.flush()).ok()?;
    let deadline = Instant::now() + PATIENCE;
    let mut answer = Vec::new();
    let input = std::io::stdin();
    while let Some(left) = deadline.checked_duration_since(Instant::now()) {
        let mut waiting = [PollFd::new(&input, PollFlags::IN)];
        let left = Timespec::try_from(left).ok()?;
        if poll(&mut waiting, Some(&left)).ok()? == 0 {
            break;
        }
        let mut bytes = [0; 256];
        let count = rustix::io::read(&input, &mut bytes).ok()?;
        answer.extend_from_slice(&bytes[..count]);
        if count == 0 || answer.windows(2).any(|pair| pair == b"[?") && answer.ends_with(b"c") {
            break;
        }
    }
    Some(answer)
}

/// Whether the line has moved the cursor by two columns, as in some East Asian settings: `ESC [ 1 ; 3 R`.
fn lines_are_wide(answer: &str) -> bool {
    let position = answer.split("\x1b[").find_map(|part| part.split_once('R')?.0.split_once(';'));
    position.is_some_and(|(_, column)| column == "3")
}

/// `rgb:1e1e/1e1e/1e1e`, with one to four digits each.
fn parse(answer: &str) -> Option<(u8, u8, u8)> {
    let rgb = answer.split_once("rgb:")?.1;
    let mut parts = rgb.split('/').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_hexdigit).collect();
        let value = u32::from_str_radix(&digits, 16).ok()?;
        let most = 16u32.checked_pow(u32::try_from(digits.len()).ok()?)?.checked_sub(1)?;
        u8::try_from(value * 255 / most).ok()
    });
    Some((parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_is_read_in_every_form() {
        assert_eq!(parse("\x1b]11;rgb:1e1e/2020/ffff\x1b\\\x1b[?62;c"), Some((30, 32, 255)));
        assert_eq!(parse("\x1b]11;rgb:f/0/8\x07"), Some((255, 0, 136)));
        assert_eq!(parse("\x1b[?62;c"), None);
        assert!(lines_are_wide("\x1b[1;3R\x1b]11;rgb:0/0/0\x07\x1b[?62;c"));
        assert!(!lines_are_wide("\x1b[1;2R\x1b[?62;c"));
        assert!(!lines_are_wide("\x1b[?62;3c"));
        assert!(is_utf8(&[String::new(), String::new(), "de_DE.UTF-8".into()]));
        assert!(!is_utf8(&["C".into(), String::new(), "de_DE.UTF-8".into()]));
    }
}
