//! The settings of seats: `[seats]` in `hatchery.toml`.

use crate::report::{Code, Report};
use crate::strict::Within;
use hatchery_core::agent::MAX_HATCH_MS;
use hatchery_core::mail::HUMAN;
use hatchery_core::seat::{HATCH_MS, Mode, TRANSCRIPT_CHARS};
use hatchery_core::slug;
use serde::Deserialize;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the Claude CLI keeps its teams, from the home folder.
const TEAMS: &str = ".claude/teams";

/// Agents that read their inbox do so within about a second, or at the end of a turn.
const UNREAD_MS: u64 = 60_000;
const LOOK_MS: u64 = 2_000;
/// The longest of both: an hour.
const MAX_PAUSE_MS: u64 = 3_600_000;

/// How seats are filled, unless a command says otherwise.
#[derive(Clone, Debug)]
pub struct SeatDefaults {
    pub mode: Mode,
    /// How long an agent may take to choose a name.
    pub hatch_ms: u64,
    /// The longest transcript that a woken agent is told.
    pub transcript_chars: usize,
    /// What the human is called in threads and team inboxes.
    pub human: String,
    /// The form of events for clients that do not ask for one.
    pub dialect: Dialect,
    /// How long an agent of the team may leave a message unread before the lead is asked to pass it on.
    pub unread_ms: u64,
    /// How often the human's inbox is looked at, because notices of changes may be lost.
    pub look_every: Duration,
    /// The team that a lead creates, and whose inboxes are used.
    pub team: String,
    /// Where teams are. None if there is no home folder.
    pub teams: Option<PathBuf>,
}

/// The form in which events are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// The events of the log.
    #[default]
    Hatchery,
    /// The events that clients of the original program know, as a view of the log.
    Julian,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeSetting {
    Direct,
    Lead,
}

/// The settings as people write them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeatSettings {
    mode: Option<ModeSetting>,
    hatch_ms: Option<Within<1, MAX_HATCH_MS>>,
    transcript_chars: Option<Within<1_000, 1_000_000>>,
    human: Option<String>,
    dialect: Option<Dialect>,
    unread_ms: Option<Within<1, MAX_PAUSE_MS>>,
    look_ms: Option<Within<10, MAX_PAUSE_MS>>,
    team: Option<String>,
    teams: Option<PathBuf>,
}

impl SeatSettings {
    pub(super) fn over_defaults(self, root: &Path) -> Result<SeatDefaults, Report> {
        let named = |key: &str, name: String| match is_file_name(&name) {
            true => Ok(name),
            false => Err(Report::new(Code::Usage, format_args!("`seats.{key}` cannot be the name of a file"))
                .hint("use letters, digits, `-` and `_`, at most 64 of them")),
        };
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(TEAMS));
        Ok(SeatDefaults {
            mode: match self.mode {
                Some(ModeSetting::Lead) => Mode::Lead,
                Some(ModeSetting::Direct) | None => Mode::Direct,
            },
            hatch_ms: self.hatch_ms.map_or(HATCH_MS, |it| it.0),
            transcript_chars: self
                .transcript_chars
                .map_or(TRANSCRIPT_CHARS, |it| usize::try_from(it.0).unwrap_or(TRANSCRIPT_CHARS)),
            human: named("human", self.human.unwrap_or_else(|| HUMAN.into()))?,
            dialect: self.dialect.unwrap_or_default(),
            unread_ms: self.unread_ms.map_or(UNREAD_MS, |it| it.0),
            look_every: Duration::from_millis(self.look_ms.map_or(LOOK_MS, |it| it.0)),
            team: named("team", self.team.unwrap_or_else(|| own_team(root)))?,
            teams: self.teams.or_else(home),
        })
    }
}

/// The team of a project: two projects never read each other's inboxes. The words are for people; the number tells folders of one
/// name apart.
fn own_team(root: &Path) -> String {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    format!("hatchery-{}-{:08x}", slug::words(&name), crc32fast::hash(root.as_os_str().as_bytes()))
}

/// Whether a name is safe as the name of a file: nothing that could lead out of its folder or be hidden.
pub fn is_file_name(name: &str) -> bool {
    /// Enough for every name, and short enough for every file system.
    const MAX_CHARS: usize = 64;
    let fits = |character: char| character.is_alphanumeric() || character == '-' || character == '_';
    !name.is_empty() && name.chars().count() <= MAX_CHARS && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_project_has_a_team_of_its_own() {
        let team = |root: &str| SeatSettings::default().over_defaults(Path::new(root)).unwrap().team;
        assert!(team("/home/ada/My Mill!").starts_with("hatchery-my-mill-"), "{}", team("/home/ada/My Mill!"));
        assert_ne!(team("/home/ada/mill"), team("/home/bob/mill"));
        assert_eq!(team("/home/ada/mill"), team("/home/ada/mill"));
        for root in ["/", "/mill", "/工場", &format!("/{}", "long-name-".repeat(30))] {
            assert!(is_file_name(&team(root)), "{}", team(root));
        }
    }

    #[test]
    fn only_plain_names_become_files() {
        for name in ["lyra", "Lyra-2", "агент", "a_b"] {
            assert!(is_file_name(name), "{name}");
        }
        for name in ["", "..", "a/b", "a.json", "a b", "\0", "~", &"x".repeat(65)] {
            assert!(!is_file_name(name), "{name}");
        }
    }
}
