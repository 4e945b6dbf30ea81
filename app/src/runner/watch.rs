//! Notices when a file of a run folder has grown or appeared. A hint to look, never the truth: those who wait also look by
//! themselves now and then, because notices can get lost.

use notify::{EventKind, RecursiveMode, Watcher as _};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The files whose change means something to a supervisor. What it writes itself is not among them.
const TELLING: [&str; 4] = ["stdout.jsonl", "calls.jsonl", "process.json", "exit.json"];

#[derive(Clone, Debug)]
pub struct Watch {
    watcher: Arc<Mutex<notify::RecommendedWatcher>>,
    waiting: Arc<Mutex<HashMap<PathBuf, Arc<Notify>>>>,
}

/// A folder that is watched for as long as this is kept.
#[derive(Debug)]
pub struct Watched {
    watch: Option<Watch>,
    folder: PathBuf,
    changed: Arc<Notify>,
    is_watched: bool,
}

impl Watch {
    pub fn start() -> notify::Result<Self> {
        let waiting: Arc<Mutex<HashMap<PathBuf, Arc<Notify>>>> = Arc::default();
        let told = Arc::clone(&waiting);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
            Ok(event) if !matches!(event.kind, EventKind::Access(_)) => {
                let waiting = told.lock().unwrap_or_else(PoisonError::into_inner);
                let folders = event.paths.iter().filter_map(|path| folder_of(path));
                folders.filter_map(|folder| waiting.get(folder)).for_each(|changed| changed.notify_one());
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "a notice was lost"),
        })?;
        Ok(Self { watcher: Arc::new(Mutex::new(watcher)), waiting })
    }

    fn add(&self, folder: &Path, changed: &Arc<Notify>) -> notify::Result<()> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned(), Arc::clone(changed));
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner).watch(folder, RecursiveMode::NonRecursive)
    }

    /// Unless somebody else watches the folder by now: they would notice nothing any more.
    fn remove(&self, folder: &Path, changed: &Arc<Notify>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.get(folder).is_some_and(|now| Arc::ptr_eq(now, changed)) {
            return;
        }
        waiting.remove(folder);
        drop(waiting);
        let removed = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).unwatch(folder);
        if let Err(error) = removed {
            tracing::debug!(%error, folder = %folder.display(), "was not watched");
        }
    }
}

impl Watched {
    /// Watches a folder that exists. Without a watch, and when it cannot be watched, nothing is ever noticed.
    pub fn new(watch: Option<Watch>, folder: &Path) -> Self {
        let changed = Arc::new(Notify::new());
        let added = watch.as_ref().map(|watch| watch.add(folder, &changed));
        if let Some(Err(error)) = &added {
            tracing::warn!(%error, folder = %folder.display(), "cannot be watched; it is looked at every second instead");
        }
        let is_watched = matches!(added, Some(Ok(())));
        Self { watch, folder: folder.to_owned(), changed, is_watched }
    }

    /// Whether anything will be noticed at all.
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Returns when something has changed since the last time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.remove(&self.folder, &self.changed);
        }
    }
}

fn folder_of(path: &Path) -> Option<&Path> {
    let name = path.file_name()?.to_str()?;
    TELLING.contains(&name).then(|| path.parent()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_takes_a_folder_over_notices_what_happens_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch::start().unwrap();
        let first = Watched::new(Some(watch.clone()), folder.path());
        let second = Watched::new(Some(watch), folder.path());
        drop(first);
        std::fs::write(folder.path().join("exit.json"), "{}").unwrap();
        let noticed = tokio::time::timeout(std::time::Duration::from_secs(60), second.changed());
        assert!(noticed.await.is_ok(), "nothing was noticed");
    }
}
