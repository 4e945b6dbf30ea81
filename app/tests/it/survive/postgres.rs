//! The shared store: its server restarted, killed and away under load; two daemons on one log; a schema from the future.

use super::ledger::Ledger;
use crate::support::daemon::{Daemon, Grounds, PATIENCE, Scene};
use crate::support::follower::Follower;
use crate::support::http::{Answer, Door, Http};
use crate::support::postgres::{Database, Durability, Server};
use crate::support::runtime;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const CLIENTS: usize = 4;

/// A commit that is lost or doubled needs a server that comes back with what it promised.
#[test]
fn a_restart_under_load_costs_nothing() {
    let database = Server::own(Durability::Full).database();
    let grounds = on(&database);
    let daemon = grounds.up();
    let (follower, _doors) = Follower::of(&daemon.door);
    let load = Load::start(&daemon.door, CLIENTS);
    let rounds = if soak() { 20 } else { 2 };
    for round in 0..rounds {
        load.wait_for_more(40);
        match round % 2 {
            0 => database.server().restart(),
            _ => {
                database.server().kill();
                database.server().start();
            }
        }
    }
    load.wait_for_more(40);
    check_all_in(&daemon, &follower, load.stop());
}

#[test]
fn a_server_that_is_away_for_a_while_is_waited_for() {
    let database = Server::own(Durability::Full).database();
    let grounds = on(&database);
    let daemon = grounds.up();
    let (follower, _doors) = Follower::of(&daemon.door);
    let load = Load::start(&daemon.door, CLIENTS);
    load.wait_for_more(20);
    database.server().stop();
    wait_for_health(&daemon, "store_trouble");
    assert_eq!(daemon.door.get("/api/agents").status, 200, "what is known can be read meanwhile");
    // Not waiting for anything: the server's absence is what is tested. Ten seconds are what the requirement says.
    std::thread::sleep(if soak() { Duration::from_secs(10) } else { Duration::from_secs(2) });
    database.server().start();
    load.wait_for_more(20);
    wait_for_health(&daemon, "ok");
    check_all_in(&daemon, &follower, load.stop());
}

/// Longer than the daemon's patience: the clients are told, truly, and it recovers by itself all the same.
#[test]
fn a_server_that_is_away_for_long_is_reported() {
    if !soak() {
        println!(
            "SKIPPED survive::postgres::a_server_that_is_away_for_long_is_reported: takes a minute, HATCHERY_SOAK=1 runs it"
        );
        return;
    }
    let database = Server::own(Durability::Full).database();
    let grounds = on(&database);
    let daemon = grounds.up();
    let agent = daemon.door.agent(None);
    database.server().stop();
    let answer = daemon.door.say(&agent, "nobody listens");
    assert_eq!(answer.status, 503, "{answer:?}");
    let (code, hint) = answer.error();
    assert!(code == "store_unavailable" && hint.contains("nothing was recorded"), "{answer:?}");
    database.server().start();
    assert_eq!(daemon.door.say(&agent, "nobody listens").status, 201);
    assert_eq!(daemon.door.log().len(), 2);
}

#[test]
fn the_end_can_be_asked_for_while_the_server_is_away() {
    let database = Server::own(Durability::None).database();
    let grounds = on(&database);
    let daemon = grounds.up();
    let agent = daemon.door.agent(None);
    database.server().stop();
    let mut http = daemon.door.http();
    let path = format!("/api/agents/{agent}/messages");
    let waiting = runtime().spawn(async move { http.post(&path, &json!({ "kind": "user", "content": "x" })).await });
    wait_for_health(&daemon, "store_trouble");
    let beyond = daemon.door.get("/api/events?after=1000");
    assert_eq!(beyond.status, 503, "nobody can say whether there is such an event: {beyond:?}");
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", grounds.said());
    let answered = runtime().block_on(waiting).unwrap();
    assert!(answered.is_err() || answered.is_ok_and(|answer| answer.status == 503));
    let ran = grounds.refused(Scene::Plain);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("cannot be reached") && ran.stderr.contains("is the database running"), "{ran:?}");
}

