//! One supervisor for each attempt. Everything that it knows is in the run folder and in the world, and everything that it does may be
//! repeated. So taking over from a killed daemon is not a special case: every attempt is supervised in this way.

mod outgoing;

use super::delivery_text::{DeliveryTextError, delivery_text};
use super::spool_reader::{LinesRead, SpoolReader};
use super::{RETRY_PAUSE, RunnerContext, launch};
use crate::blocking::blocking;
use crate::calls::CallError;
use crate::clock;
use crate::engine::SubmitError;
use crate::folder_watch::FolderWatcher;
use crate::harness::{Harness, ReaderStart};
use crate::held_process::{HeldProcess, LAUNCH_TIMEOUT, ProcessState, ProcessWatch, WakeReason};
use crate::no_links;
use crate::processes;
use crate::real_path::resolve_request;
use crate::run_folder::{Ended, LaunchKind, RunFolder, Started};
use hatchery_core::harness::WaitingMessage;
use hatchery_core::outcome::Exit;
use hatchery_core::output::Output;
use hatchery_core::run::{AttemptId, DeliveryKind, DesiredRun, DesiredState, RunState, wire_name};
use hatchery_core::{Command, Refusal};
use outgoing::SentRequests;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::watch as channel;

/// How many bytes at the end of stderr are recorded with the exit of a process.
const EVIDENCE_BYTES: u64 = 400;
/// How long an attempt that is to be stopped may take beyond its two grace times. Then it is killed together with its launcher.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How often supervising may fail while the attempt is to be stopped.
const MAX_FAILED_STOPS: u32 = 3;
/// How many launchers are started for one attempt.
const MAX_LAUNCHES: u32 = 3;
/// How long to collect partials before they are read.
const PIECES_PAUSE: Duration = Duration::from_millis(40);
/// How often the position is recorded while a process writes only partials, so that its run does not count as silent.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Why an attempt cannot be supervised at the moment.
#[derive(Debug, thiserror::Error)]
enum SuperviseError {
    #[error(transparent)]
    Folder(#[from] io::Error),
    #[error(transparent)]
    Briefing(#[from] DeliveryTextError),
    #[error(transparent)]
    Call(CallError),
    #[error(transparent)]
    Engine(#[from] SubmitError),
}

impl From<CallError> for SuperviseError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Engine(error) => Self::Engine(error),
            other => Self::Call(other),
        }
    }
}

