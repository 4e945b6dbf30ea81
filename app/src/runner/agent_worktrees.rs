//! The worktrees of agents without a quest: a branch and a worktree for one agent. The slug is part of the run's folder,
//! `.hatchery/worktrees/SLUG/trunk`, so it is in the log.

use super::RunnerContext;
use crate::worktree::WorktreeName;
use hatchery_core::agent::Agent;
use hatchery_core::quest::QuestSpec;
use hatchery_core::run::Run;
use hatchery_core::{AgentId, World};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The slug of an agent's own worktree, if it has one.
pub fn slug_of(world: &World, agent: AgentId) -> Option<&str> {
    if world.assignment(agent).is_some() {
        return None;
    }
    WorktreeName::slug_of_trunk(world.run(agent)?.spec.folder.as_deref()?)
}

/// The agents whose worktrees are among these folders.
pub(super) fn with_folders(world: &World, slugs: &BTreeSet<String>) -> BTreeSet<AgentId> {
    let has_folder = |agent: &AgentId| slug_of(world, *agent).is_some_and(|slug| slugs.contains(slug));
    world.runs().map(|(agent, _)| agent).filter(has_folder).collect()
}

/// Whether an agent will never use its worktree again. A fork that works in the same worktree keeps it.
pub fn is_over(world: &World, agent: AgentId) -> bool {
    let Some(slug) = slug_of(world, agent) else { return true };
    let is_gone = |agent: AgentId| {
        !world.agent(agent).is_some_and(Agent::is_living) && !world.run(agent).is_some_and(Run::is_open)
    };
    is_gone(agent) && world.runs().all(|(other, _)| slug_of(world, other) != Some(slug) || is_gone(other))
}

/// Which of these worktrees belong to quests that are over and to agents that are dead, and will be removed.
pub fn being_cleared(world: &World, slugs: &BTreeSet<String>) -> Vec<String> {
    let of_quests = world.quests().filter(|(_, quest)| quest.is_over());
    let of_quests = of_quests.filter_map(|(id, _)| world.quest_spec(id).and_then(QuestSpec::slug));
    let is_dead = |agent: &AgentId| !world.agent(*agent).is_some_and(Agent::is_living);
    let of_agents = world.runs().map(|(agent, _)| agent).filter(is_dead).filter_map(|agent| slug_of(world, agent));
    let over: BTreeSet<&str> = of_quests.chain(of_agents).collect();
    slugs.iter().filter(|slug| over.contains(slug.as_str())).cloned().collect()
}

/// Creates and prepares the worktree, unless it exists.
pub(super) async fn create(context: &Arc<RunnerContext>, slug: String) -> Result<(), String> {
    let context = Arc::clone(context);
    let made = tokio::task::spawn_blocking(move || {
        let repository = context.repository()?;
        let made = repository.trunk(&slug).map_err(|error| error.to_string())?;
        repository.prepare(&made, &context.settings().preparation).map_err(|error| error.to_string())
    });
    made.await.map_err(|error| error.to_string())?
}

/// Removes the worktree of a dead agent. Uncommitted work is rescued. The branch stays, unless the user's HEAD contains all of it.
pub(super) fn remove(context: &RunnerContext, agent: AgentId) -> Result<(), String> {
    let world = context.handle.view();
    let Some(slug) = slug_of(&world, agent) else { return Ok(()) };
    let base = context.project.data().join("worktrees").join(slug);
    if !base.exists() {
        return Ok(());
    }
    let repository = context.repository()?;
    let text = |error: crate::worktree::WorktreeError| error.to_string();
    let trunk = repository.at(WorktreeName::trunk(slug).map_err(|error| error.to_string())?);
    repository.remove(&trunk).map_err(text)?;
    repository.drop_empty_trunk(slug).map_err(text)?;
    // A folder that is not empty has content of the user.
    std::fs::remove_dir(base).ok();
    repository.dissolve(slug).map_err(text)
}
