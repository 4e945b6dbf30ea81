//! The tools for the project's status: `.fctry/state.json`, build runs, build events and ideas. Only agents of a project with the folder
//! `.fctry` have these tools. The types are flat and their values are JSON text, because clients refuse unions.

use super::{Server, ToolAnswer, ToolError, events};
use crate::calls::Call;
use crate::clock;
use crate::http::{IdeaList, ResumeView, StatusValue};
use crate::spec_sections;
use crate::state_file::StatusFolder;
use hatchery_core::build_run::{ChangedChunks, Move};
use hatchery_core::status::{IdeaChange, Json, Path, StatusChange};
use hatchery_core::workflow::MissingStepChoice;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};

/// Show the status of the project (`.fctry/state.json`), or the value at a path. Changes nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetState {
    /// The path, such as `scenarioScore.total` or `buildRun.chunks[0].status`. Leave it out to see everything.
    pub path: Option<String>,
}

/// Change the status of the project (`.fctry/state.json`). Changes that others make at the same time are not lost. Only the value at the
/// path changes. To begin a command of the workflow, call `workflow-command` instead.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeState {
    /// `set`, `merge`, `increment`, `append` or `clear`.
    pub action: String,
    /// The path: names with dots between them. Not for `merge`.
    pub path: Option<String>,
    /// The value as JSON text, for `set`, `merge` and `append`: `"#core-flow"` with its quotes, or `{"satisfied":5,"total":8}`.
    pub value: Option<String>,
    /// The amount to add, for `increment`: 1 by default.
    pub by: Option<i64>,
}

/// Begin or end a command of the workflow. The beginning clears what the steps of the last command recorded (`completedSteps` and
/// `agentOutputs`). A build run is never changed by this tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowCommand {
    /// `start` or `done`.
    pub action: String,
    /// For `start`: `init`, `evolve`, `ref`, `review` or `execute`.
    pub name: Option<String>,
}

/// Begin or complete a step of the workflow, such as `state-owner-scan` or `interviewer`. If another step must come first, the answer
/// says so; call the tool again with `choose`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowStep {
    /// `start` or `done`.
    pub action: String,
    /// The name of the step.
    pub step: String,
    /// If another step must come first: `run` begins that step, `skip` leaves it out, `abort` ends the command.
    pub choose: Option<String>,
    /// For `done`: what you found, in a paragraph. Other agents read it.
    pub summary: Option<String>,
}

/// Begin a build run with an approved plan, or record what happened to it or to one of its chunks. Before you resume an interrupted build
/// run, call `show`, and ask the user about completed chunks whose sections of the spec have changed since.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeBuild {
    /// `show`, `plan`, `start`, `retry`, `done`, `fail`, `pause`, `resume` or `clear`.
    pub action: String,
    /// The number of the chunk, for `start`, `retry`, `done` and `fail`.
    pub chunk: Option<u64>,
    /// For `plan`, as JSON text: `{"chunks":[{"name":"…","sections":["#alias"],"dependsOn":[1]}]}`.
    pub plan: Option<String>,
    /// For `plan`: replace a build run that is not finished.
    #[serde(default)]
    pub fresh: bool,
    /// For `resume`: the numbers of completed chunks to build again.
    pub rebuild: Option<Vec<u64>>,
    /// For `resume`: `rebuild` or `keep` the other completed chunks whose sections have changed.
    pub changed: Option<String>,
}

/// Record a build event, such as `chunk-verified`, `verification-failed` or `context-checkpointed`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildEventTool {
    /// The kind of event.
    pub kind: String,
    /// The other fields as JSON text: `{"chunk":"Chunk 3","summary":"4/4 checks passed","checks":[{"name":"…","result":"pass"}]}`.
    pub fields: Option<String>,
}

/// Keep ideas for later, or process one. Only one agent can take an idea.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inbox {
    /// `list`, `add`, `take`, `finish` or `dismiss`.
    pub action: String,
    /// The id of an idea, for `take` (the oldest by default), `finish` and `dismiss`.
    pub id: Option<String>,
    /// For `add`: `evolve` (the default), `reference` or `feature`.
    pub kind: Option<String>,
    /// For `add`: the idea.
    pub content: Option<String>,
    /// For `finish`: `processed`, `incorporated`, `error`, or `pending` to give the idea back.
    pub status: Option<String>,
    /// For `finish`: the result of the processing.
    pub note: Option<String>,
}

