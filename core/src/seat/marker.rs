//! Markers: lines in an agent's text that report to Hatchery about its team.
//!
//! A marker counts only at the start of a line, outside of code fences and quotes. Its JSON may span several lines, and text may follow it.
//! A marker that cannot be read leads to an event that says so.

use super::{FaceVariant, Identity, ListedStatus, Position, SeatListed};
use crate::agent::check_name;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// How many characters of a marker that cannot be read its event contains.
const SHOWN_CHARS: usize = 200;
/// How many entries of a report are read. There are nine seats.
const MAX_ENTRIES: usize = 64;
/// The longest JSON of a marker, in bytes.
const MAX_MARKER_BYTES: usize = 512 << 10;

const REGISTERED: &str = "[AGENT_REGISTERED]";
const STATUS: &str = "[AGENT_STATUS]";
const ACTION: &str = "[ACTION]";

/// A marker that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    Registered {
        position: Option<Position>,
        identity: Identity,
    },
    SeatStatus {
        agents: Vec<SeatListed>,
        /// Whether every entry could be read. Each of the other entries is a problem of its own.
        whole: bool,
    },
}

/// A marker that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerProblem {
    pub marker: String,
    pub reason: String,
}

/// The result of a search for markers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    pub found: Vec<Result<Marker, MarkerProblem>>,
    /// The text without status markers, which are not part of the conversation.
    pub shown: String,
}

/// A line that opens or closes a block of code, as in CommonMark.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
    /// Nothing follows the marks.
    bare: bool,
}

impl Fence {
    fn read(line: &str) -> Option<Self> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let rest = text.trim_start_matches(mark);
        let length = text.len() - rest.len();
        // A line such as ```x``` is code within the line, and opens nothing.
        let is_inline = mark == '`' && rest.contains('`');
        (length >= 3 && !is_inline).then(|| Self { mark, length, bare: rest.trim().is_empty() })
    }

    /// Whether `other` closes this block: it has as many of the same marks or more, and nothing after them.
    fn is_closed_by(self, other: Self) -> bool {
        other.bare && other.mark == self.mark && other.length >= self.length
    }
}

/// Finds the markers in the text of an agent.
pub fn scan(text: &str) -> Scanned {
    look_through(text, Extent::Whole)
}

/// The text of an agent of the seats as people read it: without status markers.
pub fn shown(text: &str) -> Cow<'_, str> {
    // `[AGENT_REGISTERED]` stays in the text.
    match [STATUS, ACTION].into_iter().any(|name| text.contains(name)) {
        true => Cow::Owned(scan(text).shown),
        false => Cow::Borrowed(text),
    }
}

/// Like [`shown`], for a text that is still being written. A part that may become a marker is held back, so that no shown text has to be
/// removed later: the result is always a beginning of the text that is shown in the end.
pub fn shown_so_far(text: &str) -> Cow<'_, str> {
    match text.contains('[') {
        true => Cow::Owned(look_through(text, Extent::Beginning).shown),
        false => Cow::Borrowed(text),
    }
}

/// Whether the whole text is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Beginning,
}

fn look_through(text: &str, extent: Extent) -> Scanned {
    let mut scanned = Scanned::default();
    let mut fence: Option<Fence> = None;
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.find('\n').map_or(rest.len(), |at| at + 1));
        match (fence, Fence::read(line)) {
            (None, Some(opening)) => fence = Some(opening),
            (Some(open), Some(closing)) if open.is_closed_by(closing) => fence = None,
            _ => {}
        }
        let names = [REGISTERED, STATUS, ACTION];
        if extent == Extent::Beginning && fence.is_none() && names.iter().any(|name| name.starts_with(line)) {
            break;
        }
        let name = names.into_iter().find(|name| line.starts_with(name));
        match name.filter(|_| fence.is_none()) {
            None => {
                scanned.shown.push_str(line);
                rest = after;
            }
            Some(name) => {
                let Reading { found, length, is_open } = read(name, rest);
                if extent == Extent::Beginning && is_open {
                    break;
                }
                let is_status = |found: &Result<Marker, MarkerProblem>| match found {
                    Ok(Marker::SeatStatus { .. }) => true,
                    Ok(Marker::Registered { .. }) => false,
                    Err(_) => name == STATUS,
                };
                let is_status = found.iter().any(is_status);
                scanned.found.extend(found);
                let (said, after) = rest.split_at(length);
                let (tail, after) = after.split_at(after.find('\n').map_or(after.len(), |at| at + 1));
                // The rest of the line stays, unless it is empty.
                let kept = match (is_status, tail.trim().is_empty()) {
                    (true, true) => ["", ""],
                    (true, false) => ["", tail],
                    (false, _) => [said, tail],
                };
                scanned.shown.extend(kept);
                rest = after;
            }
        }
    }
    scanned
}

