//! What we are compared with, each in a process of its own: this program, started with [`FLAG`] and a name.
//!
//! A rival prints the address that it serves; a line of N on its standard input makes it publish N events.

use axum::Router;
use axum::response::Sse;
use axum::response::sse::Event;
use axum::routing::get;
use rusqlite::{Connection, OpenFlags};
use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use tokio::sync::{broadcast, mpsc};

pub const FLAG: &str = "--rival";
/// Events that a connection of the axum rival may be behind; a wave is smaller.
const BEHIND: usize = 1_024;
/// Rows between the reader and the connection of the replaying rival.
const ROWS_AHEAD: usize = 512;

pub struct Rival {
    child: Child,
    pub address: SocketAddr,
}

impl Rival {
    pub fn start(name: &str, arguments: &[&str]) -> Self {
        let mut child = again(name, arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().parse().unwrap() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn publish(&mut self, count: u64) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{count}").unwrap();
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// This program once more, as a rival.
pub fn again(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([FLAG, name]).args(arguments);
    command
}

/// The child's side.
pub fn serve(arguments: &[String]) {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["axum"] => serve_axum(),
        ["sockets"] => serve_sockets(),
        ["replay", file] => serve_replay(file.to_owned()),
        ["open", file] => {
            let (agents, _open) = crate::start::open_bare(file.as_ref());
            println!("{}", agents.len());
            // Without closing the file in order: only getting there is compared.
            std::process::exit(0);
        }
        _ => panic!("there is no such rival: {arguments:?}"),
    }
}

/// axum's own SSE over a broadcast channel: each connection encodes each event.
fn serve_axum() {
    let events = broadcast::Sender::<(u64, Arc<str>)>::new(BEHIND);
    let subscribe = events.clone();
    let router = Router::new().route(
        "/",
        get(async move || {
            let live = futures_util::stream::unfold(subscribe.subscribe(), async |mut live| {
                let (id, data) = live.recv().await.unwrap();
                Some((Ok::<_, Infallible>(Event::default().id(id.to_string()).data(data)), live))
            });
            Sse::new(live)
        }),
    );
    std::thread::spawn(move || {
        for_each_wave(|ids| {
            for id in ids {
                drop(events.send((id, json(id).into())));
            }
        });
    });
    listen(router);
}

/// A file's rows through axum's own SSE.
fn serve_replay(file: String) {
    let router = Router::new().route(
        "/",
        get(async move || {
            let (rows, read) = mpsc::channel(ROWS_AHEAD);
            tokio::task::spawn_blocking(move || {
                let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
                let mut select = connection.prepare("SELECT id, body FROM events ORDER BY id").unwrap();
                let mut found = select.query([]).unwrap();
                while let Some(row) = found.next().unwrap() {
                    let id: u64 = row.get(0).unwrap();
                    let event = Event::default().id(id.to_string()).data(row.get_ref(1).unwrap().as_str().unwrap());
                    if rows.blocking_send(event).is_err() {
                        return;
                    }
                }
            });
            Sse::new(futures_util::stream::unfold(read, async |mut read: mpsc::Receiver<Event>| {
                let event = read.recv().await?;
                Some((Ok::<_, Infallible>(event), read))
            }))
        }),
    );
    listen(router);
}

fn listen(router: Router) {
    crate::raw::runtime().block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        axum::serve(axum::serve::ListenerExt::tap_io(listener, |stream| stream.set_nodelay(true).unwrap()), router)
            .await
            .unwrap();
    });
}

/// One write a connection for each wave: the kernel's price, and nobody's logic.
fn serve_sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    let sockets = Arc::<Mutex<Vec<TcpStream>>>::default();
    let accepted = Arc::clone(&sockets);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            stream.read(&mut [0; 1_024]).map(drop).unwrap();
            // Known before it is answered, so that whoever has the answer misses nothing.
            let mut sockets = accepted.lock().unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").unwrap();
            sockets.push(stream);
        }
    });
    for_each_wave(|ids| {
        let frames: String = ids.map(|id| format!("id:{id}\ndata:{}\n\n", json(id))).collect();
        for mut socket in &*sockets.lock().unwrap() {
            socket.write_all(frames.as_bytes()).unwrap();
        }
    });
}

fn for_each_wave(mut publish: impl FnMut(std::ops::RangeInclusive<u64>)) {
    let mut last = 0;
    for line in std::io::stdin().lines() {
        let count: u64 = line.unwrap().parse().unwrap();
        publish(last + 1..=last + count);
        last += count;
    }
    std::process::exit(0);
}

/// What the daemon would send for such an event.
fn json(id: u64) -> String {
    let agent = "A".repeat(hatchery_core::id::ID_CHARS);
    let content = crate::raw::body();
    format!(
        r#"{{"id":{id},"ts":1700000000000,"sessionId":null,"type":"message_added","agent":"{agent}","kind":"assistant","content":"{content}"}}"#
    )
}
