//! The screens of the design, drawn from a made-up project and compared cell by cell. Each is the size that its name says.

use super::conversation::{Conversation, Inherited, blocks};
use super::draw;
use super::field::Field;
use super::look::Look;
use super::model::{Focus, Key, Link, Model, Outgoing, Place, Purpose, Search};
use super::overlay::{Finder, Help, KillAsk, Overlay, Preview};
use super::panel::{Home, QuestPanel, Side};
use super::roster::Agent;
use crate::http::{
    AgentState, AgentView, AssignmentView, BudgetView, Doing, QuestLine, QuestionView, RunPhase, RunView, TakesView,
};
use crate::quest_document::{QuestDocument, QuestWord};
use hatchery_core::ask::{About, StepTrouble};
use hatchery_core::event::{MessageEvent, RunEvent};
use hatchery_core::outcome::{Cause, Exit};
use hatchery_core::output::Output;
use hatchery_core::run::AttemptId;
use hatchery_core::usage::{Money, Usage};
use hatchery_core::why::{Activity, Evidence};
use hatchery_core::{AgentId, Event, EventId, MessageKind, QuestId, Record, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

/// Midnight of the day of all scenes.
const DAY: i64 = 1_779_926_400_000;

fn at(clock: &str) -> Timestamp {
    let parts: Vec<i64> = clock.split(':').map(|part| part.parse().unwrap()).collect();
    let seconds = parts[0] * 3_600 + parts[1] * 60 + parts.get(2).unwrap_or(&0);
    Timestamp(DAY + seconds * 1_000)
}

fn id(begin: &str) -> AgentId {
    format!("{begin:A<22}").parse().unwrap()
}

fn quest_id(begin: &str) -> QuestId {
    format!("{begin:A<22}").parse().unwrap()
}

fn dollars(amount: f64) -> Usage {
    Usage { cost: Money::from_dollars(amount), ..Usage::default() }
}

/// An agent that rests, as the daemon tells it.
fn agent(begin: &str, name: &str, parent: Option<&str>) -> Agent {
    let view = AgentView {
        id: id(begin),
        name: (!name.is_empty()).then(|| name.to_owned()),
        parent: parent.map(id),
        state: AgentState::Alive,
        provider: None,
        model: None,
        session: None,
        created: at("12:00"),
        last_active: at("13:31"),
        forked_from: None,
        fork_point: None,
        messages: 3,
        last_message: Some(EventId(46_000)),
        unread_mail: 0,
        activity: Activity::Resting,
        evidence: None,
        doing: None,
        spent: dollars(0.31),
        question: None,
        assignment: None,
    };
    Agent {
        view,
        run: None,
        evidence: Vec::new(),
        stall_ms: Some(600_000),
        ring: 1,
        heard: at("13:31"),
        tool_since: None,
        fresh: 0,
    }
}

fn run(agent: AgentId, phase: RunPhase) -> RunView {
    RunView {
        agent,
        name: None,
        run: 1,
        attempts: 2,
        harness: "claude".into(),
        phase,
        pid: Some(41_902),
        cause: None,
        detail: None,
        until: None,
        requested: at("13:31"),
        last_output: at("13:31"),
        turns: 1,
        spent: Usage::default(),
    }
}

fn working(mut agent: Agent, ring: usize, seconds_ago: i64, cost: f64) -> Agent {
    agent.view.activity = Activity::Working;
    agent.heard = Timestamp(NOW.0 - seconds_ago * 1_000);
    agent.run = Some(run(agent.view.id, RunPhase::Running));
    agent.ring = ring;
    agent.view.spent = dollars(cost);
    agent
}

fn in_quest(mut agent: Agent, quest: &str, step: &str, role: &str) -> Agent {
    agent.view.assignment =
        Some(AssignmentView { quest: quest_id(quest), step: step.parse().unwrap(), role: role.into() });
    agent
}

fn question(number: u64, of: &str, about: About, text: &str, asked: Timestamp, takes: TakesView) -> QuestionView {
    QuestionView {
        id: EventId(number),
        agent: id(of),
        name: None,
        quest: None,
        step: None,
        about,
        text: text.into(),
        context: None,
        permission: None,
        takes,
        asked,
    }
}

fn words(words: &[&str], text: bool) -> TakesView {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    TakesView { words, amount: false, ward: false, reason: false, text }
}

const NOW: Timestamp = Timestamp(DAY + (14 * 3_600 + 5 * 60 + 40) * 1_000);

/// The project of the design: 34 agents, four of whom need the user.
fn parcel_api(size: (u16, u16)) -> Model {
    let mut model = Model::new(size, NOW, Look::PLAIN);
    model.project = "parcel-api".into();
    model.link = Link::Up;
    model.upto = EventId(48_213);
    let roster = &mut model.roster;
    roster.head = EventId(48_213);
    let mut add = |agent: Agent| roster.agents.insert(agent.view.id, agent);
    let mut root = agent("root", "", None);
    root.view.created = at("09:00");
    add(root);
    let mut weaver = agent("9fA2", "weaver", Some("root"));
    weaver.view.created = at("12:01");
    weaver.run = Some(RunView {
        phase: RunPhase::Ended,
        cause: Some(Cause::Completed),
        last_output: at("13:29"),
        ..run(id("9fA2"), RunPhase::Ended)
    });
    add(weaver);
    let mut table = working(agent("k3Qd", "weaver-table", Some("9fA2")), 1, 12, 1.18);
    (table.view.forked_from, table.view.fork_point) = (Some(id("9fA2")), Some(EventId(46_342)));
    table.view.created = at("13:31");
    add(table);
    let mut redis = agent("Zr81", "weaver-redis", Some("9fA2"));
    redis.run = Some(RunView {
        phase: RunPhase::Ended,
        cause: Some(Cause::Completed),
        last_output: at("13:53"),
        ..run(id("Zr81"), RunPhase::Ended)
    });
    (redis.fresh, redis.view.created, redis.view.spent) = (2, at("13:32"), dollars(0.84));
    add(redis);
    let mut tester = agent("u7Vd", "tester", Some("9fA2"));
    (tester.view.state, tester.view.activity, tester.view.created) = (AgentState::Dead, Activity::Dead, at("13:33"));
    tester.view.last_active = at("13:00");
    tester.evidence = vec![Evidence { what: "it was killed".into(), at: at("13:00") }];
    add(tester);
    let mut slow = working(agent("Hy2x", "slow-tests", Some("root")), 1, 780, 0.92);
    slow.view.created = at("12:02");
    slow.view.activity = Activity::Silent;
    add(slow);
    let mut docs = agent("8wLm", "pathseeker-docs", Some("root"));
    docs.view.created = at("12:03");
    docs.view.activity = Activity::Parked;
    docs.run = Some(RunView {
        cause: Some(Cause::RateLimited),
        until: Some(at("14:20")),
        ..run(id("8wLm"), RunPhase::Parked)
    });
    add(docs);
    let webhooks = "q3f2";
    let of_quest = |begin: &str, name: &str, step: &str, minute: i64| {
        let mut agent =
            in_quest(agent(begin, name, Some("root")), webhooks, step, name.split('-').next().unwrap_or_default());
        agent.view.created = Timestamp(at("13:12").0 + minute * 1_000);
        agent
    };
    let worker = of_quest("pT0a", "codeweaver-worker", "worker", 1);
    let queue = working(of_quest("qQ11", "codeweaver-queue", "queue", 2), 2, 3, 0.41);
    let metrics = working(of_quest("mM22", "spiritmender-metrics", "metrics", 3), 0, 9, 0.48);
    let admin = working(of_quest("0kGl", "codeweaver-admin-page", "admin-page", 4), 3, 14, 0.63);
    let done: Vec<Agent> = (0..8)
        .map(|number| of_quest(&format!("dn{number}"), &format!("done-{number}"), "schema", 10 + number))
        .collect();
    for mut agent in [worker, queue, metrics, admin].into_iter().chain(done) {
        if agent.view.activity == Activity::Working && agent.view.id == id("qQ11") {
            agent.view.doing = Some(Doing {
                message: EventId(48_200),
                at: agent.heard,
                tool: Some("Edit".into()),
                line: "src/retry/queue.rs".into(),
            });
        }
        add(agent);
    }
    let mut plan = in_quest(agent("pLan", "pathseeker-plan", Some("root")), "q7aa", "plan", "pathseeker");
    plan.view.created = at("13:50");
    add(plan);
    for number in 0..15 {
        let mut asleep = agent(&format!("zz{number:02}"), &format!("old-{number}"), Some("root"));
        asleep.view.created = at("13:59");
        asleep.view.last_active = Timestamp(DAY);
        asleep.view.state = AgentState::Sleeping;
        add(asleep);
    }
    roster.agent_count = roster.agents.len();
    let line = |begin: &str, request: &str, state, complete, steps, changed| QuestLine {
        id: quest_id(begin),
        request: request.into(),
        state,
        complete,
        steps,
        running: 3,
        questions: 0,
        failed: 0,
        spent: Money::from_dollars(4.92),
        created: at("13:12"),
        changed,
    };
    roster.quests = vec![
        line(webhooks, "Send failed webhooks again, with backoff", QuestWord::Open, 1, 8, at("14:05")),
        line("q7aa", "Limit requests per tenant", QuestWord::Open, 0, 0, at("13:56")),
        line("q1bb", "Typed errors in the config loader", QuestWord::Complete, 4, 4, at("13:47")),
    ];
    roster.documents.insert(quest_id(webhooks), webhooks_quest());
    let ask = |begin: &str, trouble| About::Step { quest: quest_id(begin), trouble };
    let mut drop_or_keep = question(
        47_902,
        "pT0a",
        ask(webhooks, StepTrouble::Input),
        "A delivery that has failed ten times: drop it, or keep it so that you can send it by hand?",
        Timestamp(NOW.0 - 12 * 60_000),
        words(&["Drop it", "Keep it, and list it on the admin page"], true),
    );
    drop_or_keep.context = Some("The table has room for both. Keeping costs one row for each failed delivery, and the admin page could list them. I would keep them.".into());
    roster.questions = vec![
        drop_or_keep,
        question(
            47_950,
            "pLan",
            ask("q7aa", StepTrouble::Approval),
            "6 steps, 2 at a time. Shall they be carried out?",
            Timestamp(NOW.0 - 9 * 60_000),
            words(&["yes"], true),
        ),
        question(
            48_000,
            "Hy2x",
            About::Silence(attempt("Hy2x")),
            "Nothing was heard of it for 10 min.\nProcess 40117 lives · not answered: pytest -x",
            Timestamp(NOW.0 - 3 * 60_000),
            words(&["wait", "stop"], true),
        ),
    ];
    roster.budgets = vec![BudgetView {
        agent: Some(id("k3Qd")),
        name: None,
        limit: Money::from_dollars(5.0),
        spent: Money::from_dollars(1.18),
    }];
    roster.sort_for_tests();
    model.visits = vec![id("9fA2")];
    for (at, begin) in ["9fA2", "k3Qd", "Zr81", "Hy2x", "8wLm", "pT0a", "qQ11", "mM22", "0kGl"].into_iter().enumerate()
    {
        model.pins[at] = Some(id(begin));
    }
    model
}

fn attempt(begin: &str) -> AttemptId {
    serde_json::from_value(json!({ "agent": id(begin), "run": 1, "attempt": 1 })).unwrap()
}

fn webhooks_quest() -> QuestDocument {
    let step = |name: &str,
                title: &str,
                status: &str,
                since: Timestamp,
                cost: f64,
                after: &[&str],
                rest: serde_json::Value| {
        let mut step = json!({
            "id": name, "phase": "work", "name": title, "description": "", "dependsOn": after, "filesToCreate": [], "filesToModify": [],
            "observables": [], "status": status, "doing": null, "agent": null, "question": null, "since": since.0, "attempts": 1,
            "agents": [], "wards": [], "signals": [], "callers": [], "spent": dollars(cost), "summary": null, "history": [],
        });
        for (key, value) in rest.as_object().cloned().unwrap_or_default() {
            step[key] = value;
        }
        step
    };
    let ago = |seconds: i64| Timestamp(NOW.0 - seconds * 1_000);
    let by = |begin: &str, role: &str| json!({ "agent": id(begin), "agents": [{ "agent": id(begin), "role": role, "session": null }] });
    let mut admin = by("0kGl", "codeweaver");
    admin["callers"] = json!([{ "role": "siegemaster", "agent": id("dn0"), "reason": "A retry can be started twice.", "resume": true }]);
    admin["signals"] = json!([
        { "agent": id("0kGl"), "at": at("13:22").0, "role": "codeweaver", "signal": { "complete": { "summary": "The page lists attempts." } } },
        { "agent": id("dn1"), "at": at("13:35").0, "role": "spiritmender", "signal": { "complete": { "summary": "The row hands it on now." } } },
    ]);
    admin["wards"] = json!([
        { "number": 1, "began": at("13:23").0, "ended": at("13:23:41").0, "verdict": { "red": { "findings": ["admin/attempts.tsx:41:9 error: `retry` is not a function of AttemptRow"] } } },
        { "number": 2, "began": at("13:36").0, "ended": at("13:36:39").0, "verdict": "green" },
    ]);
    let queued = json!({ "question": 47_902, "agent": id("pT0a") });
    let steps = json!([
        step("schema", "Store each attempt", "complete", ago(26 * 60), 0.57, &[], json!({})),
        step("queue", "Queue", "running", ago(3), 0.41, &[], by("qQ11", "codeweaver")),
        step("worker", "Worker", "waiting_for_human", ago(12 * 60), 0.36, &[], queued),
        step("metrics", "Metrics", "running", ago(9), 0.48, &[], by("mM22", "spiritmender")),
        step("admin-page", "List what failed, and send it again", "running", ago(14), 1.04, &[], admin),
        step("alerts", "Alerts", "failed", ago(120), 0.92, &[], json!({ "doing": "The ward was red three times" })),
        step("docs", "Docs", "pending", ago(60), 0.0, &["queue", "worker", "admin-page"], json!({})),
        step("runbook", "Runbook", "blocked", ago(60), 0.0, &["alerts"], json!({})),
    ]);
    let document = json!({
        "schema": 1, "id": quest_id("q3f2"), "version": 48_000, "request": "Send failed webhooks again, with backoff", "state": "open",
        "created": at("13:12").0, "changed": at("14:05").0, "ended": null, "slots": 3, "harness": "claude",
        "ward": { "command": "cargo test", "limit_ms": 600_000, "guessed_from": null }, "branch": "hatchery/send-failed-webhooks-3f2a",
        "approvePlan": false, "budget": Money::from_dollars(15.0), "spent": dollars(4.92), "requirements": null, "steps": steps,
        "table": { "roles": [], "paths": { "requirements": [], "plan": [], "work": [], "review": [] }, "mender": "spiritmender", "planner": "pathseeker", "requirer": "chaoswhisperer" },
    });
    serde_json::from_value(document).unwrap()
}

fn message(number: u64, clock: Timestamp, whose: &str, kind: MessageKind, content: &str) -> Record {
    let event = Event::Message(MessageEvent::Added {
        agent: id(whose),
        kind,
        content: content.into(),
        to: None,
        source_id: None,
    });
    Record { id: EventId(number), ts: clock, session: None, event }
}

fn call(number: u64, clock: Timestamp, name: &str, input: serde_json::Value) -> Record {
    let content = json!({ "id": number.to_string(), "name": name, "input": input }).to_string();
    message(number, clock, "k3Qd", MessageKind::ToolCall, &content)
}

fn result(number: u64, of: u64, clock: Timestamp, text: &str, failed: bool) -> Record {
    let content = json!({ "id": of.to_string(), "content": text, "is_error": failed }).to_string();
    message(number, clock, "k3Qd", MessageKind::ToolResult, &content)
}

fn later(clock: &str, millis: i64) -> Timestamp {
    Timestamp(at(clock).0 + millis)
}

const TABLE: &str = "The table `delivery_attempts` has everything but the time of the next try. I add `next_at` and an index on what is not delivered yet, so that the worker asks for what is due and nothing else.";
const MIGRATION: &str = "ALTER TABLE delivery_attempts ADD COLUMN next_at timestamptz;\n-- The worker asks for what is due, and for nothing else.\nCREATE INDEX delivery_attempts_due ON delivery_attempts (next_at)\n  WHERE delivered_at IS NULL;";
const PAUSE: &str = "The pause is 30 seconds at first, then doubled up to six hours, give or take a fifth so that they do not all come at once. Ten tries, then it is left alone.";

/// What weaver-table did up to 13:40.
fn table_begin() -> Vec<Record> {
    let mut events = vec![message(
        46_351,
        at("13:31"),
        "k3Qd",
        MessageKind::User,
        "Try it with a table. Leave the worker's interface as it is.",
    )];
    for (number, name) in ["Read", "Grep", "Read", "Read", "Grep", "Bash", "Read"].into_iter().enumerate() {
        let number = number as u64;
        let begin = later("13:32", i64::try_from(number).unwrap() * 6_000);
        events.push(call(46_360 + 2 * number, begin, name, json!({ "file_path": "src/store.rs" })));
        events.push(result(46_361 + 2 * number, 46_360 + 2 * number, Timestamp(begin.0 + 2_000), "x\ny", false));
    }
    events.push(message(46_402, at("13:36"), "k3Qd", MessageKind::Assistant, TABLE));
    let edit = json!({ "file_path": "migrations/0014_next_at.sql", "old_string": "", "new_string": MIGRATION });
    events.push(call(46_410, at("13:37"), "Edit", edit));
    events.push(result(46_411, 46_410, later("13:37", 50), "ok", false));
    events.push(call(46_420, at("13:38"), "Bash", json!({ "command": "cargo test -p store attempts" })));
    events.push(result(46_421, 46_420, later("13:38", 6_200), "test result: ok. 14 passed; 0 failed", false));
    events
}

fn last_tool() -> Record {
    call(48_210, Timestamp(NOW.0 - 12_000), "Bash", json!({ "command": "cargo test --workspace" }))
}

fn crash() -> Record {
    let what = RunEvent::Crashed {
        cause: Cause::Crashed,
        detail: "ended in the middle of a turn".into(),
        exit: Exit::Signal(9),
        forgotten: false,
    };
    Record { id: EventId(46_466), ts: at("13:44"), session: None, event: Event::Run { of: attempt("k3Qd"), what } }
}

fn noted(number: u64, clock: Timestamp, output: Output) -> Record {
    Record {
        id: EventId(number),
        ts: clock,
        session: None,
        event: Event::Run { of: attempt("k3Qd"), what: RunEvent::OutputNoted { output } },
    }
}

fn with_talk(model: &mut Model, begin: &str, events: Vec<Record>) {
    let mut talk = Conversation::new(id(begin));
    talk.prepend(events, EventId(46_342), false);
    model.talks.insert(id(begin), talk);
    model.visit(id(begin));
    model.desk_mut().new_from = None;
}

fn inherit(model: &mut Model, begin: &str, forked: &str) {
    let events = [
        message(
            46_318,
            at("13:24"),
            "9fA2",
            MessageKind::User,
            "Deliveries that fail are lost today. How could we send them again?",
        ),
        message(
            46_342,
            at("13:29"),
            "9fA2",
            MessageKind::Assistant,
            "Two places fit: a sorted set in Redis, or a table with the time of the next try. Redis is quicker to build. The table survives a restart and can be asked with SQL.",
        ),
    ];
    let inherited = Inherited {
        from: id("9fA2"),
        count: Some(12),
        upto: EventId(46_342),
        forked: at(forked),
        blocks: blocks(id("9fA2"), &events),
    };
    if let Some(talk) = model.talks.get_mut(&id(begin)) {
        talk.inherited = Some(inherited);
    }
}

fn typed(model: &mut Model, text: &str) {
    let desk = model.desk_mut();
    (desk.field, desk.purpose) = (Field::of(text), Some(Purpose::Message));
}

/// weaver-table at work, with a draft.
fn at_weaver_table(size: (u16, u16)) -> Model {
    let mut model = parcel_api(size);
    let mut events = table_begin();
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31");
    typed(&mut model, "Leave the tests of the old worker alone");
    model
}

/// What is on the screen, with `█` where the cursor is.
fn shown(model: &Model) -> String {
    let (width, height) = model.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let cursor = draw::draw(model, &mut buffer);
    let mut rows = Vec::new();
    for y in 0..height {
        let mut row = String::new();
        let mut skip = 0;
        for x in 0..width {
            if let Some(at) = cursor.filter(|at| (at.x, at.y) == (x, y)) {
                let blank = buffer[(at.x, at.y)].symbol() == " ";
                row.push(if model.look.ascii { '_' } else { '█' });
                if blank {
                    continue;
                }
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = super::text::width(symbol).saturating_sub(1);
            row.push_str(symbol);
        }
        rows.push(row.trim_end().to_owned());
    }
    rows.join("\n")
}

/// Compares with the stored screen of this name.
macro_rules! screen {
    ($name:expr, $model:expr) => {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "screens" }, {
            insta::assert_snapshot!($name, shown(&$model));
        });
    };
}

