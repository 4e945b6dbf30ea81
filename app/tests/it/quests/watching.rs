//! Following a quest on the command line: what is shown, and when the view ends by itself.

use crate::support::quest::{SHORT, done, signal, step, text};
use crate::support::tmux::Terminal;
use crate::support::workshop::Workshop;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

/// A command that follows a quest.
struct Watching {
    child: Child,
    data: Lines<BufReader<ChildStdout>>,
    words: Lines<BufReader<ChildStderr>>,
}

impl Watching {
    fn start(shop: &Workshop, words: &[&str]) -> Self {
        let mut command = shop.grounds.command(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let data = BufReader::new(child.stdout.take().unwrap()).lines();
        let words = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, data, words }
    }

    /// Reads on until a line of data has this in it.
    fn find(&mut self, part: &str) -> String {
        let found = self.data.by_ref().map(Result::unwrap).find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("nothing said {part}"))
    }

    /// Waits for its end, and gives the code, what is left of the data, and all of the words that nobody has read.
    fn end(mut self) -> (Option<i32>, String, String) {
        let rest = |lines: &mut dyn Iterator<Item = std::io::Result<String>>| {
            lines.map(Result::unwrap).collect::<Vec<_>>().join("\n")
        };
        let (data, words) = (rest(&mut self.data), rest(&mut self.words));
        (self.child.wait().unwrap().code(), data, words)
    }
}

#[test]
fn a_quest_that_cannot_move_any_more_says_what_it_waits_for() {
    let shop = Workshop::with(SHORT, Vec::new());
    let silent = shop.playbook().play("a.codeweaver", &[text("bye")]);
    let quest = shop.new_quest(&silent, json!({ "steps": [step("a", &[]), step("b", &["a"])], "hold": true }));
    let retry = format!("hatchery quest retry {quest} a");
    let mut watching = Watching::start(&shop, &["quest", "run", &quest]);
    assert!(watching.find("failed").contains("without a signal"));
    let (code, rest, words) = watching.end();
    assert_eq!(code, Some(5), "{rest}{words}");
    assert!(rest.contains(&retry), "{rest}");
    assert!(words.contains("cannot go on by itself: step a has failed") && words.contains(&retry), "{words}");
    assert!(!words.contains("the quest is paused"), "{words}");

    let again = shop.grounds.run(&["quest", "watch", &quest]);
    assert_eq!(again.code, Some(5), "{again:?}");
    assert!(again.stderr.contains("without a signal") && again.stderr.contains(&retry), "{again:?}");
    let help = shop.grounds.run(&["quest", "watch", "--help"]).good();
    assert!(help.contains("5  the quest waits for you"), "{help}");
}

#[test]
fn while_one_step_moves_the_view_stays() {
    let shop = Workshop::with(SHORT, Vec::new());
    let gate = shop.gate();
    let book = shop.playbook().play("a.codeweaver", &[text("bye")]).play("b.codeweaver", &[gate.pass(), done("b")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[]), step("b", &[])], "hold": true }));
    let mut watching = Watching::start(&shop, &["quest", "run", &quest]);
    watching.find("failed");
    gate.open();
    watching.find("complete");
    let (code, rest, words) = watching.end();
    assert_eq!(code, Some(5), "{rest}{words}");
    assert_eq!(shop.status(&quest, "b"), "complete");
}

#[test]
fn a_paused_quest_says_how_it_goes_on_and_is_not_waited_for() {
    let shop = Workshop::with(SHORT, Vec::new());
    let gate = shop.gate();
    let book = shop.playbook().play("a.codeweaver", &[gate.pass(), done("a")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "hold": true }));
    let run = format!("hatchery quest run {quest}");
    let paused = shop.grounds.run(&["quest", "watch", &quest]);
    assert_eq!(paused.code, Some(5), "{paused:?}");
    assert!(paused.stderr.contains("paused") && paused.stderr.contains(&run), "{paused:?}");

    let mut watching = Watching::start(&shop, &["quest", "run", &quest]);
    watching.find("codeweaver");
    shop.tell(&quest, "pause");
    let (code, rest, words) = watching.end();
    assert_eq!(code, Some(5), "{rest}{words}");
    assert!(rest.contains("the quest is paused") && words.contains(&run), "{rest}{words}");
}

