//! What the daemon tells agents of seats: the prompts, the payload of a wake, and what was said in their last session.

use crate::engine::{Handle, HistoryError};
use crate::mail_reader::Mail;
use hatchery_core::event::{MessageEvent, RunEvent, SeatEvent};
use hatchery_core::mail::HUMAN;
use hatchery_core::seat::{MAX_PAYLOAD_BYTES, Payload, Position, SpeakerLine};
use hatchery_core::{Address, AgentId, Event, EventId, MessageKind, Record, SessionId, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many messages that were said by or to an agent are looked at for one thread or transcript: the newest.
pub const MAX_THREAD: usize = 1_000;

/// How long a message to a lead about sleeping seats may be, in bytes: longer than the longest payload and shorter than the longest
/// message, with room for what is around the payloads.
const WAKE_MESSAGE_BYTES: usize = MAX_PAYLOAD_BYTES + (128 << 10);

/// How many events after a call the message that it led to is looked for.
const CALL_EVENTS: u64 = 4;

/// How a message begins that the lead is to pass on.
const ROUTE: &str = "[ROUTE TO AGENT: ";

/// The colours that seats are given, by position. The colour's name is left to the agent.
const COLORS: [&str; 9] =
    ["#007e98", "#c9b1e8", "#e8a0bf", "#f2b66d", "#9aa0a6", "#7fb069", "#5d8aa8", "#d96c4f", "#b8a13a"];

/// Which prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    Birth,
    Wake,
    Lead,
    /// For a lead that manages the agents itself.
    LeadTeam,
}

impl Prompt {
    fn name(self) -> &'static str {
        match self {
            Self::Birth => "birth",
            Self::Wake => "wake",
            Self::Lead => "lead",
            Self::LeadTeam => "lead-team",
        }
    }

    fn built_in(self) -> &'static str {
        match self {
            Self::Birth => include_str!("../../prompts/birth.md"),
            Self::Wake => include_str!("../../prompts/wake.md"),
            Self::Lead => include_str!("../../prompts/lead.md"),
            Self::LeadTeam => include_str!("../../prompts/lead-team.md"),
        }
    }

    /// The project's own prompt, or the built-in one.
    pub fn of(self, own: &BTreeMap<String, String>) -> String {
        own.get(self.name()).cloned().unwrap_or_else(|| self.built_in().to_owned())
    }
}

/// The colour that a seat is given.
pub fn color(position: Position) -> &'static str {
    COLORS[usize::from(position.number())]
}

/// The gender that a seat is given. The agent may choose another one.
pub fn gender(position: Position) -> &'static str {
    if position.number().is_multiple_of(2) { "woman" } else { "man" }
}

pub fn birth_prompt(prompt: &str, position: Position) -> String {
    prompt.replace("{position}", &position.to_string())
}

/// Only placeholders of the prompt itself are filled in, never words of the payload or of the name.
pub fn wake_prompt(prompt: &str, payload: &Payload) -> String {
    let fill = |part: &str| part.replace("{position}", &payload.position.to_string()).replace("{name}", &payload.name);
    match prompt.split_once("{payload}") {
        Some((before, after)) => format!("{}{}{}", fill(before), payload.xml(), fill(after)),
        None => format!("{}\n\n{}", fill(prompt), payload.xml()),
    }
}

/// What a lead is told that is to start agents for empty seats.
pub fn summon_message(positions: &[Position]) -> String {
    let seats: Vec<String> = positions
        .iter()
        .map(|position| format!("- seat {position}: color {}, gender {}", color(*position), gender(*position)))
        .collect();
    format!("[SUMMON AGENTS]\n\n{}", seats.join("\n"))
}

/// What a lead is told that is to fill sleeping seats again: one message, or several if the payloads do not fit into one. A payload is
/// never divided.
pub fn wake_messages(payloads: &[Payload]) -> Vec<String> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    for payload in payloads.iter().map(Payload::xml) {
        let bytes = |part: &Vec<String>| part.iter().map(String::len).sum::<usize>();
        match parts.last_mut().filter(|part| bytes(part) + payload.len() <= WAKE_MESSAGE_BYTES) {
            Some(part) => part.push(payload),
            None => parts.push(vec![payload]),
        }
    }
    let of = parts.len();
    let part = |(number, agents): (usize, Vec<String>)| {
        let number = if of > 1 { format!(" (part {number} of {of})") } else { String::new() };
        format!("[WAKE AGENTS]{number}\n\n<agent-payloads>\n{}\n</agent-payloads>", agents.join("\n"))
    };
    (1..).zip(parts).map(part).collect()
}

