//! `hatchery demo`

pub(super) mod audit;

use super::follow::Following;
use super::paint::{BAD, DIM, GOOD, STRONG, paint};
use super::quest::watch;
use super::{CommandContext, asking, print_json_text, print_line, private_daemon};
use crate::client::Client;
use crate::client::paths::quest_path;
use crate::project::Project;
use crate::projects;
use crate::quest_document::QuestDocument;
use crate::report::{Context as _, Report};
use audit::Audit;
use hatchery_core::ask::About;
use hatchery_core::event::{QuestEvent, QuestionEvent, RunEvent, StepEvent};
use hatchery_core::{Event, QuestId, Record};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};

/// Run a scripted quest in a temporary project, with a kill -9 in the middle
///
/// Scripted agents build a house of five rooms, three at a time, using every role and every signal: one asks a question, one
/// fails its ward and is repaired, one crashes, one runs out of context. Halfway through, the demo kills its daemon and starts
/// another. At the end it compares the log with what the agents wrote. Needs no account and no network, and leaves nothing
/// behind.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep the temporary project, and print where it is
    #[arg(long)]
    keep: bool,
}

/// The scripts of the demo's agents, by file name (step, role and number).
const PLAYBOOK: [(&str, &str); 14] = [
    ("chaoswhisperer.jsonl", include_str!("demo/playbook/chaoswhisperer.jsonl")),
    ("pathseeker.jsonl", include_str!("demo/playbook/pathseeker.jsonl")),
    ("codeweaver.jsonl", include_str!("demo/playbook/codeweaver.jsonl")),
    ("siegemaster.jsonl", include_str!("demo/playbook/siegemaster.jsonl")),
    ("lawbringer.jsonl", include_str!("demo/playbook/lawbringer.jsonl")),
    ("kitchen.codeweaver.jsonl", include_str!("demo/playbook/kitchen.codeweaver.jsonl")),
    ("kitchen.spiritmender.jsonl", include_str!("demo/playbook/kitchen.spiritmender.jsonl")),
    ("library.codeweaver.jsonl", include_str!("demo/playbook/library.codeweaver.jsonl")),
    ("cellar.codeweaver.1.jsonl", include_str!("demo/playbook/cellar.codeweaver.1.jsonl")),
    ("cellar.codeweaver.2.jsonl", include_str!("demo/playbook/cellar.codeweaver.2.jsonl")),
    ("garden.codeweaver.1.jsonl", include_str!("demo/playbook/garden.codeweaver.1.jsonl")),
    ("garden.codeweaver.2.jsonl", include_str!("demo/playbook/garden.codeweaver.2.jsonl")),
    ("garden.siegemaster.jsonl", include_str!("demo/playbook/garden.siegemaster.jsonl")),
    ("review.spiritmender.jsonl", include_str!("demo/playbook/review.spiritmender.jsonl")),
];
/// The demo's answer to the question of an agent.
const ANSWER: &str = "Oak.";
/// The daemon is killed when this many rooms besides the hall have been started.
const KILL_AFTER_ROOMS: usize = 3;
/// If the demo takes longer, something is wrong.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the agents of an interrupted demo may take to end.
const CLEAR_PATIENCE: Duration = Duration::from_secs(20);
/// The exit code that shells use for a command that Ctrl-C has ended.
pub(super) const INTERRUPTED: u8 = 130;

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let folder = tempfile::Builder::new().prefix("hatchery-demo-").tempdir().context("no temporary folder")?;
    let project = lay_out(folder.path())?;
    let played = asking(async {
        let mut daemon = None;
        let played = tokio::select! {
            played = tokio::time::timeout(PATIENCE, play(&project, context.json, &mut daemon)) => {
                played.unwrap_or_else(|_| Err(Report::failed("the demo did not finish in time")))
            }
            interrupted = interrupted() => interrupted.map(|()| {
                say("interrupted; the demo stops its agents");
                ExitCode::from(INTERRUPTED)
            }),
        };
        clear(&project, daemon).await;
        played
    });
    match args.keep {
        true => say(format_args!("the project is in {}", folder.keep().display())),
        false => projects::forget(&project),
    }
    played
}

/// Creates a small project: a git repository if git is installed, otherwise a plain folder.
fn lay_out(folder: &Path) -> Result<Project, Report> {
    let write = |name: &str, content: &str| {
        let path = folder.join(name);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, content)).context(format_args!("{name} cannot be written"))
    };
    write("HOUSE.md", include_str!("demo/HOUSE.md"))?;
    write("check.sh", include_str!("demo/check.sh"))?;
    // The folder `.hatchery` makes this a project of its own, even if the folder for temporary files belongs to another project.
    for (name, script) in PLAYBOOK {
        write(&format!(".hatchery/demo/{name}"), script)?;
    }
    write(".hatchery/.gitignore", "*\n")?;
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=Hatchery", "-c", "user.email=hatchery@localhost", "-c", "commit.gpgsign=false"]);
        git.args(["-c", "core.hooksPath=/dev/null"]).args(args).current_dir(folder).env_remove("GIT_DIR");
        git.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let committed = git(&["init", "--quiet"]) && git(&["add", "."]) && git(&["commit", "--quiet", "-m", "A house"]);
    if !committed {
        say("git is missing, so all steps work in one folder");
    }
    Project::find(folder)
}

/// What has happened in the demo so far.
#[derive(Default)]
struct DemoTally {
    rooms: usize,
    killed: bool,
    asked: bool,
    crashes: usize,
}

