//! What is told in the plain mode, as lines: everything that is new in the model since the last time, each thing once. Pure.

use super::told;
use crate::http::QuestionView;
use crate::quest_document::QuestDocument;
use crate::tui::conversation::{BlockKind, ConversationView};
use crate::tui::model::{Connection, Focus, Model};
use crate::tui::overlay::Overlay;
use crate::tui::panel::{Sheet, SheetAct, Side, choices};
use crate::tui::roster::{Need, RosterAgent, State};
use crate::tui::words::counted;
use crate::tui::{command, text, words};
use hatchery_core::{AgentId, EventId};
use std::collections::{BTreeSet, VecDeque};

/// How many agents are listed.
const MAX_LISTED: usize = 50;

/// How many blocks are told of a conversation that is opened: the last exchange.
const RECALLED: usize = 2;

/// How many lines are waited for in the log.
const MAX_TYPED: usize = 100;

/// What was told already.
#[derive(Debug, Default)]
pub struct Spoken {
    /// The last event of the current agent that was told.
    upto: EventId,
    /// Tools that were told to have begun, and to have ended.
    begun: BTreeSet<EventId>,
    ended: BTreeSet<EventId>,
    needs: BTreeSet<String>,
    current: Option<AgentId>,
    /// How many notices were told.
    said: usize,
    /// The kill that was asked about.
    kill: Option<AgentId>,
    away: bool,
    greeted: bool,
    /// How many answers of commands in the current conversation were told.
    here: usize,
    /// The current conversation was not read yet when one came to it.
    unread: bool,
    /// What was typed in the terminal and is not in the log yet.
    typed: VecDeque<String>,
}

/// What stands before what is typed.
pub fn prompt(model: &Model) -> String {
    format!("{}> ", model.current.map_or_else(|| model.project.clone(), |agent| model.name(agent)))
}

impl Spoken {
    /// A line was typed, and stands in the terminal.
    pub fn was_typed(&mut self, line: &str) {
        self.typed.push_back(line.strip_prefix('/').filter(|rest| rest.starts_with('/')).unwrap_or(line).to_owned());
        if self.typed.len() > MAX_TYPED {
            self.typed.pop_front();
        }
    }

