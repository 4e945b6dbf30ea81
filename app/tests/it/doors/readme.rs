//! The README, followed word by word in one shell: each command of its examples is run, and what the README shows must come.
//!
//! Examples marked `console` are run. Those marked `sh` need an account or install the program.

use crate::support::daemon::{LOOK_AGAIN, PATIENCE};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hatchery");
/// Ends the output of a command in the shell.
const MARK: &str = "__the_command_has_ended__";
/// Folders of the README that the test has elsewhere.
const FOLDERS: [&str; 2] = ["/tmp/hello", "/tmp/quest"];

/// A command and the lines that the README shows below it.
#[derive(Debug)]
struct Example {
    command: String,
    shown: Vec<String>,
}

/// The commands of all examples marked `console`.
fn examples(readme: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => examples.push(Example { command: command.to_owned(), shown: Vec::new() }),
                (None, Some(last)) => last.shown.push(line.to_owned()),
                (None, None) => panic!("an example begins without a command: {line}"),
            },
            (false, _) => {}
        }
    }
    examples
}

/// One shell for all examples.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn start(home: &Path) -> Self {
        let programs = Path::new(PROGRAM).parent().unwrap().display().to_string();
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc"]).env_clear().current_dir(home).env("HOME", home);
        command.env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()));
        for (name, value) in [("NAME", "Somebody"), ("EMAIL", "somebody@localhost")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// The lines that a command prints.
    fn run(&mut self, command: &str) -> Vec<String> {
        // Its input is not the shell's, or it would read the next command.
        writeln!(self.input, "{{ {command}\n}} 2>&1 </dev/null; echo; echo {MARK}").unwrap();
        let lines = self.output.by_ref().lines().map(Result::unwrap).take_while(|line| line != MARK);
        let mut lines: Vec<String> = lines.collect();
        // The line break in front of the mark.
        lines.pop();
        lines
    }
}

/// Stops what was started, also when the test fails.
impl Drop for Shell {
    fn drop(&mut self) {
        for folder in ["hello", "quest"] {
            let down = format!("cd ~/{folder} 2>/dev/null && hatchery stop --all --wait 5; hatchery down");
            writeln!(self.input, "{{ {down}; }} >/dev/null 2>&1 </dev/null").ok();
        }
        writeln!(self.input, "exit").ok();
        self.child.wait().ok();
    }
}

/// A line without what is different each time: ids, numbers, times and lengths of time.
fn lasting(line: &str, home: &str) -> String {
    let line = FOLDERS.iter().fold(line.to_owned(), |line, folder| {
        line.replace(&format!("{home}/{}", folder.trim_start_matches("/tmp/")), folder)
    });
    let line = line.replace("a moment ago", "0 s ago");
    let mut plain = String::new();
    let mut word = String::new();
    for char in line.trim_end().chars().chain(['\n']) {
        if char.is_ascii_alphanumeric() || "-_".contains(char) {
            word.push(char);
            continue;
        }
        plain.push_str(&match word.rsplit_once('-') {
            // An id may have two dashes in a row, and never begins with one.
            _ if word.len() == 22 && !word.starts_with('-') && word.chars().any(|it| it.is_ascii_uppercase()) => {
                "ID".to_owned()
            }
            Some((words, end)) if end.len() == 4 && end.chars().all(|it| it.is_ascii_hexdigit()) => {
                format!("{words}-HEX")
            }
            _ if word.starts_with(|it: char| it.is_ascii_digit()) => {
                format!("N{}", word.trim_start_matches(|it: char| it.is_ascii_digit()))
            }
            _ => std::mem::take(&mut word),
        });
        word.clear();
        plain.push(char);
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the lines are as shown; `…` stands for any lines.
fn is_as_shown(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=printed.len()).any(|skipped| is_as_shown(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed.first() == Some(line) && is_as_shown(rest, &printed[1..]),
    }
}

/// The number after a word.
fn number_after(word: &str, lines: &[String]) -> Option<String> {
    let after = lines.iter().find_map(|line| line.split_once(word))?.1;
    let number: String = after.chars().take_while(char::is_ascii_digit).collect();
    Some(number).filter(|number| !number.is_empty())
}

#[test]
fn the_readme_works_from_top_to_bottom() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let examples = examples(&readme);
    assert!(examples.len() >= 9, "the examples were found: {examples:#?}");
    let place = tempfile::tempdir().unwrap();
    let home = place.path().canonicalize().unwrap();
    let home_text = home.to_str().unwrap();
    let mut shell = Shell::start(&home);
    // Process ids of the README, and those that they are here.
    let mut numbers: Vec<(String, String)> = Vec::new();
    for Example { command, shown } in &examples {
        let mut meant = FOLDERS.iter().fold(command.clone(), |command, folder| {
            command.replace(folder, &format!("{home_text}/{}", folder.trim_start_matches("/tmp/")))
        });
        for (there, here) in &numbers {
            meant = meant.replace(there, here);
        }
        let wanted: Vec<String> = shown.iter().map(|line| lasting(line, home_text)).collect();
        let looks = ["hatchery why", "hatchery status", "hatchery history"].iter().any(|it| command.starts_with(it));
        let deadline = Instant::now() + PATIENCE;
        let printed = loop {
            let printed = shell.run(&meant);
            let plain: Vec<String> = printed.iter().map(|line| lasting(line, home_text)).collect();
            if shown.is_empty() || is_as_shown(&wanted, &plain) {
                break printed;
            }
            // A person is slower than the agent: what is looked at may come a moment later.
            assert!(looks && Instant::now() < deadline, "{command}\nshows  {wanted:#?}\nprints {plain:#?}");
            std::thread::sleep(LOOK_AGAIN);
        };
        for word in ["pid ", "process "] {
            numbers.extend(number_after(word, shown).zip(number_after(word, &printed)));
        }
    }
}
