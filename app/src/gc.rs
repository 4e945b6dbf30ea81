//! What is left over: files and branches that are no longer needed and that would accumulate. Everything that matters about them
//! is in the log. Work that was rescued is never a leftover, and neither is a folder that the log does not know.

use crate::clock::{Clock as _, SystemClock};
use crate::project::{Project, flock};
use crate::quest_file;
use crate::run_folder::{self, RunFolder};
use crate::runner::agent_worktrees;
use crate::selftest_folder;
use crate::ward::{self, Ward};
use crate::worktree::{ALL_WORKTREES, CHECKOUT, Repository};
use hatchery_core::agent::{Agent, Lifecycle};
use hatchery_core::quest::{Quest, QuestSpec, QuestState};
use hatchery_core::run::{AttemptId, Run};
use hatchery_core::{AgentId, QuestId, Timestamp, World};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How old the state of a scripted agent must be if no agent of the log has it.
const UNCLAIMED: Duration = Duration::from_secs(3_600);

/// One thing that can go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Leftover {
    pub kind: LeftoverKind,
    /// The path from the project's root, or the slug of the quest or agent whose branch it is.
    pub what: String,
    /// How much space it takes.
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftoverKind {
    /// The folder of an attempt that is over.
    Attempt,
    /// The folder of a ward of a quest that is over.
    Ward,
    /// The folder of a quest that is over, with its `quest.json`. The log has all of it.
    QuestFolder,
    /// The folder of a selftest that was killed.
    Selftest,
    /// The folder of an agent, without anything in it.
    AgentFolder,
    /// The lock of a harness session that no process has.
    SessionLock,
    /// What a scripted agent remembered that is dead.
    ScriptedState,
    /// The lock of worktrees that are gone.
    WorktreeLock,
    /// The branch of a quest that is over or of a dead agent, merged or squashed into the user's branch, and used by no worktree.
    Branch,
}

/// Finds what is older than `keep`. `repository` is None where there is none.
pub fn find(
    project: &Project,
    world: &World,
    repository: Option<&Repository>,
    keep: Duration,
) -> io::Result<Vec<Leftover>> {
    let mut found = Vec::new();
    let mut note = |kind, path: &Path| {
        let what = path.strip_prefix(project.root()).unwrap_or(path).display().to_string();
        // The wards in the folder of a quest are leftovers of their own.
        let bytes = match kind == LeftoverKind::QuestFolder {
            true => files(path).unwrap_or_default().iter().map(|file| size(file)).sum::<u64>(),
            false => size(path),
        };
        found.push(Leftover { kind, what, bytes });
    };
    // An agent can spoil the files of its folder and their modes, and a folder may go meanwhile. Neither hinders the others.
    let is_old = |path: &Path| age(path).is_ok_and(|age| age >= keep);
    for (of, folder) in run_folder::all(project)? {
        if is_over(world, of) && !folder.may_be_held() && is_old(folder.path()) {
            note(LeftoverKind::Attempt, folder.path());
        }
    }
    for (quest, _, _, ward) in Ward::all(Path::new(""), project)? {
        if world.quest(quest).is_some_and(Quest::is_over) && !ward.may_be_held() && is_old(ward.path()) {
            note(LeftoverKind::Ward, ward.path());
        }
    }
    // After the wards, which are in these folders and go first.
    for folder in run_folder::subfolders(&project.data().join("quests"))? {
        if quest_of(&folder).and_then(|quest| world.quest(quest)).is_some_and(Quest::is_over)
            && (is_old(&folder.join(quest_file::NAME)) || (!folder.join(quest_file::NAME).exists() && is_old(&folder)))
            && wards_are_due(&folder, is_old).unwrap_or(false)
            && has_set_aside(&folder).is_ok_and(|has| !has)
        {
            note(LeftoverKind::QuestFolder, &folder);
        }
    }
    for folder in selftest_folder::abandoned(project)? {
        if is_old(&folder) {
            note(LeftoverKind::Selftest, &folder);
        }
    }
    let runs = project.data().join("runs");
    for folder in run_folder::subfolders(&runs)? {
        let agent: Option<AgentId> = folder.file_name().and_then(|name| name.to_str()?.parse().ok());
        let is_at_rest = agent.is_some_and(|agent| world.agent(agent).is_some() && !at_work(world, agent));
        if is_at_rest && std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_none()) {
            note(LeftoverKind::AgentFolder, &folder);
        }
    }
    for path in files(&runs.join("sessions"))? {
        if !session_at_work(world, &path) && is_old(&path) && is_free(&path).unwrap_or(false) {
            note(LeftoverKind::SessionLock, &path);
        }
    }
    for path in files(&project.data().join("sim"))? {
        let is_needed = match owner(world, &path) {
            Some(agent) => lives(world, agent),
            // A process writes its state before the log knows its session.
            None => !age(&path).is_ok_and(|age| age >= UNCLAIMED),
        };
        if !is_needed && is_old(&path) {
            note(LeftoverKind::ScriptedState, &path);
        }
    }
    let worktrees = project.data().join("worktrees");
    for path in files(&worktrees)?.into_iter().filter(|_| repository.is_some()) {
        let is_alone = slug_of_lock(&path).is_some_and(|slug| !worktrees.join(slug).exists());
        if is_alone && is_old(&path) && is_free(&path).unwrap_or(false) {
            note(LeftoverKind::WorktreeLock, &path);
        }
    }
    if let Some(repository) = repository {
        let slugs = slugs_over(project, world, keep);
        let disposable = repository.disposable_slugs(&slugs).unwrap_or_else(|error| {
            tracing::warn!(%error, "merged branches cannot be looked for");
            BTreeSet::new()
        });
        found.extend(disposable.into_iter().map(|what| Leftover { kind: LeftoverKind::Branch, what, bytes: 0 }));
    }
    Ok(found)
}

