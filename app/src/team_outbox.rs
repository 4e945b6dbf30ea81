//! Messages on their way to agents of a lead's team, which read them in their inbox files. The log comes first, then the file, and a
//! daemon may be killed between the two. So each message is written down here before, and the next daemon goes on where it was.
//!
//! ```text
//! Said ──► Written ──► read, or taken out by the agent: done
//!   │         │
//!   │         └─ unread for `unread_ms` ──► Withdrawn ──► the lead is asked to pass it on: done
//!   └─ the file cannot be written ─────────────┘
//! ```
//!
//! A wake tells the agent what was said before it, as far as the transcript has room. So what is unread then is taken out of the inbox
//! file, and the lead is not asked. A message that the transcript leaves out stays in the file.
//!
//! `.hatchery/team-outbox/NUMBER.json` is one message. It is removed when the message is done, or when it was refused. The log keeps it
//! in any case: an agent that falls asleep before it has read a message finds it in its memory.

use crate::blocking::blocking;
use crate::engine::{Handle, SubmitError};
use crate::project::{Project, write_whole};
use crate::team_inbox::{self, InboxState};
use crate::{clock, config};
use hatchery_core::event::MessageEvent;
use hatchery_core::seat::Mode;
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Timestamp};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// How many messages may be left of daemons that were killed. Each daemon leaves at most its unread messages.
const MAX_LEFT: usize = 1_000;
/// How many of an agent's newest messages are looked through for one that was left.
const MAX_LOOKED_AT: usize = 200;
/// How many messages may wait for the keeper. It takes them at once unless a lock is held.
const MAX_WAITING: usize = 100;
/// When something is tried again that another process or the store stands in the way of.
const AGAIN_MS: u64 = 1_000;

/// A message for an agent of the team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    pub agent: AgentId,
    /// The name that the inbox file has.
    pub name: String,
    pub from: String,
    pub text: String,
    /// When it was said. It tells the entry of this message from others with the same words.
    pub timestamp: String,
    /// The last event before the message.
    pub after: EventId,
    /// The message in the log. Not known yet if the daemon was killed right after it was said.
    #[serde(default)]
    pub message: Option<EventId>,
    #[serde(default)]
    pub stage: PostStage,
}

impl Posted {
    /// When the agent has had enough time to read it.
    fn deadline(&self, settings: &config::SeatDefaults) -> Timestamp {
        let said = self.timestamp.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond);
        Timestamp(said).plus_ms(settings.unread_ms)
    }
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostStage {
    /// It is, or will be, in the log.
    #[default]
    Said,
    /// The agent's inbox file has it.
    Written,
    /// It is taken out of the inbox file again, because the lead passes it on.
    Withdrawn,
}

/// A message that is written down here.
#[derive(Debug)]
pub struct Pending {
    path: PathBuf,
    posted: Posted,
    /// When it is looked at next.
    due: Timestamp,
}

/// Where messages are handed in.
#[derive(Clone, Debug)]
pub struct TeamOutbox {
    folder: PathBuf,
    waiting: mpsc::Sender<Handed>,
}

/// What the keeper is asked to do.
#[derive(Debug)]
enum Handed {
    /// Look after this message.
    Message(Pending),
    /// Take out of the inbox files what these agents have not read and are told by a wake, and say when it is done.
    Recall { told: Vec<(AgentId, EventId)>, done: oneshot::Sender<()> },
}

/// Looks after the messages until each of them is done.
#[derive(Debug)]
pub struct OutboxKeeper {
    folder: PathBuf,
    waiting: mpsc::Receiver<Handed>,
    pending: Vec<Pending>,
}

/// The outbox of a project.
pub fn open(project: &Project) -> (TeamOutbox, OutboxKeeper) {
    let folder = project.data().join("team-outbox");
    let (sender, waiting) = mpsc::channel(MAX_WAITING);
    (TeamOutbox { folder: folder.clone(), waiting: sender }, OutboxKeeper { folder, waiting, pending: Vec::new() })
}

