//! What commands and panels show is true, and in sentences.

use super::{NOW, at_ann, control, id, press, seen, usage, write};
use crate::report::{Code, Report};
use crate::tui::conversation::BlockKind;
use crate::tui::model::Model;
use crate::tui::panel::SheetKind;
use crate::tui::update::{Effect, Msg, update};
use crossterm::event::KeyCode;
use serde_json::{Value, json};

/// Carries a command out, with this answer of the daemon.
fn answered(model: &mut Model, command: &str, answer: Value) {
    write(model, command);
    let effects = press(model, KeyCode::Enter);
    let tag = effects.into_iter().find_map(|effect| match effect {
        Effect::Post { tag, .. } | Effect::Get { tag, .. } => Some(tag),
        _ => None,
    });
    update(model, Msg::Answer { tag: tag.expect("a request"), result: Ok(answer) });
}

/// The answer that stands last in the conversation, only here.
fn shown_here(model: &Model) -> String {
    match &model.talk().unwrap().blocks().last().unwrap().kind {
        BlockKind::Here { text } => text.clone(),
        other => panic!("{other:?}"),
    }
}

fn screen(model: &Model) -> String {
    crate::tui::scenes::shown(model)
}

fn mail(body: &str) -> Value {
    json!({ "id": 90, "from": id("bbbb"), "to": "human", "body": body, "sent": NOW.0 })
}

#[test]
fn waiting_for_mail_ends_with_a_sentence() {
    let mut model = at_ann();
    answered(&mut model, "/wait", json!({ "mail": mail("The schema\nis done."), "agents": [] }));
    assert_eq!(shown_here(&model), "Mail from bob:\n\nThe schema\nis done.");
    answered(&mut model, "/wait", json!({ "mail": null, "agents": [] }));
    assert_eq!(shown_here(&model), "No mail came in 25 s. /wait waits again.");
    let awaited = |name: &str, state: &str, mail: Value| json!({ "agent": id(name), "id": id(name), "state": state, "mail": mail });
    let agents = [awaited("bbbb", "mail", mail("Done.")), awaited("aaaa", "waiting", Value::Null)];
    answered(&mut model, "/wait bob ann", json!({ "mail": null, "agents": agents }));
    assert_eq!(shown_here(&model), "Mail from bob:\n\nDone.\n\nNo mail of ann came in 25 s. /wait waits again.");
    answered(&mut model, "/wait bob", json!({ "mail": null, "agents": [awaited("bbbb", "dead", Value::Null)] }));
    assert_eq!(shown_here(&model), "bob is dead, and has sent no mail.");
}

#[test]
fn conversations_to_adopt_are_listed_and_one_is_adopted() {
    let mut model = at_ann();
    let session = |name: &str, agent: Value, pid: Value| {
        json!({
            "session": name, "harness": "claude", "folder": null, "lastActive": NOW.0 - 120_000, "messages": 14,
            "firstPrompt": "Fix the *docs*", "agent": agent, "name": null, "pid": pid,
        })
    };
    let list = |sessions: Vec<Value>| json!({ "head": 1, "sessions": sessions, "lookedIn": "/x/.claude", "passedOver": 0, "leftOut": 0 });
    answered(&mut model, "/adopt", list(Vec::new()));
    assert_eq!(shown_here(&model), "There are no conversations of this project in /x/.claude.");
    let sessions =
        vec![session("b2087215-aaaa", json!(null), json!(4711)), session("c3", json!(id("bbbb")), json!(null))];
    answered(&mut model, "/adopt", list(sessions));
    assert_eq!(
        shown_here(&model),
        "/adopt ID continues one of these:\n\n\
         - b2087215: claude, 14 messages, 2 min ago. `Fix the *docs*` Process 4711 has it open: end it first.\n\
         - c3: claude, 14 messages, 2 min ago. `Fix the *docs*` It is bob already."
    );
    write(&mut model, "/adopt b208 --name docs");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(super::posted(&effects), [("/api/adopt", &json!({ "session": "b208", "name": "docs" }))]);
}

