//! Slash commands: the words of the command line. A mistake runs nothing, and the text stays to be corrected.

use super::act;
use super::field::Field;
use super::model::Model;
use super::overlay::{Help, Overlay};
use super::update::{Effect, Tag};
use crate::client::paths::{quest_path, step_path};
use hatchery_core::{AgentId, EventId};
use serde_json::{Value, json};

/// A name is suggested from this likeness on.
const LIKE: f64 = 0.8;

/// A command: its name, what follows it, and what it does.
pub const NAMES: [(&str, &str, &str); 41] = [
    ("say", "AGENT TEXT", "say something to an agent, without answering"),
    ("answer", "[#ID] TEXT", "answer a question"),
    ("send", "AGENT TEXT", "send a mail"),
    ("check-mail", "", "your unread mail"),
    ("read-mail", "[#ID]", "read the oldest mail, or this one"),
    ("wait", "[AGENT…]", "wait for mail of agents"),
    ("interrupt", "[AGENT]", "interrupt its turn; its process stays"),
    ("stop", "[AGENT]", "end its run; the agent stays"),
    ("run", "[--name N] PROMPT", "start another agent"),
    ("fork", "[--at #ID] [--name N] [PROMPT]", "fork this agent, and go there"),
    ("kill", "[AGENT] [--cascade] [--remark T]", "end an agent for good; asks first"),
    ("rename", "NAME", "give this agent another name"),
    ("adopt", "", "continue a talk of Claude Code"),
    ("summon", "SEAT", "fill a seat for the first time"),
    ("wake", "[AGENT or SEAT]", "wake a sleeping agent"),
    ("clear", "", "start its history again; all of it stays in the log"),
    ("mark", "[LABEL]", "mark this place of its history"),
    ("rewind", "[LABEL or #ID]", "go back to a mark or a message"),
    ("history", "", "the whole conversation in your pager"),
    ("copy", "[code or all]", "copy its last answer, its code, or all"),
    ("find", "WORDS", "search this conversation"),
    ("pager", "", "the conversation in your pager"),
    ("agents", "[WORDS]", "find an agent"),
    ("tree", "", "agents as a tree"),
    ("next", "", "go to the next that needs you"),
    ("go", "AGENT", "go to an agent"),
    ("pin", "[1-9]", "give this agent a number"),
    ("why", "", "how we know what it does"),
    ("cost", "", "what was spent"),
    ("budget", "USD", "what this agent may spend"),
    ("diff", "", "what this agent has changed"),
    ("log", "[#ID]", "its events, or one of them"),
    ("quest", "new, list, show, pause, resume, retry, ward, budget, abandon …", "quests, as on the command line"),
    ("home", "", "who needs you"),
    ("mail", "", "your mail"),
    ("seats", "", "the seats"),
    ("help", "[WORDS]", "all keys and commands"),
    ("attach", "PATH", "add the text of a file to your message"),
    ("set", "KEY VALUE", "mouse on or off"),
    ("mouse", "", "turn the mouse on or off"),
    ("exit", "", "leave; agents go on"),
];

/// Carries out a command that was typed as your text. On a mistake the text stays.
pub fn run(model: &mut Model, text: &str) -> Vec<Effect> {
    match carry_out(model, text) {
        Ok(effects) => {
            // A kill asks first: its words stay until it is decided.
            if !matches!(model.overlay, Some(Overlay::Kill(_))) && model.desk().field.whole() == text {
                let kept = model.overlay.take();
                act::take_text(model);
                model.overlay = kept;
            }
            effects
        }
        Err(mistake) => {
            model.say(mistake);
            Vec::new()
        }
    }
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

/// The words after a command: flags with their values, and the rest.
#[derive(Debug, Default)]
struct Arguments<'a> {
    flags: Vec<(&'a str, &'a str)>,
    rest: &'a str,
}