    /// Everything that is new. A panel that a command has opened is told and closed.
    pub fn tell(&mut self, model: &mut Model) -> Vec<String> {
        let mut lines = Vec::new();
        let away = matches!(model.link, Connection::Away { .. });
        if away != self.away {
            self.away = away;
            lines.push(match away {
                true => "The daemon is away. What you say is kept and sent when it is back.".to_owned(),
                false => "The daemon is back.".to_owned(),
            });
        }
        let arrives = model.current != self.current;
        if !self.greeted && !model.project.is_empty() {
            self.greeted = true;
            let needs = match model.roster.need_count() {
                0 => "Nobody needs you".to_owned(),
                1 => "One needs you".to_owned(),
                count => format!("{} need you", text::count_word(count)),
            };
            let with = if arrives { you_are_with(model) } else { String::new() };
            let agents = counted(living(model).count(), "agent");
            lines.push(format!("{}. {agents}. {needs}. {with}", model.project));
            lines.push("Say something and press Enter, or /help.".to_owned());
        } else if arrives && self.greeted {
            lines.push(you_are_with(model));
        }
        if arrives && self.greeted {
            self.current = model.current;
            self.upto = model.talk().map_or(EventId::START, ConversationView::upto);
            self.here = model.talk().map_or(0, |talk| answers_here(talk).count());
            self.unread = model.talk().is_none_or(|talk| !talk.is_read);
            // Of a tool that runs already, the end is told.
            let runs = |kind: &BlockKind| matches!(kind, BlockKind::Tool(tool) if tool.outcome.is_none());
            let blocks = model.talk().map(ConversationView::blocks).unwrap_or_default();
            self.begun.extend(blocks.iter().filter(|block| runs(&block.kind)).map(|block| block.id));
            if let Some(question) = model.current.and_then(|agent| model.roster.question_of(agent)) {
                question_lines(model, question, &mut lines);
                self.needs.insert(Need::Question(question).key());
            }
        }
        self.needs(model, &mut lines);
        self.conversation(model, &mut lines);
        let new = (model.said - std::mem::replace(&mut self.said, model.said)).min(model.notices.len());
        lines.extend(model.notices.range(model.notices.len() - new..).map(|(_, notice)| notice.clone()));
        self.panels(model, &mut lines);
        lines.into_iter().map(|line| text::clean(&line).trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }

    fn needs(&mut self, model: &Model, lines: &mut Vec<String>) {
        for need in model.roster.needs() {
            if !self.needs.insert(need.key()) {
                continue;
            }
            lines.push(need_line(model, need));
        }
    }

    fn conversation(&mut self, model: &Model, lines: &mut Vec<String>) {
        let Some(talk) = model.talk().filter(|talk| talk.is_read) else { return };
        let name = model.name(talk.agent);
        if std::mem::take(&mut self.unread) {
            // Of what was said before one came, the end is enough.
            let earlier = talk.blocks().len().saturating_sub(RECALLED);
            self.upto = talk.blocks()[..earlier].last().map_or(EventId::START, |block| block.id);
        }
        for block in talk.blocks() {
            let is_new = block.id > self.upto;
            match &block.kind {
                BlockKind::ToAgent { text, .. } if is_new => match self.typed.iter().position(|typed| typed == text) {
                    // The terminal has shown it while it was typed.
                    Some(at) => drop(self.typed.remove(at)),
                    None => lines.extend(told::lines_of(model, &name, block)),
                },
                BlockKind::Tool(tool) => {
                    let is_over = tool.outcome.is_some() || tool.denied.is_some();
                    match (is_over, self.begun.contains(&block.id)) {
                        (false, false) if is_new => {
                            self.begun.insert(block.id);
                            lines.push(format!("{name}: tool {}: began.", told::called(tool)));
                        }
                        (true, begun) if (is_new || begun) && self.ended.insert(block.id) => {
                            lines.extend(told::lines_of(model, &name, block));
                        }
                        _ => {}
                    }
                }
                BlockKind::Spoken { .. }
                | BlockKind::Note { .. }
                | BlockKind::Crashed { .. }
                | BlockKind::Across { .. }
                | BlockKind::Interrupted
                    if is_new =>
                {
                    lines.extend(told::lines_of(model, &name, block));
                }
                // A question is told with those that need you.
                _ => {}
            }
        }
        self.upto = self.upto.max(talk.upto());
        // They have no events of their own.
        lines.extend(answers_here(talk).skip(self.here).flat_map(rows));
        self.here = answers_here(talk).count();
    }

    /// What a command would show on the screen.
    fn panels(&mut self, model: &mut Model, lines: &mut Vec<String>) {
        let is_tree = std::mem::replace(&mut model.focus, Focus::Text) == Focus::Tree;
        if !matches!(model.overlay, Some(Overlay::Kill(_))) {
            self.kill = None;
        }
        match &model.overlay {
            Some(Overlay::Help(help)) => {
                let words = help.words.whole().to_lowercase();
                let all = command::NAMES.iter().map(|(name, usage, what)| match usage.is_empty() {
                    true => format!("/{name}: {what}."),
                    false => format!("/{name} {usage}: {what}."),
                });
                let before = lines.len();
                lines.extend(all.filter(|line| line.to_lowercase().contains(&words)));
                if lines.len() == before {
                    lines.push(format!("No command is about {words}. /help lists all."));
                }
                model.overlay = None;
            }
            Some(Overlay::Reader(reader)) => {
                lines.push(format!("{}:", reader.title));
                lines.extend(text::without_escapes(&reader.text).lines().map(str::to_owned));
                model.overlay = None;
            }
            Some(Overlay::Finder(_)) => {
                agents(model, lines);
                model.overlay = None;
            }
            Some(Overlay::Kill(ask)) => {
                if let (Some(_), Some(cascade)) = (&ask.alone, &ask.cascade)
                    && self.kill.replace(ask.agent) != Some(ask.agent)
                {
                    let name = model.name(ask.agent);
                    lines.push(match cascade.killed.len() {
                        0 | 1 => format!("Kill {name}? 1: keep it. 2: kill it."),
                        count => format!(
                            "Kill {name}? 1: keep it. 2: kill it alone. 3: kill it with all below, {count} in all."
                        ),
                    });
                }
            }
            Some(_) | None if is_tree => agents(model, lines),
            Some(_) | None => {}
        }
        match &model.side {
            Some(Side::Sheet(sheet)) if sheet.loading => {}
            Some(Side::Sheet(sheet)) => {
                sheet_lines(sheet, lines);
                model.side = None;
            }
            Some(Side::Quest(panel)) => {
                let Some(quest) = model.roster.documents.get(&panel.quest) else { return };
                quest_lines(quest, lines);
                model.side = None;
            }
            Some(Side::Home(_)) => {
                home_lines(model, lines);
                model.side = None;
            }
            None => {}
        }
    }
}

/// The answers of commands that are shown only here.
fn answers_here(talk: &ConversationView) -> impl Iterator<Item = &str> {
    talk.blocks().iter().filter_map(|block| match &block.kind {
        BlockKind::Here { text } => Some(text.as_str()),
        _ => None,
    })
}

fn need_line(model: &Model, need: Need<'_>) -> String {
    match need {
        Need::Question(asked) => {
            let name = model.name(asked.agent);
            format!("{name} needs you. Question {}: {}", asked.id, one_line(&asked.text))
        }
        Need::FailedStep { quest, step } => {
            let (step, title) = (&quest.steps[step].id, text::title(&quest.request));
            format!("Step {step} of {title} has failed. /quest retry tries it again.")
        }
    }
}

/// Who needs you, and who works.
fn home_lines(model: &Model, lines: &mut Vec<String>) {
    let needs = model.roster.needs();
    if needs.is_empty() {
        lines.push("Nothing waits for you.".to_owned());
    }
    lines.extend(needs.into_iter().map(|need| need_line(model, need)));
    for agent in model.roster.workers(model.now) {
        lines.push(format!("{}: {}", model.name(agent.view.id), does(model, agent)));
    }
}

/// A text as rows: a paragraph is one row, an entry of a list and a line of code as well.
pub(super) fn rows(text: &str) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    let mut paragraph = String::new();
    let mut in_code = false;
    let finish = |paragraph: &mut String, rows: &mut Vec<String>| {
        if !paragraph.is_empty() {
            rows.push(std::mem::take(paragraph));
        }
    };
    for line in text.lines() {
        let bare = line.trim();
        let fence = bare.strip_prefix("```");
        match (in_code, fence) {
            (false, Some(language)) => {
                finish(&mut paragraph, &mut rows);
                rows.push(if language.is_empty() { "Code:".to_owned() } else { format!("Code, {language}:") });
                in_code = true;
            }
            (true, Some(_)) => {
                rows.push("End of code.".to_owned());
                in_code = false;
            }
            (true, None) if bare.is_empty() => {}
            (true, None) => rows.push(text::clean(line.trim_end()).into_owned()),
            (false, None) if bare.is_empty() => finish(&mut paragraph, &mut rows),
            (false, None) => {
                let number = bare.trim_start_matches(|letter: char| letter.is_ascii_digit());
                let is_numbered = number.len() < bare.len() && (number.starts_with(". ") || number.starts_with(") "));
                let begins = ["- ", "* ", "+ ", "#", "|", "> "].iter().any(|begin| bare.starts_with(begin));
                if begins || is_numbered {
                    finish(&mut paragraph, &mut rows);
                } else if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(&one_line(bare).replace("**", ""));
            }
        }
    }
    finish(&mut paragraph, &mut rows);
    rows
}

