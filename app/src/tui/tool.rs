//! A tool call of an agent: what it was called with, what came of it, and its lines when it is opened. Pure.

use super::text;
use super::words::counted;
use hatchery_core::Timestamp;
use hatchery_core::quest::SIGNAL_TOOL;
use hatchery_core::roles::titled;
use serde_json::Value;

/// An edit with more pairs of lines than this is shown as one change: an edit in sight is compared again for each frame.
const MAX_COMPARED: usize = 250_000;

/// The names of an argument that is a file to read or to change.
const FILE_NAMES: &[&str] = &["file_path", "filePath", "absolute_path"];
/// The names of an argument that says what to search files for.
const SEARCH_NAMES: &[&str] = &["pattern", "path"];

/// A call, from its begin to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The id of the call, which its result names.
    pub call: String,
    pub name: String,
    pub input: Value,
    pub outcome: Option<ToolOutcome>,
    /// The request for permission that waits for the user's answer.
    pub asked: Option<String>,
    /// Why it was not allowed.
    pub denied: Option<DeniedCall>,
    /// What its sub-agent said.
    pub subagent: Vec<SubagentLine>,
}

/// Who did not allow a call, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedCall {
    pub by_you: bool,
    pub reason: String,
}

/// One thing that a sub-agent said or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentLine {
    /// The id of its own tool call.
    pub call: Option<String>,
    pub text: String,
    /// What came of its tool call.
    pub outcome: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    pub call: String,
    pub text: String,
    pub failed: bool,
    pub at: Timestamp,
}

/// A line of an opened tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolLine {
    Added(Option<usize>, String),
    Removed(Option<usize>, String),
    Same(Option<usize>, String),
    Output(String),
    /// What a sub-agent said, and what came of it.
    Subagent(String, String),
}

impl Tool {
    pub fn read(content: &str) -> Self {
        let value: Value = serde_json::from_str(content).unwrap_or_default();
        let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let name = match word("name") {
            name if name.is_empty() => "a tool".to_owned(),
            name => name,
        };
        Self {
            call: word("id"),
            name,
            input: value["input"].clone(),
            outcome: None,
            asked: None,
            denied: None,
            subagent: Vec::new(),
        }
    }

    /// What it was called with, in one line.
    pub fn target(&self) -> String {
        target(&self.input)
    }

    /// Whether it is open until the user folds it: changes and failures are what the user wants to see.
    pub fn opens_by_itself(&self) -> bool {
        let failed = self.outcome.as_ref().is_some_and(|outcome| outcome.failed) && self.denied.is_none();
        self.denied.is_none() && (failed || !self.changes().is_empty())
    }

    /// What an agent of a quest says of its step, if this is how it says it: `complete: The page lists attempts.`
    pub fn signal(&self) -> Option<String> {
        if !self.name.ends_with(SIGNAL_TOOL) {
            return None;
        }
        let word = |name: &str| self.input[name].as_str();
        let signal = word("signal").or_else(|| word("type"))?;
        let said = ["summary", "progress", "question", "reason"].iter().find_map(|name| word(name)).unwrap_or_default();
        let to = word("targetRole").map(|role| format!(" of the {}", titled(role))).unwrap_or_default();
        let line = said.lines().next().unwrap_or_default();
        Some(text::clean(&format!("{signal}{to}: {line}")).trim_end_matches(": ").to_owned())
    }

