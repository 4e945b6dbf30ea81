//! All seats, and how events change them. Only [`Seats::apply`] and [`Seats::take`] change a seat.

use super::{
    Born, Identity, LeadCall, Mode, Position, Seat, SeatDocument, SeatInput, SeatListed, SeatState, next, session_uuid,
};
use crate::event::{SeatEvent, WakeOrder};
use crate::run::RunSpec;
use crate::seat::document::SeatStatus;
use crate::seat::{HATCH_MS, SEATS};
use crate::{AgentId, EventId, SessionId, Timestamp};
use imbl::{OrdMap, OrdSet, Vector};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// How many replies of the team inbox are remembered, so that none is taken twice. If an inbox brings back an older entry, that entry is
/// repeated.
pub const MAX_REPLIES: usize = 20_000;
/// How many messages that the lead has not received yet are remembered with their seats: the newest.
const MAX_ROUTES: usize = 1_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seats {
    places: OrdMap<Position, Arc<Seat>>,
    /// The agent in the middle seat, if there ever was one.
    lead: Option<AgentId>,
    /// The open session of the seats.
    session: Option<SeatSession>,
    /// Every agent that ever sat in a seat, and the seat. Leads sit in the middle.
    agents: OrdMap<AgentId, Position>,
    /// Wakes that wait for the end of the agent's previous process.
    orders: OrdMap<Position, Arc<WakeOrder>>,
    /// The last replies of the team inbox, the oldest first. `known_replies` has the same as a set.
    replies: Vector<Arc<str>>,
    known_replies: OrdSet<Arc<str>>,
    /// The messages that the lead has not received yet. If the lead is to pass a message on, the seat is given.
    routes: OrdMap<EventId, Option<Position>>,
    /// The seat of the last message that the lead has received. The lead's next texts are the words of that seat's agent.
    route: Option<Position>,
    /// Messages that the agent of a seat has received in another way, although its inbox file may still contain them.
    told: OrdMap<Position, Told>,
    /// The seats whose agents leave their inbox files unread. A seat is removed when it sleeps.
    unread: OrdSet<Position>,
    /// The lead's next process, which waits for the end of the previous one.
    lead_order: Option<Arc<(SessionId, RunSpec)>>,
    /// Tool calls of the lead without a result, the oldest first.
    pub(super) calls: Vector<Arc<LeadCall>>,
    /// The exit code of the lead's previous process. None if there was no code, or if another process was requested since.
    lead_exit: Option<i32>,
}

/// Which messages an agent has received in another way than through its inbox file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    /// The lead was asked to pass on all messages up to this one.
    passed_on: EventId,
    /// The payload of the last wake contained the messages after the first position, up to the second one. It had no room for older ones.
    by_wake: (EventId, EventId),
}

impl Told {
    fn has(self, message: EventId) -> bool {
        let (after, upto) = self.by_wake;
        message <= self.passed_on || (message > after && message <= upto)
    }
}

/// The open session of the seats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatSession {
    pub id: SessionId,
    pub mode: Mode,
    pub demo: bool,
    pub model: Option<String>,
}

impl Seats {
    pub fn seat(&self, position: Position) -> Option<&Seat> {
        self.places.get(&position).map(Arc::as_ref)
    }

