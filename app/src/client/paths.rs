//! How the commands name an agent in a path: whatever a person types becomes one safe part of it.

use std::fmt::Write as _;

/// The path of something about an agent.
pub fn agent_path(agent: &str, rest: &str) -> String {
    format!("/api/agents/{}{rest}", escaped(agent))
}

/// The path of something about a mailbox.
pub fn mail_path(address: &str, rest: &str) -> String {
    format!("/api/mail/{}{rest}", escaped(address))
}

/// The path of something about a quest.
pub fn quest_path(quest: &str, rest: &str) -> String {
    format!("/api/quests/{}{rest}", escaped(quest))
}

/// The path of something about the branch of a quest or an agent.
pub fn branch_path(branch: &str, rest: &str) -> String {
    format!("/api/branches/{}{rest}", escaped(branch))
}

/// The path of something about a step of a quest.
pub fn step_path(quest: &str, step: &str, rest: &str) -> String {
    format!("/api/quests/{}/steps/{}{rest}", escaped(quest), escaped(step))
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
    }
}
