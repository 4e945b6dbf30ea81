//! Signals: the four reports of an agent about its step. A signal is checked against the agent's role, its step and its work. A signal does
//! not end the process: the process ends at the end of its turn, or is stopped when a deadline has passed. What the signal leads to is
//! decided when the run has ended ([`follow`](super::follow)).

use super::{Assignment, SlotWork, StepId, StepState, going};
use crate::event::StepEvent;
use crate::roles::SignalKind;
use crate::run::AttemptId;
use crate::{AgentId, Event, Refusal, World};
use serde::{Deserialize, Serialize};

/// The tool with which an agent signals.
pub const SIGNAL_TOOL: &str = "signal-back";
/// The longest text of a signal, in bytes.
pub const MAX_SIGNAL_BYTES: usize = 64 << 10;
/// The most answers that an agent may offer to its question. They become numbered buttons, which a person should be able to read at a
/// glance.
pub const MAX_CHOICES: usize = 6;
/// The longest of these answers, in characters. A button has one line.
pub const MAX_CHOICE_CHARS: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// The work is done.
    Complete { summary: String },
    /// The agent's context ran out, and it stopped early.
    PartiallyComplete { progress: String, continuation_point: String },
    /// Only the user can decide how to continue.
    NeedsUserInput {
        question: String,
        context: String,
        /// Answers that the agent offers. Any other answer is accepted, too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<String>,
    },
    /// Another role must act first.
    NeedsRoleFollowup { target_role: String, reason: String, context: String, resume: bool },
}

impl Signal {
    pub fn kind(&self) -> SignalKind {
        match self {
            Self::Complete { .. } => SignalKind::Complete,
            Self::PartiallyComplete { .. } => SignalKind::PartiallyComplete,
            Self::NeedsUserInput { .. } => SignalKind::NeedsUserInput,
            Self::NeedsRoleFollowup { .. } => SignalKind::NeedsRoleFollowup,
        }
    }

    /// This signal, with texts of at most `most` characters.
    pub(super) fn cut(&self, most: usize) -> Self {
        let cut = |text: &String| text.chars().take(most).collect::<String>();
        match self {
            Self::Complete { summary } => Self::Complete { summary: cut(summary) },
            Self::PartiallyComplete { progress, continuation_point } => {
                Self::PartiallyComplete { progress: cut(progress), continuation_point: cut(continuation_point) }
            }
            Self::NeedsUserInput { question, context, choices } => {
                Self::NeedsUserInput { question: cut(question), context: cut(context), choices: choices.clone() }
            }
            Self::NeedsRoleFollowup { target_role, reason, context, resume } => Self::NeedsRoleFollowup {
                target_role: target_role.clone(),
                reason: cut(reason),
                context: cut(context),
                resume: *resume,
            },
        }
    }

    fn texts(&self) -> [&str; 3] {
        match self {
            Self::Complete { summary } => [summary, "", ""],
            Self::PartiallyComplete { progress, continuation_point } => [progress, continuation_point, ""],
            Self::NeedsUserInput { question, context, .. } => [question, context, ""],
            Self::NeedsRoleFollowup { target_role, reason, context, .. } => [target_role, reason, context],
        }
    }
}

/// A signal as an agent writes it: one flat object, because clients of MCP refuse unions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Flat {
    #[serde(alias = "type")]
    signal: SignalKind,
    step_id: StepId,
    summary: Option<String>,
    progress: Option<String>,
    continuation_point: Option<String>,
    question: Option<String>,
    context: Option<String>,
    choices: Option<Vec<String>>,
    target_role: Option<String>,
    reason: Option<String>,
    resume: Option<bool>,
}

impl Signal {
    /// Reads a signal and the id of its step, or says what is missing.
    pub fn read(json: &serde_json::Value) -> Result<(StepId, Self), Refusal> {
        let bad = |why: String| Refusal::BadSignal { why };
        let flat: Flat = serde_json::from_value(json.clone()).map_err(|error| bad(error.to_string()))?;
        let kind = flat.signal;
        let needed = |field: &str, text: Option<String>| {
            let text = text.filter(|text| !text.trim().is_empty());
            text.ok_or_else(|| bad(format!("`{kind}` needs `{field}`, with something in it")))
        };
        let signal = match kind {
            SignalKind::Complete => Self::Complete { summary: needed("summary", flat.summary)? },
            SignalKind::PartiallyComplete => Self::PartiallyComplete {
                progress: needed("progress", flat.progress)?,
                continuation_point: needed("continuationPoint", flat.continuation_point)?,
            },
            SignalKind::NeedsUserInput => Self::NeedsUserInput {
                question: needed("question", flat.question)?,
                context: flat.context.unwrap_or_default(),
                choices: flat.choices.unwrap_or_default(),
            },
            SignalKind::NeedsRoleFollowup => Self::NeedsRoleFollowup {
                target_role: needed("targetRole", flat.target_role)?,
                reason: needed("reason", flat.reason)?,
                context: flat.context.unwrap_or_default(),
                resume: flat.resume.ok_or_else(|| bad(format!("`{kind}` needs `resume`: true or false")))?,
            },
        };
        Ok((flat.step_id, signal))
    }
}

