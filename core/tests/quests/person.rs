//! A person who interferes, or who sees to everything; and what all seeds together must have met.

use crate::chance::spec;
use crate::process::cents;
use crate::shell::Shell;
use hatchery_core::ask::{About, StepTrouble};
use hatchery_core::event::{QuestEvent, QuestionEvent, RunEvent, StepEvent};
use hatchery_core::outcome::Cause;
use hatchery_core::quest::{Brief, MAX_MENDINGS, Merge, NextAction, QuestState, Signal, StepStatus, Verdict};
use hatchery_core::run::StopWhy;
use hatchery_core::{AgentId, Command, Event, QuestId};

/// What an agent may be told when it asks for something by a tool.
const CALLS: [&str; 13] = [
    "agent_dead",
    "bad_plan",
    "bad_requirements",
    "may_not_call",
    "may_not_signal",
    "not_at_work",
    "nothing_handed_in",
    "other_step",
    "quest_over",
    "run_stopping",
    "signalled",
    "unknown_step",
    "wrong_role",
];

impl Shell {
    pub fn person_acts(&mut self) {
        let quests: Vec<QuestId> = self.world.quests().map(|(id, _)| id).collect();
        let quest = self.chance.pick(&quests).expect("there are quests");
        let agent = self.some_agent(quest);
        let command = match (self.chance.below(25), agent) {
            (0..=9, _) => return self.answers_one(),
            (10, _) => Command::PauseQuest { quest },
            (11..=13, _) => Command::ResumeQuest { quest },
            (14, _) if self.chance.one_in(12) => Command::AbandonQuest { quest },
            (15, _) => {
                let limit = (!self.chance.one_in(3)).then(|| cents(self.chance.below(300)));
                Command::SetQuestBudget { quest, limit }
            }
            (16, _) if self.chance.one_in(3) => {
                let limit = (!self.chance.one_in(3)).then(|| cents(self.chance.below(300)));
                Command::SetBudget { agent: agent.filter(|_| self.chance.one_in(2)), limit }
            }
            (17..=19, _) => return self.retries(quest),
            (20, Some(agent)) => Command::StopRun { agent },
            (21, Some(agent)) if self.chance.one_in(2) => {
                Command::Kill { agent, cascade: false, by: None, remark: None }
            }
            (22, Some(agent)) => {
                let spec = (!self.chance.one_in(3)).then(spec);
                Command::Say { agent, text: "how is it?".into(), spec }
            }
            (23, Some(agent)) => Command::InterruptRun { agent },
            (24, _) => {
                let command = (!self.chance.one_in(3)).then(|| "make test".to_owned());
                Command::SetWard { quest, command, limit_ms: 60_000 }
            }
            _ => Command::Tick,
        };
        drop(self.submit(&command));
    }

    fn some_agent(&mut self, quest: QuestId) -> Option<AgentId> {
        let steps = &self.world.quest(quest)?.steps;
        let hands: Vec<AgentId> = match self.chance.one_in(3) {
            true => steps.values().flat_map(|step| step.agents.iter().map(|hand| hand.agent)).collect(),
            false => steps.values().filter_map(|step| step.agent()).collect(),
        };
        self.chance.pick(&hands)
    }

    fn retries(&mut self, quest: QuestId) {
        let steps = self.world.quest(quest).into_iter().flat_map(|quest| quest.steps.iter());
        let failed = steps.filter(|(_, step)| step.status() == StepStatus::Failed).map(|(id, _)| id.clone());
        for step in failed.collect::<Vec<_>>() {
            if self.submit(&Command::RetryStep { quest, step, fresh: false }).is_ok() {
                self.met.insert("tried again");
            }
        }
    }

