//! What the daemon holds: with nothing to do, and for each client of the event stream.

use crate::Effort;
use crate::crowd::{self, Crowd};
use crate::daemon::Daemon;
use crate::over_http::Poster;
use crate::raw::{self, Producer as _};
use crate::table::{Goal, Pairs, Table, Unit};

const CONNECTIONS: usize = 1_000;
const IDLE_MIB: f64 = 35.0;
const CLIENT_KIB: f64 = 25.0;
/// Events that every client receives before it is weighed, so that its buffers have been in use.
const EVENTS: u64 = 20;

pub fn run(effort: Effort, table: &mut Table) {
    let (mut resident, mut private, mut growth) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.pick(1, 3) {
        let folder = raw::folder();
        let runtime = crowd::runtime();
        let daemon = Daemon::start(folder.path());
        let mut poster = runtime.block_on(Poster::connect(&daemon));
        let idle = Weight::of(&daemon);
        resident.push(idle.resident_kib / 1_024.0);
        private.push(idle.anonymous_kib / 1_024.0);
        let full = runtime.block_on(async {
            let head = daemon.log_head().await;
            let crowd = Crowd::gather(daemon.address, &daemon.follow_request(head), CONNECTIONS).await;
            for _ in 0..EVENTS {
                poster.append().await;
            }
            crowd.wait_for(EVENTS * crowd.len()).await;
            Weight::of(&daemon)
        });
        growth.push((full.resident_kib - idle.resident_kib) / CONNECTIONS as f64);
    }
    table.add("memory of an idle daemon, resident", Unit::Mib, Pairs::against(IDLE_MIB, resident), Goal::AtMost(1.0));
    table.add("memory of an idle daemon, anonymous", Unit::Mib, Pairs::against(IDLE_MIB, private), Goal::Open);
    table.add(
        format!("memory for each of {CONNECTIONS} SSE clients, resident"),
        Unit::Kib,
        Pairs::against(CLIENT_KIB, growth),
        Goal::AtMost(1.0),
    );
}

struct Weight {
    resident_kib: f64,
    anonymous_kib: f64,
}

impl Weight {
    fn of(daemon: &Daemon) -> Self {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", daemon.pid())).unwrap();
        let kib = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        Self { resident_kib: kib("Rss:"), anonymous_kib: kib("Anonymous:") }
    }
}
