//! Slugs: the readable names of quests, branches and worktrees, such as `add-verbose-flag-3f2a`. The words come from a request. The end
//! comes from an id, so that two equal requests have different slugs.

/// The longest part of a slug that comes from the request.
const WORDS_CHARS: usize = 32;
/// How many bytes of the id are in a slug, unless another slug has the same ones. A byte has two characters.
const ID_BYTES: usize = 2;
/// Words that are left out.
const FILLERS: [&str; 9] = ["a", "an", "the", "to", "of", "and", "please", "in", "for"];
/// The words of a slug if the request has no usable ones.
const NAMELESS: &str = "work";

/// A slug that no other quest or agent has.
pub fn choose<E>(request: &str, id: &[u8; 16], mut is_taken: impl FnMut(&str) -> Result<bool, E>) -> Result<String, E> {
    for bytes in (ID_BYTES..id.len()).step_by(ID_BYTES) {
        let slug = with_id(request, &id[..bytes]);
        if !is_taken(&slug)? {
            return Ok(slug);
        }
    }
    Ok(with_id(request, id))
}

/// The slug of a quest without a branch. Two quests have the same slug only by chance; a reference to such a slug is ambiguous.
pub fn of(request: &str, id: &[u8; 16]) -> String {
    with_id(request, &id[..ID_BYTES])
}

fn with_id(request: &str, id: &[u8]) -> String {
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{id}", words(request))
}

/// Whether a text has the form of a slug: words and a part of an id, in lower case, joined by single dashes.
pub fn is_slug(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
    let is_hex = |end: &str| end.len() >= 2 * ID_BYTES && end.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    let longest = WORDS_CHARS + 1 + 32;
    text.len() <= longest && text.split('-').all(is_word) && text.rsplit_once('-').is_some_and(|(_, end)| is_hex(end))
}

/// The first words of a request, as far as they fit.
pub fn words(request: &str) -> String {
    let lower = request.to_lowercase();
    let found = lower.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in found.filter(|word| !FILLERS.contains(word)) {
        if slug.is_empty() {
            slug.extend(word.chars().take(WORDS_CHARS));
        } else if slug.len() + 1 + word.len() <= WORDS_CHARS {
            slug.push('-');
            slug.push_str(word);
        } else {
            break;
        }
    }
    if slug.is_empty() { NAMELESS.to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 16] = [0x3f, 0x2a, 0xbc, 0xde, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    fn slug(request: &str) -> String {
        choose(request, &ID, |_| Ok::<_, ()>(false)).unwrap()
    }

    #[test]
    fn a_slug_has_the_words_of_the_request() {
        assert_eq!(slug("Add a --verbose flag"), "add-verbose-flag-3f2a");
        assert_eq!(slug("../../etc\0passwd; rm -rf /"), "etc-passwd-rm-rf-3f2a");
        assert_eq!(slug("請加上旗標"), "work-3f2a");
        assert_eq!(slug(&"x".repeat(500)), format!("{}-3f2a", "x".repeat(32)));
        let long = slug("make the tests of the parser pass again on all of the supported platforms");
        assert_eq!(long, "make-tests-parser-pass-again-on-3f2a");
    }

    #[test]
    fn a_taken_slug_gets_more_of_the_id() {
        let slug = choose("do it", &ID, |slug| Ok::<_, ()>(slug == "do-it-3f2a")).unwrap();
        assert_eq!(slug, "do-it-3f2abcde");
        let slug = choose("do it", &ID, |_| Ok::<_, ()>(true)).unwrap();
        assert_eq!(slug, "do-it-3f2abcde000000000000000000000000");
        assert!(is_slug(&slug));
    }

    #[test]
    fn slugs_are_recognised() {
        assert!(is_slug("add-verbose-flag-3f2a"));
        for other in
            ["", "-", "a", "a--3f2a", "a-3f2", "a-3f2g", "A-3f2a", "-_9AzbqS0mTzWk1n0pQrsT", "a/b-3f2a", "../-3f2a"]
        {
            assert!(!is_slug(other), "{other}");
        }
    }
}
