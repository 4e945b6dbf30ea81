//! Requirements and plans of a quest: agents submit them, and they are checked before they count.

use super::{Quest, SlotWork, StepState, going};
use crate::event::QuestEvent;
use crate::roles::{self, Phase};
use crate::{AgentId, Event, QuestId, Refusal, World, dag};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The longest id of a step, in bytes. It becomes part of paths and branches.
pub const MAX_STEP_ID_BYTES: usize = 64;
/// The most steps of a plan.
pub const MAX_STEPS: usize = 10_000;
/// The longest text of a step, an observable or a context, in bytes.
pub const MAX_TEXT_BYTES: usize = 64 << 10;
/// The longest name of a step, in bytes.
const MAX_NAME_BYTES: usize = 200;
/// How many characters of a request become the name of its only step. A character has at most four bytes.
const MAX_NAME_CHARS: usize = MAX_NAME_BYTES / 4;
/// The most entries of a list: files, dependencies, observables.
pub const MAX_ENTRIES: usize = 1_000;

/// How many problems of the same kind an error names.
const MAX_NAMED: usize = 10;

/// The id of a step: lowercase letters, digits and dashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String))]
#[serde(transparent)]
pub struct StepId(Arc<str>);

impl StepId {
    /// The step for the requirements.
    pub fn requirements() -> Self {
        Self("requirements".into())
    }

    /// The step for the plan.
    pub fn plan() -> Self {
        Self("plan".into())
    }

    /// The step for the review.
    pub fn review() -> Self {
        Self("review".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the id belongs to a step that every quest has.
    pub fn is_reserved(&self) -> bool {
        matches!(self.as_str(), "requirements" | "plan" | "review")
    }
}

impl std::str::FromStr for StepId {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        match roles::is_name(text, MAX_STEP_ID_BYTES) {
            true => Ok(Self(text.into())),
            false => Err(Refusal::BadStepId { id: text.chars().take(MAX_STEP_ID_BYTES).collect() }),
        }
    }
}

impl<'de> Deserialize<'de> for StepId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refused = |refusal: Refusal| D::Error::custom(format_args!("{refusal}; {}", refusal.hint()));
        String::deserialize(deserializer)?.parse().map_err(refused)
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The plan of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepPlan {
    pub id: StepId,
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, alias = "dependsOn")]
    pub depends_on: Vec<StepId>,
    #[serde(default, alias = "filesToCreate")]
    pub files_to_create: Vec<String>,
    #[serde(default, alias = "filesToModify")]
    pub files_to_modify: Vec<String>,
    /// The observables that are true when the step is complete.
    #[serde(default)]
    pub observables: Vec<String>,
}

impl StepPlan {
    /// The only step of a quest without a planner: the whole request. The step has no description, because each agent gets the request.
    pub fn whole(request: &str) -> Self {
        let first = request.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("the request");
        Self {
            id: StepId("work".into()),
            name: first.chars().take(MAX_NAME_CHARS).collect(),
            description: String::new(),
            depends_on: Vec::new(),
            files_to_create: Vec::new(),
            files_to_modify: Vec::new(),
            observables: Vec::new(),
        }
    }
}

/// All steps of a quest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkPlan {
    pub steps: Vec<StepPlan>,
}

/// The requirements of a quest: contexts, and facts that can be checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Requirements {
    pub contexts: Vec<QuestContext>,
    pub observables: Vec<Observable>,
}

/// A situation in which something is observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuestContext {
    pub id: String,
    pub description: String,
}

/// A fact that can be checked when the quest is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Observable {
    pub id: String,
    /// The context in which the fact is observed.
    #[serde(default)]
    pub context: Option<String>,
    pub description: String,
}

/// Checks and accepts the requirements that an agent submits.
pub(crate) fn require(world: &World, agent: AgentId, given: &Requirements) -> Result<Vec<Event>, Refusal> {
    let (id, _) = by(world, agent, |table| &table.requirer)?;
    check_requirements(given)?;
    check_promises(going(world, id)?, given)?;
    Ok(vec![Event::Quest { quest: id, what: QuestEvent::RequirementsSet { requirements: given.clone() } }])
}

