//! Reads the transcripts that the Claude CLI keeps of its conversations: one file of JSON lines for each, to which lines are only appended.
//! `docs/claude-cli.md` describes the format, as observed.
//!
//! A transcript is a tree. Each line of the conversation names the line before it, so a rewind or a retry makes a branch. The history is
//! the path from the last line back to the root ([`Tree::path`]). Two kinds of lines belong to the history but are not on that path: if
//! tools ran at the same time, each result names its own call, so all results but the last are beside the path; and the lines that a
//! compaction kept are only named.
//!
//! A line that cannot be understood is skipped. Only a line that is not JSON is an error.

use crate::MessageKind;
use crate::history::MAX_MESSAGE_BYTES;
use crate::json::{Fields, joined, object};
use crate::run::{tool_call, tool_result};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

pub use crate::json::NotJson;

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptLine {
    /// The folder in which the CLI worked.
    pub folder: Option<String>,
    pub part: LinePart,
}

/// The role of a line in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinePart {
    Knot(Knot),
    /// A line of a subagent, which has a conversation of its own.
    Subagent,
    /// A line with data of the CLI itself: titles, costs, requests, modes.
    Aside,
}

/// A line of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knot {
    pub uuid: String,
    /// The line before it. After a compaction, this is still the line before the compaction, so that the earlier messages are not lost.
    pub parent: Option<String>,
    pub role: LineOrigin,
    /// The messages that the line adds to the history, in the same form as the messages of runs. Often one; none if the line only connects
    /// others.
    pub said: Vec<(MessageKind, String)>,
}

/// The origin of a line, as far as [`Tree::path`] needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineOrigin {
    Model,
    /// The results of these tool calls.
    Tools(Vec<String>),
    /// A compaction, which kept these lines. They come after the summary.
    Compaction {
        summary: Option<String>,
        kept: Vec<String>,
    },
    Others,
}

/// Reads a line.
pub fn parse(line: &str) -> Result<TranscriptLine, NotJson> {
    let Some(line) = object(line)? else { return Ok(TranscriptLine { folder: None, part: LinePart::Aside }) };
    let part = match line.text("uuid") {
        Some(_) if line.flag("isSidechain") => LinePart::Subagent,
        Some(uuid) => LinePart::Knot(knot(&line, uuid)),
        None => LinePart::Aside,
    };
    Ok(TranscriptLine { folder: line.text("cwd"), part })
}

fn knot(line: &Fields, uuid: String) -> Knot {
    let (role, said) = match line.text("type").as_deref() {
        Some("user") => user(line),
        Some("assistant") => (LineOrigin::Model, assistant(line)),
        Some("system") => system(line),
        Some("attachment") => (LineOrigin::Others, attachment(line).into_iter().collect()),
        _ => (LineOrigin::Others, Vec::new()),
    };
    let parent = line.text("parentUuid").or_else(|| line.text("logicalParentUuid"));
    Knot { uuid, parent, role, said: said.into_iter().filter(|(_, content)| !content.is_empty()).collect() }
}

fn user(line: &Fields) -> (LineOrigin, Vec<(MessageKind, String)>) {
    let message = line.object("message");
    let text = message.as_ref().and_then(|message| message.text("content"));
    let blocks = message.map(|message| message.objects("content")).unwrap_or_default();
    let (results, rest): (Vec<Fields>, Vec<Fields>) =
        blocks.into_iter().partition(|block| block.text("type").as_deref() == Some("tool_result"));
    let words = text.unwrap_or_else(|| joined(&rest));
    let answered: Vec<String> = results.iter().filter_map(|block| block.text("tool_use_id")).collect();
    let said = results.iter().filter_map(result).map(|content| (MessageKind::ToolResult, content));
    let said = said.chain([(speaker(line, &words), fitted(&words, str::to_owned))]).collect();
    (if answered.is_empty() { LineOrigin::Others } else { LineOrigin::Tools(answered) }, said)
}

