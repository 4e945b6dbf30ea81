//! `hatchery tui` in a real terminal, with real agents.

mod plain;

use super::support::daemon::Grounds;
use super::support::tmux::Terminal;
use super::support::workshop::Workshop;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

fn named(workshop: &Workshop, name: &str, steps: &[Value]) -> String {
    let with = json!({ "script": workshop.script(steps), "stays": true });
    let answer = workshop.door().post("/api/runs", &json!({ "prompt": "play", "name": name, "with": with }));
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.id()
}

fn count(screen: &str, text: &str) -> usize {
    screen.matches(text).count()
}

#[test]
fn one_talks_to_an_agent_and_leaves() {
    let workshop = Workshop::open();
    named(&workshop, "weaver", &[json!({ "text": "I am **ready**." })]);
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 24), "one_talks_to_an_agent_and_leaves") else {
        return;
    };
    terminal.see("I am ready.");
    terminal.see("◦ weaver");
    terminal.text("hello there");
    terminal.keys(&["Enter"]);
    let screen = terminal.see("You said: hello there");
    assert_eq!(count(&screen, "› hello there"), 1, "{screen}");
    assert!(!screen.contains("will be sent"), "{screen}");
    terminal.keys(&["C-d"]);
    let last = terminal.see("brings you back to weaver");
    assert!(last.contains("Nobody needs you"), "{last}");
}

#[test]
fn editor_and_pager_get_the_terminal_and_give_it_back() {
    let workshop = Workshop::open();
    named(&workshop, "weaver", &[json!({ "text": "Two places fit." })]);
    let editor = workshop.grounds.path().join("editor");
    std::fs::write(&editor, "#!/bin/sh\nprintf 'and more' >> \"$1\"\n").unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let environment = format!("VISUAL={} PAGER=cat", editor.display());
    let test = "editor_and_pager_get_the_terminal_and_give_it_back";
    let Some(terminal) = Terminal::with_environment(&workshop.grounds, &environment, test) else { return };
    terminal.see("Two places fit.");
    terminal.text("A draft ");
    for _ in 0..3 {
        terminal.keys(&["C-x", "v"]);
        terminal.see("and more");
        // What it draws is whole, and keys arrive.
        terminal.see("weaver");
        terminal.keys(&["C-a", "C-k"]);
        terminal.see("Say something to weaver");
    }
    terminal.keys(&["Escape"]);
    terminal.see("Browse");
    terminal.keys(&["v"]);
    // Keys that are pressed while the pager has the terminal are the pager's.
    terminal.see_that("in your pager", |screen| {
        let is_back = screen.contains("in your pager");
        if !is_back {
            terminal.keys(&["C-x", "?"]);
        }
        is_back
    });
}

#[test]
fn a_fork_is_entered_and_the_draft_stays_behind() {
    let workshop = Workshop::open();
    named(&workshop, "weaver", &[json!({ "text": "Two places fit." })]);
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 24), "a_fork_is_entered_and_the_draft_stays_behind")
    else {
        return;
    };
    terminal.see("Two places fit.");
    terminal.text("a draft that stays");
    terminal.keys(&["C-x", "f"]);
    terminal.see("You are in the fork, which knows what its parent knew. Your text in weaver is");
    let screen = terminal.see("inherited from weaver");
    assert!(!screen.contains("❯ a draft"), "{screen}");
    terminal.keys(&["C-x", "C-x"]);
    terminal.see("❯ a draft that stays");
    // A mistyped command runs nothing and stays.
    terminal.keys(&["C-c"]);
    terminal.text("/frok");
    terminal.keys(&["Enter"]);
    let screen = terminal.see("There is no /frok. /fork?");
    assert!(screen.contains("❯ /frok"), "{screen}");
}

