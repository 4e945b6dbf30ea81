//! The events of mail.

use crate::EventId;
use crate::mail::Address;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum MailEvent {
    #[serde(rename = "mail_sent")]
    Sent { from: Address, to: Address, body: String },
    /// The mail was handed to a recipient that waited for mail.
    #[serde(rename = "mail_delivered")]
    Delivered { to: Address, mail: EventId },
    #[serde(rename = "mail_read")]
    Read { to: Address, mail: EventId },
}

impl MailEvent {
    /// The recipient.
    pub fn to(&self) -> Address {
        match *self {
            Self::Sent { to, .. } | Self::Delivered { to, .. } | Self::Read { to, .. } => to,
        }
    }
}
