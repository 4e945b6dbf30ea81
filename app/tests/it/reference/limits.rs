//! `docs/limits.md` says the values of the constants.

use hatchery::{history_import, spool, transcripts};
use hatchery_core::{agent, ask, build_event, history, idea_inbox, mail, quest, run, session, status};
use std::path::PathBuf;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A number of bytes in the largest unit that divides it.
fn bytes(value: impl TryInto<u64>) -> String {
    let value: u64 = value.try_into().ok().unwrap();
    match value {
        _ if value.is_multiple_of(GIB) => format!("{} GiB", value / GIB),
        _ if value.is_multiple_of(MIB) => format!("{} MiB", value / MIB),
        _ if value.is_multiple_of(KIB) && value >= 16 * KIB => format!("{} KiB", value / KIB),
        _ => format!("{} bytes", count(value)),
    }
}

/// A number with a comma between thousands.
fn count(value: impl TryInto<u64>) -> String {
    let value: u64 = value.try_into().ok().unwrap();
    match value {
        0..1_000 => value.to_string(),
        _ => format!("{},{:03}", count(value / 1_000), value % 1_000),
    }
}

/// A number of milliseconds in seconds or in days.
fn time(ms: u64) -> String {
    let (value, unit) = if ms.is_multiple_of(86_400_000) { (ms / 86_400_000, "day") } else { (ms / 1_000, "second") };
    format!("{value} {unit}{}", if value == 1 { "" } else { "s" })
}

#[test]
fn the_page_of_limits_says_the_values_of_the_constants() {
    let idle = format!("{} to {}", time(session::MIN_IDLE_MS), time(session::MAX_IDLE_MS));
    let stall = format!("{} to {}", time(run::MIN_STALL_MS), time(run::MAX_STALL_MS));
    let names = format!("{}; {}; ", agent::MAX_NAME_BYTES, session::MAX_LABEL_BYTES);
    let document = format!("{}; {}; ", bytes(status::MAX_DOCUMENT_BYTES), bytes(status::kept::MAX_KEPT_VALUE_BYTES));
    let events =
        format!("{}; the newest {}", bytes(build_event::MAX_EVENT_BYTES), count(build_event::MAX_EVENTS_IN_DOCUMENT));
    assert_eq!((history::MAX_MESSAGE_BYTES, time(agent::MAX_HATCH_MS).as_str()), (mail::MAX_MAIL_BYTES, "1 day"));
    let expected = [
        ("a message; a mail", bytes(history::MAX_MESSAGE_BYTES)),
        ("an answer to a question", bytes(ask::MAX_ANSWER_BYTES)),
        ("the label of a mark", bytes(history::MAX_MARK_BYTES)),
        ("an agent's name;", names + &bytes(agent::MAX_REMARK_BYTES)),
        ("the idle limit of a session", idle),
        ("one line of an agent's output", bytes(spool::MAX_LINE_BYTES)),
        ("output of an attempt kept on disk", format!("the last {}", bytes(spool::KEPT_BYTES))),
        ("folder, harness, model or script", bytes(run::MAX_SPEC_BYTES)),
        ("silence that counts as stuck; retries", format!("{stall}; {}", run::MAX_RETRIES)),
        ("steps; slots", format!("{}; {}", count(quest::MAX_STEPS), quest::MAX_SLOTS)),
        (
            "a signal; the description of a step; a request",
            [quest::MAX_SIGNAL_BYTES, quest::MAX_TEXT_BYTES, quest::MAX_REQUEST_BYTES].map(bytes).join("; "),
        ),
        ("the status document;", document + &count(status::kept::MAX_KEPT_FIELDS)),
        ("a build event;", events),
        ("ideas; one idea", format!("{}; {}", count(idea_inbox::MAX_ITEMS), bytes(idea_inbox::MAX_CONTENT_BYTES))),
        ("a file for `hatchery history import`", format!("256 MiB and {} lines", count(history_import::MAX_LINES))),
        ("a transcript to adopt", bytes(transcripts::MAX_TRANSCRIPT_BYTES)),
        ("the list of adoptable conversations", format!("the latest {}", transcripts::MAX_LISTED)),
    ];
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/limits.md");
    let page = std::fs::read_to_string(path).unwrap();
    let rows: Vec<(&str, &str)> =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.trim_end_matches(" |").split_once(" | ")).collect();
    for (what, limit) in expected {
        let row = rows.iter().find(|(begin, _)| begin.starts_with(what));
        let (_, written) = row.unwrap_or_else(|| panic!("docs/limits.md has no row `{what}`"));
        assert!(written.starts_with(&limit), "docs/limits.md: `{what}` is {written:?} and should begin with {limit:?}");
    }
}