/// Removes one, or says why it stays. It is looked at again where something may have happened to it meanwhile.
pub fn clear(project: &Project, repository: Option<&Repository>, leftover: &Leftover) -> io::Result<()> {
    let path = project.root().join(&leftover.what);
    let stays = |why: &str| Err(io::Error::other(why));
    match leftover.kind {
        LeftoverKind::Attempt | LeftoverKind::Ward => std::fs::remove_dir_all(path),
        LeftoverKind::QuestFolder if has_set_aside(&path)? => stays("a file that could not be read is in it"),
        LeftoverKind::QuestFolder => {
            // Fails when a ward is still there, and then the rest stays, too.
            match std::fs::remove_dir(path.join(ward::WARDS)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            files(&path)?.iter().try_for_each(std::fs::remove_file)?;
            std::fs::remove_dir(path)
        }
        LeftoverKind::Selftest if !selftest_folder::abandoned(project)?.contains(&path) => stays("its selftest runs"),
        LeftoverKind::Selftest => std::fs::remove_dir_all(path),
        // Fails when something has come into it.
        LeftoverKind::AgentFolder => std::fs::remove_dir(path),
        LeftoverKind::SessionLock if !is_free(&path)? => stays("a process has it"),
        LeftoverKind::SessionLock | LeftoverKind::ScriptedState => std::fs::remove_file(path),
        LeftoverKind::Branch => match repository {
            Some(repository) => repository.dispose(&leftover.what).map_err(io::Error::other),
            None => stays("the repository is gone"),
        },
        LeftoverKind::WorktreeLock => match repository.zip(slug_of_lock(&path)) {
            Some((_, slug)) if path.with_file_name(slug).exists() => stays("there are worktrees again"),
            Some((repository, slug)) => repository.dissolve(slug).map_err(io::Error::other),
            None => stays("the repository is gone"),
        },
    }
}

/// Attempts follow each other, so one that is over stays over.
fn is_over(world: &World, of: AttemptId) -> bool {
    world.run(of.agent).is_some_and(|run| {
        let open = run.is_open().then_some((run.number, run.attempt.number));
        open.map_or(of.run <= run.number, |open| (of.run, of.attempt) < open)
    })
}

/// An agent that lives goes on with what it remembers when something is said to it, also when it sleeps or its quest is over.
fn lives(world: &World, agent: AgentId) -> bool {
    world.agent(agent).is_some_and(Agent::is_living)
}

/// The slugs of quests that have been over for some time, and of dead agents that had worktrees of their own.
fn slugs_over(project: &Project, world: &World, keep: Duration) -> Vec<String> {
    let quests = world.quests().filter(|(id, quest)| quest.is_over() && quest_age(project, world, *id) >= keep);
    let of_quests = quests.filter_map(|(id, _)| world.quest_spec(id).and_then(QuestSpec::slug));
    let agents = world.runs().map(|(agent, _)| agent);
    let dead = agents.filter(|agent| agent_worktrees::is_over(world, *agent) && death_age(world, *agent) >= Some(keep));
    let of_agents = dead.filter_map(|agent| agent_worktrees::slug_of(world, agent));
    of_quests.chain(of_agents).map(str::to_owned).collect()
}

/// The slug of the worktrees that a lock is for. The locks of the list of all worktrees and of the user's checkout are always needed.
fn slug_of_lock(path: &Path) -> Option<&str> {
    path.file_name()
        .and_then(|name| name.to_str()?.strip_suffix(".lock"))
        .filter(|slug| ![ALL_WORKTREES, CHECKOUT].contains(slug))
}

fn at_work(world: &World, agent: AgentId) -> bool {
    world.run(agent).is_some_and(Run::is_open)
}

/// Whether the agent of the harness session that a file is named after has an open run.
fn session_at_work(world: &World, path: &Path) -> bool {
    owner(world, path).is_some_and(|agent| at_work(world, agent))
}

/// The agent of the harness session that a file is named after.
fn owner(world: &World, path: &Path) -> Option<AgentId> {
    let session = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('.').next());
    session.and_then(|session| world.harness_session_owner(session))
}