fn you_are_with(model: &Model) -> String {
    let Some(agent) = model.current.and_then(|agent| model.roster.agents.get(&agent)) else { return String::new() };
    let name = model.name(agent.view.id);
    let asked = model.roster.question_of(agent.view.id).map(|question| question.asked);
    let state = match asked {
        Some(asked) => format!(". It has waited for you for {}", text::in_words(&text::age(model.now.0 - asked.0))),
        None => format!(", {}", words::state_of(model, agent, false).state),
    };
    let kept = match model.desk().field.is_empty() {
        true => String::new(),
        false => format!(" Your text is kept: \"{}\".", model.desk().field.shown()),
    };
    format!("You are with {name}{state}.{kept}")
}

fn question_lines(model: &Model, question: &QuestionView, lines: &mut Vec<String>) {
    lines.push(format!("Question {}: {}", question.id, one_line(&question.text)));
    if let Some(permission) = &question.permission {
        lines.push(format!("It wants to use {} with {}", permission.tool, one_line(&permission.input)));
    }
    if let Some(context) = &question.context {
        lines.push(format!("It says: {}", one_line(context)));
    }
    let choices = choices(model, question);
    let own = if question.takes.text { "Or your own words." } else { "" };
    let own_words = |label: &str| question.takes.text && label == "Another answer …";
    let numbered: Vec<String> = choices
        .iter()
        .enumerate()
        .filter(|(_, choice)| !own_words(&choice.label))
        .map(|(at, choice)| format!("Answer {}: {}.", at + 1, choice.label.trim_end_matches(" …")))
        .collect();
    lines.push(format!("{} {own}", numbered.join(" ")));
}

