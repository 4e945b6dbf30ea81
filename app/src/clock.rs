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

/// A moment for a person, by the clock on the wall. Only logs need it; elsewhere people are told an [`age`].
pub fn told(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(moment) => moment.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => format!("{} ms", at.0),
    }
}

/// A length of time for a person, in its largest unit: `12 s`, `3 min`, `2 h`, `1 day`, `4 days`. The page has the same rule (`span` in
/// `words.ts`).
pub fn length(ms: u64) -> String {
    match ms / 1_000 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min", s / 60),
        s @ 3_600..86_400 => format!("{} h", s / 3_600),
        86_400..172_800 => "1 day".to_owned(),
        s => format!("{} days", s / 86_400),
    }
}

/// How long ago something was, or in how long it will be.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    let (ms, ahead) = match at > now {
        true => (at.ms_since(now), true),
        false => (now.ms_since(at), false),
    };
    let length = if ms < 1_000 { "a moment".to_owned() } else { length(ms) };
    if ahead { format!("in {length}") } else { format!("{length} ago") }
}

/// A moment as programs and files write it, in UTC.
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
    fn an_age_is_told_in_a_unit_that_says_enough() {
        let ago = |ms| age(Timestamp(0), Timestamp(ms));
        assert_eq!(
            [ago(0), ago(1_500), ago(119_000), ago(8_000_000), ago(86_400_000), ago(200_000_000)],
            ["a moment ago", "1 s ago", "1 min ago", "2 h ago", "1 day ago", "2 days ago"]
        );
        assert_eq!(age(Timestamp(5_000), Timestamp(0)), "in 5 s");
    }

    #[test]
    fn no_id_looks_like_an_option() {
        // Without care, one in 64 would.
        assert!((0..2_000).all(|_| !new_agent_id().to_string().starts_with('-')));
        assert!((0..2_000).all(|_| !new_session_id().to_string().starts_with('-')));
    }
}
