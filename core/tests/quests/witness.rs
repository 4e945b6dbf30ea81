//! What the log says about quests, told a second time without the core's world, and plainly. Folding asserts that each record may
//! follow those before it; [`Witness::agrees_with`] asserts that the core tells the same story.

use hatchery_core::event::{AgentEvent, QuestEvent, QuestionEvent, RunEvent, StepEvent};
use hatchery_core::outcome::Cause;
use hatchery_core::quest::{
    Isolation, Merge, QuestSpec, SlotWork, StepId, StepPlan, StepState, StepStatus, Verdict, WardSpec,
};
use hatchery_core::roles::{Phase, WARD};
use hatchery_core::run::{AttemptId, StopWhy};
use hatchery_core::{AgentId, Event, EventId, QuestId, Record, World};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Default)]
pub struct Witness {
    pub quests: BTreeMap<QuestId, Tale>,
    /// Crashes, by agent and run.
    crashes: BTreeMap<(AgentId, u32), u32>,
    /// Runs that have signalled.
    signalled: BTreeSet<(AgentId, u32)>,
    /// How the last run of an agent ended, and why it was stopped, if it was.
    ended: BTreeMap<AgentId, Cause>,
    stopping: BTreeMap<AgentId, StopWhy>,
    /// Forks of agents of steps, with the step and whether their run is open.
    forks: BTreeMap<AgentId, (QuestId, StepId, bool)>,
    /// Questions that were asked and are open.
    questions: BTreeSet<EventId>,
}

#[derive(Clone)]
pub struct Tale {
    quest_spec: QuestSpec,
    open: bool,
    over: bool,
    pub steps: BTreeMap<StepId, Part>,
    plans: BTreeMap<StepId, StepPlan>,
}

#[derive(Clone, Default, Debug)]
pub struct Part {
    /// Who or what holds its slot.
    holder: Option<Holder>,
    begun: bool,
    complete: bool,
    failed: bool,
    /// The last word of its ward, and whether an agent has worked since.
    warded: Option<bool>,
    worked_since: bool,
    merged: bool,
    /// It was begun when its quest had no ward, and may have passed by it.
    excused: bool,
    /// The ward that it is at is not that of its quest any more.
    outdated: bool,
    /// Its agent has handed in a plan that waits for consent, and may go on with it before the steps that it has planned.
    unapproved: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    Agent(AgentId),
    Ward(u32),
    Merge(u32),
}

