//! One event for a thousand connections. Three servers get the same crowd: the daemon, axum with its own SSE over a
//! broadcast channel, and bare writes to the sockets.
//!
//! Events come in waves, and the next wave starts when everybody has the last one whole, so nobody gains by dropping or by
//! running ahead. Ours are durable before they are sent; the rivals keep nothing.

use crate::Effort;
use crate::crowd::{self, Crowd};
use crate::daemon::Daemon;
use crate::over_http::Poster;
use crate::raw::{self, Producer as _};
use crate::rival::Rival;
use crate::table::{Goal, Pairs, Table, Unit, turns};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

pub fn run(effort: Effort, table: &mut Table) {
    let connections = effort.pick(200, 1_000);
    let folder = raw::folder();
    let runtime = crowd::runtime();
    let daemon = Daemon::start(folder.path());
    let (mut axum, mut bare) = (Rival::start("axum", &[]), Rival::start("sockets", &[]));
    let gather = |address, request: &[u8]| runtime.block_on(Crowd::gather(address, request, connections));
    let follow_axum = gather(axum.address, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let follow_bare = gather(bare.address, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    for wave in [1, 64] {
        // Making the posters appends to the log, so the crowd gathers behind that.
        let mut posters: Vec<Poster> = (0..wave).map(|_| runtime.block_on(Poster::connect(&daemon))).collect();
        let head = runtime.block_on(daemon.log_head());
        let follow_ours = gather(daemon.address, &daemon.follow_request(head));
        let turn = effort.turn();
        for (name, follow_rival, rival, goal) in [
            ("bare axum SSE", &follow_axum, &mut axum, Goal::AtLeast(1.0)),
            ("raw TCP writes (a stretch)", &follow_bare, &mut bare, Goal::AtLeast(0.6)),
        ] {
            let pid = rival.pid();
            let turns = turns(
                effort.rounds(),
                || measure(&runtime, &follow_ours, daemon.pid(), wave, turn, async || append(&mut posters).await),
                || measure(&runtime, follow_rival, pid, wave, turn, async || rival.publish(wave)),
            );
            let pairs = |figure: fn(&Turn) -> f64| {
                Pairs::new(turns.iter().map(|(ours, raw)| (figure(ours), figure(raw))).collect())
            };
            let what = format!("fan-out to {connections} connections, {wave} at a time");
            table.add(format!("{what}, against {name}"), Unit::PerSecond, pairs(|turn| turn.rate), goal);
            let what = format!("{what}, the server's CPU time for a delivery, against {name}");
            table.add(what, Unit::Micros, pairs(|turn| turn.cpu_micros), Goal::Open);
        }
    }
}

struct Turn {
    /// Deliveries a second over all connections.
    rate: f64,
    /// What one delivery costs the server. A busy machine disturbs this less than the rate.
    cpu_micros: f64,
}

fn measure(
    runtime: &Runtime,
    crowd: &Crowd,
    server: u32,
    wave: u64,
    turn: Duration,
    mut publish: impl AsyncFnMut(),
) -> Turn {
    runtime.block_on(async {
        let (start, cpu, before) = (Instant::now(), cpu_micros(server), crowd.delivered());
        while start.elapsed() < turn {
            let due = crowd.delivered() + wave * crowd.len();
            tokio::join!(publish(), crowd.wait_for(due));
        }
        let delivered = (crowd.delivered() - before) as f64;
        Turn { rate: delivered / start.elapsed().as_secs_f64(), cpu_micros: (cpu_micros(server) - cpu) / delivered }
    })
}

/// What a process has used so far, its threads that ended included.
fn cpu_micros(pid: u32) -> f64 {
    /// The unit of these figures, the same on every Linux.
    const TICK_MICROS: f64 = 1e4;
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name comes before and may hold anything; user and system time are the 12th and 13th figures after it.
    let (_, figures) = text.rsplit_once(") ").unwrap();
    figures.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap() * TICK_MICROS).sum()
}

/// One wave: all at once, so that the daemon may group them.
async fn append(posters: &mut [Poster]) {
    futures_util::future::join_all(posters.iter_mut().map(|poster| poster.append())).await;
}
