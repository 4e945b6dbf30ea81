//! Runs file I/O, fsyncs and scans of the process table on threads that may block, so that they never delay the runtime's
//! workers.

use std::io;

/// Runs the work on a blocking thread and waits for its result. When the caller is dropped, the work still runs to its end.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
