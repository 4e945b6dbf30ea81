//! The events of a question to the user.

use crate::EventId;
use crate::ask::About;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum QuestionEvent {
    /// The user was asked something. The agent waits for the answer.
    #[serde(rename = "question_asked")]
    Asked { about: About, text: String },
    #[serde(rename = "question_answered")]
    Answered { question: EventId, answer: String },
    /// The answer is no longer needed.
    #[serde(rename = "question_withdrawn")]
    Withdrawn { question: EventId },
}
