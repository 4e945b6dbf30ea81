//! One supervisor for each attempt. All that it knows is in the run folder and in the world, and all that it does there may be
//! done again: so taking over from a daemon that was killed is not a special case, it is how every attempt is supervised.

use super::briefing::{self, BriefingError};
use super::watch::{Watch, Watched};
use super::{RETRY_PAUSE, RunnerContext, launch};
use crate::calls::{self, CallError};
use crate::engine::SubmitError;
use crate::harness::Harness;
use crate::processes::{self, Pulse};
use crate::run_folder::{Ended, LaunchKind, MARK, Order, RunFolder, Started};
use crate::spool::{self, Line, MAX_LINE_BYTES, Tail};
use hatchery_core::outcome::Exit;
use hatchery_core::output::Output;
use hatchery_core::run::{AttemptId, DeliveryKind, DesiredRun, DesiredState, RunState, wire_name};
use hatchery_core::{Command, Refusal};
use std::collections::BTreeSet;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch as channel;

/// How often a run folder is looked at without having been told to: a notice may get lost, and a launcher that was killed
/// tells nobody where its end cannot be felt. A glance, because there may be hundreds of agents that wait.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The same where nothing can be watched.
const LOOK_SOON: Duration = Duration::from_secs(1);
/// How long a launcher may take to say that it is there before another one is sent.
const LAUNCH_PATIENCE: Duration = Duration::from_secs(10);
/// How much of what a process wrote to stderr is evidence.
const EVIDENCE_BYTES: u64 = 400;

/// Why an attempt cannot be supervised at the moment.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Folder(#[from] io::Error),
    #[error(transparent)]
    Briefing(#[from] BriefingError),
    #[error(transparent)]
    Call(CallError),
    #[error(transparent)]
    Engine(#[from] SubmitError),
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Engine(error) => Self::Engine(error),
            other => Self::Call(other),
        }
    }
}