/// In a shared folder, it is not known which agent has changed what.
#[test]
fn changes_in_a_shared_folder_are_not_said_to_be_the_agents() {
    let mut model = at_ann();
    let changes = |shared: bool| {
        let file = json!({ "path": "README.md", "how": "modified", "added": 3, "removed": 1, "binary": false });
        json!({ "base": "abc", "files": [file], "truncated": false, "added": 3, "removed": 1, "shared": shared })
    };
    answered(&mut model, "/diff", changes(false));
    assert!(screen(&model).contains("ann: 1 file, +3 −1"), "{}", screen(&model));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('z'));
    answered(&mut model, "/diff", changes(true));
    let shown = screen(&model);
    assert!(shown.contains("Not committed in the shared folder: 1 file, +3 −1"), "{shown}");
    assert!(shown.contains("ann has no folder of its own."), "{shown}");
    assert!(shown.contains("Others and you change the same files."), "{shown}");
    assert!(!shown.contains("ann: 1 file"), "{shown}");
}

/// What is done is counted, however few are listed.
#[test]
fn all_that_is_done_today_is_counted() {
    let mut model = at_ann();
    let done = |number: u32, agents: &mut Vec<Value>| {
        let mut one = seen(&format!("d{number:03}"), &format!("done-{number}"), Some("root"), "resting");
        one["run"] = json!({
            "agent": one["agent"]["id"], "name": null, "run": 1, "attempts": 1, "harness": "scripted", "phase": "ended", "pid": null,
            "cause": "completed", "detail": null, "until": null, "requested": NOW.0 - 9_000, "lastOutput": NOW.0 - 8_000, "turns": 1,
            "spent": usage(),
        });
        one["agent"]["lastActive"] = json!(NOW.0 - 8_000);
        agents.push(one);
    };
    let mut agents = vec![seen("root", "root", None, "resting"), seen("aaaa", "ann", Some("root"), "working")];
    (0..12).for_each(|number| done(number, &mut agents));
    let mut overview = json!({
        "head": 100, "now": NOW.0, "project": "/x/parcel-api", "version": "1", "trouble": null, "agents": agents,
        "agentCount": 14, "quests": [], "questCount": 0, "questions": [], "budgets": [], "today": usage(), "mail": [],
    });
    let came = |overview: &Value| Msg::Overview(Box::new(serde_json::from_value(overview.clone()).unwrap()));
    update(&mut model, came(&overview));
    write(&mut model, "/home");
    press(&mut model, KeyCode::Enter);
    assert!(screen(&model).contains("Done  12 today"), "{}", screen(&model));
    // The daemon does not list all, and even the oldest of those that it lists was at work today.
    overview["agentCount"] = json!(500);
    update(&mut model, came(&overview));
    assert!(screen(&model).contains("Done  12 or more today"), "{}", screen(&model));
}

/// Tab does what the sentence about a mistake says, also with words after the command.
#[test]
fn tab_takes_the_nearest_command() {
    let mut model = at_ann();
    write(&mut model, "/quets list");
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.notice(), Some("There is no /quets. /quest? Tab takes it."));
    press(&mut model, KeyCode::Tab);
    assert_eq!(model.desk().field.whole(), "/quest list");
    press(&mut model, KeyCode::Enter);
    assert_eq!(shown_here(&model), "There is no quest. /quest new WHAT YOU WANT begins one.");
}

/// In an empty project there is no conversation to show something in.
#[test]
fn without_agents_all_words_are_seen() {
    let mut model = Model::new((80, 24), NOW, crate::tui::look::Look::PLAIN);
    // A daemon that does not answer from the beginning: whether there are agents is not known.
    update(&mut model, Msg::Away { since: NOW, again: NOW });
    assert!(screen(&model).contains("Looking for the daemon …"), "{}", screen(&model));
    assert_eq!(crate::tui::words::enter_does(&model), "The daemon is away. Enter tries it all the same.");
    model.missing = Some("claude".to_owned());
    let overview = json!({
        "head": 1, "now": NOW.0, "project": "/x/parcel-api", "version": "1", "trouble": null, "agents": [],
        "agentCount": 0, "quests": [], "questCount": 0, "questions": [], "budgets": [], "today": usage(), "mail": [],
    });
    update(&mut model, Msg::Overview(Box::new(serde_json::from_value(overview).unwrap())));
    let shown = screen(&model);
    assert!(shown.contains("No agents yet") && shown.contains("scripted …"), "{shown}");
    let list = json!({ "head": 1, "sessions": [], "lookedIn": "/x/.claude", "passedOver": 0, "leftOut": 0 });
    answered(&mut model, "/adopt", list);
    assert!(screen(&model).contains("There are no conversations of this project in /x/.claude."), "{}", screen(&model));
}

