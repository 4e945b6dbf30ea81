//! Notices when a file of a run folder has grown or appeared. A notice is a hint to look and never evidence, because the
//! operating system may drop notices: each waiting task also looks at its folder from time to time.

use notify::{EventKind, RecursiveMode, Watcher as _};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The files that a launcher, a process or its tools write. What the daemon itself writes is not among them, because a
/// supervisor must not be woken by its own writes.
const WATCHED_FILES: [&str; 4] = ["stdout.jsonl", "calls.jsonl", "process.json", "exit.json"];

/// Watches any number of folders with one thread. Clones share that thread.
#[derive(Clone, Debug)]
pub struct FolderWatcher {
    watcher: Arc<Mutex<notify::RecommendedWatcher>>,
    folders: Arc<Mutex<HashMap<PathBuf, Arc<Notify>>>>,
}

/// A folder that is watched until this value is dropped.
#[derive(Debug)]
pub struct WatchedFolder {
    watcher: Option<FolderWatcher>,
    folder: PathBuf,
    changed: Arc<Notify>,
    is_watched: bool,
}

impl FolderWatcher {
    pub fn start() -> notify::Result<Self> {
        let folders: Arc<Mutex<HashMap<PathBuf, Arc<Notify>>>> = Arc::default();
        let shared = Arc::clone(&folders);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            pass_on(&shared.lock().unwrap_or_else(PoisonError::into_inner), event);
        })?;
        Ok(Self { watcher: Arc::new(Mutex::new(watcher)), folders })
    }

    fn add(&self, folder: &Path, changed: &Arc<Notify>) -> notify::Result<()> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned(), Arc::clone(changed));
        watcher.watch(folder, RecursiveMode::NonRecursive)
    }

    /// Stops watching, unless a newer `WatchedFolder` watches the same folder: that one would no longer be notified. The lock of the watcher is
    /// held throughout, so that no newer one comes in between. That of the folders is not, because the watcher's thread needs it to go on.
    fn remove(&self, folder: &Path, changed: &Arc<Notify>) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if !folders.get(folder).is_some_and(|now| Arc::ptr_eq(now, changed)) {
            return;
        }
        folders.remove(folder);
        drop(folders);
        if let Err(error) = watcher.unwatch(folder) {
            tracing::debug!(%error, folder = %folder.display(), "the folder was not watched");
        }
    }
}

impl WatchedFolder {
    /// Watches a folder that exists. Without a watcher, or when the system refuses to watch the folder, `changed` never
    /// returns.
    pub fn new(watcher: Option<FolderWatcher>, folder: &Path) -> Self {
        let changed = Arc::new(Notify::new());
        let added = watcher.as_ref().map(|watcher| watcher.add(folder, &changed));
        if let Some(Err(error)) = &added {
            tracing::warn!(%error, folder = %folder.display(), "the folder cannot be watched; it is looked at every second instead");
        }
        let is_watched = matches!(added, Some(Ok(())));
        Self { watcher, folder: folder.to_owned(), changed, is_watched }
    }

    /// False when no change will ever be noticed.
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Returns when something has changed since the last call.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for WatchedFolder {
    fn drop(&mut self) {
        if let Some(watcher) = &self.watcher {
            watcher.remove(&self.folder, &self.changed);
        }
    }
}

fn pass_on(folders: &HashMap<PathBuf, Arc<Notify>>, event: notify::Result<notify::Event>) {
    match event {
        // The system had no room for more notices: any of the folders may have changed.
        Ok(event) if event.need_rescan() => folders.values().for_each(|changed| changed.notify_one()),
        Ok(event) if !matches!(event.kind, EventKind::Access(_)) => {
            let changed = event.paths.iter().filter_map(|path| folder_of(path));
            changed.filter_map(|folder| folders.get(folder)).for_each(|changed| changed.notify_one());
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(%error, "notices of run folders may be lost");
            folders.values().for_each(|changed| changed.notify_one());
        }
    }
}

fn folder_of(path: &Path) -> Option<&Path> {
    let name = path.file_name()?.to_str()?;
    WATCHED_FILES.contains(&name).then(|| path.parent()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn dropping_an_older_watch_of_a_folder_leaves_the_newer_one_working() {
        let folder = tempfile::tempdir().unwrap();
        let watcher = FolderWatcher::start().unwrap();
        let older = WatchedFolder::new(Some(watcher.clone()), folder.path());
        let newer = WatchedFolder::new(Some(watcher), folder.path());
        drop(older);
        std::fs::write(folder.path().join("exit.json"), "{}").unwrap();
        let noticed = tokio::time::timeout(std::time::Duration::from_secs(60), newer.changed());
        assert!(noticed.await.is_ok(), "nothing was noticed");
    }

    /// What inotify tells when its queue was full has no path.
    #[tokio::test]
    async fn after_lost_notices_every_folder_is_looked_at() {
        let changed = [Arc::new(Notify::new()), Arc::new(Notify::new())];
        let folders = changed.iter().enumerate().map(|(at, it)| (PathBuf::from(format!("/{at}")), Arc::clone(it)));
        let folders: HashMap<_, _> = folders.collect();
        let lost = notify::Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        let broken = notify::Error::generic("the queue cannot be read");
        for told in [Ok(lost), Err(broken)] {
            pass_on(&folders, told);
            for changed in &changed {
                tokio::time::timeout(std::time::Duration::from_secs(60), changed.notified()).await.unwrap();
            }
        }
    }
}
