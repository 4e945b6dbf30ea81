//! How a quest begins: the caller's options, the project's settings and the project's files become its `QuestSpec`.

use crate::config::{self, Isolated};
use crate::harness::{find_program, place_of, too_old};
use crate::own_environment;
use crate::project::Project;
use crate::quest_document::{QuestDocument, StepDocument};
use crate::report::{Code, Context as _, Report};
use crate::trust;
use crate::ward::{self, Guess};
use crate::worktree::{NoWorktrees, Repository, WORKTREES, WorktreeName};
use hatchery_core::quest::{Isolation, QuestSpec, QuestStart, StepPlan, StepStatus, WardSpec};
use hatchery_core::roles::{Phase, Preset};
use hatchery_core::run::RunSpec;
use hatchery_core::{AgentId, QuestId};
use std::path::Path;

/// How a quest differs from what is usual here.
#[derive(Debug)]
pub struct QuestOptions {
    pub request: String,
    pub slots: Option<u32>,
    /// Guessed when there is none; empty for no ward.
    pub ward: Option<String>,
    pub ward_limit_ms: Option<u64>,
    pub isolation: Option<Isolated>,
    pub approve_plan: Option<bool>,
    pub preset: Preset,
}

/// Refuses a harness whose program is missing or too old. The daemon calls this, because the daemon starts the program: the PATH of the
/// daemon counts, not the PATH of the user.
pub fn check_program(project: &Project, harness: &str, program: &Path) -> Result<(), Report> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match find_program(program, project.root(), &path) {
        Some(found) => match too_old(harness, &found) {
            None => Ok(()),
            Some(why) => Err(outdated(harness, &why)),
        },
        None => Err(not_there(harness, program).hint(
            "`hatchery doctor` says what is missing; install it, then `hatchery down`: the next command starts a daemon \
             that finds it; `--harness scripted` needs no program",
        )),
    }
}

/// What to say of a program that is too old.
pub fn outdated(harness: &str, why: &str) -> Report {
    Report::failed(format_args!("the harness `{harness}` cannot be used: {why}"))
        .hint("update the program; `hatchery doctor` shows which one is used")
        .named("unusable")
}

/// What to say of a program that is missing.
pub fn not_there(harness: &str, program: &Path) -> Report {
    let (program, place) = (program.display(), place_of(program));
    Report::failed(format_args!("the harness `{harness}` needs the program {program}, which is not {place}"))
        .named("unusable")
}

/// How many changed files a warning names.
const NAMED_FILES: usize = 3;

/// A quest as it is about to begin.
#[derive(Debug)]
pub struct Chartered {
    pub quest_spec: QuestSpec,
    /// What the user should know before it begins.
    pub warning: Option<String>,
}

/// Looks at the project's files, so it may take a moment.
pub fn quest_spec(
    project: &Project,
    usual: &config::Quests,
    id: QuestId,
    wish: QuestOptions,
    spec: RunSpec,
    program: &Path,
) -> Result<Chartered, Report> {
    check_program(project, &spec.harness, program)?;
    let QuestOptions { request, slots, ward, ward_limit_ms, isolation, approve_plan, preset } = wish;
    let ward = ward_of(project, usual, ward, ward_limit_ms);
    let slug = |repository: &Repository| repository.free_slug(&request, id.as_bytes()).context("git is in trouble");
    let isolation = isolate(project, slug, isolation.or(usual.isolation), OR_NONE)?;
    let warning = match isolation {
        Isolation::None => None,
        Isolation::Worktree { .. } => unseen_changes(project)?,
    };
    let quest_spec = QuestSpec {
        request,
        slots: slots.unwrap_or(usual.slots),
        spec,
        ward,
        isolation,
        approve_plan: approve_plan.unwrap_or(usual.approve_plan),
        table: usual.briefed(&trust::prompts(project, &usual.prompts)?).with_preset(preset),
    };
    Ok(Chartered { quest_spec, warning })
}

