//! What the steps of quests need besides agents: their wards are run, their work is merged, and worktrees that are no longer needed are
//! removed. Everything here may be repeated: a ward continues under its launcher and is found by its number, and a second merge changes
//! nothing.

use super::{RETRY_PAUSE, RunnerContext, agent_worktrees};
use crate::blocking::blocking;
use crate::engine::SubmitError;
use crate::folder_watch::FolderWatcher;
use crate::own_environment;
use crate::ward::{self, Ward, WardJob, WardResult, WardStatus};
use crate::worktree::{Join, Repository, WorktreeError, WorktreeName};
use hatchery_core::quest::{Chore, ChoreKind, Isolation, Merge, Quest, QuestSpec, StepId, StepStatus, Verdict};
use hatchery_core::roles::Phase;
use hatchery_core::run::Run;
use hatchery_core::{AgentId, Command, Plan, QuestId, World};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How often to look for worktrees of ended quests and dead agents. If one cannot be removed, it is tried again after this time, then after
/// twice this time, and so on.
const TIDY_PAUSE: Duration = Duration::from_secs(2);
/// The longest of these pauses. Often a person removes the obstacle.
const LONGEST_TIDY_PAUSE: Duration = Duration::from_secs(600);
/// The least time between two looks, because the plan may change often.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

type StepKey = (QuestId, StepId);

/// The chores that are being carried out.
pub struct Chores {
    context: Arc<RunnerContext>,
    watcher: Option<FolderWatcher>,
    doing: BTreeMap<StepKey, ChoreUnderWay>,
    /// The slugs of the worktrees that are being removed.
    tidying: BTreeSet<String>,
    /// The slugs whose worktrees could not be removed: when to try again, and how long the pause was.
    later: BTreeMap<String, (Instant, Duration)>,
    /// When worktrees were last looked for.
    looked_at: Option<Instant>,
    /// A look was postponed, because the previous one was a moment ago.
    is_due: bool,
    /// Whether the wards of an earlier daemon were looked for.
    looked: bool,
    pub tasks: JoinSet<Finished>,
}

struct ChoreUnderWay {
    chore: Chore,
    /// The chore is no longer wanted, and was asked to stop.
    stopping: bool,
}

/// What a task has finished.
pub enum Finished {
    Chore(StepKey),
    /// Whether nothing is left of the worktrees with this slug.
    Tidied(String, bool),
    /// Wards that are no longer wanted were stopped.
    WardsStopped,
}

impl Chores {
    pub fn new(context: Arc<RunnerContext>, watcher: Option<FolderWatcher>) -> Self {
        Self {
            context,
            watcher,
            doing: BTreeMap::new(),
            tidying: BTreeSet::new(),
            later: BTreeMap::new(),
            looked_at: None,
            is_due: false,
            looked: false,
            tasks: JoinSet::new(),
        }
    }

    /// Starts every wanted chore, and stops the others.
    pub fn arrange(&mut self, plan: &Plan) {
        if !std::mem::replace(&mut self.looked, true) {
            let context = Arc::clone(&self.context);
            self.tasks.spawn(async move {
                stop_unwanted_wards(&context, None).await;
                Finished::WardsStopped
            });
        }
        let is_unwanted =
            |key: &StepKey, chore: &Chore| plan.chores.get(key).is_none_or(|wanted| wanted.number != chore.number);
        let unwanted = self.doing.iter_mut().filter(|(key, doing)| !doing.stopping && is_unwanted(key, &doing.chore));
        for (key, doing) in unwanted {
            doing.stopping = true;
            let (context, key, chore) = (Arc::clone(&self.context), key.clone(), doing.chore.clone());
            self.tasks.spawn(async move {
                stop_ward(&context, &key, &chore).await;
                Finished::WardsStopped
            });
        }
        for (key, chore) in plan.chores.iter().filter(|(_, chore)| chore.host == self.context.host) {
            if self.doing.contains_key(key) {
                continue;
            }
            let (context, watcher, key, chore) =
                (Arc::clone(&self.context), self.watcher.clone(), key.clone(), chore.clone());
            self.doing.insert(key.clone(), ChoreUnderWay { chore: chore.clone(), stopping: false });
            self.tasks.spawn(async move {
                do_chore(&context, watcher, &key, &chore).await;
                Finished::Chore(key)
            });
        }
        self.is_due = self.looked_at.is_some_and(|at| at.elapsed() < LOOK_PAUSE);
        if !self.is_due {
            self.tidy();
        }
    }

