//! What a daemon in the background says: `.hatchery/daemon.log`, which is also its standard error. When the file is full it
//! becomes `daemon.log.1`, in the place of an older one, and a new one is begun.
//!
//! Each line is one write without a buffer, so a killed daemon has lost no line. Lines of several threads
//! come one after the other, because the writer is behind a lock ([`std::sync::Mutex`] is what `tracing` takes).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Weeks of a busy daemon, and still a file that an editor opens.
pub const FULL_BYTES: u64 = 10 << 20;

#[derive(Debug)]
pub struct DaemonLog {
    path: PathBuf,
    file: File,
    written: u64,
    full: u64,
    /// What panics and other words go to has to move along.
    is_stderr: bool,
}

impl DaemonLog {
    /// If standard error is this file, which it is when a command has started us.
    pub fn over_stderr(path: &Path) -> io::Result<Option<Self>> {
        let file = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        match is_at(&file, path)? {
            true => Ok(Some(Self::over(path, file, FULL_BYTES, true)?)),
            false => Ok(None),
        }
    }

    fn over(path: &Path, file: File, full: u64, is_stderr: bool) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), written: file.metadata()?.len(), file, full, is_stderr })
    }

    /// Another process may have been faster: then its new file is ours as well.
    fn turn(&mut self) -> io::Result<()> {
        if is_at(&self.file, &self.path)? {
            std::fs::rename(&self.path, previous(&self.path))?;
        }
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
        if self.is_stderr {
            rustix::stdio::dup2_stderr(&file)?;
        }
        self.written = file.metadata()?.len();
        self.file = file;
        Ok(())
    }
}

impl Write for DaemonLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.written.saturating_add(line.len() as u64) > self.full && self.written > 0 {
            // Better a log that is too long than none. It is tried again when as much has been said once more.
            if let Err(error) = self.turn() {
                self.written = 0;
                writeln!(self.file, "the log is full, and a new one cannot be begun: {error}")?;
            }
        }
        let count = self.file.write(line)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Where the log before this one is.
fn previous(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn log(path: &Path, full: u64) -> DaemonLog {
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        DaemonLog::over(path, file, full, false).unwrap()
    }

    #[test]
    fn a_full_log_makes_way_and_no_line_is_lost_or_torn() {
        const THREADS: usize = 4;
        const LINES: usize = 25;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        // Two thirds of what will be said fit into one: it is full once.
        let log = Mutex::new(log(&path, 700));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let log = &log;
                scope.spawn(move || {
                    for line in 0..LINES {
                        log.lock().unwrap().write_all(format!("{thread} says {line:02}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let [old, new] = [previous(&path), path].map(|path| std::fs::read_to_string(path).unwrap());
        assert!(old.len() <= 700 && new.len() <= 700, "{} {}", old.len(), new.len());
        let mut lines: Vec<String> = old.lines().chain(new.lines()).map(str::to_owned).collect();
        lines.sort();
        let all = (0..THREADS).flat_map(|thread| (0..LINES).map(move |line| format!("{thread} says {line:02}")));
        assert_eq!(lines, all.collect::<Vec<_>>());
    }

    #[test]
    fn one_old_log_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        let mut log = log(&path, 10);
        for line in ["first\n", "second\n", "third\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(previous(&path)).unwrap(), "second\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "third\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_another_process_has_begun_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        let [mut ours, mut theirs] = [log(&path, 10), log(&path, 10)];
        ours.write_all(b"ours 1\n").unwrap();
        theirs.write_all(b"their 1\n").unwrap();
        theirs.write_all(b"their 2\n").unwrap();
        ours.write_all(b"ours 2\n").unwrap();
        assert_eq!(std::fs::read_to_string(previous(&path)).unwrap(), "ours 1\ntheir 1\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "their 2\nours 2\n");
    }

    #[test]
    fn a_log_that_cannot_make_way_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        std::fs::create_dir_all(previous(&path).join("in the way")).unwrap();
        let mut log = log(&path, 10);
        for line in ["first\n", "second\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        let said = std::fs::read_to_string(&path).unwrap();
        assert!(said.starts_with("first\nthe log is full") && said.ends_with("\nsecond\n"), "{said}");
    }
}
