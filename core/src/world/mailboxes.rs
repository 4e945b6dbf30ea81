//! How events change mailboxes.

use super::{Impossible, World};
use crate::mail::{Letter, LetterState};
use crate::{Address, EventId};

impl World {
    pub(super) fn mail_sent(&mut self, at: EventId, from: Address, to: Address) {
        let mailbox = self.mailboxes.entry(to).or_default();
        mailbox.unread.insert(at, Letter { from, state: LetterState::Queued });
    }

    pub(super) fn mail_delivered(&mut self, at: EventId, to: Address, mail: EventId) -> Result<(), Impossible> {
        let letter = self.mailboxes.get_mut(&to).and_then(|mailbox| mailbox.unread.get_mut(&mail));
        match letter {
            Some(letter) if letter.state == LetterState::Queued => {
                letter.state = LetterState::Delivered;
                Ok(())
            }
            _ => Err(Impossible::Mail { at, to, mail, why: "was not queued" }),
        }
    }

    pub(super) fn mail_read(&mut self, at: EventId, to: Address, mail: EventId) -> Result<(), Impossible> {
        let removed = self.mailboxes.get_mut(&to).and_then(|mailbox| mailbox.unread.remove(&mail));
        match removed {
            Some(_) => Ok(()),
            None => Err(Impossible::Mail { at, to, mail, why: "was not unread" }),
        }
    }
}
