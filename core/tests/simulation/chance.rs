//! Everything random, from one seed. It knows nothing of the world, so much of what it asks for is wrong or late.

use hatchery_core::agent::{MAX_NAME_BYTES, MAX_REMARK_BYTES, MessageKind};
use hatchery_core::session::{EndReason, MAX_IDLE_MS, MAX_LABEL_BYTES, MIN_IDLE_MS};
use hatchery_core::{AgentId, Command, SessionId};

/// Few enough ids that commands meet, and enough that some are unknown for long.
const SESSIONS: u64 = 6;
const AGENTS: u64 = 8;

/// SplitMix64: seeds that lie close together give histories that do not.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("below a length")
    }

    /// How far the clock moves: mostly on, sometimes not at all, now and then back.
    pub fn tick_ms(&mut self) -> i64 {
        let ms = i64::try_from(self.below(400)).expect("below 400");
        match self.below(10) {
            0 => 0,
            1 => -5 * ms,
            _ => ms,
        }
    }

    pub fn command(&mut self) -> Command {
        let (session, agent) = (self.session(), self.agent());
        match self.below(16) {
            0..=2 => Command::StartSession { session, label: self.text(MAX_LABEL_BYTES), idle_ms: self.idle_ms() },
            3 => Command::EndSession { session, reason: self.reason() },
            4 => Command::CloseSession { session },
            5..=7 => {
                let parent = self.one_in(4).then(|| self.agent());
                let session = self.maybe_session();
                Command::CreateAgent { agent, parent, name: self.text(MAX_NAME_BYTES), session }
            }
            8 => Command::RenameAgent { agent, name: self.text(MAX_NAME_BYTES) },
            9..=10 => Command::WakeAgent { agent, session: self.maybe_session() },
            11 => Command::EndAgent { agent, remark: self.text(MAX_REMARK_BYTES) },
            12..=14 => Command::AddMessage { agent, kind: self.kind(), content: "\"why\"\n\0 é".to_owned() },
            _ => Command::Tick,
        }
    }

    fn session(&mut self) -> SessionId {
        SessionId::from_bytes(u128::from(self.below(SESSIONS)).to_be_bytes())
    }

    fn maybe_session(&mut self) -> Option<SessionId> {
        (!self.one_in(5)).then(|| self.session())
    }

    fn agent(&mut self) -> AgentId {
        AgentId::from_bytes(u128::from(self.below(AGENTS)).to_be_bytes())
    }

    /// Inactivity is left out: only settling finds it, so every `Inactive` on the log is its work.
    fn reason(&mut self) -> EndReason {
        match self.below(3) {
            0 => EndReason::Completed,
            1 => EndReason::User,
            _ => EndReason::Failed,
        }
    }

    fn kind(&mut self) -> MessageKind {
        match self.below(5) {
            0 => MessageKind::System,
            1 => MessageKind::User,
            2 => MessageKind::Assistant,
            3 => MessageKind::ToolCall,
            _ => MessageKind::ToolResult,
        }
    }

    fn idle_ms(&mut self) -> Option<u64> {
        match self.below(8) {
            0..=2 => None,
            3 => Some(MIN_IDLE_MS - 1),
            4 => Some(MAX_IDLE_MS),
            _ => Some(MIN_IDLE_MS + self.below(2_000)),
        }
    }

    /// Mostly none or a name that others bear too; sometimes as long as may be, sometimes longer.
    fn text(&mut self, max_bytes: usize) -> Option<String> {
        match self.below(12) {
            0 => Some("x".repeat(max_bytes)),
            1 => Some("x".repeat(max_bytes + 1)),
            2..=5 => Some("Cael".to_owned()),
            _ => None,
        }
    }
}
