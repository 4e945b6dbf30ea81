//! A program that a test writes and then has started.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Another process writes it. A descriptor of ours would be in every process that a test beside us starts at this moment, and
/// what somebody may still write to cannot be started ("text file busy").
pub fn write_program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = Command::new("sh");
    writer.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success(), "{} could not be written", path.display());
}
