//! What a person meets every day: words that say what to do next, and lists to choose from.

use crate::support::daemon::{Grounds, Ran};
use crate::support::quest::{SHORT, done, signal, step, text, write};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;

/// Runs a command that is refused, and gives what it says.
fn refused(grounds: &Grounds, arguments: &[&str]) -> String {
    let ran = grounds.run(arguments);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    ran.stderr
}

#[test]
fn unread_mail_shows_who_wrote_when_and_about_what() {
    let shop = Workshop::open();
    let agent = shop.run(&[text("done")]);
    shop.end(&agent);
    assert_eq!(shop.door().post(&format!("/api/agents/{agent}/rename"), &json!({ "name": "clerk" })).status, 200);
    let mail = json!({ "from": agent, "to": "human", "body": "\nThe report is ready.\nIt is long." });
    assert_eq!(shop.door().post("/api/mail", &mail).status, 201);
    let list = shop.grounds.run(&["mail", "check"]).good();
    assert!(list.contains("from clerk: The report is ready."), "{list}");
    let list = shop.door().get("/api/mail/human").json();
    let first = &list["mail"][0];
    assert!(first["sent"].as_i64().unwrap() > 1_600_000_000_000, "{list}");
    assert_eq!((&first["name"], &first["subject"]), (&json!("clerk"), &json!("The report is ready.")));
    assert_eq!((&first["state"], &first["from"]), (&json!("queued"), &json!(agent)));
}

