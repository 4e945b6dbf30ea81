//! Nothing grows without bound: what is over is shown and cleared, and what is needed stays.

use crate::support::workshop::Workshop;
use serde_json::json;
use std::fs;

#[test]
fn what_is_over_is_shown_and_cleared_and_what_runs_stays() {
    let shop = Workshop::open();
    let done = shop.run(&[json!({ "text": "done" })]);
    assert_eq!(shop.end(&done), "completed");
    let busy = shop.run(&[json!({ "hang": {} })]);
    shop.wait_for(&busy, "run_started");
    let runs = shop.grounds.data().join("runs");
    let empty = shop.door().agent(None);
    fs::create_dir(runs.join(&empty)).unwrap();
    let unknown = runs.join("not-an-agent");
    fs::create_dir(&unknown).unwrap();
    let shown = shop.grounds.run(&["gc"]).good();
    for what in [format!("runs/{done}/1-1"), format!("runs/{empty}"), "sessions/".into(), ".hatchery/sim/".into()] {
        assert!(shown.contains(&what), "{what} in {shown}");
    }
    assert!(!shown.contains(&busy) && !shown.contains("not-an-agent"), "{shown}");
    assert!(shop.folder(&done, 1, 1).exists(), "looking clears nothing");
    assert!(!shop.grounds.run(&["gc", "--days", "1"]).good().contains(&done), "it is not that old");
    shop.grounds.run(&["gc", "--clear"]).good();
    assert!(!shop.folder(&done, 1, 1).exists() && !runs.join(&empty).exists());
    assert!(shop.folder(&busy, 1, 1).exists() && unknown.exists());
    // The folder of the agent is empty now.
    shop.grounds.run(&["gc", "--clear"]).good();
    assert!(!runs.join(&done).exists());
    assert_eq!(shop.said(&done), ["done"], "the log has it all");
}