    fn answers_one(&mut self) {
        let open: Vec<_> = self.world.questions().map(|(id, question)| (id, question.about)).collect();
        let Some((question, about)) = self.chance.pick(&open) else { return };
        let answer = match self.chance.below(6) {
            0 => ["stop", "yes", "", "0.001", "retry"][self.chance.index(5)],
            1 => "ward: make",
            _ => fit(about),
        };
        let command = Command::AnswerQuestion { question, answer: answer.into() };
        if self.submit(&command).is_ok() {
            let again = self.submit(&command);
            assert!(again.is_err_and(|refusal| refusal.code() == "no_question"), "it is answered once");
        }
    }

    /// Answers everything, resumes what is paused, tries again what failed.
    pub fn person_sees_to_all(&mut self) {
        let open: Vec<_> = self.world.questions().map(|(id, question)| (id, question.about)).collect();
        for (question, about) in open {
            let answer = self.submit(&Command::AnswerQuestion { question, answer: fit(about).into() });
            // One answer may have made another question unnecessary, and what is silent may be about to stop.
            let codes = ["no_question", "run_stopping"];
            assert!(answer.as_ref().err().is_none_or(|it| codes.contains(&it.code())), "{about:?}: {answer:?}");
        }
        let quests: Vec<_> = self.world.quests().map(|(id, quest)| (id, quest.state)).collect();
        for (quest, state) in quests {
            if state == QuestState::Paused {
                self.must(Command::ResumeQuest { quest });
            }
            if state == QuestState::Open {
                self.retries(quest);
            }
        }
    }

