//! A quest as people and programs see it: what the API answers, what `quest.json` holds, and what is exported. Made from the world and
//! from nothing else. `docs/quest-json.md` describes it.

mod note;

pub use note::NoteDocument;

use hatchery_core::quest::{
    Brief, Caller, GivenSignal, NextAction, Quest, QuestSpec, QuestState, RefusedSignal, Requirements, SlotWork, Step,
    StepId, StepPlan, StepState, StepStatus, WardRun, WardSpec,
};
use hatchery_core::roles::{Phase, Table};
use hatchery_core::run::{Run, RunState};
use hatchery_core::slug;
use hatchery_core::usage::{Money, Usage};
use hatchery_core::{AgentId, EventId, QuestId, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the form. A change that readers have to know of raises it.
pub const SCHEMA: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuestDocument {
    /// The version of this form: 1.
    pub schema: u32,
    /// Only in an answer of the API: the last event that this document includes. A client that follows the log after this event
    /// misses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub head: Option<EventId>,
    /// The id of the quest.
    pub id: QuestId,
    /// The last event that changed the quest.
    pub version: EventId,
    /// What the quest is to achieve.
    pub request: String,
    /// The state of the quest.
    pub state: QuestWord,
    /// When the quest was created.
    pub created: Timestamp,
    /// When the quest last changed.
    pub changed: Timestamp,
    /// When it was completed or abandoned.
    pub ended: Option<Timestamp>,
    /// The number of slots: how many agents, wards and merges may work at the same time.
    pub slots: u32,
    /// The harness of its agents.
    pub harness: String,
    /// The command that checks a step.
    pub ward: Option<WardSpec>,
    /// The git branch that has the work, when each step has a worktree of its own.
    pub branch: Option<String>,
    /// Whether a step has changed something that is on that branch.
    #[serde(default)]
    pub has_work: bool,
    /// Whether the user must approve the plan before it is carried out.
    pub approve_plan: bool,
    /// What its agents may use in all.
    #[serde(default, with = "crate::amounts::money_or_null")]
    #[schema(value_type = Option<crate::amounts::Amount>, required = true)]
    pub budget: Option<Money>,
    /// What the quest's agents have used.
    #[serde(with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub spent: Usage,
    /// The requirements of a quest: contexts, and facts that can be checked.
    pub requirements: Option<Requirements>,
    /// In the order of the plan; the review is the last.
    pub steps: Vec<StepDocument>,
    /// The table of roles, without their prompts.
    pub table: Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestWord {
    Open,
    Paused,
    Complete,
    Abandoned,
}

/// Whether a quest goes on by itself, and if not, what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestSituation<'a> {
    /// An agent is at work, or will be without an answer of the user. There may be open questions all the same.
    Progressing,
    /// Only an answer is waited for.
    WaitingForAnswer,
    /// The quest is paused and waits to be resumed.
    Paused,
    /// Each step that is left has failed, or depends on one that has. These have.
    Stuck(Vec<&'a StepDocument>),
    Complete,
    Abandoned,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepDocument {
    pub id: StepId,
    pub phase: Phase,
    pub name: String,
    pub description: String,
    pub depends_on: Vec<StepId>,
    pub files_to_create: Vec<String>,
    pub files_to_modify: Vec<String>,
    pub observables: Vec<String>,
    pub status: StepStatus,
    /// What the step does or waits for, in a few words.
    pub doing: Option<String>,
    /// The agent that works on the step now, or is parked.
    pub agent: Option<AgentId>,
    /// The open question about it.
    pub question: Option<EventId>,
    /// What is asked.
    #[serde(default)]
    pub question_text: Option<String>,
    pub since: Timestamp,
    /// How many times an agent was started on this step.
    pub attempts: u32,
    pub agents: Vec<StepAgentDocument>,
    /// The last executions of the ward for this step. `…/wards/{number}/output` has their output.
    #[serde(default)]
    pub wards: Vec<WardRun>,
    /// The last signals of the step's agents.
    #[serde(default)]
    pub signals: Vec<GivenSignal>,
    /// The last signal that was refused, if no other signal followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub refused_signal: Option<RefusedSignal>,
    /// The agents that have called another role and wait for it, the latest last.
    #[serde(default)]
    pub callers: Vec<Caller>,
    /// What the agents in `agents` have used.
    #[serde(default, with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub spent: Usage,
    /// How many tool uses were denied to the agents of the step.
    #[serde(default)]
    pub denied: u32,
    /// What was done, as the last agent of the step reported.
    pub summary: Option<String>,
    /// What happened to the step, the latest last.
    pub history: Vec<NoteDocument>,
}

/// An agent that works or has worked on a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepAgentDocument {
    pub agent: AgentId,
    pub role: String,
    /// The harness's own name for its conversation.
    pub session: Option<String>,
}

impl QuestDocument {
    /// The readable name of the quest.
    pub fn slug(&self) -> String {
        let of_branch = self.branch.as_deref().and_then(|branch| branch.strip_prefix("hatchery/"));
        of_branch.map_or_else(|| slug::of(&self.request, self.id.as_bytes()), str::to_owned)
    }

    pub fn of(world: &World, id: QuestId) -> Option<Self> {
        let (quest, quest_spec) = (world.quest(id)?, world.quest_spec(id)?);
        let mut steps: Vec<(&StepId, &Step)> = quest.steps.iter().map(|(id, step)| (id, step.as_ref())).collect();
        steps.sort_by_key(|(_, step)| (step.phase, step.number));
        let (state, ended) = match quest.state {
            QuestState::Open => (QuestWord::Open, None),
            QuestState::Paused => (QuestWord::Paused, None),
            QuestState::Complete { at } => (QuestWord::Complete, Some(at)),
            QuestState::Abandoned { at } => (QuestWord::Abandoned, Some(at)),
        };
        let mut table = quest_spec.table.clone();
        table.roles.iter_mut().for_each(|role| role.prompt.clear());
        Some(Self {
            schema: SCHEMA,
            head: None,
            id,
            version: quest.version,
            request: quest_spec.request.clone(),
            state,
            created: quest.created,
            changed: quest.changed,
            ended,
            slots: quest_spec.slots,
            harness: quest_spec.spec.harness.clone(),
            ward: quest.ward.clone(),
            branch: branch(quest_spec),
            has_work: quest.steps.values().any(|step| step.has_work),
            approve_plan: quest_spec.approve_plan,
            budget: quest.budget,
            spent: quest.spent,
            requirements: quest.requirements.clone(),
            steps: steps.into_iter().map(|(step_id, step)| StepDocument::of(world, quest, step_id, step)).collect(),
            table,
        })
    }

    pub fn situation(&self) -> QuestSituation<'_> {
        match self.state {
            QuestWord::Complete => return QuestSituation::Complete,
            QuestWord::Abandoned => return QuestSituation::Abandoned,
            QuestWord::Paused => return QuestSituation::Paused,
            QuestWord::Open => {}
        }
        let moves = |step: &StepDocument| match step.status {
            StepStatus::Queued | StepStatus::Running | StepStatus::WaitingForRole => true,
            // Without a question it has a time at which it goes on, or another step asks for both.
            StepStatus::Parked => step.question.is_none(),
            StepStatus::Pending
            | StepStatus::WaitingForHuman
            | StepStatus::Blocked
            | StepStatus::Failed
            | StepStatus::Complete => false,
        };
        let failed: Vec<&StepDocument> = self.steps.iter().filter(|step| step.status == StepStatus::Failed).collect();
        match self.steps.iter().any(moves) {
            true => QuestSituation::Progressing,
            false if self.steps.iter().any(|step| step.question.is_some()) => QuestSituation::WaitingForAnswer,
            false if failed.is_empty() => QuestSituation::Progressing,
            false => QuestSituation::Stuck(failed),
        }
    }

    /// The steps that people are shown: not the phases that the table of roles leaves out, unless an agent has worked on one.
    pub fn shown_steps(&self) -> impl Iterator<Item = &StepDocument> {
        let is_left_out = |step: &StepDocument| {
            step.phase != Phase::Work && step.attempts == 0 && self.table.path(step.phase).is_empty()
        };
        self.steps.iter().filter(move |step| !is_left_out(step))
    }

    /// How many steps of the plan are complete, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        let work = self.steps.iter().filter(|step| step.phase == Phase::Work);
        let complete = work.clone().filter(|step| step.status == StepStatus::Complete).count();
        (complete, work.count())
    }
}

