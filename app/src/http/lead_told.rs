//! What the first message to a lead contains: an earlier conversation, and the catalogue of artifacts. Clients send a text or a list.

use hatchery_core::seat::escape;
use serde::{Deserialize, Serialize};

/// The longest transcript and the longest catalogue in the first message, in characters.
const MAX_TOLD_CHARS: usize = 200_000;
/// The longest transcript and the longest catalogue in bytes, as XML. Both together are shorter than the longest message.
const MAX_TOLD_BYTES: usize = 384 << 10;

/// An earlier conversation.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged, expecting = "a text, or a list of {speakerName, speakerType, role, text}")]
pub enum PreviousTranscript {
    Text(String),
    List(Vec<TranscriptEntry>),
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptEntry {
    /// `user` or `assistant`.
    role: Option<String>,
    /// `human` or `agent`.
    speaker_type: Option<String>,
    speaker_name: Option<String>,
    text: Option<String>,
}

/// The list of artifacts.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged, expecting = "a text, or a list of {filename, category, description}")]
pub enum Catalog {
    Text(String),
    List(Vec<CatalogEntry>),
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogEntry {
    filename: Option<String>,
    category: Option<String>,
    description: Option<String>,
}

impl PreviousTranscript {
    /// One line for each entry. None if there are no entries.
    pub fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => given(Some(text)),
            Self::List(entries) => joined(entries.into_iter().filter_map(TranscriptEntry::line)),
        }
    }
}

impl TranscriptEntry {
    fn line(self) -> Option<String> {
        let text = given(self.text)?;
        let speaker = given(self.speaker_name).or_else(|| given(self.speaker_type)).or_else(|| given(self.role));
        Some(format!("[{}]: {text}", speaker.as_deref().unwrap_or("somebody")))
    }
}

impl Catalog {
    /// One line for each entry. None if there are no entries.
    pub fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => given(Some(text)),
            Self::List(entries) => joined(entries.into_iter().filter_map(CatalogEntry::line)),
        }
    }
}

impl CatalogEntry {
    fn line(self) -> Option<String> {
        let filename = given(self.filename)?;
        let category = given(self.category).map(|category| format!(" ({category})")).unwrap_or_default();
        let description = given(self.description).map(|description| format!(": {description}")).unwrap_or_default();
        Some(format!("- {filename}{category}{description}"))
    }
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

fn joined(lines: impl Iterator<Item = String>) -> Option<String> {
    given(Some(lines.collect::<Vec<_>>().join("\n")))
}

/// The end of a text as XML, within the limits.
pub fn newest(text: &str) -> String {
    let mut bytes = 0;
    let fits = |character: &char| {
        bytes += escape(character.encode_utf8(&mut [0; 4])).len();
        bytes <= MAX_TOLD_BYTES
    };
    let count = text.chars().rev().take(MAX_TOLD_CHARS).take_while(fits).count();
    let skipped = text.chars().count() - count;
    escape(&text.chars().skip(skipped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lead_is_told_the_newest_part_within_bounds() {
        assert_eq!(newest("a <b>"), "a &lt;b&gt;");
        let long = format!("{}end", "x".repeat(300_000));
        assert_eq!(newest(&long).len(), MAX_TOLD_CHARS);
        let hostile = format!("{}end", "\"".repeat(300_000));
        let told = newest(&hostile);
        assert!(told.len() <= MAX_TOLD_BYTES && told.ends_with("&quot;end"), "{} bytes", told.len());
    }

    #[test]
    fn lists_become_lines() {
        let transcript = |value| serde_json::from_value::<PreviousTranscript>(value).unwrap().text();
        let said = json!([
            { "role": "user", "speakerType": "human", "speakerName": "Ada", "text": "hello", "ts": 1 },
            { "role": "assistant", "speakerType": "agent", "speakerName": null, "text": "good\nmorning" },
            { "role": "assistant", "text": "hm" },
            { "role": "user", "text": " " },
        ]);
        assert_eq!(transcript(said).as_deref(), Some("[Ada]: hello\n[agent]: good\nmorning\n[assistant]: hm"));
        assert_eq!(transcript(json!([])), None);
        assert_eq!(transcript(json!(" ")), None);
        assert_eq!(transcript(json!("as it was")).as_deref(), Some("as it was"));
        let catalog = |value| serde_json::from_value::<Catalog>(value).unwrap().text();
        let artifacts = json!([
            { "filename": "soul.html", "category": "identity", "description": "who I am", "size": 3 },
            { "filename": "b.html" },
            { "category": "without a name" },
        ]);
        assert_eq!(catalog(artifacts).as_deref(), Some("- soul.html (identity): who I am\n- b.html"));
        assert_eq!(catalog(json!([])), None);
        let wrong = serde_json::from_value::<Catalog>(json!(7)).unwrap_err();
        assert!(wrong.to_string().contains("a list of {filename"), "{wrong}");
    }
}