    /// What came of it, for the right end of its line, without the time.
    pub fn summary(&self) -> String {
        if let Some(DeniedCall { by_you, reason }) = &self.denied {
            let by = if *by_you { "denied by you" } else { "denied" };
            return match text::clean(reason).lines().next().unwrap_or_default() {
                "" => by.to_owned(),
                reason => format!("{by}: {reason}"),
            };
        }
        let Some(outcome) = &self.outcome else { return String::new() };
        if outcome.failed {
            return match tests(&outcome.text) {
                Some((passed, failed)) if failed > 0 => format!("failed: {failed} of {}", passed + failed),
                _ => "failed".to_owned(),
            };
        }
        if !self.subagent.is_empty() {
            return format!("sub-agent · {}", counted(self.subagent.len(), "message"));
        }
        let (added, removed) = self.changed_lines();
        match (added, removed) {
            (0, 0) => {}
            (added, 0) => return format!("+{added}"),
            (added, removed) => return format!("+{added} −{removed}"),
        }
        match tests(&outcome.text) {
            Some((passed, 0)) => return format!("{passed} passed"),
            Some((passed, failed)) => return format!("failed: {failed} of {}", passed + failed),
            None => {}
        }
        match outcome.text.lines().count() {
            0 => String::new(),
            // The only line of a file says less than that there is one.
            1 if self.names_any(FILE_NAMES) => "1 line".to_owned(),
            1 => text::cut(text::without_escapes(&outcome.text).trim(), 32),
            lines => format!("{lines} lines"),
        }
    }

    /// How many lines it added and removed.
    pub fn changed_lines(&self) -> (usize, usize) {
        let changes = self.changes();
        let added = changes.iter().filter(|line| matches!(line, ToolLine::Added(..))).count();
        let removed = changes.iter().filter(|line| matches!(line, ToolLine::Removed(..))).count();
        (added, removed)
    }

    /// Whether the time that it took is worth a word.
    pub fn shows_time(&self) -> bool {
        let is_quick = self.names_any(FILE_NAMES) || self.names_any(SEARCH_NAMES);
        self.denied.is_none() && (!self.subagent.is_empty() || !is_quick)
    }

    /// Whether its input has a text with one of these names. Agent programs name their tools differently, and the arguments of the tools
    /// alike.
    fn names_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.input[*name].is_string())
    }

    /// All its lines when it is opened.
    pub fn lines(&self) -> Vec<ToolLine> {
        let changes = self.changes();
        let failed = self.outcome.as_ref().is_some_and(|outcome| outcome.failed);
        if !changes.is_empty() && !failed {
            return changes;
        }
        let mut lines: Vec<ToolLine> = self
            .subagent
            .iter()
            .flat_map(|said| {
                let mut outcome = said.outcome.clone();
                said.text.lines().map(move |line| ToolLine::Subagent(line.to_owned(), std::mem::take(&mut outcome)))
            })
            .collect();
        if lines.is_empty()
            && let Some(outcome) = &self.outcome
        {
            let plain = text::without_escapes(&outcome.text);
            lines.extend(plain.lines().map(|line| ToolLine::Output(text::clean(line).into_owned())));
        }
        lines
    }

    /// The line of a failed output that says most: the first one that names an error, else the first one.
    pub fn telling_line(&self) -> Option<usize> {
        const TELLING: [&str; 5] = ["panicked", "error", "FAILED", "FAIL ", "Traceback"];
        let lines = self.lines();
        let words = |line: &ToolLine| match line {
            ToolLine::Output(words) => Some(words.clone()),
            _ => None,
        };
        let telling = |line: &ToolLine| words(line).is_some_and(|words| TELLING.iter().any(|it| words.contains(it)));
        lines
            .iter()
            .position(telling)
            .or_else(|| lines.iter().position(|line| words(line).is_some_and(|words| !words.trim().is_empty())))
    }

    /// The lines that an edit changed.
    fn changes(&self) -> Vec<ToolLine> {
        let text = |name: &str| self.input[name].as_str();
        if let (Some(old), Some(new)) = (text("old_string"), text("new_string")) {
            return difference(old, new, self.first_line());
        }
        if let (Some(content), Some(_)) = (text("content"), text("file_path")) {
            return content.lines().map(|line| ToolLine::Added(None, line.to_owned())).collect();
        }
        Vec::new()
    }

    /// The number of the first line, where the result shows the file with numbers (`    87→…`).
    fn first_line(&self) -> Option<usize> {
        let outcome = self.outcome.as_ref()?;
        let old = self.input["new_string"].as_str()?.lines().next()?;
        outcome.text.lines().find_map(|line| {
            let (number, text) = line.split_once('→')?;
            (text == old).then(|| number.trim().parse().ok())?
        })
    }
}