/// There is one button for all seats, and only when the daemon says so. The seat of the lead has none.
#[test]
fn the_seats_offer_the_button_that_there_is() {
    let mut model = at_ann();
    model.size = (120, 40);
    let seat = |at: u8, name: Option<&str>, status: &str| {
        json!({
            "gridPosition": at, "status": status, "waking": false, "agent": id("bbbb"), "name": name, "color": null, "colorName": null,
            "gender": null, "faceVariant": null, "hasSoul": true, "createdAt": null, "lastAliveAt": null, "lastSessionId": null, "until": null,
        })
    };
    let list = |button: &str, seats: Vec<Value>| json!({ "head": 1, "sessionId": null, "mode": null, "button": button, "lead": null, "leadAlive": false, "seats": seats });
    let proposed = |model: &mut Model| {
        press(model, KeyCode::Home);
        press(model, KeyCode::Enter);
        let words = match &model.overlay {
            Some(crate::tui::overlay::Overlay::Propose(field)) => Some(field.whole()),
            _ => None,
        };
        model.overlay = None;
        words
    };
    answered(&mut model, "/seats", list("summon", Vec::new()));
    let shown = screen(&model);
    assert_eq!((shown.matches("SUMMON").count(), shown.matches("WAKE").count()), (1, 0), "{shown}");
    assert!(shown.contains("4  lead                  not started"), "{shown}");
    assert_eq!(proposed(&mut model).as_deref(), Some("/summon"));
    let sleepers = vec![seat(0, Some("Cael"), "sleeping"), seat(3, Some("Lyra"), "alive"), seat(7, None, "sleeping")];
    let tag = || crate::tui::update::Tag::Sheet(SheetKind::Seats, Some(id("aaaa")));
    update(&mut model, Msg::Answer { tag: tag(), result: Ok(list("wake", sleepers)) });
    let shown = screen(&model);
    assert_eq!((shown.matches("SUMMON").count(), shown.matches("WAKE").count()), (0, 1), "{shown}");
    assert_eq!(proposed(&mut model).as_deref(), Some("/wake 0 7"));
    for button in ["waking", "none"] {
        let alive = vec![seat(0, Some("Cael"), "alive"), seat(1, None, "expired")];
        update(&mut model, Msg::Answer { tag: tag(), result: Ok(list(button, alive)) });
        let shown = screen(&model);
        assert_eq!((shown.matches("SUMMON").count(), shown.matches("WAKE").count()), (0, 0), "{shown}");
    }
}

/// What a key has said is over with the next key, and what an agent has said with another panel.
#[test]
fn what_was_said_does_not_outlive_its_place() {
    let mut model = at_ann();
    write(&mut model, "half a thought");
    control(&mut model, 'c');
    assert_eq!(model.notice(), Some("Set aside. ↑ brings it back."));
    press(&mut model, KeyCode::Char('x'));
    assert_eq!(model.notice(), None);
    model.say("bob asks you · ^X e");
    press(&mut model, KeyCode::Char('y'));
    assert_eq!(model.notice(), Some("bob asks you · ^X e"), "it came by itself, and nobody has read it yet");
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('w'));
    assert_eq!(model.notice(), None);
    // There is no quest: no other panel stands there in its place.
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('q'));
    assert!(model.side.is_none() && model.notice().is_some_and(|notice| notice.starts_with("There is no quest")));
    assert_eq!(model.desk().field.whole(), "xy");
}

/// What has no room on the bottom line stands above the separator, whole.
#[test]
fn a_long_notice_is_shown_whole() {
    let mut model = at_ann();
    let long = "The quest is paused: its ward is broken, so no step could be complete (sh: 1: cargo: not found). /quest ward COMMAND changes it.";
    model.say(long);
    let shown = screen(&model);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&shown).contains(long), "{shown}");
    assert!(shown.lines().last().unwrap().contains("It hears this when its turn ends."), "{shown}");
}

