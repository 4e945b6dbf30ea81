//! Requests that carry an id and are repeated when the connection breaks. The daemon carries out the first of them, and answers the
//! others as the first time, so that a repeat does no harm.

use super::{Client, Failure};
use crate::clock;
use crate::project::Project;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How often a request is repeated. Each repeat looks for the daemon again, which may take a minute, so that more would only make
/// the user wait.
const REPEATS: u32 = 2;

/// Asks the project's daemon. A body without an `id` gets one.
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

/// Whether a repeat can help: it is not known whether the request was carried out.
pub fn may_have_been_lost(failure: &Failure) -> bool {
    match failure {
        Failure::Away(_) | Failure::Unasked(_) => true,
        Failure::Refused { detail, .. } => detail.code == "outcome_unknown",
        Failure::Broken(_) => false,
    }
}
