//! What an agent that does nothing holds in memory.

use crate::table::{Goal, Pairs, Table, Unit};
use crate::{Effort, raw, tree};
use hatchery::clock::new_agent_id;
use hatchery::store::StoreUrl;
use hatchery_core::Command;
use hatchery_core::agent::Birth;

const AGENT_KIB: f64 = 4.0;

pub fn run(effort: Effort, table: &mut Table) {
    let agents = effort.pick(2_000, 20_000);
    let folder = raw::folder();
    let url = StoreUrl::Sqlite(folder.path().join("ours.db"));
    let engine = tree::start(&url);
    let root = tree::found(&engine.handle);
    let before = resident_kib();
    for at in 0..agents {
        let birth = Birth { name: Some(format!("agent {at}")), ..Birth::of(new_agent_id()) };
        tree::submit(&engine.handle, Command::Fork { parent: root, at: None, birth });
    }
    let growth = (resident_kib() - before) / f64::from(agents);
    table.add(
        "memory for each idle agent, resident",
        Unit::Kib,
        Pairs::against(AGENT_KIB, [growth]),
        Goal::AtMost(1.0),
    );
    tree::stop(engine);
}

fn resident_kib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
