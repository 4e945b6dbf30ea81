//! The selftest that users run: short here, and long by hand.

use crate::support::daemon::Grounds;
use crate::support::postgres::Server;
use serde_json::Value;

fn short(grounds: &Grounds, more: &[&str]) {
    let ran = grounds.run(&[&["selftest", "--short", "--json"], more].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let counts: Value = serde_json::from_str(&ran.stdout).unwrap();
    for nothing in ["lost", "doubled", "serverErrors"] {
        assert_eq!(counts[nothing], 0, "{nothing}: {counts}");
    }
    for something in ["acknowledged", "daemonKills", "events", "runs"] {
        assert!(counts[something].as_u64() > Some(0), "{something}: {counts}");
    }
}

#[test]
fn sqlite() {
    short(&Grounds::new(), &[]);
}

#[test]
fn postgres() {
    let database = Server::shared().database();
    short(&Grounds::new(), &["--store", &database.url()]);
}
