//! Restate: its server as npm has it, and a service on its Rust SDK (`app/benches/rivals/restate`).

use super::guest::Guest;
use super::{Effort, Figures, Lab, Rival};
use crate::Failure;
use crate::command::{cargo, root, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SERVER: &str = "1.7.12";
/// As in the service's Cargo.toml.
const SDK: &str = "0.13.0";
const NODE: &str = "rival";
/// One partition for each of two cores, and nothing said or counted. The log's default provider is the faster one with many clients,
/// and syncs as it is. Sockets in its folder, so that no port is taken.
const SETTINGS: &str = "\
default-num-partitions = 2
listen-mode = 'unix'
log-filter = 'off'
tracing-filter = 'off'
disable-telemetry = true
disable-prometheus = true
rocksdb-perf-level = 'disable'
";

pub fn rival(quick: bool) -> Rival {
    let effort = if quick { Effort { steps: 50, rounds: 2 } } else { Effort { steps: 200, rounds: 10 } };
    Rival { name: "Restate", version: format!("{SERVER}, Rust SDK {SDK}"), effort, measure }
}

fn measure(lab: &Lab, effort: Effort) -> Result<Figures, Failure> {
    let server = server(&lab.installed(&format!("restate-{SERVER}"), install)?)?;
    let service = build(&lab.cache.join(format!("restate-sdk-{SDK}")))?;
    let folder = lab.data.join("restate");
    let settings = folder.join("settings.toml");
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&settings, SETTINGS));
    written.map_err(|error| Failure(format!("{}: {error}", settings.display())))?;
    let sockets = folder.join(NODE);
    let arguments =
        ["--no-logo".as_ref(), "--node-name".as_ref(), NODE.as_ref(), "--base-dir".as_ref(), folder.as_os_str()];
    let arguments = arguments.into_iter().chain(["--config-file".as_ref(), settings.as_os_str()]);
    let _guest = Guest::start(&server, arguments, &folder, None, || sockets.join("ingress.sock").exists())?;
    effort.figures(Command::new(service).arg(&sockets))
}

fn install(folder: &Path) -> Result<(), Failure> {
    // Without scripts: the only script of the package reports the installation over the network.
    let options = ["--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--silent"];
    let package = format!("@restatedev/restate-server@{SERVER}");
    run(Command::new("npm").args(["install", "--prefix"]).arg(folder).args(options).arg(package))
}

/// The program itself, from the package for this machine, and not the script that starts the program.
fn server(folder: &Path) -> Result<PathBuf, Failure> {
    let packages = folder.join("node_modules/@restatedev");
    let found = fs::read_dir(&packages).into_iter().flatten().flatten();
    let program = found.map(|package| package.path().join("bin/restate-server")).find(|program| program.is_file());
    program.ok_or_else(|| Failure(format!("{} has no restate-server for this machine", packages.display())))
}

fn build(target: &Path) -> Result<PathBuf, Failure> {
    let project = root().join("app/benches/rivals/restate");
    run(cargo().current_dir(project).args(["build", "--release", "--locked", "--target-dir"]).arg(target))?;
    Ok(target.join("release/rival-restate"))
}
