//! DBOS: a program in Python (`app/benches/rivals/dbos_steps.py`), on a PostgreSQL of its own that syncs every commit.

use super::guest::{Guest, User};
use super::{Effort, Figures, Lab, Rival};
use crate::command::{root, run, succeeds};
use crate::{Failure, postgres};
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

/// As in requirements.txt, which pip holds it against.
const VERSION: &str = "3.3.0";
const SUPERUSER: &str = "postgres";
/// Durable as it comes (`fsync`, `synchronous_commit`), reached only through a socket in its folder.
const SETTINGS: [&str; 4] =
    ["listen_addresses=", "max_connections=100", "log_min_messages=warning", "shared_buffers=256MB"];

pub fn rival(quick: bool) -> Rival {
    let effort = if quick { Effort { steps: 20, rounds: 1 } } else { Effort { steps: 100, rounds: 3 } };
    Rival { name: "DBOS", version: VERSION.into(), effort, measure }
}

fn measure(lab: &Lab, effort: Effort) -> Result<Figures, Failure> {
    let python = lab.installed(&format!("dbos-{VERSION}"), install)?.join("bin/python");
    let folder = lab.data.join("postgres");
    let _guest = start(&folder)?;
    let database = format!("postgresql://{SUPERUSER}@/rival?host={}", folder.display());
    effort.figures(Command::new(python).arg(root().join("app/benches/rivals/dbos_steps.py")).arg(database))
}

fn install(folder: &Path) -> Result<(), Failure> {
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let options = ["install", "--quiet", "--disable-pip-version-check", "--requirement"];
    let requirements = root().join("app/benches/rivals/requirements.txt");
    run(Command::new(folder.join("bin/pip")).args(options).arg(requirements).arg(format!("dbos=={VERSION}")))
}

fn start(folder: &Path) -> Result<Guest, Failure> {
    let bin = postgres::bin().ok_or(Failure("PostgreSQL is missing: `cargo xtask test` installs it".into()))?;
    let user = User::lesser();
    let made = fs::create_dir_all(folder).and_then(|()| match user {
        Some(User { uid, gid }) => chown(folder, Some(uid), Some(gid)),
        None => Ok(()),
    });
    made.map_err(|error| Failure(format!("{}: {error}", folder.display())))?;
    let data = folder.join("data");
    let initdb = bin.join("initdb");
    let mut initdb = user.map_or_else(|| Command::new(&initdb), |user| user.command(&initdb));
    let options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--username", SUPERUSER, "--pgdata"];
    if !succeeds(initdb.current_dir(folder).args(options).arg(&data)) {
        return Err(Failure("initdb failed".into()));
    }
    let arguments = ["-D".as_ref(), data.as_os_str(), "-k".as_ref(), folder.as_os_str()];
    let arguments = arguments.into_iter().chain(SETTINGS.iter().flat_map(|setting| ["-c".as_ref(), setting.as_ref()]));
    // The last line of this file is its state; not every installation has `pg_isready` beside the server.
    let state = data.join("postmaster.pid");
    let ready = || fs::read_to_string(&state).is_ok_and(|lines| lines.trim_end().ends_with("ready"));
    Guest::start(&bin.join("postgres"), arguments, folder, user, ready)
}
