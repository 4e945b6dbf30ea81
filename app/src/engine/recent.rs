//! The positions of the messages that are not in the store's index yet: those since the last checkpoint.

use crate::store::{IdRange, MessageRanges};
use hatchery_core::event::MessageEvent;
use hatchery_core::history::HistoryRange;
use hatchery_core::{AgentId, Event, EventId, Record};
use imbl::{OrdMap, Vector};

/// For each agent, the ids of its messages, as ranges. Cheap to clone, like the world.
#[derive(Clone, Debug, Default)]
pub struct RecentMessages {
    after: EventId,
    upto: EventId,
    of: OrdMap<AgentId, Vector<IdRange>>,
}

impl RecentMessages {
    pub fn since(indexed: EventId) -> Self {
        Self { after: indexed, upto: indexed, of: OrdMap::new() }
    }

    /// Adds the next event of the log. An event that is indexed already is ignored.
    pub fn note(&mut self, record: &Record) {
        if record.id <= self.upto {
            return;
        }
        self.upto = record.id;
        let Event::Message(MessageEvent::Added { agent, .. }) = record.event else { return };
        let ranges = self.of.entry(agent).or_default();
        match ranges.back_mut() {
            Some(range) if range.last.next() == record.id => range.last = record.id,
            _ => ranges.push_back(IdRange { first: record.id, last: record.id }),
        }
    }

    /// The ranges that are within the given ranges of a history.
    pub fn within(&self, parts: &[HistoryRange]) -> Vec<IdRange> {
        let mut found = Vec::new();
        for part in parts {
            for range in self.of.get(&part.agent).into_iter().flatten() {
                let (first, last) = (range.first.max(part.after.next()), range.last.min(part.upto));
                if first <= last {
                    found.push(IdRange { first, last });
                }
            }
        }
        found
    }

    pub fn ranges(&self) -> MessageRanges {
        let of = self.of.iter().map(|(agent, ranges)| (*agent, ranges.iter().copied().collect())).collect();
        MessageRanges { after: self.after, upto: self.upto, of }
    }

    /// All messages after this position are included.
    pub fn after(&self) -> EventId {
        self.after
    }

    /// Drops the messages up to `indexed`, because the store's index has them now.
    pub fn forget(&mut self, indexed: EventId) {
        self.after = indexed;
        self.upto = self.upto.max(indexed);
        let kept = self.of.iter().filter_map(|(agent, ranges)| {
            let later = ranges.iter().filter(|range| range.last > indexed);
            let later: Vector<IdRange> =
                later.map(|range| IdRange { first: range.first.max(indexed.next()), ..*range }).collect();
            (!later.is_empty()).then_some((*agent, later))
        });
        self.of = kept.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatchery_core::{MessageKind, Timestamp};

    const A: AgentId = AgentId::from_bytes([1; 16]);
    const B: AgentId = AgentId::from_bytes([2; 16]);

    fn message(id: u64, agent: AgentId) -> Record {
        let event = Event::Message(MessageEvent::Added {
            agent,
            kind: MessageKind::User,
            content: String::new(),
            to: None,
            source_id: None,
        });
        Record { id: EventId(id), ts: Timestamp(0), session: None, event }
    }

    fn range(first: u64, last: u64) -> IdRange {
        IdRange { first: EventId(first), last: EventId(last) }
    }

    fn recent() -> RecentMessages {
        let mut recent = RecentMessages::since(EventId(10));
        for (id, agent) in [(9, B), (10, A), (11, A), (12, A), (13, B), (14, A)] {
            recent.note(&message(id, agent));
        }
        recent
    }

    #[test]
    fn consecutive_messages_are_one_range_and_indexed_ones_are_left_out() {
        let ranges = recent().ranges();
        assert_eq!((ranges.after, ranges.upto), (EventId(10), EventId(14)));
        assert_eq!(ranges.of, [(A, vec![range(11, 12), range(14, 14)]), (B, vec![range(13, 13)])]);
    }

    #[test]
    fn a_part_cuts_ranges() {
        let part = |agent, after, upto| HistoryRange { agent, after: EventId(after), upto: EventId(upto) };
        assert_eq!(recent().within(&[part(A, 11, 14)]), [range(12, 12), range(14, 14)]);
        assert_eq!(recent().within(&[part(B, 0, 12), part(A, 0, 11)]), [range(11, 11)]);
    }

    #[test]
    fn what_the_index_knows_is_forgotten() {
        let mut recent = recent();
        recent.forget(EventId(11));
        assert_eq!(recent.ranges().of, [(A, vec![range(12, 12), range(14, 14)]), (B, vec![range(13, 13)])]);
        recent.forget(EventId(14));
        assert!(recent.ranges().of.is_empty());
    }
}
