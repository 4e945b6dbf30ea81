//! What survives the program, `kill -9` included: the text, place and folds of each agent, and what was typed before. In `.hatchery/tui/`,
//! readable by the user only. A file is written whole beside its place and then renamed.

use super::field::Field;
use super::model::{Desk, Model, MouseChosen, Outgoing, PINS};
use super::panel::{Home, QuestPanel, Sheet, SheetKind, Side};
use super::recall::{Entry, MAX_ENTRIES, shorten};
use crate::clock;
use crate::project::Project;
use hatchery_core::{AgentId, QuestId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

/// The most desks that are kept. Those with a text are always kept.
const MAX_DESKS: usize = 2_000;
/// The file with the history may have so many lines more than are read, so that it is not written anew with each line.
const MORE_LINES: usize = 1_000;
/// It is written anew when it is longer than this, too: long pastes are in it.
const MAX_HISTORY_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    desks: BTreeMap<AgentId, Desk>,
    front: Desk,
    outbox: Vec<Outgoing>,
    own: BTreeMap<String, Field>,
    visits: Vec<AgentId>,
    pins: Vec<Option<AgentId>>,
    tree: Option<bool>,
    /// As an older program has written it.
    #[serde(skip_serializing)]
    home: bool,
    side: Option<KeptSide>,
    side_closed: bool,
    mouse_chosen: Option<MouseChosen>,
    used: BTreeMap<String, u32>,
}

/// The panel that was open. What it shows is read anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptSide {
    Home,
    Quest(QuestId),
    List(SheetKind),
}

/// The files of one project, and what was written last.
#[derive(Debug)]
pub struct Drafts {
    folder: PathBuf,
    /// What this terminal has written last. Another terminal may have written since.
    written: Option<Kept>,
    /// The file as this terminal has left it: its inode, and its time in nanoseconds.
    left: Option<(u64, i64)>,
    /// Another terminal writes the file, too: it is read before it is written.
    is_shared: bool,
    /// Why nothing may be written over the file.
    untouchable: Option<String>,
    /// How many entries of the history are on disk, of those that were added here.
    saved: usize,
    /// How many lines the history has on disk.
    lines: usize,
}

impl Drafts {
    pub fn of(project: &Project) -> Self {
        Self::in_folder(project.data().join("tui"))
    }

    fn in_folder(folder: PathBuf) -> Self {
        Self { folder, written: None, left: None, is_shared: false, untouchable: None, saved: 0, lines: 0 }
    }

    /// Puts what was kept into the model. A file that cannot be read is put aside under another name, and nothing is written over it.
    pub fn load(&mut self, model: &mut Model) {
        match self.read() {
            Ok(Some(kept)) => {
                put_into(model, kept.clone());
                (self.written, self.left) = (Some(kept), self.stamp());
            }
            Ok(None) => {}
            Err(why) => {
                let aside = format!("desks-unreadable-{}.json", clock::now().0);
                match std::fs::rename(self.desks(), self.folder.join(&aside)) {
                    Ok(()) => model.say(format!("Your kept texts cannot be read: {why}. They are in {aside}.")),
                    Err(_) => self.untouchable = Some(format!("{} cannot be read: {why}", self.desks().display())),
                }
            }
        }
        if let Ok(file) = std::fs::File::open(self.recall()) {
            let lines: Vec<String> = BufReader::new(file).lines().map_while(Result::ok).collect();
            self.lines = lines.len();
            model.recall.entries = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
            shorten(&mut model.recall.entries);
        }
    }

