//! The books: what the log says, counted plainly, and what has to be true of it.

use super::Work;
use crate::child::{Child, usage};
use hatchery_core::event::{AgentEvent, MessageEvent, RunEvent};
use hatchery_core::history::{HistoryMessage, TURN_INTERRUPTED, mark_interrupted, ranges};
use hatchery_core::run::{Delivery, DeliveryKind, RunState, StopWhy};
use hatchery_core::usage::Usage;
use hatchery_core::{AgentId, Cause, Event, EventId, Exit, MessageKind, Record, Stream, World, plan};
use std::collections::{BTreeMap, BTreeSet};

/// What the log says, counted plainly.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) heard: BTreeSet<EventId>,
    pub(super) ended: BTreeSet<(AgentId, u32)>,
    pub(super) spent: BTreeMap<AgentId, Usage>,
    pub(super) died: BTreeSet<AgentId>,
    pub(super) agents: Vec<AgentId>,
    /// What each agent said, in order.
    pub(super) said: BTreeMap<AgentId, Vec<String>>,
}

impl Work {
    /// Whatever is open is wanted or waits for its time, and nothing else is.
    pub(super) fn assert_nothing_is_stranded(&self) {
        let plan = plan(&self.world);
        for (agent, run) in self.world.runs() {
            match &run.state {
                RunState::Parked { until, .. } => {
                    assert!(plan.wake_at.is_some_and(|at| Some(at) <= *until), "nobody looks at {agent} again");
                    assert!(!plan.runs.contains_key(&agent));
                }
                RunState::Ended { .. } => assert!(!plan.runs.contains_key(&agent), "{agent} is at rest"),
                RunState::Starting
                | RunState::Spawned { .. }
                | RunState::Running { .. }
                | RunState::Stopping { .. } => {
                    let wanted = plan.runs.get(&agent).unwrap_or_else(|| panic!("nobody sees to {agent}: {run:?}"));
                    assert_eq!((wanted.run, wanted.attempt), (run.number, run.attempt.number));
                }
            }
        }
    }

    /// Nobody is told to go on who was not broken off, nobody leaves with something to hear, and nothing is taken back that
    /// waits.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others need none")]
    pub(super) fn assert_for_a_reason(&self, record: &Record, after: &World) {
        let agent = match record.event.stream() {
            Stream::Agent(agent) => agent,
            Stream::Session(_)
            | Stream::Mail(_)
            | Stream::Quest(_)
            | Stream::Registry
            | Stream::Seats
            | Stream::Status
            | Stream::Request(_) => return,
        };
        let state = self.world.run(agent).map(|run| &run.state);
        let waits = after.conversation(agent).map(|conversation| conversation.waiting.clone()).unwrap_or_default();
        match &record.event {
            Event::Run { what: RunEvent::Resumed, .. }
                if waits.contains(&Delivery { id: record.id, what: DeliveryKind::Nudge }) =>
            {
                let crashed = matches!(
                    self.history.last(),
                    Some(Record { event: Event::Run { what: RunEvent::Crashed { .. }, .. }, .. })
                );
                assert!(crashed || matches!(state, Some(RunState::Parked { .. })), "{agent} was not broken off");
            }
            Event::Run { what: RunEvent::Ended { cause: Cause::Completed | Cause::UserEnded, .. }, .. } => {
                let stopped = matches!(state, Some(RunState::Stopping { .. } | RunState::Parked { .. }));
                assert!(stopped || waits.is_empty(), "{agent} leaves with {waits:?} unheard");
            }
            _ => {}
        }
    }

    /// Its conversation contains every message that counts.
    pub(super) fn assert_heard_everything(&self, agent: AgentId) {
        let conversation = self.world.conversation(agent).expect("it was run");
        assert!(conversation.waiting.is_empty(), "{agent} has heard all: {:?}", conversation.waiting);
        let harness_session = conversation.harness_session.as_ref().expect("it was started");
        let knows = &self.harness.harness_sessions[&harness_session.session].knows;
        let said: BTreeSet<EventId> = self.messages(agent).iter().map(|said| said.id).collect();
        let lost: Vec<_> = said.difference(knows).collect();
        assert!(lost.is_empty(), "{agent} has never heard {lost:?}");
    }

    /// What each process said is in the history once and in order, and what it used is counted once.
    pub(super) fn assert_adds_up(&self) {
        let mut days = Usage::default();
        for agent in &self.tally.agents {
            let children = || self.folders.values().filter(|child| child.of.agent == *agent);
            let all: Vec<String> = children().flat_map(|child| child.said.iter().cloned()).collect();
            let known = self.tally.said.get(agent).cloned().unwrap_or_default();
            match self.tally.died.contains(agent) {
                false => assert_eq!(known, all, "{agent} said this"),
                true => assert!(all.starts_with(&known), "{agent} said this before it died"),
            }
            let spent = self.tally.spent.get(agent).copied().unwrap_or_default();
            assert_eq!(spent, usage(children().map(|child| child.used).sum()), "{agent} has spent this");
            assert_eq!(
                self.world.conversation(*agent).map(|conversation| conversation.spent).unwrap_or_default(),
                spent,
                "{agent}"
            );
            let runs = self.world.past_runs(*agent).fold(Usage::default(), |sum, (_, past)| sum + past.spent);
            assert_eq!(runs, spent, "the runs of {agent}");
            days += spent;
        }
        assert_eq!(self.world.days().fold(Usage::default(), |sum, (_, day)| sum + *day), days, "all days");
        for (agent, run) in self.world.runs() {
            let numbers: Vec<u32> =
                self.tally.ended.range((agent, 0)..=(agent, u32::MAX)).map(|(_, run)| *run).collect();
            assert_eq!(numbers, (1..=run.number).collect::<Vec<_>>(), "each run of {agent} has ended once");
        }
        assert!(!self.folders.values().any(Child::lives), "nothing is left behind");
    }

