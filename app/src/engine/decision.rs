//! Deciding the waiting commands, one after the other, on a tentative copy of the world. Nothing here writes or publishes.
//!
//! Deciding is pure, so a panic in it is a bug that the same command causes again in the same world. Such a command must not end the
//! engine: the daemon would start again, the caller would repeat the command, and the daemon would end again. So the panic is caught, the
//! tentative world is dropped, and the other commands are decided again without that command.

use super::{Job, StepFn};
use crate::store::Row;
use hatchery_core::event::{AgentEvent, MailEvent};
use hatchery_core::{Command, Event, EventId, Record, Refusal, Stream, Timestamp, World, rests_on};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The commands that are decided together, and the world in which they are decided.
#[derive(Clone, Copy)]
pub(super) struct Round<'a> {
    pub world: &'a World,
    pub step: StepFn,
    pub now: Timestamp,
    pub jobs: &'a [Job],
    /// Earlier jobs that wait for mail, the longest wait first.
    pub mail_waiters: &'a [Job],
    /// Whether deadlines that have passed are handled, too.
    pub tick: bool,
    /// Whether the streams that a decision depends on are recorded, because other processes write to the same store.
    pub tracks_reads: bool,
}

/// The result of a round.
pub(super) struct Decision {
    /// The world with all records applied.
    pub world: World,
    pub records: Vec<Record>,
    /// The records as the store keeps them.
    pub rows: Vec<Row>,
    /// The streams that the decisions depend on, if they are recorded.
    pub reads: BTreeSet<Stream>,
    /// One for each job, in order.
    pub outcomes: Vec<CommandOutcome>,
    /// Mail waiters that are answered now, by their positions, in order: they got mail, or can no longer get any.
    pub served: Vec<(usize, CommandOutcome)>,
    /// Why the deadlines could not be handled.
    pub tick_failure: Option<String>,
}

/// The range of the records that belongs to a command, or why there are none.
pub(super) type CommandOutcome = Result<Range<usize>, NotDone>;

#[derive(Debug)]
pub(super) enum NotDone {
    Refused(Refusal),
    /// The command was to take mail, and its caller has left.
    GivenUp,
    /// The decision panicked. The text is for the daemon's log.
    Failed(String),
}

impl NotDone {
    fn is_no_mail(&self) -> bool {
        matches!(self, Self::Refused(Refusal::NoMail(_)))
    }
}

/// The command that is being decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CommandSource {
    Job(usize),
    Tick,
    MailWaiter(usize),
}

/// Commands that panicked, with the message of the panic.
type Failures = BTreeMap<CommandSource, String>;

impl Round<'_> {
    pub fn decide(&self) -> Decision {
        let mut failures = Failures::new();
        loop {
            match self.attempt(&failures) {
                Ok(decision) => return decision,
                Err((source, message)) => drop(failures.insert(source, message)),
            }
        }
    }

    /// Decides everything except for the known failures. Stops at the first new failure, because the tentative world may be half changed
    /// then.
    fn attempt(&self, failures: &Failures) -> Result<Decision, (CommandSource, String)> {
        let mut decision = Decision::starting_from(self.world, self.jobs.len());
        let take =
            |decision: &mut Decision, source, command: &Command| -> Result<CommandOutcome, (CommandSource, String)> {
                if let Some(message) = failures.get(&source) {
                    return Ok(Err(NotDone::Failed(message.clone())));
                }
                // After a panic the decision is not used: it is dropped with the error.
                let taken = catch_unwind(AssertUnwindSafe(|| decision.take(self, command)));
                let taken = taken.map_err(|panic| (source, panic_message(panic.as_ref())))?;
                Ok(taken.map_err(NotDone::Refused))
            };
        for (at, job) in self.jobs.iter().enumerate() {
            let outcome = match job.was_given_up() {
                true => Err(NotDone::GivenUp),
                false => take(&mut decision, CommandSource::Job(at), &job.command)?,
            };
            decision.outcomes.push(outcome);
        }
        if self.tick {
            decision.tick_failure = match take(&mut decision, CommandSource::Tick, &Command::Tick)? {
                Ok(_) => None,
                Err(NotDone::Refused(refusal)) => Some(format!("the passing of time was refused: {refusal}")),
                Err(NotDone::Failed(message)) => Some(message),
                Err(NotDone::GivenUp) => None,
            };
        }
        if self.tick || decision.records.iter().any(|record| ends_a_wait(&record.event)) {
            // A mail and the command that waits for it are decided in the same append, so the wait costs no second append. The longest wait
            // comes first, then the jobs of this round, which may have asked before the mail was sent.
            for (at, job) in self.mail_waiters.iter().enumerate().filter(|(_, job)| !job.was_given_up()) {
                match take(&mut decision, CommandSource::MailWaiter(at), &job.command)? {
                    Err(not_done) if not_done.is_no_mail() => {}
                    outcome => decision.served.push((at, outcome)),
                }
            }
            for (at, job) in self.jobs.iter().enumerate().filter(|(_, job)| job.until.is_some()) {
                if decision.outcomes[at].as_ref().is_err_and(NotDone::is_no_mail) {
                    decision.outcomes[at] = take(&mut decision, CommandSource::Job(at), &job.command)?;
                }
            }
        }
        // A refusal depends on streams in the same way as a decision.
        for (job, outcome) in self.jobs.iter().zip(&decision.outcomes) {
            if self.tracks_reads && matches!(outcome, Err(NotDone::Refused(_))) {
                decision.reads.extend(job.command.reads());
            }
        }
        Ok(decision)
    }
}