#[test]
fn first_start() {
    let mut model = Model::new((80, 24), NOW, Look::PLAIN);
    (model.project, model.link) = ("parcel-api".into(), Link::Up);
    screen!("01-first-start-80x24", model);
}

#[test]
fn conversation() {
    screen!("02-conversation-80x24", at_weaver_table((80, 24)));
}

#[test]
fn conversation_and_tree() {
    let mut model = parcel_api((120, 40));
    let mut events = table_begin();
    events.push(call(
        46_450,
        at("13:42"),
        "Bash",
        json!({ "command": "psql -c \"select count(*) from delivery_attempts\"" }),
    ));
    events.push(noted(
        46_451,
        at("13:42"),
        Output::Denied { tool: "Bash".into(), tool_use: Some("46450".into()), reason: "by you".into() },
    ));
    events.push(crash());
    events.push(message(47_811, at("13:58"), "k3Qd", MessageKind::Assistant, PAUSE));
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31");
    typed(
        &mut model,
        "Leave the tests of the old worker alone. They say what the interface\npromised, so they should pass as they are",
    );
    screen!("03-conversation-tree-120x40", model);
}

#[test]
fn who_needs_you_beside_the_conversation() {
    let mut model = at_weaver_table((120, 40));
    model.side = Some(Side::Home(Home { choice: Some(1), entered: Timestamp(NOW.0 - 10_000), ..Home::default() }));
    model.focus = Focus::Side;
    screen!("04-needs-you-120x40", model);
}