impl Witness {
    pub fn fold(&mut self, record: &Record) {
        match &record.event {
            Event::Quest { quest, what: QuestEvent::Created { quest_spec, .. } } => {
                let names = [StepId::requirements(), StepId::plan(), StepId::review()];
                let steps = names.into_iter().map(|step| (step, Part::default())).collect();
                let quest_spec = (**quest_spec).clone();
                let tale = Tale { quest_spec, open: true, over: false, steps, plans: BTreeMap::new() };
                assert!(self.quests.insert(*quest, tale).is_none(), "{quest} begins once");
            }
            Event::Quest { quest, what: QuestEvent::Paused } => {
                assert!(std::mem::take(&mut self.going(*quest).open), "it was open")
            }
            Event::Quest { quest, what: QuestEvent::Resumed } => self.going(*quest).open = true,
            Event::Quest { quest, what: QuestEvent::Abandoned } => self.going(*quest).over = true,
            Event::Quest { quest, what: QuestEvent::Completed } => self.going(*quest).ends(),
            Event::Quest { quest, what: QuestEvent::WardChanged { command, limit_ms } } => {
                self.going(*quest).ward(command, *limit_ms)
            }
            Event::Quest { quest, what: QuestEvent::WardRemoved } => {
                let tale = self.going(*quest);
                assert!(tale.quest_spec.ward.take().is_some(), "it has one");
                tale.outdate();
            }
            Event::Quest { quest, what: QuestEvent::StepsPlanned { steps, by, needs_consent, .. } } => {
                self.going(*quest).plan(steps, by.as_ref(), *needs_consent)
            }
            Event::Step { quest, step, what: StepEvent::Queued { consented, .. } } => {
                let part = self.part(*quest, step);
                assert!(!part.complete, "{step} is complete");
                assert!(part.unapproved || !consented, "{step} was not asked about");
                part.unapproved &= !consented;
                (part.holder, part.failed, part.outdated) = (None, false, false);
            }
            Event::Step { quest, step, what: StepEvent::Begun { agent, .. } } => {
                self.going(*quest).begin(step, Holder::Agent(*agent));
                let part = self.part(*quest, step);
                (part.begun, part.worked_since, part.merged) = (true, true, false);
            }
            Event::Step { quest, step, what: StepEvent::Forked { agent, .. } } => {
                self.part(*quest, step);
                assert!(self.forks.insert(*agent, (*quest, step.clone(), false)).is_none(), "{agent} is forked once");
            }
            Event::Step { what: StepEvent::ForkQueued { agent }, .. } => assert!(self.forks.contains_key(agent)),
            Event::Step { quest, step, what: StepEvent::WardBegun { number } } => {
                self.nobody_else_works_on(*quest, step);
                let tale = self.going(*quest);
                assert!(tale.quest_spec.ward.is_some(), "there is a ward");
                tale.begin(step, Holder::Ward(*number));
            }
            Event::Step { quest, step, what: StepEvent::MergeBegun { number } } => {
                self.nobody_else_works_on(*quest, step);
                self.going(*quest).begin(step, Holder::Merge(*number))
            }
            Event::Step { quest, step, what: StepEvent::WardEnded { number, verdict, .. } } => {
                let part = self.part(*quest, step);
                assert_eq!(part.holder.take(), Some(Holder::Ward(*number)), "{step} was at it");
                assert!(!part.outdated, "what another ward says of {step} does not count");
                (part.warded, part.worked_since) = (Some(*verdict == Verdict::Green), false);
            }
            Event::Step { quest, step, what: StepEvent::MergeEnded { number, merge, .. } } => {
                let part = self.part(*quest, step);
                assert_eq!(part.holder.take(), Some(Holder::Merge(*number)), "{step} was at it");
                part.merged = matches!(merge, Merge::Merged | Merge::Empty);
            }
            Event::Step { quest, step, what: StepEvent::SignalGiven { of, .. } } => {
                assert_eq!(self.part(*quest, step).holder, Some(Holder::Agent(of.agent)), "it is at work on {step}");
                assert!(self.signalled.insert((of.agent, of.run)), "{of:?} signals once");
            }
            Event::Step { quest, step, what: StepEvent::Waits { .. } } => {
                let part = self.part(*quest, step);
                (part.holder, part.outdated) = (None, false);
            }
            Event::Step { quest, step, what: StepEvent::Parked { .. } } => self.part(*quest, step).holder = None,
            Event::Step { quest, step, what: StepEvent::Failed { .. } } => self.fail(*quest, step),
            Event::Step { quest, step, what: StepEvent::Completed { .. } } => {
                self.nobody_else_works_on(*quest, step);
                self.going(*quest).complete(step)
            }
            Event::Step { quest, step, what: StepEvent::Dropped } => {
                let part = self.going(*quest).steps.remove(step).expect("it was there");
                assert!(!part.complete, "{step} is complete and stays");
            }
            Event::Quest { what: QuestEvent::BudgetSet { .. }, .. }
            | Event::Quest { what: QuestEvent::RequirementsSet { .. }, .. } => {}
            Event::Run { of, what: RunEvent::Crashed { .. } } => {
                let crashes = self.crashes.entry((of.agent, of.run)).or_default();
                *crashes += 1;
                assert!(*crashes <= 3, "{of:?} is resumed after a crash at most three times");
            }
            Event::Agent { agent, what: AgentEvent::RunRequested { .. } } => {
                self.stopping.remove(agent);
                if let Some((quest, _, open)) = self.forks.get_mut(agent) {
                    *open = true;
                    let tale = &self.quests[quest];
                    assert!(tale.open && !tale.over, "nothing begins in a quest that is paused or over");
                }
            }
            Event::Run { of, what: RunEvent::Stopping { why } } => {
                self.stopping.insert(of.agent, why.clone());
            }
            Event::Run { of, what: RunEvent::Ended { cause, .. } } => {
                self.ended.insert(of.agent, *cause);
                self.forks.entry(of.agent).and_modify(|(_, _, open)| *open = false);
            }
            Event::Question { what: QuestionEvent::Asked { .. }, .. } => assert!(self.questions.insert(record.id)),
            Event::Question { what: QuestionEvent::Answered { question, .. }, .. }
            | Event::Question { what: QuestionEvent::Withdrawn { question }, .. } => {
                assert!(self.questions.remove(question), "{question} is answered once");
            }
            other => assert!(!matches!(other.stream(), hatchery_core::Stream::Quest(_)), "{other:?} is told"),
        }
    }

