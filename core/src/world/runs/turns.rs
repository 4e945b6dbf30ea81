//! How events change the turns of a run: received messages, outputs and usage.

use super::super::{Impossible, World};
use crate::budget;
use crate::output::{Output, TurnEnd, TurnResult};
use crate::run::{AttemptId, DeliveryKind};
use crate::usage::{ContextUse, Usage};
use crate::{EventId, Timestamp};
use std::sync::Arc;

impl World {
    pub(super) fn turn_started(&mut self, at: EventId, of: AttemptId) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            run.attempt.begin_turn();
            Ok(())
        })
    }

    pub(super) fn output_taken(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        upto: u64,
    ) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| match run.attempt.spooled <= upto {
            true => {
                // Before it is ready, a process cannot work, so its output is no sign of life.
                if run.attempt.has_started() {
                    run.attempt.alive(ts);
                }
                run.attempt.spooled = upto;
                Ok(())
            }
            false => Err("had said more"),
        })
    }

    pub(super) fn output_noted(&mut self, at: EventId, of: AttemptId, output: &Output) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            run.attempt.outcome.take(output);
            run.note_permission(output);
            if let Output::Declares(declared) = output {
                run.attempt.capabilities = run.attempt.capabilities.with(*declared);
            }
            if matches!(output, Output::ModelChosen { .. }) {
                run.attempt.confirm_model();
            }
            Ok(())
        })?;
        if matches!(output, Output::Denied { .. }) {
            self.tool_denied(of.agent);
        }
        Ok(())
    }

    pub(super) fn message_heard(&mut self, at: EventId, of: AttemptId, message: EventId) -> Result<(), Impossible> {
        self.change_run(at, of, |run, conversation| {
            let heard = Arc::make_mut(conversation).confirm(message).ok_or("had heard it")?;
            run.attempt.has_confirmed = true;
            if heard.what != DeliveryKind::Interrupt {
                run.attempt.begin_turn();
            }
            Ok(())
        })
    }

    pub(super) fn turn_ended(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        end: &TurnEnd,
        (spent, metered): (Usage, Usage),
    ) -> Result<(), Impossible> {
        self.tools_gone(of.agent);
        let last_message = self.agent(of.agent).and_then(|agent| agent.last_message);
        self.change_run(at, of, |run, conversation| {
            run.attempt.outcome.take(&Output::TurnEnded(end.clone()));
            run.turns += 1;
            run.attempt.in_turn = false;
            run.attempt.waiting_call = None;
            run.attempt.permissions.clear();
            if end.result.is_ok() {
                run.parks = 0;
            }
            // A process that does not confirm its message may end many turns without doing the work for which it was started.
            if end.result.is_ok() && run.attempt.has_confirmed && (!run.spec.signals || run.signalled) {
                run.crashes = 0;
            }
            if end.result.is_ok() {
                run.attempt.budget.end_turn();
            }
            let conversation = Arc::make_mut(conversation);
            conversation.take(end, &mut run.attempt.meter);
            conversation.note_turn(last_message, end.turn.as_deref());
            conversation.note_context(end.context);
            if end.result == TurnResult::SessionUnknown && !run.attempt.has_started() {
                conversation.forget(run.attempt.copied);
            }
            if end.unanswered && !conversation.has_words() {
                conversation.add(at, DeliveryKind::Reminder);
            }
            // Without a confirmation, an interrupt ends with its turn.
            if !run.attempt.capabilities.echoes_messages {
                conversation.forget_interrupts();
            }
            Ok(())
        })?;
        self.book(at, ts, of, metered, spent)
    }

    /// One request of the process to the model.
    pub(super) fn metered(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        used: Usage,
        context: Option<ContextUse>,
    ) -> Result<(), Impossible> {
        self.change_run(at, of, |run, conversation| {
            run.attempt.budget.count_call();
            let conversation = Arc::make_mut(conversation);
            conversation.metered.add(used);
            conversation.note_context(context);
            Ok(())
        })?;
        self.book(at, ts, of, Usage::default(), used)
    }

    /// Adds the usage of an attempt to all sums that contain it, in place of `before`.
    pub(super) fn book(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        before: Usage,
        after: Usage,
    ) -> Result<(), Impossible> {
        if before == after {
            return Ok(());
        }
        let change = |sum: &mut Usage| *sum = sum.replacing(before, after);
        self.change_run(at, of, |run, conversation| {
            change(&mut run.spent);
            change(&mut Arc::make_mut(conversation).spent);
            Ok(())
        })?;
        self.quest_spent(of.agent, before, after);
        let day = budget::day(ts);
        change(self.days.entry(day).or_default());
        change(self.agent_days.entry((day, of.agent)).or_default());
        Ok(())
    }

    pub(super) fn budget_reached(&mut self, at: EventId, of: AttemptId) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            run.attempt.budget.use_up(run.attempt.in_turn);
            Ok(())
        })
    }
}
