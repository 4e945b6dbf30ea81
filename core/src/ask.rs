//! Questions to the human: one queue, first come first served. A question is known by the event that asked it. It is open until it
//! is answered, or until the answer no longer matters.

use crate::agent::Agent;
use crate::budget::BudgetScope;
use crate::event::QuestionEvent;
use crate::run::{self, AttemptId, StopWhy};
use crate::usage::Money;
use crate::{AgentId, Event, EventId, MessageKind, QuestId, Refusal, Timestamp, World};
use crate::{budget, permission, quest};
use serde::{Deserialize, Serialize};

/// The longest answer, in bytes of UTF-8: that of a message, since it may become one.
pub const MAX_ANSWER_BYTES: usize = crate::history::MAX_MESSAGE_BYTES;

/// An open question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Who waits for the answer.
    pub agent: AgentId,
    pub about: About,
    pub text: String,
    pub asked: Timestamp,
}

impl Question {
    /// Whether no answer can matter any more, because the agent is dead and only its process has yet to end.
    pub fn is_moot(&self, world: &World) -> bool {
        let of_its_process = match self.about {
            About::Silence(_) | About::Permission(_) => true,
            // The step goes on with another agent, and a run that waits for money has no process.
            About::Step { .. } | About::Budget { .. } | About::QuestBudget { .. } => false,
        };
        of_its_process && !world.agent(self.agent).is_some_and(Agent::is_living)
    }
}

/// What a question is about, which says what an answer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A process has been silent for too long. `wait` gives it the same time again, `stop` ends it, anything else is said to it.
    Silence(AttemptId),
    /// A budget is used up. An amount is the new ceiling; `stop` ends the run, or lets the quest rest that it works for.
    Budget {
        /// None if it is the budget of a day.
        of: Option<AgentId>,
    },
    /// The budget of a quest is used up. An amount is the new ceiling; `stop` pauses the quest.
    QuestBudget { quest: QuestId },
    /// A process asks for permission to use a tool. `allow`, `deny`, `always-agent` or `always-project`.
    Permission(AttemptId),
    /// A step of a quest waits.
    Step { quest: QuestId, trouble: StepTrouble },
}

/// Why a step waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepTrouble {
    /// Its agent asked. The answer is told to it, and it goes on.
    Input,
    /// Roles call each other in a circle, or work is handed on without an end. The answer is told to the agent, and it goes on.
    Circle,
    /// Its agent ended before it was done, and trying again by itself would not help. `retry`, or something to say to it.
    Ended,
    /// Its ward could not be run. `retry`, or `ward: COMMAND`.
    Ward,
    /// It could not be merged. `retry`.
    Merge,
    /// The plan needs a person's consent. `yes`, or what to change.
    Approval,
}

/// What a question takes for an answer: the other half of [`answer`], for those who offer buttons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// Words that mean something by themselves.
    pub words: &'static [&'static str],
    /// An amount of dollars: the new ceiling.
    pub amount: bool,
    /// `ward: COMMAND`, for another ward.
    pub ward: bool,
    /// `deny: REASON`; the reason is told to the agent.
    pub reason: bool,
    /// Anything else, which is told to the agent.
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

/// The question that a silent process leads to.
pub(crate) fn of_silence(of: AttemptId, silent_ms: u64) -> Event {
    let text = format!(
        "Nothing was heard of it for {} s. Answer `wait`, `stop`, or something to say to it.",
        silent_ms / 1_000
    );
    Event::Question { agent: of.agent, what: QuestionEvent::Asked { about: About::Silence(of), text } }
}

fn too_little(question: EventId, spent: Money) -> Refusal {
    let expected = format!("{spent} is spent already, and the new budget must be more than that, or the answer `stop`");
    Refusal::BadAnswer { question, expected }
}

/// What an answer leads to.
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
