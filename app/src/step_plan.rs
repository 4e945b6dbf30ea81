//! The steps of a plan as people and models write them: in a file, over HTTP, and in a tool's arguments. What is wrong is told by the step's
//! name. Whether the steps fit together is for the core to say.

use crate::strict::{self, Given};
use hatchery_core::quest::{StepId, StepPlan};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A [`StepPlan`] as it is written. Field names may be in camelCase or snake_case.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PlannedStep {
    /// Lowercase letters, digits and dashes, at most 64.
    #[schemars(with = "String")]
    id: StepId,
    /// A few words.
    name: String,
    /// What to do, written so that a new developer can do it.
    #[serde(default)]
    description: String,
    /// The ids of the steps that must be complete first.
    #[serde(default, alias = "depends_on")]
    #[schemars(with = "Vec<String>")]
    depends_on: Vec<StepId>,
    /// Files that the step creates.
    #[serde(default, alias = "files_to_create")]
    files_to_create: Vec<String>,
    /// Files that the step changes.
    #[serde(default, alias = "files_to_modify")]
    files_to_modify: Vec<String>,
    /// The ids of the observables that are true when the step is complete.
    #[serde(default)]
    observables: Vec<String>,
}

impl From<PlannedStep> for StepPlan {
    fn from(step: PlannedStep) -> Self {
        let PlannedStep { id, name, description, depends_on, files_to_create, files_to_modify, observables } = step;
        Self { id, name, description, depends_on, files_to_create, files_to_modify, observables }
    }
}

/// A whole plan: a list of steps, or an object whose `steps` it is.
pub fn read_plan(plan: Value) -> Result<Vec<StepPlan>, String> {
    /// Only for what else may be in the object: nothing.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct PlanFile {
        steps: Vec<Value>,
    }
    let steps = match plan {
        Value::Array(steps) => steps,
        object => strict::read::<PlanFile>(Given::Typed(object)).map_err(|wrong| wrong.to_string())?.steps,
    };
    match steps.is_empty() {
        true => Err("there is no step in it".into()),
        false => read_steps(steps),
    }
}

/// For `deserialize_with`: the steps as a part of something that is read.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<StepPlan>, D::Error> {
    read_steps(Vec::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn read_steps(steps: Vec<Value>) -> Result<Vec<StepPlan>, String> {
    let read = |(at, step): (usize, Value)| {
        // A step without an id is known by its place.
        let name = step["id"].as_str().map_or_else(|| format!("step {}", at + 1), |id| format!("step `{id}`"));
        let step: Result<PlannedStep, _> = strict::read(Given::Typed(step));
        step.map(StepPlan::from).map_err(|wrong| format!("{name}: {wrong}"))
    };
    steps.into_iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn wrong(plan: &Value, expected: &str) {
        let why = read_plan(plan.clone()).unwrap_err();
        assert!(why.contains(expected), "{plan}: {why}");
    }

    #[test]
    fn a_plan_is_read_in_both_spellings_with_and_without_an_object_around_it() {
        let steps = json!([
            { "id": "deck", "name": "Lay the deck" },
            { "id": "rail", "name": "Rail", "description": "Oak.", "depends_on": ["deck"], "filesToCreate": ["rail.txt"],
              "files_to_modify": ["deck.txt"], "observables": ["nobody-falls"] },
        ]);
        let read = read_plan(steps.clone()).unwrap();
        assert_eq!(read, read_plan(json!({ "steps": steps })).unwrap());
        let names: Vec<&str> = read.iter().flat_map(|step| &step.depends_on).map(StepId::as_str).collect();
        assert_eq!((names, read[1].files_to_modify.as_slice()), (vec!["deck"], ["deck.txt".to_owned()].as_slice()));
    }

    #[test]
    fn what_is_wrong_is_told_by_the_step_s_name_and_the_nearest_field() {
        let step = |field: &str, value: Value| json!([{ "id": "deck", "name": "Deck", field: value }]);
        wrong(&step("dependson", json!([])), "step `deck`: `dependson` is not known; did you mean `dependsOn`?");
        wrong(&step("depend_on", json!([])), "did you mean `dependsOn`?");
        wrong(&step("files", json!([])), "did you mean `filesTo");
        wrong(&step("desc", json!("")), "did you mean `description`?");
        wrong(&step("dependsOn", json!("arch")), "step `deck`: `dependsOn` must be a list");
        wrong(&step("depends_on", json!(["Not A Step"])), "`depends_on[0]`: `Not A Step`");
        wrong(&step("description", json!(3)), "`description` must be a text, not 3");
        wrong(&step("name", json!(null)), "`name` must be a text, not null");
        wrong(&json!([{ "id": "deck" }]), "step `deck`: `name` is missing");
        wrong(&json!([{ "id": "a", "name": "A" }, { "name": "B" }]), "step 2: `id` is missing");
        wrong(&json!([{ "id": "Deck!", "name": "Deck" }]), "lowercase letters");
        wrong(&json!(["deck"]), "step 1: it must be a table with: id, name");
        wrong(&json!({ "stages": [] }), "`stages` is not known; did you mean `steps`?");
        wrong(&json!({ "steps": [] }), "there is no step in it");
        wrong(&json!(7), "it must be a table with: steps, not 7");
    }
}