#[test]
fn two_daemons_share_one_log() {
    let database = Server::shared().database();
    let (left_grounds, right_grounds) = (on(&database), on(&database));
    let (left, right) = (left_grounds.up(), right_grounds.up());
    let (left_doors, shown) = watch::channel(left.door.clone());
    let followers = [Follower::start(shown), Follower::of(&right.door).0];
    // Everybody speaks to everybody's agents, so that decisions collide.
    let agents: Vec<String> = (0..3).map(|_| left.door.agent(None)).collect();
    let loads = [Load::with(&left.door, CLIENTS, &agents), Load::with(&right.door, CLIENTS, &agents)];
    loads.iter().for_each(|load| load.wait_for_more(100));
    for _ in 0..5 {
        let session = left.door.post("/api/sessions", &json!({})).id();
        wait_for_session(&right, &session);
        let answers = both(&[&left.door, &right.door], &format!("/api/sessions/{session}/end"), &json!({}));
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 409], "one of them was first: {answers:?}");
    }
    loads.iter().for_each(|load| load.wait_for_more(50));
    // One of them dies; the other does not mind.
    let [left_load, right_load] = loads;
    left.kill();
    let lost = left_load.lost();
    right_load.wait_for_more(50);
    let left = left_grounds.up();
    left_doors.send_replace(left.door.clone());
    let left_load = Load::with(&left.door, CLIENTS, &agents);
    left_load.wait_for_more(50);
    let mut ledger = Ledger::default();
    for acknowledged in [lost, left_load.stop(), right_load.stop()] {
        ledger.note(acknowledged);
    }
    let log = left.door.log();
    let head = log.len() as u64;
    ledger.check(&log);
    assert_eq!(right.door.log(), log);
    for follower in &followers {
        follower.wait_for(head);
        assert_eq!(follower.log(), log);
    }
    let events: Vec<Value> = log.iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let mut ends = BTreeMap::<(&str, &str), usize>::new();
    for event in events.iter().filter(|event| event["reason"].is_string()) {
        *ends.entry((event["type"].as_str().unwrap(), event["session"].as_str().unwrap())).or_default() += 1;
    }
    assert_eq!(ends.len(), 10, "{ends:?}");
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
    for path in ["/api/agents", "/api/sessions"] {
        assert_eq!(left.door.get(path).body, right.door.get(path).body, "{path}");
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let database = Server::shared().database();
    let grounds = on(&database);
    grounds.up().kill();
    database.run_sql("INSERT INTO migrations (name) VALUES ('9999_future')");
    let ran = grounds.refused(Scene::Plain);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("newer Hatchery") && ran.stderr.contains("9999_future"), "{ran:?}");
}

fn soak() -> bool {
    std::env::var_os("HATCHERY_SOAK").is_some()
}

fn on(database: &Database) -> Grounds {
    Grounds::with(&format!("store = '{}'\nsnapshot_every = 100", database.url()))
}

/// Whatever was sent is in the log once, as it was acknowledged, and everybody sees it so.
fn check_all_in(daemon: &Daemon, follower: &Follower, acknowledged: Vec<String>) {
    let mut ledger = Ledger::default();
    ledger.note(acknowledged);
    let log = daemon.door.log();
    ledger.check(&log);
    // The daemon tells nobody of the first event, which is its own: agent 0.
    let first: Value = serde_json::from_str(&log[0]).unwrap();
    assert_eq!((&first["type"], &first["name"]), (&json!("agent_created"), &json!("root")), "{first}");
    assert_eq!(ledger.len(), log.len() - 1, "something is in the log that nobody was told of");
    follower.wait_for(log.len() as u64);
    assert_eq!(follower.log(), log);
    let found = daemon.door.post("/api/fsck", &json!({})).json();
    assert_eq!(found["problems"], json!([]), "{found}");
}

