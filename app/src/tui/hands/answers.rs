//! Answers: only to what was chosen, and only when it could be read.

use super::{NOW, at_ann, control, id, overview, posted, press, question, write};
use crate::tui::model::{Focus, Purpose};
use crate::tui::update::{Failed, Msg, Tag, update};
use crossterm::event::KeyCode;
use hatchery_core::event::QuestionEvent;
use hatchery_core::{Event, EventId, Record, Timestamp};
use serde_json::{Value, json};

pub(super) fn permission(number: u64, of: &str) -> Value {
    let mut asked = question(number, of);
    asked["about"] = json!({ "permission": { "agent": id(of), "run": 1, "attempt": 1 } });
    asked["takes"] = json!({
        "words": ["allow", "deny", "always-agent", "always-project"], "amount": false, "ward": false, "reason": true, "text": false,
    });
    asked["permission"] = json!({
        "tool": "Bash", "input": "{}", "access": { "execute": { "command": "make" } }, "folder": null, "rule": "run `make`",
    });
    asked
}

/// Long enough for a panel to have been read.
fn a_moment_later(model: &mut crate::tui::model::Model) {
    let later = Timestamp(model.now.0 + 1_000);
    update(model, Msg::Tick(later));
}

#[test]
fn a_permission_is_denied_with_a_reason_that_is_typed_in_place() {
    let mut model = at_ann();
    write(&mut model, "my text");
    update(&mut model, overview(101, vec![permission(101, "aaaa")]));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('a'));
    press(&mut model, KeyCode::Char('2'));
    write(&mut model, "not 3 times");
    a_moment_later(&mut model);
    let effects = press(&mut model, KeyCode::Enter);
    let answer = json!({ "answer": "deny: not 3 times" });
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &answer)]);
    assert_eq!(model.desk().field.whole(), "my text");
}

#[test]
fn a_permission_can_be_denied_without_a_reason() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![permission(101, "aaaa")]));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('a'));
    press(&mut model, KeyCode::Char('2'));
    a_moment_later(&mut model);
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "deny" }))]);
}

/// Another client answers while the user chooses an answer: Enter must not answer the next question.
#[test]
fn an_answer_is_never_given_to_another_question() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![permission(101, "aaaa"), permission(102, "bbbb")]));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('a'));
    press(&mut model, KeyCode::Char('1'));
    a_moment_later(&mut model);
    update(&mut model, overview(102, vec![permission(102, "bbbb")]));
    let effects = press(&mut model, KeyCode::Enter);
    assert!(posted(&effects).is_empty(), "{effects:?}");
    assert_eq!(model.notice(), Some("This was answered meanwhile. Nothing was sent."));
    // Nor when it was answered here: the next one has to be read first.
    press(&mut model, KeyCode::Char('1'));
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects).len(), 1);
    let tag = Tag::Answer { need: "q102".into(), agent: Some(id("bbbb")), words: "allow".into() };
    update(&mut model, overview(103, vec![permission(103, "aaaa")]));
    update(&mut model, Msg::Answer { tag, result: Ok(json!({ "events": [] })) });
    press(&mut model, KeyCode::Char('1'));
    assert!(posted(&press(&mut model, KeyCode::Enter)).is_empty());
}

/// What is typed to an agent that waits for a permission is a message.
/// The conversation shows the numbers, so they work where one types.
#[test]
fn a_number_alone_answers_a_permission_and_a_sentence_does_not() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![permission(101, "aaaa")]));
    a_moment_later(&mut model);
    write(&mut model, "1");
    assert!(matches!(model.desk().purpose, Some(Purpose::Answer(_))));
    write(&mut model, "0 tests fail");
    assert_eq!(model.desk().purpose, Some(Purpose::Message));
    control(&mut model, 'u');
    write(&mut model, "3");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "always-agent" }))]);
}

/// A text that was begun before the request came up is a message, whatever is pressed in it.
#[test]
fn a_text_that_was_begun_before_a_request_never_answers_it() {
    for key in [KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End, KeyCode::Backspace] {
        let mut model = at_ann();
        write(&mut model, if key == KeyCode::Backspace { "33" } else { "3" });
        update(&mut model, overview(100, vec![permission(100, "aaaa")]));
        a_moment_later(&mut model);
        press(&mut model, key);
        assert_eq!(model.desk().purpose, Some(Purpose::Message), "{key:?}");
        let effects = press(&mut model, KeyCode::Enter);
        assert_eq!(posted(&effects)[0].0, format!("/api/agents/{}/say", id("aaaa")), "{key:?}");
    }
    // The same for a text that was in the editor meanwhile, and for one from the history.
    let mut model = at_ann();
    write(&mut model, "4");
    update(&mut model, overview(100, vec![permission(100, "aaaa")]));
    update(&mut model, Msg::Edited("3\n".into()));
    a_moment_later(&mut model);
    assert_eq!(model.desk().purpose, Some(Purpose::Message));
    // A request that is there first, and could be read, is answered by its number.
    control(&mut model, 'u');
    write(&mut model, "1");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/100/answer", &json!({ "answer": "allow" }))]);
}

