//! What can happen in one attempt of a run.

use super::Refused;
use crate::harness::Capabilities;
use crate::outcome::{Cause, Exit};
use crate::output::{Output, TurnEnd};
use crate::permission::{DecidedBy, PermissionDecision};
use crate::run::{Process, StopWhy};
use crate::usage::{ContextUse, Usage};
use crate::{EventId, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum RunEvent {
    /// The attempt has a process.
    #[serde(rename = "run_spawned")]
    Spawned {
        process: Process,
        /// The id of the session in the harness, if it is known before the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The conversation of the forked agent, if this one starts as a copy of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy_of: Option<String>,
        /// What the harness of the process can do. Older logs do not say so: all harnesses of that time could do everything.
        #[serde(default = "Capabilities::all")]
        capabilities: Capabilities,
    },
    /// There is no process yet, because as many agents run as may. The run waits for its turn.
    #[serde(rename = "run_waiting")]
    Waiting,
    /// The process has shown that it can call our tools.
    #[serde(rename = "run_started")]
    Started {
        session: String,
        /// The model that plays the agent, if the harness says so. Older logs do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The tools that it has, if the harness says so.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
    },
    /// The process has taken in something that was said to it.
    #[serde(rename = "message_heard")]
    MessageHeard { message: EventId },
    /// The process said something that is not part of its agent's history.
    #[serde(rename = "output_noted")]
    OutputNoted { output: Output },
    /// The output of the process was read up to this byte.
    #[serde(rename = "output_taken")]
    OutputTaken { upto: u64 },
    /// A tool call of the agent was handled. The events that it led to follow right after this one.
    #[serde(rename = "call_taken")]
    CallTaken {
        /// The number of the call in the attempt: 1, 2, 3, …
        number: u64,
        /// How many events it led to.
        led_to: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<Refused>,
        /// It was a signal about a step of a quest.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        signal: bool,
    },
    /// It is decided whether the process may use the tool that it asked for.
    #[serde(rename = "permission_decided")]
    PermissionDecided {
        /// The id that the process gave to its request.
        request: String,
        decision: PermissionDecision,
        by: DecidedBy,
    },
    #[serde(rename = "turn_started")]
    TurnStarted,
    #[serde(rename = "turn_ended")]
    TurnEnded {
        end: TurnEnd,
        spent: Usage,
        /// The part of `spent` that was counted before, request by request ([`RunEvent::Metered`]), as far as it was then known.
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        metered: Usage,
    },
    /// The process has asked the model, in a turn that is not over. The cost is an estimate by list prices.
    #[serde(rename = "usage_metered")]
    Metered {
        used: Usage,
        /// How full the context is, if the agent itself has asked and not a sub-agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<ContextUse>,
    },
    /// The process has been silent for longer than its run allows.
    #[serde(rename = "run_silent")]
    Silent { since: Timestamp },
    /// The current turn is to be interrupted.
    #[serde(rename = "run_interrupted")]
    Interrupted,
    /// The run is to be stopped. This is logged before any signal is sent.
    #[serde(rename = "run_stopping")]
    Stopping { why: StopWhy },
    /// The run waits, for example until a rate limit is over. Waiting costs nothing.
    #[serde(rename = "run_parked")]
    Parked {
        cause: Cause,
        /// When the run continues by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        detail: String,
    },
    /// The process ended before its work was done. Another attempt follows.
    #[serde(rename = "run_crashed")]
    Crashed {
        cause: Cause,
        detail: String,
        exit: Exit,
        /// The harness has lost the conversation: the next attempt starts a new one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        forgotten: bool,
    },
    /// The run has used up a budget. It finishes its turn and starts nothing more.
    #[serde(rename = "budget_reached")]
    BudgetReached,
    /// This attempt is the next one of its run.
    #[serde(rename = "run_resumed")]
    Resumed,
    #[serde(rename = "run_ended")]
    Ended { cause: Cause, detail: String, exit: Exit },
}
