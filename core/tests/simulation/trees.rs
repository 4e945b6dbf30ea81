//! Random families against a naive model, in which every child gets a copy of its parent's whole history, a rewind cuts the
//! copy short and a clear empties it. The model says beforehand what each command will be answered.

use crate::chance::Chance;
use hatchery_core::agent::{Birth, MAX_PENDING_FORKS};
use hatchery_core::event::MessageEvent;
use hatchery_core::history::{HistoryMessage, RewindTo, mark_interrupted, ranges};
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Record, Timestamp, World, step};
use std::collections::{BTreeMap, BTreeSet};

const LABELS: [&str; 2] = ["a", "b"];
/// Few enough that ids are drawn twice now and then.
const IDS: u64 = 24;

/// What all seeds together must have met.
pub const MARKS: [&str; 15] = [
    "agent_dead",
    "agent_exists",
    "cancelled",
    "cascade",
    "cleared",
    "forked at an inherited message",
    "interrupted",
    "kills_ancestor",
    "moved up",
    "no_such_mark",
    "not_in_history",
    "rewound into what was inherited",
    "root_is_immortal",
    "several waited",
    "waited",
];

#[derive(Default)]
pub struct Family {
    pub met: BTreeSet<&'static str>,
    world: World,
    log: Vec<Record>,
    model: Model,
    snapshot: Vec<u8>,
}

/// Everything is copied, nothing is shared.
#[derive(Default)]
struct Model {
    head: u64,
    root: Option<AgentId>,
    kin: BTreeMap<AgentId, Kin>,
}

#[derive(Clone)]
struct Kin {
    parent: Option<AgentId>,
    alive: bool,
    history: Vec<Line>,
    /// The ids of all that it ever had or that its ancestors had when it was forked, whether it still counts or not.
    ever: Vec<u64>,
    tools: u32,
    waiting: Vec<Birth>,
}

#[derive(Clone, Debug, PartialEq)]
struct Line {
    id: u64,
    own: bool,
    kind: MessageKind,
    label: String,
}

impl Family {
    pub fn new() -> Self {
        let mut family = Self::default();
        let root = id(0);
        let kin = Kin { parent: None, alive: true, history: vec![], ever: vec![], tools: 0, waiting: vec![] };
        family.model.root = Some(root);
        family.model.kin.insert(root, kin);
        family.model.head = 1;
        family.live(&Command::FoundRegistry { agent: root, name: None });
        family.snapshot = rmp_serde::to_vec_named(&family.world).expect("a world is plain data");
        family
    }

    pub fn turn(&mut self, chance: &mut Chance) {
        match chance.below(40) {
            0 => self.restart(),
            1 => self.restart_from_snapshot(),
            2 => self.snapshot = rmp_serde::to_vec_named(&self.world).expect("a world is plain data"),
            3..=6 => self.compare(),
            _ => {
                let command = self.command(chance);
                self.ask(&command);
            }
        }
    }

    /// Whatever comes of it, the model knew.
    fn ask(&mut self, command: &Command) {
        let expected = self.model.ask(command, &mut self.met);
        let mut after = self.world.clone();
        match (step(&mut after, command, Timestamp(0)), expected) {
            (Ok(records), Ok(())) => {
                self.world = after;
                self.log.extend(records);
            }
            (Err(refusal), Err(code)) => {
                assert_eq!(refusal.code(), code, "{command:?}");
                assert_eq!(after, self.world, "a refusal leaves no trace");
                self.met.insert(code);
            }
            (found, expected) => panic!("{command:?}: expected {expected:?}, found {found:?}"),
        }
        assert_eq!(self.world.head().0, self.model.head, "as many events as expected: {command:?}");
    }

    fn live(&mut self, command: &Command) {
        self.log.extend(step(&mut self.world, command, Timestamp(0)).expect("it is possible"));
    }

