//! The states of a seat. [`next`] defines the effect of every input in every state; nothing else changes a state.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// The state of a seat. A seat without a state was never summoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeatState {
    /// An agent was created and has not chosen a name yet.
    Hatching { until: Timestamp },
    /// The lead or the daemon has reported that the agent works or waits for a message.
    Alive,
    /// The process has ended. If `waking` is set, the seat is about to be filled again, and this is the time when the wake counts as
    /// failed.
    Sleeping { waking: Option<Timestamp> },
    /// The agent chose no name in time. The seat can be summoned again.
    Expired,
}

/// What can happen to one seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatInput {
    Summoned {
        until: Timestamp,
    },
    /// A name and a soul arrived.
    Registered,
    ReportedAlive,
    /// The lead or the daemon reported the agent as alive, with a name.
    ReportedByName,
    /// The lead or the daemon reported, and the seat is not listed or is listed as shut down.
    ReportedGone,
    WakeBegun {
        until: Timestamp,
    },
    /// The seat was woken and has no soul, so its new agent is hatching.
    Reborn {
        until: Timestamp,
    },
    SessionEnded,
    TimeUp,
    /// The agent in the seat was killed or has expired.
    OccupantGone,
}

impl SeatState {
    pub const ASLEEP: Self = Self::Sleeping { waking: None };

    /// The name of the state, the same in all interfaces.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hatching { .. } => "hatching",
            Self::Alive => "alive",
            Self::Sleeping { .. } => "sleeping",
            Self::Expired => "expired",
        }
    }

    /// The time at which the state changes without another input.
    pub fn deadline(self) -> Option<Timestamp> {
        match self {
            Self::Hatching { until } => Some(until),
            Self::Sleeping { waking } => waking,
            Self::Alive | Self::Expired => None,
        }
    }
}

/// The state after an input. Every pair is named, so that a new state or input has to be considered everywhere.
pub fn next(state: Option<SeatState>, input: SeatInput) -> Option<SeatState> {
    use SeatState::{Alive, Expired, Hatching, Sleeping};
    match (state, input) {
        // Births. A summon never changes an identity, and a name counts whenever it arrives.
        (None | Some(Expired), SeatInput::Summoned { until }) => Some(Hatching { until }),
        (Some(Hatching { .. } | Alive | Sleeping { .. }), SeatInput::Summoned { .. }) => state,
        (_, SeatInput::Registered) => Some(Alive),
        // A report does not change a hatching seat, because it may have been written before the summon.
        (Some(Hatching { .. }), SeatInput::ReportedAlive | SeatInput::ReportedGone) => state,
        // With a name the agent has hatched, even if the name is late.
        (_, SeatInput::ReportedByName) => Some(Alive),
        (None | Some(Alive | Sleeping { .. }), SeatInput::ReportedAlive) => Some(Alive),
        (Some(Expired), SeatInput::ReportedAlive) => Some(Expired),
        (Some(Alive), SeatInput::ReportedGone) => Some(SeatState::ASLEEP),
        // A report about others does not end the wake of this seat.
        (None | Some(Sleeping { .. } | Expired), SeatInput::ReportedGone) => state,
        // Wakes.
        (Some(Sleeping { .. }), SeatInput::WakeBegun { until }) => Some(Sleeping { waking: Some(until) }),
        (Some(Sleeping { .. }), SeatInput::Reborn { until }) => Some(Hatching { until }),
        (None | Some(Hatching { .. } | Alive | Expired), SeatInput::WakeBegun { .. } | SeatInput::Reborn { .. }) => {
            state
        }
        // Ends.
        (Some(Alive | Sleeping { .. }), SeatInput::SessionEnded) => Some(SeatState::ASLEEP),
        (None | Some(Hatching { .. } | Expired), SeatInput::SessionEnded) => state,
        (Some(Hatching { .. }), SeatInput::TimeUp | SeatInput::OccupantGone) => Some(Expired),
        (Some(Sleeping { .. }), SeatInput::TimeUp | SeatInput::OccupantGone) => Some(SeatState::ASLEEP),
        (Some(Alive), SeatInput::TimeUp) => Some(Alive),
        (Some(Alive), SeatInput::OccupantGone) => Some(SeatState::ASLEEP),
        (None | Some(Expired), SeatInput::TimeUp | SeatInput::OccupantGone) => state,
    }
}