impl<'a> Arguments<'a> {
    /// Reads the named flags anywhere before the text.
    fn read(mut rest: &'a str, with_value: &[&'a str], without: &[&'a str]) -> Result<Self, String> {
        let mut flags = Vec::new();
        loop {
            rest = rest.trim_start();
            if !rest.starts_with("--") {
                return Ok(Self { flags, rest: rest.trim_end() });
            }
            let (flag, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            if without.contains(&flag) {
                flags.push((flag, ""));
                rest = after;
            } else if with_value.contains(&flag) {
                let after = after.trim_start();
                let (value, after) = match after.strip_prefix('"').and_then(|after| after.split_once('"')) {
                    Some((value, after)) => (value, after),
                    None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
                };
                if value.is_empty() {
                    return Err(format!("{flag} needs a value."));
                }
                flags.push((flag, value));
                rest = after;
            } else {
                return Err(format!("There is no {flag} here."));
            }
        }
    }

    fn flag(&self, name: &str) -> Option<&'a str> {
        self.flags.iter().find(|(flag, _)| *flag == name).map(|(_, value)| *value)
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
            let need = format!("q{question}");
            let words = numbered_answer(model, question, words);
            let tag = Tag::Answer { need, words: words.clone() };
            vec![Effect::Post {
                tag,
                path: format!("/api/questions/{question}/answer"),
                body: json!({ "answer": words }),
            }]
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
            let tag = Tag::Show { title: "Mail that came".to_owned() };
            vec![Effect::Post {
                tag,
                path: "/api/mail/human/wait".into(),
                body: json!({ "from": from?, "timeout_ms": 25_000 }),
            }]
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
            let arguments = Arguments::read(rest, &["--name", "--harness", "--model", "--script"], &[])?;
            if arguments.rest.is_empty() {
                return Err("/run needs what the agent should do.".to_owned());
            }
            let with = json!({ "harness": arguments.flag("--harness"), "model": arguments.flag("--model"), "script": arguments.flag("--script") });
            let body = json!({ "prompt": arguments.rest, "name": arguments.flag("--name"), "with": with });
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
        "adopt" => vec![Effect::Get {
            tag: Tag::Show { title: "`hatchery adopt` continues one of these:".to_owned() },
            path: "/api/adopt".into(),
        }],
        "summon" => {
            let seat: u64 = rest.parse().map_err(|_| "/summon needs the number of a seat.".to_owned())?;
            vec![Effect::Post {
                tag: done(&format!("Seat {seat} is summoned.")),
                path: "/api/agents/summon".into(),
                body: json!({ "seats": [seat] }),
            }]
        }
        "wake" => match rest.parse::<u64>() {
            Ok(seat) => vec![Effect::Post {
                tag: done(&format!("Seat {seat} is woken.")),
                path: "/api/agents/wake".into(),
                body: json!({ "seats": [seat] }),
            }],
            Err(_) => {
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
        "history" | "pager" => vec![Effect::Pager(act::transcript(model))],
        "copy" => match (rest, act::last_answer(model)) {
            ("all", _) => vec![Effect::Copy(act::transcript(model))],
            (_, None) => return Err("It has said nothing yet.".to_owned()),
            ("code", Some(answer)) => vec![Effect::Copy(act::code_of(&answer))],
            (_, Some(answer)) => vec![Effect::Copy(answer)],
        },
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
            act::take_text(model);
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
            Some(id) => act::goto(model, id),
            None => act::open_sheet(model, super::panel::SheetKind::Log),
        },
        "budget" => {
            let limit = (!rest.is_empty() && rest != "none").then(|| rest.trim_start_matches('$').to_owned());
            let agent = current?;
            let tag = done(&format!("The budget of {} is set.", model.name(agent)));
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
        "attach" => {
            return Err("/attach: give your editor the file with ^X v, or name it with @ in your text.".to_owned());
        }
        "set" => match rest {
            "mouse on" | "mouse off" => {
                model.mouse = rest.ends_with("on");
                vec![Effect::Mouse(model.mouse)]
            }
            _ => return Err("/set knows mouse on and mouse off.".to_owned()),
        },
        "mouse" => {
            model.mouse = !model.mouse;
            vec![Effect::Mouse(model.mouse)]
        }
        "exit" | "quit" => {
            model.quit = true;
            Vec::new()
        }
        other => return Err(unknown(other)),
    })
}

fn quest(model: &mut Model, rest: &str, text: &str) -> Result<Vec<Effect>, String> {
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let rest = rest.trim();
    let done = |words: String| Tag::Done { words, text: text.to_owned() };
    // The quest of the current agent, or the one in the panel, or the last one.
    let usual = || {
        let of_current = model
            .current
            .and_then(|agent| model.roster.agents.get(&agent))
            .and_then(|it| it.view.assignment.as_ref())
            .map(|it| it.quest);
        let in_panel = match &model.side {
            Some(super::panel::Side::Quest(panel)) => Some(panel.quest),
            _ => None,
        };
        in_panel.or(of_current).or_else(|| model.roster.quests.last().map(|quest| quest.id))
    };
    let named = |word: &str| {
        let found: Vec<_> = model
            .roster
            .quests
            .iter()
            .filter(|quest| word.len() >= 4 && quest.id.to_string().starts_with(word))
            .collect();
        match found.as_slice() {
            [one] => Some(one.id),
            _ => None,
        }
    };
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (quest, after) = match named(first) {
        Some(quest) => (Some(quest), after.trim()),
        None => (usual(), rest),
    };
    let needed = || quest.ok_or("There is no quest. /quest new WHAT YOU WANT begins one.".to_owned());
    let post = |path: String, body: Value, words: String| vec![Effect::Post { tag: done(words), path, body }];
    Ok(match word {
        "new" => {
            let arguments = Arguments::read(
                rest,
                &["--harness", "--slots", "--ward", "--budget", "--model", "--isolation", "--script"],
                &["--approve-plan", "--hold"],
            )?;
            if arguments.rest.is_empty() {
                return Err("/quest new needs what you want to have.".to_owned());
            }
            let slots = arguments
                .flag("--slots")
                .map(|slots| slots.parse::<u32>().map_err(|_| format!("--slots {slots} is no number.")))
                .transpose()?;
            let mut body = json!({
                "request": arguments.rest,
                "slots": slots,
                "ward": arguments.flag("--ward"),
                "budget": arguments.flag("--budget"),
                "isolation": arguments.flag("--isolation"),
                "hold": arguments.flag("--hold").is_some(),
                "with": { "harness": arguments.flag("--harness"), "model": arguments.flag("--model"), "script": arguments.flag("--script") },
            });
            if arguments.flag("--approve-plan").is_some() {
                body["approve_plan"] = Value::Bool(true);
            }
            post("/api/quests".into(), body, "The quest begins. ^X q shows it.".to_owned())
        }
        "list" => {
            let lines: Vec<String> = model
                .roster
                .quests
                .iter()
                .map(|quest| {
                    format!(
                        "- {} {}/{} {}",
                        &quest.id.to_string()[..6],
                        quest.complete,
                        quest.steps,
                        quest.request.lines().next().unwrap_or_default()
                    )
                })
                .collect();
            let now = model.now;
            let words = if lines.is_empty() { "There is no quest.".to_owned() } else { lines.join("\n") };
            match model.current.and_then(|agent| model.talks.get_mut(&agent)) {
                Some(talk) => talk.add_here(words, now),
                None => model.say(words),
            }
            Vec::new()
        }
        "show" | "" => {
            let quest = needed()?;
            act::open_quest(model, Some(quest))
        }
        "pause" => post(quest_path(&needed()?.to_string(), "/pause"), json!({}), "The quest is paused.".to_owned()),
        "resume" => post(quest_path(&needed()?.to_string(), "/resume"), json!({}), "The quest goes on.".to_owned()),
        "abandon" => match after == "--yes" || after.ends_with(" --yes") {
            true => post(
                quest_path(&needed()?.to_string(), "/abandon"),
                json!({}),
                "The quest is abandoned. Its work is kept under rescue.".to_owned(),
            ),
            false => return Err(
                "This ends the quest for good and stops its agents; their work is kept. /quest abandon --yes does it."
                    .to_owned(),
            ),
        },
        "retry" if after.is_empty() => return Err("/quest retry needs the name of a step.".to_owned()),
        "retry" => {
            post(step_path(&needed()?.to_string(), after, "/retry"), json!({}), format!("{after} is tried again."))
        }
        "ward" => {
            let command = (!after.is_empty() && after != "none").then_some(after);
            post(
                quest_path(&needed()?.to_string(), "/ward"),
                json!({ "command": command }),
                "The ward is changed.".to_owned(),
            )
        }
        "budget" => {
            let limit = (!after.is_empty() && after != "none").then(|| after.trim_start_matches('$').to_owned());
            post(
                quest_path(&needed()?.to_string(), "/budget"),
                json!({ "limit": limit }),
                "The budget is set.".to_owned(),
            )
        }
        other => {
            let known = ["new", "list", "show", "pause", "resume", "retry", "ward", "budget", "abandon"];
            let hint = nearest(other, known.into_iter()).map_or_else(|| known.join(", "), |near| format!("{near}?"));
            return Err(format!("There is no /quest {other}. {hint}"));
        }
    })
}

/// `There is no /frok. /fork? Tab takes it.`
pub fn unknown(name: &str) -> String {
    match nearest(name, NAMES.iter().map(|(name, ..)| *name)) {
        Some(near) => format!("There is no /{name}. /{near}? Tab takes it."),
        None => format!("There is no /{name}. /help lists them."),
    }
}

/// The known word that is most like the one that was written.
pub fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let like = |word: &str| strsim::jaro_winkler(&written.to_lowercase(), &word.to_lowercase());
    known
        .map(|word| (like(word), word))
        .filter(|(likeness, _)| *likeness >= LIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

/// The agent that is meant, or who could be.
pub fn agent(model: &Model, reference: &str) -> Result<AgentId, String> {
    match model.roster.find(reference).as_slice() {
        [one] => Ok(*one),
        [] => {
            let bare = reference.trim_start_matches('@');
            let names: Vec<String> = model.roster.order().iter().map(|id| model.name(*id)).collect();
            let mut like: Vec<&String> =
                names.iter().filter(|name| name.starts_with(bare) && !bare.is_empty()).collect();
            like.truncate(3);
            let hint = match like.is_empty() {
                false => format!(" {}?", like.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")),
                true => {
                    nearest(bare, names.iter().map(String::as_str)).map(|near| format!(" {near}?")).unwrap_or_default()
                }
            };
            Err(format!("No living agent is called {bare}.{hint}"))
        }
        many => {
            let ids: Vec<String> = many.iter().map(|id| super::roster::short(*id)).collect();
            Err(format!("{} are called {reference}: {}?", super::text::count_word(many.len()), ids.join(" or ")))
        }
    }
}

/// The named agent, or the one that you see.
fn one_agent(model: &Model, rest: &str) -> Result<AgentId, String> {
    match rest.is_empty() {
        true => model.current.ok_or("There is no agent yet.".to_owned()),
        false => agent(model, rest),
    }
}

/// `AGENT TEXT`, or only a text for the agent that you see.
fn agent_and_text<'a>(model: &Model, rest: &'a str) -> Result<(AgentId, &'a str), String> {
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let found = model.roster.find(first);
    match (found.as_slice(), model.current) {
        ([one], _) if !after.trim().is_empty() => Ok((*one, after.trim())),
        (_, Some(current)) if !rest.is_empty() && !first.starts_with('@') && found.is_empty() => Ok((current, rest)),
        _ if rest.is_empty() || after.trim().is_empty() => Err("It needs an agent and a text.".to_owned()),
        _ => agent(model, first).map(|id| (id, after.trim())),
    }
}

fn question_and_text<'a>(model: &Model, rest: &'a str) -> Result<(EventId, &'a str), String> {
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if first.starts_with('#')
        && let Some(id) = event_id(first)
    {
        return Ok((id, after.trim()));
    }
    let of_current = model.current.and_then(|agent| model.roster.question_of(agent));
    let question = of_current.or_else(|| model.roster.questions.first()).ok_or("Nobody asks you anything.")?;
    match rest.is_empty() {
        true => Err("/answer needs your words, or the number of an answer.".to_owned()),
        false => Ok((question.id, rest)),
    }
}

/// `2` is the second answer that is offered.
fn numbered_answer(model: &Model, question: EventId, words: &str) -> String {
    let choices =
        model.roster.questions.iter().find(|it| it.id == question).map(super::panel::choices).unwrap_or_default();
    let chosen = words.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    match chosen.map(|choice| &choice.answer) {
        Some(super::panel::Answer::Word(word)) => word.clone(),
        _ => words.to_owned(),
    }
}

/// `#46,342`, `46342`.
fn event_id(text: &str) -> Option<EventId> {
    let digits = text.trim().trim_start_matches('#').replace(',', "");
    digits.parse().ok().map(EventId)
}

/// What a command will do, said before Enter.
pub fn warning(text: &str) -> Option<&'static str> {
    let name = text.strip_prefix('/')?.split_whitespace().next()?;
    Some(match name {
        "clear" => "Its history starts again from nothing. All of it stays in the log.",
        "rewind" => "It forgets what came after. All of it stays in the log.",
        "wait" => "Waits up to 25 s for mail to you. Agents go on.",
        "kill" => "Asks first, and shows who ends.",
        "stop" => "Ends its run and its processes. The agent stays.",
        _ => return None,
    })
}
