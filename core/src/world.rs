//! The current state of everything, computed from the log. `apply` and the modules below it are the only places where a state is written.
//!
//! The maps are persistent: a clone only increments a few counters. So a tentative world can be dropped when an append fails, and a reader
//! can keep a world as long as it likes. Large, frequently updated values are in an `Arc`, because changing one entry of a map copies its
//! whole tree node.

mod agents;
mod mailboxes;
mod permissions;
mod questions;
mod quests;
mod runs;
mod seats;
mod sessions;

use crate::agent::{Agent, Birth, PendingForkState};
use crate::ask::Question;
use crate::budget::{self, Over};
use crate::event::{AgentEvent, BudgetEvent, MailEvent, MessageEvent, RequestEvent, SeatEvent};
use crate::mail::Mailbox;
use crate::permission::ScopedRule;
use crate::quest::{Assignment, Chore, Quest, QuestSpec, StepId, WardSpec};
use crate::request::{TakenRequest, TakenRequests};
use crate::run::{AttemptId, Conversation, DesiredRun, PastRun, Run};
use crate::seat::{Position, Seats};
use crate::session::Session;
use crate::status::kept::KeptStatus;
use crate::status::quest_events::Happened;
use crate::usage::{Money, Usage};
use crate::{Address, AgentId, Event, EventId, QuestId, Record, SessionId, Timestamp};
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    head: EventId,
    sessions: OrdMap<SessionId, Session>,
    /// Agent 0.
    root: Option<AgentId>,
    agents: OrdMap<AgentId, Arc<Agent>>,
    mailboxes: OrdMap<Address, Mailbox>,
    /// The sessions in the state `Ending`, so that the plan need not search all sessions.
    ending: OrdSet<SessionId>,
    /// All deadlines, the next first.
    deadlines: OrdSet<(Timestamp, Due)>,
    /// The children of forks that wait, with their parents. Their ids are taken.
    promised: OrdMap<AgentId, AgentId>,
    /// The parents of forks that can be created now.
    ready_forks: OrdSet<AgentId>,
    /// The last run of each agent that had a run.
    runs: OrdMap<AgentId, Arc<Run>>,
    /// Messages that a process received only after its turn was interrupted, each with the mark of the interrupt that it follows.
    late_messages: OrdMap<EventId, EventId>,
    /// What agents with runs keep between their runs.
    conversations: OrdMap<AgentId, Arc<Conversation>>,
    /// The agent to which each harness session belongs or belonged, so that no session gets a second agent.
    harness_sessions: OrdMap<Arc<str>, AgentId>,
    /// The last runs that have ended, by agent and number.
    past_runs: OrdMap<(AgentId, u32), PastRun>,
    /// The desired state of runs that have not ended.
    desired_runs: OrdMap<AgentId, DesiredRun>,
    /// The agents whose runs must be stopped, because the agent died, its session ends, or the run of its step's agent has ended.
    runs_to_stop: OrdSet<AgentId>,
    /// The usage of each day, counted from 1970 in UTC.
    days: OrdMap<i64, Usage>,
    /// The usage of each day, by agent.
    agent_days: OrdMap<(i64, AgentId), Usage>,
    /// Runs without a process yet: their budgets are checked before they start.
    starting: OrdSet<AgentId>,
    /// The budgets of agents, and the daily budget.
    budgets: OrdMap<Option<AgentId>, Money>,
    /// The rules that allow tools without a question.
    permission_rules: OrdMap<EventId, ScopedRule>,
    /// The open questions to the user, the oldest first.
    questions: OrdMap<EventId, Question>,
    /// Questions whose answers no longer matter.
    questions_to_withdraw: OrdSet<EventId>,
    quests: OrdMap<QuestId, Arc<Quest>>,
    /// The spec of each quest. Separate from the quests, because it never changes.
    quest_specs: OrdMap<QuestId, QuestSpec>,
    /// The quest, step and role of each agent that has worked for a quest.
    assignments: OrdMap<AgentId, Arc<Assignment>>,
    /// The quests in which events are due.
    quests_to_schedule: OrdSet<QuestId>,
    /// The agents of quests whose runs have ended or are parked, if their steps have not been updated yet.
    unhandled_run_changes: OrdSet<AgentId>,
    /// The quests with a budget that have not ended.
    budgeted_quests: OrdSet<QuestId>,
    /// The deadlines of agents that have signalled or are parked.
    step_deadlines: OrdMap<AgentId, Timestamp>,
    /// Wards and merges that have not been reported yet.
    chores: OrdMap<(QuestId, StepId), Chore>,
    /// Left out of a snapshot if no seat was ever filled, so that an older snapshot means the same world.
    #[serde(default, skip_serializing_if = "no_seats")]
    seats: Arc<Seats>,
    /// The status document and the idea inbox.
    status: Arc<KeptStatus>,
    /// The last requests with an id of the caller. Left out of a snapshot if there are none, so that an older snapshot means the same
    /// world.
    #[serde(default, skip_serializing_if = "TakenRequests::is_empty")]
    requests: TakenRequests,
}

