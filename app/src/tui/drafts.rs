//! What survives the program, `kill -9` included: the text, place and folds of each agent, and what was typed before. In `.hatchery/tui/`,
//! readable by the user only. A file is written whole beside its place and then renamed.

use super::field::Field;
use super::model::{Desk, Model, MouseChosen, Outgoing, OwnWords, PINS};
use super::panel::{Home, QuestPanel, Sheet, SheetKind, Side};
use super::recall::{MAX_ENTRIES, SentText, shorten};
use crate::clock;
use crate::project::Project;
use crate::shared_file::FolderLock;
use hatchery_core::{AgentId, QuestId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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
struct DraftsFile {
    desks: BTreeMap<AgentId, Desk>,
    front: Desk,
    outbox: Vec<Outgoing>,
    own: BTreeMap<String, OwnWords>,
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
    /// What this terminal had when it has last read or written the file. Another terminal may have written since.
    written: DraftsFile,
    /// The file as this terminal has left it: its inode, and its time in nanoseconds.
    left: Option<(u64, i64)>,
    /// Another terminal writes the file, too: it has what this one does not know.
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
        Self {
            folder,
            written: DraftsFile::default(),
            left: None,
            is_shared: false,
            untouchable: None,
            saved: 0,
            lines: 0,
        }
    }

    /// Puts what was kept into the model.
    pub fn load(&mut self, model: &mut Model) {
        // What is written after this moment is read before the next save.
        self.left = self.stamp();
        if let Some(kept) = self.read(model) {
            put_into(model, kept.clone());
            self.written = kept;
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
        let mine = kept_of(model);
        let is_changed = self.written != mine;
        if !is_changed && model.recall.added == self.saved {
            return Ok(());
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let _lock = FolderLock::acquire(&self.folder)?;
        let mut file = mine.clone();
        self.is_shared |= self.stamp() != self.left;
        if is_changed
            && self.is_shared
            && let Some(theirs) = self.read(model)
        {
            for (agent, text) in merge(&mut file, theirs, &self.written) {
                model.recall.set_aside(agent, &text);
            }
        }
        if let Some(why) = &self.untouchable {
            return Err(std::io::Error::other(why.clone()));
        }
        // The history comes first: it has the texts that are overwritten below.
        self.save_recall(model)?;
        if is_changed {
            let mut beside = tempfile::NamedTempFile::new_in(&self.folder)?;
            beside.write_all(&serde_json::to_vec(&file)?)?;
            beside.persist(self.desks()).map_err(|error| error.error)?;
            (self.written, self.left) = (mine, self.stamp());
        }
        Ok(())
    }

    /// What is in the file, if there is one. A file that cannot be read is put aside under another name, and nothing is written over it.
    fn read(&mut self, model: &mut Model) -> Option<DraftsFile> {
        let read = match std::fs::read(self.desks()) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => Err(error.to_string()),
        };
        let why = match read {
            Ok(kept) => return Some(kept),
            Err(why) => why,
        };
        let aside = format!("desks-unreadable-{}.json", clock::now().0);
        match std::fs::rename(self.desks(), self.folder.join(&aside)) {
            Ok(()) => model.say(format!("Your kept texts cannot be read: {why}. They are in {aside}.")),
            Err(_) => self.untouchable = Some(format!("{} cannot be read: {why}", self.desks().display())),
        }
        None
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
        let mut entries: Vec<SentText> =
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

fn put_into(model: &mut Model, kept: DraftsFile) {
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

fn kept_of(model: &Model) -> DraftsFile {
    let mut desks = model.desks.clone();
    if desks.len() > MAX_DESKS {
        let visits = &model.visits;
        desks.retain(|agent, desk| !desk.field.is_empty() || visits.contains(agent));
    }
    // What is not stored must not make a difference.
    let outbox = model.outbox.iter().map(|it| Outgoing { number: 0, sending: false, event: None, ..it.clone() });
    let desks = desks.into_iter().map(|(agent, desk)| (agent, desk.stored())).collect();
    DraftsFile {
        desks,
        front: model.front.stored(),
        outbox: outbox.collect(),
        own: model
            .own
            .iter()
            .filter(|(_, words)| !words.field.is_empty())
            .map(|(need, words)| (need.clone(), OwnWords { agent: words.agent, field: words.field.stored() }))
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

/// Another terminal has written since. What was not changed here stays as the other one has left it, also where that is nothing. Where
/// both have changed a text, this one is kept and the other one is given back, for the history.
fn merge(mine: &mut DraftsFile, theirs: DraftsFile, before: &DraftsFile) -> Vec<(Option<AgentId>, String)> {
    let mut lost = Vec::new();
    let agents: BTreeSet<AgentId> = mine.desks.keys().chain(theirs.desks.keys()).copied().collect();
    let none = Desk::default();
    for agent in agents {
        let of = |kept: &BTreeMap<AgentId, Desk>| kept.get(&agent).unwrap_or(&none).clone();
        let (desk, text) = merge_desk(of(&mine.desks), of(&theirs.desks), &of(&before.desks));
        lost.extend(text.map(|text| (Some(agent), text)));
        mine.desks.insert(agent, desk);
    }
    mine.desks.retain(|_, desk| *desk != none);
    let (front, text) = merge_desk(mine.front.clone(), theirs.front, &before.front);
    lost.extend(text.map(|text| (None, text)));
    mine.front = front;
    let needs: BTreeSet<String> = mine.own.keys().chain(theirs.own.keys()).cloned().collect();
    let none = OwnWords::default();
    for need in needs {
        let of = |kept: &BTreeMap<String, OwnWords>| kept.get(&need).unwrap_or(&none).clone();
        let other = of(&theirs.own);
        let (field, text) = merge_text(of(&mine.own).field, other.field, &of(&before.own).field);
        let agent = of(&mine.own).agent.or(other.agent);
        lost.extend(text.map(|text| (agent, text)));
        mine.own.insert(need, OwnWords { agent, field });
    }
    mine.own.retain(|_, words| !words.field.is_empty());
    // What waits to be sent is never changed. It comes, and it goes when it was sent or taken back.
    let is_known = |it: &Outgoing| before.outbox.iter().any(|known| known.id == it.id);
    let is_left = |it: &Outgoing| theirs.outbox.iter().any(|left| left.id == it.id);
    mine.outbox.retain(|it| !is_known(it) || is_left(it));
    let came = theirs.outbox.iter().filter(|it| !is_known(it) && !mine.outbox.iter().any(|own| own.id == it.id));
    let came: Vec<Outgoing> = came.cloned().collect();
    mine.outbox.extend(came);
    newer(&mut mine.visits, theirs.visits, &before.visits);
    newer(&mut mine.pins, theirs.pins, &before.pins);
    newer(&mut mine.tree, theirs.tree, &before.tree);
    newer(&mut mine.side, theirs.side, &before.side);
    newer(&mut mine.side_closed, theirs.side_closed, &before.side_closed);
    newer(&mut mine.mouse_chosen, theirs.mouse_chosen, &before.mouse_chosen);
    newer(&mut mine.used, theirs.used, &before.used);
    lost
}

fn newer<T: PartialEq>(mine: &mut T, theirs: T, before: &T) {
    if mine == before {
        *mine = theirs;
    }
}

/// The text and the place are two things: where one reads changes by itself.
fn merge_desk(mine: Desk, theirs: Desk, before: &Desk) -> (Desk, Option<String>) {
    let place = |desk: &Desk| Desk { field: Field::default(), purpose: None, begun_on: None, ..desk.clone() };
    let mut desk = place(&mine);
    newer(&mut desk, place(&theirs), &place(before));
    let from = if mine.field.whole() == before.field.whole() { &theirs } else { &mine };
    (desk.purpose, desk.begun_on) = (from.purpose, from.begun_on);
    let (field, lost) = merge_text(mine.field, theirs.field, &before.field);
    (Desk { field, ..desk }, lost)
}

/// The text that stays, and the other one where that would be lost.
fn merge_text(mine: Field, theirs: Field, before: &Field) -> (Field, Option<String>) {
    let (text, other, was) = (mine.whole(), theirs.whole(), before.whole());
    if text == was {
        return (theirs, None);
    }
    let is_lost = other != was && other != text && !other.is_empty();
    (mine, is_lost.then_some(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::look::Look;
    use hatchery_core::Timestamp;
    use proptest::prelude::*;

    fn model() -> Model {
        Model::new((200, 40), Timestamp(0), Look::PLAIN)
    }

    fn agent(last: u8) -> AgentId {
        AgentId::from_bytes([last; 16])
    }

    fn typed(model: &mut Model, agent: AgentId, text: &str) {
        model.desks.entry(agent).or_default().field = Field::of(text);
    }

    fn own(text: &str) -> OwnWords {
        OwnWords { agent: Some(agent(7)), field: Field::of(text) }
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
        mine.own.insert("q7".into(), own("not this one"));
        mine.side = Some(Side::Sheet(Sheet::loading(SheetKind::Cost, None, "Cost")));
        Drafts::in_folder(folder.path().to_owned()).save(&mut mine).unwrap();
        let again = loaded(folder.path());
        assert_eq!(
            (text_of(&again, agent(1)).as_str(), again.own["q7"].field.whole().as_str()),
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

    /// A terminal, its files, and what it does until it saves.
    struct Terminal {
        model: Model,
        drafts: Drafts,
    }

    impl Terminal {
        fn open(folder: &std::path::Path) -> Self {
            let mut terminal = Self { model: model(), drafts: Drafts::in_folder(folder.to_owned()) };
            terminal.drafts.load(&mut terminal.model);
            terminal
        }

        fn does(&mut self, what: impl FnOnce(&mut Model)) {
            what(&mut self.model);
            self.drafts.save(&mut self.model).unwrap();
        }
    }

    fn history(model: &Model) -> Vec<(Option<AgentId>, &str)> {
        model.recall.entries.iter().map(|entry| (entry.agent, entry.text.as_str())).collect()
    }

    /// The text without an agent and answers in own words are merged like every other text.
    #[test]
    fn two_terminals_lose_no_text_that_has_no_agent_in_front() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (Terminal::open(folder.path()), Terminal::open(folder.path()));
        one.does(|model| {
            model.front.field = Field::of("start something");
            model.own.insert("q1".into(), own("first"));
            model.own.insert("q2".into(), own("for two"));
        });
        other.does(|model| drop(model.own.insert("q1".into(), own("second"))));
        let again = loaded(folder.path());
        assert_eq!(again.front.field.whole(), "start something");
        assert_eq!((again.own["q1"].field.whole(), again.own["q2"].field.whole()), ("second".into(), "for two".into()));
        assert_eq!(history(&again), [(Some(agent(7)), "first")]);
        // The same where both had the answer from the file.
        let (mut one, mut other) = (Terminal::open(folder.path()), Terminal::open(folder.path()));
        one.does(|model| drop(model.own.insert("q1".into(), own("second and more"))));
        other.does(|model| drop(model.own.insert("q1".into(), own("another one"))));
        other.does(|model| model.front.field = Field::of("another start"));
        let again = loaded(folder.path());
        assert_eq!(again.own["q1"].field.whole(), "another one");
        assert_eq!(history(&again), [(Some(agent(7)), "first"), (Some(agent(7)), "second and more")]);
        one.does(|model| model.front.field = Field::of("start something else"));
        assert_eq!(history(&loaded(folder.path())).last(), Some(&(None, "another start")));
    }

    /// What was sent, or taken back, does not come back from the other terminal.
    #[test]
    fn what_is_gone_in_one_terminal_stays_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = Terminal::open(folder.path());
        one.does(|model| {
            typed(model, agent(1), "half a thought");
            model.own.insert("q1".into(), own("an answer"));
            model.front.field = Field::of("a start");
            model.put_out(agent(1), Field::of("waits"));
        });
        let mut other = Terminal::open(folder.path());
        one.does(|model| {
            typed(model, agent(1), "");
            model.own.clear();
            model.front = Desk::default();
            model.outbox.clear();
        });
        other.does(|model| typed(model, agent(2), "elsewhere"));
        let again = loaded(folder.path());
        assert_eq!((text_of(&again, agent(1)).as_str(), again.front.field.whole().as_str()), ("", ""));
        assert_eq!((again.own.len(), again.outbox.len(), text_of(&again, agent(2)).as_str()), (0, 0, "elsewhere"));
        assert_eq!(history(&again), []);
    }

    /// A terminal in which one only reads changes its desks all the time. It does not touch what is typed in the other one.
    #[test]
    fn reading_in_one_terminal_does_not_touch_a_text_of_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (Terminal::open(folder.path()), Terminal::open(folder.path()));
        one.does(|model| typed(model, agent(1), "half"));
        other.does(|model| model.desks.entry(agent(1)).or_default().seen = hatchery_core::EventId(7));
        one.does(|model| typed(model, agent(1), "half a thought"));
        other.does(|model| model.desks.entry(agent(1)).or_default().seen = hatchery_core::EventId(9));
        let again = loaded(folder.path());
        assert_eq!(text_of(&again, agent(1)), "half a thought");
        assert_eq!(again.desks[&agent(1)].seen, hatchery_core::EventId(9));
        assert_eq!(history(&again), []);
    }

    proptest! {
        /// Whatever two terminals type, send and save: every text that was saved is in the file, in the history, or was taken out by hand.
        #[test]
        fn no_order_of_saves_loses_a_text(steps in proptest::collection::vec((0..2usize, 0..3usize, any::<bool>()), 1..25)) {
            let folder = tempfile::tempdir().unwrap();
            let mut sides = [Terminal::open(folder.path()), Terminal::open(folder.path())];
            let mut shown: [BTreeMap<usize, String>; 2] = [BTreeMap::new(), BTreeMap::new()];
            let mut saved = BTreeSet::new();
            let mut taken = BTreeSet::new();
            for (number, (side, place, sends)) in steps.into_iter().enumerate() {
                let text = if sends { String::new() } else { format!("text {number}") };
                if let Some(before) = shown[side].insert(place, text.clone()) {
                    taken.insert(before);
                }
                sides[side].does(|model| match place {
                    0 => model.front.field = Field::of(&text),
                    1 => typed(model, agent(1), &text),
                    _ => drop(model.own.insert("q1".into(), own(&text))),
                });
                saved.insert(text);
                let again = loaded(folder.path());
                let mut there: BTreeSet<String> = history(&again).into_iter().map(|(_, text)| text.to_owned()).collect();
                there.extend([again.front.field.whole(), text_of(&again, agent(1)), String::new()]);
                there.extend(again.own.get("q1").map(|words| words.field.whole()));
                for text in saved.difference(&taken) {
                    prop_assert!(there.contains(text), "{text} is lost: {there:?}");
                }
            }
        }
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
