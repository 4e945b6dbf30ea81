//! How events change seats: their own, and those of sessions and agents that concern them.

use super::{Due, World};
use crate::event::{AgentEvent, SeatEvent, SessionEvent};
use crate::seat::Seats;
use crate::{Event, Timestamp};
use std::sync::Arc;

impl World {
    pub(super) fn apply_seat(&mut self, ts: Timestamp, what: &SeatEvent) {
        self.change_seats(|seats| seats.apply(ts, what));
    }

    /// What an event of another noun means for the seats.
    pub(super) fn seats_follow(&mut self, ts: Timestamp, event: &Event) {
        if let Event::Session { session, what: SessionEvent::Ending { .. } } = event {
            self.change_seats(|seats| seats.session_ending(ts, *session));
        }
        let Event::Agent { agent, what } = event else { return };
        if self.seats.occupied_by(*agent).is_none() {
            return;
        }
        if let AgentEvent::Killed { .. } | AgentEvent::Expired = what {
            self.change_seats(|seats| seats.agent_gone(ts, *agent));
        }
        if let AgentEvent::RunRequested { .. } = what {
            self.change_seats(|seats| seats.order_carried_out(*agent));
        }
    }

    /// Changes seats and keeps their places among the deadlines.
    fn change_seats(&mut self, change: impl FnOnce(&mut Seats)) {
        for (at, position) in self.seats.deadlines() {
            self.deadlines.remove(&(at, Due::Seat(position)));
        }
        change(Arc::make_mut(&mut self.seats));
        self.deadlines.extend(self.seats.deadlines().map(|(at, position)| (at, Due::Seat(position))));
    }
}