/// The author of a line with the role `user`. Many of these lines are not written by the user.
fn speaker(line: &Fields, words: &str) -> MessageKind {
    let origin = line.object("origin").and_then(|origin| origin.text("kind"));
    let by_machine = origin.is_some_and(|kind| kind != "human");
    if line.flag("isMeta") || line.flag("isCompactSummary") || by_machine || words.starts_with(BROKEN_OFF) {
        return MessageKind::System;
    }
    match COMMANDS.iter().any(|tag| words.starts_with(tag)) {
        true => MessageKind::Command,
        false => MessageKind::User,
    }
}

/// The beginning of the text that the CLI writes when a turn is interrupted.
const BROKEN_OFF: &str = "[Request interrupted by user";
/// The beginnings of commands to the CLI itself, and of what they printed.
const COMMANDS: [&str; 3] = ["<command-name>", "<command-message>", "<local-command-"];

fn result(block: &Fields) -> Option<String> {
    let id = block.text("tool_use_id")?;
    let content = block.text("content").unwrap_or_else(|| joined(&block.objects("content")));
    Some(fitted(&content, |content| tool_result(&id, content, block.flag("is_error"))))
}

fn assistant(line: &Fields) -> Vec<(MessageKind, String)> {
    // An error of the service, not a text of the model.
    if line.flag("isApiErrorMessage") {
        return Vec::new();
    }
    let blocks = line.object("message").map(|message| message.objects("content")).unwrap_or_default();
    blocks.iter().filter_map(block).collect()
}

fn block(block: &Fields) -> Option<(MessageKind, String)> {
    match block.text("type")?.as_str() {
        "text" => Some((MessageKind::Assistant, fitted(&block.text("text")?, str::to_owned))),
        "tool_use" => {
            let (id, name) = (block.text("id")?, block.text("name")?);
            let input = block.raw("input").map_or("{}", RawValue::get);
            Some((MessageKind::ToolCall, fitted(input, |input| tool_call(&id, &name, input))))
        }
        // Thoughts are not part of a history, neither here nor in runs.
        _ => None,
    }
}

fn system(line: &Fields) -> (LineOrigin, Vec<(MessageKind, String)>) {
    match line.text("subtype").as_deref() {
        Some("compact_boundary") => {
            let kept = line.object("compactMetadata").and_then(|about| about.object("preservedMessages"));
            let named = |name: &str| kept.as_ref().map(|kept| kept.list(name)).unwrap_or_default();
            let role = LineOrigin::Compaction {
                summary: kept.as_ref().and_then(|kept| kept.text("anchorUuid")),
                kept: named("uuids").into_iter().filter_map(crate::json::text).collect(),
            };
            (role, vec![(MessageKind::Clear, COMPACTED.to_owned())])
        }
        Some("local_command") => {
            let printed = line.text("content").unwrap_or_default();
            (LineOrigin::Others, vec![(MessageKind::Command, fitted(&printed, str::to_owned))])
        }
        _ => (LineOrigin::Others, Vec::new()),
    }
}

/// The content of the message that marks a compaction: nothing before it counts any more.
const COMPACTED: &str = "compacted";

/// Messages that arrived in the middle of a turn are in an attachment.
fn attachment(line: &Fields) -> Option<(MessageKind, String)> {
    let about = line.object("attachment").filter(|about| about.text("type").as_deref() == Some("queued_command"))?;
    let words = about.text("prompt").unwrap_or_else(|| joined(&about.objects("prompt")));
    let by_person = about.text("commandMode").is_none_or(|mode| mode == "prompt");
    let kind = if by_person { speaker(line, &words) } else { MessageKind::System };
    Some((kind, fitted(&words, str::to_owned)))
}

/// A content within the limit of a message. A longer one is cut, with a remark.
fn fitted(text: &str, content: impl Fn(&str) -> String) -> String {
    let whole = content(text);
    if whole.len() <= MAX_MESSAGE_BYTES {
        return whole;
    }
    let mut limit = MAX_MESSAGE_BYTES;
    loop {
        // Escapes make the text longer, so this may take several rounds.
        limit /= 2;
        let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let cut = content(&format!("{}\n[cut: {} bytes more]", &text[..end], text.len() - end));
        if cut.len() <= MAX_MESSAGE_BYTES {
            return cut;
        }
    }
}

