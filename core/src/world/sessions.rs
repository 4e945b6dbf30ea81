//! How events change sessions.

use super::{Due, Impossible, World};
use crate::event::SessionEvent;
use crate::session::{EndReason, Session, SessionState};
use crate::{AgentId, EventId, SessionId, Timestamp};
use imbl::OrdSet;

impl World {
    pub(super) fn apply_session(
        &mut self,
        at: EventId,
        ts: Timestamp,
        session: SessionId,
        what: &SessionEvent,
    ) -> Result<(), Impossible> {
        match what {
            SessionEvent::Started { label, idle_ms } => self.session_started(at, ts, session, label, *idle_ms),
            SessionEvent::Ending { reason } => self.session_ending(at, ts, session, reason),
            SessionEvent::Ended { reason } => self.session_ended(at, ts, session, reason),
        }
    }

    fn session_started(
        &mut self,
        at: EventId,
        ts: Timestamp,
        session: SessionId,
        label: &Option<String>,
        idle_ms: Option<u64>,
    ) -> Result<(), Impossible> {
        if self.sessions.contains_key(&session) {
            return Err(Impossible::Session { at, session, why: "had started before" });
        }
        let started = Session {
            label: label.clone(),
            state: SessionState::Open,
            started: ts,
            last_active: ts,
            idle_ms,
            awake: OrdSet::new(),
        };
        self.deadlines.extend(started.deadline().map(|due| (due, Due::Session(session))));
        self.sessions.insert(session, started);
        Ok(())
    }

    fn session_ending(
        &mut self,
        at: EventId,
        ts: Timestamp,
        session: SessionId,
        reason: &EndReason,
    ) -> Result<(), Impossible> {
        self.change_session(at, session, |it| match it.state {
            SessionState::Open => {
                it.state = SessionState::Ending { reason: reason.clone(), since: ts };
                Ok(())
            }
            SessionState::Ending { .. } | SessionState::Ended { .. } => Err("was asked to end before"),
        })?;
        self.ending.insert(session);
        let awake: Vec<AgentId> = self.session(session).into_iter().flat_map(|it| it.awake.iter().copied()).collect();
        awake.into_iter().for_each(|agent| self.note_unwanted(agent));
        Ok(())
    }

    fn session_ended(
        &mut self,
        at: EventId,
        ts: Timestamp,
        session: SessionId,
        reason: &EndReason,
    ) -> Result<(), Impossible> {
        self.change_session(at, session, |it| match &it.state {
            SessionState::Ending { .. } if !it.awake.is_empty() => Err("has agents that are awake"),
            SessionState::Ending { reason: asked, .. } if asked == reason => {
                it.state = SessionState::Ended { reason: reason.clone(), at: ts };
                Ok(())
            }
            SessionState::Open | SessionState::Ending { .. } | SessionState::Ended { .. } => {
                Err("was not asked to end for this reason")
            }
        })?;
        self.ending.remove(&session);
        Ok(())
    }

    /// An agent joins a session.
    pub(super) fn enter(&mut self, at: EventId, agent: AgentId, session: Option<SessionId>) -> Result<(), Impossible> {
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

    /// An agent leaves its session, if it has one.
    pub(super) fn leave(&mut self, at: EventId, agent: AgentId) -> Result<(), Impossible> {
        match self.agent(agent).and_then(crate::agent::Agent::session) {
            Some(session) => self.change_session(at, session, |it| {
                it.awake.remove(&agent);
                Ok(())
            }),
            None => Ok(()),
        }
    }

    /// Changes a session and updates its deadline, or says why the change is impossible.
    pub(super) fn change_session(
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
            before.and_then(|due| self.deadlines.remove(&(due, Due::Session(session))));
            self.deadlines.extend(after.map(|due| (due, Due::Session(session))));
        }
        Ok(())
    }
}