    /// When to look again. Worktrees are also created without a change of the plan, for example by the trial of a ward.
    pub fn look_again(&self) -> Duration {
        if self.is_due { LOOK_PAUSE } else { TIDY_PAUSE }
    }

    pub fn left(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        match finished {
            Ok(Finished::Chore(key)) => {
                self.doing.remove(&key);
            }
            Ok(Finished::WardsStopped) => {}
            Ok(Finished::Tidied(slug, gone)) => {
                self.tidying.remove(&slug);
                let before = self.later.remove(&slug);
                if !gone {
                    let pause = before.map_or(TIDY_PAUSE, |(_, pause)| (pause * 2).min(LONGEST_TIDY_PAUSE));
                    self.later.insert(slug, (Instant::now() + pause, pause));
                }
            }
            Err(error) => tracing::error!(%error, "a chore failed; it is begun again when the daemon is"),
        }
    }

    /// Removes the worktrees of ended quests and dead agents, when no agent works in them any more. Work that exists nowhere else is
    /// rescued first. The folders that exist decide, so it does not matter when and by whom they were created.
    fn tidy(&mut self) {
        let is_first = self.looked_at.replace(Instant::now()).is_none();
        let slugs = self.present(is_first);
        self.later.retain(|slug, _| slugs.contains(slug));
        if slugs.is_empty() {
            return;
        }
        let world = self.context.handle.view();
        let slug_of = |id: QuestId| world.quest_spec(id).and_then(QuestSpec::slug).filter(|slug| slugs.contains(*slug));
        let here = |id: QuestId| world.quest_spec(id).is_some_and(|spec| spec.spec.host == self.context.host);
        let forks = |quest: &Quest| quest.forks.keys().any(|agent| world.run(*agent).is_some_and(Run::is_open));
        let at_work = |quest: &Quest| quest.steps.values().any(|step| is_at_work(&world, step)) || forks(quest);
        // A stopped ward may still write, and a merge may still remove its own worktree.
        let busy = |id: QuestId| self.doing.keys().any(|(quest, _)| *quest == id);
        let quests = world.quests().filter(|(id, quest)| {
            quest.is_over() && slug_of(*id).is_some() && here(*id) && !at_work(quest) && !busy(*id)
        });
        let quests = quests.filter_map(|(id, _)| Some((slug_of(id)?.to_owned(), Owner::Quest(id))));
        let agents = agent_worktrees::with_folders(&world, &slugs).into_iter();
        let agents = agents.filter(|agent| agent_worktrees::is_over(&world, *agent));
        let agents = agents.filter_map(|id| Some((agent_worktrees::slug_of(&world, id)?.to_owned(), Owner::Agent(id))));
        // A fork may have worked in the worktree of another agent.
        let over: BTreeMap<String, Owner> = quests.chain(agents).collect();
        for (slug, owner) in over {
            let waits = self.later.get(&slug).is_some_and(|(at, _)| *at > Instant::now());
            if waits || !self.tidying.insert(slug.clone()) {
                continue;
            }
            let context = Arc::clone(&self.context);
            self.tasks.spawn(async move {
                if let Owner::Quest(quest) = owner {
                    stop_unwanted_wards(&context, Some(quest)).await;
                }
                let folder = context.project.data().join("worktrees").join(&slug);
                let tidied = aside(move || match owner {
                    Owner::Quest(quest) => tidy(&context, quest),
                    Owner::Agent(agent) => agent_worktrees::remove(&context, agent),
                });
                let tidied = tidied.await;
                if let Err(error) = &tidied {
                    tracing::warn!(
                        slug,
                        error,
                        "the worktrees of a quest or an agent could not be removed; trying again later"
                    );
                }
                Finished::Tidied(slug, tidied.is_ok() && !folder.exists())
            });
        }
    }

    /// The slugs of all worktrees. The first time also of locks, because an earlier daemon may have left a lock without a worktree.
    fn present(&self, with_locks: bool) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.context.project.data().join("worktrees")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter_map(|name| match name.strip_suffix(".lock") {
                Some(slug) => with_locks.then(|| slug.to_owned()),
                None => Some(name),
            })
            .collect()
    }
}

