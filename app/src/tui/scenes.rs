//! The screens of the design, drawn from a made-up project and compared cell by cell. Each is the size that its name says.

/// Where the screens are stored.
const SCREENS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tui/screens");

/// Compares with the design's screen of this name, and with the stored one.
macro_rules! screen {
    ($name:expr, $model:expr) => {
        screen!(text $name, $crate::tui::scenes::shown(&$model))
    };
    // As well as the text, what each cell means by its colour.
    (coloured $name:expr, $model:expr) => {
        let mut model: $crate::tui::model::Model = $model;
        screen!($name, model);
        let name = format!("{}-colour", $name);
        screen!(text name.as_str(), $crate::tui::scenes::colours::shown(&mut model));
    };
    (text $name:expr, $drawn:expr) => {
        let drawn: String = $drawn;
        $crate::tui::scenes::design::compare($name, &drawn);
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => $crate::tui::scenes::SCREENS }, {
            insta::assert_snapshot!($name, drawn);
        });
    };
}

mod colours;
mod design;

mod kinds;
mod plain;
pub(super) mod project;
mod separators;
mod talk;
mod webhooks;

use super::draw;
use super::field::Field;
use super::look::Look;
use super::model::{
    AgentChanges, BlockKey, Connection, Focus, Model, Outgoing, OwnWords, Purpose, ScrollPosition, TextUnderWay,
};
use super::overlay::{Finder, Help, KillAsk, Overlay, Preview};
use super::panel::{Home, QuestPanel, Side};
use super::search::Search;
use crate::http::{AgentState, Doing, PermissionView, QuestionView, RunPhase, RunView, TakesView};
use hatchery_core::ask::About;

