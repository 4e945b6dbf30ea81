//! What the agents of a quest are told. Everything that others wrote stands between marks that it cannot contain, so that no step's text
//! reads like an instruction of ours.

use super::{Brief, Charter, Quest, Requirements, StepId, StepPlan};
use crate::roles::{Phase, Role, SignalKind};
use crate::{AgentId, QuestId};
use std::fmt::Write as _;

/// The first message of an agent.
pub(super) fn prompt(
    id: QuestId,
    quest: &Quest,
    charter: &Charter,
    step: &StepId,
    phase: Phase,
    role: &Role,
    brief: &Brief,
) -> String {
    let mut text = String::new();
    section(&mut text, "", role.prompt.trim());
    section(&mut text, "request", &charter.request);
    if let Some(requirements) = &quest.requirements {
        section(&mut text, "requirements", &written(requirements));
    }
    match phase {
        Phase::Work => quest.plans.get(step).iter().for_each(|plan| section(&mut text, "step", &planned(plan))),
        Phase::Requirements | Phase::Plan | Phase::Review => {}
    }
    // Whoever plans or reviews has to see all of it.
    let sees_all = matches!(phase, Phase::Plan | Phase::Review) || role.name == charter.table.planner;
    if sees_all && !quest.plans.is_empty() {
        section(&mut text, "plan", &overview(quest));
    }
    if let Some(ward) = &charter.ward {
        section(&mut text, "ward", &ward.command);
    }
    match brief {
        Brief::Begin => {}
        Brief::Continue { progress, continuation_point } => {
            text.push_str("Another agent in your role began this and had to leave off. Go on from there; its work is in the folder.\n\n");
            section(&mut text, "progress", progress);
            section(&mut text, "continuation-point", continuation_point);
        }
        Brief::Mend { findings, artifact } => {
            let _ = writeln!(text, "The ward is red. Mend what it found. Its whole output is in `{artifact}`.\n");
            section(&mut text, "findings", &findings.join("\n"));
        }
        Brief::Reconcile { files } => {
            text.push_str(
                "What this step did conflicts with what others did meanwhile. The conflict is in the folder, with git's usual \
                 marks, in these files. Resolve it so that both intents hold; do not commit.\n\n",
            );
            section(&mut text, "conflicts", &files.join("\n"));
        }
        Brief::FollowUp { from, reason, context } => {
            let _ = writeln!(text, "The {from} of this step asks you to act first.\n");
            section(&mut text, "reason", reason);
            section(&mut text, "context", context);
        }
    }
    let _ = write!(
        text,
        "You are the {} of step `{step}` of quest {id}. When you are done, or cannot go on, call the tool `signal-back` once, with \
         stepId `{step}`, and then stop. You may signal: {}.",
        role.name,
        choices(role),
    );
    text
}

/// What an agent is told that asked another role to act first.
pub(super) fn outcome(of: &str, summary: &str, plan: Option<&StepPlan>) -> String {
    let mut text =
        format!("The {of} that you asked for is done. Go on with your step, and signal when you are done.\n\n");
    section(&mut text, "outcome", summary);
    if let Some(plan) = plan {
        section(&mut text, "step", &planned(plan));
    }
    text.trim_end().to_owned()
}

/// What an agent is told that asked a person.
pub(super) fn answer(answer: &str) -> String {
    let mut text = String::from("The human answered. Go on with your step, and signal when you are done.\n\n");
    section(&mut text, "answer", answer);
    text.trim_end().to_owned()
}

/// What a person is asked when a circle of roles is cut.
pub(super) fn circle(role: &str, target: &str, reason: &str, agent: AgentId) -> String {
    format!(
        "The {role} ({agent}) asks for the {target}, as others have before it, and the two could go on so for ever. It says: {reason}\n\
         Your answer is told to it, and it goes on."
    )
}

fn choices(role: &Role) -> String {
    let choice = |kind: &SignalKind| match kind {
        SignalKind::Complete => "`complete` (summary)".to_owned(),
        SignalKind::PartiallyComplete => {
            "`partially-complete` (progress, continuationPoint) when you run out of room".to_owned()
        }
        SignalKind::NeedsUserInput => {
            "`needs-user-input` (question, context) when only a person can say how to go on".to_owned()
        }
        SignalKind::NeedsRoleFollowup => format!(
            "`needs-role-followup` (targetRole: {}; reason, context, resume) when another role has to act first",
            role.calls.join(" or ")
        ),
    };
    let possible = |kind: &&SignalKind| **kind != SignalKind::NeedsRoleFollowup || !role.calls.is_empty();
    role.may.iter().filter(possible).map(choice).collect::<Vec<_>>().join("; ")
}

fn written(requirements: &Requirements) -> String {
    let mut text = String::new();
    for context in &requirements.contexts {
        let _ = writeln!(text, "context {}: {}", context.id, context.description);
    }
    for observable in &requirements.observables {
        let context = observable.context.as_ref().map(|id| format!(" (in {id})")).unwrap_or_default();
        let _ = writeln!(text, "observable {}{context}: {}", observable.id, observable.description);
    }
    text
}

fn planned(plan: &StepPlan) -> String {
    let mut text = format!("{}: {}\n", plan.id, plan.name);
    if !plan.description.is_empty() {
        let _ = writeln!(text, "{}", plan.description);
    }
    let after: Vec<String> = plan.depends_on.iter().map(ToString::to_string).collect();
    for (what, list) in [
        ("comes after", &after),
        ("files to create", &plan.files_to_create),
        ("files to change", &plan.files_to_modify),
        ("makes true", &plan.observables),
    ] {
        if !list.is_empty() {
            let _ = writeln!(text, "{what}: {}", list.join(", "));
        }
    }
    text
}

/// All steps, a line each.
fn overview(quest: &Quest) -> String {
    let mut text = String::new();
    for (id, plan) in &quest.plans {
        let after: Vec<String> = plan.depends_on.iter().map(ToString::to_string).collect();
        let after = if after.is_empty() { String::new() } else { format!(" (after {})", after.join(", ")) };
        let status = quest.step(id).map_or("pending", |step| step.status().word());
        let _ = writeln!(text, "{id}: {} [{status}]{after}", plan.name);
    }
    text
}

/// Something that others wrote, between marks. Their own marks are made harmless.
fn section(text: &mut String, name: &str, content: &str) {
    let content = content.trim_end();
    match (name, content) {
        (_, "") => {}
        ("", content) => {
            let _ = writeln!(text, "{content}\n");
        }
        (name, content) => {
            let content = content.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(text, "<{name}>\n{content}\n</{name}>\n");
        }
    }
}
