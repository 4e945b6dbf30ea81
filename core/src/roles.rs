//! The table of roles: which signals each role may send, which roles it may call, and the path of each phase. A project can
//! replace the table; a quest keeps the table that it started with.

use crate::permission::PermissionPolicy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The longest name of a role, in bytes.
pub const MAX_ROLE_BYTES: usize = 32;
/// The most roles of a table. A person should be able to read a table at a glance.
pub const MAX_ROLES: usize = 32;
/// How many stations a step may go through.
pub const MAX_STATIONS: usize = 16;
/// The longest prompt of a role, in bytes.
pub const MAX_PROMPT_BYTES: usize = 64 << 10;

/// The name of the station at which a command checks the work. No role can have this name.
pub const WARD: &str = "ward";

/// The part of a quest that a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Find out what is wanted.
    Requirements,
    /// Plan the steps.
    Plan,
    /// Work on one of these steps.
    Work,
    /// Review all changes.
    Review,
}

/// The kinds of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SignalKind {
    Complete,
    PartiallyComplete,
    NeedsUserInput,
    NeedsRoleFollowup,
}

impl fmt::Display for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "complete",
            Self::PartiallyComplete => "partially-complete",
            Self::NeedsUserInput => "needs-user-input",
            Self::NeedsRoleFollowup => "needs-role-followup",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Role {
    pub name: String,
    /// The signals that the role may send.
    pub may: Vec<SignalKind>,
    /// The roles that this role may call.
    #[serde(default)]
    pub calls: Vec<String>,
    /// The prompt of the role.
    #[serde(default)]
    pub prompt: String,
    /// What the role's agents may do without asking. None: what the quest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionPolicy>,
    /// The harness of the role's agents. None: the quest's harness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The model of the role's agents. None: the quest's model, if the harness is the quest's harness, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The stations of each phase: names of roles, and [`WARD`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Paths {
    pub requirements: Vec<String>,
    pub plan: Vec<String>,
    pub work: Vec<String>,
    pub review: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Table {
    pub roles: Vec<Role>,
    pub paths: Paths,
    /// The role that repairs what a ward found, and resolves merge conflicts.
    pub mender: String,
    /// The role that may submit steps.
    pub planner: String,
    /// The role that may submit requirements.
    pub requirer: String,
}

/// Which phases and roles of the table a quest uses. Small work does not need every role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Requirements, plan, work and review.
    #[default]
    Full,
    /// The path of work only.
    Checked,
    /// The first role of the path of work, then the ward.
    Quick,
}

impl Preset {
    /// Whether agents plan the steps. Otherwise the request is the only step, unless the user brings a plan.
    pub fn plans(self) -> bool {
        match self {
            Self::Full => true,
            Self::Checked | Self::Quick => false,
        }
    }
}

/// Why a table cannot be used for a quest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTable {
    #[error("the path of `work` is empty, so no role would work on a step")]
    NobodyWorks,
    #[error("`{place}` names the role `{role}`, which is not in the table")]
    Unknown { place: String, role: String },
    #[error("`{0}` cannot be the name of a role")]
    BadName(String),
    #[error("the role `{0}` is there twice")]
    Twice(String),
    #[error("the {whose} `{role}` is not on the path of `{path}`, so nothing is ever handed in there")]
    NotOnPath { whose: &'static str, role: String, path: &'static str },
    #[error("the role `{0}` may not signal `complete`, so its work never ends")]
    NeverEnds(String),
    #[error("the path of `{0}` begins with the ward: there is nothing to look at yet")]
    BeginsWithWard(&'static str),
    #[error("{what} has {count}; at most {most} are possible")]
    TooMuch { what: String, count: usize, most: usize },
}

impl Default for Table {
    /// The built-in table.
    fn default() -> Self {
        use SignalKind::{Complete, NeedsRoleFollowup, NeedsUserInput, PartiallyComplete};
        let role = |name: &str, may: &[SignalKind], calls: &[&str]| Role {
            name: name.into(),
            may: may.to_vec(),
            calls: calls.iter().map(|called| (*called).into()).collect(),
            prompt: String::new(),
            permissions: None,
            harness: None,
            model: None,
        };
        let path = |stations: &[&str]| stations.iter().map(|station| (*station).into()).collect();
        let all = [Complete, PartiallyComplete, NeedsUserInput, NeedsRoleFollowup];
        // Each of these roles may be called. If roles call each other in a circle, the user is asked (`MAX_RETURNS`).
        let others = |name: &str| {
            let callable = ["pathseeker", "codeweaver", "siegemaster", "lawbringer", "spiritmender"];
            callable.into_iter().filter(|called| *called != name).collect::<Vec<_>>()
        };
        #[rustfmt::skip]
        let roles = vec![
            //    who               may signal                                          may call
            role("chaoswhisperer", &[Complete, NeedsUserInput],                        &[]),
            role("pathseeker",     &all,                                               &[&["chaoswhisperer"], &others("pathseeker")[..]].concat()),
            role("codeweaver",     &all,                                               &others("codeweaver")),
            role("siegemaster",    &[Complete, PartiallyComplete, NeedsRoleFollowup],  &others("siegemaster")),
            role("lawbringer",     &[Complete, NeedsRoleFollowup],                     &others("lawbringer")),
            role("spiritmender",   &all,                                               &others("spiritmender")),
        ];
        Self {
            roles,
            paths: Paths {
                requirements: path(&["chaoswhisperer"]),
                plan: path(&["pathseeker"]),
                // The last role may have changed files, so the ward runs after it.
                work: path(&["codeweaver", WARD, "siegemaster", WARD]),
                review: path(&["lawbringer", WARD]),
            },
            mender: "spiritmender".into(),
            planner: "pathseeker".into(),
            requirer: "chaoswhisperer".into(),
        }
    }
}

