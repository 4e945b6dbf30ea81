//! The settings of quests: `[quests]` in `hatchery.toml`. The table of roles is the built-in one, changed by what is written there.

mod role_settings;

use crate::report::{Code, Report};
use crate::strict::Within;
use hatchery_core::quest::{MAX_SLOTS, MAX_WARD_MS, MIN_WARD_MS};
use hatchery_core::roles::{Paths, Table};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where a project may have prompts of its own, from its root.
pub const PROMPTS_FOLDER: &str = ".hatchery/prompts";
/// The default number of agents of a quest that work at the same time.
const SLOTS: u32 = 3;
/// The default time limit of a ward: half an hour.
const WARD_LIMIT_MS: u64 = 30 * 60 * 1_000;

/// How quests are run, unless a command says otherwise.
#[derive(Clone, Debug)]
pub struct Quests {
    pub slots: u32,
    pub ward: Option<String>,
    pub ward_limit_ms: u64,
    pub isolation: Option<Isolated>,
    pub approve_plan: bool,
    /// Where prompts of the project's own are, from its root.
    pub prompts: PathBuf,
    /// Without prompts: those are read when a quest begins.
    pub table: Table,
}

/// Where the agents of steps work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolated {
    /// Each in a git worktree of its own.
    Worktree,
    /// All in the project itself.
    None,
}

/// The settings as people write them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuestSettings {
    slots: Option<Within<1, { MAX_SLOTS as u64 }>>,
    ward: Option<String>,
    ward_limit_ms: Option<Within<MIN_WARD_MS, MAX_WARD_MS>>,
    isolation: Option<Isolated>,
    approve_plan: Option<bool>,
    prompts: Option<PathBuf>,
    /// Roles that are added, replace those of the same name, or change them.
    #[serde(default)]
    roles: role_settings::RoleSettings,
    paths: Option<SomePaths>,
    mender: Option<String>,
    planner: Option<String>,
    requirer: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SomePaths {
    requirements: Option<Vec<String>>,
    plan: Option<Vec<String>>,
    work: Option<Vec<String>>,
    review: Option<Vec<String>>,
}

impl QuestSettings {
    pub(super) fn over_defaults(self) -> Result<Quests, Report> {
        let usage = |message: String| Report::new(Code::Usage, message);
        let usual = Table::default();
        let roles = self.roles.over(usual.roles).map_err(usage)?;
        let paths = self.paths.unwrap_or_default();
        let table = Table {
            roles,
            paths: Paths {
                requirements: paths.requirements.unwrap_or(usual.paths.requirements),
                plan: paths.plan.unwrap_or(usual.paths.plan),
                work: paths.work.unwrap_or(usual.paths.work),
                review: paths.review.unwrap_or(usual.paths.review),
            },
            mender: self.mender.unwrap_or(usual.mender),
            planner: self.planner.unwrap_or(usual.planner),
            requirer: self.requirer.unwrap_or(usual.requirer),
        };
        table.check().map_err(|bad| usage(format!("[quests] in the configuration is wrong: {bad}")))?;
        Ok(Quests {
            slots: self.slots.and_then(|it| it.0.try_into().ok()).unwrap_or(SLOTS),
            ward: self.ward.filter(|ward| !ward.trim().is_empty()),
            ward_limit_ms: self.ward_limit_ms.map_or(WARD_LIMIT_MS, |it| it.0),
            isolation: self.isolation,
            approve_plan: self.approve_plan.unwrap_or(false),
            prompts: self.prompts.unwrap_or_else(|| PROMPTS_FOLDER.into()),
            table,
        })
    }
}

impl Quests {
    /// The table with what each role is told: by its own line in the settings, by the project's file, or by the built-in one.
    pub fn briefed(&self, own: &BTreeMap<String, String>) -> Table {
        let mut table = self.table.clone();
        for role in table.roles.iter_mut().filter(|role| role.prompt.is_empty()) {
            role.prompt = own.get(&role.name).cloned().unwrap_or_else(|| built_in(&role.name).to_owned());
        }
        table
    }
}

/// What a role is told when the project says nothing else.
fn built_in(role: &str) -> &'static str {
    match role {
        "chaoswhisperer" => include_str!("../../../prompts/chaoswhisperer.md"),
        "pathseeker" => include_str!("../../../prompts/pathseeker.md"),
        "codeweaver" => include_str!("../../../prompts/codeweaver.md"),
        "siegemaster" => include_str!("../../../prompts/siegemaster.md"),
        "lawbringer" => include_str!("../../../prompts/lawbringer.md"),
        "spiritmender" => include_str!("../../../prompts/spiritmender.md"),
        _ => "",
    }
}
