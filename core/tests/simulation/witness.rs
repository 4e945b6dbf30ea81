//! What the log says, told a second time without the core's world, and plainly: no index, no shortcut. Folding asserts that
//! each record may follow those before it; [`Witness::agrees_with`] asserts that the core tells the same story.

mod jobs;

use hatchery_core::agent::Lifecycle;
use hatchery_core::event::{AgentEvent, BudgetEvent, MailEvent, MessageEvent, RequestEvent, SessionEvent};
use hatchery_core::mail::LetterState;
use hatchery_core::session::{EndReason, SessionState};
use hatchery_core::{
    Address, AgentId, Event, EventId, MessageKind, Record, RequestId, SessionId, Timestamp, World, plan,
};
use jobs::Jobs;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Default)]
pub struct Witness {
    head: u64,
    sessions: BTreeMap<SessionId, Sitting>,
    agents: BTreeMap<AgentId, Being>,
    /// All mail that was ever sent.
    mail: BTreeMap<EventId, Letter>,
    jobs: Jobs,
    /// Ids of requests that were carried out.
    requests: BTreeSet<RequestId>,
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
    parent: Option<AgentId>,
    place: Place,
    messages: u64,
    last_message: Option<EventId>,
    tools: u32,
    /// The child of a fork that waits.
    /// Children of forks that wait, each with whether no tool has run since it was asked for.
    waits_for: Vec<(AgentId, bool)>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Egg { until: i64, session: Option<SessionId> },
    Awake(Option<SessionId>),
    Asleep,
    Expired,
    Dead,
}

#[derive(Clone, Debug)]
struct Letter {
    from: Address,
    to: Address,
    delivered: bool,
    read: bool,
}

impl Being {
    fn set_tools(&mut self, tools: u32) {
        self.tools = tools;
        if tools == 0 {
            self.waits_for.iter_mut().for_each(|(_, released)| *released = true);
        }
    }
}

