//! A client of the event stream as browsers are: it keeps what it has seen and, whenever the stream breaks, comes back
//! with the id of the last event as `Last-Event-ID`.

use super::daemon::PATIENCE;
use super::http::{Door, Lost};
use super::runtime;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How soon it comes back to a daemon that is still there. Browsers wait longer.
const COME_BACK: Duration = Duration::from_millis(20);

/// One event of a stream: its `id:` and its `data:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub id: u64,
    pub data: String,
}

pub struct Follower {
    seen: Arc<Mutex<Vec<Seen>>>,
    last: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Follower {
    /// Follows from the beginning whichever daemon `doors` shows.
    pub fn start(mut doors: watch::Receiver<Door>) -> Self {
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let (told, last) = watch::channel(0);
        let kept = Arc::clone(&seen);
        let task = runtime().spawn(async move {
            loop {
                let door = doors.borrow_and_update().clone();
                // However the stream ends, it is followed again.
                drop(follow(&door, &kept, &told).await);
                tokio::select! {
                    changed = doors.changed() => if changed.is_err() { return },
                    () = tokio::time::sleep(COME_BACK) => {}
                }
            }
        });
        Self { seen, last, task }
    }

    /// Follows one daemon that stays where it is.
    pub fn of(door: &Door) -> (Self, watch::Sender<Door>) {
        let (doors, shown) = watch::channel(door.clone());
        (Self::start(shown), doors)
    }

    /// Waits until this event has come.
    pub fn wait_for(&self, id: u64) {
        let mut last = self.last.clone();
        let come = async { tokio::time::timeout(PATIENCE, last.wait_for(|last| *last >= id)).await };
        match runtime().block_on(come) {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => panic!("the follower stopped at event {}", self.seen().len()),
            Err(_) => panic!("event {id} did not come; the last was {:?}", self.seen().last()),
        }
    }

    /// Waits for an event that is meant, and gives the first; nothing when it takes too long.
    pub fn wait_until(&self, mut is_it: impl FnMut(&Seen) -> bool) -> Option<Seen> {
        let mut last = self.last.clone();
        let mut looked_at = 0;
        let come = async {
            loop {
                last.borrow_and_update();
                let found = {
                    let seen = self.seen.lock().unwrap();
                    let found = seen[looked_at..].iter().find(|seen| is_it(seen)).cloned();
                    looked_at = seen.len();
                    found
                };
                if found.is_some() || last.changed().await.is_err() {
                    return found;
                }
            }
        };
        runtime().block_on(async { tokio::time::timeout(PATIENCE, come).await }).unwrap_or_default()
    }

    /// Everything, in the order in which it came.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The events as text. Fails unless they came from the first on, each once, in order.
    pub fn log(&self) -> Vec<String> {
        let seen = self.seen();
        for (expected, event) in (1..).zip(&seen) {
            assert_eq!(event.id, expected, "the stream skips or repeats: {event:?}");
        }
        seen.into_iter().map(|event| event.data).collect()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(door: &Door, kept: &Mutex<Vec<Seen>>, told: &watch::Sender<u64>) -> Result<(), Lost> {
    let last = kept.lock().unwrap().last().map(|event| ("last-event-id", event.id.to_string()));
    let response = door.http().send(Method::GET, "/api/events", last.as_slice(), Bytes::new()).await?;
    let status = response.status().as_u16();
    assert!([200, 503].contains(&status), "the stream was answered with {status}");
    let mut body = response.into_body();
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame.map_err(|_| Lost)?.into_data() else { continue };
        text.extend_from_slice(&bytes);
        while let Some(end) = text.windows(2).position(|two| two == b"\n\n") {
            let whole: Vec<u8> = text.drain(..end + 2).collect();
            if let Some(event) = read(std::str::from_utf8(&whole).unwrap()) {
                let id = event.id;
                kept.lock().unwrap().push(event);
                told.send_replace(id);
            }
        }
    }
    Ok(())
}

/// One frame. Comments and `retry:` are no events.
fn read(frame: &str) -> Option<Seen> {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
    let (id, data) = (field("id:")?, field("data:")?);
    assert!(data.starts_with(&format!("{{\"id\":{id},")), "the frame of event {id} holds {data}");
    Some(Seen { id: id.parse().unwrap(), data: data.to_owned() })
}
