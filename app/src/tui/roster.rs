//! Who there is: agents, quests and open questions as the daemon told them last, and what was heard since. The rules about states are
//! the daemon's; here they only get a glyph and words.

use super::text;
use crate::http::{
    AgentOverview, AgentState, AgentView, BudgetView, Overview, QuestLine, QuestionView, RunPhase, RunView,
};
use crate::mail_reader::Header;
use crate::quest_document::{QuestDocument, QuestWord};
use hatchery_core::ask::About;
use hatchery_core::outcome::Cause;
use hatchery_core::quest::StepStatus;
use hatchery_core::usage::{Money, Usage};
use hatchery_core::why::{Activity, Evidence};
use hatchery_core::{AgentId, EventId, QuestId, Timestamp};
use std::collections::BTreeMap;

/// An agent at work that was not heard for so long is quiet.
const QUIET_MS: i64 = 30_000;
/// How many agents are listed as done.
pub const MAX_DONE: usize = 8;

#[derive(Debug, Default)]
pub struct Roster {
    /// The last event that it includes.
    pub head: EventId,
    pub agents: BTreeMap<AgentId, RosterAgent>,
    pub agent_count: usize,
    pub quests: Vec<QuestLine>,
    pub documents: BTreeMap<QuestId, QuestDocument>,
    pub questions: Vec<QuestionView>,
    pub budgets: Vec<BudgetView>,
    pub today: Usage,
    pub mail: Vec<Header>,
    pub trouble: Option<String>,
    /// The daemon has not listed agents that were last active before this.
    unlisted_before: Option<Timestamp>,
    /// Rings stand still (`motion = false`).
    pub still: bool,
    /// Living agents in the order of the tree.
    order: Vec<AgentId>,
    /// The agent without a parent.
    root: Option<AgentId>,
}

#[derive(Debug)]
pub struct RosterAgent {
    pub view: AgentView,
    pub run: Option<RunView>,
    pub evidence: Vec<Evidence>,
    pub stall_ms: Option<u64>,
    /// Turns one step with everything that is heard from it.
    pub ring: usize,
    /// When it was last heard.
    pub heard: Timestamp,
    /// A tool of it runs since then.
    pub tool_since: Option<Timestamp>,
    /// What it said since you looked.
    pub fresh: usize,
}

/// What an agent is, as far as its glyph is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Asks,
    Silent,
    BudgetUsed,
    Working,
    Starting,
    Stopping,
    Listening,
    Resting,
    Done,
    Parked,
    Asleep,
    Hatching,
    Crashed,
    Failed,
    Dead,
}

/// Something that only the user can decide.
#[derive(Clone, Copy, Debug)]
pub enum Need<'a> {
    Question(&'a QuestionView),
    FailedStep { quest: &'a QuestDocument, step: usize },
}

impl Need<'_> {
    pub fn since(&self) -> Timestamp {
        match self {
            Self::Question(question) => question.asked,
            Self::FailedStep { quest, step } => quest.steps[*step].since,
        }
    }

    pub fn agent(&self) -> Option<AgentId> {
        match self {
            Self::Question(question) => Some(question.agent),
            Self::FailedStep { quest, step } => {
                let step = &quest.steps[*step];
                step.agent.or_else(|| step.agents.last().map(|it| it.agent))
            }
        }
    }

    /// What tells it from the others.
    pub fn key(&self) -> String {
        match self {
            Self::Question(question) => format!("q{}", question.id),
            Self::FailedStep { quest, step } => format!("f{}/{}", quest.id, quest.steps[*step].id),
        }
    }
}

impl State {
    pub fn glyph(self, ring: usize) -> &'static str {
        match self {
            Self::Asks | Self::Silent | Self::BudgetUsed => "?",
            Self::Working | Self::Starting | Self::Stopping => super::look::RING[ring % 4],
            Self::Listening | Self::Resting => "◦",
            Self::Done => "✓",
            Self::Parked => "⊜",
            Self::Asleep => "☾",
            Self::Hatching => "◍",
            Self::Crashed | Self::Failed => "⊗",
            Self::Dead => "✕",
        }
    }

    pub fn ink(self) -> super::look::Ink {
        use super::look::Ink;
        match self {
            Self::Asks | Self::Silent | Self::BudgetUsed => Ink::AccentFilled,
            Self::Working | Self::Starting | Self::Stopping => Ink::Good,
            Self::Parked | Self::Asleep | Self::Hatching => Ink::Warn,
            Self::Crashed | Self::Failed => Ink::Bad,
            Self::Listening | Self::Resting | Self::Done | Self::Dead => Ink::Dim,
        }
    }

    /// Its name, where there is room for nothing else.
    pub fn word(self) -> &'static str {
        match self {
            Self::Asks => "asks you",
            Self::Silent => "silent",
            Self::BudgetUsed => "no budget",
            Self::Working => "working",
            Self::Starting => "starting",
            Self::Stopping => "stopping",
            Self::Listening => "listening",
            Self::Resting => "resting",
            Self::Done => "done",
            Self::Parked => "parked",
            Self::Asleep => "asleep",
            Self::Hatching => "hatching",
            Self::Crashed => "crashed",
            Self::Failed => "failed",
            Self::Dead => "dead",
        }
    }

    pub fn is_at_work(self) -> bool {
        matches!(self, Self::Working | Self::Starting | Self::Stopping)
    }
}

