//! What somebody may have meant who mistyped a word.

/// The known word that is most like the one that was written.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |word: &str| strsim::jaro_winkler(&written.to_lowercase(), &word.to_lowercase());
    known.into_iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
}
