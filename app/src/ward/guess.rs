//! Guesses a project's ward from its files. Never runs anything, and a guess is shown to a person with what it rests on.
//!
//! The first of these that fits:
//!
//! 1. a `justfile` or a `Makefile` with a recipe `test`, else `check`: the project's own words
//! 2. `Cargo.toml`
//! 3. `package.json` with a script `test`, by the package manager whose lock file is there
//! 4. `go.mod`
//! 5. pytest: its settings, or a Python project with tests
//! 6. `gradlew`, `pom.xml`, `mix.exs`
//! 7. `.ci/run`: the last, because what must hold before a release is often more than a step needs

use std::io::Read as _;
use std::path::Path;

/// The largest file that is looked into.
const FILE_BYTES: u64 = 1 << 20;
/// The recipes that are taken for a ward, the better one first.
const RECIPES: [&str; 2] = ["test", "check"];

/// What the ward may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    pub command: String,
    /// The file that says so.
    pub because: String,
}

/// The ward of the project in this folder, or nothing when no file says anything.
pub fn guess(folder: &Path) -> Option<Guess> {
    let guesses = [just, make, cargo, package, go, pytest, others];
    guesses.iter().find_map(|guess| guess(folder))
}

fn just(folder: &Path) -> Option<Guess> {
    recipe(folder, &["justfile", "Justfile", ".justfile"], "just")
}

fn make(folder: &Path) -> Option<Guess> {
    // In the order in which make looks for them.
    recipe(folder, &["GNUmakefile", "makefile", "Makefile"], "make")
}

fn cargo(folder: &Path) -> Option<Guess> {
    let text = read(folder, "Cargo.toml")?;
    let is_workspace = text.lines().any(|line| line.trim() == "[workspace]");
    found(if is_workspace { "cargo test --workspace" } else { "cargo test" }, "Cargo.toml")
}

