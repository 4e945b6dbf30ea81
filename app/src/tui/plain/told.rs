//! The blocks of a conversation as lines without glyphs. Pure.

use super::spoken::{one_line, rows};
use crate::tui::conversation::{Block, BlockKind, ConversationView};
use crate::tui::flow;
use crate::tui::model::Model;
use crate::tui::tool::Tool;
use crate::tui::{text, words};

/// The lines of a block, each begun with who says it. Answers of commands are told when they come.
pub fn lines_of(model: &Model, name: &str, block: &Block) -> Vec<String> {
    match &block.kind {
        BlockKind::Spoken { text, .. } => rows(text).into_iter().map(|row| format!("{name}: {row}")).collect(),
        BlockKind::ToAgent { text, .. } => vec![format!("You: {}", one_line(text))],
        BlockKind::Thought { text, .. } => vec![format!("{name} thought: {}", one_line(text))],
        BlockKind::Tool(tool) => vec![format!("{name}: tool {}: {}.", called(tool), outcome(block, tool))],
        BlockKind::Note { text, .. } => vec![format!("{name}: {}", one_line(&words::named(model, text)))],
        BlockKind::Crashed { .. } => vec![format!("{name}: {}", one_line(&flow::crashed(&block.kind)))],
        BlockKind::Across { text } => {
            let time = text::clock(block.at, model.offset_s);
            let words = words::named(model, &text.replace("{time}", &time));
            vec![format!("{name}: {}.", one_line(&words).replace(" · ", ", "))]
        }
        BlockKind::Interrupted => {
            vec![format!("{name}: You interrupted it. What it said in this turn does not reach the model.")]
        }
        BlockKind::Ask { text, answer, open, .. } => {
            let asked = format!("{name} asked question {}: {}", block.id, one_line(text));
            let answered = match (answer, open) {
                (_, true) => "It waits for your answer.".to_owned(),
                (Some(answer), false) => format!("You answered: {}", one_line(answer)),
                (None, false) => "The question was withdrawn.".to_owned(),
            };
            vec![asked, answered]
        }
        BlockKind::Here { .. } => Vec::new(),
    }
}

/// A tool, and what it was called with.
pub fn called(tool: &Tool) -> String {
    format!("{} {}", tool.name, tool.target()).trim_end().to_owned()
}

/// What came of a tool.
fn outcome(block: &Block, tool: &Tool) -> String {
    let lasted = tool.outcome.as_ref().map(|outcome| text::in_words(&text::lasted(outcome.at.0 - block.at.0)));
    let parts: Vec<String> =
        [tool.summary(), lasted.unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect();
    match (parts.is_empty(), &tool.outcome) {
        (false, _) => parts.join(", "),
        (true, Some(_)) => "ended".to_owned(),
        (true, None) => "began".to_owned(),
    }
}

/// A whole conversation. What was inherited and what was thought belong to the full form.
pub fn transcript(model: &Model, talk: &ConversationView, full: bool) -> String {
    let inherited = talk.inherited.iter().filter(|_| full);
    let before = inherited.flat_map(|it| it.blocks.iter().map(|block| (it.speaker(block.id), block)));
    let own = talk.blocks().iter().map(|block| (None, block));
    let is_told = |block: &Block| full || !matches!(block.kind, BlockKind::Thought { .. });
    let lines = before
        .chain(own)
        .filter(|(_, block)| is_told(block))
        .flat_map(|(speaker, block)| lines_of(model, &model.name(speaker.unwrap_or(talk.agent)), block));
    lines.collect::<Vec<_>>().join("\n")
}
