//! The roles in the settings of quests. A list adds roles and replaces those of the same name. A table by name changes roles: what it
//! leaves out stays as it is.
//!
//! ```toml
//! [quests.roles.siegemaster]
//! harness = "codex"
//! ```

use hatchery_core::permission::PermissionPolicy;
use hatchery_core::roles::{Role, SignalKind};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug)]
pub(super) enum RoleSettings {
    Whole(Vec<WholeRole>),
    Changes(BTreeMap<String, RoleChange>),
}

impl Default for RoleSettings {
    fn default() -> Self {
        Self::Whole(Vec::new())
    }
}

/// A [`Role`] as people write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WholeRole {
    name: String,
    may: Vec<SignalKind>,
    #[serde(default)]
    calls: Vec<String>,
    #[serde(default)]
    prompt: String,
    permissions: Option<PermissionPolicy>,
    harness: Option<String>,
    model: Option<String>,
}

/// What is different about a role.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoleChange {
    may: Option<Vec<SignalKind>>,
    calls: Option<Vec<String>>,
    prompt: Option<String>,
    permissions: Option<PermissionPolicy>,
    harness: Option<String>,
    model: Option<String>,
}

impl RoleSettings {
    pub fn over(self, mut roles: Vec<Role>) -> Result<Vec<Role>, String> {
        match self {
            Self::Whole(whole) => {
                for WholeRole { name, may, calls, prompt, permissions, harness, model } in whole {
                    let role = Role { name, may, calls, prompt, permissions, harness, model };
                    match roles.iter_mut().find(|known| known.name == role.name) {
                        Some(known) => *known = role,
                        None => roles.push(role),
                    }
                }
            }
            Self::Changes(changes) => {
                for (name, change) in changes {
                    let known = roles.iter().map(|role| role.name.as_str()).collect::<Vec<_>>().join(", ");
                    let role = roles.iter_mut().find(|role| role.name == name).ok_or_else(|| {
                        format!("`quests.roles.{name}` is not known: there are {known}; [[quests.roles]] adds a role")
                    })?;
                    change.apply(role);
                }
            }
        }
        Ok(roles)
    }
}

impl RoleChange {
    fn apply(self, role: &mut Role) {
        let Self { may, calls, prompt, permissions, harness, model } = self;
        role.may = may.unwrap_or_else(|| std::mem::take(&mut role.may));
        role.calls = calls.unwrap_or_else(|| std::mem::take(&mut role.calls));
        role.prompt = prompt.unwrap_or_else(|| std::mem::take(&mut role.prompt));
        role.permissions = permissions.or(role.permissions);
        role.harness = harness.or_else(|| role.harness.take());
        role.model = model.or_else(|| role.model.take());
    }
}

impl<'de> Deserialize<'de> for RoleSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RoleSettingsVisitor)
    }
}

struct RoleSettingsVisitor;

impl<'de> Visitor<'de> for RoleSettingsVisitor {
    type Value = RoleSettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of roles, or a table of roles by name")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, list: S) -> Result<RoleSettings, S::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(RoleSettings::Whole)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RoleSettings, M::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(RoleSettings::Changes)
    }
}