/// The ward of a new quest: the one that is given, else that of the settings, else a guess.
pub fn ward_of(
    project: &Project,
    usual: &config::Quests,
    given: Option<String>,
    limit_ms: Option<u64>,
) -> Option<WardSpec> {
    let limit_ms = limit_ms.unwrap_or(usual.ward_limit_ms);
    let named = |command: String| WardSpec { command, limit_ms, guessed_from: None };
    match given.or_else(|| usual.ward.clone()) {
        Some(command) if command.trim().is_empty() => None,
        Some(command) => Some(named(command)),
        None => ward::guess(project.root())
            .map(|Guess { command, because }| WardSpec { guessed_from: Some(because), ..named(command) }),
    }
}

/// A warning, if the user's checkout has changes that agents in worktrees do not see.
pub fn unseen_changes(project: &Project) -> Result<Option<String>, Report> {
    let found = Repository::find(project, own_environment::entries()).context("git is in trouble")?;
    let Ok(repository) = found else { return Ok(None) };
    let (files, count) = repository.uncommitted(NAMED_FILES).context("git is in trouble")?;
    if count == 0 {
        return Ok(None);
    }
    let more = if count > files.len() { ", …" } else { "" };
    let files = files.join(", ");
    let what = if count == 1 {
        "1 file of your checkout is".to_owned()
    } else {
        format!("{count} files of your checkout are")
    };
    Ok(Some(format!(
        "{what} changed and not committed ({files}{more}). Worktrees begin at your last commit, so agents in them do not see these changes."
    )))
}

/// A quest that was exported, as it begins here.
#[derive(Debug)]
pub struct ImportedQuest {
    pub quest_spec: QuestSpec,
    /// How far it had come.
    pub start: QuestStart,
    /// What is not as it was there, and what the file brings along.
    pub warnings: Vec<String>,
}

/// The spec and the progress of an exported quest. Asks git, so it may take a moment.
pub fn imported(
    project: &Project,
    usual: &config::Quests,
    id: QuestId,
    document: QuestDocument,
    keeps_branch: bool,
    spec: RunSpec,
) -> Result<ImportedQuest, Report> {
    if document.schema != crate::quest_document::SCHEMA {
        let message = format!("it is of form {}, and this program knows form 1", document.schema);
        return Err(Report::new(Code::Usage, message));
    }
    let isolation = match document.branch {
        Some(_) => Isolated::Worktree,
        None => Isolated::None,
    };
    let own = document.branch.as_deref().and_then(|branch| branch.strip_prefix("hatchery/"));
    let own = own.filter(|slug| keeps_branch && WorktreeName::trunk(slug).is_ok());
    let slug = |repository: &Repository| match own {
        Some(slug) => Ok(slug.to_owned()),
        None => repository.free_slug(&document.request, id.as_bytes()).context("git is in trouble"),
    };
    let isolation = isolate(project, slug, Some(isolation), "")?;
    let foreign_ward = document.ward.as_ref().filter(|ward| {
        let own = ward_of(project, usual, None, None);
        own.is_none_or(|own| own.command != ward.command)
    });
    let ward_warning = foreign_ward.map(|ward| {
        format!(
            "The ward `{}` comes from the file and runs on this machine once the quest is run; `hatchery quest ward` changes it.",
            ward.command
        )
    });
    let warnings: Vec<String> = missing_work(project, &isolation, &document)?.into_iter().chain(ward_warning).collect();
    let briefed = usual.briefed(&trust::prompts(project, &usual.prompts)?);
    let mut table = document.table;
    for role in &mut table.roles {
        let known = briefed.role(&role.name).filter(|known| !known.prompt.is_empty()).ok_or_else(|| {
            let message = format!(
                "this project has no role `{}`, and the prompts of roles are not in an exported quest",
                role.name
            );
            Report::new(Code::Usage, message).hint("describe it in `[[quests.roles]]` of hatchery.toml first")
        })?;
        role.prompt.clone_from(&known.prompt);
        // The file may come from another person, but only the user of this project decides which program runs here and what it may do unasked.
        role.permissions = known.permissions;
        role.harness.clone_from(&known.harness);
        role.model.clone_from(&known.model);
    }
    let quest_spec = QuestSpec {
        request: document.request,
        slots: document.slots,
        spec,
        ward: document.ward,
        isolation,
        approve_plan: document.approve_plan,
        table,
    };
    // Open work starts again: a plan that the user has not approved is dropped.
    let undone = |phase| document.steps.iter().any(|step| step.phase == phase && step.status != StepStatus::Complete);
    let (wanted, planned) = (!undone(Phase::Requirements), !undone(Phase::Plan));
    let complete = document.steps.iter().filter(|step| step.status == StepStatus::Complete);
    let complete = complete.map(|step| (step.id.clone(), step.summary.clone().unwrap_or_default())).collect();
    let work = document.steps.into_iter().filter(|step| planned && step.phase == Phase::Work);
    let steps = work.map(|step| StepPlan {
        id: step.id,
        name: step.name,
        description: step.description,
        depends_on: step.depends_on,
        files_to_create: step.files_to_create,
        files_to_modify: step.files_to_modify,
        observables: step.observables,
    });
    let start = QuestStart {
        hold: true,
        requirements: document.requirements.filter(|_| wanted),
        steps: steps.collect(),
        complete,
    };
    Ok(ImportedQuest { quest_spec, start, warnings })
}

