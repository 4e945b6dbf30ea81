//! Requests for permission, and the answers to them. An answer chooses one of the options of the request. The request is stored in the log
//! under a name that contains the agent's own id and both options, so a daemon that has never seen the request can answer it.

use super::tool_call::{OpenToolCall, own_tool};
use crate::json::Fields;
use crate::json_rpc;
use crate::permission::{Access, PermissionDecision, PermissionRequest};
use serde_json::{Value, json};

/// The answer to a request, as a line of the agent's input.
pub fn approval(request: &PermissionRequest, decision: &PermissionDecision) -> String {
    let named: Value = serde_json::from_str(&request.request).unwrap_or_default();
    let (id, allow, reject) = (&named[0], &named[1], &named[2]);
    let option = match decision {
        PermissionDecision::Allow => allow,
        PermissionDecision::Deny { .. } => reject,
    };
    let outcome = match option.is_string() {
        true => json!({ "outcome": "selected", "optionId": option }),
        false => json!({ "outcome": "cancelled" }),
    };
    let mut answer = match named[3] == json!(true) {
        true => json!({ "id": id, "result": { "outcome": outcome } }),
        false => json_rpc::refusal(id),
    };
    answer["jsonrpc"] = json!("2.0");
    answer.to_string()
}

pub(super) fn asked(
    method: &str,
    id: &str,
    params: &Fields,
    call: Option<&OpenToolCall>,
    folder: Option<&str>,
) -> PermissionRequest {
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    let options = params.objects("options");
    let option = |kinds: &[&str]| {
        let fits = |option: &&Fields| option.text("kind").is_some_and(|kind| kinds.contains(&kind.as_str()));
        options.iter().find(fits).and_then(|option| option.text("optionId"))
    };
    let (allow, reject) = (option(&["allow_once"]), option(&["reject_once", "reject_always"]));
    let known = method == "session/request_permission";
    let name = call.map_or_else(|| method.to_owned(), |call| call.name.clone());
    PermissionRequest {
        request: json!([id, allow, reject, known]).to_string(),
        access: if known { call.map(access).unwrap_or_default() } else { Access::NotOffered },
        tool: own_tool(&name).unwrap_or(&name).to_owned(),
        tool_use: params.object("toolCall").and_then(|call| call.text("toolCallId")),
        input: call.map_or_else(|| "{}".to_owned(), OpenToolCall::shown_input),
        folder: folder.map(str::to_owned),
    }
}

/// What a call would do. Agent programs use different names for the fields of an input.
fn access(call: &OpenToolCall) -> Access {
    if own_tool(&call.name).is_some() {
        return Access::OwnTool;
    }
    let input: Value = call.input.as_deref().and_then(|input| serde_json::from_str(input).ok()).unwrap_or_default();
    let text = |names: &[&str]| names.iter().find_map(|name| input[*name].as_str()).map(str::to_owned);
    // A policy or a rule is about one path. A change of several files is a question to the user.
    let path = || match call.paths.as_slice() {
        [] => text(&["file_path", "filePath", "path"]),
        [path] => Some(path.clone()),
        _ => None,
    };
    let access = match call.kind.as_deref() {
        Some("execute") => text(&["command"]).map(|command| Access::Execute { command }),
        Some("edit" | "delete" | "move") => path().map(|path| Access::Edit { path }),
        Some("read") => path().map(|path| Access::Read { path }),
        _ => None,
    };
    access.unwrap_or_default()
}