impl Decision {
    fn starting_from(world: &World, jobs: usize) -> Self {
        Self {
            world: world.clone(),
            records: Vec::with_capacity(jobs),
            rows: Vec::with_capacity(jobs),
            reads: BTreeSet::new(),
            outcomes: Vec::with_capacity(jobs),
            served: Vec::new(),
            tick_failure: None,
        }
    }

    /// Whether there is nothing to write and no caller to answer.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.outcomes.is_empty() && self.served.is_empty()
    }

    /// The names of the streams that the decisions depend on, in the form of the store.
    pub fn reads_by_name(&self) -> Vec<String> {
        self.reads.iter().map(Stream::to_string).collect()
    }

    /// Whether an event refers to another event that is not in the log yet. `seen` is the last event of the log. If so, the rows cannot be
    /// renumbered.
    pub fn is_fixed(&self, seen: EventId) -> bool {
        self.records.iter().any(|record| record.event.refers_to().is_some_and(|id| id > seen))
    }

    fn take(&mut self, round: &Round<'_>, command: &Command) -> Result<Range<usize>, Refusal> {
        let records = (round.step)(&mut self.world, command, round.now)?;
        if round.tracks_reads {
            self.reads.extend(rests_on(command, &records));
        }
        let start = self.records.len();
        for record in &records {
            let stream = record.event.stream();
            self.rows.push(Row { id: record.id, stream: stream.to_string(), body: record.body() });
        }
        self.records.extend(records);
        Ok(start..self.records.len())
    }
}

/// Whether this event may end the wait of a command for mail.
fn ends_a_wait(event: &Event) -> bool {
    matches!(
        event,
        Event::Mail(MailEvent::Sent { .. })
            | Event::Agent { what: AgentEvent::Killed { .. } | AgentEvent::Expired, .. }
    )
}

pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatchery_core::{Address, AgentId, step};
    use std::time::{Duration, Instant};
    use tokio::sync::oneshot;

    #[test]
    fn a_caller_that_has_left_takes_no_mail_that_is_sent_in_the_same_round() {
        let (now, reader) = (Timestamp(0), AgentId::from_bytes([7; 16]));
        let mut world = World::default();
        step(&mut world, &Command::FoundRegistry { agent: reader, name: None }, now).unwrap();
        let to = Address::Agent(reader);
        let (reply, answer) = oneshot::channel();
        drop(answer);
        let until = Some(Instant::now() + Duration::from_secs(60));
        let given_up = Job { command: Command::TakeMail { to, from: None }, until, reply };
        let (reply, _answer) = oneshot::channel();
        let command = Command::SendMail { from: Address::Human, to, body: "for the next one".into() };
        let jobs = [given_up, Job { command, until: None, reply }];
        let round = Round { world: &world, step, now, jobs: &jobs, mail_waiters: &[], tick: false, tracks_reads: true };
        let mut decision = round.decide();
        assert!(matches!(decision.outcomes[0], Err(NotDone::GivenUp)));
        step(&mut decision.world, &Command::TakeMail { to, from: None }, now).unwrap();
    }
}