#[test]
fn a_request_that_has_just_come_is_not_answered() {
    let mut model = at_ann();
    a_moment_later(&mut model);
    let mut asked = permission(101, "aaaa");
    asked["asked"] = json!(model.now.0 - 100);
    update(&mut model, overview(101, vec![asked]));
    write(&mut model, "3");
    assert!(posted(&press(&mut model, KeyCode::Enter)).is_empty());
    assert_eq!(model.notice(), Some("That was too quick to have been read. Enter again sends it."));
    assert_eq!(model.desk().field.whole(), "3");
    // A line of the plain mode is gone then, and is told what does it.
    model.from_end = true;
    assert_eq!(crate::tui::plain::typed(&mut model, "3", Some(EventId(101))), None);
    assert_eq!(model.notice(), Some("That was too quick to have been read. /answer 3 answers question 101."));
}

/// Words of one's own belong to their question, and not to the panel.
#[test]
fn words_of_ones_own_stay_when_home_closes() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![permission(101, "aaaa")]));
    let open = |model: &mut crate::tui::model::Model, letter| {
        control(model, 'x');
        press(model, KeyCode::Char(letter));
    };
    open(&mut model, 'a');
    press(&mut model, KeyCode::Char('2'));
    write(&mut model, "not now");
    press(&mut model, KeyCode::Esc);
    open(&mut model, 'h');
    assert!(model.side.is_none());
    open(&mut model, 'a');
    open(&mut model, 'a');
    press(&mut model, KeyCode::Char('2'));
    a_moment_later(&mut model);
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "deny: not now" }))]);
}

/// The question was answered elsewhere first. The typed words stay with the agent that asked, so that Enter does not send them to another
/// agent.
#[test]
fn words_for_a_question_that_is_gone_stay_with_who_asked() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![permission(101, "bbbb")]));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('a'));
    press(&mut model, KeyCode::Char('2'));
    write(&mut model, "not now");
    press(&mut model, KeyCode::Esc);
    update(&mut model, overview(102, Vec::new()));
    assert!(model.own.is_empty());
    let said = "The question is no longer asked. ↑ in bob brings your words back.";
    assert_eq!(model.notice(), Some(said));
    press(&mut model, KeyCode::Esc);
    write(&mut model, "to ann");
    control(&mut model, 'c');
    press(&mut model, KeyCode::Up);
    assert_eq!(model.desk().field.whole(), "to ann");
    drop(crate::tui::act::go(&mut model, id("bbbb")));
    assert!(model.desk().field.is_empty());
    press(&mut model, KeyCode::Up);
    assert_eq!(model.desk().field.whole(), "not now");
}

/// The answer is refused after one has gone to another agent: the words go back to where they were typed.
#[test]
fn a_refused_answer_goes_back_to_who_asked() {
    for is_typed_there in [false, true] {
        let mut model = at_ann();
        update(&mut model, overview(101, vec![question(101, "aaaa")]));
        write(&mut model, "look again, please");
        let Some(crate::tui::update::Effect::Post { tag, .. }) = press(&mut model, KeyCode::Enter).into_iter().next()
        else {
            panic!("no answer is sent")
        };
        if is_typed_there {
            write(&mut model, "next");
        }
        drop(crate::tui::act::go(&mut model, id("bbbb")));
        update(&mut model, overview(102, Vec::new()));
        let refused = Failed::Refused { code: "no_question".into(), words: "x".into() };
        update(&mut model, Msg::Answer { tag, result: Err(refused) });
        assert!(model.desk().field.is_empty());
        let (place, drafted) = match is_typed_there {
            true => ("↑ in ann brings your words back", "next"),
            false => ("Your words are in your text to ann", "look again, please"),
        };
        let said = format!("It is answered already, or no longer asked. {place}.");
        assert_eq!(model.notice(), Some(said.as_str()));
        assert_eq!(model.desks[&id("aaaa")].field.whole(), drafted);
        press(&mut model, KeyCode::Up);
        drop(crate::tui::act::go(&mut model, id("aaaa")));
        control(&mut model, 'c');
        press(&mut model, KeyCode::Up);
        if is_typed_there {
            press(&mut model, KeyCode::Up);
        }
        assert_eq!(model.desk().field.whole(), "look again, please");
    }
}

