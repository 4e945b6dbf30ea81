//! What is written to codex for a decision about a permission.

use super::outputs;
use hatchery_core::codex::approval;
use hatchery_core::output::Output;
use hatchery_core::permission::{PermissionDecision, PermissionRequest};
use serde_json::{Value, json};

fn asked() -> Vec<PermissionRequest> {
    let asked = outputs("approvals").into_iter().filter_map(|output| match output {
        Output::Asked(request) => Some(request),
        _ => None,
    });
    asked.collect()
}

fn written(request: &PermissionRequest, decision: &PermissionDecision) -> Value {
    serde_json::from_str(&approval(request, decision)).unwrap()
}

#[test]
fn each_kind_of_request_gets_its_kind_of_answer() {
    let asked = asked();
    let deny = PermissionDecision::Deny { reason: "no".to_owned() };
    let decisions: Vec<Value> = asked.iter().map(|request| written(request, &PermissionDecision::Allow)).collect();
    assert_eq!(decisions[0], json!({ "id": 0, "result": { "decision": "accept" } }));
    assert_eq!(decisions[1], json!({ "id": 1, "result": { "decision": "accept" } }));
    assert_eq!(decisions[3], json!({ "id": 3, "result": { "action": "accept", "content": {} } }));
    assert_eq!(written(&asked[2], &deny), json!({ "id": 2, "result": { "decision": "decline" } }));
    assert_eq!(written(&asked[3], &deny), json!({ "id": 3, "result": { "action": "decline" } }));
}

#[test]
fn a_request_of_an_unknown_kind_is_refused_whatever_is_decided() {
    let request = PermissionRequest { request: "unknown:\"a\"".to_owned(), ..asked().remove(0) };
    for decision in [PermissionDecision::Allow, PermissionDecision::Deny { reason: String::new() }] {
        assert_eq!(written(&request, &decision)["error"]["code"], -32601);
        assert_eq!(written(&request, &decision)["id"], "a");
    }
}