/// Refuses requirements without an observable that a step of the plan lists. A complete step was checked for its observables, and an open
/// step would be worked on for nothing.
fn check_promises(quest: &Quest, given: &Requirements) -> Result<(), Refusal> {
    let wanted: BTreeSet<&str> = given.observables.iter().map(|it| it.id.as_str()).collect();
    let promises = quest.plans.values().flat_map(|plan| plan.observables.iter().map(move |it| (&plan.id, it)));
    let lost: Vec<String> = promises
        .filter(|(_, observable)| !wanted.contains(observable.as_str()))
        .map(|(step, observable)| format!("`{observable}` of step `{step}`"))
        .take(MAX_NAMED)
        .collect();
    match lost.is_empty() {
        true => Ok(()),
        false => {
            let why =
                format!("the plan lists observables that these requirements lack: {}; keep them", lost.join(", "));
            Err(Refusal::BadRequirements { why })
        }
    }
}

/// Whether the requirements can be checked and are within the limits.
pub(crate) fn check_requirements(given: &Requirements) -> Result<(), Refusal> {
    let bad = |why: String| Refusal::BadRequirements { why };
    if given.observables.is_empty() {
        return Err(bad("there is no observable, so it cannot be checked that the quest is complete".into()));
    }
    if given.observables.len().max(given.contexts.len()) > MAX_ENTRIES {
        return Err(bad(format!("at most {MAX_ENTRIES} contexts and observables are possible")));
    }
    let contexts: BTreeSet<&str> = given.contexts.iter().map(|context| context.id.as_str()).collect();
    let observables: BTreeSet<&str> = given.observables.iter().map(|it| it.id.as_str()).collect();
    if contexts.len() < given.contexts.len() || observables.len() < given.observables.len() {
        return Err(bad("an id is there twice".into()));
    }
    let ids = contexts.iter().chain(&observables);
    if let Some(id) = ids.copied().find(|id| !roles::is_name(id, MAX_STEP_ID_BYTES)) {
        let id: String = id.chars().take(MAX_STEP_ID_BYTES).collect();
        return Err(bad(format!("`{id}` cannot be an id: use small letters, digits and dashes")));
    }
    let unknown = |it: &&crate::quest::Observable| it.context.as_deref().is_some_and(|id| !contexts.contains(id));
    if let Some(lost) = given.observables.iter().find(unknown) {
        return Err(bad(format!("the observable `{}` names a context that is not among the contexts", lost.id)));
    }
    let texts = given.contexts.iter().map(|it| &it.description);
    let mut texts = texts.chain(given.observables.iter().map(|it| &it.description));
    if texts.any(|text| text.trim().is_empty() || text.len() > MAX_TEXT_BYTES) {
        return Err(bad(format!("each description has 1 to {MAX_TEXT_BYTES} bytes")));
    }
    Ok(())
}

/// Checks and accepts the plan that an agent submits. Steps that are complete or under way stay as they are, whether the plan lists them or
/// not. Steps that no agent has begun are replaced.
pub(crate) fn hand_in(world: &World, agent: AgentId, steps: &[StepPlan]) -> Result<Vec<Event>, Refusal> {
    let (id, own) = by(world, agent, |table| &table.planner)?;
    let quest = going(world, id)?;
    // The user is asked about the first plan when its phase is complete.
    let needs_consent = own != StepId::plan() && world.quest_spec(id).is_some_and(|spec| spec.approve_plan);
    if steps.is_empty() {
        return Err(Refusal::BadPlan { why: "there is no step in it".into() });
    }
    check(steps, quest.requirements.as_ref())?;
    let stays = |plan: &&StepPlan| stays(quest, &plan.id, &own);
    // The steps that stay are part of the graph, with their old plans.
    let kept: Vec<&StepPlan> = quest.plans.values().filter(stays).collect();
    let given = steps.iter().filter(|plan| !stays(plan));
    let all: Vec<&StepPlan> = kept.into_iter().chain(given).collect();
    check_graph(&all)?;
    Ok(vec![Event::Quest {
        quest: id,
        what: QuestEvent::StepsPlanned { steps: steps.to_vec(), by: Some(agent), summary: None, needs_consent },
    }])
}

