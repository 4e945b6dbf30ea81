//! The branches with the work of quests and agents, over HTTP. The daemon never changes the user's checkout: `hatchery merge` does this in
//! the user's own process, and reports back.

use super::Api;
use super::changes::in_repository;
use super::error::{ApiError, JsonBody, PathParts};
use crate::quest_document::{QuestDocument, QuestWord};
use crate::runner::agent_worktrees;
use crate::worktree::{BranchContent, Comparison, Repository, WorktreeError};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::event::MessageEvent;
use hatchery_core::quest::QuestSpec;
use hatchery_core::run::{Run, RunState};
use hatchery_core::{AgentId, Event, EventId, MessageKind, QuestId, World};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How many messages of an agent are read to find a title and a description.
const READ_MESSAGES: usize = 10_000;
/// The longest title: as much as repository hosts show in one line.
const TITLE_CHARS: usize = 72;

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BranchList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// The newest last.
    pub branches: Vec<BranchLine>,
}

/// A quest or an agent that has a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BranchLine {
    pub kind: BranchKind,
    /// The quest's or the agent's id.
    pub id: String,
    /// The agent's name.
    pub name: Option<String>,
    /// The slug in the name of the branch and of the worktrees.
    pub slug: String,
    pub branch: String,
    /// An agent works on it at this moment.
    pub busy: bool,
    /// The agent may work on it again, or the quest is not over.
    pub open: bool,
    /// Your branch has everything that is on it: nothing is left to merge.
    #[serde(default)]
    pub merged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BranchKind {
    Agent,
    Quest,
}

/// What is on a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BranchView {
    #[serde(flatten)]
    pub line: BranchLine,
    /// Its newest commit; null if the branch does not exist, because nothing was begun or all of it was merged.
    pub head: Option<String>,
    /// The commit at which it left your branch.
    pub base: Option<String>,
    /// Commits that your branch does not have.
    pub commits: u64,
    /// Files that differ, including uncommitted changes.
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    /// By-products that were left out of the commit.
    #[serde(rename = "leftOut")]
    pub left_out: Vec<String>,
    /// The title for a commit or a pull request: one line.
    pub title: String,
    /// The description for a commit or a pull request.
    pub body: String,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitBranch {}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MergedBranch {
    /// The commit that was merged.
    #[schema(min_length = 40, max_length = 64)]
    head: String,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClearedBranch {
    /// The name for `hatchery rescue restore`, if something was kept that your branch does not have.
    pub rescued: Option<String>,
    /// An agent whose process stays in the worktree and listens. Then the worktree and the branch stay, too.
    pub used_by: Option<String>,
}

/// List the quests and agents that have a branch.
#[utoipa::path(get, path = "/api/branches", operation_id = "list_branches", tag = "changes", responses((status = 200, description = "The newest last", body = BranchList)))]
pub async fn list(State(api): State<Api>) -> Result<Json<BranchList>, ApiError> {
    let world = api.handle.view();
    let mut branches = lines(&world);
    // The branch of an agent goes with its merge; and without one it may have changes in its worktree that are not committed.
    let quests = branches.iter().filter(|line| line.kind == BranchKind::Quest);
    let slugs: Vec<String> = quests.map(|line| line.slug.clone()).collect();
    let (existing, merged) = in_repository(&api, move |repository| {
        let existing = repository.slugs()?;
        let present: Vec<String> = slugs.into_iter().filter(|slug| existing.contains(slug)).collect();
        Ok((existing, repository.merged_slugs(&present)?))
    })
    .await?;
    branches.retain(|line| existing.contains(&line.slug));
    branches.iter_mut().for_each(|line| line.merged = merged.contains(&line.slug));
    Ok(Json(BranchList { head: world.head(), branches }))
}

/// Show what is on a branch, with a title and a description for a pull request.
#[utoipa::path(get, path = "/api/branches/{branch}", operation_id = "show_branch", tag = "changes", params(("branch" = String, Path, description = "A branch, a slug, or the quest or agent: an id, the beginning of one, or a name")),
    responses((status = 200, description = "As it is now", body = BranchView)))]
