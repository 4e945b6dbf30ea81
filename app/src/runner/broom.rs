//! Clears away the folders of attempts that have long been over, and those of wards whose quests are. All that counts of them is in the log
//! by then, and nobody looks into them again. What the log does not know of is left alone.

use super::RunnerContext;
use crate::run_folder;
use crate::ward::Ward;
use hatchery_core::World;
use hatchery_core::quest::Quest;
use hatchery_core::run::AttemptId;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often it is looked for them. They are counted in days.
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);

/// Looks at once, and again and again.
pub async fn sweep(context: Arc<RunnerContext>) -> Infallible {
    loop {
        let here = Arc::clone(&context);
        match tokio::task::spawn_blocking(move || clear(&here)).await.map_err(io::Error::other).flatten() {
            Ok(0) => {}
            Ok(cleared) => tracing::info!(cleared, "folders of runs that are long over are gone"),
            Err(error) => tracing::warn!(%error, "old run folders cannot be cleared away; trying again in an hour"),
        }
        tokio::time::sleep(SWEEP_EVERY).await;
    }
}

/// Gives how many there were.
fn clear(context: &RunnerContext) -> io::Result<usize> {
    let Some(keep) = context.keep_runs else { return Ok(0) };
    let world = context.handle.view();
    let mut cleared = 0;
    for (of, folder) in run_folder::all(&context.project)? {
        match is_over(&world, of).then(|| clear_if_old(folder.path(), folder.is_held()?, keep)).transpose() {
            Ok(done) => cleared += usize::from(done == Some(true)),
            // It does not keep the others from it. A person may have been faster.
            Err(error) => tracing::warn!(%error, folder = %folder.path().display(), "cannot be cleared away"),
        }
    }
    for (quest, _, _, ward) in Ward::all(&context.program, &context.project)? {
        let is_over = world.quest(quest).is_some_and(Quest::is_over);
        match is_over.then(|| clear_if_old(ward.path(), ward.is_held()?, keep)).transpose() {
            Ok(done) => cleared += usize::from(done == Some(true)),
            Err(error) => tracing::warn!(%error, folder = %ward.path().display(), "cannot be cleared away"),
        }
    }
    Ok(cleared)
}

fn clear_if_old(folder: &Path, is_held: bool, keep: Duration) -> io::Result<bool> {
    let is_old = !is_held && age(folder)? >= keep;
    if is_old {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(is_old)
}

/// Attempts only ever follow each other, so what is over stays so.
fn is_over(world: &World, of: AttemptId) -> bool {
    world.run(of.agent).is_some_and(|run| {
        let open = run.is_open().then_some((run.number, run.attempt));
        open.map_or(of.run <= run.number, |open| (of.run, of.attempt) < open)
    })
}

/// Since the last of its files appeared. One that lies in the future is new.
fn age(folder: &std::path::Path) -> io::Result<Duration> {
    let modified = std::fs::metadata(folder)?.modified()?;
    Ok(SystemTime::now().duration_since(modified).unwrap_or_default())
}
