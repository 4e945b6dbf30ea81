//! Deletes the folders of attempts that ended long ago, and of wards whose quests did. Everything that matters about them is in the log.
//! Folders that the log does not know are left alone.

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

/// How often old folders are looked for. Their age is counted in days.
const CHECK_EVERY: Duration = Duration::from_secs(3_600);

/// Deletes old folders now, and then again after each pause.
pub async fn delete_old_folders(context: Arc<RunnerContext>) -> Infallible {
    loop {
        let here = Arc::clone(&context);
        match tokio::task::spawn_blocking(move || delete_all(&here)).await.map_err(io::Error::other).flatten() {
            Ok(0) => {}
            Ok(deleted) => tracing::info!(deleted, "old run folders were deleted"),
            Err(error) => tracing::warn!(%error, "old run folders cannot be deleted; trying again in an hour"),
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
}

/// Says how many folders were deleted.
fn delete_all(context: &RunnerContext) -> io::Result<usize> {
    let Some(keep) = context.keep_runs else { return Ok(0) };
    let world = context.handle.view();
    let mut deleted = 0;
    for (of, folder) in run_folder::all(&context.project)? {
        match is_over(&world, of).then(|| delete_if_old(folder.path(), folder.is_held()?, keep)).transpose() {
            Ok(done) => deleted += usize::from(done == Some(true)),
            // The others are deleted nevertheless. A person may have deleted this one.
            Err(error) => tracing::warn!(%error, folder = %folder.path().display(), "the folder cannot be deleted"),
        }
    }
    for (quest, _, _, ward) in Ward::all(&context.program, &context.project)? {
        let is_over = world.quest(quest).is_some_and(Quest::is_over);
        match is_over.then(|| delete_if_old(ward.path(), ward.is_held()?, keep)).transpose() {
            Ok(done) => deleted += usize::from(done == Some(true)),
            Err(error) => tracing::warn!(%error, folder = %ward.path().display(), "the folder cannot be deleted"),
        }
    }
    Ok(deleted)
}

fn delete_if_old(folder: &Path, is_held: bool, keep: Duration) -> io::Result<bool> {
    let is_old = !is_held && age(folder)? >= keep;
    if is_old {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(is_old)
}

/// Attempts follow each other, so one that is over stays over.
fn is_over(world: &World, of: AttemptId) -> bool {
    world.run(of.agent).is_some_and(|run| {
        let open = run.is_open().then_some((run.number, run.attempt));
        open.map_or(of.run <= run.number, |open| (of.run, of.attempt) < open)
    })
}

/// The time since its last file appeared. A time in the future counts as now.
fn age(folder: &Path) -> io::Result<Duration> {
    let modified = std::fs::metadata(folder)?.modified()?;
    Ok(SystemTime::now().duration_since(modified).unwrap_or_default())
}
