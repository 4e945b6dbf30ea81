//! How events change agents and the index of their histories.

use super::{Due, Impossible, World};
use crate::agent::{Agent, Birth, Lifecycle, PendingFork, PendingForkState, ancestors};
use crate::event::{AgentEvent, MessageEvent};
use crate::history::{Cut, CutHow, MessageKind};
use crate::{AgentId, EventId, SessionId, Timestamp};
use imbl::{OrdSet, Vector};
use std::sync::Arc;

impl World {
    pub(super) fn apply_agent(
        &mut self,
        at: EventId,
        ts: Timestamp,
        agent: AgentId,
        what: &AgentEvent,
    ) -> Result<(), Impossible> {
        match what {
            AgentEvent::Created { parent, origin, name, provider, model, session, hatch_by } => {
                let lifecycle = match *hatch_by {
                    Some(until) => Lifecycle::Hatching { until, session: *session },
                    None => Lifecycle::Alive { session: *session },
                };
                let created = Agent {
                    parent: *parent,
                    origin: *origin,
                    children: OrdSet::new(),
                    name: name.clone(),
                    provider: provider.clone(),
                    model: model.clone(),
                    lifecycle,
                    born: at,
                    created: ts,
                    last_active: ts,
                    last_message: None,
                    messages: 0,
                    open_tools: 0,
                    pending_forks: Vector::new(),
                    cuts: Vector::new(),
                    marks: Vector::new(),
                };
                self.agent_created(at, agent, created)
            }
            AgentEvent::ForkRequested { birth } => self.fork_requested(at, agent, birth),
            AgentEvent::ForkCancelled { child } => self.fork_cancelled(at, agent, *child),
            AgentEvent::Hatched => self.agent_hatched(at, agent),
            AgentEvent::Expired => self.agent_expired(at, ts, agent),
            AgentEvent::Renamed { name } => self.change_living(at, agent, |it| it.name.clone_from(name)),
            AgentEvent::Slept => self.agent_slept(at, agent),
            AgentEvent::Woken { session } => self.agent_woken(at, agent, *session),
            AgentEvent::Killed { .. } => self.agent_killed(at, ts, agent),
            AgentEvent::Reparented { parent } => self.agent_reparented(at, agent, *parent),
            AgentEvent::HarnessSessionAdopted(harness_session) => {
                self.harness_session_adopted(at, agent, harness_session)
            }
            AgentEvent::RunRequested { run, spec } => self.run_requested(at, ts, agent, *run, spec),
        }
    }

    fn agent_created(&mut self, at: EventId, agent: AgentId, created: Agent) -> Result<(), Impossible> {
        if self.agents.contains_key(&agent) {
            return Err(Impossible::Agent { at, agent, why: "had been created before" });
        }
        match created.parent {
            None if self.root.is_some() => return Err(Impossible::Agent { at, agent, why: "has no parent" }),
            None => self.root = Some(agent),
            Some(parent) => {
                self.change_living(at, parent, |it| {
                    it.children.insert(agent);
                    it.pending_forks.retain(|fork| fork.birth.agent != agent);
                })?;
                if self.promised.remove(&agent).is_some() {
                    self.note_ready_fork(parent);
                }
            }
        }
        if let Some(origin) = created.origin.filter(|origin| !self.agents.contains_key(&origin.agent)) {
            return Err(Impossible::Agent { at, agent: origin.agent, why: "was never created" });
        }
        self.enter(at, agent, created.session())?;
        if let Lifecycle::Hatching { until, .. } = created.lifecycle {
            self.deadlines.insert((until, Due::Egg(agent)));
        }
        self.agents.insert(agent, Arc::new(created));
        Ok(())
    }

    fn fork_requested(&mut self, at: EventId, agent: AgentId, birth: &Birth) -> Result<(), Impossible> {
        if self.is_taken(birth.agent) {
            return Err(Impossible::Agent { at, agent: birth.agent, why: "had been created before" });
        }
        self.change_living(at, agent, |it| {
            it.pending_forks
                .push_back(PendingFork { birth: Box::new(birth.clone()), state: PendingForkState::Waiting });
            it.release_forks();
        })?;
        self.promised.insert(birth.agent, agent);
        self.note_ready_fork(agent);
        Ok(())
    }

    fn fork_cancelled(&mut self, at: EventId, agent: AgentId, child: AgentId) -> Result<(), Impossible> {
        self.change_agent(at, agent, |it| {
            let before = it.pending_forks.len();
            it.pending_forks.retain(|fork| fork.birth.agent != child);
            if it.pending_forks.len() < before { Ok(()) } else { Err("had no such fork waiting") }
        })?;
        self.promised.remove(&child);
        self.note_ready_fork(agent);
        Ok(())
    }

