//! What each tool takes. The types are the schemas, their comments are what a model reads, and what does not fit is told in
//! words that a model can act on.

use rmcp::handler::server::common::schema_for_type;
use rmcp::model::{JsonObject, Tool};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;
use std::any::Any;

/// The longest wait of one call. Clients give up on a tool that is silent for too long.
pub const MAX_TIMEOUT_S: u64 = 600;
/// Below what clients usually allow a tool.
pub const USUAL_TIMEOUT_S: u64 = 30;

macro_rules! named {
    ($($arguments:ty => $name:literal),+ $(,)?) => {
        $(impl $arguments {
            pub const NAME: &'static str = $name;
        })+

        /// All tools, as they are listed.
        pub fn tools() -> Vec<Tool> {
            vec![$(tool::<$arguments>($name)),+]
        }
    };
}

named! {
    Fork => "fork",
    Kill => "kill",
    Send => "send",
    CheckMail => "check-mail",
    ReadMail => "read-mail",
    Wait => "wait",
    Ps => "ps",
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
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub from: Vec<String>,
    /// Give up after so many seconds: 0 looks once, 30 is usual, 600 is the most. Call it again to wait longer.
    #[schemars(range(max = MAX_TIMEOUT_S))]
    pub timeout: Option<u64>,
}

/// List the agents: ids, names, parents, states, and who you are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ps {
    /// The dead and expired as well.
    #[serde(default)]
    pub all: bool,
}

fn tool<T: JsonSchema + Any>(name: &'static str) -> Tool {
    let mut schema = schema_for_type::<T>().as_ref().clone();
    let description = schema.remove("description");
    let description = description.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    schema.retain(|key, _| !["$schema", "title"].contains(&key.as_str()));
    for property in
        schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(|all| all.values_mut())
    {
        flatten(property);
    }
    // Some clients refuse an object without it.
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    Tool::new(name, description, schema)
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

/// What is wrong with the arguments of a call, and what would be right.
pub fn check(tool: &Tool, given: &JsonObject) -> Result<(), String> {
    let schema = tool.input_schema.as_ref();
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if let Some(missing) = required.iter().filter_map(Value::as_str).find(|name| !given.contains_key(*name)) {
        return Err(format!("`{missing}` is missing: {}", takes(tool)));
    }
    for (name, value) in given {
        let Some(property) = properties.and_then(|all| all.get(name)) else {
            return Err(format!("`{name}` is not known: {}", takes(tool)));
        };
        let optional = !required.iter().any(|required| required == name);
        if !(value.is_null() && optional) {
            fits(property, value).map_err(|wanted| format!("`{name}` must be {wanted}: {}", takes(tool)))?;
        }
    }
    Ok(())
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

/// What a value would have to be, unless it is.
fn fits(property: &Value, value: &Value) -> Result<(), String> {
    let limit = |name: &str| property.get(name).and_then(Value::as_u64);
    match property["type"].as_str() {
        Some("string") => match value.as_str() {
            Some(text) if text.len() as u64 >= limit("minLength").unwrap_or(0) => Ok(()),
            Some(_) => Err("a text that is not empty".into()),
            None => Err("a text".into()),
        },
        Some("boolean") if !value.is_boolean() => Err("true or false".into()),
        Some("integer") => {
            let (least, most) = (limit("minimum").unwrap_or(0), limit("maximum"));
            match (value.as_u64(), most) {
                (Some(number), most) if number >= least && most.is_none_or(|most| number <= most) => Ok(()),
                (_, Some(most)) => Err(format!("a whole number from {least} to {most}")),
                (_, None) => Err(format!("a whole number of at least {least}")),
            }
        }
        Some("array") => {
            let most = limit("maxItems").unwrap_or(u64::MAX);
            match value.as_array() {
                Some(items) if items.len() as u64 > most => Err(format!("a list of at most {most}")),
                Some(items) if items.iter().all(|item| fits(&property["items"], item).is_ok()) => Ok(()),
                _ => Err("a list of texts".into()),
            }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_schema_is_one_flat_object() {
        for tool in tools() {
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

    #[track_caller]
    fn refused(name: &str, given: Value, expected: &str) {
        let tools = tools();
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        assert_eq!(check(tool, given.as_object().unwrap()).unwrap_err(), expected);
    }

    #[test]
    fn what_does_not_fit_is_told_in_words() {
        let send = "send takes body (string), to (string)";
        refused("send", json!({ "to": "ann" }), &format!("`body` is missing: {send}"));
        refused("send", json!({ "to": "", "body": "" }), &format!("`to` must be a text that is not empty: {send}"));
        refused("send", json!({ "to": "ann", "body": 1 }), &format!("`body` must be a text: {send}"));
        refused("send", json!({ "to": "ann", "body": "", "from": "ben" }), &format!("`from` is not known: {send}"));
        refused("check-mail", json!({ "of": "ann" }), "`of` is not known: check-mail takes no arguments");
        let wait = "wait takes from (array, optional), timeout (integer, optional)";
        for timeout in [json!(601), json!(-1), json!(1.5), json!("1")] {
            refused(
                "wait",
                json!({ "timeout": timeout }),
                &format!("`timeout` must be a whole number from 0 to 600: {wait}"),
            );
        }
        refused("wait", json!({ "from": "ann" }), &format!("`from` must be a list of texts: {wait}"));
        refused("wait", json!({ "from": [1] }), &format!("`from` must be a list of texts: {wait}"));
        refused("wait", json!({ "from": vec!["a"; 101] }), &format!("`from` must be a list of at most 100: {wait}"));
        refused("ps", json!({ "all": "yes" }), "`all` must be true or false: ps takes all (boolean, optional)");
    }

    #[test]
    fn what_is_allowed_can_be_read() {
        let fork = json!({ "prompt": null, "name": "ann", "at": 3 });
        let tools = tools();
        check(&tools[0], fork.as_object().unwrap()).unwrap();
        let fork: Fork = serde_json::from_value(fork).unwrap();
        assert_eq!((fork.prompt, fork.name.as_deref(), fork.at), (None, Some("ann"), Some(3)));
    }
}
