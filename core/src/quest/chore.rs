//! A ward or a merge has ended: what becomes of the step.

use super::{Brief, MAX_MENDINGS, Merge, NextAction, SlotWork, StepContext, StepId, StepProgress, StepState, Verdict};
use crate::ask::StepTrouble;
use crate::event::StepEvent;
use crate::roles::WARD;
use crate::{AgentId, Event, QuestId, Refusal, World};

/// How many lines of findings the world keeps; the output file of the ward has all of them.
pub const MAX_FINDINGS: usize = 100;
/// How many characters of such a line.
const MAX_LINE_CHARS: usize = 1_000;

/// A ward has ended.
pub(crate) fn warded(
    world: &World,
    id: QuestId,
    step_id: &StepId,
    number: u32,
    verdict: &Verdict,
    artifact: &str,
    restored: &[String],
) -> Result<Vec<Event>, Refusal> {
    let (at, last) = at_chore(world, id, step_id, &SlotWork::Ward(number))?;
    let (progress, artifact) = (at.progress(), cut(artifact));
    let verdict = match verdict {
        Verdict::Green => Verdict::Green,
        Verdict::Red { findings } => Verdict::Red { findings: few(findings) },
        Verdict::Conflict { files } => Verdict::Conflict { files: few(files) },
        Verdict::Broken { why } => Verdict::Broken { why: cut(why) },
    };
    let mend = |findings: &[String]| {
        let brief = Brief::Mend { findings: findings.to_vec(), artifact: artifact.clone() };
        NextAction::Begin { role: at.quest_spec.table.mender.clone(), brief }
    };
    let then = match &verdict {
        Verdict::Green => at.go_to_station(StepProgress { station: progress.station + 1, mendings: 0, ..progress }),
        Verdict::Red { findings } if progress.mendings < MAX_MENDINGS => {
            vec![at.queued(StepProgress { mendings: progress.mendings + 1, ..progress }, mend(findings))]
        }
        Verdict::Red { findings } => {
            let first = findings.first().map(|line| format!(": {line}")).unwrap_or_default();
            // A retry begins with another repair.
            at.failed(format!("the ward is still red after {MAX_MENDINGS} mendings{first}"), mend(findings))
        }
        Verdict::Conflict { files } if progress.mendings < MAX_MENDINGS => {
            vec![at.queued(StepProgress { mendings: progress.mendings + 1, ..progress }, reconcile(&at, files))]
        }
        Verdict::Conflict { files } => at.failed(still_conflicts(files), reconcile(&at, files)),
        Verdict::Broken { why } => {
            let output = if artifact.is_empty() { String::new() } else { format!(" Its output is in `{artifact}`.") };
            let text = format!(
                "The ward of step `{step_id}` could not be run: {why}{output} Answer `retry`, or `ward: COMMAND` for another ward."
            );
            at.asks(progress, NextAction::Ward, last, StepTrouble::Ward, text)
        }
    };
    let ended = Event::Step {
        quest: id,
        step: step_id.clone(),
        what: StepEvent::WardEnded { number, verdict, artifact, restored: few(restored) },
    };
    Ok([ended].into_iter().chain(then).collect())
}

/// A merge has ended.
pub(crate) fn merged(
    world: &World,
    id: QuestId,
    step_id: &StepId,
    number: u32,
    merge: &Merge,
    left_out: &[String],
) -> Result<Vec<Event>, Refusal> {
    let (at, last) = at_chore(world, id, step_id, &SlotWork::Merge(number))?;
    let progress = at.progress();
    let merge = match merge {
        Merge::Merged => Merge::Merged,
        Merge::Empty => Merge::Empty,
        Merge::Conflict { files } => Merge::Conflict { files: few(files) },
        Merge::Broken { why } => Merge::Broken { why: cut(why) },
    };
    let then = match &merge {
        // An agent that was denied tools may have done nothing, even if it reports success.
        Merge::Empty if at.step.denied_since > 0 => at.asks_about_denials(progress, "the step changed nothing"),
        Merge::Merged | Merge::Empty => vec![at.completed()],
        Merge::Conflict { files } if progress.conflicts < MAX_MENDINGS => {
            let progress = StepProgress { conflicts: progress.conflicts + 1, ..progress };
            vec![at.queued(reconciling(&at, progress), reconcile(&at, files))]
        }
        Merge::Conflict { files } => at.failed(still_conflicts(files), reconcile(&at, files)),
        Merge::Broken { why } => {
            let text = format!("Step `{step_id}` could not be merged: {why} Answer `retry` when that is mended.");
            at.asks(progress, NextAction::Merge, last, StepTrouble::Merge, text)
        }
    };
    let ended = Event::Step {
        quest: id,
        step: step_id.clone(),
        what: StepEvent::MergeEnded { number, merge, left_out: few(left_out) },
    };
    Ok([ended].into_iter().chain(then).collect())
}

/// The mender resolves the conflicts of a step with other steps.
fn reconcile(at: &StepContext<'_>, files: &[String]) -> NextAction {
    NextAction::Begin { role: at.quest_spec.table.mender.clone(), brief: Brief::Reconcile { files: files.to_vec() } }
}

fn still_conflicts(files: &[String]) -> String {
    format!("it still conflicts with other steps after {MAX_MENDINGS} mendings: {}", files.join(", "))
}

/// The progress of a step while its conflicts are resolved. The result has to pass the last ward of the path again.
pub(super) fn reconciling(at: &StepContext<'_>, progress: StepProgress) -> StepProgress {
    let path = at.path();
    let ward = path.iter().rposition(|station| station == WARD).unwrap_or(path.len());
    StepProgress { station: u32::try_from(ward).unwrap_or(u32::MAX), mendings: 1, ..progress }
}

/// The step and its last agent, if the step is still at this chore.
fn at_chore<'a>(
    world: &'a World,
    id: QuestId,
    step_id: &'a StepId,
    chore: &SlotWork,
) -> Result<(StepContext<'a>, AgentId), Refusal> {
    let at = StepContext::going(world, id, step_id)?;
    let is_at_it = matches!(&at.step.state, StepState::Running(now) if now == chore);
    match at.last_agent().filter(|_| is_at_it) {
        Some((last, _)) => Ok((at, last)),
        None => Err(Refusal::StaleChore { step: step_id.clone() }),
    }
}

fn few(lines: &[String]) -> Vec<String> {
    lines.iter().take(MAX_FINDINGS).map(|line| cut(line)).collect()
}

fn cut(line: &str) -> String {
    line.chars().take(MAX_LINE_CHARS).collect()
}
