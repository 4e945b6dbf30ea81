//! Random mail against plain queues. Two takers see the same mailboxes, each late, and race for what is in them.

use crate::chance::Chance;
use crate::log::Log;
use hatchery_core::agent::Birth;
use hatchery_core::event::{AgentEvent, MailEvent};
use hatchery_core::{Address, AgentId, Command, Event, EventId, Record, Refusal, Timestamp, World, rests_on, step};
use std::collections::{BTreeMap, BTreeSet};

/// What all seeds together must have met.
pub const MARKS: [&str; 8] =
    ["agent_dead", "delivered", "no_mail", "not_unread", "picked out", "race for a mail", "read", "unknown_agent"];

/// Agents 0 to 2 are there, 3 never is.
const AGENTS: u64 = 4;

pub struct Post {
    pub met: BTreeSet<&'static str>,
    log: Log,
    takers: [World; 2],
    queues: BTreeMap<Address, Vec<Mail>>,
    dead: BTreeSet<AgentId>,
}

#[derive(Clone, Copy)]
struct Mail {
    id: EventId,
    from: Address,
    taken: bool,
}

impl Post {
    pub fn new() -> Self {
        let mut post = Self {
            met: BTreeSet::new(),
            log: Log::default(),
            takers: Default::default(),
            queues: BTreeMap::new(),
            dead: BTreeSet::new(),
        };
        let found = Command::FoundRegistry { agent: agent(0), name: None };
        let forks = [1, 2].map(|child| Command::Fork { parent: agent(0), at: None, birth: Birth::of(agent(child)) });
        for command in [found].into_iter().chain(forks) {
            post.submit(0, &command).expect("three agents can be made");
        }
        post
    }

    pub fn turn(&mut self, chance: &mut Chance) {
        let who = chance.index(self.takers.len());
        let (from, to) = (address(chance), address(chance));
        let command = match chance.below(16) {
            0..=5 => Command::SendMail { from, to, body: String::new() },
            6..=10 => Command::TakeMail { to, from: chance.one_in(3).then_some(from) },
            11..=13 => Command::ReadMail { to, mail: chance.one_in(2).then(|| EventId(chance.below(40))) },
            14 => return self.catch_up(who),
            _ if !chance.one_in(6) => return,
            _ => Command::Kill { agent: agent(1 + chance.below(2)), cascade: false, by: None, remark: None },
        };
        let answer = self.submit(who, &command);
        self.judge(&command, answer);
    }

    /// Decides on what this taker has seen; whoever was too late looks again.
    fn submit(&mut self, who: usize, command: &Command) -> Result<Vec<Event>, Refusal> {
        loop {
            let mut tentative = self.takers[who].clone();
            let seen = tentative.head();
            let late = seen != self.log.head();
            match step(&mut tentative, command, Timestamp(0)) {
                Ok(records) => match self.log.append(seen, &rests_on(command, &records), records) {
                    Ok(records) => {
                        self.catch_up(who);
                        return Ok(records.into_iter().map(|record: Record| record.event).collect());
                    }
                    Err(_) if matches!(command, Command::TakeMail { .. }) => {
                        self.met.insert("race for a mail");
                    }
                    Err(_) => {}
                },
                Err(_) if late => {}
                Err(refusal) => return Err(refusal),
            }
            assert!(late, "nobody conflicts with itself");
            self.catch_up(who);
        }
    }

    /// Whether it is what plain queues would have answered.
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is asked here")]
    fn judge(&mut self, command: &Command, answer: Result<Vec<Event>, Refusal>) {
        let expected = match command {
            Command::SendMail { from, to, body } => self.present(*from).and_then(|()| self.present(*to)).map(|()| {
                let mail = Mail { id: self.log.head(), from: *from, taken: false };
                self.queues.entry(*to).or_default().push(mail);
                Event::Mail(MailEvent::Sent { from: *from, to: *to, body: body.clone() })
            }),
            Command::TakeMail { to, from } => {
                let queue = self.queues.entry(*to).or_default();
                let wanted = |mail: &&mut Mail| !mail.taken && from.is_none_or(|from| from == mail.from);
                match queue.iter_mut().find(wanted) {
                    Some(mail) => {
                        mail.taken = true;
                        self.met.insert(if from.is_some() { "picked out" } else { "delivered" });
                        Ok(Event::Mail(MailEvent::Delivered { to: *to, mail: mail.id }))
                    }
                    None => Err(self.why_none(*to, *from)),
                }
            }
            Command::ReadMail { to, mail } => {
                let queue = self.queues.entry(*to).or_default();
                let wanted = queue.iter().position(|it| mail.is_none_or(|mail| mail == it.id));
                match (wanted, mail) {
                    (Some(place), _) => {
                        self.met.insert("read");
                        Ok(Event::Mail(MailEvent::Read { to: *to, mail: queue.remove(place).id }))
                    }
                    (None, Some(_)) => Err("not_unread"),
                    (None, None) => Err(self.why_none(*to, None)),
                }
            }
            Command::Kill { agent, .. } => {
                let first = self.dead.insert(*agent);
                first
                    .then_some(Event::Agent { agent: *agent, what: AgentEvent::Killed { by: None, remark: None } })
                    .ok_or("agent_dead")
            }
            other => panic!("no mail: {other:?}"),
        };
        if let Err(code) = expected {
            self.met.insert(code);
        }
        assert_eq!(answer.map_err(|refusal| refusal.code()), expected.map(|event| vec![event]), "{command:?}");
    }

    fn why_none(&self, to: Address, from: Option<Address>) -> &'static str {
        let gone = from.into_iter().chain([to]).find_map(|party| self.present(party).err());
        gone.unwrap_or("no_mail")
    }

    fn present(&self, party: Address) -> Result<(), &'static str> {
        match party {
            Address::Agent(agent) if self.dead.contains(&agent) => Err("agent_dead"),
            Address::Agent(unknown) if unknown == agent(AGENTS - 1) => Err("unknown_agent"),
            Address::Agent(_) | Address::Human => Ok(()),
        }
    }

    fn catch_up(&mut self, who: usize) {
        let world = &mut self.takers[who];
        for record in self.log.read_after(world.head()) {
            world.apply(&record).expect("what was written is possible");
        }
    }
}

fn address(chance: &mut Chance) -> Address {
    match chance.below(AGENTS + 1) {
        AGENTS => Address::Human,
        number => Address::Agent(agent(number)),
    }
}

fn agent(number: u64) -> AgentId {
    AgentId::from_bytes(u128::from(number).to_be_bytes())
}
