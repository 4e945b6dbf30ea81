//! Everything that the terminal shows, as data. Keys and events change it ([`super::update`]), and it is drawn by functions that only
//! read it ([`super::draw`]). Nothing here has side effects.

use super::conversation::ConversationView;
use super::field::Field;
use super::look::Look;
use super::overlay::{Overlay, TextReader};
use super::panel::Side;
use super::recall::Recall;
use super::roster::Roster;
use super::search::Search;
use crate::config::Keys;
use hatchery_core::partial::PartialKind;
use hatchery_core::{AgentId, EventId, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The smallest screen that is drawn on.
pub const MIN_SIZE: (u16, u16) = (40, 10);
/// How long a notice stays on the bottom line.
const NOTICE_MS: i64 = 6_000;
/// How many of them the log still has.
const MAX_NOTICES: usize = 100;
/// A key that was used so often needs no hint.
const LEARNED: u32 = 5;
/// How many agents have a number.
pub const PINS: usize = 9;
/// The most conversations in memory; the one that was not visited for longest goes.
const MAX_TALKS: usize = 32;
/// How long the order of visits is.
const MAX_VISITS: usize = 200;

#[derive(Debug)]
pub struct Model {
    pub size: (u16, u16),
    /// The moment that is drawn.
    pub now: Timestamp,
    /// When the terminal was opened.
    pub began: Timestamp,
    /// The user's time zone.
    pub offset_s: i32,
    pub look: Look,
    pub project: String,
    /// The folder of the project. Folders below it are shown without it.
    pub root: String,
    pub roster: Roster,
    pub link: Connection,
    /// Why the daemon cannot be reached, while it is so.
    pub unreached: Option<String>,
    pub current: Option<AgentId>,
    /// Since when it is in front.
    pub in_front_since: Timestamp,
    pub talks: BTreeMap<AgentId, ConversationView>,
    /// What agents are writing at the moment. It is not in the log yet, and is lost without harm.
    pub partial: BTreeMap<AgentId, TextUnderWay>,
    pub desks: BTreeMap<AgentId, Desk>,
    /// The desk while there is no agent.
    pub front: Desk,
    pub outbox: Vec<Outgoing>,
    /// Answers in your own words that are not sent yet, by need.
    pub own: BTreeMap<String, OwnWords>,
    /// The last one last.
    pub visits: Vec<AgentId>,
    pub pins: [Option<AgentId>; PINS],
    pub focus: Focus,
    /// Whether the tree is wanted; none means where there is room.
    pub tree: Option<bool>,
    pub tree_row: Option<AgentId>,
    pub tree_folds: BTreeSet<AgentId>,
    pub side: Option<Side>,
    /// The side panel was closed by hand, so Home does not come back by itself.
    pub side_closed: bool,
    pub overlay: Option<Overlay>,
    /// `^X` was pressed at this moment, and the letter is to come.
    pub prefix: Option<Timestamp>,
    /// `g` was pressed, and the letter of a panel is to come.
    pub pending_g: bool,
    /// The program for agents, if it is not there.
    pub missing: Option<String>,
    pub notice: Option<BottomLine>,
    pub recall: Recall,
    pub search: Option<Search>,
    /// The event of the current conversation that one wants to go to, while it is read.
    pub going: Option<EventId>,
    /// Everything is told from the end, as in the plain mode: where one read on a screen does not matter.
    pub from_end: bool,
    pub mouse: bool,
    /// What `^X M` has chosen, and the setting that it was chosen instead of. Another setting counts again.
    pub mouse_chosen: Option<MouseChosen>,
    /// What the settings say about the mouse.
    pub mouse_set: bool,
    pub bell: bool,
    /// Go to a fork that you asked for.
    pub follow_fork: bool,
    /// The letters after `^X` that were changed.
    pub keys: Keys,
    /// The files of the current agent's folder, once they were asked for.
    pub files: Option<(AgentId, Vec<String>)>,
    /// What agents have changed in folders of their own, as far as it was asked for.
    pub changes: BTreeMap<AgentId, AgentChanges>,
    /// A paste that was too long for a message. `/attach` makes a file of it.
    pub too_long: Option<String>,
    /// A fork that you asked for: where you go when it is there, unless a key was pressed since.
    pub awaited_fork: Option<AwaitedFork>,
    /// Ctrl-C was pressed in an empty field.
    pub leaving: bool,
    /// The question that was answered last, here or elsewhere, and when.
    pub answered: Option<(EventId, Timestamp)>,
    /// What was said on the bottom line, the latest last: it stands there for a moment only.
    pub notices: VecDeque<(Timestamp, String)>,
    /// How many of them there were.
    pub said: usize,
    /// How often each hint was used.
    pub used: BTreeMap<String, u32>,
    pub quit: bool,
    /// The agent that the command line named, until it is found.
    pub wanted: Option<String>,
    /// The last event of the log that was applied.
    pub upto: EventId,
    /// The number of the next outgoing text.
    pub next_number: u64,
    /// Tells the requests of this terminal from those of another one.
    pub instance: String,
}

/// What belongs to one agent and comes back exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Desk {
    pub field: Field,
    /// Fixed with the first character.
    pub purpose: Option<Purpose>,
    /// The question of the agent that was open when the text was begun. No later one is answered by it.
    pub begun_on: Option<EventId>,
    pub place: ScrollPosition,
    /// What was opened or folded by hand.
    pub folds: BTreeMap<EventId, bool>,
    /// Groups of tools that were opened.
    pub open_groups: BTreeSet<EventId>,
    /// Groups of tools up to here are folded: they were off the screen.
    pub grouped: EventId,
    /// The inherited part is open.
    pub inherited_open: Option<bool>,
    /// The last event that you have seen, and when you left.
    pub seen: EventId,
    pub left: Option<Timestamp>,
    /// Where the line "new since" is, while you are there.
    #[serde(skip)]
    pub new_from: Option<(EventId, Timestamp)>,
    /// The chosen block while you browse.
    #[serde(skip)]
    pub chosen: Option<BlockKey>,
}

