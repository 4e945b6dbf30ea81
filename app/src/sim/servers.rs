//! The MCP servers of a scripted agent: real children, spoken to over standard input and output. The runtime is here and nowhere
//! else, and only when there is a server, so that a script without one begins at once.

use super::inbox::PlayerInbox;
use rmcp::RoleClient;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject};
use rmcp::service::RunningService;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::runtime::{Builder, Runtime};

/// How long a server may take to shake hands. The real CLI goes on without it after about this time.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub struct Servers {
    all: Vec<McpServer>,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct McpServer {
    name: String,
    link: Option<ServerLink>,
}

#[derive(Debug)]
struct ServerLink {
    client: RunningService<RoleClient, ()>,
    /// Ends by itself when its input does, that is, with us.
    _child: Child,
}

/// What became of a call.
#[derive(Debug)]
pub enum Called {
    Answered { content: Value, is_error: bool },
    Interrupted,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct McpConfig {
    mcp_servers: BTreeMap<String, ServerEntry>,
}

/// What we know of a server that is started as a child. One without a command is of another sort, which we cannot reach.
#[derive(Deserialize)]
struct ServerEntry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

impl Servers {
    /// Starts all servers of these configurations and shakes hands with them, all at once.
    pub fn connect(configs: &[String]) -> Result<Self, String> {
        let mut entries = BTreeMap::new();
        for config in configs {
            entries.extend(read(config)?.mcp_servers);
        }
        if entries.is_empty() {
            return Ok(Self::default());
        }
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let all = runtime.block_on(async {
            let linking: Vec<_> = entries.into_iter().map(|(name, entry)| (name, tokio::spawn(link(entry)))).collect();
            let mut all = Vec::new();
            for (name, linking) in linking {
                let link = linking.await.map_err(|error| error.to_string()).flatten();
                let link = link.inspect_err(|error| eprintln!("MCP server {name}: {error}")).ok();
                all.push(McpServer { name, link });
            }
            all
        });
        Ok(Self { all, runtime: Some(runtime) })
    }

    pub fn status(&self) -> Vec<(String, &'static str)> {
        let status = |server: &McpServer| match &server.link {
            Some(link) if !link.client.is_closed() => "connected",
            Some(_) | None => "failed",
        };
        self.all.iter().map(|server| (server.name.clone(), status(server))).collect()
    }

    /// The server that is meant when none is named.
    pub fn first(&self) -> Option<&str> {
        self.all.first().map(|server| server.name.as_str())
    }

    /// Calls a tool and waits for the answer, or until the turn is interrupted.
    pub fn call(&self, server: &str, tool: &str, arguments: JsonObject, inbox: &PlayerInbox) -> Called {
        let link = self.all.iter().find(|it| it.name == server).and_then(|it| it.link.as_ref());
        let (Some(link), Some(runtime)) = (link, &self.runtime) else {
            return refused(format!(
                "<tool_use_error>Error: No such tool available: mcp__{server}__{tool}</tool_use_error>"
            ));
        };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        runtime.block_on(async {
            tokio::select! {
                answer = link.client.call_tool(request) => match answer {
                    Ok(result) => answered(&result),
                    Err(error) => refused(error.to_string()),
                },
                () = inbox.interrupted() => Called::Interrupted,
            }
        })
    }
}

async fn link(entry: ServerEntry) -> Result<ServerLink, String> {
    let command = entry.command.ok_or("only servers with a command can be reached")?;
    let mut child = Command::new(&command)
        .args(entry.args)
        .envs(entry.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{command} cannot be started: {error}"))?;
    let streams = child.stdout.take().zip(child.stdin.take()).ok_or("it has no streams")?;
    match tokio::time::timeout(HANDSHAKE_PATIENCE, ().serve(streams)).await {
        Ok(Ok(client)) => Ok(ServerLink { client, _child: child }),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no handshake within {} s", HANDSHAKE_PATIENCE.as_secs())),
    }
}

/// JSON, or the path of a file of it.
fn read(config: &str) -> Result<McpConfig, String> {
    let bad = |error: &dyn std::fmt::Display| format!("Invalid MCP configuration: {config}: {error}");
    let text = match config.trim_start().starts_with('{') {
        true => config.to_owned(),
        false => std::fs::read_to_string(config).map_err(|error| bad(&error))?,
    };
    serde_json::from_str(&text).map_err(|error| bad(&error))
}

fn answered(result: &CallToolResult) -> Called {
    let content = serde_json::to_value(&result.content).unwrap_or_default();
    Called::Answered { content, is_error: result.is_error.unwrap_or_default() }
}

fn refused(words: String) -> Called {
    Called::Answered { content: Value::String(words), is_error: true }
}