    /// The messages to an agent that count.
    pub(super) fn messages(&self, agent: AgentId) -> Vec<HistoryMessage> {
        let parts = ranges(&self.world, agent);
        let within = |after: EventId, upto: EventId| {
            let [after, upto] = [after, upto].map(|id| self.history.partition_point(|record| record.id <= id));
            self.history[after..upto].iter()
        };
        let mut said: Vec<HistoryMessage> = (parts.iter())
            .flat_map(|part| {
                within(part.after, part.upto).filter_map(|record| {
                    let Event::Message(MessageEvent::Added { agent, kind, content, source_id, .. }) =
                        record.event.clone()
                    else {
                        return None;
                    };
                    let said = HistoryMessage { id: record.id, agent, kind, content, source_id, interrupted: false };
                    (agent == part.agent).then_some(said)
                })
            })
            .collect();
        mark_interrupted(&mut said);
        said.retain(|said| said.kind == MessageKind::User && said.reaches_model());
        said
    }

    /// What a history must have met at least once, over all seeds, besides refusals.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only some of them are of interest")]
    pub(super) fn note(&mut self, record: &Record, after: &World) {
        let what = |agent, id| {
            let conversation =
                after.conversation(agent).into_iter().flat_map(|conversation| conversation.waiting.iter());
            conversation.copied().find(|delivery: &Delivery| delivery.id == id).map(|delivery| delivery.what)
        };
        let met = match &record.event {
            Event::Run { what: RunEvent::Spawned { copy_of: Some(_), .. }, .. } => "copied",
            Event::Run { of, what: RunEvent::Resumed } => match what(of.agent, record.id) {
                Some(DeliveryKind::Nudge) => "nudged",
                Some(DeliveryKind::Briefing) => "briefed anew",
                _ => "said while it left",
            },
            Event::Run { of, what: RunEvent::MessageHeard { .. } }
                if self.world.run(of.agent).is_some_and(|run| run.attempt.in_turn && run.attempt.has_confirmed) =>
            {
                "heard in mid-turn"
            }
            Event::Message(MessageEvent::Added { content, .. }) if content == TURN_INTERRUPTED => "interrupted",
            Event::Run { what: RunEvent::CallTaken { refused: None, .. }, .. } => "call taken",
            Event::Run { what: RunEvent::CallTaken { .. }, .. } => "call refused",
            Event::Run { what: RunEvent::Silent { .. }, .. } => "silent",
            Event::Run { what: RunEvent::Stopping { why: StopWhy::NotReady { .. } }, .. } => "gate",
            Event::Run { what: RunEvent::Stopping { why: StopWhy::Killed }, .. } => "died at work",
            Event::Run { what: RunEvent::Parked { .. }, .. } => "parked",
            Event::Run { what: RunEvent::Crashed { forgotten: true, .. }, .. } => "conversation lost",
            Event::Run { what: RunEvent::Crashed { cause: Cause::LostWithMachine, .. }, .. } => "lost with its machine",
            Event::Run { what: RunEvent::Crashed { detail, .. }, .. } if detail.contains("received its message") => {
                "deaf to the end"
            }
            Event::Run { what: RunEvent::Crashed { .. }, .. } => "crashed",
            Event::Agent { what: AgentEvent::Woken { .. }, .. } => "woken",
            Event::Run { what: RunEvent::Ended { cause: Cause::Completed, .. }, .. } => "completed",
            Event::Run { what: RunEvent::Ended { cause: Cause::Stuck, .. }, .. } => "stuck",
            Event::Run { what: RunEvent::Ended { exit: Exit::NotStarted, cause: Cause::Crashed, .. }, .. } => {
                "not started"
            }
            Event::Run { of, what: RunEvent::Ended { .. } }
                if self.world.run(of.agent).is_some_and(|run| matches!(run.state, RunState::Parked { .. })) =>
            {
                "parked run ended"
            }
            Event::Run { what: RunEvent::Ended { cause: Cause::Crashed, .. }, .. } => "retries spent",
            Event::Run { what: RunEvent::Ended { detail, .. }, .. } if detail == "its session ended" => {
                "ended with its session"
            }
            _ => return,
        };
        self.met.insert(met);
    }
}

impl Tally {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only some of them are counted")]
    pub(super) fn count(&mut self, record: &Record) {
        match &record.event {
            Event::Agent { agent, what: AgentEvent::Created { .. } } => self.agents.push(*agent),
            Event::Agent { agent, what: AgentEvent::Killed { .. } } => {
                self.died.insert(*agent);
            }
            Event::Run { what: RunEvent::MessageHeard { message }, .. } => {
                assert!(self.heard.insert(*message), "{message} is heard once")
            }
            Event::Message(MessageEvent::Added { agent, kind: MessageKind::Assistant, content, .. }) => {
                self.said.entry(*agent).or_default().push(content.clone());
            }
            Event::Run { of, what: RunEvent::Metered { used, .. } } => {
                *self.spent.entry(of.agent).or_default() += *used
            }
            Event::Run { of, what: RunEvent::TurnEnded { spent, metered, .. } } => {
                let sum = self.spent.entry(of.agent).or_default();
                *sum = sum.replacing(*metered, *spent);
            }
            Event::Run { of, what: RunEvent::Ended { .. } } => {
                assert!(self.ended.insert((of.agent, of.run)), "{of:?} ends once")
            }
            _ => {}
        }
    }
}
