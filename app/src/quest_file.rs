//! `quest.json`: each quest as a file, under `.hatchery/quests/ID/`, for people and programs that would rather read a file than ask. A
//! projection: written whole after every change, read only to see whether it is up to date, and made again when it is not.

use crate::engine::{FollowError, Handle};
use crate::project::{self, Project};
use crate::quest_document::QuestDocument;
use hatchery_core::{EventId, QuestId, World};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait before a log that could not be read is followed again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What stands before the id of a quest in an event. Inside a text the quotes would be escaped.
const MARK: &str = "\"quest\":\"";

/// The folder of a quest.
pub fn folder(project: &Project, quest: QuestId) -> PathBuf {
    project.data().join("quests").join(quest.to_string())
}

/// Keeps the files true until the engine stops. Several changes that come together are written once.
pub async fn keep(project: Project, handle: Handle) {
    let mut follower = handle.follow(handle.head());
    let world = handle.view();
    let mut changed: BTreeSet<QuestId> = world.quests().map(|(id, _)| id).collect();
    let mut shown = BTreeMap::new();
    loop {
        let (project, world, ids) = (project.clone(), handle.view(), std::mem::take(&mut changed));
        let written = tokio::task::spawn_blocking(move || {
            write_all(&project, &world, &ids, &mut shown);
            shown
        });
        let Ok(known) = written.await else { return };
        shown = known;
        match follower.next_page().await {
            Ok(page) => changed.extend(page.events().filter_map(|(_, json)| quest_of(&json))),
            Err(FollowError::Stopped) => return,
            Err(FollowError::Store(error)) => {
                tracing::warn!(%error, "the log cannot be followed; quest.json files are behind");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

fn quest_of(event: &[u8]) -> Option<QuestId> {
    let text = std::str::from_utf8(event).ok()?;
    let (_, rest) = text.split_once(MARK)?;
    rest.split_once('"')?.0.parse().ok()
}

/// A file that cannot be written is a pity for those who read it, and nothing more: it is tried again with the next change.
fn write_all(project: &Project, world: &World, ids: &BTreeSet<QuestId>, shown: &mut BTreeMap<QuestId, EventId>) {
    for id in ids {
        let Some(quest) = world.quest(*id) else { continue };
        if shown.get(id) == Some(&quest.version) {
            continue;
        }
        let path = folder(project, *id).join("quest.json");
        let known = shown.contains_key(id);
        match write(&path, world, *id, known) {
            Ok(()) => {
                shown.insert(*id, quest.version);
            }
            Err(error) => tracing::warn!(quest = %id, %error, "{} could not be written", path.display()),
        }
    }
}

fn write(path: &Path, world: &World, id: QuestId, known: bool) -> io::Result<()> {
    let Some(document) = QuestDocument::of(world, id) else { return Ok(()) };
    if !known && is_up_to_date(path, &document)? {
        return Ok(());
    }
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let mut text = serde_json::to_vec_pretty(&document)?;
    text.push(b'\n');
    // Not synced: what a loss of power leaves behind is found out at the next start, and written again.
    project::write_for_now(path, &text, 0o644)
}

/// Whether the file says what the log says. One that cannot be read is set aside, never overwritten: somebody may have meant it.
fn is_up_to_date(path: &Path, document: &QuestDocument) -> io::Result<bool> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match serde_json::from_slice::<QuestDocument>(&text) {
        Ok(known) => Ok(known == *document),
        Err(error) => {
            let aside = (1..).map(|number| path.with_extension(format!("json.bad-{number}")));
            let aside = aside.into_iter().find(|aside| !aside.exists()).unwrap_or_else(|| path.with_extension("bad"));
            tracing::warn!(%error, "{} cannot be read; it is kept as {}", path.display(), aside.display());
            std::fs::rename(path, aside)?;
            Ok(false)
        }
    }
}
