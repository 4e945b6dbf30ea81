//! The API's document as Markdown: a section for each group of routes, then the fields of every request body.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub fn render(document: &Value) -> String {
    let mut groups: BTreeMap<&str, Vec<Route>> = BTreeMap::new();
    for (path, methods) in entries(&document["paths"]) {
        for (method, operation) in entries(methods) {
            let group = operation["tags"][0].as_str().unwrap();
            groups.entry(group).or_default().push(Route { method, path, operation });
        }
    }
    let mut text = String::from("\n## Routes\n");
    for (group, routes) in &groups {
        writeln!(text, "\n### {group}\n\n| Route | What it does | Body | Answer |\n|---|---|---|---|").unwrap();
        routes.iter().for_each(|route| text.push_str(&route.row()));
    }
    text.push_str("\n## Parameters\n\n| Route | Parameter | Type | Meaning |\n|---|---|---|---|\n");
    for route in groups.values().flatten() {
        for parameter in list(&route.operation["parameters"]).filter(|it| it["in"] != "path") {
            let name = parameter["name"].as_str().unwrap();
            let meaning = cell(parameter["description"].as_str().unwrap_or_default());
            let kind = kind(&parameter["schema"]);
            writeln!(text, "| `{}` | `{name}` ({}) | {kind} | {meaning} |", route.name(), plain(&parameter["in"]))
                .unwrap();
        }
    }
    text.push_str("\n## Request bodies\n\nA field without *required* may be left out or be null.\n");
    let schemas = &document["components"]["schemas"];
    let mut names: BTreeSet<String> = groups.values().flatten().filter_map(Route::body).collect();
    // Also the objects inside of a body.
    let mut open: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let inner = entries(&schemas[&name]["properties"]).flat_map(|(_, property)| references(property));
        open.extend(inner.filter(|inner| names.insert(inner.clone())));
    }
    for name in &names {
        text.push_str(&fields(name, &schemas[name]));
    }
    text
}

struct Route<'a> {
    method: &'a str,
    path: &'a str,
    operation: &'a Value,
}

impl Route<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }

    fn row(&self) -> String {
        let words = [&self.operation["summary"], &self.operation["description"]];
        let words: Vec<&str> = words.into_iter().filter_map(Value::as_str).collect();
        let body = self.body().map(|name| format!("[`{name}`](#{})", name.to_lowercase())).unwrap_or_default();
        let good = entries(&self.operation["responses"]).filter(|(status, _)| status.starts_with('2'));
        let answers = good.map(|(status, response)| {
            let content = entries(&response["content"]).next();
            let kind = content.map(|(media, content)| match media {
                "application/json" => kind(&content["schema"]),
                other => format!("`{other}`"),
            });
            format!("{status} {}", kind.unwrap_or_default()).trim_end().to_owned()
        });
        let answers: Vec<String> = answers.collect();
        format!("| `{}` | {} | {body} | {} |\n", self.name(), cell(&words.join(" ")), answers.join(", "))
    }

    /// The name of the schema of its body.
    fn body(&self) -> Option<String> {
        references(&self.operation["requestBody"]["content"]["application/json"]["schema"]).into_iter().next()
    }
}

fn fields(name: &str, schema: &Value) -> String {
    let mut text = format!("\n### {name}\n\n");
    if let Some(words) = schema["description"].as_str() {
        writeln!(text, "{words}\n").unwrap();
    }
    let required: Vec<&str> = list(&schema["required"]).filter_map(Value::as_str).collect();
    let mut properties = entries(&schema["properties"]).peekable();
    if properties.peek().is_none() {
        writeln!(text, "{}", kind(schema)).unwrap();
        return text;
    }
    text.push_str("| Field | Type | Meaning |\n|---|---|---|\n");
    for (field, property) in properties {
        let needed = if required.contains(&field) { "*required*; " } else { "" };
        let meaning = format!("{needed}{}{}", property["description"].as_str().unwrap_or_default(), limits(property));
        writeln!(text, "| `{field}` | {} | {} |", kind(property), cell(meaning.trim_end_matches("; "))).unwrap();
    }
    text
}

fn limits(property: &Value) -> String {
    let bound = |name: &str, words: &str| {
        property.get(name).filter(|bound| **bound != 0).map(|bound| format!("{words} {bound}"))
    };
    let bounds = [
        bound("minimum", "at least"),
        bound("maximum", "at most"),
        bound("minLength", "characters: at least"),
        bound("maxLength", "characters: at most"),
        bound("maxItems", "entries: at most"),
    ];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    if bounds.is_empty() { String::new() } else { format!(" ({})", bounds.join(", ")) }
}

/// The type of a value in one or two words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().map(last) {
        return format!("`{name}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{}`", plain(value))).collect::<Vec<_>>().join(", ");
    }
    let choices = ["oneOf", "anyOf", "allOf"].into_iter().flat_map(|name| list(&schema[name]));
    let choices: BTreeSet<String> = choices.filter(|choice| choice["type"] != "null").map(kind).collect();
    if !choices.is_empty() {
        return choices.into_iter().collect::<Vec<_>>().join(" or ");
    }
    let words = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter(|kind| *kind != "null").map(plain).collect::<Vec<_>>().join(" or "),
        kind => plain(kind),
    };
    match words.as_str() {
        "array" => format!("list of {}", kind(&schema["items"])),
        "" => "any".to_owned(),
        _ => words,
    }
}

/// The names of the schemas that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => {
            let inner = fields.values().flat_map(references);
            fields
                .get("$ref")
                .and_then(Value::as_str)
                .map(|name| last(name).to_owned())
                .into_iter()
                .chain(inner)
                .collect()
        }
        Value::Array(entries) => entries.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn last(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

fn cell(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned)
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
