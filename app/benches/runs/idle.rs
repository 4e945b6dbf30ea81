//! What a daemon costs that holds many agents which wait for a message.

use crate::Effort;
use crate::raw;
use crate::shop::PROGRAM;
use crate::table::{Goal, Pairs, Table, Unit};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MIB: f64 = 60.0;
/// Of one core.
const PERCENT: f64 = 1.0;

pub fn run(effort: Effort, table: &mut Table) {
    let agents = effort.pick(20, 500);
    let folder = raw::folder();
    std::fs::create_dir(folder.path().join(".hatchery")).unwrap();
    std::fs::write(folder.path().join("hatchery.toml"), "harness = 'scripted'\nmax_runs = 1000\nlog = 'error'\n")
        .unwrap();
    let mut daemon = start(folder.path());
    for _ in 0..agents {
        hatchery(folder.path(), &["run", "--stay", "--detach", "hello"]);
    }
    let listens = || {
        let runs = hatchery(folder.path(), &["runs", "--json"]);
        runs.matches("\"turns\": 1").count()
    };
    while listens() < agents {
        std::thread::sleep(Duration::from_millis(500));
    }
    let pid = daemon.id();
    // Two rounds of the glances that each supervisor takes at its folder.
    let window = Duration::from_secs(effort.pick(3, 60));
    let (before, start) = (cpu_ticks(pid), Instant::now());
    std::thread::sleep(window);
    // The kernel counts in hundredths of a second.
    let busy = (cpu_ticks(pid) - before) as f64 / 100.0 / start.elapsed().as_secs_f64() * 100.0;
    let resident = resident_mib(pid);
    let name = |what: &str| format!("{what} of a daemon with {agents} agents that wait");
    table.add(name("memory"), Unit::Mib, Pairs::against(MIB, [resident]), Goal::AtMost(1.0));
    table.add(name("percent of a core"), Unit::Percent, Pairs::against(PERCENT, [busy]), Goal::AtMost(1.0));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    end_all(folder.path());
}

fn start(project: &Path) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(["up", "--json", "--no-open", "--project"]).arg(project).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    child
}

fn hatchery(project: &Path, arguments: &[&str]) -> String {
    let output = Command::new(PROGRAM).args(arguments).arg("--project").arg(project).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn resident_mib(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1_024.0
}

/// Every process of the project's runs, launchers first, so that nothing is started again.
fn end_all(project: &Path) {
    let root = project.canonicalize().unwrap();
    for name in ["HATCHERY_LAUNCHER", "HATCHERY_ATTEMPT"] {
        let runs = root.join(".hatchery/runs");
        let attempts = std::fs::read_dir(&runs).unwrap().flatten().flat_map(|agent| std::fs::read_dir(agent.path()));
        for attempt in attempts.flatten().flatten() {
            hatchery::processes::kill_tagged(name, &attempt.path().display().to_string());
        }
    }
}
