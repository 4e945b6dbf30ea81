//! The plain mode: the same project, told in lines.

use super::project::{NOW, parcel_api};
use super::talk::{crash, inherit, last_tool, message, result, table_begin, typed, with_talk};
use super::{at, attempt, id};
use crate::tui::model::Model;
use crate::tui::plain::{self, Spoken};
use crate::tui::update::{Effect, Msg, update};
use crate::tui::window::WindowPart;
use hatchery_core::event::{MailEvent, RunEvent};
use hatchery_core::output::Output;
use hatchery_core::{Address, Event, EventId, MessageKind, Record, Timestamp};
use serde_json::json;

/// A session: what was told, and what was typed behind its prompt.
struct PlainSession {
    model: Model,
    spoken: Spoken,
    out: Vec<String>,
    /// What the line that is being typed can answer.
    asked: Option<EventId>,
}

impl PlainSession {
    fn told(&mut self) {
        let lines = self.spoken.tell(&mut self.model);
        self.out.extend(lines);
    }

    /// Types a line, and gives what it wants to be done.
    fn types(&mut self, line: &str) -> Vec<Effect> {
        self.out.push(format!("{}{line}", plain::prompt(&self.model)));
        let effects = plain::typed(&mut self.model, line, self.asked).unwrap_or_default();
        self.asked = plain::asked_in_front(&self.model);
        self.told();
        effects
    }

    fn comes(&mut self, event: Record) {
        update(&mut self.model, Msg::Events(vec![event]));
        self.told();
    }
}

#[test]
fn plain_mode() {
    let mut model = parcel_api((80, 24));
    let mut events = table_begin("x");
    // Its tests still run.
    let tests = events.pop().unwrap();
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31", false);
    typed(&mut model, "Leave the tests of the old worker alone");
    model.roster.questions[0].context = Some("The table has room for both. I would keep them.".into());
    model.upto = EventId(46_420);
    let mut session =
        PlainSession { model, spoken: Spoken::default(), out: vec!["$ hatchery tui --plain".to_owned()], asked: None };
    session.told();
    session.comes(tests);
    session.comes(Record { ts: Timestamp(NOW.0 - 48_000), ..last_tool() });
    session.types("/next");
    let effects = session.types("/answer 2");
    let Some(Effect::Post { tag, path, body }) = effects.into_iter().next() else { panic!("no answer is sent") };
    let words = "Keep it, and list it on the admin page";
    assert_eq!((path.as_str(), body), ("/api/questions/47902/answer", json!({ "answer": words })));
    session.model.roster.questions.remove(0);
    update(&mut session.model, Msg::Answer { tag, result: Ok(json!({ "events": [{ "id": 48_214 }] })) });
    session.told();
    session.types("/go weaver-table");
    session.comes(result(48_214, 48_210, NOW, "212 passed", false));
    let text = "The suite passes. What is left is the worker itself.";
    session.comes(message(48_215, at("14:06"), "k3Qd", MessageKind::Assistant, text));
    session.out.push(plain::prompt(&session.model));
    assert_eq!(session.model.current, Some(id("k3Qd")));
    screen!(text "16-screen-reader", session.out.join("\n"));
}

/// Panels and lists are told as well: a command that shows nothing would be of no use.
#[test]
fn what_a_command_shows_is_told() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    session.model.roster.questions.push(super::wants_psql());
    session.types("/agents");
    for told in ["slow-tests: silent for 13 min. It needs you.", "weaver-table: asks you: run psql? It needs you."] {
        assert!(session.out.iter().any(|line| line == told), "{told}: {:?}", session.out);
    }
    let effects = session.types("/check-mail");
    let Some(Effect::Get { tag, .. }) = effects.into_iter().next() else { panic!("the mail is not asked for") };
    update(&mut session.model, Msg::Answer { tag, result: Ok(json!({ "mail": [], "before": null, "head": 1 })) });
    session.told();
    assert_eq!(session.out.last().map(String::as_str), Some("No mail. Agents write to `human`."));
    assert!(session.out.iter().all(|line| !line.contains('❯') && !line.contains('│')), "{:?}", session.out);
}

/// What is only shown here is told as well, row by row.
#[test]
fn the_list_of_quests_is_told() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    session.types("/quest list");
    let quests = session.model.roster.quests.len();
    assert_eq!(session.out.len(), 1 + quests, "{:?}", session.out);
    assert!(session.out[1].contains("1 of 8 steps"), "{:?}", session.out);
    // It is told once, and the next one is told again.
    session.told();
    assert_eq!(session.out.len(), 1 + quests, "{:?}", session.out);
    session.types("/quest list");
    assert_eq!(session.out.len(), 2 * (1 + quests), "{:?}", session.out);
}

/// A question about a kill is told once, whatever else is told meanwhile, and a line that does not decide it is a line like every other.
#[test]
fn a_kill_is_asked_about_once() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    for effect in session.types("/kill weaver") {
        let Effect::Get { tag, .. } = effect else { panic!("{effect:?}") };
        let preview = json!({ "head": 1, "killed": [id("9fA2"), id("k3Qd")], "moved": [], "stopped": [], "withdrawn": [], "cancelled": [] });
        update(&mut session.model, Msg::Answer { tag, result: Ok(preview) });
        session.told();
    }
    session.model.say("something else");
    session.told();
    session.told();
    let asked = "Kill weaver? 1: keep it. 2: kill it alone. 3: kill it with all below, 2 in all.";
    assert_eq!(session.out[1..], [asked, "something else"]);
    let effects = session.types("/check-mail");
    assert!(matches!(effects.as_slice(), [Effect::Get { .. }]), "{effects:?}");
    assert!(session.out.iter().any(|line| line == "weaver is kept."), "{:?}", session.out);
}

