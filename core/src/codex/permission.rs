//! Requests of codex for permission, and the answers to them. A request is stored in the log under a name that contains the kind of its
//! answer and codex's own id, so a daemon that has never seen the request can answer it.

use super::command_line;
use super::item::Items;
use crate::json::Fields;
use crate::json_rpc;
use crate::permission::{Access, PermissionDecision, PermissionRequest};
use crate::run::TOOL_SERVER;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The form of the answer that a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalKind {
    /// The answer to a request about a command or a file change has the field `decision`.
    Decision,
    /// The answer to a request about the call of an MCP tool has the field `action`.
    Action,
    /// More rights for the rest of the turn. Hatchery never gives them; codex can ask for each command instead.
    Rights,
    /// Any other request can only be refused.
    Unknown,
}

impl ApprovalKind {
    const ALL: [Self; 4] = [Self::Decision, Self::Action, Self::Rights, Self::Unknown];

    fn word(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Action => "action",
            Self::Rights => "rights",
            Self::Unknown => "unknown",
        }
    }

    fn of(method: &str) -> Self {
        match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => Self::Decision,
            "mcpServer/elicitation/request" => Self::Action,
            "item/permissions/requestApproval" => Self::Rights,
            _ => Self::Unknown,
        }
    }
}

/// The answer to a request, as a line for codex's input.
pub fn approval(request: &PermissionRequest, decision: &PermissionDecision) -> String {
    let (kind, id) = request.request.split_once(':').unwrap_or(("unknown", request.request.as_str()));
    let kind = ApprovalKind::ALL.into_iter().find(|it| it.word() == kind).unwrap_or(ApprovalKind::Unknown);
    let id: Value = serde_json::from_str(id).unwrap_or_else(|_| Value::from(id));
    let allowed = *decision == PermissionDecision::Allow;
    let word = if allowed { "accept" } else { "decline" };
    match kind {
        ApprovalKind::Decision => json!({ "id": id, "result": { "decision": word } }),
        ApprovalKind::Action if allowed => json!({ "id": id, "result": { "action": word, "content": {} } }),
        ApprovalKind::Action => json!({ "id": id, "result": { "action": word } }),
        ApprovalKind::Rights => json!({ "id": id, "result": { "permissions": {}, "scope": "turn" } }),
        ApprovalKind::Unknown => json_rpc::refusal(&id),
    }
    .to_string()
}

pub(super) fn asked(method: &str, id: &str, params: &Fields, items: &Items, folder: Option<&str>) -> PermissionRequest {
    let kind = ApprovalKind::of(method);
    let tool_use = params.text("itemId");
    let item = tool_use.as_deref().and_then(|item| items.of(item));
    let command = params.text("command").map(|command| command_line::inner(&command));
    let (tool, input, access) = match (method, command, item) {
        ("item/commandExecution/requestApproval", Some(command), _) => {
            let input = json!({ "command": command, "cwd": params.text("cwd"), "reason": params.text("reason") });
            ("exec_command".to_owned(), input.to_string(), Access::Execute { command })
        }
        ("item/fileChange/requestApproval", _, Some((input, paths))) => {
            // A policy or a rule is about one path. A change of several files is a question to the user.
            let access = match paths {
                [path] => Access::Edit { path: path.clone() },
                _ => Access::Other,
            };
            ("apply_patch".to_owned(), input.to_owned(), access)
        }
        ("mcpServer/elicitation/request", ..) => {
            let server = params.text("serverName").unwrap_or_default();
            let message = params.text("message").unwrap_or_default();
            // Only the sentence contains the name of the tool.
            let tool = message.split('"').nth(1).unwrap_or("elicitation").to_owned();
            let arguments = params.object("_meta").and_then(|meta| meta.raw("tool_params"));
            let input = arguments.map_or_else(|| json!({ "message": message }).to_string(), |it| it.get().to_owned());
            let access = if server == TOOL_SERVER { Access::OwnTool } else { Access::Other };
            (format!("mcp__{server}__{tool}"), input, access)
        }
        _ => (method.to_owned(), whole(params), Access::Other),
    };
    PermissionRequest {
        request: format!("{}:{id}", kind.word()),
        tool,
        tool_use,
        input,
        access,
        folder: folder.map(str::to_owned),
    }
}

fn whole(params: &Fields) -> String {
    let reason = params.raw("reason").map_or("null", RawValue::get);
    let questions = params.raw("questions").or_else(|| params.raw("permissions")).map_or("null", RawValue::get);
    format!("{{\"reason\":{reason},\"about\":{questions}}}")
}