impl TeamOutbox {
    /// Writes a message down, before it is said.
    pub async fn write_down(&self, posted: Posted) -> io::Result<Pending> {
        let path = self.folder.join(format!("{}.json", clock::new_uuid()));
        let pending = Pending { path, posted, due: clock::now() };
        let folder = self.folder.clone();
        blocking(move || std::fs::create_dir_all(folder)).await?;
        pending.save().await?;
        Ok(pending)
    }

    /// The message is in the log: writes it into the inbox file, and leaves the rest to the keeper.
    pub async fn bring(&self, settings: &config::SeatDefaults, mut pending: Pending, message: EventId) {
        pending.posted.message = Some(message);
        let fate = pending.write(settings, clock::now()).await;
        if fate != Fate::Waits {
            pending.due = clock::now();
        }
        pending.note().await;
        if self.waiting.send(Handed::Message(pending)).await.is_err() {
            tracing::warn!("a message to an agent of the team is left for the next daemon");
        }
    }

    /// These agents are about to be told what was said to them after these messages. Takes it out of their inbox files first, because the next process of
    /// an agent reads the same file.
    pub async fn recall(&self, told: Vec<(AgentId, EventId)>) {
        let (done, is_done) = oneshot::channel();
        // A daemon that is closing does not wake an agent either.
        if self.waiting.send(Handed::Recall { told, done }).await.is_ok() && is_done.await.is_err() {
            tracing::warn!("messages that a wake already contains stay in the inbox files");
        }
    }
}

/// What becomes of a message when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is looked at again later.
    Waits,
    Done,
    /// The agent does not read it.
    Unread,
}

impl Pending {
    /// The inbox file has it, or it is not to be delivered.
    pub async fn done(self) {
        let path = self.path.clone();
        if let Err(error) = blocking(move || std::fs::remove_file(path)).await {
            tracing::warn!(%error, file = %self.path.display(), "a message that was delivered cannot be removed");
        }
    }

    async fn save(&self) -> io::Result<()> {
        let (path, content) = (self.path.clone(), serde_json::to_vec(&self.posted)?);
        blocking(move || write_whole(&path, &content, 0o600)).await
    }

    /// Saves how far it has come. Without that, the next daemon would begin earlier.
    async fn note(&self) {
        if let Err(error) = self.save().await {
            tracing::warn!(%error, file = %self.path.display(), "how far a message has come cannot be written down");
        }
    }

    /// Whether the agent has been told the message in another way.
    fn was_told(&self, handle: &Handle) -> bool {
        let world = handle.view();
        let seat = world.seats().position_of(self.posted.agent);
        seat.zip(self.posted.message).is_some_and(|(seat, message)| world.seats().was_told(seat, message))
    }

    /// Takes it out of the inbox file. It is not for that file any more.
    async fn withdraw(&mut self, settings: &config::SeatDefaults) -> io::Result<InboxState> {
        if self.posted.stage != PostStage::Withdrawn {
            // Written down first: a message that is found nowhere afterwards was not read.
            self.posted.stage = PostStage::Withdrawn;
            self.note().await;
        }
        let found = team_inbox::withdraw(settings, &self.posted).await;
        self.due = clock::now().plus_ms(AGAIN_MS);
        found
    }

    /// The agent has been told the message in another way.
    async fn forget(&mut self, settings: &config::SeatDefaults) -> Fate {
        match self.withdraw(settings).await {
            Err(error) if error.kind() == ErrorKind::TimedOut => Fate::Waits,
            // A file that cannot be read here cannot be read by the agent either.
            Ok(_) | Err(_) => Fate::Done,
        }
    }

    async fn look(&mut self, settings: &config::SeatDefaults, now: Timestamp) -> Fate {
        match self.posted.stage {
            PostStage::Said => self.write(settings, now).await,
            PostStage::Written => match team_inbox::find(settings, &self.posted).await {
                Ok(InboxState::Read | InboxState::Nowhere) => Fate::Done,
                Ok(InboxState::Unread) => Fate::Unread,
                Err(error) => {
                    tracing::warn!(name = self.posted.name, %error, "an agent's inbox cannot be read");
                    Fate::Unread
                }
            },
            PostStage::Withdrawn => Fate::Unread,
        }
    }

