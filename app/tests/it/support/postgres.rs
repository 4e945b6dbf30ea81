//! A private PostgreSQL: in a temporary folder, reached only through a socket in it, and gone with the tests, however
//! they end.

use super::runtime;
use std::fs::Permissions;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use tempfile::TempDir;
use tokio_postgres::{Config, NoTls};

/// How long a server may take to answer, crash recovery on a busy machine included.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two looks at a server that starts.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const SUPERUSER: &str = "postgres";

/// Whether what the server acknowledges is on disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// For tests that do not lose power: fast.
    None,
    /// For tests that crash the server.
    Full,
}

pub struct Server {
    folder: TempDir,
    durability: Durability,
    /// Where it is reached besides its socket, by encrypted connections only.
    encrypted: Option<u16>,
    running: Mutex<Option<Child>>,
}

/// A fresh database, and a share in its server.
pub struct Database {
    server: Arc<Server>,
    name: String,
}

impl Server {
    /// The server that the tests of this process share. It stops with its last user.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Self::own(Durability::None);
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// A server for one test alone, which may stop and kill it.
    pub fn own(durability: Durability) -> Arc<Self> {
        let server = Self::made(durability, None);
        server.start();
        Arc::new(server)
    }

    /// A server for one test alone, with a port on 127.0.0.1 that demands encryption.
    pub fn encrypted(certificate: &str, key: &str) -> Arc<Self> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self::made(Durability::None, Some(free));
        for (name, content) in [
            ("server.crt", certificate),
            ("server.key", key),
            ("pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 trust\n"),
        ] {
            let path = server.folder.path().join("data").join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            if let Some((uid, gid)) = lesser_user() {
                chown(&path, Some(uid), Some(gid)).unwrap();
            }
        }
        server.start();
        Arc::new(server)
    }

    fn made(durability: Durability, encrypted: Option<u16>) -> Self {
        let folder = TempDir::with_prefix("pg").unwrap();
        if let Some((uid, gid)) = lesser_user() {
            chown(folder.path(), Some(uid), Some(gid)).unwrap();
        }
        let made = command(&bin().join("initdb"), folder.path())
            .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"])
            .args(["--username", SUPERUSER, "--pgdata"])
            .arg(folder.path().join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        Self { folder, durability, encrypted, running: Mutex::default() }
    }

    pub fn database(self: &Arc<Self>) -> Database {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.run_sql(SUPERUSER, &format!("CREATE DATABASE {name}")).unwrap();
        Database { server: self.clone(), name }
    }

    /// Starts it and waits until it answers.
    pub fn start(&self) {
        let deadline = Instant::now() + START_TIMEOUT;
        let mut running = self.running();
        assert!(running.is_none(), "the server runs already");
        let mut child = self.spawn();
        while let Err(error) = self.run_sql(SUPERUSER, "SELECT") {
            assert!(Instant::now() < deadline, "the server does not answer: {error}\n{}", self.said());
            if child.try_wait().unwrap().is_some() {
                // The children of a server that was killed hold its memory until they notice; a new one waits for that.
                child = self.spawn();
            }
            thread::sleep(LOOK_AGAIN);
        }
        *running = Some(child);
    }

    /// Stops it in order, as an administrator does; clients are told and thrown out.
    pub fn stop(&self) {
        self.end(rustix::process::Signal::INT);
    }

    pub fn restart(&self) {
        self.stop();
        self.start();
    }

    /// Ends it like a loss of power that leaves the disk as it is.
    pub fn kill(&self) {
        self.end(rustix::process::Signal::KILL);
    }

    /// The folder of its socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    fn end(&self, signal: rustix::process::Signal) {
        if let Some(mut child) = self.running().take() {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, signal).unwrap();
            child.wait().unwrap();
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self) -> Child {
        // `setpriv` comes after the change of user, which would clear the signal again.
        let mut command = command(Path::new("setpriv"), self.folder.path());
        command.args(["--pdeathsig", "QUIT", "--"]).arg(bin().join("postgres"));
        command.arg("-D").arg(self.folder.path().join("data"));
        command.arg("-k").arg(self.folder.path());
        let mut settings = vec!["max_connections=200", "log_min_messages=warning"];
        let port = format!("port={}", self.port());
        match self.encrypted {
            Some(_) => settings.extend(["listen_addresses=127.0.0.1", "ssl=on", &port]),
            None => settings.push("listen_addresses="),
        }
        if self.durability == Durability::None {
            settings.extend(["fsync=off", "full_page_writes=off"]);
        }
        for setting in settings {
            command.args(["-c", setting]);
        }
        let log = fs::File::options().create(true).append(true).open(self.log()).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        spawn_for_good(command).expect("`setpriv` of util-linux starts the server")
    }

    fn port(&self) -> u16 {
        self.encrypted.unwrap_or(5432)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    fn run_sql(&self, database: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
        let mut config = Config::new();
        config.host_path(self.folder.path()).port(self.port()).user(SUPERUSER).dbname(database);
        runtime().block_on(async {
            let (client, connection) = config.connect(NoTls).await?;
            let connection = tokio::spawn(connection);
            let result = client.batch_execute(sql).await;
            drop(client);
            connection.await.unwrap()?;
            result
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(rustix::process::Signal::QUIT);
    }
}

impl Database {
    pub fn url(&self) -> String {
        let folder = self.server.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://{SUPERUSER}@{folder}/{}", self.name)
    }

    /// By the port that demands encryption, under the name of `host`.
    pub fn encrypted_url(&self, host: &str, parameters: &str) -> String {
        let port = self.server.port();
        format!("postgres://{SUPERUSER}@{host}:{port}/{}?hostaddr=127.0.0.1&{parameters}", self.name)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    pub fn run_sql(&self, sql: &str) {
        self.server.run_sql(&self.name, sql).unwrap();
    }
}

/// A command without our environment, and without our rights: PostgreSQL refuses to run as root.
fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default()).current_dir(folder);
    if let Some((uid, gid)) = lesser_user() {
        command.uid(uid).gid(gid);
    }
    command
}

/// Whom to become when we are root.
fn lesser_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(|number| number.parse().unwrap());
        Some((numbers.next()?, numbers.next()?))
    };
    Some(find("postgres").or_else(|| find("nobody")).expect("a user `postgres` or `nobody` to run the server"))
}

/// The folder of the server's programs: one on the PATH, or the newest where distributions put them.
fn bin() -> &'static Path {
    static BIN: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
        let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
            .collect();
        versions.sort();
        folders.extend(versions.into_iter().rev().map(|(_, folder)| folder));
        folders
            .into_iter()
            .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
            .expect("PostgreSQL is not installed: run `cargo xtask test`, which installs it")
    });
    &BIN
}

/// Starts a child that the kernel ends when we die. "We" is the thread that started it: a test's own thread would take
/// the server with it, so one thread that lives as long as the process starts them all.
fn spawn_for_good(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::Sender<io::Result<Child>>);
    static KEEPER: LazyLock<Mutex<mpsc::Sender<Order>>> = LazyLock::new(|| {
        let (orders, received) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in received {
                answer.send(command.spawn()).expect("whoever ordered waits for the answer");
            }
        });
        Mutex::new(orders)
    });
    let (answer, answered) = mpsc::channel();
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner).send((command, answer)).unwrap();
    answered.recv().unwrap()
}
