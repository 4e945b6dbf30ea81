//! How events change runs, and what agents keep between their runs.

mod messages;
mod turns;

use super::{Due, Impossible, World, set_member};
use crate::agent::Agent;
use crate::event::RunEvent;
use crate::harness::Capabilities;
use crate::outcome::Cause;
use crate::quest;
use crate::run::{
    Attempt, AttemptId, Conversation, DeliveryKind, DesiredRun, ForeignSession, HarnessSession, PastRun, Process,
    Readiness, Run, RunSpec, RunState, StopWhy,
};
use crate::session::SessionState;
use crate::usage::{Meter, Metered, Usage};
use crate::{AgentId, EventId, Timestamp};
use imbl::Vector;
use std::sync::Arc;

/// How many answers to calls can be requested again. No agent waits for more at the same time.
const KEPT_ANSWERS: usize = 64;
/// How many ended runs of an agent are kept. The log has all of them.
const KEPT_RUNS: u32 = 100;

/// The entries of a run in the indexes, with which runs are found without a search.
struct RunIndexes {
    deadline: Option<Timestamp>,
    desired: Option<DesiredRun>,
    is_starting: bool,
}

impl RunIndexes {
    fn of(run: &Run, conversation: &Conversation) -> Self {
        let (deadline, desired) = (run.deadline(conversation), run.desired(conversation));
        Self { deadline, desired, is_starting: run.state == RunState::Starting }
    }
}

impl World {
    pub(super) fn apply_run(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        what: &RunEvent,
    ) -> Result<(), Impossible> {
        match what {
            RunEvent::Spawned { process, session, copy_of, capabilities } => {
                let copied = copy_of.as_deref().map(|session| Meter::of_copy(self.meter_of(session)));
                self.run_spawned(at, ts, of, process, copied, *capabilities)?;
                if let Some(session) = session {
                    self.harness_sessions.insert(session.as_str().into(), of.agent);
                }
                Ok(())
            }
            RunEvent::Waiting => self.run_waiting(at, of),
            RunEvent::Started { session, .. } => {
                self.run_started(at, of, session)?;
                self.harness_sessions.insert(session.as_str().into(), of.agent);
                Ok(())
            }
            RunEvent::MessageHeard { message } => self.message_heard(at, of, *message),
            RunEvent::OutputNoted { output } => self.output_noted(at, of, output),
            RunEvent::OutputTaken { upto } => self.output_taken(at, ts, of, *upto),
            RunEvent::CallTaken { number, refused, signal, .. } => {
                self.call_taken(at, ts, of, *number)?;
                match refused.as_ref().filter(|_| *signal) {
                    Some(refused) => self.signal_refused(at, ts, of, refused),
                    None => Ok(()),
                }
            }
            RunEvent::PermissionDecided { request, decision, .. } => {
                self.permission_decided(at, ts, of, request, decision)
            }
            RunEvent::TurnStarted => self.turn_started(at, of),
            RunEvent::TurnEnded { end, spent, metered } => self.turn_ended(at, ts, of, end, (*spent, *metered)),
            RunEvent::Metered { used, context } => self.metered(at, ts, of, *used, *context),
            RunEvent::Silent { .. } => self.run_silent(at, ts, of),
            RunEvent::Interrupted => self.run_interrupted(at, of),
            RunEvent::Stopping { why } => self.run_stopping(at, of, why),
            RunEvent::Parked { cause, until, .. } => self.run_parked(at, of, *cause, *until),
            RunEvent::Crashed { .. } => self.run_crashed(at, of),
            RunEvent::BudgetReached => self.budget_reached(at, of),
            RunEvent::Resumed => self.run_resumed(at, ts, of),
            RunEvent::Ended { cause, detail, .. } => self.run_ended(at, ts, of, *cause, detail),
        }
    }