/// Whether a step stays as it is when an agent that works on the step `own` submits a new plan.
pub(crate) fn stays(quest: &Quest, id: &StepId, own: &StepId) -> bool {
    id != own && quest.step(id).is_some_and(|step| !step.is_untouched())
}

/// Checks each step of a plan by itself.
pub(crate) fn check(steps: &[StepPlan], requirements: Option<&Requirements>) -> Result<(), Refusal> {
    let bad = |why: String| Refusal::BadPlan { why };
    if steps.len() > MAX_STEPS {
        return Err(bad(format!("it has {} steps; at most {MAX_STEPS} are possible", steps.len())));
    }
    for step in steps {
        let id = &step.id;
        if id.is_reserved() {
            return Err(bad(format!("`{id}` is a step that every quest has; choose another id")));
        }
        if step.name.trim().is_empty() || step.name.len() > MAX_NAME_BYTES {
            return Err(bad(format!("the name of `{id}` must have 1 to {MAX_NAME_BYTES} bytes")));
        }
        if step.description.len() > MAX_TEXT_BYTES {
            return Err(bad(format!("the description of `{id}` is longer than {MAX_TEXT_BYTES} bytes")));
        }
        let files = step.files_to_create.iter().chain(&step.files_to_modify).chain(&step.observables);
        let entries = step.depends_on.len() + files.clone().count();
        if entries > MAX_ENTRIES || files.clone().any(|file| file.is_empty() || file.len() > 4_096) {
            return Err(bad(format!("`{id}` lists too much, or something empty or too long")));
        }
        let known = |wanted: &String| requirements.is_none_or(|all| all.observables.iter().any(|it| it.id == *wanted));
        if let Some(lost) = step.observables.iter().find(|wanted| !known(wanted)) {
            return Err(bad(format!("`{id}` names the observable `{lost}`, which is not among the requirements")));
        }
    }
    Ok(())
}

pub(crate) fn check_graph(steps: &[&StepPlan]) -> Result<(), Refusal> {
    let nodes = steps.iter().map(|step| (step.id.as_str(), step.depends_on.iter().map(StepId::as_str).collect()));
    dag::check(nodes).map_err(|tangle| Refusal::BadPlan { why: tangle.to_string() })
}

/// The quest and the step of an agent, if the agent is at work on it in the given role.
fn by(world: &World, agent: AgentId, role: impl Fn(&roles::Table) -> &String) -> Result<(QuestId, StepId), Refusal> {
    let assignment = world.assignment(agent).ok_or(Refusal::NoAssignment(agent))?;
    let quest = going(world, assignment.quest)?;
    let quest_spec = world.quest_spec(assignment.quest).ok_or(Refusal::UnknownQuest(assignment.quest))?;
    let wanted = role(&quest_spec.table);
    if assignment.role != *wanted {
        return Err(Refusal::WrongRole { role: assignment.role.clone(), wanted: wanted.clone() });
    }
    let step = quest
        .step(&assignment.step)
        .ok_or(Refusal::UnknownStep { quest: assignment.quest, step: assignment.step.clone() })?;
    let works = matches!(&step.state, StepState::Running(SlotWork::Agent { agent: now, .. }) if *now == agent);
    match works {
        true => Ok((assignment.quest, assignment.step.clone())),
        false => Err(Refusal::NotAtWork { agent, step: assignment.step.clone() }),
    }
}

/// The phase of a step, from its id.
pub(crate) fn phase(id: &StepId) -> Phase {
    match id.as_str() {
        "requirements" => Phase::Requirements,
        "plan" => Phase::Plan,
        "review" => Phase::Review,
        _ => Phase::Work,
    }
}
