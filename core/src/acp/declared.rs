//! What an agent declares. Its answer to `initialize` contains the version that it speaks and its capabilities. Its answer to the request
//! that opens a session contains its models, in one of two places; the options of the session are the newer one.

use crate::harness::{Declared, ModelChoice, RepeatsHistory};
use crate::json::{Fields, object};
use crate::json_rpc::RpcMessage;
use serde_json::value::RawValue;

/// The version of ACP that Hatchery speaks.
pub const PROTOCOL_VERSION: u32 = 1;
/// How many models an error names if the requested model is not among them.
const MAX_NAMED: usize = 20;
/// The id of the session option for the model.
const OPTION: &str = "model";

/// What an agent can do, or why it cannot be used. None if the line is not the answer to `initialize`. The models are not known before a
/// session is open.
pub fn declared(line: &str) -> Option<Result<Declared, String>> {
    let line = object(line).ok()??;
    match RpcMessage::of(&line)? {
        RpcMessage::Answer { id, result: Some(result), .. } if id == "initialize" => Some(of_process(&result)),
        RpcMessage::Answer { .. } | RpcMessage::Request { .. } | RpcMessage::Notification { .. } => None,
    }
}

/// Reads the answer to `initialize`. A capability that the agent does not declare is missing. An agent of another version is refused,
/// because the same messages have other meanings there: in version 2 the answer to a message is not the end of its turn.
pub(super) fn of_process(answer: &Fields) -> Result<Declared, String> {
    if let Some(other) =
        answer.raw("protocolVersion").map(RawValue::get).filter(|it| *it != PROTOCOL_VERSION.to_string())
    {
        return Err(format!("it speaks version {other} of ACP, and Hatchery speaks version {PROTOCOL_VERSION}"));
    }
    let can = answer.object("agentCapabilities");
    let sessions = can.as_ref().and_then(|can| can.object("sessionCapabilities"));
    let has = |name: &str| sessions.as_ref().is_some_and(|sessions| sessions.object(name).is_some());
    // `session/load` repeats the history, `session/resume` does not.
    let (loads, resumes) = (can.as_ref().is_some_and(|can| can.flag("loadSession")), has("resume"));
    Ok(Declared {
        resumes: loads || resumes,
        forks: has("fork"),
        model_choice: ModelChoice::Never,
        repeats_history: match (loads, resumes) {
            (true, true) => RepeatsHistory::OnRequest,
            (false, true) => RepeatsHistory::Never,
            (_, false) => RepeatsHistory::Always,
        },
    })
}

/// How the model is chosen in an open session.
pub(super) fn model_choice(session: &Fields) -> ModelChoice {
    if option(session).is_some() {
        return ModelChoice::SessionOption;
    }
    match session.object("models") {
        Some(_) => ModelChoice::SessionModel,
        None => ModelChoice::Never,
    }
}

/// The model of a session.
pub(super) fn model(session: &Fields) -> Option<String> {
    let chosen = option(session).and_then(|option| option.text("currentValue"));
    chosen.or_else(|| session.object("models")?.text("currentModelId"))
}

/// The models that a session can use.
pub(super) fn models(session: &Fields) -> Vec<String> {
    let (list, name) = match option(session) {
        Some(option) => (option.objects("options"), "value"),
        None => (session.object("models").map(|it| it.objects("availableModels")).unwrap_or_default(), "modelId"),
    };
    list.iter().filter_map(|model| model.text(name)).collect()
}

/// The error for a model that the agent does not accept.
pub(super) fn not_a_model(model: &str, why: &str, known: &[String]) -> String {
    let named: Vec<&str> = known.iter().take(MAX_NAMED).map(String::as_str).collect();
    let known = match named.is_empty() {
        true => String::new(),
        false => format!("; it has {}", named.join(", ")),
    };
    format!("the agent does not accept the model `{model}`: {why}{known}")
}

fn option<'a>(session: &Fields<'a>) -> Option<Fields<'a>> {
    session.objects("configOptions").into_iter().find(|option| option.text("id").as_deref() == Some(OPTION))
}
