//! The tools that agents call: an MCP server on standard input and output, bound to one agent. The server acts for that agent only, and
//! sends the requests of the tools to the running daemon by HTTP.
//!
//! A mistake of a model is answered with a tool result that says what is wrong and what to do next, because clients show a model the
//! results and hide errors of the protocol. Only a call of an unknown tool is answered with an error of the protocol.

mod arguments;
mod run_tools;
mod status_tools;
mod transport;
mod words;

use crate::calls::Call;
use crate::client::once::ask_once;
use crate::client::paths::{agent_path, mail_path, quest_path};
use crate::client::{Client, Failure, patience};
use crate::clock;
use crate::http::{AgentList, AgentView, MailList};
use crate::mail_reader::Mail;
use crate::project::Project;
use crate::quest_document::QuestDocument;
use crate::report::{Context as _, Report};
use crate::run_folder::RunFolder;
use arguments::{
    CheckMailArguments, ForkArguments, GetQuestArguments, KillArguments, PlanStepsArguments, PsArguments,
    ReadMailArguments, RegisterArguments, SendArguments, SetRequirementsArguments, SignalBackArguments, WaitArguments,
};
use hatchery_core::quest::StepPlan;
use hatchery_core::seat::{FaceVariant, Identity};
use hatchery_core::{AgentId, EventId};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};
use run_tools::RunTools;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use status_tools::{BuildEventTool, ChangeBuild, ChangeState, GetState, Inbox, WorkflowCommand, WorkflowStep};
use std::time::Duration;
use transport::ClientTransport;

/// Serves until standard input ends. The tools of a run use the token of the run, and write each call to a file before the call is carried
/// out.
pub async fn serve(
    project: &Project,
    reference: &str,
    run: Option<RunFolder>,
    in_a_quest: bool,
    in_a_seat: bool,
) -> Result<(), Report> {
    let (agent, run_tools) = match run {
        Some(folder) => {
            let run_tools = RunTools::new(project, folder)?;
            (run_tools.agent(), Some(run_tools))
        }
        None => {
            let agent: AgentView = Client::reach(project).await?.get(&agent_path(reference, "")).await?;
            (agent.id, None)
        }
    };
    let has_status = crate::state_file::StatusFolder::of(project.root()).path().is_dir();
    let tools = arguments::tools(in_a_quest, in_a_seat, has_status);
    let server = Server { project: project.clone(), agent, run_tools, tools };
    match server.serve(ClientTransport::on_standard_streams()).await {
        Ok(running) => running.waiting().await.map(|_| ()).context("the tools stopped"),
        // The client left before it sent a request.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Report::failed(error)),
    }
}

struct Server {
    project: Project,
    /// The agent for which the server acts.
    agent: AgentId,
    /// The tools of a run. None if the server was not started for a run.
    run_tools: Option<RunTools>,
    tools: Vec<Tool>,
}

/// The answer of a tool, as a short text and as data. A client shows its model one of the two, so both say what to do next.
struct ToolAnswer {
    text: String,
    data: Value,
    next: Option<&'static str>,
}

/// Why a tool has failed, as a text for a model.
struct ToolError(String);

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        Self(words::of_failure(failure))
    }
}

impl From<Report> for ToolError {
    fn from(report: Report) -> Self {
        Failure::from(report).into()
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("hatchery", crate::version::version()))
            .with_instructions(words::instructions(self.agent))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.tool(&request.name)?;
        let given = request.arguments.unwrap_or_default();
        let answered = tokio::select! {
            answered = self.call(tool, given) => answered,
            // A cancelled call takes no mail. A call that is already in the file of calls is still carried out.
            () = context.ct.cancelled() => Err(ToolError("cancelled".into())),
        };
        Ok(result(answered).into())
    }

    /// Handles tool calls whose arguments are not an object. The library cannot parse them as tool calls, but they are a mistake of the model,
    /// too.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let params = request.params.unwrap_or_default();
        match (request.method.as_str(), params["name"].as_str()) {
            ("tools/call", Some(name)) => {
                let tool = self.tool(name)?;
                let trouble = words::no_object(tool);
                let result = serde_json::to_value(result(Err(ToolError(trouble))));
                result.map(CustomResult::new).map_err(|error| ErrorData::internal_error(error.to_string(), None))
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
    }
}