    /// Neither a stop nor a pause, nor a wait, makes a step fail: only a crash, a red ward or a conflict does.
    fn fail(&mut self, quest: QuestId, step: &StepId) {
        let holder = self.part(quest, step).holder.take();
        if let Some(Holder::Agent(agent)) = holder {
            let cause = self.ended.get(&agent);
            let hopeless = [Cause::PromptTooLong, Cause::Refused, Cause::OutputTooLong];
            let crash = [&[Cause::Crashed, Cause::LostWithMachine], &hopeless[..]].concat();
            assert!(cause.is_some_and(|cause| crash.contains(cause)), "{step} fails by {cause:?}");
            let stopped = self.stopping.get(&agent);
            assert!(
                stopped.is_none_or(|why| matches!(why, StopWhy::NotReady { .. })),
                "{step} was stopped: {stopped:?}"
            );
        }
        let part = self.part(quest, step);
        assert!(!part.complete && !part.failed, "{step} fails once");
        part.failed = true;
    }

    /// Forks end before anything else happens to their step.
    fn nobody_else_works_on(&self, quest: QuestId, step: &StepId) {
        let works = |(of, at, open): &&(QuestId, StepId, bool)| *open && *of == quest && at == step;
        assert_eq!(self.forks.values().find(works), None, "a fork still works on {step}");
    }

    pub fn has_signalled(&self, of: AttemptId) -> bool {
        self.signalled.contains(&(of.agent, of.run))
    }

    fn going(&mut self, quest: QuestId) -> &mut Tale {
        let tale = self.quests.get_mut(&quest).expect("it was begun");
        assert!(!tale.over, "{quest} is over");
        tale
    }

    fn part(&mut self, quest: QuestId, step: &StepId) -> &mut Part {
        self.going(quest).steps.get_mut(step).unwrap_or_else(|| panic!("there is no step {step}"))
    }

