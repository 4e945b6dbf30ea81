//! The migrations of both back ends. They have the same names in the same order, so that a schema version means the same on both.

use super::StoreError;

#[derive(Debug, Clone, Copy)]
pub struct Migration {
    pub name: &'static str,
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

macro_rules! migrations {
    ($($name:literal),+ $(,)?) => {
        &[$(Migration {
            name: $name,
            sqlite: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../../migrations/postgres/", $name, ".sql")),
        }),+]
    };
}

pub const MIGRATIONS: &[Migration] =
    migrations!["0001_log", "0002_message_ranges", "0003_sums", "0004_writers", "0005_index_twice"];

/// The migrations that have not been applied yet, given the names of the applied ones. Refuses a store with a migration that this program
/// does not know.
pub fn pending(applied: &[String]) -> Result<&'static [Migration], StoreError> {
    for (at, name) in applied.iter().enumerate() {
        match MIGRATIONS.get(at) {
            Some(migration) if migration.name == name => {}
            _ => {
                let known = MIGRATIONS.last().map_or("", |migration| migration.name);
                return Err(StoreError::NewerSchema { found: name.clone(), known });
            }
        }
    }
    Ok(&MIGRATIONS[applied.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_or_foreign_schema_is_refused() {
        let known = MIGRATIONS.iter().map(|migration| migration.name.to_owned());
        let newer: Vec<String> = known.clone().chain(["9999_future".to_owned()]).collect();
        assert!(matches!(pending(&newer), Err(StoreError::NewerSchema { found, .. }) if found == "9999_future"));
        assert!(pending(&["something_else".to_owned()]).is_err());
        assert!(pending(&known.collect::<Vec<_>>()).unwrap().is_empty());
    }
}