/// Two lists are asked for, one after the other: each answer is shown in its own list only.
#[test]
fn an_answer_fills_only_the_list_that_asked_for_it() {
    let mut model = at_ann();
    let mut asked = |letter| {
        control(&mut model, 'x');
        match press(&mut model, KeyCode::Char(letter)).into_iter().next() {
            Some(Effect::Get { tag, .. }) => tag,
            other => panic!("{other:?}"),
        }
    };
    let (why, changes) = (asked('w'), asked('d'));
    let of_why =
        json!({ "head": 1, "agent": id("aaaa"), "name": "ann", "state": "working", "evidence": [], "now": NOW.0 });
    update(&mut model, Msg::Answer { tag: why, result: Ok(of_why) });
    assert!(screen(&model).contains("Reading …"), "{}", screen(&model));
    let of_changes = json!({ "base": "x", "files": [], "truncated": false, "added": 0, "removed": 0, "shared": false });
    update(&mut model, Msg::Answer { tag: changes, result: Ok(of_changes) });
    assert!(screen(&model).contains("ann has changed nothing"), "{}", screen(&model));
}

/// The text of a command that leads to another agent does not stay behind, and a mistake stays to be corrected.
#[test]
fn a_command_leaves_nothing_behind() {
    let mut model = at_ann();
    update(&mut model, super::overview(101, vec![super::question(101, "bbbb")]));
    write(&mut model, "/next");
    press(&mut model, KeyCode::Enter);
    assert_eq!((model.current, model.notice()), (Some(id("bbbb")), None));
    assert!(model.desks[&id("aaaa")].field.is_empty());
    write(&mut model, "/attach c.txt");
    press(&mut model, KeyCode::Enter);
    assert!(model.desk().field.is_empty());
    let why = "There is no file c.txt in the project.".to_owned();
    let attached = crate::tui::update::Attached::Failed { why, command: "/attach c.txt".to_owned() };
    update(&mut model, Msg::Attached(attached));
    assert_eq!(model.desk().field.whole(), "/attach c.txt");
    assert_eq!(model.notice(), Some("There is no file c.txt in the project."));
    control(&mut model, 'c');
    write(&mut model, "/budget");
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.notice(), Some("/budget needs an amount in dollars, or none: /budget 5"));
    assert_eq!(model.desk().field.whole(), "/budget");
}

#[test]
fn a_run_takes_the_flags_of_the_command_line() {
    let mut model = at_ann();
    write(&mut model, "/run --stay --worktree --budget 5 --name kid try it");
    let effects = press(&mut model, KeyCode::Enter);
    let Some(Effect::Post { body, .. }) = effects.first() else { panic!("{effects:?}") };
    assert_eq!((&body["prompt"], &body["name"]), (&json!("try it"), &json!("kid")));
    let flags = [&body["with"]["stays"], &body["worktree"], &body["budget"]];
    assert_eq!(flags, [&json!(true), &json!(true), &json!("5")]);
}

/// What was said about one agent does not stand below another one.
#[test]
fn what_was_said_goes_with_the_agent() {
    let mut model = at_ann();
    model.say("ann is interrupted.");
    drop(crate::tui::act::go(&mut model, id("bbbb")));
    assert_eq!(model.notice(), None);
    assert!(model.notices.iter().any(|(_, said)| said == "ann is interrupted."), "the log still has it");
}

/// Who has something from two others shows what each of them said.
#[test]
fn a_fork_of_a_fork_has_something_from_both() {
    use crate::tui::window::Ancestor;
    use hatchery_core::{EventId, MessageKind};
    let mut model = at_ann();
    drop(crate::tui::act::go(&mut model, id("bbbb")));
    update(&mut model, super::all("bbbb", Vec::new()));
    let said = |number, of: &str, text: &str| super::said(number, of, MessageKind::Assistant, text);
    let ancestor = |of: &str, upto: u64, records| Ancestor { agent: id(of), upto: EventId(upto), forked: NOW, records };
    let ancestors = vec![
        ancestor("root", 3, vec![said(3, "root", "from the first one")]),
        ancestor("aaaa", 5, vec![said(5, "aaaa", "from the second one")]),
    ];
    update(&mut model, Msg::Inherited { agent: id("bbbb"), from: id("aaaa"), forked: NOW, count: Some(2), ancestors });
    model.desk_mut().inherited_open = Some(true);
    let shown = screen(&model);
    let at = |words: &str| shown.find(words).unwrap_or_else(|| panic!("no {words}: {shown}"));
    assert!(at("2 messages inherited from ann") < at("╎ root"));
    assert!(at("╎ root") < at("from the first one"));
    assert!(at("from the first one") < at("ann was forked from root"));
    assert!(at("ann was forked from root") < at("╎ ann"));
    assert!(at("╎ ann") < at("from the second one"));
    assert!(at("from the second one") < at("forked from ann at"));
}

