//! The bytes of one connection, below hyper. Two things are done here because hyper does not do them:
//!
//! - A head that cannot be read never becomes a request. Hyper answers it without a body; here the answer gets a JSON body like every
//!   other refusal.
//! - If a socket is closed while the peer still sends, the connection is reset, and the reset can overtake the last answer. A peer that
//!   was answered before it had sent its whole body still sends. So incoming bytes are read and dropped, until the peer closes, too, or
//!   until a short time has passed.

use super::error::ApiError;
use axum::http::StatusCode;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Sleep;

/// Long enough for a peer on the same machine to read the answer, and short enough that it does no harm to keep the connection open.
const LINGER: Duration = Duration::from_secs(1);
/// The bytes to drop are read in pieces of this size.
const WASTE_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    /// An answer that replaces hyper's own. `written` says how much of it was sent.
    instead: Vec<u8>,
    written: usize,
    farewell: Closing,
    /// Whether the daemon shuts down. Then it does not wait for a peer that sends nothing.
    ends: watch::Receiver<bool>,
}

#[derive(Debug)]
enum Closing {
    /// Not closing yet.
    Open,
    /// The peer has got its answer. Its bytes are dropped until it closes, too, or until the time is up.
    Lingering(Pin<Box<Sleep>>),
    Done,
}

impl Wire {
    pub fn new(stream: TcpStream, ends: watch::Receiver<bool>) -> Self {
        Self { stream, instead: Vec::new(), written: 0, farewell: Closing::Open, ends }
    }

    fn write_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.instead.len() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.instead[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and drops bytes. Ready when the peer has closed, or when the time is up.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waste = [0; WASTE_BYTES];
        if matches!(self.farewell, Closing::Open) && !*self.ends.borrow() {
            self.farewell = Closing::Lingering(Box::pin(tokio::time::sleep(LINGER)));
        }
        loop {
            if let Closing::Lingering(until) = &mut self.farewell
                && until.as_mut().poll(cx).is_ready()
            {
                return Poll::Ready(());
            }
            let mut waste = ReadBuf::new(&mut waste);
            match Pin::new(&mut self.stream).poll_read(cx, &mut waste) {
                Poll::Ready(Ok(())) if !waste.filled().is_empty() => {
                    if matches!(self.farewell, Closing::Open) {
                        self.farewell = Closing::Lingering(Box::pin(tokio::time::sleep(LINGER)));
                    }
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if matches!(self.farewell, Closing::Lingering(_)) => return Poll::Pending,
                Poll::Pending => return Poll::Ready(()),
            }
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(answer) = told_in_json(buf) {
            self.instead = answer;
            return Poll::Ready(Ok(buf.len()));
        }
        ready!(self.write_instead(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(first) = bufs.iter().find(|buf| !buf.is_empty())
            && let Some(answer) = told_in_json(first)
        {
            self.instead = answer;
            return Poll::Ready(Ok(first.len()));
        }
        ready!(self.write_instead(cx))?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_instead(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_instead(cx))?;
        if matches!(self.farewell, Closing::Open) {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        if !matches!(self.farewell, Closing::Done) {
            ready!(self.linger(cx));
            self.farewell = Closing::Done;
        }
        Poll::Ready(Ok(()))
    }
}

/// Hyper's own answer to a head that it cannot read, with a body. Nothing else looks like this: all other refusals have a body, and JSON
/// contains no bare line end.
fn told_in_json(sent: &[u8]) -> Option<Vec<u8>> {
    const NO_BODY: &str = "content-length: 0\r\n";
    if !sent.starts_with(b"HTTP/1.1 4") || !sent.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = std::str::from_utf8(sent).ok().filter(|head| head.contains(NO_BODY))?;
    let status = StatusCode::from_bytes(head.as_bytes().get(9..12)?).ok()?;
    let (code, message, hint) = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
            "head_too_large",
            "the request's head is too long",
            "send fewer and shorter headers, and a shorter address",
        ),
        StatusCode::URI_TOO_LONG => {
            ("address_too_long", "the request's address is too long", "send what is long in the body")
        }
        _ => ("bad_request", "the request is not HTTP/1.1 as it should be", "look at its first line and its headers"),
    };
    let body = serde_json::to_string(&ApiError::new(status, code, message, hint).body()).ok()?;
    let kind = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    Some([head.replacen(NO_BODY, &kind, 1), body].concat().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_refusal_gets_a_body() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n";
        let told = String::from_utf8(told_in_json(bare).unwrap()).unwrap();
        let (head, body) = told.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        assert!(body.starts_with(r#"{"error":{"code":"head_too_large","#), "{body}");
        for other in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n",
            b"data:HTTP/1.1 400 content-length: 0\r\n\r\n",
            b"",
        ] {
            assert_eq!(told_in_json(other), None);
        }
    }
}
