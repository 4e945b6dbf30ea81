//! The status line, whatever the files hold.

use crate::support::daemon::{Grounds, PROGRAM};
use crate::support::random::Random;
use hatchery::statusline::{Facts, StatusLineInput};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const EXAMPLE: &str = include_str!("../../../../core/tests/status/example.json");

/// A project named `shop` with these files in `.fctry`.
struct Shop {
    grounds: Grounds,
}

impl Shop {
    fn with(files: &[(&str, &str)]) -> Self {
        let shop = Self { grounds: Grounds::new() };
        fs::create_dir_all(shop.root().join(".fctry")).unwrap();
        fs::create_dir_all(shop.root().join(".git")).unwrap();
        fs::write(shop.root().join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        for (name, text) in files {
            fs::write(shop.root().join(".fctry").join(name), text).unwrap();
        }
        shop
    }

    fn root(&self) -> std::path::PathBuf {
        self.grounds.path().join("shop")
    }

    fn session(&self) -> String {
        json!({ "workspace": { "current_dir": self.root() }, "context_window": { "used_percentage": 71.6 } })
            .to_string()
    }

    /// What the program prints. It always ends well.
    fn line(&self) -> String {
        line(&self.session(), &self.root())
    }
}

fn line(session: &str, folder: &Path) -> String {
    line_of(Command::new(PROGRAM), session, folder)
}

fn line_of(mut command: Command, session: &str, folder: &Path) -> String {
    command
        .arg("statusline")
        .env_clear()
        .env("NO_COLOR", "1")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(session.as_bytes()).unwrap();
    let ran = child.wait_with_output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn the_example_has_two_lines() {
    let config = r#"{"versions":{"external":{"current":"0.9.1"},"spec":{"current":"1.3"}}}"#;
    let inbox = r#"[{"id":"a","status":"pending"},{"id":"b","status":"processed"}]"#;
    let shop = Shop::with(&[("state.json", EXAMPLE), ("config.json", config), ("inbox.json", inbox)]);
    assert_eq!(
        shop.line(),
        "shop 0.9.1 │ ⎇ feature/x │ § 1.3 │ ◔ 72%\n\
         evolve interviewer │ ▶ 2/4 │ #core-flow (2.2) │ ✓ 5/8 │ ◆ 28/40 │ △ 1 │ ✉ 1 │ › Run /fctry:execute to build the new behavior\n"
    );
}

#[test]
fn colours_say_how_it_stands() {
    let shop = Shop::with(&[("state.json", EXAMPLE)]);
    let facts = Facts::gather(&StatusLineInput::read(&shop.session()), &shop.root());
    let line = facts.render(true);
    for part in ["\u{1b}[33m◔ 72%\u{1b}[0m", "\u{1b}[36mevolve\u{1b}[0m", "\u{1b}[33m✓ 5/8\u{1b}[0m"] {
        assert!(line.contains(part), "{part:?} in {line:?}");
    }
}

#[test]
fn a_project_without_the_protocol_has_one_line() {
    let grounds = Grounds::new();
    let folder = grounds.path().join("plain");
    fs::create_dir_all(folder.join(".git")).unwrap();
    fs::write(folder.join(".git/HEAD"), "0123456789abcdef\n").unwrap();
    assert_eq!(line("", &folder), "plain │ ⎇ 0123456\n");
    let session = json!({ "cwd": folder, "context_window": { "used_percentage": null } }).to_string();
    assert_eq!(line(&session, Path::new("/")), "plain │ ⎇ 0123456\n");
}

#[test]
fn a_long_build_shows_its_chunks() {
    let chunks = r#"{"chunkProgress":{"current":3,"total":7,"chunks":[{"status":"completed"},{"status":"completed"},
        {"status":"retrying","attempt":3},{"status":"failed"},null,7]},"currentCommand":"execute"}"#;
    let shop = Shop::with(&[("state.json", chunks)]);
    assert_eq!(shop.line().lines().nth(1).unwrap(), "execute │ ▶ 2+1(r3)/7 1✗");
}

#[test]
fn strange_files_are_survived() {
    let damaged = Shop::with(&[("state.json", "{\"a\":"), ("config.json", "[]"), ("inbox.json", "{}")]);
    assert_eq!(damaged.line().lines().nth(1).unwrap(), "✗ state.json is damaged");
    for nothing in ["null", "[]", "7", "", "\0\0", "\u{feff}"] {
        assert!(Shop::with(&[("state.json", nothing)]).line().starts_with("shop │ ⎇ feature/x"), "{nothing:?}");
    }
    let folder = Shop::with(&[]);
    fs::create_dir(folder.root().join(".fctry/state.json")).unwrap();
    assert_eq!(folder.line().lines().nth(1).unwrap(), "✗ state.json cannot be read");
    let pipe = Shop::with(&[]);
    assert!(Command::new("mkfifo").arg(pipe.root().join(".fctry/state.json")).status().unwrap().success());
    assert_eq!(pipe.line().lines().nth(1).unwrap(), "✗ state.json cannot be read");
    for session in ["", "null", "[1]", "{", "{\"workspace\":7,\"cwd\":null}", "{\"cwd\":\"/does/not/exist\"}"] {
        line(session, Path::new("/"));
    }
}