    pub fn compare(&self) {
        assert_eq!(self.world.agent_count(), self.model.kin.len());
        for (id, kin) in &self.model.kin {
            let agent = self.world.agent(*id).expect("whoever was made is there");
            assert_eq!((agent.is_living(), agent.parent), (kin.alive, kin.parent), "{id}");
            let below: Vec<AgentId> = agent.children.iter().copied().collect();
            assert_eq!(below, self.model.children(*id), "below {id}");
            let expected = kin.replay();
            assert_eq!(self.replay(*id), expected, "the history of {id}");
        }
    }

    fn replay(&self, agent: AgentId) -> Vec<(u64, bool)> {
        let mut said: Vec<HistoryMessage> = Vec::new();
        for part in ranges(&self.world, agent) {
            let from = self.log.partition_point(|record| record.id <= part.after);
            let inside = self.log[from..].iter().take_while(|record| record.id <= part.upto);
            said.extend(inside.filter_map(|record| {
                let Event::Message(MessageEvent::Added { agent, kind, .. }) = record.event else { return None };
                let content = String::new();
                let said = HistoryMessage { id: record.id, agent, kind, content, source_id: None, interrupted: false };
                (agent == part.agent).then_some(said)
            }));
        }
        mark_interrupted(&mut said);
        said.iter().map(|said| (said.id.0, said.interrupted)).collect()
    }

    fn restart(&mut self) {
        self.world = refolded(World::default(), &self.log, &self.world);
    }

    fn restart_from_snapshot(&mut self) {
        let old: World = rmp_serde::from_slice(&self.snapshot).expect("what was saved loads");
        self.world = refolded(old, &self.log, &self.world);
    }

    fn command(&self, chance: &mut Chance) -> Command {
        let agent = self.someone(chance);
        match chance.below(20) {
            0..=3 => {
                let at = chance.one_in(3).then(|| self.place(agent, chance));
                let prompt = chance.one_in(4).then(|| "go".to_owned());
                Command::Fork { parent: agent, at, birth: Birth { prompt, ..Birth::of(id(chance.below(IDS))) } }
            }
            4 => {
                let by = chance.one_in(2).then(|| self.someone(chance));
                Command::Kill { agent, cascade: chance.one_in(2), by, remark: None }
            }
            5..=7 => {
                let label = LABELS[chance.index(LABELS.len())].to_owned();
                let to = match chance.below(4) {
                    0 => RewindTo::LastMark,
                    1 => RewindTo::Mark(label),
                    _ => RewindTo::Message(self.place(agent, chance)),
                };
                Command::Rewind { agent, to }
            }
            _ => {
                use MessageKind::{Assistant, Clear, Interrupted, Mark, ToolCall, ToolResult, Usage, User};
                let kinds =
                    [User, User, Assistant, Assistant, Mark, Mark, ToolCall, ToolResult, Interrupted, Clear, Usage];
                let content = LABELS[chance.index(LABELS.len())].to_owned();
                Command::AddMessage { agent, kind: kinds[chance.index(kinds.len())], content }
            }
        }
    }

    fn someone(&self, chance: &mut Chance) -> AgentId {
        let all: Vec<AgentId> = self.model.kin.keys().copied().collect();
        // The living more often than chance would have it, because killing is quick.
        let one = all[chance.index(all.len())];
        match self.model.kin[&one].alive || chance.one_in(8) {
            true => one,
            false => self.model.root.expect("it was founded first"),
        }
    }

    /// A message that this agent has, or had once, or nobody ever had.
    fn place(&self, agent: AgentId, chance: &mut Chance) -> EventId {
        let ever = &self.model.kin[&agent].ever;
        match ever.is_empty() || chance.one_in(10) {
            true => EventId(self.model.head + chance.below(3)),
            false => EventId(ever[chance.index(ever.len())]),
        }
    }
}

