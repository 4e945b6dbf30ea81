//! As much of JSON Schema as the API's document uses, and not a word more: a keyword that is not known here is an error,
//! so that nothing passes unlooked at. (A whole validator would bring fifty packages along.)

use serde_json::{Map, Value};

/// The document, for looking up what a `$ref` means.
#[derive(Clone, Copy)]
pub struct Schemas<'a>(pub &'a Value);

/// The patterns that there are. What they describe knows itself better.
const ID: &str = "^[A-Za-z0-9_-]{21}[AQgw]$";
const ADDRESS: &str = "^(human|[A-Za-z0-9_-]{21}[AQgw])$";
const NAME: &str = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$";

impl<'a> Schemas<'a> {
    /// Where and why the value is not as the schema says.
    pub fn check(self, schema: &Value, value: &Value) -> Result<(), String> {
        self.check_at(schema, value, "$")
    }

    fn check_at(self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = schema.as_object().ok_or_else(|| format!("{at}: {schema} is not a schema"))?;
        let wrong = |why: String| Err(format!("{at}: {why}, but is {value}"));
        for (keyword, rule) in schema {
            match keyword.as_str() {
                "$ref" => self.check_at(self.resolve(rule.as_str().unwrap())?, value, at)?,
                "type" if !is_of(rule, value) => return wrong(format!("must be {rule}")),
                "enum" if !rule.as_array().unwrap().contains(value) => return wrong(format!("must be one of {rule}")),
                "oneOf" => self.check_one_of(rule.as_array().unwrap(), value, at)?,
                "allOf" => {
                    for part in rule.as_array().unwrap() {
                        self.check_at(part, value, at)?;
                    }
                }
                "required" => {
                    for name in rule.as_array().unwrap().iter().filter_map(Value::as_str) {
                        if value.is_object() && value.get(name).is_none() {
                            return wrong(format!("must have `{name}`"));
                        }
                    }
                }
                "properties" => self.check_properties(schema, rule.as_object().unwrap(), value, at)?,
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check_at(rule, item, &format!("{at}[{number}]"))?;
                    }
                }
                "minimum" if value.as_f64().is_some_and(|it| it < rule.as_f64().unwrap()) => {
                    return wrong(format!("must be at least {rule}"));
                }
                "maximum" if value.as_f64().is_some_and(|it| it > rule.as_f64().unwrap()) => {
                    return wrong(format!("must be at most {rule}"));
                }
                "minLength" if length(value).is_some_and(|it| it < rule.as_u64().unwrap()) => {
                    return wrong(format!("must have {rule} characters or more"));
                }
                "maxLength" if length(value).is_some_and(|it| it > rule.as_u64().unwrap()) => {
                    return wrong(format!("must have {rule} characters or fewer"));
                }
                "pattern" => {
                    let fits = |text: &str| match rule.as_str().unwrap() {
                        ID => Ok(text.parse::<hatchery_core::AgentId>().is_ok()),
                        ADDRESS => Ok(text.parse::<hatchery_core::Address>().is_ok()),
                        NAME => Ok(!text.is_empty() && text.trim() == text && !text.contains(char::is_control)),
                        other => Err(format!("{at}: the pattern {other} is not known here")),
                    };
                    if !value.as_str().map_or(Ok(true), fits)? {
                        return wrong(format!("must be like {rule}"));
                    }
                }
                "propertyNames" => {
                    for name in value.as_object().into_iter().flat_map(Map::keys) {
                        self.check_at(rule, &Value::String(name.clone()), &format!("{at}.{name}, the name"))?;
                    }
                }
                "additionalProperties" if rule.is_object() => {
                    let known = schema.get("properties").and_then(Value::as_object);
                    let others = value.as_object().into_iter().flatten();
                    for (name, field) in
                        others.filter(|(name, _)| !known.is_some_and(|known| known.contains_key(*name)))
                    {
                        self.check_at(rule, field, &format!("{at}.{name}"))?;
                    }
                }
                "additionalProperties" if rule == false && !schema.contains_key("properties") => {
                    if value.as_object().is_some_and(|fields| !fields.is_empty()) {
                        return wrong("must be empty".into());
                    }
                }
                "maxItems" if value.as_array().is_some_and(|it| it.len() as u64 > rule.as_u64().unwrap()) => {
                    return wrong(format!("must have {rule} items or fewer"));
                }
                "type" | "enum" | "minimum" | "maximum" | "minLength" | "maxLength" | "maxItems" => {}
                "description" | "format" | "additionalProperties" => {}
                other => return Err(format!("{at}: the keyword `{other}` is not known here")),
            }
        }
        Ok(())
    }

    fn check_one_of(self, choices: &[Value], value: &Value, at: &str) -> Result<(), String> {
        let tried: Vec<_> = choices.iter().map(|choice| self.check_at(choice, value, at)).collect();
        match tried.iter().filter(|tried| tried.is_ok()).count() {
            1 => Ok(()),
            count => Err(format!("{at}: {count} of the choices fit {value}: {tried:?}")),
        }
    }

    fn check_properties(
        self,
        schema: &Map<String, Value>,
        properties: &Map<String, Value>,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        for (name, field) in value.as_object().into_iter().flatten() {
            match properties.get(name) {
                Some(rule) => self.check_at(rule, field, &format!("{at}.{name}"))?,
                None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                    return Err(format!("{at}: `{name}` is one too many"));
                }
                None => {}
            }
        }
        Ok(())
    }

    pub fn resolve(self, reference: &str) -> Result<&'a Value, String> {
        let place = reference.strip_prefix('#').and_then(|pointer| self.0.pointer(pointer));
        place.ok_or_else(|| format!("{reference} leads nowhere"))
    }
}

