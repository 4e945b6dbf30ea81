//! An answer on the wire: events in the order of the Messages API, or one message when the client wants no stream.

use super::{Asked, Block, Fault, Gate, Place};
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use std::io;

/// Pieces that a text is sent in are this long: some, so that there is a middle.
const PIECE: usize = 8;

/// What happens next on the wire.
pub(super) enum Part {
    Bytes(Bytes),
    Hold(Gate),
    Cut,
}

pub fn answer(asked: &Asked, number: usize, blocks: &[Block], fault: Option<&(Place, Fault)>) -> Response {
    let message = message(asked, number, blocks);
    if asked.body["stream"] == true {
        let headers = [(CONTENT_TYPE, "text/event-stream; charset=utf-8"), (CACHE_CONTROL, "no-cache")];
        return (headers, body(events(&message, fault))).into_response();
    }
    let whole = Part::Bytes(message.to_string().into());
    let parts = match fault {
        None => vec![whole],
        Some((_, Fault::Hold(gate))) => vec![Part::Hold(gate.clone()), whole],
        // One message is there or is not there.
        Some((_, Fault::Cut | Fault::Fail(_))) => vec![Part::Cut],
    };
    ([(CONTENT_TYPE, "application/json")], body(parts)).into_response()
}

fn message(asked: &Asked, number: usize, blocks: &[Block]) -> Value {
    let calls = blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    let content = blocks.iter().enumerate().map(|(index, block)| match block {
        Block::Text(text) => json!({ "type": "text", "text": text }),
        Block::Thinking(thought) => json!({ "type": "thinking", "thinking": thought, "signature": "c2lnbmVk" }),
        Block::ToolUse { name, input } => {
            json!({ "type": "tool_use", "id": format!("toolu_{number}_{index}"), "name": name, "input": input })
        }
    });
    json!({
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": content.collect::<Vec<_>>(),
        "stop_reason": if calls { "tool_use" } else { "end_turn" },
        "stop_sequence": null,
        "usage": { "input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 },
    })
}

fn events(message: &Value, fault: Option<&(Place, Fault)>) -> Vec<Part> {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut parts = vec![event(json!({ "type": "message_start", "message": start }))];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let (empty, deltas) = pieces(block);
        parts.push(event(json!({ "type": "content_block_start", "index": index, "content_block": empty })));
        let middle = deltas.len().div_ceil(2);
        for (nth, delta) in (1..).zip(deltas) {
            parts.push(event(json!({ "type": "content_block_delta", "index": index, "delta": delta })));
            if nth == middle && disturb(&mut parts, fault, Place::Within(index)) {
                return parts;
            }
        }
        parts.push(event(json!({ "type": "content_block_stop", "index": index })));
        if disturb(&mut parts, fault, Place::Behind(index)) {
            return parts;
        }
    }
    let delta = json!({ "stop_reason": message["stop_reason"], "stop_sequence": null });
    parts.push(event(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 5 } })));
    parts.push(event(json!({ "type": "message_stop" })));
    parts
}

/// A block as it begins, and what is added to it.
fn pieces(block: &Value) -> (Value, Vec<Value>) {
    let split = |text: &str, kind: &str, field: &str| -> Vec<Value> {
        let letters: Vec<char> = text.chars().collect();
        letters.chunks(PIECE).map(|piece| json!({ "type": kind, field: piece.iter().collect::<String>() })).collect()
    };
    let mut empty = block.clone();
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    let deltas = match text("type") {
        "text" => {
            empty["text"] = json!("");
            split(text("text"), "text_delta", "text")
        }
        "thinking" => {
            (empty["thinking"], empty["signature"]) = (json!(""), json!(""));
            let mut deltas = split(text("thinking"), "thinking_delta", "thinking");
            deltas.push(json!({ "type": "signature_delta", "signature": block["signature"] }));
            deltas
        }
        _ => {
            empty["input"] = json!({});
            split(&block["input"].to_string(), "input_json_delta", "partial_json")
        }
    };
    (empty, deltas)
}

/// Adds the fault if this is its place. True when nothing comes after it.
fn disturb(parts: &mut Vec<Part>, fault: Option<&(Place, Fault)>, here: Place) -> bool {
    let Some((_, fault)) = fault.filter(|(place, _)| *place == here) else { return false };
    let error = |kind| event(json!({ "type": "error", "error": { "type": kind, "message": "scripted" } }));
    let (part, ends) = match fault {
        Fault::Hold(gate) => (Part::Hold(gate.clone()), false),
        Fault::Cut => (Part::Cut, true),
        Fault::Fail(kind) => (error(kind), true),
    };
    parts.push(part);
    ends
}

pub(super) fn event(data: Value) -> Part {
    Part::Bytes(format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default()).into())
}

pub(super) fn body(parts: Vec<Part>) -> Body {
    Body::from_stream(stream::iter(parts).then(|part| async {
        match part {
            Part::Bytes(bytes) => Ok(bytes),
            Part::Hold(gate) => {
                gate.pass().await;
                Ok(Bytes::new())
            }
            Part::Cut => Err(io::Error::other("cut")),
        }
    }))
}
