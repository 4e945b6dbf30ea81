//! Notices what other programs do to the status files. A notice is a hint to look, and without one they are looked at every second.

use super::{Files, Stamps, StatusFile};
use crate::file_identity::FileVersion;
use crate::projection::Projector;
use crate::spec_sections;
use crate::status_view::StatusView;
use hatchery_core::Command;
use hatchery_core::status::kept::SPEC_VERSION;
use hatchery_core::status::{Path as StatusPath, StatusChange};
use notify::{EventKind, RecursiveMode, Watcher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often the files are looked at, in case the system did not tell of a change.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Notices of changes that may wait. One that finds no room adds nothing: the files are looked at anyway.
const NOTICES: usize = 16;

/// Runs until it is aborted.
pub(super) async fn watch_folder(
    files: Files,
    view: StatusView,
    stamps: Stamps,
    projector: Arc<Projector<StatusFile>>,
) {
    let folder = files.folder.clone();
    let (sender, mut notices) = mpsc::channel(NOTICES);
    let mut watcher: Option<notify::RecommendedWatcher> = None;
    let mut look_again = tokio::time::interval(LOOK_AGAIN);
    let mut registry = None;
    loop {
        tokio::select! {
            _ = notices.recv() => {}
            _ = look_again.tick() => {}
        }
        while notices.try_recv().is_ok() {}
        if !*files.is_taken.borrow() {
            let files = files.clone();
            // A failure is tried again at the next look.
            drop(tokio::task::spawn_blocking(move || files.take_both(&files.handle.view())).await);
        }
        let is_told = view.look_at_usage();
        if !folder.path().is_dir() {
            watcher = None;
            continue;
        }
        if watcher.is_none() {
            watcher = watched(folder.path(), sender.clone())
                .inspect_err(|error| tracing::debug!(%error, "the status files are looked at every second instead"))
                .ok();
        }
        let found = FileVersion::at(&spec_sections::registry_file(&folder));
        if found != registry && take_registered(&files).await {
            registry = found;
        }
        let known = *stamps.lock().unwrap_or_else(PoisonError::into_inner);
        for file in [StatusFile::State, StatusFile::Inbox] {
            let path = match file {
                StatusFile::State => folder.state_file(),
                StatusFile::Inbox => folder.inbox_file(),
            };
            let is_stale = is_told && file == StatusFile::State;
            if is_stale || FileVersion::at(&path) != known[file as usize] {
                projector.recheck(file).await;
            }
        }
    }
}

/// Takes over the version of the spec from the registry of versions, which is the source of truth for it. Steps of quests are built from the
/// version that the log names when they are completed. False if the log cannot be written.
async fn take_registered(files: &Files) -> bool {
    let folder = files.folder.clone();
    let registered = tokio::task::spawn_blocking(move || spec_sections::registered_version(&folder)).await;
    let Some(version) = registered.ok().flatten() else { return true };
    let change = StatusChange::Set { path: StatusPath::field(SPEC_VERSION), value: version.as_str().into() };
    match files.handle.submit(Command::ChangeStatus { change: Box::new(change) }).await {
        Ok(_) => true,
        Err(error) => {
            tracing::debug!(%error, "the registered version of the spec is not taken over");
            false
        }
    }
}

fn watched(folder: &Path, sender: mpsc::Sender<()>) -> notify::Result<notify::RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let names = [StatusFile::State.to_string(), StatusFile::Inbox.to_string(), spec_sections::REGISTRY.to_owned()];
        let is_ours =
            |path: &PathBuf| path.file_name().is_some_and(|name| names.iter().any(|known| name == known.as_str()));
        if let Ok(event) = event
            && !matches!(event.kind, EventKind::Access(_))
            && event.paths.iter().any(is_ours)
        {
            // A full queue holds a notice already.
            sender.try_send(()).unwrap_or_default();
        }
    })?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}