impl ToolOutcome {
    pub fn read(content: &str, at: Timestamp) -> Self {
        let value: Value = serde_json::from_str(content).unwrap_or_default();
        let call = ["tool_use_id", "id"].iter().find_map(|name| value[*name].as_str()).unwrap_or_default().to_owned();
        let text = value["content"].as_str().map_or_else(|| value["content"].to_string(), str::to_owned);
        Self { call, text, failed: value["is_error"] == true, at }
    }
}

/// The argument that says most about a call: the usual ones by their names, else the first text.
pub fn target(input: &Value) -> String {
    const TELLING: [&str; 8] = ["command", "file_path", "path", "pattern", "url", "query", "description", "prompt"];
    let by_name = TELLING.iter().find_map(|name| input[*name].as_str());
    let first = || input.as_object().and_then(|input| input.values().find_map(Value::as_str));
    let line = by_name.or_else(first).unwrap_or_default();
    let line = line.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    text::clean(line).into_owned()
}

/// What a request to change a file is about: the file, the lines that the request adds and removes, and all its other arguments.
pub fn asked_change(name: &str, input: &str, path: &str) -> String {
    let call = serde_json::json!({ "name": name, "input": serde_json::from_str::<Value>(input).unwrap_or_default() });
    let tool = Tool::read(&call.to_string());
    let mut rows = vec![path.to_owned()];
    rows.extend(tool.changes().into_iter().filter_map(|line| match line {
        ToolLine::Added(_, words) => Some(format!("+ {words}")),
        ToolLine::Removed(_, words) => Some(format!("- {words}")),
        ToolLine::Same(_, words) => Some(format!("  {words}")),
        ToolLine::Output(_) | ToolLine::Subagent(..) => None,
    }));
    let as_lines: &[&str] = if rows.len() > 1 { &["old_string", "new_string", "content"] } else { &[] };
    let arguments = tool.input.as_object().into_iter().flatten();
    let others = arguments.filter(|(name, value)| value.as_str() != Some(path) && !as_lines.contains(&name.as_str()));
    rows.extend(others.map(|(name, value)| match value.as_str() {
        Some(words) if words.contains('\n') => format!("{name}:\n{words}"),
        Some(words) => format!("{name}: {words}"),
        None => format!("{name}: {value}"),
    }));
    rows.join("\n")
}

/// What was removed and added, each change with the line before it. Lines that were removed have their old numbers.
fn difference(old: &str, new: &str, first: Option<usize>) -> Vec<ToolLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let begin = old.iter().zip(&new).take_while(same).count();
    let end = old[begin..].iter().rev().zip(new[begin..].iter().rev()).take_while(same).count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    let number = |at: usize| first.map(|first| first + at);
    let mut lines = Vec::new();
    let mut change = |(old_from, old_to): (usize, usize), (new_from, new_to): (usize, usize)| {
        if let Some(before) = new_from.checked_sub(1) {
            lines.push(ToolLine::Same(number(before), new[before].to_owned()));
        }
        lines.extend((old_from..old_to).map(|at| ToolLine::Removed(number(at), old[at].to_owned())));
        lines.extend((new_from..new_to).map(|at| ToolLine::Added(number(at), new[at].to_owned())));
    };
    if (old_end - begin).saturating_mul(new_end - begin) > MAX_COMPARED {
        change((begin, old_end), (begin, new_end));
        return lines;
    }
    for op in similar::capture_diff_slices(similar::Algorithm::Myers, &old[begin..old_end], &new[begin..new_end]) {
        let (tag, from_old, from_new) = op.as_tag_tuple();
        if tag != similar::DiffTag::Equal {
            change((begin + from_old.start, begin + from_old.end), (begin + from_new.start, begin + from_new.end));
        }
    }
    lines
}

