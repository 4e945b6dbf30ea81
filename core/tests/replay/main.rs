//! Replay against histories that were worked out elsewhere: what an agent's history is, and what of it reaches a model.
//! `README.md` beside this file says what the data mean.

use hatchery_core::agent::Birth;
use hatchery_core::event::MessageEvent;
use hatchery_core::history::{HistoryMessage, HistoryRange, ImportedItem, SourceId, mark_interrupted, ranges};
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Record, Timestamp, World, step};
use serde::Deserialize;
use std::collections::BTreeMap;

const NAMED_CASES: &str = include_str!("named-cases.json");
const RANDOM_TREES: &str = include_str!("random-trees.jsonl");

const AGENT_0: AgentId = AgentId::from_bytes([0xff; 16]);

#[derive(Deserialize)]
struct Tree {
    case: u64,
    agents: Vec<Forked>,
    messages: Vec<Message>,
    expect: Vec<Expected>,
}

#[derive(Deserialize)]
struct Forked {
    id: u64,
    parent: Option<u64>,
    fork_message_id: Option<u64>,
}

#[derive(Deserialize)]
struct Message {
    id: u64,
    agent: u64,
    kind: MessageKind,
}

#[derive(Deserialize)]
struct Expected {
    agent: u64,
    ids: Vec<i64>,
    interrupted: Vec<i64>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    leaf: String,
    log: Vec<(String, String, Option<String>)>,
    ranges: Option<Vec<(String, usize, usize)>>,
    expect: Option<Vec<String>>,
    expect_conversation: Option<Vec<String>>,
    expect_parent: Option<Vec<String>>,
}

/// A world and its log, as a store would keep it.
#[derive(Default)]
struct Lived {
    world: World,
    log: Vec<Record>,
}

impl Lived {
    fn live(&mut self, command: &Command) {
        let records = step(&mut self.world, command, Timestamp(0)).expect("the data are possible");
        self.log.extend(records);
    }

    fn replay(&self, agent: AgentId) -> Vec<HistoryMessage> {
        let mut said: Vec<HistoryMessage> =
            ranges(&self.world, agent).iter().flat_map(|part| self.read(*part)).collect();
        mark_interrupted(&mut said);
        said
    }

    fn read(&self, part: HistoryRange) -> impl Iterator<Item = HistoryMessage> {
        let inside = self.log.iter().filter(move |record| part.after < record.id && record.id <= part.upto);
        inside.filter_map(move |record| {
            let Event::Message(MessageEvent::Added { agent, kind, content, source_id, .. }) = record.event.clone()
            else {
                return None;
            };
            let said = HistoryMessage { id: record.id, agent, kind, content, source_id, interrupted: false };
            (agent == part.agent).then_some(said)
        })
    }

    /// Nothing is left but the log as it was written.
    fn restarted(self) -> Self {
        let mut world = World::default();
        for record in &self.log {
            let read = Record::read(record.id, &record.body()).expect("what was written can be read");
            world.apply(&read).expect("what was lived through is possible");
        }
        Self { world, ..self }
    }
}

/// When an agent comes in that the data only say forked at a certain message.
#[derive(Clone, Copy)]
enum Arrival {
    /// Right after its fork point.
    Early,
    /// Just before its first word: its parent may have cleared or said more meanwhile.
    Late,
}

/// The lines of an import, and under which id each message of the tree will be found.
struct Import<'a> {
    tree: &'a Tree,
    items: Vec<ImportedItem>,
    next: EventId,
    ids: BTreeMap<u64, EventId>,
    made: BTreeMap<u64, AgentId>,
}

impl<'a> Import<'a> {
    fn of(tree: &'a Tree, head: EventId, arrival: Arrival) -> Self {
        let (items, ids, made) = Default::default();
        let mut import = Self { tree, items, next: head.next(), ids, made };
        if let Arrival::Early = arrival {
            tree.agents.iter().filter(|it| it.parent.is_none()).for_each(|root| import.agent(root.id));
            import.forked_at(None);
        }
        for message in &tree.messages {
            import.agent(message.agent);
            import.message(message);
            if let Arrival::Early = arrival {
                import.forked_at(Some(message.id));
                import.forked_at(None);
            }
        }
        tree.agents.iter().for_each(|it| import.agent(it.id));
        import
    }

    /// Those that forked there, if their parents are in already.
    fn forked_at(&mut self, point: Option<u64>) {
        for it in self.tree.agents.iter().filter(|it| it.fork_message_id == point) {
            if it.parent.is_some_and(|parent| self.made.contains_key(&parent)) {
                self.agent(it.id);
            }
        }
    }

    fn agent(&mut self, id: u64) {
        if self.made.contains_key(&id) {
            return;
        }
        let it = self.tree.agents.iter().find(|it| it.id == id).expect("whoever speaks is listed");
        let agent = AgentId::from_bytes(u128::from(id).to_be_bytes());
        let parent = it.parent.map_or(AGENT_0, |parent| {
            self.agent(parent);
            self.made[&parent]
        });
        self.made.insert(id, agent);
        self.push(ImportedItem::Agent { agent, parent, upto: it.fork_message_id.map(|point| self.ids[&point]) });
    }

    fn message(&mut self, message: &Message) {
        self.ids.insert(message.id, self.next);
        self.push(ImportedItem::Message {
            agent: self.made[&message.agent],
            kind: message.kind,
            content: String::new(),
            to: None,
            source_id: SourceId::Number(message.id.try_into().expect("a small number")),
        });
    }

