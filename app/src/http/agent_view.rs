//! An agent as the API shows it: its data, what it is doing now, and the evidence.

use hatchery_core::agent::{Agent, Lifecycle};
use hatchery_core::event::MessageEvent;
use hatchery_core::quest::StepId;
use hatchery_core::seat::{Position, Seats};
use hatchery_core::usage::{ContextUse, Usage};
use hatchery_core::why::{self, Activity, Evidence};
use hatchery_core::{AgentId, Event, EventId, MessageKind, QuestId, Record, SessionId, Timestamp, World};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// How many characters of what an agent is doing are shown.
const DOING_CHARS: usize = 200;

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentView {
    pub id: AgentId,
    pub name: Option<String>,
    pub parent: Option<AgentId>,
    pub state: AgentState,
    pub provider: Option<String>,
    pub model: Option<String>,
    #[serde(rename = "sessionId")]
    pub session: Option<SessionId>,
    pub created: Timestamp,
    #[serde(rename = "lastActive")]
    pub last_active: Timestamp,
    /// The agent whose history this agent inherits. `fork_point` is the last inherited message.
    #[serde(rename = "forkedFrom")]
    pub forked_from: Option<AgentId>,
    #[serde(rename = "forkPoint")]
    pub fork_point: Option<EventId>,
    /// How many messages it has itself, without the inherited ones.
    pub messages: u64,
    #[serde(rename = "lastMessage")]
    pub last_message: Option<EventId>,
    #[serde(rename = "unreadMail")]
    pub unread_mail: usize,
    /// What it is doing now.
    pub activity: Activity,
    /// The newest evidence for its activity.
    pub evidence: Option<Evidence>,
    /// Its last message or tool call. In lists, of agents at rest only the latest have it.
    #[serde(default)]
    pub doing: Option<Doing>,
    /// How many of its tool calls have no result yet.
    #[serde(default, rename = "openTools")]
    pub open_tools: u32,
    /// The usage of all its runs.
    #[serde(with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub spent: Usage,
    /// How full the context of its model is. Null until the agent program reports it.
    #[serde(default)]
    pub context: Option<ContextUse>,
    /// The open question to the user for whose answer it waits.
    #[serde(default)]
    pub question: Option<EventId>,
    /// Its assignment, if it works on a quest.
    #[serde(default)]
    pub assignment: Option<AssignmentView>,
    /// When the agent expires unless it is heard from. Null if it is not hatching.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// The seat in which it sits or sat. Seat 4 is the lead's.
    #[serde(default)]
    pub seat: Option<Position>,
}

/// The last message or tool call of an agent, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Doing {
    /// The message that contains it.
    pub message: EventId,
    pub at: Timestamp,
    /// The tool, if it is a call.
    pub tool: Option<String>,
    /// The first line of the text, or the most important argument of the tool. At most 200 characters.
    pub line: String,
}

/// The quest, step and role that an agent works for.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AssignmentView {
    pub quest: QuestId,
    pub step: StepId,
    pub role: String,
}

/// What an agent is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Created, but not heard from yet.
    Hatching,
    Alive,
    Sleeping,
    /// Not heard from in time.
    Expired,
    Dead,
}

impl AgentState {
    /// False if the agent is in a final state.
    pub fn is_living(self) -> bool {
        !matches!(self, Self::Expired | Self::Dead)
    }
}

impl From<Lifecycle> for AgentState {
    fn from(lifecycle: Lifecycle) -> Self {
        match lifecycle {
            Lifecycle::Hatching { .. } => Self::Hatching,
            Lifecycle::Alive { .. } => Self::Alive,
            Lifecycle::Sleeping => Self::Sleeping,
            Lifecycle::Expired { .. } => Self::Expired,
            Lifecycle::Dead { .. } => Self::Dead,
        }
    }
}

impl fmt::Display for AgentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hatching => "hatching",
            Self::Alive => "alive",
            Self::Sleeping => "sleeping",
            Self::Expired => "expired",
            Self::Dead => "dead",
        })
    }
}

/// The open question to the user for whose answer an agent waits.
pub(super) fn open_question(world: &World, agent: AgentId) -> Option<EventId> {
    let of_run = || world.run(agent)?.question;
    let of_permission = || world.run(agent)?.attempt.permissions.iter().find_map(|pending| pending.question());
    let of_step = || {
        let assignment = world.assignment(agent)?;
        let question = world.quest(assignment.quest)?.step(&assignment.step)?.question?;
        (world.question(question)?.agent == agent).then_some(question)
    };
    of_run().or_else(of_permission).or_else(of_step)
}

