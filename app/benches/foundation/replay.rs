//! A client that was away: everything after its `Last-Event-ID`, from the log. The rival streams the same rows of the same
//! file through axum's own SSE.

use crate::Effort;
use crate::append;
use crate::crowd::{self, Crowd};
use crate::daemon::Daemon;
use crate::raw;
use crate::rival::Rival;
use crate::start::fill;
use crate::table::{Goal, Table, Unit, in_turns};
use hatchery::store::StoreUrl;
use std::net::SocketAddr;
use std::time::Instant;
use tokio::runtime::Runtime;

pub fn run(effort: Effort, table: &mut Table) {
    let folder = raw::folder();
    let runtime = crowd::runtime();
    let file = folder.path().join(".hatchery/hatchery.db");
    std::fs::create_dir(folder.path().join(".hatchery")).unwrap();
    let events = fill(&file, 100, effort.pick(5_000, 100_000));
    let engine = append::start(&raw::runtime(), &StoreUrl::Sqlite(file.clone()));
    engine.handle.stop();
    engine.join().unwrap();
    let daemon = Daemon::start(folder.path());
    let rival = Rival::start("replay", &[file.to_str().unwrap()]);
    let pairs = in_turns(
        effort.rounds(),
        || rate(&runtime, daemon.address, &daemon.follow_request(0), events),
        || rate(&runtime, rival.address, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", events),
    );
    let what = format!("Last-Event-ID replay of {events} events, against bare axum + rusqlite");
    table.add(what, Unit::PerSecond, pairs, Goal::AtLeast(0.8));
}

fn rate(runtime: &Runtime, address: SocketAddr, request: &[u8], events: u64) -> f64 {
    runtime.block_on(async {
        let start = Instant::now();
        let crowd = Crowd::gather(address, request, 1).await;
        crowd.wait_for(events).await;
        events as f64 / start.elapsed().as_secs_f64()
    })
}