    /// Writes what has changed. What cannot be written is told by the caller.
    pub fn save(&mut self, model: &mut Model) -> std::io::Result<()> {
        if let Some(why) = &self.untouchable {
            return Err(std::io::Error::other(why.clone()));
        }
        let mine = kept_of(model);
        if self.written.as_ref() != Some(&mine) {
            self.is_shared |= self.stamp() != self.left;
            let others = if self.is_shared { self.read().ok().flatten() } else { None };
            let mut file = mine.clone();
            if let Some(others) = others {
                for (agent, text) in merge(&mut file, others, self.written.as_ref()) {
                    model.recall.set_aside(Some(agent), &text);
                }
            }
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let mut beside = tempfile::NamedTempFile::new_in(&self.folder)?;
            beside.write_all(&serde_json::to_vec(&file)?)?;
            beside.persist(self.desks()).map_err(|error| error.error)?;
            (self.written, self.left) = (Some(mine), self.stamp());
        }
        self.save_recall(model)
    }

    fn read(&self) -> Result<Option<Kept>, String> {
        match std::fs::read(self.desks()) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Tells one state of the file from another one: each is a file of its own.
    fn stamp(&self) -> Option<(u64, i64)> {
        let about = std::fs::metadata(self.desks()).ok()?;
        Some((about.ino(), about.mtime() * 1_000_000_000 + about.mtime_nsec()))
    }

    /// Only what is new is added: two terminals on one project have one history.
    fn save_recall(&mut self, model: &Model) -> std::io::Result<()> {
        let recall = &model.recall;
        let new = (recall.added - self.saved).min(recall.entries.len());
        if new == 0 {
            return Ok(());
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(self.recall())?;
        for entry in &recall.entries[recall.entries.len() - new..] {
            file.write_all(format!("{}\n", serde_json::to_string(entry)?).as_bytes())?;
        }
        (self.saved, self.lines) = (recall.added, self.lines + new);
        if self.lines > MAX_ENTRIES + MORE_LINES || file.metadata()?.len() > MAX_HISTORY_BYTES {
            self.shorten_history()?;
        }
        Ok(())
    }

    fn shorten_history(&mut self) -> std::io::Result<()> {
        let lines = BufReader::new(std::fs::File::open(self.recall())?).lines();
        let mut entries: Vec<Entry> =
            lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()).collect();
        shorten(&mut entries);
        let mut beside = tempfile::NamedTempFile::new_in(&self.folder)?;
        for entry in &entries {
            writeln!(beside, "{}", serde_json::to_string(entry)?)?;
        }
        beside.persist(self.recall()).map_err(|error| error.error)?;
        self.lines = entries.len();
        Ok(())
    }

    fn desks(&self) -> PathBuf {
        self.folder.join("desks.json")
    }

    fn recall(&self) -> PathBuf {
        self.folder.join("history.jsonl")
    }
}

fn put_into(model: &mut Model, kept: Kept) {
    (model.desks, model.front, model.outbox, model.visits) = (kept.desks, kept.front, kept.outbox, kept.visits);
    for (at, pin) in kept.pins.into_iter().enumerate().take(PINS) {
        model.pins[at] = pin;
    }
    (model.own, model.tree, model.side_closed, model.used) = (kept.own, kept.tree, kept.side_closed, kept.used);
    model.mouse_chosen = kept.mouse_chosen.filter(|chosen| chosen.instead_of == model.mouse_set);
    model.mouse = model.mouse_chosen.map_or(model.mouse, |chosen| chosen.on);
    let side = kept.side.or(kept.home.then_some(KeptSide::Home));
    model.side = side.filter(|_| model.size.0 >= super::draw::SIDE_FROM).map(|side| match side {
        KeptSide::Home => Side::Home(Home::default()),
        KeptSide::Quest(quest) => Side::Quest(QuestPanel { quest, step: 0, ward: None, scroll: 0 }),
        KeptSide::List(kind) => Side::Sheet(Sheet::loading(kind, None, kind.title())),
    });
    for outgoing in &mut model.outbox {
        outgoing.number = model.next_number;
        model.next_number += 1;
        if outgoing.id.is_empty() {
            outgoing.id = format!("{}-{}", model.instance, outgoing.number);
        }
    }
}

fn kept_of(model: &Model) -> Kept {
    let mut desks = model.desks.clone();
    if desks.len() > MAX_DESKS {
        let visits = &model.visits;
        desks.retain(|agent, desk| !desk.field.is_empty() || visits.contains(agent));
    }
    // What is not stored must not make a difference.
    let outbox = model.outbox.iter().map(|it| Outgoing { number: 0, sending: false, event: None, ..it.clone() });
    let desks = desks.into_iter().map(|(agent, desk)| (agent, desk.stored())).collect();
    Kept {
        desks,
        front: model.front.stored(),
        outbox: outbox.collect(),
        own: model
            .own
            .iter()
            .filter(|(_, field)| !field.is_empty())
            .map(|(need, it)| (need.clone(), it.stored()))
            .collect(),
        visits: model.visits.clone(),
        pins: model.pins.to_vec(),
        tree: model.tree,
        home: false,
        side: model.side.as_ref().map(|side| match side {
            Side::Home(_) => KeptSide::Home,
            Side::Quest(panel) => KeptSide::Quest(panel.quest),
            Side::Sheet(sheet) => KeptSide::List(sheet.kind),
        }),
        side_closed: model.side_closed,
        mouse_chosen: model.mouse_chosen,
        used: model.used.clone(),
    }
}

/// Another terminal has written since. What was not touched here stays as it has written it; where both have changed a text, this one is
/// kept and the other one is given back, for the history.
fn merge(mine: &mut Kept, others: Kept, before: Option<&Kept>) -> Vec<(AgentId, String)> {
    let mut lost = Vec::new();
    for (agent, theirs) in others.desks {
        let was = before.and_then(|before| before.desks.get(&agent));
        match mine.desks.get(&agent) {
            Some(desk) if Some(desk) != was => {
                let is_lost = theirs.field.whole() != desk.field.whole()
                    && was.is_none_or(|was| was.field.whole() != theirs.field.whole());
                lost.extend((is_lost && !theirs.field.is_empty()).then(|| (agent, theirs.field.whole())));
            }
            Some(_) | None => {
                mine.desks.insert(agent, theirs);
            }
        }
    }
    let was_mine = |id: &str| before.is_some_and(|before| before.outbox.iter().any(|it| it.id == id));
    let known: Vec<String> = mine.outbox.iter().map(|it| it.id.clone()).collect();
    mine.outbox.extend(others.outbox.into_iter().filter(|it| !known.contains(&it.id) && !was_mine(&it.id)));
    for (need, words) in others.own {
        let was_mine = before.is_some_and(|before| before.own.contains_key(&need));
        if !was_mine {
            mine.own.entry(need).or_insert(words);
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::look::Look;
    use hatchery_core::Timestamp;

    fn model() -> Model {
        Model::new((200, 40), Timestamp(0), Look::PLAIN)
    }

    fn agent(last: u8) -> AgentId {
        AgentId::from_bytes([last; 16])
    }

    fn typed(model: &mut Model, agent: AgentId, text: &str) {
        model.desks.entry(agent).or_default().field = Field::of(text);
    }

    fn text_of(model: &Model, agent: AgentId) -> String {
        model.desks.get(&agent).map(|desk| desk.field.whole()).unwrap_or_default()
    }

    /// What a terminal that starts now would have.
    fn loaded(folder: &std::path::Path) -> Model {
        let mut model = model();
        Drafts::in_folder(folder.to_owned()).load(&mut model);
        model
    }

    #[test]
    fn what_is_open_and_what_was_typed_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut mine = model();
        typed(&mut mine, agent(1), "half a thou");
        mine.own.insert("q7".into(), Field::of("not this one"));
        mine.side = Some(Side::Sheet(Sheet::loading(SheetKind::Cost, None, "Cost")));
        Drafts::in_folder(folder.path().to_owned()).save(&mut mine).unwrap();
        let again = loaded(folder.path());
        assert_eq!(
            (text_of(&again, agent(1)).as_str(), again.own["q7"].whole().as_str()),
            ("half a thou", "not this one")
        );
        assert!(matches!(&again.side, Some(Side::Sheet(sheet)) if sheet.kind == SheetKind::Cost), "{:?}", again.side);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("desks.json"), "{ \"desks\": from another version").unwrap();
        let mut drafts = Drafts::in_folder(folder.path().to_owned());
        let mut mine = model();
        drafts.load(&mut mine);
        assert!(mine.notice().is_some_and(|notice| notice.contains("desks-unreadable-")), "{:?}", mine.notice());
        typed(&mut mine, agent(1), "new");
        drafts.save(&mut mine).unwrap();
        let names: Vec<PathBuf> = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()).collect();
        let aside = names.iter().find(|path| path.to_string_lossy().contains("unreadable")).unwrap();
        assert_eq!(std::fs::read_to_string(aside).unwrap(), "{ \"desks\": from another version");
        assert_eq!(text_of(&loaded(folder.path()), agent(1)), "new");
    }