impl Roster {
    /// The daemon's answer. What was heard since it was made stays.
    pub fn take(&mut self, overview: Overview) {
        let mut before = std::mem::take(&mut self.agents);
        let is_idle = |seen: &&AgentOverview| {
            seen.agent.parent.is_some() && seen.run.as_ref().is_none_or(|run| run.phase == RunPhase::Ended)
        };
        let oldest = overview.agents.iter().filter(is_idle).map(|seen| seen.agent.last_active).min();
        self.unlisted_before = oldest.filter(|_| overview.agent_count > overview.agents.len());
        for seen in overview.agents {
            let known = before.remove(&seen.agent.id);
            let heard = seen.run.as_ref().map_or(seen.agent.last_active, |run| run.last_output);
            let tool = seen
                .agent
                .doing
                .as_ref()
                .filter(|doing| doing.tool.is_some() && seen.agent.open_tools > 0)
                .map(|doing| doing.at);
            let agent = RosterAgent {
                ring: known.as_ref().map_or(1, |it| it.ring),
                heard: known.as_ref().map_or(heard, |it| it.heard.max(heard)),
                tool_since: known.as_ref().map_or(tool, |it| it.tool_since.or(tool)),
                fresh: known.as_ref().map_or(0, |it| it.fresh),
                view: seen.agent,
                run: seen.run,
                evidence: seen.evidence,
                stall_ms: seen.stall_ms,
            };
            self.agents.insert(agent.view.id, agent);
        }
        // Others that were looked at stay as they were, so that no agent vanishes while the user reads.
        self.agents.append(&mut before);
        self.head = overview.head;
        self.agent_count = overview.agent_count;
        self.quests = overview.quests;
        self.questions = overview.questions;
        self.budgets = overview.budgets;
        self.today = overview.today;
        self.mail = overview.mail;
        self.trouble = overview.trouble;
        self.sort();
    }

    /// One agent that was asked for by itself.
    pub fn take_agent(&mut self, view: AgentView) {
        if let Some(known) = self.agents.get_mut(&view.id) {
            known.evidence = view.evidence.clone().into_iter().collect();
            known.view = view;
            return;
        }
        self.add(view);
        self.sort();
    }

    /// Those of many agents that are not known yet.
    pub fn take_others(&mut self, views: Vec<AgentView>) {
        for view in views {
            if !self.agents.contains_key(&view.id) {
                self.add(view);
            }
        }
        self.sort();
    }

    fn add(&mut self, view: AgentView) {
        let heard = view.last_active;
        let evidence = view.evidence.clone().into_iter().collect();
        let agent =
            RosterAgent { view, run: None, evidence, stall_ms: None, ring: 1, heard, tool_since: None, fresh: 0 };
        self.agents.insert(agent.view.id, agent);
    }

    /// Whether it sits or sat in a seat, as far as is known.
    pub fn has_seat(&self, agent: AgentId) -> bool {
        self.agents.get(&agent).is_some_and(|it| it.view.seat.is_some())
    }

    pub fn name(&self, agent: AgentId) -> String {
        match self.agents.get(&agent).and_then(|it| it.view.name.as_deref()) {
            Some(name) => text::clean(name).into_owned(),
            None if self.root() == Some(agent) => "root".to_owned(),
            None => short(agent),
        }
    }

    pub fn root(&self) -> Option<AgentId> {
        self.root
    }

    /// The living in the order of the tree.
    pub fn order(&self) -> &[AgentId] {
        &self.order
    }

    pub fn children(&self, of: AgentId) -> Vec<AgentId> {
        let mut children: Vec<&RosterAgent> = self.agents.values().filter(|it| it.view.parent == Some(of)).collect();
        children.sort_by_key(|it| (it.view.created, it.view.id));
        children.into_iter().map(|it| it.view.id).collect()
    }