impl Server {
    pub(super) async fn get_state(&self, GetState { path }: GetState) -> Result<ToolAnswer, ToolError> {
        let path: Option<Path> = path.map(|path| path.parse().map_err(wrong)).transpose()?;
        let all: StatusValue = self.client().await?.get("/api/state").await?;
        let found = match (path, all.value.object()) {
            (Some(path), Some(fields)) => hatchery_core::status::StatusDocument::of(fields).get(&path),
            (None, _) => Some(all.value),
            (Some(_), None) => None,
        };
        let found = found.unwrap_or_else(Json::null);
        Ok(ToolAnswer { text: found.laid_out(), data: json!({ "value": found.value() }), next: None })
    }

    pub(super) async fn change_state(&self, given: ChangeState) -> Result<ToolAnswer, ToolError> {
        let ChangeState { action, path, value, by } = given;
        let place = || -> Result<Path, ToolError> {
            path.as_deref().ok_or_else(|| lacks(&action, "path"))?.parse().map_err(wrong)
        };
        let text = || -> Result<Json, ToolError> {
            value.as_deref().ok_or_else(|| lacks(&action, "value"))?.parse().map_err(wrong)
        };
        let change = match action.as_str() {
            "set" => StatusChange::Set { path: place()?, value: text()? },
            "merge" => StatusChange::Merge { patch: text()? },
            "increment" => StatusChange::Increment { path: place()?, by: by.unwrap_or(1) },
            "append" => StatusChange::Append { path: place()?, value: text()? },
            "clear" => StatusChange::Clear { path: place()? },
            other => return Err(unknown(other, "set, merge, increment, append or clear")),
        };
        self.change_status(change).await
    }

    pub(super) async fn workflow_command(
        &self,
        WorkflowCommand { action, name }: WorkflowCommand,
    ) -> Result<ToolAnswer, ToolError> {
        let change = match action.as_str() {
            "start" => StatusChange::StartCommand { name: name.ok_or_else(|| lacks(&action, "name"))? },
            "done" => StatusChange::EndCommand {},
            other => return Err(unknown(other, "start or done")),
        };
        self.change_status(change).await
    }

    pub(super) async fn workflow_step(&self, given: WorkflowStep) -> Result<ToolAnswer, ToolError> {
        let WorkflowStep { action, step, choose, summary } = given;
        let choose = match choose.as_deref() {
            None => None,
            Some(word) => Some(MissingStepChoice::parse(word).ok_or_else(|| unknown(word, "run, skip or abort"))?),
        };
        let change = match action.as_str() {
            "start" => StatusChange::StartStep { step, choose },
            "done" => StatusChange::FinishStep { step, summary, choose },
            other => return Err(unknown(other, "start or done")),
        };
        self.change_status(change).await
    }

    pub(super) async fn change_build(&self, given: ChangeBuild) -> Result<ToolAnswer, ToolError> {
        let ChangeBuild { action, chunk, plan, fresh, rebuild, changed } = given;
        let moved = |to: Move| -> Result<StatusChange, ToolError> {
            let chunk = chunk.ok_or_else(|| lacks(&action, "chunk"))?;
            Ok(StatusChange::MoveChunk { chunk, action: to, fingerprints: Default::default(), spec_version: None })
        };
        let changed = match changed.as_deref() {
            None => None,
            Some("rebuild") => Some(ChangedChunks::Rebuild),
            Some("keep") => Some(ChangedChunks::Keep),
            Some(other) => return Err(unknown(other, "rebuild or keep")),
        };
        let change = match action.as_str() {
            "plan" => StatusChange::ApprovePlan {
                plan: plan.as_deref().ok_or_else(|| lacks(&action, "plan"))?.parse().map_err(wrong)?,
                run: format!("run-{}", clock::now().0),
                fresh,
                spec_version: None,
            },
            "show" => {
                let shown: ResumeView = self.client().await?.get("/api/build-resume").await?;
                let data = serde_json::to_value(&shown).unwrap_or_default();
                let text = serde_json::to_string_pretty(&shown).unwrap_or_default();
                return Ok(ToolAnswer { text, data, next: None });
            }
            "start" => moved(Move::Start)?,
            "retry" => moved(Move::Retry)?,
            "done" => moved(Move::Complete)?,
            "fail" => moved(Move::Fail)?,
            "pause" => StatusChange::PauseBuild {},
            "resume" => StatusChange::ResumeBuild {
                rebuild: rebuild.unwrap_or_default(),
                changed,
                fingerprints: Default::default(),
                spec_version: None,
            },
            "clear" => StatusChange::ClearBuild {},
            other => return Err(unknown(other, "show, plan, start, retry, done, fail, pause, resume or clear")),
        };
        let folder = StatusFolder::of(self.project.root());
        self.change_status(spec_sections::filled(&folder, &change)).await
    }

