//! `hatchery selftest`

mod strangers;
mod world;

use super::demo::audit::Audit;
use super::demo::{INTERRUPTED, interrupted};
use super::paint::{BAD, DIM, GOOD, paint};
use super::{CommandContext, asking, counted, print_json, print_line, say};
use crate::client::Client;
use crate::project::Project;
use crate::projects;
use crate::report::{Code, Context as _, Report};
use crate::selftest_folder;
use hatchery_core::event::MessageEvent;
use hatchery_core::{Event, EventId, MessageKind, Record};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use world::{Chance, Load, TestDaemon};

/// Test this disk and this store: kill daemons and agents under load, and count what was lost
///
/// Creates a project of its own in a temporary folder beside .hatchery. Clients record messages and scripted agents work, while
/// the daemon, launchers and agents are killed at random moments and other clients send invalid requests. If the machine allows a
/// small file system, the test also fills a disk. At the end everything that was acknowledged must be in the log, once and in
/// order, and `fsck` must find nothing. The last line says whether this is true. Exits with 4 if something is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hatchery selftest --minutes 10 --store postgres://me@localhost/an_empty_database")]
pub struct Args {
    /// How many minutes the test takes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_080))]
    minutes: u64,

    /// Test for a few seconds only, for CI
    #[arg(long, conflicts_with = "minutes")]
    short: bool,

    /// An empty store to use instead of a SQLite file
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Repeat the random choices of an earlier selftest
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Keep the project, and print where it is
    #[arg(long)]
    keep: bool,
}

/// What the selftest did, and what its check at the end found.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    seed: u64,
    seconds: f64,
    daemon_kills: u64,
    launcher_kills: u64,
    agent_kills: u64,
    strangers: u64,
    server_errors: u64,
    /// Messages that the daemon has acknowledged as recorded.
    acknowledged: u64,
    /// Messages without an acknowledgement: they may be recorded or not.
    unknown: u64,
    runs: u64,
    events: u64,
    lost: u64,
    doubled: u64,
    /// Whether a full disk was reported as such. `None` if no small file system can be created, or if the user has named a store.
    full_disk: Option<bool>,
    problems: Vec<String>,
}

/// How many lost, doubled or misplaced messages are named.
const WRONG_SHOWN: usize = 20;
/// The longest pause between two blows.
const KILL_PAUSE: Duration = Duration::from_millis(900);
/// How long a selftest with --short lasts.
const SHORT: Duration = Duration::from_secs(8);
/// How long the work may take to end after the last kill.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let place = Some(context.project.data()).filter(|data| data.is_dir()).unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix(selftest_folder::PREFIX).tempdir_in(&place);
    let folder = folder.context(format_args!("no folder can be made in {}", place.display()))?;
    let _held = selftest_folder::hold(folder.path()).context("the folder cannot be locked")?;
    std::fs::create_dir(folder.path().join(".hatchery")).context("the project cannot be made")?;
    let project = Project::find(folder.path())?;
    let seed = args.seed.unwrap_or_else(|| u64::from_le_bytes(crate::clock::random::<8>()));
    let length = if args.short { SHORT } else { Duration::from_secs(args.minutes * 60) };
    if !context.json {
        say(paint(DIM, format_args!("seed {seed}, in {}", folder.path().display())));
    }
    let store = args.store.as_deref();
    let tested = asking(async {
        let mut daemon = None;
        let tested = tokio::select! {
            counts = selftest(&project, store, seed, length, &mut daemon) => counts.map(Some),
            interrupted = interrupted() => interrupted.map(|()| {
                say("interrupted; the selftest stops its agents");
                None
            }),
        };
        // Agents outlive their daemon, so they must be stopped after a failure, too.
        if let Some(daemon) = daemon
            && let Err(report) = daemon.clear(store).await
        {
            say(format_args!("not everything of the selftest could be stopped: {report}"));
        }
        tested
    });
    match args.keep {
        true => say(format_args!("the project is in {}", folder.keep().display())),
        false => projects::forget(&project),
    }
    match tested? {
        Some(counts) => report(context, &counts, store.is_some()),
        None => Ok(ExitCode::from(INTERRUPTED)),
    }
}

/// One disturbance of the running system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    KillDaemon,
    KillLauncher,
    KillAgent,
    Strangers,
}

