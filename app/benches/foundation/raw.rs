//! The two limits that the disk sets, and how load is made.
//!
//! F is one 4 KB overwrite and its `fdatasync`: no durable append can be faster. S is a bare group-commit writer over
//! rusqlite (WAL, FULL, one table): what a log on SQLite costs before it means anything.

use rusqlite::Connection;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

/// The size of a message in every measurement.
pub const BODY_BYTES: usize = 256;
const PAGE_BYTES: usize = 4_096;
/// Bodies that may wait for the bare writer.
const INBOX: usize = 1_024;

/// A folder on the disk that the build is on. The system's own temporary folder may be memory, where a sync costs nothing.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// As many workers as the daemon has.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub fn body() -> String {
    "x".repeat(BODY_BYTES)
}

/// F.
pub struct Overwrite(File);

impl Overwrite {
    pub fn new(folder: &Path) -> Self {
        let file = File::create(folder.join("overwritten")).unwrap();
        file.write_all_at(&[0; PAGE_BYTES], 0).unwrap();
        file.sync_all().unwrap();
        Self(file)
    }

    pub fn once(&self) {
        self.0.write_all_at(&[1; PAGE_BYTES], 0).unwrap();
        self.0.sync_data().unwrap();
    }

    pub fn rate(&self, turn: Duration) -> f64 {
        let start = Instant::now();
        let mut count = 0_u32;
        while start.elapsed() < turn {
            self.once();
            count += 1;
        }
        f64::from(count) / start.elapsed().as_secs_f64()
    }
}

/// Something that appends again and again and waits for each to be durable.
pub trait Producer: Send + 'static {
    fn append(&mut self) -> impl Future<Output = ()> + Send;
}

/// Appends a second that the producers reach together. They come back for the next turn.
pub fn rate<P: Producer>(runtime: &Runtime, producers: &mut Vec<P>, turn: Duration) -> f64 {
    let start = Instant::now();
    let tasks: Vec<_> = producers
        .drain(..)
        .map(|mut producer| {
            runtime.spawn(async move {
                let mut count = 0_u32;
                while start.elapsed() < turn {
                    producer.append().await;
                    count += 1;
                }
                (producer, count)
            })
        })
        .collect();
    let mut total = 0;
    for task in tasks {
        let (producer, count) = runtime.block_on(task).unwrap();
        producers.push(producer);
        total += count;
    }
    f64::from(total) / start.elapsed().as_secs_f64()
}

/// S.
pub struct GroupCommit {
    inbox: mpsc::Sender<Waiting>,
}

type Waiting = (String, oneshot::Sender<()>);

impl GroupCommit {
    pub fn new(folder: &Path) -> Self {
        let connection = Connection::open(folder.join("bare.db")).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE log (id INTEGER PRIMARY KEY, body TEXT NOT NULL);",
            )
            .unwrap();
        let (inbox, waiting) = mpsc::channel(INBOX);
        // Ends when the last producer is gone.
        std::thread::spawn(move || write(connection, waiting));
        Self { inbox }
    }

    pub fn producers(&self, count: usize) -> Vec<BareProducer> {
        (0..count).map(|_| BareProducer(self.inbox.clone())).collect()
    }
}

fn write(mut connection: Connection, mut waiting: mpsc::Receiver<Waiting>) {
    let mut batch = Vec::with_capacity(INBOX);
    while waiting.blocking_recv_many(&mut batch, INBOX) > 0 {
        let transaction = connection.transaction().unwrap();
        {
            let mut insert = transaction.prepare_cached("INSERT INTO log (body) VALUES (?1)").unwrap();
            for (body, _) in &batch {
                insert.execute([body]).unwrap();
            }
        }
        transaction.commit().unwrap();
        for (_, done) in batch.drain(..) {
            done.send(()).unwrap();
        }
    }
}

pub struct BareProducer(mpsc::Sender<Waiting>);

impl Producer for BareProducer {
    async fn append(&mut self) {
        let (done, answer) = oneshot::channel();
        self.0.send((body(), done)).await.unwrap();
        answer.await.unwrap();
    }
}
