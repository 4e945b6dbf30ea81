//! Says what to launch for an attempt: the program, its arguments, and how its session is opened.

use super::{RunnerContext, agent_worktrees};
use crate::clock;
use crate::harness::{AgentPurpose, AttemptStart, Harness, Invocation, ToolServer};
use crate::processes;
use crate::project;
use crate::run_folder::{ATTEMPT_TAG, Ended, Launch, LaunchKind, RunFolder};
use hatchery_core::harness::Opening;
use hatchery_core::outcome::Exit;
use hatchery_core::quest::QuestSpec;
use hatchery_core::roles::Phase;
use hatchery_core::run::{self, AttemptId, RunSpec};
use hatchery_core::seat;
use hatchery_core::{AgentId, World};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for a process that still has the session of an attempt open.
const ENDING_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates the worktree in which an agent works, if it has its own or works for a quest with worktrees.
pub async fn create_worktree(context: &Arc<RunnerContext>, world: &World, agent: AgentId) -> Result<(), String> {
    let Some(assignment) = world.assignment(agent) else {
        return match agent_worktrees::slug_of(world, agent) {
            Some(slug) => agent_worktrees::create(context, slug.to_owned()).await,
            None => Ok(()),
        };
    };
    let slug = world.quest_spec(assignment.quest).and_then(QuestSpec::slug);
    let Some(slug) = slug.map(str::to_owned) else { return Ok(()) };
    let step = world.quest(assignment.quest).and_then(|quest| quest.step(&assignment.step));
    let own = step.is_some_and(|step| step.phase == Phase::Work);
    let (context, step) = (Arc::clone(context), assignment.step.clone());
    let made = tokio::task::spawn_blocking(move || {
        let repository = context.repository()?;
        let made = if own { repository.isolate(&slug, step.as_str()) } else { repository.trunk(&slug) };
        let made = made.map_err(|error| error.to_string())?;
        repository.prepare(&made, &context.settings().preparation).map_err(|error| error.to_string())
    });
    made.await.map_err(|error| error.to_string())?
}

/// Writes the files that the process of an attempt needs, and returns what to launch, or why that is not possible.
pub fn prepare_launch(
    context: &RunnerContext,
    world: &World,
    of: AttemptId,
    folder: &RunFolder,
) -> io::Result<Result<Launch, Ended>> {
    let never = |problem: String| Ok(Err(Ended::without_process(Exit::NotStarted, problem)));
    let Some(run) = world.run(of.agent) else { return never("its run is over".to_owned()) };
    let spec = &*run.spec;
    folder.make_token(of)?;
    let settings = context.settings();
    let Some(harness) = settings.harnesses.named(&spec.harness) else {
        let known = settings.harnesses.names().join(", ");
        return never(format!("there is no harness `{}`; there are {known}", spec.harness));
    };
    let capabilities = harness.capabilities();
    let opening = run::opening(world, of.agent, capabilities);
    let root = context.project.root();
    let place = spec.folder.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder));
    if !place.is_dir() {
        return never(format!("there is no folder {} to work in", place.display()));
    }
    // Launchers exclude each other with a lock. A program that the user has started does not know this lock.
    if let Opening::Resume { session, .. } = &opening
        && let Some((pid, ends)) = still_in_use(harness.as_ref(), session)
    {
        let problem =
            format!("process {pid} has the session {session} open: end that process, then say something to the agent");
        return if ends { Ok(Err(Ended::for_now(problem))) } else { never(problem) };
    }
    let new_session = match &opening {
        Opening::New | Opening::Fork { .. } => capabilities.chooses_session_id.then(clock::new_uuid),
        Opening::Resume { .. } => None,
    };
    let tools = ToolServer::of(&context.program, root, folder, &of.agent.to_string(), work(world, of.agent, spec));
    let data = context.project.data();
    let start = AttemptStart {
        spec,
        run_folder: folder,
        working_folder: &place,
        data: &data,
        opening: &opening,
        new_session: new_session.as_deref(),
        tools: &tools,
        part: part(world, of.agent),
        leads_team: leads_team(world, of.agent),
    };
    let Invocation { program, args, mut env, files, first_lines, answers_awaited } = harness.command(&start);
    for (name, content) in files {
        project::write_for_now(&folder.path().join(name), &content, 0o600)?;
    }
    env.insert(ATTEMPT_TAG.into(), folder.tag());
    let (session, copy_of) = match opening {
        Opening::New => (new_session, None),
        Opening::Resume { session, .. } => (Some(session), None),
        Opening::Fork { from, .. } => (new_session, Some(from)),
    };
    let kind = LaunchKind::Agent { of, session, copy_of, capabilities };
    Ok(Ok(Launch { kind, program, args, env, folder: place, first_lines, answers_awaited }))
}

