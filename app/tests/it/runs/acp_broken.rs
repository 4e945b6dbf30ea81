//! Programs that are named as agents behind ACP and do not behave: missing, mute, loud, in another language, of another version.

use crate::support::daemon::{Grounds, PATIENCE};
use crate::support::workshop::Workshop;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;
use tempfile::TempDir;

/// Answers every request as an agent does, and says `hello` in its turns.
pub const ANSWERS: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
    case $id in
        initialize) result='{"protocolVersion":1}' ;;
        session/new) result='{"sessionId":"s"}' ;;
        *)
            result='{"stopReason":"end_turn"}'
            chunk='{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}'
            printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$chunk"
            ;;
    esac
    printf '{"jsonrpc":"2.0","id":"%s","result":%s}\n' "$id" "$result"
done
"#;

/// A project whose agents are played by this script.
fn played_by(script: &str) -> (Workshop, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.sh");
    std::fs::write(&file, script).unwrap();
    let settings = format!(
        "stall_ms = 1000\nretries = 1\n[harness]\ndefault = 'own'\n[harness.own]\nacp = ['sh', '{}']\n",
        file.display()
    );
    let path = ("PATH".to_owned(), std::env::var_os("PATH").unwrap());
    (Workshop::with(&settings, vec![path]), folder)
}

/// How a run ends that such a program plays.
fn end_of(script: &str) -> (String, String) {
    let (shop, _folder) = played_by(script);
    let agent = shop.prompt("hi", json!({}));
    let cause = shop.end(&agent);
    let detail = shop.wait_for(&agent, "run_ended")["detail"].as_str().unwrap().to_owned();
    shop.expect_nothing_left();
    (cause, detail)
}

#[test]
fn a_program_that_is_not_there_is_refused_before_anything_is_recorded() {
    let grounds = Grounds::with("[harness]\ndefault = 'own'\n[harness.own]\nacp = ['./gone', 'acp']\n");
    let ran = grounds.run(&["run", "hi"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("./gone"), "{ran:?}");
    assert_eq!(grounds.run(&["ps", "--json"]).good().matches("\"prompt\"").count(), 0);
}

#[test]
fn a_program_that_dies_in_the_handshake_is_tried_again_and_its_last_words_are_told() {
    let (cause, detail) = end_of("read -r line\necho 'no such model file' >&2\nexit 3\n");
    assert_eq!(cause, "crashed", "{detail}");
    assert!(detail.contains("exit code 3") && detail.contains("no such model file"), "{detail}");
}

#[test]
fn a_program_of_another_version_of_the_protocol_is_told() {
    let script = ANSWERS.replace("\"protocolVersion\":1", "\"protocolVersion\":2");
    let (cause, detail) = end_of(&script);
    assert_eq!(cause, "crashed", "{detail}");
    assert!(detail.contains("version 2 of ACP"), "{detail}");
}

#[test]
fn an_agent_that_mixes_noise_into_its_output_is_understood() {
    let noise = "printf 'Welcome!\\n[1]\\n{}\\nnull\\n\\377\\376\\n{\"id\":\\n'\n";
    let (shop, _folder) = played_by(&format!("{noise}{ANSWERS}"));
    let agent = shop.prompt("hi", json!({}));
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent), ["hello"]);
}

/// Such a line is reported with its length. Noise without end does not flood the log.
#[test]
fn a_line_of_50_megabytes_and_a_flood_of_noise_are_passed_over() {
    let line = "head -c 50000000 /dev/zero | tr '\\0' x\necho\n";
    let flood = "yes noise | head -n 1000000\n";
    let (shop, _folder) = played_by(&format!("{line}{flood}{ANSWERS}"));
    let agent = shop.prompt("hi", json!({ "stall_ms": 60_000 }));
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent).len());
    assert_eq!(shop.said(&agent), ["hello"]);
    let noted = shop.of(&agent).into_iter().filter(|event| event["output"]["type"] == "unread").collect::<Vec<_>>();
    assert!(noted[0]["output"]["bytes"].as_u64() >= Some(50_000_000), "{:?}", noted[0]);
    assert!(noted.len() < 1_000, "{} notes", noted.len());
}

/// Nobody hears a program that never says that it is ready, however much it says.
#[test]
fn a_program_that_never_answers_is_reported_and_ended() {
    for script in ["cat > /dev/null\n", "while :; do echo noise; sleep 0.1; done\n"] {
        let (shop, _folder) = played_by(script);
        let agent = shop.prompt("hi", json!({ "kill_stuck": true }));
        assert_eq!(shop.end(&agent), "stuck", "{script}: {:#?}", shop.of(&agent));
        assert_eq!(shop.count_of(&agent, "run_silent"), 1, "{script}");
        shop.expect_nothing_left();
    }
}

/// What such programs do in the doctor's hands.
#[test]
fn the_doctor_says_what_is_wrong_with_a_program() {
    let settings = "[harness.second]\nacp = ['./second']\n[harness.loud]\nacp = ['./loud']\n[harness.dies]\nacp = ['./dies']\n\
        [harness.leaves]\nacp = ['./leaves']\n";
    let grounds = Grounds::with(settings);
    let second = ANSWERS.replace("\"protocolVersion\":1", "\"protocolVersion\":2");
    // What it leaves behind in a session of its own has its output open.
    let leaves = format!("setsid sleep 90 &\nprintf '\\377\\n'\n{ANSWERS}");
    let loud = "head -c 50000000 /dev/zero | tr '\\0' x\nsleep 60\n";
    for (name, script) in [("second", &*second), ("loud", loud), ("dies", "exit 1\n"), ("leaves", &leaves)] {
        let file = grounds.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let began = Instant::now();
    let words = grounds.run(&["doctor"]).stdout;
    let line =
        |name: &str| words.lines().find(|line| line.contains(&format!("{name}: "))).unwrap_or_default().to_owned();
    assert!(line("second").contains("version 2 of ACP"), "{words}");
    for name in ["loud", "dies"] {
        assert!(line(name).contains("does not answer `initialize`"), "{words}");
    }
    assert!(line("leaves").contains("can be interrupted"), "{words}");
    assert!(began.elapsed() < PATIENCE, "it does not wait for what a program leaves behind");
}
