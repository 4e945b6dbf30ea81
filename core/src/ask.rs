//! Questions to the user: one queue, the oldest first. The id of a question is the event that asked it. A question is open until it is
//! answered, or until the answer no longer matters.

use crate::agent::Agent;
use crate::budget::BudgetScope;
use crate::event::QuestionEvent;
use crate::run::{self, AttemptId, StopWhy};
use crate::usage::Money;
use crate::{AgentId, Event, EventId, MessageKind, QuestId, Refusal, Timestamp, World};
use crate::{budget, permission, quest};
use serde::{Deserialize, Serialize};

/// The longest answer, in bytes of UTF-8: as long as a message, because an answer may become a message.
pub const MAX_ANSWER_BYTES: usize = crate::history::MAX_MESSAGE_BYTES;

/// An open question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The agent that waits for the answer.
    pub agent: AgentId,
    pub about: About,
    pub text: String,
    pub asked: Timestamp,
}

impl Question {
    /// Whether an answer cannot matter any more, because the agent is dead and only its process has not ended yet.
    pub fn is_moot(&self, world: &World) -> bool {
        let of_its_process = match self.about {
            About::Silence(_) | About::Permission(_) => true,
            // A step can continue with another agent. A run that waits for a budget has no process.
            About::Step { .. } | About::Budget { .. } | About::QuestBudget { .. } => false,
        };
        of_its_process && !world.agent(self.agent).is_some_and(Agent::is_living)
    }
}

/// What a question is about. This decides what an answer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A process has been silent for too long. `wait` waits for the same time again, `stop` stops the process, and any other answer is sent
    /// to the agent as a message.
    Silence(AttemptId),
    /// A budget is used up. An amount is the new limit; `stop` ends the run, or pauses the quest that the agent works for.
    Budget {
        /// None: the daily budget.
        of: Option<AgentId>,
    },
    /// The budget of a quest is used up. An amount is the new limit; `stop` pauses the quest.
    QuestBudget { quest: QuestId },
    /// A process requests permission to use a tool. The answers are `allow`, `deny`, `always-agent` and `always-project`.
    Permission(AttemptId),
    /// A step of a quest waits for the user.
    Step { quest: QuestId, trouble: StepTrouble },
}

/// Why a step waits for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepTrouble {
    /// The agent of the step has asked. The answer is sent to the agent, and the agent continues.
    Input,
    /// Roles call each other in a circle, or the work was handed to a new agent too often. The answer is sent to the agent, and the agent
    /// continues.
    Circle,
    /// The agent ended before the step was complete, and an automatic retry would not help. The answer is `retry`, or a message to the
    /// agent.
    Ended,
    /// The ward could not be run. The answers are `retry` and `ward: COMMAND`.
    Ward,
    /// The step could not be merged. The answer is `retry`.
    Merge,
    /// The plan needs the user's approval. The answer is `yes`, or what to change.
    Approval,
}

/// The answers that a question accepts, for interfaces that offer buttons. [`answer`] carries the answers out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// Words with a fixed meaning.
    pub words: &'static [&'static str],
    /// An amount of dollars: the new limit.
    pub amount: bool,
    /// `ward: COMMAND`, which sets another ward.
    pub ward: bool,
    /// `deny: REASON`; the reason is sent to the agent.
    pub reason: bool,
    /// Any other text, which is sent to the agent.
    pub text: bool,
}

impl About {
    pub fn takes(self) -> Takes {
        let none = Takes::default();
        match self {
            Self::Silence(_) => Takes { words: &["wait", "stop"], text: true, ..none },
            Self::Budget { .. } | Self::QuestBudget { .. } => Takes { words: &["stop"], amount: true, ..none },
            Self::Permission(_) => {
                Takes { words: &["allow", "deny", "always-agent", "always-project"], reason: true, ..none }
            }
            Self::Step { trouble, .. } => match trouble {
                StepTrouble::Input | StepTrouble::Circle => Takes { text: true, ..none },
                StepTrouble::Ended => Takes { words: &["retry"], text: true, ..none },
                StepTrouble::Ward => Takes { words: &["retry"], ward: true, ..none },
                StepTrouble::Merge => Takes { words: &["retry"], ..none },
                StepTrouble::Approval => Takes { words: &["yes"], text: true, ..none },
            },
        }
    }
}

/// The question about a silent process.
pub(crate) fn of_silence(of: AttemptId, silent_ms: u64) -> Event {
    let text = format!(
        "Its process has written nothing for {} s. Answer `wait`, `stop`, or a message to the agent.",
        silent_ms / 1_000
    );
    Event::Question { agent: of.agent, what: QuestionEvent::Asked { about: About::Silence(of), text } }
}

fn too_little(question: EventId, spent: Money) -> Refusal {
    let expected = format!("{spent} is spent already, and the new budget must be more than that, or the answer `stop`");
    Refusal::BadAnswer { question, expected }
}

/// The events that an answer leads to.
pub(crate) fn answer(world: &World, question: EventId, answer: &str, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let asked = world.question(question).ok_or(Refusal::NoQuestion(question))?;
    if answer.len() > MAX_ANSWER_BYTES {
        return Err(Refusal::MessageTooLong { bytes: answer.len() });
    }
    let agent = asked.agent;
    let answered = Event::Question { agent, what: QuestionEvent::Answered { question, answer: answer.to_owned() } };
    let bad = || Refusal::BadAnswer { question, expected: asked.text.clone() };
    let follows = match (asked.about, answer.trim()) {
        (_, "") => return Err(bad()),
        (About::Silence(_), "stop") => run::stop(world, agent, &StopWhy::Stuck)?,
        (About::Silence(_), "wait") => Vec::new(),
        (About::Silence(_), _) => crate::history::add(world, agent, MessageKind::User, answer)?,
        (About::Budget { .. } | About::QuestBudget { .. }, "stop") => budget::give_no_more(world, agent, asked.about)?,
        (About::Budget { of }, amount) => {
            let whose = of.map_or(BudgetScope::Day, BudgetScope::Agent);
            let limit = budget::amount(amount).ok_or_else(bad)?;
            budget::raise(world, agent, whose, limit, now)?.map_err(|spent| too_little(question, spent))?
        }
        (About::QuestBudget { quest }, amount) => {
            let limit = budget::amount(amount).ok_or_else(bad)?;
            let raised = budget::raise(world, agent, BudgetScope::Quest(quest), limit, now)?;
            raised.map_err(|spent| too_little(question, spent))?
        }
        (About::Permission(of), answer) => permission::answered(world, question, of, answer)?.ok_or_else(bad)?,
        (About::Step { quest, trouble }, _) => {
            quest::answered(world, quest, agent, trouble, answer).map_err(|refusal| refusal.unwrap_or_else(bad))?
        }
    };
    Ok([answered].into_iter().chain(follows).collect())
}
