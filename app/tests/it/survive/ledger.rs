//! What was acknowledged, to be held against the log.

use std::collections::BTreeMap;

/// What the daemon has said is so, by id.
#[derive(Default)]
pub struct Ledger {
    acknowledged: BTreeMap<u64, String>,
}

impl Ledger {
    pub fn len(&self) -> usize {
        self.acknowledged.len()
    }

    pub fn note(&mut self, events: Vec<String>) {
        for event in events {
            let id = id_of(&event);
            let before = self.acknowledged.insert(id, event);
            assert!(before.is_none(), "the id {id} was given out twice: {before:?} and {:?}", self.acknowledged[&id]);
        }
    }

    /// The log must hold all of it, letter by letter.
    pub fn check(&self, log: &[String]) {
        for (expected, event) in (1..).zip(log) {
            assert_eq!(id_of(event), expected, "the ids have a gap or a repeat");
        }
        for (id, event) in &self.acknowledged {
            let kept = usize::try_from(*id).ok().and_then(|id| log.get(id - 1));
            assert_eq!(kept, Some(event), "event {id} was acknowledged, and is lost or different");
        }
    }
}

/// Every event is written with its id first.
fn id_of(event: &str) -> u64 {
    let (id, _) = event.strip_prefix("{\"id\":").and_then(|rest| rest.split_once(',')).unwrap();
    id.parse().unwrap()
}