#[test]
fn what_is_asked_is_shown_with_the_command_that_answers_it_and_waited_for() {
    let shop = Workshop::with(SHORT, Vec::new());
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask, json!("turn"), done("two carts wide")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    let (question, _) = shop.asked(&quest, 1);
    let mut watching = Watching::start(&shop, &["quest", "watch", &quest]);
    let asked: Vec<String> = watching.words.by_ref().take(2).map(Result::unwrap).collect();
    assert!(asked[0].contains("How wide?"), "{asked:?}");
    assert!(asked[1].contains(&format!("hatchery ask answer {question}")), "{asked:?}");
    shop.answer(question, "Two carts.");
    let (code, told, _) = watching.end();
    assert!(code == Some(0) && told.contains("the quest is complete"), "{told}");
    assert!(told.contains(&format!("question {question} is answered: Two carts.")), "{told}");
    assert!(!told.contains("How wide?"), "it was shown already: {told}");
}

#[test]
fn what_is_asked_is_answered_by_typing_into_the_view() {
    let shop = Workshop::with(SHORT, Vec::new());
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask, json!("turn"), done("two carts wide")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    let (question, _) = shop.asked(&quest, 1);
    let test = "what_is_asked_is_answered_by_typing_into_the_view";
    let Some(terminal) = Terminal::of_command(&shop.grounds, &format!("quest watch {quest}"), test) else { return };
    terminal.see("type an answer or a message");
    terminal.text("Two carts.");
    terminal.keys(&["Enter"]);
    let answered = shop.wait("the answer", |event| event["type"] == "question_answered");
    assert_eq!(
        (answered["question"].as_u64(), &answered["answer"]),
        (Some(question), &json!("Two carts.")),
        "{answered}"
    );
    terminal.see("the quest is complete");
    terminal.see("LEFT");
}

#[test]
fn a_view_whose_daemon_is_killed_starts_another_and_the_quest_goes_on() {
    let mut shop = Workshop::with(SHORT, Vec::new());
    let gate = shop.gate();
    let book = shop.playbook().play("a.codeweaver", &[gate.pass(), done("a")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[]), step("b", &["a"])], "hold": true }));
    let mut watching = Watching::start(&shop, &["quest", "run", &quest]);
    watching.find("codeweaver");
    shop.kill_daemon();
    gate.open();
    let (code, told, words) = watching.end();
    assert!(code == Some(0) && told.contains("the quest is complete"), "{told}{words}");
    assert!(words.contains("another one is started"), "{words}");
    shop.grounds.run(&["down"]).good();
}

#[test]
fn a_view_whose_daemon_is_stopped_ends() {
    let mut shop = Workshop::with(SHORT, Vec::new());
    let gate = shop.gate();
    let book = shop.playbook().play("a.codeweaver", &[gate.pass(), done("a")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "hold": true }));
    let mut watching = Watching::start(&shop, &["quest", "run", &quest]);
    watching.find("codeweaver");
    shop.grounds.run(&["down"]).good();
    let (code, _, words) = watching.end();
    assert_eq!(code, Some(3), "{words}");
    assert!(words.contains("the daemon was stopped"), "{words}");
    gate.open();
    shop.restart();
    shop.complete(&quest);
}

#[test]
fn ctrl_c_leaves_the_quest_to_work() {
    let shop = Workshop::with(SHORT, Vec::new());
    let gate = shop.gate();
    let book = shop.playbook().play("a.codeweaver", &[gate.pass(), done("a")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "hold": true }));
    let mut watching = Watching::start(&shop, &["quest", "run", &quest]);
    watching.find("codeweaver");
    let pid = Pid::from_raw(watching.child.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let (code, _, words) = watching.end();
    assert_eq!(code, Some(130), "{words}");
    let again = format!("the quest goes on in the background; `hatchery quest watch {quest}` follows it again");
    assert!(words.contains(&again), "{words}");
    gate.open();
    shop.complete(&quest);
}
