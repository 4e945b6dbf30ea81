//! What each tool takes. The types are the schemas, and their comments are what a model reads.

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

/// The longest wait of one call. Clients give up on a tool that is silent for too long.
pub const MAX_TIMEOUT_S: u64 = 600;
/// Below what clients usually allow a tool.
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
    /// What every agent can do.
    common:
    Fork => "fork",
    Kill => "kill",
    Send => "send",
    CheckMail => "check-mail",
    ReadMail => "read-mail",
    Wait => "wait",
    Ps => "ps",
}

named! {
    /// What agents of a quest can do besides.
    of_quests:
    SignalBack => "signal-back",
    SetRequirements => "set-requirements",
    PlanSteps => "plan-steps",
    GetQuest => "get-quest",
}

/// All tools, as they are listed.
pub fn tools(in_a_quest: bool) -> Vec<Tool> {
    let more = if in_a_quest { of_quests() } else { Vec::new() };
    // What an agent has to do comes first.
    more.into_iter().chain(common()).collect()
}

/// Fork yourself: make a new agent that inherits your history up to now, or up to an earlier message. Answers with its id.
/// While tools run in you the child waits for them to be done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The child's first message: what it is to do.
    pub prompt: Option<String>,
    /// What to call the child.
    pub name: Option<String>,
    /// The id of an earlier message of your history; the child inherits up to it.
    pub at: Option<u64>,
}

/// Kill an agent for good. You cannot kill those above you. Your own id ends yourself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// An id, the beginning of one, or a name.
    #[serde(deserialize_with = "strict::not_empty")]
    #[schemars(length(min = 1))]
    pub agent: String,
    /// Kill everybody below it as well. Otherwise its children move up to its parent.
    #[serde(default)]
    pub cascade: bool,
    /// Why, for the record.
    pub remark: Option<String>,
}

/// Send a mail to an agent or to the human. It waits in their mailbox until they read it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// An agent's id, the beginning of one, a name, or `human`.
    #[serde(deserialize_with = "strict::not_empty")]
    #[schemars(length(min = 1))]
    pub to: String,
    /// What it says: at most 1 MiB of text.
    pub body: String,
}

/// List your unread mail, the oldest first. Changes nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckMail {}

/// Read your oldest unread mail, or a certain one. It then counts as read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadMail {
    /// The id of a certain mail, as check-mail shows it.
    pub mail: Option<u64>,
}

/// Wait for your next mail; or, with `from`, until each of these agents has written to you or cannot any more. You get the
/// mail itself. It stays on the list of check-mail as `delivered` until read-mail confirms it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Ids, beginnings of ids, or names.
    #[serde(default, deserialize_with = "strict::list::<_, _, 0, 100>")]
    #[schemars(length(max = 100))]
    pub from: Vec<String>,
    /// Give up after so many seconds: 0 looks once, 30 is usual, 600 is the most. Call it again to wait longer.
    #[schemars(with = "Option<u64>", range(max = MAX_TIMEOUT_S))]
    pub timeout: Option<Within<0, MAX_TIMEOUT_S>>,
}

/// List the agents: ids, names, parents, states, and who you are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ps {
    /// The dead and expired as well.
    #[serde(default)]
    pub all: bool,
}

/// Say how it stands with your step, once, and then stop. `complete` when it is done; `partially-complete` when you run out of room, so that
/// a fresh agent goes on; `needs-user-input` when only a person can say how to go on; `needs-role-followup` when another role has to act
/// first. Each needs the fields that name it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignalBack {
    /// `complete`, `partially-complete`, `needs-user-input` or `needs-role-followup`.
    #[serde(deserialize_with = "strict::not_empty", alias = "type")]
    #[schemars(length(min = 1))]
    pub signal: String,
    /// The id of your step.
    #[serde(deserialize_with = "strict::not_empty")]
    #[schemars(length(min = 1))]
    pub step_id: String,
    /// For `complete`: what was accomplished.
    pub summary: Option<String>,
    /// For `partially-complete`: what is done.
    pub progress: Option<String>,
    /// For `partially-complete`: where to go on.
    pub continuation_point: Option<String>,
    /// For `needs-user-input`: what the person is asked.
    pub question: Option<String>,
    /// For `needs-user-input` and `needs-role-followup`: what one has to know for it.
    pub context: Option<String>,
    /// For `needs-role-followup`: who has to act first.
    pub target_role: Option<String>,
    /// For `needs-role-followup`: why.
    pub reason: Option<String>,
    /// For `needs-role-followup`: true if you want to go on afterwards, false if your part is done.
    pub resume: Option<bool>,
}

