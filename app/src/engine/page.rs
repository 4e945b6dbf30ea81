//! A page: consecutive events, encoded once for everybody who follows.
//!
//! The bytes are server-sent-event frames. A thousand followers share them; one that joins in the middle takes a slice.

use bytes::Bytes;
use hatchery_core::EventId;
use hatchery_core::event::write_wire;
use std::io::Write as _;

/// The most rows that are read from the log at once.
pub const PAGE_ROWS: usize = 512;
/// A page is closed when it holds this much, so that long messages do not fill the memory of every reader. One message
/// may be larger and then has a page to itself.
pub const PAGE_BYTES: usize = 256 * 1024;

#[derive(Clone, Debug, Default)]
pub struct Page {
    frames: Bytes,
    marks: Vec<Mark>,
}

/// Where one event stands in the frames.
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
        self.marks
            .iter()
            .map(|mark| (mark.id, self.frames.slice(mark.json as usize..mark.end as usize - FRAME_END.len())))
    }

    /// The frames of the events after a place in the log, without copying them.
    pub fn frames_after(&self, cursor: EventId) -> Bytes {
        let seen = self.marks.partition_point(|mark| mark.id <= cursor);
        match seen.checked_sub(1) {
            None => self.frames.clone(),
            Some(last_seen) => self.frames.slice(self.marks[last_seen].end as usize..),
        }
    }
}

const FRAME_END: &[u8] = b"\n\n";

/// Fills a page, event by event.
#[derive(Debug, Default)]
pub struct PageWriter {
    frames: Vec<u8>,
    marks: Vec<Mark>,
}

impl PageWriter {
    pub fn push(&mut self, id: EventId, body: &str) {
        write!(self.frames, "id:{id}\ndata:").expect("a vector takes what it is given");
        let json = offset(&self.frames);
        write_wire(&mut self.frames, id, body);
        self.frames.extend_from_slice(FRAME_END);
        self.marks.push(Mark { id, json, end: offset(&self.frames) });
    }

    pub fn is_full(&self) -> bool {
        self.frames.len() >= PAGE_BYTES
    }

    pub fn finish(self) -> Page {
        Page { frames: self.frames.into(), marks: self.marks }
    }
}

fn offset(frames: &[u8]) -> u32 {
    u32::try_from(frames.len()).expect("a page is closed long before 4 GiB")
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
}
