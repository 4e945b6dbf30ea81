//! Timestamps: milliseconds since 1970 in UTC. The core receives them and never reads a clock. They may run backwards: the order of events
//! comes from their ids.

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ms))
    }

    /// How many milliseconds lie between `earlier` and this timestamp. 0 if the clock ran backwards.
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// The timestamp in RFC 3339, in UTC with milliseconds: `2026-02-17T04:00:00.000Z`. Years are those of the Gregorian calendar.
    pub fn rfc3339(self) -> String {
        const DAY_MS: i64 = 86_400_000;
        let (days, in_day) = (self.0.div_euclid(DAY_MS), self.0.rem_euclid(DAY_MS));
        // Each era of 400 years has the same number of days. A year begins in March here, so that the leap day is its last day.
        let from_era = days + 719_468;
        let (era, day_of_era) = (from_era.div_euclid(146_097), from_era.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let (seconds, ms) = (in_day / 1_000, in_day % 1_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        for (ms, written) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_708_012_345_678, "2024-02-15T15:52:25.678Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Timestamp(ms).rfc3339(), written);
        }
    }
}