/// Hand in what the quest is to achieve: all of it, in one call. It replaces what was handed in before.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRequirements {
    /// The circumstances in which something is to be observed.
    #[serde(default, deserialize_with = "strict::list::<_, _, 0, 1_000>")]
    #[schemars(length(max = 1_000))]
    pub contexts: Vec<Context>,
    /// What can be seen to be true when the quest is complete.
    #[serde(deserialize_with = "strict::list::<_, _, 0, 1_000>")]
    #[schemars(length(max = 1_000))]
    pub observables: Vec<Observable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Context {
    /// Small letters, digits and dashes.
    pub id: String,
    /// What the circumstances are.
    pub description: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Observable {
    /// Small letters, digits and dashes.
    pub id: String,
    /// The id of the context that it is observed in.
    pub context: Option<String>,
    /// What can be seen.
    pub description: String,
}

/// Hand in the steps of the quest: all of them, in one call. What is complete or under way stays as it is, whether you list it or not.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanSteps {
    /// The steps. Those that do not depend on each other are done at the same time.
    #[serde(deserialize_with = "strict::list::<_, _, 1, 10_000>")]
    #[schemars(length(min = 1, max = 10_000))]
    pub steps: Vec<PlannedStep>,
}

impl From<SetRequirements> for quest::Requirements {
    fn from(given: SetRequirements) -> Self {
        let context = |it: Context| quest::Context { id: it.id, description: it.description };
        let observable =
            |it: Observable| quest::Observable { id: it.id, context: it.context, description: it.description };
        Self {
            contexts: given.contexts.into_iter().map(context).collect(),
            observables: given.observables.into_iter().map(observable).collect(),
        }
    }
}

/// Look at your quest: what is wanted, the steps with their states, and which is yours. Changes nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetQuest {}

fn tool<T: JsonSchema + Any>(name: &'static str) -> Tool {
    let mut schema = schema_for_type::<T>().as_ref().clone();
    let description = schema.remove("description");
    let description = description.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    schema.retain(|key, _| !["$schema", "title"].contains(&key.as_str()));
    flatten_all(&mut schema);
    // Some clients refuse an object without it.
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

/// Clients refuse unions. What need not be given need not be null, either.
fn flatten(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    let plain =
        property.get("type").and_then(Value::as_array).and_then(|kinds| kinds.iter().find(|kind| *kind != "null"));
    if let Some(plain) = plain.cloned() {
        property.insert("type".into(), plain);
    }
}

/// The arguments of a call, or what is wrong with them and what the tool takes.
pub fn read<T: DeserializeOwned>(tool: &Tool, mut given: JsonObject) -> Result<T, String> {
    // Models write `null` for what they leave out.
    given.retain(|_, value| !value.is_null());
    strict::read(Given::Typed(Value::Object(given))).map_err(|wrong| {
        let meant = wrong.meant().map(|meant| format!(" (did you mean {meant}?)")).unwrap_or_default();
        format!("{}{meant}: {}", wrong.message(), takes(tool))
    })
}

/// The arguments of a tool in a few words.
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
        for tool in tools(true) {
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
        let tools = tools(true);
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
        refused::<Send>("send", json!({ "to": "ann" }), &format!("`body` is missing: {send}"));
        let empty = format!("`to` must be a text that is not empty, not \"\": {send}");
        refused::<Send>("send", json!({ "to": "", "body": "" }), &empty);
        refused::<Send>("send", json!({ "to": "ann", "body": 1 }), &format!("`body` must be a text, not 1: {send}"));
        let from = json!({ "to": "ann", "body": "", "from": "ben" });
        refused::<Send>("send", from, &format!("`from` is not known (did you mean `to`?): {send}"));
        refused::<CheckMail>("check-mail", json!({ "of": "ann" }), "`of` is not known: check-mail takes no arguments");
        let wait = "wait takes from (array, optional), timeout (integer, optional)";
        for timeout in [json!(601), json!(-1), json!(1.5), json!("1")] {
            let expected = format!("`timeout` must be a whole number from 0 to 600, not {timeout}: {wait}");
            refused::<Wait>("wait", json!({ "timeout": timeout }), &expected);
        }
        refused::<Wait>("wait", json!({ "from": [1] }), &format!("`from[0]` must be a text, not 1: {wait}"));
        let many = format!("`from` must be a list of 0 to 100 entries, not 101: {wait}");
        refused::<Wait>("wait", json!({ "from": vec!["a"; 101] }), &many);
        let all = "`all` must be true or false, not \"yes\": ps takes all (boolean, optional)";
        refused::<Ps>("ps", json!({ "all": "yes" }), all);
    }

    #[test]
    fn a_signal_may_be_called_a_type() {
        let read = |given: Value| call::<SignalBack>("signal-back", given).map(|read| read.signal);
        assert_eq!(read(json!({ "type": "complete", "stepId": "a", "summary": "done" })).unwrap(), "complete");
        assert!(read(json!({ "type": "complete", "signal": "complete", "stepId": "a" })).is_err());
        assert!(read(json!({ "stepId": "a" })).unwrap_err().starts_with("`signal` is missing"));
    }

    #[test]
    fn what_is_left_out_may_be_null() {
        let fork: Fork = call("fork", json!({ "prompt": null, "name": "ann", "at": 3 })).unwrap();
        assert_eq!((fork.prompt, fork.name.as_deref(), fork.at), (None, Some("ann"), Some(3)));
        assert!(!call::<Ps>("ps", json!({ "all": null })).unwrap().all);
    }
}