impl Table {
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// This table, with the paths of a preset.
    #[must_use]
    pub fn with_preset(mut self, preset: Preset) -> Self {
        let work = match preset {
            Preset::Full => return self,
            Preset::Checked => self.paths.work,
            Preset::Quick => self.paths.work.into_iter().take(1).chain([WARD.to_owned()]).collect(),
        };
        self.paths = Paths { requirements: Vec::new(), plan: Vec::new(), work, review: Vec::new() };
        self
    }

    /// The stations that a step of a phase goes through.
    pub fn path(&self, phase: Phase) -> &[String] {
        match phase {
            Phase::Requirements => &self.paths.requirements,
            Phase::Plan => &self.paths.plan,
            Phase::Work => &self.paths.work,
            Phase::Review => &self.paths.review,
        }
    }

    /// Checks whether the table can be used for a quest.
    pub fn check(&self) -> Result<(), BadTable> {
        let too_much = |what: &str, count, most| BadTable::TooMuch { what: what.into(), count, most };
        if self.roles.len() > MAX_ROLES {
            return Err(too_much("the table", self.roles.len(), MAX_ROLES));
        }
        let mut names = BTreeSet::new();
        for role in &self.roles {
            if role.name == WARD || !is_name(&role.name, MAX_ROLE_BYTES) {
                return Err(BadTable::BadName(role.name.chars().take(MAX_ROLE_BYTES).collect()));
            }
            if !names.insert(role.name.as_str()) {
                return Err(BadTable::Twice(role.name.clone()));
            }
            if !role.may.contains(&SignalKind::Complete) {
                return Err(BadTable::NeverEnds(role.name.clone()));
            }
            if role.prompt.len() > MAX_PROMPT_BYTES {
                return Err(too_much(&format!("the prompt of `{}`", role.name), role.prompt.len(), MAX_PROMPT_BYTES));
            }
        }
        let known = |place: &str, role: &str| match names.contains(role) {
            true => Ok(()),
            false => Err(BadTable::Unknown { place: place.into(), role: role.chars().take(MAX_ROLE_BYTES).collect() }),
        };
        for role in &self.roles {
            role.calls.iter().try_for_each(|called| known(&format!("calls of {}", role.name), called))?;
        }
        for (name, phase) in [
            ("requirements", Phase::Requirements),
            ("plan", Phase::Plan),
            ("work", Phase::Work),
            ("review", Phase::Review),
        ] {
            let path = self.path(phase);
            if path.len() > MAX_STATIONS {
                return Err(too_much(&format!("the path of `{name}`"), path.len(), MAX_STATIONS));
            }
            path.iter().filter(|station| *station != WARD).try_for_each(|role| known(name, role))?;
            if path.first().is_some_and(|station| station == WARD) {
                return Err(BadTable::BeginsWithWard(name));
            }
        }
        match self.paths.work.is_empty() {
            true => return Err(BadTable::NobodyWorks),
            false => known("mender", &self.mender)?,
        }
        // A planner or requirer without a path is not needed.
        for (whose, role, name, path) in [
            ("planner", &self.planner, "plan", &self.paths.plan),
            ("requirer", &self.requirer, "requirements", &self.paths.requirements),
        ] {
            if !path.is_empty() && !path.contains(role) {
                let role = role.chars().take(MAX_ROLE_BYTES).collect();
                return Err(BadTable::NotOnPath { whose, role, path: name });
            }
        }
        Ok(())
    }
}

/// What a built-in role does, in plain words. None for a role that a project has defined: its users know the name.
pub fn duty(role: &str) -> Option<&'static str> {
    Some(match role {
        "chaoswhisperer" => "writes the requirements",
        "pathseeker" => "plans the steps",
        "codeweaver" => "implements",
        "siegemaster" => "tries to break it",
        "lawbringer" => "reviews",
        "spiritmender" => "repairs",
        _ => return None,
    })
}

/// A role as people see it: its name, and what it does.
pub fn titled(role: &str) -> String {
    duty(role).map_or_else(|| role.to_owned(), |duty| format!("{role} ({duty})"))
}

/// Whether a name can be part of a path, a branch or an option: lowercase letters, digits and dashes, beginning with a letter or digit.
pub fn is_name(name: &str, most: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=most).contains(&name.len())
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|byte| plain(byte) || byte == b'-')
}
