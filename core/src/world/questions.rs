//! How events change questions to the user, and budgets.

use super::{Impossible, World};
use crate::ask::{About, Question};
use crate::event::QuestionEvent;
use crate::usage::Money;
use crate::{AgentId, EventId, Timestamp};
use std::sync::Arc;

impl World {
    pub(super) fn apply_question(
        &mut self,
        at: EventId,
        ts: Timestamp,
        agent: AgentId,
        what: &QuestionEvent,
    ) -> Result<(), Impossible> {
        match what {
            QuestionEvent::Asked { about, text } => self.question_asked(at, ts, agent, *about, text),
            QuestionEvent::Answered { question, .. } => self.question_answered(at, ts, *question),
            QuestionEvent::Withdrawn { question } => self.question_closed(at, *question).map(|_| ()),
        }
    }

    fn question_asked(
        &mut self,
        at: EventId,
        ts: Timestamp,
        agent: AgentId,
        about: About,
        text: &str,
    ) -> Result<(), Impossible> {
        self.questions.insert(at, Question { agent, about, text: text.to_owned(), asked: ts });
        if let About::Step { .. } = about {
            self.step_question(agent, Some(at));
            return Ok(());
        }
        if let About::Permission(of) = about {
            return self.permission_asked(at, ts, of);
        }
        let run = self.runs.get_mut(&agent).map(Arc::make_mut).ok_or(Impossible::Agent {
            at,
            agent,
            why: "was never run",
        })?;
        // If a budget turns out to be used up, this question replaces the question about the silence of the process.
        let before = run.question.replace(at);
        self.questions_to_withdraw.extend(before);
        Ok(())
    }

    /// The user has answered. A silent process gets the same time again.
    fn question_answered(&mut self, at: EventId, ts: Timestamp, question: EventId) -> Result<(), Impossible> {
        let asked = self.question_closed(at, question)?;
        match asked.about {
            About::Silence(of) => self.given_time(at, ts, of),
            About::Budget { .. } | About::QuestBudget { .. } | About::Permission(_) | About::Step { .. } => Ok(()),
        }
    }

    /// The question was answered, or the answer no longer matters.
    fn question_closed(&mut self, at: EventId, question: EventId) -> Result<Question, Impossible> {
        let asked = self.questions.remove(&question).ok_or(Impossible::Question { at, question })?;
        self.questions_to_withdraw.remove(&question);
        if let About::Step { .. } = asked.about {
            self.step_question(asked.agent, None);
        }
        if let Some(run) = self.runs.get_mut(&asked.agent).map(Arc::make_mut) {
            run.question.take_if(|open| *open == question);
        }
        Ok(asked)
    }

    pub(super) fn budget_set(&mut self, of: Option<AgentId>, limit: Option<Money>) {
        match limit {
            Some(limit) => self.budgets.insert(of, limit),
            None => self.budgets.remove(&of),
        };
    }
}
