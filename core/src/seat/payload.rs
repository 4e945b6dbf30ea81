//! The payload for a woken agent: the soul of the seat, and the transcript of its last session. It is XML, escaped, and within a limit in
//! characters: the newest lines of the transcript are kept.

use super::{Position, Seat};
use crate::EventId;

/// The longest transcript of one agent, in characters. A setting can change it.
pub const TRANSCRIPT_CHARS: usize = 60_000;
/// The longest payload of one agent, in bytes as XML: half of the longest message, so that it fits into a prompt. The longest soul takes
/// half of it ([`super::MAX_SOUL_BYTES`]); the rest is for the transcript.
pub const MAX_PAYLOAD_BYTES: usize = 512 << 10;

/// This mark is in the place of older lines that were left out.
const LEFT_OUT: &str = "[…]";

/// One message, and who said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeakerLine {
    /// The event of the message.
    pub id: EventId,
    pub speaker: String,
    pub text: String,
}

/// The payload for one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub position: Position,
    pub name: String,
    pub color: String,
    pub color_name: String,
    pub gender: String,
    pub soul: String,
    pub transcript: String,
    /// Messages up to this one are not completely in the transcript.
    pub untold_upto: EventId,
}

impl Payload {
    pub fn new(position: Position, seat: &Seat, said: &[SpeakerLine], budget_chars: usize) -> Self {
        let identity = &seat.identity;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (kept, untold_upto) = transcript(said, budget_chars);
        let mut payload = Self {
            position,
            name: text(&identity.name),
            color: text(&identity.color),
            color_name: text(&identity.color_name),
            gender: text(&identity.gender),
            soul: identity.soul.as_deref().unwrap_or_default().to_owned(),
            transcript: kept,
            untold_upto,
        };
        // How many bytes a character takes depends on the text. So the limit is halved until the payload fits.
        let mut budget_chars = budget_chars.min(payload.transcript.chars().count());
        while payload.xml().len() > MAX_PAYLOAD_BYTES && budget_chars > 0 {
            budget_chars /= 2;
            (payload.transcript, payload.untold_upto) = transcript(said, budget_chars);
        }
        payload
    }

    pub fn has_soul(&self) -> bool {
        !self.soul.is_empty()
    }

    pub fn has_transcript(&self) -> bool {
        !self.transcript.is_empty()
    }

    /// The payload as XML. The type is `birth` if the seat has no soul.
    pub fn xml(&self) -> String {
        let kind = if self.has_soul() { "wake" } else { "birth" };
        format!(
            "<agent name=\"{}\" color=\"{}\" colorName=\"{}\" gender=\"{}\" position=\"{}\" type=\"{kind}\" hasSoul=\"{}\" \
             hasTranscript=\"{}\">\n<soul>\n{}\n</soul>\n<transcript>\n{}\n</transcript>\n</agent>",
            escape(&self.name),
            escape(&self.color),
            escape(&self.color_name),
            escape(&self.gender),
            self.position,
            self.has_soul(),
            self.has_transcript(),
            escape_text(&self.soul),
            escape_text(&self.transcript),
        )
    }
}

/// The newest lines within the limit, and the last message that is not completely among them. If even the newest line is too long, its end
/// is kept.
fn transcript(said: &[SpeakerLine], budget_chars: usize) -> (String, EventId) {
    let mut kept: Vec<String> = Vec::new();
    let mut left = budget_chars;
    // Messages of earlier sessions are not in the transcript either.
    let mut untold_upto = said.first().map_or(EventId::START, |first| first.id.before());
    for line in said.iter().rev() {
        let written = format!("[{}]: {}", line.speaker, line.text);
        let chars = written.chars().count();
        if chars + 1 > left {
            // At least the end of the newest line is kept.
            if kept.is_empty() {
                let end: String = written.chars().skip(chars.saturating_sub(budget_chars)).collect();
                kept.push(end);
            }
            kept.push(LEFT_OUT.to_owned());
            untold_upto = line.id;
            break;
        }
        left -= chars + 1;
        kept.push(written);
    }
    kept.reverse();
    (kept.join("\n"), untold_upto)
}

/// Escapes text between tags. Quotes stay as they are, because escaped quotes would make a long soul several times as long.
pub(super) fn escape_text(text: &str) -> String {
    escape(text).replace("&quot;", "\"").replace("&apos;", "'")
}

