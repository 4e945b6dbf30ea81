//! The finder (`^X o`) and the keys (`^X ?`): what is listed for what was typed. Names are in memory, so an answer takes one frame.

use super::command::NAMES;
use super::look::Ink;
use super::model::Model;
use super::overlay::{Act, Finder, FinderEntry, Help, Overlay};
use super::roster::RosterAgent;
use super::text;
use super::words;
use crate::http::QuestLine;
use crate::quest_document::QuestWord;
use hatchery_core::AgentId;
use ratatui::text::{Line, Span};

/// How many agents are listed.
const MAX_AGENTS: usize = 8;
const MAX_QUESTS: usize = 2;
const MAX_COMMANDS: usize = 4;

/// What was found.
#[derive(Debug)]
pub struct FinderResult {
    pub entries: Vec<FinderEntry>,
    /// How many agents match in all.
    pub agents: usize,
    /// The agent that "Do with" is about.
    pub about: Option<AgentId>,
}

/// Ranked by match, then by who needs you, then by the last visit.
pub fn entries(model: &Model, finder: &Finder) -> FinderResult {
    let typed = finder.words.whole().to_lowercase();
    let mut out = Vec::new();
    if let Some(agent) = finder.with {
        out.extend(with_agent(model, agent).into_iter().filter(|entry| matches_text(&entry.left, &typed)));
        return FinderResult { entries: out, agents: 1, about: Some(agent) };
    }
    let visited = |id: &AgentId| model.visits.iter().position(|visit| visit == id).map_or(0, |at| at + 1);
    let mut agents: Vec<(u32, bool, usize, &RosterAgent)> = model
        .roster
        .agents
        .values()
        .filter(|agent| agent.view.parent.is_some())
        .filter_map(|agent| {
            let id = agent.view.id;
            let name = model.name(id);
            let step = agent.view.assignment.as_ref().map(|it| it.step.to_string()).unwrap_or_default();
            let doing = || doing(model, agent);
            let rank = rank(&name, &typed)
                .or_else(|| rank(&step, &typed).map(|rank| rank + 10))
                .or_else(|| (!typed.is_empty() && matches_text(&doing(), &typed)).then_some(15))?;
            let asks = model.roster.question_of(id).is_some();
            Some((rank, asks, visited(&id), agent))
        })
        .collect();
    let count = agents.len();
    agents.sort_by_key(|(rank, asks, visit, agent)| {
        let asked = model.roster.question_of(agent.view.id).map(|question| question.asked);
        let idle = !model.roster.state(agent).is_at_work();
        (*rank, !asks, asked, std::cmp::Reverse(*visit), idle, std::cmp::Reverse(agent.view.last_active))
    });
    let about = agents.first().map(|(.., agent)| agent.view.id);
    // A small screen keeps room for what can be done.
    let (rows, small) = (model.size.1, model.size.1 < 30);
    let most = usize::from(rows.saturating_sub(18) / 2).clamp(3, MAX_AGENTS);
    for (.., agent) in agents.iter().take(most) {
        out.push(of_agent(model, agent));
    }
    let of_quest =
        |quest: &&QuestLine| matches_text(&quest.request, &typed) || typed.len() > 1 && "quest".starts_with(&typed);
    // Open ones first, the last changed first.
    let mut quests: Vec<&QuestLine> = model.roster.quests.iter().filter(of_quest).collect();
    quests.sort_by_key(|quest| (quest.state != QuestWord::Open, std::cmp::Reverse(quest.changed)));
    for quest in quests.into_iter().take(if small { 1 } else { MAX_QUESTS }) {
        out.push(FinderEntry {
            section: "Go to",
            act: Act::Quest(quest.id),
            left: text::title(&quest.request),
            middle: "quest".to_owned(),
            right: format!("{} of {} steps · {}", quest.complete, quest.steps, super::roster::dollars(quest.spent)),
            end: text::age(model.now.0 - quest.changed.0),
        });
    }
    if let Some((words, count)) = finder.events.as_ref().filter(|(_, count)| *count > 0) {
        out.push(FinderEntry {
            section: "Go to",
            act: Act::Log(words.clone()),
            left: format!("events with {words} in them"),
            middle: "log".to_owned(),
            right: text::thousands(*count),
            end: String::new(),
        });
    }
    if let Some(agent) = about.filter(|_| !typed.is_empty()) {
        out.extend(with_agent(model, agent).into_iter().take(3));
    }
    if typed.len() > 1 && matches_text("new quest", &typed) {
        out.push(FinderEntry {
            section: "Do anywhere",
            act: Act::Propose("/quest new ".to_owned()),
            left: "new quest".to_owned(),
            middle: String::new(),
            right: "/quest new …".to_owned(),
            end: String::new(),
        });
    }
    let most = if small && out.last().is_some_and(|entry| entry.section == "Do anywhere") { 0 } else { MAX_COMMANDS };
    let commands = NAMES
        .iter()
        .filter(|(name, _, what)| !typed.is_empty() && (name.starts_with(&typed) || matches_text(what, &typed)));
    for (name, usage, what) in commands.take(most) {
        out.push(FinderEntry {
            section: "Do anywhere",
            act: Act::Propose(format!("/{name} ")),
            left: (*what).to_owned(),
            middle: String::new(),
            right: format!("/{name} {usage}"),
            end: String::new(),
        });
    }
    FinderResult { entries: out, agents: count, about }
}