    pub fn agrees_with(&self, world: &World) {
        assert_eq!(world.quests().count(), self.quests.len());
        assert!(world.questions().map(|(id, _)| id).eq(self.questions.iter().copied()), "the open questions");
        for (id, quest) in world.quests() {
            let tale = &self.quests[&id];
            assert_eq!(quest.is_over(), tale.over);
            assert!(quest.steps.keys().eq(tale.steps.keys()), "the steps");
            assert!(quest.plans.keys().eq(tale.plans.keys()), "the plans");
            let blocked = tale.blocked();
            let work = |part: &(&StepId, &Part)| !part.0.is_reserved() && !part.1.complete;
            assert_eq!(quest.open as usize, tale.steps.iter().filter(work).count());
            for (name, step) in &quest.steps {
                let (part, status) = (&tale.steps[name], step.status());
                // One that has no station is complete without a word.
                let silent =
                    tale.quest_spec.table.path(step.phase).is_empty() || (*name == StepId::plan() && !part.begun);
                assert!(part.complete == (status == StepStatus::Complete) || silent, "{name}: {part:?} is {status:?}");
                assert_eq!(part.failed, status == StepStatus::Failed, "{name}");
                assert_eq!(blocked.contains(name), status == StepStatus::Blocked, "{name}: {part:?}");
                let holder = match &step.state {
                    StepState::Running(SlotWork::Agent { agent, .. }) => Some(Holder::Agent(*agent)),
                    StepState::Running(SlotWork::Ward(number)) => Some(Holder::Ward(*number)),
                    StepState::Running(SlotWork::Merge(number)) => Some(Holder::Merge(*number)),
                    _ => None,
                };
                assert!(part.holder == holder, "{name}: {part:?}, {:?}", step.state);
            }
            let working = tale.steps.iter().filter(|(_, part)| part.holder.is_some()).map(|(name, _)| name);
            assert!(quest.working.iter().eq(working), "who holds a slot");
            assert!(quest.queue.len() == quest.positions.len());
        }
    }
}

impl Tale {
    fn phase(step: &StepId) -> Phase {
        match step.as_str() {
            "requirements" => Phase::Requirements,
            "plan" => Phase::Plan,
            "review" => Phase::Review,
            _ => Phase::Work,
        }
    }

    /// Whether a step of every quest is done, or there is nothing to do for it.
    fn is_past(&self, step: &StepId) -> bool {
        self.steps[step].complete || self.quest_spec.table.path(Self::phase(step)).is_empty()
    }

    fn begin(&mut self, step: &StepId, holder: Holder) {
        assert!(self.open, "nothing begins in a quest that is paused");
        let (requirements, plan) = (StepId::requirements(), StepId::plan());
        let ready = match Self::phase(step) {
            Phase::Requirements => true,
            Phase::Plan => self.is_past(&requirements),
            Phase::Work => {
                let needs = self.plans.get(step).map(|plan| plan.depends_on.clone()).unwrap_or_default();
                let done = |need: &StepId| self.steps.get(need).is_some_and(|part| part.complete);
                self.is_past(&requirements) && self.is_past(&plan) && needs.iter().all(done)
            }
            Phase::Review => self.steps.iter().all(|(id, part)| id.is_reserved() || part.complete),
        };
        let ready = ready || self.steps[step].unapproved;
        assert!(ready, "{step} begins before its time: {:?}", self.steps);
        let part = self.steps.get_mut(step).expect("it is there");
        assert!(!part.complete && !part.failed && part.holder.is_none(), "{step} may begin: {part:?}");
        part.holder = Some(holder);
        let held = self.steps.values().filter(|part| part.holder.is_some()).count();
        assert!(held <= self.quest_spec.slots as usize, "{held} of {} slots are held", self.quest_spec.slots);
    }

    fn complete(&mut self, step: &StepId) {
        let phase = Self::phase(step);
        // A quest that brings its steps along need not be asked what is wanted.
        if phase == Phase::Requirements && self.steps.values().all(|part| !part.begun) {
            self.steps.get_mut(step).expect("it is there").complete = true;
            return;
        }
        let needs = self.plans.get(step).map(|plan| plan.depends_on.clone()).unwrap_or_default();
        let done = |need: &StepId| self.steps.get(need).is_some_and(|part| part.complete);
        assert!(needs.iter().all(done), "{step} is complete before {needs:?}");
        let path = self.quest_spec.table.path(phase);
        let warded = self.quest_spec.ward.is_some() && path.contains(&WARD.to_owned());
        let last = path.last().is_some_and(|station| station == WARD);
        let part = self.steps.get_mut(step).expect("it is there");
        assert!(!part.complete && !part.failed, "{step} completes once");
        let warded = warded && !part.excused;
        assert!(!warded || part.warded == Some(true), "{step} is green: {part:?}");
        assert!(!(warded && last && part.worked_since), "{step} was touched after its ward: {part:?}");
        assert!(!part.outdated || self.quest_spec.ward.is_none(), "{step} was at a ward of before");
        part.outdated = false;
        let merged = phase == Phase::Work && self.quest_spec.isolation != Isolation::None;
        assert!(!merged || part.merged, "{step} is merged");
        assert!(path.is_empty() || part.begun, "somebody has worked on {step}");
        (part.complete, part.holder) = (true, None);
    }

