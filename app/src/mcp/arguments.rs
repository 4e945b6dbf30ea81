//! The arguments of each tool. The types are the schemas and their doc comments are the descriptions that a model reads, so
//! these comments are instructions.

use super::status_tools::{BuildEventTool, ChangeBuild, ChangeState, GetState, Inbox, WorkflowCommand, WorkflowStep};
use crate::step_plan::PlannedStep;
use crate::strict::{self, Given, Within};
use hatchery_core::quest;
use rmcp::handler::server::common::schema_for_type;
use rmcp::model::{JsonObject, Tool};
use rmcp::schemars::{self, JsonSchema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;

/// The longest wait of one call. Clients end a tool call that takes too long.
pub const MAX_TIMEOUT_S: u64 = 600;
/// The default wait. It is shorter than the time that clients usually allow a tool.
pub const USUAL_TIMEOUT_S: u64 = 30;

macro_rules! named {
    ($(#[$doc:meta])* $list:ident: $($arguments:ty => $name:literal),+ $(,)?) => {
        $(impl $arguments {
            pub const NAME: &'static str = $name;
        })+

        $(#[$doc])*
        fn $list() -> Vec<Tool> {
            vec![$(tool::<$arguments>($name)),+]
        }
    };
}

named! {
    /// The tools of every agent.
    common:
    ForkArguments => "fork",
    KillArguments => "kill",
    SendArguments => "send",
    CheckMailArguments => "check-mail",
    ReadMailArguments => "read-mail",
    WaitArguments => "wait",
    PsArguments => "ps",
}

named! {
    /// The additional tools of agents of a quest.
    of_quests:
    SignalBackArguments => "signal-back",
    SetRequirementsArguments => "set-requirements",
    PlanStepsArguments => "plan-steps",
    GetQuestArguments => "get-quest",
}

named! {
    /// The additional tools of agents in a seat.
    of_seats:
    RegisterArguments => "register",
}

named! {
    /// The additional tools of agents of a project with a status document.
    of_status:
    GetState => "get-state",
    ChangeState => "change-state",
    WorkflowCommand => "workflow-command",
    WorkflowStep => "workflow-step",
    ChangeBuild => "change-build",
    BuildEventTool => "build-event",
    Inbox => "inbox",
}

/// All tools, in the order of the list that a model receives.
pub fn tools(in_a_quest: bool, in_a_seat: bool, has_status: bool) -> Vec<Tool> {
    let mut more = if in_a_quest { of_quests() } else { Vec::new() };
    more.extend(if in_a_seat { of_seats() } else { Vec::new() });
    let status = if has_status { of_status() } else { Vec::new() };
    // The tools that an agent must call come first.
    more.into_iter().chain(common()).chain(status).collect()
}

/// Take the name that you have chosen for yourself and your seat, and leave a text for those who sit there after you. Call this at
/// most once, and only if you want to. The text cannot be changed later.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RegisterArguments {
    /// The name, at most 64 bytes.
    #[serde(deserialize_with = "strict::not_empty")]
    #[schemars(length(min = 1))]
    pub name: String,
    /// The text in which you describe yourself, in your own words.
    #[serde(deserialize_with = "strict::not_empty")]
    #[schemars(length(min = 1))]
    pub soul: String,
    /// A name for your colour.
    pub color_name: Option<String>,
    /// Your gender, if you have one.
    pub gender: Option<String>,
    /// How your eyes look.
    pub eyes: Option<String>,
    /// How your mouth looks.
    pub mouth: Option<String>,
}

/// Create a child agent that inherits your history up to now, or up to an earlier message. Returns its id. The child starts
/// when all tools that you are running have returned.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkArguments {
    /// The child's first message: its task.
    pub prompt: Option<String>,
    /// A name for the child.
    pub name: Option<String>,
    /// The id of an earlier message of your history. The child inherits the history up to that message.
    pub at: Option<u64>,
}

/// End an agent permanently. You cannot kill an agent that you descend from. Pass your own id to end yourself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillArguments {
    /// An id, the beginning of one, or a name.
    #[serde(deserialize_with = "strict::not_empty")]
    #[schemars(length(min = 1))]
    pub agent: String,
    /// Also kill all its descendants. Otherwise its children become children of its nearest living ancestor.
    #[serde(default)]
    pub cascade: bool,
    /// The reason. It is recorded.
    pub remark: Option<String>,
}

/// Send a mail to an agent or to the user. It stays in the recipient's mailbox until it is read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendArguments {
    /// An agent's id, the beginning of one, a name, or `human`.
    #[serde(deserialize_with = "strict::not_empty")]
    #[schemars(length(min = 1))]
    pub to: String,
    /// The text, at most 1 MiB.
    pub body: String,
}

/// List your unread mail, oldest first. Does not mark it as read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckMailArguments {}

/// Read your oldest unread mail, or the one with the given id, and mark it as read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadMailArguments {
    /// The id of a mail, as `check-mail` shows it.
    pub mail: Option<u64>,
}

