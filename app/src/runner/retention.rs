//! Clears leftovers that are old enough: see [`crate::gc`].

use super::RunnerContext;
use crate::cgroup::Cgroup;
use crate::gc;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often to look for old leftovers. Their age is counted in days.
const CHECK_EVERY: Duration = Duration::from_secs(3_600);

/// Clears old leftovers now, and then again after each pause.
pub async fn clear_leftovers(context: Arc<RunnerContext>) -> Infallible {
    loop {
        let here = Arc::clone(&context);
        match tokio::task::spawn_blocking(move || clear_all(&here)).await.map_err(io::Error::other).flatten() {
            Ok(0) => {}
            Ok(cleared) => tracing::info!(cleared, "what was left over long ago was cleared"),
            Err(error) => tracing::warn!(%error, "leftovers cannot be looked for; trying again in an hour"),
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
}

/// Returns how many were cleared.
fn clear_all(context: &RunnerContext) -> io::Result<usize> {
    Cgroup::sweep();
    let Some(keep) = context.settings().keep_runs else { return Ok(0) };
    let repository = context.repository().ok();
    let found = gc::find(&context.project, &context.handle.view(), repository.as_ref(), keep)?;
    let mut cleared = 0;
    for leftover in &found {
        match gc::clear(&context.project, repository.as_ref(), leftover) {
            Ok(()) => cleared += 1,
            // The others are cleared nevertheless. A person may have deleted this one.
            Err(error) => tracing::warn!(%error, what = leftover.what, "this cannot be cleared"),
        }
    }
    Ok(cleared)
}
