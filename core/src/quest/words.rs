//! The messages to agents of a quest. Text from other authors is inside tags, and is escaped so that it cannot close its tag. So no such
//! text can be mistaken for an instruction of Hatchery.

use super::{Brief, MAX_REQUEST_BYTES, Quest, Requirements, StepContext, StepPlan};
use crate::AgentId;
use crate::roles::{Phase, Role, SignalKind};

/// The most bytes of each part by another author in a first message, so that the whole message stays within the limit for messages.
/// `get-quest` shows the rest.
const MAX_PART_BYTES: usize = 96 << 10;
/// The most bytes of the request of the quest in a first message: the limit for requests. The escaped text is counted, because an escaped
/// character takes up to five times its length.
const MAX_SECTION_BYTES: usize = MAX_REQUEST_BYTES;

/// The first message of an agent.
pub(super) fn prompt(at: &StepContext<'_>, role: &Role, brief: &Brief) -> String {
    let mut text = String::new();
    if !role.prompt.trim().is_empty() {
        text.push_str(&format!("{}\n\n", role.prompt.trim()));
    }
    section(&mut text, "request", &at.quest_spec.request);
    if let Some(requirements) = &at.quest.requirements {
        part(&mut text, "requirements", &written(requirements));
    }
    if let Some(plan) = at.quest.plans.get(at.step_id) {
        part(&mut text, "step", &planned(plan));
    }
    // The planner and the reviewer see the whole plan.
    let sees_all = matches!(at.step.phase, Phase::Plan | Phase::Review) || role.name == at.quest_spec.table.planner;
    if sees_all && !at.quest.plans.is_empty() {
        part(&mut text, "plan", &overview(at.quest));
    }
    if let Some(ward) = &at.quest.ward {
        section(&mut text, "ward", &ward.command);
    }
    why(&mut text, brief);
    let step = at.step_id;
    text.push_str(&format!(
        "You are the {} of step `{step}` of quest {}. When you are done or cannot continue, call the tool `signal-back` once with stepId \
         `{step}`. Then stop. You may signal: {}.",
        role.name,
        at.id,
        choices(role),
    ));
    text
}

/// Adds why the agent starts to work.
fn why(text: &mut String, brief: &Brief) {
    match brief {
        Brief::Begin => {}
        Brief::Continue { progress, continuation_point } => {
            text.push_str("Another agent in your role started this step and had to stop. Its work is in the folder. Continue from there.\n\n");
            part(text, "progress", progress);
            part(text, "continuation-point", continuation_point);
        }
        Brief::Mend { findings, artifact } => {
            text.push_str("The ward failed. Fix what it found.");
            if !artifact.is_empty() {
                text.push_str(&format!(" Its full output is in `{artifact}`."));
            }
            text.push_str("\n\n");
            part(text, "findings", &findings.join("\n"));
        }
        Brief::Reconcile { files } => {
            text.push_str(
                "The changes of this step conflict with changes that other steps made meanwhile. The files below contain git's conflict \
                 markers. Resolve the conflict so that both changes keep their purpose. Do not commit.\n\n",
            );
            part(text, "conflicts", &files.join("\n"));
        }
        Brief::FollowUp { from, reason, context } => {
            text.push_str(&format!("The {from} of this step asked for you. The tag `reason` says what to do. The tag `context`, if there is one, says more.\n\n"));
            part(text, "reason", reason);
            part(text, "context", context);
        }
    }
}

/// The brief of an agent that replaces a dead or failed one. `told` is the message that the previous agent would have received.
pub(super) fn replacement_brief(told: Option<&str>) -> Brief {
    let told = told.map(|told| format!(". This message was for the agent before you: {told}")).unwrap_or_default();
    Brief::Continue {
        progress: "unknown, because the agent before you does not exist any more; read the files in the folder".into(),
        continuation_point: format!("where the work in the folder ends{told}"),
    }
}

/// The message to an agent whose called role has finished.
pub(super) fn outcome(of: &str, summary: &str, plan: Option<&StepPlan>) -> String {
    let mut text =
        format!("The {of} that you asked for is done. Continue your step, and signal when you are done.\n\n");
    part(&mut text, "outcome", summary);
    if let Some(plan) = plan {
        part(&mut text, "step", &planned(plan));
    }
    text.trim_end().to_owned()
}

/// The message to an agent with the user's answer.
pub(super) fn answer(answer: &str) -> String {
    let mut text = String::from("The user answered. Continue your step, and signal when you are done.\n\n");
    // Not shortened: a user whose answer is too long for a message gets an error, and can shorten the answer.
    between(&mut text, "answer", answer, usize::MAX);
    text.trim_end().to_owned()
}