/// Sees an attempt through to its end. Whatever goes wrong on the way is tried again.
pub async fn supervise(
    context: Arc<RunnerContext>,
    watch: Option<Watch>,
    of: AttemptId,
    mut wanted: channel::Receiver<DesiredRun>,
) {
    let folder = RunFolder::of(&context.project, of);
    let mut supervisor =
        Supervisor { context, of, folder, spool: None, released: 0, asked: 0, pulse: None, launched: None, told: None };
    loop {
        match supervisor.see_through(watch.clone(), &mut wanted).await {
            Ok(()) => return,
            Err(Trouble::Engine(SubmitError::Stopped)) => return,
            // Somebody else has taken this attempt further: there is nothing left to see to.
            Err(Trouble::Engine(SubmitError::Refused(refusal @ (Refusal::StaleAttempt(_) | Refusal::NoRun(_))))) => {
                tracing::debug!(%refusal, "the attempt is over");
                return;
            }
            Err(trouble) => {
                tracing::warn!(agent = %of.agent, run = of.run, attempt = of.attempt, %trouble, "trying again");
                supervisor.spool = None;
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

struct Supervisor {
    context: Arc<RunnerContext>,
    of: AttemptId,
    folder: RunFolder,
    /// Where the output is read; opened again after any trouble, at the place that the world knows.
    spool: Option<Tail>,
    /// How much of it was given back to the disk.
    released: u64,
    /// How much of what its tools wrote down was taken in, in bytes.
    asked: u64,
    /// Whether the launcher lives.
    pulse: Option<Pulse>,
    /// When a launcher was last sent on its way.
    launched: Option<Instant>,
    /// What the launcher was told so far, once that was looked up.
    told: Option<Told>,
}

/// What a launcher was told, as far as it matters for what to tell it next. Not in what words: a conversation may be long.
#[derive(Debug, Default)]
struct Told {
    /// The names of what was to be said, while it waits to be heard.
    said: BTreeSet<String>,
    ended: bool,
    stopped: bool,
}

impl Told {
    fn note(&mut self, order: &Order) {
        match order {
            Order::Say { id, .. } => {
                self.said.insert(id.clone());
            }
            Order::End => self.ended = true,
            Order::Stop { .. } => self.stopped = true,
        }
    }
}

impl Supervisor {
    async fn see_through(
        &mut self,
        watch: Option<Watch>,
        wanted: &mut channel::Receiver<DesiredRun>,
    ) -> Result<(), Trouble> {
        self.folder.prepare()?;
        let watched = Watched::new(watch, self.folder.path());
        let mut looks = tokio::time::interval(if watched.is_watched() { LOOK_AGAIN } else { LOOK_SOON });
        loop {
            let act = wanted.borrow_and_update().state.clone();
            if self.look(&act).await? {
                return Ok(());
            }
            tokio::select! {
                () = watched.changed() => {}
                changed = wanted.changed() => if changed.is_err() { return Ok(()) },
                () = self.until_something_shows(&mut looks) => {}
                () = self.until_the_launcher_is_gone() => self.pulse = None,
            }
        }
    }

    async fn until_the_launcher_is_gone(&self) {
        match &self.pulse {
            Some(pulse) => pulse.stopped().await,
            None => std::future::pending().await,
        }
    }

    /// Glances at the folder now and then. Returns when there is more to see than the last time.
    async fn until_something_shows(&self, looks: &mut tokio::time::Interval) {
        loop {
            looks.tick().await;
            // Whatever is wrong is found by looking closely.
            if !self.is_quiet().unwrap_or(false) {
                return;
            }
        }
    }

    fn is_quiet(&self) -> io::Result<bool> {
        let Some(spool) = &self.spool else { return Ok(false) };
        let said = std::fs::metadata(self.folder.stdout())?.len();
        let asked = std::fs::metadata(self.folder.calls())?.len();
        Ok(said == spool.position() && asked == self.asked && self.folder.is_held()?)
    }

    /// Looks at everything once. True when the attempt is over.
    async fn look(&mut self, desired: &DesiredState) -> Result<bool, Trouble> {
        // In this order: a launcher takes hold before it starts anything, and says how it ended before it lets go. And before
        // the output: whoever has ended has said everything.
        let mut started = self.folder.started()?;
        let held = self.folder.is_held()?;
        let ended = self.folder.ended()?;
        if ended.is_some() && started.is_none() {
            // All of it may have happened while we looked.
            started = self.folder.started()?;
        }
        if let (None, Some(ended)) = (&started, &ended) {
            let exit = if ended.problem.is_some() { Exit::NotStarted } else { ended.exit };
            return self.report_exit(exit, ended.problem.clone()).await;
        }
        let Some(started) = started else { return self.see_to_start(desired).await };
        if self.pulse.is_none() && held {
            self.pulse = Pulse::of(&started.launcher);
        }
        self.report_spawn(&started).await?;
        self.tell(desired).await?;
        let gone = ended.is_some() || !held;
        if std::fs::metadata(self.folder.calls())?.len() != self.asked {
            self.asked = calls::take_all(&self.context.handle, &self.folder, self.of).await?;
        }
        self.take_output(gone).await?;
        match ended {
            Some(ended) => {
                let evidence = self.last_words()?;
                self.report_exit(ended.exit, evidence).await
            }
            None if gone => {
                // The launcher was killed, and perhaps not the process.
                let killed = self.sweep().await;
                tracing::warn!(agent = %self.of.agent, killed, "a launcher was killed");
                self.take_output(true).await?;
                let same_start = started.boot == processes::boot();
                self.report_exit(if same_start { Exit::Unknown } else { Exit::LostWithMachine }, None).await
            }
            None => Ok(false),
        }
    }

    /// Nothing is there yet: it is launched, unless it is no longer wanted.
    async fn see_to_start(&mut self, desired: &DesiredState) -> Result<bool, Trouble> {
        let is_coming = self.launched.is_some_and(|at| at.elapsed() < LAUNCH_PATIENCE);
        if is_coming && matches!(desired, DesiredState::Running { .. }) {
            return Ok(false);
        }
        // Nobody launches it while we hold the lock, and nobody will once its end is recorded.
        let Some(lock) = self.folder.lock()? else { return Ok(false) };
        if self.folder.started()?.is_some() || self.folder.ended()?.is_some() {
            return Ok(false);
        }
        let had_process = self.context.handle.view().run(self.of.agent).is_some_and(|run| run.process().is_some());
        // A launcher that was killed between starting the process and saying so left it behind.
        if had_process || self.folder.launch()?.is_some() {
            self.sweep().await;
        }
        match desired {
            // Somebody has emptied the folder. To begin again in it would be a second process of one attempt.
            _ if had_process => {
                tracing::warn!(agent = %self.of.agent, folder = %self.folder.path().display(), "what was there is gone");
                self.report_exit(Exit::Unknown, None).await
            }
            DesiredState::Stopped => {
                // A launcher that is still on its way looks for the end before it starts anything, so it is written before it is reported.
                let why = "it was stopped before it began".to_owned();
                self.folder.write_ended(&Ended::before_it_began(Exit::NotStarted, why))?;
                self.report_exit(Exit::NotStarted, None).await
            }
            DesiredState::Running { .. } => {
                drop(lock);
                let world = self.context.handle.view();
                let problem = launch::make_room(&self.context, &world, self.of.agent).await.err();
                launch::launch(&self.context, &world, self.of, &self.folder, problem)?;
                self.launched = Some(Instant::now());
                Ok(false)
            }
        }
    }

    /// Kills whatever carries the mark of the attempt, and says how many that were.
    async fn sweep(&self) -> usize {
        let mark = self.folder.mark();
        tokio::task::spawn_blocking(move || processes::sweep(MARK, &mark)).await.unwrap_or_default()
    }

    async fn report_spawn(&self, started: &Started) -> Result<(), Trouble> {
        let unknown = self.context.handle.view().run(self.of.agent).is_some_and(|run| {
            run.attempt_id(self.of.agent) == self.of
                && matches!(run.state, RunState::Starting | RunState::Stopping { process: None, .. })
        });
        if unknown
            && let Some(launch) = self.folder.launch()?
            && let LaunchKind::Agent { session, copy_of, .. } = launch.kind
        {
            let process = started.process.clone();
            let spawned = Command::ReportSpawn { of: self.of, process, session, copy_of };
            self.context.handle.submit(spawned).await?;
        }
        Ok(())
    }

    /// Tells the launcher what it was not told yet.
    async fn tell(&mut self, desired: &DesiredState) -> Result<(), Trouble> {
        let mut told = match self.told.take() {
            Some(told) => told,
            None => {
                // Whoever wrote them may have been killed before the bell was rung.
                self.folder.ring();
                let mut told = Told::default();
                self.folder.orders()?.iter().for_each(|order| told.note(order));
                told
            }
        };
        let orders = match desired {
            DesiredState::Stopped if told.stopped => Vec::new(),
            DesiredState::Stopped => {
                let grace_ms = u64::try_from(self.context.stop_grace.as_millis()).unwrap_or(u64::MAX);
                vec![Order::Stop { grace_ms }]
            }
            DesiredState::Running { last: true, .. } if told.ended => Vec::new(),
            DesiredState::Running { last: true, .. } => vec![Order::End],
            DesiredState::Running { upto: None, .. } => Vec::new(),
            DesiredState::Running { .. } => self.untold(&mut told).await?,
        };
        if !orders.is_empty() {
            self.folder.tell(&orders)?;
            orders.iter().for_each(|order| told.note(order));
        }
        self.told = Some(told);
        Ok(())
    }

    /// What waits to be said and is not in the inbox.
    async fn untold(&self, told: &mut Told) -> Result<Vec<Order>, Trouble> {
        let handle = &self.context.handle;
        let agent = self.of.agent;
        let unheard =
            handle.view().conversation(agent).map(|conversation| conversation.unheard.clone()).unwrap_or_default();
        let waiting: BTreeSet<String> = unheard.iter().map(|delivery| wire_name(delivery.id)).collect();
        // What was heard is not asked for again.
        told.said.retain(|name| waiting.contains(name));
        let mut orders = Vec::new();
        for delivery in unheard {
            let id = wire_name(delivery.id);
            if told.said.contains(&id) {
                continue;
            }
            let line = match delivery.what {
                DeliveryKind::Interrupt => self.harness()?.interrupt(&id),
                DeliveryKind::Briefing | DeliveryKind::Message | DeliveryKind::Nudge => {
                    let kind = self.folder.launch()?.map(|launch| launch.kind);
                    let copy = matches!(kind, Some(LaunchKind::Agent { copy_of: Some(_), .. }));
                    self.harness()?.say(&id, &briefing::words(handle, agent, delivery, copy).await?)
                }
            };
            orders.push(Order::Say { id, line });
        }
        Ok(orders)
    }

    /// Takes in what the process has written since the last time, up to the end when nothing more will come.
    async fn take_output(&mut self, to_the_end: bool) -> Result<(), Trouble> {
        let handle = self.context.handle.clone();
        let mut spool = match self.spool.take() {
            Some(spool) => spool,
            None => {
                let taken = handle.view().run(self.of.agent).map_or(0, |run| run.spooled);
                Tail::open(&self.folder.stdout(), taken)?
            }
        };
        loop {
            let from = spool.position();
            let mut lines = spool.read()?;
            if lines.is_empty() && to_the_end {
                lines.extend(spool.rest());
            }
            if lines.is_empty() {
                self.released = spool::release(&self.folder.stdout(), spool.position(), self.released)?;
                self.spool = Some(spool);
                return Ok(());
            }
            let harness = self.harness()?;
            let outputs = lines.iter().flat_map(|line| understood(harness, line)).collect();
            let taken = Command::TakeOutput { of: self.of, from, upto: spool.position(), outputs };
            handle.submit(taken).await?;
        }
    }

    async fn report_exit(&self, exit: Exit, evidence: Option<String>) -> Result<bool, Trouble> {
        self.context.handle.submit(Command::ReportExit { of: self.of, exit, evidence }).await?;
        Ok(true)
    }

    /// The end of what the process wrote to stderr.
    fn last_words(&self) -> io::Result<Option<String>> {
        let mut file = std::fs::File::open(self.folder.stderr())?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(EVIDENCE_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(EVIDENCE_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    fn harness(&self) -> io::Result<&dyn Harness> {
        let world = self.context.handle.view();
        let name = world.run(self.of.agent).map(|run| run.spec.harness.as_str()).unwrap_or_default();
        let unknown = || io::Error::other(format!("there is no harness `{name}`"));
        self.context.harnesses.named(name).ok_or_else(unknown)
    }
}

/// What a line means. One that means nothing to anybody is noted, not dropped.
fn understood(harness: &dyn Harness, line: &Line) -> Vec<Output> {
    let unread = |bytes: u64, reason: String| vec![Output::Unread { bytes, reason }];
    if let Some(bytes) = line.too_long {
        return unread(bytes, format!("the line is longer than {MAX_LINE_BYTES} bytes"));
    }
    harness.read(&String::from_utf8_lossy(&line.bytes)).unwrap_or_else(|reason| unread(line.bytes.len() as u64, reason))
}
