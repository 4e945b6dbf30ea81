//! What the branches, folders and refs of a quest are called. Names come from elsewhere, and none becomes a path or a ref
//! unchecked.

use std::fmt;

/// A quest's id is 22 characters of base64url, so where it ends in a longer name is known.
const QUEST_CHARS: usize = 22;
/// As long as the core lets a step's id be.
const STEP_CHARS: usize = 64;
/// Where a step's id would be, for the trunk. No step can be called so.
const TRUNK: &str = "_trunk";

/// A name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("`{0}` cannot name a quest: its id is 22 characters of A-Z, a-z, 0-9, - and _")]
    Quest(String),
    #[error("`{0}` cannot name a step: its id is up to 64 characters of a-z, 0-9 and -, and does not begin with -")]
    Step(String),
    #[error("`{0}` names nothing that was rescued; `hatchery rescue list` shows what was")]
    Rescue(String),
}

/// A quest's trunk, or one of its steps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    quest: String,
    step: Option<String>,
}

/// Something that was rescued: written `QUEST/STEP/NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RescueName {
    pub place: Place,
    pub number: u32,
}

impl Place {
    pub fn trunk(quest: &str) -> Result<Self, NameError> {
        Ok(Self { quest: quest_named(quest)?, step: None })
    }

    pub fn step(quest: &str, step: &str) -> Result<Self, NameError> {
        Ok(Self { quest: quest_named(quest)?, step: Some(step_named(step)?) })
    }

    pub fn quest(&self) -> &str {
        &self.quest
    }

    /// Nothing for the trunk.
    pub fn step_id(&self) -> Option<&str> {
        self.step.as_deref()
    }

    /// A branch `a` and a branch `a/b` cannot both be, so the step's is beside the trunk's and not below.
    pub fn branch(&self) -> String {
        match &self.step {
            None => format!("hatchery/{}", self.quest),
            Some(step) => format!("hatchery/{}-{step}", self.quest),
        }
    }

    /// Where its worktree is, below the folder of all.
    pub fn folder(&self) -> String {
        match &self.step {
            None => format!("{}/trunk", self.quest),
            Some(step) => format!("{}/steps/{step}", self.quest),
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
        write!(f, "{}/{}/{}", self.place.quest, self.place.written(), self.number)
    }
}

impl std::str::FromStr for RescueName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let unknown = || NameError::Rescue(text.chars().take(200).collect());
        let mut parts = text.split('/');
        let (Some(quest), Some(step), Some(number), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(unknown());
        };
        let place = match step {
            TRUNK => Place::trunk(quest),
            step => Place::step(quest, step),
        };
        let number = number.parse().map_err(|_| unknown())?;
        let name = Self { place: place.map_err(|_| unknown())?, number };
        // One way to write each: no `+1` and no `01`.
        if name.to_string() == text { Ok(name) } else { Err(unknown()) }
    }
}

fn quest_named(text: &str) -> Result<String, NameError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match text.len() == QUEST_CHARS && text.bytes().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(NameError::Quest(text.chars().take(80).collect())),
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
            assert!(Place::trunk(quest).is_err(), "{quest:?}");
        }
        let long = "a".repeat(65);
        for step in ["", "-a", ".", "..", "a/b", "a.lock", "A", "a b", "a~1", "_trunk", "ä", "a\n", &long] {
            assert!(Place::step(QUEST, step).is_err(), "{step:?}");
        }
        assert!(Place::step(QUEST, &"a".repeat(64)).is_ok());
    }

    #[test]
    fn no_name_looks_like_an_option_or_stands_in_anothers_way() {
        let (trunk, step) = (Place::trunk(QUEST).unwrap(), Place::step(QUEST, "trunk").unwrap());
        assert_eq!(trunk.branch(), format!("hatchery/{QUEST}"));
        assert_eq!(step.branch(), format!("hatchery/{QUEST}-trunk"));
        assert_ne!(trunk.folder(), step.folder());
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
