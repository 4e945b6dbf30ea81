//! Questions to the user, and budgets, over HTTP.

use super::agents::find;
use super::error::{ApiError, JsonBody, PathParts};
use super::once::{CallerId, Once};
use super::{Accepted, Api};
use axum::Json;
use axum::extract::State;
use hatchery_core::ask::{About, Question, StepTrouble, Takes};
use hatchery_core::permission::{Access, PermissionRequest, PermissionRule};
use hatchery_core::quest::{Signal, StepId};
use hatchery_core::usage::{Money, Usage};
use hatchery_core::{AgentId, Command, EventId, QuestId, Refusal, Timestamp, World, budget};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QuestionList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// The open questions, the oldest first.
    pub questions: Vec<QuestionView>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QuestionView {
    pub id: EventId,
    /// The agent that waits for the answer.
    pub agent: AgentId,
    pub name: Option<String>,
    /// The quest that it works for.
    #[serde(default)]
    pub quest: Option<QuestId>,
    /// The step that waits for the answer.
    #[serde(default)]
    pub step: Option<StepId>,
    pub about: About,
    pub text: String,
    /// What the user needs to know to answer, if the agent has given it.
    #[serde(default)]
    pub context: Option<String>,
    /// What the agent asks permission for.
    #[serde(default)]
    pub permission: Option<PermissionView>,
    /// Which answers are accepted.
    #[serde(default)]
    pub takes: TakesView,
    pub asked: Timestamp,
}

/// What an agent asks permission for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PermissionView {
    pub tool: String,
    /// JSON text.
    pub input: String,
    pub access: Access,
    /// The folder in which the agent works.
    pub folder: Option<String>,
    /// What `always-agent` and `always-project` allow from now on.
    pub rule: String,
}

/// Which answers to a question are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TakesView {
    /// Words with a fixed meaning: `wait`, `stop`, `retry`, `yes`.
    pub words: Vec<String>,
    /// An amount of dollars, such as `5` or `0.25`: the new budget.
    pub amount: bool,
    /// `ward: COMMAND`, which sets another ward.
    pub ward: bool,
    /// `deny: REASON`; the agent receives the reason.
    #[serde(default)]
    pub reason: bool,
    /// Any other text, which the agent receives.
    pub text: bool,
    /// Answers that the agent itself offers. The agent receives the chosen one.
    #[serde(default)]
    pub choices: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// An id that the caller has chosen. A repeated request with the same id and content gets the same answer, and is carried out only once.
    id: Option<CallerId>,
    /// The text of the question says which answers it accepts. At most 1 MiB of UTF-8.
    answer: String,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBudget {
    /// The agent that the budget is for. Without it, the daily budget of all agents.
    agent: Option<String>,
    /// In dollars, such as `5` or `0.25`. Null removes the budget.
    limit: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BudgetList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    pub budgets: Vec<BudgetView>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BudgetView {
    /// None for the daily budget.
    pub agent: Option<AgentId>,
    pub name: Option<String>,
    #[serde(with = "crate::amounts::money")]
    #[schema(value_type = crate::amounts::Amount)]
    pub limit: Money,
    /// What was spent so far, or so far today.
    #[serde(with = "crate::amounts::money")]
    #[schema(value_type = crate::amounts::Amount)]
    pub spent: Money,
}

/// List the open questions to the user.
#[utoipa::path(get, path = "/api/questions", operation_id = "list_questions", tag = "questions", responses((status = 200, description = "The oldest first", body = QuestionList)))]
pub async fn list(State(api): State<Api>) -> Json<QuestionList> {
    let world = api.handle.view();
    Json(QuestionList { head: world.head(), questions: views(&world) })
}

/// Answer a question. A question can be answered once.
#[utoipa::path(post, path = "/api/questions/{question}/answer", operation_id = "answer_question", tag = "questions", params(("question" = u64, Path, description = "The id of a question")), request_body = Reply,
    responses((status = 200, description = "Answered", body = super::AcceptedBody)))]
pub async fn answer(
    State(api): State<Api>,
    question: PathParts<u64>,
    body: JsonBody<Reply>,
) -> Result<Accepted, ApiError> {
    let once = Once::of(body.0.id.as_ref(), "answer", &question.0.to_string(), &body.0)?;
    if let Some(answer) = once.answered(&api).await? {
        return Ok(answer);
    }
    let question = EventId(question.0);
    let world = api.handle.view();
    let agent = world.question(question).map(|asked| asked.agent).ok_or(Refusal::NoQuestion(question))?;
    let records = once.submit(&api, Command::AnswerQuestion { question, answer: body.0.answer }).await?;
    Ok(Accepted::new(agent.to_string(), &records))
}

/// List all budgets and what is spent.
#[utoipa::path(get, path = "/api/budgets", operation_id = "list_budgets", tag = "questions", responses((status = 200, description = "That of each day first", body = BudgetList)))]
pub async fn budgets(State(api): State<Api>) -> Json<BudgetList> {
    let world = api.handle.view();
    Json(BudgetList { head: world.head(), budgets: budget_views(&world, crate::clock::now()) })
}