fn package(folder: &Path) -> Option<Guess> {
    let package: serde_json::Value = serde_json::from_str(&read(folder, "package.json")?).ok()?;
    let script = package["scripts"]["test"].as_str()?.trim();
    // What `npm init` writes fails always.
    if script.is_empty() || script.contains("no test specified") {
        return None;
    }
    let managers =
        [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun run"), ("bun.lockb", "bun run")];
    let manager = managers.iter().find(|(lock, _)| folder.join(lock).exists()).map_or("npm", |(_, manager)| manager);
    found(&format!("{manager} test"), "package.json")
}

fn go(folder: &Path) -> Option<Guess> {
    read(folder, "go.mod")?;
    found("go test ./...", "go.mod")
}

fn pytest(folder: &Path) -> Option<Guess> {
    let says = |name: &str, words: &str| read(folder, name).is_some_and(|text| text.contains(words));
    let settings = [
        ("pytest.ini", ""),
        ("pyproject.toml", "[tool.pytest"),
        ("setup.cfg", "[tool:pytest]"),
        ("tox.ini", "[pytest]"),
    ];
    let because = settings.iter().find(|(name, words)| says(name, words)).map(|(name, _)| (*name).to_owned());
    let because = because.or_else(|| {
        let is_test = |name: &str| name.starts_with("test_") && name.ends_with(".py") || name.ends_with("_test.py");
        ["tests", "test", "."].iter().find_map(|inner| {
            let entries = std::fs::read_dir(folder.join(inner)).ok()?;
            let mut names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            let name = names.find(|name| is_test(name))?;
            Some(if *inner == "." { name } else { format!("{inner}/{name}") })
        })
    })?;
    found("python3 -m pytest", &because)
}

fn others(folder: &Path) -> Option<Guess> {
    let run = if is_executable(&folder.join(".ci/run")) { "./.ci/run" } else { "sh .ci/run" };
    let known = [
        ("gradlew", "./gradlew test"),
        ("pom.xml", "mvn --batch-mode test"),
        ("mix.exs", "mix test"),
        (".ci/run", run),
    ];
    known.iter().find(|(file, _)| folder.join(file).is_file()).and_then(|(file, command)| found(command, file))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

/// A line `NAME ARGUMENTS: NEEDS` at the margin, and not an assignment.
fn recipe(folder: &Path, files: &[&str], program: &str) -> Option<Guess> {
    let (file, text) = files.iter().find_map(|file| Some((*file, read(folder, file)?)))?;
    let is_for = |line: &str, recipe: &str| {
        let Some((names, rest)) = line.split_once(':') else { return false };
        let is_margin = !line.starts_with([' ', '\t', '#', '.']);
        let names = names.trim_start_matches('@');
        is_margin
            && !rest.starts_with('=')
            && !names.contains('=')
            && names.split_whitespace().any(|name| name == recipe)
    };
    let recipe = RECIPES.iter().find(|recipe| text.lines().any(|line| is_for(line, recipe)))?;
    found(&format!("{program} {recipe}"), file)
}

fn found(command: &str, because: &str) -> Option<Guess> {
    Some(Guess { command: command.to_owned(), because: because.to_owned() })
}

fn read(folder: &Path, name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(folder.join(name)).ok()?.take(FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: Option<(&str, &str)>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let guessed = guess(folder.path());
        let guessed = guessed.as_ref().map(|guess| (guess.command.as_str(), guess.because.as_str()));
        assert_eq!(guessed, expected, "{files:?}");
    }

    #[test]
    fn every_kind_of_project_has_its_ward() {
        let npm = r#"{ "scripts": { "test": "vitest run" } }"#;
        check(&[], None);
        check(&[("README.md", "test:")], None);
        check(&[("Cargo.toml", "[package]\n")], Some(("cargo test", "Cargo.toml")));
        check(&[("Cargo.toml", "[workspace]\n")], Some(("cargo test --workspace", "Cargo.toml")));
        check(&[("package.json", npm)], Some(("npm test", "package.json")));
        check(&[("package.json", npm), ("pnpm-lock.yaml", "")], Some(("pnpm test", "package.json")));
        check(&[("package.json", npm), ("yarn.lock", "")], Some(("yarn test", "package.json")));
        check(&[("package.json", npm), ("bun.lock", "")], Some(("bun run test", "package.json")));
        let none = r#"{ "scripts": { "test": "echo \"Error: no test specified\" && exit 1" } }"#;
        check(&[("package.json", none)], None);
        check(&[("package.json", r#"{ "scripts": { "build": "tsc" } }"#)], None);
        check(&[("package.json", "{")], None);
        check(&[("go.mod", "module x")], Some(("go test ./...", "go.mod")));
        check(&[("pytest.ini", "")], Some(("python3 -m pytest", "pytest.ini")));
        check(&[("pyproject.toml", "[tool.pytest.ini_options]\n")], Some(("python3 -m pytest", "pyproject.toml")));
        check(&[("pyproject.toml", "[project]\n")], None);
        check(&[("tests/test_it.py", "")], Some(("python3 -m pytest", "tests/test_it.py")));
        check(&[("it_test.py", "")], Some(("python3 -m pytest", "it_test.py")));
        check(&[("mix.exs", "")], Some(("mix test", "mix.exs")));
        check(&[(".ci/run", "")], Some(("sh .ci/run", ".ci/run")));
    }

    #[test]
    fn the_projects_own_words_come_first() {
        let cargo = ("Cargo.toml", "[package]\n");
        check(&[cargo, ("Makefile", "all: test\n\ntest: all\n\tcargo test\n")], Some(("make test", "Makefile")));
        check(&[cargo, ("Makefile", ".PHONY: test\nlint check:\n\ttrue\n")], Some(("make check", "Makefile")));
        check(&[cargo, ("Makefile", "test := yes\n# test: no\n\ttest: no\n")], Some(("cargo test", "Cargo.toml")));
        check(&[cargo, ("justfile", "test *args: build\n  cargo test\n")], Some(("just test", "justfile")));
        check(&[cargo, ("justfile", "@check:\n  true\n")], Some(("just check", "justfile")));
    }
}
