//! JSON-RPC messages, one per line, for codex and for agents that speak ACP: requests, notifications and answers.

use crate::json::{Fields, text};
use serde_json::{Value, json};

/// The message of an agent program in one line.
pub(crate) enum RpcMessage<'a> {
    /// The program waits for an answer. The id is JSON text.
    Request {
        method: String,
        id: &'a str,
        params: Fields<'a>,
    },
    Notification {
        method: String,
        params: Fields<'a>,
    },
    /// The answer to a request of Hatchery. The ids of Hatchery's requests are strings.
    Answer {
        id: String,
        result: Option<Fields<'a>>,
        error: Option<Fields<'a>>,
    },
}

impl<'a> RpcMessage<'a> {
    /// The message in a line. None if the line has no message.
    pub fn of(line: &Fields<'a>) -> Option<Self> {
        let params = || line.object("params");
        match (line.text("method"), line.raw("id")) {
            (Some(method), Some(id)) => Some(Self::Request { method, id: id.get(), params: params()? }),
            (Some(method), None) => Some(Self::Notification { method, params: params()? }),
            (None, Some(id)) => {
                Some(Self::Answer { id: text(id)?, result: line.object("result"), error: line.object("error") })
            }
            (None, None) => None,
        }
    }
}

/// The answer to a request of a kind that Hatchery does not know. Without an answer the program would wait forever.
pub(crate) fn refusal(id: &Value) -> Value {
    json!({ "id": id, "error": { "code": -32601, "message": "Hatchery does not answer this kind of request" } })
}
