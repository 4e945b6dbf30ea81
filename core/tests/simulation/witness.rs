//! What the log says, told a second time without the core's world, and plainly: no index, no shortcut. Folding asserts that
//! each record may follow those before it; [`Witness::agrees_with`] asserts that the core tells the same story.

use hatchery_core::agent::Life;
use hatchery_core::session::{EndReason, SessionState};
use hatchery_core::{AgentId, Event, EventId, Plan, Record, SessionId, Timestamp, World, plan};
use std::collections::BTreeMap;

#[derive(Clone, Default)]
pub struct Witness {
    head: u64,
    sessions: BTreeMap<SessionId, Sitting>,
    agents: BTreeMap<AgentId, Being>,
}

#[derive(Clone)]
struct Sitting {
    idle_ms: Option<u64>,
    last_active: i64,
    /// Why it was asked to end, once it was.
    asked: Option<EndReason>,
    over: bool,
}

#[derive(Clone)]
struct Being {
    name: Option<String>,
    place: Place,
    messages: u64,
    last_message: Option<EventId>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Awake(Option<SessionId>),
    Asleep,
    Dead,
}

impl Witness {
    pub fn fold(&mut self, record: &Record) {
        self.head += 1;
        assert_eq!(record.id.0, self.head, "ids have no gap");
        let mut touched = record.session;
        match &record.event {
            Event::SessionStarted { session, idle_ms, .. } => {
                let sitting = Sitting { idle_ms: *idle_ms, last_active: record.ts.0, asked: None, over: false };
                assert!(self.sessions.insert(*session, sitting).is_none(), "{session} starts once");
            }
            Event::SessionEnding { session, reason } => {
                let first = self.sitting(*session).asked.replace(reason.clone()).is_none();
                assert!(first, "{session} is asked to end once");
            }
            Event::SessionEnded { session, reason } => {
                let sitting = self.sitting(*session);
                assert_eq!(sitting.asked.as_ref(), Some(reason), "{session} ends for the reason recorded first");
                assert!(!std::mem::replace(&mut sitting.over, true), "{session} ends once");
                assert_eq!(self.awake_in(*session), [], "nobody is awake in {session}, which has ended");
            }
            Event::AgentCreated { agent, name, session, .. } => {
                self.assert_open(*session);
                let being =
                    Being { name: name.clone(), place: Place::Awake(*session), messages: 0, last_message: None };
                assert!(self.agents.insert(*agent, being).is_none(), "{agent} is created once");
            }
            Event::AgentRenamed { agent, name } => self.living(*agent).name = name.clone(),
            Event::AgentSlept { agent } => {
                let place = std::mem::replace(&mut self.living(*agent).place, Place::Asleep);
                assert_eq!(place, Place::Awake(record.session), "{agent} falls asleep where it was awake");
            }
            Event::AgentWoken { agent, session } => {
                self.assert_open(*session);
                let place = std::mem::replace(&mut self.living(*agent).place, Place::Awake(*session));
                assert_eq!(place, Place::Asleep, "{agent} wakes from sleep");
            }
            Event::AgentEnded { agent, .. } => {
                touched = self.session_of(*agent);
                self.living(*agent).place = Place::Dead;
            }
            Event::MessageAdded { agent, .. } => {
                touched = self.session_of(*agent);
                let being = self.living(*agent);
                being.messages += 1;
                being.last_message = Some(record.id);
            }
        }
        assert_eq!(record.session, touched, "the envelope names the session in which it happened");
        if let Some(session) = record.session {
            let sitting = self.sitting(session);
            sitting.last_active = sitting.last_active.max(record.ts.0);
        }
    }

    /// When an open session will end by itself.
    pub fn deadline(&self, session: SessionId) -> Option<i64> {
        let sitting = &self.sessions[&session];
        let idle_ms = sitting.idle_ms.filter(|_| sitting.asked.is_none())?;
        Some(sitting.last_active.saturating_add_unsigned(idle_ms))
    }

    pub fn next_deadline(&self) -> Option<i64> {
        self.sessions.keys().filter_map(|id| self.deadline(*id)).min()
    }

    pub fn asked(&self, session: SessionId) -> Option<&EndReason> {
        self.sessions[&session].asked.as_ref()
    }

    /// Sessions that were asked to end and have not.
    pub fn unfinished(&self) -> Vec<SessionId> {
        let ending = self.sessions.iter().filter(|(_, sitting)| sitting.asked.is_some() && !sitting.over);
        ending.map(|(id, _)| *id).collect()
    }

    pub fn agrees_with(&self, world: &World) {
        assert_eq!(world.head().0, self.head);
        assert_eq!((world.session_count(), world.agent_count()), (self.sessions.len(), self.agents.len()));
        for (id, session) in world.sessions() {
            let sitting = &self.sessions[&id];
            let (asked, over) = match &session.state {
                SessionState::Open => (None, false),
                SessionState::Ending { reason, .. } => (Some(reason), false),
                SessionState::Ended { reason, .. } => (Some(reason), true),
            };
            assert_eq!((asked, over), (sitting.asked.as_ref(), sitting.over), "{id}");
            assert_eq!(session.last_active.0, sitting.last_active, "{id} was last active then");
            assert_eq!(session.awake.iter().copied().collect::<Vec<_>>(), self.awake_in(id), "awake in {id}");
        }
        for (id, agent) in world.agents() {
            let being = &self.agents[&id];
            let place = match agent.life {
                Life::Alive { session } => Place::Awake(session),
                Life::Sleeping => Place::Asleep,
                Life::Dead { .. } => Place::Dead,
            };
            assert_eq!(place, being.place, "{id}");
            assert_eq!((&agent.name, agent.messages), (&being.name, being.messages), "{id}");
            assert_eq!(agent.last_message, being.last_message, "{id}");
        }
        let wake_at = self.next_deadline().map(Timestamp);
        assert_eq!(plan(world), Plan { close: self.unfinished(), wake_at });
    }

    fn sitting(&mut self, id: SessionId) -> &mut Sitting {
        self.sessions.get_mut(&id).unwrap_or_else(|| panic!("{id} never started"))
    }

    fn living(&mut self, id: AgentId) -> &mut Being {
        let being = self.agents.get_mut(&id).unwrap_or_else(|| panic!("{id} was never created"));
        assert_ne!(being.place, Place::Dead, "{id} stays dead");
        being
    }

    fn assert_open(&self, session: Option<SessionId>) {
        if let Some(id) = session {
            assert!(self.sessions[&id].asked.is_none(), "{id} lets nobody in once it was asked to end");
        }
    }

    fn session_of(&self, agent: AgentId) -> Option<SessionId> {
        match self.agents[&agent].place {
            Place::Awake(session) => session,
            Place::Asleep | Place::Dead => None,
        }
    }

    fn awake_in(&self, session: SessionId) -> Vec<AgentId> {
        let awake = self.agents.iter().filter(|(_, being)| being.place == Place::Awake(Some(session)));
        awake.map(|(id, _)| *id).collect()
    }
}
