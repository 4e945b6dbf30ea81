//! How events change runs, and what agents that are run keep between them.

use super::{Due, Impossible, World};
use crate::outcome::{Cause, Outcome};
use crate::output::{Output, TurnEnd};
use crate::run::{
    Delivery, DeliveryKind, Fence, ForeignTalk, PastRun, Process, Run, RunSpec, RunState, Seat, StopWhy, Talk,
};
use crate::usage::{Meter, Usage};
use crate::{AgentId, EventId, MessageKind, Timestamp};
use imbl::Vector;

/// How many answers to calls can be asked for again: no agent waits for more at once.
const KEPT_ANSWERS: usize = 64;
/// A day, as the log's clock counts them.
const DAY_MS: i64 = 24 * 3_600 * 1_000;

impl World {
    pub(super) fn talk_adopted(&mut self, at: EventId, agent: AgentId, talk: &ForeignTalk) -> Result<(), Impossible> {
        self.change_living(at, agent, |_| {})?;
        if self.seats.contains_key(&agent) {
            return Err(Impossible::Agent { at, agent, why: "had been run" });
        }
        let ForeignTalk { harness, session, host, folder } = talk.clone();
        if let Some(before) = self.talks.insert(session.clone(), agent) {
            // It is dead; its children must not copy what is said to somebody else from now on.
            self.change_seat(before, |seat| seat.talk = None);
        }
        // What it cost before is not ours to count.
        let talk = Talk { harness, session, host, folder, meter: Meter::Inherited };
        self.seats.insert(agent, Seat { talk: Some(talk), ..Seat::default() });
        Ok(())
    }

    pub(super) fn run_requested(
        &mut self,
        at: EventId,
        ts: Timestamp,
        agent: AgentId,
        number: u32,
        spec: &RunSpec,
    ) -> Result<(), Impossible> {
        self.change_living(at, agent, |_| {})?;
        let last = self.runs.get(&agent);
        if last.is_some_and(Run::is_open) {
            return Err(Impossible::Agent { at, agent, why: "was running" });
        }
        if number != last.map_or(0, |run| run.number) + 1 {
            return Err(Impossible::Agent { at, agent, why: "had another number of runs" });
        }
        let requested = Run {
            number,
            spec: spec.clone(),
            state: RunState::Starting,
            attempt: 1,
            crashes: 0,
            parks: 0,
            requested: ts,
            last_output: ts,
            spooled: 0,
            calls: 0,
            answers: Vector::new(),
            copied: false,
            in_turn: false,
            silent: false,
            turns: 0,
            outcome: Outcome::default(),
            spent: Usage::default(),
        };
        self.runs.insert(agent, requested);
        let mut seat = self.seats.get(&agent).cloned().unwrap_or_default();
        let knows_it = seat.talk.as_ref().is_some_and(|talk| talk.harness == spec.harness && talk.host == spec.host);
        match (knows_it, seat.unheard.is_empty()) {
            (true, false) => {}
            (true, true) => seat.unheard.push_back(Delivery { id: at, what: DeliveryKind::Nudge }),
            (false, _) => {
                seat.talk = None;
                seat.unheard = [Delivery { id: at, what: DeliveryKind::Briefing }].into_iter().collect();
            }
        }
        self.seats.insert(agent, seat);
        self.note_wanted(agent);
        Ok(())
    }

    pub(super) fn run_spawned(
        &mut self,
        at: EventId,
        ts: Timestamp,
        fence: Fence,
        process: &Process,
        copied: bool,
    ) -> Result<(), Impossible> {
        self.change_run(at, fence, |run| {
            run.copied = copied;
            run.last_output = ts;
            run.state = match &run.state {
                RunState::Starting => RunState::Spawned { process: process.clone() },
                RunState::Stopping { why, process: None } => {
                    RunState::Stopping { why: why.clone(), process: Some(process.clone()) }
                }
                RunState::Spawned { .. }
                | RunState::Running { .. }
                | RunState::Stopping { .. }
                | RunState::Parked { .. }
                | RunState::Ended { .. } => return Err("had a process"),
            };
            Ok(())
        })
    }

