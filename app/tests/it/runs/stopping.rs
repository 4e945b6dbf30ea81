//! Nothing is left behind, in whatever session it hides.

use crate::support::daemon::{wait_for_end, wait_until};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

#[test]
fn a_stop_ends_the_whole_tree() {
    let shop = Workshop::open();
    let steps = [
        json!({ "child": { "sleep_s": 600 } }),
        json!({ "text": "ready" }),
        json!({ "hang": { "ignore_sigterm": true } }),
    ];
    let agent = shop.run(&steps);
    shop.wait("ready", |event| event["content"] == "ready");
    let grandchild = grandchild(&shop, &agent);
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    wait_for_end(grandchild);
    shop.expect_nothing_left();
    let kinds = shop.kinds(&agent);
    let intent = kinds.iter().position(|kind| kind == "run_stopping").unwrap();
    let end = kinds.iter().position(|kind| kind == "run_ended").unwrap();
    assert!(intent < end, "{kinds:?}");
}

#[test]
fn an_end_leaves_nothing_behind_either() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "child": { "sleep_s": 600 } }), json!({ "text": "done" })]);
    assert_eq!(shop.end(&agent), "completed");
    wait_for_end(grandchild(&shop, &agent));
    shop.expect_nothing_left();
}

/// An agent behind ACP that answers, stays after the end of its input, and ignores SIGTERM.
const STAYS: &str = r#"
trap '' TERM
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
    case $id in
        initialize) result='{"protocolVersion":1}' ;;
        session/new) result='{"sessionId":"s"}' ;;
        *) result='{"stopReason":"end_turn"}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":"%s","result":%s}\n' "$id" "$result"
done
sleep 600
"#;

/// Its last turn was a success, so its run is one too.
#[test]
fn a_program_that_does_not_leave_after_the_end_of_its_input_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("agent.sh");
    std::fs::write(&script, STAYS).unwrap();
    let settings = format!("[harness]\ndefault = 'own'\n[harness.own]\nacp = ['sh', '{}']\n", script.display());
    let path = ("PATH".to_owned(), std::env::var_os("PATH").unwrap());
    let shop = Workshop::with(&settings, vec![path]);
    let agent = shop.prompt("hello", json!({}));
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    let (turn, run) = (shop.wait_for(&agent, "turn_ended"), shop.wait_for(&agent, "run_ended"));
    assert_eq!(run["exit"], json!({ "signal": 9 }), "it ignores SIGTERM");
    let waited = run["ts"].as_u64().unwrap() - turn["ts"].as_u64().unwrap();
    assert!(waited >= 10_000, "it had ten seconds to leave by itself: {waited} ms");
    shop.expect_nothing_left();
}

#[test]
fn killing_an_agent_stops_its_process() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "ready" }), json!({ "hang": {} })]);
    shop.wait("ready", |event| event["content"] == "ready");
    assert_eq!(shop.door().kill(&agent, json!({})).status, 200);
    assert_eq!(shop.end(&agent), "killed");
    shop.expect_nothing_left();
}

#[test]
fn a_stop_survives_the_daemon_that_was_asked_for_it() {
    let mut shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "ready" }), json!({ "hang": { "ignore_sigterm": true } })]);
    shop.wait("ready", |event| event["content"] == "ready");
    shop.stop(&agent);
    shop.kill_daemon();
    shop.restart();
    assert_eq!(shop.end(&agent), "user_ended");
    shop.expect_nothing_left();
}

/// An agent can write into its own folder, through which its launcher is asked to stop. It cannot keep itself, or the daemon, from anything.
#[test]
fn an_agent_that_spoils_its_folder_is_stopped() {
    let mut shop = Workshop::open();
    let link = |path: &Path| symlink("/etc/hostname", path).unwrap();
    let fifo = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let nothing = |_: &Path| {};
    type Spoil<'a> = (&'a str, &'a dyn Fn(&Path));
    let ways: [Spoil; 9] = [
        ("exit.json", &fifo),
        ("process.json", &fifo),
        ("process.json", &nothing),
        ("stderr.log", &fifo),
        ("stderr.log", &link),
        ("inbox.jsonl", &fifo),
        ("wakeup", &fifo),
        ("calls.jsonl", &link),
        ("lock", &link),
    ];
    let agents = ways.map(|_| shop.run(&[json!({ "text": "ready" }), json!({ "hang": {} })]));
    for (agent, (name, replace)) in agents.iter().zip(ways) {
        shop.wait("ready", |event| event["agent"] == **agent && event["content"] == "ready");
        let path = shop.folder(agent, 1, 1).join(name);
        std::fs::remove_file(&path).unwrap_or_default();
        replace(&path);
    }
    let shown = shop.grounds.run(&["logs", &agents[4]]);
    assert!(shown.code == Some(1) && shown.stderr.contains("symbolic link"), "{shown:?}");
    // The next daemon starts, too.
    shop.kill_daemon();
    shop.restart();
    shop.grounds.run(&["stop", "--all"]).good();
    for agent in &agents {
        let last = shop.of(agent).pop().unwrap();
        assert_eq!(last["type"], "run_ended", "{last}");
    }
    shop.expect_nothing_left();
}

