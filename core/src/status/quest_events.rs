//! The build events of quests: what other programs are told when an agent begins, a ward ends, or a step of the plan is complete. They are
//! made from the events of the log while these are applied. So each is made once, and it stays when the step or the quest continues.

use super::Json;
use super::quest_view::line;
use crate::event::StepEvent;
use crate::quest::{Brief, NextAction, Quest, Signal, Step, StepId, StepState, Verdict};
use crate::roles::Phase;
use crate::{AgentId, EventId, QuestId, Timestamp};
use serde_json::{Value, json};

/// The prefix of the ids of these events.
const PREFIX: &str = "hatchery-";
/// How many findings of one ward are listed as checks. The summary counts all of them.
const MAX_CHECKS: usize = 20;
/// The isolation mode. Each agent of a quest is a process with a conversation of its own.
const ISOLATION: &str = "fresh session";

/// Whether this module makes the events with this id.
pub fn is_made(id: &str) -> bool {
    id.starts_with(PREFIX)
}

/// Where and when an event of a step happened.
pub(crate) struct Happened<'a> {
    pub at: EventId,
    pub ts: Timestamp,
    pub quest: QuestId,
    pub step: &'a StepId,
}

/// The build events of one event of the log, as JSON objects. `quest` is the quest before that event, and `knows` says whether an agent has
/// worked for a quest before.
pub(crate) fn made(quest: &Quest, it: &Happened<'_>, event: &StepEvent, knows: impl Fn(AgentId) -> bool) -> Vec<Json> {
    // Most events of a step have no build events, so the step is looked up only for the others.
    let made = |make: &dyn Fn(&Author<'_>, &Step) -> Vec<Json>| {
        let Some(step) = quest.step(it.step).filter(|step| step.phase == Phase::Work) else { return Vec::new() };
        let name = quest.plans.get(it.step).map_or_else(|| it.step.to_string(), |plan| line(&plan.name));
        make(&Author { it, name }, step)
    };
    match event {
        StepEvent::Begun { agent, role } if !knows(*agent) => made(&|of, step| begun(of, step, role)),
        StepEvent::SignalGiven { signal: Signal::PartiallyComplete { progress, .. }, .. } => {
            made(&|of, _| vec![of.event("context-checkpointed", "", &line(progress), json!({}))])
        }
        StepEvent::WardEnded { verdict, .. } => made(&|of, _| vec![verified(of, verdict)]),
        StepEvent::Completed { summary } => {
            made(&|of, _| vec![of.event("chunk-completed", "", &line(summary), json!({}))])
        }
        StepEvent::Failed { why, .. } => {
            made(&|of, _| vec![of.event("chunk-failed", "", &line(why), json!({ "reason": line(why) }))])
        }
        StepEvent::Begun { .. }
        | StepEvent::SignalGiven { .. }
        | StepEvent::Forked { .. }
        | StepEvent::ForkQueued { .. }
        | StepEvent::Queued { .. }
        | StepEvent::WardBegun { .. }
        | StepEvent::MergeBegun { .. }
        | StepEvent::MergeEnded { .. }
        | StepEvent::Waits { .. }
        | StepEvent::Parked { .. }
        | StepEvent::Dropped => Vec::new(),
    }
}

/// Makes the build events of one step.
struct Author<'a> {
    it: &'a Happened<'a>,
    name: String,
}

impl Author<'_> {
    /// `part` distinguishes several build events of one event of the log.
    fn event(&self, kind: &str, part: &str, summary: &str, more: Value) -> Json {
        let Happened { at, ts, quest, step } = self.it;
        // A reader shows the summary unchanged, so it is never empty.
        let summary = if summary.is_empty() { kind } else { summary };
        let mut event = json!({
            "id": format!("{PREFIX}{at}{part}"), "kind": kind, "chunk": self.name, "timestamp": ts.rfc3339(), "summary": summary,
            "questId": quest.to_string(), "stepId": step.as_str(),
        });
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        event.into()
    }
}

/// A new agent begins: the events for its new context, and for the start of the chunk or of another attempt.
fn begun(of: &Author<'_>, step: &Step, role: &str) -> Vec<Json> {
    let boundary = json!({ "isolationMode": ISOLATION });
    let boundary = of.event("context-boundary", "-context", &format!("{role} begins in a {ISOLATION}"), boundary);
    let attempt = step.tries();
    let again = |reason: &str| {
        let more = json!({ "attempt": attempt, "reason": reason });
        of.event("chunk-retrying", "", &format!("{role} begins attempt {attempt}: {reason}"), more)
    };
    let brief = match &step.state {
        StepState::Queued(NextAction::Begin { brief, .. }) => Some(brief),
        StepState::Queued(_)
        | StepState::Pending
        | StepState::Running(_)
        | StepState::Asking(_)
        | StepState::Parked { .. }
        | StepState::Blocked
        | StepState::Failed { .. }
        | StepState::Complete { .. } => None,
    };
    let chunk = match brief {
        _ if step.attempts == 0 => Some(of.event("chunk-started", "", &format!("{role} begins"), json!({}))),
        Some(Brief::Mend { findings, .. }) => {
            Some(again(&format!("the ward found {}", counted(findings.len(), "problem"))))
        }
        Some(Brief::Reconcile { files }) => {
            Some(again(&format!("{} could not be merged", counted(files.len(), "file"))))
        }
        Some(_) | None => None,
    };
    [Some(boundary), chunk].into_iter().flatten().collect()
}

fn verified(of: &Author<'_>, verdict: &Verdict) -> Json {
    let failed = |summary: String, problems: &[String]| {
        let problems: Vec<String> = problems.iter().take(MAX_CHECKS).map(|problem| line(problem)).collect();
        let checks: Vec<Value> = match problems.is_empty() {
            true => vec![json!({ "name": "ward", "result": "fail" })],
            false => problems.iter().map(|problem| json!({ "name": problem, "result": "fail" })).collect(),
        };
        let more = json!({ "checks": checks, "failed": problems, "mode": "full" });
        of.event("verification-failed", "", &summary, more)
    };
    match verdict {
        Verdict::Green => {
            let checks = json!([{ "name": "ward", "result": "pass" }]);
            of.event("chunk-verified", "", "the ward passed", json!({ "checks": checks, "mode": "full" }))
        }
        Verdict::Red { findings } => failed(format!("the ward found {}", counted(findings.len(), "problem")), findings),
        Verdict::Conflict { files } => failed(format!("{} cannot be merged", counted(files.len(), "file")), files),
        Verdict::Broken { why } => failed(format!("the ward could not be run: {}", line(why)), &[]),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