    pub(super) fn harness_session_adopted(
        &mut self,
        at: EventId,
        agent: AgentId,
        harness_session: &ForeignSession,
    ) -> Result<(), Impossible> {
        self.change_living(at, agent, |_| {})?;
        if self.conversations.contains_key(&agent) {
            return Err(Impossible::Agent { at, agent, why: "had been run" });
        }
        let ForeignSession { harness, session, host, folder } = harness_session.clone();
        if let Some(before) = self.harness_sessions.insert(session.as_str().into(), agent) {
            // The previous agent is dead. Its forks must not copy what the new agent says from now on.
            self.change_conversation(before, |_, conversation| Arc::make_mut(conversation).harness_session = None);
        }
        // The usage of the session before the adoption is not counted.
        let harness_session =
            HarnessSession { harness, session, host, folder, meter: Meter::Inherited, capabilities: None };
        self.conversations.insert(
            agent,
            Arc::new(Conversation { harness_session: Some(harness_session), ..Conversation::default() }),
        );
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
        let last = self.run(agent);
        if last.is_some_and(Run::is_open) {
            return Err(Impossible::Agent { at, agent, why: "was running" });
        }
        if number != last.map_or(0, |run| run.number) + 1 {
            return Err(Impossible::Agent { at, agent, why: "had another number of runs" });
        }
        let requested = Run {
            number,
            spec: Arc::new(spec.clone()),
            state: RunState::Starting,
            attempt: Attempt::new(1, ts),
            crashes: 0,
            parks: 0,
            requested: ts,
            addressed: ts,
            question: None,
            early_answers: Vector::new(),
            signalled: false,
            turns: 0,
            spent: Usage::default(),
        };
        let conversation = Arc::make_mut(self.conversations.entry(agent).or_default());
        conversation
            .harness_session
            .take_if(|harness_session| harness_session.harness != spec.harness || harness_session.host != spec.host);
        conversation.prepare(at);
        let indexes = RunIndexes::of(&requested, conversation);
        self.runs.insert(agent, Arc::new(requested));
        self.update_indexes(agent, None, indexes);
        // Another daemon may have requested the end of the session at the same time.
        let session = self.agent(agent).and_then(Agent::session).and_then(|session| self.session(session));
        if session.is_some_and(|session| session.state != SessionState::Open) {
            self.note_unwanted(agent);
        }
        Ok(())
    }

    fn run_spawned(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        process: &Process,
        copied: Option<Meter>,
        capabilities: Capabilities,
    ) -> Result<(), Impossible> {
        self.change_run(at, of, |run, conversation| {
            run.attempt.capabilities = capabilities;
            run.attempt.waits = false;
            run.attempt.copied = copied.is_some();
            run.attempt.meter = copied.unwrap_or(Meter::New);
            run.attempt.last_output = ts;
            let conversation = Arc::make_mut(conversation);
            conversation.metered.new_process(conversation.harness_session.is_some());
            conversation.harness_session.iter_mut().for_each(|harness_session| harness_session.meter.new_process());
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

    /// The meter of a harness session. None if the usage of a turn without a total may be missing in it, because such usage may be in the
    /// totals of a copy.
    fn meter_of(&self, session: &str) -> Option<Meter> {
        let conversation = self.conversation(self.harness_session_owner(session)?)?;
        if conversation.metered != Metered::default() {
            return None;
        }
        conversation.harness_session.as_ref().filter(|it| it.session == session).map(|it| it.meter)
    }

    fn run_waiting(&mut self, at: EventId, of: AttemptId) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            run.attempt.waits = true;
            Ok(())
        })
    }

    /// The process is ready. If its run is being stopped, it is stopped nevertheless, but its session can be resumed.
    fn run_started(&mut self, at: EventId, of: AttemptId, session: &str) -> Result<(), Impossible> {
        self.change_run(at, of, |run, conversation| {
            run.state = match &run.state {
                RunState::Spawned { process } => RunState::Running { process: process.clone() },
                stopping @ RunState::Stopping { process: Some(_), .. } => stopping.clone(),
                RunState::Starting
                | RunState::Running { .. }
                | RunState::Stopping { .. }
                | RunState::Parked { .. }
                | RunState::Ended { .. } => return Err("could not start"),
            };
            run.attempt.begin_turn();
            let conversation = Arc::make_mut(conversation);
            let attempt = &mut run.attempt;
            conversation.enter(session, &run.spec, attempt.meter, attempt.capabilities);
            attempt.readiness = match run.spec.model.is_some() && attempt.capabilities.model_choice.needs_session() {
                true => Readiness::ConfirmsModel,
                false => Readiness::Ready,
            };
            // Nothing was written to the process yet. If its session contains all messages already, the process gets a nudge.
            if !run.attempt.capabilities.chooses_session_id && !conversation.has_words() {
                conversation.add(at, DeliveryKind::Nudge);
                // The messages in the session were received by an earlier process.
                run.attempt.has_confirmed = false;
            }
            Ok(())
        })
    }