/// The owner of worktrees that are removed.
#[derive(Clone, Copy)]
enum Owner {
    Quest(QuestId),
    Agent(AgentId),
}

/// Stops running wards that are not wanted, of all quests or of one. A daemon that was killed could not stop them.
async fn stop_unwanted_wards(context: &Arc<RunnerContext>, only: Option<QuestId>) {
    let here = Arc::clone(context);
    let held = blocking(move || {
        let mut held = Ward::all(&here.program, &here.project)?;
        held.retain(|(quest, _, _, ward)| only.is_none_or(|only| only == *quest) && ward.may_be_held());
        Ok(held)
    });
    let held = match held.await {
        Ok(held) => held,
        Err(error) => return tracing::warn!(%error, "the folders of wards cannot be listed"),
    };
    for (quest, step, number, ward) in held {
        // The current plan counts, because a ward may have become wanted since the folders were listed. Wards of unknown quests are left
        // alone.
        let world = context.handle.view();
        let here = world.quest_spec(quest).is_some_and(|quest_spec| quest_spec.spec.host == context.host);
        let wanted = world.chores().get(&(quest, step.clone())).is_some_and(|chore| chore.number == number);
        if !here || wanted {
            continue;
        }
        if let Err(error) = ward.stop_and_wait().await {
            tracing::warn!(%quest, %step, %error, "a ward could not be stopped");
        }
    }
}

/// Stops a ward that is no longer wanted; its launcher would let it continue. The task that waits for the ward then ends, too.
async fn stop_ward(context: &RunnerContext, (quest, step): &StepKey, chore: &Chore) {
    if chore.what != ChoreKind::Ward {
        return;
    }
    let ward = Ward::of(context.program.clone(), &context.project, &quest.to_string(), step.as_str(), chore.number);
    let stopped = match ward {
        Ok(ward) => blocking(move || ward.stop()).await,
        Err(error) => Err(io::Error::other(error)),
    };
    if let Err(error) = stopped {
        tracing::warn!(%quest, %step, %error, "a ward could not be stopped");
    }
}

fn is_at_work(world: &World, step: &hatchery_core::quest::Step) -> bool {
    step.agents.iter().any(|hand| world.run(hand.agent).is_some_and(Run::is_open))
}