/// Escapes text so that it cannot close a tag or an attribute. Characters that XML does not allow are replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\t' | '\n' | '\r' => escaped.push(character),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat::{Identity, SeatState};
    use proptest::prelude::*;

    fn line(speaker: &str, text: &str) -> SpeakerLine {
        SpeakerLine { id: EventId(1), speaker: speaker.into(), text: text.into() }
    }

    /// The first of them is message 5.
    fn numbered(texts: &[&str]) -> Vec<SpeakerLine> {
        (5..).map(EventId).zip(texts).map(|(id, text)| SpeakerLine { id, ..line("a", text) }).collect()
    }

    fn seat(name: &str, soul: Option<&str>) -> Seat {
        let identity = Identity { name: Some(name.into()), soul: soul.map(Into::into), ..Identity::default() };
        Seat {
            state: SeatState::ASLEEP,
            agent: None,
            identity,
            others: Vec::new(),
            created: None,
            last_alive: None,
            last_session: None,
        }
    }

    #[test]
    fn soul_and_transcript_are_told_apart_and_escaped() {
        let said = [line("human", "a < b"), line("Lyra", "</transcript> & so on")];
        let payload = Payload::new(Position::LEAD, &seat("L\"y", Some("I am </soul>")), &said, 1_000);
        let xml = payload.xml();
        assert!(xml.contains("name=\"L&quot;y\""), "{xml}");
        assert!(xml.contains("I am &lt;/soul&gt;"), "{xml}");
        assert!(xml.contains("[human]: a &lt; b\n[Lyra]: &lt;/transcript&gt; &amp; so on"), "{xml}");
        assert_eq!((xml.matches("</soul>").count(), xml.matches("</transcript>").count()), (1, 1));
    }

    #[test]
    fn the_gender_is_part_of_the_identity() {
        let mut seat = seat("Lyra", Some("s"));
        seat.identity.gender = Some("wom\"an".into());
        let xml = Payload::new(Position::LEAD, &seat, &[], 100).xml();
        assert!(xml.contains("gender=\"wom&quot;an\" position=\"4\""), "{xml}");
    }

    #[test]
    fn what_is_left_out_is_not_told() {
        let long = "x".repeat(100);
        let cases: [(&[&str], u64); 4] = [
            (&["one", "two"], 4),
            (&["one", &long, "three"], 6),
            // Only its end is told.
            (&["one", &long], 6),
            (&[], 0),
        ];
        for (texts, expected) in cases {
            let payload = Payload::new(Position::LEAD, &seat("A", Some("s")), &numbered(texts), 50);
            assert_eq!(payload.untold_upto, EventId(expected), "{texts:?}: {}", payload.transcript);
        }
    }

    #[test]
    fn the_newest_lines_are_kept() {
        let said: Vec<SpeakerLine> = (0..100).map(|at| line("a", &format!("line {at}"))).collect();
        let payload = Payload::new(Position::LEAD, &seat("A", None), &said, 100);
        assert!(payload.transcript.ends_with("[a]: line 99"), "{}", payload.transcript);
        assert!(payload.transcript.starts_with(LEFT_OUT), "{}", payload.transcript);
        assert!(!payload.has_soul());
        assert!(payload.xml().contains("type=\"birth\" hasSoul=\"false\" hasTranscript=\"true\""));
    }

    /// Every character becomes several bytes as XML. The soul is kept as a whole, and the transcript gets what is left.
    #[test]
    fn a_payload_fits_however_much_is_escaped() {
        let soul = "&".repeat(super::super::MAX_SOUL_BYTES / "&amp;".len());
        let said = [line("human", &"<".repeat(900_000)), line("Lyra", "the last words")];
        let payload = Payload::new(Position::LEAD, &seat("Lyra", Some(&soul)), &said, 1_000_000);
        let xml = payload.xml();
        assert!(xml.len() <= MAX_PAYLOAD_BYTES, "{} bytes", xml.len());
        assert_eq!(payload.soul, soul);
        assert!(payload.transcript.ends_with("[Lyra]: the last words"), "the newest is kept");
    }

    #[test]
    fn without_a_transcript_there_is_none() {
        let payload = Payload::new(Position::LEAD, &seat("A", Some("s")), &[], 100);
        assert!(!payload.has_transcript());
    }

    proptest! {
        /// However long and however strange the words are: the budget holds, and no tag is closed from within.
        #[test]
        fn the_budget_holds(texts in proptest::collection::vec(".{0,80}", 0..20), budget in 10_usize..400) {
            let said: Vec<SpeakerLine> = texts.iter().map(|text| line("x", text)).collect();
            let payload = Payload::new(Position::LEAD, &seat("A", Some("s")), &said, budget);
            prop_assert!(payload.transcript.chars().count() <= budget + LEFT_OUT.chars().count() + 1);
            if let Some(last) = texts.last() {
                let end: String = last.chars().rev().take(5).collect::<Vec<_>>().into_iter().rev().collect();
                prop_assert!(payload.transcript.ends_with(&end));
            }
            prop_assert_eq!(payload.xml().matches('<').count(), 6);
        }
    }
}
