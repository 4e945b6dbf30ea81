//! An answer on the wire: events in the order of the Responses API.

use super::stream::{Part, body, event};
use super::{Asked, Block, Fault, Place};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Pieces that a text is sent in are this long: some, so that there is a middle.
const PIECE: usize = 8;

pub fn answer(asked: &Asked, number: usize, blocks: &[Block], fault: Option<&(Place, Fault)>) -> Response {
    let headers = [(CONTENT_TYPE, "text/event-stream; charset=utf-8"), (CACHE_CONTROL, "no-cache")];
    (headers, body(events(asked, number, blocks, fault))).into_response()
}

fn events(asked: &Asked, number: usize, blocks: &[Block], fault: Option<&(Place, Fault)>) -> Vec<Part> {
    let response = |status: &str, output: &[Value]| {
        json!({
            "id": format!("resp_{number}"),
            "object": "response",
            "model": asked.body["model"],
            "status": status,
            "output": output,
            "usage": {
                "input_tokens": 10,
                "input_tokens_details": { "cached_tokens": 0 },
                "output_tokens": 5,
                "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": 15,
            },
        })
    };
    let mut parts = vec![event(json!({ "type": "response.created", "response": response("in_progress", &[]) }))];
    let mut output = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let item = item(number, index, block);
        let added = json!({ "type": "response.output_item.added", "output_index": index, "item": begun(&item) });
        parts.push(event(added));
        let pieces = pieces(block);
        let middle = pieces.len().div_ceil(2);
        for (nth, piece) in (1..).zip(pieces) {
            parts.push(event(json!({
                "type": "response.output_text.delta",
                "item_id": item["id"],
                "output_index": index,
                "content_index": 0,
                "delta": piece,
            })));
            if nth == middle && disturb(&mut parts, fault, Place::Within(index), number) {
                return parts;
            }
        }
        parts.push(event(json!({ "type": "response.output_item.done", "output_index": index, "item": item })));
        output.push(item);
        if disturb(&mut parts, fault, Place::Behind(index), number) {
            return parts;
        }
    }
    parts.push(event(json!({ "type": "response.completed", "response": response("completed", &output) })));
    parts
}

fn item(number: usize, index: usize, block: &Block) -> Value {
    let id = |kind: &str| format!("{kind}_{number}_{index}");
    match block {
        Block::Text(text) => {
            let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
            json!({ "type": "message", "id": id("msg"), "role": "assistant", "status": "completed", "content": content })
        }
        Block::Thinking(thought) => {
            let summary = json!([{ "type": "summary_text", "text": thought }]);
            json!({ "type": "reasoning", "id": id("rs"), "summary": summary, "encrypted_content": "c2VjcmV0" })
        }
        // The one tool that takes text instead of JSON.
        Block::ToolUse { name, input } if name == "apply_patch" => {
            json!({ "type": "custom_tool_call", "id": id("ctc"), "call_id": id("call"), "name": name, "input": input["patch"], "status": "completed" })
        }
        Block::ToolUse { name, input } => {
            let server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
            let mut call = json!({ "type": "function_call", "id": id("fc"), "call_id": id("call"), "name": name, "arguments": input.to_string(), "status": "completed" });
            if let Some((server, tool)) = server {
                (call["namespace"], call["name"]) = (json!(format!("mcp__{server}")), json!(tool));
            }
            call
        }
    }
}

/// The item as it is announced.
fn begun(item: &Value) -> Value {
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    for (field, empty) in [("content", json!([])), ("arguments", json!("")), ("input", json!(""))] {
        if begun.get(field).is_some() {
            begun[field] = empty;
        }
    }
    begun
}

fn pieces(block: &Block) -> Vec<String> {
    match block {
        Block::Text(text) => {
            let letters: Vec<char> = text.chars().collect();
            letters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
        }
        Block::Thinking(_) | Block::ToolUse { .. } => Vec::new(),
    }
}

/// Adds the fault if this is its place. True when nothing comes after it.
fn disturb(parts: &mut Vec<Part>, fault: Option<&(Place, Fault)>, here: Place, number: usize) -> bool {
    let Some((_, fault)) = fault.filter(|(place, _)| *place == here) else { return false };
    let (part, ends) = match fault {
        Fault::Hold(gate) => (Part::Hold(gate.clone()), false),
        Fault::Cut => (Part::Cut, true),
        Fault::Fail(code) => {
            let error = json!({ "code": code, "message": "scripted" });
            let response = json!({ "id": format!("resp_{number}"), "status": "failed", "error": error });
            (event(json!({ "type": "response.failed", "response": response })), true)
        }
    };
    parts.push(part);
    ends
}
