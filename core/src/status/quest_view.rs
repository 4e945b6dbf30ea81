//! A quest as a build run: the fields of the status document that show the current quest. Its steps are the chunks. While the quest has not
//! ended, the fields belong to Hatchery: they are computed from the world and never taken from the file.

use super::{Json, Object, Path, StatusDocument};
use crate::ask::{About, Question};
use crate::build_run::{self, RunStatus};
use crate::quest::{Quest, QuestState, Signal, Step, StepId, StepState};
use crate::roles::Phase;
use crate::{EventId, QuestId, Timestamp, World};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The longest text of a field with one line, in characters.
const MAX_LINE_CHARS: usize = 200;

/// Fields that belong to Hatchery while a quest is open or paused.
const OWNED: [&str; 2] = ["buildRun", "chunkProgress"];
/// Fields that belong to Hatchery while a quest is open or paused and no workflow command runs.
const OWNED_WITHOUT_COMMAND: [&str; 6] =
    ["workflowStep", "activeSection", "activeSectionNumber", "scenarioScore", "nextStep", "experienceQuestion"];
const OUTPUTS: &str = "agentOutputs";
const COMMAND: &str = "currentCommand";

/// The fields that show a quest.
#[derive(Clone, Debug)]
pub struct QuestView {
    pub quest: QuestId,
    fields: Object,
}

/// The document as all readers see it: the kept fields, and over them the fields that show the current quest.
pub fn shown(world: &World) -> StatusDocument {
    let mut document = world.status().document();
    if let Some(view) = QuestView::of(world) {
        view.lay_over(&mut document);
    }
    document
}

impl QuestView {
    /// The view of the newest quest that has not ended.
    pub fn of(world: &World) -> Option<Self> {
        let (id, quest) = going(world)?;
        Some(Self { quest: id, fields: fields(world, id, quest) })
    }

    /// The quest to which a field belongs at the moment, if any.
    pub fn owner(world: &World, path: &Path) -> Option<QuestId> {
        let (id, _) = going(world)?;
        let (name, rest) = path.segments().split_first()?;
        let has = |name: &str| Self::of(world).is_some_and(|view| view.fields.iter().any(|(known, _)| known == name));
        let owned = match name.as_str() {
            name if OWNED.contains(&name) => true,
            name if OWNED_WITHOUT_COMMAND.contains(&name) => !in_command(world) && has(name),
            OUTPUTS => rest.first().is_some_and(|role| {
                let outputs = Self::of(world).and_then(|view| view.fields.get(OUTPUTS)?.object());
                outputs.is_some_and(|outputs| outputs.get(role.as_str()).is_some())
            }),
            _ => false,
        };
        owned.then_some(id)
    }

    /// The fields that are put over a document.
    pub fn fields(&self) -> &Object {
        &self.fields
    }

    fn lay_over(&self, document: &mut StatusDocument) {
        let in_command = document.words(COMMAND).is_some();
        for (name, value) in self.fields.iter() {
            match name {
                OUTPUTS => {
                    let mut outputs = document.field(OUTPUTS).and_then(Json::object).unwrap_or_default();
                    for (role, output) in value.object().unwrap_or_default().iter() {
                        outputs.set(role, output.clone());
                    }
                    document.set(OUTPUTS, outputs.to_json());
                }
                name if in_command && OWNED_WITHOUT_COMMAND.contains(&name) => {}
                name => document.set(name, value.clone()),
            }
        }
    }
}

fn going(world: &World) -> Option<(QuestId, &Quest)> {
    world.quests().filter(|(_, quest)| !quest.is_over()).max_by_key(|(id, quest)| (quest.created, *id))
}

fn in_command(world: &World) -> bool {
    world.status().field(COMMAND).is_some_and(|command| command.words().is_some_and(|it| !it.trim().is_empty()))
}