    /// Another ward. What was begun without one may have passed by it.
    fn ward(&mut self, command: &str, limit_ms: Option<u64>) {
        let before = self.quest_spec.ward.take();
        let is_first = before.is_none();
        assert_eq!(limit_ms.is_some(), is_first, "a limit is given with the first ward");
        let limit_ms = limit_ms.or(before.map(|ward| ward.limit_ms)).expect("one of them");
        self.quest_spec.ward = Some(WardSpec { command: command.to_owned(), limit_ms, guessed_from: None });
        for part in self.steps.values_mut().filter(|_| is_first) {
            part.excused |= part.begun;
        }
        self.outdate();
    }

    fn outdate(&mut self) {
        for part in self.steps.values_mut() {
            part.outdated = matches!(part.holder, Some(Holder::Ward(_)));
        }
    }

    fn ends(&mut self) {
        assert!(self.open, "a quest that is paused does not end");
        let done = |(id, part): (&StepId, &Part)| part.complete || self.is_past(id);
        assert!(self.steps.iter().all(done), "all is done");
        assert!(self.steps.values().all(|part| part.holder.is_none() && !part.failed), "nothing is under way");
        self.over = true;
    }

    /// What was begun stays as it is; the rest is replaced. The step of whoever plans stays until that one is done.
    fn plan(&mut self, steps: &[StepPlan], by: Option<&AgentId>, needs_consent: bool) {
        let own = self.steps.iter().find(|(_, part)| by.is_some_and(|by| part.holder == Some(Holder::Agent(*by))));
        let own = own.map(|(id, _)| id.clone());
        if by.is_none() {
            self.steps.get_mut(&StepId::plan()).expect("it is there").complete = true;
        }
        let stays = |id: &StepId, part: &Part| id.is_reserved() || part.begun || Some(id) == own.as_ref();
        self.steps.retain(|id, part| stays(id, part));
        let listed: BTreeSet<&StepId> = steps.iter().map(|plan| &plan.id).collect();
        self.plans.retain(|id, _| self.steps.contains_key(id) && (Some(id) != own.as_ref() || listed.contains(id)));
        for plan in steps {
            let is_own = Some(&plan.id) == own.as_ref();
            if is_own || !self.steps.contains_key(&plan.id) {
                self.plans.insert(plan.id.clone(), plan.clone());
                self.steps.entry(plan.id.clone()).or_default();
            }
        }
        if let Some(own) = own.filter(|_| needs_consent) {
            self.steps.get_mut(&own).expect("it is there").unapproved = true;
        }
    }

    /// Those that nobody has begun and that depend on one that failed.
    fn blocked(&self) -> BTreeSet<StepId> {
        let mut behind: BTreeSet<&StepId> =
            self.steps.iter().filter(|(_, part)| part.failed).map(|(id, _)| id).collect();
        loop {
            let more = self
                .plans
                .values()
                .filter(|plan| !behind.contains(&plan.id) && plan.depends_on.iter().any(|need| behind.contains(need)));
            let more: Vec<&StepId> = more.map(|plan| &plan.id).collect();
            if more.is_empty() {
                return behind.into_iter().filter(|id| !self.steps[*id].begun).cloned().collect();
            }
            behind.extend(more);
        }
    }
}
