//! Listens for the notifications of other writers, on a connection of its own. If the connection breaks, it is made again. A notification
//! means "read the log" and carries no data, so nothing is lost in the meantime: the callback is called once after each new connection.

use super::CONNECT_TIMEOUT;
use super::connection::ConnectionOptions;
use crate::store::AppendCallback;
use futures_util::{StreamExt as _, stream};
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Error};

pub const CHANNEL: &str = "hatchery_log";

/// The pauses between two attempts to connect, doubling from the first value to the second. So a restart is noticed soon, and a server that
/// stays down does not get many attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Listens until it is dropped.
pub struct NotifyListener(AbortHandle);

impl NotifyListener {
    pub fn start(
        runtime: &Handle,
        options: ConnectionOptions,
        name: String,
        sender: String,
        notify: AppendCallback,
    ) -> Self {
        let (first, longest) = PAUSES;
        let task = runtime.spawn(async move {
            let mut pause = first;
            loop {
                let mut connected = false;
                let ended = listen(&options, &sender, || {
                    connected = true;
                    notify();
                });
                match ended.await {
                    Ok(()) => tracing::debug!(store = name, "the connection for notifications ended"),
                    Err(error) => tracing::debug!(store = name, %error, "the connection for notifications broke"),
                }
                pause = if connected { first } else { longest.min(pause * 2) };
                sleep(pause).await;
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for NotifyListener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug, thiserror::Error)]
enum ListenError {
    #[error(transparent)]
    Sql(#[from] Error),
    #[error("no connection in {CONNECT_TIMEOUT:?}")]
    Timeout,
}

/// Returns when the connection ends. Ignores notifications of this `sender`.
async fn listen(options: &ConnectionOptions, sender: &str, mut notify: impl FnMut()) -> Result<(), ListenError> {
    let connecting = timeout(CONNECT_TIMEOUT, options.config.connect(options.tls.clone()));
    let (client, mut connection) = connecting.await.map_err(|_| ListenError::Timeout)??;
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    let statement = format!("LISTEN {CHANNEL}");
    let mut asked = pin!(timeout(CONNECT_TIMEOUT, client.batch_execute(&statement)));
    let mut listening = false;
    loop {
        // Reading the messages drives the connection, also for the answer to LISTEN.
        tokio::select! {
            answer = &mut asked, if !listening => {
                answer.map_err(|_| ListenError::Timeout)??;
                listening = true;
                notify();
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(notification))) if notification.payload() != sender => notify(),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
        }
    }
}
