//! Makes a run folder ready and starts a launcher on it. Doing it twice is harmless: the second launcher finds the first, or
//! what it left.

use super::Workshop;
use crate::clock;
use crate::harness::{self, Opening, Start};
use crate::project;
use crate::run_folder::{Ended, LAUNCHER_MARK, Launch, MARK, RunFolder};
use hatchery_core::outcome::Exit;
use hatchery_core::run::{self, Fence, RunSpec, Talk};
use hatchery_core::{AgentId, World};
use std::io;
use std::process::Stdio;

/// Starts the launcher of an attempt, unless it was started before.
pub fn launch(workshop: &Workshop, world: &World, of: Fence, folder: &RunFolder) -> io::Result<()> {
    let Some(run) = world.run(of.agent) else { return Ok(()) };
    folder.prepare()?;
    folder.make_token(of)?;
    if folder.launch()?.is_none() {
        let opening = opening(world, of.agent, &run.spec);
        match describe(workshop, of, &run.spec, folder, &opening)? {
            Ok(launch) => folder.write_launch(&launch)?,
            Err(problem) => return folder.write_ended(&Ended { exit: Exit::NotStarted, problem: Some(problem) }),
        }
    }
    let mut launcher = tokio::process::Command::new(&workshop.program);
    launcher.arg("launch").arg(folder.path()).current_dir(folder.path());
    launcher.env_clear().env(LAUNCHER_MARK, folder.mark()).stdin(Stdio::null()).stdout(Stdio::null());
    launcher.stderr(std::fs::File::create(folder.path().join("launcher.log"))?);
    // Not ours to end: it outlives us. When it ends before us, the runtime collects it.
    launcher.kill_on_drop(false).spawn().map(drop)
}

fn describe(
    workshop: &Workshop,
    of: Fence,
    spec: &RunSpec,
    folder: &RunFolder,
    opening: &Opening,
) -> io::Result<Result<Launch, String>> {
    let Some(harness) = workshop.harnesses.named(&spec.harness) else {
        let known = workshop.harnesses.names().join(", ");
        return Ok(Err(format!("there is no harness `{}`; there are {known}", spec.harness)));
    };
    let root = workshop.project.root();
    let place = spec.folder.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder));
    if !place.is_dir() {
        return Ok(Err(format!("there is no folder {} to work in", place.display())));
    }
    // Our own processes keep each other out by a lock, which a program that was started by hand knows nothing of.
    if let Opening::Resumed { session } = opening
        && let Some(pid) = workshop.transcripts.running().get(session)
    {
        return Ok(Err(format!(
            "process {pid} is at the conversation {session}: end it, then say something to the agent"
        )));
    }
    let tools = harness::mcp_config(&workshop.program, root, folder, &of.agent.to_string());
    project::write_for_now(&folder.mcp_config(), tools.as_bytes(), 0o600)?;
    let invocation = harness.command(&Start { spec, folder, opening });
    let mut env = invocation.env;
    env.insert(MARK.into(), folder.mark());
    Ok(Ok(Launch {
        of,
        program: invocation.program,
        args: invocation.args,
        env,
        folder: place,
        session: opening.session().to_owned(),
        copy_of: match opening {
            Opening::Forked { from, .. } => Some(from.clone()),
            Opening::New { .. } | Opening::Resumed { .. } => None,
        },
    }))
}

/// How the conversation is entered: the agent's own is resumed, that of the agent it was forked from is copied when it holds
/// exactly what was inherited, and otherwise a new one is begun.
fn opening(world: &World, agent: AgentId, spec: &RunSpec) -> Opening {
    let here = |talk: &&Talk| talk.harness == spec.harness && talk.host == spec.host;
    if let Some(talk) = world.seat(agent).and_then(|seat| seat.talk.as_ref()).filter(here) {
        return Opening::Resumed { session: talk.session.clone() };
    }
    let session = clock::new_uuid();
    match run::inherited_talk(world, agent).filter(here) {
        Some(talk) => Opening::Forked { from: talk.session.clone(), session },
        None => Opening::New { session },
    }
}
