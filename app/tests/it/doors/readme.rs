//! Documents, followed word by word in one shell: each command of their examples is run, and what the document shows must come.
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
/// Folders of the documents that the tests have elsewhere.
const FOLDERS: [&str; 4] = ["/tmp/hello", "/tmp/quest", "/tmp/agents", "/tmp/session"];
/// A command whose input follows in the document, up to the line `END`.
const HERE: &str = "<<'END'";
/// A view that a person ends.
const INTERRUPTED: &str = "^C";
/// How long such a view is looked at before it is looked at again.
const VIEW_SECONDS: &str = "2";
/// How many characters of an id are printed, unless two ids begin with the same ones.
const SHORT_ID_CHARS: usize = 8;
const ID_CHARS: usize = 22;

/// A command and the lines that the document shows below it.
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
                // A file that is written in the example.
                (None, Some(last)) if last.command.contains(HERE) && !last.command.ends_with("\nEND") => {
                    last.command.push('\n');
                    last.command.push_str(line);
                }
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
        for folder in FOLDERS.map(|folder| folder.trim_start_matches("/tmp/")) {
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
            _ if is_id(&word) => "ID".to_owned(),
            _ if is_day(&word) => "DAY".to_owned(),
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

/// An id may have two dashes in a row, and never begins with one.
fn is_id(word: &str) -> bool {
    word.len() == ID_CHARS && !word.starts_with('-') && word.chars().any(|it| it.is_ascii_uppercase()) && is_of_id(word)
}

fn is_of_id(word: &str) -> bool {
    word.chars().all(|it| it.is_ascii_alphanumeric() || "-_".contains(it))
}

/// `2026-11-15`
fn is_day(word: &str) -> bool {
    word.len() == 10 && word.split('-').count() == 3 && word.chars().all(|it| it.is_ascii_digit() || it == '-')
}

/// Whether a word of the document is the beginning of an id: no word of a language has digits or capitals in the middle.
fn is_short_id(word: &str) -> bool {
    word.len() == SHORT_ID_CHARS
        && is_of_id(word)
        && word.chars().any(|it| it.is_ascii_digit())
        && word.chars().any(|it| it.is_ascii_uppercase())
}

/// Whether a line is as shown. What is a short id is known from the document: any text of that length can be one.
fn is_same(shown: &str, printed: &str, home: &str) -> bool {
    let (mut shown, mut printed): (Vec<&str>, Vec<&str>) =
        (shown.split_whitespace().collect(), printed.split_whitespace().collect());
    for (shown, printed) in shown.iter_mut().zip(&mut printed) {
        if is_short_id(shown) && printed.len() == SHORT_ID_CHARS && is_of_id(printed) {
            (*shown, *printed) = ("SHORT", "SHORT");
        }
    }
    lasting(&shown.join(" "), home) == lasting(&printed.join(" "), home)
}

/// Whether the lines are as shown; `…` stands for any lines.
fn is_as_shown(shown: &[String], printed: &[String], home: &str) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=printed.len()).any(|skipped| is_as_shown(rest, &printed[skipped..], home))
        }
        Some((line, rest)) => {
            printed.first().is_some_and(|first| is_same(line, first, home)) && is_as_shown(rest, &printed[1..], home)
        }
    }
}

/// The ids in lines, in their order.
fn ids(lines: &[String]) -> Vec<String> {
    let words = lines.iter().flat_map(|line| line.split(|it: char| !it.is_ascii_alphanumeric() && !"-_".contains(it)));
    words.filter(|word| is_id(word)).map(str::to_owned).collect()
}

/// The number after a word.
fn number_after(word: &str, lines: &[String]) -> Option<String> {
    let after = lines.iter().find_map(|line| line.split_once(word))?.1;
    let number: String = after.chars().take_while(char::is_ascii_digit).collect();
    Some(number).filter(|number| !number.is_empty())
}

#[test]
fn the_readme_works_from_top_to_bottom() {
    follow("README.md", 9);
}

#[test]
fn the_page_about_agents_works_from_top_to_bottom() {
    follow("docs/agents.md", 15);
}

/// Up to the part that needs conversations of Claude Code.
#[test]
fn the_walk_through_a_run_shows_what_is_printed() {
    let text = text_of("docs/runs.md");
    follow_text(text.split("## Conversations of Claude Code").next().unwrap(), 18);
}

fn text_of(document: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(document)).unwrap()
}

fn follow(document: &str, least: usize) {
    follow_text(&text_of(document), least);
}

/// Does what a document says, which has at least so many commands.
fn follow_text(text: &str, least: usize) {
    let examples = examples(text);
    assert!(examples.len() >= least, "the examples were found: {examples:#?}");
    let place = tempfile::tempdir().unwrap();
    let home = place.path().canonicalize().unwrap();
    let home_text = home.to_str().unwrap();
    let mut shell = Shell::start(&home);
    // Process ids and ids of the document, and those that they are here.
    let mut names: Vec<(String, String)> = Vec::new();
    for Example { command, shown } in &examples {
        let mut meant = FOLDERS.iter().fold(command.clone(), |command, folder| {
            command.replace(folder, &format!("{home_text}/{}", folder.trim_start_matches("/tmp/")))
        });
        for (there, here) in &names {
            meant = meant.replace(there, here);
        }
        let (shown, is_view) = match shown.split_last() {
            Some((last, shown)) if last == INTERRUPTED => (shown, true),
            _ => (shown.as_slice(), false),
        };
        if is_view {
            meant = format!("timeout {VIEW_SECONDS} {meant}");
        }
        let looks = ["why", "status", "history", "session list", "events", "runs", "attach", "usage", "ask list"];
        let looks = looks.iter().any(|it| command.starts_with(&format!("hatchery {it}")));
        let deadline = Instant::now() + PATIENCE;
        let printed = loop {
            let printed = shell.run(&meant);
            if shown.is_empty() || is_as_shown(shown, &printed, home_text) {
                break printed;
            }
            // A person is slower than the agent: what is looked at may come a moment later.
            assert!(looks && Instant::now() < deadline, "{command}\nshows  {shown:#?}\nprints {printed:#?}");
            std::thread::sleep(LOOK_AGAIN);
        };
        for word in ["pid ", "process "] {
            names.extend(number_after(word, shown).zip(number_after(word, &printed)));
        }
        // The number of a question, with which it is answered.
        let first = |lines: &[String]| Some(lines.first()?.split_whitespace().next()?.to_owned());
        if command == "hatchery ask list" {
            names.extend(first(shown).zip(first(&printed)));
        }
        let (there, here) = (ids(shown), ids(&printed));
        if there.len() == here.len() {
            names.extend(there.into_iter().zip(here));
        }
    }
}
