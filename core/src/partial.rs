//! A partial: a piece of a text or of a thought that a process is still writing.
//!
//! A partial is never in the log. It is shown while the text is written, and can be lost without harm: the whole text follows as an
//! [`Output`](crate::output::Output).

use serde::{Deserialize, Serialize};

/// Some more words of a text or a thought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Partial {
    pub kind: PartialKind,
    /// These are the first words of a text. Earlier pieces belong to another text.
    pub begins: bool,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartialKind {
    Text,
    Thinking,
}
