//! Sentences about agents: their state with its evidence, and what Enter will do. No rule is decided here.

use super::conversation::BlockKind;
use super::model::{Connection, Model, Purpose};
use super::panel::{AnswerChoice, ChosenAnswer, chosen_by_number};
use super::roster::{RosterAgent, State, dollars};
use super::text;
use crate::http::RunPhase;
use hatchery_core::outcome::Cause;
use hatchery_core::permission::Access;

/// Speech that is younger than this is said now.
const NOW_MS: i64 = 2_000;
/// Evidence is old after this part of the silence that counts as stuck.
const OLD_PART: i64 = 10;
/// How much of what is asked for stands on the separator.
const ASKED_CELLS: usize = 24;

/// `1 message`, `2 messages`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", text::thousands(u64::try_from(count).unwrap_or(u64::MAX)))
}

/// A sentence of a conversation with the names of the agents in it. Harmless.
pub fn named(model: &Model, text: &str) -> String {
    const BEGIN: &str = "{agent:";
    let mut out = text::clean(text).into_owned();
    while let Some(from) = out.find(BEGIN) {
        let Some(length) = out[from..].find('}') else { break };
        let agent = out[from + BEGIN.len()..from + length].parse();
        out.replace_range(from..=from + length, &agent.map(|agent| model.name(agent)).unwrap_or_default());
    }
    out
}

/// The state of an agent and the newest evidence: in a narrow and in a wide form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWords {
    pub state: String,
    pub evidence: String,
    /// For a very narrow screen.
    pub short: String,
    /// The evidence is old.
    pub old: bool,
    /// The cost does not belong to what is said.
    pub with_cost: bool,
}

