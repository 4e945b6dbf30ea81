//! Copying: by the system's clipboard if local, by the terminal otherwise. Owns no state.

use super::text::size;
use base64::Engine as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Copies a text and describes the result. A terminal confirms nothing, so the text then counts as sent and not as copied.
pub fn copy(text: &str) -> String {
    of_system(text).unwrap_or_else(|| of_terminal(text))
}

/// Copies by a program of the system. None where there is no such program, or the terminal is elsewhere.
pub fn of_system(text: &str) -> Option<String> {
    const PROGRAMS: [(&str, &[&str]); 4] =
        [("wl-copy", &[]), ("pbcopy", &[]), ("xclip", &["-selection", "clipboard"]), ("xsel", &["-ib"])];
    let is_set = |name| std::env::var_os(name).is_some();
    let remote = is_set("SSH_TTY") || is_set("SSH_CONNECTION");
    let graphical = is_set("WAYLAND_DISPLAY") || is_set("DISPLAY") || cfg!(target_os = "macos");
    if remote || !graphical {
        return None;
    }
    let is_copied = |(program, arguments): &(&str, &[&str])| {
        let mut command = Command::new(program);
        command.args(*arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { return false };
        let is_written = child.stdin.take().is_some_and(|mut pipe| pipe.write_all(text.as_bytes()).is_ok());
        child.wait().is_ok_and(|status| status.success()) && is_written
    };
    PROGRAMS.iter().find(|program| is_copied(program)).map(|_| format!("copied {}", size(text.len())))
}

/// Sends a text to the terminal (OSC 52), wrapped for tmux.
fn of_terminal(text: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    let sequence = match std::env::var_os("TMUX").is_some() {
        true => format!("\x1bPtmux;\x1b\x1b]52;c;{encoded}\x07\x1b\\"),
        false => format!("\x1b]52;c;{encoded}\x07"),
    };
    let mut out = std::io::stdout();
    match out.write_all(sequence.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => format!("sent {} to the terminal's clipboard", size(text.len())),
        Err(error) => format!("it cannot be copied: {error}"),
    }
}
