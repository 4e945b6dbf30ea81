//! The steps of a plan as people write them, in a file or over HTTP. What is wrong is told by the step's name, in words for the one who
//! wrote it. Whether the steps fit together is for the core to say; what agents hand in is held against the schema of their tool.

use crate::nearest::nearest;
use hatchery_core::Refusal;
use hatchery_core::quest::{StepId, StepPlan};
use serde::{Deserialize as _, Deserializer};
use serde_json::{Map, Value};

/// How a field is written, and what it takes. `depends_on` may stand for `dependsOn`, and so on.
const FIELDS: [(&str, Takes); 7] = [
    ("id", Takes::Text),
    ("name", Takes::Text),
    ("description", Takes::Text),
    ("dependsOn", Takes::Texts),
    ("filesToCreate", Takes::Texts),
    ("filesToModify", Takes::Texts),
    ("observables", Takes::Texts),
];
/// What a step cannot do without.
const NEEDED: [&str; 2] = ["id", "name"];

#[derive(Clone, Copy)]
enum Takes {
    Text,
    Texts,
}

/// A whole plan: a list of steps, or an object whose `steps` it is.
pub fn read_plan(plan: &Value) -> Result<Vec<StepPlan>, String> {
    let steps = plan.as_array().or_else(|| plan["steps"].as_array());
    let steps = steps.ok_or("it is no list of steps: [{\"id\": …, \"name\": …}, …]")?;
    if let Some(name) = plan.as_object().and_then(|plan| plan.keys().find(|name| *name != "steps")) {
        return Err(format!("`{name}` is no part of a plan, which has `steps` and nothing else"));
    }
    match steps.is_empty() {
        true => Err("there is no step in it".into()),
        false => read_steps(steps),
    }
}

pub fn read_steps(steps: &[Value]) -> Result<Vec<StepPlan>, String> {
    let read = |(at, step): (usize, &Value)| {
        // One that has no name yet is known by its place.
        let name = || step["id"].as_str().map_or_else(|| format!("step {}", at + 1), |id| format!("step `{id}`"));
        read_step(step).map_err(|why| format!("{}: {why}", name()))
    };
    steps.iter().enumerate().map(read).collect()
}

/// The same, as a part of something that is read.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<StepPlan>, D::Error> {
    read_steps(&Vec::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn read_step(step: &Value) -> Result<StepPlan, String> {
    let given = step.as_object().ok_or("it is not an object")?;
    for (name, value) in given {
        let Some((field, takes)) = FIELDS.iter().find(|(field, _)| means(name, field)) else {
            let nearest = nearest(name, FIELDS.map(|(field, _)| field)).unwrap_or_default();
            return Err(format!("`{name}` is no field of a step; did you mean `{nearest}`?"));
        };
        check(field, *takes, value)?;
    }
    if let Some(missing) = NEEDED.iter().find(|field| !given.contains_key(**field)) {
        return Err(format!("`{missing}` is missing"));
    }
    check_ids(given)?;
    serde_json::from_value(step.clone()).map_err(|error| error.to_string())
}

fn check(field: &str, takes: Takes, value: &Value) -> Result<(), String> {
    let wanted = match (takes, value) {
        (Takes::Text, Value::String(_)) => return Ok(()),
        (Takes::Texts, Value::Array(list)) if list.iter().all(Value::is_string) => return Ok(()),
        (Takes::Text, _) => "a text",
        (Takes::Texts, _) => "a list of texts, such as [\"one\", \"two\"]",
    };
    Err(format!("`{field}` has to be {wanted}"))
}

fn check_ids(given: &Map<String, Value>) -> Result<(), String> {
    let after = given.iter().filter(|(name, _)| means(name, "dependsOn")).filter_map(|(_, list)| list.as_array());
    for id in given.get("id").into_iter().chain(after.flatten()).filter_map(Value::as_str) {
        id.parse::<StepId>().map_err(|refusal: Refusal| format!("{refusal}; {}", refusal.hint()))?;
    }
    Ok(())
}

/// `dependsOn` may be written `depends_on`.
fn means(name: &str, field: &str) -> bool {
    let apart = |letter: char| match letter.is_uppercase() {
        true => format!("_{}", letter.to_lowercase()),
        false => letter.to_string(),
    };
    name == field || name == field.chars().map(apart).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(plan: &Value, expected: &str) {
        let why = read_plan(plan).unwrap_err();
        assert!(why.contains(expected), "{plan}: {why}");
    }

    #[test]
    fn a_plan_is_read_in_both_spellings_with_and_without_an_object_around_it() {
        let steps = json!([
            { "id": "deck", "name": "Lay the deck" },
            { "id": "rail", "name": "Rail", "description": "Oak.", "depends_on": ["deck"], "filesToCreate": ["rail.txt"],
              "files_to_modify": ["deck.txt"], "observables": ["nobody-falls"] },
        ]);
        let read = read_plan(&steps).unwrap();
        assert_eq!(read, read_plan(&json!({ "steps": steps })).unwrap());
        let names: Vec<&str> = read.iter().flat_map(|step| &step.depends_on).map(StepId::as_str).collect();
        assert_eq!((names, read[1].files_to_modify.as_slice()), (vec!["deck"], ["deck.txt".to_owned()].as_slice()));
    }

    #[test]
    fn what_is_wrong_is_told_by_the_step_s_name_and_the_nearest_field() {
        let step = |field: &str, value: Value| json!([{ "id": "deck", "name": "Deck", field: value }]);
        wrong(
            &step("dependson", json!([])),
            "step `deck`: `dependson` is no field of a step; did you mean `dependsOn`?",
        );
        wrong(&step("depend_on", json!([])), "did you mean `dependsOn`?");
        wrong(&step("depends_On", json!([])), "did you mean `dependsOn`?");
        wrong(&step("dependsOn_", json!([])), "did you mean `dependsOn`?");
        wrong(&step("files", json!([])), "did you mean `filesTo");
        wrong(&step("desc", json!("")), "did you mean `description`?");
        wrong(&step("dependsOn", json!("arch")), "step `deck`: `dependsOn` has to be a list of texts");
        wrong(&step("depends_on", json!(["Not A Step"])), "Not A Step");
        wrong(&step("description", json!(3)), "`description` has to be a text");
        wrong(&step("name", json!(null)), "`name` has to be a text");
        wrong(&json!([{ "id": "deck" }]), "step `deck`: `name` is missing");
        wrong(&json!([{ "id": "a", "name": "A" }, { "name": "B" }]), "step 2: `id` is missing");
        wrong(&json!([{ "id": "Deck!", "name": "Deck" }]), "small letters");
        wrong(&json!(["deck"]), "step 1: it is not an object");
        wrong(&json!({ "stages": [] }), "it is no list of steps");
        wrong(&json!({ "steps": [] }), "there is no step in it");
        wrong(&json!({ "steps": [{ "id": "a", "name": "A" }], "titel": 1 }), "`titel` is no part of a plan");
    }
}
