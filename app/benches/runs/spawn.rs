//! From the request to the first event of the process, against the same program started bare.

use crate::Effort;
use crate::shop::{PROGRAM, Shop};
use crate::table::{Goal, Table, Unit, in_turns};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

pub fn run(effort: Effort, table: &mut Table) {
    let shop = Shop::open();
    let supervisor = shop.supervise();
    let script = shop.script("{\"text\":\"here\"}\n");
    let rounds = effort.pick(3, 31);
    let pairs = in_turns(rounds, || there(&shop, &script), || bare(&script));
    table.add("request to the event of the process, against a bare spawn", Unit::Millis, pairs, Goal::AtMost(3.0));
    let pairs = in_turns(rounds, || first_word(&shop, &script), || bare(&script));
    table.add("request to its first word, tools connected, against a bare spawn", Unit::Millis, pairs, Goal::Open);
    supervisor.abort();
}

/// Until the log says that there is a process.
fn there(shop: &Shop, script: &Path) -> f64 {
    let start = Instant::now();
    let agent = shop.ask(script);
    shop.wait(|world| world.run(agent).is_some_and(|run| run.process().is_some()));
    let took = start.elapsed().as_secs_f64() * 1_000.0;
    shop.wait_for_end(&[agent]);
    took
}

/// Until the log has what it said.
fn first_word(shop: &Shop, script: &Path) -> f64 {
    let start = Instant::now();
    let agent = shop.ask(script);
    shop.wait(|world| world.agent(agent).is_some_and(|it| it.messages > 1));
    let took = start.elapsed().as_secs_f64() * 1_000.0;
    shop.wait_for_end(&[agent]);
    took
}

/// Until its first line can be read.
fn bare(script: &Path) -> f64 {
    let start = Instant::now();
    let mut command = Command::new(PROGRAM);
    command.arg("agent-sim").arg(script).arg("play").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let took = start.elapsed().as_secs_f64() * 1_000.0;
    assert!(line.contains("init"), "{line}");
    drop(child.stdout.take());
    child.wait().unwrap();
    took
}