    /// Writes it into the inbox file.
    async fn write(&mut self, settings: &config::SeatDefaults, now: Timestamp) -> Fate {
        let name = &self.posted.name;
        match team_inbox::send_once(settings, &self.posted).await {
            Ok(()) => {
                self.posted.stage = PostStage::Written;
                self.due = clock::now().plus_ms(settings.unread_ms);
                Fate::Waits
            }
            Err(error) if error.kind() == ErrorKind::TimedOut && now < self.posted.deadline(settings) => {
                tracing::warn!(name, %error, "a message waits for an agent's inbox");
                self.due = clock::now().plus_ms(AGAIN_MS);
                Fate::Waits
            }
            Err(error) => {
                tracing::warn!(name, %error, "an agent's inbox cannot be written");
                Fate::Unread
            }
        }
    }
}

impl OutboxKeeper {
    /// Goes on with the messages that a daemon before this one has said.
    pub async fn take_left(&mut self, settings: &config::SeatDefaults, handle: &Handle) {
        if settings.mode == Mode::Direct {
            return;
        }
        let folder = self.folder.clone();
        let left = match blocking(move || read_all(&folder)).await {
            Ok(left) => left,
            Err(error) => {
                return tracing::warn!(%error, "messages that were left for agents of the team cannot be read");
            }
        };
        for mut pending in left {
            match said_as(handle, &pending.posted).await {
                Ok(Some(message)) => {
                    pending.posted.message = Some(message);
                    if pending.posted.stage == PostStage::Written {
                        pending.due = pending.posted.deadline(settings);
                    }
                    self.pending.push(pending);
                }
                // What is not in the log was never said, and its sender got no answer.
                Ok(None) => pending.done().await,
                Err(error) => {
                    tracing::warn!(%error, name = pending.posted.name, "a message that was left cannot be found in the log; the next start tries again");
                }
            }
        }
        self.look(settings, handle).await;
    }

    pub async fn keep(mut self, settings: config::SeatDefaults, handle: Handle, mut closing: watch::Receiver<bool>) {
        loop {
            let due = self.pending.iter().map(|pending| pending.due.0).min();
            let pause = due.map(|due| due.saturating_sub(clock::now().0).max(0).unsigned_abs());
            let handed = tokio::select! {
                Some(handed) = self.waiting.recv() => Some(handed),
                () = tokio::time::sleep(Duration::from_millis(pause.unwrap_or_default())), if pause.is_some() => None,
                _ = closing.wait_for(|closing| *closing) => return,
            };
            match handed {
                Some(Handed::Message(pending)) => self.pending.push(pending),
                Some(Handed::Recall { told, done }) => {
                    self.recall(&settings, &told).await;
                    // A client that is gone waits for nothing.
                    done.send(()).unwrap_or_default();
                }
                None => {}
            }
            self.look(&settings, &handle).await;
        }
    }

    /// Takes out of the inbox files what these agents have not read and are told by a wake. If no wake follows, the lead is asked after
    /// all.
    async fn recall(&mut self, settings: &config::SeatDefaults, told: &[(AgentId, EventId)]) {
        let mut held = Vec::new();
        let is_told = |posted: &Posted| {
            told.iter().any(|(agent, after)| *agent == posted.agent && posted.message.is_some_and(|it| it > *after))
        };
        for pending in self.pending.iter_mut().filter(|pending| is_told(&pending.posted)) {
            let agent = pending.posted.agent;
            // The lock of one file is waited for once.
            if !held.contains(&agent) && pending.withdraw(settings).await.is_err() {
                held.push(agent);
            }
        }
    }

    async fn look(&mut self, settings: &config::SeatDefaults, handle: &Handle) {
        let now = clock::now();
        let mut at = 0;
        while let Some(pending) = self.pending.get_mut(at) {
            let (stage, agent) = (pending.posted.stage, pending.posted.agent);
            let is_due = pending.due <= now;
            let fate = match pending.was_told(handle) {
                true if is_due || stage != PostStage::Withdrawn => pending.forget(settings).await,
                false if is_due => pending.look(settings, now).await,
                true | false => Fate::Waits,
            };
            match fate {
                Fate::Waits => {
                    if pending.posted.stage != stage {
                        pending.note().await;
                    }
                    at += 1;
                }
                Fate::Done => self.pending.remove(at).done().await,
                Fate::Unread => {
                    self.pass_on(settings, handle, agent).await;
                    at = 0;
                }
            }
        }
    }

