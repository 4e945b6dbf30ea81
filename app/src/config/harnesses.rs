//! The setting `harness`: the name of the default harness, or a table with that name and with the agents
//! that are spoken to by ACP.
//!
//! ```toml
//! harness = "codex"
//!
//! [harness]
//! default = "codex"
//! [harness.goose]
//! acp = ["goose", "acp"]
//! ```

use crate::harness::registry::built_in;
use crate::report::{Code, Report};
use crate::strict::Given;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The setting that this file is about.
const SETTING: &str = "harness";
/// The key in the table for the default harness.
const DEFAULT: &str = "default";
/// Agents that are known without a setting: the name, and the command.
const PRESETS: [(&str, &[&str]); 3] =
    [("opencode", &["opencode", "acp"]), ("gemini", &["gemini", "--acp"]), ("qwen", &["qwen", "--acp"])];

/// An agent that is spoken to by ACP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcpAgent {
    /// The program and its arguments.
    pub acp: Vec<String>,
}

/// The setting as people write it.
#[derive(Debug, Default)]
pub(super) struct HarnessSettings {
    usual: Option<String>,
    agents: BTreeMap<String, AcpAgent>,
}

impl HarnessSettings {
    pub(super) fn usual(&self) -> Option<String> {
        self.usual.clone()
    }

    /// The known agents, changed and extended by those of the project.
    pub(super) fn acp_agents(&self) -> Result<BTreeMap<String, AcpAgent>, Report> {
        let preset = |(name, command): &(&str, &[&str])| {
            let acp = command.iter().map(|word| (*word).to_owned()).collect();
            ((*name).to_owned(), AcpAgent { acp })
        };
        let mut agents: BTreeMap<String, AcpAgent> = PRESETS.iter().map(preset).collect();
        for (name, agent) in &self.agents {
            let wrong = |why: &str| Err(Report::new(Code::Usage, format_args!("`harness.{name}` {why}")));
            if built_in(name).is_some() {
                return wrong("is built in and is not spoken to by ACP");
            }
            if agent.acp.first().is_none_or(|program| program.is_empty()) {
                return wrong("needs a program: acp = [\"program\", \"argument\"]");
            }
            agents.insert(name.clone(), agent.clone());
        }
        Ok(agents)
    }
}

/// An environment variable over what the file says. A variable names the usual harness and leaves the agents as they are.
pub(super) fn over(setting: &str, written: Option<Given>, value: &str) -> Given {
    match written {
        Some(Given::Typed(Value::Object(mut table))) if setting == SETTING => {
            table.insert(DEFAULT.into(), value.into());
            Given::Typed(Value::Object(table))
        }
        _ => Given::Text(value.to_owned()),
    }
}

impl<'de> Deserialize<'de> for HarnessSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HarnessSettingsVisitor)
    }
}

struct HarnessSettingsVisitor;

impl<'de> Visitor<'de> for HarnessSettingsVisitor {
    type Value = HarnessSettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a harness, or a table with: default, and agents by their names")
    }

    fn visit_str<E>(self, name: &str) -> Result<HarnessSettings, E> {
        Ok(HarnessSettings { usual: Some(name.to_owned()), ..HarnessSettings::default() })
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<HarnessSettings, M::Error> {
        let mut settings = HarnessSettings::default();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                DEFAULT => settings.usual = Some(map.next_value()?),
                _ => drop(settings.agents.insert(name, map.next_value()?)),
            }
        }
        Ok(settings)
    }
}