    /// The last one to write wins, and the other text is in the history.
    #[test]
    fn two_terminals_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (model(), model());
        let mut drafts = [(); 2].map(|()| Drafts::in_folder(folder.path().to_owned()));
        drafts[0].load(&mut one);
        drafts[1].load(&mut other);
        typed(&mut one, agent(1), "of the first");
        typed(&mut one, agent(2), "only here");
        drafts[0].save(&mut one).unwrap();
        typed(&mut other, agent(1), "of the second");
        drafts[1].save(&mut other).unwrap();
        typed(&mut other, agent(1), "of the second, longer");
        drafts[1].save(&mut other).unwrap();
        let again = loaded(folder.path());
        assert_eq!(text_of(&again, agent(1)), "of the second, longer");
        assert_eq!(text_of(&again, agent(2)), "only here");
        let kept: Vec<&str> = again.recall.entries.iter().map(|entry| entry.text.as_str()).collect();
        assert_eq!(kept, ["of the first"]);
    }

    #[test]
    fn the_history_is_kept_beyond_its_bound_and_long_texts_are_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut drafts = Drafts::in_folder(folder.path().to_owned());
        let mut mine = model();
        for number in 0..=MAX_ENTRIES + MORE_LINES {
            mine.recall.keep(None, &format!("text {number}"));
        }
        drafts.save(&mut mine).unwrap();
        let long = "a long line\n".repeat(80_000);
        mine.recall.set_aside(None, &long);
        mine.recall.keep(None, "the last one");
        drafts.save(&mut mine).unwrap();
        let again = loaded(folder.path());
        assert_eq!(again.recall.entries.len(), MAX_ENTRIES);
        let texts: Vec<&str> = again.recall.entries.iter().rev().take(3).map(|it| it.text.as_str()).collect();
        assert_eq!(texts[0], "the last one");
        assert!(texts[1] == long.trim_end());
        assert_eq!(texts[2], format!("text {}", MAX_ENTRIES + MORE_LINES));
    }

    /// What was chosen by hand holds until the setting is changed.
    #[test]
    fn the_setting_of_the_mouse_counts_again_when_it_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let start = |set: bool| {
            let mut model = model();
            (model.mouse, model.mouse_set) = (set, set);
            let mut drafts = Drafts::in_folder(folder.path().to_owned());
            drafts.load(&mut model);
            drafts.save(&mut model).unwrap();
            (model, drafts)
        };
        assert!(!start(false).0.mouse);
        let (mut model, mut drafts) = start(true);
        assert!(model.mouse);
        model.choose_mouse(false);
        drafts.save(&mut model).unwrap();
        assert!(!start(true).0.mouse);
        assert!(!start(false).0.mouse);
        assert!(start(true).0.mouse);
    }
}