/// What an agent does, in one line.
fn doing(model: &Model, agent: &RosterAgent) -> String {
    match (model.roster.question_of(agent.view.id), &agent.view.doing) {
        (Some(question), _) if question.permission.is_some() => "asks for permission".to_owned(),
        (Some(_), _) => "asks a question".to_owned(),
        (None, Some(doing)) => {
            let tool = doing.tool.as_deref().map(|tool| format!("{tool} ")).unwrap_or_default();
            text::clean(&format!("{tool}{}", doing.line)).into_owned()
        }
        (None, None) => words::state_of(model, agent, false).state,
    }
}

fn of_agent(model: &Model, agent: &RosterAgent) -> FinderEntry {
    let id = agent.view.id;
    FinderEntry {
        section: "Go to",
        act: Act::Go(id),
        left: model.name(id),
        middle: agent.view.assignment.as_ref().map_or_else(String::new, |it| it.step.to_string()),
        right: doing(model, agent),
        end: words::age_of(model, agent),
    }
}

fn with_agent(model: &Model, agent: AgentId) -> Vec<FinderEntry> {
    let name = model.name(agent);
    let entry = |left: &str, command: String, key: &str, shown: String| FinderEntry {
        section: "Do with",
        act: Act::Propose(command),
        left: left.to_owned(),
        middle: String::new(),
        right: shown,
        end: key.to_owned(),
    };
    vec![
        entry("say something to it", format!("/say {name} "), "s", format!("/say {name} …")),
        entry("fork it at its last message", format!("/fork {name}"), "f", format!("/fork {name}")),
        entry("interrupt its turn", format!("/interrupt {name}"), "I", format!("/interrupt {name}")),
        entry("end its run", format!("/stop {name}"), "X", format!("/stop {name}")),
        entry("send it a mail", format!("/send {name} "), "", format!("/send {name} …")),
        entry("kill it, after a question", format!("/kill {name}"), "", format!("/kill {name}")),
    ]
}

/// How many entries the finder lists.
pub fn entry_count(model: &Model) -> usize {
    match &model.overlay {
        Some(Overlay::Finder(finder)) => entries(model, finder).entries.len(),
        _ => 0,
    }
}

/// What Enter would do in the finder.
pub fn chosen_act(model: &Model) -> Option<Act> {
    let Some(Overlay::Finder(finder)) = &model.overlay else { return None };
    let found = entries(model, finder).entries;
    found.get(finder.at.min(found.len().checked_sub(1)?)).map(|entry| entry.act.clone())
}

