//! A line to a PostgreSQL server that can be cut at the worst moment: around a COMMIT.

use super::postgres::Database;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

/// The end of a statement that commits; the word alone also stands in `READ COMMITTED`.
const COMMIT: &[u8] = b"COMMIT\0";

/// What happens to the next COMMIT. Later ones pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The line breaks before the server has heard of it.
    LoseCommit,
    /// The server commits, and the line breaks before it says so.
    LoseAnswer,
}

/// Lives as long as the process: its threads end with their connections.
pub struct Proxy {
    address: SocketAddr,
    fault: Arc<Mutex<Option<Fault>>>,
}

impl Proxy {
    pub fn to(database: &Database) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let fault = Arc::<Mutex<Option<Fault>>>::default();
        let socket = database.server().socket_folder().join(".s.PGSQL.5432");
        let planned = fault.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                carry(client.unwrap(), socket.clone(), planned.clone());
            }
        });
        Self { address, fault }
    }

    pub fn url(&self, database: &Database) -> String {
        format!("postgres://postgres:secret@{}/{}", self.address, database.name())
    }

    pub fn plan(&self, fault: Fault) {
        *self.fault.lock().unwrap() = Some(fault);
    }
}

fn carry(mut client: TcpStream, socket: PathBuf, planned: Arc<Mutex<Option<Fault>>>) {
    let mut server = UnixStream::connect(socket).unwrap();
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let swallow = Arc::new(Mutex::new(false));
    let swallowing = swallow.clone();
    thread::spawn(move || {
        pump(&mut from_server, |bytes| !*swallowing.lock().unwrap() && to_client.write_all(bytes).is_ok());
        to_client.shutdown(Shutdown::Both).unwrap_or_default();
    });
    thread::spawn(move || {
        pump(&mut client, |bytes| {
            let commit = bytes.windows(COMMIT.len()).any(|word| word == COMMIT);
            match commit.then(|| planned.lock().unwrap().take()).flatten() {
                Some(Fault::LoseCommit) => return false,
                Some(Fault::LoseAnswer) => *swallow.lock().unwrap() = true,
                None => {}
            }
            server.write_all(bytes).is_ok()
        });
        server.shutdown(Shutdown::Both).unwrap_or_default();
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
