//! A page: consecutive events of the log. Their JSON is encoded once and shared by all followers of the event stream. Followers inside the
//! daemon use the records instead.

use bytes::{Bytes, BytesMut};
use hatchery_core::event::write_wire;
use hatchery_core::{EventId, Record};
use std::io::Write as _;
use std::sync::Arc;

/// The most rows that are read from the log at once.
pub const PAGE_ROWS: usize = 512;
/// A page ends when it has this many bytes, so that long messages do not fill the memory of every reader. A single event may be longer;
/// then it is alone on its page.
pub const PAGE_BYTES: usize = 256 * 1024;

#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Server-sent-event frames. A follower that joins in the middle of a page takes a slice of them.
    frames: Bytes,
    marks: Vec<Mark>,
    /// One record for each mark. Empty in a page that was read for its frames only.
    records: Arc<[Record]>,
}

/// The position of one event in the frames.
#[derive(Clone, Copy, Debug)]
struct Mark {
    id: EventId,
    json: u32,
    end: u32,
}

impl Page {
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    pub fn len(&self) -> usize {
        self.marks.len()
    }

    pub fn first(&self) -> Option<EventId> {
        self.marks.first().map(|mark| mark.id)
    }

    pub fn last(&self) -> Option<EventId> {
        self.marks.last().map(|mark| mark.id)
    }

    /// The events as `text/event-stream` frames.
    pub fn frames(&self) -> &Bytes {
        &self.frames
    }

    /// Each event as one JSON object.
    pub fn events(&self) -> impl Iterator<Item = (EventId, Bytes)> {
        (0..self.len()).map(|at| (self.marks[at].id, self.json(at)))
    }

    /// The events as records. Empty in a page that was read for its frames only.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    pub(super) fn id(&self, at: usize) -> EventId {
        self.marks[at].id
    }

    /// The JSON object of one event.
    pub fn json(&self, at: usize) -> Bytes {
        let mark = self.marks[at];
        self.frames.slice(mark.json as usize..mark.end as usize - FRAME_END.len())
    }

    /// The frames after a position in the log, without copying them.
    pub fn frames_after(&self, cursor: EventId) -> Bytes {
        self.frames.slice(self.frame_start(self.count_upto(cursor))..)
    }

    /// The frames of the chosen events, in one piece of memory.
    pub fn frames_of(&self, chosen: &[usize]) -> Bytes {
        let mut frames = BytesMut::new();
        for at in chosen {
            frames.extend_from_slice(&self.frames[self.frame_start(*at)..self.marks[*at].end as usize]);
        }
        frames.freeze()
    }

    /// How many events of the page are not after a position in the log.
    pub(super) fn count_upto(&self, cursor: EventId) -> usize {
        self.marks.partition_point(|mark| mark.id <= cursor)
    }

    fn frame_start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.marks[before].end as usize)
    }
}

const FRAME_END: &[u8] = b"\n\n";

/// Fills a page, event by event: either all with [`Self::push`] or all with [`Self::push_record`].
#[derive(Debug, Default)]
pub struct PageWriter {
    frames: Vec<u8>,
    marks: Vec<Mark>,
    records: Vec<Record>,
}

impl PageWriter {
    /// Adds an event, but only its frame.
    pub fn push(&mut self, id: EventId, body: &str) {
        write!(self.frames, "id:{id}\ndata:").expect("writing to a vector cannot fail");
        let json = offset(&self.frames);
        write_wire(&mut self.frames, id, body);
        self.frames.extend_from_slice(FRAME_END);
        self.marks.push(Mark { id, json, end: offset(&self.frames) });
    }

    /// Adds an event with its record.
    pub fn push_record(&mut self, record: Record, body: &str) {
        self.push(record.id, body);
        self.records.push(record);
    }

    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.frames.len() >= PAGE_BYTES
    }

    pub fn finish(self) -> Page {
        Page { frames: self.frames.into(), marks: self.marks, records: self.records.into() }
    }
}

fn offset(frames: &[u8]) -> u32 {
    u32::try_from(frames.len()).expect("a page ends long before 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ids: std::ops::RangeInclusive<u64>) -> Page {
        let mut writer = PageWriter::default();
        for id in ids {
            writer.push(EventId(id), &format!(r#"{{"ts":{id},"type":"x"}}"#));
        }
        writer.finish()
    }

    #[test]
    fn a_late_reader_gets_only_what_it_has_not_seen() {
        let page = page(5..=7);
        assert_eq!(page.frames_after(EventId(4)), page.frames());
        assert_eq!(page.frames_after(EventId(6)), "id:7\ndata:{\"id\":7,\"ts\":7,\"type\":\"x\"}\n\n");
        assert!(page.frames_after(EventId(7)).is_empty());
    }

    #[test]
    fn the_objects_are_cut_out_exactly() {
        let events: Vec<_> = page(1..=2).events().collect();
        assert_eq!(events[1], (EventId(2), Bytes::from_static(br#"{"id":2,"ts":2,"type":"x"}"#)));
    }

    #[test]
    fn chosen_events_are_copied_whole() {
        let page = page(1..=3);
        let ends = [page.frames_after(EventId(2)), page.frames_of(&[2])];
        assert_eq!(ends[0], ends[1]);
        assert_eq!(page.frames_of(&[0, 1, 2]), page.frames());
        assert!(page.frames_of(&[]).is_empty());
    }
}
