//! Asks an operation of the API and compares the answer with the document.

use super::operations;
use crate::doors::house::House;
use crate::doors::raw::{Parts, Reply};
use crate::doors::schema::Schemas;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One try of an operation.
pub struct Try<'a> {
    operation: &'a str,
    path: String,
    body: Option<Value>,
    status: u16,
}

pub fn tried<'a>(operation: &'a str, path: impl Into<String>, body: Option<Value>, status: u16) -> Try<'a> {
    Try { operation, path: path.into(), body, status }
}

/// Tries all of them, with and without the token, and gives the operations that were seen to go well.
pub fn answered_as_described(house: &House, document: &Value, tries: &[Try<'_>]) -> BTreeSet<String> {
    let described: BTreeMap<&str, (&str, &str, &Value)> =
        operations(document).into_iter().map(|it| (it.2["operationId"].as_str().unwrap(), it)).collect();
    let mut went_well = BTreeSet::new();
    for Try { operation, path, body, status } in tries {
        let (method, template, description) = described[operation];
        assert!(is_at(template, path), "{path} is not {operation}");
        let (kind, shape) = match description["requestBody"]["content"].as_object().and_then(|it| it.iter().next()) {
            Some((kind, content)) => (kind.as_str(), Some(&content["schema"])),
            None => ("application/json", None),
        };
        if let (Some(body), Some(shape), 200..300) = (body, shape, status) {
            assert_eq!(Schemas(document).check(shape, body), Ok(()), "{operation} takes what it says it does not");
        }
        let body = match body {
            Some(Value::String(text)) => text.clone(),
            Some(body) => body.to_string(),
            None => String::new(),
        };
        let headers = [("host", house.host.as_str()), ("authorization", &house.bearer), ("content-type", kind)];
        let reply = house.line().ask(&method.to_uppercase(), path, Parts { headers: &headers, body: body.as_bytes() });
        assert_eq!(reply.status, *status, "{method} {path} {body}: {reply:?}");
        assert_described(document, description, &reply, operation);
        let headers = [("host", house.host.as_str()), ("content-type", "application/json")];
        let stranger =
            house.line().ask(&method.to_uppercase(), path, Parts { headers: &headers, body: body.as_bytes() });
        if *operation != "health" {
            assert_eq!(stranger.status, 401, "{operation}");
        }
        assert_described(document, description, &stranger, operation);
        if (200..300).contains(status) {
            went_well.insert((*operation).to_owned());
        }
    }
    went_well
}

/// Whether a path is one of those that a template means.
fn is_at(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap();
    let fits = |(part, given): (&str, &str)| part.starts_with('{') || part == given;
    template.split('/').count() == path.split('/').count() && template.split('/').zip(path.split('/')).all(fits)
}

/// The answer has the type and the shape that the document gives for its number.
fn assert_described(document: &Value, operation: &Value, reply: &Reply, about: &str) {
    let responses = &operation["responses"];
    let of_its_kind = format!("{}XX", reply.status / 100);
    let response = responses.get(reply.status.to_string()).or_else(|| responses.get(of_its_kind));
    let content =
        response.unwrap_or_else(|| panic!("{about}: {} is not described", reply.status))["content"].as_object();
    let (kind, content) = content.unwrap().iter().next().unwrap();
    assert_eq!(reply.header("content-type"), Some(kind.as_str()), "{about}");
    let body = match kind.as_str() {
        "application/json" => reply.json(),
        _ => Value::String(reply.text().to_owned()),
    };
    let checked = Schemas(document).check(&content["schema"], &body);
    assert_eq!(checked, Ok(()), "{about} {}", reply.status);
}