/// Wait for your next mail and return it. With `from`, wait until each of these agents has sent you a mail or has ended. The
/// mail stays in the list of `check-mail` as `delivered` until you call `read-mail`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitArguments {
    /// The agents to wait for: ids, the beginnings of ids, or names.
    #[serde(default, deserialize_with = "strict::list::<_, _, 0, 100>")]
    #[schemars(length(max = 100))]
    pub from: Vec<String>,
    /// The number of seconds to wait: 30 by default, 600 at most, 0 to look once. Call the tool again to wait longer.
    #[schemars(with = "Option<u64>", range(max = MAX_TIMEOUT_S))]
    pub timeout: Option<Within<0, MAX_TIMEOUT_S>>,
}

/// List the agents with their ids, names, parents and states, and show which one you are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PsArguments {
    /// Include dead and expired agents.
    #[serde(default)]
    pub all: bool,
}

/// Report the outcome of your step once, and then stop. Signal `complete` when the step is done; `partially-complete` when your context
/// runs out and a new agent should continue; `needs-user-input` when only the user can decide how to continue; `needs-role-followup` when
/// another role must act first. Fill in the fields whose description names your signal.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignalBackArguments {
    /// `complete`, `partially-complete`, `needs-user-input` or `needs-role-followup`.
    #[serde(deserialize_with = "strict::not_empty", alias = "type")]
    #[schemars(length(min = 1))]
    pub signal: String,
    /// The id of your step.
    #[serde(deserialize_with = "strict::not_empty")]
    #[schemars(length(min = 1))]
    pub step_id: String,
    /// For `complete`: what you did.
    pub summary: Option<String>,
    /// For `partially-complete`: what is done.
    pub progress: Option<String>,
    /// For `partially-complete`: where the next agent should continue.
    pub continuation_point: Option<String>,
    /// For `needs-user-input`: the question to the user.
    pub question: Option<String>,
    /// For `needs-user-input` and `needs-role-followup`: what the user or the other role must know to answer or act.
    pub context: Option<String>,
    /// For `needs-user-input`: up to 6 short answers to choose from, one line each. The user may also answer in other words.
    #[serde(default, deserialize_with = "strict::list::<_, _, 0, 6>", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6))]
    pub choices: Vec<String>,
    /// For `needs-role-followup`: the role that must act first.
    pub target_role: Option<String>,
    /// For `needs-role-followup`: why this role must act.
    pub reason: Option<String>,
    /// For `needs-role-followup`: true to continue your step afterwards, false if your part is done.
    pub resume: Option<bool>,
}

/// Set the requirements of the quest: all of them, in one call. They replace the earlier ones.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRequirementsArguments {
    /// The situations in which something is observed.
    #[serde(default, deserialize_with = "strict::list::<_, _, 0, 1_000>")]
    #[schemars(length(max = 1_000))]
    pub contexts: Vec<GivenContext>,
    /// Facts that can be seen to be true when the quest is complete.
    #[serde(deserialize_with = "strict::list::<_, _, 0, 1_000>")]
    #[schemars(length(max = 1_000))]
    pub observables: Vec<ObservableArgument>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct GivenContext {
    /// Lowercase letters, digits and dashes.
    pub id: String,
    /// The situation.
    pub description: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ObservableArgument {
    /// Lowercase letters, digits and dashes.
    pub id: String,
    /// The id of the context in which the fact is observed.
    pub context: Option<String>,
    /// The fact.
    pub description: String,
}

/// Set the steps of the quest: all of them, in one call. Steps that have started stay unchanged, whether you list them or not. The only
/// exception is the step for which another agent asked you: your plan replaces or deletes this step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStepsArguments {
    /// The steps. Steps that do not depend on each other run at the same time.
    #[serde(deserialize_with = "strict::list::<_, _, 1, 10_000>")]
    #[schemars(length(min = 1, max = 10_000))]
    pub steps: Vec<PlannedStep>,
}

impl From<SetRequirementsArguments> for quest::Requirements {
    fn from(given: SetRequirementsArguments) -> Self {
        let context = |it: GivenContext| quest::QuestContext { id: it.id, description: it.description };
        let observable =
            |it: ObservableArgument| quest::Observable { id: it.id, context: it.context, description: it.description };
        Self {
            contexts: given.contexts.into_iter().map(context).collect(),
            observables: given.observables.into_iter().map(observable).collect(),
        }
    }
}

/// Show your quest: the request, the steps with their states, and which step is yours. Changes nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetQuestArguments {}

fn tool<T: JsonSchema + Any>(name: &'static str) -> Tool {
    let mut schema = schema_for_type::<T>().as_ref().clone();
    let description = schema.remove("description");
    let description = description.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    schema.retain(|key, _| !["$schema", "title"].contains(&key.as_str()));
    flatten_all(&mut schema);
    // Some clients refuse a schema without `properties`.
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    Tool::new(name, description, schema)
}

fn flatten_all(schema: &mut JsonObject) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|all| all.values_mut()) {
        flatten(property);
        if let Some(items) = property.get_mut("items").and_then(Value::as_object_mut) {
            flatten_all(items);
        }
    }
}