impl StepDocument {
    fn of(world: &World, quest: &Quest, id: &StepId, step: &Step) -> Self {
        let plan = quest.plans.get(id);
        let session = |agent: AgentId| {
            let harness_session =
                world.conversation(agent).and_then(|conversation| conversation.harness_session.as_ref());
            harness_session.map(|harness_session| harness_session.session.clone())
        };
        let hand = |hand: &hatchery_core::quest::StepAgent| StepAgentDocument {
            agent: hand.agent,
            role: hand.role.clone(),
            session: session(hand.agent),
        };
        // Its agent may be asked about, too: it is silent, or its money is used up.
        let of_run = || world.run(step.agent()?)?.question;
        let question = step.question.or_else(of_run);
        let of_plan = |list: fn(&StepPlan) -> Vec<String>| plan.map(list).unwrap_or_default();
        Self {
            id: id.clone(),
            phase: step.phase,
            name: plan.map_or_else(|| phase_name(step.phase).to_owned(), |plan| plan.name.clone()),
            description: plan.map(|plan| plan.description.clone()).unwrap_or_default(),
            depends_on: plan.map(|plan| plan.depends_on.clone()).unwrap_or_default(),
            files_to_create: of_plan(|plan| plan.files_to_create.clone()),
            files_to_modify: of_plan(|plan| plan.files_to_modify.clone()),
            observables: of_plan(|plan| plan.observables.clone()),
            status: status(quest, step),
            doing: doing(world, step).filter(|_| status(quest, step) == step.status()),
            agent: step.agent(),
            question,
            question_text: question.and_then(|question| world.question(question)).map(|asked| asked.text.clone()),
            since: step.since,
            attempts: step.attempts,
            agents: step.agents.iter().map(hand).collect(),
            wards: step.wards.iter().cloned().collect(),
            signals: step.signals.iter().cloned().collect(),
            refused_signal: step.refused.clone(),
            callers: step.progress.callers.clone(),
            spent: spent(world, step),
            summary: match &step.state {
                StepState::Complete { summary, .. } => Some(summary.clone()),
                _ => Some(step.summary.clone()),
            }
            .filter(|summary| !summary.is_empty()),
            denied: step.denied,
            history: step.notes.iter().map(NoteDocument::of).collect(),
        }
    }
}