/// Its parent has said nothing of its own.
#[test]
fn a_fork_of_a_fork_shows_what_its_grandparent_said() {
    let workshop = Workshop::open();
    let weaver = named(&workshop, "weaver", &[json!({ "text": "Two places fit." })]);
    workshop.wait("its words", |event| event["content"] == "Two places fit.");
    let door = workshop.door();
    let child = door.fork(json!({ "parent": weaver, "name": "child" })).id();
    assert_eq!(door.fork(json!({ "parent": child, "name": "grandchild" })).status, 201);
    let test = "a_fork_of_a_fork_shows_what_its_grandparent_said";
    let Some(terminal) = Terminal::of_command(&workshop.grounds, "tui grandchild", test) else { return };
    let screen = terminal.see("inherited from child");
    assert!(!screen.contains("Two places fit."), "it is folded: {screen}");
    terminal.keys(&["Escape"]);
    terminal.see("You browse");
    terminal.keys(&["g", "g", "Enter"]);
    let screen = terminal.see("Two places fit.");
    assert!(screen.contains("╎ weaver"), "{screen}");
}

#[test]
fn a_kill_shows_what_it_would_do_and_asks() {
    let workshop = Workshop::open();
    let weaver = named(&workshop, "weaver", &[json!({ "text": "Here." })]);
    let door = workshop.door();
    assert_eq!(door.fork(json!({ "parent": weaver, "name": "child-of-weaver" })).status, 201);
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 24), "a_kill_shows_what_it_would_do_and_asks") else {
        return;
    };
    terminal.see("weaver");
    terminal.text("/go weaver");
    terminal.keys(&["Enter"]);
    terminal.see("Here.");
    terminal.text("/kill");
    terminal.keys(&["Enter"]);
    let screen = terminal.see("3 Kill all 2");
    assert!(screen.contains("moves up to root"), "{screen}");
    // Any other key keeps it.
    terminal.keys(&["x"]);
    terminal.see("weaver is kept.");
    assert_eq!(door.one(&weaver)["state"], "alive");
    terminal.keys(&["Enter"]);
    terminal.see("3 Kill all 2");
    terminal.keys(&["3", "Enter"]);
    terminal.see("dead, killed by you");
    assert_eq!(door.one(&weaver)["state"], "dead");
}

#[test]
fn mail_is_seen_and_read() {
    let workshop = Workshop::open();
    let weaver = named(&workshop, "weaver", &[json!({ "text": "Here." })]);
    let other = named(&workshop, "other", &[json!({ "text": "There." })]);
    let Some(terminal) = Terminal::open(&workshop.grounds, (100, 30), "mail_is_seen_and_read") else { return };
    terminal.see("ere.");
    terminal.text("/go weaver");
    terminal.keys(&["Enter"]);
    terminal.see("Here.");
    let door = workshop.door();
    door.mail(&other, &weaver, "the schema is done");
    terminal.see("Mail from other: the schema is done");
    door.mail(&weaver, "human", "look at this, please");
    terminal.see("weaver wrote to you");
    terminal.keys(&["C-x", "m"]);
    let screen = terminal.see("1 mail for you, unread");
    assert!(!screen.contains("look at this"), "a body is not read by looking: {screen}");
    terminal.keys(&["Enter"]);
    terminal.see("look at this, please");
    assert!(door.unread("human").is_empty());
}

#[test]
fn a_daemon_that_is_killed_comes_back_and_nothing_is_twice_or_missing() {
    let mut workshop = Workshop::open();
    let slowly: Vec<Value> = (1..=40)
        .flat_map(|number| [json!({ "text": format!("line {number} of the agent") }), json!({ "sleep_ms": 50 })])
        .collect();
    named(&workshop, "weaver", &[slowly, vec![json!({ "text": "the very end" })]].concat());
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 130), "a_daemon_that_is_killed_comes_back") else {
        return;
    };
    terminal.see("line 3 of");
    terminal.text("said while it was away");
    workshop.kill_daemon();
    terminal.keys(&["Enter"]);
    workshop.restart();
    terminal.see("You said: said while it was away");
    let screen = terminal.see("the very end");
    assert_eq!(count(&screen, "› said while it was away"), 1, "{screen}");
    for number in 1..=40 {
        assert_eq!(count(&screen, &format!("line {number} of the agent")), 1, "{number}: {screen}");
    }
}