impl AgentView {
    /// None if there is no such agent.
    pub fn of(world: &World, id: AgentId, now: Timestamp) -> Option<Self> {
        world.agent(id).map(|agent| Self::new(world, id, agent, now))
    }

    pub fn new(world: &World, id: AgentId, agent: &Agent, now: Timestamp) -> Self {
        let why = why::why(world, id);
        Self {
            id,
            name: agent.name.clone(),
            parent: agent.parent,
            state: agent.lifecycle.into(),
            provider: agent.provider.clone(),
            model: agent.model.clone(),
            session: agent.session(),
            created: agent.created,
            last_active: agent.last_active,
            forked_from: agent.origin.map(|origin| origin.agent),
            fork_point: agent.origin.and_then(|origin| origin.upto),
            messages: agent.messages,
            last_message: agent.last_message,
            unread_mail: world.mailbox(hatchery_core::Address::Agent(id)).map_or(0, |mailbox| mailbox.unread.len()),
            activity: why.as_ref().map_or(Activity::Resting, |why| why.state),
            evidence: why.and_then(|why| newest(why.evidence, now)),
            doing: None,
            open_tools: agent.open_tools,
            spent: world.conversation(id).map(|conversation| conversation.spent).unwrap_or_default(),
            context: world.conversation(id).and_then(|conversation| conversation.context),
            question: open_question(world, id),
            assignment: world.assignment(id).map(|it| AssignmentView {
                quest: it.quest,
                step: it.step.clone(),
                role: it.role.clone(),
            }),
            until: match agent.lifecycle {
                Lifecycle::Hatching { until, .. } => Some(until),
                _ => None,
            },
            seat: world.seats().position_of(id),
        }
    }
}

/// The newest evidence. Evidence may also be about the future, such as the end of a wait.
fn newest(evidence: Vec<Evidence>, now: Timestamp) -> Option<Evidence> {
    let past = evidence.into_iter().filter(|it| it.at <= now);
    // If two are equally old, the first counts, because it is about the run.
    past.reduce(|newest, other| if other.at > newest.at { other } else { newest })
}

impl Doing {
    /// None if the event is not a message.
    pub fn of(seats: &Seats, record: &Record) -> Option<Self> {
        let Event::Message(MessageEvent::Added { agent, kind, content, .. }) = &record.event else { return None };
        let (tool, line) = match kind {
            MessageKind::ToolCall => {
                let call: ToolCall = serde_json::from_str(content).ok()?;
                (Some(cut(&call.name)), called_with(&call.input))
            }
            _ => (None, cut(&seats.shown(*agent, content))),
        };
        Some(Self { message: record.id, at: record.ts, tool, line })
    }
}

/// A tool call as a message of a history.
#[derive(Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    input: Value,
}

/// The most important argument of a call: one with a usual name, otherwise the first string.
pub fn called_with(input: &Value) -> String {
    const TELLING: [&str; 8] = ["command", "file_path", "path", "pattern", "url", "query", "prompt", "description"];
    let by_name = TELLING.iter().find_map(|name| input[*name].as_str());
    let first = || input.as_object().and_then(|input| input.values().find_map(Value::as_str));
    by_name.or_else(first).map(cut).unwrap_or_default()
}

/// The first line that is not empty, shortened.
fn cut(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(DOING_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn doing(kind: MessageKind, content: &str) -> (Option<String>, String) {
        let agent = crate::clock::new_agent_id();
        let event =
            Event::Message(MessageEvent::Added { agent, kind, content: content.into(), to: None, source_id: None });
        let doing =
            Doing::of(&Seats::default(), &Record { id: EventId(1), ts: Timestamp(1), session: None, event }).unwrap();
        (doing.tool, doing.line)
    }

    #[test]
    fn a_call_is_told_by_the_argument_that_says_most() {
        let call = |name: &str, input: Value| {
            doing(MessageKind::ToolCall, &json!({ "id": "1", "name": name, "input": input }).to_string())
        };
        let bash = call("Bash", json!({ "description": "Run the tests", "command": "cargo test\n--all" }));
        assert_eq!(bash, (Some("Bash".into()), "cargo test".into()));
        assert_eq!(call("Read", json!({ "file_path": "/a.rs", "limit": 3 })).1, "/a.rs");
        assert_eq!(call("mcp__x__y", json!({ "to": "ann" })).1, "ann");
        assert_eq!(call("Odd", json!([1])).1, "");
        assert_eq!(doing(MessageKind::Assistant, "\n  I am done.\nReally."), (None, "I am done.".into()));
        assert_eq!(doing(MessageKind::Assistant, &"x".repeat(1_000)).1.len(), DOING_CHARS);
    }
}
