//! How long it takes from the request that appends an event until a subscriber holds it.

use crate::Effort;
use crate::crowd::{self, Crowd};
use crate::daemon::Daemon;
use crate::over_http::Poster;
use crate::raw::{self, Overwrite, Producer as _};
use crate::table::{Goal, Pairs, Table, Unit, quantile};
use std::time::Instant;

pub fn run(effort: Effort, table: &mut Table) {
    let folder = raw::folder();
    let runtime = crowd::runtime();
    let daemon = Daemon::start(folder.path());
    let overwrite = Overwrite::new(folder.path());
    let samples = effort.pick(50, 500);
    let (mut halves, mut tails) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        let mut poster = Poster::connect(&daemon).await;
        let crowd = Crowd::gather(daemon.address, &daemon.follow_request(0), 1).await;
        crowd.wait_for(daemon.log_head().await).await;
        for round in 0..=effort.rounds() {
            let (mut ours, mut raw) = (Vec::with_capacity(samples), Vec::with_capacity(samples));
            for _ in 0..samples {
                let due = crowd.delivered() + 1;
                let start = Instant::now();
                let delivered = async {
                    crowd.wait_for(due).await;
                    micros(start)
                };
                let (took, ()) = tokio::join!(delivered, poster.append());
                ours.push(took);
                let start = Instant::now();
                overwrite.once();
                raw.push(micros(start));
            }
            // The first round warms up.
            if round > 0 {
                halves.push((quantile(ours.clone(), 0.5), quantile(raw.clone(), 0.5)));
                tails.push((quantile(ours, 0.99), quantile(raw, 0.99)));
            }
        }
    });
    let what = "append to delivery over SSE";
    table.add(format!("{what}, p50, against F's"), Unit::Micros, Pairs::new(halves), Goal::AtMost(3.0));
    table.add(format!("{what}, p99, against F's"), Unit::Micros, Pairs::new(tails), Goal::AtMost(4.0));
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}