/// The reason is not over with the message on the bottom line, and later attempts do not hide it.
#[test]
fn a_daemon_that_cannot_start_is_told_with_its_reason() {
    let grounds = Grounds::with("store = \"postgres://nobody@127.0.0.1:1/none\"\n");
    let test = "a_daemon_that_cannot_start_is_told_with_its_reason";
    let Some(terminal) = Terminal::open(&grounds, (80, 24), test) else { return };
    terminal.see("The daemon cannot be reached:");
    let screen = terminal.see_that("the reason alone", |screen| {
        screen.contains("the daemon is away") && !screen.contains("The daemon cannot be reached:")
    });
    assert!(screen.contains("store") && screen.contains("Agents go on without it"), "{screen}");
}

/// A daemon that hangs keeps its connections, so that nothing breaks off: its silence has to be noticed.
#[test]
fn a_daemon_that_hangs_is_told_and_nothing_is_twice_or_missing_when_it_goes_on() {
    let workshop = Workshop::open();
    let slowly: Vec<Value> = (1..=40)
        .flat_map(|number| [json!({ "text": format!("line {number} of the agent") }), json!({ "sleep_ms": 50 })])
        .collect();
    named(&workshop, "weaver", &[slowly, vec![json!({ "text": "the very end" })]].concat());
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 130), "a_daemon_that_hangs_is_told") else { return };
    terminal.see("line 3 of");
    let daemon = Pid::from_raw(i32::try_from(workshop.daemon_pid()).unwrap()).unwrap();
    kill_process(daemon, Signal::STOP).unwrap();
    terminal.text("said while it hung");
    terminal.keys(&["Enter"]);
    terminal.text("half a thou");
    let screen = terminal.see("⊗ the daemon is away");
    assert!(screen.contains("will be sent"), "{screen}");
    assert!(screen.contains("❯ half a thou"), "{screen}");
    assert!(screen.contains("Agents go on without it, and nothing that they say is lost."), "{screen}");
    kill_process(daemon, Signal::CONT).unwrap();
    terminal.see("You said: said while it hung");
    let screen = terminal.see_that("the end", |screen| screen.contains("the very end") && !screen.contains("is away"));
    assert_eq!(count(&screen, "› said while it hung"), 1, "{screen}");
    assert!(screen.contains("❯ half a thou"), "{screen}");
    for number in 1..=40 {
        assert_eq!(count(&screen, &format!("line {number} of the agent")), 1, "{number}: {screen}");
    }
}

#[test]
fn a_killed_terminal_brings_everything_back() {
    let workshop = Workshop::open();
    named(
        &workshop,
        "weaver",
        &[
            json!({ "tool": { "name": "Bash", "input": { "command": "seq 3" }, "result": "one\ntwo\nthree" } }),
            json!({ "text": "Done." }),
        ],
    );
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 24), "a_killed_terminal_brings_everything_back") else {
        return;
    };
    terminal.see("Done.");
    // Opens the tool by hand, and types.
    terminal.keys(&["Escape"]);
    // Both at once would be Alt-k.
    terminal.see("You browse");
    terminal.keys(&["k", "Enter"]);
    terminal.see("  two");
    terminal.keys(&["Escape"]);
    terminal.see("It hears this at once.");
    terminal.text("half a thou");
    let kept = workshop.grounds.data().join("tui/desks.json");
    super::support::daemon::wait_until("the draft on disk", || {
        std::fs::read_to_string(&kept).is_ok_and(|text| text.contains("half a thou"))
    });
    terminal.kill_program();
    terminal.start((80, 24));
    let screen = terminal.see("half a thou");
    assert!(screen.contains("❯ half a thou"), "{screen}");
    terminal.see("  two");
}

/// The place where one reads comes back as well, with the same row at the top.
#[test]
fn a_killed_terminal_is_where_it_was() {
    let workshop = Workshop::open();
    named(&workshop, "weaver", &[json!({ "flood": { "lines": 60, "bytes": 20 } }), json!({ "text": "Done." })]);
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 24), "a_killed_terminal_is_where_it_was") else {
        return;
    };
    terminal.see("Done.");
    terminal.keys(&["PageUp"]);
    let before = terminal.see_that("a page up", |screen| !screen.contains("Done.") && screen.contains("flood 4"));
    let kept = workshop.grounds.data().join("tui/desks.json");
    super::support::daemon::wait_until("the place on disk", || {
        std::fs::read_to_string(&kept).is_ok_and(|text| text.contains("\"at\":{\"item\""))
    });
    terminal.kill_program();
    terminal.start((80, 24));
    let top = |screen: &str| screen.lines().take(20).map(str::to_owned).collect::<Vec<_>>();
    terminal.see_that("the same rows", |screen| top(screen) == top(&before));
}

