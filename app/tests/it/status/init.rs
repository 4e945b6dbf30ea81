//! `hatchery init`: what it changes in settings files, and that all of it can be undone.

use crate::support::daemon::Grounds;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

fn settings(grounds: &Grounds) -> PathBuf {
    let path = grounds.path().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

#[test]
fn init_merges_into_settings_and_can_be_undone() {
    let grounds = Grounds::new();
    let settings = settings(&grounds);
    let before = r#"{"model":"opus","hooks":{"PostToolUse":[{"matcher":"Bash","hooks":[]}],"Stop":[]}}"#;
    fs::write(&settings, before).unwrap();
    let shown = grounds.run(&["init"]);
    assert_eq!(shown.code, Some(5), "nobody agreed: {shown:?}");
    assert!(shown.stdout.contains("hatchery statusline") && shown.stdout.contains(".mcp.json"), "{}", shown.stdout);
    let shown = grounds.run(&["--json", "init"]);
    let json: Value = serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {shown:?}"));
    assert_eq!((shown.code, &json["done"], &json["changes"][0]["before"]), (Some(5), &json!(false), &json!(before)));
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
    grounds.run(&["init", "--yes"]).good();
    let read = |path: &std::path::Path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    let after = read(&settings);
    assert_eq!(after["statusLine"]["command"], "hatchery statusline");
    assert_eq!(after["hooks"]["PostToolUse"][0]["matcher"], "Bash");
    assert_eq!(after["hooks"]["PostToolUse"][1]["hooks"][0]["command"], "hatchery state untracked");
    assert_eq!(read(&grounds.path().join(".mcp.json"))["mcpServers"]["hatchery"]["command"], "hatchery");
    assert!(grounds.path().join(".fctry").is_dir());
    assert!(grounds.run(&["init", "--yes"]).stderr.contains("everything is set up already"));
    let asked = grounds.run(&["init", "--undo"]);
    assert!(asked.code == Some(5) && asked.stderr.contains("`hatchery init --undo --yes`"), "{asked:?}");
    grounds.run(&["init", "--undo", "--yes"]).good();
    assert_eq!(read(&settings), serde_json::from_str::<Value>(before).unwrap());
    assert!(!grounds.path().join(".mcp.json").exists() && !grounds.path().join(".fctry").exists());
}

#[test]
fn init_leaves_alone_what_is_not_ours() {
    let grounds = Grounds::new();
    let settings = settings(&grounds);
    fs::write(&settings, r#"{"statusLine":{"type":"command","command":"mine"}}"#).unwrap();
    let ran = grounds.run(&["init", "--yes"]);
    assert!(ran.stderr.contains("another status line"), "{ran:?}");
    let after: Value = serde_json::from_slice(&fs::read(&settings).unwrap()).unwrap();
    assert_eq!(after["statusLine"]["command"], "mine");
    fs::write(&settings, "// a comment\n{}").unwrap();
    let ran = grounds.run(&["init", "--yes"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(fs::read_to_string(&settings).unwrap(), "// a comment\n{}");
}

#[test]
fn undoing_gives_back_the_very_bytes() {
    let grounds = Grounds::new();
    let settings = settings(&grounds);
    let servers = grounds.path().join(".mcp.json");
    let befores = ["{\t\"hooks\" : { },\r\n\t\"model\":\"opus\" }", "{}", "{\n    \"mcpServers\": {\n    }\n}\n\n"];
    for before in befores {
        fs::write(&settings, before).unwrap();
        fs::write(&servers, before).unwrap();
        fs::set_permissions(&settings, fs::Permissions::from_mode(0o600)).unwrap();
        grounds.run(&["init", "--yes"]).good();
        assert_ne!(fs::read_to_string(&settings).unwrap(), before);
        let mode = fs::metadata(&settings).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "closed to others, as it was");
        grounds.run(&["init", "--undo", "--yes"]).good();
        assert_eq!(fs::read_to_string(&settings).unwrap(), before);
        assert_eq!(fs::read_to_string(&servers).unwrap(), before);
        assert!(!grounds.path().join(".fctry").exists());
    }
    // Files and folders that were not there are gone again.
    fs::remove_dir_all(settings.parent().unwrap()).unwrap();
    fs::remove_file(&servers).unwrap();
    grounds.run(&["init", "--yes"]).good();
    grounds.run(&["init", "--undo", "--yes"]).good();
    assert!(!settings.parent().unwrap().exists() && !servers.exists());
    assert!(grounds.run(&["init", "--undo", "--yes"]).stderr.contains("there is nothing to undo"));
}

#[test]
fn undoing_keeps_what_others_have_changed_since() {
    let grounds = Grounds::new();
    let settings = settings(&grounds);
    fs::write(&settings, r#"{"hooks":{},"model":"opus"}"#).unwrap();
    grounds.run(&["init", "--yes"]).good();
    let read = || serde_json::from_slice::<Value>(&fs::read(&settings).unwrap()).unwrap();
    let mut changed = read();
    changed["model"] = json!("sonnet");
    fs::write(&settings, changed.to_string()).unwrap();
    grounds.run(&["init", "--undo", "--yes"]).good();
    assert_eq!(read(), json!({ "hooks": {}, "model": "sonnet" }));
    // What was taken out by hand is put in again, and all of it is taken out.
    fs::write(&settings, r#"{"a":1}"#).unwrap();
    grounds.run(&["init", "--yes"]).good();
    let mut without_hook = read();
    without_hook.as_object_mut().unwrap().remove("hooks");
    fs::write(&settings, without_hook.to_string()).unwrap();
    grounds.run(&["init", "--yes"]).good();
    grounds.run(&["init", "--undo", "--yes"]).good();
    assert_eq!(read(), json!({ "a": 1 }));
}

#[test]
fn a_linked_settings_file_stays_a_link() {
    let grounds = Grounds::new();
    let settings = settings(&grounds);
    let kept = grounds.path().join("home/settings.json");
    fs::write(&kept, r#"{"model":"opus"}"#).unwrap();
    std::os::unix::fs::symlink(&kept, &settings).unwrap();
    grounds.run(&["init", "--yes"]).good();
    assert!(settings.is_symlink() && fs::read_to_string(&kept).unwrap().contains("hatchery statusline"));
    grounds.run(&["init", "--undo", "--yes"]).good();
    assert!(settings.is_symlink());
    assert_eq!(fs::read_to_string(&kept).unwrap(), r#"{"model":"opus"}"#);
}