    fn agent_hatched(&mut self, at: EventId, agent: AgentId) -> Result<(), Impossible> {
        let mut due = None;
        self.change_agent(at, agent, |it| match it.lifecycle {
            Lifecycle::Hatching { until, session } => {
                due = Some(until);
                it.lifecycle = Lifecycle::Alive { session };
                Ok(())
            }
            Lifecycle::Alive { .. } | Lifecycle::Sleeping | Lifecycle::Expired { .. } | Lifecycle::Dead { .. } => {
                Err("was no egg")
            }
        })?;
        self.forget_egg(agent, due);
        Ok(())
    }

    fn agent_expired(&mut self, at: EventId, ts: Timestamp, agent: AgentId) -> Result<(), Impossible> {
        self.leave(at, agent)?;
        let mut due = None;
        self.change_agent(at, agent, |it| match it.lifecycle {
            Lifecycle::Hatching { until, .. } => {
                it.leaves_nothing_behind()?;
                due = Some(until);
                it.lifecycle = Lifecycle::Expired { at: ts };
                Ok(())
            }
            Lifecycle::Alive { .. } | Lifecycle::Sleeping | Lifecycle::Expired { .. } | Lifecycle::Dead { .. } => {
                Err("was no egg")
            }
        })?;
        self.forget_egg(agent, due);
        self.leave_parent(agent);
        self.note_unwanted(agent);
        Ok(())
    }

    fn agent_slept(&mut self, at: EventId, agent: AgentId) -> Result<(), Impossible> {
        self.leave(at, agent)?;
        self.change_agent(at, agent, |it| match it.lifecycle {
            Lifecycle::Hatching { until, .. } => {
                // An egg stays an egg: it hatches or expires outside of the session.
                it.lifecycle = Lifecycle::Hatching { until, session: None };
                Ok(())
            }
            Lifecycle::Alive { .. } => {
                it.lifecycle = Lifecycle::Sleeping;
                it.open_tools = 0;
                it.release_forks();
                Ok(())
            }
            Lifecycle::Sleeping | Lifecycle::Expired { .. } | Lifecycle::Dead { .. } => Err("was not awake"),
        })?;
        self.note_ready_fork(agent);
        self.note_run_change(agent);
        Ok(())
    }

    fn agent_woken(&mut self, at: EventId, agent: AgentId, session: Option<SessionId>) -> Result<(), Impossible> {
        self.change_agent(at, agent, |it| match it.lifecycle {
            Lifecycle::Sleeping => {
                it.lifecycle = Lifecycle::Alive { session };
                Ok(())
            }
            Lifecycle::Hatching { .. }
            | Lifecycle::Alive { .. }
            | Lifecycle::Expired { .. }
            | Lifecycle::Dead { .. } => Err("was not asleep"),
        })?;
        self.enter(at, agent, session)
    }

    fn agent_killed(&mut self, at: EventId, ts: Timestamp, agent: AgentId) -> Result<(), Impossible> {
        if self.root == Some(agent) {
            return Err(Impossible::Agent { at, agent, why: "is agent 0" });
        }
        self.leave(at, agent)?;
        let mut due = None;
        self.change_agent(at, agent, |it| {
            if !it.is_living() {
                return Err("was dead");
            }
            it.leaves_nothing_behind()?;
            if let Lifecycle::Hatching { until, .. } = it.lifecycle {
                due = Some(until);
            }
            it.lifecycle = Lifecycle::Dead { at: ts };
            Ok(())
        })?;
        self.forget_egg(agent, due);
        self.leave_parent(agent);
        self.note_unwanted(agent);
        self.note_run_change(agent);
        Ok(())
    }

    fn agent_reparented(&mut self, at: EventId, agent: AgentId, parent: AgentId) -> Result<(), Impossible> {
        if !ancestors(self, agent).any(|ancestor| ancestor == parent) {
            return Err(Impossible::Agent { at, agent: parent, why: "was not above" });
        }
        self.leave_parent(agent);
        self.change_living(at, agent, |it| it.parent = Some(parent))?;
        self.change_living(at, parent, |it| {
            it.children.insert(agent);
        })
    }