/// Carries out a chore and reports it. Repeats it if the report could not be recorded.
async fn do_chore(
    context: &Arc<RunnerContext>,
    watcher: Option<FolderWatcher>,
    (quest, step): &StepKey,
    chore: &Chore,
) {
    let (quest, step, number) = (*quest, step.clone(), chore.number);
    let report = match chore.what {
        ChoreKind::Ward => {
            let EndedWard { verdict, artifact, restored } = run_ward(context, watcher, quest, &step, number).await;
            Command::ReportWard { quest, step: step.clone(), number, verdict, artifact, restored }
        }
        ChoreKind::Merge => {
            let (merge, left_out) = join(context, quest, &step).await;
            Command::ReportMerge { quest, step: step.clone(), number, merge, left_out }
        }
    };
    loop {
        match context.handle.submit(report.clone()).await {
            Ok(_) => {
                let world = context.handle.view();
                let at = world.quest(quest).and_then(|quest| quest.step(&step));
                if chore.what == ChoreKind::Merge && at.is_some_and(|at| at.status() == StepStatus::Complete) {
                    clear(context, quest, step).await;
                }
                return;
            }
            Err(SubmitError::Stopped) => return,
            Err(SubmitError::Refused(refusal)) => {
                tracing::debug!(%quest, %refusal, "the result of a chore is not needed any more");
                return;
            }
            Err(error) => {
                tracing::warn!(%quest, %error, "a chore could not be reported; trying again");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

/// What became of a ward.
struct EndedWard {
    verdict: Verdict,
    /// The file with its output. Empty if the ward was not run.
    artifact: String,
    /// The tracked files that it had changed or deleted, and that were restored.
    restored: Vec<String>,
}

impl EndedWard {
    fn not_run(verdict: Verdict) -> Self {
        Self { verdict, artifact: String::new(), restored: Vec::new() }
    }
}

/// Runs the ward of a step, after merging what other steps have done in the meantime.
async fn run_ward(
    context: &Arc<RunnerContext>,
    watcher: Option<FolderWatcher>,
    quest: QuestId,
    step: &StepId,
    number: u32,
) -> EndedWard {
    let broken = |why: String| EndedWard::not_run(Verdict::Broken { why });
    let ward = Ward::of(context.program.clone(), &context.project, &quest.to_string(), step.as_str(), number);
    let ward = match ward {
        Ok(ward) => ward,
        Err(error) => return broken(format!("{error}.")),
    };
    if let Err(error) = stop_earlier_wards(context, quest, step, number).await {
        return broken(format!("an earlier ward of this step could not be stopped: {error}."));
    }
    let artifact = shown(context, quest, ward.output_file());
    let (here, of, known) = (Arc::clone(context), step.clone(), ward.clone());
    let job = aside(move || {
        // If an earlier daemon has started the ward, nothing is merged, because the ward is reading the files at this moment.
        let begins = known.status().map_err(|error| error.to_string())? == WardStatus::NotStarted;
        ward_job(&here, quest, &of, begins)
    });
    let job = match job.await {
        Ok(Ok(job)) => job,
        Ok(Err(files)) => return EndedWard::not_run(Verdict::Conflict { files }),
        Err(error) => return broken(format!("{error}.")),
    };
    let verdict = match ward.wait(&job, watcher).await {
        Ok(WardResult::Green) => Verdict::Green,
        Ok(WardResult::Red { code }) => {
            let output = aside(move || ward.output().map_err(|error| error.to_string())).await.unwrap_or_default();
            let findings = ward::findings(&output);
            let silent = || vec![format!("it ended with {code} and said nothing")];
            Verdict::Red { findings: if findings.is_empty() { silent() } else { findings } }
        }
        Ok(WardResult::Broken { why }) => Verdict::Broken { why: format!("{why}.") },
        Err(error) => Verdict::Broken { why: format!("{error}.") },
    };
    let (here, of) = (Arc::clone(context), step.clone());
    match aside(move || undo_ward(&here, quest, &of)).await {
        Ok(restored) => EndedWard { verdict, artifact, restored },
        // The next commit would have the changes of the ward.
        Err(why) => {
            let why = format!("what it has changed in the worktree could not be undone: {why}.");
            EndedWard { verdict: Verdict::Broken { why }, artifact, restored: Vec::new() }
        }
    }
}

/// Stops the earlier wards of a step. A daemon that was killed may have left one running, and two wards must not work in one folder.
async fn stop_earlier_wards(context: &RunnerContext, quest: QuestId, step: &StepId, number: u32) -> io::Result<()> {
    let of = |number| Ward::of(context.program.clone(), &context.project, &quest.to_string(), step.as_str(), number);
    let earlier: Vec<Ward> = (1..number).filter_map(|number| of(number).ok()).collect();
    let running = blocking(move || {
        let mut running = Vec::new();
        for ward in earlier.into_iter().filter(|ward| ward.path().exists()) {
            if ward.status()? == WardStatus::Running {
                running.push(ward);
            }
        }
        Ok(running)
    });
    for ward in running.await? {
        ward.stop_and_wait().await?;
    }
    Ok(())
}

/// The command of the ward and its folder. If the ward `begins` now, everything in the worktree is committed first, and the work of other
/// steps is merged into it. The inner error has the files that conflict.
fn ward_job(
    context: &RunnerContext,
    quest: QuestId,
    step: &StepId,
    begins: bool,
) -> Result<Result<WardJob, Vec<String>>, String> {
    let world = context.handle.view();
    let gone = || "the quest is gone".to_owned();
    let (quest_spec, state) = world.quest_spec(quest).zip(world.quest(quest)).ok_or_else(gone)?;
    let (ward, at) = state.ward.as_ref().zip(state.step(step)).ok_or_else(gone)?;
    let folder = match quest_spec.isolation {
        Isolation::None => place(context, quest_spec.spec.folder.as_deref()),
        Isolation::Worktree { .. } => {
            let repository = context.repository()?;
            let name = slug_of(&world, quest)?;
            if begins {
                if let Join::Conflict { files, binary } = gather(&repository, &name, step, at.phase)? {
                    return if binary.is_empty() { Ok(Err(files)) } else { Err(choose(&binary)) };
                }
                let worktree = repository.at(worktree_name(&name, step, at.phase)?);
                repository.ward_begins(&worktree).map_err(|error| error.to_string())?;
            }
            place(context, quest_spec.folder(step, at.phase).as_deref())
        }
    };
    Ok(Ok(WardJob {
        command: ward.command.clone(),
        folder,
        env: ward::environment(own_environment::entries(), &context.settings().pass_env),
        limit: Duration::from_millis(ward.limit_ms),
    }))
}

/// Restores the tracked files that a ward has changed, and notes the new files as by-products, because neither is the work of the step.
/// Gives the restored files. Does nothing while an agent of the step works, because the changes may be the agent's.
fn undo_ward(context: &RunnerContext, quest: QuestId, step: &StepId) -> Result<Vec<String>, String> {
    let world = context.handle.view();
    let isolated = world.quest_spec(quest).is_some_and(|quest_spec| quest_spec.isolation != Isolation::None);
    let Some(at) = world.quest(quest).and_then(|quest| quest.step(step)) else { return Ok(Vec::new()) };
    if !isolated || is_at_work(&world, at) {
        return Ok(Vec::new());
    }
    let name = slug_of(&world, quest)?;
    let repository = context.repository()?;
    let worktree = repository.at(worktree_name(&name, step, at.phase)?);
    let restored = repository.ward_ended(&worktree).map_err(|error| error.to_string())?;
    Ok(restored.iter().map(|path| path.to_string_lossy().into_owned()).collect())
}

/// Where a step works: the steps of the phase work have worktrees of their own.
fn worktree_name(quest: &str, step: &StepId, phase: Phase) -> Result<WorktreeName, String> {
    let name = match phase {
        Phase::Work => WorktreeName::step(quest, step.as_str()),
        Phase::Requirements | Phase::Plan | Phase::Review => WorktreeName::trunk(quest),
    };
    name.map_err(|error| error.to_string())
}

/// The reason of a question to the user about conflicting binary files. An agent cannot resolve such a conflict by editing.
fn choose(binary: &[String]) -> String {
    format!(
        "other steps have changed the same binary files: {}; choose a version of each in the worktree of the step with \
         `git checkout --ours FILE` or `git checkout --theirs FILE`, then `git add FILE`",
        binary.join(", ")
    )
}

/// Commits the work of the step, and merges the work of other steps into it.
fn gather(repository: &Repository, quest: &str, step: &StepId, phase: Phase) -> Result<Join, String> {
    match phase {
        Phase::Work => repository.bring(quest, step.as_str()).map_err(|error| error.to_string()),
        Phase::Requirements | Phase::Plan | Phase::Review => {
            settle_trunk(repository, quest, step).map(|()| Join::Clean { changed: false })
        }
    }
}

fn settle_trunk(repository: &Repository, quest: &str, step: &StepId) -> Result<(), String> {
    let trunk = repository.trunk(quest).map_err(|error| error.to_string())?;
    repository.settle(&trunk, &format!("The {step} of {quest}")).map(drop).map_err(|error| error.to_string())
}

/// Merges the work of a step into the trunk.
async fn join(context: &Arc<RunnerContext>, quest: QuestId, step: &StepId) -> (Merge, Vec<String>) {
    let (context, step) = (Arc::clone(context), step.clone());
    let joined = aside(move || {
        let repository = context.repository()?;
        let (name, step) = (slug_of(&context.handle.view(), quest)?, step.as_str());
        // A review that has led to this step may have left changes in the trunk.
        let review = StepId::review();
        let world = context.handle.view();
        if world.quest(quest).and_then(|quest| quest.step(&review)).is_some_and(|review| review.attempts > 0) {
            settle_trunk(&repository, &name, &review)?;
        }
        // Without a ward, the work of the agents is not committed yet.
        let brought = repository.bring(&name, step).map_err(|error| error.to_string())?;
        let of_conflict = |files, binary: Vec<String>| match binary.is_empty() {
            true => Ok((Merge::Conflict { files }, Vec::new())),
            false => Err(choose(&binary)),
        };
        if let Join::Conflict { files, binary } = brought {
            return of_conflict(files, binary);
        }
        let left_out = repository.left_out(&name, step).map_err(|error| error.to_string())?;
        if repository.is_empty_step(&name, step).map_err(|error| error.to_string())? {
            return Ok((Merge::Empty, left_out));
        }
        match repository.merge(&name, step) {
            Ok(Join::Clean { .. }) => Ok((Merge::Merged, left_out)),
            Ok(Join::Conflict { files, binary }) => of_conflict(files, binary),
            Err(WorktreeError::Unmended { files }) => of_conflict(files, Vec::new()),
            Err(error) => Err(error.to_string()),
        }
    });
    joined.await.unwrap_or_else(|error: String| (Merge::Broken { why: format!("{error}.") }, Vec::new()))
}

/// Removes the worktree of a merged step. If this fails, it is removed with the quest.
async fn clear(context: &Arc<RunnerContext>, quest: QuestId, step: StepId) {
    let context = Arc::clone(context);
    let cleared = aside(move || {
        let repository = context.repository()?;
        let slug = slug_of(&context.handle.view(), quest)?;
        let place = WorktreeName::step(&slug, step.as_str()).map_err(|error| error.to_string())?;
        repository.remove(&repository.at(place)).map(drop).map_err(|error| error.to_string())
    });
    if let Err(error) = cleared.await {
        tracing::warn!(%quest, %error, "the worktree of a step could not be removed");
    }
}

/// Removes the worktrees of a quest, and their lock. The quest's branch stays if there is work on it.
fn tidy(context: &RunnerContext, quest: QuestId) -> Result<(), String> {
    let world = context.handle.view();
    let Some(name) = world.quest_spec(quest).and_then(QuestSpec::slug).map(str::to_owned) else { return Ok(()) };
    let worktrees = context.project.data().join("worktrees");
    let base = worktrees.join(&name);
    if !base.exists() && !worktrees.join(format!("{name}.lock")).exists() {
        return Ok(());
    }
    let repository = context.repository()?;
    let steps = std::fs::read_dir(base.join("steps")).into_iter().flatten().flatten();
    for step in steps.filter_map(|entry| entry.file_name().into_string().ok()) {
        let place = WorktreeName::step(&name, &step).map_err(|error| error.to_string())?;
        repository.remove(&repository.at(place)).map_err(|error| error.to_string())?;
    }
    let complete = world.quest(quest).is_some_and(Quest::is_complete);
    let trunk = repository.at(WorktreeName::trunk(&name).map_err(|error| error.to_string())?);
    if complete && trunk.top().exists() {
        settle_trunk(&repository, &name, &StepId::review())?;
    }
    repository.remove(&trunk).map_err(|error| error.to_string())?;
    if !complete {
        repository.drop_empty_trunk(&name).map_err(|error| error.to_string())?;
    }
    // A folder that is not empty has content of the user.
    std::fs::remove_dir(base.join("steps")).ok();
    std::fs::remove_dir(base).ok();
    repository.dissolve(&name).map_err(|error| error.to_string())
}

/// The slug of a quest's branch and worktrees.
fn slug_of(world: &World, quest: QuestId) -> Result<String, String> {
    let slug = world.quest_spec(quest).and_then(QuestSpec::slug);
    slug.map(str::to_owned).ok_or_else(|| "the quest has no worktrees".to_owned())
}

/// A folder of the project, as a quest names it.
fn place(context: &RunnerContext, folder: Option<&str>) -> PathBuf {
    let root = context.project.root();
    folder.map_or_else(|| root.to_owned(), |folder| root.join(folder))
}

/// The path of a file as the agents of the quest see it: relative to the project's root if they work there.
fn shown(context: &RunnerContext, quest: QuestId, file: PathBuf) -> String {
    let world = context.handle.view();
    let at_root = |quest_spec: &QuestSpec| quest_spec.isolation == Isolation::None && quest_spec.spec.folder.is_none();
    let root = context.project.root();
    let from =
        if world.quest_spec(quest).is_some_and(at_root) { file.strip_prefix(root).unwrap_or(&file) } else { &file };
    from.display().to_string()
}

/// Runs work on a thread that may block.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(error.to_string()),
    }
}
