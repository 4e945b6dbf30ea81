//! Which events are worth a notice, and what it says.

use hatchery_core::ask::About;
use hatchery_core::event::{QuestEvent, QuestionEvent, RunEvent, StepEvent};
use hatchery_core::outcome::Cause;
use hatchery_core::{AgentId, Event, EventId, QuestId, Record, World};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How much of a text a notice has.
const MAX_TEXT_CHARS: usize = 300;

/// Why the user is told something, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// An agent or a quest waits for an answer.
    Question,
    /// An agent waits for permission to use a tool.
    Permission,
    /// A budget is used up.
    Budget,
    /// A run or a step has failed.
    Failure,
    /// A run or a quest is done.
    Completion,
}

impl NoticeKind {
    pub const ALL: [Self; 5] = [Self::Question, Self::Permission, Self::Budget, Self::Failure, Self::Completion];
}

/// One notification, as commands and webhooks receive it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    pub kind: NoticeKind,
    /// The event that it is about.
    pub event: EventId,
    pub title: String,
    pub text: String,
    /// The project's folder.
    pub project: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quest: Option<QuestId>,
}

impl Notice {
    /// One notice for several that came within the same pause. The first one is the one that is shown: see [`Notice::queue`].
    pub fn together(notices: Vec<Self>, dropped: usize, project: &Path) -> Self {
        let more = notices.len() - 1 + dropped;
        let mut first = notices.into_iter().next().unwrap_or_else(Self::empty);
        if more > 0 {
            first.text.push_str(&format!(" (and {more} more: `hatchery ask list`, `hatchery ps`)"));
        }
        first.project = project.display().to_string();
        first
    }

    /// Adds a notice to those that wait: the most urgent first, and at most so many. Says whether one was left out.
    pub fn queue(self, waiting: &mut Vec<Self>, most: usize) -> bool {
        let place = waiting.partition_point(|other| other.kind <= self.kind);
        waiting.insert(place, self);
        let is_full = waiting.len() > most;
        waiting.truncate(most);
        is_full
    }

    fn empty() -> Self {
        Self::new(NoticeKind::Question, EventId::START, String::new(), "")
    }

    fn new(kind: NoticeKind, event: EventId, title: String, text: &str) -> Self {
        // Control characters of an agent's text must not reach a terminal or a desktop.
        let text = text.chars().map(|char| if char.is_control() { ' ' } else { char });
        Self {
            kind,
            event,
            title,
            text: text.take(MAX_TEXT_CHARS).collect(),
            project: String::new(),
            agent: None,
            quest: None,
        }
    }
}

/// The notice for an event, if it is worth one. The world has the event.
pub fn of(world: &World, record: &Record) -> Option<Notice> {
    let new = |kind, title: String, text: &str| Notice::new(kind, record.id, title, text);
    match &record.event {
        Event::Question { agent, what: QuestionEvent::Asked { about, text } } => {
            let kind = match about {
                About::Budget { .. } | About::QuestBudget { .. } => NoticeKind::Budget,
                About::Permission(_) => NoticeKind::Permission,
                About::Silence(_) | About::Step { .. } => NoticeKind::Question,
            };
            let quest = world.assignment(*agent).map(|assignment| assignment.quest);
            Some(Notice { agent: Some(*agent), quest, ..new(kind, format!("{} needs you", name(world, *agent)), text) })
        }
        // Agents of a quest end all the time. Their steps and their quest tell.
        Event::Run { of, what: RunEvent::Ended { cause, detail, .. } } if world.assignment(of.agent).is_none() => {
            let (kind, word) = match cause {
                Cause::Completed => (NoticeKind::Completion, "is done".to_owned()),
                // The user did it.
                Cause::UserEnded | Cause::Killed => return None,
                failure => (NoticeKind::Failure, format!("ended: {failure}")),
            };
            let agent = of.agent;
            Some(Notice { agent: Some(agent), ..new(kind, format!("{} {word}", name(world, agent)), detail) })
        }
        Event::Step { quest, step, what: StepEvent::Failed { why, .. } } => {
            Some(Notice { quest: Some(*quest), ..new(NoticeKind::Failure, format!("step {step} failed"), why) })
        }
        Event::Quest { quest, what: QuestEvent::Completed } => {
            let request = world.quest_spec(*quest).map(|spec| spec.request.as_str()).unwrap_or_default();
            Some(Notice { quest: Some(*quest), ..new(NoticeKind::Completion, "a quest is complete".into(), request) })
        }
        _ => None,
    }
}

fn name(world: &World, agent: AgentId) -> String {
    let name = world.agent(agent).and_then(|agent| agent.name.as_deref());
    name.map_or_else(|| format!("agent {agent}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_shown_before_what_came_earlier() {
        let notice = |kind, event| Notice::new(kind, EventId(event), format!("notice {event}"), "");
        let mut waiting = Vec::new();
        let came = [NoticeKind::Completion, NoticeKind::Failure, NoticeKind::Question, NoticeKind::Question];
        let left_out: Vec<bool> =
            came.into_iter().zip(1..).map(|(kind, event)| notice(kind, event).queue(&mut waiting, 3)).collect();
        assert_eq!(left_out, [false, false, false, true]);
        let shown = Notice::together(waiting, 1, Path::new("/x"));
        assert_eq!((shown.kind, shown.event), (NoticeKind::Question, EventId(3)));
        assert!(shown.text.contains("and 3 more"), "{}", shown.text);
    }
}