fn no_seats(seats: &Arc<Seats>) -> bool {
    **seats == Seats::default()
}

/// The subject of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Due {
    /// An open session with an idle limit.
    Session(SessionId),
    /// An egg that has not hatched.
    Egg(AgentId),
    /// The silence of a run's process, or the wait of a parked run.
    Run(AgentId),
    /// The agent of a step, which is parked, or has signalled and not ended.
    Assignment(AgentId),
    /// A seat that is about to be filled, or whose agent elsewhere has no name yet.
    Seat(Position),
}

/// A record that is impossible in this world: the log is damaged, or another program wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    #[error("event {found} is at the position of event {expected}")]
    OutOfOrder { expected: EventId, found: EventId },
    #[error("event {at} refers to event {to}, which comes later")]
    Forward { at: EventId, to: EventId },
    #[error("event {at} names session {session}, which {why}")]
    Session { at: EventId, session: SessionId, why: &'static str },
    #[error("event {at} names agent {agent}, which {why}")]
    Agent { at: EventId, agent: AgentId, why: &'static str },
    #[error("event {at} names quest {quest}, which {why}")]
    Quest { at: EventId, quest: QuestId, why: &'static str },
    #[error("event {at} names question {question}, which is not open")]
    Question { at: EventId, question: EventId },
    #[error("event {at} names mail {mail} for {to}, which {why}")]
    Mail { at: EventId, to: Address, mail: EventId, why: &'static str },
    #[error("event {at} changes the status, and {why}")]
    Status { at: EventId, why: &'static str },
}

/// Adds a key to a set or removes it. Changes the set only if necessary, because a change copies parts that are shared with another world.
fn set_member<K: Ord + Clone>(set: &mut OrdSet<K>, key: K, is_member: bool) {
    match (set.contains(&key), is_member) {
        (false, true) => drop(set.insert(key)),
        (true, false) => drop(set.remove(&key)),
        (true, true) | (false, false) => {}
    }
}

impl World {
    /// The last event that is part of this world.
    pub fn head(&self) -> EventId {
        self.head
    }

    /// Agent 0.
    pub fn root(&self) -> Option<AgentId> {
        self.root
    }

    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(&id).map(Arc::as_ref)
    }

    /// Whether an id belongs to an agent, or to the child of a fork that waits.
    pub fn is_taken(&self, id: AgentId) -> bool {
        self.agents.contains_key(&id) || self.is_promised(id)
    }

    /// Whether an id belongs to the child of a fork that waits.
    pub fn is_promised(&self, id: AgentId) -> bool {
        self.promised.contains_key(&id)
    }

    /// The child of a waiting fork that a reference means: by its name, or by its id or the beginning of it. None if several fit.
    pub fn find_promised(&self, reference: &str) -> Option<AgentId> {
        let named = |(child, parent): &(&AgentId, &AgentId)| {
            let mut pending = self.agent(**parent).into_iter().flat_map(|it| it.pending_forks.iter());
            pending.any(|fork| fork.birth.agent == **child && fork.birth.name.as_deref() == Some(reference))
        };
        let begins =
            |(child, _): &(&AgentId, &AgentId)| !reference.is_empty() && child.to_string().starts_with(reference);
        let mut found = self.promised.iter().filter(|it| named(it) || begins(it)).map(|(child, _)| *child);
        found.next().filter(|_| found.next().is_none())
    }

    pub fn mailbox(&self, of: Address) -> Option<&Mailbox> {
        self.mailboxes.get(&of)
    }

    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    pub fn agents(&self) -> impl Iterator<Item = (AgentId, &Agent)> {
        self.agents.iter().map(|(id, agent)| (*id, agent.as_ref()))
    }

    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    pub fn agent_count(&self) -> usize {
        self.agents.len()
    }

    /// The sessions whose end was requested.
    pub fn ending(&self) -> impl Iterator<Item = SessionId> {
        self.ending.iter().copied()
    }

    /// The next deadline.
    pub fn next_deadline(&self) -> Option<(Timestamp, Due)> {
        self.deadlines.get_min().copied()
    }

    /// A fork that can be created now: its parent, the child, and the message up to which the child inherits.
    pub fn ready_fork(&self) -> Option<(AgentId, &Birth, Option<EventId>)> {
        let parent = *self.ready_forks.get_min()?;
        self.agent(parent)?.pending_forks.iter().find_map(|fork| match fork.state {
            PendingForkState::Waiting => None,
            PendingForkState::Ready { upto } => Some((parent, fork.birth.as_ref(), upto)),
        })
    }

    /// The last run of an agent.
    pub fn run(&self, agent: AgentId) -> Option<&Run> {
        self.runs.get(&agent).map(Arc::as_ref)
    }

    pub fn runs(&self) -> impl Iterator<Item = (AgentId, &Run)> {
        self.runs.iter().map(|(id, run)| (*id, run.as_ref()))
    }

    pub fn conversation(&self, agent: AgentId) -> Option<&Conversation> {
        self.conversations.get(&agent).map(Arc::as_ref)
    }

    /// The agent to which a harness session belongs or belonged.
    pub fn harness_session_owner(&self, session: &str) -> Option<AgentId> {
        self.harness_sessions.get(session).copied()
    }

    /// The last runs of an agent that have ended, in order.
    pub fn past_runs(&self, agent: AgentId) -> impl Iterator<Item = (u32, &PastRun)> {
        self.past_runs.range((agent, 0)..=(agent, u32::MAX)).map(|((_, number), run)| (*number, run))
    }

    /// The usage of each day, counted from 1970 in UTC.
    pub fn days(&self) -> impl Iterator<Item = (i64, &Usage)> {
        self.days.iter().map(|(day, spent)| (*day, spent))
    }

    /// The usage of each agent on each day, from the day `from` on. Days are counted from 1970 in UTC.
    pub fn agent_days(&self, from: i64) -> impl Iterator<Item = (i64, AgentId, &Usage)> {
        let first = (from, AgentId::from_bytes([0; 16]));
        self.agent_days.range(first..).map(|((day, agent), spent)| (*day, *agent, spent))
    }

    /// The usage of a day, counted from 1970 in UTC.
    pub fn spent_on(&self, day: i64) -> Usage {
        self.days.get(&day).copied().unwrap_or_default()
    }

    /// The budget of an agent, or the daily budget.
    pub fn budget(&self, of: Option<AgentId>) -> Option<Money> {
        self.budgets.get(&of).copied()
    }

    pub fn budgets(&self) -> impl Iterator<Item = (Option<AgentId>, Money)> {
        self.budgets.iter().map(|(of, limit)| (*of, *limit))
    }

    pub fn question(&self, id: EventId) -> Option<&Question> {
        self.questions.get(&id)
    }

    /// The open questions to the user, the oldest first.
    pub fn questions(&self) -> impl Iterator<Item = (EventId, &Question)> {
        self.questions.iter().map(|(id, question)| (*id, question))
    }

    /// The open questions whose answers still matter.
    pub fn questions_to_answer(&self) -> impl Iterator<Item = (EventId, &Question)> {
        self.questions().filter(|(_, question)| !question.is_moot(self))
    }

    /// An open question whose answer no longer matters.
    pub fn question_to_withdraw(&self) -> Option<(EventId, &Question)> {
        let id = self.questions_to_withdraw.get_min()?;
        Some((*id, self.questions.get(id)?))
    }

    /// A run that is about to start something without a budget for it.
    pub fn unaffordable_run(&self, now: Timestamp) -> Option<(AgentId, &Run, Over)> {
        if self.budgets.is_empty() && self.budgeted_quests.is_empty() {
            return None;
        }
        self.starting.iter().find_map(|agent| {
            let over = budget::over(self, *agent, now)?;
            Some((*agent, self.run(*agent)?, over))
        })
    }

    /// The desired state of runs that have not ended.
    pub fn desired_runs(&self) -> &OrdMap<AgentId, DesiredRun> {
        &self.desired_runs
    }

    /// An agent whose run must be stopped.
    pub fn run_to_stop(&self) -> Option<AgentId> {
        self.runs_to_stop.get_min().copied()
    }

    pub fn quest(&self, id: QuestId) -> Option<&Quest> {
        self.quests.get(&id).map(Arc::as_ref)
    }

    pub fn quests(&self) -> impl Iterator<Item = (QuestId, &Quest)> {
        self.quests.iter().map(|(id, quest)| (*id, quest.as_ref()))
    }

    /// The spec of a quest.
    pub fn quest_spec(&self, id: QuestId) -> Option<&QuestSpec> {
        self.quest_specs.get(&id)
    }

    pub fn ward(&self, id: QuestId) -> Option<&WardSpec> {
        self.quests.get(&id)?.ward.as_ref()
    }

    /// The quest, step and role of an agent, if it has worked for a quest.
    pub fn assignment(&self, agent: AgentId) -> Option<&Assignment> {
        self.assignments.get(&agent).map(Arc::as_ref)
    }

    /// A quest in which events are due.
    pub fn next_quest_to_schedule(&self) -> Option<QuestId> {
        self.quests_to_schedule.get_min().copied()
    }

    /// An agent whose run has ended or is parked, and whose step has not been updated yet.
    pub fn next_unhandled_run_change(&self) -> Option<AgentId> {
        self.unhandled_run_changes.get_min().copied()
    }

    /// Wards and merges that have not been reported yet.
    pub fn chores(&self) -> &OrdMap<(QuestId, StepId), Chore> {
        &self.chores
    }

    pub fn seats(&self) -> &Seats {
        &self.seats
    }

    /// The status as the log records it.
    pub fn status(&self) -> &KeptStatus {
        &self.status
    }

    /// The last requests with an id of the caller.
    pub fn requests(&self) -> &TakenRequests {
        &self.requests
    }

    /// Gives an event its envelope, and applies it.
    pub(crate) fn record(&mut self, event: Event, now: Timestamp) -> Record {
        let session = match &event {
            Event::Session { session, .. } => Some(*session),
            Event::Agent { what: AgentEvent::Created { session, .. } | AgentEvent::Woken { session }, .. } => *session,
            Event::Agent { agent, .. }
            | Event::Question { agent, .. }
            | Event::Message(MessageEvent::Added { agent, .. })
            | Event::Budget(BudgetEvent::Set { agent: Some(agent), .. })
            | Event::Mail(MailEvent::Sent { from: Address::Agent(agent), .. })
            | Event::Run { of: AttemptId { agent, .. }, .. } => self.agent(*agent).and_then(Agent::session),
            Event::Seat(SeatEvent::Opened { session, .. }) => Some(*session),
            Event::Seat(_) => self.seats.session().map(|open| open.id),
            Event::Permission(what) => what.agent().and_then(|agent| self.agent(agent)).and_then(Agent::session),
            Event::Budget(_)
            | Event::Mail(_)
            | Event::Quest { .. }
            | Event::Step { .. }
            | Event::Status(_)
            | Event::Request(_) => None,
        };
        let record = Record { id: self.head.next(), ts: now, session, event };
        self.apply(&record).expect("what was decided in this world is possible in it");
        record
    }

    /// Applies a record. After an error the world must not be used any more.
    pub fn apply(&mut self, record: &Record) -> Result<(), Impossible> {
        let Record { id: at, ts, ref event, session } = *record;
        if at != self.head.next() {
            return Err(Impossible::OutOfOrder { expected: self.head.next(), found: at });
        }
        if let Some(to) = event.refers_to().filter(|to| *to >= at) {
            return Err(Impossible::Forward { at, to });
        }
        match event {
            Event::Session { session, what } => self.apply_session(at, ts, *session, what)?,
            Event::Agent { agent, what } => self.apply_agent(at, ts, *agent, what)?,
            Event::Message(message) => self.message_added(at, ts, message)?,
            Event::Mail(what) => self.apply_mail(at, what)?,
            Event::Question { agent, what } => self.apply_question(at, ts, *agent, what)?,
            Event::Budget(BudgetEvent::Set { agent, limit }) => self.budget_set(*agent, *limit),
            Event::Permission(what) => self.apply_permission(at, what)?,
            Event::Run { of, what } => self.apply_run(at, ts, *of, what)?,
            Event::Seat(what) => self.apply_seat(at, ts, what),
            Event::Quest { quest, what } => self.apply_quest(at, ts, *quest, what)?,
            Event::Step { quest, step, what } => {
                let mut made = self.build_events(&Happened { at, ts, quest: *quest, step }, what);
                let free = if made.is_empty() { ts } else { self.status.free_event_time(ts) };
                if free != ts {
                    made = self.build_events(&Happened { at, ts: free, quest: *quest, step }, what);
                }
                self.apply_step(at, ts, *quest, step, what)?;
                if !made.is_empty() {
                    Arc::make_mut(&mut self.status).note(&made);
                }
            }
            Event::Status(what) => {
                Arc::make_mut(&mut self.status).apply(what).map_err(|why| Impossible::Status { at, why })?;
            }
            Event::Request(RequestEvent::Taken { request, fingerprint, led_to }) => {
                let taken = TakenRequest { at, fingerprint: *fingerprint, led_to: *led_to };
                self.requests.take(*request, taken);
            }
        }
        self.seats_follow(at, ts, event);
        if let Some(session) = session {
            self.change_session(at, session, |it| {
                it.last_active = it.last_active.max(ts);
                Ok(())
            })?;
        }
        self.head = at;
        Ok(())
    }
}
