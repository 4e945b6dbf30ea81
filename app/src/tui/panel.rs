//! The panels beside the conversation: what is open, what is chosen in it, and what was typed in it. Each begins with a sentence.

use super::field::Field;
use super::look::Ink;
use super::model::Model;
use super::text;
use super::tool;
use crate::http::{PermissionView, QuestionView};
use hatchery_core::ask::{About, StepTrouble};
use hatchery_core::permission::Access;
use hatchery_core::{Address, AgentId, EventId, QuestId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// More rows of a request are not laid out for a frame.
const MAX_ASKED_ROWS: usize = 2_000;

/// The panel on the right.
#[derive(Clone, Debug, PartialEq)]
pub enum Side {
    Home(Home),
    Quest(QuestPanel),
    Sheet(Sheet),
}

/// Who needs you, with the answers in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// The key of the chosen need, or of an agent below the needs; none is the first one.
    pub chosen: Option<String>,
    /// The chosen answer of it, from 0.
    pub choice: Option<usize>,
    /// An answer is being typed.
    pub typing: bool,
    /// When the panel was entered: an answer needs that it could be read.
    pub entered: Timestamp,
    /// What became of answers: they stay until the panel closes.
    pub outcomes: BTreeMap<String, String>,
    /// The needs as they stood when the panel was entered, so that no row moves under the cursor.
    pub scroll: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestPanel {
    pub quest: QuestId,
    pub step: usize,
    /// The output of the last ward of the chosen step.
    pub ward: Option<(String, Vec<String>)>,
    pub scroll: usize,
}

/// A list: mail, log, evidence, changes, cost, seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    pub kind: SheetKind,
    /// The agent that it is about.
    pub agent: Option<AgentId>,
    pub title: String,
    pub rows: Vec<SheetRow>,
    pub cursor: usize,
    pub loading: bool,
    pub filter: Field,
    pub filtering: bool,
    /// The events of the log that were read, the oldest first.
    pub events: Vec<Value>,
    /// The log is searched on before this event.
    pub goes_on: Option<EventId>,
    /// Something happened that it shows: it is read again.
    pub stale: bool,
    /// When it was last read.
    pub read: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SheetKind {
    Mail,
    Log,
    Why,
    Changes,
    Cost,
    Seats,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetRow {
    pub left: String,
    pub right: String,
    pub ink: Ink,
    pub act: Option<SheetAct>,
}

/// What Enter does on a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SheetAct {
    ReadMail {
        id: EventId,
        from: Address,
    },
    ShowEvent(EventId),
    ShowFile(String),
    Go(AgentId),
    /// Writes a command on the bottom line, where Enter carries it out.
    Propose(String),
    /// A text that was read already.
    Read {
        title: String,
        text: String,
        /// Who wrote it, if it is a mail.
        from: Option<Address>,
    },
}

/// One way to answer a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerChoice {
    pub label: String,
    pub answer: ChosenAnswer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChosenAnswer {
    /// This word means something by itself.
    Word(String),
    /// Something of your own, after this beginning.
    Own(String),
    /// `deny`, with a reason if you type one.
    Deny,
    /// Opens the plan that the question is about. It answers nothing.
    ReadPlan(QuestId),
}

impl SheetAct {
    /// The agent that wrote a mail.
    pub fn sender(&self) -> Option<AgentId> {
        match self {
            Self::ReadMail { from: Address::Agent(agent), .. }
            | Self::Read { from: Some(Address::Agent(agent)), .. } => Some(*agent),
            _ => None,
        }
    }
}

impl ChosenAnswer {
    /// Whether words of yours belong to it.
    pub fn is_typed(&self) -> bool {
        matches!(self, Self::Own(_) | Self::Deny)
    }
}

impl Side {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Home(_) => "Home",
            Self::Quest(_) => "Quest",
            Self::Sheet(sheet) => sheet.kind.title(),
        }
    }
}