impl Model {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is asked here")]
    fn ask(&mut self, command: &Command, met: &mut BTreeSet<&'static str>) -> Result<(), &'static str> {
        match command {
            Command::Fork { parent, at, birth } => self.fork(*parent, *at, birth, met),
            Command::Kill { agent, cascade, by, .. } => self.kill(*agent, *cascade, *by, met),
            Command::Rewind { agent, to } => self.rewind(*agent, to, met),
            Command::AddMessage { agent, kind, content } => self.add(*agent, *kind, content, met),
            other => panic!("the model does not know {other:?}"),
        }
    }

    fn fork(
        &mut self,
        parent: AgentId,
        at: Option<EventId>,
        birth: &Birth,
        met: &mut BTreeSet<&'static str>,
    ) -> Result<(), &'static str> {
        let promised = self.kin.values().any(|kin| kin.waiting.iter().any(|it| it.agent == birth.agent));
        if self.kin.contains_key(&birth.agent) || promised {
            return Err("agent_exists");
        }
        let kin = self.living(parent)?;
        if kin.waiting.len() >= MAX_PENDING_FORKS {
            return Err("fork_pending");
        }
        match at {
            Some(at) => {
                let place = kin.history.iter().position(|line| line.id == at.0).ok_or("not_in_history")?;
                if !kin.history[place].own {
                    met.insert("forked at an inherited message");
                }
                self.born(parent, place + 1, birth.clone());
            }
            None if kin.tools > 0 => {
                kin.waiting.push(birth.clone());
                self.head += 1;
            }
            None => {
                let whole = kin.history.len();
                self.born(parent, whole, birth.clone());
            }
        }
        Ok(())
    }

    fn born(&mut self, parent: AgentId, inherited: usize, birth: Birth) {
        let above = &self.kin[&parent];
        let mut history: Vec<Line> = above.history[..inherited].to_vec();
        history.iter_mut().for_each(|line| line.own = false);
        let ever = above.ever.clone();
        let kin = Kin { parent: Some(parent), alive: true, history, ever, tools: 0, waiting: vec![] };
        self.kin.insert(birth.agent, kin);
        self.head += 1;
        if birth.prompt.is_some() {
            self.said(birth.agent, MessageKind::User, "");
        }
    }

