//! Everything that is true now, folded from the log. `apply` is the only place where a status is written.
//!
//! The maps are persistent: a clone costs a few counters, so a tentative world can be thrown away when an append fails, and
//! a reader can keep one as long as it likes.

use crate::agent::{Agent, Life};
use crate::session::{Session, SessionState};
use crate::{AgentId, Event, EventId, Record, SessionId, Timestamp};
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    head: EventId,
    sessions: OrdMap<SessionId, Session>,
    agents: OrdMap<AgentId, Agent>,
    /// Sessions in state `Ending`, so that the plan need not look through all.
    ending: OrdSet<SessionId>,
    /// Open sessions with an idle limit, the next to end first.
    deadlines: OrdSet<(Timestamp, SessionId)>,
}

/// A record that cannot have happened in this world: the log is damaged, or written by something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    #[error("event {found} stands where event {expected} should be")]
    OutOfOrder { expected: EventId, found: EventId },
    #[error("event {at} speaks of session {session}, which {why}")]
    Session { at: EventId, session: SessionId, why: &'static str },
    #[error("event {at} speaks of agent {agent}, which {why}")]
    Agent { at: EventId, agent: AgentId, why: &'static str },
}

impl World {
    /// The last event that is part of this world.
    pub fn head(&self) -> EventId {
        self.head
    }

    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(&id)
    }

    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    pub fn agents(&self) -> impl Iterator<Item = (AgentId, &Agent)> {
        self.agents.iter().map(|(id, agent)| (*id, agent))
    }

    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    pub fn agent_count(&self) -> usize {
        self.agents.len()
    }

    /// Sessions that were asked to end.
    pub fn ending(&self) -> impl Iterator<Item = SessionId> {
        self.ending.iter().copied()
    }

    /// The session that will end by itself first, and when.
    pub fn next_deadline(&self) -> Option<(Timestamp, SessionId)> {
        self.deadlines.get_min().copied()
    }

    /// Gives an event its envelope and applies it.
    pub(crate) fn record(&mut self, event: Event, now: Timestamp) -> Record {
        let session = match &event {
            Event::SessionStarted { session, .. }
            | Event::SessionEnding { session, .. }
            | Event::SessionEnded { session, .. } => Some(*session),
            Event::AgentCreated { session, .. } | Event::AgentWoken { session, .. } => *session,
            Event::AgentRenamed { agent, .. }
            | Event::AgentSlept { agent }
            | Event::AgentEnded { agent, .. }
            | Event::MessageAdded { agent, .. } => self.agent(*agent).and_then(Agent::session),
        };
        let record = Record { id: self.head.next(), ts: now, session, event };
        self.apply(&record).expect("what was decided in this world is possible in it");
        record
    }

    /// Takes in one record. After an error the world is of no further use.
    pub fn apply(&mut self, record: &Record) -> Result<(), Impossible> {
        let at = record.id;
        if at != self.head.next() {
            return Err(Impossible::OutOfOrder { expected: self.head.next(), found: at });
        }
        match &record.event {
            Event::SessionStarted { session, label, idle_ms } => {
                if self.sessions.contains_key(session) {
                    return Err(Impossible::Session { at, session: *session, why: "had started before" });
                }
                let started = Session {
                    label: label.clone(),
                    state: SessionState::Open,
                    started: record.ts,
                    last_active: record.ts,
                    idle_ms: *idle_ms,
                    awake: OrdSet::new(),
                };
                self.deadlines.extend(started.deadline().map(|due| (due, *session)));
                self.sessions.insert(*session, started);
            }
            Event::SessionEnding { session, reason } => {
                self.change_session(at, *session, |it| match it.state {
                    SessionState::Open => {
                        it.state = SessionState::Ending { reason: reason.clone(), since: record.ts };
                        Ok(())
                    }
                    SessionState::Ending { .. } | SessionState::Ended { .. } => Err("was asked to end before"),
                })?;
                self.ending.insert(*session);
            }
            Event::SessionEnded { session, reason } => {
                self.change_session(at, *session, |it| match &it.state {
                    SessionState::Ending { .. } if !it.awake.is_empty() => Err("has agents that are awake"),
                    SessionState::Ending { reason: asked, .. } if asked == reason => {
                        it.state = SessionState::Ended { reason: reason.clone(), at: record.ts };
                        Ok(())
                    }
                    SessionState::Open | SessionState::Ending { .. } | SessionState::Ended { .. } => {
                        Err("was not asked to end for this reason")
                    }
                })?;
                self.ending.remove(session);
            }
            Event::AgentCreated { agent, parent, name, session } => {
                if self.agents.contains_key(agent) {
                    return Err(Impossible::Agent { at, agent: *agent, why: "had been created before" });
                }
                if let Some(parent) = parent.filter(|parent| !self.agents.contains_key(parent)) {
                    return Err(Impossible::Agent { at, agent: parent, why: "was never created" });
                }
                self.enter(at, *agent, *session)?;
                let created = Agent {
                    parent: *parent,
                    name: name.clone(),
                    life: Life::Alive { session: *session },
                    created: record.ts,
                    last_active: record.ts,
                    last_message: None,
                    messages: 0,
                };
                self.agents.insert(*agent, created);
            }
            Event::AgentRenamed { agent, name } => self.change_living(at, *agent, |it| it.name = name.clone())?,
            Event::AgentSlept { agent } => {
                self.leave(at, *agent)?;
                self.change_agent(at, *agent, |it| match it.life {
                    Life::Alive { .. } => {
                        it.life = Life::Sleeping;
                        Ok(())
                    }
                    Life::Sleeping | Life::Dead { .. } => Err("was not awake"),
                })?;
            }
            Event::AgentWoken { agent, session } => {
                self.change_agent(at, *agent, |it| match it.life {
                    Life::Sleeping => {
                        it.life = Life::Alive { session: *session };
                        Ok(())
                    }
                    Life::Alive { .. } | Life::Dead { .. } => Err("was not asleep"),
                })?;
                self.enter(at, *agent, *session)?;
            }
            Event::AgentEnded { agent, .. } => {
                self.leave(at, *agent)?;
                self.change_living(at, *agent, |it| it.life = Life::Dead { at: record.ts })?;
            }
            Event::MessageAdded { agent, .. } => self.change_living(at, *agent, |it| {
                it.last_message = Some(at);
                it.messages += 1;
                it.last_active = it.last_active.max(record.ts);
            })?,
        }
        if let Some(session) = record.session {
            self.change_session(at, session, |it| {
                it.last_active = it.last_active.max(record.ts);
                Ok(())
            })?;
        }
        self.head = at;
        Ok(())
    }

    /// Changes an agent, or says why it cannot have been changed so.
    fn change_agent(
        &mut self,
        at: EventId,
        agent: AgentId,
        change: impl FnOnce(&mut Agent) -> Result<(), &'static str>,
    ) -> Result<(), Impossible> {
        let it = self.agents.get_mut(&agent).ok_or(Impossible::Agent { at, agent, why: "was never created" })?;
        change(it).map_err(|why| Impossible::Agent { at, agent, why })
    }

    fn change_living(
        &mut self,
        at: EventId,
        agent: AgentId,
        change: impl FnOnce(&mut Agent),
    ) -> Result<(), Impossible> {
        self.change_agent(at, agent, |it| match it.life {
            Life::Alive { .. } | Life::Sleeping => {
                change(it);
                Ok(())
            }
            Life::Dead { .. } => Err("was dead"),
        })
    }

    /// Changes a session and keeps its place among the deadlines, or says why it cannot have been changed so.
    fn change_session(
        &mut self,
        at: EventId,
        session: SessionId,
        change: impl FnOnce(&mut Session) -> Result<(), &'static str>,
    ) -> Result<(), Impossible> {
        let it = self.sessions.get_mut(&session).ok_or(Impossible::Session { at, session, why: "never started" })?;
        let before = it.deadline();
        change(it).map_err(|why| Impossible::Session { at, session, why })?;
        let after = it.deadline();
        if before != after {
            before.and_then(|due| self.deadlines.remove(&(due, session)));
            self.deadlines.extend(after.map(|due| (due, session)));
        }
        Ok(())
    }

    fn enter(&mut self, at: EventId, agent: AgentId, session: Option<SessionId>) -> Result<(), Impossible> {
        match session {
            Some(session) => self.change_session(at, session, |it| match it.state {
                SessionState::Open => {
                    it.awake.insert(agent);
                    Ok(())
                }
                SessionState::Ending { .. } | SessionState::Ended { .. } => Err("is not open"),
            }),
            None => Ok(()),
        }
    }

    fn leave(&mut self, at: EventId, agent: AgentId) -> Result<(), Impossible> {
        match self.agent(agent).and_then(Agent::session) {
            Some(session) => self.change_session(at, session, |it| {
                it.awake.remove(&agent);
                Ok(())
            }),
            None => Ok(()),
        }
    }
}