/// While words are typed in Home, their question is answered elsewhere: they are for no other question, and stay in sight.
#[test]
fn words_that_are_typed_are_for_no_other_question() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![permission(101, "aaaa"), permission(102, "bbbb")]));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('a'));
    press(&mut model, KeyCode::Char('2'));
    write(&mut model, "not ");
    update(&mut model, overview(103, vec![permission(102, "bbbb")]));
    write(&mut model, "now");
    assert!(!model.own.contains_key("q102"));
    let shown = crate::tui::scenes::shown(&model);
    assert!(shown.contains("No longer asked. Your words: not now"), "{shown}");
    a_moment_later(&mut model);
    assert!(posted(&press(&mut model, KeyCode::Enter)).is_empty());
    assert_eq!(model.notice(), Some("The question is no longer asked. ↑ brings your words back."));
}

/// The only question is answered elsewhere while one types: the keys that are shown do what they say, and `↑` has the words at once.
#[test]
fn words_for_a_question_that_is_gone_come_back_at_once() {
    for leaves in [KeyCode::Enter, KeyCode::Esc] {
        let mut model = at_ann();
        update(&mut model, overview(101, vec![permission(101, "aaaa")]));
        control(&mut model, 'x');
        press(&mut model, KeyCode::Char('a'));
        let keys = |model: &crate::tui::model::Model| {
            crate::tui::scenes::shown(model).lines().last().unwrap_or_default().to_owned()
        };
        assert!(keys(&model).contains("1–4 choose · Enter answers"), "{}", keys(&model));
        press(&mut model, KeyCode::Char('2'));
        write(&mut model, "not now");
        update(&mut model, overview(102, Vec::new()));
        assert!(keys(&model).contains("Enter sets your words aside"), "{}", keys(&model));
        a_moment_later(&mut model);
        assert!(posted(&press(&mut model, leaves)).is_empty());
        assert_eq!(model.notice(), Some("The question is no longer asked. ↑ brings your words back."));
        press(&mut model, KeyCode::Char('j'));
        assert!(!keys(&model).contains("choose"), "nothing is asked: {}", keys(&model));
        press(&mut model, KeyCode::Esc);
        press(&mut model, KeyCode::Up);
        assert_eq!(model.desk().field.whole(), "not now");
    }
}

/// The same where one was too late with Enter.
#[test]
fn words_of_an_answer_that_came_too_late_come_back_at_once() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![permission(101, "aaaa")]));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('a'));
    press(&mut model, KeyCode::Char('2'));
    write(&mut model, "not now");
    a_moment_later(&mut model);
    let Some(crate::tui::update::Effect::Post { tag, .. }) = press(&mut model, KeyCode::Enter).into_iter().next()
    else {
        panic!("no answer is sent")
    };
    let refused = Failed::Refused { code: "no_question".into(), words: "x".into() };
    update(&mut model, Msg::Answer { tag, result: Err(refused) });
    let said = "It is answered already, or no longer asked. ↑ brings your words back.";
    assert_eq!(model.notice(), Some(said));
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Up);
    assert_eq!(model.desk().field.whole(), "not now");
}

#[test]
fn a_text_is_no_answer_to_a_permission() {
    let mut model = at_ann();
    update(&mut model, overview(100, vec![permission(100, "aaaa")]));
    write(&mut model, "yes");
    assert_eq!((model.focus, model.desk().purpose), (Focus::Text, Some(Purpose::Message)));
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects)[0].0, format!("/api/agents/{}/say", id("aaaa")));
    assert!(model.now >= NOW);
}

/// Below the needs, `j` goes on to who works; Enter goes there and answers nothing.
#[test]
fn below_the_needs_stands_who_works() {
    let mut model = at_ann();
    drop(crate::tui::act::go(&mut model, id("bbbb")));
    update(&mut model, overview(101, vec![question(101, "bbbb")]));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('h'));
    model.focus = Focus::Side;
    press(&mut model, KeyCode::Char('j'));
    press(&mut model, KeyCode::Char('1'));
    a_moment_later(&mut model);
    let effects = press(&mut model, KeyCode::Enter);
    assert!(posted(&effects).is_empty());
    assert_eq!(model.current, Some(id("aaaa")));
    // The panel had taken the place of the conversation.
    assert_eq!((model.focus, model.side.is_none()), (Focus::Text, true));
}

