//! Everything random, from one seed: the numbers, and the quests, tables and plans made of them.

pub use crate::dice::Chance;

use hatchery_core::quest::{Isolation, QuestSpec, StepId, StepPlan, WardSpec};
use hatchery_core::roles::{Paths, Role, SignalKind, Table, WARD};
use hatchery_core::run::RunSpec;

impl Chance {
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.index(from.len())].clone())
    }

    pub fn quest_spec(&mut self) -> QuestSpec {
        let ward = WardSpec { command: "make check".into(), limit_ms: 60_000, guessed_from: None };
        let isolation = match self.one_in(2) {
            true => Isolation::None,
            false => Isolation::Worktree { base: "trees".into(), within: None },
        };
        QuestSpec {
            request: "a bridge".into(),
            slots: 1 + u32::try_from(self.below(4)).expect("below 4"),
            spec: RunSpec { kill_stuck: self.one_in(4), ..spec() },
            ward: (!self.one_in(3)).then_some(ward),
            isolation,
            approve_plan: self.one_in(4),
            table: if self.one_in(2) { Table::default() } else { self.table() },
        }
    }

    /// Up to four roles that call each other in any way, on any paths.
    fn table(&mut self) -> Table {
        use SignalKind::{Complete, NeedsRoleFollowup, NeedsUserInput, PartiallyComplete};
        let names: Vec<String> = (0..1 + self.below(4)).map(|role| format!("r{role}")).collect();
        let roles = names.iter().map(|name| {
            let may = [PartiallyComplete, NeedsUserInput, NeedsRoleFollowup];
            let may = may.into_iter().filter(|_| !self.one_in(4));
            let may = [Complete].into_iter().chain(may.collect::<Vec<_>>()).collect();
            let calls = names.iter().filter(|_| !self.one_in(3)).cloned().collect();
            Role {
                name: name.clone(),
                may,
                calls,
                prompt: String::new(),
                permissions: None,
                harness: None,
                model: None,
            }
        });
        let roles = roles.collect();
        let mut role = || names[self.index(names.len())].clone();
        let [mender, planner, requirer] = [role(), role(), role()];
        let requirements = if self.one_in(2) { vec![] } else { vec![requirer.clone()] };
        let plan = match self.below(3) {
            0 => vec![],
            1 => vec![planner.clone()],
            _ => vec![planner.clone(), WARD.into()],
        };
        let review = if self.one_in(2) { vec![] } else { vec![names[0].clone(), WARD.into()] };
        let paths = Paths { requirements, plan, work: self.path(&names), review };
        Table { roles, paths, mender, planner, requirer }
    }

    fn path(&mut self, names: &[String]) -> Vec<String> {
        let mut path = vec![names[self.index(names.len())].clone()];
        for _ in 0..self.below(4) {
            let ward = self.one_in(2);
            path.push(if ward { WARD.into() } else { names[self.index(names.len())].clone() });
        }
        path
    }

    /// A random graph over names that nobody has used.
    pub fn steps(&mut self, first: u64, most: u64) -> Vec<StepPlan> {
        let mut steps: Vec<StepPlan> = Vec::new();
        for number in first..first + 1 + self.below(most) {
            let after = steps.iter().filter(|_| self.one_in(3)).map(|plan| plan.id.clone()).collect();
            steps.push(planned(&format!("s{number}"), after));
        }
        steps
    }
}

pub fn planned(id: &str, depends_on: Vec<StepId>) -> StepPlan {
    StepPlan {
        id: id.parse().expect("a name"),
        name: id.into(),
        description: String::new(),
        depends_on,
        files_to_create: vec![],
        files_to_modify: vec![],
        observables: vec![],
    }
}

/// How a person runs an agent, and how agents are run at all.
pub fn spec() -> RunSpec {
    RunSpec {
        harness: "scripted".into(),
        host: "mill".into(),
        folder: None,
        model: None,
        script: None,
        stays: false,
        stall_ms: 100_000,
        kill_stuck: false,
        retries: 3,
        parks: true,
        signals: false,
        permissions: None,
    }
}