    /// What a history must have met at least once, over all seeds, besides refusals.
    pub fn note(&mut self, event: &Event) {
        let met = match event {
            Event::Run { what: RunEvent::CallTaken { refused: Some(refused), .. }, .. } => {
                CALLS.iter().find(|code| **code == refused.code).unwrap_or_else(|| panic!("{refused:?}"))
            }
            Event::Quest { what: QuestEvent::Completed, .. } => "complete",
            Event::Quest { what: QuestEvent::Abandoned, .. } => "abandoned",
            Event::Quest { what: QuestEvent::Paused, .. } => "paused",
            Event::Quest { what: QuestEvent::Resumed, .. } => "resumed",
            Event::Quest { what: QuestEvent::WardChanged { limit_ms: None, .. }, .. } => "another ward",
            Event::Quest { what: QuestEvent::WardChanged { limit_ms: Some(_), .. }, .. } => "a first ward",
            Event::Quest { what: QuestEvent::WardRemoved, .. } => "no ward any more",
            Event::Quest { what: QuestEvent::StepsPlanned { by: Some(by), .. }, .. } => {
                match self.world.assignment(*by).map(|it| it.step.as_str()) {
                    Some("plan") => "planned",
                    _ => "replanned",
                }
            }
            Event::Step { what: StepEvent::Dropped, .. } => "dropped",
            Event::Step { what: StepEvent::Failed { then: NextAction::Resume { .. }, .. }, .. } => "failed by crashes",
            Event::Step {
                what: StepEvent::Failed { then: NextAction::Begin { brief: Brief::Mend { .. }, .. }, .. },
                ..
            } => "failed by its ward",
            Event::Step { what: StepEvent::Failed { then: NextAction::Begin { .. }, .. }, .. } => "failed by conflicts",
            Event::Step { what: StepEvent::Parked { until: Some(_) }, .. } => "parked",
            Event::Step { what: StepEvent::Parked { until: None }, .. } => "parked for money",
            Event::Step { what: StepEvent::WardEnded { verdict: Verdict::Red { findings }, .. }, .. }
                if findings.is_empty() =>
            {
                "red, nothing found"
            }
            Event::Step { what: StepEvent::WardEnded { verdict: Verdict::Red { .. }, .. }, .. } => "red",
            Event::Step { what: StepEvent::WardEnded { verdict: Verdict::Broken { .. }, .. }, .. } => "broken",
            Event::Step { what: StepEvent::WardEnded { .. }, .. } => "green",
            Event::Step { what: StepEvent::MergeEnded { merge: Merge::Conflict { .. }, .. }, .. } => "conflict",
            Event::Step { what: StepEvent::MergeEnded { merge: Merge::Broken { .. }, .. }, .. } => "merge broken",
            Event::Step { what: StepEvent::MergeEnded { .. }, .. } => "merged",
            Event::Step { what: StepEvent::Queued { progress, .. }, .. } if progress.mendings == MAX_MENDINGS => {
                "mended as often as may be"
            }
            Event::Step { what: StepEvent::Queued { next: NextAction::Begin { brief, .. }, .. }, .. } => match brief {
                Brief::Begin => "next station",
                Brief::Continue { progress, .. } if progress.starts_with("unknown") => "a place taken",
                Brief::Continue { .. } => "continued",
                Brief::Mend { .. } => "mended",
                Brief::Reconcile { .. } => "reconciled",
                Brief::FollowUp { .. } => "followed up",
            },
            Event::Question { what: QuestionEvent::Asked { about: About::Step { trouble, .. }, .. }, .. } => {
                match trouble {
                    StepTrouble::Input => "asked by an agent",
                    StepTrouble::Circle => "a circle cut",
                    StepTrouble::Ended => "asked after an end",
                    StepTrouble::Ward => "asked about a ward",
                    StepTrouble::Merge => "asked about a merge",
                    StepTrouble::Approval => "asked for consent",
                }
            }
            Event::Question { what: QuestionEvent::Asked { about: About::QuestBudget { .. }, .. }, .. } => {
                "asked for money"
            }
            Event::Question { what: QuestionEvent::Asked { about: About::Silence(_), .. }, .. } => "silent",
            Event::Step {
                what: StepEvent::SignalGiven { signal: Signal::NeedsRoleFollowup { resume: true, .. }, .. },
                ..
            } => "called, to go on",
            Event::Step {
                what: StepEvent::SignalGiven { signal: Signal::NeedsRoleFollowup { resume: false, .. }, .. },
                ..
            } => "called, and done",
            Event::Run { what: RunEvent::Stopping { why: StopWhy::Signalled }, .. } => "did not leave",
            Event::Run { what: RunEvent::Stopping { why: StopWhy::NotReady { .. } }, .. } => "gate",
            Event::Run { of, what: RunEvent::Ended { .. } } if self.was_overheard(*of) => {
                "signal taken from the stream"
            }
            Event::Run { what: RunEvent::Ended { cause: Cause::Killed, .. }, .. } => "killed",
            Event::Run { what: RunEvent::Ended { cause: Cause::Stuck, .. }, .. } => "stuck",
            Event::Run { what: RunEvent::Ended { cause: Cause::PromptTooLong, .. }, .. } => "prompt too long",
            Event::Run { what: RunEvent::Crashed { cause: Cause::LostWithMachine, .. }, .. } => "lost with its machine",
            Event::Run { what: RunEvent::Crashed { .. }, .. } => "crashed",
            _ => return,
        };
        self.met.insert(met);
    }

    /// Whether a run has signalled although no call of its process did.
    fn was_overheard(&self, of: hatchery_core::run::AttemptId) -> bool {
        let process = self.processes.get(&(of.agent, of.run, of.attempt));
        let called = |command: &Command| matches!(command, Command::GiveSignal { .. });
        self.witness.has_signalled(of) && process.is_some_and(|it| !it.calls.iter().any(called))
    }
}

/// An answer that lets it go on.
fn fit(about: About) -> &'static str {
    match about {
        About::Silence(_) => "stop",
        About::Permission(_) => "allow",
        About::Budget { .. } | About::QuestBudget { .. } => "1000",
        About::Step { trouble, .. } => match trouble {
            StepTrouble::Input | StepTrouble::Circle => "the left one",
            StepTrouble::Ended | StepTrouble::Ward | StepTrouble::Merge => "retry",
            StepTrouble::Approval => "yes",
        },
    }
}
