//! Prints a quest for people: as one line, or with all details.

use super::super::paint::{BAD, DIM, GOOD, STRONG, WARN, paint, printable};
use super::super::{CommandContext, counted, print_line, say};
use super::tell::Merged;
use crate::clock;
use crate::http::QuestLine;
use crate::quest_document::{QuestDocument, QuestWord, StepDocument};
use crate::report::Report;
use crate::short_ids::ShortIds;
use hatchery_core::quest::StepStatus;
use hatchery_core::roles::titled;

pub fn line(quest: &QuestLine, ids: &ShortIds) -> String {
    let mut notes = Vec::new();
    notes.extend((quest.running > 0).then(|| format!("{} at work", quest.running)));
    notes.extend((quest.failed > 0).then(|| paint(BAD, format_args!("{} failed", quest.failed))));
    notes.extend((quest.questions > 0).then(|| paint(WARN, "asks you")));
    let notes = if notes.is_empty() { String::new() } else { format!("  {}", notes.join(", ")) };
    format!(
        "{}  {}  {}/{}{notes}  {}  {}  {}",
        ids.short(quest.id),
        word(quest.state),
        quest.complete,
        quest.steps,
        quest.spent,
        paint(DIM, clock::age(quest.changed, clock::now())),
        printable(&quest.request),
    )
}

/// Prints what a user should know when a quest begins: its slots, its ward, and where the steps work.
pub fn introduce(context: &CommandContext, quest: &QuestDocument) {
    if context.json {
        return;
    }
    let ward = match &quest.ward {
        None => "no ward: no command checks the work (--ward COMMAND)".to_owned(),
        Some(ward) => match &ward.guessed_from {
            Some(from) => format!("the ward is `{}`, because of {from}", ward.command),
            None => format!("the ward is `{}`", ward.command),
        },
    };
    let place = match &quest.branch {
        Some(branch) => format!("steps work in git worktrees, and the result will be on the branch {branch}"),
        None => format!("steps work in the project itself · commands also accept the name {}", quest.slug()),
    };
    say(paint(DIM, format_args!("quest {}: {} · {ward} · {place}", quest.id, counted(quest.slots.into(), "slot"))));
}

pub fn show(quest: &QuestDocument, merged: Merged, history: bool) -> Result<(), Report> {
    let now = clock::now();
    let (complete, all) = quest.progress();
    print_line(&format!("{}  {}  {}", paint(STRONG, quest.id), paint(DIM, quest.slug()), word(quest.state)))?;
    print_line(&format!("  {}", printable(&quest.request).replace('\n', "\n  ")))?;
    let budget = quest.budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
    let facts = format!(
        "{complete} of {all} steps complete, {} spent{budget}, changed {}",
        quest.spent.cost,
        clock::age(quest.changed, now)
    );
    print_line(&paint(DIM, format_args!("  {facts}")))?;
    if let Some(ward) = &quest.ward {
        print_line(&paint(DIM, format_args!("  the ward is `{}`", printable(&ward.command))))?;
    }
    // Before the first step is complete there is nothing to merge.
    if let Some(branch) = quest.branch.as_ref().filter(|_| complete > 0 && !quest.has_work) {
        print_line(&paint(DIM, format_args!("  nothing was changed: the branch {branch} is empty")))?;
    }
    if let Some(branch) = quest.branch.as_ref().filter(|_| complete > 0 && quest.has_work) {
        let slug = branch.trim_start_matches("hatchery/");
        let words = match merged {
            Merged::Yes => format!("  the work is merged: your branch has everything of {branch}"),
            Merged::No => {
                format!("  the work is on the branch {branch}: `hatchery merge {slug}` merges it into your branch")
            }
            Merged::BranchGone => format!("  the work was on the branch {branch}, which was deleted"),
        };
        print_line(&paint(DIM, words))?;
    }
    if let Some(requirements) = &quest.requirements {
        for observable in &requirements.observables {
            print_line(&format!("  · {}: {}", observable.id, printable(&observable.description)))?;
        }
    }
    for step in quest.shown_steps() {
        print_line(&step_line(step))?;
        if let Some(refused) = &step.refused_signal {
            let why = printable(&refused.why).replace('\n', " ");
            let line = format!("      the last signal of the {} was refused: {why}", printable(&titled(&refused.role)));
            print_line(&paint(WARN, line))?;
        }
        if history {
            for note in &step.history {
                let what = printable(&note.what);
                print_line(&paint(DIM, format_args!("      {}  {what}", clock::told(note.at))))?;
            }
        }
    }
    Ok(())
}

/// Writes the first word, which can be a role, as the role's title.
fn with_duty(doing: &str) -> String {
    let end = doing.find([' ', ',']).unwrap_or(doing.len());
    let (role, rest) = doing.split_at(end);
    titled(role) + rest
}

fn step_line(step: &StepDocument) -> String {
    let style = match step.status {
        StepStatus::Complete => GOOD,
        StepStatus::Failed | StepStatus::Blocked => BAD,
        StepStatus::WaitingForHuman | StepStatus::Parked => WARN,
        StepStatus::Running | StepStatus::WaitingForRole => STRONG,
        StepStatus::Pending | StepStatus::Queued => DIM,
    };
    let doing = step.doing.as_ref().map(|doing| format!(" · {}", printable(&with_duty(doing)))).unwrap_or_default();
    let asks = step.question.map(|id| format!(" — `hatchery ask answer {id} …`")).unwrap_or_default();
    let denied = match step.denied {
        0 => String::new(),
        times => paint(WARN, format_args!(" · {times} tool uses denied")),
    };
    let after: Vec<String> = step.depends_on.iter().map(ToString::to_string).collect();
    let after = if after.is_empty() { String::new() } else { format!("  after {}", after.join(", ")) };
    format!(
        "  {} {:<24} {}{doing}{asks}{denied}{}",
        paint(style, format_args!("{:<18}", step.status.word())),
        step.id.to_string(),
        printable(&step.name),
        paint(DIM, after),
    )
}

fn word(state: QuestWord) -> String {
    match state {
        QuestWord::Open => paint(STRONG, "open"),
        QuestWord::Paused => paint(WARN, "paused"),
        QuestWord::Complete => paint(GOOD, "complete"),
        QuestWord::Abandoned => paint(DIM, "abandoned"),
    }
}
