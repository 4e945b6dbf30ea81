//! The ear for other writers: one connection of its own that listens, and is made again whenever it breaks. What it
//! passes on is a hint and never data, so nothing is lost while it is away: each new connection begins with a hint.

use super::CONNECT_TIMEOUT;
use super::line::Line;
use crate::store::Hint;
use futures_util::{StreamExt as _, stream};
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Error};

pub const CHANNEL: &str = "hatchery_log";

/// Pauses between two connections, doubling from the first to the second: a restart is noticed soon, and a server that
/// stays away is not hammered.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Listens for as long as it is kept.
pub struct Listener(AbortHandle);

impl Listener {
    pub fn start(runtime: &Handle, line: Line, name: String, mark: String, hint: Hint) -> Self {
        let (first, longest) = PAUSES;
        let task = runtime.spawn(async move {
            let mut pause = first;
            loop {
                let mut heard = false;
                let ended = listen(&line, &mark, || {
                    heard = true;
                    hint();
                });
                match ended.await {
                    Ok(()) => tracing::debug!(store = name, "the connection for notifications ended"),
                    Err(error) => tracing::debug!(store = name, %error, "the connection for notifications broke"),
                }
                pause = if heard { first } else { longest.min(pause * 2) };
                sleep(pause).await;
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug, thiserror::Error)]
enum Deaf {
    #[error(transparent)]
    Sql(#[from] Error),
    #[error("no connection in {CONNECT_TIMEOUT:?}")]
    Late,
}

/// Returns when the connection does.
async fn listen(line: &Line, mark: &str, mut hint: impl FnMut()) -> Result<(), Deaf> {
    let connecting = timeout(CONNECT_TIMEOUT, line.config.connect(line.tls.clone()));
    let (client, mut connection) = connecting.await.map_err(|_| Deaf::Late)??;
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    let statement = format!("LISTEN {CHANNEL}");
    let mut asked = pin!(timeout(CONNECT_TIMEOUT, client.batch_execute(&statement)));
    let mut listening = false;
    loop {
        // Reading the messages is what drives the connection, also for the answer to LISTEN.
        tokio::select! {
            answer = &mut asked, if !listening => {
                answer.map_err(|_| Deaf::Late)??;
                listening = true;
                hint();
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(notification))) if notification.payload() != mark => hint(),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
        }
    }
}