/// The tree of one transcript. It does not contain the messages; the caller has the file.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    knots: Vec<Tied>,
    by_uuid: BTreeMap<String, usize>,
}

#[derive(Clone, Debug)]
struct Tied {
    uuid: String,
    parent: Option<String>,
    role: LineOrigin,
}

impl Tree {
    /// Adds the next line of the conversation. The lines are numbered in this order: 0, 1, 2, …
    pub fn add(&mut self, knot: &Knot) {
        let Knot { uuid, parent, role, .. } = knot;
        // If a line occurs twice, the last one counts, as in the CLI.
        self.by_uuid.insert(uuid.clone(), self.knots.len());
        self.knots.push(Tied { uuid: uuid.clone(), parent: parent.clone(), role: role.clone() });
    }

    /// The numbers of the lines that make up the history, in order. The lines that a compaction kept come twice: at their own place, and
    /// after the summary.
    pub fn path(&self) -> Vec<usize> {
        let chain = self.chain();
        let beside = self.beside(&chain);
        let mut path = Vec::with_capacity(chain.len());
        let (mut results, mut kept): (Vec<usize>, Option<(&str, &[String])>) = (Vec::new(), None);
        for at in chain {
            let knot = &self.knots[at];
            // Calls that were made at the same time come before all of their results.
            if knot.role != LineOrigin::Model {
                path.append(&mut results);
            }
            path.push(at);
            results.extend(beside.get(&at).into_iter().flatten());
            if let LineOrigin::Compaction { summary: Some(summary), kept: lines } = &knot.role {
                kept = Some((summary, lines));
            }
            if let Some((_, lines)) = kept.take_if(|(summary, _)| *summary == knot.uuid) {
                path.extend(lines.iter().filter_map(|uuid| self.by_uuid.get(uuid)));
            }
        }
        path.append(&mut results);
        path
    }

    /// The last line. If the transcript ends while several tools ran at the same time, the last call.
    fn leaf(&self) -> Option<usize> {
        let last = self.knots.len().checked_sub(1)?;
        let call = self.parent(last).filter(|_| matches!(self.knots[last].role, LineOrigin::Tools(_)));
        let Some(mut leaf) = call else { return Some(last) };
        for at in leaf + 1..last {
            if self.knots[at].role == LineOrigin::Model && self.parent(at) == Some(leaf) {
                leaf = at;
            }
        }
        Some(leaf)
    }

    fn parent(&self, at: usize) -> Option<usize> {
        self.knots[at].parent.as_ref().and_then(|parent| self.by_uuid.get(parent)).copied()
    }

    /// The numbers from the root to the last line.
    fn chain(&self) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = self.leaf();
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            chain.push(at);
            // If the named line is lost, the line above in the file is the best guess.
            next = self.knots[at].parent.as_ref().and_then(|parent| match self.by_uuid.get(parent) {
                Some(parent) => Some(*parent),
                None => at.checked_sub(1),
            });
        }
        chain.reverse();
        chain
    }

    /// The results that are beside the chain, by the line of their call.
    fn beside(&self, chain: &[usize]) -> BTreeMap<usize, Vec<usize>> {
        let on_chain: BTreeSet<usize> = chain.iter().copied().collect();
        let mut answered: BTreeSet<&str> = chain.iter().flat_map(|at| self.answers(*at)).collect();
        let mut beside: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in (0..self.knots.len()).filter(|at| !on_chain.contains(at)) {
            let Some(call) = self.parent(at).filter(|call| on_chain.contains(call)) else { continue };
            let new = self.answers(at).filter(|id| answered.insert(id)).count();
            if new > 0 {
                beside.entry(call).or_default().push(at);
            }
        }
        beside
    }

    fn answers(&self, at: usize) -> impl Iterator<Item = &str> {
        let ids = match &self.knots[at].role {
            LineOrigin::Tools(ids) => ids.as_slice(),
            LineOrigin::Model | LineOrigin::Compaction { .. } | LineOrigin::Others => &[],
        };
        ids.iter().map(String::as_str)
    }
}