    pub(super) async fn build_event(
        &self,
        BuildEventTool { kind, fields }: BuildEventTool,
    ) -> Result<ToolAnswer, ToolError> {
        let given: Json = fields.as_deref().unwrap_or("{}").parse().map_err(wrong)?;
        let mut event = given.object().ok_or_else(|| ToolError("`fields` must be a JSON object".into()))?;
        event.set("kind", kind.as_str().into());
        self.change_status(StatusChange::RecordEvent { event: event.to_json(), id: clock::new_named_id("event") }).await
    }

    pub(super) async fn inbox(&self, given: Inbox) -> Result<ToolAnswer, ToolError> {
        let Inbox { action, id, kind, content, status, note } = given;
        let named = |id: Option<String>| id.ok_or_else(|| lacks(&action, "id"));
        let change = match action.as_str() {
            "list" => {
                let list: IdeaList = self.client().await?.get("/api/inbox").await?;
                let items: Vec<Option<Value>> = list.items.iter().map(|idea| idea.item.value()).collect();
                let text = list.items.iter().map(|idea| format!("{}  {}\n", idea.id, idea.status)).collect();
                return Ok(ToolAnswer { text, data: json!({ "items": items }), next: None });
            }
            "add" => IdeaChange::Add {
                id: clock::new_named_id("inbox"),
                kind: kind.unwrap_or_else(|| "evolve".into()),
                content: content.ok_or_else(|| lacks(&action, "content"))?,
            },
            "take" => IdeaChange::Take { id, taker: Some(self.agent.to_string()) },
            "finish" => {
                IdeaChange::Finish { id: named(id)?, status: status.ok_or_else(|| lacks(&action, "status"))?, note }
            }
            "dismiss" => IdeaChange::Dismiss { id: named(id)? },
            other => return Err(unknown(other, "list, add, take, finish or dismiss")),
        };
        let item = match &self.run_tools {
            Some(run_tools) => {
                let accepted = run_tools.call(Call::ChangeIdeas(change)).await?;
                let kept =
                    events(&accepted, "idea_kept").first().and_then(|event| event["body"].as_str()?.parse().ok());
                kept.unwrap_or_else(Json::null)
            }
            None => {
                let idea: crate::http::ChangedIdea = self.client().await?.ask("/api/inbox/changes", &change).await?;
                idea.item
            }
        };
        Ok(ToolAnswer { text: item.laid_out(), data: json!({ "item": item.value() }), next: None })
    }

    async fn change_status(&self, change: StatusChange) -> Result<ToolAnswer, ToolError> {
        let edits: Vec<Value> = match &self.run_tools {
            Some(run_tools) => {
                let accepted = run_tools.call(Call::ChangeStatus(Box::new(change))).await?;
                let edited = events(&accepted, "status_edited");
                edited.iter().flat_map(|event| event["edits"].as_array().cloned().unwrap_or_default()).collect()
            }
            None => {
                let changed: crate::http::Changed = self.client().await?.ask("/api/state", &change).await?;
                vec![json!({ "value": changed.value.text() })]
            }
        };
        let lines = edits.iter().map(|edit| {
            let (path, value) = (edit["path"].as_str().unwrap_or_default(), edit["value"].as_str().unwrap_or("null"));
            if path.is_empty() { value.to_owned() } else { format!("{path} = {value}") }
        });
        let text: Vec<String> = lines.collect();
        let text = if text.is_empty() { "recorded".to_owned() } else { text.join("\n") };
        Ok(ToolAnswer { text, data: json!({ "edits": edits }), next: None })
    }
}

fn wrong(error: hatchery_core::status::EditError) -> ToolError {
    ToolError(format!("{error}; {}", error.hint()))
}

fn lacks(action: &str, field: &str) -> ToolError {
    ToolError(format!("`{action}` needs `{field}`; call the tool again with it"))
}

fn unknown(found: &str, known: &str) -> ToolError {
    ToolError(format!("`{}` is not known; choose {known}", found.chars().take(60).collect::<String>()))
}