impl Desk {
    /// Takes the text out, with what it is for.
    pub fn take_text(&mut self) -> Self {
        let (purpose, begun_on) = (self.purpose.take(), self.begun_on.take());
        Self { field: self.field.take(), purpose, begun_on, ..Self::default() }
    }

    /// Shows where the new part begins. What arrives from here on is seen as it comes.
    pub fn come_back(&mut self, talk: &ConversationView) {
        let is_new = self.seen != EventId::START && talk.count_after(self.seen) > 0;
        self.new_from = self.left.filter(|_| is_new).map(|left| (self.seen, left));
    }

    /// As it comes back from the disk.
    pub fn stored(&self) -> Self {
        Self { field: self.field.stored(), new_from: None, chosen: None, ..self.clone() }
    }
}

/// An answer in your own words, and who asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnWords {
    /// None in a file of an older program.
    pub agent: Option<AgentId>,
    #[serde(flatten)]
    pub field: Field,
}

/// What Enter will do with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    Message,
    Answer(EventId),
    Command,
}

/// An item of a conversation: its first event, and which of the items with this event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlockKey(pub EventId, pub u8);

/// Where you are in a conversation: at its very end, or with a line of an item at the top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScrollPosition {
    #[default]
    End,
    At {
        item: BlockKey,
        line: usize,
    },
}

/// The mouse was turned on or off by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MouseChosen {
    pub on: bool,
    pub instead_of: bool,
}

/// How much an agent has changed, and when that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentChanges {
    pub asked: Timestamp,
    /// Lines added and removed, and in how many files. None until the daemon has answered, and where the folder is not its own.
    pub lines: Option<(u64, u64, usize)>,
}

/// Something that you said and that is not in the log yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    #[serde(skip)]
    pub number: u64,
    /// The id of the request: however often it is sent, it is said once.
    #[serde(default)]
    pub id: String,
    pub agent: AgentId,
    pub field: Field,
    pub at: Timestamp,
    /// It was asked for, and the answer is to come.
    #[serde(skip)]
    pub sending: bool,
    /// The connection broke while it was sent: the log says whether it arrived.
    pub doubtful: bool,
    /// The last event that was known when it was sent.
    pub after: EventId,
    /// Its event, once it is known.
    #[serde(skip)]
    pub event: Option<EventId>,
}