/// The conversation shows numbers for the answers of a question that takes words of one's own, too.
#[test]
fn a_number_alone_chooses_an_answer_where_words_are_taken_too() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![question(101, "aaaa")]));
    write(&mut model, "2");
    assert_eq!(crate::tui::words::enter_does(&model), "Enter answers #101: Stop it.");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "stop" }))]);
    // A sentence that begins with a number is a sentence.
    write(&mut model, "2 of them fail");
    assert_eq!(crate::tui::words::enter_does(&model), "Enter answers #101.");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "2 of them fail" }))]);
    // The number of one's own words asks for them.
    write(&mut model, "3");
    assert!(posted(&press(&mut model, KeyCode::Enter)).is_empty());
    assert_eq!(model.notice(), Some("Type your answer. Enter sends it."));
    assert!(model.desk().field.is_empty());
}

/// What an agent offers has a number as well, before one's own words.
#[test]
fn a_number_chooses_an_answer_that_the_agent_offers() {
    let mut model = at_ann();
    let mut asked = question(101, "aaaa");
    asked["about"] = json!({ "step": { "quest": id("qqqq"), "trouble": "input" } });
    asked["takes"] =
        json!({ "words": [], "amount": false, "ward": false, "text": true, "choices": ["Keep them", "Drop them"] });
    update(&mut model, overview(101, vec![asked]));
    write(&mut model, "2");
    assert_eq!(crate::tui::words::enter_does(&model), "Enter answers #101: Drop them.");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "Drop them" }))]);
}

/// The same while one reads, with the question chosen.
#[test]
fn a_number_on_a_question_that_is_chosen_chooses_an_answer() {
    let mut model = at_ann();
    let about = serde_json::from_value(question(101, "aaaa")["about"].clone()).unwrap();
    let what = QuestionEvent::Asked { about, text: "Is it well?".into() };
    let asked = Record { id: EventId(101), ts: NOW, session: None, event: Event::Question { agent: id("aaaa"), what } };
    update(&mut model, Msg::Events(vec![asked]));
    update(&mut model, overview(101, vec![question(101, "aaaa")]));
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('G'));
    assert_eq!((model.focus, model.desk().chosen.map(|key| key.0)), (Focus::Browse, Some(EventId(101))));
    press(&mut model, KeyCode::Char('1'));
    assert_eq!((model.focus, model.current), (Focus::Text, Some(id("aaaa"))));
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "wait" }))]);
    // What is being typed stays: the answer is chosen in Home.
    write(&mut model, "later");
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('G'));
    press(&mut model, KeyCode::Char('2'));
    a_moment_later(&mut model);
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "stop" }))]);
    assert_eq!(model.desk().field.whole(), "later");
}

/// An amount and the number of an answer look the same.
#[test]
fn a_number_that_may_be_an_amount_is_not_sent() {
    let mut model = at_ann();
    let mut asked = question(101, "aaaa");
    asked["about"] = json!({ "budget": { "of": id("aaaa") } });
    asked["takes"] = json!({ "words": ["stop"], "amount": true, "ward": false, "text": false });
    update(&mut model, overview(101, vec![asked]));
    write(&mut model, "2");
    assert!(posted(&press(&mut model, KeyCode::Enter)).is_empty());
    assert_eq!(model.notice(), Some("Is 2 an amount, or the answer Stop it? $2 is an amount; ^X a chooses an answer."));
    assert_eq!(model.desk().field.whole(), "2");
    control(&mut model, 'u');
    write(&mut model, "5");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "5" }))]);
}

/// What was typed is in the field again when it did not arrive.
#[test]
fn an_answer_that_was_not_taken_is_given_back() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![question(101, "aaaa")]));
    write(&mut model, "look again, please");
    press(&mut model, KeyCode::Enter);
    assert!(model.desk().field.is_empty());
    let tag = Tag::Answer { need: "q101".into(), agent: Some(id("aaaa")), words: "look again, please".into() };
    update(&mut model, Msg::Answer { tag, result: Err(Failed::Away { sent: false }) });
    assert_eq!(model.desk().field.whole(), "look again, please");
}

/// `/answer` takes the number of an answer and the words that belong to it.
#[test]
fn a_number_and_a_reason_deny() {
    for (typed, sent) in [("2 too slow", "deny: too slow"), ("2", "deny"), ("1", "allow"), ("1 really", "1 really")] {
        let mut model = at_ann();
        update(&mut model, overview(101, vec![permission(101, "aaaa")]));
        write(&mut model, &format!("/answer {typed}"));
        let effects = press(&mut model, KeyCode::Enter);
        assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": sent }))], "{typed}");
    }
    // A question that takes any words gets them as they are.
    let mut model = at_ann();
    update(&mut model, overview(101, vec![question(101, "aaaa")]));
    write(&mut model, "/answer 2 of them fail");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "2 of them fail" }))]);
}