fn fields(world: &World, id: QuestId, quest: &Quest) -> Object {
    let steps = work(quest);
    let numbers: BTreeMap<&StepId, usize> = steps.iter().zip(1..).map(|((id, _), number)| (*id, number)).collect();
    let question = world.questions_to_answer().find(|(_, it)| concerns(world, &it.about, it.agent, id));
    let phase = phase(quest);
    let mut run = json!({
        "runId": format!("run-{}", quest.created.0),
        "questId": id.to_string(),
        "status": run_status(quest, question.is_some()).name(),
        "startedAt": quest.created.rfc3339(),
        "plan": { "totalChunks": steps.len(), "priorities": [], "prioritySource": "user-prompt" },
        "convergencePhase": phase_word(phase),
    });
    if let Some(version) = quest.spec_version.as_deref() {
        run["plan"]["specVersion"] = json!(version);
    }
    let asked = question.map(|(_, question)| line(&question.text));
    if let Some((asked, question)) = question {
        run["pendingQuestion"] = pending_question(world, quest, asked, question, &numbers);
    }
    let chunks: Vec<Value> = steps.iter().map(|(id, step)| chunk(quest, id, step, &numbers)).collect();
    if let Some(last) = steps.iter().filter_map(|(_, step)| completed_at(step)).max() {
        run["lastCheckpoint"] = json!(last.rfc3339());
    }
    let active = steps
        .iter()
        .find(|(_, step)| step.agent().is_some())
        .or_else(|| steps.iter().find(|(_, step)| is_active(step)));
    let section =
        active.and_then(|(id, _)| quest.plans.get(*id)).and_then(|plan| aliases(&plan.description).into_iter().next());
    run["chunks"] = Value::from(chunks);

    let mut shown = StatusDocument::default();
    shown.set("buildRun", run);
    if !steps.is_empty() {
        build_run::show_progress(&mut shown);
    }
    shown.set("workflowStep", workflow_step(phase));
    if let Some(section) = section {
        shown.set("activeSection", section.as_str());
        // The number of another section must not stay.
        shown.set("activeSectionNumber", Json::null());
    }
    if let Some(score) = score(quest) {
        shown.set("scenarioScore", score);
    }
    if let Some(asked) = &asked {
        shown.set("experienceQuestion", asked.as_str());
    }
    shown.set("nextStep", next_step(id, quest, asked.is_some()).as_str());
    let outputs = outputs(quest);
    if !outputs.is_empty() {
        shown.set(OUTPUTS, outputs.to_json());
    }
    shown.fields().clone()
}

/// The status of the build run. The protocol says that a question pauses the run, although chunks that need no answer continue. If nothing
/// can continue because of failed steps, the run is partial.
fn run_status(quest: &Quest, is_asked: bool) -> RunStatus {
    let any = |is_it: fn(&StepState) -> bool| quest.steps.values().any(|step| is_it(&step.state));
    let has_failed = any(|state| matches!(state, StepState::Failed { .. }));
    let goes_on = any(|state| match state {
        StepState::Queued(_) | StepState::Running(_) | StepState::Asking(_) | StepState::Parked { .. } => true,
        // A pending step waits for another step.
        StepState::Pending | StepState::Blocked | StepState::Failed { .. } | StepState::Complete { .. } => false,
    });
    match quest.state {
        QuestState::Paused => RunStatus::Paused,
        QuestState::Open if is_asked => RunStatus::Paused,
        QuestState::Open if has_failed && !goes_on => RunStatus::Partial,
        QuestState::Open | QuestState::Complete { .. } | QuestState::Abandoned { .. } => RunStatus::Running,
    }
}

/// A question to the user: its text, its time, the chunks that cannot be completed without the answer, and the section of the spec.
fn pending_question(
    world: &World,
    quest: &Quest,
    asked: EventId,
    question: &Question,
    numbers: &BTreeMap<&StepId, usize>,
) -> Value {
    let concerned = quest.steps.iter().find(|(_, step)| step.question == Some(asked)).map(|(id, _)| id);
    let step = concerned.or_else(|| world.assignment(question.agent).map(|it| &it.step));
    let of_all = match question.about {
        About::QuestBudget { .. } | About::Budget { of: None } => true,
        About::Budget { of: Some(_) } | About::Silence(_) | About::Permission(_) | About::Step { .. } => false,
    };
    let blocked: BTreeSet<usize> = match step.filter(|step| !of_all && numbers.contains_key(step)) {
        Some(step) => with_dependents(quest, step).into_iter().filter_map(|id| numbers.get(id).copied()).collect(),
        // The question is about the whole quest.
        None => numbers.values().copied().collect(),
    };
    let done: BTreeSet<usize> = numbers
        .iter()
        .filter(|(id, _)| quest.step(id).is_some_and(|step| completed_at(step).is_some()))
        .map(|(_, number)| *number)
        .collect();
    let mut shown = json!({
        "text": line(&question.text),
        "timestamp": question.asked.rfc3339(),
        "blockedChunks": blocked.difference(&done).collect::<Vec<_>>(),
    });
    let plan = step.and_then(|step| quest.plans.get(step));
    if let Some(section) = plan.and_then(|plan| aliases(&plan.description).into_iter().next()) {
        shown["sectionContext"] = json!(section);
    }
    shown
}