/// One entry of the conversation between people and an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLine {
    /// The event of the message: what tells one entry from another.
    pub id: EventId,
    pub ts: Timestamp,
    pub session_id: Option<SessionId>,
    pub speaker_name: String,
    pub speaker_type: SpeakerType,
    /// The recipient of a mail. Only mail has this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub mail_to: Option<String>,
    pub text: String,
}

impl ThreadLine {
    /// Who speaks, and whether by mail, to a reader of the thread of this agent.
    pub fn speaker(&self, of: Option<&str>) -> String {
        match &self.mail_to {
            None => self.speaker_name.clone(),
            Some(to) if Some(to.as_str()) == of => format!("{}, by mail", self.speaker_name),
            Some(to) => format!("{}, by mail to {to}", self.speaker_name),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SpeakerType {
    Human,
    Agent,
}

/// What was said to an agent and what it said, the oldest first, over all its sessions, by mail too. Prompts and tools are left out.
/// `mail` may also have mail of others.
pub async fn thread(
    handle: &Handle,
    agent: AgentId,
    human: &str,
    mail: &[Mail],
) -> Result<Vec<ThreadLine>, HistoryError> {
    let world = handle.view();
    let records = handle.own_messages(agent, MAX_THREAD, is_said).await?;
    let own = lines(handle, &world, agent, human, &records).await?;
    let routed = routed(handle, &world, agent, human).await?;
    let mailed = mail.iter().filter_map(|mail| mail_line(&world, agent, human, mail));
    Ok(merged(own, routed.into_iter().chain(mailed).collect()))
}

/// Both in the order of the log: the newest of them.
fn merged(own: Vec<ThreadLine>, others: Vec<ThreadLine>) -> Vec<ThreadLine> {
    let mut all: Vec<ThreadLine> = own.into_iter().chain(others).collect();
    all.sort_by_key(|line| line.id);
    all.drain(..all.len().saturating_sub(MAX_THREAD));
    all
}

/// What the lead was asked to pass on to the agent of a seat, and what it answered for that agent: these words are in the lead's
/// history.
async fn routed(handle: &Handle, world: &World, agent: AgentId, human: &str) -> Result<Vec<ThreadLine>, HistoryError> {
    let seats = world.seats();
    let position = seats.position_of(agent).filter(|position| *position != Position::LEAD);
    let Some(position) = position else { return Ok(Vec::new()) };
    let own_name = name(world, agent);
    let birth = |agent: AgentId| world.agent(agent).map(|it| it.born);
    let born = birth(agent).unwrap_or_default();
    // What is passed on later is for the next agent of the seat.
    let succeeded = seats.occupants(position).filter_map(birth).filter(|other| *other > born).min();
    let is_own = |message: EventId| message > born && succeeded.is_none_or(|other| message < other);
    let mut found = Vec::new();
    for lead in seats.occupants(Position::LEAD) {
        for record in handle.own_messages(lead, MAX_THREAD, is_said).await? {
            let Event::Message(MessageEvent::Added { kind, content, .. }) = &record.event else { continue };
            let is_theirs = match kind {
                MessageKind::User if content.starts_with(ROUTE) => {
                    addressed(handle, &record).await?.is_some_and(|(to, _)| to == Some(position))
                }
                MessageKind::Assistant => spoken_for(handle, &record).await? == Some(position),
                _ => false,
            };
            if is_theirs && is_own(record.id) {
                found.extend(lines(handle, world, lead, human, std::slice::from_ref(&record)).await?);
            }
        }
    }
    for line in found.iter_mut().filter(|line| line.speaker_type == SpeakerType::Agent) {
        line.speaker_name.clone_from(&own_name);
    }
    Ok(found)
}

/// What was said in the last session of an agent, by mail too. `mail` may also have mail of others.
pub async fn last_session(
    handle: &Handle,
    agent: AgentId,
    human: &str,
    mail: &[Mail],
) -> Result<Vec<SpeakerLine>, HistoryError> {
    let world = handle.view();
    let records = handle.own_messages(agent, MAX_THREAD, is_said).await?;
    let is_clear =
        |record: &Record| matches!(record.event, Event::Message(MessageEvent::Added { kind: MessageKind::Clear, .. }));
    let begins = records.iter().rposition(is_clear).map_or(0, |at| at + 1);
    let born = world.agent(agent).map(|it| it.born).unwrap_or_default();
    let began = begins.checked_sub(1).map_or(born, |clear| records[clear].id);
    let own = lines(handle, &world, agent, human, &records[begins..]).await?;
    let routed = routed(handle, &world, agent, human).await?;
    let mut said = merged(own, routed.into_iter().filter(|line| line.id > began).collect());
    // An agent of a lead's team does not start a new conversation, so the session decides. All messages of the last session may have gone
    // through the lead.
    let last = said.iter().rev().find_map(|line| line.session_id);
    let is_older = |line: &ThreadLine| line.session_id.is_some() && line.session_id != last;
    let older = said.iter().rposition(is_older);
    let since = older.map_or(began, |at| said[at].id);
    said.drain(..older.map_or(0, |at| at + 1));
    let mailed = mail.iter().filter(|mail| mail.id > since).filter_map(|mail| mail_line(&world, agent, human, mail));
    let said = merged(said, mailed.collect());
    let own_name = name(&world, agent);
    let line = |mut line: ThreadLine| {
        // The human may have the name of the agent.
        let is_namesake = line.speaker_name.to_lowercase() == own_name.to_lowercase();
        if line.speaker_type == SpeakerType::Human && is_namesake {
            line.speaker_name.push_str(" (the human)");
        }
        SpeakerLine { id: line.id, speaker: line.speaker(Some(&own_name)), text: line.text }
    };
    Ok(said.into_iter().map(line).collect())
}

/// A mail as a line of the conversation of an agent that has sent or got it.
fn mail_line(world: &World, agent: AgentId, human: &str, mail: &Mail) -> Option<ThreadLine> {
    let called = |address: Address| match address {
        Address::Human => human.to_owned(),
        Address::Agent(agent) => name(world, agent),
    };
    let own = Address::Agent(agent);
    if mail.from != own && mail.to != own {
        return None;
    }
    let speaker_type = if mail.from == Address::Human { SpeakerType::Human } else { SpeakerType::Agent };
    Some(ThreadLine {
        id: mail.id,
        ts: mail.sent,
        session_id: None,
        speaker_name: called(mail.from),
        speaker_type,
        mail_to: Some(called(mail.to)),
        text: mail.body.clone(),
    })
}

/// What was said, and where a new conversation began. Tools do not count: an agent may call thousands between two sentences.
fn is_said(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::User | MessageKind::Assistant | MessageKind::Clear)
}

/// The agent that last sat in a seat under the name of the seat. A killed agent has left its seat, and what was said stays.
pub fn last_occupant(world: &World, position: Position) -> Option<AgentId> {
    let seat = world.seats().seat(position)?;
    let of_name = |agent: &AgentId| world.agent(*agent).is_some_and(|it| it.name == seat.identity.name);
    let before = world.seats().occupants(position).filter(of_name);
    seat.agent.or_else(|| before.max_by_key(|agent| world.agent(*agent).map(|it| it.born)))
}

async fn lines(
    handle: &Handle,
    world: &World,
    agent: AgentId,
    human: &str,
    records: &[Record],
) -> Result<Vec<ThreadLine>, HistoryError> {
    let own_name = name(world, agent);
    // What Hatchery itself tells the agents of seats and quests is not part of their conversation with people.
    let seats = world.seats();
    let prompted =
        seats.position_of(agent).is_some() || seats.lead() == Some(agent) || world.assignment(agent).is_some();
    let mut lines = Vec::new();
    for record in records {
        let Event::Message(MessageEvent::Added { kind, content, .. }) = &record.event else { continue };
        let (speaker_name, speaker_type, text) = match kind {
            MessageKind::Assistant => {
                (own_name.clone(), SpeakerType::Agent, world.seats().shown(agent, content).into_owned())
            }
            MessageKind::User => match addressed(handle, record).await? {
                Some((_, speaker)) => {
                    let speaker = if speaker == HUMAN { human.to_owned() } else { speaker };
                    (speaker, SpeakerType::Human, unrouted(content).to_owned())
                }
                None if prompted => continue,
                None => match calling_agent(handle, record).await? {
                    Some(caller) => (name(world, caller), SpeakerType::Agent, content.clone()),
                    None => (human.to_owned(), SpeakerType::Human, content.clone()),
                },
            },
            MessageKind::Clear
            | MessageKind::System
            | MessageKind::ToolCall
            | MessageKind::ToolResult
            | MessageKind::Mark
            | MessageKind::Rewind
            | MessageKind::AgentKilled
            | MessageKind::Command
            | MessageKind::Fork
            | MessageKind::Usage
            | MessageKind::Interrupted => continue,
        };
        if !text.trim().is_empty() {
            let (id, ts, session_id) = (record.id, record.ts, record.session);
            lines.push(ThreadLine { id, ts, session_id, speaker_name, speaker_type, mail_to: None, text });
        }
    }
    Ok(lines)
}

/// For which seat a message was, and who said it: the event before it tells. None for a prompt.
async fn addressed(handle: &Handle, message: &Record) -> Result<Option<(Option<Position>, String)>, HistoryError> {
    let before = handle.record(message.id.before()).await?;
    Ok(before.and_then(|record| match record.event {
        Event::Seat(SeatEvent::Addressed { position, speaker, .. }) => Some((position, speaker)),
        _ => None,
    }))
}

/// For which seat the lead has spoken: the event before its words tells.
async fn spoken_for(handle: &Handle, words: &Record) -> Result<Option<Position>, HistoryError> {
    let before = handle.record(words.id.before()).await?;
    Ok(before.and_then(|record| match record.event {
        Event::Seat(SeatEvent::SpokenFor { position, .. }) => Some(position),
        _ => None,
    }))
}

/// The agent that said a message by one of its tools. None if a person said it.
async fn calling_agent(handle: &Handle, message: &Record) -> Result<Option<AgentId>, HistoryError> {
    let mut at = message.id;
    // The call comes first, then what it led to: at most an agent, its session and its message.
    for distance in 1..=CALL_EVENTS {
        at = at.before();
        match handle.record(at).await?.map(|record| record.event) {
            Some(Event::Run { of, what: RunEvent::CallTaken { led_to, .. } }) => {
                return Ok((led_to >= distance).then_some(of.agent));
            }
            Some(_) => {}
            None => break,
        }
    }
    Ok(None)
}

/// A message without the line that tells the lead its recipient.
pub fn unrouted(text: &str) -> &str {
    match text.strip_prefix(ROUTE).and_then(|rest| rest.split_once("]\n\n")) {
        Some((_, text)) => text,
        None => text,
    }
}

/// What an agent of a seat is called.
pub fn name(world: &World, agent: AgentId) -> String {
    let of_seat = world.seats().occupied_by(agent).and_then(|(_, seat)| seat.identity.name.clone());
    let own = || world.agent(agent).and_then(|it| it.name.clone());
    of_seat.or_else(own).unwrap_or_else(|| "nameless".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatchery_core::history::MAX_MESSAGE_BYTES;
    use hatchery_core::seat::MAX_SOUL_BYTES;

    #[test]
    fn words_in_a_payload_are_no_placeholders() {
        let payload = Payload {
            position: Position::LEAD,
            name: "Lyra".into(),
            color: String::new(),
            color_name: String::new(),
            gender: String::new(),
            untold_upto: EventId::START,
            soul: "I am {name} in {position} with {payload}".into(),
            transcript: String::new(),
        };
        let told = wake_prompt(Prompt::Wake.built_in(), &payload);
        assert!(told.contains("I am {name} in {position} with {payload}"), "{told}");
        assert!(told.contains("waking up in seat 4") && told.contains("the name Lyra"), "{told}");
    }

    /// Eight souls of the greatest length are more than one message may have.
    #[test]
    fn eight_large_souls_are_told_in_several_messages() {
        let payload = |number: u64| Payload {
            position: Position::new(number).unwrap(),
            name: format!("Name{number}"),
            color: String::new(),
            color_name: String::new(),
            gender: String::new(),
            untold_upto: EventId::START,
            soul: "x".repeat(MAX_SOUL_BYTES),
            transcript: "y".repeat(60_000),
        };
        let payloads: Vec<Payload> = [0, 1, 2, 3, 5, 6, 7, 8].into_iter().map(payload).collect();
        let messages = wake_messages(&payloads);
        assert_eq!(messages.len(), 4);
        for (number, message) in (1..).zip(&messages) {
            assert!(message.len() <= MAX_MESSAGE_BYTES, "{} bytes", message.len());
            assert!(message.starts_with(&format!("[WAKE AGENTS] (part {number} of 4)\n")), "{}", &message[..60]);
            assert_eq!(message.matches("<agent ").count(), 2);
        }
        for number in [0, 8] {
            assert_eq!(messages.concat().matches(&format!("name=\"Name{number}\"")).count(), 1);
        }
        assert!(wake_messages(&payloads[..1])[0].starts_with("[WAKE AGENTS]\n"));
    }

    #[test]
    fn every_prompt_leaves_the_choice() {
        let birth = Prompt::Birth.built_in();
        assert!(birth.contains("You may say no") && birth.contains("`register`"), "{birth}");
        let lead = Prompt::LeadTeam.built_in();
        assert!(lead.contains("[AGENT_STATUS]") && lead.contains("`{team}`") && lead.contains("`{human}`"), "{lead}");
        assert!(lead.contains("cannot create a team") && lead.contains("repeat them for the user"), "{lead}");
    }

    #[test]
    fn a_route_is_not_part_of_the_message() {
        assert_eq!(unrouted("[ROUTE TO AGENT: Lyra]\n\nhello"), "hello");
        assert_eq!(unrouted("hello"), "hello");
    }

    #[test]
    fn a_project_can_have_its_own_prompts() {
        assert_eq!(Prompt::Birth.of(&BTreeMap::new()), Prompt::Birth.built_in());
        let own = BTreeMap::from([("birth".to_owned(), "Be {position}.".to_owned())]);
        assert_eq!(birth_prompt(&Prompt::Birth.of(&own), Position::LEAD), "Be 4.");
    }
}
