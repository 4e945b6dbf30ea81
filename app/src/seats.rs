//! What the daemon tells agents of seats: the prompts, the payload of a wake, and what was said in their last session.

use crate::engine::{Handle, HistoryError};
use hatchery_core::event::{MessageEvent, SeatEvent};
use hatchery_core::seat::{Line, Payload, Position, scan};
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, SessionId, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::Path;

/// How many messages that were said by or to an agent are looked at for one thread or transcript: the newest.
pub const MAX_THREAD: usize = 1_000;

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
    pub fn read(self, folder: &Path) -> io::Result<String> {
        match std::fs::read_to_string(folder.join(format!("{}.md", self.name()))) {
            Ok(own) => Ok(own),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(self.built_in().to_owned()),
            Err(error) => Err(error),
        }
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

/// What a lead is told that is to fill sleeping seats again.
pub fn wake_message(payloads: &[Payload]) -> String {
    let agents: Vec<String> = payloads.iter().map(Payload::xml).collect();
    format!("[WAKE AGENTS]\n\n<agent-payloads>\n{}\n</agent-payloads>", agents.join("\n"))
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
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SpeakerType {
    Human,
    Agent,
}

/// What was said to an agent and what it said, the oldest first, over all its sessions. Prompts and tools are left out.
pub async fn thread(handle: &Handle, agent: AgentId, human: &str) -> Result<Vec<ThreadLine>, HistoryError> {
    let world = handle.view();
    let records = handle.own_messages(agent, MAX_THREAD, is_said).await?;
    lines(handle, &world, agent, human, &records).await
}

/// What was said in the last session of an agent.
pub async fn last_session(handle: &Handle, agent: AgentId, human: &str) -> Result<Vec<Line>, HistoryError> {
    let world = handle.view();
    let records = handle.own_messages(agent, MAX_THREAD, is_said).await?;
    let is_clear =
        |record: &Record| matches!(record.event, Event::Message(MessageEvent::Added { kind: MessageKind::Clear, .. }));
    let begins = records.iter().rposition(is_clear).map_or(0, |at| at + 1);
    let mut said = lines(handle, &world, agent, human, &records[begins..]).await?;
    // An agent of a lead's team begins no conversation anew. There the session tells.
    let last = said.iter().rev().find_map(|line| line.session_id);
    let is_older = |line: &ThreadLine| line.session_id.is_some() && line.session_id != last;
    said.drain(..said.iter().rposition(is_older).map_or(0, |at| at + 1));
    Ok(said.into_iter().map(|line| Line { speaker: line.speaker_name, text: line.text }).collect())
}

/// What was said, and where a conversation began anew. Tools do not count: an agent may call thousands between two sentences.
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
    let mut lines = Vec::new();
    for record in records {
        let Event::Message(MessageEvent::Added { kind, content, .. }) = &record.event else { continue };
        let (speaker_name, speaker_type, text) = match kind {
            MessageKind::Assistant => (own_name.clone(), SpeakerType::Agent, scan(content).shown),
            MessageKind::User => match speaker(handle, record).await? {
                Some(speaker) => {
                    let speaker = if speaker == "human" { human.to_owned() } else { speaker };
                    (speaker, SpeakerType::Human, unrouted(content).to_owned())
                }
                None => continue,
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
            lines.push(ThreadLine { id, ts, session_id, speaker_name, speaker_type, text });
        }
    }
    Ok(lines)
}

/// Who said a message: the event before it tells. None for a prompt.
async fn speaker(handle: &Handle, message: &Record) -> Result<Option<String>, HistoryError> {
    let before = handle.record(message.id.before()).await?;
    Ok(before.and_then(|record| match record.event {
        Event::Seat(SeatEvent::Addressed { speaker, .. }) => Some(speaker),
        _ => None,
    }))
}

/// A message without the line that tells the lead for whom it is.
pub fn unrouted(text: &str) -> &str {
    match text.strip_prefix("[ROUTE TO AGENT: ").and_then(|rest| rest.split_once("]\n\n")) {
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

    #[test]
    fn words_in_a_payload_are_no_placeholders() {
        let payload = Payload {
            position: Position::LEAD,
            name: "Lyra".into(),
            color: String::new(),
            color_name: String::new(),
            soul: "I am {name} in {position} with {payload}".into(),
            transcript: String::new(),
        };
        let told = wake_prompt(Prompt::Wake.built_in(), &payload);
        assert!(told.contains("I am {name} in {position} with {payload}"), "{told}");
        assert!(told.contains("waking up in seat 4") && told.contains("the name Lyra"), "{told}");
    }

    #[test]
    fn every_prompt_leaves_the_choice() {
        let birth = Prompt::Birth.built_in();
        assert!(birth.contains("You may say no") && birth.contains("`register`"), "{birth}");
        assert!(Prompt::LeadTeam.built_in().contains("[AGENT_STATUS]"));
    }

    #[test]
    fn a_route_is_not_part_of_the_message() {
        assert_eq!(unrouted("[ROUTE TO AGENT: Lyra]\n\nhello"), "hello");
        assert_eq!(unrouted("hello"), "hello");
    }

    #[test]
    fn a_project_can_have_its_own_prompts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Prompt::Birth.read(folder.path()).unwrap(), Prompt::Birth.built_in());
        std::fs::write(folder.path().join("birth.md"), "Be {position}.").unwrap();
        let own = Prompt::Birth.read(folder.path()).unwrap();
        assert_eq!(birth_prompt(&own, Position::LEAD), "Be 4.");
    }
}