/// Who needs you is told on request.
#[test]
fn home_is_told() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    session.types("/home");
    assert!(
        session.out.iter().any(|line| line.starts_with("codeweaver-worker needs you. Question 47902:")),
        "{:?}",
        session.out
    );
}

/// Code and lists keep their rows, and a question is told once.
#[test]
fn rows_of_code_and_lists_are_rows() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    let text =
        "Two **things**\nare left:\n\n- the worker\n- the tests\n\n```rust\nlet x = 1;\n\nlet y = 2;\n```\nDone.";
    session.comes(message(48_215, at("14:06"), "k3Qd", MessageKind::Assistant, text));
    let told = [
        "Two things are left:",
        "- the worker",
        "- the tests",
        "Code, rust:",
        "let x = 1;",
        "let y = 2;",
        "End of code.",
        "Done.",
    ];
    assert_eq!(session.out, told.map(|row| format!("weaver-table: {row}")));
}

/// Of a long conversation the end is told, not all that was ever said.
#[test]
fn of_a_conversation_that_is_opened_the_end_is_told() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    session.told();
    drop(crate::tui::act::go(&mut session.model, id("k3Qd")));
    session.told();
    session.out.clear();
    let records = (1..=60)
        .map(|number| message(number, at("13:00"), "k3Qd", MessageKind::Assistant, &format!("message {number}")))
        .collect();
    let result = Ok(super::talk::window(records, EventId(0)));
    update(&mut session.model, Msg::Window { agent: id("k3Qd"), part: WindowPart::End { before: None }, result });
    session.told();
    assert_eq!(session.out, ["weaver-table: message 59", "weaver-table: message 60"]);
}

/// A line may have been begun before the question came up: what Enter does must not change under it.
#[test]
fn a_line_answers_only_a_question_that_was_told_before_it() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    drop(crate::tui::act::go(&mut session.model, id("k3Qd")));
    session.asked = plain::asked_in_front(&session.model);
    assert_eq!(session.asked, None);
    let asked = &mut session.model.roster.questions[0];
    (asked.id, asked.agent) = (EventId(48_300), id("k3Qd"));
    session.told();
    let posted = |effects: Vec<Effect>| match effects.into_iter().next() {
        Some(Effect::Post { path, body, .. }) => (path, body),
        other => panic!("{other:?}"),
    };
    // The choices are numbered, so a number is hardly a message.
    assert_eq!(session.types("2").len(), 0);
    let said = "Nothing was sent. /answer 2 answers question 48300.";
    assert!(session.out.iter().any(|line| line == said), "{:?}", session.out);
    session.asked = None;
    let (path, body) = posted(session.types("Leave the old tests alone"));
    assert_eq!((path, &body["text"]), (format!("/api/agents/{}/say", id("k3Qd")), &json!("Leave the old tests alone")));
    let said = "This was said as a message. /answer and your words answer question 48300.";
    assert!(session.out.iter().any(|line| line == said), "{:?}", session.out);
    let (path, body) = posted(session.types("Keep it"));
    assert_eq!((path.as_str(), &body["answer"]), ("/api/questions/48300/answer", &json!("Keep it")));
}

/// A draft from the screen stays, whatever is said in lines.
#[test]
fn a_draft_stays_while_lines_are_said() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    drop(crate::tui::act::go(&mut session.model, id("k3Qd")));
    typed(&mut session.model, "half a thought");
    assert_eq!(session.types("hello").len(), 1);
    assert_eq!(session.model.desk().field.whole(), "half a thought");
}

/// What the terminal has shown while it was typed is not told again; what comes from elsewhere is.
#[test]
fn what_was_typed_is_not_told_again() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    drop(crate::tui::act::go(&mut session.model, id("k3Qd")));
    session.told();
    session.spoken.was_typed("//hello");
    session.out.clear();
    session.comes(message(48_215, at("14:06"), "k3Qd", MessageKind::User, "/hello"));
    session.comes(message(48_216, at("14:06"), "k3Qd", MessageKind::User, "/hello"));
    assert_eq!(session.out, ["You: /hello"]);
}

#[test]
fn help_tells_what_was_asked_for() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    session.types("/help fork");
    let told: Vec<&str> = session.out[1..].iter().map(|line| line.split(' ').next().unwrap()).collect();
    // One of the settings follows forks.
    assert_eq!(told, ["/fork", "/set"]);
}

/// What happens to an agent is told, with names and without glyphs.
#[test]
fn what_happens_to_an_agent_is_told() {
    let mut session =
        PlainSession { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new(), asked: None };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    let begin = session.model.upto.0;
    let (from, to) = (Address::Agent(id("Zr81")), Address::Agent(id("k3Qd")));
    let output = Output::Compacted { trigger: None, tokens_before: Some(150_000) };
    let events = [
        Event::Mail(MailEvent::Sent { from, to, body: "Done.".into() }),
        Event::Run { of: attempt("k3Qd"), what: RunEvent::OutputNoted { output } },
        crash().event,
    ];
    for (number, event) in (begin + 1..).zip(events) {
        session.comes(Record { id: EventId(number), ts: at("14:06"), session: None, event });
    }
    let told = [
        "weaver-table: Mail from weaver-redis: Done.",
        "weaver-table: its context was compacted by itself at 14:06, from 150k tokens, all of it stays here.",
        "weaver-table: Its run crashed: ended in the middle of a turn (SIGKILL). It is resumed, attempt 2.",
    ];
    assert_eq!(session.out, told);
}
