//! Which script an agent of a quest plays: that of its step and role in a folder, else the built-in one of its role.

use std::io::{ErrorKind, Result};
use std::path::Path;

/// What an agent of a quest is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedRole {
    pub quest: String,
    pub step: String,
    pub role: String,
    /// The how manieth in this role on this step: 1, 2, 3, …
    pub number: u32,
}

impl PlayedRole {
    /// Reads `QUEST/STEP/ROLE/NUMBER`.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split('/').map(str::to_owned);
        let part = Self {
            quest: words.next()?,
            step: words.next()?,
            role: words.next()?,
            number: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(part)
    }

    /// The names under which its script may stand, the most special first.
    fn names(&self) -> [String; 4] {
        let Self { step, role, number, .. } = self;
        [
            format!("{step}.{role}.{number}.jsonl"),
            format!("{step}.{role}.jsonl"),
            format!("{role}.{number}.jsonl"),
            format!("{role}.jsonl"),
        ]
    }
}

/// The script of a part. `{{quest}}`, `{{step}}` and `{{role}}` in it stand for what they name.
pub fn script(folder: Option<&Path>, part: &PlayedRole) -> Result<String> {
    let mut found = None;
    for name in folder.iter().flat_map(|folder| part.names().map(|name| folder.join(name))) {
        match std::fs::read_to_string(name) {
            Ok(script) => {
                found = Some(script);
                break;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let script = found.unwrap_or_else(|| built_in(&part.role).to_owned());
    Ok(script.replace("{{quest}}", &part.quest).replace("{{step}}", &part.step).replace("{{role}}", &part.role))
}

fn built_in(role: &str) -> &'static str {
    match role {
        "chaoswhisperer" => include_str!("playbook/chaoswhisperer.jsonl"),
        "pathseeker" => include_str!("playbook/pathseeker.jsonl"),
        "codeweaver" => include_str!("playbook/codeweaver.jsonl"),
        "birth" => include_str!("playbook/birth.jsonl"),
        "wake" => include_str!("playbook/wake.jsonl"),
        "lead" => include_str!("playbook/lead.jsonl"),
        _ => include_str!("playbook/anybody.jsonl"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::script::Script;

    fn part(role: &str) -> PlayedRole {
        PlayedRole { quest: "q".into(), step: "api".into(), role: role.into(), number: 2 }
    }

    #[test]
    fn the_most_special_script_is_played() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["codeweaver.jsonl", "codeweaver.2.jsonl", "api.codeweaver.jsonl", "api.codeweaver.2.jsonl"];
        for name in names {
            std::fs::write(folder.path().join(name), format!("{name} of {{{{step}}}}")).unwrap();
            assert_eq!(script(Some(folder.path()), &part("codeweaver")).unwrap(), format!("{name} of api"));
        }
    }

    #[test]
    fn every_built_in_script_can_be_played() {
        for role in ["chaoswhisperer", "pathseeker", "codeweaver", "siegemaster", "lawbringer", "spiritmender", "other"]
        {
            let script = script(None, &part(role)).unwrap();
            assert!(script.contains("signal-back") && !script.contains("{{"), "{role}");
            Script::read(&script).unwrap();
        }
    }

    #[test]
    fn a_part_is_read_as_it_is_written() {
        assert_eq!(PlayedRole::read("q/api/codeweaver/2"), Some(part("codeweaver")));
        for text in ["", "q/api/codeweaver", "q/api/codeweaver/x", "q/api/codeweaver/2/3"] {
            assert_eq!(PlayedRole::read(text), None, "{text}");
        }
    }
}