/// A step, and all steps that depend on it, directly or through others.
fn with_dependents<'a>(quest: &'a Quest, step: &'a StepId) -> BTreeSet<&'a StepId> {
    let mut found = BTreeSet::from([step]);
    let mut open = vec![step];
    while let Some(step) = open.pop() {
        open.extend(quest.dependents.get(step).into_iter().flatten().filter(|id| found.insert(*id)));
    }
    found
}

/// The steps of the plan, in the order of the plan.
fn work(quest: &Quest) -> Vec<(&StepId, &Step)> {
    let all = quest.steps.iter().map(|(id, step)| (id, step.as_ref()));
    let mut steps: Vec<(&StepId, &Step)> = all.filter(|(_, step)| step.phase == Phase::Work && !step.dropped).collect();
    steps.sort_by_key(|(_, step)| step.number);
    steps
}

/// The current phase of the quest: the first one that is not complete.
fn phase(quest: &Quest) -> Phase {
    let open = |phase: Phase| quest.steps.values().any(|step| step.phase == phase && completed_at(step).is_none());
    [Phase::Requirements, Phase::Plan, Phase::Work].into_iter().find(|phase| open(*phase)).unwrap_or(Phase::Review)
}

fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Requirements => "requirements",
        Phase::Plan => "plan",
        Phase::Work => "work",
        Phase::Review => "review",
    }
}

/// The workflow step that corresponds to a phase.
fn workflow_step(phase: Phase) -> &'static str {
    match phase {
        Phase::Requirements => "interviewer",
        Phase::Plan => "executor-plan",
        Phase::Work | Phase::Review => "executor-build",
    }
}

fn chunk(quest: &Quest, id: &StepId, step: &Step, numbers: &BTreeMap<&StepId, usize>) -> Value {
    let plan = quest.plans.get(id);
    let needs: Vec<usize> =
        plan.iter().flat_map(|plan| &plan.depends_on).filter_map(|need| numbers.get(need).copied()).collect();
    let wanted = quest.requirements.as_ref().map(|it| it.observables.as_slice()).unwrap_or_default();
    let described = |id: &String| {
        wanted
            .iter()
            .find(|observable| observable.id == *id)
            .map_or_else(|| id.clone(), |found| line(&found.description))
    };
    let scenarios: Vec<String> = plan.iter().flat_map(|plan| &plan.observables).map(described).collect();
    let mut chunk = json!({
        "id": numbers.get(id).copied().unwrap_or_default(),
        "stepId": id.as_str(),
        "name": plan.map_or_else(|| id.to_string(), |plan| line(&plan.name)),
        "status": chunk_status(step),
        "sections": plan.map(|plan| aliases(&plan.description)).unwrap_or_default(),
        "scenarios": scenarios,
        "dependsOn": needs,
    });
    for (name, files) in
        plan.iter().flat_map(|plan| [("creates", &plan.files_to_create), ("modifies", &plan.files_to_modify)])
    {
        if !files.is_empty() {
            chunk[name] = json!(files);
        }
    }
    match &step.state {
        StepState::Complete { at, spec_version, .. } => {
            chunk["completedAt"] = json!(at.rfc3339());
            if let Some(version) = spec_version.as_deref() {
                chunk["specVersionAtBuild"] = json!(version);
            }
        }
        StepState::Failed { why, .. } => {
            chunk["failedAt"] = json!(step.since.rfc3339());
            chunk["error"] = json!(line(why));
        }
        _ if is_active(step) => {
            chunk["attempt"] = json!(step.tries());
            chunk["startedAt"] = json!(step.since.rfc3339());
        }
        StepState::Pending
        | StepState::Queued(_)
        | StepState::Running(_)
        | StepState::Asking(_)
        | StepState::Parked { .. }
        | StepState::Blocked => {}
    }
    chunk
}

fn chunk_status(step: &Step) -> &'static str {
    match &step.state {
        StepState::Complete { .. } => "completed",
        StepState::Failed { .. } => "failed",
        _ if is_active(step) && step.tries() > 1 => "retrying",
        _ if is_active(step) => "active",
        StepState::Pending
        | StepState::Queued(_)
        | StepState::Running(_)
        | StepState::Asking(_)
        | StepState::Parked { .. }
        | StepState::Blocked => "planned",
    }
}