/// What follows the name of a marker.
struct Reading {
    found: Vec<Result<Marker, MarkerProblem>>,
    /// How many bytes of the text belong to the marker.
    length: usize,
    /// More text could change the result.
    is_open: bool,
}

fn read(name: &str, text: &str) -> Reading {
    let line = text.find('\n').unwrap_or(text.len());
    let problem = |reason: String| MarkerProblem { marker: text.chars().take(SHOWN_CHARS).collect(), reason };
    let rejected = |reason: String, is_open| Reading { found: vec![Err(problem(reason))], length: line, is_open };
    let body = &text[name.len()..];
    let start = body.len() - body.trim_start_matches([' ', '\t']).len();
    // The object may begin on the next line.
    let next_line = body[start..].strip_prefix('\n').or_else(|| body[start..].strip_prefix("\r\n"));
    let start = match next_line.map(str::trim_start) {
        Some(next) if next.starts_with('{') => body.len() - next.len(),
        _ => start,
    };
    let json = &body[start..];
    if !json.starts_with('{') {
        return rejected(format!("{name} is not followed by a JSON object"), body.trim().is_empty());
    }
    let within = &json[..floor(json, MAX_MARKER_BYTES)];
    let mut values = serde_json::Deserializer::from_str(within).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => {
            let length = name.len() + start + values.byte_offset();
            let found = understand(name, value).into_iter().map(|read| read.map_err(problem)).collect();
            Reading { found, length, is_open: false }
        }
        Some(Err(error)) => {
            let is_open = error.is_eof() && within.len() == json.len();
            rejected(format!("its JSON cannot be read: {error}"), is_open)
        }
        None => rejected(format!("{name} is not followed by a JSON object"), true),
    }
}

/// The meaning of a marker. Empty if the marker is not about agents. Several items if a part of it cannot be carried out.
fn understand(name: &str, value: Value) -> Vec<Result<Marker, String>> {
    match name {
        REGISTERED => vec![registered(value)],
        STATUS => status(value),
        _ => {
            #[derive(Deserialize)]
            struct MarkedAction {
                target: String,
                action: String,
                #[serde(default)]
                data: Value,
            }
            match serde_json::from_value::<MarkedAction>(value) {
                Ok(MarkedAction { target, .. }) if target != "agents" => Vec::new(),
                Ok(MarkedAction { action, data, .. }) => match action.as_str() {
                    "register" | "registered" => vec![registered(data)],
                    "status" => status(data),
                    other => {
                        vec![Err(format!("`{other}` is not an action on agents: there are register and status"))]
                    }
                },
                Err(error) => vec![Err(format!("its JSON is not an action: {error}"))],
            }
        }
    }
}

fn registered(value: Value) -> Result<Marker, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Registration {
        name: String,
        grid_position: Option<Position>,
        color: Option<String>,
        color_name: Option<String>,
        gender: Option<String>,
        face_variant: Option<FaceVariant>,
        individuation_artifact: Option<String>,
    }
    let given: Registration =
        serde_json::from_value(value).map_err(|error| format!("it is not a registration: {error}"))?;
    let identity = Identity {
        name: Some(given.name),
        color: given.color,
        color_name: given.color_name,
        gender: given.gender,
        face_variant: given.face_variant,
        soul: given.individuation_artifact.map(Into::into),
    };
    Ok(Marker::Registered { position: given.grid_position, identity })
}

