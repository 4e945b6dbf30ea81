//! A line to a PostgreSQL server that can be cut at the worst moment: around a commit.

use super::postgres::Database;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

/// What every statement that commits an append contains: the channel of its notification.
const ANY_COMMIT: &[u8] = b"hatchery_log";
/// The end of a statement that commits a transaction; the word alone also stands in `READ COMMITTED`.
const COMMIT: &[u8] = b"COMMIT\0";

/// A fault, and what the bytes contain that it happens to.
type Planned = Arc<Mutex<Option<(Fault, &'static [u8])>>>;

/// What happens to the next commit. Later ones pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The line breaks before the server has heard of it.
    LoseCommit,
    /// The server commits, and the line breaks before it says so.
    LoseAnswer,
    /// The line breaks for the client, and the server hears of it only when [`Proxy::deliver`] is called.
    Delay,
}

/// Lives as long as the process: its threads end with their connections.
pub struct Proxy {
    address: SocketAddr,
    planned: Planned,
    late: Receiver<Late>,
}

/// A commit that has not reached the server yet.
struct Late {
    server: UnixStream,
    bytes: Vec<u8>,
    answered: Receiver<()>,
}

impl Proxy {
    pub fn to(database: &Database) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let planned = Planned::default();
        let socket = database.server().socket_folder().join(".s.PGSQL.5432");
        let faults = planned.clone();
        let (delayed, late) = mpsc::channel();
        thread::spawn(move || {
            for client in listener.incoming() {
                carry(client.unwrap(), socket.clone(), faults.clone(), delayed.clone());
            }
        });
        Self { address, planned, late }
    }

    pub fn url(&self, database: &Database) -> String {
        format!("postgres://postgres:secret@{}/{}", self.address, database.name())
    }

    pub fn plan(&self, fault: Fault) {
        *self.planned.lock().unwrap() = Some((fault, ANY_COMMIT));
    }

    /// The same for the next append that needs a transaction.
    pub fn plan_in_transaction(&self, fault: Fault) {
        *self.planned.lock().unwrap() = Some((fault, COMMIT));
    }

    /// Gives the delayed commit to the server, and returns when the server has answered.
    pub fn deliver(&self) {
        let Late { mut server, bytes, answered } = self.late.recv().unwrap();
        server.write_all(&bytes).unwrap();
        answered.recv().unwrap();
    }
}

fn carry(mut client: TcpStream, socket: PathBuf, planned: Planned, delayed: Sender<Late>) {
    let mut server = UnixStream::connect(socket).unwrap();
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let swallow = Arc::new(Mutex::new(false));
    let swallowing = swallow.clone();
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        pump(&mut from_server, |bytes| match *swallowing.lock().unwrap() {
            // The client hears nothing, and its line is cut.
            true => {
                answer.send(()).unwrap_or_default();
                false
            }
            false => to_client.write_all(bytes).is_ok(),
        });
        to_client.shutdown(Shutdown::Both).unwrap_or_default();
    });
    thread::spawn(move || {
        let mut late = None;
        pump(&mut client, |bytes| {
            let meets = |(_, part): &mut (Fault, &[u8])| bytes.windows(part.len()).any(|word| word == *part);
            let met = planned.lock().unwrap().take_if(|planned| meets(planned));
            match met.map(|(fault, _)| fault) {
                Some(Fault::LoseCommit) => return false,
                Some(Fault::LoseAnswer) => *swallow.lock().unwrap() = true,
                Some(Fault::Delay) => {
                    *swallow.lock().unwrap() = true;
                    late = Some(bytes.to_vec());
                    return false;
                }
                None => {}
            }
            server.write_all(bytes).is_ok()
        });
        match late {
            Some(bytes) => {
                client.shutdown(Shutdown::Both).unwrap_or_default();
                delayed.send(Late { server, bytes, answered }).unwrap_or_default();
            }
            None => server.shutdown(Shutdown::Both).unwrap_or_default(),
        }
    });
}

/// Passes on what comes, until it ends or may not be passed on.
fn pump(from: &mut impl Read, mut pass: impl FnMut(&[u8]) -> bool) {
    let mut bytes = [0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !pass(&bytes[..count]) {
            return;
        }
    }
}
