//! What the branches, folders and refs of a quest or an agent are called: after its slug. Names come from elsewhere, and none becomes a path
//! or a ref unchecked.

use hatchery_core::slug;
use std::fmt;

/// Quests of earlier versions have no slug. Their id is in its place, which is 22 characters of base64url.
const ID_CHARS: usize = 22;
/// Where worktrees are, from the project's root.
pub const WORKTREES: &str = ".hatchery/worktrees/";
/// As long as the core lets a step's id be.
const STEP_CHARS: usize = 64;
/// Where a step's id would be, for the trunk. No step can be called so.
const TRUNK: &str = "_trunk";

/// A name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("`{0}` cannot name a worktree: it is neither a slug, such as add-verbose-flag-3f2a, nor an id")]
    Slug(String),
    #[error("`{0}` cannot name a step: its id is up to 64 characters of a-z, 0-9 and -, and does not begin with -")]
    Step(String),
    #[error("`{0}` names nothing that was rescued; `hatchery rescue list` shows what was")]
    Rescue(String),
}

/// The trunk of a quest or of an agent, or a step of a quest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorktreeName {
    slug: String,
    step: Option<String>,
}

/// Something that was rescued: written `SLUG/STEP/NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RescueName {
    pub place: WorktreeName,
    pub number: u32,
}

impl WorktreeName {
    pub fn trunk(slug: &str) -> Result<Self, NameError> {
        Ok(Self { slug: checked(slug)?, step: None })
    }

    pub fn step(slug: &str, step: &str) -> Result<Self, NameError> {
        Ok(Self { slug: checked(slug)?, step: Some(step_named(step)?) })
    }

    /// The slug in the path of a trunk's worktree or of a folder in it, as a run names it: from the project's root.
    pub fn slug_of_trunk(folder: &str) -> Option<&str> {
        let mut parts = folder.strip_prefix(WORKTREES)?.split('/');
        let slug = parts.next().filter(|slug| slug::is_slug(slug))?;
        (parts.next() == Some("trunk")).then_some(slug)
    }

    pub fn slug(&self) -> &str {
        &self.slug
    }

    /// Nothing for the trunk.
    pub fn step_id(&self) -> Option<&str> {
        self.step.as_deref()
    }

    /// A branch `a` and a branch `a/b` cannot both be, so the step's is beside the trunk's and not below. No slug has two dashes in a row, so it
    /// is clear where the step begins; after an id, which has a fixed length, one dash is enough.
    pub fn branch(&self) -> String {
        match &self.step {
            None => format!("hatchery/{}", self.slug),
            Some(step) if slug::is_slug(&self.slug) => format!("hatchery/{}--{step}", self.slug),
            Some(step) => format!("hatchery/{}-{step}", self.slug),
        }
    }

    /// Where its worktree is, below the folder of all.
    pub fn folder(&self) -> String {
        match &self.step {
            None => format!("{}/trunk", self.slug),
            Some(step) => format!("{}/steps/{step}", self.slug),
        }
    }

    /// As people are told of it.
    pub fn words(&self) -> String {
        match &self.step {
            None => "the trunk".to_owned(),
            Some(step) => format!("step {step}"),
        }
    }

    fn written(&self) -> &str {
        self.step.as_deref().unwrap_or(TRUNK)
    }
}

impl fmt::Display for RescueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.place.slug, self.place.written(), self.number)
    }
}

impl std::str::FromStr for RescueName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let unknown = || NameError::Rescue(text.chars().take(200).collect());
        let mut parts = text.split('/');
        let (Some(slug), Some(step), Some(number), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(unknown());
        };
        let place = match step {
            TRUNK => WorktreeName::trunk(slug),
            step => WorktreeName::step(slug, step),
        };
        let number = number.parse().map_err(|_| unknown())?;
        let name = Self { place: place.map_err(|_| unknown())?, number };
        // One way to write each: no `+1` and no `01`.
        if name.to_string() == text { Ok(name) } else { Err(unknown()) }
    }
}

fn checked(text: &str) -> Result<String, NameError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match slug::is_slug(text) || (text.len() == ID_CHARS && text.bytes().all(fits)) {
        true => Ok(text.to_owned()),
        false => Err(NameError::Slug(text.chars().take(80).collect())),
    }
}

fn step_named(text: &str) -> Result<String, NameError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match !text.is_empty() && text.len() <= STEP_CHARS && !text.starts_with('-') && text.bytes().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(NameError::Step(text.chars().take(80).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEST: &str = "-_9AzbqS0mTzWk1n0pQrsT";

    #[test]
    fn weird_names_are_refused() {
        for quest in ["", "a", "..", "../../../../etc/passwd", "aaaaaaaaaaaaaaaaaaaaa/", "aaaaaaaaaaaaaaaaaaaaa\0"] {
            assert!(WorktreeName::trunk(quest).is_err(), "{quest:?}");
        }
        let long = "a".repeat(65);
        for step in ["", "-a", ".", "..", "a/b", "a.lock", "A", "a b", "a~1", "_trunk", "ä", "a\n", &long] {
            assert!(WorktreeName::step(QUEST, step).is_err(), "{step:?}");
        }
        assert!(WorktreeName::step(QUEST, &"a".repeat(64)).is_ok());
    }

    #[test]
    fn no_name_looks_like_an_option_or_stands_in_anothers_way() {
        let (trunk, step) = (WorktreeName::trunk(QUEST).unwrap(), WorktreeName::step(QUEST, "trunk").unwrap());
        assert_eq!(trunk.branch(), format!("hatchery/{QUEST}"));
        assert_eq!(step.branch(), format!("hatchery/{QUEST}-trunk"));
        assert_ne!(trunk.folder(), step.folder());
        let (one, other) = ("do-it-3f2a", "do-it-3f2a-beef");
        let step = WorktreeName::step(one, "beef").unwrap();
        assert_eq!(step.branch(), "hatchery/do-it-3f2a--beef");
        assert_ne!(step.branch(), WorktreeName::trunk(other).unwrap().branch());
    }

    #[test]
    fn what_was_rescued_has_one_name() {
        for name in [format!("{QUEST}/a-1/1"), format!("{QUEST}/_trunk/12")] {
            assert_eq!(name.parse::<RescueName>().unwrap().to_string(), name);
        }
        for name in ["", "a/b/1", &format!("{QUEST}/a/+1"), &format!("{QUEST}/a/01"), &format!("{QUEST}/../a/1")] {
            assert!(name.parse::<RescueName>().is_err(), "{name}");
        }
    }
}
