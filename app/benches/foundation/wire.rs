//! HTTP/1.1 by hand, lean enough that the client does not dominate what is measured.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const READ_BYTES: usize = 16 * 1024;

/// A keep-alive connection: one request at a time.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::with_capacity(READ_BYTES) }
    }

    /// Sends a whole request and gives the body of its answer, which must be a success.
    pub async fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.stream.write_all(request).await.unwrap();
        self.buffer.clear();
        let head_end = loop {
            match self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.read().await,
            }
        };
        assert!(self.buffer.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&self.buffer));
        let head = std::str::from_utf8(&self.buffer[..head_end]).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let end = head_end + length.parse::<usize>().unwrap();
        while self.buffer.len() < end {
            self.read().await;
        }
        self.buffer[head_end..end].to_vec()
    }

    async fn read(&mut self) {
        assert_ne!(self.stream.read_buf(&mut self.buffer).await.unwrap(), 0, "the server hung up");
    }
}

/// Counts the events in a stream, however it is cut into pieces. Each ends with the brace of its JSON and an empty line,
/// which neither the opening nor a heartbeat does.
#[derive(Default)]
pub struct FrameCounter {
    /// The two bytes before what comes next.
    before: [u8; 2],
}

impl FrameCounter {
    pub fn count(&mut self, bytes: &[u8]) -> u64 {
        let mut seam = self.before.to_vec();
        seam.extend_from_slice(&bytes[..bytes.len().min(2)]);
        match *bytes {
            [] => {}
            [last] => self.before = [self.before[1], last],
            [.., one, last] => self.before = [one, last],
        }
        ends_in(&seam) + ends_in(bytes)
    }
}

fn ends_in(bytes: &[u8]) -> u64 {
    let triples = bytes.iter().zip(bytes.iter().skip(1)).zip(bytes.iter().skip(2));
    triples.map(|((brace, first), second)| u64::from(*brace == b'}' && *first == b'\n' && *second == b'\n')).sum()
}
