//! Slash commands: the words of the command line. A mistake runs nothing, and the text stays to be corrected.

mod arguments;
mod names;
pub(super) mod quest;

use super::act;
use super::field::Field;
use super::here;
use super::model::Model;
use super::overlay::{Help, Overlay};
use super::panel::Side;
use super::update::{Attach, Effect, Tag};
use super::window::Whole;
use arguments::{Arguments, agent_and_text, event_id, numbered_answer, one_agent, question_and_text};
use quest::quest;
use serde_json::json;

pub use arguments::{agent, reference};
pub use names::{NAMES, is_name, nearest, unknown, warning};

/// Carries out a command that was typed as your text. On a mistake the text stays.
pub fn run(model: &mut Model, text: &str) -> Vec<Effect> {
    let (agent, before) = (model.current, model.desk().clone());
    // Taken first: a command that goes to another agent leaves nothing behind.
    let typed = model.desk_mut().take_text();
    let effects = run_line(model, text);
    // A kill asks first: its words stay until it is decided.
    if effects.is_some() && !matches!(model.overlay, Some(Overlay::Kill(_))) {
        act::remember(model, agent, &typed.field);
    } else {
        let desk = model.desk_of_mut(agent);
        (desk.field, desk.purpose, desk.begun_on) = (before.field, before.purpose, before.begun_on);
    }
    effects.unwrap_or_default()
}

/// The same for a line that is not in your text. None on a mistake, which is told.
pub fn run_line(model: &mut Model, text: &str) -> Option<Vec<Effect>> {
    carry_out(model, text).map_err(|mistake| model.say(mistake)).ok()
}

/// The same for a command on the bottom line: on a mistake it stays there.
pub fn run_proposed(model: &mut Model, text: &str) -> Vec<Effect> {
    let mine = model.desk().field.clone();
    let purpose = model.desk().purpose;
    match carry_out(model, text) {
        Ok(effects) => effects,
        Err(mistake) => {
            model.overlay = Some(Overlay::Propose(Field::of(text)));
            model.say(mistake);
            debug_assert_eq!((&model.desk().field, model.desk().purpose), (&mine, purpose));
            Vec::new()
        }
    }
}