impl Server {
    fn tool(&self, name: &str) -> Result<&Tool, ErrorData> {
        let unknown = || {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_ref()).collect();
            ErrorData::invalid_params(format!("there is no tool `{name}`; there are {}", known.join(", ")), None)
        };
        self.tools.iter().find(|tool| tool.name == name).ok_or_else(unknown)
    }

    async fn call(&self, tool: &Tool, given: JsonObject) -> Result<ToolAnswer, ToolError> {
        fn read<T: DeserializeOwned>(tool: &Tool, given: JsonObject) -> Result<T, ToolError> {
            arguments::read(tool, given).map_err(ToolError)
        }
        match tool.name.as_ref() {
            ForkArguments::NAME => self.fork(read(tool, given)?).await,
            KillArguments::NAME => self.kill(read(tool, given)?).await,
            SendArguments::NAME => self.send(read(tool, given)?).await,
            CheckMailArguments::NAME => self.check_mail(read(tool, given)?).await,
            ReadMailArguments::NAME => self.read_mail(read(tool, given)?).await,
            WaitArguments::NAME => self.wait(read(tool, given)?).await,
            PsArguments::NAME => self.ps(read(tool, given)?).await,
            SignalBackArguments::NAME => self.signal_back(&read(tool, given)?).await,
            SetRequirementsArguments::NAME => self.set_requirements(read(tool, given)?).await,
            PlanStepsArguments::NAME => self.plan_steps(read(tool, given)?).await,
            RegisterArguments::NAME => self.register(read(tool, given)?).await,
            GetQuestArguments::NAME => self.get_quest(read(tool, given)?).await,
            GetState::NAME => self.get_state(read(tool, given)?).await,
            ChangeState::NAME => self.change_state(read(tool, given)?).await,
            WorkflowCommand::NAME => self.workflow_command(read(tool, given)?).await,
            WorkflowStep::NAME => self.workflow_step(read(tool, given)?).await,
            ChangeBuild::NAME => self.change_build(read(tool, given)?).await,
            BuildEventTool::NAME => self.build_event(read(tool, given)?).await,
            Inbox::NAME => self.inbox(read(tool, given)?).await,
            other => Err(ToolError(format!("{other} does nothing"))),
        }
    }

    async fn fork(&self, ForkArguments { prompt, name, at }: ForkArguments) -> Result<ToolAnswer, ToolError> {
        let (accepted, child) = match &self.run_tools {
            Some(run_tools) => {
                let child = clock::new_agent_id();
                (run_tools.call(Call::Fork { child, prompt, name, at: at.map(EventId) }).await?, child.to_string())
            }
            None => {
                let body = json!({
                    "parent": self.agent, "prompt": prompt, "name": name, "at": at, "anyName": true, "run": false,
                });
                let accepted: Value = self.client().await?.ask("/api/agents", &body).await?;
                let child = accepted["id"].as_str().unwrap_or_default().to_owned();
                (accepted, child)
            }
        };
        let waits = !events(&accepted, "fork_requested").is_empty();
        let child = child.as_str();
        let (text, next) = words::forked(child, waits);
        let needs_slot = !events(&accepted, "step_forked").is_empty();
        let next = next.or(needs_slot.then_some(words::NEEDS_SLOT));
        Ok(ToolAnswer { text, data: json!({ "agent": child, "waits": waits }), next })
    }

    async fn kill(&self, KillArguments { agent, cascade, remark }: KillArguments) -> Result<ToolAnswer, ToolError> {
        let accepted: Value = match &self.run_tools {
            Some(run_tools) => run_tools.call(Call::Kill { agent, cascade, remark }).await?,
            None => {
                let body = json!({ "cascade": cascade, "remark": remark, "by": self.agent });
                self.client().await?.ask(&agent_path(&agent, "/kill"), &body).await?
            }
        };
        let agents = |kind| events(&accepted, kind).iter().map(|event| event["agent"].clone()).collect::<Vec<_>>();
        let (killed, moved_up) = (agents("agent_killed"), agents("agent_reparented"));
        let text = format!("killed {}, re-parented {}", killed.len(), moved_up.len());
        Ok(ToolAnswer { text, data: json!({ "killed": killed, "moved_up": moved_up }), next: None })
    }

    async fn send(&self, SendArguments { to, body }: SendArguments) -> Result<ToolAnswer, ToolError> {
        let accepted: Value = match &self.run_tools {
            Some(run_tools) => run_tools.call(Call::Send { to, body }).await?,
            None => {
                let mail = json!({ "from": self.agent, "to": to, "body": body });
                ask_once(&self.project, "/api/mail", mail).await?
            }
        };
        let sent = events(&accepted, "mail_sent").first().map(|event| (*event).clone()).unwrap_or_default();
        let (id, to) = (&sent["id"], &sent["to"]);
        let text = format!("sent to {} as mail {id}", to.as_str().unwrap_or_default());
        Ok(ToolAnswer { text, data: json!({ "mail": id, "to": to }), next: None })
    }

    async fn check_mail(&self, CheckMailArguments {}: CheckMailArguments) -> Result<ToolAnswer, ToolError> {
        let unread: MailList = self.client().await?.get(&self.mailbox("")).await?;
        let (text, next) = words::unread(&unread);
        let headers: Vec<_> = unread.mail.iter().map(|mail| &mail.header).collect();
        Ok(ToolAnswer { text, data: json!({ "mail": headers }), next })
    }

    async fn read_mail(&self, ReadMailArguments { mail }: ReadMailArguments) -> Result<ToolAnswer, ToolError> {
        let mail: Mail = self.client().await?.ask(&self.mailbox("/read"), &json!({ "mail": mail })).await?;
        Ok(ToolAnswer { text: words::mail(&mail), data: json!(mail), next: None })
    }

    async fn wait(&self, WaitArguments { from, timeout }: WaitArguments) -> Result<ToolAnswer, ToolError> {
        let timeout = timeout.map_or(arguments::USUAL_TIMEOUT_S, |it| it.0);
        let of = self.agent.to_string();
        let waited = patience::wait(&self.project, &of, &from, Duration::from_secs(timeout)).await?;
        let (text, next) = words::waited(&waited, timeout);
        Ok(ToolAnswer { text, data: json!(waited), next })
    }

    async fn ps(&self, PsArguments { all }: PsArguments) -> Result<ToolAnswer, ToolError> {
        let AgentList { mut agents, .. } = self.client().await?.get("/api/agents").await?;
        agents.retain(|agent| all || agent.state.is_living());
        let text = words::agents(&agents, self.agent);
        Ok(ToolAnswer { text, data: json!({ "you": self.agent, "agents": agents }), next: None })
    }

    /// Records the signal. The core checks it (`quest/signal.rs`) and acts on it when the agent's run is over (`quest/follow.rs`).
    async fn signal_back(&self, signal: &SignalBackArguments) -> Result<ToolAnswer, ToolError> {
        let given = serde_json::to_value(signal).map_err(|error| ToolError(error.to_string()))?;
        self.for_the_quest(Call::Signal(given)).await?;
        let text = format!("{} is recorded for step `{}`", signal.signal, signal.step_id);
        let next = Some("your part is done: stop now and do not call another tool");
        Ok(ToolAnswer { text, data: json!({ "signal": signal.signal, "stepId": signal.step_id }), next })
    }

    async fn set_requirements(&self, given: SetRequirementsArguments) -> Result<ToolAnswer, ToolError> {
        let (contexts, observables) = (given.contexts.len(), given.observables.len());
        self.for_the_quest(Call::SetRequirements(given.into())).await?;
        let text = format!("{contexts} contexts and {observables} observables are recorded");
        let next = Some("signal `complete` if nothing is missing");
        Ok(ToolAnswer { text, data: json!({ "contexts": contexts, "observables": observables }), next })
    }

    async fn plan_steps(&self, given: PlanStepsArguments) -> Result<ToolAnswer, ToolError> {
        let steps: Vec<StepPlan> = given.steps.into_iter().map(StepPlan::from).collect();
        let count = steps.len();
        self.for_the_quest(Call::PlanSteps { steps }).await?;
        let next = Some("signal `complete` if the plan is final");
        Ok(ToolAnswer { text: format!("a plan of {count} steps is recorded"), data: json!({ "steps": count }), next })
    }

    async fn get_quest(&self, GetQuestArguments {}: GetQuestArguments) -> Result<ToolAnswer, ToolError> {
        let agent: AgentView = self.client().await?.get(&agent_path(&self.agent.to_string(), "")).await?;
        let assignment = agent.assignment.ok_or_else(|| ToolError("you do not work on a quest".into()))?;
        let quest: QuestDocument = self.client().await?.get(&quest_path(&assignment.quest.to_string(), "")).await?;
        let quest = QuestDocument { head: None, ..quest };
        let text = words::quest(&quest, &assignment);
        Ok(ToolAnswer {
            text,
            data: json!({ "yourStep": assignment.step, "yourRole": assignment.role, "quest": quest }),
            next: None,
        })
    }

    async fn register(&self, given: RegisterArguments) -> Result<ToolAnswer, ToolError> {
        let RegisterArguments { name, soul, color_name, gender, eyes, mouth } = given;
        let face = (eyes.is_some() || mouth.is_some())
            .then(|| FaceVariant { eyes: eyes.unwrap_or_default(), mouth: mouth.unwrap_or_default() });
        let identity = Identity {
            name: Some(name.clone()),
            color: None,
            color_name,
            gender,
            face_variant: face,
            soul: Some(soul.into()),
        };
        match &self.run_tools {
            Some(run_tools) => run_tools.call(Call::Register { identity }).await?,
            None => return Err(ToolError("only an agent in a seat can call this tool".into())),
        };
        let next = Some("say hello in your own words, and end your turn; messages start a new turn");
        Ok(ToolAnswer { text: format!("you are {name}"), data: json!({ "name": name }), next })
    }

    /// Carries out a call for the step of the agent. Only the tools of a run can do this.
    async fn for_the_quest(&self, call: Call) -> Result<Value, ToolError> {
        match &self.run_tools {
            Some(run_tools) => run_tools.call(call).await,
            None => {
                Err(ToolError("only agents that work on a quest can call this tool; you do not work on one".into()))
            }
        }
    }

    /// A client of the daemon that runs now. It can be another daemon than at the last call.
    async fn client(&self) -> Result<Client, Report> {
        match &self.run_tools {
            Some(run_tools) => run_tools.client().await,
            None => Client::reach(&self.project).await,
        }
    }

    fn mailbox(&self, rest: &str) -> String {
        mail_path(&self.agent.to_string(), rest)
    }
}

fn result(answered: Result<ToolAnswer, ToolError>) -> CallToolResult {
    match answered {
        Ok(ToolAnswer { mut text, mut data, next }) => {
            if let Some(next) = next {
                text = format!("{text}; {next}");
                data["next"] = json!(next);
            }
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(data);
            result
        }
        Err(ToolError(text)) => CallToolResult::error(vec![ContentBlock::text(text)]),
    }
}

fn events<'a>(accepted: &'a Value, kind: &str) -> Vec<&'a Value> {
    accepted["events"].as_array().into_iter().flatten().filter(|event| event["type"] == kind).collect()
}