/// The one button that the page shows for all seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Button {
    Summon,
    Wake,
    /// Something is in progress, so the button cannot be pressed.
    Waking,
    /// All agents of the seats are alive.
    None,
}

/// The button that is shown, from the states of all seats with a state.
pub fn button(states: impl IntoIterator<Item = SeatState>) -> Button {
    let visible: Vec<SeatState> = states.into_iter().filter(|state| *state != SeatState::Expired).collect();
    let busy =
        |state: &SeatState| matches!(state, SeatState::Hatching { .. } | SeatState::Sleeping { waking: Some(_) });
    match visible {
        visible if visible.iter().any(busy) => Button::Waking,
        visible if visible.is_empty() => Button::Summon,
        visible if visible.contains(&SeatState::ASLEEP) => Button::Wake,
        _ => Button::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SeatState::{Alive, Expired, Hatching, Sleeping};
    use proptest::prelude::*;

    const T: Timestamp = Timestamp(1);
    const U: Timestamp = Timestamp(2);
    const EGG: SeatState = Hatching { until: T };
    const RISING: SeatState = Sleeping { waking: Some(T) };
    const ASLEEP: SeatState = SeatState::ASLEEP;

    const INPUTS: [SeatInput; 10] = [
        SeatInput::Summoned { until: U },
        SeatInput::Registered,
        SeatInput::ReportedAlive,
        SeatInput::ReportedByName,
        SeatInput::ReportedGone,
        SeatInput::WakeBegun { until: U },
        SeatInput::Reborn { until: U },
        SeatInput::SessionEnded,
        SeatInput::TimeUp,
        SeatInput::OccupantGone,
    ];

    /// One row for each state, one column for each input, in the order of `INPUTS`.
    #[rustfmt::skip]
    const TABLE: [(Option<SeatState>, [Option<SeatState>; 10]); 6] = {
        const NEW_EGG: SeatState = Hatching { until: U };
        const NEW_WAKE: SeatState = Sleeping { waking: Some(U) };
        [
            //               summoned        registered   alive        by name      gone          wake            reborn         session end   time up        gone
            (None,         [Some(NEW_EGG), Some(Alive), Some(Alive), Some(Alive), None,         None,           None,          None,         None,          None]),
            (Some(EGG),    [Some(EGG),     Some(Alive), Some(EGG),   Some(Alive), Some(EGG),    Some(EGG),      Some(EGG),     Some(EGG),    Some(Expired), Some(Expired)]),
            (Some(Alive),  [Some(Alive),   Some(Alive), Some(Alive), Some(Alive), Some(ASLEEP), Some(Alive),    Some(Alive),   Some(ASLEEP), Some(Alive),   Some(ASLEEP)]),
            (Some(ASLEEP), [Some(ASLEEP),  Some(Alive), Some(Alive), Some(Alive), Some(ASLEEP), Some(NEW_WAKE), Some(NEW_EGG), Some(ASLEEP), Some(ASLEEP),  Some(ASLEEP)]),
            (Some(RISING), [Some(RISING),  Some(Alive), Some(Alive), Some(Alive), Some(RISING), Some(NEW_WAKE), Some(NEW_EGG), Some(ASLEEP), Some(ASLEEP),  Some(ASLEEP)]),
            (Some(Expired),[Some(NEW_EGG), Some(Alive), Some(Expired), Some(Alive), Some(Expired), Some(Expired), Some(Expired), Some(Expired), Some(Expired), Some(Expired)]),
        ]
    };

    #[test]
    fn every_input_has_a_defined_outcome_in_every_state() {
        for (state, row) in TABLE {
            for (input, expected) in INPUTS.into_iter().zip(row) {
                assert_eq!(next(state, input), expected, "{state:?} and {input:?}");
            }
        }
    }

    /// The rules of the requirement, as its own event handler has them: the status of a document after an event.
    fn original(state: Option<SeatState>, input: SeatInput) -> Option<SeatState> {
        match (state, input) {
            (_, SeatInput::Summoned { until }) => Some(Hatching { until }),
            (_, SeatInput::Registered) => Some(Alive),
            (Some(Expired), _) => Some(Expired),
            (None, _) => None,
            (Some(_), SeatInput::ReportedAlive | SeatInput::ReportedByName) => Some(Alive),
            (Some(_), SeatInput::ReportedGone) => Some(ASLEEP),
            (Some(Alive), SeatInput::SessionEnded) => Some(ASLEEP),
            (Some(Hatching { .. }), SeatInput::TimeUp) => Some(Expired),
            (Some(state), _) => Some(state),
        }
    }

    /// Where the table deviates from the requirement's own code, and why.
    const DEVIATIONS: &[(&str, Option<SeatState>, SeatInput)] = &[
        ("a summon never erases an identity", Some(Alive), SeatInput::Summoned { until: U }),
        ("a summon never erases an identity", Some(ASLEEP), SeatInput::Summoned { until: U }),
        ("a summon never erases an identity", Some(RISING), SeatInput::Summoned { until: U }),
        ("a second summon gives an egg no more time", Some(EGG), SeatInput::Summoned { until: U }),
        ("a listed seat without a document is created", None, SeatInput::ReportedAlive),
        ("a listed seat without a document is created", None, SeatInput::ReportedByName),
        ("a name brings an expired seat back", Some(Expired), SeatInput::ReportedByName),
        ("eggs stay eggs when a report arrives", Some(EGG), SeatInput::ReportedAlive),
        ("eggs stay eggs when a report arrives", Some(EGG), SeatInput::ReportedGone),
        ("a report about others does not end a wake", Some(RISING), SeatInput::ReportedGone),
        ("a wake is recorded, and not only in a tab", Some(ASLEEP), SeatInput::WakeBegun { until: U }),
        ("a wake is recorded, and not only in a tab", Some(RISING), SeatInput::WakeBegun { until: U }),
        ("without a soul it is a birth again", Some(ASLEEP), SeatInput::Reborn { until: U }),
        ("without a soul it is a birth again", Some(RISING), SeatInput::Reborn { until: U }),
        ("a wake ends with its session", Some(RISING), SeatInput::SessionEnded),
        ("a wake that fails can be repeated", Some(RISING), SeatInput::TimeUp),
        ("a killed agent leaves its seat", Some(EGG), SeatInput::OccupantGone),
        ("a killed agent leaves its seat", Some(Alive), SeatInput::OccupantGone),
        ("a killed agent leaves its seat", Some(RISING), SeatInput::OccupantGone),
    ];

    #[test]
    fn the_table_differs_from_the_requirement_only_where_it_says_so() {
        for (state, row) in TABLE {
            for (input, ours) in INPUTS.into_iter().zip(row) {
                let named = DEVIATIONS.iter().any(|(_, from, what)| (*from, *what) == (state, input));
                assert_eq!(original(state, input) != ours, named, "{state:?} and {input:?}");
            }
        }
    }

    fn input() -> impl Strategy<Value = SeatInput> {
        proptest::sample::select(&INPUTS[..])
    }

    proptest! {
        /// Whatever happens to the nine seats: there is a button, or something is in progress that ends by itself, or
        /// everybody who is there is alive.
        #[test]
        fn no_state_is_a_dead_end(happened in proptest::collection::vec((0_usize..9, input()), 0..60)) {
            let mut seats = [None; 9];
            for (seat, input) in happened {
                seats[seat] = next(seats[seat], input);
            }
            let states: Vec<SeatState> = seats.into_iter().flatten().collect();
            match button(states.iter().copied()) {
                Button::Summon => prop_assert!(states.iter().all(|state| *state == Expired)),
                Button::Wake => prop_assert!(states.contains(&ASLEEP)),
                Button::Waking => prop_assert!(states.iter().any(|state| state.deadline().is_some())),
                Button::None => {
                    prop_assert!(states.contains(&Alive));
                    prop_assert!(states.iter().all(|state| matches!(state, Alive | Expired)));
                }
            }
        }

        /// What is in progress ends when its time is up, and then there is a button or everybody is alive.
        #[test]
        fn progress_ends_by_itself(happened in proptest::collection::vec((0_usize..9, input()), 0..60)) {
            let mut seats = [None; 9];
            for (seat, input) in happened {
                seats[seat] = next(seats[seat], input);
            }
            let later = seats.into_iter().filter_map(|state| next(state, SeatInput::TimeUp));
            prop_assert_ne!(button(later), Button::Waking);
        }
    }
}
