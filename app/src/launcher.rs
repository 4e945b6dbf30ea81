//! The launcher: the small process that holds an agent's process, or a ward's, so that the daemon may come and go. It starts it, passes
//! on what the inbox says, ends it when its time is over, collects everything that descends from it, and writes down how it ended.
//!
//! It is the process's parent and the reaper of its orphans, so a number it sends a signal to is never somebody else's, and
//! nothing that the process starts gets out of reach, in whatever session or group it hides. Should the launcher itself be
//! killed, the process hears the end of its input, and the daemon finds whatever is left by its mark.
//!
//! ```text
//! daemon ──inbox.jsonl, bell──► launcher ──stdin──► process ──► stdout.jsonl ──► daemon
//!                                   └── process.json, exit.json ───────────────────┘
//! ```

mod ear;

use crate::processes;
use crate::run_folder::{Cut, Ended, LAUNCHER_MARK, Launch, LaunchKind, Order, RunFolder, Started, lock_talk};
use crate::spool::Tail;
use ear::Ear;
use hatchery_core::outcome::Exit;
use rustix::process::{Signal, WaitOptions, WaitStatus};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long those that the process left behind may take to end after it.
const LEFTOVERS_GRACE: Duration = Duration::from_secs(1);
/// How long the launcher of the attempt before may take to end after it has said that all is over.
const TALK_PATIENCE: Duration = Duration::from_secs(5);
const TALK_PAUSE: Duration = Duration::from_millis(20);
/// How often a tree is looked through again for what was forked while it was killed.
const KILL_PAUSE: Duration = Duration::from_millis(20);

/// Starts a launcher on a folder that is ready for it, and does not wait for it: it outlives us. One too many is harmless.
pub fn send(program: &Path, folder: &RunFolder) -> io::Result<()> {
    let mut launcher = tokio::process::Command::new(program);
    launcher.arg("launch").arg(folder.path()).current_dir(folder.path());
    launcher.env_clear().env(LAUNCHER_MARK, folder.mark()).stdin(Stdio::null()).stdout(Stdio::null());
    launcher.stderr(File::create(folder.path().join("launcher.log"))?);
    // Not ours to end. When it ends before us, the runtime collects it.
    launcher.kill_on_drop(false).spawn().map(drop)
}

/// Plays one attempt from its start to its end. An attempt that has begun already is left alone.
pub fn run(folder: &RunFolder) -> io::Result<()> {
    let Some(_lock) = folder.lock()? else { return Ok(()) };
    if folder.started()?.is_some() || folder.ended()?.is_some() {
        return Ok(());
    }
    let launch = folder.launch()?.ok_or_else(|| io::Error::other("there is nothing to launch"))?;
    let problem = match claim(folder, &launch.kind) {
        Ok(talk) => match start(folder, &launch) {
            Ok(held) => return hold(folder, held, talk),
            Err(error) => format!("{} could not be started: {error}", launch.program.display()),
        },
        Err(problem) => problem,
    };
    blank_keys(folder, &launch)?;
    folder.write_ended(&Ended::before_it_began(Exit::Unknown, problem))
}

/// What nobody else may have meanwhile: a conversation, if it has one.
fn claim(folder: &RunFolder, kind: &LaunchKind) -> Result<Option<File>, String> {
    match kind {
        LaunchKind::Ward { .. } => Ok(None),
        LaunchKind::Agent { session, .. } => match lock_session(folder, session) {
            Ok(Some(talk)) => Ok(Some(talk)),
            Ok(None) => Err(format!("another process has the conversation {session}")),
            Err(error) => Err(format!("the conversation {session} could not be locked: {error}")),
        },
    }
}

/// The conversation, once nobody else has it. The launcher before us lets go of it only after it has said that all is over.
fn lock_session(folder: &RunFolder, session: &str) -> io::Result<Option<File>> {
    let deadline = Instant::now() + TALK_PATIENCE;
    loop {
        match lock_talk(folder, session)? {
            None if Instant::now() < deadline => std::thread::sleep(TALK_PAUSE),
            talk => return Ok(talk),
        }
    }
}

/// Nobody needs the environment any more, and there may be keys in it.
fn blank_keys(folder: &RunFolder, launch: &Launch) -> io::Result<()> {
    folder.write_launch(&Launch { env: BTreeMap::new(), ..launch.clone() })
}