fn carry_out(model: &mut Model, text: &str) -> Result<Vec<Effect>, String> {
    let line = text.trim().strip_prefix('/').ok_or("A command begins with a slash.")?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let current = model.current.ok_or("There is no agent yet.".to_owned());
    let done = |words: &str| Tag::Done { words: words.to_owned(), text: text.to_owned() };
    Ok(match name {
        "say" => {
            let (agent, words) = agent_and_text(model, rest)?;
            act::say_to(model, agent, Field::of(words))
        }
        "answer" => {
            let (question, words) = question_and_text(model, rest)?;
            vec![act::answer_effect(model, question, numbered_answer(model, question, words))]
        }
        "send" => {
            let (agent, words) = agent_and_text(model, rest)?;
            let tag = done(&format!("The mail to {} is sent.", model.name(agent)));
            vec![Effect::Post {
                tag,
                path: "/api/mail".into(),
                body: json!({ "to": agent.to_string(), "body": words }),
            }]
        }
        "check-mail" | "mail" => act::open_sheet(model, super::panel::SheetKind::Mail),
        "read-mail" => {
            let mail = event_id(rest).map(|id| id.0);
            vec![Effect::Post { tag: Tag::Mail, path: "/api/mail/human/read".into(), body: json!({ "mail": mail }) }]
        }
        "wait" => {
            let from: Result<Vec<String>, String> =
                rest.split_whitespace().map(|who| agent(model, who).map(|id| id.to_string())).collect();
            let body = json!({ "from": from?, "timeoutMs": here::WAIT_S * 1_000 });
            model.say(format!("Waiting for mail, at most {} s.", here::WAIT_S));
            vec![Effect::Post { tag: Tag::Waited, path: "/api/mail/human/wait".into(), body }]
        }
        "interrupt" => {
            let who = one_agent(model, rest)?;
            act::post_about(model, who, "/interrupt", json!({}), "{} is interrupted.", text)
        }
        "stop" => {
            let who = one_agent(model, rest)?;
            act::post_about(model, who, "/stop", json!({}), "{} is stopped. It stays, and can be started again.", text)
        }
        "run" => {
            // Nothing here waits for its end, so `--detach` says what happens anyway.
            let arguments = Arguments::read(
                rest,
                &["--name", "--harness", "--model", "--script", "--permissions", "--folder", "--budget"],
                &["--stay", "--detach", "--worktree", "--no-worktree"],
            )?;
            if arguments.rest.is_empty() {
                return Err("/run needs what the agent should do.".to_owned());
            }
            let flag = |name: &str| arguments.flag(name);
            let with = json!({
                "harness": flag("--harness"), "model": flag("--model"), "script": flag("--script"),
                "permissions": flag("--permissions"), "folder": flag("--folder"), "stays": flag("--stay").map(|_| true),
            });
            let worktree = flag("--worktree").map(|_| true).or(flag("--no-worktree").map(|_| false));
            let body = json!({
                "prompt": arguments.rest, "name": flag("--name"), "worktree": worktree, "budget": flag("--budget"), "with": with,
            });
            vec![Effect::Post { tag: Tag::Run(text.to_owned()), path: "/api/runs".into(), body }]
        }
        "fork" => {
            let arguments = Arguments::read(rest, &["--at", "--name"], &[])?;
            let at = arguments.flag("--at").map(|at| event_id(at).ok_or(format!("{at} is no event."))).transpose()?;
            // The first word may be the agent that is forked.
            let (first, after) = arguments.rest.split_once(char::is_whitespace).unwrap_or((arguments.rest, ""));
            let named = model.roster.find(first);
            let (parent, prompt) = match (named.as_slice(), first.is_empty()) {
                ([one], false) => (*one, after.trim()),
                _ => (current?, arguments.rest),
            };
            let prompt = (!prompt.is_empty()).then(|| prompt.to_owned());
            let name = arguments.flag("--name").map(str::to_owned);
            act::fork(model, parent, at, name.as_deref(), prompt, None)
        }
        "kill" => {
            // Both forms are shown before anything is done, so the flag needs no effect of its own.
            let rest = rest.replace("--cascade", "");
            let (who, remark) = match rest.split_once("--remark") {
                Some((who, remark)) => (who.trim().to_owned(), Some(remark.trim().trim_matches('"').to_owned())),
                None => (rest.trim().to_owned(), None),
            };
            let who = one_agent(model, &who)?;
            act::ask_kill(model, who, remark)
        }
        "rename" => {
            if rest.is_empty() {
                return Err("/rename needs a name.".to_owned());
            }
            let agent = current?;
            act::post_about(
                model,
                agent,
                "/rename",
                json!({ "name": rest }),
                &format!("It is called {rest} now."),
                text,
            )
        }
        "adopt" if rest.is_empty() => vec![Effect::Get { tag: Tag::Adoptable, path: "/api/adopt".into() }],
        "adopt" => {
            let (session, flags) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let arguments = Arguments::read(flags.trim(), &["--name"], &[])?;
            let body = json!({ "session": session, "name": arguments.flag("--name") });
            vec![Effect::Post { tag: Tag::Adopted { text: text.to_owned() }, path: "/api/adopt".into(), body }]
        }
        "summon" => {
            let seats = seats(rest).ok_or("/summon needs numbers of seats, or nothing for all.")?;
            let body = json!({ "seats": (!seats.is_empty()).then_some(seats) });
            vec![Effect::Post { tag: done("The seats are being filled."), path: "/api/agents/summon".into(), body }]
        }
        "wake" => match seats(rest).filter(|seats| !seats.is_empty()) {
            Some(seats) => {
                let body = json!({ "seats": seats });
                vec![Effect::Post { tag: done("The seats are being filled."), path: "/api/agents/wake".into(), body }]
            }
            None => {
                let who = one_agent(model, rest)?;
                act::post_about(model, who, "/wake", json!({}), "{} is awake.", text)
            }
        },
        "clear" => {
            let agent = current?;
            act::post_about(
                model,
                agent,
                "/clear",
                json!({}),
                "The history of {} starts again. All of it stays in the log.",
                text,
            )
        }
        "mark" => {
            let agent = current?;
            act::post_about(model, agent, "/mark", json!({ "label": rest }), "The place is marked.", text)
        }
        "rewind" => {
            unknown_mark(model, rest)?;
            let body = match event_id(rest).filter(|_| rest.starts_with('#')) {
                Some(id) => json!({ "message": id.0 }),
                None if rest.is_empty() => json!({}),
                None => json!({ "mark": rest }),
            };
            let agent = current?;
            act::post_about(
                model,
                agent,
                "/rewind",
                body,
                "{} goes on from there. What came after stays in the log.",
                text,
            )
        }
        "history" | "pager" => {
            let arguments = Arguments::read(rest, &[], &["--full"])?;
            vec![Effect::Whole { agent: current?, what: Whole::Page { full: arguments.flag("--full").is_some() } }]
        }
        "copy" if rest == "all" => vec![Effect::Whole { agent: current?, what: Whole::Copy }],
        "copy" if model.talk().is_some_and(|talk| talk.later) => return Err(act::FURTHER_DOWN.to_owned()),
        "copy" => match (rest, act::last_answer(model)) {
            (_, None) => return Err("It has said nothing yet.".to_owned()),
            (number, _) if number.parse::<usize>().is_ok_and(|number| number > 0) => {
                let number: usize = number.parse().unwrap_or(1);
                let answer = act::answer_before(model, number - 1);
                vec![Effect::Copy(answer.ok_or_else(|| format!("It has not said {number} things here."))?)]
            }
            ("code", Some(answer)) => match act::code_of(&answer) {
                code if code.is_empty() => return Err("There is no code in its last answer.".to_owned()),
                code => vec![Effect::Copy(code)],
            },
            (_, Some(answer)) => vec![Effect::Copy(answer)],
        },
        "find" if rest.is_empty() => return Err("/find needs the words to look for.".to_owned()),
        // Where nothing can be scrolled, the events with these words are listed.
        "find" if model.from_end => {
            current?;
            drop(act::open_sheet(model, super::panel::SheetKind::Log));
            if let Some(Side::Sheet(sheet)) = &mut model.side {
                sheet.filter = Field::of(rest);
            }
            act::read_sheet(model)
        }
        "find" => {
            act::begin_search(model);
            if let Some(search) = &mut model.search {
                (search.words, search.typing) = (Field::of(rest), false);
            }
            act::search(model)
        }
        "agents" => {
            model.overlay =
                Some(Overlay::Finder(super::overlay::Finder { words: Field::of(rest), ..Default::default() }));
            vec![Effect::AllAgents]
        }
        "tree" => act::toggle_tree(model),
        "home" => act::toggle(model, 'h'),
        "next" => act::next_need(model),
        "go" => {
            let who = agent(model, rest)?;
            act::go(model, who)
        }
        "pin" => {
            let agent = current?;
            let number: usize = if rest.is_empty() {
                1
            } else {
                rest.parse().map_err(|_| "/pin needs a number from 1 to 9.".to_owned())?
            };
            let at =
                number.checked_sub(1).filter(|at| *at < model.pins.len()).ok_or("/pin needs a number from 1 to 9.")?;
            model.pins.iter_mut().filter(|pin| **pin == Some(agent)).for_each(|pin| *pin = None);
            model.pins[at] = Some(agent);
            model.say(format!("{} has the number {number}.", model.name(agent)));
            Vec::new()
        }
        "why" => act::open_sheet(model, super::panel::SheetKind::Why),
        "cost" => act::open_sheet(model, super::panel::SheetKind::Cost),
        "diff" => act::open_sheet(model, super::panel::SheetKind::Changes),
        "seats" => act::open_sheet(model, super::panel::SheetKind::Seats),
        "log" => match event_id(rest) {
            Some(id) => act::goto(model, id)?,
            None => act::open_sheet(model, super::panel::SheetKind::Log),
        },
        "budget" => {
            let agent = current?;
            let name = model.name(agent);
            let limit = amount("/budget", rest)?;
            let tag = done(&match &limit {
                Some(limit) => format!("{name} may spend ${limit} in all."),
                None => format!("{name} has no budget of its own any more."),
            });
            vec![Effect::Post {
                tag,
                path: "/api/budgets".into(),
                body: json!({ "agent": agent.to_string(), "limit": limit }),
            }]
        }
        "quest" => quest(model, rest, text)?,
        "help" => {
            model.overlay = Some(Overlay::Help(Help { words: Field::of(rest), ..Help::default() }));
            Vec::new()
        }
        "attach" | "mouse" if model.from_end => {
            let instead = if name == "attach" { " @PATH in a message names a file." } else { "" };
            return Err(format!("/{name} needs the whole screen.{instead}"));
        }
        "attach" => match (rest, model.too_long.take()) {
            ("", None) => return Err("/attach needs the path of a file. Tab after @ completes one.".to_owned()),
            ("", Some(pasted)) => vec![Effect::Attach(Attach::Paste(pasted))],
            (path, _) => vec![Effect::Attach(Attach::File(path.trim_start_matches('@').to_owned()))],
        },
        "set" => set(model, rest)?,
        "mouse" => {
            model.choose_mouse(!model.mouse);
            vec![Effect::Mouse(model.mouse)]
        }
        "exit" | "quit" => {
            model.quit = true;
            Vec::new()
        }
        other => return Err(unknown(other)),
    })
}