impl Witness {
    pub fn fold(&mut self, record: &Record) {
        self.head += 1;
        assert_eq!(record.id.0, self.head, "ids have no gap");
        assert_eq!(
            record.session,
            self.session_of(&record.event),
            "the envelope names the session in which it happened"
        );
        assert!(record.event.refers_to().is_none_or(|to| to < record.id), "nothing refers to what comes later");
        match &record.event {
            Event::Session { session, what: SessionEvent::Started { idle_ms, .. } } => {
                let sitting = Sitting { idle_ms: *idle_ms, last_active: record.ts.0, asked: None, over: false };
                assert!(self.sessions.insert(*session, sitting).is_none(), "{session} starts once");
            }
            Event::Session { session, what: SessionEvent::Ending { reason } } => {
                let first = self.sitting(*session).asked.replace(reason.clone()).is_none();
                assert!(first, "{session} is asked to end once");
            }
            Event::Session { session, what: SessionEvent::Ended { reason } } => {
                let sitting = self.sitting(*session);
                assert_eq!(sitting.asked.as_ref(), Some(reason), "{session} ends for the reason recorded first");
                assert!(!std::mem::replace(&mut sitting.over, true), "{session} ends once");
                assert_eq!(self.awake_in(*session), [], "nobody is awake in {session}, which has ended");
            }
            Event::Agent { agent, what: AgentEvent::Created { parent, name, session, hatch_by, .. } } => {
                self.assert_open(*session);
                match parent {
                    None => assert_eq!(self.agents.len(), 0, "only agent 0 has no parent"),
                    Some(parent) => {
                        let above = self.living(*parent);
                        let waited = above.waits_for.iter().position(|(child, _)| child == agent);
                        if let Some(waited) = waited {
                            let (_, released) = above.waits_for.remove(waited);
                            assert!(released, "{agent} has waited for the tools of {parent}");
                        }
                    }
                }
                let place = match hatch_by {
                    Some(until) => Place::Egg { until: until.0, session: *session },
                    None => Place::Awake(*session),
                };
                let being = Being {
                    name: name.clone(),
                    parent: *parent,
                    place,
                    messages: 0,
                    last_message: None,
                    tools: 0,
                    waits_for: Vec::new(),
                };
                assert!(self.agents.insert(*agent, being).is_none(), "{agent} is created once");
            }
            Event::Agent { agent, what: AgentEvent::ForkRequested { birth } } => {
                let above = self.living(*agent);
                assert!(above.tools > 0, "a fork waits for tools and for nothing else");
                above.waits_for.push((birth.agent, false));
            }
            Event::Agent { agent, what: AgentEvent::ForkCancelled { child } } => {
                let waits_for = &mut self.living(*agent).waits_for;
                let waited = waits_for.iter().position(|(waiting, _)| waiting == child);
                waits_for.remove(waited.expect("only a fork that waits is cancelled"));
            }
            Event::Agent { agent, what: AgentEvent::Hatched } => {
                let being = self.living(*agent);
                let Place::Egg { session, .. } = being.place else { panic!("{agent} is no egg") };
                being.place = Place::Awake(session);
            }
            Event::Agent { agent, what: AgentEvent::Expired } => {
                assert_eq!(self.children(*agent), [], "nobody is left below {agent}");
                let being = self.living(*agent);
                let Place::Egg { until, .. } = being.place else { panic!("{agent} is no egg") };
                assert!(until <= record.ts.0, "{agent} has until {until}");
                being.place = Place::Expired;
            }
            Event::Agent { agent, what: AgentEvent::Renamed { name } } => self.living(*agent).name = name.clone(),
            Event::Agent { agent, what: AgentEvent::Slept } => {
                assert!(!self.jobs.is_open(*agent), "{agent} has stopped working before it sleeps");
                let being = self.living(*agent);
                being.place = match being.place {
                    Place::Egg { until, .. } => Place::Egg { until, session: None },
                    Place::Awake(_) => Place::Asleep,
                    Place::Asleep | Place::Expired | Place::Dead => panic!("{agent} was not awake"),
                };
                being.set_tools(0);
            }
            Event::Agent { agent, what: AgentEvent::Woken { session } } => {
                self.assert_open(*session);
                let place = std::mem::replace(&mut self.living(*agent).place, Place::Awake(*session));
                assert_eq!(place, Place::Asleep, "{agent} wakes from sleep");
            }
            Event::Agent { agent, what: AgentEvent::Killed { by, .. } } => {
                assert_eq!(self.children(*agent), [], "nobody is left below {agent}");
                assert!(by.is_none_or(|by| !self.above(by).contains(agent)), "nobody kills an ancestor");
                let being = self.living(*agent);
                assert!(being.parent.is_some(), "agent 0 is immortal");
                assert_eq!(being.waits_for, [], "no fork waits for the dead");
                being.place = Place::Dead;
            }
            Event::Agent { agent, what: AgentEvent::Reparented { parent } } => {
                assert_eq!(self.above(*agent).get(1), Some(parent), "{agent} moves up by one");
                self.living(*parent);
                self.living(*agent).parent = Some(*parent);
            }
            Event::Message(MessageEvent::Added { agent, kind, source_id, .. }) => {
                let here = source_id.is_none();
                let being = self.living(*agent);
                being.messages += 1;
                being.last_message = Some(record.id);
                let tools = being.tools;
                match kind {
                    MessageKind::ToolCall => being.set_tools(tools + u32::from(here)),
                    MessageKind::ToolResult => being.set_tools(tools.saturating_sub(u32::from(here))),
                    MessageKind::Clear | MessageKind::Rewind | MessageKind::Interrupted => being.set_tools(0),
                    MessageKind::System
                    | MessageKind::User
                    | MessageKind::Assistant
                    | MessageKind::Mark
                    | MessageKind::AgentKilled
                    | MessageKind::Command
                    | MessageKind::Fork
                    | MessageKind::Usage => {}
                }
            }
            Event::Mail(MailEvent::Sent { from, to, .. }) => {
                for party in [from, to] {
                    if let Address::Agent(agent) = party {
                        self.living(*agent);
                    }
                }
                self.mail.insert(record.id, Letter { from: *from, to: *to, delivered: false, read: false });
            }
            Event::Mail(MailEvent::Delivered { to, mail }) => {
                let letter = self.letter(*mail, *to);
                assert!(!std::mem::replace(&mut letter.delivered, true), "{mail} is taken once");
            }
            Event::Mail(MailEvent::Read { to, mail }) => {
                self.letter(*mail, *to).read = true;
            }
            Event::Agent { agent, what: AgentEvent::RunRequested { run, .. } } => {
                self.living(*agent);
                self.assert_open(self.session_of_agent(*agent));
                self.jobs.request(*agent, *run);
            }
            Event::Run { of, what } => {
                if self.jobs.fold(*of, what) {
                    self.agents.entry(of.agent).and_modify(|being| being.set_tools(0));
                }
            }
            // Nobody has a budget or a conversation from elsewhere here, and nobody answers questions.
            Event::Agent { what: AgentEvent::HarnessSessionAdopted(_), .. }
            | Event::Budget(_)
            | Event::Status(_)
            | Event::Permission(_)
            | Event::Question { .. } => {}
            Event::Request(RequestEvent::Taken { request, .. }) => {
                assert!(self.requests.insert(*request), "{request} was carried out twice");
            }
            // Quests have a witness of their own.
            Event::Quest { .. } | Event::Step { .. } => {}
            Event::Seat(_) => panic!("nobody has a seat here"),
        }
        if let Some(session) = record.session {
            let sitting = self.sitting(session);
            sitting.last_active = sitting.last_active.max(record.ts.0);
        }
    }

