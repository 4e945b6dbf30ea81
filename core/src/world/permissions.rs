//! How events change requests for permission, and the rules about them.

use super::{Impossible, World};
use crate::event::PermissionEvent;
use crate::output::Output;
use crate::permission::{
    EarlyAnswer, MAX_PENDING, PendingPermission, PendingState, PermissionDecision, PermissionRule, ScopedRule,
};
use crate::run::{AttemptId, Run};
use crate::{AgentId, EventId, Timestamp};
use imbl::{OrdMap, Vector};

impl World {
    /// The rules that allow tools without a question, each known by the event that added it.
    pub fn permission_rules(&self) -> &OrdMap<EventId, ScopedRule> {
        &self.permission_rules
    }

    /// The rules that apply to an agent: its own, and those of the project.
    pub fn permission_rules_of(&self, agent: AgentId) -> impl Iterator<Item = &PermissionRule> {
        let counts = move |scoped: &&ScopedRule| scoped.agent.is_none_or(|of| of == agent);
        self.permission_rules.values().filter(counts).map(|scoped| &scoped.rule)
    }

    pub(super) fn apply_permission(&mut self, at: EventId, what: &PermissionEvent) -> Result<(), Impossible> {
        match what {
            PermissionEvent::RuleAdded { agent, allows } => {
                self.permission_rules.insert(at, ScopedRule { agent: *agent, rule: allows.clone() });
                Ok(())
            }
            // Another daemon may have removed the rule at the same time.
            PermissionEvent::RuleRemoved { rule, .. } => {
                self.permission_rules.remove(rule);
                Ok(())
            }
        }
    }

    /// The user is asked about the request that was recorded last.
    pub(super) fn permission_asked(&mut self, at: EventId, ts: Timestamp, of: AttemptId) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            let new = run.attempt.permissions.iter_mut().rev().find(|pending| pending.state == PendingState::New);
            new.ok_or("had not asked for a permission")?.state = PendingState::Asked { question: at, since: ts };
            Ok(())
        })
    }

    pub(super) fn permission_decided(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        request: &str,
        decision: &PermissionDecision,
    ) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            let pending = run.attempt.permissions.iter_mut().find(|pending| pending.request.request == request);
            let pending = pending.ok_or("had not asked for this permission")?;
            pending.state = PendingState::Decided { at, decision: decision.clone() };
            let used = run.early_answers.iter().position(|early| early.is_for(&pending.request));
            used.map(|used| run.early_answers.remove(used));
            // The process had a reason to be silent until now.
            run.attempt.alive(ts);
            Ok(())
        })?;
        if matches!(decision, PermissionDecision::Deny { .. }) {
            self.tool_denied(of.agent);
        }
        Ok(())
    }
}

impl Run {
    /// The open questions about permissions of this run.
    pub(super) fn open_permission_questions(&self) -> Vec<EventId> {
        self.attempt.permissions.iter().filter_map(PendingPermission::question).collect()
    }

    /// The process has ended. The decisions for it count for the next process, which has to ask again.
    pub(super) fn keep_answers(&mut self) {
        let decided = self.attempt.permissions.iter().filter_map(|pending| match &pending.state {
            PendingState::Decided { decision, .. } => Some(EarlyAnswer {
                tool: pending.request.tool.clone(),
                input: pending.request.input.clone(),
                decision: decision.clone(),
            }),
            PendingState::New | PendingState::Asked { .. } => None,
        });
        let mut answers: Vector<EarlyAnswer> = self.early_answers.iter().cloned().chain(decided).collect();
        while answers.len() > MAX_PENDING {
            answers.pop_front();
        }
        self.early_answers = answers;
    }

    /// Updates the open requests from an output.
    pub(super) fn note_permission(&mut self, output: &Output) {
        if let Output::Asked(request) = output {
            self.attempt
                .permissions
                .push_back(PendingPermission { request: request.clone(), state: PendingState::New });
        }
        if let Output::Answered { request, .. } | Output::AskCancelled { request } = output {
            self.attempt.permissions.retain(|pending| pending.request.request != *request);
        }
    }
}