    /// The seats that were summoned or imported, row by row.
    pub fn iter(&self) -> impl Iterator<Item = (Position, &Seat)> {
        self.places.iter().map(|(position, seat)| (*position, seat.as_ref()))
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub fn lead(&self) -> Option<AgentId> {
        self.lead
    }

    /// Whether an agent is the lead, or was the lead of an earlier session.
    pub fn has_led(&self, agent: AgentId) -> bool {
        self.position_of(agent) == Some(Position::LEAD)
    }

    /// The seat for which the lead speaks: the last message that the lead received was to be passed on to that seat.
    pub fn route(&self) -> Option<Position> {
        self.route
    }

    /// Whether the agent of a seat has received a message in another way than through its inbox file: through the lead, or with a wake.
    pub fn was_told(&self, position: Position, message: EventId) -> bool {
        self.told.get(&position).is_some_and(|told| told.has(message))
    }

    /// Whether the agent of a seat has left a message in its inbox file unread. Then the lead passes messages on to this agent.
    pub fn leaves_unread(&self, position: Position) -> bool {
        self.unread.contains(&position)
    }

    /// The exit code of the lead's last process. None while it runs.
    pub fn lead_exit(&self) -> Option<i32> {
        self.lead_exit
    }

    pub fn session(&self) -> Option<&SeatSession> {
        self.session.as_ref()
    }

    /// The seat in which an agent sits or sat.
    pub fn position_of(&self, agent: AgentId) -> Option<Position> {
        self.agents.get(&agent).copied()
    }

    /// The text of an agent as people read it. Only agents of the seats have markers in their texts.
    pub fn shown<'t>(&self, agent: AgentId, text: &'t str) -> Cow<'t, str> {
        match self.position_of(agent) {
            Some(_) => super::shown(text),
            None => Cow::Borrowed(text),
        }
    }

    /// Every agent that ever sat in a seat.
    pub fn occupants(&self, position: Position) -> impl Iterator<Item = AgentId> {
        self.agents.iter().filter(move |(_, seat)| **seat == position).map(|(agent, _)| *agent)
    }

    /// The seat in which an agent sits now.
    pub fn occupied_by(&self, agent: AgentId) -> Option<(Position, &Seat)> {
        let position = self.position_of(agent)?;
        self.seat(position).filter(|seat| seat.agent == Some(agent)).map(|seat| (position, seat))
    }

    /// Whether the agent has not chosen a name yet. Such an agent does not hatch with its first words.
    pub fn is_nameless(&self, agent: AgentId) -> bool {
        self.occupied_by(agent).is_some_and(|(_, seat)| matches!(seat.state, SeatState::Hatching { .. }))
    }

    /// Wakes that wait for the end of the agent's previous process.
    pub fn orders(&self) -> impl Iterator<Item = (Position, &WakeOrder)> {
        self.orders.iter().map(|(position, order)| (*position, order.as_ref()))
    }

    /// The lead's next process, which waits for the end of the previous one.
    pub fn lead_order(&self) -> Option<&(SessionId, RunSpec)> {
        self.lead_order.as_deref()
    }

    /// Whether an agent is the lead and its next process waits for the end of the previous one. The next process receives messages that are
    /// sent now.
    pub fn awaits(&self, agent: AgentId) -> bool {
        self.lead == Some(agent) && self.lead_order.is_some()
    }

    pub fn knows_reply(&self, key: &str) -> bool {
        self.known_replies.contains(key)
    }

    /// The documents of the seats after a merge with documents from elsewhere. Only the ones that change.
    pub(crate) fn merged_with(&self, documents: &[SeatDocument]) -> Vec<SeatDocument> {
        let mut merged: Vec<SeatDocument> = Vec::new();
        for document in documents.iter().map(SeatDocument::seen_from_here) {
            match merged.iter_mut().find(|it| it.position == document.position) {
                Some(known) => *known = known.merge(&document).settled(),
                None => merged.push(document.shared().settled()),
            }
        }
        let changed = merged.into_iter().filter_map(|document| {
            let own =
                self.seat(document.position).map(|seat| SeatDocument::of(document.position, seat).shared().settled());
            let merged = own.as_ref().map_or_else(|| document.clone(), |own| own.merge(&document).settled());
            (own.as_ref() != Some(&merged)).then_some(merged)
        });
        changed.collect()
    }

    /// The deadlines of the seats. An agent without a name has a deadline of its own.
    pub(crate) fn deadlines(&self) -> impl Iterator<Item = (Timestamp, Position)> {
        self.iter().filter_map(|(position, seat)| {
            let hatches = matches!(seat.state, SeatState::Hatching { .. }) && seat.agent.is_some();
            seat.state.deadline().filter(|_| !hatches).map(|at| (at, position))
        })
    }

    pub(crate) fn apply(&mut self, at: EventId, ts: Timestamp, event: &SeatEvent) {
        match event {
            SeatEvent::Opened { session, mode, demo, model, .. } => {
                self.route = None;
                self.lead_exit = None;
                self.session = Some(SeatSession { id: *session, mode: *mode, demo: *demo, model: model.clone() });
            }
            SeatEvent::LeadNamed { agent } => {
                self.lead = Some(*agent);
                self.agents.insert(*agent, Position::LEAD);
                self.route = None;
                self.routes.clear();
                self.lead_order = None;
            }
            SeatEvent::LeadAwaited { session, spec } => self.lead_order = Some(Arc::new((*session, spec.clone()))),
            SeatEvent::Filled { position, agent } => {
                self.change_known(*position, |seat| seat.agent = Some(*agent));
                self.agents.insert(*agent, *position);
            }
            SeatEvent::Summoned { seats } => {
                for egg in seats {
                    let identity =
                        Identity { color: egg.color.clone(), gender: egg.gender.clone(), ..Identity::default() };
                    // Only a free seat is summoned. Older versions let a seat expire that had a name and no soul, and summoned it.
                    self.change_known(egg.position, |seat| {
                        if seat.state == SeatState::ASLEEP && !seat.has_soul() {
                            seat.state = SeatState::Expired;
                        }
                    });
                    self.fill(egg.position, egg.agent, ts, SeatInput::Summoned { until: egg.until });
                    // An expired seat gets a new appearance, because no agent has the old one. A soul always stays.
                    self.change(egg.position, ts, |seat| {
                        if !seat.has_soul() {
                            seat.identity = identity;
                            seat.created = Some(ts);
                        }
                    });
                }
            }
            SeatEvent::Registered { position, identity } => {
                self.take(*position, ts, SeatInput::Registered);
                self.change(*position, ts, |seat| seat.write(identity));
                self.alive(*position, ts);
            }
            SeatEvent::Reported { agents, .. } => {
                for position in Position::free() {
                    let listed = agents.iter().find(|listed| listed.position == position);
                    let input = listed.map_or(SeatInput::ReportedGone, SeatListed::input);
                    self.take(position, ts, input);
                    if let Some(name) = listed.and_then(SeatListed::chosen_name) {
                        // A report never replaces a name that an agent has chosen.
                        self.change_known(position, |seat| {
                            seat.identity.name.get_or_insert_with(|| name.to_owned());
                        });
                    }
                    if input != SeatInput::ReportedGone {
                        self.alive(position, ts);
                    }
                }
            }
            SeatEvent::Waking { seats } => {
                for waking in seats {
                    let input = match waking.has_soul {
                        true => SeatInput::WakeBegun { until: waking.until },
                        false => SeatInput::Reborn { until: waking.until },
                    };
                    self.fill(waking.position, waking.agent, ts, input);
                    if waking.has_soul && waking.has_transcript {
                        self.told.entry(waking.position).or_default().by_wake =
                            (waking.untold_upto.unwrap_or_default(), at);
                    }
                    match &waking.order {
                        Some(order) => self.orders.insert(waking.position, Arc::new((**order).clone())),
                        None => self.orders.remove(&waking.position),
                    };
                }
            }
            SeatEvent::Expired { position } | SeatEvent::WakeExpired { position } => {
                self.orders.remove(position);
                self.take(*position, ts, SeatInput::TimeUp);
            }
            SeatEvent::Imported { document } => self.imported(ts, document),
            SeatEvent::ReplyTaken { key, .. } => {
                let key: Arc<str> = key.as_str().into();
                self.known_replies.insert(key.clone());
                self.replies.push_back(key);
                if self.replies.len() > MAX_REPLIES
                    && let Some(oldest) = self.replies.pop_front()
                {
                    self.known_replies.remove(&oldest);
                }
            }
            SeatEvent::Addressed { agent, position, .. } => {
                if self.lead == Some(*agent) {
                    self.routes.insert(at.next(), *position);
                }
            }
            SeatEvent::Relayed { agent, position, message } => {
                if self.lead == Some(*agent) {
                    self.routes.insert(at.next(), Some(*position));
                }
                self.told.entry(*position).or_default().passed_on = *message;
                self.unread.insert(*position);
            }
            SeatEvent::Closing { .. }
            | SeatEvent::SpokenFor { .. }
            | SeatEvent::MarkerRejected { .. }
            | SeatEvent::ArtifactWritten { .. } => {}
        }
    }

    /// A session is to end. The seats that were alive in it sleep. Seats of another session do not change.
    pub(crate) fn session_ending(&mut self, ts: Timestamp, session: SessionId) {
        if self.session.as_ref().is_none_or(|open| open.id != session) {
            return;
        }
        self.session = None;
        self.orders.clear();
        self.lead_order = None;
        let positions: Vec<Position> = self.places.keys().copied().collect();
        positions.into_iter().for_each(|position| self.take(position, ts, SeatInput::SessionEnded));
    }

    /// An agent was killed or has expired. Its seat is free for another agent, and keeps the identity.
    pub(crate) fn agent_gone(&mut self, ts: Timestamp, agent: AgentId) {
        let Some((position, _)) = self.occupied_by(agent) else { return };
        self.orders.remove(&position);
        self.take(position, ts, SeatInput::OccupantGone);
        self.change_known(position, |seat| seat.agent = None);
    }

    /// The lead's process has ended, or (without a code) another one was requested.
    pub(crate) fn lead_ended(&mut self, code: Option<i32>) {
        self.lead_exit = code;
        self.calls.clear();
    }

    /// The lead's next process was requested.
    pub(crate) fn lead_begins(&mut self) {
        self.lead_ended(None);
        self.lead_order = None;
    }

    /// The lead got a message. If it is for a seat, the event before it has said so.
    pub(crate) fn lead_told(&mut self, message: EventId) {
        self.routes.entry(message).or_insert(None);
        if self.routes.len() > MAX_ROUTES {
            self.routes = self.routes.without_min().1;
        }
    }

    /// The lead has received a message, or a briefing with all messages before it. It answers the last one of them.
    pub(crate) fn lead_heard(&mut self, delivery: EventId) {
        let (heard, later) = self.routes.split(&delivery);
        let last = self.routes.get(&delivery).copied().or_else(|| heard.get_max().map(|(_, route)| *route));
        self.routes = later;
        if let Some(route) = last {
            self.route = route;
        }
    }

    /// The run of a seat's agent was requested, so the seat's order is carried out.
    pub(crate) fn order_carried_out(&mut self, agent: AgentId) {
        if let Some((position, _)) = self.occupied_by(agent) {
            self.orders.remove(&position);
        }
    }

    /// Changes the state of a seat. If this creates the seat, the seat has no agent.
    fn take(&mut self, position: Position, ts: Timestamp, input: SeatInput) {
        let known = self.seat(position);
        let is_known = known.is_some_and(|seat| seat.has_soul() || seat.identity.name.is_some());
        if let Some(state) = next(known.map(|seat| seat.state), input) {
            // Only a placeholder expires. A seat may have had a name before its last summon, and a soul may arrive from elsewhere while an
            // agent hatches. Such a seat sleeps, and can be woken.
            let state = if state == SeatState::Expired && is_known { SeatState::ASLEEP } else { state };
            if state != SeatState::Alive {
                self.unread.remove(&position);
            }
            self.change(position, ts, |seat| seat.state = state);
        }
    }

    fn fill(&mut self, position: Position, agent: AgentId, ts: Timestamp, input: SeatInput) {
        self.take(position, ts, input);
        self.change_known(position, |seat| seat.agent = Some(agent));
        self.agents.insert(agent, position);
    }

    fn alive(&mut self, position: Position, ts: Timestamp) {
        let session = self.session.as_ref().map(|open| session_uuid(open.id));
        self.change_known(position, |seat| {
            if seat.state == SeatState::Alive {
                seat.last_alive = Some(ts);
                seat.last_session = session.or_else(|| seat.last_session.clone());
            }
        });
    }

    fn imported(&mut self, ts: Timestamp, document: &SeatDocument) {
        let born = document.born().cloned().unwrap_or_default();
        let created = born.fields.created_at.unwrap_or(ts);
        let was_occupied = self.occupants(document.position).next().is_some();
        self.change(document.position, ts, |seat| {
            let state = match document.vital.status {
                // If the agent is alive, it is alive elsewhere. Here the seat can be woken.
                SeatStatus::Alive | SeatStatus::Sleeping => SeatState::ASLEEP,
                // An agent has a place in this seat. If an agent elsewhere has no name, this one is not an egg.
                SeatStatus::Hatching | SeatStatus::Expired if seat.agent.is_some() => SeatState::ASLEEP,
                // A clock that is ahead must not keep the seat hatching for longer than a birth takes.
                SeatStatus::Hatching => SeatState::Hatching { until: created.min(ts).plus_ms(HATCH_MS) },
                SeatStatus::Expired => SeatState::Expired,
            };
            // If an agent sits or sat here, its soul stays the shown one, even after a kill, because the threads here are about it.
            // Otherwise the oldest birth is shown, which is the same on every machine.
            let own = seat.identity.soul.clone().filter(|soul| was_occupied && !soul.is_empty());
            let (mine, others): (Vec<Born>, Vec<Born>) = match own {
                Some(own) => document.births.iter().cloned().partition(|born| born.soul.as_ref() == Some(&own)),
                None => (
                    document.births.iter().take(1).cloned().collect(),
                    document.births.iter().skip(1).cloned().collect(),
                ),
            };
            if let Some(mine) = mine.first() {
                seat.identity = mine.identity();
                seat.created = mine.fields.created_at;
            }
            seat.others = others;
            seat.last_alive = document.vital.last_alive_at;
            seat.last_session = document.vital.last_session_id.clone();
            // While an agent works, hatches or is woken here, the state stays. Otherwise the newest report counts.
            let goes_on = match seat.state {
                SeatState::Alive => true,
                SeatState::Hatching { .. } => seat.agent.is_some(),
                SeatState::Sleeping { .. } => seat.state != SeatState::ASLEEP,
                SeatState::Expired => false,
            };
            if !goes_on {
                seat.state = state;
            }
        });
    }

    /// Changes a seat. If there is no such seat, it is created.
    fn change(&mut self, position: Position, ts: Timestamp, change: impl FnOnce(&mut Seat)) {
        let new = || {
            Arc::new(Seat {
                state: SeatState::ASLEEP,
                agent: None,
                identity: Identity::default(),
                others: Vec::new(),
                created: Some(ts),
                last_alive: None,
                last_session: None,
            })
        };
        change(Arc::make_mut(self.places.entry(position).or_insert_with(new)));
        debug_assert!(self.places.len() <= SEATS.into());
    }

    fn change_known(&mut self, position: Position, change: impl FnOnce(&mut Seat)) {
        if let Some(seat) = self.places.get_mut(&position) {
            change(Arc::make_mut(seat));
        }
    }
}

impl Seat {
    /// Writes an identity. Given values replace the appearance; the name and the soul are written once.
    fn write(&mut self, given: &Identity) {
        let born = self.has_soul();
        let own = &mut self.identity;
        let keep = |own: &mut Option<String>, given: &Option<String>| {
            if given.is_some() {
                own.clone_from(given);
            }
        };
        keep(&mut own.color, &given.color);
        keep(&mut own.gender, &given.gender);
        if given.face_variant.is_some() {
            own.face_variant.clone_from(&given.face_variant);
        }
        if !born {
            keep(&mut own.name, &given.name);
            keep(&mut own.color_name, &given.color_name);
            if given.soul.is_some() {
                own.soul.clone_from(&given.soul);
            }
        }
    }
}