/// How many tests passed and failed, where the output of cargo, pytest, jest or go says so.
fn tests(output: &str) -> Option<(usize, usize)> {
    let output = text::without_escapes(output);
    let before = |word: &str| {
        let mut found = None;
        for line in output.lines() {
            let words: Vec<&str> = line.split([' ', ',', ';', '\t']).filter(|word| !word.is_empty()).collect();
            for pair in words.windows(2) {
                if pair[1] == word
                    && let Ok(number) = pair[0].parse::<usize>()
                {
                    found = Some(found.unwrap_or(0) + number);
                }
            }
        }
        found
    };
    let passed = before("passed");
    let failed = before("failed");
    (passed.is_some() || failed.is_some()).then(|| (passed.unwrap_or(0), failed.unwrap_or(0)))
}

#[cfg(test)]
mod tests_of_tools {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, input: Value, result: &str, failed: bool) -> Tool {
        let mut tool = Tool::read(&json!({ "id": "1", "name": name, "input": input }).to_string());
        let content = json!({ "tool_use_id": "1", "content": result, "is_error": failed }).to_string();
        tool.outcome = Some(ToolOutcome::read(&content, Timestamp(0)));
        tool
    }

    #[test]
    fn a_tool_says_in_a_few_words_what_came_of_it() {
        let bash = |result, failed| tool("Bash", json!({ "command": "x" }), result, failed).summary();
        assert_eq!(bash("test result: ok. 14 passed; 0 failed; 0 ignored", false), "14 passed");
        assert_eq!(bash("test result: FAILED. 14 passed; 1 failed;", true), "failed: 1 of 15");
        assert_eq!(bash("\u{1b}[32mok\u{1b}[0m", false), "ok");
        assert_eq!(bash("a\nb", false), "2 lines");
        assert_eq!(tool("Read", json!({ "file_path": "/x" }), &"x\n".repeat(212), false).summary(), "212 lines");
        let edit = json!({ "file_path": "a", "old_string": "one\ntwo\nend", "new_string": "one\nthree\nfour\nend" });
        let edit = tool("Edit", edit, "     8→one\n     9→three", false);
        assert_eq!(edit.summary(), "+2 −1");
        let lines = [
            ToolLine::Same(Some(8), "one".into()),
            ToolLine::Removed(Some(9), "two".into()),
            ToolLine::Added(Some(9), "three".into()),
            ToolLine::Added(Some(10), "four".into()),
        ];
        assert_eq!(edit.lines(), lines);
    }

    #[test]
    fn what_a_step_has_come_to_is_a_sentence() {
        let signal = |input| {
            Tool::read(&json!({ "id": "1", "name": "mcp__hatchery__signal-back", "input": input }).to_string()).signal()
        };
        let complete =
            json!({ "signal": "complete", "stepId": "admin-page", "summary": "The page lists attempts.\nMore." });
        assert_eq!(signal(complete).as_deref(), Some("complete: The page lists attempts."));
        let followup = json!({ "signal": "needs-role-followup", "stepId": "x", "targetRole": "codeweaver", "reason": "It fails." });
        assert_eq!(signal(followup).as_deref(), Some("needs-role-followup of the codeweaver (implements): It fails."));
        assert_eq!(
            Tool::read(&json!({ "id": "1", "name": "Bash", "input": { "signal": "x" } }).to_string()).signal(),
            None
        );
    }

    #[test]
    fn lines_that_stay_between_two_changes_are_not_counted() {
        let middle = "same\n".repeat(40);
        let edit = json!({
            "file_path": "a", "old_string": format!("a\none\n{middle}two\nz"), "new_string": format!("a\n1\n{middle}2\nz"),
        });
        let edit = tool("Edit", edit, "    87→a", false);
        assert_eq!(edit.summary(), "+2 −2");
        let lines = [
            ToolLine::Same(Some(87), "a".into()),
            ToolLine::Removed(Some(88), "one".into()),
            ToolLine::Added(Some(88), "1".into()),
            ToolLine::Same(Some(128), "same".into()),
            ToolLine::Removed(Some(129), "two".into()),
            ToolLine::Added(Some(129), "2".into()),
        ];
        assert_eq!(edit.lines(), lines);
    }
}