    fn push(&mut self, item: ImportedItem) {
        self.items.push(item);
        self.next = self.next.next();
    }
}

fn numbers<'a>(said: impl Iterator<Item = &'a HistoryMessage>) -> Vec<i64> {
    said.map(|said| match said.source_id {
        Some(SourceId::Number(id)) => id,
        _ => panic!("{} was imported with its number", said.id),
    })
    .collect()
}

#[test]
fn random_trees_replay_as_expected_however_late_their_agents_come_in() {
    let trees: Vec<Tree> = RANDOM_TREES.lines().map(|line| serde_json::from_str(line).expect("a tree")).collect();
    assert_eq!(trees.len(), 200);
    for (tree, arrival) in trees.iter().flat_map(|tree| [(tree, Arrival::Early), (tree, Arrival::Late)]) {
        let mut lived = Lived::default();
        lived.live(&Command::FoundRegistry { agent: AGENT_0, name: None });
        let import = Import::of(tree, lived.world.head(), arrival);
        lived.live(&Command::ImportHistory { items: import.items });
        let lived = lived.restarted();
        assert_eq!(tree.expect.len(), tree.agents.len());
        for expected in &tree.expect {
            let said = lived.replay(import.made[&expected.agent]);
            let (case, agent) = (tree.case, expected.agent);
            assert_eq!(numbers(said.iter()), expected.ids, "case {case}, agent {agent}");
            let interrupted = said.iter().filter(|said| said.interrupted);
            assert_eq!(numbers(interrupted), expected.interrupted, "case {case}, agent {agent}");
        }
    }
}

/// A named case, lived through by command: the first agent that is named is agent 0.
struct Told {
    lived: Lived,
    agents: BTreeMap<String, AgentId>,
    /// Where each line of the log that says something came to stand.
    places: Vec<EventId>,
}

impl Told {
    fn of(case: &Named) -> Self {
        let mut told = Self { lived: Lived::default(), agents: BTreeMap::new(), places: Vec::new() };
        for (who, kind, text) in &case.log {
            match (who.as_str(), text) {
                ("FORK", Some(parent)) => told.fork(parent, kind),
                _ => told.say(who, kind, text.as_deref().unwrap_or_default()),
            }
        }
        told.found(&case.leaf);
        told.lived = told.lived.restarted();
        told
    }

    fn found(&mut self, name: &str) -> AgentId {
        if self.agents.is_empty() {
            self.lived.live(&Command::FoundRegistry { agent: AGENT_0, name: None });
            self.agents.insert(name.to_owned(), AGENT_0);
        }
        self.agents[name]
    }

    fn fork(&mut self, parent: &str, child: &str) {
        let parent = self.found(parent);
        let id = AgentId::from_bytes((self.agents.len() as u128).to_be_bytes());
        self.lived.live(&Command::Fork { parent, at: None, birth: Birth::of(id) });
        self.agents.insert(child.to_owned(), id);
    }

    fn say(&mut self, who: &str, kind: &str, text: &str) {
        let agent = self.found(who);
        let kind = serde_json::from_value(kind.into()).expect("a kind of message");
        self.lived.live(&Command::AddMessage { agent, kind, content: text.to_owned() });
        self.places.push(self.lived.world.head());
    }

    /// A range as the data write it: 0 is no limit, anything else the place of a message in the log.
    fn range(&self, (name, after, upto): &(String, usize, usize)) -> HistoryRange {
        let agent = self.agents[name];
        let it = self.lived.world.agent(agent).expect("whoever is named is there");
        let last = it.last_message.expect("a range has something in it");
        let place = |number: usize, unlimited| number.checked_sub(1).map_or(unlimited, |index| self.places[index]);
        HistoryRange { agent, after: place(*after, it.born), upto: place(*upto, last) }
    }
}

#[test]
fn named_cases_replay_as_expected() {
    let cases: Vec<Named> = serde_json::from_str(NAMED_CASES).expect("the cases");
    assert_eq!(cases.len(), 16);
    for case in &cases {
        let told = Told::of(case);
        let leaf = told.agents[&case.leaf];
        let texts = |agent, keep: fn(&HistoryMessage) -> bool| -> Vec<String> {
            told.lived.replay(agent).into_iter().filter(keep).map(|said| said.content).collect()
        };
        let name = &case.name;
        assert!(case.expect.is_some() || case.expect_conversation.is_some(), "{name} expects something");
        if let Some(expected) = &case.expect {
            assert_eq!(&texts(leaf, |said| said.kind.reaches_model()), expected, "{name}");
        }
        if let Some(expected) = &case.expect_conversation {
            assert_eq!(&texts(leaf, HistoryMessage::reaches_model), expected, "{name}");
        }
        if let Some(expected) = &case.expect_parent {
            let parent = told.lived.world.agent(leaf).and_then(|it| it.parent).expect("it was forked");
            assert_eq!(&texts(parent, |said| said.kind.reaches_model()), expected, "{name}");
        }
        if let Some(expected) = &case.ranges {
            let expected: Vec<HistoryRange> = expected.iter().map(|range| told.range(range)).collect();
            assert_eq!(ranges(&told.lived.world, leaf), expected, "{name}");
        }
    }
}
