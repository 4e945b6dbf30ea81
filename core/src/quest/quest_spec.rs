//! What is fixed when a quest is created.

use super::{Requirements, StepId, StepPlan};
use crate::Refusal;
use crate::permission::PermissionPolicy;
use crate::roles::{Phase, Table};
use crate::run::RunSpec;
use serde::{Deserialize, Serialize};

/// The longest request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 256 << 10;
/// How many slots a quest can have.
pub const MAX_SLOTS: u32 = 64;
/// The shortest time limit of a ward.
pub const MIN_WARD_MS: u64 = 1_000;
/// The longest time limit of a ward: a day.
pub const MAX_WARD_MS: u64 = 24 * 3_600 * 1_000;
/// The longest command of a ward, in bytes.
pub const MAX_WARD_BYTES: usize = 4_096;

/// What is fixed when a quest is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuestSpec {
    /// What the quest is to achieve.
    pub request: String,
    /// The number of slots: how many agents, wards and merges may work at the same time.
    pub slots: u32,
    /// How the agents of the quest are run.
    pub spec: RunSpec,
    #[serde(default)]
    pub ward: Option<WardSpec>,
    pub isolation: Isolation,
    /// Whether the user must approve the plan before it is carried out.
    #[serde(default)]
    pub approve_plan: bool,
    pub table: Table,
}

/// What is known or done when a quest is created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestStart {
    /// Pause the quest at once.
    pub hold: bool,
    pub requirements: Option<Requirements>,
    /// The plan, if there is one already.
    pub steps: Vec<StepPlan>,
    /// Steps that were done elsewhere, each with its summary.
    pub complete: Vec<(StepId, String)>,
}

/// The command that checks a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WardSpec {
    pub command: String,
    pub limit_ms: u64,
    /// The file from which the command was guessed, if the user gave no command.
    #[serde(default)]
    pub guessed_from: Option<String>,
}

/// Where agents work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the project itself.
    None,
    /// Each step in a git worktree of its own.
    Worktree {
        /// The folder that holds the worktrees of this quest.
        base: String,
        /// The project's path within a worktree, if the project is not the root of its git repository.
        within: Option<String>,
    },
}

impl Isolation {
    /// The name of the folder that holds the worktrees.
    pub fn slug(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Worktree { base, .. } => base.rsplit('/').next(),
        }
    }
}

impl QuestSpec {
    /// The name of the quest's branch and of the folder with its worktrees. None without worktrees. For a quest of an earlier version, this
    /// is the quest's id.
    pub fn slug(&self) -> Option<&str> {
        self.isolation.slug()
    }

    /// The folder in which a step is worked on. None: the project's root.
    pub fn folder(&self, step: &StepId, phase: Phase) -> Option<String> {
        match &self.isolation {
            Isolation::None => self.spec.folder.clone(),
            Isolation::Worktree { base, within } => {
                let within = within.as_ref().map(|within| format!("/{within}")).unwrap_or_default();
                Some(match phase {
                    Phase::Work => format!("{base}/steps/{step}{within}"),
                    Phase::Requirements | Phase::Plan | Phase::Review => format!("{base}/trunk{within}"),
                })
            }
        }
    }

    /// What the agents of a role may do without asking: from the table, otherwise from the quest, otherwise by whether the quest has
    /// worktrees.
    pub fn permissions(&self, role: &str) -> PermissionPolicy {
        let of_role = self.table.role(role).and_then(|role| role.permissions);
        let in_worktree = matches!(self.isolation, Isolation::Worktree { .. });
        of_role.or(self.spec.permissions).unwrap_or(PermissionPolicy::by_place(in_worktree))
    }

    /// The harness of the agents of a role: from the table, otherwise the quest's.
    pub fn harness(&self, role: &str) -> &str {
        self.table.role(role).and_then(|role| role.harness.as_deref()).unwrap_or(&self.spec.harness)
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        let bytes = self.request.len();
        if self.request.trim().is_empty() || bytes > MAX_REQUEST_BYTES {
            return Err(Refusal::BadRequest { bytes });
        }
        if !(1..=MAX_SLOTS).contains(&self.slots) {
            return Err(Refusal::SlotsOutOfRange { slots: self.slots });
        }
        if let Some(ward) = &self.ward {
            check_ward(&ward.command)?;
            if !(MIN_WARD_MS..=MAX_WARD_MS).contains(&ward.limit_ms) {
                return Err(Refusal::WardOutOfRange { ms: ward.limit_ms });
            }
        }
        self.table.check().map_err(|bad| Refusal::BadTable { why: bad.to_string() })?;
        crate::run::check_spec(&self.spec)
    }
}

pub(crate) fn check_ward(command: &str) -> Result<(), Refusal> {
    match command.trim().is_empty() || command.len() > MAX_WARD_BYTES {
        true => Err(Refusal::BadWard { bytes: command.len() }),
        false => Ok(()),
    }
}