/// What the agents of a step have used. One that was resumed is listed more than once, and counts once.
fn spent(world: &World, step: &Step) -> Usage {
    let agents: BTreeSet<AgentId> = step.agents.iter().map(|hand| hand.agent).collect();
    let used = agents.into_iter().filter_map(|agent| Some(world.conversation(agent)?.spent));
    used.fold(Usage::default(), |sum, one| sum + one)
}

/// What was under way when its quest was abandoned is not any more.
fn status(quest: &Quest, step: &Step) -> StepStatus {
    match step.status() {
        lasting @ (StepStatus::Complete | StepStatus::Failed | StepStatus::Blocked) => lasting,
        _ if quest.is_over() => StepStatus::Pending,
        now => now,
    }
}

/// The branch that has the work of a quest.
fn branch(quest_spec: &QuestSpec) -> Option<String> {
    quest_spec.slug().map(|slug| format!("hatchery/{slug}"))
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Requirements => "Find out what is wanted",
        Phase::Plan => "Find the steps",
        Phase::Work => "",
        Phase::Review => "Review all of it",
    }
}

fn doing(world: &World, step: &Step) -> Option<String> {
    let next = |next: &NextAction| match next {
        NextAction::Begin { role, brief } => match brief {
            Brief::Begin => role.clone(),
            Brief::Continue { .. } => format!("{role}, from where the last one left off"),
            Brief::Mend { .. } => format!("{role}, because the ward is red"),
            Brief::Reconcile { .. } => format!("{role}, because of a conflict"),
            Brief::FollowUp { from, .. } => format!("{role}, for the {from}"),
        },
        NextAction::Resume { role, .. } => format!("{role} goes on"),
        NextAction::Ward => "the ward".into(),
        NextAction::Merge => "the merge".into(),
    };
    match &step.state {
        StepState::Pending | StepState::Complete { .. } => None,
        StepState::Queued(then) => Some(next(then)),
        StepState::Running(SlotWork::Agent { role, agent, signal, .. }) => Some(match signal {
            Some(signal) => format!("{role} has signalled {}", signal.kind()),
            None => match world.run(*agent).map(|run| &run.state) {
                Some(RunState::Starting | RunState::Spawned { .. }) => format!("{role} starts"),
                Some(RunState::Stopping { .. }) => format!("{role} is being stopped"),
                _ => role.clone(),
            },
        }),
        StepState::Running(SlotWork::Ward(_)) => Some("the ward runs".into()),
        StepState::Running(SlotWork::Merge(_)) => Some("it is merged".into()),
        StepState::Asking(then) => Some(format!("then {}", next(then))),
        StepState::Parked { role, .. } => {
            match step.agent().and_then(|agent| world.run(agent)).is_some_and(Run::is_broke) {
                true => Some(format!("{role} waits for money")),
                false => Some(format!("{role} waits for a better moment")),
            }
        }
        StepState::Blocked => Some("a step that it depends on has failed".into()),
        StepState::Failed { why, .. } => Some(why.clone()),
    }
}