pub(super) fn budget_views(world: &World, now: Timestamp) -> Vec<BudgetView> {
    let today = budget::day(now);
    let view = |(agent, limit): (Option<AgentId>, Money)| {
        let used = |agent| world.conversation(agent).map_or(Usage::default(), |conversation| conversation.spent);
        let spent = agent.map_or_else(|| world.spent_on(today), used).cost;
        BudgetView { agent, name: agent.and_then(|agent| name(world, agent)), limit, spent }
    };
    world.budgets().map(view).collect()
}

/// Set the budget of an agent, or the daily budget of all agents. The id in the answer is the agent's, or that of agent 0.
#[utoipa::path(post, path = "/api/budgets", operation_id = "set_budget", tag = "questions", request_body = SetBudget,
    responses((status = 200, description = "Set; runs that waited for it go on", body = super::AcceptedBody)))]
pub async fn set_budget(State(api): State<Api>, body: JsonBody<SetBudget>) -> Result<Accepted, ApiError> {
    let agent = body.0.agent.map(|reference| find(&api, &reference)).transpose()?;
    let bad = |text: &String| {
        ApiError::bad("bad_amount", format!("`{text}` is no amount of dollars"), "for example 5 or 0.25")
    };
    let limit = body.0.limit.map(|text| budget::amount(&text).ok_or_else(|| bad(&text))).transpose()?;
    let records = api.handle.submit(Command::SetBudget { agent, limit }).await?;
    let about = agent.or_else(|| api.handle.view().root()).map(|agent| agent.to_string()).unwrap_or_default();
    Ok(Accepted::new(about, &records))
}

pub(super) fn views(world: &World) -> Vec<QuestionView> {
    world.questions_to_answer().map(|(id, question)| view(world, id, question)).collect()
}

impl QuestionView {
    /// The question and its context, as one text for people.
    pub fn whole(&self) -> String {
        match &self.context {
            Some(context) => format!("{}\n\n{context}", self.text),
            None => self.text.clone(),
        }
    }
}

impl From<Takes> for TakesView {
    fn from(takes: Takes) -> Self {
        let Takes { words, amount, ward, reason, text } = takes;
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self { words, amount, ward, reason, text, choices: Vec::new() }
    }
}

fn view(world: &World, id: EventId, question: &Question) -> QuestionView {
    let Parts { text, context, choices } = apart(world, question);
    QuestionView {
        id,
        agent: question.agent,
        name: name(world, question.agent),
        quest: world.assignment(question.agent).map(|assignment| assignment.quest),
        step: match question.about {
            About::Step { .. } => world.assignment(question.agent).map(|assignment| assignment.step.clone()),
            About::Silence(_) | About::Budget { .. } | About::QuestBudget { .. } | About::Permission(_) => None,
        },
        about: question.about,
        text,
        context,
        permission: permission(world, id, question),
        takes: TakesView { choices, ..question.about.takes().into() },
        asked: question.asked,
    }
}

fn permission(world: &World, id: EventId, question: &Question) -> Option<PermissionView> {
    let About::Permission(of) = question.about else { return None };
    let run = world.run(of.agent)?;
    let request = &run.attempt.permissions.iter().find(|pending| pending.question() == Some(id))?.request;
    let rule = PermissionRule::of(request);
    let PermissionRequest { tool, input, access, folder, .. } = request;
    Some(PermissionView {
        tool: tool.clone(),
        input: input.clone(),
        access: access.clone(),
        folder: folder.clone(),
        rule: rule.to_string(),
    })
}

/// The parts of a question that an agent has asked with its signal.
struct Parts {
    text: String,
    context: Option<String>,
    choices: Vec<String>,
}

/// The text of a question contains the question and the context of the signal. The choices are only in the signal.
fn apart(world: &World, question: &Question) -> Parts {
    let whole = Parts { text: question.text.clone(), context: None, choices: Vec::new() };
    let About::Step { trouble: StepTrouble::Input, .. } = question.about else { return whole };
    let given = || {
        let assignment = world.assignment(question.agent)?;
        let step = world.quest(assignment.quest)?.step(&assignment.step)?;
        step.signals.iter().rev().find(|given| given.agent == question.agent)
    };
    let Some(Signal::NeedsUserInput { question: asked, context, choices }) = given().map(|given| &given.signal) else {
        return whole;
    };
    let choices = choices.clone();
    match question.text == format!("{asked}\n\n{context}") {
        true => Parts { text: asked.clone(), context: Some(context.clone()), choices },
        // There is no context, or the texts were too long and were shortened in the world.
        false => Parts { choices, ..whole },
    }
}

fn name(world: &World, agent: AgentId) -> Option<String> {
    world.agent(agent).and_then(|it| it.name.clone())
}
