//! Running other programs, aloud.

use crate::Failure;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Says what is run, runs it, and fails when it fails.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = shown(command);
    eprintln!("xtask: {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure(format!("{shown}: {status}"))),
        Err(error) => Err(Failure(format!("{shown}: {error}"))),
    }
}

/// True when the program is there and says that all is well. Its words are not shown.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The cargo that runs this program, in the workspace's root. The variables that cargo has set for this package are not passed on.
/// Otherwise build scripts that depend on them, such as that of ring, would run again after each direct call of cargo, and everything
/// that depends on these scripts would be built again.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
            command.env_remove(name);
        }
    }
    command
}

/// The folder of the workspace from which cargo runs this chore. Not the one from which xtask was built: clones may share a target folder.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().expect("xtask is a folder of the workspace").to_owned()
}

fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(name).chain(arguments).collect::<Vec<_>>().join(" ")
}
