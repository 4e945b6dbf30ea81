//! Invalid requests of unknown clients: without meaning, without a token, or from a foreign origin. The daemon must answer none of them
//! with a server error.

use super::world::Chance;
use crate::client::Client;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How long to wait for an answer. If a request is incomplete, the daemon waits for the rest of it.
const PATIENCE: Duration = Duration::from_millis(500);
/// How many bytes of an answer are read. The status is at the beginning.
const READ_BYTES: usize = 64;

/// What each connection sends. `{host}` stands for the daemon's address.
const NONSENSE: [&str; 10] = [
    "GET /api/agents HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "GET /api/agents HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer x\r\n\r\n",
    "POST /api/agents HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\nContent-Length: 2\r\n\r\n{}",
    "POST /api/fsck HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99999999999\r\n\r\n",
    "GET /../../etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "GET /api/events?after=-1 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer x\r\n\r\n",
    "NONSENSE\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "\u{0}\u{1}\u{2}\u{3}\r\n\r\n",
    "GET /api/health HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
];

/// Sends a few invalid requests. Returns the number of requests, and the number of server errors.
pub async fn visit(client: &Client, chance: &mut Chance) -> (u64, u64) {
    let mut errors = 0;
    let visits = 1 + chance.below(8);
    for _ in 0..visits {
        let at = usize::try_from(chance.below(NONSENSE.len() as u64)).unwrap_or_default();
        let request = NONSENSE[at].replace("{host}", client.authority());
        let answer = tokio::time::timeout(PATIENCE, ask(client.authority(), &request)).await;
        let status = answer.ok().flatten().unwrap_or_default();
        errors += u64::from(status.starts_with("HTTP/1.1 5"));
    }
    (visits, errors)
}

async fn ask(authority: &str, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(authority).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = [0; READ_BYTES];
    let read = stream.read(&mut answer).await.ok()?;
    Some(String::from_utf8_lossy(&answer[..read]).into_owned())
}