fn agents(model: &Model, lines: &mut Vec<String>) {
    let count = living(model).count();
    if count == 0 {
        lines.push("There is no agent yet.".to_owned());
    }
    for agent in living(model).take(MAX_LISTED) {
        let needs = matches!(model.roster.state(agent), State::Asks | State::Silent | State::BudgetUsed);
        let needs = if needs { " It needs you." } else { "" };
        lines.push(format!("{}: {}{needs}", model.name(agent.view.id), does(model, agent)));
    }
    if count > MAX_LISTED {
        lines.push(format!("{} more.", counted(count - MAX_LISTED, "agent")));
    }
}

/// Its state as a sentence. What it asks for is a question already.
fn does(model: &Model, agent: &RosterAgent) -> String {
    let state = words::state_of(model, agent, true).state;
    if state.ends_with('?') { state } else { format!("{state}.") }
}

/// The living agents, in the order of the tree, without the root. The root does nothing by itself.
fn living(model: &Model) -> impl Iterator<Item = &RosterAgent> {
    let root = model.roster.root();
    model.roster.order().iter().filter(move |id| Some(**id) != root).filter_map(|id| model.roster.agents.get(id))
}

fn sheet_lines(sheet: &Sheet, lines: &mut Vec<String>) {
    lines.push(format!("{}.", sheet.title.trim_end_matches('.')));
    lines.extend(sheet.rows.iter().map(|row| {
        // What stands in columns on the screen.
        let parts = row.left.trim_start_matches("● ").split("  ").chain(row.right.split("  "));
        let parts: Vec<&str> = parts.map(str::trim).filter(|part| !part.is_empty()).collect();
        match &row.act {
            Some(SheetAct::Propose(command)) => format!("{command}: {}", parts.join(", ")),
            _ => parts.join(", "),
        }
    }));
}

fn quest_lines(quest: &QuestDocument, lines: &mut Vec<String>) {
    lines.push(format!("Quest {}.", text::title(&quest.request)));
    for step in quest.shown_steps() {
        let status = serde_json::to_value(step.status).ok().and_then(|it| it.as_str().map(|it| it.replace('_', " ")));
        let doing = step.doing.as_deref().map(|doing| format!(", {doing}")).unwrap_or_default();
        lines.push(format!("Step {}: {}{doing}.", step.id, status.unwrap_or_default()));
    }
}

pub(super) fn one_line(text: &str) -> String {
    text::clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