pub async fn show(State(api): State<Api>, reference: PathParts<String>) -> Result<Json<BranchView>, ApiError> {
    let line = find(&api, &reference.0)?;
    view(&api, line, Vec::new()).await.map(Json)
}

/// Commit what an agent has done in its worktree, except by-products, and show the branch. Refused while the agent works.
#[utoipa::path(post, path = "/api/branches/{branch}/commit", operation_id = "commit_branch", tag = "changes", params(("branch" = String, Path, description = "A branch, a slug, or the quest or agent: an id, the beginning of one, or a name")), request_body = CommitBranch,
    responses((status = 200, description = "Everything is committed", body = BranchView)))]
pub async fn commit(
    State(api): State<Api>,
    reference: PathParts<String>,
    _body: JsonBody<CommitBranch>,
) -> Result<Json<BranchView>, ApiError> {
    let line = find(&api, &reference.0)?;
    let mut left_out = Vec::new();
    if line.kind == BranchKind::Agent {
        refuse_busy(&api.handle.view(), &line)?;
        let (title, body) = words(&api, &line).await?;
        let (slug, message) = (line.slug.clone(), format!("{title}\n\n{body}"));
        left_out = in_repository(&api, move |repository| repository.settle_agent(&slug, message.trim_end())).await?;
    }
    view(&api, line, left_out).await.map(Json)
}

/// Say that you have merged an agent's branch: its worktree and its branch are removed, unless a process stays there. What your branch does not have
/// is kept first. A quest keeps its branch.
#[utoipa::path(post, path = "/api/branches/{branch}/merged", operation_id = "merged_branch", tag = "changes", params(("branch" = String, Path, description = "A branch, a slug, or the quest or agent: an id, the beginning of one, or a name")), request_body = MergedBranch,
    responses((status = 200, description = "Cleared", body = ClearedBranch)))]
pub async fn merged(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<MergedBranch>,
) -> Result<Json<ClearedBranch>, ApiError> {
    let line = find(&api, &reference.0)?;
    if line.kind == BranchKind::Quest {
        return Ok(Json(ClearedBranch { rescued: None, used_by: None }));
    }
    let world = api.handle.view();
    refuse_busy(&world, &line)?;
    if let Some(agent) = on_branch(&world, &line.slug).find(|id| world.run(*id).is_some_and(Run::is_open)) {
        return Ok(Json(ClearedBranch { rescued: None, used_by: Some(called(&world, agent)) }));
    }
    let (slug, head) = (line.slug, body.0.head);
    let rescued = in_repository(&api, move |repository| repository.clear_taken(&slug, &head)).await?;
    Ok(Json(ClearedBranch { rescued: rescued.map(|name| name.to_string()), used_by: None }))
}

/// The agents that work or worked on a branch.
fn on_branch(world: &World, slug: &str) -> impl Iterator<Item = AgentId> {
    world.runs().map(|(id, _)| id).filter(move |id| agent_worktrees::slug_of(world, *id) == Some(slug))
}

fn called(world: &World, agent: AgentId) -> String {
    world.agent(agent).and_then(|it| it.name.clone()).unwrap_or_else(|| agent.to_string())
}

/// Refuses if an agent works on the branch, and names it: the owner of the branch, or forks of it.
fn refuse_busy(world: &World, line: &BranchLine) -> Result<(), ApiError> {
    let on_branch: Vec<AgentId> = on_branch(world, &line.slug).collect();
    let busy: Vec<AgentId> = on_branch.iter().copied().filter(|id| is_busy(world, *id)).collect();
    let owner = on_branch.iter().copied().min_by_key(|id| world.agent(*id).map(|agent| agent.created));
    let (Some(first), Some(owner)) = (busy.first(), owner) else { return Ok(()) };
    let called = |id: AgentId| called(world, id);
    let described = |id: &AgentId| match *id == owner {
        true => called(*id),
        false => format!("{}, a fork of {},", called(*id), called(owner)),
    };
    let who = busy.iter().map(described).collect::<Vec<_>>().join(" and ");
    let names = busy.iter().map(|id| called(*id)).collect::<Vec<_>>().join(" ");
    let (are, stop) = match busy.len() {
        1 => ("is", format!("`hatchery stop {}` ends its work", called(*first))),
        _ => ("are", "`hatchery stop` ends the work of each".to_owned()),
    };
    Err(ApiError::new(
        StatusCode::CONFLICT,
        "branch_busy",
        format!("{who} {are} working on the branch {}", line.branch),
        format!("`hatchery wait {names}` waits until that is done, {stop}"),
    ))
}