/// How well a name fits: the begin, the begin of a part, somewhere, or letters in this order.
fn rank(name: &str, typed: &str) -> Option<u32> {
    if typed.is_empty() {
        return Some(0);
    }
    let name = name.to_lowercase();
    match name.find(typed) {
        Some(0) => return Some(0),
        Some(at) if name[..at].ends_with(['-', '_', ' ', '.']) => return Some(1),
        Some(_) => return Some(2),
        None => {}
    }
    let mut rest = name.chars();
    typed.chars().all(|letter| rest.any(|other| other == letter)).then_some(20)
}

fn matches_text(text: &str, typed: &str) -> bool {
    text.to_lowercase().contains(typed)
}

/// A key or command of the help.
struct HelpEntry {
    key: &'static str,
    what: &'static str,
    act: Option<Act>,
}

/// A key, what it does, and the letter after `^X` that does the same.
type KeyRow = (&'static str, &'static str, Option<char>);

const KEYS: [(&str, &[KeyRow]); 5] = [
    (
        "From your text",
        &[
            ("^X e", "next that needs you", Some('e')),
            ("^X o", "find or do", Some('o')),
            ("^X j k", "next, previous agent", Some('j')),
            ("^X ← →", "parent, first child", None),
            ("^X ^X", "back to the last one", None),
            ("^X 1–9", "by its number", None),
            ("Alt-e", "as ^X e; also o j k a", None),
        ],
    ),
    (
        "Panels: the same key closes them",
        &[
            ("^X h", "home: needs you, working", Some('h')),
            ("^X t", "agents as a tree", Some('t')),
            ("^X q", "quest: steps, slots", Some('q')),
            ("^X m", "mail", Some('m')),
            ("^X l", "log of this agent", Some('l')),
            ("^X w", "how we know", Some('w')),
            ("^X d", "changes    ^X c  cost", Some('d')),
        ],
    ),
    (
        "This agent",
        &[
            ("^X a", "answer the oldest", Some('a')),
            ("^X f", "fork    ^X F  with your text", Some('f')),
            ("^X I", "interrupt its turn", Some('I')),
            ("^X y", "copy its last answer", Some('y')),
            ("/stop", "ends its run; /kill asks", None),
        ],
    ),
    (
        "Your text",
        &[
            ("Enter", "sends", None),
            ("^J", "a new line; Shift-Enter,", None),
            ("", "Alt-Enter or \\ Enter, too", None),
            ("^X v", "in your editor", Some('v')),
            ("↑ ↓ ^R", "history, search it", None),
            ("", "", None),
            ("^C", "sets it aside, ↑ has it", None),
            ("Tab", "/commands @files names", None),
            ("^D", "on an empty line: leave", None),
        ],
    ),
    (
        "Conversation, after Esc",
        &[("j k", "message  Enter open, fold", None), ("/", "search   v     in your pager", Some('/'))],
    ),
];