/// The question to the user about roles that call each other in a circle.
pub(super) fn circle(role: &str, target: &str, reason: &str, agent: AgentId) -> String {
    format!(
        "The {role} ({agent}) asks for the {target}. Roles of this step have called each other so often that they might never finish. The \
         {role} says: {reason}\n\
         Your answer is sent to the agent, which then continues."
    )
}

/// The text with a full stop, because not every reason ends with one.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

fn choices(role: &Role) -> String {
    let choice = |kind: &SignalKind| match kind {
        SignalKind::Complete => "`complete` (summary)".to_owned(),
        SignalKind::PartiallyComplete => {
            "`partially-complete` (progress, continuationPoint) when your context runs out".to_owned()
        }
        SignalKind::NeedsUserInput => {
            "`needs-user-input` (question, context, choices) when only the user can decide how to continue".to_owned()
        }
        SignalKind::NeedsRoleFollowup => format!(
            "`needs-role-followup` (targetRole: {}; reason, context, resume) when another role must act first",
            role.calls.join(" or ")
        ),
    };
    let possible = |kind: &&SignalKind| **kind != SignalKind::NeedsRoleFollowup || !role.calls.is_empty();
    role.may.iter().filter(possible).map(choice).collect::<Vec<_>>().join("; ")
}

fn written(requirements: &Requirements) -> String {
    let mut text = String::new();
    for context in &requirements.contexts {
        text.push_str(&format!("context {}: {}\n", context.id, context.description));
    }
    for observable in &requirements.observables {
        let context = observable.context.as_ref().map(|id| format!(" (in {id})")).unwrap_or_default();
        text.push_str(&format!("observable {}{context}: {}\n", observable.id, observable.description));
    }
    text
}

fn planned(plan: &StepPlan) -> String {
    let mut text = format!("{}: {}\n", plan.id, plan.name);
    if !plan.description.is_empty() {
        text.push_str(&format!("{}\n", plan.description));
    }
    let after: Vec<String> = plan.depends_on.iter().map(ToString::to_string).collect();
    for (what, list) in [
        ("depends on", &after),
        ("files to create", &plan.files_to_create),
        ("files to change", &plan.files_to_modify),
        ("makes true", &plan.observables),
    ] {
        if !list.is_empty() {
            text.push_str(&format!("{what}: {}\n", list.join(", ")));
        }
    }
    text
}

/// All steps, one line each, up to the limit.
fn overview(quest: &Quest) -> String {
    let mut text = String::new();
    for (id, plan) in &quest.plans {
        let after: Vec<String> = plan.depends_on.iter().map(ToString::to_string).collect();
        let after = if after.is_empty() { String::new() } else { format!(" (after {})", after.join(", ")) };
        let status = quest.step(id).map_or("pending", |step| step.status().word());
        text.push_str(&format!("{id}: {} [{status}]{after}\n", plan.name));
        if text.len() > MAX_PART_BYTES {
            break;
        }
    }
    text
}

/// Adds a text of another author in a tag, with the limit `MAX_SECTION_BYTES`.
fn section(text: &mut String, name: &str, content: &str) {
    between(text, name, content, MAX_SECTION_BYTES);
}

/// Adds a text of another author in a tag, with the smaller limit `MAX_PART_BYTES`.
fn part(text: &mut String, name: &str, content: &str) {
    between(text, name, content, MAX_PART_BYTES);
}

/// Adds a text in a tag. The text cannot contain the tag, and is cut at the limit.
fn between(text: &mut String, name: &str, content: &str, most: usize) {
    let content = content.trim_end();
    if content.is_empty() {
        return;
    }
    let (kept, left_out) = harmless(content, most);
    let cut = match left_out {
        0 => String::new(),
        bytes => format!("\n[cut here: {bytes} of {} bytes are left out]", content.len()),
    };
    text.push_str(&format!("<{name}>\n{kept}{cut}\n</{name}>\n\n"));
}

/// The escaped beginning of a text, and how many bytes of the text are left out. The text is cut between characters, so that no escape is
/// cut in half.
fn harmless(content: &str, most: usize) -> (String, usize) {
    let mut kept = String::with_capacity(content.len().min(most));
    for (at, letter) in content.char_indices() {
        let mut room = [0; 4];
        let written = match letter {
            '&' => "&amp;",
            '<' => "&lt;",
            other => other.encode_utf8(&mut room),
        };
        if kept.len() + written.len() > most {
            return (kept, content.len() - at);
        }
        kept.push_str(written);
    }
    (kept, 0)
}
