//! How events change seats: their own events, and those of sessions and agents.

use super::{Due, World};
use crate::event::{AgentEvent, MessageEvent, RunEvent, SeatEvent, SessionEvent};
use crate::outcome::Exit;
use crate::seat::Seats;
use crate::{Event, EventId, MessageKind, Timestamp};
use std::sync::Arc;

impl World {
    pub(super) fn apply_seat(&mut self, at: EventId, ts: Timestamp, what: &SeatEvent) {
        self.change_seats(|seats| seats.apply(at, ts, what));
    }

    /// The effect of an event of another noun on the seats.
    pub(super) fn seats_follow(&mut self, at: EventId, ts: Timestamp, event: &Event) {
        if let Event::Session { session, what: SessionEvent::Ending { .. } } = event {
            self.change_seats(|seats| seats.session_ending(ts, *session));
        }
        self.lead_follows(at, event);
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

    /// The effect of an event on the lead: messages to it, messages that its process received, its tool calls, and its end.
    fn lead_follows(&mut self, at: EventId, event: &Event) {
        match event {
            Event::Message(MessageEvent::Added { agent, kind, content, .. }) if self.seats.has_led(*agent) => {
                match kind {
                    MessageKind::ToolCall => Arc::make_mut(&mut self.seats).call_made(content),
                    MessageKind::ToolResult => Arc::make_mut(&mut self.seats).call_answered(content),
                    MessageKind::User if self.seats.lead() == Some(*agent) => {
                        Arc::make_mut(&mut self.seats).lead_told(at);
                    }
                    MessageKind::Clear
                    | MessageKind::System
                    | MessageKind::User
                    | MessageKind::Assistant
                    | MessageKind::Mark
                    | MessageKind::Rewind
                    | MessageKind::AgentKilled
                    | MessageKind::Command
                    | MessageKind::Fork
                    | MessageKind::Usage
                    | MessageKind::Interrupted => {}
                }
            }
            Event::Run { of, what: RunEvent::Ended { exit, .. } } if self.seats.lead() == Some(of.agent) => {
                let code = if let Exit::Code(code) = exit { Some(*code) } else { None };
                Arc::make_mut(&mut self.seats).lead_ended(code);
            }
            Event::Agent { agent, what: AgentEvent::RunRequested { .. } } if self.seats.lead() == Some(*agent) => {
                Arc::make_mut(&mut self.seats).lead_begins();
            }
            Event::Run { of, what: RunEvent::MessageHeard { message } } if self.seats.lead() == Some(of.agent) => {
                Arc::make_mut(&mut self.seats).lead_heard(*message);
            }
            Event::Session { .. }
            | Event::Agent { .. }
            | Event::Message(_)
            | Event::Mail(_)
            | Event::Question { .. }
            | Event::Budget(_)
            | Event::Permission(_)
            | Event::Run { .. }
            | Event::Seat(_)
            | Event::Quest { .. }
            | Event::Step { .. }
            | Event::Status(_)
            | Event::Request(_) => {}
        }
    }

    /// Changes seats, and updates their deadlines.
    fn change_seats(&mut self, change: impl FnOnce(&mut Seats)) {
        for (at, position) in self.seats.deadlines() {
            self.deadlines.remove(&(at, Due::Seat(position)));
        }
        change(Arc::make_mut(&mut self.seats));
        self.deadlines.extend(self.seats.deadlines().map(|(at, position)| (at, Due::Seat(position))));
    }
}
