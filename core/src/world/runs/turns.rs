//! How events change the turns of a run: what its process hears, what it says, and what that costs.

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
            run.begin_turn();
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
        self.change_run(at, of, |run, _| match run.spooled <= upto {
            true => {
                run.alive(ts);
                run.spooled = upto;
                Ok(())
            }
            false => Err("had said more"),
        })
    }

    pub(super) fn output_noted(&mut self, at: EventId, of: AttemptId, output: &Output) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            run.outcome.take(output);
            run.note_permission(output);
            match output {
                Output::Declares(declared) => run.capabilities = run.capabilities.with(*declared),
                Output::ModelChosen { .. } => run.model_due = false,
                _ => {}
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
            let heard = Arc::make_mut(conversation).hear(message).ok_or("had heard it")?;
            run.heard = true;
            if heard.what != DeliveryKind::Interrupt {
                run.begin_turn();
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
            run.outcome.take(&Output::TurnEnded(end.clone()));
            run.turns += 1;
            run.in_turn = false;
            run.waiting_call = None;
            run.permissions.clear();
            if end.result.is_ok() {
                run.parks = 0;
            }
            // One that does not listen may end as many turns as it likes: it does not do what it was started for.
            if end.result.is_ok() && run.heard && (!run.spec.signals || run.signalled) {
                run.crashes = 0;
            }
            if end.result.is_ok() {
                run.cut_short = false;
            }
            let conversation = Arc::make_mut(conversation);
            conversation.take(end, &mut run.meter);
            conversation.note_turn(last_message, end.turn.as_deref());
            conversation.note_context(end.context);
            if end.result == TurnResult::SessionUnknown && !run.started {
                conversation.forget(run.copied);
            }
            if end.unanswered && !conversation.has_words() {
                conversation.add(at, DeliveryKind::Reminder);
            }
            // Without an answer to it, an interrupt is over with its turn.
            if !run.capabilities.echoes_messages {
                conversation.forget_interrupts();
            }
            Ok(())
        })?;
        self.book(at, ts, of, metered, spent)
    }

    /// The process has asked the model.
    pub(super) fn metered(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        used: Usage,
        context: Option<ContextUse>,
    ) -> Result<(), Impossible> {
        self.change_run(at, of, |run, conversation| {
            run.overspent += u32::from(run.held);
            let conversation = Arc::make_mut(conversation);
            conversation.metered.add(used);
            conversation.note_context(context);
            Ok(())
        })?;
        self.book(at, ts, of, Usage::default(), used)
    }

    /// Adds what an attempt used to all sums that it is part of, in place of what was counted `before`.
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
            run.held = true;
            run.cut_short = run.in_turn;
            Ok(())
        })
    }
}
