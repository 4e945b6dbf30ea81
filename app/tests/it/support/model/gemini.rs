//! An answer on the wire: the stream of the Gemini API. It is whole or not there, so faults in the middle are not played.

use super::{Asked, Block, Fault, Place};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

pub fn answer(_asked: &Asked, _number: usize, blocks: &[Block], _fault: Option<&(Place, Fault)>) -> Response {
    let parts: Vec<Value> = blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => json!({ "text": text }),
            Block::Thinking(thought) => json!({ "text": thought, "thought": true }),
            Block::ToolUse { name, input } => json!({ "functionCall": { "name": name, "args": input } }),
        })
        .collect();
    let content = json!({ "role": "model", "parts": parts });
    let usage = json!({ "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15 });
    let candidates = json!([{ "content": content, "finishReason": "STOP", "index": 0 }]);
    let answer = json!({ "candidates": candidates, "usageMetadata": usage });
    ([(CONTENT_TYPE, "text/event-stream")], format!("data: {answer}\r\n\r\n")).into_response()
}

/// What is asked beside the conversation, and not as a stream.
pub fn aside() -> Response {
    let content = json!({ "role": "model", "parts": [{ "text": "{}" }] });
    axum::Json(json!({ "candidates": [{ "content": content, "finishReason": "STOP", "index": 0 }] })).into_response()
}