#[test]
fn a_file_of_fifty_megabytes_is_read() {
    let filler = "x".repeat(50 * 1024 * 1024);
    let shop = Shop::with(&[("state.json", &format!(r#"{{"currentCommand":"evolve","junk":"{filler}"}}"#))]);
    assert_eq!(shop.line().lines().nth(1).unwrap(), "evolve");
    let larger = Shop::with(&[]);
    fs::File::create(larger.root().join(".fctry/state.json")).unwrap().set_len(65 * 1024 * 1024).unwrap();
    assert_eq!(larger.line().lines().nth(1).unwrap(), "✗ state.json cannot be read");
}

#[test]
fn a_file_without_permission_is_survived() {
    let shop = Shop::with(&[("state.json", EXAMPLE)]);
    let state = shop.root().join(".fctry/state.json");
    fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    // Root may read everything, unless it does without these capabilities.
    let mut command = Command::new(PROGRAM);
    if fs::read(&state).is_ok() {
        command = Command::new("setpriv");
        command.args(["--bounding-set", "-dac_override,-dac_read_search", "--", PROGRAM]);
    }
    let line = line_of(command, &shop.session(), &shop.root());
    assert_eq!(line.lines().nth(1).unwrap(), "✗ state.json cannot be read");
}

#[test]
fn texts_cannot_drive_the_terminal() {
    let nasty = json!({ "currentCommand": "a\u{1b}[2Jb\nc\u{7}", "nextStep": "x".repeat(500), "activeSection": "\u{9b}31m\u{202e}(2.2)" });
    let shop = Shop::with(&[("state.json", &nasty.to_string())]);
    let line = shop.line();
    assert_eq!(line.lines().count(), 2);
    assert!(!line.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{line:?}");
    assert!(line.chars().count() < 300, "{line}");
}

/// Any value, and above all those that nobody expects.
fn strange(random: &mut Random, depth: usize) -> Value {
    let names =
        ["current", "total", "satisfied", "chunks", "status", "attempt", "aligned", "draft", "scanned", "id", "name"];
    match random.below(if depth == 0 { 9 } else { 12 }) {
        0 => Value::Null,
        1 => json!(random.next().is_multiple_of(2)),
        2 => json!(-(i64::try_from(random.next() % 1000).unwrap())),
        3 => json!(u64::MAX),
        4 => json!(1e308),
        5 => json!(random.next() % 12),
        6 => json!(*random.one_of(&["completed", "retrying", "evolve", "", "\u{1b}[31m", "日本語", "#a"])),
        7 => json!(0.5),
        8 => json!(""),
        9 => (0..random.below(4)).map(|_| strange(random, depth - 1)).collect(),
        _ => (0..random.below(5))
            .map(|_| ((*random.one_of(&names)).to_owned(), strange(random, depth - 1)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// A value that a field may well have, with something strange in one place or another.
fn nearly_right(random: &mut Random) -> Value {
    let names = ["satisfied", "total", "current", "scanned", "aligned", "draft"];
    let mut counts: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!(random.next() % 50))).collect();
    match random.below(4) {
        0 => json!(format!("words {}", random.next() % 1000)),
        1 => counts.into(),
        2 => {
            counts.insert((*random.one_of(&names)).to_owned(), strange(random, 2));
            counts.into()
        }
        _ => strange(random, 3),
    }
}

#[test]
fn null_and_more_than_all_are_shown_as_they_are() {
    let second = |state: &str| {
        let shop = Shop::with(&[("state.json", state)]);
        shop.line().lines().nth(1).unwrap_or_default().to_owned()
    };
    let more = r#"{"scenarioScore":{"satisfied":9,"total":8},"chunkProgress":{"current":5,"total":4},
        "readinessSummary":{"aligned":3,"draft":-1}}"#;
    assert_eq!(second(more), "▶ 5/4 │ ✓ 9/8 │ ◆ 3/3");
    let nulls = FIELDS.iter().map(|name| ((*name).to_owned(), Value::Null)).collect::<serde_json::Map<_, _>>();
    assert_eq!(second(&Value::from(nulls).to_string()), "");
    let inside = r#"{"currentCommand":"execute","scenarioScore":{"satisfied":null,"total":null},"chunkProgress":{"current":null,
        "total":null,"chunks":null},"readinessSummary":{"aligned":null},"untrackedChanges":[null],"activeSection":null,
        "activeSectionNumber":"2.2","agentOutputs":{"a":null},"buildRun":{"chunks":[null]}}"#;
    assert_eq!(second(inside), "execute │ △ 1");
}

const FIELDS: [&str; 14] = [
    "activeSection",
    "activeSectionNumber",
    "currentCommand",
    "workflowStep",
    "completedSteps",
    "nextStep",
    "scenarioScore",
    "chunkProgress",
    "readinessSummary",
    "untrackedChanges",
    "specVersion",
    "agentOutputs",
    "buildRun",
    "scanProgress",
];

#[test]
fn a_hundred_random_states_give_lines() {
    let mut random = Random::new(13);
    let shop = Shop::with(&[]);
    let mut lines = String::new();
    for round in 0..100 {
        let state: serde_json::Map<String, Value> =
            FIELDS.iter().map(|name| ((*name).to_owned(), nearly_right(&mut random))).collect();
        fs::write(shop.root().join(".fctry/state.json"), Value::Object(state.clone()).to_string()).unwrap();
        let line = Facts::gather(&StatusLineInput::read(&shop.session()), Path::new("/")).render(false);
        assert!((1..=2).contains(&line.lines().count()), "round {round}: {line:?} of {state:?}");
        assert!(line.starts_with("shop") && !line.contains('\u{1b}'), "round {round}: {line:?}");
        lines.push_str(&format!("{}\n\n", line.strip_prefix("shop │ ⎇ feature/x │ ").unwrap_or(&line)));
    }
    insta::assert_snapshot!("a_hundred_random_states", lines);
}
