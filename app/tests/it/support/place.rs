//! A place for a store of either kind, fresh and empty, that several handles can open.

use super::postgres::{Database, Server};
use super::runtime;
use hatchery::store::{self, Store, StoreError, StoreUrl};
use std::sync::Arc;
use tempfile::TempDir;

pub enum Place {
    Sqlite(TempDir),
    Postgres(Database),
}

impl Place {
    pub fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().unwrap())
    }

    pub fn postgres() -> Self {
        Self::Postgres(Server::shared().database())
    }

    pub fn url(&self) -> StoreUrl {
        match self {
            Self::Sqlite(folder) => StoreUrl::Sqlite(folder.path().join("log.db")),
            Self::Postgres(database) => database.url().parse().unwrap(),
        }
    }

    pub fn open(&self) -> Arc<dyn Store> {
        self.try_open().unwrap()
    }

    pub fn try_open(&self) -> Result<Arc<dyn Store>, StoreError> {
        store::open(&self.url(), runtime())
    }

    /// Does something behind the store's back.
    pub fn run_sql(&self, sql: &str) {
        match self {
            Self::Sqlite(folder) => {
                rusqlite::Connection::open(folder.path().join("log.db")).unwrap().execute_batch(sql).unwrap();
            }
            Self::Postgres(database) => database.run_sql(sql),
        }
    }
}