pub fn state_of(model: &Model, agent: &RosterAgent, wide: bool) -> StateWords {
    let (now, offset) = (model.now.0, model.offset_s);
    let since = |at: i64| text::age(now - at);
    let clock = |at: hatchery_core::Timestamp| text::clock(at, offset);
    let state = model.roster.state(agent);
    let asked = model.roster.question_of(agent.view.id).map(|question| question.asked);
    let mut said = StateWords {
        state: String::new(),
        evidence: String::new(),
        short: String::new(),
        old: false,
        with_cost: false,
    };
    let mut put = |state: &str, evidence: String| {
        (said.state, said.short, said.evidence) = (state.to_owned(), evidence.clone(), evidence);
    };
    match state {
        State::Working => {
            let tool = tool_since(model, agent);
            let heard = now - agent.heard.0;
            let (evidence, short) = match tool {
                Some(at) if wide => (format!("tool runs {}", since(at)), since(at)),
                Some(at) => (format!("tool {}", since(at)), since(at)),
                None if heard < NOW_MS => ("says this now".to_owned(), "now".to_owned()),
                None => (format!("said {} ago", text::age(heard)), text::age(heard)),
            };
            match waiting_fork(model, agent) {
                Some(words) => put(&words, String::new()),
                None => {
                    put("working", evidence);
                    said.short = short;
                }
            }
            let stall = agent.stall_ms.and_then(|stall| i64::try_from(stall).ok());
            said.old = tool.is_none() && stall.is_some_and(|stall| heard > stall / OLD_PART);
        }
        State::Asks => put(
            &asks(model, agent),
            match (asked, wide) {
                (Some(asked), true) => format!("for {}", since(asked.0)),
                (Some(asked), false) => since(asked.0),
                (None, _) => String::new(),
            },
        ),
        State::Silent => {
            put(&format!("silent for {}", since(agent.heard.0)), String::new());
        }
        State::BudgetUsed => {
            let limit = model.roster.budget(agent.view.id).map(|limit| format!(" of {}", dollars(limit)));
            let spent = format!("{}{}", dollars(agent.view.spent.cost), limit.unwrap_or_default());
            put("its budget is used up", spent);
        }
        State::Starting if agent.run.as_ref().is_some_and(|run| run.phase == RunPhase::Waiting) => {
            put("waiting for its turn", "as many agents run as may".to_owned());
        }
        State::Starting | State::Stopping => {
            let word = if state == State::Starting { "starting" } else { "stopping" };
            let began = agent.run.as_ref().map_or(agent.heard, |run| run.last_output);
            put(word, since(began.0));
        }
        State::Crashed => {
            let attempt = agent.run.as_ref().map_or(1, |run| run.attempts);
            match agent.run.as_ref().and_then(|run| run.until) {
                Some(at) => {
                    put(&format!("crashed, resumes in {}", text::age(at.0 - now)), format!("attempt {}", attempt + 1));
                }
                None => put("crashed, it is resumed", format!("attempt {attempt}")),
            }
        }
        State::Parked => {
            let run = agent.run.as_ref();
            let until = run.and_then(|run| run.until);
            let cause = run.and_then(|run| run.cause).map(cause_noun);
            let word = until.map_or_else(|| "parked".to_owned(), |until| format!("parked until {}", clock(until)));
            put(&word, cause.unwrap_or_default());
        }
        State::Listening => put("listening", String::new()),
        State::Resting => put("resting", String::new()),
        State::Done => put("done", String::new()),
        State::Failed => {
            let run = agent.run.as_ref().filter(|run| run.phase == RunPhase::Ended);
            let ended = run.map_or(agent.view.last_active, |run| run.last_output);
            let retries = run.map(|run| run.attempts.saturating_sub(1)).filter(|retries| *retries > 0);
            let word = format!("failed {} ago", since(ended.0));
            put(
                &word,
                retries
                    .map(|retries| counted(retries as usize, "retry").replace("retrys", "retries"))
                    .unwrap_or_default(),
            );
        }
        State::Asleep => put(&format!("asleep since {}", clock(agent.view.last_active)), "/wake".to_owned()),
        State::Hatching => {
            let left = agent.view.until.map(|at| (at.0 - now).max(0) / 1_000);
            let left = left.map(|s| format!("{}:{:02} left to choose a name", s / 60, s % 60));
            put("hatching", left.unwrap_or_default());
        }
        State::Dead => {
            let killed = agent.evidence.first().map_or(agent.view.last_active, |evidence| evidence.at);
            let by = match model.talks.get(&agent.view.id).and_then(super::conversation::ConversationView::killed_by) {
                Some(None) => " by you".to_owned(),
                Some(Some(by)) => format!(" by {}", model.name(by)),
                None => String::new(),
            };
            put("dead", format!("killed{by} {}", clock(killed)));
        }
    }
    let is_permission =
        || model.roster.question_of(agent.view.id).is_some_and(|question| question.permission.is_some());
    said.with_cost = match state {
        State::BudgetUsed => true,
        State::Parked | State::Crashed | State::Failed | State::Asleep | State::Hatching | State::Dead => !wide,
        State::Asks => !wide && is_permission(),
        _ => false,
    };
    match state {
        State::Listening | State::Resting => said.state = format!("{} since {}", said.state, clock(last_said(agent))),
        State::Done => said.state = format!("done {} ago", since(last_said(agent).0)),
        _ => {}
    }
    said
}

/// What an agent asks for, as far as it fits into a few words.
fn asks(model: &Model, agent: &RosterAgent) -> String {
    let permission = model.roster.question_of(agent.view.id).and_then(|question| question.permission.as_ref());
    let Some(permission) = permission else { return "asks you".to_owned() };
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let what = match &permission.access {
        Access::Execute { command } => format!("run {}", command.split_whitespace().next().unwrap_or_default()),
        Access::Edit { path } => format!("change {}", last(path)),
        Access::Read { path } => format!("read {}", last(path)),
        Access::Other | Access::OwnTool | Access::NotOffered => format!("use {}", permission.tool),
    };
    format!("asks you: {}?", text::cut(&text::clean(&what), ASKED_CELLS))
}

