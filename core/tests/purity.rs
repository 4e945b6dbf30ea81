//! The core stays pure: what it depends on is a closed list. What it calls is guarded by `clippy.toml`.

use toml::{Table, Value};

/// Data structures, encodings and derives: nothing that can reach outside the process.
const ALLOWED: [&str; 6] = ["base64", "imbl", "serde", "serde_json", "thiserror", "utoipa"];

#[test]
fn the_core_depends_on_nothing_that_reaches_outside() {
    let manifest: Table = include_str!("../Cargo.toml").parse().unwrap();
    assert_eq!(impurities(&manifest), [""; 0], "see docs/decisions/0002-pure-core.md before adding a dependency");
}

#[test]
fn an_impure_dependency_is_found_wherever_it_is_declared() {
    let found = |manifest: &str| impurities(&manifest.parse().unwrap());
    assert_eq!(found("[dependencies]\nserde.workspace = true"), [""; 0]);
    assert_eq!(found("[dev-dependencies]\nproptest.workspace = true"), [""; 0], "tests may use what they like");
    assert_eq!(found("[dependencies]\ntokio.workspace = true\nserde = \"1\""), ["tokio"]);
    assert_eq!(found("[dependencies]\nserde = { package = \"rand\", version = \"0.9\" }"), ["serde: renamed"]);
    assert_eq!(found("[dependencies]\nutoipa.workspace = true"), ["utoipa: not optional"]);
    assert_eq!(found("[dependencies.rusqlite]\nversion = \"0.41\""), ["rusqlite"]);
    assert_eq!(found("[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\""), ["libc"]);
    assert_eq!(found("[build-dependencies]\ncc = \"1\""), ["cc"]);
}

fn impurities(manifest: &Table) -> Vec<String> {
    let per_target = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    (per_target.filter_map(Value::as_table).chain([manifest]))
        .flat_map(|table| ["dependencies", "build-dependencies"].map(|section| table.get(section)))
        .flatten()
        .filter_map(Value::as_table)
        .flatten()
        .filter_map(|(name, wanted)| impurity(name, wanted))
        .collect()
}

fn impurity(name: &str, wanted: &Value) -> Option<String> {
    if !ALLOWED.contains(&name) {
        return Some(name.to_owned());
    }
    // An allowed name must not be a mask for another crate.
    if wanted.get("package").is_some() {
        return Some(format!("{name}: renamed"));
    }
    // Schemas are wanted by the HTTP API only; a plain build of the core goes without.
    if name == "utoipa" && wanted.get("optional") != Some(&Value::Boolean(true)) {
        return Some(format!("{name}: not optional"));
    }
    None
}
