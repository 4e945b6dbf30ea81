//! The agents in a `[WAKE AGENTS]` message of a client that keeps the identities itself. Such clients write XML by hand, so it is read
//! leniently: what cannot be read is passed over.

use hatchery_core::seat::{Born, Position, SEATS, SeatDocument, SeatFields, SeatStatus, Vital};
use std::collections::BTreeSet;

/// The documents of the agents in a message that have a soul. Of two for one seat the first counts.
pub fn documents(message: &str) -> Vec<SeatDocument> {
    let mut found: Vec<SeatDocument> = Vec::new();
    for new in elements(message).filter_map(document) {
        if found.iter().all(|known| known.position != new.position) {
            found.push(new);
        }
        debug_assert!(found.len() <= usize::from(SEATS));
    }
    found
}

/// The seats that a message names.
pub fn positions(message: &str) -> Vec<Position> {
    let named: BTreeSet<Position> = elements(message).filter_map(|element| position(head(element))).collect();
    named.into_iter().collect()
}

/// What stands in each `<agent …>` element, with its attributes.
fn elements(message: &str) -> impl Iterator<Item = &str> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let (_, from) = rest.split_once("<agent ")?;
        let (element, after) = from.split_once("</agent>").unwrap_or((from, ""));
        rest = after;
        Some(element)
    })
}

fn position(head: &str) -> Option<Position> {
    let number = attribute(head, "position").or_else(|| attribute(head, "gridPosition"))?;
    Position::new(number.trim().parse().ok()?).filter(|position| *position != Position::LEAD)
}

fn document(element: &str) -> Option<SeatDocument> {
    let head = head(element);
    let position = position(head)?;
    let (before, soul) = element.split_once("<soul>")?;
    let (soul, _) = soul.split_once("</soul>")?;
    let soul = unescaped(soul.trim());
    // As attributes, or as elements of their own.
    let found = |name: &str| attribute(head, name).or_else(|| child(before, name));
    let fields = SeatFields {
        name: Some(found("name")?),
        color: found("color"),
        color_name: found("colorName"),
        gender: found("gender"),
        ..SeatFields::default()
    };
    let vital = Vital { status: SeatStatus::Sleeping, ..Vital::default() };
    (!soul.is_empty()).then(|| SeatDocument { position, vital, births: vec![Born { soul: Some(soul.into()), fields }] })
}

/// The attributes: up to the first `>` that is in no quotes.
fn head(element: &str) -> &str {
    let mut quoted = None;
    let end = element.find(|character| match (quoted, character) {
        (None, '>') => true,
        (None, '"' | '\'') => {
            quoted = Some(character);
            false
        }
        (Some(open), _) if open == character => {
            quoted = None;
            false
        }
        (None | Some(_), _) => false,
    });
    &element[..end.unwrap_or(element.len())]
}

fn attribute(head: &str, name: &str) -> Option<String> {
    ['"', '\''].into_iter().find_map(|quote| {
        let begin = format!("{name}={quote}");
        let at = head.match_indices(&begin).find(|(at, _)| *at == 0 || head[..*at].ends_with(char::is_whitespace))?.0;
        let (value, _) = head[at + begin.len()..].split_once(quote)?;
        Some(unescaped(value)).filter(|value| !value.trim().is_empty())
    })
}

fn child(element: &str, name: &str) -> Option<String> {
    let (_, value) = element.split_once(&format!("<{name}>"))?;
    let (value, _) = value.split_once(&format!("</{name}>"))?;
    Some(unescaped(value.trim())).filter(|value| !value.is_empty())
}

fn unescaped(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    plain.replace("&apos;", "'").replace("&#39;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_with_a_soul_are_found_in_whatever_a_client_wrote() {
        let message = "[WAKE AGENTS]\n<agent name=\"Lyra &amp; co\" color='#fff' colorName=\"a > b\" position=\"0\" type=\"wake\">\n\
            <soul>\n I am &lt;here&gt; &amp;amp; now\n</soul>\n<transcript>x</transcript></agent>\n\
            <agent name=\"Second\" position=\"0\"><soul>another</soul></agent>\
            <agent name=\"Lead\" position=\"4\"><soul>the lead</soul></agent>\
            <agent name=\"Far\" position=\"12\"><soul>nowhere</soul></agent>\
            <agent name=\"Empty\" position=\"1\"><soul> </soul></agent>\
            <agent position=\"2\"><soul>nameless</soul></agent>\
            <agent gridPosition='8' name='Kael'><soul>I stay</soul><agent name=\"broken\"";
        let found = documents(message);
        let shown: Vec<(u8, &str, &str)> = found
            .iter()
            .map(|it| (it.position.number(), &it.births[0]))
            .map(|(at, born)| (at, born.fields.name.as_deref().unwrap(), born.soul.as_deref().unwrap()))
            .collect();
        assert_eq!(shown, [(0, "Lyra & co", "I am <here> &amp; now"), (8, "Kael", "I stay")]);
        let fields = &found[0].births[0].fields;
        assert_eq!((fields.color.as_deref(), fields.color_name.as_deref()), (Some("#fff"), Some("a > b")));
        assert_eq!(documents("[WAKE AGENTS]"), []);
        let named: Vec<u8> = positions(message).into_iter().map(Position::number).collect();
        assert_eq!((named, positions("[WAKE AGENTS]")), (vec![0, 1, 2, 8], Vec::new()));
    }

    #[test]
    fn what_is_said_about_an_agent_may_stand_in_elements() {
        let message = "[WAKE AGENTS]\n<agent-payloads>\n  <agent position=\"3\" type=\"wake\">\n    <name>Lyra</name>\n\
            <color>#c9b1e8</color>\n<colorName></colorName>\n<gender>woman</gender>\n\
            <soul>I am <em>here</em>. <name>not this</name></soul>\n<transcript>[Ada]: hi</transcript>\n  </agent>\n\
            <agent position=\"5\" type=\"birth\">\n<color>#fff</color>\n</agent>\n</agent-payloads>";
        let found = documents(message);
        assert_eq!(found.len(), 1, "a birth brings no soul: {found:?}");
        let born = &found[0].births[0];
        assert_eq!(
            (found[0].position.number(), born.soul.as_deref()),
            (3, Some("I am <em>here</em>. <name>not this</name>"))
        );
        let fields = &born.fields;
        let told = [&fields.name, &fields.color, &fields.color_name, &fields.gender].map(Option::as_deref);
        assert_eq!(told, [Some("Lyra"), Some("#c9b1e8"), None, Some("woman")]);
    }
}
