//! Steps per second with agents that signal at once, against the rate at which this machine starts the same program.

use crate::Effort;
use crate::hands;
use crate::shop::{PROGRAM, Shop};
use crate::table::{Goal, Table, Unit, in_turns};
use hatchery_core::quest::Quest;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const SLOTS: u32 = 8;
const SIGNAL: &str =
    r#"{"mcp": {"tool": "signal-back", "arguments": {"signal": "complete", "stepId": "{{step}}", "summary": "done"}}}"#;

pub fn run(effort: Effort, table: &mut Table) {
    let shop = Shop::open();
    let supervisor = shop.supervise();
    let playbook = shop.folder.path().join("playbook");
    std::fs::create_dir(&playbook).unwrap();
    std::fs::write(playbook.join("codeweaver.jsonl"), SIGNAL).unwrap();
    let script = shop.script("{\"text\":\"done\"}\n");
    let steps = effort.pick(24, 64);
    let pairs = in_turns(effort.pick(2, 7), || quest(&shop, &playbook, steps), || bare(&script, steps));
    table.add(
        "steps per second, 8 slots, against bare starts of the program",
        Unit::PerSecond,
        pairs,
        Goal::AtLeast(0.5),
    );
    supervisor.abort();
}

fn quest(shop: &Shop, playbook: &Path, steps: usize) -> f64 {
    let charter = hands::charter(shop.spec(playbook), SLOTS);
    let start = Instant::now();
    let quest = shop.runtime.block_on(hands::begin(&shop.handle, charter, hands::plan(steps, |_| Vec::new())));
    shop.wait(|world| world.quest(quest).is_some_and(Quest::is_over));
    steps as f64 / start.elapsed().as_secs_f64()
}

/// As many at once as there are slots.
fn bare(script: &Path, count: usize) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..SLOTS {
            scope.spawn(|| {
                for _ in 0..count / SLOTS as usize {
                    let mut command = Command::new(PROGRAM);
                    command.arg("agent-sim").arg(script).arg("play").stdin(Stdio::null()).stdout(Stdio::null());
                    assert!(command.status().unwrap().success());
                }
            });
        }
    });
    count as f64 / start.elapsed().as_secs_f64()
}
