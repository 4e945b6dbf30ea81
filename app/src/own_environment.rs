//! The environment of this process, as text. A variable that is not UTF-8 is left out: `std::env::vars` panics at it, and any program can
//! have set one.

/// All variables that are text.
pub fn entries() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
