//! What an agent that is or was run keeps between its runs: its harness session, and the deliveries that wait.

use super::RunSpec;
use crate::EventId;
use crate::harness::Capabilities;
use crate::output::TurnEnd;
use crate::usage::{ContextUse, Meter, Metered, Usage};
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Its harness session, once that has begun: it can be resumed. A clear or a rewind ends it, because the agent program cannot
    /// forget a part of it.
    pub harness_session: Option<HarnessSession>,
    /// The harness session of its parent could not be copied, because the agent program no longer has it.
    pub orphaned: bool,
    /// What waits to be said to a process, in order.
    pub unheard: OrdSet<Delivery>,
    pub spent: Usage,
    /// The part of it that no total of the harness has confirmed.
    pub metered: Metered,
    /// How full the context of the harness session is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// The turns of the harness session that it can be copied up to, by the last message of each.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub turns: OrdMap<EventId, String>,
    /// The last delivery that waited when a process ended to which it could have been said. The process may have heard this one and
    /// those before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perhaps_heard: Option<EventId>,
}

/// How many turns are kept. A fork at an older one is told its history.
const MAX_TURNS: usize = 1_000;

/// A harness session: a conversation as the agent program stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarnessSession {
    pub harness: String,
    /// The agent program's own id of the session.
    pub session: String,
    /// The machine on which the session is stored.
    pub host: Arc<str>,
    /// The folder in which the agent works; none is the project's root.
    pub folder: Option<String>,
    /// What its own counts were when it last reported them.
    pub meter: Meter,
    /// What the process that opened it could do. Unknown for one that was begun without us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
}

/// A harness session that was begun without Hatchery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForeignSession {
    pub harness: String,
    /// The agent program's own id of the session.
    pub session: String,
    /// The machine on which the session is stored.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub host: Arc<str>,
    /// The folder in which the agent worked; none is the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// Something to be said to a process, known by the event that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Delivery {
    pub id: EventId,
    pub what: DeliveryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeliveryKind {
    /// Everything that the harness session does not hold yet. For a new agent: its first message as it is.
    Briefing,
    /// A message of the agent's history.
    Message,
    /// Asks the process to continue where the previous process stopped.
    Nudge,
    /// Asks for an answer to a message that arrived while the previous turn was ending, so that the model has not seen it.
    Reminder,
    /// Break off the turn.
    Interrupt,
}

impl Conversation {
    /// Whether something waits to be said that outlives the process. An interrupt does not: its turn is over with it.
    pub fn has_words(&self) -> bool {
        self.unheard.iter().any(|delivery| delivery.what != DeliveryKind::Interrupt)
    }

    /// The process that may have heard all waiting deliveries is gone.
    pub(crate) fn lose_process(&mut self) {
        self.perhaps_heard = self.unheard.get_max().map(|delivery| delivery.id).max(self.perhaps_heard);
    }

    /// Whether a process before may have heard what waits.
    pub(crate) fn is_unsure(&self) -> bool {
        self.oldest_words().is_some_and(|oldest| Some(oldest) <= self.perhaps_heard)
    }

    /// The delivery that waits longest, interrupts aside.
    pub(crate) fn oldest_words(&self) -> Option<EventId> {
        self.unheard.iter().find(|delivery| delivery.what != DeliveryKind::Interrupt).map(|delivery| delivery.id)
    }

    /// Whether a message waits to be said to a process: by itself, or with all that was said before the run. `answered` is the
    /// last event of its history that was not said to it.
    pub fn awaits(&self, message: EventId, answered: EventId) -> bool {
        self.unheard.iter().any(|delivery| match delivery.what {
            DeliveryKind::Message => delivery.id == message,
            DeliveryKind::Briefing => (answered..delivery.id).contains(&message),
            DeliveryKind::Nudge | DeliveryKind::Reminder | DeliveryKind::Interrupt => false,
        })
    }

    /// Whether its process is to break off its turn.
    pub fn is_interrupted(&self) -> bool {
        self.unheard.iter().any(|delivery| delivery.what == DeliveryKind::Interrupt)
    }