/// Supervises an attempt until it has ended. Tries again after an error.
pub async fn supervise(
    context: Arc<RunnerContext>,
    watcher: Option<FolderWatcher>,
    of: AttemptId,
    mut desired: channel::Receiver<DesiredRun>,
) {
    let process = HeldProcess::new(context.program.clone(), RunFolder::of(&context.project, of));
    let mut supervisor = Supervisor {
        context,
        of,
        process,
        harness: OnceLock::new(),
        spool: None,
        calls_read: 0,
        launched: None,
        launches: 0,
        sent: None,
        holds_back: false,
    };
    let mut failed_stops = 0;
    loop {
        let supervised = match failed_stops < MAX_FAILED_STOPS {
            true => supervisor.run(watcher.clone(), &mut desired).await,
            false => supervisor.end_by_force().await,
        };
        match supervised {
            Ok(()) => break,
            Err(SuperviseError::Engine(SubmitError::Stopped)) => break,
            // Another daemon has continued this attempt, so there is nothing left to do.
            Err(SuperviseError::Engine(SubmitError::Refused(
                refusal @ (Refusal::StaleAttempt(_) | Refusal::NoRun(_)),
            ))) => {
                tracing::debug!(%refusal, "the attempt is over");
                break;
            }
            Err(error) => {
                tracing::warn!(agent = %of.agent, run = of.run, attempt = of.attempt, %error, "supervising failed; trying again");
                supervisor.spool = None;
                failed_stops += u32::from(desired.borrow().state == DesiredState::Stopped);
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
    supervisor.context.live.end(of.agent);
    supervisor.context.calls.forget(of);
}

struct Supervisor {
    context: Arc<RunnerContext>,
    of: AttemptId,
    process: HeldProcess,
    /// The harness of the process, after it was needed for the first time. It stays the same when the settings change.
    harness: OnceLock<Arc<dyn Harness>>,
    /// The output of the process. After an error it is opened again, at the position in the world.
    spool: Option<SpoolReader>,
    /// How many bytes of `calls.jsonl` were read.
    calls_read: u64,
    /// When a launcher was last started.
    launched: Option<Instant>,
    /// How many launchers were started.
    launches: u32,
    /// The requests in the launcher's inbox, after they were read for the first time.
    sent: Option<SentRequests>,
    /// Deliveries are held back until the process reports that it is ready or that its turn has ended.
    holds_back: bool,
}

impl Supervisor {
    async fn run(
        &mut self,
        watcher: Option<FolderWatcher>,
        desired: &mut channel::Receiver<DesiredRun>,
    ) -> Result<(), SuperviseError> {
        let folder = self.process.folder().clone();
        let created = blocking(move || {
            folder.create_for_agent()?;
            Ok(ProcessWatch::new(watcher, folder.path()))
        });
        let mut watch = match created.await {
            Err(error) if RunFolder::is_taken_by_other(&error) && self.is_unreported() => {
                return self.give_up_folder(&error).await;
            }
            created => created?,
        };
        let mut stop_by = None;
        loop {
            let state = desired.borrow_and_update().state.clone();
            if self.look(&state, &mut watch).await? {
                return Ok(());
            }
            let stop_by = match state {
                DesiredState::Stopped => *stop_by.get_or_insert_with(|| {
                    tokio::time::Instant::now() + self.context.settings().stop_grace.saturating_mul(2) + STOP_TIMEOUT
                }),
                DesiredState::Running { .. } => {
                    stop_by = None;
                    tokio::time::Instant::now() + STOP_TIMEOUT
                }
            };
            tokio::select! {
                changed = desired.changed() => if changed.is_err() { return Ok(()) },
                () = self.until_changed(&mut watch) => {}
                () = tokio::time::sleep_until(stop_by), if state == DesiredState::Stopped => return self.end_by_force().await,
            }
        }
    }

    /// Ends an attempt that never began, because something else is in the place of its folder. Another try would not help, and the run
    /// would stay in the state `Starting` forever, without a reason that the user can see.
    async fn give_up_folder(&self, error: &io::Error) -> Result<(), SuperviseError> {
        // An earlier daemon may have started a launcher that is not recorded.
        self.kill_leftovers().await?;
        let folder = self.process.folder().path().display();
        let why = format!(
            "its folder {folder} cannot be used: {error}; remove what is there, then say something to the agent"
        );
        self.report_exit(Exit::NotStarted, Some(why)).await.map(drop)
    }

    /// Ends an attempt that does not stop when it is asked to, or whose folder cannot be used. An agent can write into its folder, so it
    /// can keep requests from its launcher.
    async fn end_by_force(&mut self) -> Result<(), SuperviseError> {
        tracing::warn!(agent = %self.of.agent, "the attempt does not stop; its launcher is killed");
        let process = self.process.clone();
        if !blocking(move || process.kill_with_launcher()).await? {
            return Err(io::Error::other("the launcher was killed and still holds its folder").into());
        }
        // The part of the output that can be read counts.
        match self.take_output(true).await {
            Err(SuperviseError::Folder(error)) => tracing::warn!(%error, "the end of the output cannot be read"),
            taken => taken?,
        }
        self.report_exit(Exit::Unknown, None).await.map(drop)
    }

    /// Returns when there may be something new in the folder. If a poll finds the folder unchanged, it continues to wait.
    async fn until_changed(&self, watch: &mut ProcessWatch) {
        // A model writes dozens of partials per second, and clients see twenty.
        if self.spool.as_ref().is_some_and(|spool| spool.is_writing) {
            tokio::time::sleep(PIECES_PAUSE).await;
        }
        // A launcher that ended before it recorded anything causes no notification.
        let is_launching = self.launched.is_some() && watch.follows_nobody();
        let patience = if is_launching { LAUNCH_TIMEOUT } else { Duration::MAX };
        loop {
            match tokio::time::timeout(patience, watch.wake()).await {
                Ok(WakeReason::FolderChanged | WakeReason::LauncherExited) | Err(_) => return,
                // If the check fails, the supervisor looks at everything and finds the error again.
                Ok(WakeReason::Poll) if self.is_unchanged().await.unwrap_or(false) => {}
                Ok(WakeReason::Poll) => return,
            }
        }
    }

    async fn is_unchanged(&self) -> io::Result<bool> {
        let Some(spool) = &self.spool else { return Ok(false) };
        let (folder, position, calls_read) = (self.process.folder().clone(), spool.tail.position(), self.calls_read);
        blocking(move || {
            let output = std::fs::metadata(folder.stdout())?.len();
            let calls = std::fs::metadata(folder.calls())?.len();
            Ok(output == position && calls == calls_read && folder.is_held()?)
        })
        .await
    }

    /// Looks at everything once. True if the attempt has ended.
    async fn look(&mut self, desired: &DesiredState, watch: &mut ProcessWatch) -> Result<bool, SuperviseError> {
        // The state is read before the output, because a process that has ended has written all of its output.
        let process = self.process.clone();
        let observed = blocking(move || Ok((process.state()?, std::fs::metadata(process.folder().calls())?.len())));
        let (state, calls_written) = observed.await?;
        match state {
            ProcessState::Launching => Ok(false),
            ProcessState::NotStarted => self.start(desired).await,
            ProcessState::Exited { started: None, ended } => {
                let never = ended.problem.is_some() && !ended.passing;
                let exit = if never { Exit::NotStarted } else { ended.exit };
                self.report_exit(exit, ended.problem).await
            }
            ProcessState::Running(started) => {
                let started = match watch.follows_nobody() || self.is_unreported() {
                    true => {
                        let process = self.process.clone();
                        blocking(move || Ok(process.confirmed(started))).await?
                    }
                    false => started,
                };
                watch.follow_launcher(&started);
                self.report_spawn(&started).await?;
                self.send_requests(desired).await?;
                self.take_calls(calls_written).await?;
                self.take_output(false).await?;
                if self.holds_back {
                    self.send_requests(desired).await?;
                }
                Ok(false)
            }
            ProcessState::Exited { started: Some(started), ended } => {
                self.report_spawn(&started).await?;
                self.take_calls(calls_written).await?;
                self.take_output(true).await?;
                let folder = self.process.folder().clone();
                // The process may have put anything there. Its exit counts without the evidence, too.
                let evidence = blocking(move || end_of(&folder.stderr())).await.unwrap_or_default();
                self.report_exit(ended.exit, evidence).await
            }
            ProcessState::LauncherKilled(started) => {
                self.report_spawn(&started).await?;
                self.take_calls(calls_written).await?;
                let killed = self.kill_leftovers().await?;
                tracing::warn!(agent = %self.of.agent, killed, "a launcher was killed");
                // Calls that the tools wrote before they were killed count, too.
                let calls = self.process.folder().calls();
                let written = blocking(move || Ok(std::fs::metadata(calls)?.len())).await?;
                self.take_calls(written).await?;
                self.take_output(true).await?;
                let same_boot = started.boot == processes::boot();
                self.report_exit(if same_boot { Exit::Unknown } else { Exit::LostWithMachine }, None).await
            }
        }
    }

    /// Starts the process, or records that it could not be started.
    async fn start(&mut self, desired: &DesiredState) -> Result<bool, SuperviseError> {
        let world = self.context.handle.view();
        if world.run(self.of.agent).is_some_and(|run| run.process().is_some()) {
            // The folder was emptied. A new start in it would create a second process of the same attempt.
            self.kill_leftovers().await?;
            let folder = self.process.folder().path().display().to_string();
            tracing::warn!(agent = %self.of.agent, folder, "the files of a process are gone");
            return self.report_exit(Exit::Unknown, None).await;
        }
        let process = self.process.clone();
        match desired {
            DesiredState::Stopped => match blocking(move || process.cancel()).await? {
                true => self.report_exit(Exit::NotStarted, None).await,
                // A launcher has started in the meantime.
                false => Ok(false),
            },
            DesiredState::Running { .. } if self.launched.is_some_and(|at| at.elapsed() < LAUNCH_TIMEOUT) => Ok(false),
            // The process may have killed its launcher before `process.json` was written, or deleted the file.
            DesiredState::Running { .. } if self.launches == MAX_LAUNCHES => {
                self.kill_leftovers().await?;
                let why = format!("its launcher was gone {MAX_LAUNCHES} times before it had recorded the process");
                self.report_exit(Exit::NotStarted, Some(why)).await
            }
            DesiredState::Running { .. } => {
                let problem = launch::create_worktree(&self.context, &world, self.of.agent).await.err();
                let (context, of) = (Arc::clone(&self.context), self.of);
                let launched = blocking(move || {
                    process.launch(|| match problem {
                        Some(problem) => Ok(Err(Ended::without_process(Exit::NotStarted, problem))),
                        None => launch::prepare_launch(&context, &world, of, process.folder()),
                    })
                });
                launched.await?;
                self.launched = Some(Instant::now());
                self.launches += 1;
                Ok(false)
            }
        }
    }

    async fn kill_leftovers(&self) -> io::Result<usize> {
        let process = self.process.clone();
        blocking(move || Ok(process.kill_leftovers())).await
    }

    /// Whether the process is not in the log yet.
    fn is_unreported(&self) -> bool {
        self.context.handle.view().run(self.of.agent).is_some_and(|run| {
            run.attempt_id(self.of.agent) == self.of
                && matches!(run.state, RunState::Starting | RunState::Stopping { process: None, .. })
        })
    }

    async fn report_spawn(&self, started: &Started) -> Result<(), SuperviseError> {
        if self.is_unreported()
            && let Some(LaunchKind::Agent { session, copy_of, capabilities, .. }) = self.launch_kind().await?
        {
            let process = started.process.clone();
            let spawned = Command::ReportSpawn { of: self.of, process, session, copy_of, capabilities };
            self.context.handle.submit(spawned).await?;
        }
        Ok(())
    }

    async fn launch_kind(&self) -> io::Result<Option<LaunchKind>> {
        let folder = self.process.folder().clone();
        blocking(move || Ok(folder.read_launch()?.map(|launch| launch.kind))).await
    }

    /// The harness session of this process. None if the process is not ready yet.
    fn started_session(&self) -> Option<String> {
        let world = self.context.handle.view();
        world.run(self.of.agent).filter(|run| run.attempt_id(self.of.agent) == self.of && run.attempt.has_started())?;
        Some(world.conversation(self.of.agent)?.harness_session.as_ref()?.session.clone())
    }

    /// The message that a process receives first after it resumes its session. An earlier process may have received it already.
    async fn waiting_message(&self) -> Result<Option<WaitingMessage>, SuperviseError> {
        let handle = &self.context.handle;
        let first = {
            let world = handle.view();
            let conversation = world.conversation(self.of.agent).filter(|it| it.harness_session.is_some());
            let mut waiting = conversation.into_iter().flat_map(|conversation| conversation.waiting.iter().copied());
            waiting.find(|delivery| delivery.what != DeliveryKind::Interrupt)
        };
        let Some(first) = first else { return Ok(None) };
        let text = delivery_text(handle, self.of.agent, first, false).await?;
        Ok(text.map(|text| WaitingMessage { id: wire_name(first.id), text }))
    }

    async fn take_calls(&mut self, written: u64) -> Result<(), SuperviseError> {
        if written != self.calls_read {
            self.calls_read = self.context.calls.take_all(self.process.folder(), self.of).await?;
        }
        Ok(())
    }

    /// Records what the process has written since the last time. `to_the_end` also takes a last line without a newline, because nothing
    /// more will come.
    async fn take_output(&mut self, to_the_end: bool) -> Result<(), SuperviseError> {
        let handle = self.context.handle.clone();
        let mut spool = match self.spool.take() {
            Some(spool) => spool,
            None => {
                let position = handle.view().run(self.of.agent).map_or(0, |run| run.attempt.spooled);
                let (folder, harness) = (self.process.folder().clone(), self.harness()?);
                let session = self.started_session();
                let waiting = match harness.capabilities().echoes_messages || session.is_some() {
                    true => None,
                    false => self.waiting_message().await?,
                };
                let model = handle.view().run(self.of.agent).and_then(|run| run.spec.model.clone());
                blocking(move || {
                    let place = folder.read_launch()?.map(|launch| launch.folder).unwrap_or_default();
                    let (session, model) = (session.as_deref(), model.as_deref());
                    let reader = harness.reader(ReaderStart { place: &place, session, model, waiting });
                    SpoolReader::open(&folder.stdout(), position, reader)
                })
                .await?
            }
        };
        loop {
            let folder = self.process.folder().clone();
            let (opened, read) = blocking(move || {
                let mut read = spool.read(&folder.stdout(), to_the_end)?;
                for output in read.iter_mut().flat_map(|read| &mut read.outputs) {
                    if let Output::Asked(request) = output {
                        resolve_request(request);
                    }
                }
                Ok((spool, read))
            })
            .await?;
            spool = opened;
            let Some(LinesRead { outputs, partials, ended }) = read else {
                self.spool = Some(spool);
                return Ok(());
            };
            let live = &self.context.live;
            // Partials are shown and not recorded, but from time to time they count as a sign of life.
            if to_the_end || !outputs.is_empty() || spool.recorded.elapsed() >= SIGN_OF_LIFE {
                let (from, upto) = (spool.taken, spool.tail.position());
                handle.submit(Command::TakeOutput { of: self.of, from, upto, outputs }).await?;
                (spool.taken, spool.recorded) = (upto, Instant::now());
            }
            if ended {
                live.end(self.of.agent);
            }
            spool.is_writing = !partials.is_empty();
            let now = clock::now();
            partials.iter().for_each(|partial| live.write(self.of.agent, partial, now));
        }
    }

    async fn report_exit(&self, exit: Exit, evidence: Option<String>) -> Result<bool, SuperviseError> {
        let (world, agent, process) = (self.context.handle.view(), self.of.agent, self.process.clone());
        if let Ok(harness) = self.harness() {
            let tidied = blocking(move || launch::tidy(&world, agent, harness.as_ref(), process.folder())).await;
            // The process may have put anything into its folder. Its exit counts nevertheless.
            tidied.unwrap_or_else(|error| tracing::debug!(%agent, %error, "what a process has left is not known"));
        }
        self.context.handle.submit(Command::ReportExit { of: self.of, exit, evidence }).await?;
        Ok(true)
    }

    fn harness(&self) -> io::Result<Arc<dyn Harness>> {
        if let Some(known) = self.harness.get() {
            return Ok(Arc::clone(known));
        }
        let world = self.context.handle.view();
        let name = world.run(self.of.agent).map(|run| run.spec.harness.as_str()).unwrap_or_default();
        let unknown = || io::Error::other(format!("there is no harness `{name}`"));
        let found = self.context.settings().harnesses.named(name).ok_or_else(unknown)?;
        Ok(Arc::clone(self.harness.get_or_init(|| found)))
    }
}

/// The end of a text file. None if the file is empty.
fn end_of(path: &Path) -> io::Result<Option<String>> {
    let mut file = no_links::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(EVIDENCE_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(EVIDENCE_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}
