//! `hatchery up`

use super::{CommandContext, paint, print_line, say};
use crate::client::ending::{self, end_daemon};
use crate::client::ready_line::ReadyLine;
use crate::config::{Config, Flags};
use crate::daemon::{Daemon, EndSignals};
use crate::daemon_log::DaemonLog;
use crate::report::{Context as _, Report};
use crate::trust;
use std::io::IsTerminal as _;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::runtime::Runtime;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// Run the project's daemon in the foreground, until Ctrl-C or `hatchery down`
///
/// Other commands start a daemon in the background when they need one, so you rarely need this command. By default the daemon
/// listens on a free port of 127.0.0.1 and requires the token in .hatchery/token. The printed link contains the token. With
/// --json the daemon prints one line when it is ready: {"pid":…,"token":…,"url":…}.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: hatchery up --port 4780 --store postgres://me@localhost/hatchery")]
pub struct Args {
    /// Listen on this port [default: a free one]
    #[arg(long, value_name = "N")]
    port: Option<u16>,

    /// Listen on this address [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    /// The store of the log: sqlite:PATH or postgres://USER@HOST/DATABASE [default: sqlite:.hatchery/hatchery.db]
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Continue although the log has lost events or was replaced by another log. The ids of lost events are used again
    #[arg(long)]
    accept_loss: bool,

    /// Do not open the page in a browser
    #[arg(long)]
    no_open: bool,

    /// Stop the running daemon and take its place; agents keep working meanwhile
    #[arg(long)]
    replace: bool,

    /// With --replace: kill a running daemon that does not react within 2 seconds, or has not ended after 30 seconds
    #[arg(long, requires = "replace")]
    force: bool,
}

/// How long the replaced daemon may take to end.
const REPLACE_LIMIT: Duration = Duration::from_secs(30);

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let flags = Flags {
        listen: args.listen.clone(),
        port: args.port,
        store: args.store.clone(),
        no_open: args.no_open || context.json,
        ..Flags::default()
    };
    let config = Config::resolve(&context.project, &flags)?;
    if args.replace {
        // These checks could prevent the new daemon from starting, so they are made before the old daemon is ended.
        context.project.prepare()?;
        trust::check(&context.project, &config.file)?;
        let by_force = "hatchery up --replace --force";
        end_daemon(&context.project, ending::EndRequest { wait: REPLACE_LIMIT, force: args.force, by_force })?;
    }
    super::start_logging(&config.log, log_writer(context)?)?;
    // Declared before the runtime, so that the lock is released after all tasks of the daemon have ended, also if the daemon panics.
    let held = OnceLock::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |cores| cores.get().min(4)))
        .enable_all()
        .build()
        .context("no runtime")?;
    let handle = runtime.handle().clone();
    let _ending = BoundedRuntime(Some(runtime));
    handle.block_on(async {
        let (auth, open) = (config.auth, config.open);
        let mut farewell = EndSignals::listen()?;
        context.project.prepare()?;
        let lock = Arc::new(context.project.lock()?);
        let lock = Arc::clone(held.get_or_init(|| lock));
        let mut preparing = pin!(Daemon::prepare(context.project.clone(), lock, flags, config, args.accept_loss));
        let daemon = tokio::select! {
            daemon = &mut preparing => daemon?,
            // The user can interrupt the start, for example if the store cannot be reached. The process exits at once and keeps the lock until
            // then, so that the half-started engine and the next daemon never run at the same time.
            () = farewell.asked() => std::process::exit(0),
        };
        let link = daemon.link(auth);
        if context.json {
            let ready = ReadyLine { pid: std::process::id(), token: daemon.token.clone(), url: daemon.url.clone() };
            print_line(&serde_json::to_string(&ready).context("the address cannot be written")?)?;
        } else {
            print_line(&format!("Hatchery serves {}", context.project.root().display()))?;
            print_line(&format!("  {}", paint::paint(paint::STRONG, &link)))?;
            if let Some(address) = daemon.exposed {
                let warning = paint::paint(paint::WARN, "warning:");
                say(format_args!(
                    "{warning} it listens on {address}, where other machines may reach it; the API and its token go over the network without \
                     encryption. On another machine, put this machine's address into the link. docs/security.md says more"
                ));
            }
            print_line(&paint::paint(paint::DIM, "  Ctrl-C stops it; nothing is lost by stopping."))?;
            if open && std::io::stdout().is_terminal() && open::that_detached(&link).is_err() {
                tracing::info!("no browser could be opened");
            }
        }
        daemon.serve(farewell).await
    })?;
    Ok(ExitCode::SUCCESS)
}

/// How long tasks may still run after the daemon has ended.
const LAST_TASKS: Duration = Duration::from_secs(1);

/// A runtime whose drop takes at most `LAST_TASKS`. Otherwise a task that waits would keep the process alive.
struct BoundedRuntime(Option<Runtime>);

impl Drop for BoundedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(LAST_TASKS);
        }
    }
}

/// Where the daemon's log lines go: to its log file, whose size is limited, or to the standard error that the user has chosen.
fn log_writer(context: &CommandContext) -> Result<BoxMakeWriter, Report> {
    let path = context.project.daemon_log();
    let log = DaemonLog::over_stderr(&path).context(format_args!("{} cannot be looked at", path.display()))?;
    Ok(match log {
        Some(log) => BoxMakeWriter::new(Mutex::new(log)),
        None => BoxMakeWriter::new(std::io::stderr),
    })
}