/// The quests and agents that have a branch, in the order of their creation.
fn lines(world: &World) -> Vec<BranchLine> {
    let quests = world.quests().filter_map(|(id, quest)| Some((quest.created, quest_line(world, id)?)));
    let busy = busy_slugs(world);
    let agents = world.runs().filter_map(|(id, _)| Some((world.agent(id)?.created, agent_line(world, id, &busy)?)));
    let mut all: Vec<_> = quests.chain(agents).collect();
    all.sort_by_key(|(at, _)| *at);
    // A fork works on the branch of its parent, which is older.
    let mut seen = BTreeSet::new();
    all.into_iter().map(|(_, line)| line).filter(|line| seen.insert(line.slug.clone())).collect()
}

fn quest_line(world: &World, id: QuestId) -> Option<BranchLine> {
    let slug = world.quest_spec(id).and_then(QuestSpec::slug)?.to_owned();
    let quest = world.quest(id)?;
    let busy = quest.steps.values().any(|step| step.agents.iter().any(|hand| is_busy(world, hand.agent)));
    let (open, branch) = (!quest.is_over(), format!("hatchery/{slug}"));
    Some(BranchLine {
        kind: BranchKind::Quest,
        id: id.to_string(),
        name: None,
        slug,
        branch,
        busy,
        open,
        merged: false,
    })
}

/// The branches on which agents without a quest work at this moment. A fork works on the branch of its parent.
fn busy_slugs(world: &World) -> BTreeSet<&str> {
    let busy = world.runs().map(|(id, _)| id).filter(|id| is_busy(world, *id));
    busy.filter_map(|id| agent_worktrees::slug_of(world, id)).collect()
}

fn agent_line(world: &World, id: AgentId, busy: &BTreeSet<&str>) -> Option<BranchLine> {
    let slug = agent_worktrees::slug_of(world, id)?.to_owned();
    let agent = world.agent(id)?;
    let (open, branch) = (agent.is_living(), format!("hatchery/{slug}"));
    let busy = busy.contains(slug.as_str());
    Some(BranchLine {
        kind: BranchKind::Agent,
        id: id.to_string(),
        name: agent.name.clone(),
        slug,
        branch,
        busy,
        open,
        merged: false,
    })
}

/// Whether an agent may change files at this moment. An agent that stays for more messages does not between two turns.
fn is_busy(world: &World, agent: AgentId) -> bool {
    let at_rest = |run: &Run| matches!(run.state, RunState::Running { .. }) && !run.attempt.in_turn;
    world.run(agent).is_some_and(|run| run.is_open() && !at_rest(run))
}

/// The branch that a reference means.
fn find(api: &Api, reference: &str) -> Result<BranchLine, ApiError> {
    let world = api.handle.view();
    let name = reference.strip_prefix("hatchery/").unwrap_or(reference);
    if let Some(line) = lines(&world).into_iter().find(|line| line.slug == name) {
        return Ok(line);
    }
    if let Ok(quest) = super::quests::find(api, reference) {
        return quest_line(&world, quest).ok_or_else(|| {
            let hint = "its work is in your own files: `git diff` shows it";
            no_branch(format!("quest {quest} works in the project itself and has no branch"), hint.into())
        });
    }
    let id = super::agents::find(api, reference).map_err(|error| match error.status {
        StatusCode::NOT_FOUND => {
            let called = super::guard::cut(reference);
            let message = format!("no agent, quest or branch is called `{called}`, and no id begins with it");
            let hint = "`hatchery ps --all` shows the agents, `hatchery quest list --all` the quests";
            ApiError { message, hint: hint.into(), ..error }
        }
        _ => error,
    })?;
    if let Some(assignment) = world.assignment(id) {
        let quest = assignment.quest;
        let message = format!("{reference} works for the quest {quest}, whose branch has the work of all its agents");
        return Err(no_branch(message, format!("name the quest: {quest}")));
    }
    agent_line(&world, id, &busy_slugs(&world)).ok_or_else(|| {
        let message = format!("{reference} works in the project itself and has no branch");
        no_branch(message, "`git diff` shows what changed; `hatchery run --worktree` gives an agent a branch".into())
    })
}

