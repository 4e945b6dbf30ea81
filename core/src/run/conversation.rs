//! What an agent keeps between its runs: its harness session, and the deliveries that wait.

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
    /// The harness session of the agent, as soon as there is one. It can be resumed. A clear or a rewind removes it, because an agent
    /// program cannot forget a part of its session.
    pub harness_session: Option<HarnessSession>,
    /// The harness session of its parent could not be copied, because the agent program no longer has it.
    pub orphaned: bool,
    /// The deliveries that wait, in order.
    pub waiting: OrdSet<Delivery>,
    pub spent: Usage,
    /// The part of `spent` that no total of the harness has confirmed yet.
    pub metered: Metered,
    /// How full the context of the harness session is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// The turns up to which the harness session can be copied, by the last message of each.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub turns: OrdMap<EventId, String>,
    /// The last delivery that waited when a process ended. The process may have received this delivery and those before it without a
    /// confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maybe_received: Option<EventId>,
}

/// How many turns are kept. A fork at an older turn receives its history as text.
const MAX_TURNS: usize = 1_000;

/// A harness session: a conversation as the agent program stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarnessSession {
    pub harness: String,
    /// The agent program's own id of the session.
    pub session: String,
    /// The machine on which the session is stored.
    pub host: Arc<str>,
    /// The folder in which the agent works. None: the project's root.
    pub folder: Option<String>,
    /// The meter for the usage that the session reports.
    pub meter: Meter,
    /// The capabilities of the process that opened the session. None if the session was started outside of Hatchery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
}

/// A harness session that was started outside of Hatchery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForeignSession {
    pub harness: String,
    /// The agent program's own id of the session.
    pub session: String,
    /// The machine on which the session is stored.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub host: Arc<str>,
    /// The folder in which the agent worked. None: the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// Something that must reach a process. Its id is the event that caused it.
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
    /// Interrupts the turn.
    Interrupt,
}

impl Conversation {
    /// Whether a delivery waits that is still needed after the end of the process. An interrupt is not: the turn ends with the process.
    pub fn has_words(&self) -> bool {
        self.waiting.iter().any(|delivery| delivery.what != DeliveryKind::Interrupt)
    }

    /// The process that may have received the waiting deliveries has ended.
    pub(crate) fn lose_process(&mut self) {
        self.maybe_received = self.waiting.get_max().map(|delivery| delivery.id).max(self.maybe_received);
    }

    /// Whether an earlier process may have received the oldest waiting delivery.
    pub(crate) fn is_unsure(&self) -> bool {
        self.oldest_words().is_some_and(|oldest| Some(oldest) <= self.maybe_received)
    }

    /// The oldest waiting delivery that is not an interrupt.
    pub(crate) fn oldest_words(&self) -> Option<EventId> {
        self.waiting.iter().find(|delivery| delivery.what != DeliveryKind::Interrupt).map(|delivery| delivery.id)
    }

    /// Whether a message waits for a process: by itself, or as part of a briefing. A briefing contains the messages from `answered` on.
    pub fn awaits(&self, message: EventId, answered: EventId) -> bool {
        self.waiting.iter().any(|delivery| match delivery.what {
            DeliveryKind::Message => delivery.id == message,
            DeliveryKind::Briefing => (answered..delivery.id).contains(&message),
            DeliveryKind::Nudge | DeliveryKind::Reminder | DeliveryKind::Interrupt => false,
        })
    }

    /// Whether an interrupt waits.
    pub fn is_interrupted(&self) -> bool {
        self.waiting.iter().any(|delivery| delivery.what == DeliveryKind::Interrupt)
    }

    /// Prepares the queue for a new process. Without a harness session to resume, one briefing replaces all that waits. With a
    /// session, and if nothing waits, the process gets a nudge.
    pub(crate) fn prepare(&mut self, at: EventId) {
        match (&self.harness_session, self.waiting.is_empty()) {
            (Some(_), false) => {}
            (Some(_), true) => self.add(at, DeliveryKind::Nudge),
            (None, _) => {
                self.waiting.clear();
                self.add(at, DeliveryKind::Briefing);
            }
        }
    }

    pub(crate) fn add(&mut self, id: EventId, what: DeliveryKind) {
        self.waiting.insert(Delivery { id, what });
    }

    /// A process has confirmed a delivery, which leaves the queue. None if the delivery was not in the queue.
    pub(crate) fn confirm(&mut self, id: EventId) -> Option<Delivery> {
        let first = Delivery { id, what: DeliveryKind::Briefing };
        let confirmed = self.waiting.range(first..).next().copied().filter(|delivery| delivery.id == id)?;
        self.waiting.remove(&confirmed)
    }

    /// The usage of a turn, and the part of it that was counted before. The meter is that of the harness session or, if there is none, that
    /// of the process.
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

    /// The history was cleared or rewound, so the harness session no longer matches it.
    pub(crate) fn begin_anew(&mut self) {
        self.turns.clear();
        self.context = None;
        self.harness_session = None;
        self.waiting.clear();
    }

    /// A turn has ended with this message. If a message waits, it is not clear which messages the turn contains, so the turn is not kept.
    pub(crate) fn note_turn(&mut self, last: Option<EventId>, turn: Option<&str>) {
        let Some((last, turn)) = last.zip(turn).filter(|_| !self.has_words()) else { return };
        self.turns.insert(last, turn.to_owned());
        if self.turns.len() > MAX_TURNS {
            self.turns = self.turns.without_min().1;
        }
    }

    pub(crate) fn forget_interrupts(&mut self) {
        let interrupts = self.waiting.iter().filter(|delivery| delivery.what == DeliveryKind::Interrupt);
        for interrupt in interrupts.copied().collect::<Vec<_>>() {
            self.waiting.remove(&interrupt);
        }
    }

    /// A process has opened a session. A session that is resumed with another id, or that was copied, may continue the usage counts of the
    /// session before it.
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

/// The id of a delivery as agent programs see it: a UUID of version 8 that contains the id of the event.
pub fn wire_name(delivery: EventId) -> String {
    let id = delivery.0;
    format!("68617463-6865-8000-8{:03x}-{:012x}", (id >> 48) & 0xfff, id & 0xffff_ffff_ffff)
}

/// The delivery that an id of an agent program means. None if Hatchery has not made the id.
pub fn delivery_of(name: &str) -> Option<EventId> {
    let rest = name.strip_prefix("68617463-6865-8000-8")?;
    let (high, low) = rest.split_once('-')?;
    let parse = |text: &str, chars: usize| (text.len() == chars).then(|| u64::from_str_radix(text, 16).ok()).flatten();
    Some(EventId(parse(high, 3)? << 48 | parse(low, 12)?))
}
