//! Tool calls of agents. A call is written into the run folder before anything else happens, so it counts even if the daemon, the tools or
//! the agent are killed right after. The daemon takes each call exactly once, by its number, and can repeat its answer.

use crate::blocking::blocking;
use crate::engine::{Handle, HistoryError, SubmitError};
use crate::no_links;
use crate::run_folder::RunFolder;
use crate::spool::Tail;
use crate::store::StoreError;
use hatchery_core::agent::{self, Birth};
use hatchery_core::event::Refused;
use hatchery_core::event::RunEvent;
use hatchery_core::mail;
use hatchery_core::quest::{Requirements, Signal, StepPlan};
use hatchery_core::run::{AttemptId, RunSpec};
use hatchery_core::seat::Identity;
use hatchery_core::status::{IdeaChange, StatusChange};
use hatchery_core::{Address, AgentId, Command, Event, EventId, Record, Refusal, World};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Mutex, PoisonError};

/// A tool call that changes something. The tools choose the ids of new things, so that a repeated call means the same thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    Fork {
        child: AgentId,
        prompt: Option<String>,
        name: Option<String>,
        at: Option<EventId>,
    },
    Kill {
        agent: String,
        cascade: bool,
        remark: Option<String>,
    },
    Send {
        to: String,
        body: String,
    },
    /// The fields that the agent gave. The core checks them.
    Signal(serde_json::Value),
    SetRequirements(Requirements),
    PlanSteps {
        steps: Vec<StepPlan>,
    },
    Register {
        identity: Identity,
    },
    ChangeStatus(Box<StatusChange>),
    ChangeIdeas(IdeaChange),
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Folder(#[from] io::Error),
    #[error(transparent)]
    Engine(#[from] SubmitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no call {0} in this run")]
    NoSuchCall(u64),
    #[error("the answer to call {0} is no longer kept")]
    Forgotten(u64),
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub enum CallAnswer {
    Done(Vec<Record>),
    Refused(Refused),
}

/// Appends calls to the file of a run. Remembers how far it has counted the lines of the file, so that a call costs the same, no matter how
/// many calls came before it.
#[derive(Debug)]
pub struct CallWriter {
    folder: RunFolder,
    /// How many bytes of the file were counted. `lines` is the number of lines in them.
    counted: u64,
    lines: u64,
}

impl CallWriter {
    pub fn new(folder: RunFolder) -> Self {
        Self { folder, counted: 0, lines: 0 }
    }

    /// Writes a call, durably, and returns its number.
    pub fn write(&mut self, call: &Call) -> io::Result<u64> {
        let mut file = no_links::append(&self.folder.calls())?;
        // Several tool servers may write for one agent at the same time: its subagents have servers of their own.
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        let ends_with_newline = self.count_new_lines(&mut file)?;
        let mut line = Vec::new();
        // If a crash has cut off the last line, that line becomes a call of its own that cannot be parsed.
        if !ends_with_newline {
            line.push(b'\n');
        }
        serde_json::to_writer(&mut line, call)?;
        line.push(b'\n');
        file.write_all(&line)?;
        file.sync_data()?;
        self.counted += line.len() as u64;
        self.lines += if ends_with_newline { 1 } else { 2 };
        Ok(self.lines)
    }

    /// Counts the lines that were written since the last time. True if the file ends with a complete line.
    fn count_new_lines(&mut self, file: &mut File) -> io::Result<bool> {
        // The byte before the new ones shows whether the file ended with a complete line.
        let from = self.counted.saturating_sub(1);
        let known = self.counted - from;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let new = bytes.get(usize::try_from(known).unwrap_or_default()..).unwrap_or_default();
        self.counted += new.len() as u64;
        self.lines += new.iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok(bytes.is_empty() || bytes.ends_with(b"\n"))
    }
}

/// Takes calls into the log. The supervisors and the HTTP side share it, so that each file is read only once.
#[derive(Debug)]
pub struct Calls {
    handle: Handle,
    positions: Mutex<HashMap<AttemptId, CallPosition>>,
}

/// How far the file of an attempt was read. This only saves work: a call is refused when it is taken a second time.
#[derive(Clone, Copy, Debug, Default)]
struct CallPosition {
    bytes: u64,
    calls: u64,
}

impl Calls {
    pub fn new(handle: Handle) -> Self {
        Self { handle, positions: Mutex::default() }
    }

    /// Takes all calls of the file that were not taken yet. Returns how many bytes of the file were read.
    pub async fn take_all(&self, folder: &RunFolder, of: AttemptId) -> Result<u64, CallError> {
        let mut position = self.position(of);
        loop {
            let path = folder.calls();
            let read = blocking(move || {
                let mut tail = Tail::open(&path, position.bytes)?;
                Ok((tail.read()?, tail.position()))
            });
            let (lines, bytes) = read.await?;
            if lines.is_empty() {
                return Ok(position.bytes);
            }
            for line in lines {
                position.calls += 1;
                self.take(of, position.calls, &line.bytes).await?;
            }
            position.bytes = bytes;
            self.set_position(of, position);
        }
    }

    /// The answer to a call. Takes the call first, if this has not happened yet.
    pub async fn answer(&self, folder: &RunFolder, of: AttemptId, number: u64) -> Result<CallAnswer, CallError> {
        let handle = &self.handle;
        let taken = |world: &World| calls_taken(world, of) >= Some(number);
        if !taken(&handle.view()) {
            self.take_all(folder, of).await?;
        }
        let world = handle.view();
        let run = world.run(of.agent).filter(|_| taken(&world)).ok_or(CallError::NoSuchCall(number))?;
        let found = run.attempt.answers.iter().find(|(kept, _)| *kept == number);
        let (_, at) = found.ok_or(CallError::Forgotten(number))?;
        let taken = records(handle, *at, 1).await?;
        match taken.first().map(|record| &record.event) {
            Some(Event::Run { what: RunEvent::CallTaken { refused: Some(refused), .. }, .. }) => {
                Ok(CallAnswer::Refused(refused.clone()))
            }
            Some(Event::Run { what: RunEvent::CallTaken { led_to, .. }, .. }) => {
                Ok(CallAnswer::Done(records(handle, at.next(), *led_to).await?))
            }
            _ => Err(CallError::NoSuchCall(number)),
        }
    }

    /// Must be called when an attempt has ended.
    pub fn forget(&self, of: AttemptId) {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner).remove(&of);
    }

    async fn take(&self, of: AttemptId, number: u64, line: &[u8]) -> Result<(), CallError> {
        let world = self.handle.view();
        if calls_taken(&world, of) >= Some(number) {
            return Ok(());
        }
        let ask = match serde_json::from_slice(line) {
            Ok(call) => command(&world, of.agent, call).map(Box::new).map_err(|refusal| Refused::from(&refusal)),
            Err(error) => Err(Refused {
                code: "bad_call".into(),
                message: format!("call {number} cannot be parsed: {error}"),
                hint: "call the tool again".into(),
            }),
        };
        match self.handle.submit(Command::TakeCall { of, number, ask }).await {
            // The supervisor and the request of the tools may take the call at the same time.
            Ok(_) | Err(SubmitError::Refused(Refusal::CallTaken { .. })) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn position(&self, of: AttemptId) -> CallPosition {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner).get(&of).copied().unwrap_or_default()
    }

    /// Only for an attempt that has not ended, so that there are no more positions than open runs.
    fn set_position(&self, of: AttemptId, position: CallPosition) {
        let world = self.handle.view();
        if world.run(of.agent).is_some_and(|run| run.is_open() && run.attempt_id(of.agent) == of) {
            self.positions.lock().unwrap_or_else(PoisonError::into_inner).insert(of, position);
        }
    }
}

/// How many calls of an attempt were taken. None if the run is not at this attempt.
fn calls_taken(world: &World, of: AttemptId) -> Option<u64> {
    world.run(of.agent).filter(|run| run.attempt_id(of.agent) == of).map(|run| run.attempt.calls)
}

async fn records(handle: &Handle, from: EventId, count: u64) -> Result<Vec<Record>, CallError> {
    let page = handle.read_records(from.before(), usize::try_from(count).unwrap_or(usize::MAX)).await;
    let page = page.map_err(|error| match error {
        HistoryError::Store(error) => error,
        HistoryError::Unreadable(error) => StoreError::Damaged(error.to_string()),
    })?;
    Ok(page.records().to_vec())
}

/// The command of a call. An agent acts only for itself.
fn command(world: &World, me: AgentId, call: Call) -> Result<Command, Refusal> {
    Ok(match call {
        Call::Fork { child, prompt, name, at } => {
            // A child with a task has the same spec as its parent. It owes no signal, because only the agent of the step sends one.
            let run = world.run(me).filter(|_| prompt.is_some());
            let for_step = run.is_some() && world.works_for_quest(me);
            let run = run.map(|run| Box::new(RunSpec { signals: false, ..(*run.spec).clone() }));
            Command::Fork { parent: me, at, birth: Birth { prompt, name, run, for_step, ..Birth::of(child) } }
        }
        Call::Kill { agent, cascade, remark } => {
            Command::Kill { agent: agent::resolve(world, &agent)?, cascade, by: Some(me), remark }
        }
        Call::Send { to, body } => Command::SendMail { from: Address::Agent(me), to: mail::resolve(world, &to)?, body },
        Call::Signal(given) => {
            let (step, signal) = Signal::read(&given)?;
            Command::GiveSignal { agent: me, step, signal }
        }
        Call::SetRequirements(requirements) => Command::SetRequirements { agent: me, requirements },
        Call::PlanSteps { steps } => Command::PlanSteps { agent: me, steps },
        Call::Register { identity } => Command::RegisterSeat { agent: me, position: None, identity },
        Call::ChangeStatus(change) => Command::ChangeStatus { change },
        Call::ChangeIdeas(change) => Command::ChangeIdeas { change },
    })
}
