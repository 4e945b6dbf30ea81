//! Reads the transcripts that the Claude CLI keeps of its conversations: a file of JSON lines for each, only ever appended to.
//! `docs/claude-cli.md` has the form, as measured.
//!
//! A transcript is a tree. Each line of the conversation names the one before it, so a rewind or a retry makes a branch, and
//! what counts is the path from the last line back to the root ([`Tree::path`]). Two things are not on it and belong to it all
//! the same: of tools that ran side by side each result names its own call, so all but the last hang beside the path; and
//! what a compaction kept is only named.
//!
//! A line that is strange costs nothing but itself. Only what is not JSON is told apart.

use crate::MessageKind;
use crate::history::MAX_MESSAGE_BYTES;
use crate::json::Fields;
use crate::run::{tool_call, tool_result};
use crate::stream_json::{NotJson, joined, object};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptLine {
    /// The folder that the CLI worked in.
    pub folder: Option<String>,
    pub part: LinePart,
}

/// Which part a line has in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinePart {
    Knot(Knot),
    /// A sub-agent's: it has a conversation of its own.
    Subagent,
    /// The CLI's own bookkeeping: titles, costs, requests, modes.
    Aside,
}

/// A place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knot {
    pub uuid: String,
    /// The line before it. Over a compaction, too: what was said before is not lost.
    pub parent: Option<String>,
    pub role: LineOrigin,
    /// What it adds to the history, in the shapes that runs use. Often one thing; nothing when it only holds others together.
    pub said: Vec<(MessageKind, String)>,
}

/// The origin of a line, as far as the path needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineOrigin {
    Model,
    /// Answers to these calls of tools.
    Tools(Vec<String>),
    /// A compaction, which kept these lines; they come after the summary.
    Compaction {
        summary: Option<String>,
        kept: Vec<String>,
    },
    Others,
}

/// What a line says.
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

/// Who speaks in a line that has the role `user`. Much of what the model is told there is not a person's word.
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

/// What the CLI writes when a turn is broken off.
const BROKEN_OFF: &str = "[Request interrupted by user";
/// How commands to the CLI itself begin, and what they printed.
const COMMANDS: [&str; 3] = ["<command-name>", "<command-message>", "<local-command-"];

fn result(block: &Fields) -> Option<String> {
    let id = block.text("tool_use_id")?;
    let content = block.text("content").unwrap_or_else(|| joined(&block.objects("content")));
    Some(fitted(&content, |content| tool_result(&id, content, block.flag("is_error"))))
}

fn assistant(line: &Fields) -> Vec<(MessageKind, String)> {
    // A failure of the service, not the model's words.
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
        // Thoughts are no part of a history, here or in runs.
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

/// What stands in a history where nothing before counts any more, because it was compacted.
const COMPACTED: &str = "compacted";

/// What was said in the middle of a turn is attached to it.
fn attachment(line: &Fields) -> Option<(MessageKind, String)> {
    let about = line.object("attachment").filter(|about| about.text("type").as_deref() == Some("queued_command"))?;
    let words = about.text("prompt").unwrap_or_else(|| joined(&about.objects("prompt")));
    let by_person = about.text("commandMode").is_none_or(|mode| mode == "prompt");
    let kind = if by_person { speaker(line, &words) } else { MessageKind::System };
    Some((kind, fitted(&words, str::to_owned)))
}

/// A content within the limit of a message. What is too long is cut, and says so.
fn fitted(text: &str, content: impl Fn(&str) -> String) -> String {
    let whole = content(text);
    if whole.len() <= MAX_MESSAGE_BYTES {
        return whole;
    }
    let mut limit = MAX_MESSAGE_BYTES;
    loop {
        // Escapes make it longer again, so it may take a few rounds.
        limit /= 2;
        let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let cut = content(&format!("{}\n[cut: {} bytes more]", &text[..end], text.len() - end));
        if cut.len() <= MAX_MESSAGE_BYTES {
            return cut;
        }
    }
}

/// The knots of one transcript, by what they are called. What they say is left to the caller, who has the file.
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
    /// The next one. They are numbered as they come: 0, 1, 2, …
    pub fn add(&mut self, knot: &Knot) {
        let Knot { uuid, parent, role, .. } = knot;
        // If a line is there twice, the last one counts, as in the CLI.
        self.by_uuid.insert(uuid.clone(), self.knots.len());
        self.knots.push(Tied { uuid: uuid.clone(), parent: parent.clone(), role: role.clone() });
    }

    /// The numbers of the knots that make up the history, in order. What a compaction kept comes twice: where it was said,
    /// and after the summary.
    pub fn path(&self) -> Vec<usize> {
        let chain = self.chain();
        let beside = self.beside(&chain);
        let mut path = Vec::with_capacity(chain.len());
        let (mut results, mut kept): (Vec<usize>, Option<(&str, &[String])>) = (Vec::new(), None);
        for at in chain {
            let knot = &self.knots[at];
            // Calls that were made at once come before all of their results.
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

    /// The last line; of one that broke off while tools ran side by side, the last call.
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

    /// From the root to the last line.
    fn chain(&self) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = self.leaf();
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            chain.push(at);
            // A line that was lost is stepped over: the one above it in the file is the best guess.
            next = self.knots[at].parent.as_ref().and_then(|parent| match self.by_uuid.get(parent) {
                Some(parent) => Some(*parent),
                None => at.checked_sub(1),
            });
        }
        chain.reverse();
        chain
    }

    /// The results that hang beside the chain, by the knot that called for them.
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