/// Ages in lists, moments of the user's own clock in logs, and nothing else.
#[test]
fn there_is_one_clock_for_people() {
    let shop = Workshop::with(SHORT, Vec::new());
    let book = shop.playbook().play("codeweaver", &[done("built")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    shop.complete(&quest);
    let agent = shop.run(&[text("done")]);
    shop.end(&agent);
    let mail = json!({ "from": agent, "to": "human", "body": "The report is ready." });
    assert_eq!(shop.door().post("/api/mail", &mail).status, 201);
    let run = |arguments: &[&str]| {
        let ran = Ran::from(shop.grounds.command(arguments).env("TZ", "Asia/Kolkata").output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout + &ran.stderr
    };
    run(&["session", "start"]);
    // As programs write it.
    let utc = jiff::Timestamp::now().strftime("%Y-%m-%dT").to_string();
    for list in [["mail", "check"].as_slice(), &["thread", &agent], &["session", "list"], &["mail", "read"]] {
        let said = run(list);
        assert!(said.contains(" ago"), "{list:?}: {said}");
        assert!(!said.contains(&utc), "{list:?}: {said}");
    }
    let now = jiff::Timestamp::now().in_tz("Asia/Kolkata").unwrap();
    // The log is younger than an hour, and may be older than midnight.
    let days = [now.clone(), now.checked_sub(jiff::Span::new().hours(1)).unwrap()]
        .map(|at| at.strftime("%Y-%m-%d ").to_string());
    for log in [["events"].as_slice(), &["quest", "show", &quest, "--history"]] {
        let said = run(log);
        assert!(days.iter().any(|day| said.contains(day.as_str())), "{log:?}: {said}");
        assert!(!said.contains(&utc), "{log:?}: {said}");
    }
}

/// As in `ps`: the whole id is for programs.
#[test]
fn ids_are_short_in_every_list() {
    let shop = Workshop::with(SHORT, Vec::new());
    let asks = signal("needs-user-input", json!({ "question": "Stone or wood?" }));
    let book = shop.playbook().play("a.codeweaver", &[asks]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    shop.asked(&quest, 1);
    let agent = shop.door().get("/api/questions").json()["questions"][0]["agent"].as_str().unwrap().to_owned();
    for list in [
        ["ask", "list"].as_slice(),
        &["ask", "list", "--everywhere"],
        &["quest", "list"],
        &["runs"],
        &["usage"],
        &["seats", "--long"],
    ] {
        let said = shop.grounds.run(list);
        let said = said.stdout + &said.stderr;
        assert!(!said.contains(&quest) && !said.contains(&agent), "{list:?}: {said}");
    }
    let short = |id: &str| id.chars().take(8).collect::<String>();
    let asked = shop.grounds.run(&["ask", "list"]).good();
    assert!(asked.contains(&short(&agent)) && asked.contains(&short(&quest)), "{asked}");
    let listed = shop.grounds.run(&["quest", "list"]).good();
    let shown = listed.split_whitespace().next().unwrap();
    shop.grounds.run(&["quest", "show", shown]).good();
}

#[test]
fn hints_name_commands_and_not_only_tools() {
    let shop = Workshop::open();
    let agent = shop.run(&[text("done")]);
    shop.end(&agent);
    for (command, hint) in [
        (vec!["mail", "read"], "`hatchery mail wait`"),
        (vec!["mail", "read", "99999"], "`hatchery mail check`"),
        (vec!["rewind", &agent, "3"], "`hatchery rewind AGENT --to 3`"),
        (vec!["run", "--model", "", "hello"], "--model"),
    ] {
        let said = refused(&shop.grounds, &command);
        assert!(said.contains(hint), "{command:?}: {said}");
    }
}

#[test]
fn the_ward_of_a_quest_is_taken_away_by_a_flag_and_a_quest_that_is_over_is_only_called_so() {
    let shop = Workshop::with(SHORT, Vec::new());
    let book = shop.playbook().play("codeweaver", &[done("built")]);
    let quest = shop.new_quest(&book, json!({ "hold": true, "steps": [step("a", &[])] }));
    let said = refused(&shop.grounds, &["quest", "ward", &quest, ""]);
    assert!(said.contains("--none"), "{said}");
    let said = refused(&shop.grounds, &["quest", "retry", &quest, "nope"]);
    assert!(said.contains("`hatchery quest show`"), "{said}");
    shop.grounds.run(&["quest", "abandon", &quest]).good();
    let said = shop.grounds.run(&["quest", "run", &quest]);
    assert!(said.stderr.contains("abandoned") && !said.stderr.contains("slot"), "{said:?}");
}

#[test]
fn a_project_that_is_no_folder_and_an_empty_variable_are_told_apart() {
    let grounds = Grounds::new();
    let file = grounds.path().join("hatchery.toml");
    let bare = |arguments: &[&str], variable: Option<&str>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hatchery"));
        command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", grounds.path().join("home")).env("HATCHERY_TRUST_ALL", "1").current_dir(grounds.path());
        let ran = command.envs(variable.map(|value| ("HATCHERY_PROJECT", value))).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, said) = bare(&["ps", "--project", file.to_str().unwrap()], None);
    assert!(code == Some(2) && said.contains("hatchery.toml is not a folder"), "{said}");
    let (code, said) = bare(&["ps", "--project", ""], None);
    assert!(code == Some(2) && said.contains("--project is empty"), "{said}");
    let (code, said) = bare(&["status"], Some(""));
    assert!(!said.contains("--project"), "{code:?} {said}");
}

#[test]
fn a_comment_in_the_settings_of_claude_is_found_by_its_line() {
    let grounds = Grounds::new();
    let folder = grounds.path().join(".claude");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("settings.json"), "{\n  // a comment\n}\n").unwrap();
    let said = refused(&grounds, &["init", "--yes"]);
    assert!(said.contains("line 2 column"), "{said}");
}

#[test]
fn logs_say_that_there_are_none_and_can_be_cut() {
    let shop = Workshop::open();
    let agent = shop.run(&[text("one"), text("two")]);
    shop.end(&agent);
    let nothing = shop.grounds.run(&["logs", &agent]);
    assert_eq!(nothing.stdout, "");
    assert!(nothing.stderr.contains("--output"), "{nothing:?}");
    let printed = |arguments: &[&str]| -> Vec<Value> {
        let text = shop.grounds.run(&[&["--json", "logs", &agent], arguments].concat()).good();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    };
    assert_eq!(printed(&[]), Vec::<Value>::new());
    let lines = printed(&["--output", "-n", "1"]);
    assert!(lines.len() == 1 && lines[0]["run"] == 1 && lines[0]["attempt"] == 1, "{lines:?}");
    serde_json::from_str::<Value>(lines[0]["line"].as_str().unwrap()).unwrap();
    assert!(printed(&["--files"])[0]["file"].as_str().unwrap().ends_with("stderr.log"));
    let all = shop.grounds.run(&["logs", &agent, "--output"]).good();
    let last = shop.grounds.run(&["logs", &agent, "--output", "-n", "2"]).good();
    assert!(all.lines().count() > 2 && all.ends_with(&last) && last.lines().count() == 2, "{last}");
}

#[test]
fn a_daemon_that_others_can_reach_warns_and_prints_a_link_that_works() {
    use std::io::{BufRead as _, BufReader};
    let grounds = Grounds::new();
    let said = fs::File::create(grounds.path().join("said")).unwrap();
    let mut command = grounds.command(&["up", "--listen", "0.0.0.0", "--no-open"]);
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(said).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let link = lines.find(|line| line.contains("?token=")).unwrap();
    assert!(link.contains("http://127.0.0.1:"), "{link}");
    // The last line of the greeting: everything else is said.
    lines.find(|line| line.contains("Ctrl-C")).unwrap();
    assert!(grounds.said().contains("without encryption"), "{}", grounds.said());
    grounds.run(&["status"]).good();
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Its process has yet to end when the user looks.
#[test]
fn work_that_is_about_to_be_kept_is_announced() {
    let shop = Workshop::with("harness = 'scripted'\nstop_grace_ms = 60000\n", Vec::new());
    shop.repository();
    let stubborn = json!({ "hang": { "ignore_sigterm": true } });
    let with = json!({ "script": shop.script(&[write("a.txt", "half done\n"), text("written"), stubborn]) });
    let body = json!({ "prompt": "Work", "name": "slow", "worktree": true, "with": with });
    let agent = shop.door().post("/api/runs", &body).id();
    shop.wait_said(&agent, "written");
    shop.grounds.run(&["kill", "slow"]).good();
    let list = shop.grounds.run(&["rescue", "list"]);
    assert!(list.stderr.contains("still being kept") && list.stderr.contains("slow-"), "{list:?}");
    assert!(!list.stderr.contains("there is no rescued work"), "{list:?}");
}

#[test]
fn what_is_not_there_is_called_by_what_was_meant() {
    let shop = Workshop::open();
    shop.repository();
    let grounds = &shop.grounds;
    for command in ["diff", "merge", "pr"] {
        let refused = grounds.run(&[command, "nosuch"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("no agent, quest or branch is called `nosuch`"), "{refused:?}");
    }
    for arguments in [["ask", "answer", "first", "yes"].as_slice(), &["mail", "read", "first"]] {
        let refused = grounds.run(arguments);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("it must be a number; `hatchery ask list`"), "{refused:?}");
    }
}

/// One word for one state, whichever command is asked, and no JSON for people.
#[test]
fn an_agent_that_asks_is_asking_and_its_tools_are_told_in_words() {
    let shop = Workshop::open();
    let asks = json!({ "ask": { "name": "Bash", "input": { "command": "rm -rf build" } } });
    let agent = shop.run(&[json!({ "text": "I clean up." }), asks]);
    let question = shop.wait_for(&agent, "question_asked")["id"].to_string();
    let why = shop.grounds.run(&["why", &agent]).good();
    assert!(why.contains("is asking") && why.contains("1 of its tools has not answered · "), "{why}");
    assert!(shop.grounds.run(&["ps"]).good().contains("asking"));
    let waited = shop.grounds.run(&["wait", &agent, "--timeout", "1"]);
    assert!(
        waited.stderr.contains(&format!(
            "waits for you: `hatchery ask list` shows the question, `hatchery ask answer {question} …`"
        )),
        "{waited:?}"
    );
    assert!(waited.code == Some(1) && waited.stderr.contains("within 1 second\n"), "{waited:?}");
    shop.grounds.run(&["ask", "answer", &question, "deny: I need it"]).good();
    shop.end(&agent);
    let history = shop.grounds.run(&["history", &agent]).good();
    assert!(history.contains("tool call\n       Bash\n       command: rm -rf build\n"), "{history}");
    assert!(history.contains("tool result\n       failed: The user did not allow it: I need it\n"), "{history}");
}

/// A command that waits for something that is over has the same answer as one that was there.
#[test]
fn waiting_for_a_run_that_has_ended_gives_its_end() {
    let shop = Workshop::with("harness = 'scripted'\nretries = 0\n", Vec::new());
    let fails = shop.run(&[text("at work"), json!({ "sleep_ms": 600_000 })]);
    shop.wait_said(&fails, "at work");
    let waiting = shop.grounds.command(&["wait", &fails]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    shop.kill_process(&fails);
    assert_eq!(shop.end(&fails), "crashed");
    let first = waiting.wait_with_output().unwrap();
    let second = shop.grounds.run(&["wait", &fails]);
    assert_eq!((first.status.code(), String::from_utf8(first.stdout).unwrap()), (second.code, second.stdout.clone()));
    assert!(second.code == Some(1) && second.stdout.contains("crashed"), "{second:?}");
    let well = shop.run(&[text("done")]);
    assert_eq!(shop.end(&well), "completed");
    for _ in 0..2 {
        let waited = shop.grounds.run(&["wait", &well]);
        assert!(waited.code == Some(0) && waited.stdout.contains("completed"), "{waited:?}");
    }
    let never = shop.door().child(&shop.door().root());
    let waited = shop.grounds.run(&["wait", &never]);
    assert!(waited.code == Some(0) && waited.stdout.contains("resting"), "{waited:?}");
}

#[test]
fn a_run_that_is_parked_says_when_it_goes_on_and_how_to_leave() {
    use std::io::{BufRead as _, BufReader};
    let shop = Workshop::open();
    let limited = shop.script(&[json!({ "error": { "api": 429, "resets_in_s": 3000 } }), text("on again")]);
    // The one that is there when it happens, and those that come later.
    let limited = limited.to_str().unwrap().to_owned();
    let commands: [&[&str]; 4] = [
        &["run", "--name", "weaver", "--script", &limited, "weave"],
        &["attach", "weaver"],
        &["wait", "weaver"],
        &["say", "weaver", "--follow", "still there?"],
    ];
    for arguments in commands {
        let mut command = shop.grounds.command(arguments).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(command.stderr.take().unwrap()).lines().map(Result::unwrap);
        let parked = lines.find(|line| line.contains("parked (rate-limited)")).unwrap();
        let then = lines.next().unwrap();
        assert!(then.contains("it goes on by itself in 49 min (20"), "{arguments:?}: {parked} {then}");
        assert!(then.contains("Ctrl-C leaves it, and it goes on without this command"), "{arguments:?}: {then}");
        command.kill().unwrap();
        command.wait().unwrap();
    }
}

#[test]
fn a_run_without_a_place_says_what_it_waits_for() {
    use std::io::{BufRead as _, BufReader};
    let shop = Workshop::with("harness = 'scripted'\nmax_runs = 1\n", Vec::new());
    let first = shop.run(&[text("at work"), json!({ "sleep_ms": 600_000 })]);
    shop.wait_said(&first, "at work");
    let mut command = shop.grounds.command(&["run", "weave"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(command.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("waiting for its turn: as many agents run as `max_runs` allows")).unwrap();
    assert!(lines.next().unwrap().contains("Ctrl-C leaves it, and it begins without this command"));
    command.kill().unwrap();
    command.wait().unwrap();
}

#[test]
fn a_script_that_cannot_be_played_ends_the_run_at_once() {
    let shop = Workshop::open();
    let path = shop.grounds.path().join("bad.jsonl");
    fs::write(&path, "{\"txet\": \"hello\"}\n").unwrap();
    let ran = shop.grounds.run(&["run", "--name", "weaver", "--script", path.to_str().unwrap(), "weave"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("bad arguments") && ran.stderr.contains("line 1 of the script is not a step"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("Correct the script") && !ran.stderr.contains("attempt 2"), "{ran:?}");
    fs::write(&path, "{\"text\": \"hello\"}\n").unwrap();
    let said = shop.grounds.run(&["say", "--follow", "weaver", "again"]);
    assert!(said.stdout.contains("hello"), "{said:?}");
}

/// An error names its cause for programs, also where the command itself finds it.
#[test]
fn errors_in_json_have_a_code_of_their_own() {
    let shop = Workshop::open();
    let agent = shop.run(&[text("at work"), json!({ "sleep_ms": 600_000 })]);
    shop.wait_said(&agent, "at work");
    let code = |arguments: &[&str]| {
        let ran = shop.grounds.run(&[&["--json"], arguments].concat());
        let error: Value = serde_json::from_str(&ran.stderr).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        error["error"]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(code(&["wait", &agent, "--timeout", "0"]), "timed_out");
    assert_eq!(code(&["merge"]), "no_repository");
    assert_eq!(code(&["rescue", "list"]), "no_repository");
    shop.repository();
    assert_eq!(code(&["merge"]), "no_branch");
    assert_eq!(code(&["say", "--seat", "3", "hello"]), "empty_seat");
    let empty = tempfile::tempdir().unwrap();
    let mut ps = std::process::Command::new(env!("CARGO_BIN_EXE_hatchery"));
    ps.args(["--json", "ps", "--project"]).arg(empty.path()).env_clear().env("HOME", shop.grounds.path().join("home"));
    let error: Value = serde_json::from_slice(&ps.output().unwrap().stderr).unwrap();
    assert_eq!(error["error"]["code"], "no_project", "{error}");
}
