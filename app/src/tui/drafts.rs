//! What survives the program, `kill -9` included: the text, place and folds of each agent, and what was typed before. In `.hatchery/tui/`,
//! readable by the user only. A file is written whole beside its place and then renamed.

use super::model::{Desk, Model, Outgoing, PINS};
use super::panel::{Home, Side};
use super::recall::{Entry, MAX_ENTRIES};
use crate::project::Project;
use hatchery_core::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

/// The most desks that are kept. Those with a text are always kept.
const MAX_DESKS: usize = 2_000;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    desks: BTreeMap<AgentId, Desk>,
    front: Desk,
    outbox: Vec<Outgoing>,
    visits: Vec<AgentId>,
    pins: Vec<Option<AgentId>>,
    tree: Option<bool>,
    home: bool,
    side_closed: bool,
    mouse: Option<bool>,
    used: BTreeMap<String, u32>,
}

/// The files of one project, and what was written last.
#[derive(Debug)]
pub struct Drafts {
    folder: PathBuf,
    written: Vec<u8>,
    history: usize,
}

impl Drafts {
    pub fn of(project: &Project) -> Self {
        Self { folder: project.data().join("tui"), written: Vec::new(), history: 0 }
    }

    /// Puts what was kept into the model. A file that cannot be read is left alone, and nothing is kept over it.
    pub fn load(&mut self, model: &mut Model) {
        if let Ok(bytes) = std::fs::read(self.desks())
            && let Ok(kept) = serde_json::from_slice::<Kept>(&bytes)
        {
            self.written = bytes;
            (model.desks, model.front, model.outbox, model.visits) = (kept.desks, kept.front, kept.outbox, kept.visits);
            for (at, pin) in kept.pins.into_iter().enumerate().take(PINS) {
                model.pins[at] = pin;
            }
            (model.tree, model.side_closed, model.used) = (kept.tree, kept.side_closed, kept.used);
            model.mouse = kept.mouse.unwrap_or(model.mouse);
            if kept.home && model.size.0 >= super::draw::SIDE_FROM {
                model.side = Some(Side::Home(Home::default()));
            }
            for outgoing in &mut model.outbox {
                outgoing.number = model.next_number;
                model.next_number += 1;
                if outgoing.id.is_empty() {
                    outgoing.id = format!("{}-{}", model.instance, outgoing.number);
                }
            }
        }
        if let Ok(file) = std::fs::File::open(self.recall()) {
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            let mut entries: Vec<Entry> = lines.filter_map(|line| serde_json::from_str(&line).ok()).collect();
            entries.drain(..entries.len().saturating_sub(MAX_ENTRIES));
            self.history = entries.len();
            model.recall.entries = entries;
        }
    }

    /// Writes what has changed. What cannot be written is told once by the caller.
    pub fn save(&mut self, model: &Model) -> std::io::Result<()> {
        let mut desks = model.desks.clone();
        if desks.len() > MAX_DESKS {
            let visits = &model.visits;
            desks.retain(|agent, desk| !desk.field.is_empty() || visits.contains(agent));
        }
        let kept = Kept {
            desks,
            front: model.front.clone(),
            outbox: model.outbox.clone(),
            visits: model.visits.clone(),
            pins: model.pins.to_vec(),
            tree: model.tree,
            home: matches!(model.side, Some(Side::Home(_))),
            side_closed: model.side_closed,
            mouse: Some(model.mouse),
            used: model.used.clone(),
        };
        let bytes = serde_json::to_vec(&kept)?;
        if bytes != self.written {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(&bytes)?;
            file.persist(self.desks()).map_err(|error| error.error)?;
            self.written = bytes;
        }
        self.save_recall(&model.recall.entries)
    }

    fn save_recall(&mut self, entries: &[Entry]) -> std::io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt as _;
        if entries.len() == self.history {
            return Ok(());
        }
        if entries.len() < self.history || entries.len() >= MAX_ENTRIES {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            for entry in entries {
                writeln!(file, "{}", serde_json::to_string(entry)?)?;
            }
            file.persist(self.recall()).map_err(|error| error.error)?;
        } else {
            // Only the new ones: two terminals on one project add to the same history.
            let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(self.recall())?;
            for entry in &entries[self.history..] {
                file.write_all(format!("{}\n", serde_json::to_string(entry)?).as_bytes())?;
            }
        }
        self.history = entries.len();
        Ok(())
    }

    fn desks(&self) -> PathBuf {
        self.folder.join("desks.json")
    }

    fn recall(&self) -> PathBuf {
        self.folder.join("history.jsonl")
    }
}
