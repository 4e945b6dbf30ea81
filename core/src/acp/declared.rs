//! What an agent declares: what it can do, in its answer to `initialize`, and which models it has, in its answer to the request that
//! opens a session. Agents say the latter in two places, of which the options of the session are the newer one.

use crate::harness::{Declared, ModelChoice};
use crate::json_rpc::Message;
use crate::stream_json::fields::Fields;
use crate::stream_json::object;

/// How many models are named when the one that was asked for is not among them.
const MAX_NAMED: usize = 20;
/// The option of a session that is its model.
const OPTION: &str = "model";

/// What an agent can do, if this line is its answer to `initialize`. Its models are known when a session is open.
pub fn declared(line: &str) -> Option<Declared> {
    let line = object(line).ok()??;
    match Message::of(&line)? {
        Message::Answer { id, result: Some(result), .. } if id == "initialize" => Some(of_process(&result)),
        Message::Answer { .. } | Message::Request { .. } | Message::Notification { .. } => None,
    }
}

/// From the answer to `initialize`. What is not declared cannot be done.
pub(super) fn of_process(answer: &Fields) -> Declared {
    let can = answer.object("agentCapabilities");
    let sessions = can.as_ref().and_then(|can| can.object("sessionCapabilities"));
    Declared {
        resumes: can.as_ref().is_some_and(|can| can.flag("loadSession")),
        forks: sessions.is_some_and(|sessions| sessions.object("fork").is_some()),
        model_choice: ModelChoice::Never,
    }
}

/// How an open session is told its model.
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

/// Why the model that was asked for is not used, in words.
pub(super) fn not_a_model(model: &str, why: &str, known: &[String]) -> String {
    let named: Vec<&str> = known.iter().take(MAX_NAMED).map(String::as_str).collect();
    let known = match named.is_empty() {
        true => String::new(),
        false => format!("; it has {}", named.join(", ")),
    };
    format!("the agent does not take the model `{model}`: {why}{known}")
}

fn option<'a>(session: &Fields<'a>) -> Option<Fields<'a>> {
    session.objects("configOptions").into_iter().find(|option| option.text("id").as_deref() == Some(OPTION))
}