/// Why a run waits, as a noun.
fn cause_noun(cause: Cause) -> String {
    match cause {
        Cause::RateLimited => "rate limit".to_owned(),
        Cause::Overloaded => "overload".to_owned(),
        other => other.to_string().replace('_', " "),
    }
}

pub fn last_said(agent: &RosterAgent) -> hatchery_core::Timestamp {
    agent.run.as_ref().map_or(agent.view.last_active, |run| run.last_output)
}

/// Since when a tool of an agent runs.
pub fn tool_since(model: &Model, agent: &RosterAgent) -> Option<i64> {
    match model.talks.get(&agent.view.id) {
        Some(talk) if !talk.blocks().is_empty() => {
            let open = |kind: &BlockKind| matches!(kind, BlockKind::Tool(tool) if tool.outcome.is_none() && tool.denied.is_none());
            talk.blocks().last().filter(|block| open(&block.kind)).map(|block| block.at.0)
        }
        _ => agent.tool_since.map(|at| at.0),
    }
}

/// What a fork that you asked for waits for.
fn waiting_fork(model: &Model, agent: &RosterAgent) -> Option<String> {
    let id = agent.view.id;
    model.awaited_fork.as_ref().filter(|awaited| awaited.waits_for == Some(id))?;
    let blocks = model.talks.get(&id).map(|talk| talk.blocks()).unwrap_or_default();
    let running = blocks.iter().rev().find_map(|block| match &block.kind {
        BlockKind::Tool(tool) if tool.outcome.is_none() && tool.denied.is_none() => Some(tool.name.clone()),
        _ => None,
    });
    let tool = running.or_else(|| agent.view.doing.as_ref().and_then(|doing| doing.tool.clone()));
    Some(format!("forks when {} has ended", tool.as_deref().unwrap_or("its tool")))
}

/// The age that stands beside an agent in a list.
pub fn age_of(model: &Model, agent: &RosterAgent) -> String {
    let now = model.now.0;
    match model.roster.state(agent) {
        State::Parked => match agent.run.as_ref().and_then(|run| run.until) {
            Some(until) => text::clock(until, model.offset_s),
            None => text::age(now - agent.heard.0),
        },
        State::Asks | State::BudgetUsed | State::Silent => {
            let asked = model.roster.question_of(agent.view.id).map_or(agent.heard, |question| question.asked);
            text::age(now - asked.0)
        }
        State::Working => text::age(now - tool_since(model, agent).unwrap_or(agent.heard.0)),
        _ => text::age(now - last_said(agent).0),
    }
}

/// What Enter will do with the text that is being typed, in fewer words where there is little room.
pub fn enter_does(model: &Model) -> String {
    let does = enter_does_in_full(model);
    match text::width(&does) + 2 > usize::from(model.size.0) {
        true => enter_does_shortly(model).map_or(does, str::to_owned),
        false => does,
    }
}

/// The same where the sentence does not fit. None where its begin says enough.
fn enter_does_shortly(model: &Model) -> Option<&'static str> {
    let purpose = model.desk().purpose.filter(|_| !model.desk().field.is_empty());
    let is_said = matches!(purpose, None | Some(Purpose::Message)) && model.current.is_some();
    let agent = model.current.and_then(|agent| model.roster.agents.get(&agent));
    match (model.link, purpose, agent.map(|agent| model.roster.state(agent))) {
        (Connection::Away { .. }, ..) if is_said => Some("Enter keeps it until it can be sent."),
        (Connection::Away { .. }, ..) => Some("Away. Enter tries it all the same."),
        (_, Some(Purpose::Command), _) => Some("Enter carries the command out."),
        (_, Some(Purpose::Answer(id)), _) if model.roster.questions.iter().all(|it| it.id != id) => {
            Some("No longer asked. Enter keeps it here.")
        }
        (_, Some(Purpose::Answer(_)), _) => None,
        (.., Some(State::Parked | State::BudgetUsed)) => Some("It hears this when it goes on."),
        (.., Some(State::Stopping | State::Hatching)) => Some("Enter starts it again."),
        (.., Some(State::Asleep)) => Some("Enter wakes and starts it."),
        _ => None,
    }
}