    /// Prepares the queue for a new process. Without a harness session to resume, one briefing replaces all that waits. With a
    /// session, and if nothing waits, the process gets a nudge.
    pub(crate) fn prepare(&mut self, at: EventId) {
        match (&self.harness_session, self.unheard.is_empty()) {
            (Some(_), false) => {}
            (Some(_), true) => self.add(at, DeliveryKind::Nudge),
            (None, _) => {
                self.unheard.clear();
                self.add(at, DeliveryKind::Briefing);
            }
        }
    }

    pub(crate) fn add(&mut self, id: EventId, what: DeliveryKind) {
        self.unheard.insert(Delivery { id, what });
    }

    /// A process has confirmed a delivery, which leaves the queue. None if the delivery was not in the queue.
    pub(crate) fn confirm(&mut self, id: EventId) -> Option<Delivery> {
        let first = Delivery { id, what: DeliveryKind::Briefing };
        let confirmed = self.unheard.range(first..).next().copied().filter(|delivery| delivery.id == id)?;
        self.unheard.remove(&confirmed)
    }

    /// What a turn used, by the counts of the conversation, or by those of a process that has not shown one; and the part of it that
    /// was counted before.
    pub(crate) fn take(&mut self, end: &TurnEnd, fresh: &mut Meter) -> (Usage, Usage) {
        let used = self.harness_session.as_mut().map_or(fresh, |harness_session| &mut harness_session.meter).take(end);
        self.metered.settle(end, used)
    }

    pub(crate) fn note_context(&mut self, said: Option<ContextUse>) {
        self.context = said.map(|said| said.after(self.context)).or(self.context);
    }

    /// The agent program does not have the session that it was to resume or copy.
    pub(crate) fn forget(&mut self, copied: bool) {
        self.turns.clear();
        self.context = None;
        self.harness_session = None;
        self.orphaned |= copied;
    }

    /// The history is no longer what the conversation is about.
    pub(crate) fn begin_anew(&mut self) {
        self.turns.clear();
        self.context = None;
        self.harness_session = None;
        self.unheard.clear();
    }

    /// A turn has ended with this message. A message that waits is not part of the turn, so nothing is known then.
    pub(crate) fn note_turn(&mut self, last: Option<EventId>, turn: Option<&str>) {
        let Some((last, turn)) = last.zip(turn).filter(|_| !self.has_words()) else { return };
        self.turns.insert(last, turn.to_owned());
        if self.turns.len() > MAX_TURNS {
            self.turns = self.turns.without_min().1;
        }
    }

    pub(crate) fn forget_interrupts(&mut self) {
        let interrupts = self.unheard.iter().filter(|delivery| delivery.what == DeliveryKind::Interrupt);
        for interrupt in interrupts.copied().collect::<Vec<_>>() {
            self.unheard.remove(&interrupt);
        }
    }

    /// A process has begun or resumed a conversation. One that is resumed under another name, like one that is copied from
    /// another agent's, may go on with the counts of the one before.
    pub(crate) fn enter(&mut self, session: &str, spec: &RunSpec, fresh: Meter, capabilities: Capabilities) {
        let meter = match &self.harness_session {
            Some(harness_session) if harness_session.session == session => harness_session.meter,
            Some(_) => Meter::Inherited,
            None => fresh,
        };
        if self.harness_session.as_ref().is_none_or(|before| before.session != session) {
            self.turns.clear();
        }
        let RunSpec { harness, host, folder, .. } = spec.clone();
        let (session, capabilities) = (session.to_owned(), Some(capabilities));
        self.harness_session = Some(HarnessSession { harness, session, host, folder, meter, capabilities });
    }
}

/// The name of a delivery on the wire: a UUID of the free form (version 8) that holds the event's id.
pub fn wire_name(delivery: EventId) -> String {
    let id = delivery.0;
    format!("68617463-6865-8000-8{:03x}-{:012x}", (id >> 48) & 0xfff, id & 0xffff_ffff_ffff)
}

/// The delivery that a name on the wire means, if it is one of ours.
pub fn delivery_of(name: &str) -> Option<EventId> {
    let rest = name.strip_prefix("68617463-6865-8000-8")?;
    let (high, low) = rest.split_once('-')?;
    let parse = |text: &str, chars: usize| (text.len() == chars).then(|| u64::from_str_radix(text, 16).ok()).flatten();
    Some(EventId(parse(high, 3)? << 48 | parse(low, 12)?))
}