#[test]
fn a_paste_of_a_megabyte_is_one_chip_and_arrives_whole() {
    let workshop = Workshop::open();
    let weaver = named(&workshop, "weaver", &[json!({ "text": "Ready." })]);
    let Some(terminal) =
        Terminal::open(&workshop.grounds, (80, 24), "a_paste_of_a_megabyte_is_one_chip_and_arrives_whole")
    else {
        return;
    };
    terminal.see("Ready.");
    let log = "a line of a long log, with something in it\n".repeat(24_000);
    terminal.paste(&log);
    let screen = terminal.see("[paste 1: ");
    assert!(screen.contains("24,000 lines]"), "{screen}");
    assert!(!screen.contains("a line of a long log"), "{screen}");
    terminal.keys(&["Enter"]);
    workshop.wait("the message", |event| {
        event["agent"] == weaver && event["type"] == "message_added" && event["content"] == log.as_str()
    });
}

#[test]
fn nothing_that_an_agent_says_drives_the_terminal() {
    let workshop = Workshop::open();
    let nasty = "\u{1b}[2J\u{1b}[H\u{1b}]0;owned\u{7}after the escape 日本語 e\u{301}\u{301} 👩‍👩‍👧 🇩🇪 end";
    named(
        &workshop,
        "weaver",
        &[
            json!({ "text": "before" }),
            json!({ "text": nasty }),
            json!({ "tool": { "name": "Bash", "input": { "command": "x" }, "result": "\u{1b}[31mred\u{1b}[0m" } }),
        ],
    );
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 24), "nothing_that_an_agent_says_drives_the_terminal")
    else {
        return;
    };
    let screen = terminal.see("after the escape");
    assert!(screen.contains("before"), "the screen was not cleared: {screen}");
    assert!(
        screen.contains("·[2J·[H·]0;owned·after the escape 日本語 e\u{301}\u{301} "),
        "marks stay on their letter: {screen}"
    );
    assert!(screen.contains(" 👩👩👧 DE end"), "terminals measure families and flags in different ways: {screen}");
    // The colour of a tool is left out, and its words stay.
    let screen = terminal.see("Bash x");
    let tool = screen.lines().find(|row| row.contains("Bash x")).unwrap();
    assert!(tool.contains("red") && !tool.contains("[31m") && !tool.contains('·'), "{screen}");
    // The separator is where it belongs, so the widths agree with the terminal's.
    assert!(screen.lines().nth(21).is_some_and(|row| row.starts_with("── ")), "{screen}");
}

/// The highest number of a line `flood N` on the screen.
fn newest(screen: &str) -> Option<u32> {
    let number = |part: &str| part.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok();
    screen.split("flood ").skip(1).filter_map(number).max()
}