impl Blow {
    const EACH: [Self; 4] = [Self::KillAgent, Self::KillLauncher, Self::Strangers, Self::KillDaemon];

    fn by_chance(chance: &mut Chance) -> Self {
        match chance.below(10) {
            0..=3 => Self::KillDaemon,
            4..=5 => Self::KillLauncher,
            6..=7 => Self::KillAgent,
            _ => Self::Strangers,
        }
    }
}

async fn selftest(
    project: &Project,
    store: Option<&str>,
    seed: u64,
    length: Duration,
    slot: &mut Option<TestDaemon>,
) -> Result<Counts, Report> {
    let mut counts = Counts { seed, ..Counts::default() };
    let mut chance = Chance::new(seed);
    let started = Instant::now();
    let daemon = slot.insert(TestDaemon::start(project, store).await?);
    if daemon.client().get::<Value>("/api/status").await?["head"].as_u64() > Some(1) {
        return Err(Report::new(Code::Usage, "the store is not empty").hint("give an empty database with --store"));
    }
    let load = Load::start(project, daemon.addresses()).await?;
    // Even in a short test, each kind of blow happens at least once.
    let mut owed = Blow::EACH.to_vec();
    while started.elapsed() < length || (!owed.is_empty() && started.elapsed() < length + PATIENCE) {
        tokio::time::sleep(chance.pause(KILL_PAUSE)).await;
        let blow = owed.first().copied().unwrap_or_else(|| Blow::by_chance(&mut chance));
        let hit = match blow {
            Blow::KillDaemon => {
                daemon.kill_and_restart(store).await?;
                counts.daemon_kills += 1;
                1
            }
            Blow::KillLauncher => {
                let hit = world::kill_one(project, &mut chance, world::Victim::Launcher);
                counts.launcher_kills += hit;
                hit
            }
            Blow::KillAgent => {
                let hit = world::kill_one(project, &mut chance, world::Victim::Agent);
                counts.agent_kills += hit;
                hit
            }
            Blow::Strangers => {
                let (sent, errors) = strangers::visit(daemon.client(), &mut chance).await;
                counts.strangers += sent;
                counts.server_errors += errors;
                sent
            }
        };
        // A blow that hit no process is tried again, because no agent may have been at work.
        owed.retain(|owed| *owed != blow || hit == 0);
    }
    let sent = load.finish().await;
    counts.acknowledged = sent.acknowledged.len() as u64;
    counts.unknown = sent.unknown.len() as u64;
    counts.runs = sent.runs;
    wait_for_rest(daemon.client()).await?;
    check(project, daemon.client(), &sent, &mut counts).await?;
    daemon.stop().await?;
    *slot = None;
    if store.is_none() {
        counts.full_disk = world::full_disk(project, &mut counts.problems).await?;
    }
    counts.seconds = started.elapsed().as_secs_f64();
    Ok(counts)
}

/// Waits until no run is open.
async fn wait_for_rest(client: &Client) -> Result<(), Report> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let runs: Value = client.get("/api/runs").await?;
        let open = |run: &&Value| run["phase"] != "ended";
        let open = runs["runs"].as_array().map_or(0, |runs| runs.iter().filter(open).count());
        match open {
            0 => return Ok(()),
            _ if Instant::now() > deadline => {
                return Err(Report::failed(format_args!("{open} runs did not end within {} s", PATIENCE.as_secs())));
            }
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Where a message is in the log, and how often.
struct FoundMessage {
    first: EventId,
    times: u64,
}

/// The messages that are in the log before an earlier message of the same client. A client waits for each answer, so the order must be
/// the same.
fn out_of_order<'a>(
    acknowledged: &'a [String],
    found: &BTreeMap<String, FoundMessage>,
) -> impl Iterator<Item = String> + 'a {
    let mut latest: BTreeMap<&str, EventId> = BTreeMap::new();
    let places: Vec<_> = acknowledged.iter().map(|words| (words, found.get(words).map(|found| found.first))).collect();
    places.into_iter().filter_map(move |(words, place)| {
        let (client, _) = words.split_once(" says ")?;
        let before = latest.insert(client, place?)?;
        (before > place?).then(|| format!("out of order: {words}"))
    })
}