/// The process, and the way to its ear. A process that does not listen must not keep us from stopping it, so what is said
/// goes through a thread that may wait.
struct Held {
    /// Nothing once it is gone: its number may be somebody else's.
    pid: Option<u32>,
    mouth: Option<Sender<String>>,
    /// Where what it says is written down, if not by itself.
    ear: Option<Ear>,
    time: Option<Time>,
}

/// How long it may take.
#[derive(Clone, Copy)]
struct Time {
    deadline: Instant,
    grace: Duration,
}

fn start(folder: &RunFolder, launch: &Launch) -> io::Result<Held> {
    // Away from the terminal: what is typed there is not for us.
    rustix::process::setsid().map(|_| ()).or_else(|error| match error {
        rustix::io::Errno::PERM => Ok(()),
        other => Err(other),
    })?;
    processes::adopt_orphans()?;
    let append = |path| OpenOptions::new().append(true).create(true).open(path);
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).env_clear().envs(&launch.env).current_dir(&launch.folder).process_group(0);
    let heard = match launch.kind {
        LaunchKind::Agent { .. } => {
            command.stdin(Stdio::piped()).stdout(append(folder.stdout())?).stderr(append(folder.stderr())?);
            None
        }
        LaunchKind::Ward { .. } => {
            let (heard, said) = io::pipe()?;
            command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
            Some(heard)
        }
    };
    let mut child = command.spawn()?;
    let began = Instant::now();
    // Our end of what it says: open here, it would never be over.
    drop(command);
    announce(folder, launch, &mut child, heard, began).inspect_err(|_| {
        // What nobody knows of must not be there.
        signal_tree(Some(child.id()), Signal::KILL);
    })
}

fn announce(
    folder: &RunFolder,
    launch: &Launch,
    child: &mut Child,
    heard: Option<io::PipeReader>,
    began: Instant,
) -> io::Result<Held> {
    let mouth = child.stdin.take().map(speak).transpose()?;
    let append = |path| OpenOptions::new().append(true).create(true).open(path);
    let ear = heard.map(|heard| Ear::open(heard, append(folder.output())?)).transpose()?;
    let process = processes::look_up(child.id());
    folder.write_started(&Started { process, launcher: processes::me(), boot: processes::boot() })?;
    // In this order: whoever begins again needs them.
    blank_keys(folder, launch)?;
    let time = match launch.kind {
        LaunchKind::Agent { .. } => None,
        LaunchKind::Ward { limit_ms, grace_ms } => began
            .checked_add(Duration::from_millis(limit_ms))
            .map(|deadline| Time { deadline, grace: Duration::from_millis(grace_ms) }),
    };
    Ok(Held { pid: Some(child.id()), mouth, ear, time })
}

/// Says one line after the other, until there will be no more or nobody listens.
fn speak(mut stdin: ChildStdin) -> io::Result<Sender<String>> {
    let (mouth, lines) = channel::<String>();
    std::thread::Builder::new().name("mouth".into()).spawn(move || {
        for line in lines {
            if let Err(error) = stdin.write_all(line.as_bytes()) {
                // What it has not heard is said to the next one.
                eprintln!("it cannot be told anything: {error}");
                return;
            }
        }
    })?;
    Ok(mouth)
}

/// What the main thread tells the one that gives orders.
enum News {
    /// The process is gone; what it left behind may still be there.
    Gone,
    /// Nothing of it is left.
    Over,
}

fn hold(folder: &RunFolder, mut held: Held, _talk: Option<File>) -> io::Result<()> {
    let pid = held.pid;
    let ear = held.ear.take();
    let (rung, bell) = channel();
    let listener = OpenOptions::new().read(true).write(true).open(folder.bell())?;
    // Both end with this process: the one waits for a bell that nobody rings any more.
    std::thread::Builder::new().name("bell".into()).spawn({
        let rung = rung.clone();
        move || listen(listener, &rung)
    })?;
    let orders = Tail::open(&folder.inbox(), 0)?;
    let commander = Commander { held, orders, stopping: None, cut: None };
    let commanding = std::thread::Builder::new().name("orders".into()).spawn(move || commander.obey(&bell))?;
    let exit = collect(pid, &rung);
    // Whoever does not hear it has ended already.
    rung.send(Wake::News(News::Over)).ok();
    let cut = commanding.join().map_err(|_| io::Error::other("the orders were not obeyed to the end"))?;
    if let Some(ear) = ear {
        ear.close();
    }
    folder.write_ended(&Ended { exit, problem: None, cut })
}

enum Wake {
    Bell,
    News(News),
}