/// An agent signals. The same signal again changes nothing; a different second signal is refused.
pub(crate) fn give(world: &World, agent: AgentId, step: &StepId, signal: &Signal) -> Result<Vec<Event>, Refusal> {
    let assignment = world.assignment(agent).ok_or(Refusal::NoAssignment(agent))?;
    let Assignment { quest: id, role, .. } = assignment;
    let quest = going(world, *id)?;
    let Some(it) = quest.step(step) else {
        return Err(Refusal::UnknownStep { quest: *id, step: step.clone() });
    };
    if assignment.step != *step {
        return Err(Refusal::OtherStep { own: assignment.step.clone(), step: step.clone() });
    }
    let StepState::Running(SlotWork::Agent { agent: now, signal: given, .. }) = &it.state else {
        return Err(Refusal::NotAtWork { agent, step: step.clone() });
    };
    if *now != agent {
        return Err(Refusal::NotAtWork { agent, step: step.clone() });
    }
    match given {
        Some(given) if given == signal => return Ok(Vec::new()),
        Some(given) => return Err(Refusal::Signalled { step: step.clone(), kind: given.kind() }),
        None => {}
    }
    let quest_spec = world.quest_spec(*id).ok_or(Refusal::UnknownQuest(*id))?;
    let role_rules = quest_spec.table.role(role);
    let may = role_rules.map(|role| role.may.as_slice()).unwrap_or_default();
    if !may.contains(&signal.kind()) {
        let may = may.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(Refusal::MayNotSignal { role: role.clone(), kind: signal.kind(), may });
    }
    if let Signal::NeedsRoleFollowup { target_role, .. } = signal {
        let calls = role_rules.map(|role| role.calls.as_slice()).unwrap_or_default();
        if !calls.contains(target_role) {
            let target = target_role.chars().take(64).collect();
            return Err(Refusal::MayNotCall { role: role.clone(), target, may: calls.join(", ") });
        }
    }
    if let Signal::NeedsUserInput { choices, .. } = signal {
        check_choices(choices).map_err(|why| Refusal::BadSignal { why })?;
    }
    let bytes = signal.texts().iter().map(|text| text.len()).sum();
    if bytes > MAX_SIGNAL_BYTES {
        return Err(Refusal::SignalTooLong { bytes });
    }
    // A role that must submit requirements or a plan cannot complete its step without them.
    let done = signal.kind() == SignalKind::Complete;
    if done && *step == StepId::requirements() && *role == quest_spec.table.requirer && quest.requirements.is_none() {
        return Err(Refusal::NothingHandedIn { tool: "set-requirements" });
    }
    if done && *step == StepId::plan() && *role == quest_spec.table.planner && quest.plans.is_empty() {
        return Err(Refusal::NothingHandedIn { tool: "plan-steps" });
    }
    let run = world.run(agent).ok_or(Refusal::NoRun(agent))?;
    Ok(vec![Event::Step {
        quest: *id,
        step: step.clone(),
        what: StepEvent::SignalGiven { of: run.attempt_id(agent), signal: signal.clone() },
    }])
}

/// Checks the choices. They become buttons, so each is one short line, and occurs once.
fn check_choices(choices: &[String]) -> Result<(), String> {
    if choices.len() > MAX_CHOICES {
        return Err(format!("{} choices are too many: offer at most {MAX_CHOICES}", choices.len()));
    }
    for (at, choice) in choices.iter().enumerate() {
        let number = at + 1;
        if choice.trim().is_empty() || choice.chars().any(char::is_control) {
            return Err(format!("choice {number} is no line of text: write one line with something in it"));
        }
        let chars = choice.chars().count();
        if chars > MAX_CHOICE_CHARS {
            return Err(format!(
                "choice {number} has {chars} characters: write at most {MAX_CHOICE_CHARS}, and put the rest into `context`"
            ));
        }
        if choices[..at].contains(choice) {
            return Err(format!("choice {number} is there twice: offer each choice once"));
        }
    }
    Ok(())
}

/// The signal that an agent wrote into its output, but that never arrived as a call: its tools were killed before they could write the call
/// to the file. The signal counts if it would have been accepted.
pub(crate) fn from_stream(world: &World, of: AttemptId, heard: Option<&str>) -> Vec<Event> {
    let json = heard.and_then(|input| serde_json::from_str(input).ok());
    let signal = json.and_then(|json| Signal::read(&json).ok());
    signal.and_then(|(step, signal)| give(world, of.agent, &step, &signal).ok()).unwrap_or_default()
}

/// Whether a tool name is that of the signal tool.
pub(crate) fn of_tool(name: &str) -> bool {
    name == SIGNAL_TOOL
}