fn is_free(path: &Path) -> io::Result<bool> {
    flock(&File::open(path)?, FlockOperation::NonBlockingLockExclusive)
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(folder) {
        // An agent may have put a file in its place.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        entries => Ok(entries?.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect()),
    }
}

/// Whether a file was set aside in the folder of a quest, because it could not be read. It may be the only copy of something.
fn has_set_aside(folder: &Path) -> io::Result<bool> {
    let is_set_aside = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".bad-"));
    Ok(files(folder)?.iter().any(is_set_aside))
}

/// The quest that a folder is named after.
fn quest_of(folder: &Path) -> Option<QuestId> {
    folder.file_name().and_then(|name| name.to_str()?.parse().ok())
}

/// Whether all wards in the folder of a quest that is over are leftovers, too.
fn wards_are_due(folder: &Path, is_old: impl Fn(&Path) -> bool) -> io::Result<bool> {
    let wards = run_folder::subfolders(&folder.join(ward::WARDS))?;
    Ok(wards.into_iter().all(|ward| is_old(&ward) && !RunFolder::at(ward).may_be_held()))
}

/// The time since the quest's file changed for the last time. Without a file, the time since the quest ended.
fn quest_age(project: &Project, world: &World, quest: QuestId) -> Duration {
    let since_end = || match world.quest(quest)?.state {
        QuestState::Complete { at } | QuestState::Abandoned { at } => Some(since(at)),
        QuestState::Open | QuestState::Paused => None,
    };
    let of_file = age(&quest_file::folder(project, quest).join(quest_file::NAME)).ok();
    of_file.or_else(since_end).unwrap_or_default()
}

/// The time since an agent died. None while it lives.
fn death_age(world: &World, agent: AgentId) -> Option<Duration> {
    match world.agent(agent)?.lifecycle {
        Lifecycle::Dead { at } | Lifecycle::Expired { at } => Some(since(at)),
        Lifecycle::Hatching { .. } | Lifecycle::Alive { .. } | Lifecycle::Sleeping => None,
    }
}

fn since(at: Timestamp) -> Duration {
    Duration::from_millis(SystemClock.now().ms_since(at))
}

/// The time since its last change. A time in the future counts as now.
fn age(path: &Path) -> io::Result<Duration> {
    let modified = std::fs::metadata(path)?.modified()?;
    Ok(SystemTime::now().duration_since(modified).unwrap_or_default())
}

fn size(path: &Path) -> u64 {
    let Ok(found) = std::fs::symlink_metadata(path) else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
}
