//! The project's store, opened by a command itself while no daemon runs: for `fsck` and `import`.

use super::CommandContext;
use crate::config::Config;
use crate::daemon;
use crate::project::Lock;
use crate::report::{Context as _, Report};
use crate::store::{self, Store};
use std::io::IsTerminal as _;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// An open store. The fields are dropped in this order: the store needs the runtime, and the lock is released last.
pub(super) struct OwnStore {
    pub store: Arc<dyn Store>,
    _runtime: Runtime,
    _lock: Lock,
}

/// Takes the daemon's lock, so that no daemon starts meanwhile, and opens the store.
pub(super) fn open(context: &CommandContext, config: &Config) -> Result<OwnStore, Report> {
    context.project.prepare()?;
    let lock = context.project.lock()?;
    context.project.begin_database(&config.store)?;
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().context("no runtime")?;
    let store = store::open(&config.store, runtime.handle()).map_err(|error| daemon::explain(error.into()))?;
    Ok(OwnStore { store, _runtime: runtime, _lock: lock })
}

/// Does work that reports how many events it has handled, and shows this number in a terminal meanwhile.
pub(super) fn counting<T>(work: impl FnOnce(&mut dyn FnMut(u64)) -> T) -> T {
    let live = std::io::stderr().is_terminal();
    let done = work(&mut |count| {
        if live {
            anstream::eprint!("\r{count} events");
        }
    });
    if live {
        anstream::eprint!("\r");
    }
    done
}