fn wait_for_health(daemon: &Daemon, status: &str) {
    let deadline = Instant::now() + PATIENCE;
    while daemon.door.get("/api/health").json()["status"] != status {
        assert!(Instant::now() < deadline, "the daemon does not say {status}");
        // The daemon tells nobody of its health by itself.
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait_for_session(daemon: &Daemon, session: &str) {
    let (follower, _doors) = Follower::of(&daemon.door);
    loop {
        let head = daemon.door.head();
        if daemon.door.get("/api/sessions").body.contains(session) {
            return;
        }
        follower.wait_for(head + 1);
    }
}

/// The same request to several daemons at once.
fn both(doors: &[&Door], path: &str, body: &Value) -> Vec<Answer> {
    runtime().block_on(async {
        let mut clients: Vec<Http> = doors.iter().map(|door| door.http()).collect();
        let answers = futures_util::future::join_all(clients.iter_mut().map(|http| http.post(path, body))).await;
        answers.into_iter().map(Result::unwrap).collect()
    })
}

/// Clients that speak to agents until they are told to stop. Every answer must be a success.
struct Load {
    stop: watch::Sender<bool>,
    count: watch::Receiver<usize>,
    tasks: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    /// Each with an agent of its own.
    fn start(door: &Door, clients: usize) -> Self {
        Self::with(door, clients, &[])
    }

    fn with(door: &Door, clients: usize, agents: &[String]) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (told, count) = watch::channel(0);
        let tasks = (0..clients)
            .map(|number| {
                let (http, agents) = (door.http(), agents.to_vec());
                runtime().spawn(speak(http, number, agents, told.clone(), stopped.clone()))
            })
            .collect();
        Self { stop, count, tasks }
    }

    /// Waits until so many more were acknowledged.
    fn wait_for_more(&self, more: usize) {
        let mut count = self.count.clone();
        let enough = *count.borrow() + more;
        let come = async {
            tokio::time::timeout(PATIENCE, count.wait_for(|count| *count >= enough)).await.is_ok_and(|it| it.is_ok())
        };
        assert!(runtime().block_on(come), "{} of {enough} appends were acknowledged", *self.count.borrow());
    }

    /// Everything that was acknowledged, when nothing is asked any more.
    fn stop(self) -> Vec<String> {
        self.stop.send_replace(true);
        self.lost()
    }

    /// The same when the daemon is gone.
    fn lost(self) -> Vec<String> {
        let tasks = runtime().block_on(futures_util::future::join_all(self.tasks));
        tasks.into_iter().flat_map(Result::unwrap).collect()
    }
}

/// A name that no agent has: the name of a living one is refused.
fn free_name(word: &str, number: usize) -> String {
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    format!("{word} {number}-{}", GIVEN.fetch_add(1, Ordering::Relaxed))
}

async fn speak(
    mut http: Http,
    number: usize,
    mut agents: Vec<String>,
    told: watch::Sender<usize>,
    stopped: watch::Receiver<bool>,
) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for count in 0.. {
        if *stopped.borrow() {
            break;
        }
        let (path, body) = match count % 10 {
            0 => ("/api/agents".to_owned(), json!({ "name": free_name("client", number) })),
            5 => (format!("/api/agents/{}/rename", agents[0]), json!({ "name": free_name("by", number) })),
            _ => {
                let agent = &agents[count % agents.len()];
                (
                    format!("/api/agents/{agent}/messages"),
                    json!({ "kind": "user", "content": format!("{number}/{count}") }),
                )
            }
        };
        let Ok(answer) = http.post(&path, &body).await else { break };
        assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
        if path == "/api/agents" {
            agents.push(answer.id());
        }
        acknowledged.extend(answer.events());
        told.send_modify(|count| *count += 1);
    }
    acknowledged
}
