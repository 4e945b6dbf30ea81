//! Requests with an id that are repeated if the connection breaks. The daemon carries out such a request once, and gives every repetition
//! the same answer.

use super::{Client, Failure};
use crate::clock;
use crate::project::Project;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How often a request is repeated. Each repetition looks for the daemon again, which may take a minute, so more repetitions would only
/// make the user wait.
const REPEATS: u32 = 2;

/// Sends a request to the project's daemon. A body without an `id` gets one.
pub async fn ask_once<T: DeserializeOwned>(project: &Project, path: &str, mut body: Value) -> Result<T, Failure> {
    if body["id"].is_null() {
        body["id"] = json!(clock::new_request_id());
    }
    let mut repeats = 0;
    loop {
        match Client::visit(project).await?.ask(path, &body).await {
            Err(failure) if repeats < REPEATS && may_have_been_lost(&failure) => repeats += 1,
            answer => return answer,
        }
    }
}

/// Whether the request should be repeated: the daemon did not answer, or does not know whether the request was carried out.
pub fn may_have_been_lost(failure: &Failure) -> bool {
    match failure {
        Failure::Away(_) | Failure::Unasked(_) => true,
        Failure::Refused { detail, .. } => detail.code == "outcome_unknown",
        Failure::Broken(_) => false,
    }
}