/// Nothing can begin there, now or later. Whoever asks why is told, and what the link leads to stays as it was.
#[test]
fn a_run_whose_folder_is_something_else_ends_with_the_reason() {
    let shop = Workshop::open();
    let elsewhere = shop.grounds.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let link = |path: &Path| symlink(&elsewhere, path).unwrap();
    let dangling = |path: &Path| symlink(elsewhere.join("nowhere"), path).unwrap();
    let file = |path: &Path| std::fs::write(path, "").unwrap();
    let ways: [&dyn Fn(&Path); 3] = [&link, &dangling, &file];
    for put in ways {
        let agent = shop.run(&[json!({ "text": "one" })]);
        assert_eq!(shop.end(&agent), "completed");
        let folder = shop.folder(&agent, 2, 1);
        put(&folder);
        shop.say(&agent, "and now?");
        let ended = shop.wait_nth_of(&agent, "run_ended", 2);
        assert_eq!((&ended["run"], &ended["cause"]), (&json!(2), &json!("crashed")), "{ended}");
        let why = shop.grounds.run(&["why", &agent]).good();
        assert!(why.contains("cannot be used") && why.contains("remove what is there"), "{why}");
        // The advice helps.
        std::fs::remove_file(&folder).unwrap();
        shop.say(&agent, "and now?");
        shop.wait("its answer", |event| event["agent"] == *agent && event["content"] == "You said: and now?");
    }
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_run_that_nobody_stops_twice() {
    let shop = Workshop::open();
    let agent = shop.run(&[json!({ "hang": { "ignore_sigterm": true } })]);
    shop.wait_for(&agent, "run_started");
    shop.stop(&agent);
    let again = shop.door().post(&format!("/api/agents/{agent}/stop"), &json!({}));
    assert!(matches!(again.error().0.as_str(), "run_stopping" | "no_run"), "{again:?}");
    shop.end(&agent);
    shop.door().post(&format!("/api/agents/{agent}/stop"), &json!({})).refused(404, "no_run");
}

#[test]
fn the_daemon_leaves_its_agents_at_work_and_says_how_many() {
    let shop = Workshop::open();
    let steps = [json!({ "text": "ready" }), json!({ "hang": {} })];
    let agents = [shop.run(&steps), shop.run(&steps)];
    for agent in &agents {
        shop.wait_for(agent, "run_started");
    }
    let down = shop.grounds.run(&["down"]);
    let words = "the daemon has stopped\n2 agents keep running; `hatchery stop --all` ends them\n";
    assert_eq!((down.code, down.stderr.as_str()), (Some(0), words));
    let stopped = shop.grounds.run(&["stop", "--all"]).good();
    for agent in &agents {
        assert_eq!(stopped.lines().filter(|line| line == agent).count(), 1, "{stopped}");
    }
    // A daemon that nobody follows has taken over.
    wait_until("the end", || shop.grounds.run(&["runs"]).good().is_empty());
    shop.expect_nothing_left();
    assert_eq!(shop.grounds.run(&["stop", "--all"]).stderr, "no run is open\n");
}

fn grandchild(shop: &Workshop, agent: &str) -> u32 {
    let history = shop.door().history(agent);
    let result = history.iter().find(|message| message["kind"] == "tool_result").unwrap();
    let result: Value = serde_json::from_str(result["content"].as_str().unwrap()).unwrap();
    result["content"].as_str().unwrap().strip_prefix("pid ").unwrap().parse().unwrap()
}
