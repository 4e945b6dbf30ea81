//! A service of durable steps on Restate's Rust SDK, and the load on it: `rival-restate FOLDER STEPS ROUNDS CLIENTS`. FOLDER is where
//! the server keeps its sockets. Prints the median of a step's cost in µs with one client, and the steps per second of all clients.

use restate_sdk::prelude::*;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpSocket};

/// How long the server may take until its partitions have leaders.
const READY: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// No invocation takes nearly as long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
const BACKLOG: u32 = 64;

struct Steps;

#[service]
impl Steps {
    /// Does one step after the other and answers what each of them cost, in nanoseconds.
    #[handler]
    async fn work(&self, ctx: Context<'_>, count: u64) -> HandlerResult<Json<Vec<u64>>> {
        let mut costs = Vec::new();
        for number in 0..count {
            let start = Instant::now();
            ctx.run(|| async move { Ok(number) }).await?;
            costs.push(u64::try_from(start.elapsed().as_nanos()).expect("a step takes less than centuries"));
        }
        Ok(Json(costs))
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, numbers @ ..] = arguments.as_slice() else { panic!("FOLDER STEPS ROUNDS CLIENTS") };
    let numbers: Vec<usize> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
    let [steps, rounds, clients] = numbers[..] else { panic!("FOLDER STEPS ROUNDS CLIENTS") };
    let listener = listen();
    let uri = format!("http://{}", listener.local_addr().expect("it is bound"));
    let folder = PathBuf::from(folder);
    let load = thread::spawn(move || {
        register(&folder, &uri);
        measure(&folder, steps, rounds, clients)
    });
    tokio::spawn(HttpServer::new(Endpoint::builder().bind(Steps).build()).serve(listener));
    let measured = tokio::task::spawn_blocking(|| load.join().expect("the load ends well"));
    let (p50_us, per_second) = measured.await.expect("the load ends well");
    println!("{p50_us} {per_second}");
    // The server's own connection would keep ours open for as long as it lives.
    std::process::exit(0);
}

/// The SDK leaves Nagle's algorithm on; what is accepted inherits that it is off here.
fn listen() -> TcpListener {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_nodelay(true).expect("a TCP socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    socket.listen(BACKLOG).expect("a bound socket")
}

/// Tells the server where the service is, and waits until a first step has been done.
fn register(folder: &Path, uri: &str) {
    let start = Instant::now();
    let ready = || {
        post(&folder.join("admin.sock"), "/deployments", &format!(r#"{{"uri":"{uri}"}}"#))?;
        work(folder, 1)
    };
    while let Err(why) = ready() {
        assert!(start.elapsed() < READY, "Restate is not ready: {why}");
        thread::sleep(LOOK_AGAIN);
    }
}

fn measure(folder: &Path, steps: usize, rounds: usize, clients: usize) -> (f64, f64) {
    let invoke = || work(folder, steps).expect("Restate answers");
    invoke();
    let mut costs: Vec<u64> = (0..rounds).flat_map(|_| invoke()).collect();
    costs.sort_unstable();
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| (0..rounds).for_each(|_| drop(invoke())));
        }
    });
    let done = (clients * rounds * steps) as f64;
    (costs[costs.len() / 2] as f64 / 1e3, done / start.elapsed().as_secs_f64())
}

/// One invocation.
fn work(folder: &Path, steps: usize) -> Result<Vec<u64>, String> {
    let answer = post(&folder.join("ingress.sock"), "/Steps/work", &steps.to_string())?;
    let costs: Result<Vec<u64>, _> =
        answer.trim().trim_matches(['[', ']']).split(',').map(|cost| cost.trim().parse()).collect();
    let costs = costs.map_err(|_| format!("not a list of costs: {answer}"))?;
    (costs.len() == steps).then_some(costs).ok_or(format!("not {steps} costs: {answer}"))
}

/// HTTP/1.0, so that the answer is whatever comes until the end.
fn post(socket: &Path, path: &str, body: &str) -> Result<String, String> {
    let exchange = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let head = format!("POST {path} HTTP/1.0\r\nHost: rival\r\nContent-Type: application/json\r\n");
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = exchange().map_err(|error: std::io::Error| format!("{}: {error}", socket.display()))?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.split(' ').nth(1).is_some_and(|code| code.starts_with('2')) => Ok(body.to_owned()),
        _ => Err(answer),
    }
}