/// The streams go on while one types and the window is dragged, and the screen follows them.
#[test]
fn ten_agents_stream_while_one_types_and_resizes() {
    const LINES: u32 = 3_000;
    let workshop = Workshop::open();
    let flood: Vec<Value> = (1..=LINES)
        .flat_map(|number| [json!({ "text": format!("flood {number}") }), json!({ "sleep_ms": 20 })])
        .collect();
    let first = named(&workshop, "agent-0", &flood);
    for number in 1..10 {
        named(&workshop, &format!("agent-{number}"), &flood);
    }
    let Some(terminal) = Terminal::open(&workshop.grounds, (120, 40), "ten_agents_stream_while_one_types_and_resizes")
    else {
        return;
    };
    terminal.see("agent-0");
    terminal.text("/go agent-0");
    terminal.keys(&["Enter"]);
    terminal.see("agent-0 ");
    let mut newest_seen = newest(&terminal.see("flood ")).unwrap();
    terminal.text("typed under fire");
    for (width, height) in [(80, 24), (60, 20), (200, 50), (100, 30), (120, 40)] {
        terminal.resize(width, height);
        // Drawn for this size: the separator goes from one side to the other, and stands above the text.
        let screen = terminal.see_that("a screen of this size with later lines", |screen| {
            let separator = screen.lines().position(|row| row.starts_with("── ") && row.ends_with("──"));
            let is_whole = separator.is_some_and(|at| {
                let rows: Vec<&str> = screen.lines().collect();
                rows[at].chars().count() == usize::from(width)
                    && rows.get(at + 1).is_some_and(|it| it.contains("❯ typed"))
            });
            is_whole && newest(screen).is_some_and(|newest| newest > newest_seen)
        });
        newest_seen = newest(&screen).unwrap();
        assert_eq!(count(&screen, &format!("flood {newest_seen}\n")).min(2), 1, "{screen}");
        assert!(screen.contains("❯ typed under fire"), "{screen}");
        assert!(screen.contains("working"), "{screen}");
    }
    let is_over = |event: &Value| event["agent"] == first && event["content"] == format!("flood {LINES}");
    let log = workshop.door().get(&format!("/api/events.json?limit=1&before=1000000000&agent={first}")).json();
    assert!(!log["events"].as_array().unwrap().iter().any(is_over), "the streams were over before one was done");
}

#[test]
fn a_silent_agent_is_answered_in_place() {
    let workshop = Workshop::open();
    let script = workshop.script(&[json!({ "text": "I hang now." }), json!({ "hang": {} })]);
    let with = json!({ "script": script, "stall_ms": 1_000, "kill_stuck": false });
    let answer = workshop.door().post("/api/runs", &json!({ "prompt": "play", "name": "slow-tests", "with": with }));
    assert_eq!(answer.status, 201, "{answer:?}");
    let agent = answer.id();
    let Some(terminal) = Terminal::open(&workshop.grounds, (120, 40), "a_silent_agent_is_answered_in_place") else {
        return;
    };
    terminal.see("I hang now.");
    terminal.see("? 1 needs you");
    terminal.keys(&["C-x", "a"]);
    terminal.see("One waits for you");
    let screen = terminal.see("2 Stop it");
    assert!(screen.contains("1 Wait 1 s more"), "{screen}");
    terminal.keys(&["2"]);
    terminal.see("❯ 2 Stop it");
    // An answer needs that the panel could be read: Enter is pressed until it counts.
    terminal.see_that("an answer", |screen| {
        let sent = screen.contains("Sending") || screen.contains("You answered");
        if !sent {
            terminal.keys(&["Enter"]);
        }
        sent
    });
    workshop.wait("the answer", |event| {
        event["agent"] == agent && event["type"] == "question_answered" && event["answer"] == "stop"
    });
    terminal.see("You answered: stop");
}

#[test]
fn the_plain_mode_says_each_thing_once() {
    use std::io::Write as _;
    let workshop = Workshop::open();
    named(&workshop, "weaver", &[json!({ "text": "Ready." })]);
    workshop.wait("its words", |event| event["content"] == "Ready.");
    let mut command = workshop.grounds.command(&["tui", "--plain", "weaver"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap())).map(Result::unwrap);
    let mut heard = Vec::new();
    let mut until = |text: &str| {
        for line in lines.by_ref() {
            heard.push(line.clone());
            if line.contains(text) {
                return;
            }
        }
        panic!("`{text}` did not come: {heard:?}");
    };
    until("You are with weaver");
    writeln!(input, "hello").unwrap();
    until("weaver: You said: hello");
    writeln!(input, "/nxet").unwrap();
    until("There is no /nxet. /next?");
    writeln!(input, "/exit").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "one line was a mistake");
    assert_eq!(heard.iter().filter(|line| line.contains("You said: hello")).count(), 1, "{heard:?}");
    assert!(heard.iter().all(|line| !line.contains('\u{1b}')), "{heard:?}");
}