/// Reads a report, and the problems in its entries. A report in which no entry can be read does not mean that no agent is alive, so it
/// counts as a problem only.
fn status(value: Value) -> Vec<Result<Marker, String>> {
    #[derive(Deserialize)]
    struct StatusReport {
        agents: Vec<Value>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        grid_position: Position,
        name: Option<String>,
        #[serde(default)]
        status: ListedStatus,
    }
    let given: StatusReport = match serde_json::from_value(value) {
        Ok(given) => given,
        Err(error) => return vec![Err(format!("it is not a report: {error}"))],
    };
    let listed = |entry: Entry| SeatListed { position: entry.grid_position, name: entry.name, status: entry.status };
    let (mut agents, mut problems, mut misnamed) = (Vec::new(), Vec::new(), Vec::new());
    for (number, entry) in (1..).zip(given.agents.into_iter().take(MAX_ENTRIES)) {
        match serde_json::from_value(entry) {
            Ok(entry) => {
                let entry = listed(entry);
                // An entry with a name that is not allowed counts without the name. Such a name would prevent the next wake.
                match check_name(entry.name.as_deref()) {
                    Ok(()) => agents.push(entry),
                    Err(refusal) => {
                        misnamed.push(Err(format!("the name in entry {number} of the report is not used: {refusal}")));
                        agents.push(SeatListed { name: None, ..entry });
                    }
                }
            }
            Err(error) => problems.push(Err(format!("entry {number} of the report cannot be read: {error}"))),
        }
    }
    if agents.is_empty() && !problems.is_empty() {
        return problems;
    }
    let whole = problems.is_empty();
    [Ok(Marker::SeatStatus { agents, whole })].into_iter().chain(problems).chain(misnamed).collect()
}

