//! The limit on the size of files (`ulimit -f`). A write beyond it sends a signal that ends the process. A signal that is heard does not end
//! it: the write fails instead, as on a full disk.

use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// From now on such a write fails. Programs that this one starts get the usual signal again, because only ignored signals are inherited.
pub fn outlive() -> io::Result<()> {
    let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    // The handler stays for the life of the process, also without the runtime.
    signal(kind).map(drop)
}