    #[cfg(test)]
    pub fn sort_for_tests(&mut self) {
        self.sort();
    }

    fn sort(&mut self) {
        let mut below: BTreeMap<Option<AgentId>, Vec<&RosterAgent>> = BTreeMap::new();
        let root = self.agents.values().find(|agent| agent.view.parent.is_none()).map(|agent| agent.view.id);
        for agent in self.agents.values() {
            let parent = agent.view.parent.filter(|parent| self.agents.contains_key(parent)).or(root);
            if Some(agent.view.id) != root {
                below.entry(parent).or_default().push(agent);
            }
        }
        // As in the tree: the ones of a quest stand together, after the others. Those that are asleep come last.
        let quests: BTreeMap<QuestId, usize> = self.quests.iter().enumerate().map(|(at, it)| (it.id, at)).collect();
        for children in below.values_mut() {
            children.sort_by_key(|it| {
                let quest = it.view.assignment.as_ref().map(|it| quests.get(&it.quest).copied().unwrap_or(usize::MAX));
                (it.view.state == AgentState::Sleeping, quest, it.view.created, it.view.id)
            });
        }
        let is_living = |id: &AgentId| self.agents.get(id).is_some_and(|agent| agent.view.state.is_living());
        let mut order: Vec<AgentId> = root.into_iter().filter(is_living).collect();
        let mut open: Vec<&RosterAgent> =
            below.get(&root).map(|them| them.iter().rev().copied().collect()).unwrap_or_default();
        while let Some(agent) = open.pop() {
            if agent.view.state.is_living() {
                order.push(agent.view.id);
            }
            open.extend(below.get(&Some(agent.view.id)).into_iter().flatten().rev().copied());
        }
        (self.order, self.root) = (order, root);
    }

    /// The question that an agent waits for.
    pub fn question_of(&self, agent: AgentId) -> Option<&QuestionView> {
        self.questions.iter().find(|question| question.agent == agent)
    }

