//! How the commands name an agent in a path: whatever a person types becomes one safe part of it.

use std::fmt::Write as _;

/// The path of something about an agent.
pub fn agent_path(agent: &str, rest: &str) -> String {
    format!("/api/agents/{}{rest}", named(agent))
}

/// The path of something about a mailbox.
pub fn mail_path(address: &str, rest: &str) -> String {
    format!("/api/mail/{}{rest}", named(address))
}

/// The path of something about a quest.
pub fn quest_path(quest: &str, rest: &str) -> String {
    format!("/api/quests/{}{rest}", named(quest))
}

/// The path of something about a session.
pub fn session_path(session: &str, rest: &str) -> String {
    format!("/api/sessions/{}{rest}", named(session))
}

/// The path of something about the branch of a quest or an agent.
pub fn branch_path(branch: &str, rest: &str) -> String {
    format!("/api/branches/{}{rest}", named(branch))
}

/// The path of something about a step of a quest.
pub fn step_path(quest: &str, step: &str, rest: &str) -> String {
    format!("/api/quests/{}/steps/{}{rest}", named(quest), named(step))
}

/// A name as one part of a path. An empty one would be another path, and a very long one no request at all. No agent has such a name.
fn named(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    match text {
        "" => "%20".to_owned(),
        text => escaped(&text.chars().take(MAX_CHARS).collect::<String>()),
    }
}

/// A text as one part of a path or a query.
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
