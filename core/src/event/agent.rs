//! The events of an agent, apart from those of its processes.

use crate::agent::{Birth, Origin};
use crate::run::{ForeignSession, RunSpec};
use crate::{AgentId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum AgentEvent {
    /// Agent 0 was registered, or an agent was forked.
    #[serde(rename = "agent_created")]
    Created {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<AgentId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// Set for an egg. The egg expires at this time unless it has spoken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hatch_by: Option<Timestamp>,
    },
    /// A fork was requested while tools ran in this agent, the parent. The child is created when the tools have returned.
    #[serde(rename = "fork_requested")]
    ForkRequested { birth: Birth },
    /// This agent was killed before its tools were done, so the waiting fork is cancelled.
    #[serde(rename = "fork_cancelled")]
    ForkCancelled { child: AgentId },
    /// An egg spoke for the first time.
    #[serde(rename = "agent_hatched")]
    Hatched,
    /// An egg did not speak in time.
    #[serde(rename = "agent_expired")]
    Expired,
    #[serde(rename = "agent_renamed")]
    Renamed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// The agent rests until it is woken. Its history is kept.
    #[serde(rename = "agent_slept")]
    Slept,
    #[serde(rename = "agent_woken")]
    Woken {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    #[serde(rename = "agent_killed")]
    Killed {
        /// The agent that killed this one. None if the user did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remark: Option<String>,
    },
    /// The agent's parent was killed. The agent has another parent now and keeps the history that it inherited.
    #[serde(rename = "agent_reparented")]
    Reparented { parent: AgentId },
    /// The agent continues a conversation that was started outside of Hatchery.
    #[serde(rename = "harness_session_adopted")]
    HarnessSessionAdopted(ForeignSession),
    /// A process was requested for the agent.
    #[serde(rename = "run_requested")]
    RunRequested { run: u32, spec: RunSpec },
}