fn is_of(rule: &Value, value: &Value) -> bool {
    match rule.as_array() {
        Some(types) => types.iter().any(|rule| is_of(rule, value)),
        None => match rule.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("the type {other} is not known"),
        },
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_can_say_no() {
        let document = json!({ "s": { "type": "string", "minLength": 2, "maxLength": 3 } });
        let schemas = Schemas(&document);
        let schema = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": { "$ref": "#/s" },
                "n": { "type": ["integer", "null"], "minimum": 1, "maximum": 5 },
                "e": { "enum": ["x", "y"] },
                "l": { "type": "array", "items": { "type": "boolean" } },
                "o": { "oneOf": [{ "type": "string" }, { "enum": ["q", 7] }] },
                "id": { "pattern": ID },
                "who": { "pattern": ADDRESS },
                "name": { "pattern": NAME },
                "few": { "type": "array", "maxItems": 1 },
                "none": { "type": "object", "additionalProperties": false },
                "map": { "type": "object", "propertyNames": { "maxLength": 1 }, "additionalProperties": { "$ref": "#/s" } },
            },
        });
        for good in [
            json!({ "a": "abc", "n": 5, "e": "x", "l": [true], "o": 7, "id": "AAAAAAAAAAAAAAAAAAAAAA" }),
            json!({ "a": "ab", "n": null, "l": [], "o": "z" }),
            json!({ "a": "ab", "who": "human", "name": "a b", "few": [1], "none": {}, "map": { "x": "yy" } }),
        ] {
            assert_eq!(schemas.check(&schema, &good), Ok(()));
        }
        for bad in [
            json!([]),
            json!({}),
            json!({ "a": 1 }),
            json!({ "a": "a" }),
            json!({ "a": "abcd" }),
            json!({ "a": "ab", "b": 1 }),
            json!({ "a": "ab", "n": 0 }),
            json!({ "a": "ab", "n": 6 }),
            json!({ "a": "ab", "n": 1.5 }),
            json!({ "a": "ab", "e": "z" }),
            json!({ "a": "ab", "l": [1] }),
            json!({ "a": "ab", "o": "q" }),
            json!({ "a": "ab", "o": true }),
            json!({ "a": "ab", "id": "AAAAAAAAAAAAAAAAAAAAAB" }),
            json!({ "a": "ab", "who": "Human" }),
            json!({ "a": "ab", "name": " b" }),
            json!({ "a": "ab", "few": [1, 2] }),
            json!({ "a": "ab", "none": { "x": 1 } }),
            json!({ "a": "ab", "map": { "x": "y" } }),
            json!({ "a": "ab", "map": { "xx": "yy" } }),
        ] {
            assert!(schemas.check(&schema, &bad).is_err(), "{bad}");
        }
        assert!(schemas.check(&json!({ "const": 1 }), &json!(1)).is_err(), "what is not known does not pass");
        assert!(schemas.check(&json!({ "$ref": "#/nowhere" }), &json!(1)).is_err());
    }
}
