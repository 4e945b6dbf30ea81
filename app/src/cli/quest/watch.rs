//! Following a quest: a line for each thing that happens to it.

use super::super::follow::Following;
use super::super::paint::{BAD, DIM, GOOD, STRONG, WARN, paint, printable};
use super::super::{Context, counted, print_line, say};
use crate::client::Client;
use crate::quest_document::{QuestDocument, QuestWord};
use crate::report::{Context as _, Report};
use hatchery_core::ask::About;
use hatchery_core::quest::{Merge, Signal, Status, Verdict};
use hatchery_core::{Event, EventId, QuestId, Record};
use std::process::ExitCode;

/// Why something failed is worth more than a line.
const REASON_CHARS: usize = 500;
/// What a shell makes of Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Prints what happens after an event, until the quest is over. Ctrl-C leaves it to work.
pub async fn watch(
    context: &Context,
    client: Client,
    quest: &QuestDocument,
    after: EventId,
) -> Result<ExitCode, Report> {
    match quest.state {
        QuestWord::Complete => {
            say("it is complete");
            return Ok(ExitCode::SUCCESS);
        }
        QuestWord::Abandoned => {
            say("it was abandoned");
            return Ok(ExitCode::FAILURE);
        }
        QuestWord::Paused => say("it is paused: `hatchery quest run` goes on with it"),
        QuestWord::Open => {}
    }
    for step in quest.steps.iter().filter(|step| step.question.is_some()) {
        say(paint(WARN, format_args!("step {} asks you: `hatchery ask list`", step.id)));
    }
    for step in quest.steps.iter().filter(|step| step.status == Status::Failed) {
        let why = cut(step.doing.as_deref().unwrap_or_default(), REASON_CHARS);
        say(paint(BAD, format_args!("step {} failed: {why}", step.id)));
        say(format_args!("  `hatchery quest retry {} {}` tries it again", quest.id, step.id));
    }
    let id = quest.id;
    let mut following = Following::new(&context.project, client, after.0);
    let until_it_is_over = async {
        loop {
            let (line, record) = following.next().await?;
            if !concerns(&record.event, id) {
                continue;
            }
            match context.json {
                true => print_line(&line)?,
                false => words(&record).map_or(Ok(()), |words| print_line(&words))?,
            }
            match record.event {
                Event::QuestCompleted { .. } => return Ok(ExitCode::SUCCESS),
                Event::QuestAbandoned { .. } => return Ok(ExitCode::FAILURE),
                _ => {}
            }
        }
    };
    tokio::select! {
        ended = until_it_is_over => ended,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("signals cannot be heard")?;
            say(format_args!("it goes on: `hatchery quest watch {id}` follows it, `hatchery quest pause {id}` stops its agents"));
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

fn concerns(event: &Event, id: QuestId) -> bool {
    match event {
        Event::QuestionAsked { about: About::Step { quest, .. } | About::QuestBudget { quest }, .. } => *quest == id,
        _ => event.stream() == hatchery_core::Stream::Quest(id),
    }
}

/// What happened to a quest, in a line; nothing for what only matters inside.
pub fn words(record: &Record) -> Option<String> {
    let at = |step: &hatchery_core::quest::StepId| format!("{:<16}", step.to_string());
    Some(match &record.event {
        Event::QuestPaused { .. } => paint(WARN, "the quest is paused"),
        Event::QuestResumed { .. } => paint(STRONG, "the quest goes on"),
        Event::QuestAbandoned { .. } => paint(BAD, "the quest is abandoned"),
        Event::QuestCompleted { .. } => paint(GOOD, "the quest is complete"),
        Event::QuestBudgetSet { .. } => "it has another budget".into(),
        Event::WardChanged { command, .. } => format!("the ward is `{command}` now"),
        Event::RequirementsSet { requirements, .. } => {
            let observables = counted(requirements.observables.len() as u64, "observable");
            format!("{} {observables}", at(&hatchery_core::quest::StepId::requirements()))
        }
        Event::StepsPlanned { steps, .. } => {
            let steps: Vec<String> = steps.iter().map(|step| step.id.to_string()).collect();
            let count = counted(steps.len() as u64, "step");
            format!("{} {count}: {}", at(&hatchery_core::quest::StepId::plan()), steps.join(", "))
        }
        Event::StepBegun { step, role, agent, .. } => {
            format!("{} {} {}", at(step), paint(STRONG, role), paint(DIM, agent.to_string()))
        }
        Event::SignalGiven { step, signal, .. } => {
            let said = match signal {
                Signal::Complete { summary } => summary.clone(),
                Signal::PartiallyComplete { progress, .. } => progress.clone(),
                Signal::NeedsUserInput { question, .. } => question.clone(),
                Signal::NeedsRoleFollowup { target_role, reason, .. } => format!("{target_role}: {reason}"),
            };
            format!("{} signals {}: {}", at(step), signal.kind(), short(&said))
        }
        Event::WardEnded { step, verdict, .. } => match verdict {
            Verdict::Green => format!("{} ward {}", at(step), paint(GOOD, "green")),
            Verdict::Red { findings } => {
                let first = findings.first().map(|line| short(line)).unwrap_or_default();
                format!("{} ward {}: {first}", at(step), paint(BAD, "red"))
            }
            Verdict::Broken { why } => format!("{} ward {}: {}", at(step), paint(BAD, "broken"), short(why)),
        },
        Event::MergeEnded { step, merge, .. } => match merge {
            Merge::Merged => format!("{} merged", at(step)),
            Merge::Conflict { files } => format!("{} conflicts in {}", at(step), printable(&files.join(", "))),
            Merge::Broken { why } => format!("{} could not be merged: {}", at(step), short(why)),
        },
        Event::StepParked { step, until: Some(_), .. } => {
            format!("{} {}", at(step), paint(WARN, "parked: it goes on by itself"))
        }
        Event::StepParked { step, until: None, .. } => {
            format!("{} {}", at(step), paint(WARN, "parked: it waits for you"))
        }
        Event::StepFailed { quest, step, why, .. } => {
            let failed = format!("{} {}: {}", at(step), paint(BAD, "failed"), cut(why, REASON_CHARS));
            format!("{failed}\n  `hatchery quest retry {quest} {step}` tries it again")
        }
        Event::StepCompleted { step, .. } => format!("{} {}", at(step), paint(GOOD, "complete")),
        Event::StepDropped { step, .. } => format!("{} is no longer part of the plan", at(step)),
        Event::QuestionAsked { text, .. } => {
            let (id, text) = (record.id, printable(text.trim()));
            format!("{}\n  answer with `hatchery ask answer {id} …`", paint(WARN, format_args!("? {text}")))
        }
        _ => return None,
    })
}

/// One line of a text that may have many.
fn short(text: &str) -> String {
    const SHOWN_CHARS: usize = 110;
    cut(text, SHOWN_CHARS)
}

/// The same, at another length.
fn cut(text: &str, most: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let plain: String = line.chars().filter(|character| !character.is_control()).collect();
    match plain.chars().count() > most {
        true => plain.chars().take(most).chain(['…']).collect(),
        false => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_asks_does_not_drive_the_terminal() {
        let asked = r#"{"id":7,"ts":0,"sessionId":null,"type":"question_asked","agent":"AAAAAAAAAAAAAAAAAAAAAA","about":{"budget":{"of":null}},
            "text":"How\u001b[2J wide?"}"#;
        let told = words(&Record::read(EventId(7), asked).unwrap()).unwrap();
        assert!(told.contains("wide?") && !told.contains("\u{1b}[2J"), "{told:?}");
    }
}
