//! Makes a run folder ready and starts a launcher on it. Doing it twice is harmless: the second launcher finds the first, or
//! what it left.

use super::RunnerContext;
use crate::clock;
use crate::harness::{self, Opening, Start};
use crate::launcher;
use crate::project;
use crate::run_folder::{Ended, Launch, LaunchKind, MARK, RunFolder};
use hatchery_core::outcome::Exit;
use hatchery_core::quest::Isolation;
use hatchery_core::roles::Phase;
use hatchery_core::run::{self, AttemptId, HarnessSession, RunSpec};
use hatchery_core::{AgentId, World};
use std::io;
use std::sync::Arc;

/// Sees to it that there is a folder to work in for an agent whose quest gives each step a worktree.
pub async fn make_room(context: &Arc<RunnerContext>, world: &World, agent: AgentId) -> Result<(), String> {
    let Some(assignment) = world.assignment(agent) else { return Ok(()) };
    let isolated = world.quest_spec(assignment.quest).is_some_and(|quest_spec| quest_spec.isolation != Isolation::None);
    if !isolated {
        return Ok(());
    }
    let step = world.quest(assignment.quest).and_then(|quest| quest.step(&assignment.step));
    let own = step.is_some_and(|step| step.phase == Phase::Work);
    let (context, quest, step) = (Arc::clone(context), assignment.quest.to_string(), assignment.step.clone());
    let made = tokio::task::spawn_blocking(move || {
        let repository = context.repository()?;
        let made = if own { repository.isolate(&quest, step.as_str()) } else { repository.trunk(&quest) };
        made.map(drop).map_err(|error| error.to_string())
    });
    made.await.map_err(|error| error.to_string())?
}

/// Starts the launcher of an attempt, unless it was started before. With a `problem` it is recorded as one that could not be started.
pub fn launch(
    context: &RunnerContext,
    world: &World,
    of: AttemptId,
    folder: &RunFolder,
    problem: Option<String>,
) -> io::Result<()> {
    let Some(run) = world.run(of.agent) else { return Ok(()) };
    folder.prepare()?;
    folder.make_token(of)?;
    if let Some(problem) = problem {
        // A launcher that was sent before may be at work by now, and knows better.
        return match folder.lock()? {
            Some(_lock) if folder.started()?.is_none() => {
                folder.write_ended(&Ended::before_it_began(Exit::NotStarted, problem))
            }
            _ => Ok(()),
        };
    }
    if folder.launch()?.is_none() {
        let opening = opening(world, of.agent, &run.spec);
        match describe(context, of, &run.spec, folder, &opening, part(world, of.agent))? {
            Ok(launch) => folder.write_launch(&launch)?,
            Err(problem) => return folder.write_ended(&Ended::before_it_began(Exit::NotStarted, problem)),
        }
    }
    launcher::send(&context.program, folder)
}

fn describe(
    context: &RunnerContext,
    of: AttemptId,
    spec: &RunSpec,
    folder: &RunFolder,
    opening: &Opening,
    part: Option<String>,
) -> io::Result<Result<Launch, String>> {
    let Some(harness) = context.harnesses.named(&spec.harness) else {
        let known = context.harnesses.names().join(", ");
        return Ok(Err(format!("there is no harness `{}`; there are {known}", spec.harness)));
    };
    let root = context.project.root();
    let place = spec.folder.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder));
    if !place.is_dir() {
        return Ok(Err(format!("there is no folder {} to work in", place.display())));
    }
    // Our own processes keep each other out by a lock, which a program that was started by hand knows nothing of.
    if let Opening::Resumed { session } = opening
        && let Some(pid) = context.transcripts.running().get(session)
    {
        return Ok(Err(format!(
            "process {pid} is at the conversation {session}: end it, then say something to the agent"
        )));
    }
    let tools = harness::mcp_config(&context.program, root, folder, &of.agent.to_string(), spec.signals);
    project::write_for_now(&folder.mcp_config(), tools.as_bytes(), 0o600)?;
    let invocation = harness.command(&Start { spec, folder, opening, part });
    let mut env = invocation.env;
    env.insert(MARK.into(), folder.mark());
    let copy_of = match opening {
        Opening::Forked { from, .. } => Some(from.clone()),
        Opening::New { .. } | Opening::Resumed { .. } => None,
    };
    let kind = LaunchKind::Agent { of, session: opening.session().to_owned(), copy_of };
    Ok(Ok(Launch { kind, program: invocation.program, args: invocation.args, env, folder: place }))
}

/// What the agent is in a quest.
fn part(world: &World, agent: AgentId) -> Option<String> {
    let assignment = world.assignment(agent)?;
    let step = world.quest(assignment.quest)?.step(&assignment.step)?;
    let number =
        step.agents.iter().filter(|hand| hand.role == assignment.role).take_while(|hand| hand.agent != agent).count()
            + 1;
    Some(format!("{}/{}/{}/{number}", assignment.quest, assignment.step, assignment.role))
}

/// How the conversation is entered: the agent's own is resumed, that of the agent it was forked from is copied when it holds
/// exactly what was inherited, and otherwise a new one is begun.
fn opening(world: &World, agent: AgentId, spec: &RunSpec) -> Opening {
    let here = |harness_session: &&HarnessSession| {
        harness_session.harness == spec.harness && harness_session.host == spec.host
    };
    if let Some(harness_session) =
        world.conversation(agent).and_then(|conversation| conversation.harness_session.as_ref()).filter(here)
    {
        return Opening::Resumed { session: harness_session.session.clone() };
    }
    let session = clock::new_uuid();
    match run::inherited_session(world, agent).filter(here) {
        Some(harness_session) => Opening::Forked { from: harness_session.session.clone(), session },
        None => Opening::New { session },
    }
}
