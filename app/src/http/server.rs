//! Accepts connections, within limits: how many there are, how large a head is, how slow a client is.

use super::error::ApiError;
use super::wire::Wire;
use axum::Router;
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: usize,
    /// How long a client may take to send a head.
    pub head_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 4_096, head_timeout: Duration::from_secs(10) }
    }
}

/// How many clients can be told at the same time that there are too many connections. Further connections are closed without an answer.
const TURNED_AWAY: usize = 64;
/// The largest head. Bodies are read in pieces of this size, too.
const HEAD_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// If a client accepts no bytes for this long, its connection is closed. A stream continues from its last id when the client reconnects.
const PEER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long open connections may take to finish when the daemon shuts down.
const FAREWELL: Duration = Duration::from_secs(5);
/// The pause after an error of `accept`, such as too few file descriptors, so that there is no busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `closing` becomes true, then lets the open connections finish.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, closing: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let doorstep = Arc::new(Semaphore::new(TURNED_AWAY));
    let mut connections = JoinSet::new();
    let mut stop = closing.clone();
    let mut stopped = pin!(closed(&mut stop));
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection ended with a panic: this is a bug");
                }
                continue;
            }
            () = &mut stopped => break,
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let served = connection(stream, router.clone(), limits, closing.clone());
            connections.spawn(async move {
                served.await;
                drop(place);
            });
        } else if let Ok(place) = Arc::clone(&doorstep).try_acquire_owned() {
            let closing = closing.clone();
            connections.spawn(async move {
                turn_away(stream, closing).await;
                drop(place);
            });
        }
    }
    drop(listener);
    let farewell = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
        tracing::warn!("some connections did not finish in time");
        connections.shutdown().await;
    }
}

async fn connection(stream: TcpStream, router: Router, limits: Limits, mut closing: watch::Receiver<bool>) {
    if let Err(error) = tune(&stream) {
        tracing::debug!(%error, "a socket could not be tuned");
    }
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(Wire::new(stream, closing.clone())), TowerToHyperService::new(router));
    let mut served = pin!(served);
    let result = tokio::select! {
        result = &mut served => result,
        () = closed(&mut closing) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Returns when the daemon shuts down, or when its task has ended.
async fn closed(closing: &mut watch::Receiver<bool>) {
    drop(closing.wait_for(|closing| *closing).await);
}

fn tune(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(PEER_TIMEOUT))?;
    socket2::SockRef::from(stream).set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(PEER_TIMEOUT))
}

/// Tells a client that there are too many connections, instead of letting it wait.
async fn turn_away(mut stream: TcpStream, closing: watch::Receiver<bool>) {
    let refusal = ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too_many_connections",
        "the daemon serves as many connections as it may",
        "close some, or raise max_connections in hatchery.toml",
    );
    let body = serde_json::to_string(&refusal.body()).expect("an error is plain data");
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let tell = async {
        // The request is read first, so that the client takes the bytes as its answer.
        let mut request = [0; HEAD_BYTES];
        let _asked = stream.read(&mut request).await?;
        stream.write_all(answer.as_bytes()).await?;
        Wire::new(stream, closing).shutdown().await
    };
    let told = tokio::time::timeout(FAREWELL, tell).await;
    tracing::debug!(?told, "a connection was refused");
}