#[test]
fn finder() {
    let mut model = at_weaver_table((80, 24));
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
    let first =
        message(46_355, at("13:32"), "Zr81", MessageKind::User, "Try it with Redis. A sorted set by time is enough.");
    with_talk(&mut model, "Zr81", vec![first]);
    inherit(&mut model, "Zr81", "13:32");
    model.desk_mut().inherited_open = Some(true);
    model.say("You are in the fork. Your text in weaver is kept.");
    screen!("06-fork-80x24", model);
}

#[test]
fn quest() {
    let mut model = at_weaver_table((120, 40));
    model.side = Some(Side::Quest(QuestPanel { quest: quest_id("q3f2"), step: 4, ward: None, scroll: 0 }));
    model.focus = Focus::Side;
    screen!("07-quest-120x40", model);
}

#[test]
fn many_at_work() {
    let mut model = at_weaver_table((200, 50));
    model.roster.questions.clear();
    model.roster.documents.clear();
    model.side = Some(Side::Home(Home::default()));
    screen!("08-ten-streaming-200x50", model);
}

#[test]
fn daemon_away() {
    let mut model = at_weaver_table((80, 24));
    model.desk_mut().folds.insert(EventId(46_410), false);
    model.link = Link::Away { since: at("14:02:11"), again: Timestamp(NOW.0 + 4_000) };
    let field = Field::of("Leave the tests of the old worker alone.");
    model.outbox.push(Outgoing {
        number: 1,
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
    let mut docs = agent("tDoc", "table-docs", Some("k3Qd"));
    docs.view.created = at("13:40");
    model.roster.agents.insert(id("tDoc"), docs);
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
    screen!("10-kill-80x24", model);
}

#[test]
fn help() {
    let mut model = at_weaver_table((80, 24));
    model.overlay = Some(Overlay::Help(Help::default()));
    screen!("11-help-80x24", model);
}

#[test]
fn narrow() {
    let mut model = at_weaver_table((60, 20));
    model.desk_mut().folds.insert(EventId(46_410), false);
    screen!("12-narrow-60x20", model);
}

#[test]
fn all_kinds() {
    let mut model = parcel_api((100, 48));
    model.tree = Some(false);
    let mut events = vec![
        message(
            46_351,
            at("13:31"),
            "k3Qd",
            MessageKind::User,
            "Try it with a table. Leave the worker's interface as it is.",
        ),
        noted(
            46_352,
            later("13:31", 9_000),
            Output::Thinking {
                text: format!("who else reads delivery_attempts? The worker, the admin page\n{}", "and\n".repeat(13)),
            },
        ),
    ];
    events.extend(table_begin().into_iter().filter(|event| (46_360..46_400).contains(&event.id.0)));
    let text = "I add `next_at` and an index. Three things follow:\n\n1. The worker asks for what is due, and nothing else.\n2. The admin page sorts by it.\n3. A restart loses nothing, see `docs/retry.md`.\n\n```sql\nSELECT id FROM delivery_attempts\n WHERE next_at <= now() AND delivered_at IS NULL\n```";
    events.push(message(46_402, at("13:36"), "k3Qd", MessageKind::Assistant, text));
    let old =
        format!("  pub async fn due(&self) -> Result<Vec<Attempt>> {{\n      self.all().await\n{}", "x\n".repeat(18));
    let new = format!(
        "  pub async fn due(&self) -> Result<Vec<Attempt>> {{\n      self.where_next_at(Before(now())).await\n{}",
        "y\n".repeat(50)
    );
    events.push(call(
        46_410,
        at("13:37"),
        "Edit",
        json!({ "file_path": "src/store/attempts.rs", "old_string": old, "new_string": new }),
    ));
    events.push(result(
        46_411,
        46_410,
        later("13:37", 50),
        "    87→  pub async fn due(&self) -> Result<Vec<Attempt>> {",
        false,
    ));
    events.push(call(46_420, at("13:38"), "Bash", json!({ "command": "cargo test -p store" })));
    let output = format!(
        "thread 'due_is_sorted' panicked at src/store/attempts.rs:112:9:\n{}test result: FAILED. 14 passed; 1 failed",
        "trace\n".repeat(40)
    );
    events.push(result(46_421, 46_420, later("13:38", 6_200), &output, true));
    events.push(call(
        46_430,
        at("13:39"),
        "Bash",
        json!({ "command": "psql -c \"select count(*) from delivery_attempts\"" }),
    ));
    events.push(noted(
        46_431,
        at("13:39"),
        Output::Denied { tool: "Bash".into(), tool_use: Some("46430".into()), reason: "not on this one".into() },
    ));
    events.push(call(46_440, at("13:40"), "Agent", json!({ "description": "find every reader of delivery_attempts" })));
    let sub = |output| Output::Subagent { tool_use: "46440".into(), output: Box::new(output) };
    events.push(noted(
        46_441,
        at("13:40"),
        sub(Output::ToolUse {
            id: "s".into(),
            name: "Read".into(),
            input: json!({ "file_path": "src/admin/attempts.tsx" }).to_string(),
        }),
    ));
    events.push(noted(
        46_442,
        at("13:40"),
        sub(Output::Text { text: "Three places read it; none of them writes.".into() }),
    ));
    events.push(result(46_443, 46_440, later("13:40", 41_000), "done", false));
    events.push(noted(
        46_450,
        at("13:50"),
        Output::Compacted { trigger: Some("auto".into()), tokens_before: Some(150_000) },
    ));
    events.push(message(
        46_465,
        at("13:52"),
        "k3Qd",
        MessageKind::Assistant,
        "The pause could be kept in the worker, th",
    ));
    events.push(message(46_466, at("13:52"), "k3Qd", MessageKind::Interrupted, ""));
    events.push(Record { id: EventId(46_470), ts: at("13:53"), ..crash() });
    events.push(message(48_000, at("13:58"), "k3Qd", MessageKind::User, "Leave the tests of the old worker alone."));
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31");
    if let Some(agent) = model.roster.agents.get_mut(&id("k3Qd")) {
        agent.heard = NOW;
    }
    let desk = model.desk_mut();
    desk.folds.insert(EventId(46_440), true);
    model.partial.insert(id("k3Qd"), "Nothing but the store has to change".into());
    let mut field = Field::default();
    field
        .paste(
            &"a line of a log that is rather long, as such lines are; the end is not near, it is far, so far ok\n"
                .repeat(10_400),
        )
        .unwrap();
    field.insert(" What of this log is new since yesterday?");
    (model.desk_mut().field, model.desk_mut().purpose) = (field, Some(Purpose::Message));
    screen!("13-kinds-100x48", model);
}

#[test]
fn letters_after_ctrl_x() {
    let mut model = at_weaver_table((80, 24));
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
    let mut events = table_begin();
    events.push(crash());
    events.push(message(47_811, at("13:58"), "k3Qd", MessageKind::Assistant, PAUSE));
    events.push(message(47_900, at("13:59"), "k3Qd", MessageKind::Assistant, "More.\n\nAnd more."));
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    typed(&mut model, "Leave the tests of the old worker alone");
    model.focus = Focus::Browse;
    let desk = model.desk_mut();
    (desk.chosen, desk.seen) = (Some(Key(EventId(46_410), 0)), EventId(47_811));
    desk.place = Place::At { item: Key(EventId(46_360), 0), line: 1 };
    let found = vec![Key(EventId(46_402), 0), Key(EventId(46_410), 0)];
    model.search = Some(Search {
        words: Field::of("next_at"),
        typing: false,
        found,
        at: 1,
        back: Place::End,
        upto: Some(EventId(2_104)),
    });
    screen!("17-browse-search-80x24", model);
}

#[test]
fn who_needs_you_alone() {
    let mut model = at_weaver_table((80, 24));
    let mut home = Home { choice: Some(2), typing: true, entered: Timestamp(NOW.0 - 10_000), ..Home::default() };
    home.own.insert("q47902".into(), Field::of("Keep it for 30 days, then drop it"));
    model.side = Some(Side::Home(home));
    model.focus = Focus::Side;
    screen!("18-needs-you-80x24", model);
}

#[test]
fn separators() {
    let mut out = String::new();
    let mut show = |title: &str, begin: &str, cells: u16, change: &dyn Fn(&mut Model)| {
        let mut model = at_weaver_table((cells, 24));
        model.visit(id(begin));
        model.desk_mut().place = Place::End;
        change(&mut model);
        let line = draw::separator_line(&model, usize::from(cells)).to_string();
        assert_eq!(super::text::width(&line), usize::from(cells), "{title}: {line}");
        out.push_str(&format!("{title}\n{line}\n"));
    };
    let of = |model: &mut Model, begin: &str, change: &dyn Fn(&mut Agent)| {
        change(model.roster.agents.get_mut(&id(begin)).unwrap())
    };
    show("working, it speaks", "k3Qd", 80, &|model| {
        model.talks.clear();
        of(model, "k3Qd", &|agent| agent.heard = NOW);
    });
    show("working, a tool runs", "k3Qd", 80, &|_| {});
    show("evidence grows old (amber)", "k3Qd", 80, &|model| {
        model.talks.clear();
        of(model, "k3Qd", &|agent| agent.heard = Timestamp(NOW.0 - 120_000));
    });
    show("starting", "Zr81", 80, &|model| {
        of(model, "Zr81", &|agent| {
            (agent.view.activity, agent.ring, agent.view.spent) = (Activity::Starting, 0, Usage::default());
            agent.run = Some(RunView {
                attempts: 1,
                pid: None,
                last_output: Timestamp(NOW.0 - 2_000),
                ..run(id("Zr81"), RunPhase::Starting)
            });
        })
    });
    show("asks you", "pT0a", 80, &|_| {});
    show("silent", "Hy2x", 80, &|_| {});
    show("budget used up", "k3Qd", 80, &|model| {
        model.roster.questions.push(question(
            1,
            "k3Qd",
            About::Budget { of: Some(id("k3Qd")) },
            "?",
            NOW,
            words(&["stop"], false),
        ));
        of(model, "k3Qd", &|agent| agent.view.spent = dollars(5.02));
    });
    show("parked", "8wLm", 80, &|_| {});
    show("resting", "9fA2", 80, &|_| {});
    show("done, and you have not looked", "Zr81", 80, &|model| of(model, "Zr81", &|agent| agent.fresh = 2));
    show("crashed, resumes by itself", "k3Qd", 80, &|model| {
        of(model, "k3Qd", &|agent| {
            agent.view.activity = Activity::Starting;
            agent.run = Some(RunView { attempts: 3, pid: None, ..run(id("k3Qd"), RunPhase::Starting) });
        })
    });
    show("failed for good", "k3Qd", 80, &|model| {
        of(model, "k3Qd", &|agent| {
            agent.view.activity = Activity::Resting;
            agent.run = Some(RunView {
                attempts: 4,
                cause: Some(Cause::Crashed),
                last_output: Timestamp(NOW.0 - 120_000),
                ..run(id("k3Qd"), RunPhase::Ended)
            });
        })
    });
    show("asleep", "zz01", 80, &|_| {});
    show("dead", "u7Vd", 80, &|_| {});
    show("quest step", "0kGl", 80, &|_| {});
    show("daemon away", "k3Qd", 80, &|model| {
        model.link = Link::Away { since: at("14:02:11"), again: Timestamp(NOW.0 + 4_000) }
    });
    show("store in trouble", "k3Qd", 80, &|model| {
        model.roster.trouble = Some("the disk is full: nothing new is taken on".into())
    });
    show("60 columns", "k3Qd", 60, &|_| {});
    show("40 columns", "k3Qd", 40, &|_| {});
    show("120 columns", "k3Qd", 120, &|_| {});
    show("200 columns", "k3Qd", 200, &|_| {});
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "screens" }, {
        insta::assert_snapshot!("19-separators", out);
    });
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
