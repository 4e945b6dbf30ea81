//! Short ids for people: the beginning of each id, long enough to distinguish all ids of a list. Every command accepts a short id.

use hatchery_core::AgentId;
use hatchery_core::id::ID_CHARS;
use std::collections::BTreeSet;
use std::fmt::Display;

/// The shortest length, so that a short id usually stays unambiguous when new ids appear. Two ids have the same first 8 characters with
/// a probability of 1 in 2^48.
const FEWEST_CHARS: usize = 8;

/// An id is written in base64.
const BITS_PER_CHAR: u32 = 6;

/// The length at which the ids of a list are different.
#[derive(Debug)]
pub struct ShortIds {
    chars: usize,
}

impl ShortIds {
    pub fn of(ids: impl Iterator<Item = impl Display>) -> Self {
        let ids: BTreeSet<String> = ids.map(|id| id.to_string()).collect();
        let shared =
            |(one, other): (&String, &String)| one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        // In alphabetical order, the ids with the longest common beginning are neighbours.
        let longest = ids.iter().zip(ids.iter().skip(1)).map(shared).max().unwrap_or(0);
        Self::sharing(longest)
    }

    /// For many agents, in the order of their ids. Their ids need not be written out.
    pub fn of_sorted(ids: impl Iterator<Item = AgentId>) -> Self {
        let numbers: Vec<u128> = ids.map(|id| u128::from_be_bytes(*id.as_bytes())).collect();
        let shared = numbers.windows(2).map(|pair| (pair[0] ^ pair[1]).leading_zeros() / BITS_PER_CHAR).max();
        Self::sharing(shared.map_or(0, |chars| chars as usize))
    }

    /// What a daemon has said about all of its agents.
    pub fn with_width(chars: usize) -> Self {
        Self { chars }
    }

    /// `chars` is the length of the longest beginning that two ids share.
    fn sharing(chars: usize) -> Self {
        Self { chars: (chars + 1).clamp(FEWEST_CHARS, ID_CHARS) }
    }

    pub fn short(&self, id: impl Display) -> String {
        id.to_string().chars().take(self.chars).collect()
    }

    pub fn width(&self) -> usize {
        self.chars
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_long_as_needed() {
        let id = |last: u8, first: u8| {
            let mut bytes = [0; 16];
            (bytes[0], bytes[15]) = (first, last);
            AgentId::from_bytes(bytes)
        };
        let ids = ShortIds::of([id(0, 1), id(0, 2), id(0, 3)].into_iter());
        assert_eq!(ids.short(id(0, 1)), "AQAAAAAA");
        let ids = ShortIds::of([id(1, 1), id(2, 1)].into_iter());
        assert_eq!(ids.width(), 22);
        assert_ne!(ids.short(id(1, 1)), ids.short(id(2, 1)));
        assert_eq!(ShortIds::of(std::iter::empty::<AgentId>()).width(), 8);
    }

    #[test]
    fn ids_in_order_need_not_be_written_out() {
        for shared_bits in 0..127 {
            let ids = [0, 1 << (127 - shared_bits), 1 << 127 | 5].map(|it: u128| AgentId::from_bytes(it.to_be_bytes()));
            let sorted = ShortIds::of_sorted(ids.into_iter());
            assert_eq!(sorted.width(), ShortIds::of(ids.into_iter()).width(), "{shared_bits} bits");
        }
        assert_eq!(ShortIds::of_sorted(std::iter::empty()).width(), 8);
    }
}