    /// The session in which an event happens: the one that it names, else the one that its agent is in.
    pub fn session_of(&self, event: &Event) -> Option<SessionId> {
        match event {
            Event::Session { session, .. } => Some(*session),
            Event::Agent { what: AgentEvent::Created { session, .. } | AgentEvent::Woken { session }, .. } => *session,
            Event::Agent { agent, .. }
            | Event::Question { agent, .. }
            | Event::Message(MessageEvent::Added { agent, .. })
            | Event::Budget(BudgetEvent::Set { agent: Some(agent), .. })
            | Event::Mail(MailEvent::Sent { from: Address::Agent(agent), .. }) => self.session_of_agent(*agent),
            Event::Run { of, .. } => self.session_of_agent(of.agent),
            Event::Permission(what) => what.agent().and_then(|agent| self.session_of_agent(agent)),
            Event::Budget(_)
            | Event::Mail(_)
            | Event::Quest { .. }
            | Event::Step { .. }
            | Event::Seat(_)
            | Event::Request(_)
            | Event::Status(_) => None,
        }
    }

    /// When an open session will end by itself.
    pub fn deadline(&self, session: SessionId) -> Option<i64> {
        let sitting = &self.sessions[&session];
        let idle_ms = sitting.idle_ms.filter(|_| sitting.asked.is_none())?;
        Some(sitting.last_active.saturating_add_unsigned(idle_ms))
    }

    pub fn next_deadline(&self) -> Option<i64> {
        let eggs = self.agents.values().filter_map(|being| match being.place {
            Place::Egg { until, .. } => Some(until),
            Place::Awake(_) | Place::Asleep | Place::Expired | Place::Dead => None,
        });
        let sessions = self.sessions.keys().filter_map(|id| self.deadline(*id));
        sessions.chain(eggs).chain(self.jobs.next_deadline()).min()
    }

    /// Whoever died or was in a session that ends is not left at work.
    pub fn assert_nobody_works_in_vain(&self) {
        for (id, being) in &self.agents {
            let ends = session_at(being.place).is_some_and(|session| self.sessions[&session].asked.is_some());
            assert!((is_living(being) && !ends) || self.jobs.is_settled(*id), "{id} works in vain");
        }
    }

    pub fn asked(&self, session: SessionId) -> Option<&EndReason> {
        self.sessions[&session].asked.as_ref()
    }