/// Removes what the process of an attempt has left in its working folder, unless another agent works there with the same harness.
pub fn tidy(world: &World, agent: AgentId, harness: &dyn Harness, folder: &RunFolder) -> io::Result<()> {
    let Some(Launch { folder: place, .. }) = folder.read_launch()? else { return Ok(()) };
    let Some(spec) = world.run(agent).map(|run| &run.spec) else { return Ok(()) };
    let works_there =
        |run: &run::Run| run.is_open() && run.spec.folder == spec.folder && run.spec.harness == spec.harness;
    if !world.runs().any(|(other, run)| other != agent && works_there(run)) {
        harness.tidy(&place);
    }
    Ok(())
}

/// The process that has a session open, and whether it is likely to end soon. A process of Hatchery that was just killed still exists while
/// the kernel frees its memory, so this function waits for its end.
fn still_in_use(harness: &dyn Harness, session: &str) -> Option<(u32, bool)> {
    let pid = harness.session_in_use(session)?;
    if processes::is_tagged(pid, ATTEMPT_TAG) == Some(false) {
        return Some((pid, false));
    }
    processes::wait_for_end(&processes::look_up(pid), ENDING_TIMEOUT);
    harness.session_in_use(session).map(|pid| (pid, true))
}

fn work(world: &World, agent: AgentId, spec: &RunSpec) -> AgentPurpose {
    match (spec.signals, world.seats().occupied_by(agent)) {
        (true, _) => AgentPurpose::Quest,
        (false, Some(_)) => AgentPurpose::Seat,
        (false, None) => AgentPurpose::Free,
    }
}

/// Whether an agent leads the seats with a team of its own.
fn leads_team(world: &World, agent: AgentId) -> bool {
    let seats = world.seats();
    seats.lead() == Some(agent) && seats.session().is_some_and(|open| open.mode == seat::Mode::Lead)
}

/// The part of an agent in a seat, which selects the script of a scripted agent.
fn part_in_seat(world: &World, agent: AgentId) -> Option<String> {
    let run = world.run(agent)?.number;
    if world.seats().lead() == Some(agent) {
        return Some(format!("seats/lead/lead/{run}"));
    }
    let (position, seat) = world.seats().occupied_by(agent)?;
    let role = if seat.has_soul() { "wake" } else { "birth" };
    Some(format!("seats/seat-{position}/{role}/{run}"))
}

/// The part that a scripted agent plays: `QUEST/STEP/ROLE/NUMBER` in a quest, `QUEST/STEP/fork/NUMBER` for a step fork, `seats/…` in a
/// seat.
fn part(world: &World, agent: AgentId) -> Option<String> {
    if let Some(part) = part_in_seat(world, agent) {
        return Some(part);
    }
    let assignment = world.assignment(agent)?;
    if let Some(fork) = world.step_fork(agent) {
        return Some(format!("{}/{}/fork/{}", assignment.quest, assignment.step, fork.number));
    }
    let step = world.quest(assignment.quest)?.step(&assignment.step)?;
    let number =
        step.agents.iter().filter(|hand| hand.role == assignment.role).take_while(|hand| hand.agent != agent).count()
            + 1;
    Some(format!("{}/{}/{}/{number}", assignment.quest, assignment.step, assignment.role))
}
