//! `quest.json`: each quest as a file, under `.hatchery/quests/ID/`, for people and programs that would rather read a file than ask. A
//! projection: written whole after every change, read only to see whether it is up to date, and made again when it is not.

use crate::engine::{FollowError, Handle};
use crate::project::{self, Project};
use crate::quest_document::QuestDocument;
use hatchery_core::{EventId, QuestId, World};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// A file is written at most so often; the last state is always written. A large quest in a hurry changes hundreds of times a second.
const PACE: Duration = Duration::from_millis(50);
/// How long to wait before a log that could not be read is followed again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What stands before the id of a quest in an event, before that of an agent, and before its type. Inside a text the quotes would be
/// escaped.
const QUEST: &str = "\"quest\":\"";
const AGENT: &str = "\"agent\":\"";
const TYPE: &str = "\"type\":\"";

/// The folder of a quest.
pub fn folder(project: &Project, quest: QuestId) -> PathBuf {
    project.data().join("quests").join(quest.to_string())
}

/// Keeps the files true until the engine stops. Several changes that come together are written once.
pub async fn keep(project: Project, handle: Handle) {
    let mut follower = handle.follow(handle.head());
    let world = handle.view();
    let mut changed: BTreeMap<QuestId, EventId> = world.quests().map(|(id, _)| (id, world.head())).collect();
    let mut shown = BTreeMap::new();
    loop {
        let (project, world, changes) = (project.clone(), handle.view(), std::mem::take(&mut changed));
        let written = tokio::task::spawn_blocking(move || {
            write_all(&project, &world, &changes, &mut shown);
            shown
        });
        let Ok(known) = written.await else { return };
        shown = known;
        // The next change, and what comes with it.
        let due = Instant::now() + PACE;
        let mut next = follower.next_page().await;
        loop {
            match next {
                Ok(page) => {
                    let world = handle.view();
                    changed.extend(page.events().filter_map(|(at, json)| Some((quest_of(&world, &json)?, at))));
                }
                Err(FollowError::Stopped) => return,
                Err(FollowError::Store(error)) => {
                    tracing::warn!(%error, "the log cannot be followed; quest.json files are behind");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
            next = match tokio::time::timeout_at(due, follower.next_page()).await {
                Ok(page) => page,
                Err(_) => break,
            };
        }
    }
}

/// The quest that an event changes as people see it: its own, or that of an agent whose run or whose question shows in it.
fn quest_of(world: &World, event: &[u8]) -> Option<QuestId> {
    let text = std::str::from_utf8(event).ok()?;
    let after = |mark: &str| text.split_once(mark)?.1.split_once('"').map(|(word, _)| word);
    if let Some(quest) = after(QUEST) {
        return quest.parse().ok();
    }
    let kind = after(TYPE)?;
    let shows = kind.starts_with("run_") || kind.starts_with("question_") || kind == "turn_ended";
    let agent = after(AGENT).filter(|_| shows)?.parse().ok()?;
    world.assignment(agent).map(|assignment| assignment.quest)
}

/// A file that cannot be written is a pity for those who read it, and nothing more: it is tried again with the next change.
fn write_all(
    project: &Project,
    world: &World,
    changes: &BTreeMap<QuestId, EventId>,
    shown: &mut BTreeMap<QuestId, EventId>,
) {
    for (id, change) in changes {
        if shown.get(id).is_some_and(|upto| upto >= change) {
            continue;
        }
        let path = folder(project, *id).join("quest.json");
        let known = shown.contains_key(id);
        match write(&path, world, *id, known) {
            Ok(()) => {
                shown.insert(*id, world.head());
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
    match serde_json::from_slice::<serde_json::Value>(&text) {
        Ok(known) => Ok(known == serde_json::to_value(document)?),
        Err(error) => {
            let aside = (1..).map(|number| path.with_extension(format!("json.bad-{number}")));
            let aside = aside.into_iter().find(|aside| !aside.exists()).unwrap_or_else(|| path.with_extension("bad"));
            tracing::warn!(%error, "{} cannot be read; it is kept as {}", path.display(), aside.display());
            std::fs::rename(path, aside)?;
            Ok(false)
        }
    }
}
