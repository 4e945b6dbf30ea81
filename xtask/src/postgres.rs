//! PostgreSQL's programs, which the tests and the rivals start in folders of their own. An existing cluster is never touched.

use crate::Failure;
use crate::command::{run, succeeds};
use crate::root_rights::Root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian puts one folder for each version; its `bin` is not on the PATH.
const VERSIONS: &str = "/usr/lib/postgresql";
const PROGRAMS: [&str; 2] = ["initdb", "postgres"];
/// Says whether installing a server also makes and starts a cluster.
const CLUSTER_POLICY: &str = "/etc/postgresql-common/createcluster.conf";

/// Installs PostgreSQL when its programs are missing and we may, and says what to do when we may not.
pub fn ensure() -> Result<(), Failure> {
    if bin().is_some() {
        return Ok(());
    }
    eprintln!("xtask: PostgreSQL's server programs are missing; installing them");
    install().map_err(|Failure(why)| {
        Failure(format!("{why}\nThe tests start a PostgreSQL of their own: install Debian's package `postgresql`"))
    })?;
    match bin().is_some() {
        true => Ok(()),
        false => Err(Failure(format!("PostgreSQL is installed, but {} are not found", PROGRAMS.join(" and ")))),
    }
}

/// The folder of its programs.
pub fn bin() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten().map(|version| version.path().join("bin"));
    std::env::split_paths(&path).chain(versions).find(|folder| has_programs(folder))
}

fn has_programs(folder: &Path) -> bool {
    PROGRAMS.iter().all(|program| folder.join(program).is_file())
}

/// No cluster is made and nothing is started: the policy says so while the server is installed, and is put back
/// afterwards, since clusters on this machine are its owner's business.
fn install() -> Result<(), Failure> {
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(Failure("there is no apt-get here".into()));
    }
    let root = Root::find()?;
    run(root.command("apt-get").args(["update", "--quiet"]))?;
    run(root.install("postgresql-common").arg("postgresql-client-common"))?;
    let policy = fs::read_to_string(CLUSTER_POLICY).unwrap_or_default();
    root.write(CLUSTER_POLICY, "create_main_cluster = false\n")?;
    let installed = run(&mut root.install("postgresql"));
    root.write(CLUSTER_POLICY, &policy)?;
    installed
}
