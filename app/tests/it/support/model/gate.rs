//! Where an answer stands still until the test lets it go on.

use crate::support::daemon::PATIENCE;
use crate::support::runtime;
use tokio::sync::watch;
use tokio::time::timeout;

/// Clones are the same gate. Once open, it stays open.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    is_reached: watch::Sender<bool>,
    is_open: watch::Sender<bool>,
}

impl Gate {
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Waits until an answer stands before it: everything in front of it has been sent.
    pub fn reached(&self) {
        let mut reached = self.is_reached.subscribe();
        let waited =
            runtime().block_on(async { timeout(PATIENCE, reached.wait_for(|is_reached| *is_reached)).await.is_ok() });
        assert!(waited, "no answer came to the gate");
    }

    pub(super) async fn pass(&self) {
        self.is_reached.send_replace(true);
        self.is_open.subscribe().wait_for(|is_open| *is_open).await.expect("we hold the sender");
    }
}