    pub(super) fn run_started(&mut self, at: EventId, fence: Fence, session: &str) -> Result<(), Impossible> {
        let mut place = None;
        self.change_run(at, fence, |run| {
            place = Some((run.spec.clone(), run.copied));
            run.begin_turn();
            run.state = match &run.state {
                RunState::Spawned { process } => RunState::Running { process: process.clone() },
                RunState::Starting
                | RunState::Running { .. }
                | RunState::Stopping { .. }
                | RunState::Parked { .. }
                | RunState::Ended { .. } => return Err("could not start"),
            };
            Ok(())
        })?;
        self.change_seat(fence.agent, |seat| {
            let known = seat.talk.take().filter(|talk| talk.session == session);
            seat.talk = place.map(|(RunSpec { harness, host, folder, .. }, copied)| {
                let fresh = if copied { Meter::Inherited } else { Meter::New };
                let mut meter = known.map_or(fresh, |talk| talk.meter);
                meter.new_process();
                Talk { harness, session: session.to_owned(), host, folder, meter }
            });
        });
        Ok(())
    }

    pub(super) fn call_taken(&mut self, at: EventId, fence: Fence, number: u64) -> Result<(), Impossible> {
        self.change_run(at, fence, |run| match number == run.calls + 1 {
            true => {
                run.calls = number;
                run.answers.push_back((number, at));
                if run.answers.len() > KEPT_ANSWERS {
                    run.answers.pop_front();
                }
                Ok(())
            }
            false => Err("had asked for something else"),
        })
    }

    pub(super) fn turn_started(&mut self, at: EventId, fence: Fence) -> Result<(), Impossible> {
        self.change_run(at, fence, |run| {
            run.begin_turn();
            Ok(())
        })
    }

    pub(super) fn output_taken(
        &mut self,
        at: EventId,
        ts: Timestamp,
        fence: Fence,
        upto: u64,
    ) -> Result<(), Impossible> {
        self.change_run(at, fence, |run| match run.spooled <= upto {
            true => {
                run.spooled = upto;
                run.last_output = run.last_output.max(ts);
                run.silent = false;
                Ok(())
            }
            false => Err("had said more"),
        })
    }

    pub(super) fn output_noted(&mut self, at: EventId, fence: Fence, output: &Output) -> Result<(), Impossible> {
        self.change_run(at, fence, |run| {
            run.outcome.take(output);
            Ok(())
        })
    }

    pub(super) fn message_heard(&mut self, at: EventId, fence: Fence, message: EventId) -> Result<(), Impossible> {
        let agent = fence.agent;
        let seat = self.seats.get_mut(&agent).ok_or(Impossible::Agent { at, agent, why: "was never run" })?;
        let place = seat.unheard.iter().position(|delivery| delivery.id == message);
        let place = place.ok_or(Impossible::Agent { at, agent, why: "had heard it" })?;
        let heard = seat.unheard.remove(place);
        self.change_run(at, fence, |run| {
            if heard.what != DeliveryKind::Interrupt {
                run.begin_turn();
            }
            Ok(())
        })
    }

    pub(super) fn turn_ended(
        &mut self,
        at: EventId,
        ts: Timestamp,
        fence: Fence,
        end: &TurnEnd,
        spent: Usage,
    ) -> Result<(), Impossible> {
        self.change_run(at, fence, |run| {
            run.outcome.take(&Output::TurnEnded(end.clone()));
            run.spent += spent;
            run.turns += 1;
            run.in_turn = false;
            if !end.is_error {
                run.parks = 0;
                run.crashes = 0;
            }
            Ok(())
        })?;
        self.change_seat(fence.agent, |seat| {
            seat.spent += spent;
            seat.talk.iter_mut().for_each(|talk| {
                talk.meter.take(end);
            });
        });
        *self.days.entry(ts.0.div_euclid(DAY_MS)).or_default() += spent;
        Ok(())
    }

