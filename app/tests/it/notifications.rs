//! Notifications, with a real command and a real receiver: what needs the user is told once, and only what the user wants to hear.

use crate::support::daemon::{Grounds, wait_until};
use crate::support::quest::{SHORT, signal, step};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Takes one POST and answers it. Gives its body.
fn received(listener: &TcpListener) -> Value {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    reader.get_mut().write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_finished_run_is_told_to_a_webhook_and_to_a_command() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let grounds = Grounds::new();
    let file = grounds.path().join("notice.json");
    let settings = format!(
        "harness = 'scripted'\n[notify]\nwebhook = 'http://127.0.0.1:{port}/hook?key=1'\ncommand = 'cat > {0}.new && mv {0}.new {0}'\n\
         pace_ms = 0\n",
        file.display()
    );
    std::fs::write(grounds.path().join("hatchery.toml"), settings).unwrap();
    grounds.run(&["run", "--name", "painter", "hello"]).good();
    let notice = received(&listener);
    assert_eq!((&notice["kind"], &notice["title"]), (&"completion".into(), &"painter is done".into()), "{notice}");
    assert_eq!(notice["project"], grounds.project().root().display().to_string());
    wait_until("the command has written the notice", || file.exists());
    assert_eq!(serde_json::from_slice::<Value>(&std::fs::read(&file).unwrap()).unwrap(), notice);
}

#[test]
fn only_the_wanted_kinds_are_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let settings = format!(
        "harness = 'scripted'\nretries = 0\n[notify]\nwebhook = 'http://127.0.0.1:{port}/'\non = ['failure']\npace_ms = 0\n"
    );
    let grounds = Grounds::with(&settings);
    grounds.run(&["run", "this one completes"]).good();
    let script = grounds.path().join("crash.jsonl");
    std::fs::write(&script, "{\"crash\": \"KILL\"}\n").unwrap();
    let crashed = grounds.run(&["run", "--name", "sailor", "--script", script.to_str().unwrap(), "this one crashes"]);
    assert_eq!(crashed.code, Some(1), "{crashed:?}");
    let notice = received(&listener);
    assert_eq!((&notice["kind"], &notice["title"]), (&"failure".into(), &"sailor ended: crashed".into()), "{notice}");
}

#[test]
fn a_permission_is_a_kind_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let shop = Workshop::with(
        &format!(
            "harness = 'scripted'\nstop_grace_ms = 300\n[notify]\nwebhook = 'http://127.0.0.1:{port}/'\non = ['permission']\npace_ms = 0\n"
        ),
        Vec::new(),
    );
    shop.run(&[json!({ "text": "not worth a notice" })]);
    let asks = json!({ "ask": { "name": "Bash", "input": { "command": "make" } } });
    let agent = shop.run(&[asks]);
    let notice = received(&listener);
    assert_eq!((&notice["kind"], &notice["agent"]), (&"permission".into(), &agent.as_str().into()), "{notice}");
    assert!(notice["text"].as_str().unwrap().contains("make"), "{notice}");
    shop.stop(&agent);
    shop.end(&agent);
}

#[test]
fn a_question_and_a_used_up_budget_are_told_each_as_its_own_kind() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let notify = format!("[notify]\nwebhook = 'http://127.0.0.1:{port}/'\non = ['question', 'budget']\npace_ms = 0\n");
    let shop = Workshop::with(&format!("{SHORT}{notify}"), Vec::new());
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    let notice = received(&listener);
    assert_eq!((&notice["kind"], &notice["quest"]), (&json!("question"), &json!(quest)), "{notice}");
    assert!(notice["text"].as_str().unwrap().contains("How wide?"), "{notice}");

    assert_eq!(shop.door().post("/api/budgets", &json!({ "limit": "0.02" })).status, 200);
    let steps = [json!({ "cost": { "usd": 0.05, "input_tokens": 10 } }), json!({ "text": "spent" })];
    let agent = shop.run_with(&steps, json!({ "stays": true }));
    let notice = received(&listener);
    assert_eq!((&notice["kind"], &notice["agent"]), (&json!("budget"), &json!(agent)), "{notice}");
}

/// Whatever comes within the pause waits for its end.
#[test]
fn notices_keep_their_pause() {
    const PACE: Duration = Duration::from_secs(3);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let settings = format!(
        "harness = 'scripted'\nstop_grace_ms = 300\n[notify]\nwebhook = 'http://127.0.0.1:{port}/'\npace_ms = {}\n",
        PACE.as_millis()
    );
    let shop = Workshop::with(&settings, Vec::new());
    let first = shop.run(&[json!({ "text": "one" })]);
    assert_eq!(received(&listener)["agent"], first.as_str());
    let told = Instant::now();
    let second = shop.run(&[json!({ "text": "two" })]);
    assert_eq!(shop.end(&second), "completed");
    assert_eq!(received(&listener)["agent"], second.as_str());
    // The first notice took its time to arrive, which is not part of the pause.
    assert!(told.elapsed() > PACE / 2, "{:?}", told.elapsed());
}

#[cfg(not(target_os = "macos"))]
#[test]
fn the_desktop_is_told_by_its_own_program() {
    use std::os::unix::fs::PermissionsExt as _;
    let programs = tempfile::tempdir().unwrap();
    let (program, said) = (programs.path().join("notify-send"), programs.path().join("said"));
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}.new && mv {0}.new {0}\n", said.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    let settings = "harness = 'scripted'\nstop_grace_ms = 300\n[notify]\ndesktop = true\npace_ms = 0\n";
    let shop = Workshop::with(settings, vec![("PATH".to_owned(), path.into())]);
    let agent = shop.run(&[json!({ "text": "done" })]);
    wait_until("the desktop is told", || said.exists());
    let told = std::fs::read_to_string(&said).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[..2], ["--app-name=Hatchery", "--"], "{told}");
    assert!(lines[2].starts_with("Hatchery: ") && lines[2].ends_with(" is done"), "{told}");
    assert!(lines[2].contains(&agent), "an agent without a name is called by its id: {told}");
}

#[test]
fn an_address_that_cannot_be_used_is_told_without_repeating_it() {
    let ran = Grounds::with("[notify]\nwebhook = 'ftp://secret@host'").run(&["doctor"]);
    assert!(ran.stdout.contains("notify.webhook") && !ran.stdout.contains("secret"), "{ran:?}");
}