/// Whether work on the step has begun and not ended.
fn is_active(step: &Step) -> bool {
    match step.state {
        StepState::Running(_) | StepState::Asking(_) | StepState::Parked { .. } => true,
        StepState::Queued(_) => step.attempts > 0,
        StepState::Pending | StepState::Blocked | StepState::Failed { .. } | StepState::Complete { .. } => false,
    }
}

fn completed_at(step: &Step) -> Option<Timestamp> {
    match step.state {
        StepState::Complete { at, .. } => Some(at),
        StepState::Pending
        | StepState::Queued(_)
        | StepState::Running(_)
        | StepState::Asking(_)
        | StepState::Parked { .. }
        | StepState::Blocked
        | StepState::Failed { .. } => None,
    }
}

/// The scenario score. An observable is satisfied when every step that lists it is complete.
fn score(quest: &Quest) -> Option<Value> {
    let wanted = quest.requirements.as_ref().filter(|it| !it.observables.is_empty())?;
    let is_done = |id: &StepId| quest.step(id).is_some_and(|step| completed_at(step).is_some());
    let satisfied = wanted.observables.iter().filter(|observable| {
        let mut promises = quest.plans.values().filter(|plan| plan.observables.contains(&observable.id)).peekable();
        promises.peek().is_some() && promises.all(|plan| is_done(&plan.id))
    });
    Some(json!({ "satisfied": satisfied.count(), "total": wanted.observables.len() }))
}

/// What the user should do next, or what the quest is doing if the user has nothing to do.
fn next_step(id: QuestId, quest: &Quest, is_asked: bool) -> String {
    let failed = quest.steps.iter().find(|(_, step)| matches!(step.state, StepState::Failed { .. }));
    match (quest.state, failed) {
        _ if is_asked => "Answer a question: hatchery ask list".into(),
        (QuestState::Paused, _) => format!("Resume the quest: hatchery quest resume {id}"),
        (_, Some((step, _))) => format!("Retry a failed step: hatchery quest retry {id} {step}"),
        (QuestState::Open | QuestState::Complete { .. } | QuestState::Abandoned { .. }, None) => {
            format!("Nothing waits for you: {}. Follow it: hatchery quest watch {id}", progress(quest))
        }
    }
}

/// What is being done now, and what comes after it.
fn progress(quest: &Quest) -> String {
    match phase(quest) {
        Phase::Requirements => "the requirements are written, then the steps are planned".into(),
        Phase::Plan => "the steps are planned, then they are worked on".into(),
        Phase::Work => {
            let steps = work(quest);
            let done = steps.iter().filter(|(_, step)| completed_at(step).is_some()).count();
            format!("{done} of {} steps are complete, then all of it is reviewed", steps.len())
        }
        Phase::Review => "all steps are complete and are reviewed".into(),
    }
}

fn concerns(world: &World, about: &About, agent: crate::AgentId, id: QuestId) -> bool {
    match about {
        About::QuestBudget { quest } | About::Step { quest, .. } => *quest == id,
        About::Silence(_) | About::Budget { .. } | About::Permission(_) => {
            world.assignment(agent).is_some_and(|it| it.quest == id)
        }
    }
}

/// The last summary of each role.
fn outputs(quest: &Quest) -> Object {
    let mut latest: BTreeMap<&str, (Timestamp, &StepId, &str)> = BTreeMap::new();
    for (id, step) in &quest.steps {
        for given in step.signals.iter() {
            if let Signal::Complete { summary } = &given.signal
                && latest.get(given.role.as_str()).is_none_or(|(at, ..)| *at <= given.at)
            {
                latest.insert(&given.role, (given.at, id, summary));
            }
        }
    }
    let mut outputs = Object::default();
    for (role, (at, step, summary)) in latest {
        outputs.set(role, json!({ "summary": summary, "step": step.as_str(), "timestamp": at.rfc3339() }).into());
    }
    outputs
}

/// The aliases of sections in a text, such as `#core-flow`.
fn aliases(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split(|char: char| char.is_whitespace() || "(),;:.`'\"[]{}".contains(char)) {
        let is_alias = |alias: &str| {
            alias.starts_with(|char: char| char.is_ascii_lowercase())
                && alias.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if word.strip_prefix('#').is_some_and(is_alias) && !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
    }
    found
}

/// The first line of a text, shortened to the limit.
pub(super) fn line(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    match first.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &first[..end]),
        None => first.to_owned(),
    }
}