    pub(super) fn run_silent(&mut self, at: EventId, fence: Fence) -> Result<(), Impossible> {
        self.change_run(at, fence, |run| {
            run.silent = true;
            Ok(())
        })
    }

    pub(super) fn run_interrupted(&mut self, at: EventId, fence: Fence) -> Result<(), Impossible> {
        let told = Delivery { id: at, what: DeliveryKind::Interrupt };
        self.change_seat(fence.agent, |seat| seat.unheard.push_back(told));
        self.change_run(at, fence, |_| Ok(()))
    }

    pub(super) fn run_stopping(&mut self, at: EventId, fence: Fence, why: &StopWhy) -> Result<(), Impossible> {
        self.unwanted.remove(&fence.agent);
        self.change_run(at, fence, |run| {
            let process = match &run.state {
                RunState::Starting => None,
                RunState::Spawned { process } | RunState::Running { process } => Some(process.clone()),
                RunState::Stopping { .. } | RunState::Parked { .. } | RunState::Ended { .. } => {
                    return Err("was stopping");
                }
            };
            run.state = RunState::Stopping { why: why.clone(), process };
            Ok(())
        })
    }

    pub(super) fn run_parked(
        &mut self,
        at: EventId,
        fence: Fence,
        cause: Cause,
        until: Timestamp,
    ) -> Result<(), Impossible> {
        self.process_gone(at, fence)?;
        self.change_run(at, fence, |run| {
            run.parks += 1;
            run.state = RunState::Parked { cause, until };
            Ok(())
        })
    }

    pub(super) fn run_crashed(&mut self, at: EventId, fence: Fence, forgotten: bool) -> Result<(), Impossible> {
        self.process_gone(at, fence)?;
        if forgotten {
            self.change_seat(fence.agent, |seat| {
                seat.talk = None;
                seat.unheard = [Delivery { id: at, what: DeliveryKind::Briefing }].into_iter().collect();
            });
        }
        self.change_run(at, fence, |run| {
            run.crashes += 1;
            Ok(())
        })
    }

    /// The next attempt. It goes on where the last one broke off, if that got so far.
    pub(super) fn run_resumed(&mut self, at: EventId, ts: Timestamp, next: Fence) -> Result<(), Impossible> {
        let agent = next.agent;
        let before = next.attempt.checked_sub(1).ok_or(Impossible::Agent { at, agent, why: "had made no attempt" })?;
        let last = Fence { attempt: before, ..next };
        self.process_gone(at, last)?;
        self.change_run(at, last, |run| {
            run.attempt = next.attempt;
            run.state = RunState::Starting;
            run.last_output = ts;
            run.spooled = 0;
            run.calls = 0;
            run.answers.clear();
            run.in_turn = false;
            run.silent = false;
            run.outcome = Outcome::default();
            Ok(())
        })?;
        self.change_seat(agent, |seat| {
            if seat.unheard.is_empty() {
                seat.unheard.push_back(Delivery { id: at, what: DeliveryKind::Nudge });
            }
        });
        self.note_wanted(agent);
        Ok(())
    }

    pub(super) fn run_ended(
        &mut self,
        at: EventId,
        ts: Timestamp,
        fence: Fence,
        cause: Cause,
        detail: &str,
    ) -> Result<(), Impossible> {
        self.process_gone(at, fence)?;
        self.unwanted.remove(&fence.agent);
        let mut past = None;
        self.change_run(at, fence, |run| {
            run.state = RunState::Ended { cause, at: ts };
            past = Some(PastRun {
                harness: run.spec.harness.clone(),
                attempts: run.attempt,
                turns: run.turns,
                requested: run.requested,
                ended: ts,
                cause,
                detail: detail.to_owned(),
                spent: run.spent,
            });
            Ok(())
        })?;
        self.past_runs.extend(past.map(|past| ((fence.agent, fence.run), past)));
        Ok(())
    }