/// An answer needs that the panel could be read: Enter is pressed until it counts.
fn enter_until(terminal: &Terminal, text: &str) {
    terminal.see_that(text, |screen| {
        let sent = screen.contains(text);
        if !sent && !screen.contains("Sending") {
            terminal.keys(&["Enter"]);
        }
        sent
    });
}

/// A request for permission is answered where it is shown: denied with a reason, then allowed.
#[test]
fn a_permission_is_answered_in_place() {
    let workshop = Workshop::open();
    let ask = |path: &str| json!({ "ask": { "name": "Write", "input": { "file_path": path, "content": "x" } } });
    let steps = [json!({ "text": "Begin." }), ask("one.txt"), ask("two.txt"), json!({ "text": "All done." })];
    let with = json!({ "script": workshop.script(&steps), "stays": true, "permissions": "ask" });
    let answer = workshop.door().post("/api/runs", &json!({ "prompt": "play", "name": "weaver", "with": with }));
    assert_eq!(answer.status, 201, "{answer:?}");
    let weaver = answer.id();
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 24), "a_permission_is_answered_in_place") else {
        return;
    };
    // In the conversation: the tool waits, and the request is the last block, with everything that it is about.
    let screen = terminal.see("? Write one.txt");
    assert!(screen.contains("waits for you"), "{screen}");
    terminal.see("▎ May it change this");
    terminal.see("asks you: change one.txt?");
    // A text is a message, and never the answer to a request.
    terminal.text("kept");
    terminal.see("It hears this when its turn ends.");
    terminal.keys(&["C-x", "a"]);
    let screen = terminal.see("write the rule");
    for words in ["One waits for you", "1 Allow once", "3 Always for weaver", "one.txt", "Your text is kept."] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    terminal.keys(&["2"]);
    terminal.text("not this one");
    terminal.see("▎❯ 2 Deny: not this one");
    enter_until(&terminal, "two.txt");
    // The next request of the same agent takes its place. Nothing is chosen in it.
    let screen = terminal.see("change this");
    assert!(!screen.contains("❯ 2"), "{screen}");
    terminal.keys(&["1"]);
    enter_until(&terminal, "You answered: allow");
    terminal.keys(&["Escape"]);
    terminal.see("All done.");
    let screen = terminal.see("denied by you: not this one");
    assert!(screen.contains("❯ kept"), "{screen}");
    workshop.wait("the denial", |event| {
        event["type"] == "permission_decided"
            && event["agent"] == weaver.as_str()
            && event.to_string().contains("not this one")
    });
}

/// Words are on the screen before they are in the log, and once when they are whole.
#[test]
fn text_is_shown_while_it_is_written() {
    let workshop = Workshop::open();
    let steps = [
        json!({ "think": "First the tests." }),
        json!({ "partial": "Nothing but the st" }),
        json!({ "partial": "ore has to cha" }),
        json!({ "sleep_ms": 600_000 }),
        json!("turn"),
        json!({ "partial_thought": "The worker sle" }),
        json!({ "think": "The worker sleeps." }),
        json!({ "partial": "It sleeps un" }),
        json!({ "text": "It sleeps until the next one." }),
    ];
    let weaver = named(&workshop, "weaver", &steps);
    let Some(terminal) = Terminal::open(&workshop.grounds, (80, 24), "text_is_shown_while_it_is_written") else {
        return;
    };
    terminal.see("Nothing but the store has to cha…");
    terminal.see("working");
    let log = workshop.door().get("/api/export").body;
    assert!(!log.contains("store has to cha"), "pieces are not in the log: {log}");
    // What was being written is lost without harm when the turn is broken off.
    terminal.keys(&["C-x", "I"]);
    let screen = terminal.see("You interrupted it.");
    assert!(!screen.contains("Nothing but the store"), "{screen}");
    terminal.text("go on");
    terminal.keys(&["Enter"]);
    let screen = terminal.see("It sleeps until the next one.");
    assert_eq!(count(&screen, "It sleeps un"), 1, "{screen}");
    workshop.wait("the whole text", |event| {
        event["agent"] == weaver
            && event["type"] == "message_added"
            && event["content"] == "It sleeps until the next one."
    });
}
