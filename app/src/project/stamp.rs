//! Where `.hatchery` was made. A log can have programs run, so a log that came with a clone, an archive or a copy is not opened
//! before the user has said so. The stamp names the folder's inode and the time of its creation, which no archive can bring along.

use super::{MAKE_ROOM, Project, write_whole};
use crate::clock;
use crate::report::{Context as _, Report};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

/// What only a daemon puts there. A folder with one of these and without a stamp was made elsewhere.
const SIGNS: [&str; 7] = ["hatchery.db", "host", "token", "runs", "quests", "head.json", "trust.json"];

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    /// Nanoseconds since 1970; missing where the file system does not keep it.
    born: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Here,
    /// No daemon has used the folder yet.
    Unused,
    Elsewhere,
}

impl Project {
    /// Refuses a data folder that was not made in this place. An empty one is stamped.
    pub(super) fn check_stamp(&self) -> Result<(), Report> {
        let data = self.data();
        let here = self.stamp_here()?;
        match self.origin(&here) {
            Origin::Here => Ok(()),
            Origin::Unused => self.write_stamp(&here),
            Origin::Elsewhere => Err(Report::failed(format_args!(
                "{} was not made here: it was cloned, copied or unpacked, and its log could have programs run",
                data.display()
            ))
            .hint("`hatchery trust` accepts it; to begin a log of your own, delete the folder")),
        }
    }

    /// True when the data folder is there and was made elsewhere.
    pub fn is_foreign(&self) -> bool {
        self.stamp_here().is_ok_and(|here| self.origin(&here) == Origin::Elsewhere)
    }

    fn origin(&self, here: &Stamp) -> Origin {
        let kept = std::fs::read(self.stamp_file()).ok().map(|bytes| serde_json::from_slice::<Stamp>(&bytes));
        let used = || SIGNS.iter().any(|sign| self.data().join(sign).symlink_metadata().is_ok());
        match kept {
            Some(Ok(kept)) if kept == *here => Origin::Here,
            None if !used() => Origin::Unused,
            _ => Origin::Elsewhere,
        }
    }

    /// Takes the data folder as made here. It becomes another host, so that a copy of a project on a shared store does not take
    /// the original's processes for its own.
    pub fn adopt_data(&self, new_host: bool) -> Result<(), Report> {
        self.refuse_links()?;
        if new_host {
            let path = self.host_file();
            write_whole(&path, clock::new_uuid().as_bytes(), 0o600)
                .context(format_args!("{} cannot be written", path.display()))?;
        }
        let here = self.stamp_here()?;
        self.write_stamp(&here)
    }

    fn stamp_here(&self) -> Result<Stamp, Report> {
        let data = self.data();
        let found = std::fs::metadata(&data).context(format_args!("{} cannot be read", data.display()))?;
        let born = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Ok(Stamp { inode: found.ino(), born: born.and_then(|at| u64::try_from(at.as_nanos()).ok()) })
    }

    fn write_stamp(&self, stamp: &Stamp) -> Result<(), Report> {
        let path = self.stamp_file();
        let text = serde_json::to_vec(stamp).context("the stamp cannot be described")?;
        write_whole(&path, &text, 0o600)
            .context(format_args!("{} cannot be written", path.display()))
            .map_err(|report| report.hint(MAKE_ROOM))
    }

    fn stamp_file(&self) -> PathBuf {
        self.data().join("stamp.json")
    }
}