/// Reads the whole log, and compares it with the acknowledged messages and with the spools of the agents.
async fn check(project: &Project, client: &Client, sent: &world::Sent, counts: &mut Counts) -> Result<(), Report> {
    let mut audit = Audit::default();
    let mut found: BTreeMap<String, FoundMessage> = BTreeMap::new();
    let mut after = 0;
    loop {
        let page: Value = client.get(&format!("/api/events.json?after={after}&limit=1000")).await?;
        for event in page["events"].as_array().into_iter().flatten() {
            let id = EventId(event["id"].as_u64().unwrap_or_default());
            let record = Record::read(id, &event.to_string()).context(format_args!("event {id} cannot be read"))?;
            audit.take(&record)?;
            if let Event::Message(MessageEvent::Added { kind: MessageKind::User, content, .. }) = record.event {
                found.entry(content).or_insert(FoundMessage { first: id, times: 0 }).times += 1;
            }
        }
        after = page["upto"].as_u64().unwrap_or_default();
        if page["more"] != true {
            break;
        }
    }
    audit.read_spools(project)?;
    let count = |words: &String| found.get(words).map_or(0, |found| found.times);
    let acknowledged_lost = sent.acknowledged.iter().filter(|words| count(words) == 0).count() as u64;
    let doubled = sent.acknowledged.iter().chain(&sent.unknown).filter(|words| count(words) > 1).count() as u64;
    let lost = sent.acknowledged.iter().filter(|words| count(words) == 0);
    let lost = lost.map(|words| format!("acknowledged and lost: {words}"));
    counts.problems.extend(lost.chain(out_of_order(&sent.acknowledged, &found)).chain(audit.wrong()).take(WRONG_SHOWN));
    counts.events = audit.events;
    counts.lost = acknowledged_lost + audit.lost();
    counts.doubled = doubled + audit.doubled();
    let checked: Value = client.post("/api/fsck", &json!({})).await?;
    let problems = checked["problems"].as_array().into_iter().flatten();
    counts.problems.extend(problems.map(|problem| format!("fsck: {}", problem["what"].as_str().unwrap_or_default())));
    Ok(())
}

/// The sentence about the full disk. The disk of a store that the user has named is not filled.
fn about_disk(full_disk: Option<bool>, has_store: bool) -> &'static str {
    match full_disk {
        Some(true) => "the daemon reported a full disk",
        Some(false) => "the daemon did not report a full disk",
        None if has_store => "no disk was filled, because only an embedded store has a disk of its own",
        None => "no small file system can be made here, so no disk was filled",
    }
}

fn report(context: &CommandContext, counts: &Counts, has_store: bool) -> Result<ExitCode, Report> {
    let is_whole = counts.lost == 0 && counts.doubled == 0 && counts.server_errors == 0 && counts.problems.is_empty();
    if context.json {
        print_json(counts)?;
    } else {
        for problem in &counts.problems {
            print_line(&format!("{} {problem}", paint(BAD, "wrong")))?;
        }
        let verdict = match is_whole {
            true => paint(GOOD, "nothing was lost"),
            false => paint(BAD, format_args!("{} lost, {} doubled", counts.lost, counts.doubled)),
        };
        let disk = about_disk(counts.full_disk, has_store);
        print_line(&format!(
            "{verdict}: {} acknowledged ({} more unknown), {}, {}; kills: {} of the daemon, {} of launchers, {} of agents; {} by strangers, {} answered with 5xx; \
             {disk}; {:.0} s",
            counted(counts.acknowledged, "message"),
            counts.unknown,
            counted(counts.runs, "run"),
            counted(counts.events, "event"),
            counts.daemon_kills,
            counts.launcher_kills,
            counts.agent_kills,
            counted(counts.strangers, "request"),
            counts.server_errors,
            counts.seconds,
        ))?;
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(Code::Found as u8) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_a_client_are_in_the_order_of_their_answers() {
        let acknowledged =
            ["client 1 says 1", "client 2 says 1", "client 1 says 2", "client 2 says 2"].map(str::to_owned);
        let log = |order: [usize; 4]| {
            let found = order.into_iter().zip(1..);
            let found = found.map(|(at, id)| (acknowledged[at].clone(), FoundMessage { first: EventId(id), times: 1 }));
            out_of_order(&acknowledged, &found.collect()).collect::<Vec<_>>()
        };
        assert_eq!(log([1, 0, 3, 2]), [""; 0]);
        assert_eq!(log([2, 1, 0, 3]), ["out of order: client 1 says 2"]);
    }
}