/// What holds for the next key only is not said after it.
#[test]
fn the_word_about_leaving_goes_with_the_next_key() {
    for is_pasted in [false, true] {
        let mut model = at_ann();
        control(&mut model, 'c');
        assert_eq!(model.notice(), Some("Ctrl-C again leaves. Agents go on."));
        match is_pasted {
            true => drop(update(&mut model, Msg::Paste("some words".into()))),
            false => write(&mut model, "s"),
        }
        assert_eq!(model.notice(), None);
        control(&mut model, 'c');
        assert!(!model.quit && model.desk().field.is_empty());
    }
}

/// The log goes on with what is about others. What arrives while one is there is not new since one was away.
#[test]
fn nothing_is_new_where_nothing_was_missed() {
    use crate::tui::window::{Window, WindowPart};
    use hatchery_core::{EventId, MessageKind};
    for missed in [false, true] {
        let mut model = crate::tui::model::Model::new((80, 24), NOW, crate::tui::look::Look::PLAIN);
        let desk = model.desks.entry(id("aaaa")).or_default();
        (desk.seen, desk.left) = (EventId(2), Some(NOW));
        update(&mut model, super::overview(100, Vec::new()));
        drop(crate::tui::act::go(&mut model, id("aaaa")));
        let said = |number| super::said(number, "aaaa", MessageKind::Assistant, "words");
        let records = (1..=if missed { 3 } else { 2 }).map(said).collect();
        let window = Window { records, from: EventId::START, more: false, to: EventId(100), later: false };
        update(
            &mut model,
            Msg::Window { agent: id("aaaa"), part: WindowPart::End { before: None }, result: Ok(window) },
        );
        update(&mut model, Msg::Events(vec![said(101)]));
        assert_eq!(screen(&model).contains("new since"), missed, "{}", screen(&model));
    }
}

/// What was said for a moment on the bottom line is read whole in the log.
#[test]
fn what_was_said_is_read_whole_in_the_log() {
    let mut model = at_ann();
    let long = format!("the daemon refuses it, {}because of the end", "and says why at length ".repeat(10));
    model.say(long.clone());
    control(&mut model, 'x');
    let Some(Effect::Get { tag, .. }) = press(&mut model, KeyCode::Char('l')).into_iter().next() else {
        panic!("the log is not asked for")
    };
    let event = json!({ "id": 99, "ts": NOW.0 - 1_000, "type": "message_added", "agent": id("aaaa") });
    update(&mut model, Msg::Answer { tag, result: Ok(json!({ "events": [event] })) });
    press(&mut model, KeyCode::Char('G'));
    press(&mut model, KeyCode::Enter);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&screen(&model)).contains(&words(&long)), "{}", screen(&model));
}

#[test]
fn trouble_of_the_store_is_shown_whole() {
    let mut model = at_ann();
    let short = "the disk is full: nothing new is taken on";
    update(&mut model, Msg::Trouble(Some(short.into())));
    assert_eq!(screen(&model).matches("disk").count(), 1, "{}", screen(&model));
    let long = "the log cannot be written: the database at postgres://127.0.0.1/hatchery does not answer (connection refused); it is tried again";
    update(&mut model, Msg::Trouble(Some(long.into())));
    let words = screen(&model).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(long), "{}", screen(&model));
}

