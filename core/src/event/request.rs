//! The event of a request with an id that the caller has chosen.

use crate::{Fingerprint, RequestId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum RequestEvent {
    /// The request was carried out. The next `led_to` events are its result.
    #[serde(rename = "request_taken")]
    Taken { request: RequestId, fingerprint: Fingerprint, led_to: u64 },
}