use hatchery_core::partial::PartialKind;
use hatchery_core::permission::Access;
use hatchery_core::usage::Usage;
use hatchery_core::why::{Activity, Evidence};
use hatchery_core::{EventId, MessageKind, Record, Timestamp};
use project::{
    NOW, agent, at, at_work_again, attempt, done_again, id, in_quest, parcel_api, quest_id, question, run, words,
    working,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;
use talk::{
    PAUSE, TABLE, TABLE_80, admin_page, asked_call, at_weaver_table, call, crash_and_resume, denied_call, file_input,
    inherit, last_tool, later, message, result, table_begin, typed, with_talk,
};

/// What is on the screen, with `█` where something is typed. Elsewhere the cursor is on the chosen row, as `❯` shows.
pub fn shown(model: &Model) -> String {
    let (width, height) = model.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let cursor = draw::draw(model, &mut buffer);
    let is_typed = match (&model.overlay, model.focus, &model.side) {
        (Some(overlay), ..) => !matches!(overlay, Overlay::Kill(_) | Overlay::Reader(_)),
        (None, Focus::Text, _) => true,
        (None, Focus::Side, Some(Side::Home(home))) => home.typing,
        (None, ..) => false,
    };
    let cursor = cursor.filter(|_| is_typed);
    let mut rows = Vec::new();
    for y in 0..height {
        let mut row = String::new();
        let mut skip = 0;
        let mut moved = false;
        for x in 0..width {
            if let Some(at) = cursor.filter(|at| (at.x, at.y) == (x, y)) {
                let blank = buffer[(at.x, at.y)].symbol() == " ";
                row.push(if model.look.ascii { '_' } else { '█' });
                if blank {
                    continue;
                }
                moved = true;
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            // The cursor took a cell: the next gap is one cell shorter.
            if moved && symbol == " " && row.ends_with(' ') {
                moved = false;
                continue;
            }
            skip = super::text::width(symbol).saturating_sub(1);
            row.push_str(symbol);
        }
        rows.push(row.trim_end().to_owned());
    }
    rows.join("\n")
}

#[test]
fn first_start() {
    let mut model = Model::new((80, 24), NOW, Look::PLAIN);
    (model.project, model.link) = ("parcel-api".into(), Connection::Up);
    screen!("01-first-start-80x24", model);
}

#[test]
fn conversation() {
    screen!("02-conversation-80x24", at_weaver_table((80, 24)));
}

/// A request for permission of weaver-table, as it waits for the user.
fn wants_psql() -> QuestionView {
    let takes = TakesView {
        words: ["allow", "deny", "always-agent", "always-project"].map(str::to_owned).to_vec(),
        reason: true,
        ..words(&[], false)
    };
    let mut asked = question(48_205, "k3Qd", About::Permission(attempt("k3Qd")), "?", Timestamp(NOW.0 - 40_000), takes);
    let command = "psql -c \"select count(*) from delivery_attempts\"";
    asked.permission = Some(PermissionView {
        tool: "Bash".into(),
        input: json!({ "command": command }).to_string(),
        access: Access::Execute { command: command.into() },
        folder: Some("/home/parcel-api/.hatchery/worktrees/weaver-table".into()),
        rule: "Bash(psql -c:*)".into(),
    });
    asked
}

/// weaver-table, which waits for a permission.
fn waits_for_psql(size: (u16, u16), events: Vec<Record>) -> Model {
    let mut model = parcel_api(size);
    model.root = "/home/parcel-api".into();
    let mut all = events;
    all.extend(asked_call(48_203, "14:05"));
    with_talk(&mut model, "k3Qd", all);
    inherit(&mut model, "k3Qd", "13:31", false);
    model.roster.questions.push(wants_psql());
    model
}

#[test]
fn conversation_and_tree() {
    let mut model = parcel_api((120, 40));
    let mut events = table_begin(TABLE);
    events.extend(denied_call(46_450, "13:42", ""));
    events.extend(crash_and_resume());
    events.push(message(47_811, at("13:58"), "k3Qd", MessageKind::Assistant, PAUSE));
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31", false);
    let thinks = "The tests first. the old worker has a test of its own for the pause".into();
    let since = Timestamp(NOW.0 - 4_000);
    model.partial.insert(id("k3Qd"), TextUnderWay { kind: PartialKind::Thinking, text: thinks, since });
    typed(
        &mut model,
        "Leave the tests of the old worker alone. They say what the interface\npromised, so they should pass as they are",
    );
    screen!(coloured "03-conversation-tree-120x40", model);
}

#[test]
fn who_needs_you_beside_the_conversation() {
    let text = "The table `delivery_attempts` has everything but the\ntime of the next try. I add `next_at` and an index on\nwhat is not delivered yet, so that the worker asks for\nwhat is due and nothing else.";
    let mut events = table_begin(text);
    let migration = "ALTER TABLE delivery_attempts\n  ADD COLUMN next_at timestamptz;\n-- The worker asks for what is due, nothing else.\nCREATE INDEX delivery_attempts_due\n  ON delivery_attempts (next_at)\n  WHERE delivered_at IS NULL;";
    let edit = json!({ "file_path": "migrations/0014_next_at.sql", "old_string": "", "new_string": migration });
    for event in &mut events {
        if event.id == EventId(46_410) {
            *event = call(46_410, at("13:37"), "Edit", edit.clone());
        }
    }
    events.extend(crash_and_resume());
    events.push(message(47_811, at("13:58"), "k3Qd", MessageKind::Assistant, PAUSE));
    let rows = "Before I go on I want to know how many rows the index\nwill hold.";
    events.push(message(47_812, later("13:58", 30_000), "k3Qd", MessageKind::Assistant, rows));
    let mut model = waits_for_psql((120, 40), events);
    typed(
        &mut model,
        "Leave the tests of the old worker alone. They say what the interface\npromised, so they should pass as they are",
    );
    model.side = Some(Side::Home(Home { choice: Some(1), entered: Timestamp(NOW.0 - 10_000), ..Home::default() }));
    model.focus = Focus::Side;
    screen!(coloured "04-needs-you-120x40", model);
}

/// The request that is chosen shows everything that it is about, and an answer in your own words where it is typed.
#[test]
fn a_permission_answered_in_place() {
    let mut model = waits_for_psql((80, 24), table_begin(TABLE_80));
    model.roster.questions.retain(|question| question.permission.is_some());
    model.roster.documents.clear();
    let key = format!("q{}", wants_psql().id);
    let home = Home { entered: Timestamp(NOW.0 - 10_000), choice: Some(1), typing: true, ..Home::default() };
    model.own.insert(key, own("not on this one"));
    model.side = Some(Side::Home(home));
    model.focus = Focus::Side;
    screen!("20-permission-80x24", model);
}

/// In the conversation the same request is the last block, raised by its bar.
#[test]
fn a_permission_in_the_conversation() {
    let asked = Record {
        id: wants_psql().id,
        ts: Timestamp(NOW.0 - 40_000),
        session: None,
        event: hatchery_core::Event::Question {
            agent: id("k3Qd"),
            what: hatchery_core::event::QuestionEvent::Asked {
                about: About::Permission(attempt("k3Qd")),
                text: "?".into(),
            },
        },
    };
    let mut model = waits_for_psql((80, 24), table_begin(TABLE_80));
    if let Some(talk) = model.talks.get_mut(&id("k3Qd")) {
        talk.append(&asked);
    }
    screen!("21-permission-in-conversation-80x24", model);
}

#[test]
fn finder() {
    let mut model = parcel_api((80, 24));
    let text = "The pause is 30 seconds at first, then doubled up to six hours, give or take\na fifth. Ten tries, then it is left alone.";
    with_talk(
        &mut model,
        "k3Qd",
        vec![message(47_811, at("13:58"), "k3Qd", MessageKind::Assistant, text), last_tool()],
    );
    typed(&mut model, "Leave the tests of the old worker alone");
    model.overlay =
        Some(Overlay::Finder(Finder { words: Field::of("que"), at: 0, with: None, events: Some(("que".into(), 312)) }));
    screen!("05-finder-80x24", model);
}

#[test]
fn in_the_fork() {
    let mut model = parcel_api((80, 24));
    if let Some(redis) = model.roster.agents.get_mut(&id("Zr81")) {
        (redis.view.activity, redis.fresh, redis.ring) = (Activity::Starting, 0, 0);
        redis.view.spent = Usage::default();
        redis.run = Some(RunView {
            attempts: 1,
            pid: None,
            last_output: Timestamp(NOW.0 - 2_000),
            ..run(id("Zr81"), RunPhase::Starting)
        });
        redis.evidence = vec![Evidence { what: "run 1, attempt 1 waits for its process".into(), at: NOW }];
    }
    // The fork is one more than there were.
    let mut asleep = agent("zz07", "old-7", Some("root"));
    (asleep.view.created, asleep.view.state) = (at("13:59"), AgentState::Sleeping);
    model.roster.agents.insert(id("zz07"), asleep);
    model.roster.sort_for_tests();
    let first =
        message(46_355, at("13:32"), "Zr81", MessageKind::User, "Try it with Redis. A sorted set by time is enough.");
    with_talk(&mut model, "Zr81", vec![first]);
    inherit(&mut model, "Zr81", "13:32", false);
    model.desk_mut().inherited_open = Some(true);
    model.say("You are in the fork. Your text in weaver is kept.");
    screen!("06-fork-80x24", model);
}

#[test]
fn quest() {
    let mut model = parcel_api((120, 40));
    with_talk(&mut model, "0kGl", admin_page());
    if let Some(talk) = model.talks.get_mut(&id("0kGl")) {
        talk.more = false;
    }
    if let Some(agent) = model.roster.agents.get_mut(&id("0kGl")) {
        agent.heard = NOW;
    }
    let text = "A retry that is under way cannot be started again. The\nnext thing is the same for the list that the page polls".into();
    model.partial.insert(id("0kGl"), TextUnderWay { kind: PartialKind::Text, text, since: NOW });
    model.side = Some(Side::Quest(QuestPanel { quest: quest_id("q3f2"), step: 6, ward: None, scroll: 0 }));
    model.changes.insert(id("0kGl"), AgentChanges { asked: NOW, lines: Some((211, 38, 6)) });
    model.focus = Focus::Side;
    screen!("07-quest-120x40", model);
}

/// As after `--quick`.
#[test]
fn a_quest_shows_only_the_phases_that_it_has() {
    let mut model = parcel_api((120, 40));
    model.side = Some(Side::Quest(QuestPanel { quest: quest_id("q3f2"), step: 6, ward: None, scroll: 0 }));
    assert!(shown(&model).contains("Requirements") && shown(&model).contains("Review"));
    let document = model.roster.documents.get_mut(&quest_id("q3f2")).unwrap();
    let paths = &mut document.table.paths;
    (paths.requirements, paths.plan, paths.review) = (Vec::new(), Vec::new(), Vec::new());
    let others = document.steps.iter_mut().filter(|step| step.phase != hatchery_core::roles::Phase::Work);
    others.for_each(|step| step.attempts = 0);
    let drawn = shown(&model);
    assert!(drawn.contains("◶ Work") && !drawn.contains("Requirements") && !drawn.contains("Review"), "{drawn}");
}

/// A step that is not listed is not chosen, and a ward or a merge in a slot is no agent.
#[test]
fn a_quest_is_opened_on_a_step_that_is_listed() {
    let mut model = parcel_api((120, 40));
    model.side = Some(Side::Quest(QuestPanel { quest: quest_id("q3f2"), step: 0, ward: None, scroll: 0 }));
    let document = model.roster.documents.get_mut(&quest_id("q3f2")).unwrap();
    let at = document.steps.iter().position(|step| step.status == hatchery_core::quest::StepStatus::Running).unwrap();
    let name = document.steps[at].id.to_string();
    let step = &mut document.steps[at];
    (step.agent, step.doing) = (None, Some("the ward runs".to_owned()));
    let document = Box::new(document.clone());
    super::update::update(&mut model, super::update::Msg::Quest(document));
    assert!(matches!(&model.side, Some(Side::Quest(panel)) if panel.step == at), "{:?}", model.side);
    let drawn = shown(&model);
    assert!(drawn.contains(&format!("1 {name}: the ward runs")), "{drawn}");
}

#[test]
fn many_at_work() {
    let mut model = parcel_api((200, 50));
    let mut events = table_begin(TABLE);
    events.extend(crash_and_resume());
    events.push(message(47_811, at("13:58"), "k3Qd", MessageKind::Assistant, PAUSE));
    for (number, name) in (0..).zip(["Edit", "Read", "Edit", "Bash", "Read", "Edit"]) {
        let begin = later("13:59", i64::try_from(number).unwrap() * 11_000);
        let id = 47_820 + 2 * number;
        events.push(Record { ts: begin, ..call(id, begin, name, file_input(name, "src/worker.rs")) });
        events.push(result(id + 1, id, Timestamp(begin.0 + 9_000), "x", false));
    }
    let text = "What is left is the worker itself. It asks once a second today; with `next_at` it can sleep\nuntil the next one is due:\n\n```rust\nlet due = attempts.next_due().await?;\ntokio::select! {\n    _ = sleep_until(due.min(now + IDLE)) => {}\n    _ = woken.notified() => {}\n}\n```";
    events.push(message(48_190, at("14:05"), "k3Qd", MessageKind::Assistant, text));
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31", false);
    model.roster.questions.clear();
    model.roster.documents.clear();
    model.roster.agents.remove(&id("u7Vd"));
    let mut alerts = agent("aLrt", "codeweaver-alerts", Some("root"));
    alerts.view.created = later("13:12", 5_000);
    model.roster.agents.insert(id("aLrt"), in_quest(alerts, "q3f2", "alerts", "codeweaver"));
    // One less of those that are long done: they are still 34.
    model.roster.agents.remove(&id("zz06"));
    model.roster.agents.remove(&id("u7Vd"));
    let busy = [
        ("k3Qd", 1, 12, 1.18, 0, Some("Bash"), "cargo test --workspace"),
        ("Zr81", 0, 1, 0.84, 9, None, "Two workers may take one entry, so the script does both steps at once."),
        ("Hy2x", 3, 48, 0.92, 0, Some("Bash"), "pytest -x tests/retry"),
        ("8wLm", 2, 120, 0.11, 0, None, "Reads docs/retry.md"),
        ("pT0a", 1, 1, 0.36, 4, None, "Keeping them needs one more column in the table, and a job."),
        ("qQ11", 2, 3, 0.41, 31, Some("Edit"), "src/retry/queue.rs"),
        ("mM22", 0, 9, 0.22, 6, Some("Bash"), "cargo test retry::metrics"),
        ("0kGl", 3, 1, 0.63, 12, None, "A retry that is under way cannot be started again."),
        ("aLrt", 1, 1, 0.92, 3, Some("Read"), "src/alerts/rules.rs"),
        ("pLan", 0, 1, 0.34, 2, None, "Six steps, two at a time: first the counters, then the rest."),
    ];
    for (begin, ring, ago, cost, fresh, tool, line) in busy {
        let Some(known) = model.roster.agents.remove(&id(begin)) else { continue };
        let mut agent = working(known, ring, ago, cost);
        agent.fresh = fresh;
        agent.tool_since = tool.filter(|_| begin == "Hy2x").map(|_| agent.heard);
        let doing =
            Doing { message: EventId(48_200), at: agent.heard, tool: tool.map(str::to_owned), line: line.into() };
        agent.view.doing = Some(doing);
        model.roster.agents.insert(id(begin), agent);
    }
    model.roster.sort_for_tests();
    let text = "Leave the tests of the old worker alone. They say what the interface promised, so they should pass as they are";
    typed(&mut model, text);
    let changed = [
        ("k3Qd", 186, 24),
        ("Zr81", 143, 61),
        ("qQ11", 128, 12),
        ("pT0a", 41, 3),
        ("mM22", 6, 2),
        ("0kGl", 211, 38),
        ("aLrt", 77, 30),
    ];
    for (begin, added, removed) in changed {
        model.changes.insert(id(begin), AgentChanges { asked: NOW, lines: Some((added, removed, 3)) });
    }
    model.side = Some(Side::Home(Home::default()));
    screen!(coloured "08-ten-streaming-200x50", model);
}

#[test]
fn daemon_away() {
    let mut model = parcel_api((80, 24));
    let mut events = table_begin(TABLE_80);
    events.retain(|event| !(46_410..=46_411).contains(&event.id.0));
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31", false);
    model.link = Connection::Away { since: at("14:02:11"), again: Timestamp(NOW.0 + 4_000) };
    let field = Field::of("Leave the tests of the old worker alone.");
    model.outbox.push(Outgoing {
        number: 1,
        id: "t-1".into(),
        agent: id("k3Qd"),
        field,
        at: at("14:02"),
        sending: false,
        doubtful: false,
        after: EventId(1),
        event: None,
    });
    typed(&mut model, "And when they pass, tell weaver-redis what you fo");
    screen!("09-daemon-away-80x24", model);
}

#[test]
fn kill() {
    let mut model = parcel_api((80, 24));
    let docs = in_quest(agent("tDoc", "table-docs", Some("k3Qd")), "q3f2", "docs", "codeweaver");
    model.roster.agents.insert(id("tDoc"), docs);
    model.roster.agents.remove(&id("zz06"));
    if let Some(redis) = model.roster.agents.remove(&id("Zr81")) {
        model.roster.agents.insert(id("Zr81"), in_quest(redis, "q3f2", "queue", "codeweaver"));
    }
    if let Some(run) = model.roster.agents.get_mut(&id("9fA2")).and_then(|weaver| weaver.run.as_mut()) {
        run.last_output = at("13:31");
    }
    model.roster.questions.pop();
    model.roster.questions.push(question(
        48_100,
        "tDoc",
        About::Silence(attempt("tDoc")),
        "?",
        NOW,
        words(&["wait"], true),
    ));
    model.roster.sort_for_tests();
    let said = message(
        46_342,
        at("13:29"),
        "9fA2",
        MessageKind::Assistant,
        "Two places fit: a sorted set in Redis, or a table with the time of the next try. Redis is quicker to build. The table survives a restart.",
    );
    with_talk(&mut model, "9fA2", vec![said]);
    model.desks.entry(id("Zr81")).or_default().field = Field::of("a draft");
    let desk = model.desk_mut();
    (desk.field, desk.purpose) = (Field::of("/kill weaver"), Some(Purpose::Command));
    let alone = Preview {
        killed: vec![id("9fA2")],
        moved: vec![(id("k3Qd"), id("root")), (id("Zr81"), id("root"))],
        ..Preview::default()
    };
    let cascade = Preview {
        killed: vec![id("9fA2"), id("k3Qd"), id("tDoc"), id("Zr81")],
        withdrawn: vec![EventId(48_100)],
        ..Preview::default()
    };
    model.overlay = Some(Overlay::Kill(KillAsk {
        agent: id("9fA2"),
        remark: None,
        alone: Some(alone),
        cascade: Some(cascade),
        choice: 0,
    }));
    screen!(coloured "10-kill-80x24", model);
}

#[test]
fn help() {
    let mut model = at_weaver_table((80, 24));
    model.overlay = Some(Overlay::Help(Help::default()));
    screen!("11-help-80x24", model);
}

#[test]
fn narrow() {
    let mut model = parcel_api((60, 20));
    let text = "The table `delivery_attempts` has everything but\nthe time of the next try. I add `next_at` and an\nindex on what is not delivered yet.";
    let mut events = table_begin(text);
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31", false);
    typed(&mut model, "Leave the tests of the old worker alone");
    model.desk_mut().folds.insert(EventId(46_410), false);
    screen!("12-narrow-60x20", model);
}

#[test]
fn letters_after_ctrl_x() {
    let mut model = parcel_api((80, 24));
    let mut events = table_begin(TABLE_80);
    events.retain(|event| event.id.0 >= 46_400);
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    typed(&mut model, "Leave the tests of the old worker alone");
    model.desk_mut().folds.insert(EventId(46_410), false);
    model.prefix = Some(Timestamp(NOW.0 - 600));
    screen!("14-ctrl-x-80x24", model);
}

#[test]
fn ascii_without_colours() {
    let mut model = at_weaver_table((80, 24));
    model.look = Look { ascii: true, ..Look::PLAIN };
    screen!("15-ascii-no-colour-80x24", model);
}

#[test]
fn browse_and_search() {
    let mut model = parcel_api((80, 24));
    let mut events = table_begin(TABLE_80);
    events.extend(denied_call(46_450, "13:42", ""));
    events.extend(crash_and_resume());
    let pause = "The pause is 30 seconds at first, then doubled up to six hours, give or take\na fifth so that they do not all come at once.";
    events.push(message(47_811, at("13:58"), "k3Qd", MessageKind::Assistant, pause));
    events.push(message(47_900, at("13:59"), "k3Qd", MessageKind::Assistant, "More.\n\nAnd more."));
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    typed(&mut model, "Leave the tests of the old worker alone");
    model.focus = Focus::Browse;
    let desk = model.desk_mut();
    (desk.chosen, desk.seen) = (Some(BlockKey(EventId(46_410), 0)), EventId(47_811));
    desk.place = ScrollPosition::At { item: BlockKey(EventId(46_360), 0), line: 1 };
    // Two matches are in the window, and the log has more behind it.
    let talk = model.talks.get_mut(&id("k3Qd")).unwrap();
    (talk.later, talk.to) = (true, talk.upto());
    let mut search = Search::begin(ScrollPosition::End);
    (search.words, search.typing) = (Field::of("next_at"), false);
    search.look_in(talk);
    search.add((0..39).map(|number| EventId(48_300 + number)));
    (search.at, search.upto) = (1, Some(EventId(2_104)));
    model.search = Some(search);
    screen!("17-browse-search-80x24", model);
}

fn own(words: &str) -> OwnWords {
    OwnWords { agent: None, field: Field::of(words) }
}

#[test]
fn who_needs_you_alone() {
    let mut model = waits_for_psql((80, 24), table_begin(TABLE_80));
    typed(&mut model, "Leave the tests of the old worker alone");
    let first = &mut model.roster.questions[0];
    first.context = Some("The table has room for both. Keeping costs one row for each failed delivery.".into());
    let silent = &mut model.roster.questions[2];
    silent.text = "Nothing was heard of it for 10 min. A tool has not answered: pytest -x".into();
    let home = Home { choice: Some(2), typing: true, entered: Timestamp(NOW.0 - 10_000), ..Home::default() };
    at_work_again(&mut model, &["zz00", "zz01"]);
    done_again(&mut model, &["zz02", "zz03"]);
    model.own.insert("q47902".into(), own("Keep it for 30 days, then drop it"));
    model.side = Some(Side::Home(home));
    model.focus = Focus::Side;
    screen!("18-needs-you-80x24", model);
}

#[test]
fn too_small() {
    let model = at_weaver_table((30, 8));
    assert_eq!(shown(&model).trim(), "Too small to draw: 40×10 at\nleast. Nothing is lost.");
}

/// Every size is drawn without a panic, and every row has its width.
#[test]
fn every_size_is_drawn() {
    for width in [40, 59, 60, 80, 99, 100, 109, 110, 159, 160, 200, 300] {
        for height in [10, 13, 14, 24, 30, 60] {
            for side in [
                None,
                Some(Side::Home(Home::default())),
                Some(Side::Quest(QuestPanel { quest: quest_id("q3f2"), step: 0, ward: None, scroll: 0 })),
            ] {
                let mut model = at_weaver_table((width, height));
                model.side = side;
                for focus in [Focus::Text, Focus::Browse, Focus::Tree, Focus::Side] {
                    model.focus = focus;
                    assert_eq!(shown(&model).lines().count(), usize::from(height), "{width}×{height} {focus:?}");
                }
            }
        }
    }
}