    /// An agent does not read its inbox. The lead passes on all that waits there, in the order in which it was said.
    async fn pass_on(&mut self, settings: &config::SeatDefaults, handle: &Handle, agent: AgentId) {
        let (mut theirs, others): (Vec<Pending>, Vec<Pending>) =
            std::mem::take(&mut self.pending).into_iter().partition(|pending| pending.posted.agent == agent);
        self.pending = others;
        theirs.sort_by_key(|pending| pending.posted.message);
        let mut theirs = theirs.into_iter();
        while let Some(mut pending) = theirs.next() {
            match relay(settings, handle, &mut pending).await {
                Ok(()) => pending.done().await,
                Err(error) => {
                    tracing::warn!(name = pending.posted.name, %error, "the lead cannot be asked to pass a message on; it is tried again");
                    let later = clock::now().plus_ms(AGAIN_MS);
                    let rest = [pending].into_iter().chain(theirs).map(|pending| Pending { due: later, ..pending });
                    self.pending.extend(rest.collect::<Vec<_>>());
                    return;
                }
            }
        }
    }
}

/// Takes a message out of the inbox file and asks the lead to pass it on, unless the agent has read it meanwhile.
async fn relay(settings: &config::SeatDefaults, handle: &Handle, pending: &mut Pending) -> io::Result<()> {
    let stage = pending.posted.stage;
    let found = match stage {
        PostStage::Said => team_inbox::withdraw(settings, &pending.posted).await,
        PostStage::Written | PostStage::Withdrawn => pending.withdraw(settings).await,
    };
    let found = match found {
        // The agent could still read it there.
        Err(error) if stage != PostStage::Said && error.kind() == ErrorKind::TimedOut => return Err(error),
        // It was never written there, or the file cannot be read.
        Err(_) => InboxState::Unread,
        Ok(found) => found,
    };
    match (stage, found) {
        (_, InboxState::Read) | (PostStage::Written, InboxState::Nowhere) => return Ok(()),
        (_, InboxState::Unread) | (PostStage::Said | PostStage::Withdrawn, InboxState::Nowhere) => {}
    }
    let Posted { agent, message, text, name, .. } = &pending.posted;
    let to = handle.view().seats().occupied_by(*agent).map(|(position, _)| position);
    let Some((to, message)) = to.zip(*message) else { return Ok(()) };
    match handle.submit(Command::RelayMessage { to, message, text: text.clone() }).await {
        Ok(_) => tracing::info!(name, "the agent has not read a message; the lead passes it on"),
        // It sleeps, and finds the message in its memory; or the lead was asked before.
        Err(SubmitError::Refused(refusal)) => tracing::info!(name, %refusal, "a message is not passed on"),
        Err(error) => return Err(io::Error::other(error)),
    }
    Ok(())
}

/// The message in the log.
async fn said_as(handle: &Handle, posted: &Posted) -> io::Result<Option<EventId>> {
    if posted.message.is_some() {
        return Ok(posted.message);
    }
    let of_person = |kind| kind == MessageKind::User;
    let newest = handle.own_messages(posted.agent, MAX_LOOKED_AT, of_person).await.map_err(io::Error::other)?;
    let is_it =
        |event: &Event| matches!(event, Event::Message(MessageEvent::Added { content, .. }) if *content == posted.text);
    let said = newest.iter().find(|record| record.id > posted.after && is_it(&record.event));
    Ok(said.map(|record| record.id))
}

/// The messages that were left, the oldest first.
fn read_all(folder: &Path) -> io::Result<Vec<Pending>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut left = Vec::new();
    for entry in entries.take(MAX_LEFT) {
        let path = entry?.path();
        match serde_json::from_slice(&std::fs::read(&path)?) {
            Ok(posted) => left.push(Pending { path, posted, due: Timestamp::default() }),
            Err(error) => tracing::warn!(%error, file = %path.display(), "a message that was left cannot be read"),
        }
    }
    left.sort_by_key(|pending| pending.posted.after);
    Ok(left)
}
