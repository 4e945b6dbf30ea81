//! The project of the design's screens, as the daemon would tell it.

use super::webhooks::webhooks_quest;
use crate::http::{
    AgentState, AgentView, AssignmentView, BudgetView, Doing, QuestLine, QuestionView, RunPhase, RunView, TakesView,
};
use crate::quest_document::QuestWord;
use crate::tui::look::Look;
use crate::tui::model::{Connection, Model};
use crate::tui::roster::RosterAgent;
use hatchery_core::ask::{About, StepTrouble};
use hatchery_core::outcome::Cause;
use hatchery_core::run::AttemptId;
use hatchery_core::usage::{ContextUse, Money, Usage};
use hatchery_core::why::{Activity, Evidence};
use hatchery_core::{AgentId, EventId, QuestId, Timestamp};
use serde_json::json;

/// Midnight of the day of all scenes.
pub(super) const DAY: i64 = 1_779_926_400_000;

pub(super) fn at(clock: &str) -> Timestamp {
    let parts: Vec<i64> = clock.split(':').map(|part| part.parse().unwrap()).collect();
    let seconds = parts[0] * 3_600 + parts[1] * 60 + parts.get(2).unwrap_or(&0);
    Timestamp(DAY + seconds * 1_000)
}

pub(super) fn id(begin: &str) -> AgentId {
    format!("{begin:A<22}").parse().unwrap()
}

pub(super) fn quest_id(begin: &str) -> QuestId {
    format!("{begin:A<22}").parse().unwrap()
}

pub(super) fn dollars(amount: f64) -> Usage {
    Usage { cost: Money::from_dollars(amount), ..Usage::default() }
}

/// An agent that rests, as the daemon tells it.
pub(super) fn agent(begin: &str, name: &str, parent: Option<&str>) -> RosterAgent {
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
        open_tools: 0,
        context: None,
        question: None,
        assignment: None,
        until: None,
        seat: None,
    };
    RosterAgent {
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

pub(super) fn run(agent: AgentId, phase: RunPhase) -> RunView {
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

pub(super) fn working(mut agent: RosterAgent, ring: usize, seconds_ago: i64, cost: f64) -> RosterAgent {
    agent.view.activity = Activity::Working;
    agent.heard = Timestamp(NOW.0 - seconds_ago * 1_000);
    agent.run = Some(run(agent.view.id, RunPhase::Running));
    agent.ring = ring;
    agent.view.spent = dollars(cost);
    agent
}

/// Lets agents work that were asleep.
pub(super) fn at_work_again(model: &mut Model, who: &[&str]) {
    for begin in who {
        let Some(mut known) = model.roster.agents.remove(&id(begin)) else { continue };
        known.view.state = AgentState::Alive;
        model.roster.agents.insert(id(begin), working(known, 0, 5, 0.1));
    }
}

/// Agents that have worked today, and have ended.
pub(super) fn done_again(model: &mut Model, who: &[&str]) {
    for begin in who {
        let Some(known) = model.roster.agents.get_mut(&id(begin)) else { continue };
        (known.view.state, known.view.last_active) = (AgentState::Alive, at("11:00"));
        let ended = run(known.view.id, RunPhase::Ended);
        known.run = Some(RunView { cause: Some(Cause::Completed), last_output: at("11:00"), ..ended });
    }
}

pub(super) fn in_quest(mut agent: RosterAgent, quest: &str, step: &str, role: &str) -> RosterAgent {
    agent.view.assignment =
        Some(AssignmentView { quest: quest_id(quest), step: step.parse().unwrap(), role: role.into() });
    agent
}

pub(super) fn question(
    number: u64,
    of: &str,
    about: About,
    text: &str,
    asked: Timestamp,
    takes: TakesView,
) -> QuestionView {
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

pub(super) fn words(words: &[&str], text: bool) -> TakesView {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    TakesView { words, text, ..TakesView::default() }
}

/// Agents of the quest whose part is done, and their steps.
const DONE: [(&str, &str); 8] = [
    ("siegemaster-queue", "queue"),
    ("siegemaster-schema", "schema"),
    ("codeweaver-schema", "schema"),
    ("lawbringer-schema", "schema"),
    ("codeweaver-metrics", "metrics"),
    ("chaoswhisperer", "requirements"),
    ("pathseeker", "plan"),
    ("spiritmender-schema", "schema"),
];
const TYPED_ERRORS: [&str; 8] = [
    "chaoswhisperer-errors",
    "pathseeker-errors",
    "codeweaver-loader",
    "siegemaster-loader",
    "lawbringer-loader",
    "codeweaver-messages",
    "siegemaster-messages",
    "lawbringer-messages",
];

pub(super) const NOW: Timestamp = Timestamp(DAY + (14 * 3_600 + 5 * 60 + 40) * 1_000);

/// The project of the design: 34 agents. Four of them need the user.
pub(in crate::tui) fn parcel_api(size: (u16, u16)) -> Model {
    let mut model = Model::new(size, NOW, Look::PLAIN);
    model.project = "parcel-api".into();
    model.link = Connection::Up;
    model.upto = EventId(48_213);
    let roster = &mut model.roster;
    roster.head = EventId(48_213);
    let mut add = |agent: RosterAgent| roster.agents.insert(agent.view.id, agent);
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
    table.view.context = Some(ContextUse { tokens: 76_000, window: Some(200_000) });
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
    let mut worker = of_quest("pT0a", "codeweaver-worker", "worker", 1);
    worker.view.spent = dollars(0.36);
    let queue = working(of_quest("qQ11", "codeweaver-queue", "queue", 2), 2, 3, 0.41);
    let metrics = working(of_quest("mM22", "spiritmender-metrics", "metrics", 3), 0, 9, 0.48);
    let admin = working(of_quest("0kGl", "codeweaver-admin-page", "admin-page", 4), 3, 14, 0.63);
    let done: Vec<RosterAgent> = DONE
        .into_iter()
        .zip(0..)
        .map(|((name, step), number)| {
            let mut done = of_quest(&format!("dn{number}"), name, step, 10 + number);
            done.view.last_active = Timestamp(NOW.0 - 21 * 60_000);
            let line = "Nothing to object to.".to_owned();
            if name == "siegemaster-queue" {
                let ended = run(done.view.id, RunPhase::Ended);
                let last_output = done.view.last_active;
                done.run = Some(RunView { cause: Some(Cause::Completed), last_output, ..ended });
                done.fresh = 1;
            }
            done.view.doing = Some(Doing { message: EventId(48_001), at: done.view.last_active, tool: None, line });
            done
        })
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
    for (number, name) in TYPED_ERRORS.into_iter().enumerate() {
        let mut done = in_quest(agent(&format!("te{number}"), name, Some("root")), "q1bb", "loader", "codeweaver");
        done.view.created = at("11:00");
        add(done);
    }
    for number in 0..7 {
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
        line(webhooks, "Send failed webhooks again, with backoff", QuestWord::Open, 1, 8, at("14:05:37")),
        line("q7aa", "Limit requests per tenant", QuestWord::Open, 0, 0, at("13:56")),
        line("q1bb", "Typed errors in the config loader", QuestWord::Complete, 4, 4, at("13:47")),
    ];
    roster.quests[2].spent = Money::from_dollars(2.07);
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

pub(super) fn attempt(begin: &str) -> AttemptId {
    serde_json::from_value(json!({ "agent": id(begin), "run": 1, "attempt": 1 })).unwrap()
}