/// Waits for Ctrl-C or SIGTERM.
pub(super) async fn interrupted() -> Result<(), Report> {
    let mut terminated = signal(SignalKind::terminate()).context("signals cannot be received")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("signals cannot be received"),
        _ = terminated.recv() => Ok(()),
    }
}

/// Stops the agents and the daemon of a demo that was interrupted or has failed. Agents would outlive their daemon.
async fn clear(project: &Project, daemon: Option<Child>) {
    let Some(mut daemon) = daemon else { return };
    let stopped = async {
        if let Some(client) = Client::running(project).await? {
            super::stop::all(&client, CLEAR_PATIENCE).await?;
        }
        stop(&mut daemon).await
    };
    if let Err(report) = stopped.await {
        say(format_args!("not everything of the demo could be stopped: {report}"));
    }
}

async fn play(project: &Project, json: bool, slot: &mut Option<Child>) -> Result<ExitCode, Report> {
    let started = Instant::now();
    say("a daemon starts; agents in six roles build a house of five rooms, three rooms at a time");
    let (daemon, mut client) = start(project).await?;
    let daemon = slot.insert(daemon);
    let wish = json!({
        "request": "Build a house with a hall, a kitchen, a library, a cellar and a garden.",
        "slots": 3, "ward": "sh check.sh", "with": { "harness": "scripted", "script": project.data().join("demo") },
    });
    let made: Value = client.post("/api/quests", &wish).await?;
    let quest: QuestId = made["id"].as_str().unwrap_or_default().parse().context("the daemon gave no id")?;
    let mut following = Following::new(project, client.clone(), 0);
    let mut audit = Audit::default();
    let mut seen = DemoTally::default();
    let mut complete = false;
    while !complete {
        let (line, record) = following.next().await?;
        audit.take(&record)?;
        show(json, &line, &record)?;
        match &record.event {
            Event::Question { what: QuestionEvent::Asked { about: About::Step { .. }, .. }, .. } => {
                seen.asked = true;
                say(format_args!("the demo answers for you: {ANSWER}"));
                let path = format!("/api/questions/{}/answer", record.id);
                let _: Value = client.post(&path, &json!({ "answer": ANSWER })).await?;
            }
            Event::Run { what: RunEvent::Crashed { .. }, .. } => {
                seen.crashes += 1;
                say("an agent crashed; Hatchery resumes it");
            }
            Event::Step { step, what: StepEvent::Begun { role, .. }, .. }
                if role == "codeweaver" && step.as_str() != "hall" =>
            {
                seen.rooms += 1;
                if seen.rooms == KILL_AFTER_ROOMS && !seen.killed {
                    seen.killed = true;
                    daemon.kill().await.context("the daemon cannot be killed")?;
                    say(paint(
                        STRONG,
                        "the demo killed the daemon (kill -9) while three agents were working; a new daemon takes over",
                    ));
                    (*daemon, client) = start(project).await?;
                }
            }
            Event::Quest { what: QuestEvent::Completed, .. } => complete = true,
            _ => {}
        }
    }
    let document: QuestDocument = client.get(&quest_path(&quest.to_string(), "")).await?;
    audit.read_spools(project)?;
    stop(daemon).await?;
    *slot = None;
    report(json, &audit, &seen, &document, started.elapsed())
}

fn show(json: bool, line: &str, record: &Record) -> Result<(), Report> {
    match (json, watch::words(record)) {
        (true, _) => print_json_text(line),
        (false, Some(words)) => print_line(&words),
        (false, None) => Ok(()),
    }
}

/// Says what was lost, and gives the exit code.
fn report(
    json: bool,
    audit: &Audit,
    seen: &DemoTally,
    quest: &QuestDocument,
    took: Duration,
) -> Result<ExitCode, Report> {
    let (complete, all) = quest.progress();
    let played = seen.killed && seen.asked && seen.crashes > 0 && complete == all;
    let whole = audit.lost() == 0 && audit.doubled() == 0 && played;
    if json {
        let counts = json!({
            "whole": whole, "said": audit.messages.spooled, "inTheLog": audit.messages.logged, "calls": audit.calls.spooled,
            "callsTaken": audit.calls.logged,
            "lost": audit.lost(), "doubled": audit.doubled(), "events": audit.events, "steps": all, "complete": complete,
            "seconds": took.as_secs_f64(),
        });
        print_line(&counts.to_string())?;
    } else {
        let verdict = match whole {
            true => paint(GOOD, "nothing was lost"),
            false => paint(BAD, format_args!("{} lost, {} doubled", audit.lost(), audit.doubled())),
        };
        print_line(&format!(
            "{verdict}: agents wrote {} messages, the log has {}; agents made {} tool calls, the log has {}; {complete} of {all} steps are \
             complete; {} events, each once and in order; cost {}; {:.1} s",
            audit.messages.spooled,
            audit.messages.logged,
            audit.calls.spooled,
            audit.calls.logged,
            audit.events,
            quest.spent.cost,
            took.as_secs_f64(),
        ))?;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn start(project: &Project) -> Result<(Child, Client), Report> {
    let program = std::env::current_exe().context("this program cannot be found again")?;
    let mut command = tokio::process::Command::new(program);
    command.args(["up", "--json", "--project"]).arg(project.root());
    // Ctrl-C must reach only the demo, which then stops the daemon and the agents.
    command.process_group(0);
    private_daemon::start(command).await
}

async fn stop(daemon: &mut Child) -> Result<(), Report> {
    if let Some(pid) = daemon.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).context("the daemon cannot be stopped")?;
    }
    daemon.wait().await.context("the daemon did not end").map(drop)
}

fn say(words: impl std::fmt::Display) {
    super::say(paint(DIM, format_args!("  — {words}")));
}