fn listen(mut bell: File, rung: &Sender<Wake>) {
    let mut strokes = [0; 64];
    while let Ok(1..) = bell.read(&mut strokes) {
        if rung.send(Wake::Bell).is_err() {
            return;
        }
    }
}

/// Collects the process and all orphans, until there are none.
fn collect(pid: Option<u32>, rung: &Sender<Wake>) -> Exit {
    let mut exit = Exit::Unknown;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if Some(ended.as_raw_nonzero().get().unsigned_abs()) == pid => {
                exit = exit_of(status);
                rung.send(Wake::News(News::Gone)).ok();
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return exit,
        }
    }
}

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// Carries out the orders of the inbox, one after the other.
struct Commander {
    held: Held,
    orders: Tail,
    stopping: Option<Stopping>,
    cut: Option<Cut>,
}

/// How far a stop has got.
struct Stopping {
    grace: Duration,
    next: Blow,
}

#[derive(Clone, Copy)]
enum Blow {
    Terminate,
    Kill,
}

impl Commander {
    /// Until nothing is left of the process. Says whether it had to be ended.
    fn obey(mut self, bell: &Receiver<Wake>) -> Option<Cut> {
        loop {
            self.read_orders();
            let patience = match &self.stopping {
                Some(Stopping { next: Blow::Kill, grace }) if grace.is_zero() => Some(KILL_PAUSE),
                Some(stopping) => Some(stopping.grace),
                None => self.held.time.map(|time| time.deadline.saturating_duration_since(Instant::now())),
            };
            let wake = match patience {
                Some(patience) => bell.recv_timeout(patience),
                None => bell.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match wake {
                Ok(Wake::Bell) => {}
                Ok(Wake::News(News::Gone)) => {
                    (self.held.pid, self.held.mouth) = (None, None);
                    let stopping = Stopping { grace: LEFTOVERS_GRACE, next: Blow::Kill };
                    self.signal_tree(Signal::TERM);
                    self.stopping = Some(stopping);
                }
                Ok(Wake::News(News::Over)) | Err(RecvTimeoutError::Disconnected) => return self.cut,
                Err(RecvTimeoutError::Timeout) => match (&self.stopping, self.held.time) {
                    (None, Some(time)) => self.stop(Cut::OutOfTime, time.grace),
                    (None, None) | (Some(_), _) => self.strike(),
                },
            }
        }
    }

    fn read_orders(&mut self) {
        loop {
            let lines = match self.orders.read() {
                Ok(lines) if lines.is_empty() => return,
                Ok(lines) => lines,
                Err(error) => {
                    eprintln!("the inbox cannot be read: {error}");
                    return;
                }
            };
            for line in lines {
                match serde_json::from_slice(&line.bytes) {
                    Ok(Order::Say { line, .. }) => self.say(line),
                    Ok(Order::End) => self.held.mouth = None,
                    Ok(Order::Stop { grace_ms }) => self.stop(Cut::Stopped, Duration::from_millis(grace_ms)),
                    Err(error) => eprintln!("an order cannot be read: {error}"),
                }
            }
        }
    }

    fn say(&mut self, mut line: String) {
        line.push('\n');
        self.held.mouth.take_if(|mouth| mouth.send(line).is_err());
    }

    fn stop(&mut self, cut: Cut, grace: Duration) {
        if self.stopping.is_none() {
            self.cut = Some(cut);
            self.held.mouth = None;
            self.held.pid.into_iter().for_each(|pid| processes::signal(pid, Signal::INT));
            self.stopping = Some(Stopping { grace, next: Blow::Terminate });
        }
    }

    fn strike(&mut self) {
        let Some(stopping) = &mut self.stopping else { return };
        match stopping.next {
            Blow::Terminate => {
                stopping.next = Blow::Kill;
                self.signal_tree(Signal::TERM);
            }
            Blow::Kill => {
                stopping.grace = Duration::ZERO;
                self.signal_tree(Signal::KILL);
            }
        }
    }

    fn signal_tree(&self, signal: Signal) {
        signal_tree(self.held.pid, signal);
    }
}

/// Everybody below the launcher: the process, and whatever descends from it.
fn signal_tree(process: Option<u32>, signal: Signal) {
    let tree = processes::below(std::process::id());
    // Where descendants cannot be found.
    let alone = process.filter(|_| tree.is_empty());
    tree.into_iter().chain(alone).for_each(|pid| processes::signal(pid, signal));
}
