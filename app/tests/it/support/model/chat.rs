//! An answer on the wire: the stream of the Chat Completions API. It is whole or not there, so faults in the middle are not played.

use super::{Asked, Block, Fault, Place};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

pub fn answer(asked: &Asked, number: usize, blocks: &[Block], _fault: Option<&(Place, Fault)>) -> Response {
    let chunk = |delta: Value, reason: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        let id = format!("chatcmpl_{number}");
        json!({ "id": id, "object": "chat.completion.chunk", "created": 1, "model": asked.body["model"], "choices": [choice] })
    };
    let deltas = blocks.iter().enumerate().map(|(index, block)| match block {
        Block::Text(text) => json!({ "role": "assistant", "content": text }),
        Block::Thinking(thought) => json!({ "role": "assistant", "reasoning_content": thought }),
        Block::ToolUse { name, input } => {
            let function = json!({ "name": name, "arguments": input.to_string() });
            let call = json!({ "index": index, "id": format!("call_{number}_{index}"), "type": "function", "function": function });
            json!({ "role": "assistant", "content": null, "tool_calls": [call] })
        }
    });
    let calls = blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    let mut chunks: Vec<Value> = deltas.map(|delta| chunk(delta, None)).collect();
    chunks.push(chunk(json!({}), Some(if calls { "tool_calls" } else { "stop" })));
    let mut last = chunk(json!({}), None);
    last["choices"] = json!([]);
    last["usage"] = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    chunks.push(last);
    let lines: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    ([(CONTENT_TYPE, "text/event-stream")], format!("{lines}data: [DONE]\n\n")).into_response()
}
