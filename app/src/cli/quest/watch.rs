//! Follows a quest: prints one line per event.

use super::super::follow::Following;
use super::super::paint::{BAD, DIM, GOOD, STRONG, WARN, paint, printable};
use super::super::typed::{self, Addressee};
use super::super::{CommandContext, counted, print_json_text, print_line, say};
use crate::client::Client;
use crate::client::paths::quest_path;
use crate::clock;
use crate::http::QuestionList;
use crate::quest_document::{QuestDocument, QuestSituation, StepDocument};
use crate::report::{Code, Context as _, Report};
use hatchery_core::ask::About;
use hatchery_core::event::{QuestEvent, QuestionEvent, StepEvent};
use hatchery_core::quest::{Merge, Signal, StepStatus, Verdict};
use hatchery_core::roles::{duty, titled};
use hatchery_core::{AgentId, Event, EventId, QuestId, Record, Stream};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// The longest reason for a failure that is printed. It is longer than one line.
const REASON_CHARS: usize = 500;
/// How many failed steps one sentence names.
const NAMED_STEPS: usize = 5;
/// The exit code that shells use for a command that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

/// Prints what happens after an event, until the quest is over or waits for a command. Ctrl-C ends only this view.
pub async fn watch(
    context: &CommandContext,
    client: Client,
    quest: &QuestDocument,
    after: EventId,
) -> Result<ExitCode, Report> {
    for step in quest.steps.iter().filter(|step| step.status == StepStatus::Failed) {
        let why = cut(step.doing.as_deref().unwrap_or_default(), REASON_CHARS);
        say(paint(BAD, format_args!("step {} failed: {why}", step.id)));
    }
    if let Some(ended) = stands(quest) {
        return Ok(ended);
    }
    if quest.steps.iter().any(|step| step.question.is_some()) {
        say_questions(&client, quest).await?;
    }
    let id = quest.id;
    let mut view = WatchedQuest::new(quest);
    let mut following = Following::new(&context.project, client.clone(), after.0);
    let until_it_waits = async {
        loop {
            let (line, record) = following.next().await?;
            // A pause or a resume before the view began, for example for the trial of the ward, is not printed.
            let is_past = record.id <= quest.version
                && matches!(record.event, Event::Quest { what: QuestEvent::Paused | QuestEvent::Resumed, .. });
            if is_past {
                continue;
            }
            let is_told = view.concerns(&record.event) && !view.is_shown(&record);
            if is_told {
                match context.json {
                    true => print_json_text(&line)?,
                    false => words(&record).map_or(Ok(()), |words| print_line(&words))?,
                }
            }
            match record.event {
                Event::Quest { quest: done, what: QuestEvent::Completed } if done == id => {
                    // Read again: the document from the beginning of the view does not say what is on the branch now.
                    let now: QuestDocument = following.client().get(&quest_path(&id.to_string(), "")).await?;
                    say_where(&now);
                    return Ok(ExitCode::SUCCESS);
                }
                Event::Quest { quest, what: QuestEvent::Abandoned } if quest == id => return Ok(ExitCode::FAILURE),
                Event::Quest { quest, what: QuestEvent::Paused } if quest == id => {
                    say(format_args!("`hatchery quest run {id}` resumes the quest"));
                    return Ok(waits());
                }
                _ if view.may_be_stuck(&record, is_told) => {
                    let now: QuestDocument = following.client().get(&quest_path(&id.to_string(), "")).await?;
                    if let Some(ended) = view.look(&now, record.id) {
                        return Ok(ended);
                    }
                }
                _ => {}
            }
        }
    };
    let lines = typed::lines(context, false);
    if lines.is_some() {
        say(paint(DIM, "type an answer or a message, then Enter; Ctrl-C ends the view, not the quest"));
    }
    tokio::select! {
        ended = until_it_waits => ended,
        failed = typed::send_all(context, lines, Addressee::Quest(id)) => failed.map(|()| ExitCode::SUCCESS),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("signals cannot be received")?;
            say(format_args!("the quest goes on in the background; `hatchery quest watch {id}` follows it again, `hatchery quest pause {id}` stops its agents"));
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// What the view remembers of the quest.
struct WatchedQuest {
    id: QuestId,
    /// The agents that work or worked for the quest. Their questions are questions of the quest.
    agents: BTreeSet<AgentId>,
    /// The questions that were open when the view began.
    asked: BTreeSet<EventId>,
    /// Whether a step has failed. Then the quest may be stuck.
    failed: bool,
    /// The version at which the quest was found stuck, if the view has not printed all events up to that version yet.
    stuck_at: Option<EventId>,
}

impl WatchedQuest {
    fn new(quest: &QuestDocument) -> Self {
        let agents = quest.steps.iter().flat_map(|step| &step.agents).map(|hand| hand.agent).collect();
        let failed = quest.steps.iter().any(|step| step.status == StepStatus::Failed);
        let asked = quest.steps.iter().filter_map(|step| step.question).collect();
        Self { id: quest.id, agents, asked, failed, stuck_at: None }
    }

    /// Whether the event is a question that was already shown when the view began.
    fn is_shown(&self, record: &Record) -> bool {
        matches!(record.event, Event::Question { what: QuestionEvent::Asked { .. }, .. })
            && self.asked.contains(&record.id)
    }

    fn concerns(&mut self, event: &Event) -> bool {
        match event {
            Event::Question {
                what: QuestionEvent::Asked { about: About::Step { quest, .. } | About::QuestBudget { quest }, .. },
                ..
            } => *quest == self.id,
            Event::Question { agent, what: QuestionEvent::Asked { .. } } => self.agents.contains(agent),
            // An answer to a question that the view showed as open is printed, too.
            Event::Question {
                agent,
                what: QuestionEvent::Answered { question, .. } | QuestionEvent::Withdrawn { question },
            } => self.agents.contains(agent) || self.asked.contains(question),
            _ if event.stream() != Stream::Quest(self.id) => false,
            Event::Step { what: StepEvent::Begun { agent, .. }, .. } => {
                self.agents.insert(*agent);
                true
            }
            Event::Step { what: StepEvent::Failed { .. }, .. } => {
                self.failed = true;
                true
            }
            _ => true,
        }
    }

    /// Whether the view must check if the quest is stuck. This is so when a step has ended after another one has failed, because it may
    /// have been the last step at work. It is also so when all events are printed of a quest that was found stuck earlier.
    fn may_be_stuck(&self, record: &Record, is_told: bool) -> bool {
        let ends = matches!(
            record.event,
            Event::Step { what: StepEvent::Failed { .. } | StepEvent::Completed { .. } | StepEvent::Dropped, .. }
        );
        self.stuck_at.is_some_and(|at| record.id >= at) || (self.failed && is_told && ends)
    }

    fn look(&mut self, now: &QuestDocument, told: EventId) -> Option<ExitCode> {
        let is_stuck = matches!(now.situation(), QuestSituation::Stuck(_));
        self.stuck_at = Some(now.version).filter(|version| is_stuck && *version > told);
        match is_stuck && self.stuck_at.is_none() {
            true => stands(now),
            false => None,
        }
    }
}

/// Says where the work of a complete quest is.
fn say_where(quest: &QuestDocument) {
    let Some(branch) = &quest.branch else { return };
    if !quest.has_work {
        say(format_args!("nothing was changed: the branch {branch} is empty"));
    } else {
        let slug = branch.trim_start_matches("hatchery/");
        say(format_args!("the work is on the branch {branch}: `hatchery merge {slug}` merges it into your branch"));
    }
}

/// If the quest does not continue by itself, prints its state and returns the exit code. `None` if the quest continues or waits for an
/// answer.
fn stands(quest: &QuestDocument) -> Option<ExitCode> {
    let id = quest.id;
    match quest.situation() {
        QuestSituation::Complete => {
            say("the quest is complete");
            say_where(quest);
            Some(ExitCode::SUCCESS)
        }
        QuestSituation::Abandoned => {
            say("the quest was abandoned");
            Some(ExitCode::FAILURE)
        }
        QuestSituation::Paused => {
            say(format_args!("the quest is paused: `hatchery quest run {id}` resumes it"));
            Some(waits())
        }
        QuestSituation::Stuck(failed) => {
            say(stuck(quest, &failed));
            Some(waits())
        }
        QuestSituation::Progressing | QuestSituation::WaitingForAnswer => None,
    }
}

/// The sentence about a stuck quest: which steps have failed, and what the user can do.
fn stuck(quest: &QuestDocument, failed: &[&StepDocument]) -> String {
    let (id, first) = (quest.id, failed.first().map(|step| step.id.to_string()).unwrap_or_default());
    let names: Vec<String> = failed.iter().take(NAMED_STEPS).map(|step| step.id.to_string()).collect();
    let more = if failed.len() > NAMED_STEPS { ", …" } else { "" };
    let which = match failed.len() {
        1 => format!("step {first} has failed and everything else that is left waits for it"),
        _ => format!("steps {}{more} have failed and everything else that is left waits for them", names.join(", ")),
    };
    let ward = match &quest.ward {
        Some(_) => format!(", and `hatchery quest ward {id} COMMAND` names another ward, if that is what is wrong"),
        None => String::new(),
    };
    format!("the quest cannot go on by itself: {which}; `hatchery quest retry {id} {first}` tries again{ward}")
}

fn waits() -> ExitCode {
    ExitCode::from(Code::Waits as u8)
}

/// Prints the questions that were open when the view began.
async fn say_questions(client: &Client, quest: &QuestDocument) -> Result<(), Report> {
    let list: QuestionList = client.get("/api/questions").await?;
    let of_quest = |id: EventId| quest.steps.iter().any(|step| step.question == Some(id));
    for question in list.questions.iter().filter(|question| of_quest(question.id)) {
        say(asked(question.id, &question.whole()));
    }
    Ok(())
}

/// A question, and the command that answers it.
fn asked(id: EventId, text: &str) -> String {
    let text = printable(text.trim());
    format!("{}\n  answer with `hatchery ask answer {id} …`", paint(WARN, format_args!("? {text}")))
}

/// An event of a quest in one line. `None` for events that do not matter to a user.
pub fn words(record: &Record) -> Option<String> {
    let at = |step: &hatchery_core::quest::StepId| format!("{:<16}", step.to_string());
    Some(match &record.event {
        Event::Quest { what: QuestEvent::Paused, .. } => paint(WARN, "the quest is paused"),
        Event::Quest { what: QuestEvent::Resumed, .. } => paint(STRONG, "the quest goes on"),
        Event::Quest { what: QuestEvent::Abandoned, .. } => paint(BAD, "the quest is abandoned"),
        Event::Quest { what: QuestEvent::Completed, .. } => paint(GOOD, "the quest is complete"),
        Event::Quest { what: QuestEvent::BudgetSet { .. }, .. } => "the quest has another budget".into(),
        Event::Quest { what: QuestEvent::WardChanged { command, .. }, .. } => format!("the ward is `{command}` now"),
        Event::Quest { what: QuestEvent::WardRemoved, .. } => "there is no ward any more".into(),
        Event::Quest { what: QuestEvent::RequirementsSet { requirements }, .. } => {
            let observables = counted(requirements.observables.len() as u64, "observable");
            format!("{} {observables}", at(&hatchery_core::quest::StepId::requirements()))
        }
        Event::Quest { what: QuestEvent::StepsPlanned { steps, .. }, .. } => {
            let steps: Vec<String> = steps.iter().map(|step| step.id.to_string()).collect();
            let count = counted(steps.len() as u64, "step");
            format!("{} {count}: {}", at(&hatchery_core::quest::StepId::plan()), steps.join(", "))
        }
        Event::Step { step, what: StepEvent::Begun { role, agent }, .. } => {
            let does = duty(role).map(|duty| format!(" ({duty})")).unwrap_or_default();
            format!("{} {}{does} {}", at(step), paint(STRONG, role), paint(DIM, agent.to_string()))
        }
        Event::Step { step, what: StepEvent::SignalGiven { signal, .. }, .. } => {
            let said = match signal {
                Signal::Complete { summary } => summary.clone(),
                Signal::PartiallyComplete { progress, .. } => progress.clone(),
                Signal::NeedsUserInput { question, .. } => question.clone(),
                Signal::NeedsRoleFollowup { target_role, reason, .. } => format!("{}: {reason}", titled(target_role)),
            };
            format!("{} signals {}: {}", at(step), signal.kind(), short(&said))
        }
        Event::Step { step, what: StepEvent::WardEnded { verdict, restored, .. }, .. } => {
            let verdict = match verdict {
                Verdict::Green => format!("ward {}", paint(GOOD, "green")),
                Verdict::Red { findings } => {
                    let first = findings.first().map(|line| short(line)).unwrap_or_default();
                    format!("ward {}: {first}", paint(BAD, "red"))
                }
                Verdict::Conflict { files } => format!("conflicts in {}", printable(&files.join(", "))),
                Verdict::Broken { why } => format!("ward {}: {}", paint(BAD, "broken"), short(why)),
            };
            let restored = match restored.is_empty() {
                true => String::new(),
                false => {
                    format!("; it had changed or deleted files, which were restored: {}", short(&restored.join(", ")))
                }
            };
            format!("{} {verdict}{restored}", at(step))
        }
        Event::Step { step, what: StepEvent::MergeEnded { merge, left_out, .. }, .. } => match merge {
            Merge::Merged if left_out.is_empty() => format!("{} merged", at(step)),
            Merge::Merged => format!("{} merged, without by-products: {}", at(step), short(&left_out.join(", "))),
            Merge::Empty => format!("{} has nothing to merge", at(step)),
            Merge::Conflict { files } => format!("{} conflicts in {}", at(step), printable(&files.join(", "))),
            Merge::Broken { why } => format!("{} could not be merged: {}", at(step), short(why)),
        },
        Event::Step { step, what: StepEvent::Parked { until: Some(until) }, .. } => {
            let age = clock::age(*until, clock::now());
            format!("{} {}", at(step), paint(WARN, format_args!("parked: it goes on by itself {age}")))
        }
        Event::Step { step, what: StepEvent::Parked { until: None }, .. } => {
            format!("{} {}", at(step), paint(WARN, "parked: it waits for you"))
        }
        Event::Step { quest, step, what: StepEvent::Failed { why, .. } } => {
            let failed = format!("{} {}: {}", at(step), paint(BAD, "failed"), cut(why, REASON_CHARS));
            format!("{failed}\n  `hatchery quest retry {quest} {step}` tries it again")
        }
        Event::Step { step, what: StepEvent::Completed { .. }, .. } => {
            format!("{} {}", at(step), paint(GOOD, "complete"))
        }
        Event::Step { step, what: StepEvent::Dropped, .. } => format!("{} is no longer part of the plan", at(step)),
        Event::Question { what: QuestionEvent::Asked { text, .. }, .. } => asked(record.id, text),
        Event::Question { what: QuestionEvent::Answered { question, answer }, .. } => {
            format!("question {question} is answered: {}", short(answer))
        }
        Event::Question { what: QuestionEvent::Withdrawn { question }, .. } => {
            format!("question {question} needs no answer any more")
        }
        _ => return None,
    })
}

/// A text as one short line.
fn short(text: &str) -> String {
    const SHOWN_CHARS: usize = 110;
    cut(text, SHOWN_CHARS)
}

/// A text as one line with at most `most` characters.
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