    /// Who needs the user, the oldest first.
    pub fn needs(&self) -> Vec<Need<'_>> {
        let mut needs: Vec<Need<'_>> = self.questions.iter().map(Need::Question).collect();
        for quest in self.documents.values().filter(|quest| quest.state == QuestWord::Open) {
            for (step, it) in quest.steps.iter().enumerate() {
                if it.status == StepStatus::Failed && it.question.is_none() {
                    needs.push(Need::FailedStep { quest, step });
                }
            }
        }
        needs.sort_by_key(Need::since);
        needs
    }

    pub fn need_count(&self) -> usize {
        self.needs().len()
    }

    pub fn working(&self) -> impl Iterator<Item = &RosterAgent> {
        self.agents.values().filter(|agent| self.state(agent).is_at_work())
    }

    /// Who works, in the order of the tree. Those that have been quiet for a while come last.
    pub fn workers(&self, now: Timestamp) -> Vec<&RosterAgent> {
        let places: BTreeMap<AgentId, usize> = self.order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let mut workers: Vec<&RosterAgent> = self.working().collect();
        workers.sort_by_key(|agent| (now.0 - agent.heard.0 > QUIET_MS, places.get(&agent.view.id).copied()));
        workers
    }

    /// Agents that have finished something today, the last one first.
    pub fn done_today(&self, now: Timestamp) -> Vec<&RosterAgent> {
        let recent = |agent: &&RosterAgent| now.0 - agent.view.last_active.0 < super::draw::TODAY_MS;
        let mut done: Vec<&RosterAgent> = self
            .agents
            .values()
            .filter(|agent| agent.run.is_some())
            .filter(recent)
            .filter(|agent| matches!(self.state(agent), State::Done | State::Resting))
            .collect();
        done.sort_by_key(|agent| std::cmp::Reverse(agent.view.last_active));
        done
    }

    /// Whether more agents may be done today than are known here: the daemon lists those that were active last.
    pub fn more_done_today(&self, now: Timestamp) -> bool {
        self.unlisted_before.is_some_and(|at| now.0 - at.0 < super::draw::TODAY_MS)
    }

    /// The keys of what stands below the needs in Home, from the top: who works, and what is done.
    pub fn below_needs(&self, now: Timestamp) -> Vec<String> {
        self.workers(now)
            .into_iter()
            .chain(self.done_today(now).into_iter().take(MAX_DONE))
            .map(|agent| agent_key(agent.view.id))
            .collect()
    }

    pub fn state(&self, agent: &RosterAgent) -> State {
        match agent.view.state {
            AgentState::Dead | AgentState::Expired => return State::Dead,
            AgentState::Hatching if agent.run.is_none() => return State::Hatching,
            AgentState::Sleeping => return State::Asleep,
            AgentState::Hatching | AgentState::Alive => {}
        }
        if let Some(question) = self.question_of(agent.view.id) {
            return match question.about {
                About::Silence(_) => State::Silent,
                About::Budget { .. } | About::QuestBudget { .. } => State::BudgetUsed,
                _ => State::Asks,
            };
        }
        match agent.view.activity {
            Activity::Dead | Activity::Expired => State::Dead,
            Activity::Working => State::Working,
            Activity::Starting if agent.run.as_ref().is_some_and(|run| run.attempts > 1 && run.pid.is_none()) => {
                State::Crashed
            }
            // It is parked for a moment before it is started again.
            Activity::Parked if agent.run.as_ref().is_some_and(|run| run.cause == Some(Cause::Crashed)) => {
                State::Crashed
            }
            Activity::Starting => State::Starting,
            Activity::Stopping => State::Stopping,
            Activity::Listening if agent.fresh > 0 => State::Done,
            Activity::Listening => State::Listening,
            Activity::Silent => State::Silent,
            Activity::Parked => State::Parked,
            Activity::Resting => match agent.run.as_ref().map(|run| (run.phase, run.cause)) {
                Some((RunPhase::Ended, Some(Cause::Completed | Cause::UserEnded | Cause::Killed)))
                    if agent.fresh > 0 =>
                {
                    State::Done
                }
                Some((RunPhase::Ended, Some(Cause::Completed | Cause::UserEnded | Cause::Killed))) => State::Resting,
                Some((RunPhase::Ended, Some(_))) => State::Failed,
                _ => State::Resting,
            },
        }
    }

    /// What it may spend, if that is limited.
    pub fn budget(&self, agent: AgentId) -> Option<Money> {
        self.budgets.iter().find(|budget| budget.agent == Some(agent)).map(|budget| budget.limit)
    }

    /// Something was heard of an agent.
    pub fn hear(&mut self, agent: AgentId, at: Timestamp, is_current: bool, counts: bool) {
        if let Some(known) = self.agents.get_mut(&agent) {
            known.ring = (known.ring + usize::from(!self.still)) % 4;
            known.heard = known.heard.max(at);
            if counts && !is_current {
                known.fresh += 1;
            }
        }
    }

    pub fn looked_at(&mut self, agent: AgentId) {
        if let Some(known) = self.agents.get_mut(&agent) {
            known.fresh = 0;
        }
    }

    /// The row of an agent among the living, from 1.
    pub fn place(&self, agent: AgentId) -> Option<usize> {
        self.order.iter().position(|other| *other == agent).map(|at| at + 1)
    }

    /// The agents that a reference may mean: an id, the beginning of one, or a name.
    pub fn find(&self, reference: &str) -> Vec<AgentId> {
        let reference = reference.trim_start_matches('@');
        let named: Vec<AgentId> =
            self.agents.values().filter(|it| it.view.name.as_deref() == Some(reference)).map(|it| it.view.id).collect();
        if !named.is_empty() {
            let living: Vec<AgentId> = named
                .iter()
                .copied()
                .filter(|id| self.agents.get(id).is_some_and(|it| it.view.state.is_living()))
                .collect();
            return if living.is_empty() { named } else { living };
        }
        if reference == "root" {
            return self.root().into_iter().collect();
        }
        match reference.len() >= 4 {
            true => self.agents.keys().copied().filter(|id| id.to_string().starts_with(reference)).collect(),
            false => Vec::new(),
        }
    }
}

/// What tells an agent in Home from the needs.
pub fn agent_key(agent: AgentId) -> String {
    format!("a{agent}")
}

/// The beginning of an id, as it is shown beside a name.
pub fn short(agent: AgentId) -> String {
    agent.to_string().chars().take(4).collect()
}

/// `$1.18`: whole cents, and less where there is less.
pub fn dollars(money: Money) -> String {
    const CENT: u64 = 10_000_000;
    let cents = money.nanodollars.saturating_add(CENT / 2) / CENT;
    match (money.nanodollars, cents) {
        (0, _) => "$0".to_owned(),
        (_, 0) => "$0.00".to_owned(),
        (_, cents) if cents % 100 == 0 => format!("${}", cents / 100),
        (_, cents) => format!("${}.{:02}", cents / 100, cents % 100),
    }
}