impl SheetKind {
    /// What the list is called until it is read.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mail => "Mail",
            Self::Log => "Log",
            Self::Why => "How we know",
            Self::Changes => "Changes",
            Self::Cost => "Cost",
            Self::Seats => "Seats",
        }
    }

    /// Whether the list is about one agent.
    pub fn is_of_one(self) -> bool {
        matches!(self, Self::Log | Self::Why | Self::Changes)
    }
}

impl SheetRow {
    pub fn plain(left: impl Into<String>) -> Self {
        Self { left: left.into(), right: String::new(), ink: Ink::Plain, act: None }
    }
}

impl Sheet {
    pub fn loading(kind: SheetKind, agent: Option<AgentId>, title: &str) -> Self {
        Self {
            kind,
            agent,
            title: title.to_owned(),
            rows: Vec::new(),
            cursor: 0,
            loading: true,
            filter: Field::default(),
            filtering: false,
            events: Vec::new(),
            goes_on: None,
            stale: false,
            read: Timestamp(0),
        }
    }
}

/// The ways to answer a question: what it takes, in words.
pub fn choices(model: &Model, question: &QuestionView) -> Vec<AnswerChoice> {
    let takes = &question.takes;
    let word =
        |label: &str, word: &str| AnswerChoice { label: label.to_owned(), answer: ChosenAnswer::Word(word.to_owned()) };
    let own = |label: &str, begin: &str| AnswerChoice {
        label: label.to_owned(),
        answer: ChosenAnswer::Own(begin.to_owned()),
    };
    let trouble = match question.about {
        About::Step { trouble, .. } => Some(trouble),
        _ => None,
    };
    let stall_ms = model.roster.agents.get(&question.agent).and_then(|agent| agent.stall_ms);
    let mut choices = Vec::new();
    for known in &takes.words {
        let label = match (known.as_str(), trouble) {
            ("wait", _) => match stall_ms.and_then(|stall| i64::try_from(stall).ok()) {
                Some(stall) => format!("Wait {} more", text::age(stall)),
                None => "Wait as long again".to_owned(),
            },
            ("stop", None) => "Stop it".to_owned(),
            ("stop", Some(_)) => "Stop".to_owned(),
            ("retry", _) => "Retry step".to_owned(),
            ("yes", Some(StepTrouble::Approval)) => "Approve plan".to_owned(),
            ("allow", _) => "Allow once".to_owned(),
            ("deny", _) => {
                choices.push(AnswerChoice { label: "Deny, with a reason …".to_owned(), answer: ChosenAnswer::Deny });
                continue;
            }
            ("always-agent", _) => format!("Always for {}", model.name(question.agent)),
            ("always-project", _) => format!("Always in {}", model.project),
            (other, _) => capitalised(&other.replace('_', " ")),
        };
        choices.push(word(&label, known));
    }
    choices.extend(takes.choices.iter().map(|offered| word(offered, offered)));
    if let (Some(StepTrouble::Approval), About::Step { quest, .. }) = (trouble, question.about) {
        choices.push(AnswerChoice { label: "Read plan".to_owned(), answer: ChosenAnswer::ReadPlan(quest) });
    }
    if takes.amount {
        choices.insert(0, own("Raise it to …", ""));
    }
    if takes.ward {
        choices.push(own("Another ward …", "ward: "));
    }
    if takes.text {
        let label = match (question.about, trouble) {
            (About::Silence(_), _) => "Say something …",
            (_, Some(StepTrouble::Approval)) => "Ask for a change …",
            (_, Some(StepTrouble::Ended)) => "Say something to it …",
            _ if choices.is_empty() => "Answer …",
            _ => "Another answer …",
        };
        choices.push(own(label, ""));
    }
    choices
}

/// Whether a question takes only certain words, such as a request for permission.
pub fn is_answered_by_words(question: &QuestionView) -> bool {
    !question.takes.text && !question.takes.amount && !question.takes.ward
}

/// What a number alone chooses. Where there is nothing to choose from, a number is an answer like other words.
pub fn chosen_by_number(model: &Model, question: &QuestionView, typed: &str) -> Option<AnswerChoice> {
    let place = typed.trim().parse::<usize>().ok()?.checked_sub(1)?;
    let mut choices = choices(model, question);
    (choices.len() > 1 && place < choices.len()).then(|| choices.swap_remove(place))
}