    /// Whether a fork of this agent waits.
    pub fn waits(&self, agent: AgentId) -> bool {
        self.agents.get(&agent).is_some_and(|being| !being.waits_for.is_empty())
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
            let place = match agent.lifecycle {
                Lifecycle::Hatching { until, session } => Place::Egg { until: until.0, session },
                Lifecycle::Alive { session } => Place::Awake(session),
                Lifecycle::Sleeping => Place::Asleep,
                Lifecycle::Expired { .. } => Place::Expired,
                Lifecycle::Dead { .. } => Place::Dead,
            };
            assert_eq!(place, being.place, "{id}");
            assert_eq!((&agent.name, agent.messages), (&being.name, being.messages), "{id}");
            assert_eq!(agent.last_message, being.last_message, "{id}");
            assert_eq!(agent.parent, being.parent, "{id}");
            assert_eq!(agent.children.iter().copied().collect::<Vec<_>>(), self.children(id), "below {id}");
            assert_eq!(agent.open_tools, being.tools, "{id}");
            let pending: Vec<AgentId> = agent.pending_forks.iter().map(|fork| fork.birth.agent).collect();
            assert_eq!(pending, being.waits_for.iter().map(|(child, _)| *child).collect::<Vec<_>>(), "{id}");
            self.agrees_on_mail(world, Address::Agent(id));
        }
        self.agrees_on_mail(world, Address::Human);
        self.jobs.agrees_with(world);
        let at_work = |session: &SessionId| self.awake_in(*session).iter().any(|agent| self.jobs.is_open(*agent));
        let close: Vec<SessionId> = self.unfinished().into_iter().filter(|session| !at_work(session)).collect();
        let wake_at = self.next_deadline().map(Timestamp);
        let plan = plan(world);
        assert_eq!(plan.close, close);
        match self.jobs.some_at_work() {
            false => assert_eq!(plan.wake_at, wake_at),
            true => assert!(wake_at.is_none_or(|at| plan.wake_at.is_some_and(|planned| planned <= at))),
        }
    }

    fn agrees_on_mail(&self, world: &World, of: Address) {
        let unread = self.mail.iter().filter(|(_, letter)| letter.to == of && !letter.read);
        let expected: Vec<_> = unread.map(|(id, letter)| (*id, letter.from, letter.delivered)).collect();
        let found: Vec<_> = (world.mailbox(of).into_iter().flat_map(|mailbox| mailbox.unread.iter()))
            .map(|(id, letter)| (*id, letter.from, letter.state == LetterState::Delivered))
            .collect();
        assert_eq!(found, expected, "the mail of {of}");
    }

    fn sitting(&mut self, id: SessionId) -> &mut Sitting {
        self.sessions.get_mut(&id).unwrap_or_else(|| panic!("{id} never started"))
    }

    fn living(&mut self, id: AgentId) -> &mut Being {
        let being = self.agents.get_mut(&id).unwrap_or_else(|| panic!("{id} was never created"));
        assert!(is_living(being), "{id} stays dead");
        being
    }

    fn letter(&mut self, id: EventId, to: Address) -> &mut Letter {
        let letter = self.mail.get_mut(&id).unwrap_or_else(|| panic!("{id} was never sent"));
        assert!(letter.to == to && !letter.read, "{id} is unread, and for {to}: {letter:?}");
        letter
    }

    fn session_of_agent(&self, agent: AgentId) -> Option<SessionId> {
        let being = self.agents.get(&agent).unwrap_or_else(|| panic!("{agent} was never created"));
        session_at(being.place)
    }

    fn assert_open(&self, session: Option<SessionId>) {
        if let Some(id) = session {
            assert!(self.sessions[&id].asked.is_none(), "{id} lets nobody in once it was asked to end");
        }
    }

    /// Those above an agent, the nearest first.
    fn above(&self, agent: AgentId) -> Vec<AgentId> {
        std::iter::successors(self.agents[&agent].parent, |id| self.agents[id].parent).collect()
    }

    /// Those right below an agent that live.
    fn children(&self, of: AgentId) -> Vec<AgentId> {
        let below = self.agents.iter().filter(|(_, being)| being.parent == Some(of) && is_living(being));
        below.map(|(id, _)| *id).collect()
    }

    fn awake_in(&self, session: SessionId) -> Vec<AgentId> {
        let awake = self.agents.iter().filter(|(_, being)| session_at(being.place) == Some(session));
        awake.map(|(id, _)| *id).collect()
    }
}

fn is_living(being: &Being) -> bool {
    !matches!(being.place, Place::Dead | Place::Expired)
}

fn session_at(place: Place) -> Option<SessionId> {
    match place {
        Place::Egg { session, .. } | Place::Awake(session) => session,
        Place::Asleep | Place::Expired | Place::Dead => None,
    }
}
