//! The separator in all its states.

use super::project::{NOW, agent, at, dollars, id, in_quest, question, run, words};
use super::talk::{at_weaver_table, message, with_talk};
use crate::http::{AgentState, RunPhase, RunView};
use crate::tui::draw;
use crate::tui::model::{AwaitedFork, BlockKey, Connection, Model, ScrollPosition};
use crate::tui::roster::RosterAgent;
use hatchery_core::ask::About;
use hatchery_core::event::AgentEvent;
use hatchery_core::outcome::Cause;
use hatchery_core::seat::Position;
use hatchery_core::usage::Usage;
use hatchery_core::why::{Activity, Evidence};
use hatchery_core::{Event, EventId, MessageKind, Record, Timestamp};
use serde_json::json;

#[test]
fn separators() {
    let mut out = String::new();
    let mut show = |title: &str, begin: &str, cells: u16, change: &dyn Fn(&mut Model)| {
        let mut model = at_weaver_table((cells, 24));
        model.visit(id(begin));
        model.desk_mut().place = ScrollPosition::End;
        change(&mut model);
        let line = draw::separator_line(&model, usize::from(cells)).to_string();
        assert_eq!(crate::tui::text::width(&line), usize::from(cells), "{title}: {line}");
        out.push_str(&format!("{title}\n{line}\n"));
    };
    let of = |model: &mut Model, begin: &str, change: &dyn Fn(&mut RosterAgent)| {
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
    show("wants to run something", "k3Qd", 80, &|model| {
        model.roster.questions.pop();
        model.roster.questions.push(super::wants_psql());
    });
    show("silent", "Hy2x", 80, &|_| {});
    show("budget used up", "k3Qd", 80, &|model| {
        model.roster.questions.pop();
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
    show("listening", "9fA2", 80, &|model| {
        of(model, "9fA2", &|agent| {
            agent.view.activity = Activity::Listening;
            agent.run = Some(run(agent.view.id, RunPhase::Running));
        })
    });
    show("resting", "9fA2", 80, &|model| {
        of(model, "9fA2", &|agent| {
            agent.run = Some(RunView { cause: Some(Cause::Completed), ..run(agent.view.id, RunPhase::Ended) });
        })
    });
    show("done, and you have not looked", "Zr81", 80, &|model| {
        let said = |number| message(number, at("13:53"), "Zr81", MessageKind::Assistant, "It works.");
        with_talk(model, "Zr81", vec![said(46_500), said(46_501), said(46_502)]);
        of(model, "Zr81", &|agent| agent.fresh = 2);
        let desk = model.desk_mut();
        (desk.place, desk.seen) = (ScrollPosition::At { item: BlockKey(EventId(46_500), 0), line: 0 }, EventId(46_500));
    });
    show("crashed, resumes by itself", "k3Qd", 80, &|model| {
        of(model, "k3Qd", &|agent| {
            agent.view.activity = Activity::Parked;
            let (cause, until) = (Some(Cause::Crashed), Some(Timestamp(NOW.0 + 4_000)));
            agent.run = Some(RunView { attempts: 2, pid: None, cause, until, ..run(id("k3Qd"), RunPhase::Parked) });
        })
    });
    show("failed for good", "5nQe", 80, &|model| {
        let alerts = in_quest(agent("5nQe", "codeweaver-alerts", Some("root")), "q7aa", "alerts", "codeweaver");
        model.roster.agents.insert(id("5nQe"), alerts);
        model.roster.sort_for_tests();
        of(model, "5nQe", &|agent| {
            agent.view.activity = Activity::Resting;
            agent.run = Some(RunView {
                attempts: 4,
                cause: Some(Cause::Crashed),
                last_output: Timestamp(NOW.0 - 120_000),
                ..run(id("5nQe"), RunPhase::Ended)
            });
        })
    });
    show("stopping", "k3Qd", 80, &|model| {
        of(model, "k3Qd", &|agent| {
            (agent.view.activity, agent.ring) = (Activity::Stopping, 0);
            let last_output = Timestamp(NOW.0 - 3_000);
            agent.run = Some(RunView { last_output, ..run(agent.view.id, RunPhase::Stopping) });
        })
    });
    let seat = |agent: &mut RosterAgent, name: &str, number| {
        (agent.view.name, agent.view.seat) = ((!name.is_empty()).then(|| name.to_owned()), Position::new(number));
    };
    show("asleep", "zz01", 80, &|model| {
        of(model, "zz01", &|agent| {
            seat(agent, "Bram", 3);
            agent.view.last_active = at("11:40");
        })
    });
    show("hatching", "zz01", 80, &|model| {
        of(model, "zz01", &|agent| {
            seat(agent, "", 5);
            agent.view.state = AgentState::Hatching;
            agent.view.until = Some(Timestamp(NOW.0 + 192_000));
        })
    });
    show("dead", "u7Vd", 80, &|model| {
        let killed = Event::Agent { agent: id("u7Vd"), what: AgentEvent::Killed { by: None, remark: None } };
        let killed = Record { id: EventId(47_800), ts: at("13:58"), session: None, event: killed };
        with_talk(model, "u7Vd", vec![killed]);
        of(model, "u7Vd", &|agent| agent.evidence = vec![Evidence { what: "it was killed".into(), at: at("13:58") }]);
    });
    show("a fork waits for its tools", "9fA2", 80, &|model| {
        of(model, "9fA2", &|agent| {
            (agent.view.activity, agent.ring) = (Activity::Working, 1);
            agent.run = Some(run(agent.view.id, RunPhase::Running));
        });
        let call = json!({ "id": "t1", "name": "Bash", "input": { "command": "cargo test" } }).to_string();
        with_talk(model, "9fA2", vec![message(46_343, at("14:05"), "9fA2", MessageKind::ToolCall, &call)]);
        let (child, waits_for) = (Some(id("Zr82")), Some(id("9fA2")));
        model.awaited_fork = Some(AwaitedFork { child, stay: false, forked: true, waits_for });
    });
    show("scrolled away, new below", "k3Qd", 80, &|model| {
        let desk = model.desk_mut();
        desk.place = ScrollPosition::At { item: BlockKey(EventId(46_351), 0), line: 0 };
        desk.seen = EventId(46_410);
    });
    show("two of one name", "zz01", 80, &|model| {
        for (begin, number) in [("zz01", 1), ("zz02", 8)] {
            of(model, begin, &|agent| {
                seat(agent, "Cael", number);
                (agent.view.state, agent.view.activity) = (AgentState::Alive, Activity::Working);
                (agent.heard, agent.run) = (Timestamp(NOW.0 - 40_000), Some(run(agent.view.id, RunPhase::Running)));
            });
        }
    });
    show("quest step", "0kGl", 80, &|model| of(model, "0kGl", &|agent| agent.heard = Timestamp(NOW.0 - 1_000)));
    show("daemon away", "k3Qd", 80, &|model| {
        model.link = Connection::Away { since: at("14:02:11"), again: Timestamp(NOW.0 + 4_000) }
    });
    show("store in trouble", "k3Qd", 80, &|model| {
        model.roster.trouble = Some("the disk is full: nothing new is taken on".into())
    });
    show("60 columns", "k3Qd", 60, &|_| {});
    show("40 columns", "k3Qd", 40, &|_| {});
    show("120 columns", "k3Qd", 120, &|_| {});
    show("200 columns", "k3Qd", 200, &|model| super::project::at_work_again(model, &["zz00"]));
    screen!(text "19-separators", out);
}

/// Whatever an agent is and however narrow the screen is: its glyph, its state and how many need you are there, and one `─` in the middle.
#[test]
fn a_narrow_separator_keeps_what_matters() {
    type Change = fn(&mut Model);
    let changes: [(&str, Change); 3] = [
        ("? 4", |_| {}),
        ("? 4", |model| model.roster.trouble = Some("the disk is full: nothing new is taken on".into())),
        ("from 14:02:11", |model| {
            model.link = Connection::Away { since: at("14:02:11"), again: Timestamp(NOW.0 + 4_000) }
        }),
    ];
    for (kept, change) in changes {
        let mut model = at_weaver_table((80, 24));
        let name = "an-agent-with-a-rather-long-name-of-its-own";
        model.roster.agents.get_mut(&id("9fA2")).unwrap().view.name = Some(name.into());
        change(&mut model);
        let agents: Vec<_> = model.roster.agents.keys().copied().collect();
        for agent in agents {
            model.visit(agent);
            let glyph = model.roster.state(&model.roster.agents[&agent]).glyph(model.roster.agents[&agent].ring);
            for cells in (40..=120).step_by(8) {
                let line = draw::separator_line(&model, cells).to_string();
                assert_eq!(crate::tui::text::width(&line), cells, "{line}");
                assert!(line.contains(kept) && line.ends_with('─') && line.contains(" ─"), "{cells}: {line}");
                assert!(line.contains('⊗') || line.contains(glyph), "{cells}: {line}");
            }
        }
    }
}

/// What Enter will do is said whole on the narrowest screen.
#[test]
fn a_narrow_bottom_line_says_what_enter_does() {
    let mut model = at_weaver_table((40, 24));
    for away in [false, true] {
        if away {
            model.link = Connection::Away { since: at("14:02:11"), again: Timestamp(NOW.0 + 4_000) };
        }
        let agents: Vec<_> = model.roster.agents.keys().copied().collect();
        for agent in agents {
            model.visit(agent);
            for text in ["", "hello", "/wait", "/clear"] {
                (model.desk_mut().field, model.desk_mut().purpose) = (crate::tui::field::Field::of(text), None);
                crate::tui::keys::settle_purpose(&mut model, true);
                let bottom = crate::tui::scenes::shown(&model).lines().last().unwrap_or_default().to_owned();
                assert!(!bottom.contains('…'), "{text}: {bottom}");
            }
        }
    }
}
