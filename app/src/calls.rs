//! What agents ask of us by their tools. A call is written into the run folder before anything else happens, so that it counts
//! even if the daemon, the tools or the agent are killed the moment after; the daemon takes each in exactly once, by its
//! number, and can repeat its answer.

use crate::engine::{Handle, SubmitError};
use crate::run_folder::RunFolder;
use crate::spool::Tail;
use crate::store::StoreError;
use hatchery_core::agent::{self, Birth};
use hatchery_core::event::Refused;
use hatchery_core::quest::{Requirements, Signal, StepPlan};
use hatchery_core::run::AttemptId;
use hatchery_core::{Address, AgentId, Command, Event, EventId, Record, Refusal, World};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};

/// Something that an agent asks of us. Ids are drawn by whoever asks, so that asking twice is asking for the same.
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
    /// As the agent wrote it: what is wrong with it is said by whoever decides.
    Signal(serde_json::Value),
    SetRequirements(Requirements),
    PlanSteps {
        steps: Vec<StepPlan>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Folder(#[from] io::Error),
    #[error(transparent)]
    Engine(#[from] SubmitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no call {0}")]
    NoSuchCall(u64),
    #[error("the answer to call {0} is too long ago")]
    Forgotten(u64),
}

/// What became of a call.
#[derive(Clone, Debug)]
pub enum Answer {
    Done(Vec<Record>),
    Refused(Refused),
}

/// Writes a call down, durably, and gives its number.
pub fn write(folder: &RunFolder, call: &Call) -> io::Result<u64> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(folder.calls())?;
    // Several servers may speak for one agent at once: its sub-agents have their own.
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    let mut before = Vec::new();
    file.read_to_end(&mut before)?;
    let mut line = Vec::new();
    if !before.is_empty() && !before.ends_with(b"\n") {
        line.push(b'\n');
    }
    serde_json::to_writer(&mut line, call)?;
    line.push(b'\n');
    file.write_all(&line)?;
    file.sync_data()?;
    let lines = before.iter().chain(&line).filter(|byte| **byte == b'\n').count();
    Ok(lines as u64)
}

/// Takes in all calls that are written down and were not taken in yet. Gives how many bytes of them there are.
pub async fn take_all(handle: &Handle, folder: &RunFolder, of: AttemptId) -> Result<u64, CallError> {
    let taken =
        |world: &World| world.run(of.agent).filter(|run| run.attempt_id(of.agent) == of).map_or(0, |run| run.calls);
    let mut tail = Tail::open(&folder.calls(), 0)?;
    let mut number = 0;
    loop {
        let lines = tail.read()?;
        if lines.is_empty() {
            return Ok(tail.position());
        }
        for line in lines {
            number += 1;
            let world = handle.view();
            if number <= taken(&world) {
                continue;
            }
            let ask = match serde_json::from_slice(&line.bytes) {
                Ok(call) => command(&world, of.agent, call).map(Box::new).map_err(|refusal| Refused::from(&refusal)),
                Err(error) => Err(Refused {
                    code: "bad_call".into(),
                    message: format!("call {number} cannot be read: {error}"),
                    hint: "call the tool again".into(),
                }),
            };
            match handle.submit(Command::TakeCall { of, number, ask }).await {
                // Somebody else was faster: the tools' own request, or the supervisor.
                Ok(_) | Err(SubmitError::Refused(Refusal::CallTaken { .. })) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What became of a call, which is taken in if it was not yet.
pub async fn answer(handle: &Handle, folder: &RunFolder, of: AttemptId, number: u64) -> Result<Answer, CallError> {
    take_all(handle, folder, of).await?;
    let world = handle.view();
    let run = world.run(of.agent).filter(|run| run.attempt_id(of.agent) == of && run.calls >= number);
    let run = run.ok_or(CallError::NoSuchCall(number))?;
    let found = run.answers.iter().find(|(kept, _)| *kept == number);
    let (_, at) = found.ok_or(CallError::Forgotten(number))?;
    let taken = records(handle, *at, 1).await?;
    match taken.first().map(|record| &record.event) {
        Some(Event::CallTaken { refused: Some(refused), .. }) => Ok(Answer::Refused(refused.clone())),
        Some(Event::CallTaken { led_to, .. }) => Ok(Answer::Done(records(handle, at.next(), *led_to).await?)),
        _ => Err(CallError::NoSuchCall(number)),
    }
}

async fn records(handle: &Handle, from: EventId, count: u64) -> Result<Vec<Record>, CallError> {
    let page = handle.read(from.before(), usize::try_from(count).unwrap_or(usize::MAX)).await?;
    let read = |(id, json): (EventId, bytes::Bytes)| {
        let body = String::from_utf8_lossy(&json).into_owned();
        Record::read(id, &body).map_err(|error| StoreError::Damaged(error.to_string()).into())
    };
    page.events().map(read).collect()
}

/// What a call means. The agent speaks for itself, and for nobody else.
fn command(world: &World, me: AgentId, call: Call) -> Result<Command, Refusal> {
    Ok(match call {
        Call::Fork { child, prompt, name, at } => {
            // A child with something to do is run as its parent is.
            let run = world.run(me).filter(|_| prompt.is_some()).map(|run| Box::new((*run.spec).clone()));
            Command::Fork { parent: me, at, birth: Birth { prompt, name, run, ..Birth::of(child) } }
        }
        Call::Kill { agent, cascade, remark } => {
            Command::Kill { agent: agent::resolve(world, &agent)?, cascade, by: Some(me), remark }
        }
        Call::Send { to, body } => {
            let to = match to.as_str() {
                "human" => Address::Human,
                reference => Address::Agent(agent::resolve(world, reference)?),
            };
            Command::SendMail { from: Address::Agent(me), to, body }
        }
        Call::Signal(given) => {
            let (step, signal) = Signal::read(&given)?;
            Command::GiveSignal { agent: me, step, signal }
        }
        Call::SetRequirements(requirements) => Command::SetRequirements { agent: me, requirements },
        Call::PlanSteps { steps } => Command::PlanSteps { agent: me, steps },
    })
}