/// An amount in dollars, or `none`.
fn amount(command: &str, words: &str) -> Result<Option<String>, String> {
    match words.trim_start_matches('$') {
        "" => Err(format!("{command} needs an amount in dollars, or none: {command} 5")),
        "none" => Ok(None),
        amount => Ok(Some(amount.to_owned())),
    }
}

/// The numbers of seats.
fn seats(words: &str) -> Option<Vec<u64>> {
    words.split_whitespace().map(|seat| seat.parse().ok()).collect()
}

/// `/set KEY on|off`, until the terminal is left. `[tui]` in the settings holds for the next time.
fn set(model: &mut Model, rest: &str) -> Result<Vec<Effect>, String> {
    const KNOWN: [&str; 4] = ["bell", "motion", "mouse", "follow_fork"];
    let (key, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !KNOWN.contains(&key) {
        let hint = nearest(key, KNOWN.into_iter()).map(|near| format!(" {near}?")).unwrap_or_default();
        return Err(format!("/set knows {}.{hint}", KNOWN.join(", ")));
    }
    let on = match value.trim() {
        "on" | "true" => true,
        "off" | "false" => false,
        _ => return Err(format!("/set {key} needs on or off.")),
    };
    match key {
        "bell" => model.bell = on,
        "motion" => model.roster.still = !on,
        "follow_fork" => model.follow_fork = on,
        _ => {
            model.mouse = on;
            return Ok(vec![Effect::Mouse(on)]);
        }
    }
    model.say(format!(
        "{key} is {} until you leave. [tui] in hatchery.toml holds for longer.",
        if on { "on" } else { "off" }
    ));
    Ok(Vec::new())
}

/// A mark that is not there, where all of the history is known here.
fn unknown_mark(model: &Model, label: &str) -> Result<(), String> {
    let Some(talk) = model.talk().filter(|talk| talk.is_read && !talk.more && !talk.later && talk.inherited.is_none())
    else {
        return Ok(());
    };
    let marks = talk.marks();
    match label.is_empty() || label.starts_with('#') || marks.contains(&label) {
        true => Ok(()),
        false if marks.is_empty() => Err(format!("/rewind: no mark {label}. There is none yet: /mark {label}")),
        false => Err(format!("/rewind: no mark {label}. Marks: {}.", marks.join(", "))),
    }
}
