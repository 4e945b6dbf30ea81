//! Transcripts as the Claude CLI and codex keep them, of our own making.

use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A transcript of so many messages, as the CLI would name and write it.
pub fn write(projects: &Path, folder: &Path, session: &str, messages: usize) -> PathBuf {
    let name: String =
        folder.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    fs::create_dir_all(projects.join(&name)).unwrap();
    let mut text = String::from("{\"type\":\"mode\",\"mode\":\"normal\"}\n");
    for number in 0..messages {
        let (kind, parent) = (["user", "assistant"][number % 2], number.checked_sub(1).map(|it| format!("m{it}")));
        let content = json!([{ "type": "text", "text": format!("word {number}") }]);
        let line = json!({ "parentUuid": parent, "isSidechain": false, "type": kind, "uuid": format!("m{number}"),
            "message": { "role": kind, "content": content }, "cwd": folder, "sessionId": session });
        writeln!(text, "{line}").unwrap();
    }
    let path = projects.join(name).join(format!("{session}.jsonl"));
    fs::write(&path, text).unwrap();
    path
}

/// A thread of so many messages, as codex would name and write it.
pub fn write_thread(codex_home: &Path, folder: &Path, thread: &str, messages: usize) -> PathBuf {
    let day = codex_home.join("sessions/2026/11/17");
    fs::create_dir_all(&day).unwrap();
    let meta = json!({ "id": thread, "cwd": folder, "source": "cli" });
    let mut text = format!("{}\n", json!({ "ordinal": 0, "type": "session_meta", "payload": meta }));
    for number in 0..messages {
        let kind = ["UserMessage", "AgentMessage"][number % 2];
        let content = json!([{ "type": "text", "text": format!("word {number}") }]);
        let item = json!({ "type": kind, "id": format!("m{number}"), "content": content });
        let payload = json!({ "type": "item_completed", "item": item });
        writeln!(text, "{}", json!({ "ordinal": number + 1, "type": "event_msg", "payload": payload })).unwrap();
    }
    let path = day.join(format!("rollout-2026-11-17T10-00-00-{thread}.jsonl"));
    fs::write(&path, text).unwrap();
    path
}
