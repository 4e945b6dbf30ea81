//! Many followers of one event stream, as cheap as they can be: one thread, one buffer, and nothing is kept but counts.

use crate::wire::FrameCounter;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const READ_BYTES: usize = 256 * 1024;
/// Connections made at once: more would overflow the queue of a server that has not accepted yet.
const CONNECTING: usize = 64;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

pub struct Crowd {
    progress: Arc<Progress>,
    readers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Progress {
    delivered: AtomicU64,
    target: AtomicU64,
    reached: Notify,
}

/// The one thread of all followers, and of whoever drives the server.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

impl Crowd {
    /// Connects them all. Each has the answer's head when this returns.
    pub async fn gather(address: SocketAddr, request: &[u8], count: usize) -> Self {
        let progress = Arc::<Progress>::default();
        let mut readers = Vec::with_capacity(count);
        while readers.len() < count {
            let wanted = CONNECTING.min(count - readers.len());
            let joining = (0..wanted).map(|_| tokio::spawn(connect(address, request.to_vec())));
            for stream in joining.collect::<Vec<_>>() {
                readers.push(tokio::spawn(follow(stream.await.unwrap(), Arc::clone(&progress))));
            }
        }
        Self { progress, readers }
    }

    pub fn len(&self) -> u64 {
        self.readers.len() as u64
    }

    /// Events that have arrived, over all connections.
    pub fn delivered(&self) -> u64 {
        self.progress.delivered.load(Ordering::Relaxed)
    }

    pub async fn wait_for(&self, delivered: u64) {
        self.progress.target.store(delivered, Ordering::Relaxed);
        while self.delivered() < delivered {
            self.progress.reached.notified().await;
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.readers.iter().for_each(JoinHandle::abort);
    }
}

/// A connection on which the stream has begun.
pub async fn connect(address: SocketAddr, request: Vec<u8>) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&request).await.unwrap();
    let mut seen = [0; 1_024];
    loop {
        stream.readable().await.unwrap();
        let count = stream.peek(&mut seen).await.unwrap();
        if let Some(at) = seen[..count].windows(4).position(|window| window == b"\r\n\r\n") {
            assert!(seen.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&seen[..count]));
            let head = &mut seen[..at + 4];
            tokio::io::AsyncReadExt::read_exact(&mut stream, head).await.unwrap();
            return stream;
        }
        tokio::task::yield_now().await;
    }
}

async fn follow(stream: TcpStream, progress: Arc<Progress>) {
    let mut counter = FrameCounter::default();
    loop {
        stream.readable().await.unwrap();
        let count = BUFFER.with_borrow_mut(|buffer| match stream.try_read(buffer) {
            Ok(0) => None,
            Ok(count) => Some(counter.count(&buffer[..count])),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(0),
            Err(error) => panic!("a follower lost its stream: {error}"),
        });
        let Some(count) = count else { return };
        let delivered = progress.delivered.fetch_add(count, Ordering::Relaxed) + count;
        if count > 0 && delivered >= progress.target.load(Ordering::Relaxed) {
            progress.reached.notify_one();
        }
    }
}
