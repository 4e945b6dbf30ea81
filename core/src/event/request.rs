//! What can happen to a request with an id of the caller.

use crate::{Fingerprint, RequestId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum RequestEvent {
    /// It was carried out: the next `led_to` events came of it.
    #[serde(rename = "request_taken")]
    Taken { request: RequestId, fingerprint: Fingerprint, led_to: u64 },
}
