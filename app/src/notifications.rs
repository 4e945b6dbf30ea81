//! Notifications: tells the user what needs them, or what is done, outside of Hatchery. A notice goes to the desktop, to a command
//! and to a webhook, as `[notify]` says.
//!
//! Notices follow the log from the daemon's start, so a restart repeats nothing. They are not durable: a notice that cannot be delivered
//! is logged and dropped. What waits for the user stays in `hatchery ask list` in any case.

mod deliver;
mod notice;

pub use notice::{Notice, NoticeKind};

use crate::config::Notify;
use crate::engine::{FollowError, Handle, RecordFollower};
use crate::project::Project;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long to wait after the log could not be followed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Notices that wait to be delivered. Beyond it the least urgent are counted and not kept.
const MAX_WAITING: usize = 32;

/// Delivers notices until the engine stops.
pub async fn run(mut wanted: watch::Receiver<Notify>, project: Project, handle: Handle) {
    let mut settings = Arc::new(wanted.borrow_and_update().clone());
    let mut follower = handle.follow_records(handle.head());
    let mut waiting: Vec<Notice> = Vec::new();
    let mut dropped = 0;
    let mut next = Instant::now();
    loop {
        tokio::select! {
            changed = wanted.changed() => match changed {
                Ok(()) => settings = Arc::new(wanted.borrow_and_update().clone()),
                Err(_) => return,
            },
            () = tokio::time::sleep_until(next), if !waiting.is_empty() => {
                let notice = Notice::together(std::mem::take(&mut waiting), std::mem::take(&mut dropped), project.root());
                next = Instant::now() + settings.pace;
                tokio::spawn(deliver::everywhere(Arc::clone(&settings), notice));
            }
            noticed = news(&mut follower, &handle, &settings) => match noticed {
                Ok(notices) => for notice in notices {
                    dropped += usize::from(notice.queue(&mut waiting, MAX_WAITING));
                },
                Err(FollowError::Stopped) => return,
                Err(error) => {
                    tracing::warn!(%error, "the log cannot be followed; notifications wait");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            },
        }
    }
}

/// The notices of the next events.
async fn news(follower: &mut RecordFollower, handle: &Handle, settings: &Notify) -> Result<Vec<Notice>, FollowError> {
    let records = follower.next_records().await?;
    let world = handle.view();
    let wanted = |notice: &Notice| settings.is_wanted() && settings.on.contains(&notice.kind);
    Ok(records.iter().filter_map(|record| notice::of(&world, record)).filter(wanted).collect())
}