    /// A message for an agent that is or was run has to reach its process. A cut ends the conversation: what was taken back
    /// cannot be unheard.
    pub(super) fn note_message(&mut self, at: EventId, agent: AgentId, kind: MessageKind) {
        if !self.seats.contains_key(&agent) {
            return;
        }
        match kind {
            MessageKind::User => {
                let said = Delivery { id: at, what: DeliveryKind::Message };
                self.change_seat(agent, |seat| seat.unheard.push_back(said));
            }
            MessageKind::Clear | MessageKind::Rewind => self.change_seat(agent, |seat| {
                seat.talk = None;
                seat.unheard.clear();
            }),
            MessageKind::System
            | MessageKind::Assistant
            | MessageKind::ToolCall
            | MessageKind::ToolResult
            | MessageKind::Mark
            | MessageKind::AgentKilled
            | MessageKind::Command
            | MessageKind::Fork
            | MessageKind::Usage
            | MessageKind::Interrupted => {}
        }
    }

    /// Nobody wants this agent's run any more; `settle` says so on the log.
    pub(super) fn note_unwanted(&mut self, agent: AgentId) {
        let runs = |run: &Run| run.is_open() && !matches!(run.state, RunState::Stopping { .. });
        if self.run(agent).is_some_and(runs) {
            self.unwanted.insert(agent);
        }
    }

    /// Whatever the process had open is closed with it.
    fn process_gone(&mut self, at: EventId, fence: Fence) -> Result<(), Impossible> {
        self.change_seat(fence.agent, |seat| seat.unheard.retain(|delivery| delivery.what != DeliveryKind::Interrupt));
        self.tools_gone(fence.agent);
        self.change_run(at, fence, |run| {
            run.in_turn = false;
            Ok(())
        })
    }

    fn change_seat(&mut self, agent: AgentId, change: impl FnOnce(&mut Seat)) {
        if let Some(seat) = self.seats.get_mut(&agent) {
            change(seat);
            self.note_wanted(agent);
        }
    }

    /// Changes a run that is at this attempt, and keeps its place among the deadlines and among what is wanted.
    fn change_run(
        &mut self,
        at: EventId,
        fence: Fence,
        change: impl FnOnce(&mut Run) -> Result<(), &'static str>,
    ) -> Result<(), Impossible> {
        let agent = fence.agent;
        let impossible = |why| Impossible::Agent { at, agent, why };
        let run = self.runs.get_mut(&agent).ok_or(impossible("was never run"))?;
        if run.number != fence.run || run.attempt != fence.attempt || !run.is_open() {
            return Err(impossible("was at another attempt"));
        }
        let before = run.deadline();
        change(run).map_err(impossible)?;
        let after = run.deadline();
        if before != after {
            before.and_then(|due| self.deadlines.remove(&(due, Due::Run(agent))));
            self.deadlines.extend(after.map(|due| (due, Due::Run(agent))));
        }
        self.note_wanted(agent);
        Ok(())
    }

    /// Touches the map only when something changed: whoever holds it compares by identity.
    fn note_wanted(&mut self, agent: AgentId) {
        let unheard = self.seats.get(&agent).map(|seat| &seat.unheard);
        let wanted = self.runs.get(&agent).zip(unheard).and_then(|(run, unheard)| run.wanted(unheard));
        if self.wanted.get(&agent) == wanted.as_ref() {
            return;
        }
        match wanted {
            Some(wanted) => self.wanted.insert(agent, wanted),
            None => self.wanted.remove(&agent),
        };
    }
}

impl Run {
    fn begin_turn(&mut self) {
        self.in_turn = true;
        // Whatever happens to it now happens in the middle of a turn.
        self.outcome.take(&Output::Heard { uuid: String::new() });
    }
}