/// The lines of the help, and which one is chosen.
pub fn help_lines(model: &Model, help: &Help, cells: usize) -> Vec<(Line<'static>, bool)> {
    let look = model.look;
    let at = chosen_in_help(help, cells);
    if is_in_columns(help, cells) {
        return key_columns(model, at);
    }
    let entries = help_entries(help);
    let line = |(number, entry): (usize, HelpEntry)| {
        let chosen = Some(number) == at;
        let mark = if chosen { Span::styled("❯", look.style(Ink::Accent)) } else { Span::raw(" ") };
        let key = Span::styled(
            text::padded(entry.key, 34.min(cells / 2)),
            look.style(if chosen { Ink::Bold } else { Ink::Accent }),
        );
        (
            Line::from(vec![mark, key, Span::raw(text::cut(entry.what, cells.saturating_sub(34.min(cells / 2) + 2)))]),
            chosen,
        )
    };
    let lines: Vec<(Line<'static>, bool)> = entries.into_iter().enumerate().map(line).collect();
    match lines.is_empty() {
        true => vec![(Line::styled(" No match.", look.style(Ink::Dim)), false)],
        false => lines,
    }
}

/// Whether the keys stand side by side, as a page to read. Nothing is chosen on it at first.
fn is_in_columns(help: &Help, cells: usize) -> bool {
    help.words.is_empty() && help.page == 0 && cells >= 76
}

/// The entry that Enter carries out.
fn chosen_in_help(help: &Help, cells: usize) -> Option<usize> {
    let last = help_entries(help).len().checked_sub(1)?;
    match help.at {
        None if is_in_columns(help, cells) => None,
        at => Some(at.unwrap_or(0).min(last)),
    }
}

/// The next or previous entry.
pub fn next_in_help(help: &Help, cells: usize, down: bool) -> Option<usize> {
    let last = help_entries(help).len().checked_sub(1)?;
    match (chosen_in_help(help, cells), down) {
        (None, true) => Some(0),
        (None, false) => Some(last),
        (Some(at), true) => Some((at + 1).min(last)),
        (Some(at), false) => Some(at.saturating_sub(1)),
    }
}

fn key_columns(model: &Model, chosen: Option<usize>) -> Vec<(Line<'static>, bool)> {
    let look = model.look;
    let is_entry = |(key, ..): &&KeyRow| !key.is_empty();
    let section = |at: usize| {
        let (title, rows) = &KEYS[at];
        let mut number: usize = KEYS[..at].iter().map(|(_, rows)| rows.iter().filter(is_entry).count()).sum();
        let mut lines = vec![(vec![Span::styled(text::padded(title, 39), look.style(Ink::Bold))], false)];
        for (key, what, letter) in *rows {
            let width = if at == 1 { 6 } else { 9 };
            let moved = letter.map(|letter| model.keys.shown(letter)).filter(|shown| Some(*shown) != *letter);
            let shown = moved.map_or_else(|| (*key).to_owned(), |shown| format!("^X {shown}"));
            let is_chosen = !key.is_empty() && Some(number) == chosen;
            number += usize::from(!key.is_empty());
            let ink = if is_chosen { Ink::Found } else { Ink::Plain };
            let spans = vec![
                Span::styled(text::padded(&shown, width), look.style(Ink::Accent).patch(look.style(ink))),
                Span::styled(text::padded(what, 39 - width), look.style(ink)),
            ];
            lines.push((spans, is_chosen));
        }
        lines
    };
    let blank = || vec![(vec![Span::raw(" ".repeat(39))], false)];
    let left: Vec<_> = [section(0), blank(), section(2), blank(), section(4)].concat();
    let right: Vec<_> = [section(1), blank(), section(3)].concat();
    (0..left.len().max(right.len()))
        .map(|at| {
            let mut spans = vec![Span::raw(" ")];
            let (first, is_first) = left.get(at).cloned().unwrap_or_else(|| blank().remove(0));
            let (second, is_second) = right.get(at).cloned().unwrap_or_default();
            spans.extend(first.into_iter().chain(second));
            (Line::from(spans), is_first || is_second)
        })
        .collect()
}

fn help_entries(help: &Help) -> Vec<HelpEntry> {
    let typed = help.words.whole().to_lowercase();
    let keys = KEYS.iter().flat_map(|(_, rows)| rows.iter()).filter(|(key, ..)| !key.is_empty());
    let keys = keys.map(|(key, what, letter)| HelpEntry { key, what, act: letter.map(Act::Key) });
    let commands =
        NAMES.iter().map(|(name, _, what)| HelpEntry { key: name, what, act: Some(Act::Propose(format!("/{name} "))) });
    let all: Vec<HelpEntry> = match (typed.is_empty(), help.page) {
        (true, 0) => keys.collect(),
        (true, _) => commands.collect(),
        (false, _) => keys.chain(commands).collect(),
    };
    all.into_iter().filter(|entry| matches_text(entry.key, &typed) || matches_text(entry.what, &typed)).collect()
}

/// What Enter would do in the help.
pub fn help_act(help: &Help, cells: usize) -> Option<Act> {
    let at = chosen_in_help(help, cells)?;
    help_entries(help).swap_remove(at).act
}