    fn call_taken(&mut self, at: EventId, ts: Timestamp, of: AttemptId, number: u64) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| match number == run.attempt.calls + 1 {
            true => {
                run.attempt.alive(ts);
                run.attempt.calls = number;
                run.attempt.answers.push_back((number, at));
                if run.attempt.answers.len() > KEPT_ANSWERS {
                    run.attempt.answers.pop_front();
                }
                Ok(())
            }
            false => Err("had asked for something else"),
        })
    }

    /// The agent has sent its signal.
    pub(super) fn run_signalled(&mut self, at: EventId, of: AttemptId) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            run.signalled = true;
            Ok(())
        })
    }

    /// Remembers a signal in the output of an agent, in case its tools cannot pass the signal on.
    pub(super) fn note_tool_call(&mut self, agent: AgentId, content: &str) {
        let owes = |run: &Run| run.spec.signals && run.is_open();
        if !self.run(agent).is_some_and(owes) || !content.contains(quest::SIGNAL_TOOL) {
            return;
        }
        let call: Option<serde_json::Value> = serde_json::from_str(content).ok();
        let heard =
            call.filter(|call| call["name"].as_str().is_some_and(quest::of_tool)).map(|call| call["input"].to_string());
        self.change_conversation(agent, |run, _| {
            if let Some((run, heard)) = run.zip(heard) {
                run.attempt.signal_in_output = Some(heard);
            }
        });
    }

    /// The user has answered the question about the silence, so the process may be silent for the same time again.
    pub(super) fn given_time(&mut self, at: EventId, ts: Timestamp, of: AttemptId) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            run.attempt.silent = None;
            run.attempt.last_output = run.attempt.last_output.max(ts);
            Ok(())
        })
    }

    fn run_silent(&mut self, at: EventId, ts: Timestamp, of: AttemptId) -> Result<(), Impossible> {
        self.change_run(at, of, |run, _| {
            run.attempt.silent = Some(ts);
            Ok(())
        })
    }

    fn run_interrupted(&mut self, at: EventId, of: AttemptId) -> Result<(), Impossible> {
        self.change_run(at, of, |_, conversation| {
            Arc::make_mut(conversation).add(at, DeliveryKind::Interrupt);
            Ok(())
        })
    }

    fn run_stopping(&mut self, at: EventId, of: AttemptId, why: &StopWhy) -> Result<(), Impossible> {
        self.runs_to_stop.remove(&of.agent);
        self.clear_step_deadline(of.agent);
        self.change_run(at, of, |run, _| {
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

    fn run_parked(
        &mut self,
        at: EventId,
        of: AttemptId,
        cause: Cause,
        until: Option<Timestamp>,
    ) -> Result<(), Impossible> {
        self.tools_gone(of.agent);
        self.change_run(at, of, |run, conversation| {
            // The questions stay open: their answers let the run continue.
            let open = match cause == Cause::AwaitsPermission {
                true => run.attempt.permissions.clone(),
                false => Vector::new(),
            };
            run.process_gone(conversation);
            run.attempt.permissions = open;
            run.parks += u32::from(matches!(cause, Cause::RateLimited | Cause::Overloaded | Cause::Unavailable));
            run.state = RunState::Parked { cause, until };
            Ok(())
        })
    }

    fn run_crashed(&mut self, at: EventId, of: AttemptId) -> Result<(), Impossible> {
        self.tools_gone(of.agent);
        self.change_run(at, of, |run, conversation| {
            run.process_gone(conversation);
            run.crashes += 1;
            Ok(())
        })
    }

    /// The next attempt begins. It continues the harness session, if the previous attempt has opened one.
    fn run_resumed(&mut self, at: EventId, ts: Timestamp, next: AttemptId) -> Result<(), Impossible> {
        let agent = next.agent;
        let before = next.attempt.checked_sub(1).ok_or(Impossible::Agent { at, agent, why: "had made no attempt" })?;
        self.tools_gone(agent);
        self.change_run(at, AttemptId { attempt: before, ..next }, |run, conversation| {
            run.keep_answers();
            run.process_gone(conversation);
            run.attempt = Attempt::new(next.attempt, ts);
            run.state = RunState::Starting;
            Arc::make_mut(conversation).prepare(at);
            Ok(())
        })
    }

    fn run_ended(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        cause: Cause,
        detail: &str,
    ) -> Result<(), Impossible> {
        self.tools_gone(of.agent);
        self.runs_to_stop.remove(&of.agent);
        let mut past = None;
        self.change_run(at, of, |run, conversation| {
            run.process_gone(conversation);
            run.attempt.silent = None;
            run.state = RunState::Ended { cause, at: ts };
            past = Some(PastRun {
                harness: run.spec.harness.clone(),
                attempts: run.attempt.number,
                turns: run.turns,
                requested: run.requested,
                ended: ts,
                cause,
                detail: detail.to_owned(),
                spent: run.spent,
            });
            Ok(())
        })?;
        self.past_runs.extend(past.map(|past| ((of.agent, of.run), past)));
        self.past_runs.remove(&(of.agent, of.run.saturating_sub(KEPT_RUNS)));
        Ok(())
    }

    /// The wait of a parked run has ended, but the run now waits for a slot.
    pub(super) fn end_of_park(&mut self, agent: AgentId) {
        self.change_conversation(agent, |run, _| {
            if let Some(RunState::Parked { until, .. }) = run.map(|run| &mut run.state) {
                *until = None;
            }
        });
    }

    /// Imported messages are not in the harness session, so the next process receives the whole history.
    pub(super) fn note_import(&mut self, agent: AgentId) {
        self.change_conversation(agent, |_, conversation| Arc::make_mut(conversation).begin_anew());
    }

    /// Marks an agent whose run must be stopped; `settle` records that in the log.
    pub(super) fn note_unwanted(&mut self, agent: AgentId) {
        let runs = |run: &Run| run.is_open() && !matches!(run.state, RunState::Stopping { .. });
        if self.run(agent).is_some_and(runs) {
            self.runs_to_stop.insert(agent);
        }
    }

    /// Changes a run that is at this attempt, and updates the indexes.
    pub(super) fn change_run(
        &mut self,
        at: EventId,
        of: AttemptId,
        change: impl FnOnce(&mut Run, &mut Arc<Conversation>) -> Result<(), &'static str>,
    ) -> Result<(), Impossible> {
        let agent = of.agent;
        let impossible = |why| Impossible::Agent { at, agent, why };
        let mut answer = Err("was never run");
        self.change_conversation(agent, |run, conversation| {
            let meant = |run: &&mut Run| run.number == of.run && run.attempt.number == of.attempt && run.is_open();
            answer = match run {
                None => Err("was never run"),
                Some(run) if meant(&run) => change(run, conversation),
                Some(_) => Err("was at another attempt"),
            };
        });
        answer.map_err(impossible)
    }

    /// Changes an agent's conversation and last run. Does nothing if the agent has no conversation.
    fn change_conversation(&mut self, agent: AgentId, change: impl FnOnce(Option<&mut Run>, &mut Arc<Conversation>)) {
        match (self.runs.get_mut(&agent).map(Arc::make_mut), self.conversations.get_mut(&agent)) {
            (_, None) => {}
            (None, Some(conversation)) => change(None, conversation),
            (Some(run), Some(conversation)) => {
                let before = run.deadline(conversation);
                let asked: Vec<EventId> = run.open_permission_questions();
                change(Some(run), conversation);
                let still_asked = run.open_permission_questions();
                // A question about silence or a budget is needed only while the run is silent or waits for a budget.
                let questions_to_withdraw = run.question.filter(|_| run.attempt.silent.is_none() && !run.is_broke());
                if questions_to_withdraw.is_some() {
                    run.question = None;
                }
                self.questions_to_withdraw.extend(questions_to_withdraw);
                // An answered question is closed already.
                let gone = asked.into_iter().filter(|question| !still_asked.contains(question));
                let gone = gone.filter(|question| self.questions.contains_key(question));
                self.questions_to_withdraw.extend(gone);
                let indexes = RunIndexes::of(run, conversation);
                self.update_indexes(agent, before, indexes);
            }
        }
    }

    /// Updates the indexes for a run that has changed. Changes a map only if an entry is different, because readers of the maps compare
    /// them by identity.
    fn update_indexes(&mut self, agent: AgentId, before: Option<Timestamp>, now: RunIndexes) {
        let RunIndexes { deadline, desired, is_starting } = now;
        if before != deadline {
            before.and_then(|due| self.deadlines.remove(&(due, Due::Run(agent))));
            self.deadlines.extend(deadline.map(|due| (due, Due::Run(agent))));
        }
        self.note_run_change(agent);
        set_member(&mut self.starting, agent, is_starting);
        if self.desired_runs.get(&agent) != desired.as_ref() {
            match desired {
                Some(desired) => self.desired_runs.insert(agent, desired),
                None => self.desired_runs.remove(&agent),
            };
        }
    }
}

impl Run {
    /// Closes everything that belonged to the process, because the process has ended.
    fn process_gone(&mut self, conversation: &mut Arc<Conversation>) {
        self.attempt.in_turn = false;
        self.attempt.waiting_call = None;
        self.attempt.permissions.clear();
        self.attempt.confirm_model();
        if conversation.is_interrupted() {
            Arc::make_mut(conversation).forget_interrupts();
        }
        if self.attempt.has_started() {
            Arc::make_mut(conversation).lose_process();
        }
        if self.attempt.has_started() && !self.attempt.capabilities.resumes {
            Arc::make_mut(conversation).forget(false);
        }
    }
}