/// The answer that a number stands for, if it needs no more words.
pub fn numbered_word(model: &Model, question: &QuestionView, number: &str) -> Option<String> {
    let place = number.trim().parse::<usize>().ok()?.checked_sub(1)?;
    match &choices(model, question).get(place)?.answer {
        ChosenAnswer::Word(word) => Some(word.clone()),
        ChosenAnswer::Deny => Some("deny".to_owned()),
        _ => None,
    }
}

/// The answer that a number stands for, with the words behind it: `2 too slow` denies with a reason. Where a question takes any words, a
/// number may be one of them.
pub fn numbered_with_words(model: &Model, question: &QuestionView, typed: &str) -> Option<String> {
    let (number, words) = typed.trim().split_once(char::is_whitespace).filter(|_| !question.takes.text)?;
    let place = number.parse::<usize>().ok()?.checked_sub(1)?;
    match &choices(model, question).get(place)?.answer {
        ChosenAnswer::Deny => Some(format!("deny: {}", words.trim())),
        ChosenAnswer::Own(begin) => Some(format!("{begin}{}", words.trim())),
        ChosenAnswer::Word(_) | ChosenAnswer::ReadPlan(_) => None,
    }
}

/// The choices in a few rows, each choice in one piece.
pub fn numbered(choices: &[AnswerChoice], cells: usize) -> Vec<String> {
    let labels: Vec<String> = choices.iter().map(|choice| choice.label.clone()).collect();
    numbered_labels(&labels, cells)
}

/// The same for labels alone.
pub fn numbered_labels(labels: &[String], cells: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for (at, label) in labels.iter().enumerate() {
        let label = format!("{} {label}", at + 1);
        match rows.last_mut() {
            Some(row) if text::width(row) + 2 + text::width(&label) <= cells => {
                row.push_str("  ");
                row.push_str(&label);
            }
            _ => rows.push(text::cut(&label, cells)),
        }
    }
    rows
}

/// A request for permission: the question, and what it is about, in full.
pub fn permission_words(model: &Model, permission: &PermissionView) -> (String, String) {
    let place = permission.folder.as_deref().map(|folder| format!(", in {}", model.place_of_folder(folder)));
    let place = place.unwrap_or_default();
    match &permission.access {
        Access::Execute { command } => (format!("May it run this{place}?"), command.clone()),
        Access::Edit { path } => {
            let what = tool::asked_change(&permission.tool, &permission.input, path);
            (format!("May it change this{place}?"), what)
        }
        Access::Read { path } => (format!("May it read this{place}?"), path.clone()),
        Access::Other | Access::OwnTool | Access::NotOffered => {
            (format!("May it use {}{place}?", permission.tool), permission.input.clone())
        }
    }
}

/// What a request is about in rows, at most so many, with what each row means: lines that are added and removed have their sign.
pub fn asked_rows(what: &str, cells: usize, most: usize) -> Vec<(String, Ink)> {
    let mut rows = Vec::new();
    for (at, line) in what.lines().enumerate() {
        let ink = match line.get(..2) {
            Some("+ ") if at > 0 => Ink::Good,
            Some("- ") if at > 0 => Ink::Bad,
            _ => Ink::Code,
        };
        rows.extend(text::wrap(&text::clean(line), cells).into_iter().map(|row| (row, ink)));
        if rows.len() > MAX_ASKED_ROWS {
            break;
        }
    }
    if rows.len() > most {
        let rest = rows.len() + 1 - most;
        rows.truncate(most.saturating_sub(1));
        rows.push((format!("… {rest} more rows: ^X a, then v, shows all"), Ink::Dim));
    }
    rows
}

/// The same in one line.
pub fn permission_line(permission: &PermissionView) -> String {
    match &permission.access {
        Access::Execute { command } => format!("May it run  {command}?"),
        Access::Edit { path } => format!("May it change  {path}?"),
        Access::Read { path } => format!("May it read  {path}?"),
        Access::Other | Access::OwnTool | Access::NotOffered => {
            format!("May it use  {} {}?", permission.tool, permission.input)
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
