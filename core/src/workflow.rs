//! The table of workflow steps and their prerequisites. The order is advice: the user can always skip a missing step, and the skip is
//! recorded.

use crate::status::{Json, StatusDocument};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt;

/// One row of the table.
#[derive(Debug)]
struct WorkflowRow {
    step: &'static str,
    /// The agent that does the step.
    agent: &'static str,
    /// The name of the step in "Run … now".
    task: &'static str,
    needs: Needs,
}

/// The prerequisites of a step. One step of each inner list must be completed.
#[derive(Debug)]
enum Needs {
    Always(&'static [&'static [&'static str]]),
    /// By workflow command. A command that is not listed has the prerequisites of the last row.
    ByCommand(&'static [(&'static str, &'static [&'static [&'static str]])]),
}

const SCAN: &str = "state-owner-scan";
const AFTER_SCAN: &[&[&str]] = &[&[SCAN]];
const AFTER_SCENARIOS: &[&[&str]] = &[&["interviewer"], &["scenario-crafter"]];

/// Stands for all commands that the row does not name.
const OTHERWISE: &str = "";

const TABLE: &[WorkflowRow] = &[
    WorkflowRow { step: SCAN, agent: "State Owner", task: "State Owner scan", needs: Needs::Always(&[]) },
    WorkflowRow { step: "observer", agent: "Observer", task: "Observer", needs: Needs::Always(&[]) },
    WorkflowRow { step: "interviewer", agent: "Interviewer", task: "Interviewer", needs: Needs::Always(AFTER_SCAN) },
    WorkflowRow {
        step: "researcher",
        agent: "Researcher",
        task: "Researcher",
        // In the command `ref` it runs at the same time as the State Owner.
        needs: Needs::ByCommand(&[("ref", &[]), (OTHERWISE, AFTER_SCAN)]),
    },
    WorkflowRow {
        step: "visual-translator",
        agent: "Visual Translator",
        task: "Visual Translator",
        needs: Needs::ByCommand(&[("ref", &[]), (OTHERWISE, AFTER_SCAN)]),
    },
    WorkflowRow {
        step: "scenario-crafter",
        agent: "Scenario Crafter",
        task: "Scenario Crafter",
        needs: Needs::Always(&[&["interviewer"]]),
    },
    WorkflowRow {
        step: "spec-writer",
        agent: "Spec Writer",
        task: "Spec Writer",
        needs: Needs::ByCommand(&[
            ("init", AFTER_SCENARIOS),
            ("evolve", AFTER_SCENARIOS),
            ("ref", &[&[SCAN], &["researcher", "visual-translator"]]),
            ("review", AFTER_SCAN),
            (OTHERWISE, AFTER_SCAN),
        ]),
    },
    WorkflowRow { step: "executor-plan", agent: "Executor", task: "Executor", needs: Needs::Always(AFTER_SCAN) },
    WorkflowRow { step: "executor-build", agent: "Executor", task: "Executor", needs: Needs::Always(AFTER_SCAN) },
];

/// The prerequisites that a step lacks. Its text is the question to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The step that was to start.
    pub step: String,
    /// One step of each inner list must be completed.
    pub needs: Vec<Vec<String>>,
}

/// How many letters may differ between a step and a misspelling of its name.
const MISSPELT_LETTERS: usize = 2;

/// The step of the table that was probably meant, and all others. A workflow may have steps of its own. But a step whose name is nearly
/// that of a known step would skip the prerequisites of that step.
pub fn misspelt(step: &str) -> Option<(&'static str, Vec<&'static str>)> {
    let known = || TABLE.iter().map(|row| row.step);
    if known().any(|one| one == step) {
        return None;
    }
    let plain = letters_of(step);
    // The name of the agent, or the name of the step in another spelling: `Spec Writer`, `spec_writer`, `executor`.
    let named = TABLE.iter().find(|row| [row.step, row.agent].iter().any(|name| letters_of(name) == plain));
    let distance = |one: &str| letters_between(&letters_of(one), &plain);
    let nearest = named
        .map(|row| row.step)
        .or_else(|| known().min_by_key(|one| distance(one)).filter(|one| distance(one) <= MISSPELT_LETTERS))?;
    Some((nearest, known().collect()))
}

/// A name reduced to its letters and digits, in lowercase.
fn letters_of(name: &str) -> String {
    name.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The Levenshtein distance.
fn letters_between(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], at + 1);
        for (place, known) in other.iter().enumerate() {
            let changed = before + usize::from(*known != letter);
            before = row[place + 1];
            row[place + 1] = changed.min(before + 1).min(row[place] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The user's decision about a missing step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StepChoice))]
#[serde(rename_all = "snake_case")]
pub enum MissingStepChoice {
    Run,
    Skip,
    Abort,
}

/// The result of starting a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepStart {
    /// The requested step has started.
    Begun,
    /// Another step comes first, and has started.
    Instead(String),
    /// The command has ended.
    Aborted,
}

/// The prerequisites that a step lacks, with this workflow command and these completed steps. A step that is not in the table has no
/// prerequisites.
pub fn missing(step: &str, command: Option<&str>, completed: &[String]) -> Option<Missing> {
    let row = TABLE.iter().find(|row| row.step == step)?;
    let needs = match &row.needs {
        Needs::Always(needs) => needs,
        Needs::ByCommand(rows) => {
            let of = |command: &str| rows.iter().find(|(name, _)| *name == command).map(|(_, needs)| needs);
            command.and_then(of).or_else(|| of(OTHERWISE)).unwrap_or(&AFTER_SCAN)
        }
    };
    let open = needs.iter().filter(|group| !group.iter().any(|one| completed.iter().any(|done| done == one)));
    let needs: Vec<Vec<String>> = open.map(|group| group.iter().map(|&one| one.to_owned()).collect()).collect();
    (!needs.is_empty()).then(|| Missing { step: step.to_owned(), needs })
}

/// Sets the current workflow command. The records of the previous command's steps are cleared; a build run stays.
pub fn start_command(document: &mut StatusDocument, command: &str) {
    document.set("currentCommand", command);
    document.set("completedSteps", json!([]));
    for field in ["agentOutputs", "workflowStep", "skippedSteps"] {
        document.clear(field);
    }
}

pub fn end_command(document: &mut StatusDocument) {
    for field in ["currentCommand", "workflowStep", "activeSection", "activeSectionNumber"] {
        document.clear(field);
    }
}

/// Starts a step. If prerequisites are missing and nothing is chosen about that, they are returned as an error.
pub fn start_step(
    document: &mut StatusDocument,
    step: &str,
    choice: Option<MissingStepChoice>,
    now: &str,
) -> Result<StepStart, Missing> {
    let command = document.words("currentCommand");
    let Some(lacks) = missing(step, command.as_deref(), &document.names("completedSteps")) else {
        document.set("workflowStep", step);
        return Ok(StepStart::Begun);
    };
    match choice {
        None => Err(lacks),
        Some(MissingStepChoice::Run) => {
            let first = lacks.next().to_owned();
            // The step that comes first may lack prerequisites itself.
            match missing(&first, command.as_deref(), &document.names("completedSteps")) {
                Some(lacks) => start_step(document, &lacks.step, Some(MissingStepChoice::Run), now),
                None => {
                    document.set("workflowStep", first.as_str());
                    Ok(StepStart::Instead(first))
                }
            }
        }
        Some(MissingStepChoice::Skip) => {
            let mut skipped = document.field("skippedSteps").and_then(Json::list).unwrap_or_default();
            skipped.push(json!({ "step": step, "missing": lacks.needs, "timestamp": now }).into());
            document.set("skippedSteps", Json::of_list(&skipped));
            document.set("workflowStep", step);
            Ok(StepStart::Begun)
        }
        Some(MissingStepChoice::Abort) => {
            end_command(document);
            Ok(StepStart::Aborted)
        }
    }
}

/// Records a step as completed, once, with the summary of its agent. A step that has not started needs the same prerequisites as a step
/// that starts, so that they cannot be bypassed.
pub fn finish_step(
    document: &mut StatusDocument,
    step: &str,
    summary: Option<&str>,
    choice: Option<MissingStepChoice>,
    now: &str,
) -> Result<StepStart, Missing> {
    let is_begun = document.words("workflowStep").as_deref() == Some(step)
        || document.names("completedSteps").iter().any(|done| done == step)
        || is_skipped_for(document, step);
    if !is_begun {
        let shown = document.field("workflowStep").cloned();
        match start_step(document, step, choice, now)? {
            // Another step may be worked on at the same time.
            StepStart::Begun => document.set("workflowStep", shown.unwrap_or_else(Json::null)),
            other @ (StepStart::Instead(_) | StepStart::Aborted) => return Ok(other),
        }
    }
    record_step(document, step, summary);
    Ok(StepStart::Begun)
}

/// Whether the user has decided that a step continues without its prerequisites.
fn is_skipped_for(document: &StatusDocument, step: &str) -> bool {
    let skipped = document.field("skippedSteps").and_then(Json::list).unwrap_or_default();
    skipped.iter().any(|skip| skip.object().and_then(|skip| skip.get("step")?.words()).as_deref() == Some(step))
}

fn record_step(document: &mut StatusDocument, step: &str, summary: Option<&str>) {
    let mut completed = document.field("completedSteps").and_then(Json::list).unwrap_or_default();
    if !completed.iter().any(|done| done.words().as_deref() == Some(step)) {
        completed.push(step.into());
    }
    document.set("completedSteps", Json::of_list(&completed));
    if document.words("workflowStep").as_deref() == Some(step) {
        document.clear("workflowStep");
    }
    if let Some(summary) = summary {
        let mut outputs = document.field("agentOutputs").and_then(Json::object).unwrap_or_default();
        let mut output = outputs.get(step).and_then(Json::object).unwrap_or_default();
        output.set("summary", summary.into());
        outputs.set(step, output.to_json());
        document.set("agentOutputs", outputs.to_json());
    }
}

impl Missing {
    /// The step to run first.
    pub fn next(&self) -> &str {
        self.needs.first().and_then(|group| group.first()).map_or(SCAN, String::as_str)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups =
            self.needs.iter().map(|group| group.iter().map(|step| agent_of(step)).collect::<Vec<_>>().join(" or "));
        let who = groups.collect::<Vec<_>>().join(" and ");
        writeln!(f, "Workflow error: {who} must run before {} can proceed.", agent_of(&self.step))?;
        writeln!(f, "(1) Run {} now (recommended)", task_of(self.next()))?;
        writeln!(f, "(2) Skip (not recommended — may produce inaccurate results)")?;
        write!(f, "(3) Abort this command")
    }
}

impl MissingStepChoice {
    /// Reads a choice from its number or its name.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "1" | "run" => Some(Self::Run),
            "2" | "skip" => Some(Self::Skip),
            "3" | "abort" => Some(Self::Abort),
            _ => None,
        }
    }
}

fn agent_of(step: &str) -> &str {
    TABLE.iter().find(|row| row.step == step).map_or(step, |row| row.agent)
}

fn task_of(step: &str) -> &str {
    TABLE.iter().find(|row| row.step == step).map_or(step, |row| row.task)
}
