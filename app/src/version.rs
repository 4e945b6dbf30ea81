//! The version of this program.

use crate::harness::version::Version;
use std::hint::black_box;

/// The version behind a mark, so that it can be found in the program's file: a test gives a copy of the program another version.
static MARKED: &str = concat!("hatchery-version=", env!("CARGO_PKG_VERSION"));
const MARK: &str = "hatchery-version=";

pub fn version() -> &'static str {
    // The compiler would put the version itself into each place otherwise.
    black_box(MARKED).strip_prefix(MARK).unwrap_or(MARKED)
}

/// Whether this program is newer than that version. A version that cannot be read is another one, and not an older one.
pub fn is_newer_than(other: &str) -> bool {
    Version::read(other).zip(Version::read(version())).is_some_and(|(other, own)| own > other)
}
