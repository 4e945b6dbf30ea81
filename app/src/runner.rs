//! The runner brings about what the plan wants, and reports back by commands. It compares the plan with what is, so it
//! needs no memory: after a restart the plan still says what is missing.

use crate::engine::{Handle, SubmitError};
use hatchery_core::{Command, Plan};
use std::time::Duration;
use tokio::sync::watch;

/// How long to wait after the store refused to record what was done.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Runs until the engine stops.
pub async fn run(handle: Handle, mut plan: watch::Receiver<Plan>) {
    loop {
        let wanted = plan.borrow_and_update().clone();
        let again = reconcile(&handle, &wanted).await;
        let changed = async {
            match again {
                true => tokio::time::timeout(RETRY_PAUSE, plan.changed()).await.unwrap_or(Ok(())),
                false => plan.changed().await,
            }
        };
        if changed.await.is_err() {
            return;
        }
    }
}

/// True when something has to be tried again.
async fn reconcile(handle: &Handle, plan: &Plan) -> bool {
    let mut again = false;
    for session in &plan.close {
        // Nothing of a session runs outside the log yet, so its end is brought about by recording it.
        match handle.submit(Command::CloseSession { session: *session }).await {
            Ok(_) => {}
            // Closed by another daemon on the same store.
            Err(SubmitError::Refused(refusal)) => tracing::debug!(%session, %refusal, "nothing left to close"),
            Err(error) => {
                tracing::warn!(%session, %error, "a session could not be closed; trying again");
                again = true;
            }
        }
    }
    again
}
