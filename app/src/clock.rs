//! The one place that reads the clock and draws ids.

use hatchery_core::{AgentId, QuestId, RequestId, SessionId, Timestamp};
use std::fmt;
use std::time::SystemTime;

/// Tells the time. Tests have one that they set by hand.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// What time it is.
pub fn now() -> Timestamp {
    SystemClock.now()
}

pub fn new_agent_id() -> AgentId {
    drawn(AgentId::from_bytes)
}

pub fn new_request_id() -> RequestId {
    drawn(RequestId::from_bytes)
}

pub fn new_quest_id() -> QuestId {
    drawn(QuestId::from_bytes)
}

/// Other programs know sessions by UUIDs, so the bits that say "random" in a UUID are set.
pub fn new_session_id() -> SessionId {
    drawn(|bytes| SessionId::from_bytes(uuid::Builder::from_random_bytes(bytes).into_uuid().into_bytes()))
}

/// A random UUID in the usual form, for those who know no other.
pub fn new_uuid() -> String {
    uuid::Builder::from_random_bytes(random()).into_uuid().to_string()
}

/// An id that says what it names and when it was drawn: `inbox-1708012345678-a1b2c3d4e5f6`.
pub fn new_named_id(prefix: &str) -> String {
    let random: String = random::<6>().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}-{}-{random}", now().0)
}

/// One id in 64 would begin with a dash when written, and look like an option on a command line. It is drawn again.
fn drawn<T: fmt::Display>(id: fn([u8; 16]) -> T) -> T {
    loop {
        let id = id(random());
        if !id.to_string().starts_with('-') {
            return id;
        }
    }
}

/// Bits from the operating system: ids and tokens must not repeat or be guessed.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    bytes
}

/// How far the user's time zone is ahead of UTC now, in seconds. 0 where it is not known.
pub fn offset_s() -> i32 {
    jiff::tz::TimeZone::system().to_offset(jiff::Timestamp::now()).seconds()
}

/// A moment as people write it, in UTC.
pub fn written(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(moment) => format!("{moment:.3}"),
        Err(_) => format!("{} ms", at.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_looks_like_an_option() {
        // Without care, one in 64 would.
        assert!((0..2_000).all(|_| !new_agent_id().to_string().starts_with('-')));
        assert!((0..2_000).all(|_| !new_session_id().to_string().starts_with('-')));
    }
}
