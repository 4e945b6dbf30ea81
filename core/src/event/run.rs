//! The events of one attempt of a run.

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
        /// The harness session of the forked agent, if this one starts as a copy of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy_of: Option<String>,
        /// What the harness of the process can do. Older logs do not contain this: all harnesses of that time had all capabilities.
        #[serde(default = "Capabilities::all")]
        capabilities: Capabilities,
    },
    /// There is no process yet, because `max_runs` agents have processes. The run waits for its turn.
    #[serde(rename = "run_waiting")]
    Waiting,
    /// The process has shown that it can call Hatchery's tools.
    #[serde(rename = "run_started")]
    Started {
        session: String,
        /// The model of the agent, if the harness reports it. Older logs do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The tools of the process, if the harness reports them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
    },
    /// The process has received a message.
    #[serde(rename = "message_heard")]
    MessageHeard { message: EventId },
    /// An output of the process that is not part of the agent's history.
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
        /// How many events the call led to.
        led_to: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<Refused>,
        /// The call was a signal about a step of a quest.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        signal: bool,
    },
    /// The decision whether the process may use the tool that it asked for.
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
        /// The part of `spent` that was counted before, request by request ([`RunEvent::Metered`]).
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        metered: Usage,
    },
    /// The usage of one request to the model, in a turn that has not ended. The cost is an estimate by list prices.
    #[serde(rename = "usage_metered")]
    Metered {
        used: Usage,
        /// How full the context is, if the request was the agent's own and not a subagent's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<ContextUse>,
    },
    /// The process has been silent for longer than the run allows.
    #[serde(rename = "run_silent")]
    Silent { since: Timestamp },
    /// The current turn is to be interrupted.
    #[serde(rename = "run_interrupted")]
    Interrupted,
    /// The run is to be stopped. This is logged before any signal is sent.
    #[serde(rename = "run_stopping")]
    Stopping { why: StopWhy },
    /// The run waits, for example until a rate limit is over. A waiting run has no process and costs nothing.
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
        /// The harness has lost its session. The next attempt starts a new one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        forgotten: bool,
    },
    /// The run has used up a budget. No turn begins after this one. Whether the turn is interrupted is another event.
    #[serde(rename = "budget_reached")]
    BudgetReached,
    /// The run continues with this attempt.
    #[serde(rename = "run_resumed")]
    Resumed,
    #[serde(rename = "run_ended")]
    Ended { cause: Cause, detail: String, exit: Exit },
}