    pub(super) fn message_added(
        &mut self,
        at: EventId,
        ts: Timestamp,
        message: &MessageEvent,
    ) -> Result<(), Impossible> {
        let MessageEvent::Added { agent, kind, ref content, to, ref source_id } = *message;
        let imported = source_id.is_some();
        self.change_living(at, agent, |it| {
            it.last_message = Some(at);
            it.messages += 1;
            it.last_active = it.last_active.max(ts);
            match kind {
                MessageKind::Clear => it.cut(at, CutHow::Clear),
                MessageKind::Rewind => it.cut(at, CutHow::Rewind { to: to.unwrap_or_default() }),
                MessageKind::Interrupted => it.open_tools = 0,
                MessageKind::Mark => it.marks.push_back((at, content.clone())),
                // The tools of an imported message ran elsewhere, so none of them is open here.
                MessageKind::ToolCall => it.open_tools += u32::from(!imported),
                MessageKind::ToolResult => it.open_tools = it.open_tools.saturating_sub(u32::from(!imported)),
                MessageKind::System
                | MessageKind::User
                | MessageKind::Assistant
                | MessageKind::AgentKilled
                | MessageKind::Command
                | MessageKind::Fork
                | MessageKind::Usage => {}
            }
            if kind == MessageKind::ToolResult && !imported {
                it.release_answered(at, content);
            }
            it.release_forks();
        })?;
        if kind == MessageKind::ToolCall && !imported {
            self.note_tool_call(agent, content);
        }
        if !imported {
            self.note_wait(agent, kind, content);
            self.note_interrupt(at, agent, kind, content);
        }
        match imported {
            true => self.note_import(agent),
            false => self.note_message(at, ts, agent, kind),
        }
        self.note_ready_fork(agent);
        Ok(())
    }

    /// The agent's process has ended, and so have its tools.
    pub(super) fn tools_gone(&mut self, agent: AgentId) {
        if self.agent(agent).is_some_and(|it| it.open_tools > 0) {
            if let Some(it) = self.agents.get_mut(&agent).map(Arc::make_mut) {
                it.open_tools = 0;
                it.release_forks();
            }
            self.note_ready_fork(agent);
        }
    }

    pub(super) fn change_living(
        &mut self,
        at: EventId,
        agent: AgentId,
        change: impl FnOnce(&mut Agent),
    ) -> Result<(), Impossible> {
        self.change_agent(at, agent, |it| match it.is_living() {
            true => {
                change(it);
                Ok(())
            }
            false => Err("was dead"),
        })
    }

    /// Changes an agent, or says why the change is impossible.
    fn change_agent(
        &mut self,
        at: EventId,
        agent: AgentId,
        change: impl FnOnce(&mut Agent) -> Result<(), &'static str>,
    ) -> Result<(), Impossible> {
        let it = self.agents.get_mut(&agent).ok_or(Impossible::Agent { at, agent, why: "was never created" })?;
        change(Arc::make_mut(it)).map_err(|why| Impossible::Agent { at, agent, why })
    }

    fn note_ready_fork(&mut self, agent: AgentId) {
        let is_ready = |fork: &PendingFork| matches!(fork.state, PendingForkState::Ready { .. });
        match self.agent(agent).is_some_and(|it| it.pending_forks.iter().any(is_ready)) {
            true => self.ready_forks.insert(agent),
            false => self.ready_forks.remove(&agent),
        };
    }

    fn leave_parent(&mut self, agent: AgentId) {
        let parent = self.agent(agent).and_then(|it| it.parent);
        if let Some(parent) = parent.and_then(|parent| self.agents.get_mut(&parent)) {
            Arc::make_mut(parent).children.remove(&agent);
        }
    }

    fn forget_egg(&mut self, agent: AgentId, due: Option<Timestamp>) {
        due.and_then(|due| self.deadlines.remove(&(due, Due::Egg(agent))));
    }
}

impl Agent {
    /// Checks that children were moved and forks cancelled before an agent ends, so that no living agent has a dead parent.
    fn leaves_nothing_behind(&self) -> Result<(), &'static str> {
        match (self.children.is_empty(), self.pending_forks.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => Err("had a fork waiting"),
            (false, _) => Err("leaves children behind"),
        }
    }

    /// Without running tools, the waiting forks can be created.
    fn release_forks(&mut self) {
        if self.open_tools == 0 {
            let upto = self.last_message;
            self.release(upto, |_| true);
        }
    }

    /// The result of a fork contains the id of the child. Other tools may still run, for example one that waits for the child.
    fn release_answered(&mut self, at: EventId, result: &str) {
        self.release(Some(at), |birth| result.contains(&birth.agent.to_string()));
    }

    fn release(&mut self, upto: Option<EventId>, is_meant: impl Fn(&Birth) -> bool) {
        for fork in self.pending_forks.iter_mut() {
            if fork.state == PendingForkState::Waiting && is_meant(&fork.birth) {
                fork.state = PendingForkState::Ready { upto };
            }
        }
    }

    /// A clear or a rewind. The calls of tools that ran before are no longer in the history.
    fn cut(&mut self, at: EventId, how: CutHow) {
        self.cuts.push_back(Cut { at, how });
        self.open_tools = 0;
    }
}