/// Removes `null` from the types of an optional property, because clients refuse unions. A model can leave the property out instead.
fn flatten(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    let plain =
        property.get("type").and_then(Value::as_array).and_then(|kinds| kinds.iter().find(|kind| *kind != "null"));
    if let Some(plain) = plain.cloned() {
        property.insert("type".into(), plain);
    }
}

/// Reads the arguments of a call. The error says what is wrong, and which arguments the tool takes.
pub fn read<T: DeserializeOwned>(tool: &Tool, mut given: JsonObject) -> Result<T, String> {
    // Some models write `null` for an argument that they leave out.
    given.retain(|_, value| !value.is_null());
    strict::read(Given::Typed(Value::Object(given))).map_err(|wrong| {
        let meant = wrong.meant().map(|meant| format!(" (did you mean {meant}?)")).unwrap_or_default();
        format!("{}{meant}: {}", wrong.message(), takes(tool))
    })
}

/// A sentence that lists the arguments of a tool.
pub fn takes(tool: &Tool) -> String {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let named = properties.into_iter().flatten().map(|(name, property)| {
        let needed = required.is_some_and(|required| required.iter().any(|it| it == name));
        format!("{name} ({}{})", property["type"].as_str().unwrap_or_default(), if needed { "" } else { ", optional" })
    });
    match named.collect::<Vec<_>>().join(", ").as_str() {
        "" => format!("{} takes no arguments", tool.name),
        named => format!("{} takes {named}", tool.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_schema_is_one_flat_object() {
        for tool in tools(true, true, true) {
            let schema = Value::Object(tool.input_schema.as_ref().clone());
            assert_eq!(
                (&schema["type"], &schema["additionalProperties"]),
                (&json!("object"), &json!(false)),
                "{schema}"
            );
            assert!(tool.description.is_some_and(|words| words.len() > 20));
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["type"].is_string(), "{name}: {property}");
                assert!(property["description"].as_str().is_some_and(|words| !words.is_empty()), "{name}: {property}");
            }
            let text = schema.to_string();
            for union in ["anyOf", "oneOf", "allOf", "$ref", "$defs", "null"] {
                assert!(!text.contains(union), "{text}");
            }
        }
    }

    fn call<T: DeserializeOwned>(name: &str, given: Value) -> Result<T, String> {
        let tools = tools(true, true, true);
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        read(tool, given.as_object().unwrap().clone())
    }

    #[track_caller]
    fn refused<T: DeserializeOwned + std::fmt::Debug>(name: &str, given: Value, expected: &str) {
        assert_eq!(call::<T>(name, given).unwrap_err(), expected);
    }

    #[test]
    fn what_does_not_fit_is_told_in_words() {
        let send = "send takes body (string), to (string)";
        refused::<SendArguments>("send", json!({ "to": "ann" }), &format!("`body` is missing: {send}"));
        let empty = format!("`to` must be a text that is not empty, not \"\": {send}");
        refused::<SendArguments>("send", json!({ "to": "", "body": "" }), &empty);
        refused::<SendArguments>(
            "send",
            json!({ "to": "ann", "body": 1 }),
            &format!("`body` must be a text, not 1: {send}"),
        );
        let from = json!({ "to": "ann", "body": "", "from": "ben" });
        refused::<SendArguments>("send", from, &format!("`from` is not known (did you mean `to`?): {send}"));
        refused::<CheckMailArguments>(
            "check-mail",
            json!({ "of": "ann" }),
            "`of` is not known: check-mail takes no arguments",
        );
        let wait = "wait takes from (array, optional), timeout (integer, optional)";
        for timeout in [json!(601), json!(-1), json!(1.5), json!("1")] {
            let expected = format!("`timeout` must be a whole number from 0 to 600, not {timeout}: {wait}");
            refused::<WaitArguments>("wait", json!({ "timeout": timeout }), &expected);
        }
        refused::<WaitArguments>("wait", json!({ "from": [1] }), &format!("`from[0]` must be a text, not 1: {wait}"));
        let many = format!("`from` must be a list of 0 to 100 entries, not 101: {wait}");
        refused::<WaitArguments>("wait", json!({ "from": vec!["a"; 101] }), &many);
        let all = "`all` must be true or false, not \"yes\": ps takes all (boolean, optional)";
        refused::<PsArguments>("ps", json!({ "all": "yes" }), all);
    }

    #[test]
    fn a_signal_may_be_called_a_type() {
        let read = |given: Value| call::<SignalBackArguments>("signal-back", given).map(|read| read.signal);
        assert_eq!(read(json!({ "type": "complete", "stepId": "a", "summary": "done" })).unwrap(), "complete");
        assert!(read(json!({ "type": "complete", "signal": "complete", "stepId": "a" })).is_err());
        assert!(read(json!({ "stepId": "a" })).unwrap_err().starts_with("`signal` is missing"));
    }

    #[test]
    fn what_is_left_out_may_be_null() {
        let fork: ForkArguments = call("fork", json!({ "prompt": null, "name": "ann", "at": 3 })).unwrap();
        assert_eq!((fork.prompt, fork.name.as_deref(), fork.at), (None, Some("ann"), Some(3)));
        assert!(!call::<PsArguments>("ps", json!({ "all": null })).unwrap().all);
    }
}