fn enter_does_in_full(model: &Model) -> String {
    let (wide, narrow) = (model.size.0 >= 100, model.size.0 < 70);
    let desk = model.desk();
    if let Connection::Away { .. } = model.link {
        // Only what is said to an agent waits to be sent.
        let is_said = matches!(desk.purpose, None | Some(Purpose::Message)) && model.current.is_some();
        if !is_said {
            return "The daemon is away. Enter tries it all the same.".to_owned();
        }
        return "Enter keeps it and sends it when the daemon is back.".to_owned();
    }
    match desk.purpose.filter(|_| !desk.field.is_empty()) {
        Some(Purpose::Command) => {
            let words = super::command::warning(desk.field.raw());
            return words.unwrap_or("Enter carries the command out.").to_owned();
        }
        Some(Purpose::Answer(id)) => {
            let asked = model.roster.questions.iter().find(|question| question.id == id);
            if asked.is_none() {
                return format!("#{} is no longer asked. Enter keeps your words here.", text::thousands(id.0));
            }
            let chosen = asked.filter(|asked| !asked.takes.amount);
            let chosen = chosen.and_then(|asked| chosen_by_number(model, asked, &desk.field.whole()));
            return match chosen {
                Some(AnswerChoice { answer: ChosenAnswer::Own(_) | ChosenAnswer::ReadPlan(_), .. }) => {
                    "Enter chooses this.".to_owned()
                }
                Some(AnswerChoice { answer: ChosenAnswer::Deny, .. }) => {
                    format!("Enter answers #{}: Deny.", text::thousands(id.0))
                }
                Some(AnswerChoice { label, .. }) => format!("Enter answers #{}: {label}.", text::thousands(id.0)),
                None => format!("Enter answers #{}.", text::thousands(id.0)),
            };
        }
        Some(Purpose::Message) | None => {}
    }
    let Some(agent) = model.current.and_then(|agent| model.roster.agents.get(&agent)) else {
        return "Enter starts an agent.".to_owned();
    };
    if desk.field.is_empty()
        && let Some(question) = model.roster.question_of(agent.view.id)
    {
        if question.permission.is_some() {
            return "A number and Enter answer it, or ^X a.".to_owned();
        }
        return format!("What you type answers #{}.", text::thousands(question.id.0));
    }
    let waits = if wide {
        if model.size.0 >= 110 {
            "It is in the middle of a turn, and hears this when the turn ends."
        } else {
            "It is in a turn, and hears this when the turn ends."
        }
    } else if narrow {
        "Heard when its turn ends."
    } else {
        "It hears this when its turn ends."
    };
    match model.roster.state(agent) {
        State::Working | State::Silent | State::Asks => waits.to_owned(),
        State::Resting | State::Done | State::Failed if narrow => "Enter starts it.".to_owned(),
        State::Resting | State::Done | State::Failed => "Enter starts it.".to_owned(),
        State::Listening => "It hears this at once.".to_owned(),
        State::Starting | State::Crashed => "It hears this when it has started.".to_owned(),
        State::Stopping => "It is being stopped. Enter starts it again.".to_owned(),
        State::Parked => match agent.run.as_ref().and_then(|run| run.until) {
            Some(until) => format!("It is parked until {} and hears it then.", text::clock(until, model.offset_s)),
            None => "It is parked and hears it when it goes on.".to_owned(),
        },
        State::BudgetUsed => "Its budget is used up. It hears this when it goes on.".to_owned(),
        State::Asleep => "It is asleep. Enter wakes and starts it.".to_owned(),
        State::Hatching => "It has not hatched yet. Enter starts it.".to_owned(),
        State::Dead => "It is dead: Enter forks it with this.".to_owned(),
    }
}
