//! API paths with the names that a user types. Each name is escaped, so that it is exactly one segment of the path.

use std::fmt::Write as _;

/// The API path of an agent, followed by `rest`.
pub fn agent_path(agent: &str, rest: &str) -> String {
    format!("/api/agents/{}{rest}", named(agent))
}

/// The API path of a mailbox, followed by `rest`.
pub fn mail_path(address: &str, rest: &str) -> String {
    format!("/api/mail/{}{rest}", named(address))
}

/// The API path of a quest, followed by `rest`.
pub fn quest_path(quest: &str, rest: &str) -> String {
    format!("/api/quests/{}{rest}", named(quest))
}

/// The API path of a session, followed by `rest`.
pub fn session_path(session: &str, rest: &str) -> String {
    format!("/api/sessions/{}{rest}", named(session))
}

/// The API path of the branch of a quest or an agent, followed by `rest`.
pub fn branch_path(branch: &str, rest: &str) -> String {
    format!("/api/branches/{}{rest}", named(branch))
}

/// The API path of a step of a quest, followed by `rest`.
pub fn step_path(quest: &str, step: &str, rest: &str) -> String {
    format!("/api/quests/{}/steps/{}{rest}", named(quest), named(step))
}

/// A name as one segment of a path. An empty name would lead to another path, so it becomes a blank. A very long name would make the request
/// invalid, so it is cut. No agent has such a name.
fn named(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    match text {
        "" => "%20".to_owned(),
        text => escaped(&text.chars().take(MAX_CHARS).collect::<String>()),
    }
}

/// A text, escaped for a path or a query.
pub fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) {
            true => out.push(char::from(byte)),
            false => write!(out, "%{byte:02X}").expect("a string takes what it is given"),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place() {
        assert_eq!(agent_path("../x?y#z", "/kill"), "/api/agents/%2E%2E%2Fx%3Fy%23z/kill");
        assert_eq!(agent_path("Ann Ü", ""), "/api/agents/Ann%20%C3%9C");
        assert_eq!(agent_path("", "/why"), "/api/agents/%20/why");
        assert!(agent_path(&"x".repeat(100_000), "/why").len() < 300);
    }
}