    fn add(
        &mut self,
        agent: AgentId,
        kind: MessageKind,
        content: &str,
        met: &mut BTreeSet<&'static str>,
    ) -> Result<(), &'static str> {
        let kin = self.living(agent)?;
        if kind == MessageKind::ToolCall {
            kin.tools += 1;
        }
        if kind == MessageKind::ToolResult {
            kin.tools = kin.tools.saturating_sub(1);
        }
        if kind == MessageKind::Interrupted {
            kin.tools = 0;
            met.insert("interrupted");
        }
        self.said(agent, kind, content);
        if kind == MessageKind::Clear {
            let kin = self.living(agent)?;
            kin.history.clear();
            kin.tools = 0;
            met.insert("cleared");
        }
        self.release(agent, met);
        Ok(())
    }

    fn rewind(&mut self, agent: AgentId, to: &RewindTo, met: &mut BTreeSet<&'static str>) -> Result<(), &'static str> {
        let history = &mut self.living(agent)?.history;
        let last_mark = |label: Option<&str>| {
            let is_it = |line: &Line| line.kind == MessageKind::Mark && label.is_none_or(|label| label == line.label);
            history.iter().rposition(is_it).ok_or("no_such_mark")
        };
        let place = match to {
            RewindTo::LastMark => last_mark(None)?,
            RewindTo::Mark(label) => last_mark(Some(label))?,
            RewindTo::Message(id) => history.iter().position(|line| line.id == id.0).ok_or("not_in_history")?,
        };
        if !history[place].own {
            met.insert("rewound into what was inherited");
        }
        history.truncate(place + 1);
        self.living(agent)?.tools = 0;
        self.said(agent, MessageKind::Rewind, "");
        self.release(agent, met);
        Ok(())
    }

    fn said(&mut self, agent: AgentId, kind: MessageKind, label: &str) {
        self.head += 1;
        let line = Line { id: self.head, own: true, kind, label: label.to_owned() };
        let kin = self.kin.get_mut(&agent).expect("whoever speaks is there");
        kin.ever.push(line.id);
        kin.history.push(line);
    }

    /// Forks that waited for the last tool.
    fn release(&mut self, agent: AgentId, met: &mut BTreeSet<&'static str>) {
        let kin = self.kin.get_mut(&agent).expect("whoever speaks is there");
        if kin.tools > 0 {
            return;
        }
        let whole = kin.history.len();
        let waiting = std::mem::take(&mut kin.waiting);
        if waiting.len() > 1 {
            met.insert("several waited");
        }
        for birth in waiting {
            met.insert("waited");
            self.born(agent, whole, birth);
        }
    }

    fn kill(
        &mut self,
        agent: AgentId,
        cascade: bool,
        by: Option<AgentId>,
        met: &mut BTreeSet<&'static str>,
    ) -> Result<(), &'static str> {
        let heir = self.living(agent)?.parent;
        let heir = heir.ok_or("root_is_immortal")?;
        if let Some(by) = by {
            self.living(by)?;
            if by != agent && self.below(agent).contains(&by) {
                return Err("kills_ancestor");
            }
        }
        let victims = if cascade { self.below(agent) } else { vec![agent] };
        if victims.len() > 1 {
            met.insert("cascade");
        }
        if !cascade {
            for child in self.children(agent) {
                self.living(child)?.parent = Some(heir);
                self.head += 1;
                self.said(child, MessageKind::AgentKilled, "");
                met.insert("moved up");
            }
        }
        for victim in victims {
            let kin = self.living(victim)?;
            kin.alive = false;
            let cancelled = std::mem::take(&mut kin.waiting).len() as u64;
            self.head += 1 + cancelled;
            if cancelled > 0 {
                met.insert("cancelled");
            }
        }
        Ok(())
    }

    fn living(&mut self, agent: AgentId) -> Result<&mut Kin, &'static str> {
        let kin = self.kin.get_mut(&agent).ok_or("unknown_agent")?;
        kin.alive.then_some(kin).ok_or("agent_dead")
    }

    fn children(&self, of: AgentId) -> Vec<AgentId> {
        let below = self.kin.iter().filter(|(_, kin)| kin.alive && kin.parent == Some(of));
        below.map(|(id, _)| *id).collect()
    }

    /// An agent and all that live below it.
    fn below(&self, agent: AgentId) -> Vec<AgentId> {
        let deeper = self.children(agent).into_iter().flat_map(|child| self.below(child));
        [agent].into_iter().chain(deeper).collect()
    }
}

impl Kin {
    /// The ids of its history, each with whether an interruption took it back.
    fn replay(&self) -> Vec<(u64, bool)> {
        let is = |kind| move |line: &Line| line.kind == kind;
        let taken_back = |at: usize| {
            self.history.iter().enumerate().skip(at).filter(|(_, line)| is(MessageKind::Interrupted)(line)).any(
                |(marker, _)| {
                    let turn = self.history[..marker].iter().rposition(is(MessageKind::User)).unwrap_or(0);
                    turn <= at
                },
            )
        };
        self.history.iter().enumerate().map(|(at, line)| (line.id, taken_back(at))).collect()
    }
}

fn refolded(mut world: World, log: &[Record], lived: &World) -> World {
    for record in &log[usize::try_from(world.head().0).expect("a short log")..] {
        let read = Record::read(record.id, &record.body()).expect("what was written can be read");
        world.apply(&read).expect("what was lived through is possible");
    }
    assert_eq!(&world, lived, "a restart changes nothing");
    world
}

fn id(number: u64) -> AgentId {
    AgentId::from_bytes(u128::from(number).to_be_bytes())
}
