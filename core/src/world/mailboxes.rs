//! How events change mailboxes.

use super::{Impossible, World};
use crate::event::MailEvent;
use crate::mail::{Letter, LetterState};
use crate::{Address, EventId};

impl World {
    pub(super) fn apply_mail(&mut self, at: EventId, what: &MailEvent) -> Result<(), Impossible> {
        match *what {
            MailEvent::Sent { from, to, .. } => {
                self.mail_sent(at, from, to);
                Ok(())
            }
            MailEvent::Delivered { to, mail } => self.mail_delivered(at, to, mail),
            MailEvent::Read { to, mail } => self.mail_read(at, to, mail),
        }
    }

    fn mail_sent(&mut self, at: EventId, from: Address, to: Address) {
        let mailbox = self.mailboxes.entry(to).or_default();
        mailbox.unread.insert(at, Letter { from, state: LetterState::Queued });
        mailbox.queued.insert(at);
    }

    fn mail_delivered(&mut self, at: EventId, to: Address, mail: EventId) -> Result<(), Impossible> {
        let impossible = Impossible::Mail { at, to, mail, why: "was not queued" };
        let Some(mailbox) = self.mailboxes.get_mut(&to) else { return Err(impossible) };
        match (mailbox.queued.remove(&mail), mailbox.unread.get_mut(&mail)) {
            (Some(_), Some(letter)) => {
                letter.state = LetterState::Delivered;
                Ok(())
            }
            _ => Err(impossible),
        }
    }

    fn mail_read(&mut self, at: EventId, to: Address, mail: EventId) -> Result<(), Impossible> {
        let impossible = Impossible::Mail { at, to, mail, why: "was not unread" };
        let Some(mailbox) = self.mailboxes.get_mut(&to) else { return Err(impossible) };
        mailbox.queued.remove(&mail);
        mailbox.unread.remove(&mail).map(|_| ()).ok_or(impossible)
    }
}