/// What steps have done is on the quest's branch. Where that is missing, those that are complete have left nothing.
fn missing_work(project: &Project, isolation: &Isolation, document: &QuestDocument) -> Result<Option<String>, Report> {
    let done = |step: &&StepDocument| step.phase == Phase::Work && step.status == StepStatus::Complete;
    let count = document.steps.iter().filter(done).count() as u64;
    let Some(branch) = document.branch.as_ref().filter(|_| count > 0) else { return Ok(None) };
    let Some(slug) = isolation.slug() else { return Ok(None) };
    let found = Repository::find(project, own_environment::entries()).context("git is in trouble")?;
    let is_here = match found {
        Ok(repository) => repository.has_trunk(slug).context("git is in trouble")?,
        Err(_) => false,
    };
    let warning = format!(
        "{} complete, and what was done is not here: there is no branch hatchery/{slug}. Bring it in before the quest is run, with `git \
         fetch WHERE-IT-WAS {branch}:hatchery/{slug}`.",
        if count == 1 { "1 step is".to_owned() } else { format!("{count} steps are") },
    );
    Ok((!is_here).then_some(warning))
}

const OR_NONE: &str = ", or let them work in the project itself with `--isolation none`";

/// Worktrees where they are possible, unless the user wants none. `otherwise` is what else can be done where they are wanted and impossible.
fn isolate(
    project: &Project,
    slug: impl FnOnce(&Repository) -> Result<String, Report>,
    wish: Option<Isolated>,
    otherwise: &str,
) -> Result<Isolation, Report> {
    if wish == Some(Isolated::None) {
        return Ok(Isolation::None);
    }
    let found = Repository::find(project, own_environment::entries()).context("git is in trouble")?;
    match (found, wish) {
        (Ok(repository), _) => Ok(Isolation::Worktree {
            base: format!("{WORKTREES}{}", slug(&repository)?),
            within: repository.within().map(|within| within.display().to_string()),
        }),
        (Err(why), Some(_)) => Err(no_worktrees("steps", &why, otherwise)),
        (Err(_), None) => Ok(Isolation::None),
    }
}

fn no_worktrees(who: &str, why: &NoWorktrees, otherwise: &str) -> Report {
    let mend = match why {
        NoWorktrees::NoGit | NoWorktrees::OldGit { .. } => "install a git that is new enough",
        NoWorktrees::NoRepository => "`git init` and commit something",
        NoWorktrees::NoCommit | NoWorktrees::NotCommitted => "`git add` and `git commit` what the steps are to work on",
        NoWorktrees::Bare => "work in a clone that has files",
    };
    let report = Report::new(Code::Usage, format_args!("{who} cannot have worktrees: {why}"));
    report.hint(format_args!("{mend}{otherwise}"))
}

/// The folder of a new agent that gets a worktree of its own, from the project's root. The runner creates it. Asks git, so it may take a moment.
pub fn agent_folder(project: &Project, id: AgentId, words: &str) -> Result<String, Report> {
    let found = Repository::find(project, own_environment::entries()).context("git is in trouble")?;
    let otherwise = ", or let the agent work in the project itself with `--no-worktree`";
    let repository = found.map_err(|why| no_worktrees("agents", &why, otherwise))?;
    let slug = repository.free_slug(words, id.as_bytes()).context("git is in trouble")?;
    let within = repository.within().map(|within| format!("/{}", within.display())).unwrap_or_default();
    Ok(format!("{WORKTREES}{slug}/trunk{within}"))
}