/// A step that has failed needs you as a question does: the bell and the bottom line tell it once. What had failed before is in Home.
#[test]
fn a_step_that_fails_is_told_once() {
    let project = crate::tui::scenes::project::parcel_api((80, 24));
    let with_failed = |document: &crate::quest_document::QuestDocument| {
        document.steps.iter().any(|step| step.status == hatchery_core::quest::StepStatus::Failed)
    };
    let document = project.roster.documents.values().find(|it| with_failed(it)).expect("a failed step");
    for (began, told) in [(0, true), (i64::MAX, false)] {
        let mut model = at_ann();
        model.began = hatchery_core::Timestamp(began);
        let effects = update(&mut model, Msg::Quest(Box::new(document.clone())));
        assert_eq!(effects.contains(&Effect::Bell), told);
        assert_eq!(model.notice(), told.then_some("Step alerts has failed · ^X a"));
        assert!(!update(&mut model, Msg::Quest(Box::new(document.clone()))).contains(&Effect::Bell));
    }
}

/// Why the daemon cannot be reached stays in sight until it can.
#[test]
fn why_the_daemon_cannot_be_reached_is_shown() {
    let mut model = Model::new((80, 24), NOW, crate::tui::look::Look::PLAIN);
    let why = Report::new(Code::Unreachable, "the database at postgres://127.0.0.1:1/none does not answer")
        .hint("start it, or choose another store in hatchery.toml");
    let later = hatchery_core::Timestamp(NOW.0 + 60_000);
    update(&mut model, Msg::Unreached(why));
    update(&mut model, Msg::Away { since: NOW, again: later });
    update(&mut model, Msg::Tick(later));
    let words = screen(&model).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("does not answer (start it, or choose another store in hatchery.toml)"), "{words}");
    update(&mut model, super::overview(1, Vec::new()));
    assert!(!screen(&model).contains("does not answer"), "{}", screen(&model));
}

/// What a ward said stands below what the step has come to, and is in sight on a small screen.
#[test]
fn what_a_ward_said_is_in_sight() {
    let project = crate::tui::scenes::project::parcel_api((80, 24));
    let mut model = at_ann();
    model.roster.documents = project.roster.documents.clone();
    let (quest, document) = model.roster.documents.iter().next().unwrap();
    let (quest, step) = (*quest, document.steps[0].id.to_string());
    drop(crate::tui::act::open_quest(&mut model, Some(quest)));
    let output: String = (1..=60).map(|line| format!("output {line}\n")).collect();
    let tag = crate::tui::update::Tag::Ward { step };
    update(&mut model, Msg::Answer { tag, result: Ok(json!({ "text": output })) });
    assert!(screen(&model).contains("output 60"), "{}", screen(&model));
    for _ in 0..10 {
        press(&mut model, KeyCode::PageUp);
    }
    assert!(!screen(&model).contains("output 60"), "{}", screen(&model));
    for _ in 0..10 {
        press(&mut model, KeyCode::Char(' '));
    }
    assert!(screen(&model).contains("output 60"), "{}", screen(&model));
}

/// "See what the ward said" is about the step that has failed, and not about another one of its quest.
#[test]
fn the_ward_of_the_failed_step_is_read() {
    let project = crate::tui::scenes::project::parcel_api((80, 24));
    let mut model = at_ann();
    model.roster.documents = project.roster.documents.clone();
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('a'));
    press(&mut model, KeyCode::Char('2'));
    update(&mut model, Msg::Tick(hatchery_core::Timestamp(NOW.0 + 1_000)));
    press(&mut model, KeyCode::Enter);
    let Some(crate::tui::panel::Side::Quest(panel)) = &model.side else { panic!("{:?}", model.side) };
    let step = &model.roster.documents[&panel.quest].steps[panel.step];
    assert_eq!(step.id.to_string(), "alerts");
    let tag = crate::tui::update::Tag::Ward { step: "alerts".into() };
    update(&mut model, Msg::Answer { tag, result: Ok(json!({ "text": "" })) });
    assert!(screen(&model).contains("The ward of alerts said nothing"), "{}", screen(&model));
    let quest = *model.roster.documents.keys().next().unwrap();
    let steps = &mut model.roster.documents.get_mut(&quest).unwrap().steps;
    steps
        .iter_mut()
        .filter(|step| step.id.to_string() == "alerts")
        .for_each(|step| step.doing = Some("It is red".into()));
    assert!(screen(&model).contains("⊗ It is red"), "a failed step turns no ring: {}", screen(&model));
}