/// The longest beginning of a text within a limit that does not cut a character.
pub(super) fn floor(text: &str, limit: usize) -> usize {
    (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alive(positions: &[u64]) -> Marker {
        let listed =
            |at: &u64| SeatListed { position: Position::new(*at).unwrap(), name: None, status: ListedStatus::Alive };
        Marker::SeatStatus { agents: positions.iter().map(listed).collect(), whole: true }
    }

    fn found(text: &str) -> Vec<Marker> {
        scan(text).found.into_iter().map(Result::unwrap).collect()
    }

    fn reason(text: &str) -> String {
        scan(text).found.into_iter().next().unwrap().unwrap_err().reason
    }

    #[test]
    fn a_marker_on_a_line_of_its_own() {
        let text = "Good morning.\n[AGENT_STATUS] {\"agents\":[{\"gridPosition\":3,\"name\":\"Lyra\",\"status\":\"idle\"}]}\nBye.";
        let scanned = scan(text);
        let Ok(Marker::SeatStatus { agents, .. }) = &scanned.found[0] else { panic!("{scanned:?}") };
        assert_eq!((agents[0].position.number(), agents[0].status), (3, ListedStatus::Idle));
        assert_eq!(scanned.shown, "Good morning.\nBye.");
    }

    #[test]
    fn json_over_several_lines_and_text_after_it() {
        let text = "[AGENT_STATUS] {\n  \"agents\": [\n    {\"gridPosition\": 0}\n  ]\n} and so we begin.\nMore.";
        assert_eq!(found(text), [alive(&[0])]);
        assert_eq!(scan(text).shown, " and so we begin.\nMore.");
        assert_eq!(found("[AGENT_STATUS]\n{\"agents\":[]}"), [alive(&[])]);
    }

    #[test]
    fn a_marker_in_prose_quotes_or_code_is_none() {
        for text in [
            "I would write [AGENT_STATUS] {\"agents\":[]} here.",
            "> [AGENT_STATUS] {\"agents\":[]}",
            "  [AGENT_STATUS] {\"agents\":[]}",
            "`[AGENT_STATUS] {\"agents\":[]}`",
            "```\n[AGENT_STATUS] {\"agents\":[]}\n```\n",
            "~~~json\n[AGENT_STATUS] {\"agents\":[]}\n~~~",
            "```\n~~~\n[AGENT_STATUS] {\"agents\":[]}\n```",
            "````\n```\n[AGENT_STATUS] {\"agents\":[]}\n```\n````",
            "```\n```text\n[AGENT_STATUS] {\"agents\":[]}\n```",
            "```\nnever closed\n[AGENT_STATUS] {\"agents\":[]}",
        ] {
            let scanned = scan(text);
            assert_eq!((scanned.found, scanned.shown), (Vec::new(), text.to_owned()), "{text}");
        }
    }

    #[test]
    fn after_a_fence_markers_count_again() {
        for before in ["```\nx\n```", "```x```", "```\nx\n```\r", "``` a ``` and ``` b ```", "~~~ `x`\n~~~"] {
            assert_eq!(found(&format!("{before}\n[AGENT_STATUS] {{\"agents\":[]}}")), [alive(&[])], "{before}");
        }
    }

    #[test]
    fn lines_may_end_as_on_windows() {
        let text = "Hello.\r\n[AGENT_STATUS]\r\n{\r\n\"agents\":[]\r\n}\r\nBye.\r\n";
        assert_eq!((found(text), scan(text).shown.as_str()), (vec![alive(&[])], "Hello.\r\nBye.\r\n"));
        let one_line = "[AGENT_STATUS] {\"agents\":[]}\r\nBye.";
        assert_eq!((found(one_line), scan(one_line).shown.as_str()), (vec![alive(&[])], "Bye."));
        let marker = text.find('[').unwrap();
        for end in marker..text.find('}').unwrap() {
            assert_eq!(shown_so_far(&text[..end]), "Hello.\r\n", "{:?}", &text[..end]);
        }
    }

    /// The seat counts, and a name that cannot be one is told of.
    #[test]
    fn a_name_that_cannot_be_one_is_left_out_of_a_report() {
        for name in ["", " Lyra", "human", "a\\nb", &"x".repeat(1_000)] {
            let text = format!(
                "[AGENT_STATUS] {{\"agents\":[{{\"gridPosition\":0,\"name\":\"{name}\"}},{{\"gridPosition\":2}}]}}"
            );
            let scanned = scan(&text);
            let [Ok(status), Err(problem)] = &scanned.found[..] else { panic!("{scanned:?}") };
            assert_eq!(*status, alive(&[0, 2]), "{name}");
            assert!(problem.reason.contains("entry 1"), "{}", problem.reason);
        }
    }

    #[test]
    fn a_registration_stays_in_the_text() {
        let text = "[AGENT_REGISTERED] {\"name\":\"Lyra\",\"gridPosition\":0,\"colorName\":\"Violet\",\
                    \"faceVariant\":{\"eyes\":\"round\",\"mouth\":\"gentle\"},\"individuationArtifact\":\"I am\\n[AGENT_STATUS] {}\",\
                    \"createdAt\":\"2026-02-16T00:00:00.000Z\"}";
        let scanned = scan(text);
        assert_eq!((scanned.found.len(), scanned.shown.as_str()), (1, text));
        let Ok(Marker::Registered { position, identity }) = &scanned.found[0] else { panic!("{scanned:?}") };
        assert_eq!((position.map(Position::number), identity.name.as_deref()), (Some(0), Some("Lyra")));
        assert_eq!(identity.soul.as_deref(), Some("I am\n[AGENT_STATUS] {}"));
    }

    #[test]
    fn an_action_on_agents_is_a_marker() {
        assert_eq!(
            found("[ACTION] {\"target\":\"agents\",\"action\":\"status\",\"data\":{\"agents\":[]}}"),
            [alive(&[])]
        );
        assert_eq!(found("[ACTION] {\"target\":\"screen\",\"action\":\"face\",\"data\":1}"), []);
        assert!(reason("[ACTION] {\"target\":\"agents\",\"action\":\"dance\"}").contains("dance"));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        assert!(reason("[AGENT_STATUS] nothing").contains("not followed by a JSON object"));
        assert!(reason("[AGENT_STATUS] {\"agents\":[").contains("cannot be read"));
        assert!(reason("[AGENT_STATUS] {\"agents\":[{\"gridPosition\":9}]}").contains("there is no seat 9"));
        assert!(reason("[AGENT_REGISTERED] {\"gridPosition\":1}").contains("name"));
        // What follows a marker that cannot be read is still looked at.
        assert_eq!(scan("[AGENT_STATUS] {\n[AGENT_STATUS] {\"agents\":[]}").found.len(), 2);
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_rejected_alone() {
        let text = "[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0},{\"gridPosition\":1,\"status\":\"dancing\"},\
                    {\"gridPosition\":77},{\"gridPosition\":2,\"status\":\"idle\"}]}\nBye.";
        let scanned = scan(text);
        assert_eq!(scanned.shown, "Bye.");
        let [Ok(Marker::SeatStatus { agents, whole: false }), Err(one), Err(two)] = &scanned.found[..] else {
            panic!("{scanned:?}")
        };
        assert_eq!(agents.iter().map(|listed| listed.position.number()).collect::<Vec<_>>(), [0, 2]);
        assert!(one.reason.contains("entry 2") && one.reason.contains("dancing"), "{}", one.reason);
        assert!(two.reason.contains("entry 3") && two.reason.contains("no seat 77"), "{}", two.reason);
        // A list without a readable entry is not an empty list, which would put all agents to sleep.
        assert!(scan("[AGENT_STATUS] {\"agents\":[{\"gridPosition\":0,\"status\":\"x\"}]}").found[0].is_err());
        assert_eq!(found("[AGENT_STATUS] {\"agents\":[]}"), [alive(&[])]);
    }

    #[test]
    fn what_may_become_a_status_is_not_shown_while_it_is_written() {
        let text = "Good morning.\n[AGENT_STATUS] {\n\"agents\":[]} or not.\nBye [AGENT_STATUS] {}";
        let marker = text.find('[').unwrap();
        for end in marker..text.find('}').unwrap() {
            assert_eq!(shown_so_far(&text[..end]), "Good morning.\n", "{}", &text[..end]);
        }
        assert_eq!(shown_so_far(&text[..text.find('}').unwrap() + 4]), "Good morning.\n or");
        assert_eq!(shown_so_far(text), shown(text));
        assert_eq!(shown(text), "Good morning.\n or not.\nBye [AGENT_STATUS] {}");
        // Other brackets are held back for as long as they could be a marker.
        assert_eq!((shown_so_far("[A").as_ref(), shown_so_far("[A list").as_ref()), ("", "[A list"));
        assert_eq!(shown_so_far("```\n[AGENT_ST"), "```\n[AGENT_ST");
    }

    proptest! {
        /// Nothing that was shown is ever taken away, wherever the text is cut.
        #[test]
        fn what_is_shown_only_grows(
            text in "(\\[AGENT_STATUS\\]|\\[ACTION\\]|\\[AGENT_REGISTERED\\]|\\[A|\\{\"agents\":\\[\\]\\}|\\{|\\}|\"|\n|\r\n|```|[a-zé ]){0,24}"
        ) {
            let whole = shown(&text).into_owned();
            let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end));
            let mut before = String::new();
            for so_far in ends.map(|end| shown_so_far(&text[..end])) {
                prop_assert!(so_far.starts_with(&before), "{:?} after {:?}", so_far, before);
                prop_assert!(whole.starts_with(so_far.as_ref()), "{:?} is no beginning of {:?}", so_far, whole);
                before = so_far.into_owned();
            }
        }

        #[test]
        fn no_text_breaks_the_scan(text in "(\\[AGENT_STATUS\\]|\\{|\\}|\"|\n|```|[a-zé ]){0,40}") {
            let scanned = scan(&text);
            prop_assert!(scanned.shown.len() <= text.len());
        }

        /// A text without the marks comes back unchanged.
        #[test]
        fn plain_text_is_shown_unchanged(text in "[a-z\n `>{}]{0,80}") {
            prop_assert_eq!(scan(&text), Scanned { found: Vec::new(), shown: text });
        }
    }
}