fn no_branch(message: String, hint: String) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "no_branch", message, hint)
}

async fn view(api: &Api, line: BranchLine, left_out: Vec<String>) -> Result<BranchView, ApiError> {
    let (title, body) = words(api, &line).await?;
    let (slug, kind) = (line.slug.clone(), line.kind);
    let (content, changes) = in_repository(api, move |repository| {
        let compare = |repository: &Repository| -> Result<Option<Comparison>, WorktreeError> {
            match kind {
                BranchKind::Agent => repository.compare_agent(&slug),
                BranchKind::Quest => repository.compare_quest(&slug),
            }
        };
        let changes = match compare(repository)? {
            Some(of) => repository.changes(&of)?,
            None => Default::default(),
        };
        Ok((repository.branch_content(&slug)?, changes))
    })
    .await?;
    let (head, base, commits, merged) = match content {
        Some(BranchContent { head, base, commits, merged, .. }) => (Some(head), Some(base), commits, merged),
        None => (None, None, 0, false),
    };
    let uncommitted = !changes.files.is_empty() && kind == BranchKind::Agent;
    let line = BranchLine { merged: merged && !uncommitted, ..line };
    let (files, added, removed) = (changes.files.len() as u64, changes.added, changes.removed);
    Ok(BranchView { line, head, base, commits, files, added, removed, left_out, title, body })
}

/// A title and a description, from the request and the answers.
async fn words(api: &Api, line: &BranchLine) -> Result<(String, String), ApiError> {
    let world = api.handle.view();
    match line.kind {
        BranchKind::Quest => {
            let document = line.id.parse().ok().and_then(|id| QuestDocument::of(&world, id));
            Ok(document.map(|document| of_quest(&document)).unwrap_or_default())
        }
        BranchKind::Agent => {
            let Ok(id) = line.id.parse() else { return Ok(Default::default()) };
            let messages = api.handle.own_messages(id, READ_MESSAGES, |_| true).await?;
            let said = |wanted: MessageKind| {
                messages.iter().filter_map(move |record| match &record.event {
                    Event::Message(MessageEvent::Added { kind, content, .. }) if *kind == wanted => {
                        Some(content.as_str())
                    }
                    _ => None,
                })
            };
            let (title, rest) = titled(said(MessageKind::User).next().unwrap_or(&line.slug));
            let last = said(MessageKind::Assistant).next_back().unwrap_or_default();
            let parts = [rest.as_str(), last.trim()];
            Ok((title, parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")))
        }
    }
}

fn of_quest(document: &QuestDocument) -> (String, String) {
    let (title, rest) = titled(&document.request);
    let mut body = rest;
    for step in document.steps.iter().filter(|step| step.phase == hatchery_core::roles::Phase::Work) {
        let summary = step.summary.as_deref().unwrap_or_default();
        let summary = summary.lines().next().unwrap_or_default();
        let colon = if summary.is_empty() { "" } else { ": " };
        body.push_str(&format!("\n- {}{colon}{summary}", step.name));
    }
    if document.state != QuestWord::Complete {
        body.push_str("\n\nThe quest is not complete yet.");
    }
    (title, body.trim_start().to_owned())
}

/// The first line, if it is short enough for a title, and the rest of the text.
fn titled(text: &str) -> (String, String) {
    let text = text.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    match first.chars().count() <= TITLE_CHARS {
        true => (first.trim().to_owned(), rest.trim().to_owned()),
        false => {
            let cut: String = first.chars().take(TITLE_CHARS - 1).collect();
            let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(whole, _)| whole);
            (format!("{whole}…"), text.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(titled(" Add a flag\n\nIt is called -v. "), ("Add a flag".into(), "It is called -v.".into()));
        let long = "word ".repeat(40);
        let (title, rest) = titled(&long);
        assert!(title.chars().count() <= TITLE_CHARS && title.ends_with("word…"), "{title}");
        assert_eq!(rest, long.trim());
    }
}