/// A text or a thought that an agent is writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextUnderWay {
    pub kind: PartialKind,
    pub text: String,
    /// When it was begun.
    pub since: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Not reached yet.
    Opening,
    Up,
    /// Since when, and when it is tried again.
    Away {
        since: Timestamp,
        again: Timestamp,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    Text,
    Browse,
    Tree,
    Side,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BottomLine {
    pub text: String,
    pub until: Timestamp,
    /// A key has said it at once: the next key is about something else.
    pub of_key: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedFork {
    pub child: Option<AgentId>,
    /// A key was pressed since.
    pub stay: bool,
    /// It is a fork of the agent in front, and not a new one.
    pub forked: bool,
    /// The agent whose tools it waits for: it is born when they have ended.
    pub waits_for: Option<AgentId>,
}

impl Model {
    pub fn new(size: (u16, u16), now: Timestamp, look: Look) -> Self {
        Self {
            size,
            now,
            began: now,
            offset_s: 0,
            look,
            project: String::new(),
            root: String::new(),
            roster: Roster::default(),
            link: Connection::Opening,
            unreached: None,
            current: None,
            in_front_since: now,
            talks: BTreeMap::new(),
            partial: BTreeMap::new(),
            desks: BTreeMap::new(),
            front: Desk::default(),
            outbox: Vec::new(),
            own: BTreeMap::new(),
            visits: Vec::new(),
            pins: [None; PINS],
            focus: Focus::Text,
            tree: None,
            tree_row: None,
            tree_folds: BTreeSet::new(),
            side: None,
            side_closed: false,
            overlay: None,
            prefix: None,
            pending_g: false,
            missing: None,
            notice: None,
            recall: Recall::default(),
            search: None,
            going: None,
            from_end: false,
            mouse: false,
            mouse_chosen: None,
            mouse_set: false,
            bell: false,
            follow_fork: true,
            keys: Keys::default(),
            files: None,
            changes: BTreeMap::new(),
            too_long: None,
            awaited_fork: None,
            leaving: false,
            answered: None,
            notices: VecDeque::new(),
            said: 0,
            used: BTreeMap::new(),
            quit: false,
            wanted: None,
            upto: EventId::START,
            next_number: 1,
            instance: String::new(),
        }
    }

    /// Puts a text for an agent into the outbox.
    pub fn put_out(&mut self, agent: AgentId, field: Field) {
        let (number, id) = self.next_request();
        let (at, after) = (self.now, self.upto);
        self.outbox.push(Outgoing {
            number,
            id,
            agent,
            field,
            at,
            sending: false,
            doubtful: false,
            after,
            event: None,
        });
    }

    /// A number for something that is sent, and an id that no other request has.
    pub fn next_request(&mut self) -> (u64, String) {
        let number = self.next_number;
        self.next_number += 1;
        (number, format!("{}-{number}", self.instance))
    }

    /// The desk of the current agent.
    pub fn desk(&self) -> &Desk {
        self.current.and_then(|agent| self.desks.get(&agent)).unwrap_or(&self.front)
    }

    pub fn desk_mut(&mut self) -> &mut Desk {
        self.desk_of_mut(self.current)
    }

    /// The desk of an agent, or the one while there is none.
    pub fn desk_of_mut(&mut self, agent: Option<AgentId>) -> &mut Desk {
        match agent {
            Some(agent) => self.desks.entry(agent).or_default(),
            None => &mut self.front,
        }
    }

    /// The event at the top of the screen of an agent, if that is not the end.
    pub fn reads_at(&self, agent: AgentId) -> Option<EventId> {
        match self.desks.get(&agent).map(|desk| desk.place)? {
            ScrollPosition::At { item, .. } if !self.from_end => Some(item.0),
            ScrollPosition::At { .. } | ScrollPosition::End => None,
        }
    }

    pub fn talk(&self) -> Option<&ConversationView> {
        self.current.and_then(|agent| self.talks.get(&agent))
    }

    /// Shows the answer to a command in the conversation, only here. Without a conversation it is shown over the screen.
    pub fn show_here(&mut self, text: String) {
        let now = self.now;
        match self.current.and_then(|agent| self.talks.get_mut(&agent)) {
            Some(talk) => talk.add_here(text, now),
            None => self.overlay = Some(Overlay::Reader(TextReader { title: "Only here".to_owned(), text, top: 0 })),
        }
    }

    /// Turns the mouse on or off by hand. That is remembered as long as the settings stay as they are.
    pub fn choose_mouse(&mut self, on: bool) {
        self.mouse = on;
        self.mouse_chosen = Some(MouseChosen { on, instead_of: self.mouse_set });
    }

    /// Says something on the bottom line for a while.
    pub fn say(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.notices.len() == MAX_NOTICES {
            self.notices.pop_front();
        }
        self.notices.push_back((self.now, text.clone()));
        self.said += 1;
        self.notice = Some(BottomLine { text, until: Timestamp(self.now.0 + NOTICE_MS), of_key: false });
    }

    /// Whether something happens for the first time in this project. It is explained once.
    pub fn is_first_time(&mut self, what: &str) -> bool {
        let times = self.used.entry(what.to_owned()).or_default();
        *times = times.saturating_add(1);
        *times == 1
    }

    /// Whether a key was used so often that its hint makes room for another one.
    pub fn is_learned(&self, key: &str) -> bool {
        self.used.get(key).is_some_and(|times| *times >= LEARNED)
    }

    /// What is said at the moment.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_ref().filter(|notice| notice.until > self.now).map(|notice| notice.text.as_str())
    }

    pub fn name(&self, agent: AgentId) -> String {
        self.roster.name(agent)
    }

    /// A folder as it is shown: below the project without the project's own folder.
    pub fn place_of_folder(&self, folder: &str) -> String {
        match folder.strip_prefix(self.root.as_str()).map(|rest| rest.trim_start_matches('/')) {
            _ if self.root.is_empty() => folder.to_owned(),
            Some("") => self.project.clone(),
            Some(rest) => rest.strip_prefix(".hatchery/").unwrap_or(rest).to_owned(),
            None => folder.to_owned(),
        }
    }

    /// Who was visited before the current one.
    pub fn last_visited(&self) -> Option<AgentId> {
        let known = |agent: &&AgentId| Some(**agent) != self.current && self.roster.agents.contains_key(agent);
        self.visits.iter().rev().find(known).copied()
    }

    /// Puts an agent in front. Its own text, place and folds appear.
    pub fn visit(&mut self, agent: AgentId) {
        if let Some(before) = self.current {
            let upto = self.talks.get(&before).map(ConversationView::upto);
            let now = self.now;
            let desk = self.desks.entry(before).or_default();
            if desk.place == ScrollPosition::End {
                desk.seen = upto.map_or(desk.seen, |upto| upto.max(desk.seen));
            }
            (desk.left, desk.new_from, desk.chosen) = (Some(now), None, None);
        }
        self.visits.retain(|other| *other != agent);
        self.visits.push(agent);
        if self.visits.len() > MAX_VISITS {
            self.visits.remove(0);
        }
        if !self.pins.contains(&Some(agent))
            && let Some(free) = self.pins.iter_mut().find(|pin| pin.is_none())
        {
            *free = Some(agent);
        }
        // Where ↑ has gone to is in the texts to the agent that was left.
        self.recall.settle();
        (self.current, self.in_front_since) = (Some(agent), self.now);
        (self.search, self.going) = (None, None);
        self.front.field = self.front.field.take();
        let upto = self.talks.get(&agent).map_or(EventId::START, ConversationView::upto);
        let desk = self.desks.entry(agent).or_default();
        desk.grouped = desk.grouped.max(upto);
        if let Some(talk) = self.talks.get(&agent) {
            desk.come_back(talk);
        }
        let has_seat = self.roster.has_seat(agent);
        self.talks.entry(agent).or_insert_with(|| ConversationView::new(agent, has_seat));
        self.forget_talks();
        self.roster.looked_at(agent);
        self.tree_row = Some(agent);
    }

    fn forget_talks(&mut self) {
        while self.talks.len() > MAX_TALKS {
            let visits = &self.visits;
            let rank = |agent: &AgentId| visits.iter().position(|visited| visited == agent).unwrap_or(0);
            let Some(oldest) = self.talks.keys().min_by_key(|agent| rank(agent)).copied() else { return };
            self.talks.remove(&oldest);
        }
    }
}
